//! An analysis of captures, in a child process of its own ([`crate::children`]): captures are
//! foreign files.
//!
//! Of a timeline file the child reads what the analysis needs and transforms nothing; any other
//! file is read whole and transformed.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use flopwatch_analysis::analyses::profiled_kernel::ProfiledKernel;
use flopwatch_analysis::analyses::summary as summary_analysis;
use flopwatch_analysis::{Analysis as _, AnalysisError, Input, Part as HeldPart, Request};
use flopwatch_api::session::TransformDevice;
use flopwatch_model::Totals;
use flopwatch_model::{Loss, Timeline};
use flopwatch_summary::TransformedOn;
use flopwatch_trace::convert::LOCAL_SESSION;
use flopwatch_trace::timeline_file::{self, OpenError, Part};
use flopwatch_trace::transform::TransformOptions;
use flopwatch_trace::transform::device::{DeviceError, transform_beside};
use flopwatch_trace::{Format, ReadLimits, detect};
use serde::{Deserialize, Serialize};

use crate::disassembly;
use crate::transform::{self, is_summary, read_summary, wanted};

/// Longest report that is read, in bytes.
const MAX_REPORT_BYTES: u64 = 16 << 20;

/// One analysis to run: its request, its captures, and the file to write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The analysis and its parameters.
    pub request: Request,
    /// The captures, in the order that the analysis knows them by.
    pub inputs: Vec<PathBuf>,
    /// Names of the captures without an identifier of a session, in their order; captures beyond
    /// the end are called [`LOCAL_SESSION`].
    pub names: Vec<String>,
    /// Where captures that are no timeline files are transformed: on the CPU or a GPU.
    pub device: TransformDevice,
    /// Compute processes on the machine's GPUs, which a child cannot see.
    pub others: u32,
    /// The file to write; [`Report`] goes beside it.
    pub output: PathBuf,
}

/// What the child made, as it reports to its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Events in the captures.
    pub total_events: u64,
    /// Events in the file for another program.
    pub events: u64,
    /// Samples of series in it.
    pub samples: u64,
    /// What of the captures the result leaves out, because its format has no place for it.
    pub left_out: Vec<Loss>,
    /// The one word that an exit code stands for, of a result that has one.
    #[serde(default)]
    pub verdict: Option<String>,
    /// Where the first capture was transformed; null of a timeline file, which is transformed
    /// already.
    pub transformed_on: Option<TransformedOn>,
    /// What the first capture holds beside its events.
    #[serde(default)]
    pub parts: Vec<HeldPart>,
    /// The captures of files that end before their end, in their order.
    #[serde(default)]
    pub cut: Vec<CutCapture>,
}

