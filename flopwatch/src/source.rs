//! `convert`, `analyze`, `export` and `summary`: any file that is read, on the command line. The
//! file is foreign: what reads it are children in a sandbox with a deadline, in a folder of their
//! own that goes with the outcome.

use std::collections::BTreeSet;
use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flopwatch_analysis::{Part, Request, RequestError};
use flopwatch_api::artifact::{REPORT, STREAM};
use flopwatch_api::session::TransformDevice;
use flopwatch_attach::nsys::HostTools;
use flopwatch_attach::sandbox::product::ProductError;
use flopwatch_pipeline::analysis::{self, Report};
use flopwatch_pipeline::products::{self, Recipe, Stage, Wanted, nsys_export, nsys_import};
use flopwatch_pipeline::sandbox_dir::{self, SandboxDir};
use flopwatch_pipeline::steps::{self, ChildRunner, Limits};
use flopwatch_pipeline::tools;
use flopwatch_pipeline::transform;
use flopwatch_summary::Summary;
use flopwatch_trace::{Format, Version, nsys_report};
use tempfile::TempDir;

use crate::progress::Progress;

/// A file to read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path of the capture.
    pub file: PathBuf,
    /// The session's identifier; by default that of the file.
    pub session_id: Option<String>,
    /// Whether reports of Nsight Systems are read through an export by its own tools.
    pub nsys_export: bool,
    /// The Nsight Systems for raw captures and exports, or why there is none.
    pub tools: Result<HostTools, tools::Error>,
    /// NVIDIA's disassembler for machine code, where there is one.
    pub disassembler: Option<PathBuf>,
    /// Longest time for each step.
    pub limit: Duration,
    /// Say nothing meanwhile.
    pub quiet: bool,
}

