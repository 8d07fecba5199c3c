//! Our tables of `nsys stats` against those of the real one, cell by cell: every report of the
//! corpus that an installed nsys opens, and the exports as SQLite, which Nsight Systems 2023.4.4
//! reads as they are.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flopwatch_analysis::{Input, Request};
use flopwatch_model::spreadsheet::inert;
use flopwatch_model::{Category, Timeline};
use serde_json::json;

use crate::captures::{analyze, timeline, timeline_at};
use crate::nsys;

/// Exports of the corpus that Nsight Systems made as SQLite.
const EXPORTS: [&str; 4] = [
    "nsys-ai/mfu_2gpu_before.sqlite",
    "nsys-ai/mock.sqlite",
    "nsightful/power_iteration__baseline.sqlite",
    "pipit-nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
];

/// Reports that an nsys newer than 2022.4 made, which that one does not open.
const NEWER_THAN_2022: [&str; 1] = ["trt-controlnet/cudagraph.nsys-rep"];

/// A report: how nsys is asked for it, its name of 2022, and the heads that its rows are sorted by.
struct Report {
    name: &'static str,
    older: Option<&'static str>,
    sorted_by: &'static [&'static str],
}

impl Report {
    /// Our table of it.
    fn table(&self) -> &'static str {
        self.name.split(':').next().unwrap()
    }

    /// What our table is asked for where nsys is asked for another form of the report.
    fn parameter(&self) -> Option<(&'static str, &'static str)> {
        match self.name.split_once(':')?.1 {
            "nvtx-name" => Some(("nvtx_name", "true")),
            name => Some(("name", name)),
        }
    }
}

const fn report(name: &'static str, older: Option<&'static str>, sorted_by: &'static [&'static str]) -> Report {
    Report { name, older, sorted_by }
}

const TOTAL: &[&str] = &["Total Time (ns)"];
const BY_START: &[&str] = &["Start (ns)"];
const BY_RANGE: &[&str] = &["NVTX Range", "PID", "TID", "Total Time (ns)"];

const REPORTS: [Report; 26] = [
    report("cuda_gpu_kern_sum", None, TOTAL),
    report("cuda_gpu_kern_sum:base", None, TOTAL),
    report("cuda_gpu_kern_sum:mangled", None, TOTAL),
    report("cuda_gpu_kern_sum:nvtx-name", None, TOTAL),
    report("cuda_gpu_kern_gb_sum", Some("gpukernsum"), TOTAL),
    report("cuda_gpu_kern_gb_sum:base", None, TOTAL),
    report("cuda_gpu_mem_time_sum", Some("gpumemtimesum"), TOTAL),
    report("cuda_gpu_mem_size_sum", Some("gpumemsizesum"), &["Total (MB)"]),
    report("cuda_api_sum", Some("cudaapisum"), TOTAL),
    report("cuda_api_gpu_sum", Some("apigpusum"), TOTAL),
    report("cuda_gpu_sum", Some("gpusum"), TOTAL),
    report("cuda_gpu_sum:base", None, TOTAL),
    report("cuda_kern_exec_sum", Some("kernexecsum"), &["TAvg (ns)"]),
    report("cuda_kern_exec_sum:nvtx-name", None, &["TAvg (ns)"]),
    report("cuda_kern_exec_trace", Some("kernexectrace"), &["API Start (ns)"]),
    report("nvtx_sum", Some("nvtxsum"), TOTAL),
    report("nvtx_pushpop_sum", Some("nvtxppsum"), TOTAL),
    report(
        "nvtx_pushpop_trace",
        Some("nvtxpptrace"),
        &["Start (ns)", "Duration (ns)"],
    ),
    report("nvtx_kern_sum", Some("nvtxkernsum"), BY_RANGE),
    report("nvtx_kern_sum:base", None, BY_RANGE),
    report("nvtx_gpu_proj_sum", None, &["Total Proj Time (ns)"]),
    // nsys sorts by a column that it does not have, so that its rows are in the order of ids: see
    // the document.
    report("nvtx_gpu_proj_trace", None, &[]),
    report("osrt_sum", Some("osrtsum"), TOTAL),
    report("cuda_api_trace", Some("cudaapitrace"), BY_START),
    // Last: nsys skips all reports behind one that found its columns missing.
    report("cuda_gpu_trace", Some("gputrace"), BY_START),
    report("cuda_gpu_trace:base", None, BY_START),
];

