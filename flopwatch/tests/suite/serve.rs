//! Serves a timeline as a person would, and opens what it printed in a browser; and the viewer
//! alone, onto which captures are dropped.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use flopwatch_test_harness::BrowserTurn;
use serde_json::Value;

use crate::given::{nsys, shared};
use crate::program::{ONE_RANGE, assert_says, flopwatch, stderr, stdout};

/// A timeline of 7000 events, made by `flopwatch-trace-bench`.
pub(crate) const TIMELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/tests/data/synthetic.h5");

/// `flopwatch serve`, and what it printed; it ends with this.
pub(crate) struct Serving {
    child: Child,
    pub(crate) urls: Vec<String>,
}

impl Serving {
    fn of(file: &Path) -> Self {
        serve(&[file], "timeline.h5")
    }

    /// The viewer alone, with its temporary files in a folder.
    fn bare(folder: &Path) -> Self {
        Self::start(flopwatch(&["serve"]).env("TMPDIR", folder), "/v1/captures")
    }

    /// Reads what is printed until a line, not that of the viewer, ends so.
    pub(crate) fn start(command: &mut Command, last: &str) -> Self {
        let mut child = command
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let printed = child.stdout.take().expect("its output is ours");
        let mut urls = Vec::new();
        for line in BufReader::new(printed).lines().map_while(Result::ok) {
            if let Some(url) = line.trim().strip_prefix("http://") {
                urls.push(format!("http://{url}"));
            }
            if line.ends_with(last) && !line.contains("?file=") {
                break;
            }
        }
        Self { child, urls }
    }

    /// Ends it as a person would.
    fn end(mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(asked.success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What is served of captures; `last` is the end of the last line that is waited for.
pub(crate) fn serve(paths: &[&Path], last: &str) -> Serving {
    Serving::start(flopwatch(&["serve"]).args(paths), last)
}

/// Runs it to its end: a service would go on for ever.
pub(crate) fn refused(paths: &[&Path]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_flopwatch"), "serve"]);
    command.args(paths).args(["--listen", "127.0.0.1:0"]).output().unwrap()
}

/// Node, which drives a browser.
fn node() -> Option<OsString> {
    let node = std::env::var_os("FLOPWATCH_NODE");
    if node.is_none() {
        println!("skipped: FLOPWATCH_NODE names no Node that would drive a browser");
    }
    node
}

/// What a script of the viewer's says of the page at an address.
fn browse<A: AsRef<OsStr>>(node: &OsStr, script: &str, url: &str, arguments: impl IntoIterator<Item = A>) -> String {
    let script = format!("{}/../web/tests/{script}", env!("CARGO_MANIFEST_DIR"));
    let _turn = BrowserTurn::take();
    let mut command = Command::new(node);
    let output = command.args([script.as_str(), url]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}\n{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// The status and the body of what is at an address.
pub(crate) fn get(url: &str) -> (u16, Vec<u8>) {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
    (status, answer[head + 4..].to_vec())
}

#[test]
fn every_form_of_a_timeline_is_made_by_a_child_and_holds_the_same_events() {
    let serving = Serving::of(Path::new(TIMELINE));
    let base = serving.urls.last().unwrap().strip_suffix("timeline.h5").unwrap();
    let capture = base.strip_suffix("artifacts/").unwrap();
    let form = |name: &str| {
        let (status, body) = get(&format!("{base}{name}"));
        assert_eq!(status, 200, "{name}: {}", String::from_utf8_lossy(&body));
        body
    };
    let lines = |body: Vec<u8>| String::from_utf8(body).unwrap().lines().count();
    let events = lines(form("timeline.csv")) - 1;
    assert_eq!(events, 7000);
    let samples = lines(form("samples.csv")) - 1;

    let mut trace = String::new();
    flate2::read::GzDecoder::new(form("timeline.json.gz").as_slice())
        .read_to_string(&mut trace)
        .unwrap();
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let of_phase = |phase: &str| {
        let entries = trace["traceEvents"].as_array().unwrap().iter();
        entries.filter(|entry| entry["ph"] == phase).count()
    };
    assert_eq!((of_phase("X"), of_phase("C")), (events, samples));

    let (_, earliest) = get(&format!("{capture}analyses/earliest-events"));
    let document: Value = serde_json::from_slice(&earliest).unwrap();
    assert_eq!(document["events"].as_array().unwrap().len(), events);
    assert_eq!(document["total_events"], events);

    for name in ["timeline.parquet", "samples.parquet"] {
        let body = form(name);
        assert!(body.starts_with(b"PAR1") && body.ends_with(b"PAR1"), "{name}");
    }
    // A trace is packets: field 1, length-delimited.
    assert_eq!(form("timeline.pftrace").first(), Some(&0x0a));
    let (status, body) = get(&format!("{base}timeline.xml"));
    assert_eq!(status, 404, "{}", String::from_utf8_lossy(&body));
}

#[test]
fn counters_of_kernels_are_made_by_a_child_of_what_nsight_compute_printed() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("details.csv");
    let head =
        "\"ID\",\"Process ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"";
    let line = "\"0\",\"7\",\"axpy(int)\",\"GPU Speed Of Light Throughput\",\"Duration\",\"us\",\"6.50\"";
    std::fs::write(&page, format!("{head}\n{line}\n")).unwrap();
    let counters = |serving: &Serving| {
        let timeline = serving.urls.last().unwrap();
        let capture = timeline.strip_suffix("artifacts/timeline.h5").unwrap();
        let (status, body) = get(&format!("{capture}analyses/kernel-counters"));
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let (status, found) = counters(&Serving::of(&page));
    assert_eq!(status, 200, "{found}");
    assert_eq!(found["launches"][0]["figures"]["duration_ns"], 6500.0, "{found}");
    let (status, problem) = counters(&Serving::of(Path::new(TIMELINE)));
    assert_eq!((status, &problem["reason"]), (404, &serde_json::json!("NotCaptured")));
}

/// What `nsys export` makes of a report.
fn exported(nsys: &Path, report: &Path, folder: &Path) -> PathBuf {
    let (copy, export) = (folder.join("report.qdrep"), folder.join("report.h5"));
    std::fs::copy(report, &copy).unwrap();
    let mut command = Command::new(nsys);
    command
        .args(["export", "--type", "hdf", "--output"])
        .args([&export, &copy]);
    assert!(command.output().unwrap().status.success());
    export
}

/// What is at an address, once it is made.
#[expect(clippy::disallowed_methods, reason = "there is no runtime")]
pub(crate) fn made(url: &str) -> (u16, Vec<u8>) {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        match get(url) {
            (503, _) if Instant::now() < until => std::thread::sleep(Duration::from_millis(50)),
            answer => return answer,
        }
    }
}

/// The addresses of a folder's timeline and of the events in it.
fn timeline_of(serving: &Serving, name: &str) -> (String, String) {
    let base = serving.urls.last().unwrap().strip_suffix(name).unwrap();
    (format!("{base}timeline.h5"), format!("{base}timeline.csv"))
}

#[test]
fn the_timeline_of_metrics_that_were_kept_alone_is_made_by_a_child() {
    let folder = tempfile::tempdir().unwrap();
    let samples = r#"{"window_start_utc_ns": 1000, "window_ns": 500, "missed": 0, "series": [{"source": "nvml", "device": "gpu0",
        "metric": "power_watts", "unit": "W", "t_utc_ns": [1000, 1250], "value": [100.0, 250.5]}]}"#;
    std::fs::write(folder.path().join("samples.json"), samples).unwrap();
    let serving = serve(&[folder.path()], "samples.json");
    let (timeline, _) = timeline_of(&serving, "samples.json");
    let (status, body) = made(&timeline);
    assert!(
        status == 200 && body.starts_with(b"\x89HDF"),
        "{}",
        String::from_utf8_lossy(&body)
    );
    let (status, body) = made(&timeline.replace("timeline.h5", "samples.csv"));
    let text = String::from_utf8(body).unwrap();
    assert!(
        status == 200 && text.contains("power_watts") && text.contains("250.5"),
        "{text}"
    );
    // One that no child can read says so.
    std::fs::write(folder.path().join("samples.json"), "{").unwrap();
    let serving = serve(&[folder.path()], "samples.json");
    let (status, body) = made(&timeline_of(&serving, "samples.json").0);
    let problem: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (status, &problem["reason"]),
        (500, &serde_json::json!("ConversionFailed"))
    );
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("the samples cannot be read"), "{detail}");
}

