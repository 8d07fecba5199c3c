//! Nsight Systems' command lines: pure builders, and what its output says.
//!
//! `--kill=none` on every shutdown: its default ends the workload. Sampling is off unless asked
//! for: it needs rights that a workload's container does not have.

use std::path::{Path, PathBuf};

use nix::libc::SIGSEGV;
use serde::{Deserialize, Serialize};

use crate::reexec::{End, Output};

/// How CUDA graphs are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CudaGraphTrace {
    /// One row per graph launch.
    Graph,
    /// One row per node: every kernel, at a higher cost.
    Node,
}

/// What is fixed when a session starts, for the life of the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOptions {
    /// Name of the session: at most 127 letters, digits, `-` and `_`.
    pub session: String,
    /// Categories, for example `cuda`, `nvtx`, `osrt`.
    pub trace: Vec<String>,
    /// None: the tool's default.
    pub cuda_graph_trace: Option<CudaGraphTrace>,
    /// The NVTX range that collections with [`RangeTrigger::Nvtx`] wait for; none: such collections
    /// record nothing.
    pub nvtx_capture: Option<String>,
    /// Trace processes that were forked without an exec (Python's multiprocessing) too.
    pub trace_fork_before_exec: bool,
}

/// What of the program begins and ends a range that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeTrigger {
    /// `cudaProfilerStart` and `cudaProfilerStop`.
    CudaProfilerApi,
    /// The range of [`LaunchOptions::nvtx_capture`].
    Nvtx,
}

/// The ranges of the program that a collection records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureRange {
    /// What begins and ends a range.
    pub trigger: RangeTrigger,
    /// Ranges that are recorded, each into a raw capture of its own.
    pub count: u32,
}

/// What a collection records beside what its session traces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collection {
    /// CPU sampling of the process tree.
    pub sample: bool,
    /// Record these ranges alone; none: all of it.
    pub range: Option<CaptureRange>,
    /// Sample hardware counters of all GPUs, so often in a second.
    pub gpu_metrics_hertz: Option<u32>,
}

/// What is chosen for each collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOptions {
    /// Name of the session.
    pub session: String,
    /// Path of the raw capture without its extension.
    pub output: PathBuf,
    /// What the collection records beside what its session traces.
    pub collection: Collection,
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// `nsys launch` around `target`.
pub fn launch(nsys: &Path, options: &LaunchOptions, target: &[String]) -> Vec<String> {
    let mut line = vec![
        text(nsys),
        "launch".into(),
        format!("--session-new={}", options.session),
        format!("--trace={}", options.trace.join(",")),
        "--wait=all".into(),
    ];
    if let Some(mode) = options.cuda_graph_trace {
        line.push(format!(
            "--cuda-graph-trace={}",
            if mode == CudaGraphTrace::Node { "node" } else { "graph" }
        ));
    }
    if let Some(range) = &options.nvtx_capture {
        line.push(format!("--nvtx-capture={range}"));
        // Without it only ranges whose names the program registered begin a collection.
        line.push("--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0".into());
    }
    if options.trace_fork_before_exec {
        line.push("--trace-fork-before-exec=true".into());
    }
    line.extend_from_slice(target);
    line
}

/// Command line of `nsys start`.
pub fn start(nsys: &Path, options: &StartOptions) -> Vec<String> {
    let Collection {
        sample,
        range,
        gpu_metrics_hertz,
    } = &options.collection;
    let mut line = vec![
        text(nsys),
        "start".into(),
        format!("--session={}", options.session),
        format!("--sample={}", if *sample { "process-tree" } else { "none" }),
        "--cpuctxsw=none".into(),
        format!("--output={}", text(&options.output)),
        "--force-overwrite=true".into(),
    ];
    if let Some(CaptureRange { trigger, count }) = range {
        let trigger = match trigger {
            RangeTrigger::CudaProfilerApi => "cudaProfilerApi",
            RangeTrigger::Nvtx => "nvtx",
        };
        line.push(format!("--capture-range={trigger}"));
        line.push(match count {
            0 | 1 => "--capture-range-end=stop".into(),
            count => format!("--capture-range-end=repeat:{count}"),
        });
    }
    if let Some(hertz) = gpu_metrics_hertz {
        line.push("--gpu-metrics-device=all".into());
        line.push(format!("--gpu-metrics-frequency={hertz}"));
    }
    line
}