/// Rows of a CSV by their heads.
#[derive(Clone, Default)]
struct Rows {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    fn read(text: &str) -> Self {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let heads = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let rows = reader
            .records()
            .map(|record| record.unwrap().iter().map(str::to_owned).collect());
        let rows = rows.collect();
        Self { heads, rows }
    }

    fn column(&self, head: &str) -> Option<usize> {
        self.heads.iter().position(|known| known == head)
    }

    fn cell<'a>(&self, row: &'a [String], head: &str) -> &'a str {
        self.column(head).and_then(|at| row.get(at)).map_or("", String::as_str)
    }

    fn replace(&mut self, head: &str, new: impl Fn(&Self, &[String]) -> String) {
        let Some(at) = self.column(head) else { return };
        let cells: Vec<String> = self.rows.iter().map(|row| new(self, row)).collect();
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            row[at] = cell;
        }
    }

    /// The cells that `heads` name, a text per row.
    fn keys(&self, heads: &[&str]) -> Vec<Vec<String>> {
        let keys = self
            .rows
            .iter()
            .map(|row| heads.iter().map(|head| self.cell(row, head).to_owned()).collect());
        keys.collect()
    }
}

/// Runs `nsys stats` once per list of reports; the CSV of each that it did not skip.
fn stats(nsys: &Path, source: &Path, reports: &[&str]) -> BTreeMap<String, Rows> {
    let folder = source.parent().unwrap();
    let base = folder.join("stats");
    let mut command = Command::new(nsys);
    command.args(["stats", "--format", "csv", "--force-overwrite", "true"]);
    if source.extension().is_none_or(|ending| ending != "sqlite") {
        command.arg("--force-export=true");
    }
    for report in reports {
        command.args(["--report", report]);
    }
    let output = command.arg("--output").arg(&base).arg(source);
    output.stdin(Stdio::null()).output().unwrap();
    let file = |report: &str| folder.join(format!("stats_{}.csv", report.replace(':', "_")));
    let found = reports.iter().filter_map(|report| {
        let text = std::fs::read_to_string(file(report))
            .ok()
            .filter(|text| !text.is_empty())?;
        Some(((*report).to_owned(), Rows::read(&text)))
    });
    found.collect()
}

/// Our table, without the quotes that keep spreadsheets from taking a text for a formula; nsys's
/// have none.
fn ours(report: &Report, timeline: &Timeline) -> Rows {
    let parameters = [("format", "csv"), ("limit", "10000000")];
    let parameters = parameters.into_iter().chain(report.parameter());
    let request = Request::from_pairs(report.table(), parameters).unwrap();
    let mut out = Vec::new();
    request.run(&[Input::whole(timeline)], &mut out).unwrap();
    let mut rows = Rows::read(&String::from_utf8(out).unwrap());
    for cell in rows.rows.iter_mut().flatten() {
        let text = cell.strip_prefix('\'').filter(|text| *cell == inert(text));
        if let Some(text) = text.map(str::to_owned) {
            *cell = text;
        }
    }
    rows
}

