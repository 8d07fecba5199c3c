//! `convert` and `summary` as a person runs them, on files of our own making and, where they are
//! there, on captures of other people and with the real Nsight Systems.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use flopwatch_model::{Capture, Category, Event, Events, Row, Track};
use flopwatch_report::page::figure::count;
use flopwatch_summary::Summary;
use flopwatch_trace::transform::{TransformOptions, transform};
use flopwatch_trace::{ReadLimits, timeline_file};

use crate::given::{nsys, shared};
use crate::program::{self, ONE_RANGE, assert_says, run_in, stderr, stdout, text};

fn flopwatch(arguments: &[&str], files: &[&Path]) -> Output {
    let mut command = program::flopwatch(arguments);
    command.args(files).output().expect("the program starts")
}

/// A timeline file with two ranges.
fn timeline(folder: &Path) -> PathBuf {
    let mut events = Events::new(Category::NvtxRange);
    events.names = vec!["step".to_owned()];
    for start_ns in [0, 100] {
        let event = Event {
            start_ns,
            duration_ns: 40,
            ..Event::default()
        };
        events.push(event, &[]);
    }
    let row = Row {
        thread: Some(1),
        label: "a thread".to_owned(),
        ..Row::of(1, Track::Nvtx)
    };
    let mut capture = Capture {
        rows: vec![row],
        ..Capture::default()
    };
    capture.events.insert(Category::NvtxRange, events);
    let options = TransformOptions {
        session_id: "c0ffee00".to_owned(),
    };
    let path = folder.join("timeline.h5");
    timeline_file::write(&transform(capture, options), &path).expect("a timeline file");
    path
}

/// Everything in a folder, hidden files too.
fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn an_error_of_the_system_is_told_once_and_without_temporary_names() {
    let folder = tempfile::tempdir().unwrap();
    let capture = timeline(folder.path());
    let output = folder.path().join("missing/out.h5");
    let output = flopwatch(&["convert", "--quiet"], &[&capture, &output]);
    assert!(!output.status.success());
    let missing = folder.path().join("missing");
    let expected = format!(
        "flopwatch: {}: No such file or directory (os error 2)\n",
        missing.display()
    );
    assert_eq!(stderr(&output), expected);
}

#[test]
fn a_summary_goes_to_a_file_as_its_name_says_and_replaces_nothing_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let capture = timeline(folder.path());
    let written = |name: &str, more: &[&str]| {
        let path = folder.path().join(name);
        let to = path.to_str().unwrap();
        let output = flopwatch(&[&["summary", "--quiet", "-o", to], more].concat(), &[&capture]);
        let file = std::fs::read_to_string(&path).unwrap_or_default();
        (output.status.success(), text(&output), file)
    };
    let (_, said, csv) = written("a.csv", &[]);
    assert!(
        said.starts_with(&folder.path().join("a.csv").display().to_string()),
        "{said}"
    );
    assert!(csv.starts_with("table,status,"), "{csv}");
    assert!(written("a.txt", &[]).2.contains("NVTX ranges"));
    assert!(written("a.html", &[]).2.starts_with("<!doctype html>"));
    let json: serde_json::Value = serde_json::from_str(&written("a", &[]).2).unwrap();
    assert_eq!(json["session_id"], "c0ffee00");
    let (again, said, _) = written("a.txt", &[]);
    assert!(!again && said.contains("--force"), "{said}");
    assert!(written("a.txt", &["--force"]).0);
}

#[test]
fn a_timeline_file_is_summed_up_in_every_format_and_its_summary_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = timeline(folder.path());
    let table = flopwatch(&["summary", "--quiet"], &[&file]);
    assert!(table.status.success(), "{}", text(&table));
    assert_says(&table, "step [PushPop]");
    let csv = flopwatch(&["summary", "--quiet", "--format", "csv"], &[&file]);
    let line = "nvtx,captured,ns,PushPop,step,1,2,80,40,40,40,40,0";
    assert!(text(&csv).lines().any(|found| found == line), "{}", text(&csv));
    let json = flopwatch(&["summary", "--quiet", "--format", "json"], &[&file]);
    let summary: Summary = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((summary.session_id.as_str(), summary.total_events), ("c0ffee00", 2));
    let artifact = folder.path().join("summary.json");
    std::fs::write(&artifact, &json.stdout).unwrap();
    assert_eq!(flopwatch(&["summary", "--quiet"], &[&artifact]).stdout, table.stdout);
}

