//! A file that was read, and what can be made of it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flopwatch_analysis::{AnalysisError as Failed, Input, Listing, Report, Request};
use flopwatch_model::{Category, Events, Timeline};
use flopwatch_report::Format;
use flopwatch_summary::summarise;
use flopwatch_trace::convert::LOCAL_SESSION;
use flopwatch_trace::timeline_file;
use flopwatch_trace::transform::{TransformOptions, transform};
use pyo3::exceptions::PyFileExistsError;
use pyo3::prelude::*;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::errors::{AnalysisError, FlopwatchError, ReadError, RequestError, WriteError};
use super::events;
use super::foreign::{self, Cancel, ForeignFile, Start};
use super::result::Outcome;
use super::table::Table;
use super::work;

/// A capture in memory. It does not change.
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct Capture {
    timeline: Arc<Timeline>,
    /// Protections that the child lacked which read it.
    missing: Vec<String>,
}

/// Reads a file of any format that the engine knows: in a child that is started so, or without one
/// in this process. `tick` is called some twenty times a second meanwhile.
#[pyfunction]
#[pyo3(signature = (path, tick = None, child = None))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    tick: Option<&Bound<'_, PyAny>>,
    child: Option<Start>,
) -> PyResult<Capture> {
    let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    read(py, path, tick, child, |ForeignFile { opened, missing }| {
        let session_id = opened.session_id.or(file_name);
        let session_id = session_id.unwrap_or_else(|| LOCAL_SESSION.to_owned());
        let timeline = transform(opened.capture, TransformOptions { session_id });
        Capture {
            timeline: Arc::new(timeline),
            missing,
        }
    })
}

/// Makes a timeline file of a file of any format; gives its summary as JSON, and the protections
/// that the child lacked.
#[pyfunction]
#[pyo3(signature = (source, target, overwrite = false, tick = None, child = None))]
pub(crate) fn convert(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    overwrite: bool,
    tick: Option<&Bound<'_, PyAny>>,
    child: Option<Start>,
) -> PyResult<(String, Vec<String>)> {
    let exists = PyFileExistsError::new_err(format!("{}: is there already", target.display()));
    if is_in_the_way(&target, overwrite) {
        return Err(exists);
    }
    let write = move |ForeignFile { opened, missing }| -> Result<_, timeline_file::WriteError> {
        let session_id = opened.session_id.unwrap_or_else(|| LOCAL_SESSION.to_owned());
        let timeline = transform(opened.capture, TransformOptions { session_id });
        // The work took a while.
        if is_in_the_way(&target, overwrite) {
            return Ok(None);
        }
        let summary = timeline_file::write_unsynced(&timeline, &target)?;
        Ok(Some((summary, missing)))
    };
    let made = read(py, source, tick, child, write)?;
    let made = made.map_err(|error| WriteError::new_err(error.to_string()))?;
    let (summary, missing) = made.ok_or(exists)?;
    let json = summary
        .to_json()
        .map_err(|error| AnalysisError::new_err(error.to_string()))?;
    Ok((json, missing))
}

fn is_in_the_way(target: &Path, overwrite: bool) -> bool {
    !overwrite && target.symlink_metadata().is_ok()
}

/// Reads a file and makes something of it.
fn read<T: Send + 'static>(
    py: Python<'_>,
    path: PathBuf,
    tick: Option<&Bound<'_, PyAny>>,
    child: Option<Start>,
    make: impl FnOnce(ForeignFile) -> T + Send + 'static,
) -> PyResult<T> {
    let read = match child {
        None => work::run(py, tick, move || foreign::trusted(&path).map(make)),
        Some(start) => {
            let cancel = Cancel::new()?;
            let waiting = cancel.clone();
            let read = work::run(py, tick, move || foreign::open(&path, &start, &cancel).map(make));
            // Where nobody waits any longer, the child ends, and with it the work.
            waiting.now();
            read
        }
    };
    read?.map_err(ReadError::new_err)
}

/// The catalogue of analyses as JSON.
#[pyfunction]
pub(crate) fn catalogue() -> PyResult<String> {
    serde_json::to_string(&Listing::all()).map_err(|error| FlopwatchError::new_err(error.to_string()))
}

/// Runs an analysis of the catalogue on captures. `parameters` is a JSON object; `format` one of
/// the analysis's.
#[pyfunction]
#[pyo3(signature = (captures, name, parameters, format = None, tick = None))]
pub(crate) fn analyze(
    py: Python<'_>,
    captures: Vec<PyRef<'_, Capture>>,
    name: &str,
    parameters: &str,
    format: Option<&str>,
    tick: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let request = requested(name, parameters, format)?;
    let tabular = (request.format() == Format::Json)
        .then(|| request.definition().tabular())
        .flatten();
    let timelines = timelines(captures);
    let made = work::run(py, tick, move || {
        let mut content = Vec::new();
        let inputs: Vec<Input<'_>> = timelines.iter().map(|timeline| Input::whole(timeline)).collect();
        let report = request.run(&inputs, &mut content)?;
        Ok((content, report))
    })?;
    let (content, report) = made.map_err(|error: Failed| AnalysisError::new_err(error.to_string()))?;
    Ok(Outcome::new(content, report, tabular))
}