fn verb(nsys: &Path, verb: &str, session: &str) -> Vec<String> {
    vec![text(nsys), verb.into(), format!("--session={session}")]
}

/// `nsys stop`: ends the collection and writes the raw capture.
pub fn stop(nsys: &Path, session: &str) -> Vec<String> {
    verb(nsys, "stop", session)
}

/// `nsys shutdown`, leaving the workload alone.
pub fn shutdown(nsys: &Path, session: &str) -> Vec<String> {
    let mut line = verb(nsys, "shutdown", session);
    line.push("--kill=none".into());
    line
}

/// `nsys sessions list`.
pub fn list(nsys: &Path) -> Vec<String> {
    vec![
        text(nsys),
        "sessions".into(),
        "list".into(),
        "--show-header=false".into(),
    ]
}

/// State of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum SessionState {
    /// No such session: it ended, or never was.
    Gone,
    /// Ready for a collection.
    Idle,
    /// A collection is in progress.
    Collecting,
    /// It ends, or hangs on its way there: a session whose disk is full in the middle of a stop
    /// stays so for ever.
    Ending,
    /// Another state, as the tool names it (`Stop`...).
    Other(String),
}

/// Finds a session in the table of `sessions list`: number, time, state, launches, name.
pub fn parse_list(table: &str, session: &str) -> SessionState {
    let row = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| words.last() == Some(&session) && words.len() >= 4);
    match row.as_deref().and_then(|words| words.get(2)) {
        None => SessionState::Gone,
        Some(&"Launched" | &"Launch" | &"DelayedCollection") => SessionState::Idle,
        // The last three wait for a range, are in one, and write the raw capture of one.
        Some(&"Collection" | &"Collecting" | &"StartRange" | &"RangeCollection" | &"RangeGeneration") => {
            SessionState::Collecting
        }
        Some(&"Shutdown") => SessionState::Ending,
        Some(other) => SessionState::Other((*other).to_owned()),
    }
}

/// The version in what `nsys --version` prints, for example `2022.4.2.1-df9881f`.
pub fn parse_version(output: &str) -> Option<&str> {
    output
        .trim()
        .rsplit_once("version ")
        .map(|(_, version)| version.trim())
        .filter(|version| !version.is_empty())
}

/// Where the host part is: importer and exporter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTools {
    /// The command line tool, of the same version as the importer (Debian:
    /// `target-linux-x64/nsys`).
    pub nsys: PathBuf,
    /// `host-linux-x64/QdstrmImporter`.
    pub importer: PathBuf,
    /// Folders of libraries that an unpacked package lacks (Debian's `libssh.so` is a link into
    /// another package).
    pub libraries: Vec<PathBuf>,
}

impl HostTools {
    /// Environment that the tools need; HOME and TMPDIR are `scratch`.
    pub fn environment(&self, scratch: &Path) -> Vec<(String, String)> {
        let mut environment = vec![
            ("HOME".into(), text(scratch)),
            ("TMPDIR".into(), text(scratch)),
            ("LC_ALL".into(), "C".into()),
        ];
        if !self.libraries.is_empty() {
            let folders: Vec<String> = self.libraries.iter().map(|folder| text(folder)).collect();
            environment.push(("LD_LIBRARY_PATH".into(), folders.join(":")));
        }
        environment
    }

    /// Folders that the tools lie in: what they need to be read beside the system's.
    pub fn folders(&self) -> Vec<PathBuf> {
        let programs = [&self.nsys, &self.importer];
        let mut folders: Vec<PathBuf> = programs
            .into_iter()
            .filter_map(|program| program.parent())
            .map(Path::to_owned)
            .collect();
        folders.extend(self.libraries.iter().cloned());
        folders
    }

    /// Makes a report of a raw capture, in the place of one that is there. Where that [fails at
    /// random](failed_at_random), run it once more.
    pub fn import(&self, raw: &Path, report: &Path) -> Vec<String> {
        let mut line = vec![text(&self.importer), "-i".into(), text(raw)];
        line.extend(["-o".into(), text(report), "--force-overwrite".into()]);
        line
    }

    /// Makes an HDF5 file of a report.
    pub fn export_hdf(&self, report: &Path, output: &Path) -> Vec<String> {
        self.export("hdf", report, output)
    }

