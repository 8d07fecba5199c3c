//! From what the profiler wrote and what NVML said to the files that are published.
//!
//! Runs in a child process of its own ([`crate::children`]): what the profiler wrote is a foreign
//! file.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use flopwatch_api::session::TransformDevice;
use flopwatch_model::{Capture, Category, CounterSeries, Events, Loss, LossReason, MergeError};
use flopwatch_summary::{Summary, SummaryError, summarise};
use flopwatch_trace::convert::LOCAL_SESSION;
use flopwatch_trace::timeline_file::{self, WriteError};
use flopwatch_trace::transform::TransformOptions;
use flopwatch_trace::transform::choice::DevicePreference;
use flopwatch_trace::transform::device::{DeviceError, transform_beside};
use flopwatch_trace::{InFile, OpenedFile, ReadError, ReadLimits, kineto, open_between};
use serde::{Deserialize, Serialize};

use crate::disassembly;
use crate::failure::chain;
use crate::fleet_rows::{FleetFiles, WriteRows};

/// Longest file of samples that is read, in bytes: five minutes of sixteen GPUs at the shortest
/// interval need less.
const MAX_SAMPLES_BYTES: u64 = 512 << 20;
/// Longest summary that is read, in bytes.
const MAX_SUMMARY_BYTES: u64 = 256 << 20;

/// Sampled series of one window, as the agent hands them to the child.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// When the window opened, in ns since the Unix epoch. Used where the profiler does not say
    /// when its session began.
    pub window_start_utc_ns: u64,
    /// Length of the window in ns. Used where there is no file of a profiler.
    pub window_ns: u64,
    /// Series that were sampled beside the capture.
    pub series: Vec<SampledSeries>,
    /// Samples that were due and not taken.
    pub missed: u64,
}

impl Samples {
    /// The window in ns since the Unix epoch.
    pub fn window(&self) -> Range<u64> {
        self.window_start_utc_ns..self.window_start_utc_ns.saturating_add(self.window_ns)
    }
}

/// Series of the time before a window, as the metrics ring holds them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EarlierSamples {
    /// Begin of the time that was asked for, in ns since the Unix epoch.
    pub from_utc_ns: u64,
    /// End of the samples.
    pub until_utc_ns: u64,
    /// Series with points in it: of the container, whose source is `cgroup`, and of its devices,
    /// whose source is `nvml`.
    pub series: Vec<SampledSeries>,
    /// Rounds of a tenth of a second that the container's or a device's series lack, added up; what
    /// was before their first points is not counted.
    pub missed: u64,
    /// Longest time between two points of a series that has one each round, in ns.
    pub longest_gap_ns: u64,
}

/// Samples of one metric of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledSeries {
    /// Who sampled it, such as `nvml`.
    pub source: String,
    /// Device that was sampled.
    pub device: String,
    /// What, such as `power_watts`.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// Times in ns since the Unix epoch.
    pub t_utc_ns: Vec<u64>,
    /// Values, as many as times.
    pub value: Vec<f64>,
}

/// What to make of what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The profiler's files, or any other files that are read, which become one timeline; none for
    /// metrics alone.
    pub inputs: Vec<PathBuf>,
    /// [`Samples`] as JSON.
    pub samples: Option<PathBuf>,
    /// The session's identifier, kept in the files; by default that of the input.
    pub session_id: Option<String>,
    /// The timeline begins with the first that there is in the samples' window, not with the
    /// window.
    pub trim: bool,
    /// Categories that the profiler was asked to record: an empty table of one of them says "none",
    /// not "not captured".
    pub captured: Vec<Category>,
    /// What does the heavy steps.
    pub device: TransformDevice,
    /// Compute processes on the machine's GPUs, which a child cannot see.
    pub others: u32,
    /// Where the timeline file goes, if there is to be one.
    pub timeline: Option<PathBuf>,
    /// Where the summary goes.
    pub summary: PathBuf,
    /// The capture's row of the fleet, and where its rows go, where there are to be some.
    pub fleet: Option<FleetFiles>,
}