#[test]
fn traces_of_other_profilers_are_read_whatever_their_name_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.h5");
    std::fs::write(&file, ONE_RANGE).unwrap();
    let csv = flopwatch(&["summary", "--quiet", "--format", "csv"], &[&file]);
    assert_says(&csv, ",epoch,1,1,2250,2250");
}

#[test]
fn a_parent_that_did_nothing_is_told_beside_what_its_worker_did() {
    let Some(path) = shared("cases/kineto_idle_parent.tar") else {
        return;
    };
    let json = flopwatch(&["summary", "--quiet", "--format", "json"], &[&path]);
    assert!(json.status.success(), "{}", text(&json));
    let summary: Summary = serde_json::from_slice(&json.stdout).unwrap();
    let mut counts = summary.categories.iter();
    let operators = counts.find(|count| count.category == Category::CpuOp);
    assert_eq!(operators.and_then(|count| count.events), Some(10));
    let table = flopwatch(&["summary", "--quiet"], &[&path]);
    assert_says(&table, "Idle: 1 (processes without events)");
}

#[test]
fn what_is_wrong_with_a_file_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.tar");
    let mut archive = tar::Builder::new(std::fs::File::create(&path).unwrap());
    let event =
        |at: u32| format!(r#"{{"ph": "X", "cat": "cpu_op", "name": "mm", "pid": {at}, "tid": 1, "ts": 5, "dur": 1}}"#);
    for process in 1..3 {
        let trace = format!(r#"{{"schemaVersion": 1, "traceEvents": [{}]}}"#, event(process));
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(trace.len()).unwrap());
        let name = format!("trace-1_{process}.json");
        archive.append_data(&mut header, name, trace.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().sync_all().unwrap();
    let output = flopwatch(&["summary", "--quiet"], &[&path]);
    assert!(!output.status.success(), "{}", text(&output));
    let said = text(&output);
    assert_eq!(said.matches("does not say when it began").count(), 1, "{said}");
}

#[test]
fn a_conversion_gives_the_same_events_and_replaces_nothing_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let input = timeline(folder.path());
    let output = folder.path().join("copy.h5");
    let first = flopwatch(&["convert"], &[&input, &output]);
    assert!(first.status.success(), "{}", text(&first));
    assert_says(&first, "flopwatch: reading and transforming");
    let read = |path: &Path| timeline_file::read(path, &ReadLimits::default()).unwrap();
    assert!(read(&output) == read(&input));

    std::fs::write(&output, b"precious").unwrap();
    let second = flopwatch(&["convert"], &[&input, &output]);
    assert_eq!(second.status.code(), Some(1));
    assert_says(&second, "--force");
    assert_eq!(std::fs::read(&output).unwrap(), b"precious");
    let forced = flopwatch(&["convert", "--force", "--session-id", "0badcafe"], &[&input, &output]);
    assert!(forced.status.success(), "{}", text(&forced));
    assert_eq!(read(&output).session_id, "0badcafe");

    let itself = flopwatch(&["convert", "--force"], &[&input, &input]);
    assert_says(&itself, "is the source itself");
    assert_eq!(listing(folder.path()), ["copy.h5", "timeline.h5"]);
}

/// A trace of two events, and one that ends in the second of them.
fn whole_and_cut() -> [(&'static str, String, bool); 2] {
    let event = |start: u32| {
        format!(r#"{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": {start}, "dur": 1}}"#)
    };
    let whole = format!(
        r#"{{"schemaVersion": 1, "traceEvents": [{}, {}]}}"#,
        event(10),
        event(20)
    );
    let cut = whole[..whole.len() - 20].to_owned();
    [("whole", whole, false), ("cut", cut, true)]
}

#[test]
fn of_a_trace_that_was_cut_the_rest_is_read_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let words = "ends before its end (events read: 1): ";
    for (name, content, is_cut) in whole_and_cut() {
        let trace = folder.path().join(format!("{name}.json"));
        std::fs::write(&trace, content).unwrap();
        let timeline = folder.path().join(format!("{name}.h5"));
        let converted = flopwatch(&["convert", "--quiet"], &[&trace, &timeline]);
        let events = if is_cut { "1 event" } else { "2 events" };
        assert_eq!(stdout(&converted), format!("{}: {events}\n", timeline.display()));
        for output in [converted, flopwatch(&["summary", "--quiet"], &[&timeline])] {
            let errors = stderr(&output);
            assert!(output.status.success(), "{errors}");
            assert_eq!(errors.contains(words), is_cut, "{errors}");
        }
    }
}

#[test]
fn every_command_that_reads_a_capture_says_on_standard_error_which_one_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let traces = whole_and_cut().map(|(name, content, _)| {
        let trace = folder.path().join(format!("{name}.json"));
        std::fs::write(&trace, content).unwrap();
        trace
    });
    let [whole, cut] = traces.each_ref().map(PathBuf::as_path);
    let csv = folder.path().join("events.csv");
    let csv = csv.to_str().unwrap();
    let export = ["export", "--quiet", "--force", "--to", "csv", "--output", csv];
    let cases: [(&[&str], &[&Path]); 6] = [
        (&["summary", "--quiet"], &[cut]),
        (&["analyze", "--quiet", "idle"], &[cut]),
        (&["analyze", "--quiet", "idle", "-o", csv, "--force"], &[cut]),
        (&export, &[cut]),
        (&["diagnose", "--quiet"], &[cut]),
        (&["compare", "--quiet", "--fail-on", "never"], &[whole, cut]),
    ];
    for (arguments, files) in cases {
        let output = flopwatch(arguments, files);
        let errors = stderr(&output);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        let told = errors.lines().filter(|line| line.contains("ends before its end"));
        let told: Vec<&str> = told.collect();
        let expected = format!("flopwatch: {}: ends before its end (events read: 1): ", cut.display());
        assert!(
            matches!(told.as_slice(), [line] if line.starts_with(&expected)),
            "{arguments:?}: {errors}"
        );
    }
    let output = flopwatch(&["analyze", "--quiet", "idle"], &[whole]);
    assert!(!text(&output).contains("ends before its end"), "{}", text(&output));
}

#[test]
fn what_cannot_be_read_is_named_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(timeline(folder.path())).unwrap();
    let cases: [(&str, &[u8], &str); 4] = [
        ("cut.h5", &whole[..whole.len() / 2], "cut.h5"),
        ("text.sqlite", b"hello", "no format that is read"),
        ("short.sqlite", b"SQLite format 3\0", "short.sqlite"),
        ("empty", b"", "no format that is read"),
    ];
    for (name, bytes, expected) in cases {
        let input = folder.path().join(name);
        std::fs::write(&input, bytes).unwrap();
        let before = listing(folder.path());
        let output = flopwatch(&["convert", "--quiet"], &[&input, &folder.path().join("out.h5")]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output));
        let message = text(&output);
        assert!(
            message.contains(expected) && !message.contains("panicked"),
            "{name}: {message}"
        );
        assert_eq!(message.trim().lines().count(), 1, "{name}: {message}");
        assert_eq!(listing(folder.path()), before, "{name}");
    }
    let missing = folder.path().join("missing");
    for arguments in [
        flopwatch(&["summary"], &[&missing]),
        flopwatch(&["convert"], &[&missing, &folder.path().join("out.h5")]),
    ] {
        let said = text(&arguments);
        assert!(said.contains("missing: No such file"), "{said}");
        assert_eq!(said.matches("No such file").count(), 1, "{said}");
    }
    let named = flopwatch(&["convert"], &[&missing, &folder.path().join("out.json")]);
    assert_says(&named, "ends in .h5");
}

