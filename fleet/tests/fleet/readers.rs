//! The files against other programs that read Parquet: pyarrow, DuckDB and polars.
//!
//! `FLOPWATCH_PYTHON` names a Python that has them, and has to when it is set; without it the one
//! on the PATH is asked.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use flopwatch_fleet::{
    Bounds, CaptureRow, FilePath, GroupBy, Query, Row, Sketch, Table, Totals, write_captures, write_rows,
};
use serde_json::{Value, json};

use crate::records::{DAY, capture, row};

const SCRIPT: &str = include_str!("readers.py");

/// A Python with the three readers, or a printed reason to skip.
fn python() -> Option<PathBuf> {
    let named = std::env::var_os("FLOPWATCH_PYTHON").map(PathBuf::from);
    let python = named.clone().unwrap_or_else(|| PathBuf::from("python3"));
    let asked = Command::new(&python)
        .args(["-c", "import duckdb, polars, pyarrow"])
        .output();
    let works = asked.as_ref().is_ok_and(|output| output.status.success());
    assert!(
        works || named.is_none(),
        "FLOPWATCH_PYTHON has no pyarrow, duckdb or polars (cargo xtask setup makes one that has): {asked:?}"
    );
    if works {
        return Some(python);
    }
    println!("skipped: no Python with pyarrow, duckdb and polars on this machine (set FLOPWATCH_PYTHON to one)");
    None
}

/// Captures of two days: of many names, of none, one that failed.
fn fleet() -> Vec<(CaptureRow, Vec<Row>)> {
    let day = 86_400_000_000_000;
    let mut fleet: Vec<(CaptureRow, Vec<Row>)> = (0..7)
        .map(|n| {
            let mut capture = capture(&format!("uid-{n}"), 0.1 + 0.1 * n as f64);
            capture.window_start = DAY + n % 2 * day + n * 7;
            let gemm = row(&capture, "cuda_kernel", "gemm", 100, 1_000_000 + n);
            let kernels = (0..40 + n).map(|k| {
                row(
                    &capture,
                    "cuda_kernel",
                    &format!("gemm<{k}>"),
                    1 + k % 9,
                    1 + k * k * 977,
                )
            });
            let mut rows: Vec<Row> = kernels.collect();
            let mut range = row(&capture, "nvtx_range", "Schritt „é“ 步", 3, 5_000_000_000_000);
            range.device = None;
            let mut profiled = row(&capture, "profiled_kernel", "gemm<0>", 2, 0);
            profiled.sketch = None;
            rows.extend([gemm, range, profiled]);
            (capture, rows)
        })
        .collect();
    let mut failed = capture("failed", 1.0);
    failed.succeeded = false;
    failed.reason = Some("NoEvents".to_owned());
    failed.categories = Vec::new();
    failed.gpu_busy_ns = None;
    fleet.push((failed, Vec::new()));
    fleet
}

/// What every reader is to find.
fn expected(fleet: &[(CaptureRow, Vec<Row>)]) -> Value {
    let rows: Vec<&Row> = fleet.iter().flat_map(|(_, rows)| rows).collect();
    let captures: Vec<&CaptureRow> = fleet.iter().map(|(capture, _)| capture).collect();
    let sum = |value: fn(&Row) -> i64| rows.iter().map(|row| value(row)).sum::<i64>();
    let sketches: Vec<(i32, u64)> = rows
        .iter()
        .filter_map(|row| row.sketch.as_ref())
        .flat_map(Sketch::buckets)
        .collect();
    let mut categories: Vec<&String> = captures.iter().flat_map(|capture| &capture.categories).collect();
    categories.sort_unstable();
    json!({
        "rows": rows.len(),
        "sums": {
            "calls": sum(|row| row.calls),
            "total_ns": sum(|row| row.total_ns),
            "min_ns": sum(|row| row.min_ns),
            "max_ns": sum(|row| row.max_ns),
            "median_ns": sum(|row| row.median_ns),
            "window_ns": sum(|row| row.window_ns),
            "probability_per_billion": sum(|row| row.probability_per_billion),
        },
        "hashes": rows.iter().map(|row| row.name_hash).collect::<BTreeSet<_>>(),
        "names": rows.iter().map(|row| row.name.as_str()).collect::<BTreeSet<_>>(),
        "without_sketch": rows.iter().filter(|row| row.sketch.is_none()).count(),
        "without_device": rows.iter().filter(|row| row.device.is_none()).count(),
        "buckets": [
            sketches.iter().map(|(bucket, _)| i64::from(*bucket)).sum::<i64>(),
            sketches.iter().map(|(_, count)| i64::try_from(*count).unwrap()).sum::<i64>(),
        ],
        "starts": rows.iter().map(|row| row.window_start).collect::<BTreeSet<_>>(),
        "dates": ["2026-11-25", "2026-11-26"],
        "captures": captures.len(),
        "failed": captures.iter().filter(|capture| !capture.succeeded).count(),
        "categories": categories,
        "busy": captures.iter().filter_map(|capture| capture.gpu_busy_ns).sum::<i64>(),
        "unknown_busy": captures.iter().filter(|capture| capture.gpu_busy_ns.is_none()).count(),
        "versions": true,
    })
}

#[test]
fn pyarrow_duckdb_and_polars_read_the_same() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let fleet = fleet();
    for (capture, rows) in &fleet {
        let files = [
            (Table::Captures, write_captures(std::slice::from_ref(capture)).unwrap()),
            (Table::Rows, write_rows(rows).unwrap()),
        ];
        for (table, bytes) in files {
            let path = FilePath::new(table, capture.window_start, &capture.namespace, &capture.capture_uid)
                .unwrap()
                .to_string();
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(folder.path().join("fleet/v1"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/fleet.md"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    println!("{} files, {} bytes", found["files"], found["bytes"]);
    let expected = expected(&fleet);
    for reader in ["pyarrow", "duckdb", "polars"] {
        assert_eq!(found[reader], expected, "{reader}");
    }
    the_document_asks_for_what_totals_say(&found["document"], &fleet);
}

/// The queries of `docs/fleet.md` as DuckDB answers them: most GPU time until the 25th, what is
/// missing, a percentile.
fn the_document_asks_for_what_totals_say(answers: &Value, fleet: &[(CaptureRow, Vec<Row>)]) {
    let query = Query {
        group_by: GroupBy::Name,
        categories: BTreeSet::from(["cuda_kernel".to_owned()]),
        from_ns: DAY,
        until_ns: DAY + 86_400_000_000_000,
        drawn_only: false,
    };
    let mut totals = Totals::new(query, Bounds::default());
    for (capture, rows) in fleet {
        totals.add(std::slice::from_ref(capture), rows);
    }
    let report = totals.report(10);
    let [top, missing, percentile] = answers.as_array().unwrap().as_slice() else {
        panic!("{answers}")
    };
    let close = |found: &Value, expected: f64| {
        let found = found.as_f64().unwrap();
        assert!(
            (found - expected).abs() <= expected * 1e-12,
            "{found} against {expected}"
        );
    };
    assert_eq!(top.as_array().unwrap().len(), report.groups.len());
    for (found, group) in top.as_array().unwrap().iter().zip(&report.groups) {
        assert_eq!(found[0], json!(group.key));
        close(&found[1], group.total_ns.value.unwrap() / 3.6e12);
        close(&found[2], group.calls.value.unwrap());
        close(&found[3], group.share.value.unwrap());
    }
    assert_eq!(missing, &json!([[8, 1, 1]]));
    let found = percentile[0][0].as_f64().unwrap();
    assert!((found - 1_000_006.0).abs() < 20_001.0, "{found}");
}