/// What we say otherwise than nsys, made the same. The document says of each who is right.
fn reconcile(report: &Report, timeline: &Timeline, theirs: &mut Rows, ours: &mut Rows) {
    // nsys takes off versions of four digits alone: it has `cudaGraphLaunch_v10000`.
    for head in ["Name", "Operation", "API Name"] {
        theirs.replace(head, |rows, row| {
            let name = rows.cell(row, head);
            let bare = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
            let function = bare.strip_suffix("_v").filter(|_| name.len() - bare.len() > 4);
            function.unwrap_or(name).to_owned()
        });
    }
    // Not kept by us.
    theirs.replace("T-Pri", |_, _| String::new());
    theirs.replace("GreenCtx", |_, _| String::new());
    // The deviation of no values is 0.0 for nsys and nothing for us.
    theirs.replace("QStdDev (ns)", |rows, row| match rows.cell(row, "QCount") {
        "0" => String::new(),
        _ => rows.cell(row, "QStdDev (ns)").to_owned(),
    });
    // nsys divides integers: bytes * (10^9 / ns).
    if report.table() == "cuda_gpu_trace" {
        let parameters = json!({"limit": 10_000_000});
        let exact = analyze("cuda_gpu_trace", &parameters, &[timeline]);
        let integers = exact["rows"].as_array().unwrap().iter().map(|row| {
            let (bytes, ns) = (row["bytes"].as_u64(), row["duration_ns"].as_u64().unwrap());
            let per_second = bytes
                .zip(1_000_000_000_u64.checked_div(ns))
                .map(|(bytes, times)| bytes * times);
            per_second.map_or_else(String::new, |value| format!("{:.3}", float(value) / 1e6))
        });
        let at = ours.column("Throughput (MB/s)").unwrap();
        for (row, integer) in ours.rows.iter_mut().zip(integers) {
            // Ours is the quotient, which nsys's is never above.
            let quotient: f64 = row[at].parse().unwrap_or(0.0);
            let truncated: f64 = integer.parse().unwrap_or(0.0);
            assert!(
                quotient > truncated - 0.001,
                "{}: {quotient} is below {truncated}",
                row.join(",")
            );
            row[at] = integer;
        }
    }
    // Numbers of ranges are arbitrary: a range is told by its times instead.
    for rows in [&mut *theirs, &mut *ours] {
        number_ranges_by_their_times(rows);
    }
    // What was launched outside of ranges: nsys names one thread of several, and counts correlation
    // ids of all processes together.
    if report.table() == "nvtx_gpu_proj_trace" {
        let alone = ours
            .rows
            .iter()
            .any(|row| row[0].is_empty() && !ours.cell(row, "PID").is_empty());
        for head in ["PID", "TID", "NumGPUOps"] {
            for rows in [&mut *theirs, &mut *ours] {
                rows.replace(head, |rows, row| {
                    let blank = row[0].is_empty() && !alone;
                    String::from(if blank { "" } else { rows.cell(row, head) })
                });
            }
        }
    }
}

fn number_ranges_by_their_times(rows: &mut Rows) {
    if rows.column("RangeStack").is_none() {
        return;
    }
    let known = |head: &'static str| rows.column(head).map(|_| head);
    let start = known("Orig Start (ns)").unwrap_or("Start (ns)");
    let length = known("Orig Duration (ns)").unwrap_or("Duration (ns)");
    let ids = rows.rows.iter().map(|row| {
        let told = ["TID", start, length].map(|head| rows.cell(row, head).to_owned());
        (rows.cell(row, "RangeId").to_owned(), told.join("+"))
    });
    let ids: HashMap<String, String> = ids.collect();
    let named = |id: &str| ids.get(id).cloned().unwrap_or_default();
    for head in ["RangeId", "ParentId"] {
        rows.replace(head, |rows, row| named(rows.cell(row, head)));
    }
    rows.replace("RangeStack", |rows, row| {
        let stack = rows.cell(row, "RangeStack").split(':').map(named);
        stack.collect::<Vec<String>>().join(":")
    });
}

fn float(value: u64) -> f64 {
    value.to_string().parse().unwrap()
}

/// What is compared: how many tables and cells were equal, and what was not.
#[derive(Default)]
struct Comparison {
    tables: usize,
    cells: usize,
    differences: Vec<String>,
}

impl Comparison {
    /// Compares cell by cell. Rows of equal sort keys are in no order that nsys promises.
    fn add(&mut self, what: &str, sorted_by: &[&str], theirs: &Rows, ours: &Rows) {
        let known = self.differences.len();
        let mut differs = |found: bool, told: &dyn Fn() -> String| {
            if found {
                self.differences.push(format!("{what}: {}", told()));
            }
        };
        let (left, right) = (&theirs.heads, &ours.heads);
        differs(left != right, &|| format!("heads {left:?} are not {right:?}"));
        let (left, right) = (theirs.rows.len(), ours.rows.len());
        differs(left != right, &|| format!("nsys has {left} rows and we have {right}"));
        let (left, right) = (theirs.keys(sorted_by), ours.keys(sorted_by));
        let unsorted = left.iter().zip(&right).find(|(left, right)| left != right);
        differs(unsorted.is_some(), &|| {
            format!("the order differs from {unsorted:?} on")
        });
        for (left, right) in grouped(theirs, &left).iter().zip(&grouped(ours, &right)) {
            differs(left != right, &|| format!("nsys's row {left:?} is not {right:?}"));
        }
        if self.differences.len() == known {
            self.tables += 1;
            self.cells += theirs.rows.len() * theirs.heads.len();
        }
        // The first ones tell.
        self.differences.truncate(known + 3);
    }