#[test]
fn a_database_of_somebody_else_becomes_a_timeline() {
    let Some(input) = shared("corpus/nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("mfu.h5");
    let converted = flopwatch(&["convert", "--quiet"], &[&input, &output]);
    assert!(converted.status.success(), "{}", text(&converted));
    let read = timeline_file::read(&output, &ReadLimits::default()).unwrap();
    assert_eq!(read.capture.events[&Category::CudaKernel].len(), 4010);
    let direct = flopwatch(&["summary", "--quiet", "--format", "csv"], &[&input]);
    let indirect = flopwatch(&["summary", "--quiet", "--format", "csv"], &[&output]);
    assert!(
        direct.status.success() && direct.stdout == indirect.stdout,
        "{}",
        text(&direct)
    );
}

#[test]
fn a_report_is_read_without_an_nsys_and_through_one_where_that_is_asked_for() {
    let Some(input) = shared("corpus/gpubootcamp-jacobi/jacobi_report.qdrep") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let convert = |name: &str, more: &[&str]| {
        let output = folder.path().join(name);
        let converted = flopwatch(&[&["convert"][..], more].concat(), &[&input, &output]);
        assert!(converted.status.success(), "{}", text(&converted));
        let read = timeline_file::read(&output, &ReadLimits::default()).unwrap();
        assert_eq!(read.capture.events[&Category::CudaKernel].len(), 1001);
        (read.capture.events, text(&converted))
    };
    let (own, said) = convert("own.h5", &["--nsys", "/nowhere/nsys"]);
    assert!(!said.contains("exporting"), "{said}");
    if nsys().is_some() {
        let (exported, said) = convert("exported.h5", &["--nsys-export"]);
        assert!(said.contains("exporting the report"), "{said}");
        for category in [Category::CudaKernel, Category::NvtxRange] {
            let starts = |events: &BTreeMap<Category, Events>| events.get(&category).map(|of| of.start_ns.clone());
            assert_eq!(starts(&own), starts(&exported), "{category:?}");
        }
        assert_eq!(listing(folder.path()), ["exported.h5", "own.h5"]);
    }
}

#[test]
fn a_report_that_is_newer_than_any_installed_nsys_is_read() {
    let Some(input) = shared("corpus/torchcodec/torchcodec_report1.nsys-rep") else {
        return;
    };
    let json = flopwatch(&["summary", "--quiet", "--format", "json"], &[&input]);
    assert!(json.status.success(), "{}", text(&json));
    let summary: Summary = serde_json::from_slice(&json.stdout).unwrap();
    assert!(summary.total_events > 0, "{}", text(&json));
}

#[test]
fn a_report_that_is_newer_than_the_nsys_that_is_to_export_it_is_refused_with_both_versions() {
    let Some(input) = shared("corpus/torchcodec/torchcodec_report1.nsys-rep") else {
        return;
    };
    if nsys().is_none() {
        return;
    }
    let refused = flopwatch(&["summary", "--nsys-export"], &[&input]);
    assert_eq!(refused.status.code(), Some(1));
    assert_says(&refused, "2024.4.1.61");
    assert_says(&refused, "newer than the installed 20");
}

#[test]
fn what_only_an_nsys_makes_says_what_to_install_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("x.nsys-rep");
    let export = "--nsys-export needs its own tools";
    for (content, made, work, wanted) in [
        (
            "NVIDIA Tegra Profiler Report 1.\n",
            "of unknown version",
            export,
            "install the version that made it, or a newer one (",
        ),
        (
            "NVIDIA Tegra Profiler Report 2024@4@1@61-244134315967v0.\n",
            "2024.4.1.61",
            export,
            "install 2024.4.1.61 or newer (",
        ),
        // Only the importer of the same version reads a raw capture.
        (
            "U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f!\n",
            "2022.4.2.1",
            "the import of a raw capture needs its own tools",
            "install 2022.4.2.1 (",
        ),
    ] {
        std::fs::write(&input, content).unwrap();
        let refused = flopwatch(&["summary", "--nsys-export", "--nsys", "/nowhere/nsys"], &[&input]);
        let message = text(&refused);
        let begin = format!("x.nsys-rep: made by Nsight Systems {made}; {work}, and ");
        assert!(message.contains(&begin) && message.contains(wanted), "{message}");
        assert_eq!(message.matches("was not found").count(), 1, "{message}");
        // The packages of a distribution may be older than the report.
        assert!(!message.contains("Debian"), "{message}");
    }
}

