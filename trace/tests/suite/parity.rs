//! Our tables against those of the real `nsys stats`, cell by cell.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};

use flopwatch_model::{Category, ColumnId, Timeline};
use flopwatch_summary::{Statistics, Summary, Table, TableRow, summarise};

use crate::corpus::timeline_of;
use crate::nsys;

/// Name of a row and its figures.
type Groups = BTreeMap<String, Statistics>;

/// A report of `nsys stats`: its names since 2023 and before (where newer versions take it for
/// another one), what its figures are multiplied by to be ns or bytes, and our rows of the same.
struct Report {
    names: [&'static str; 2],
    unit: f64,
    groups: fn(&Timeline, &Summary) -> Groups,
}

const REPORTS: [Report; 6] = [
    Report {
        names: ["cuda_gpu_kern_gb_sum", "gpukernsum"],
        unit: 1.0,
        groups: |timeline, _| kernels_by_shape(timeline),
    },
    Report {
        names: ["cuda_gpu_mem_time_sum", "gpumemtimesum"],
        unit: 1.0,
        groups: |_, summary| of_tables(&[&summary.memcpy_time, &summary.memset]),
    },
    Report {
        names: ["cuda_gpu_mem_size_sum", "gpumemsizesum"],
        unit: 1e6,
        groups: |_, summary| of_tables(&[&summary.memcpy_size, &summary.memset_size]),
    },
    Report {
        names: ["cuda_api_sum", "cudaapisum"],
        unit: 1.0,
        groups: |_, summary| of_tables(&[&summary.cuda_api]),
    },
    Report {
        names: ["nvtx_sum", "nvtxsum"],
        unit: 1.0,
        groups: |_, summary| of_tables(&[&summary.nvtx]),
    },
    Report {
        names: ["osrt_sum", "osrtsum"],
        unit: 1.0,
        groups: |_, summary| of_tables(&[&summary.os_runtime]),
    },
];

fn of_tables(tables: &[&Table]) -> Groups {
    let rows = tables.iter().flat_map(|table| &table.rows);
    let key = |row: &TableRow| match &row.style {
        Some(style) => format!("{style}|{}", row.name),
        None => row.name.clone(),
    };
    rows.map(|row| (key(row), row.statistics)).collect()
}

/// nsys of 2022 has no table of kernels by name alone.
fn kernels_by_shape(timeline: &Timeline) -> Groups {
    let category = Category::CudaKernel;
    let Some(events) = timeline.capture.events.get(&category) else {
        return Groups::new();
    };
    let mut groups: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for at in 0..events.len() {
        let of = |ids: [ColumnId; 3]| {
            let values = ids.map(|id| events.column(id).unwrap().get(at).unwrap().to_string());
            values.join(" ")
        };
        let grid = of([ColumnId::GridX, ColumnId::GridY, ColumnId::GridZ]);
        let block = of([ColumnId::BlockX, ColumnId::BlockY, ColumnId::BlockZ]);
        let key = format!("{grid}|{block}|{}", events.name_of(at));
        groups.entry(key).or_default().push(events.duration_ns[at]);
    }
    let figures = |(key, values)| (key, Statistics::of(values).unwrap());
    groups.into_iter().map(figures).collect()
}

/// The rows of a report, by the text before the first blank of each heading, or `None` where nsys
/// skipped it.
fn stats(nsys: &Path, report: &Path, names: [&str; 2]) -> Option<Vec<HashMap<String, String>>> {
    for name in names {
        let base = report.with_file_name("stats");
        let mut command = Command::new(nsys);
        command.args([
            "stats",
            "--format",
            "csv",
            "--force-overwrite",
            "true",
            "--force-export=true",
            "--report",
            name,
            "--output",
        ]);
        let output = command.arg(&base).arg(report).stdin(Stdio::null()).output().unwrap();
        let file = report.with_file_name(format!("stats_{name}.csv"));
        if !output.status.success() || !file.is_file() {
            continue;
        }
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_path(&file).unwrap();
        let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let rows = reader.records().map(|record| {
            let record = record.unwrap();
            heads
                .iter()
                .map(|head| head.split(" (").next().unwrap().to_owned())
                .zip(record.iter().map(str::to_owned))
                .collect()
        });
        return Some(rows.collect());
    }
    None
}

/// The key of a row as `Report::groups` makes it.
fn key(row: &HashMap<String, String>) -> String {
    let blanks = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
    let name = ["Name", "Operation", "Range"]
        .into_iter()
        .find_map(|head| row.get(head))
        .unwrap()
        .clone();
    if let (Some(grid), Some(block)) = (row.get("GridXYZ"), row.get("BlockXYZ")) {
        return format!("{}|{}|{name}", blanks(grid), blanks(block));
    }
    if let Some(style) = row.get("Style") {
        return format!("{style}|{name}");
    }
    // nsys of 2022 abbreviates operations on memory; a function's name may hold the same letters.
    if !name.starts_with("[CUDA") {
        // nsys takes off versions of four digits alone: it has `cudaGraphLaunch_v10000`.
        let bare = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let function = bare.strip_suffix("_v").filter(|_| name.len() - bare.len() > 4);
        return function.unwrap_or(&name).to_owned();
    }
    let long = [
        ("HtoD", "Host-to-Device"),
        ("DtoH", "Device-to-Host"),
        ("DtoD", "Device-to-Device"),
        ("PtoP", "Peer-to-Peer"),
        ("HtoH", "Host-to-Host"),
    ];
    long.into_iter()
        .fold(name, |name, (short, long)| name.replace(short, long))
}

fn compare(what: &str, rows: &[HashMap<String, String>], unit: f64, ours: &Groups) {
    assert_eq!(rows.len(), ours.len(), "{what}: rows");
    let float = |value: u64| value.to_string().parse::<f64>().unwrap();
    for row in rows {
        let key = key(row);
        let figures = ours
            .get(&key)
            .unwrap_or_else(|| panic!("{what}: we have no row {key}; {:?}", ours.keys()));
        let cell = |heads: &[&str]| heads.iter().find_map(|head| row.get(*head)).unwrap().clone();
        assert_eq!(
            cell(&["Instances", "Num Calls", "Count"]),
            figures.calls.to_string(),
            "{what}: {key}"
        );
        let cells = [
            (cell(&["Total Time", "Total"]), float(figures.total)),
            (cell(&["Avg"]), figures.avg),
            (cell(&["Med"]), figures.median),
            (cell(&["Min"]), float(figures.min)),
            (cell(&["Max"]), float(figures.max)),
            (cell(&["StdDev"]), figures.stddev),
        ];
        for (theirs, ours) in cells {
            // As many decimals as they print, and the error of their sums of squares.
            let decimals = theirs.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let tolerance = 0.500_001 * 0.1_f64.powi(i32::try_from(decimals).unwrap()) + ours.abs() / unit * 1e-9;
            let difference = (theirs.parse::<f64>().unwrap() - ours / unit).abs();
            let limit = if decimals == 0 { 0.0 } else { tolerance };
            assert!(difference <= limit, "{what}: {key}: {theirs} is not {}", ours / unit);
        }
    }
}

/// nsys prints shares as percentages with one decimal, and the largest total first.
fn compare_order(what: &str, rows: &[HashMap<String, String>], table: &Table) {
    for (theirs, ours) in rows.iter().zip(&table.rows) {
        let total = ours.statistics.total.to_string();
        assert_eq!(theirs["Total Time"], total, "{what}: {}", ours.name);
        let percent: f64 = theirs["Time"].parse().unwrap();
        let difference = (percent - ours.share_of_table * 100.0).abs();
        assert!(difference < 0.0501, "{what}: {}: {percent} %", ours.name);
    }
}

/// Our kernels by name against their rows by name and shape, as far as those can be added up.
fn compare_kernels(what: &str, rows: &[HashMap<String, String>], table: &Table) {
    let mut theirs: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for row in rows {
        let figure = |head: &str| row[head].parse::<u64>().unwrap();
        let shape = ["Instances", "Total Time", "Min", "Max"].map(figure);
        let sum = theirs.entry(&row["Name"]).or_insert([0, 0, u64::MAX, 0]);
        *sum = [
            sum[0] + shape[0],
            sum[1] + shape[1],
            sum[2].min(shape[2]),
            sum[3].max(shape[3]),
        ];
    }
    let ours = table.rows.iter().map(|row| {
        let figures = row.statistics;
        (
            row.name.as_str(),
            [figures.calls, figures.total, figures.min, figures.max],
        )
    });
    assert_eq!(ours.collect::<BTreeMap<&str, [u64; 4]>>(), theirs, "{what}");
}

#[test]
fn every_table_equals_that_of_nsys_stats() {
    for report in nsys::REPORTS {
        let Some(export) = nsys::export(report) else { continue };
        let timeline = timeline_of(&export.path());
        let summary = summarise(&timeline);
        for Report { names, unit, groups } in REPORTS {
            let ours = groups(&timeline, &summary);
            let what = format!("{report} {}", names[0]);
            let Some(rows) = stats(export.nsys(), export.report(), names) else {
                let count = ours.len();
                assert!(ours.is_empty(), "{what}: nsys has no such data, we have {count} rows");
                continue;
            };
            compare(&what, &rows, unit, &ours);
            match names[0] {
                "cuda_gpu_kern_gb_sum" => compare_kernels(&what, &rows, &summary.kernels),
                "cuda_api_sum" => compare_order(&what, &rows, &summary.cuda_api),
                "nvtx_sum" => compare_order(&what, &rows, &summary.nvtx),
                "osrt_sum" => compare_order(&what, &rows, &summary.os_runtime),
                _ => {}
            }
            println!("{what}: {} rows equal", rows.len());
        }
    }
}
