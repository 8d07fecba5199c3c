//! Sessions of a cluster, by the library of the kubectl plugin: what is asked is what the plugin
//! asks, with the same rights.

mod analysis;
mod call;
mod failure;
mod file;
mod objects;
mod reach;
mod runtime;
mod timeline;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use flopwatch_api::artifact::TIMELINE;
use flopwatch_api::session::{ProfilingSession, StopMode};
use flopwatch_cli::analysis::CaptureAddress;
use flopwatch_cli::arguments::{CaptureName, ProfileArguments, ReachArguments, SessionName};
use flopwatch_cli::error::Error;
use flopwatch_cli::fetch::{Choice, FileAddress, Sparse, fetch, plan, session_with_captures};
use flopwatch_cli::follow::ended;
use flopwatch_cli::request::{Manifest, Template};
use flopwatch_cli::{ask, print, request};
use pyo3::prelude::*;

pub(crate) use call::Call;
pub(crate) use file::RemoteFile;
pub(crate) use timeline::RemoteCapture;

use self::failure::Failure;
use self::reach::Reach;
use crate::work;

/// A cluster, and who asks.
#[pyclass(frozen, module = "flopwatch._native")]
pub(crate) struct Client {
    reach: Arc<Reach>,
}

/// The file `name` of a capture, with its first bytes here.
async fn found(reach: &Reach, (session, capture): (&str, Option<&str>), name: &str) -> Result<Sparse, Failure> {
    let cluster = reach.cluster().await?;
    let (session, captures) = session_with_captures(&cluster, session).await?;
    let place = Arc::new(FileAddress::of(&session, &captures, capture, name)?);
    reach
        .ask(|gateway| {
            let place = FileAddress::clone(&place);
            async move { Sparse::find(&gateway, place, timeline::FIRST_READ_BYTES).await }
        })
        .await
}

/// A name with or without its kind.
fn named<T: FromStr<Err = String>>(py: Python<'_>, name: &str) -> PyResult<T> {
    let wrong = |reason| Failure::Request(format!("{name:?}: {reason}")).raised(py);
    name.parse().map_err(wrong)
}

/// What is to be profiled.
enum Profile {
    Whole(Box<ProfilingSession>),
    By(Box<ProfileArguments>, Option<Template>),
}

impl Profile {
    fn session(self, namespace: &str) -> ProfilingSession {
        match self {
            Self::Whole(session) => *session,
            Self::By(arguments, template) => request::session(&arguments, template, namespace),
        }
    }
}

/// What the words behind `profile` ask for, or a manifest.
fn wanted(mut words: Vec<String>, manifest: Option<Manifest>) -> Result<Profile, Error> {
    let template = match manifest {
        Some(Manifest::Session(session)) if words.is_empty() => return Ok(Profile::Whole(session)),
        Some(Manifest::Session(_)) => {
            return Err(Error::Usage(
                "the manifest of a session says all of it: give no options beside".to_owned(),
            ));
        }
        Some(Manifest::Pod(template)) => Some(template),
        None => None,
    };
    if template.is_some() {
        words.insert(0, "--template=-".to_owned());
    }
    let arguments = ProfileArguments::of_words(words)?;
    Ok(Profile::By(Box::new(arguments), template))
}

#[pymethods]
impl Client {
    /// With the options by which the plugin reaches a cluster and its gateway.
    #[new]
    fn new(py: Python<'_>, words: Vec<String>) -> PyResult<Self> {
        let arguments = ReachArguments::of_words(words).map_err(|error| Failure::from(error).raised(py))?;
        Ok(Self {
            reach: Arc::new(Reach::new(arguments)),
        })
    }

    /// Makes the session that the words behind `profile` ask for, or that of a manifest; gives it
    /// as JSON.
    #[pyo3(signature = (words, manifest = None, manifest_path = None))]
    fn run(&self, words: Vec<String>, manifest: Option<String>, manifest_path: Option<PathBuf>) -> PyResult<Call> {
        let reach = Arc::clone(&self.reach);
        Call::begin(|_reporter| async move {
            let manifest = match (manifest, manifest_path) {
                (Some(text), _) => Some(Manifest::parse(&text)?),
                (None, Some(path)) => Some(Manifest::read(&path)?),
                (None, None) => None,
            };
            // What cannot be asked for is said without a cluster.
            let profile = wanted(words, manifest)?;
            let cluster = reach.cluster().await?;
            let session = profile.session(&cluster.namespace);
            let made = ask::create(&cluster, &session, false).await?;
            objects::one(&made, &[])
        })
    }

    /// Sessions, the newest first, as JSON.
    fn sessions(&self, all_namespaces: bool, selector: Option<String>) -> PyResult<Call> {
        let reach = Arc::clone(&self.reach);
        Call::begin(|_reporter| async move {
            let cluster = reach.cluster().await?;
            let sessions = ask::list(&cluster, all_namespaces, selector.as_deref()).await?;
            let captures = ask::captures(&cluster, all_namespaces).await?;
            objects::all(&sessions, &captures)
        })
    }

    /// A session as JSON.
    fn session(&self, py: Python<'_>, name: &str) -> PyResult<Call> {
        let (reach, name) = (Arc::clone(&self.reach), named::<SessionName>(py, name)?.0);
        Call::begin(|_reporter| async move {
            let (session, captures) = session_with_captures(&reach.cluster().await?, &name).await?;
            objects::one(&session, &captures)
        })
    }

