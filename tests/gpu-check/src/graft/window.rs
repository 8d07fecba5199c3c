//! One capture of a grafted program, from the start of the collection to the tables.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use flopwatch_attach::graft::{Bounds, Target};
use flopwatch_attach::nsys::{Collection, HostTools};
use flopwatch_attach::reexec::Reexec;
use flopwatch_attach::sandbox::{self, MemoryBound, Sandboxed};
use flopwatch_summary::{Summary, summarise};
use flopwatch_trace::transform::{TransformOptions, transform};
use flopwatch_trace::{ReadLimits, timeline_file};
use serde::Serialize;

use super::program::Program;

/// Bounds of a collection.
pub(super) const BOUNDS: Bounds = Bounds {
    limit: Duration::from_mins(1),
    max_bytes: 2 << 30,
    min_free_bytes: 0,
};
/// The user that the importer becomes.
const IMPORTER_UID: u32 = 4321;
/// How long each of them may take.
const STEP_TIMEOUT: Duration = Duration::from_mins(3);

/// What one capture gave.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct WindowResult {
    /// Events of GPU kernels.
    pub(crate) kernels: u64,
    /// Names of kernels.
    pub(crate) kernel_names: usize,
    /// NVTX ranges.
    pub(crate) ranges: u64,
    /// Events of all categories.
    pub(crate) events: u64,
    /// Bytes of the raw capture.
    pub(crate) raw_bytes: u64,
    /// The program's steps per second meanwhile, by its own count.
    pub(crate) steps_per_second: Option<f64>,
    pub(crate) start_seconds: f64,
    pub(crate) stop_seconds: f64,
    pub(crate) import_seconds: f64,
    pub(crate) transform_seconds: f64,
}

/// Captures the program for so long.
pub(crate) fn capture(
    tools: &HostTools,
    program: &Program,
    target: &Target,
    session: &str,
    name: &str,
    length: Duration,
    output: &Path,
) -> Result<WindowResult> {
    let begin = Instant::now();
    target
        .start_collection(session, name, &Collection::default(), BOUNDS)
        .context("the start of the collection")?;
    let start_seconds = begin.elapsed().as_secs_f64();
    let steps_per_second = program.works_for(length)?;
    let begin = Instant::now();
    let inside = target
        .stop_collection(session, name)
        .context("the end of the collection")?;
    let stop_seconds = begin.elapsed().as_secs_f64();
    let scratch = tempfile::Builder::new().prefix("flopwatch-").tempdir()?;
    let at = |file: &str| scratch.path().join(file);
    let raw_bytes = target.copy_capture(&inside, &mut File::create(at("raw.qdstrm"))?, BOUNDS.max_bytes, |_| {
        true
    })?;
    target.remove_capture(&inside)?;
    if nix::unistd::geteuid().is_root() {
        for path in [scratch.path().to_owned(), at("raw.qdstrm")] {
            nix::unistd::chown(&path, Some(IMPORTER_UID.into()), Some(IMPORTER_UID.into()))?;
        }
    }
    let begin = Instant::now();
    let import = tools.import(&at("raw.qdstrm"), &at("raw.nsys-rep"));
    let message = sandbox::run(&Reexec::default(), &sandboxed(tools, import, scratch.path()))?;
    if !message.success() {
        bail!("the import failed ({:?}): {}", message.end, message.last_words());
    }
    let import_seconds = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let read = flopwatch_trace::read(&at("raw.nsys-rep"), &ReadLimits::default())?;
    let session_id = format!("{session}-{name}");
    let timeline = transform(read, TransformOptions { session_id });
    timeline_file::write(&timeline, output)?;
    let summary = summarise(&timeline);
    let transform_seconds = begin.elapsed().as_secs_f64();
    Ok(WindowResult {
        raw_bytes,
        steps_per_second,
        start_seconds,
        stop_seconds,
        import_seconds,
        transform_seconds,
        ..counted(&summary)
    })
}

fn counted(summary: &Summary) -> WindowResult {
    let calls = |table: &flopwatch_summary::Table| table.rows.iter().map(|row| row.statistics.calls).sum();
    WindowResult {
        kernels: calls(&summary.kernels),
        kernel_names: summary.kernels.rows.len(),
        ranges: calls(&summary.nvtx),
        events: summary.total_events,
        ..WindowResult::default()
    }
}

fn sandboxed(tools: &HostTools, command: Vec<String>, scratch: &Path) -> Sandboxed {
    Sandboxed {
        command,
        environment: tools.environment(scratch),
        directory: scratch.to_owned(),
        readable: tools.folders(),
        gpu: false,
        user: IMPORTER_UID,
        memory_bytes: 8 << 30,
        memory: MemoryBound::AddressSpace,
        file_bytes: 4 << 30,
        processes: 1024,
        cpu_seconds: 2 * STEP_TIMEOUT.as_secs(),
        deadline: STEP_TIMEOUT,
        whole: false,
        cgroups: None,
    }
}