#[test]
fn a_folder_says_what_to_name_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("report1_pqtdir");
    std::fs::create_dir(&tables).unwrap();
    let output = folder.path().join("out.h5");
    let said = || text(&flopwatch(&["convert"], &[&tables, &output]));
    assert!(said().contains("report1_pqtdir: is a folder: name one of the files in it"));
    std::fs::write(tables.join("StringIds.parquet"), b"PAR1").unwrap();
    for named in [&tables, &tables.join("StringIds.parquet")] {
        let refused = flopwatch(&["convert"], &[named, &output]);
        assert_says(&refused, "tables in Parquet");
        assert_says(&refused, "nsys export --type sqlite");
    }
    assert_eq!(listing(folder.path()), ["report1_pqtdir"]);
}

#[test]
fn completions_and_help_know_both_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let completion = flopwatch(&["completion", shell], &[]);
        assert_says(&completion, "convert");
        assert_says(&completion, "session-id");
    }
    for command in ["convert", "summary"] {
        let help = flopwatch(&[command, "--help"], &[]);
        for part in ["--timeout", "--nsys-export", "Formats, told by content"] {
            assert_says(&help, part);
        }
    }
}

#[test]
fn an_export_is_made_beside_and_replaces_nothing_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let input = timeline(folder.path());
    for (format, file) in [
        ("chrome", "timeline.json"),
        ("perfetto", "timeline.pftrace"),
        ("csv", "timeline.csv"),
        ("parquet", "timeline.parquet"),
    ] {
        let export = ["export", "--quiet", "--to", format, "timeline.h5"];
        let run = |more: &[&str]| run_in(folder.path(), &[&export[..], more].concat());
        let made = run(&[]);
        assert!(made.status.success(), "{}", text(&made));
        assert_eq!(stdout(&made), format!("{file}: 2 events, 0 samples\n"));
        let whole = std::fs::read(folder.path().join(file)).unwrap();
        assert!(!whole.is_empty());
        assert_says(&run(&[]), "--force");
        assert!(run(&["--force", "--output", file]).status.success());
        assert_eq!(std::fs::read(folder.path().join(file)).unwrap(), whole, "{format}");
    }
    let csv = std::fs::read_to_string(folder.path().join("timeline.csv")).unwrap();
    assert_eq!(csv.lines().count(), 3);
    let itself = flopwatch(&["export", "--to", "csv", "--force", "-o"], &[&input, &input]);
    assert_says(&itself, "is the source itself");
    assert_eq!(listing(folder.path()).len(), 5);
    let unknown = flopwatch(&["export", "--to", "xml"], &[&input]);
    assert_says(&unknown, "perfetto");
}

#[test]
fn reports_of_nsight_compute_are_opened_without_it() {
    for report in [
        "mojo-gtx1660ti/mojo_profile.ncu-rep",
        "indexspaces/indexspaces_profile_a.ncu-rep",
        "nukexc-gh200/profile_fastc.ncu-rep",
    ] {
        let Some(path) = shared(&format!("corpus/{report}")) else {
            continue;
        };
        let message = flopwatch(&["summary", "--quiet", "--format", "json"], &[&path]);
        assert!(message.status.success(), "{report}: {}", text(&message));
        let summary: Summary = serde_json::from_slice(&message.stdout).unwrap();
        assert!(!summary.profiled_kernels.rows.is_empty(), "{report}");
        let folder = tempfile::tempdir().unwrap();
        let message = flopwatch(&["convert", "--quiet"], &[&path, &folder.path().join("kernels.h5")]);
        let held = summary.profiled;
        let launches = count(held.launches, "profiled launch", "profiled launches");
        let expected = format!("{launches} with {}\n", count(held.metrics, "metric", "metrics"));
        assert!(held.launches > 0, "{report}");
        assert_says(&message, &expected);
    }
}
