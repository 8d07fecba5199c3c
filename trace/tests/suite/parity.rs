//! Our tables against those of the real `nsys stats`, cell by cell.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Stdio};

use flopwatch_trace::model::{Category, ColumnId, Events, Timeline};
use flopwatch_trace::summary::{Statistics, Table, summarise};

use crate::corpus::timeline_of;
use crate::nsys;

/// Name of a row and its values.
type Groups = BTreeMap<String, Vec<u64>>;

/// A report of `nsys stats`: its names since 2023 and before (where newer versions take it for another one), and what its figures are multiplied by to be ns or bytes.
struct Report {
    names: [&'static str; 2],
    unit: f64,
    groups: fn(&Timeline) -> Groups,
}

const REPORTS: [Report; 6] = [
    Report {
        names: ["cuda_gpu_kern_gb_sum", "gpukernsum"],
        unit: 1.0,
        groups: kernels,
    },
    Report {
        names: ["cuda_gpu_mem_time_sum", "gpumemtimesum"],
        unit: 1.0,
        groups: memory_times,
    },
    Report {
        names: ["cuda_gpu_mem_size_sum", "gpumemsizesum"],
        unit: 1e6,
        groups: memory_sizes,
    },
    Report {
        names: ["cuda_api_sum", "cudaapisum"],
        unit: 1.0,
        groups: api_calls,
    },
    Report {
        names: ["nvtx_sum", "nvtxsum"],
        unit: 1.0,
        groups: ranges,
    },
    Report {
        names: ["osrt_sum", "osrtsum"],
        unit: 1.0,
        groups: os_calls,
    },
];

fn grouped(
    timeline: &Timeline,
    categories: &[Category],
    name: impl Fn(Category, usize) -> String,
    value: impl Fn(Category, usize) -> u64,
) -> Groups {
    let mut groups = Groups::new();
    for category in categories {
        let count = timeline.capture.events.get(category).map_or(0, Events::len);
        for at in 0..count {
            groups
                .entry(name(*category, at))
                .or_default()
                .push(value(*category, at));
        }
    }
    groups
}

fn own(timeline: &Timeline, category: Category, id: ColumnId, at: usize) -> u64 {
    timeline.capture.events[&category].column(id).unwrap().get(at).unwrap()
}

fn durations(timeline: &Timeline, categories: &[Category], prefix: impl Fn(Category, usize) -> String) -> Groups {
    let name = |category, at| prefix(category, at) + timeline.capture.events[&category].name_of(at);
    grouped(timeline, categories, name, |category, at| {
        timeline.capture.events[&category].duration_ns[at]
    })
}

fn kernels(timeline: &Timeline) -> Groups {
    let shape = |category, at| {
        let of = |ids: [ColumnId; 3]| ids.map(|id| own(timeline, category, id, at).to_string()).join(" ");
        let grid = of([ColumnId::GridX, ColumnId::GridY, ColumnId::GridZ]);
        format!("{grid}|{}|", of([ColumnId::BlockX, ColumnId::BlockY, ColumnId::BlockZ]))
    };
    durations(timeline, &[Category::CudaKernel], shape)
}

fn memory() -> Vec<Category> {
    Category::MEMCPY.into_iter().chain([Category::CudaMemset]).collect()
}

fn memory_times(timeline: &Timeline) -> Groups {
    durations(timeline, &memory(), |_, _| String::new())
}

fn memory_sizes(timeline: &Timeline) -> Groups {
    let name = |category, at| timeline.capture.events[&category].name_of(at).to_owned();
    grouped(timeline, &memory(), name, |category, at| {
        own(timeline, category, ColumnId::Bytes, at)
    })
}

fn api_calls(timeline: &Timeline) -> Groups {
    durations(timeline, &[Category::CudaApi], |_, _| String::new())
}

fn os_calls(timeline: &Timeline) -> Groups {
    durations(timeline, &[Category::OsRuntime], |_, _| String::new())
}

fn ranges(timeline: &Timeline) -> Groups {
    durations(timeline, &[Category::NvtxRange], |category, at| {
        let style = own(timeline, category, ColumnId::RangeStyle, at);
        if style == 0 {
            "PushPop|".to_owned()
        } else {
            "StartEnd|".to_owned()
        }
    })
}

/// The rows of a report, by the text before the first blank of each heading, or `None` where nsys skipped it.
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
        return name;
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
        let values = ours
            .get(&key)
            .unwrap_or_else(|| panic!("{what}: we have no row {key}; {:?}", ours.keys()));
        let figures = Statistics::of(values.clone()).unwrap();
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

#[test]
fn every_table_equals_that_of_nsys_stats() {
    for report in [
        "gpubootcamp-jacobi/jacobi_report.qdrep",
        "gpubootcamp-jacobi/jacobi_memcpy_sys_report.qdrep",
        "gpubootcamp-jacobi-mpi/mpi_report2.qdrep",
        "trt-controlnet/cudagraph.nsys-rep",
        "alpa-jax/jax_profile_mem.nsys-rep",
    ] {
        let (Some(nsys), Some(export)) = (nsys::binary(), nsys::export(report)) else {
            continue;
        };
        let timeline = timeline_of(&export.path());
        for Report { names, unit, groups } in REPORTS {
            let ours = groups(&timeline);
            let what = format!("{report} {}", names[0]);
            match stats(&nsys, export.report(), names) {
                Some(rows) => {
                    compare(&what, &rows, unit, &ours);
                    println!("{what}: {} rows equal", rows.len());
                }
                None => assert!(
                    ours.is_empty(),
                    "{what}: nsys has no such data, we have {} rows",
                    ours.len()
                ),
            }
        }
        summary_is_made_of_these_groups(&timeline);
    }
}

/// Ties the published tables to the groups that were compared.
fn summary_is_made_of_these_groups(timeline: &Timeline) {
    let summary = summarise(timeline);
    let check = |table: &Table, groups: Groups| {
        assert_eq!(table.rows.len(), groups.len());
        for row in &table.rows {
            let style = row.style.as_ref().map_or(String::new(), |style| format!("{style}|"));
            let values = groups.get(&format!("{style}{}", row.name)).unwrap();
            assert_eq!(Some(row.statistics), Statistics::of(values.clone()), "{}", row.name);
        }
        let shares: f64 = table.rows.iter().map(|row| row.share_of_table).sum();
        assert!(table.rows.is_empty() || (shares - 1.0).abs() < 1e-9);
        assert!(
            table
                .rows
                .windows(2)
                .all(|pair| pair[0].statistics.total >= pair[1].statistics.total)
        );
    };
    check(&summary.cuda_api, api_calls(timeline));
    check(&summary.nvtx, ranges(timeline));
    check(&summary.os_runtime, os_calls(timeline));
    check(
        &summary.kernels,
        durations(timeline, &[Category::CudaKernel], |_, _| String::new()),
    );
    check(
        &summary.memcpy_time,
        durations(timeline, &Category::MEMCPY, |_, _| String::new()),
    );
}