    /// Waits for the end of a session, `seconds` at most and 0 for ever; gives it as JSON.
    fn wait(&self, py: Python<'_>, name: &str, seconds: u32) -> PyResult<Call> {
        let (reach, name) = (Arc::clone(&self.reach), named::<SessionName>(py, name)?.0);
        Call::begin(|reporter| async move {
            let cluster = reach.cluster().await?;
            let progress = ended(&cluster, &name, seconds, |progress| {
                reporter.report(format!("{name}: {:>3} % {}", progress.percent, progress.message));
            });
            progress.await?.succeeded(&name)?;
            let (session, captures) = session_with_captures(&cluster, &name).await?;
            objects::one(&session, &captures)
        })
    }

    /// Ends a session that runs.
    fn stop(&self, py: Python<'_>, name: &str, discard: bool) -> PyResult<Call> {
        let (reach, name) = (Arc::clone(&self.reach), named::<SessionName>(py, name)?.0);
        let mode = if discard { StopMode::Discard } else { StopMode::Keep };
        Call::begin(|_reporter| async move { Ok(ask::stop(&reach.cluster().await?, &name, mode).await?) })
    }

    /// Fetches artifacts of a session to where the plugin's `--output` would have them; gives where
    /// they are.
    #[pyo3(signature = (name, output, *, capture, artifacts, overwrite))]
    fn fetch(
        &self,
        py: Python<'_>,
        name: &str,
        output: Option<PathBuf>,
        capture: Option<String>,
        artifacts: Vec<String>,
        overwrite: bool,
    ) -> PyResult<Call> {
        let (reach, name) = (Arc::clone(&self.reach), named::<SessionName>(py, name)?.0);
        Call::begin(|reporter| async move {
            let cluster = reach.cluster().await?;
            let (session, captures) = session_with_captures(&cluster, &name).await?;
            let choice = Choice {
                capture: capture.as_deref(),
                artifacts: &artifacts,
                output: output.as_deref(),
            };
            let wanted = plan(&session, &captures, &choice, std::path::Path::is_dir)?;
            let mut paths = Vec::with_capacity(wanted.len());
            for wanted in wanted {
                paths.push(wanted.to.clone());
                let (wanted, size) = (Arc::new(wanted.clone()), print::bytes(wanted.bytes));
                let fetched = reach.ask(|gateway| {
                    let (wanted, reporter, size) = (Arc::clone(&wanted), reporter.clone(), size.clone());
                    async move {
                        let on_progress = |here: u64| {
                            reporter.report(format!("{}: {} of {size}", wanted.name, print::bytes(here)));
                        };
                        fetch(&gateway, &wanted, overwrite, &on_progress).await
                    }
                });
                fetched.await?;
            }
            Ok(paths)
        })
    }

    /// Runs an analysis of captures at the gateway. Further ones are `SESSION` or
    /// `SESSION/CAPTURE`.
    #[pyo3(signature = (name, analysis, parameters, *, capture, others, format))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
    fn analyze(
        &self,
        py: Python<'_>,
        name: &str,
        analysis: &str,
        parameters: &str,
        capture: Option<&str>,
        others: Vec<String>,
        format: Option<&str>,
    ) -> PyResult<Call> {
        let (reach, name) = (Arc::clone(&self.reach), named::<SessionName>(py, name)?.0);
        let capture = capture.map(|capture| named::<CaptureName>(py, capture)).transpose()?;
        let mut further = Vec::with_capacity(others.len());
        for other in others {
            further.push(match other.rsplit_once('/') {
                Some((session, capture)) => (
                    named::<SessionName>(py, session)?.0,
                    Some(named::<CaptureName>(py, capture)?.0),
                ),
                None => (named::<SessionName>(py, &other)?.0, None),
            });
        }
        let asked = analysis::CheckedRequest::new(analysis, parameters, format)?;
        Call::begin(|_reporter| async move {
            let cluster = reach.cluster().await?;
            let place = CaptureAddress::find(&cluster, &name, capture.map(|capture| capture.0)).await?;
            let mut places = Vec::with_capacity(further.len());
            for (session, capture) in further {
                places.push(CaptureAddress::find(&cluster, &session, capture).await?);
            }
            asked.of(&reach, &place, &places).await
        })
    }

    /// Finds a file of a capture.
    #[pyo3(signature = (name, artifact, *, capture))]
    fn file(&self, py: Python<'_>, name: &str, artifact: String, capture: Option<String>) -> PyResult<Call> {
        let (reach, name) = (Arc::clone(&self.reach), named::<SessionName>(py, name)?.0);
        Call::begin(|_reporter| async move {
            let sparse = found(&reach, (&name, capture.as_deref()), &artifact).await?;
            Ok(RemoteFile::new(reach, Arc::new(sparse)))
        })
    }

    /// Opens the timeline of a capture where it is.
    #[pyo3(signature = (name, *, capture))]
    fn open(&self, py: Python<'_>, name: &str, capture: Option<String>) -> PyResult<Call> {
        let (reach, name) = (Arc::clone(&self.reach), named::<SessionName>(py, name)?.0);
        let pool = work::pool()?;
        Call::begin(|_reporter| async move {
            let sparse = found(&reach, (&name, capture.as_deref()), TIMELINE).await?;
            RemoteCapture::open(reach, sparse, pool).await
        })
    }
}
