//! From what was collected to what is published: the profiler's own tools, the transform, the
//! check. The node and `record` go all of this way, the commands that read any file as much of it
//! as they need.
//!
//! What is to be run is data ([`Recipe`], [`nsys_imports`]); [`run`] carries it out in sandboxed
//! children, one after the other, in one folder of their own. Which protections and bounds hold is
//! decided by whoever makes the [`ChildRunner`].

use std::fs::File;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use flopwatch_api::artifact::{Output, TIMELINE, report_name};
use flopwatch_api::capture::CaptureSummary;
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::TransformDevice;
use flopwatch_attach::nsys::HostTools;
use flopwatch_attach::sandbox::product::ProductError;
use flopwatch_model::{Category, Loss};
use flopwatch_summary::Summary;
use futures::FutureExt as _;
use tracing::warn;

use crate::activity::ActivityEvidence;
use crate::failure::{Failure, chain};
use crate::fleet_rows::{FleetFiles, ROWS};
use crate::sandbox_dir::SandboxDir;
use crate::status_summary::status_summary;
use crate::steps::{self, ChildRunner, ToolJob};
use crate::transform::{self, Job, read_summary};
use crate::verify::{holds_cuda, judge, required, verify};

/// Name of the summary in the children's folder.
pub const SUMMARY: &str = "summary.json";

/// The child that makes a report of a raw capture of Nsight Systems (`.qdstrm`), and the report,
/// which is called by its number ([`report_name`]). `at` gives the place of a name in the
/// children's folder.
pub fn nsys_import(raw: PathBuf, number: usize, at: impl Fn(&str) -> PathBuf) -> (ToolJob, PathBuf) {
    let report = at(&report_name(number));
    let step = ToolJob::Import {
        raw,
        report: report.clone(),
    };
    (step, report)
}

/// Children that make one report of each raw capture, and those reports, numbered from 1.
pub fn nsys_imports(
    raw: impl IntoIterator<Item = PathBuf>,
    at: impl Fn(&str) -> PathBuf,
) -> (Vec<ToolJob>, Vec<PathBuf>) {
    (1..)
        .zip(raw)
        .map(|(number, raw)| nsys_import(raw, number, &at))
        .unzip()
}

/// The child that makes an export of a report by Nsight Systems itself, and the export, which lies
/// beside the report.
pub fn nsys_export(report: PathBuf) -> (ToolJob, PathBuf) {
    let export = report.with_extension("h5");
    let step = ToolJob::Export {
        report,
        export: export.clone(),
    };
    (step, export)
}

/// How raw files become what the transform reads.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// The tools that the children are; none: the agent's first, if there are any.
    pub tools: Option<HostTools>,
    /// The children, in their order.
    pub steps: Vec<ToolJob>,
    /// The files that become one timeline: reports, traces, exports; none where the GPU samples are
    /// all there is.
    pub inputs: Vec<PathBuf>,
    /// Names of the files in the children's folder that are published as Raw.
    pub reports: Vec<String>,
    /// Files that the collection itself left, each with the name under which it is published as
    /// Raw; none where children make the report.
    pub collected: Vec<(&'static str, PathBuf)>,
    /// Categories of the timeline that were recorded: an empty table of one of them says "none",
    /// not "not captured".
    pub captured: Vec<Category>,
}

/// What is made of the inputs, beside what the recipe says.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Samples of the window as JSON ([`Samples`](crate::transform::Samples)).
    pub samples: Option<PathBuf>,
    /// The session's identifier; by default that of the input.
    pub session_id: Option<String>,
    /// What does the heavy steps of the transform.
    pub device: TransformDevice,
    /// The capture's row of the fleet as JSON, where rows are to be made beside the published
    /// files.
    pub fleet: Option<PathBuf>,
}

/// What is being done, as a person is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// A report is made of a raw capture.
    Import,
    /// An export is made of a report, where it was asked for.
    Export,
    /// The published files are made of the inputs.
    Transform,
}

/// Why the files could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The profiler's own tools could not make a report or an export of what it wrote.
    #[error(transparent)]
    Import(steps::Error),
    /// The inputs could not be transformed.
    #[error(transparent)]
    Transform(steps::Error),
    /// What a child made is not taken.
    #[error(transparent)]
    Product(#[from] ProductError),
    /// The child's summary cannot be read.
    #[error(transparent)]
    Summary(#[from] transform::Error),
}

impl Error {
    /// What a capture that ends with it failed of.
    pub const fn reason(&self) -> CaptureReason {
        match self {
            Self::Import(error) | Self::Transform(error) if error.is_want_of_space() => CaptureReason::DiskSpace,
            Self::Import(_) => CaptureReason::ImportFailed,
            Self::Transform(_) | Self::Product(_) | Self::Summary(_) => CaptureReason::TransformFailed,
        }
    }
}

/// What was made; it lies in the children's folder.
#[derive(Debug)]
pub struct Products<'a> {
    sandbox: &'a SandboxDir,
    reports: Vec<String>,
    /// The tables of the summary.
    pub summary: Summary,
    /// The tables in short.
    pub digest: CaptureSummary,
    /// Processor time of the children; none where it is not known of one of them.
    pub processor_time: Option<Duration>,
}

