//! Nsight Systems around the command: a session that collects before the command starts.

use std::future::pending;
use std::path::Path;
use std::time::Duration;

use flopwatch_api::profiler::{NsysOptions, TraceCategory};
use flopwatch_attach::nsys::HostTools;
use flopwatch_pipeline::nsys_options;
use flopwatch_pipeline::transform::Samples;
use tokio::sync::mpsc::channel;
use tokio::time::Instant;

use super::command::{Running, Started, Window, watch};
use super::kept::Kept;
use super::session::{Captured, Error as SessionError, Session};
use super::{Error, Options};
use crate::progress::Progress;

/// A session that outlives its window by this much ends itself.
const SESSION_GRACE: Duration = Duration::from_mins(10);
/// How often a session is begun.
const MAX_ATTEMPTS: u32 = 3;
/// Longest time after which it is begun once more: who records waits for the command.
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Records the command, with the session's files under `spool`.
pub(super) async fn collect(
    options: &Options,
    tools: &HostTools,
    (program, session_id): (&Path, &str),
    spool: &Path,
    window: Window,
    progress: &mut Progress,
) -> Result<(Captured, Running, Samples), Error> {
    let trace = options.manifest.trace();
    let requested = options.manifest.spec.profiler.nsys.clone().unwrap_or_default();
    progress.stage("starting the profiler's session");
    let name = format!("flopwatch-{session_id}");
    let mut session = open(tools, &name, (&trace, &requested), spool, window.length).await?;
    let collected = collect_with(options, program, &session, window, progress).await;
    progress.stage("ending the profiler's session");
    session.end().await;
    collected.map_err(|error| missed(error, &requested))
}

/// That there is no capture of a range means that the range did not come.
fn missed(error: Error, requested: &NsysOptions) -> Error {
    match (&error, &requested.capture_range) {
        (Error::Session(SessionError::NoCapture(_)), Some(range)) => {
            Error::RangeMissed(nsys_options::missed(range, range.name.as_deref(), "").message)
        }
        _ => error,
    }
}

/// A session that collects. On a busy machine one may be lost at its start or between that and the
/// collection; the command does not run yet, so another is begun.
async fn open(
    tools: &HostTools,
    name: &str,
    traced: (&[TraceCategory], &NsysOptions),
    spool: &Path,
    window: Duration,
) -> Result<Session, SessionError> {
    let began = Instant::now();
    let mut attempt = 1;
    loop {
        let name = format!("{name}-{attempt}");
        let folder = spool.join(&name);
        std::fs::create_dir_all(&folder).map_err(|source| SessionError::Io {
            what: format!("{} cannot be created", folder.display()),
            source,
        })?;
        let error = match Session::start(tools, &name, traced, &folder, window + SESSION_GRACE).await {
            Ok(mut session) => match session.collect(window, nsys_options::collection(traced.1)).await {
                Ok(()) => return Ok(session),
                Err(error) => {
                    session.end().await;
                    error
                }
            },
            Err(error) => error,
        };
        if attempt == MAX_ATTEMPTS || began.elapsed() >= MAX_RETRY_INTERVAL {
            return Err(error);
        }
        tracing::debug!(%error, attempt, "the profiler's session was lost before it collected");
        attempt += 1;
    }
}

/// Runs the command while the session collects: it is recorded from its first instruction on.
async fn collect_with(
    options: &Options,
    program: &Path,
    session: &Session,
    window: Window,
    progress: &mut Progress,
) -> Result<(Captured, Running, Samples), Error> {
    let (kept, fallback) = Kept::with_fallback()?;
    let started = Started {
        program,
        environment: session.environment(&fallback)?,
        kept,
    };
    // The session says what it has to say at its end.
    let (_, mut silent) = channel(1);
    let (watched, _) = watch(options, started, window, progress, pending::<()>(), &mut silent).await?;
    progress.stage("stopping the collection");
    let captured = session.stop().await?;
    let (command, samples) = watched.finish();
    Ok((captured, command, samples))
}