/// A capture of a file that ends before its end: how much of it is missing cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutCapture {
    /// Number of the capture among the inputs, from 0.
    pub input: usize,
    /// Events that were read of it.
    pub events: u64,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A capture cannot be read.
    #[error(transparent)]
    CaptureInput(#[from] flopwatch_trace::ReadError),
    /// A timeline file cannot be read.
    #[error(transparent)]
    Timeline(#[from] OpenError),
    /// The GPU that was asked for cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A summary that was given in place of a capture is none.
    #[error(transparent)]
    Summary(#[from] transform::Error),
    /// A file cannot be made or read.
    #[error("{path}: {source}")]
    Io {
        /// Path of what cannot be made or read.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The analysis fails.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The report cannot be written or read.
    #[error("{path}: {source}")]
    Report {
        /// The report's file.
        path: PathBuf,
        /// What is wrong with its text.
        source: serde_json::Error,
    },
}

impl Job {
    /// Path of the report, beside the output.
    pub fn report(&self) -> PathBuf {
        self.output.with_extension("report.json")
    }

    /// Reads the report that a child wrote.
    pub fn read_report(&self, file: File) -> Result<Report, Error> {
        let reader = BufReader::new(file.take(MAX_REPORT_BYTES));
        let path = self.report();
        serde_json::from_reader(reader).map_err(|source| Error::Report { path, source })
    }
}

/// Runs the analysis in this process and writes the result and the report.
pub fn run(job: &Job) -> Result<(), Error> {
    if let (flopwatch_summary::NAME, [input]) = (job.request.definition().name, job.inputs.as_slice())
        && is_summary(input)
    {
        return pass_summary(job, input);
    }
    let mut captures = Vec::new();
    let names = job
        .names
        .iter()
        .map(String::as_str)
        .chain(std::iter::repeat(LOCAL_SESSION));
    for (input, name) in job.inputs.iter().zip(names) {
        captures.push(read(job, input, name)?);
    }
    let inputs = captures.iter().map(|capture| Input {
        timeline: &capture.timeline,
        totals: capture.totals,
    });
    let inputs: Vec<Input<'_>> = inputs.collect();
    let mut file = File::create(&job.output).map_err(io(&job.output))?;
    let made = job.request.run(&inputs, &mut file)?;
    let report = Report {
        total_events: captures.iter().map(|capture| capture.totals.events).sum(),
        events: made.events,
        samples: made.samples,
        left_out: made.left_out,
        verdict: made.verdict,
        transformed_on: captures.first().and_then(|capture| capture.transformed_on.clone()),
        parts: captures
            .first()
            .map(|capture| capture.parts.clone())
            .unwrap_or_default(),
        cut: captures.iter().enumerate().filter_map(cut).collect(),
    };
    write_report(job, &report)
}

/// A capture as the analysis gets it.
struct CaptureInput {
    timeline: Timeline,
    totals: Totals,
    transformed_on: Option<TransformedOn>,
    parts: Vec<HeldPart>,
}

/// What is reported of a capture whose file was cut; `None` of any other.
fn cut((input, capture): (usize, &CaptureInput)) -> Option<CutCapture> {
    let losses = capture.timeline.capture.losses.list();
    let events = capture.totals.events;
    losses
        .iter()
        .any(Loss::is_of_a_cut_file)
        .then_some(CutCapture { input, events })
}

/// Reads a capture; `name` is its session's identifier where it has none.
fn read(job: &Job, path: &Path, name: &str) -> Result<CaptureInput, Error> {
    let limits = ReadLimits::default();
    let is_timeline = matches!(detect(path), Ok(Some(Format::Hdf5))) && timeline_file::is_one(path);
    if is_timeline {
        let Part { mut timeline, totals } = timeline_file::read_for(path, &limits, &job.request.definition().needs)?;
        if timeline.session_id == LOCAL_SESSION {
            name.clone_into(&mut timeline.session_id);
        }
        let groups = timeline_file::filled_groups(path, &HeldPart::ALL.map(HeldPart::name))?;
        let parts = HeldPart::ALL.into_iter().filter(|part| groups.contains(&part.name()));
        return Ok(CaptureInput {
            timeline,
            totals,
            transformed_on: None,
            parts: parts.collect(),
        });
    }
    let mut capture = flopwatch_trace::open(path, &limits)?.capture;
    if job.request.definition().name == ProfiledKernel::NAME {
        disassembly::of_capture(&mut capture);
    }
    let options = TransformOptions {
        session_id: name.to_owned(),
    };
    let (timeline, pick) = transform_beside(job.others, wanted(job.device), capture, options)?;
    Ok(CaptureInput {
        totals: Totals::of(&timeline),
        parts: HeldPart::ALL
            .into_iter()
            .filter(|part| part.is_held(&timeline.capture))
            .collect(),
        timeline,
        transformed_on: Some((&pick).into()),
    })
}

/// The summary of a summary is itself.
fn pass_summary(job: &Job, input: &Path) -> Result<(), Error> {
    let summary = read_summary(File::open(input).map_err(io(input))?, input)?;
    let mut file = File::create(&job.output).map_err(io(&job.output))?;
    let events = summary.total_events;
    let is_cut = summary.drops.iter().any(Loss::is_of_a_cut_file);
    let report = Report {
        total_events: events,
        cut: is_cut.then_some(CutCapture { input: 0, events }).into_iter().collect(),
        transformed_on: summary.transformed_on.clone(),
        ..Report::default()
    };
    summary_analysis::write(summary, job.request.format(), job.request.layout(), &mut file)?;
    write_report(job, &report)
}

fn write_report(job: &Job, report: &Report) -> Result<(), Error> {
    let path = job.report();
    let file = File::create(&path).map_err(io(&path))?;
    serde_json::to_writer(file, report).map_err(|source| Error::Report { path, source })
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}