/// Why the files could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An input cannot be read.
    #[error(transparent)]
    Input(#[from] ReadError),
    /// Several inputs cannot be one timeline.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The samples cannot be read.
    #[error("{path}: the samples cannot be read: {reason}")]
    Samples {
        /// The file of samples.
        path: PathBuf,
        /// What is wrong with them.
        reason: String,
    },
    /// There is neither an input nor samples.
    #[error("nothing to transform: the job has neither an input nor samples")]
    Nothing,
    /// The GPU that was asked for cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The timeline file cannot be written.
    #[error(transparent)]
    Timeline(#[from] WriteError),
    /// The summary cannot be made.
    #[error(transparent)]
    Summary(#[from] SummaryError),
    /// The summary cannot be written or read.
    #[error("{path}: {source}")]
    Io {
        /// The summary's file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A summary is not one.
    #[error("{path}: is no summary of a capture: {reason}")]
    NoSummary {
        /// The file that was taken for one.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Makes the files, and returns the summary. Rows of the fleet that the job asks for are written by
/// `write_rows`.
pub fn run(job: &Job, write_rows: Option<WriteRows>) -> Result<Summary, Error> {
    let mut samples = job.samples.as_deref().map(read_samples).transpose()?;
    if let Some(samples) = samples.as_mut().filter(|_| job.trim) {
        trim(samples, &job.inputs)?;
    }
    let mut of_input = None;
    let mut capture = match (job.inputs.as_slice(), &samples) {
        ([], Some(samples)) => metrics_alone(samples),
        ([], None) => return Err(Error::Nothing),
        (inputs, _) => {
            let opened = read_inputs(inputs, &job.captured, samples.as_ref())?;
            of_input = opened.session_id;
            let mut capture = opened.capture;
            capture.declare_captured(job.captured.iter().copied());
            capture
        }
    };
    if let Some(samples) = samples {
        add_samples(&mut capture, samples);
    }
    let session_id = job.session_id.clone().or(of_input);
    let session_id = session_id.unwrap_or_else(|| LOCAL_SESSION.to_owned());
    let options = TransformOptions { session_id };
    let (timeline, pick) = transform_beside(job.others, wanted(job.device), capture, options)?;
    let summary = match &job.timeline {
        // Whoever publishes it makes a copy, and waits for the disk once.
        Some(path) => timeline_file::write_unsynced(&timeline, path)?,
        None => summarise(&timeline),
    };
    let summary = Summary {
        transformed_on: Some((&pick).into()),
        ..summary
    };
    let summary = write_summary(summary, &job.summary)?;
    // Last: the capture is whole whatever becomes of them.
    if let Some(files) = &job.fleet {
        let written = match write_rows {
            Some(write) => write(files, &timeline, &summary),
            None => Err("this program has no writer of them".into()),
        };
        if let Err(error) = written {
            drop(writeln!(std::io::stderr(), "no rows of the fleet: {}", chain(&*error)));
        }
    }
    Ok(summary)
}

/// Lets the window begin with the first event or point in it; one without any stays as it is.
fn trim(samples: &mut Samples, inputs: &[PathBuf]) -> Result<(), Error> {
    let window = samples.window();
    let mut first = samples.series.iter().flat_map(|series| &series.t_utc_ns).min().copied();
    if !inputs.is_empty() {
        let capture = read_inputs(inputs, &[], Some(samples))?.capture;
        let begin = capture.session_start_utc_ns.unwrap_or(window.start);
        let of_events = capture.events.values().flat_map(|events| &events.start_ns).min();
        let of_events = of_events.map(|start| begin.saturating_add(*start));
        first = first.into_iter().chain(of_events).min();
    }
    if let Some(first) = first.filter(|first| window.contains(first)) {
        samples.window_start_utc_ns = first;
        samples.window_ns = window.end - first;
    }
    Ok(())
}

/// What the inputs hold together, which are bounded as one is. Of a flight recorder's file, what
/// ran in the window of the samples. Where it is known what was `asked` for, processes that all did
/// nothing are a capture without events.
fn read_inputs(inputs: &[PathBuf], asked: &[Category], samples: Option<&Samples>) -> Result<OpenedFile, Error> {
    let mut limits = ReadLimits::default();
    let mut session_id = None;
    let mut captures = Vec::with_capacity(inputs.len());
    for input in inputs {
        let opened = match open_between(input, &limits, samples.map(Samples::window)) {
            // Whoever knows what was to be recorded says by the window's signs why there is none.
            Err(ReadError::Kineto(InFile {
                error: kineto::Failure::Idle { processes },
                ..
            })) if !asked.is_empty() => OpenedFile {
                session_id: None,
                capture: of_idle(processes),
            },
            opened => opened?,
        };
        let mut capture = opened.capture;
        let events: u64 = capture.events.values().map(Events::count).sum();
        limits.max_events = limits.max_events.saturating_sub(events);
        disassembly::of_capture(&mut capture);
        session_id = session_id.or(opened.session_id);
        captures.push(capture);
    }
    let capture = Capture::merge(captures)?;
    Ok(OpenedFile { session_id, capture })
}

/// The capture of so many processes that did nothing.
fn of_idle(processes: u64) -> Capture {
    let mut capture = Capture::default();
    capture.losses.add(LossReason::Idle, Loss::IDLE_PROCESSES, processes);
    capture
}

fn write_summary(summary: Summary, path: &Path) -> Result<Summary, Error> {
    let text = summary.to_json()?;
    let io = |source| Error::Io {
        path: path.to_owned(),
        source,
    };
    File::create(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(io)?;
    Ok(summary)
}

/// Whether a file begins as every summary does, and no profiler's JSON.
pub(crate) fn is_summary(path: &Path) -> bool {
    let mut head = String::new();
    let read = File::open(path).and_then(|file| file.take(128).read_to_string(&mut head));
    let head: String = head.split_whitespace().collect();
    read.is_ok() && head.starts_with("{\"version\":") && head.contains(",\"session_id\":")
}

pub(crate) const fn wanted(device: TransformDevice) -> DevicePreference {
    match device {
        TransformDevice::Auto => DevicePreference::Auto,
        TransformDevice::Gpu => DevicePreference::Gpu,
        TransformDevice::Cpu => DevicePreference::Cpu,
    }
}

/// Reads a summary that a child wrote; `path` is its name in messages.
pub fn read_summary(file: File, path: &Path) -> Result<Summary, Error> {
    let no_summary = |reason| Error::NoSummary {
        path: path.to_owned(),
        reason,
    };
    let summary: Summary = serde_json::from_reader(BufReader::new(file.take(MAX_SUMMARY_BYTES)))
        .map_err(|error| no_summary(error.to_string()))?;
    if summary.version > flopwatch_summary::VERSION {
        let (found, known) = (summary.version, flopwatch_summary::VERSION);
        return Err(no_summary(format!(
            "it is of version {found}, this program reads up to {known}"
        )));
    }
    Ok(summary)
}

/// Reads the samples of a window, as this program wrote them.
pub fn read_samples(path: &Path) -> Result<Samples, Error> {
    let wrong = |reason: String| Error::Samples {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_reader(BufReader::new(file.take(MAX_SAMPLES_BYTES))).map_err(|error| wrong(error.to_string()))
}

fn metrics_alone(samples: &Samples) -> Capture {
    let mut capture = Capture {
        session_start_utc_ns: Some(samples.window_start_utc_ns),
        duration_ns: samples.window_ns,
        ..Capture::default()
    };
    "NVML".clone_into(&mut capture.source.tool);
    capture
}

/// Counts the samples' times from the session's start. Samples outside of the window are left out
/// and counted.
fn add_samples(capture: &mut Capture, samples: Samples) {
    let start = *capture.session_start_utc_ns.get_or_insert(samples.window_start_utc_ns);
    let mut outside: u64 = 0;
    let mut series = Vec::with_capacity(samples.series.len());
    for sampled in samples.series {
        let mut aligned = CounterSeries {
            source: sampled.source,
            device: sampled.device,
            metric: sampled.metric,
            unit: sampled.unit,
            ..CounterSeries::default()
        };
        for (t, value) in sampled.t_utc_ns.into_iter().zip(sampled.value) {
            match t.checked_sub(start).filter(|t| *t <= capture.duration_ns) {
                Some(t) => {
                    aligned.t_ns.push(t);
                    aligned.value.push(value);
                }
                None => outside += 1,
            }
        }
        series.push(aligned);
    }
    capture
        .losses
        .add(LossReason::Skipped, "NVML samples outside of the window", outside);
    capture.losses.add(
        LossReason::Dropped,
        "NVML samples that were due and not taken",
        samples.missed,
    );
    capture.add_counters(series);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Samples {
        Samples {
            window_start_utc_ns: 1_000,
            window_ns: 500,
            series: vec![SampledSeries {
                source: "nvml".to_owned(),
                device: "gpu0".to_owned(),
                metric: "power_watts".to_owned(),
                unit: "W".to_owned(),
                t_utc_ns: vec![900, 1_000, 1_500, 1_501],
                value: vec![1.0, 2.0, 3.0, 4.0],
            }],
            missed: 2,
        }
    }

    #[test]
    fn samples_count_from_the_sessions_start_and_those_outside_are_counted() {
        let mut capture = metrics_alone(&samples());
        add_samples(&mut capture, samples());
        assert_eq!(capture.counters[0].t_ns, [0, 500]);
        assert_eq!(capture.counters[0].value, [2.0, 3.0]);
        let losses: Vec<_> = capture.losses.list().into_iter().map(|drop| drop.count).collect();
        assert_eq!(losses, [2, 2]);
    }

    #[test]
    fn metrics_alone_give_a_timeline_that_can_be_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("samples.json"), serde_json::to_vec(&samples()).unwrap()).unwrap();
        let job = Job {
            inputs: Vec::new(),
            samples: Some(path("samples.json")),
            session_id: Some("0123abcd".to_owned()),
            trim: false,
            captured: Vec::new(),
            device: TransformDevice::Auto,
            others: 0,
            timeline: Some(path("timeline.h5")),
            summary: path("summary.json"),
            fleet: None,
        };
        let summary = run(&job, None).unwrap();
        assert_eq!((summary.total_events, summary.window_ns), (0, 500));
        let file = File::open(path("summary.json")).unwrap();
        assert_eq!(read_summary(file, &path("summary.json")).unwrap(), summary);
        let timeline = timeline_file::read(&path("timeline.h5"), &ReadLimits::default()).unwrap();
        assert_eq!(timeline.capture.counters[0].value, [2.0, 3.0]);
        assert_eq!(timeline.session_id, "0123abcd");
    }

    #[test]
    fn a_trimmed_window_begins_with_its_first_point_and_an_empty_one_stays() {
        let mut samples = samples();
        samples.series[0].t_utc_ns = vec![1_100, 1_200, 1_300, 1_400];
        trim(&mut samples, &[]).unwrap();
        assert_eq!(samples.window(), 1_100..1_500);
        samples.series.clear();
        trim(&mut samples, &[]).unwrap();
        assert_eq!(samples.window(), 1_100..1_500);
    }

    #[test]
    fn a_summary_is_told_by_its_beginning_and_one_of_a_newer_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        let mut summary = summarise(&flopwatch_model::Timeline::default());
        write_summary(summary.clone(), &path).unwrap();
        assert!(is_summary(&path));
        summary.version = flopwatch_summary::VERSION + 1;
        write_summary(summary, &path).unwrap();
        let error = read_summary(File::open(&path).unwrap(), &path).unwrap_err().to_string();
        assert!(
            error.contains("summary.json") && error.contains("reads up to"),
            "{error}"
        );
        std::fs::write(&path, "{\"schemaVersion\": 1, \"traceEvents\": []}").unwrap();
        assert!(!is_summary(&path));
    }

    #[test]
    fn processes_that_all_did_nothing_are_an_error_but_to_whoever_knows_what_was_to_be_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("capture.tar");
        let mut archive = tar::Builder::new(File::create(&input).unwrap());
        let trace = br#"{"schemaVersion": 1, "traceEvents": [{"ph": "M", "name": "process_name", "ts": 0, "pid": 1}]}"#;
        for name in ["trace-1_1.json", "trace-1_8.json"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(u64::try_from(trace.len()).unwrap());
            archive.append_data(&mut header, name, &trace[..]).unwrap();
        }
        archive.into_inner().unwrap().sync_all().unwrap();
        let job = |captured| Job {
            inputs: vec![input.clone()],
            samples: None,
            session_id: None,
            trim: false,
            captured,
            device: TransformDevice::Cpu,
            others: 0,
            timeline: None,
            summary: folder.path().join("summary.json"),
            fleet: None,
        };
        let error = run(&job(Vec::new()), None).unwrap_err().to_string();
        assert!(error.contains("none of its 2 traces holds an event"), "{error}");
        let summary = run(&job(vec![Category::CpuOp]), None).unwrap();
        assert_eq!(summary.total_events, 0);
        let idle = summary.drops.iter().find(|loss| loss.reason == LossReason::Idle);
        assert_eq!(idle.map(|loss| loss.count), Some(2));
    }

    #[test]
    fn a_file_of_no_format_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("raw.h5");
        std::fs::write(&input, b"not HDF5").unwrap();
        let job = Job {
            inputs: vec![input],
            samples: None,
            session_id: None,
            trim: false,
            captured: Vec::new(),
            device: TransformDevice::Auto,
            others: 0,
            timeline: Some(folder.path().join("timeline.h5")),
            summary: folder.path().join("summary.json"),
            fleet: None,
        };
        let error = run(&job, None).unwrap_err().to_string();
        assert!(
            error.contains("raw.h5") && error.contains("no format that is read"),
            "{error}"
        );
        assert!(!folder.path().join("timeline.h5").exists());
    }
}