/// Why a file could not be read or converted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source or our own files cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file that could not be read or written.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The source is a folder.
    #[error(transparent)]
    Folder(Box<flopwatch_trace::ReadError>),
    /// The source is no file.
    #[error("{0}: is no file")]
    NoFile(PathBuf),
    /// No file is named.
    #[error("name a file to analyze")]
    NoSource,
    /// The name of the output promises another format.
    #[error("{0}: what is written is a timeline file (HDF5): give it a name that ends in .h5; `summary` gives tables")]
    NotHdf5(PathBuf),
    /// Something is at the output already.
    #[error("{0}: is there already; --force replaces it")]
    Exists(PathBuf),
    /// The output is the source.
    #[error("{0}: is the source itself")]
    Itself(PathBuf),
    /// A raw capture, or a report that is to be exported, and no Nsight Systems for it.
    #[error(
        "{path}: made by Nsight Systems {report}; {work} needs its own tools, and {missing}: install {wanted} \
         ({}) and name its nsys with --nsys or FLOPWATCH_NSYS",
        tools::HOME
    )]
    NoTools {
        /// File that was given.
        path: PathBuf,
        /// What cannot be done.
        work: &'static str,
        /// The version that made it.
        report: String,
        /// What is missing.
        missing: String,
        /// The versions that read it.
        wanted: String,
    },
    /// The file is newer than the profiler that would have to import or export it.
    #[error(
        "{path}: made by Nsight Systems {report}, which is newer than the installed {installed}: install {wanted} and name \
         its nsys with --nsys"
    )]
    Newer {
        /// File that was given.
        path: PathBuf,
        /// The version that made it.
        report: Version,
        /// The version that is installed.
        installed: Version,
        /// The versions that read it.
        wanted: String,
    },
    /// The installed profiler could not import or export the file, though it is not older than it.
    #[error("{path}: made by Nsight Systems {report}, and the installed {installed} cannot read it: {message}")]
    Refused {
        /// File that was given.
        path: PathBuf,
        /// The version that made it.
        report: String,
        /// The version that is installed.
        installed: String,
        /// Message of the profiler's importer or exporter.
        message: String,
    },
    /// What the child that read the file says.
    #[error("{0}")]
    Unreadable(String),
    /// The files could not be made.
    #[error(transparent)]
    Pipeline(#[from] products::Error),
    /// The profiler does not say its version.
    #[error(transparent)]
    Version(#[from] steps::Error),
    /// There is no folder for the children.
    #[error(transparent)]
    SandboxDir(#[from] sandbox_dir::Error),
    /// What a child made is not taken.
    #[error(transparent)]
    Product(#[from] ProductError),
    /// The child's report cannot be read.
    #[error(transparent)]
    Analysis(#[from] analysis::Error),
    /// More or fewer captures were named than the analysis is made of.
    #[error("{name} is made of {wanted}, not of {found}")]
    Inputs {
        /// Name of the analysis.
        name: &'static str,
        /// How many it is made of.
        wanted: &'static str,
        /// How many there were.
        found: usize,
    },
    /// The analysis or its parameters are none.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The child's summary cannot be read.
    #[error(transparent)]
    Transform(#[from] transform::Error),
}

fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}

/// The error of what has a temporary name, without that name, which says nothing to anybody.
pub(crate) fn unnamed(error: io::Error) -> io::Error {
    let text = error.to_string();
    // As the crate `tempfile` writes where it failed.
    match text.split_once(" at path ") {
        Some((why, _)) => io::Error::new(error.kind(), why),
        None => error,
    }
}

/// The summary of a file. `until` ends the work early.
pub async fn summary(source: &Source, until: impl Future<Output = ()>) -> Result<Summary, Error> {
    let (summary, _parts) = contents(source, until).await?;
    Ok(summary)
}

/// The summary of a file, and what it holds beside its events. `until` ends the work early.
pub async fn contents(source: &Source, until: impl Future<Output = ()>) -> Result<(Summary, Vec<Part>), Error> {
    let request = Request::parse(flopwatch_summary::NAME, &serde_json::Value::Null)?;
    let (result, report) = analyze(std::slice::from_ref(source), &request, until).await?;
    let summary = Summary {
        transformed_on: report.transformed_on,
        ..transform::read_summary(result, &source.file)?
    };
    Ok((summary, report.parts))
}

/// The result of an analysis of files, which the first one says how to read. `until` ends the work
/// early.
pub async fn analyze(
    sources: &[Source],
    request: &Request,
    until: impl Future<Output = ()>,
) -> Result<(File, Report), Error> {
    let work = tempfile::tempdir()
        .map_err(unnamed)
        .map_err(io(&std::env::temp_dir()))?;
    let mut progress = Progress::new(sources.iter().any(|source| source.quiet));
    analyzed(sources, &work, request, &mut progress, until).await
}

/// Makes a timeline file of a file, whole or not at all, and gives its summary. `until` ends the
/// work early.
pub async fn convert(
    source: &Source,
    output: &Path,
    force: bool,
    until: impl Future<Output = ()>,
) -> Result<Summary, Error> {
    let named = output.extension().and_then(|extension| extension.to_str());
    if !named.is_some_and(|named| ["h5", "hdf5"].contains(&named)) {
        return Err(Error::NotHdf5(output.to_owned()));
    }
    let mut target = Target::open(std::slice::from_ref(source), output, force)?;
    let (file, summary) = converted(source, &target.work, &mut target.progress, until).await?;
    target.publish(file, summary.total_events)?;
    Ok(summary)
}

/// Writes the result of an analysis of files to a file, whole or not at all. `until` ends the work
/// early.
pub async fn analyze_to(
    sources: &[Source],
    request: &Request,
    output: &Path,
    force: bool,
    until: impl Future<Output = ()>,
) -> Result<Report, Error> {
    let mut target = Target::open(sources, output, force)?;
    let (file, report) = analyzed(sources, &target.work, request, &mut target.progress, until).await?;
    target.publish(file, report.total_events)?;
    Ok(report)
}

/// Where an output goes.
struct Target<'a> {
    output: &'a Path,
    force: bool,
    work: TempDir,
    begin: Instant,
    progress: Progress,
}

impl<'a> Target<'a> {
    /// Refuses an output as [`check_output`] does. Where it goes there must be room for it, and a
    /// right to write: that is found out before the work.
    fn open(sources: &[Source], output: &'a Path, force: bool) -> Result<Self, Error> {
        check_output(sources, output, force)?;
        let folder = folder_of(output);
        let work = tempfile::Builder::new().prefix(".flopwatch-").tempdir_in(folder);
        Ok(Self {
            output,
            force,
            work: work.map_err(unnamed).map_err(io(folder))?,
            begin: Instant::now(),
            progress: Progress::new(sources.iter().any(|source| source.quiet)),
        })
    }

    fn publish(mut self, made: File, events: u64) -> Result<(), Error> {
        self.progress.stage("writing the output");
        publish(made, self.output, self.force)?;
        let took = self.begin.elapsed().as_secs_f64();
        self.progress.stage(&format!("{events} events in {took:.1} s"));
        self.progress.clear();
        Ok(())
    }
}

/// Refuses an output that is a source, and unless `force` is set one that is there.
pub(crate) fn check_output(sources: &[Source], output: &Path, force: bool) -> Result<(), Error> {
    if !force && output.symlink_metadata().is_ok() {
        return Err(Error::Exists(output.to_owned()));
    }
    let same = |one: &Path, other: &Path| one.canonicalize().ok().zip(other.canonicalize().ok());
    let is_source = |source: &Source| same(&source.file, output).is_some_and(|(one, other)| one == other);
    if sources.iter().any(is_source) {
        return Err(Error::Itself(output.to_owned()));
    }
    Ok(())
}

fn folder_of(output: &Path) -> &Path {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Copies what is finished to a name beside the output, and renames it.
pub(crate) fn publish(mut made: impl io::Read, output: &Path, force: bool) -> Result<(), Error> {
    let folder = folder_of(output);
    let mut temporary = tempfile::Builder::new()
        .prefix(".flopwatch-")
        // The umask takes from this what the user wants taken.
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(unnamed)
        .map_err(io(folder))?;
    io::copy(&mut made, temporary.as_file_mut())
        .and_then(|_bytes| temporary.as_file_mut().flush())
        .and_then(|()| temporary.as_file().sync_all())
        .map_err(io(output))?;
    let kept = if force {
        temporary.persist(output)
    } else {
        temporary.persist_noclobber(output)
    };
    kept.map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists(output.to_owned()),
        _ => io(output)(error.error),
    })?;
    Ok(())
}

/// The timeline file of a file, and its summary.
async fn converted(
    source: &Source,
    work: &TempDir,
    progress: &mut Progress,
    until: impl Future<Output = ()>,
) -> Result<(File, Summary), Error> {
    let steps = steps_for(source)?;
    // One wait for all steps: the first that it ends is the last one.
    let mut until = std::pin::pin!(until);
    let place = SandboxDir::make(work.path().join(sandbox_dir::NAME), &steps.limits().users)?;
    let input = readable(source, &steps, &place, "", progress, &mut until).await?;
    let recipe = Recipe {
        inputs: vec![input],
        ..Recipe::default()
    };
    let wanted = Wanted {
        samples: None,
        session_id: source.session_id.clone(),
        device: TransformDevice::Auto,
        fleet: None,
    };
    let begins = |_stage| progress.stage("reading and transforming");
    let products = products::run(&steps, &place, recipe, wanted, &mut until, begins).await;
    let products = products.map_err(own_words)?;
    Ok((products.timeline()?, products.summary))
}

/// The result of an analysis, and what its child says of it.
async fn analyzed(
    sources: &[Source],
    work: &TempDir,
    request: &Request,
    progress: &mut Progress,
    until: impl Future<Output = ()>,
) -> Result<(File, Report), Error> {
    let first = sources.first().ok_or(Error::NoSource)?;
    let definition = request.definition();
    if !definition.inputs.accepts(sources.len()) {
        return Err(Error::Inputs {
            name: definition.name,
            wanted: definition.inputs.as_str(),
            found: sources.len(),
        });
    }
    let steps = steps_for(first)?;
    let mut until = std::pin::pin!(until);
    let place = SandboxDir::make(work.path().join(sandbox_dir::NAME), &steps.limits().users)?;
    let mut inputs = Vec::new();
    for (number, source) in sources.iter().enumerate() {
        let before = if number == 0 {
            String::new()
        } else {
            format!("{number}-")
        };
        inputs.push(readable(source, &steps, &place, &before, progress, &mut until).await?);
    }
    progress.stage("reading and analyzing");
    let result = "result";
    let job = analysis::Job {
        request: request.clone(),
        inputs,
        names: names(sources),
        device: TransformDevice::Auto,
        others: 0,
        output: place.at(result),
    };
    let analyzed = steps.analyze(&place, &job, &mut until).await;
    analyzed.map_err(|error| own_words(products::Error::Transform(error)))?;
    let report = place.open(&job.report().file_name().unwrap_or_default().to_string_lossy())?;
    Ok((place.open(result)?, job.read_report(report)?))
}

/// What people call the captures: their files' names, or the paths where a name is that of two.
fn names(sources: &[Source]) -> Vec<String> {
    let files = sources.iter().map(|source| source.file.file_name().unwrap_or_default());
    let distinct: BTreeSet<_> = files.clone().collect();
    if distinct.len() == sources.len() {
        return files.map(|name| name.to_string_lossy().into_owned()).collect();
    }
    let paths = sources.iter().map(|source| source.file.to_string_lossy().into_owned());
    paths.collect()
}

fn steps_for(source: &Source) -> Result<ChildRunner, Error> {
    let own = std::env::current_exe().map_err(io(Path::new("/proc/self/exe")))?;
    let limits = Limits {
        import: source.limit,
        transform: source.limit,
        ..Limits::default()
    };
    let steps = ChildRunner::new(own, source.tools.clone().ok(), limits);
    Ok(steps.with_disassembler(source.disassembler.clone()))
}

/// The file itself, or what its profiler's own tools make of it in `place`, under names that begin
/// with `before`: of a raw capture a report, and of a report an export where one was asked for.
async fn readable(
    source: &Source,
    steps: &ChildRunner,
    place: &SandboxDir,
    before: &str,
    progress: &mut Progress,
    until: &mut (impl Future<Output = ()> + Unpin),
) -> Result<PathBuf, Error> {
    let file = source.file.canonicalize().map_err(io(&source.file))?;
    if file.is_dir() {
        let error = flopwatch_trace::ReadError::of_folder(source.file.clone());
        return Err(Error::Folder(Box::new(error)));
    }
    if !file.is_file() {
        return Err(Error::NoFile(source.file.clone()));
    }
    let format = match flopwatch_trace::detect(&file).map_err(io(&source.file))? {
        Some(format @ Format::NsysStream) => format,
        Some(format @ Format::NsysReport) if source.nsys_export => format,
        _ => return Ok(file),
    };
    if let Err(error) = &source.tools {
        let report = nsys_report::version(&file).map_err(io(&source.file))?;
        return Err(Error::NoTools {
            path: source.file.clone(),
            work: work(format),
            report: text(report),
            missing: error.missing(),
            wanted: wanted(report, format),
        });
    }
    let versions = Versions::of(&file, format, steps).await?;
    versions.check(&source.file)?;
    let at = |name: &str| place.at(&format!("{before}{name}"));
    let is_raw = format == Format::NsysStream;
    // The tools write beside what they read.
    let mut made = at(if is_raw { STREAM } else { REPORT });
    std::fs::copy(&file, &made).map_err(io(&source.file))?;
    let mut tools = Vec::new();
    if is_raw {
        let (import, report) = nsys_import(made, 1, at);
        tools.push(import);
        made = report;
    }
    if source.nsys_export {
        let (step, export) = nsys_export(made);
        tools.push(step);
        made = export;
    }
    let begins = |stage| {
        progress.stage(match stage {
            Stage::Import => "importing the capture",
            Stage::Export | Stage::Transform => "exporting the report",
        });
    };
    let prepared = products::prepare(steps, place, &tools, until, begins).await;
    prepared.map_err(|error| versions.explain(&source.file, error))?;
    Ok(made)
}

/// A child of ours says in its last line what is wrong with the file: that is the error, and not
/// how the child ended.
fn own_words(error: products::Error) -> Error {
    match error {
        products::Error::Transform(steps::Error::Failed { how, message, .. })
            if how == "exit code 1" && !message.is_empty() =>
        {
            Error::Unreadable(message.trim_start_matches("flopwatch: ").to_owned())
        }
        other => Error::Pipeline(other),
    }
}

/// A version for messages, known or not.
fn text(version: Option<Version>) -> String {
    version.map_or_else(|| "of unknown version".to_owned(), |version| version.to_string())
}

/// What needs the profiler's own tools.
const fn work(format: Format) -> &'static str {
    match format {
        Format::NsysStream => "the import of a raw capture",
        _ => "--nsys-export",
    }
}

/// The versions that read what `report` made: of a raw capture an importer of the same one.
fn wanted(report: Option<Version>, format: Format) -> String {
    let is_raw = format == Format::NsysStream;
    match report {
        Some(report) if is_raw => report.to_string(),
        Some(report) => format!("{report} or newer"),
        None if is_raw => "the version that made it".to_owned(),
        None => "the version that made it, or a newer one".to_owned(),
    }
}

/// The version that made a report or a raw capture, where it tells, and the installed one.
struct Versions {
    report: Option<Version>,
    installed: Option<Version>,
    format: Format,
}

impl Versions {
    async fn of(report: &Path, format: Format, steps: &ChildRunner) -> Result<Self, Error> {
        let installed = match steps.version().await {
            Ok(message) => Version::parse(&message),
            Err(steps::Error::NoVersion { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            report: nsys_report::version(report).map_err(io(report))?,
            installed,
            format,
        })
    }

    fn check(&self, path: &Path) -> Result<(), Error> {
        match (self.report, self.installed) {
            (Some(report), Some(installed)) if installed.is_older_than(report) => Err(Error::Newer {
                path: path.to_owned(),
                report,
                installed,
                wanted: wanted(self.report, self.format),
            }),
            _ => Ok(()),
        }
    }

    fn explain(&self, path: &Path, error: products::Error) -> Error {
        let products::Error::Import(steps::Error::Failed { message, .. }) = error else {
            return Error::Pipeline(error);
        };
        Error::Refused {
            path: path.to_owned(),
            report: text(self.report),
            installed: text(self.installed),
            message,
        }
    }
}