/// The same, with the result in the file `target`, which appears whole or not at all.
#[pyfunction]
#[pyo3(signature = (captures, name, parameters, target, *, format = None, overwrite = false, tick = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn analyze_to(
    py: Python<'_>,
    captures: Vec<PyRef<'_, Capture>>,
    name: &str,
    parameters: &str,
    target: PathBuf,
    format: Option<&str>,
    overwrite: bool,
    tick: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let request = requested(name, parameters, format)?;
    let timelines = timelines(captures);
    let made = work::run(py, tick, move || {
        let inputs: Vec<Input<'_>> = timelines.iter().map(|timeline| Input::whole(timeline)).collect();
        into_file(&request, &inputs, &target, overwrite)
    })?;
    let report = made.map_err(|error| match error {
        ExportFailure::Analysis(error) => AnalysisError::new_err(error.to_string()),
        ExportFailure::Exists(target) => PyFileExistsError::new_err(format!("{}: is there already", target.display())),
        ExportFailure::Write(target, error) => WriteError::new_err(format!("{}: {error}", target.display())),
    })?;
    Ok(Outcome::new(Vec::new(), report, None))
}

pub(crate) fn requested(name: &str, parameters: &str, format: Option<&str>) -> PyResult<Request> {
    let refused = |error: String| RequestError::new_err(error);
    let parameters: Value = serde_json::from_str(parameters).map_err(|error| refused(error.to_string()))?;
    let request = Request::parse(name, &parameters).map_err(|error| refused(error.to_string()))?;
    let Some(format) = format else { return Ok(request) };
    let known = Format::from_name(format).ok_or_else(|| refused(format!("there is no format {format:?}")))?;
    request.written_as(known).map_err(|error| refused(error.to_string()))
}

fn timelines(captures: Vec<PyRef<'_, Capture>>) -> Vec<Arc<Timeline>> {
    captures
        .into_iter()
        .map(|capture| Arc::clone(&capture.timeline))
        .collect()
}

/// Why a result is not there.
enum ExportFailure {
    Analysis(Failed),
    Exists(PathBuf),
    Write(PathBuf, std::io::Error),
}

fn into_file(request: &Request, inputs: &[Input<'_>], target: &Path, overwrite: bool) -> Result<Report, ExportFailure> {
    let write = |error| ExportFailure::Write(target.to_owned(), error);
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let exists = || ExportFailure::Exists(target.to_owned());
    if is_in_the_way(target, overwrite) {
        return Err(exists());
    }
    let mut file = NamedTempFile::with_prefix_in(".flopwatch-", folder).map_err(write)?;
    let report = request.run(inputs, &mut file).map_err(ExportFailure::Analysis)?;
    file.flush().map_err(write)?;
    let kept = if overwrite {
        file.persist(target)
    } else {
        // The work took a while.
        file.persist_noclobber(target)
    };
    match kept {
        Ok(_) => Ok(report),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists()),
        Err(error) => Err(write(error.error)),
    }
}

/// The category of that name, if it was captured.
pub(crate) fn category(name: &str, is_captured: impl FnOnce(&Category) -> bool) -> PyResult<Category> {
    let known = Category::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Category::ALL.iter().copied().map(Category::name).collect();
        RequestError::new_err(format!("there is no category {name:?}; there are {}", names.join(", ")))
    })?;
    if is_captured(&known) {
        Ok(known)
    } else {
        Err(RequestError::new_err(format!("the capture did not record {name}")))
    }
}

#[pymethods]
impl Capture {
    /// The session that the file names, else the file's own name.
    #[getter]
    fn session_id(&self) -> &str {
        &self.timeline.session_id
    }

    /// Protections that the process lacked which read it; none where that was this one.
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }

    /// Length of the window in ns.
    #[getter]
    fn duration_ns(&self) -> u64 {
        self.timeline.capture.duration_ns
    }

    /// Events by category, of those that were captured.
    #[getter]
    fn categories(&self) -> BTreeMap<&'static str, usize> {
        let capture = &self.timeline.capture;
        let captured = Category::ALL
            .iter()
            .copied()
            .filter(|category| capture.captured.contains(category));
        captured
            .map(|category| (category.name(), capture.events.get(&category).map_or(0, Events::len)))
            .collect()
    }

    /// The events of a category as a table.
    fn events(&self, py: Python<'_>, category: &str) -> PyResult<Table> {
        let captured = &self.timeline.capture.captured;
        let known = self::category(category, |known| captured.contains(known))?;
        let timeline = Arc::clone(&self.timeline);
        Table::of(py.detach(|| events::of(&timeline, known)))
    }

    /// The rows that events lie on: streams and threads.
    fn rows(&self) -> PyResult<Table> {
        Table::of(events::rows(&self.timeline))
    }

    /// The summary as JSON.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        let timeline = Arc::clone(&self.timeline);
        let summary = work::run(py, None, move || summarise(&timeline).to_json())?;
        summary.map_err(|error| AnalysisError::new_err(error.to_string()))
    }

    /// Writes the capture as a timeline file, which appears whole or not at all.
    #[pyo3(signature = (target, overwrite = false))]
    fn save(&self, py: Python<'_>, target: PathBuf, overwrite: bool) -> PyResult<()> {
        if is_in_the_way(&target, overwrite) {
            return Err(PyFileExistsError::new_err(format!(
                "{}: is there already",
                target.display()
            )));
        }
        let timeline = Arc::clone(&self.timeline);
        let written = work::run(py, None, move || timeline_file::write_unsynced(&timeline, &target))?;
        written
            .map(drop)
            .map_err(|error| WriteError::new_err(error.to_string()))
    }

    /// Writes the capture as a timeline file into the file `target`, which is there and may be a
    /// link to one without a name.
    fn overwrite(&self, py: Python<'_>, target: PathBuf) -> PyResult<()> {
        let timeline = Arc::clone(&self.timeline);
        let written = work::run(py, None, move || timeline_file::overwrite(&timeline, &target))?;
        written.map_err(|error| WriteError::new_err(error.to_string()))
    }
}