#[test]
fn the_timeline_of_a_report_that_was_kept_alone_is_made_once_for_all_who_ask() {
    let Some(report) = shared("corpus/gpubootcamp-jacobi/jacobi_report.qdrep") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(report, folder.path().join("capture.nsys-rep")).unwrap();
    let serving = serve(&[folder.path()], "capture.nsys-rep");
    let (timeline, events) = timeline_of(&serving, "capture.nsys-rep");
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asking = [(); 4].map(|()| scope.spawn(|| made(&timeline)));
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (status, body) in &answers {
        assert!(
            *status == 200 && body.starts_with(b"\x89HDF"),
            "{}",
            String::from_utf8_lossy(body)
        );
        assert_eq!(body, &answers[0].1, "all get the same file");
    }
    let (status, body) = made(&events);
    let text = String::from_utf8(body).unwrap();
    assert_eq!(status, 200, "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("cuda_kernel")).count(), 1001);
}

#[test]
fn captures_that_are_dropped_onto_the_viewer_are_converted_and_shown() {
    let Some(node) = node() else { return };
    let (own, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |name: &str, text: &str| {
        let path = own.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let mut files = vec![
        (write("trace.json", ONE_RANGE), "\"annotation\":1"),
        (write("notes.txt", "no capture"), "no format that is read"),
        (
            write("cut.sqlite", "SQLite format 3\0and no more"),
            "\"outcome\":\"refused\"",
        ),
    ];
    for (name, words) in [
        ("kineto-samples/resnet50_w0_span1.pt.trace.json.gz", "\"cuda_kernel\":"),
        ("tracelens-jax/jax_conv_minimal_08.xplane.pb", "\"outcome\":\"shown\""),
        ("llm-perf-opt-ncu/kernel_0001.details.csv", "\"outcome\":\"shown\""),
        ("nsys-ai/mfu_2gpu_before.sqlite", "\"cuda_kernel\":4010"),
        ("gpubootcamp-jacobi/jacobi_report.qdrep", "\"cuda_kernel\":1001"),
        // Newer than any nsys that is installed.
        ("torchcodec/torchcodec_report1.nsys-rep", "\"cuda_kernel\":"),
    ] {
        files.extend(shared(&format!("corpus/{name}")).map(|path| (path, words)));
    }
    if let Some(tools) = nsys()
        && let Some(report) = shared("corpus/gpubootcamp-jacobi/jacobi_report.qdrep")
    {
        files.push((exported(&tools.nsys, &report, own.path()), "\"cuda_kernel\":1001"));
    }
    // Something that is shown is the last one.
    files.push((write("last.json", ONE_RANGE), "\"annotation\":1"));
    let serving = Serving::bare(temporary.path());
    let message = browse(
        &node,
        "dropped.mjs",
        &serving.urls[0],
        files.iter().map(|(path, _)| path),
    );
    let told: Vec<&str> = message.lines().collect();
    assert_eq!(
        (told.len(), told.last().copied()),
        (files.len() + 1, Some("reloaded")),
        "{message}"
    );
    for ((path, words), line) in files.iter().zip(told) {
        assert!(line.contains(words), "{}: {line}", path.display());
        assert!(line.contains("\"bytes\":true"), "{}: {line}", path.display());
        assert!(
            !line.contains(temporary.path().to_str().unwrap()),
            "tells where files lie: {line}"
        );
    }
    // What was dropped is gone at once, the rest with the program.
    let mut entries = std::fs::read_dir(temporary.path()).unwrap();
    let inside = entries.next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_dir(inside.join("dropped")).unwrap().count(), 0);
    serving.end();
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn the_next_service_removes_what_a_killed_one_left_and_nothing_of_one_that_runs() {
    let temporary = tempfile::tempdir().unwrap();
    let folders = || -> BTreeSet<OsString> {
        let entries = temporary.path().read_dir().unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        let of_services = |name: &OsString| name.as_encoded_bytes().starts_with(b".flopwatch-serve-");
        names.filter(of_services).collect()
    };
    let killed = Serving::bare(temporary.path());
    let left = folders();
    drop(killed);
    assert_eq!(folders(), left, "nobody removes it with a program that is killed");
    let running = Serving::bare(temporary.path());
    let used = folders();
    assert_eq!((left.len(), used.len()), (1, 1));
    assert!(left.is_disjoint(&used));
    let next = Serving::bare(temporary.path());
    assert!(folders().is_superset(&used));
    running.end();
    next.end();
    assert_eq!(folders(), BTreeSet::new());
}

#[test]
fn a_file_of_a_served_folder_that_leads_elsewhere_is_refused() {
    let (folder, secret) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    std::fs::write(secret.path(), "secret").unwrap();
    let timeline = folder.path().join("timeline.h5");
    let refused = |words: &str| {
        let output = refused(&[folder.path()]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert_says(&output, words);
        std::fs::remove_file(&timeline).unwrap();
    };
    std::os::unix::fs::symlink(secret.path(), &timeline).unwrap();
    refused("timeline.h5: is a symbolic link");
    std::fs::hard_link(secret.path(), &timeline).unwrap();
    refused("timeline.h5: has 2 names");
    nix::unistd::mkfifo(&timeline, nix::sys::stat::Mode::S_IRUSR).unwrap();
    refused("timeline.h5: is a pipe");
}

#[test]
fn the_printed_address_shows_the_timeline_in_a_browser() {
    let Some(node) = node() else { return };
    let serving = Serving::of(Path::new(TIMELINE));
    let url = serving.urls.first().unwrap();
    assert!(
        url.contains("/?file=") && url.ends_with("timeline.h5"),
        "the program was built without the viewer: {:?}",
        serving.urls
    );
    let message = browse(&node, "served.mjs", url, [""; 0]);
    for line in [
        "synthetic – Timeline – Flopwatch, kernels: 6000, drawn: true",
        "dropped file: open",
        "demo, kernels: 6000",
    ] {
        assert!(message.contains(line), "{message}");
    }
}

#[test]
fn analyses_are_shown_with_the_figures_of_their_json_on_screen_from_a_disk_and_on_paper() {
    const NAMES: [&str; 7] = [
        "gpu-time",
        "kernel-types",
        "kernels-per-stream",
        "idle",
        "operations",
        "iterations",
        "profiler-kernels",
    ];
    let Some(node) = node() else { return };
    let serving = Serving::of(Path::new(TIMELINE));
    let message = browse(&node, "analyses.mjs", &serving.urls[0], NAMES);
    for name in NAMES {
        let is_told = |line: &str| line.starts_with(&format!("{name}: ")) && line.ends_with(" cells");
        assert!(message.lines().any(is_told), "{message}");
    }
    assert!(!message.contains("no row has a place"), "{message}");
}