    /// Makes an SQLite file of a report.
    pub fn export_sqlite(&self, report: &Path, output: &Path) -> Vec<String> {
        self.export("sqlite", report, output)
    }

    fn export(&self, kind: &str, report: &Path, output: &Path) -> Vec<String> {
        let mut line = vec![
            text(&self.nsys),
            "export".into(),
            format!("--type={kind}"),
            "--force-overwrite=true".into(),
        ];
        line.extend([format!("--output={}", text(output)), text(report)]);
        line
    }
}

/// Whether a child ended as NVIDIA's importer does at random, on captures that it imports in its
/// next run: 2023.4.4 in about 1 of 500 runs (docs/nsight-systems.md).
pub fn failed_at_random(output: &Output) -> bool {
    let said = || String::from_utf8_lossy(&output.stderr).contains("AnalysisStatus::SetNextState");
    output.end == End::Signaled(SIGSEGV) || !output.success() && said()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_names_everything_that_is_fixed_with_it() {
        let options = LaunchOptions {
            session: "fw-1".into(),
            trace: vec!["cuda".into(), "nvtx".into()],
            cuda_graph_trace: Some(CudaGraphTrace::Node),
            nvtx_capture: Some("train step@torch".into()),
            trace_fork_before_exec: true,
        };
        let line = launch(Path::new("/t/nsys"), &options, &["/t/launcher".into(), "stub".into()]).join(" ");
        assert_eq!(
            line,
            "/t/nsys launch --session-new=fw-1 --trace=cuda,nvtx --wait=all --cuda-graph-trace=node --nvtx-capture=train step@torch --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0 --trace-fork-before-exec=true /t/launcher stub"
        );
    }

    #[test]
    fn a_start_names_the_ranges_and_the_counters_that_are_asked_for() {
        let line = |collection| {
            let options = StartOptions {
                session: "fw".into(),
                output: "/r/x".into(),
                collection,
            };
            start(Path::new("nsys"), &options).join(" ")
        };
        let plain = "nsys start --session=fw --sample=none --cpuctxsw=none --output=/r/x --force-overwrite=true";
        assert_eq!(line(Collection::default()), plain);
        for (trigger, count, words) in [
            (
                RangeTrigger::CudaProfilerApi,
                1,
                "--capture-range=cudaProfilerApi --capture-range-end=stop",
            ),
            (
                RangeTrigger::Nvtx,
                3,
                "--capture-range=nvtx --capture-range-end=repeat:3",
            ),
        ] {
            let collection = Collection {
                range: Some(CaptureRange { trigger, count }),
                ..Collection::default()
            };
            assert_eq!(line(collection), format!("{plain} {words}"));
        }
        let collection = Collection {
            gpu_metrics_hertz: Some(20_000),
            ..Collection::default()
        };
        assert_eq!(
            line(collection),
            format!("{plain} --gpu-metrics-device=all --gpu-metrics-frequency=20000")
        );
    }

    #[test]
    fn a_shutdown_never_kills() {
        assert!(shutdown(Path::new("nsys"), "s").contains(&"--kill=none".to_owned()));
    }

    #[test]
    fn a_session_is_found_by_its_whole_name() {
        let table = "   1032189        26:32       Shutdown      1 fwy\n   1124011        00:04       Launched      1 fw\n  7  00:01  Collection 1 fx\n  8 00:01 StartRange 1 fr\n  9 00:01 RangeCollection 1 fs\n 9 00:01 RangeGeneration 1 ft\n";
        for (session, state) in [
            ("fw", SessionState::Idle),
            ("fx", SessionState::Collecting),
            ("fr", SessionState::Collecting),
            ("fs", SessionState::Collecting),
            ("ft", SessionState::Collecting),
            ("fwy", SessionState::Ending),
            ("f", SessionState::Gone),
        ] {
            assert_eq!(parse_list(table, session), state, "{session}");
        }
    }

    #[test]
    fn the_version_is_what_follows_the_word() {
        assert_eq!(
            parse_version("NVIDIA Nsight Systems version 2022.4.2.1-df9881f\n"),
            Some("2022.4.2.1-df9881f")
        );
        assert_eq!(parse_version("something else"), None);
    }
}