    fn end(&self) {
        println!("{} tables, {} cells equal", self.tables, self.cells);
        assert!(self.differences.is_empty(), "{}", self.differences.join("\n"));
    }
}

/// The rows, those of equal keys sorted.
fn grouped(rows: &Rows, keys: &[Vec<String>]) -> Vec<(usize, Vec<String>)> {
    let mut group = 0;
    let mut keyed = Vec::new();
    for (at, row) in rows.rows.iter().enumerate() {
        group += usize::from(at > 0 && keys[at] != keys[at - 1]);
        keyed.push((group, row.clone()));
    }
    keyed.sort();
    keyed
}

/// Where nsys has no table, because the report has no such data, ours has no rows.
fn compare_absent(what: &str, report: &Report, timeline: &Timeline) {
    let ranges = timeline.capture.events.get(&Category::NvtxRange);
    // nsys refuses names with ranges where there are none; the kernels are there all the same.
    let refused = report.name.ends_with(":nvtx-name") && ranges.is_none();
    let rows = ours(report, timeline).rows.len();
    assert!(
        refused || rows == 0,
        "{what}: nsys has no such data, we have {rows} rows"
    );
}

/// The reason why nsys of 2023 skips a report that we have, in exports that lack what it needs
/// beside the data.
fn lacks_side_tables(source: &str, report: &Report) -> bool {
    let tables = [
        "cuda_gpu_trace",
        "cuda_gpu_mem_time_sum",
        "cuda_gpu_mem_size_sum",
        "cuda_gpu_sum",
        "cuda_api_gpu_sum",
    ];
    match source {
        // No TARGET_INFO_GPU.
        "nsys-ai/mfu_2gpu_before.sqlite" => report.table() == "cuda_gpu_trace",
        // Of an nsys that had no tables of enumerations and no green contexts.
        "pipit-nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite" => tables.contains(&report.table()),
        _ => false,
    }
}

/// Whether nsys counts calls twice: in an export of 2022 38 of 95 rows of calls are notes of class
/// 67 beside a call, which the reports of 2023 take for calls, so that five kernels are ten.
fn counts_calls_twice(source: &str, report: &Report) -> bool {
    let of_calls = [
        "cuda_api_sum",
        "cuda_api_trace",
        "cuda_kern_exec_sum",
        "cuda_kern_exec_trace",
        "nvtx_kern_sum",
    ];
    source.starts_with("pipit-nsys/") && of_calls.contains(&report.table())
}

/// The report or export in a folder of its own, as nsys writes beside what it reads.
fn copied(name: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let source = nsys::corpus(name)?;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(source.file_name().unwrap());
    std::fs::copy(&source, &copy).unwrap();
    Some((folder, copy))
}

fn installed(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    if found.is_none() {
        println!("skipped: set {variable} to the path of an nsys");
    }
    found
}

#[test]
fn every_cell_of_every_table_is_that_of_nsys_stats_2023() {
    let Some(nsys) = installed("FLOPWATCH_NSYS_NEWER") else {
        return;
    };
    let mut comparison = Comparison::default();
    for source in nsys::REPORTS.into_iter().chain(EXPORTS) {
        let Some((_folder, copy)) = copied(source) else {
            continue;
        };
        let names = REPORTS.map(|report| report.name);
        let theirs = stats(&nsys, &copy, &names);
        let timeline = timeline_at(&copy.with_extension("sqlite"));
        for report in &REPORTS {
            let what = format!("{source} {}", report.name);
            let Some(theirs) = theirs.get(report.name) else {
                if !lacks_side_tables(source, report) {
                    compare_absent(&what, report, &timeline);
                }
                continue;
            };
            if counts_calls_twice(source, report) {
                continue;
            }
            let (mut theirs, mut ours) = (theirs.clone(), ours(report, &timeline));
            reconcile(report, &timeline, &mut theirs, &mut ours);
            comparison.add(&what, report.sorted_by, &theirs, &ours);
        }
    }
    comparison.end();
}