impl Products<'_> {
    /// What may be published, with the name that it has then; a raw report only where children made
    /// one.
    pub fn artifacts(&self) -> impl Iterator<Item = (Output, &str)> {
        let made = [(Output::Timeline, TIMELINE), (Output::Summary, SUMMARY)];
        let reports = self.reports.iter().map(|name| (Output::Raw, name.as_str()));
        made.into_iter().chain(reports)
    }

    /// Opens one of them.
    pub fn open(&self, name: &str) -> Result<File, Error> {
        Ok(self.sandbox.open(name)?)
    }

    /// Fails where events are missing that were asked for: those that are `listed`, else CUDA's of
    /// a program that uses CUDA, else any that the profiler `expects`. `uses_cuda` is what is known
    /// beside the capture itself.
    pub fn verify(&self, listed: &[Category], uses_cuda: bool, expects: &[Category]) -> Result<(), Failure> {
        let counts = &self.digest.categories;
        verify(&required(listed, uses_cuda || holds_cuda(counts), expects), counts)
    }

    /// The same with what was seen beside the collection, and where the file ends that was read.
    pub fn judge(
        &self,
        listed: &[Category],
        uses_cuda: bool,
        expects: &[Category],
        activity: &ActivityEvidence,
    ) -> Result<(), Failure> {
        let counts = &self.digest.categories;
        let ends_early = self.summary.drops.iter().any(Loss::is_of_a_cut_file);
        judge(
            &required(listed, uses_cuda || holds_cuda(counts), expects),
            counts,
            ends_early,
            activity,
        )
    }

    /// Opens the timeline file.
    pub fn timeline(&self) -> Result<File, Error> {
        self.open(TIMELINE)
    }
}

/// Adds two durations; none where either is not known.
pub fn sum(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    Some(one?.saturating_add(other?))
}

/// Runs the tools' children, and gives their processor time. `begins` is told of each before it.
/// When `until` resolves, the child that is at work is killed and reaped before this returns, with
/// an error.
pub async fn prepare(
    steps: &ChildRunner,
    sandbox: &SandboxDir,
    tools: &[ToolJob],
    until: impl Future<Output = ()>,
    mut begins: impl FnMut(Stage),
) -> Result<Option<Duration>, Error> {
    let mut processor_time = Some(Duration::ZERO);
    // Once it has resolved, it has for every step that follows.
    let until = until.shared();
    for step in tools {
        begins(match step {
            ToolJob::Import { .. } => Stage::Import,
            ToolJob::Export { .. } => Stage::Export,
        });
        let took = steps.tool(sandbox, step, until.clone()).await.map_err(Error::Import)?;
        processor_time = sum(processor_time, took);
    }
    Ok(processor_time)
}

/// Makes a timeline file and a summary: [`prepare`], and a transform behind it.
pub async fn run<'a>(
    steps: &ChildRunner,
    sandbox: &'a SandboxDir,
    recipe: Recipe,
    wanted: Wanted,
    until: impl Future<Output = ()>,
    mut begins: impl FnMut(Stage),
) -> Result<Products<'a>, Error> {
    let steps = match recipe.tools {
        Some(tools) => &steps.with_tools(tools),
        None => steps,
    };
    let until = until.shared();
    let tools = prepare(steps, sandbox, &recipe.steps, until.clone(), &mut begins).await?;
    begins(Stage::Transform);
    let job = Job {
        inputs: recipe.inputs,
        samples: wanted.samples,
        session_id: wanted.session_id,
        trim: false,
        captured: recipe.captured,
        device: wanted.device,
        others: 0,
        timeline: Some(sandbox.at(TIMELINE)),
        summary: sandbox.at(SUMMARY),
        fleet: wanted.fleet.map(|capture| FleetFiles {
            capture,
            rows: sandbox.at(ROWS),
        }),
    };
    let (summary, transform) = match steps.transform(sandbox, &job, until).await {
        Ok(transform) => (read_summary(sandbox.open(SUMMARY)?, &job.summary)?, transform),
        Err(error) => {
            let summary = whole_without_rows(sandbox, &job, &error);
            (summary.ok_or(Error::Transform(error))?, None)
        }
    };
    Ok(Products {
        sandbox,
        reports: recipe.reports,
        digest: status_summary(&summary),
        summary,
        processor_time: sum(tools, transform),
    })
}

/// The summary of a child that ended over the rows of the fleet: it makes them last, so that a
/// whole summary means that all else is there.
fn whole_without_rows(sandbox: &SandboxDir, job: &Job, error: &steps::Error) -> Option<Summary> {
    let ended = matches!(error, steps::Error::Failed { .. } | steps::Error::Deadline { .. });
    job.fleet.as_ref().filter(|_| ended)?;
    let summary = read_summary(sandbox.open(SUMMARY).ok()?, &job.summary).ok()?;
    warn!(error = %chain(error), "the transform ended over the rows of the fleet; what is published is whole");
    Some(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> PathBuf {
        PathBuf::from("/work").join(name)
    }

    #[test]
    fn what_an_import_makes_an_export_reads() {
        let (import, report) = nsys_import("/spool/capture.qdstrm".into(), 1, at);
        assert_eq!(report, at("capture.nsys-rep"));
        let raw = "/spool/capture.qdstrm".into();
        assert_eq!(
            import,
            ToolJob::Import {
                raw,
                report: report.clone(),
            }
        );
        let (step, export) = nsys_export(report.clone());
        assert_eq!(export, at("capture.h5"));
        assert_eq!(step, ToolJob::Export { report, export });
    }

    #[test]
    fn every_raw_capture_of_several_is_imported_into_a_report_of_its_own() {
        let raw = |number: u32| PathBuf::from(format!("/spool/{number}.qdstrm"));
        let (steps, reports) = nsys_imports([raw(1), raw(2)], at);
        assert_eq!(reports, [at("capture.nsys-rep"), at("capture.2.nsys-rep")]);
        let import = |number, report: &PathBuf| ToolJob::Import {
            raw: raw(number),
            report: report.clone(),
        };
        let [first, second] = reports.as_slice() else {
            panic!("{reports:?}");
        };
        assert_eq!(steps, [import(1, first), import(2, second)]);
    }
}