#[test]
fn every_column_that_nsys_stats_2022_has_too_is_equal() {
    let Some(nsys) = installed("FLOPWATCH_NSYS") else {
        return;
    };
    let mut comparison = Comparison::default();
    for source in nsys::REPORTS {
        let Some((_folder, copy)) = copied(source) else {
            continue;
        };
        let names: Vec<&str> = REPORTS.iter().filter_map(|report| report.older).collect();
        let found = stats(&nsys, &copy, &names);
        if NEWER_THAN_2022.contains(&source) {
            assert!(found.is_empty(), "nsys of 2022 opens {source}: compare it too");
            continue;
        }
        assert!(!found.is_empty(), "nsys of 2022 does not open {source}");
        let timeline = timeline_at(&copy.with_extension("sqlite"));
        for report in &REPORTS {
            let Some(theirs) = report.older.and_then(|older| found.get(older)) else {
                continue;
            };
            let what = format!("{source} {} of 2022", report.name);
            let (mut theirs, mut ours) = (as_of_2023(theirs.clone()), ours(report, &timeline));
            reconcile(report, &timeline, &mut theirs, &mut ours);
            let heads: Vec<String> = theirs
                .heads
                .iter()
                .filter(|head| !by_nesting(report, head))
                .cloned()
                .collect();
            let (theirs, ours) = (only(&heads, &theirs), only(&heads, &ours));
            comparison.add(&what, report.sorted_by, &theirs, &ours);
        }
    }
    comparison.end();
}

/// Whether a column depends on which range is inside which. nsys of 2022 looks for the ranges
/// around another in an index of 32-bit numbers and puts 100 of the 4,006 ranges of `mpi_report2`
/// under the parent of their parent.
fn by_nesting(report: &Report, head: &str) -> bool {
    let heads = [
        "DurChild (ns)",
        "DurNonChild (ns)",
        "Lvl",
        "NumChild",
        "ParentId",
        "RangeStack",
        "NameTree",
    ];
    report.table() == "nvtx_pushpop_trace" && heads.contains(&head)
}

/// The columns of `rows` that `heads` names.
fn only(heads: &[String], rows: &Rows) -> Rows {
    let columns: Vec<usize> = heads.iter().filter_map(|head| rows.column(head)).collect();
    let row = |row: &Vec<String>| columns.iter().map(|at| row[*at].clone()).collect();
    Rows {
        heads: columns.iter().map(|at| rows.heads[*at].clone()).collect(),
        rows: rows.rows.iter().map(row).collect(),
    }
}

/// nsys of 2022 writes `None`, and abbreviates operations and a unit.
fn as_of_2023(mut rows: Rows) -> Rows {
    let short = [
        ("HtoD", "Host-to-Device"),
        ("DtoH", "Device-to-Host"),
        ("DtoD", "Device-to-Device"),
        ("PtoP", "Peer-to-Peer"),
    ];
    for cell in rows.rows.iter_mut().flatten() {
        if cell == "None" {
            cell.clear();
        }
        if cell.starts_with("[CUDA memcpy") {
            let long = |cell: String, (short, long): &(&str, &str)| cell.replace(short, long);
            *cell = short.iter().fold(std::mem::take(cell), long);
        }
    }
    for head in &mut rows.heads {
        *head = head.replace("MBps", "MB/s");
    }
    rows
}

#[test]
fn the_heads_are_those_of_a_published_table() {
    let Some(published) = nsys::corpus("llm-perf-opt-nsysstats/decode.cuda_gpu_kern_sum.csv") else {
        return;
    };
    let published = Rows::read(&std::fs::read_to_string(published).unwrap());
    let ours = ours(&REPORTS[0], &Timeline::default());
    assert_eq!(ours.heads, published.heads);
}

#[test]
fn a_report_without_gpu_work_says_that_it_was_not_captured() {
    let Some(timeline) = timeline("trt-controlnet/cudagraph.nsys-rep") else {
        return;
    };
    for table in [
        "cuda_gpu_kern_sum",
        "cuda_gpu_trace",
        "cuda_kern_exec_trace",
        "nvtx_gpu_proj_sum",
        "nvtx_kern_sum",
    ] {
        let result = analyze(table, &json!({}), &[&timeline]);
        assert_ne!(result["not_captured"], json!([]), "{table}");
    }
}
