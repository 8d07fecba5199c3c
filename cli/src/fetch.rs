//! Fetches artifacts of a session through the gateway: resumed where it broke off, checked by
//! SHA-256, whole or not at all.

mod byte_ranges;
mod plan;
mod ranges;
mod sparse;
mod transfer;

use std::path::PathBuf;
use std::time::Duration;

use flopwatch_api::SESSION_LABEL;
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use indicatif::{ProgressBar, ProgressStyle};
use kube::ResourceExt;
use kube::api::Api;

use crate::arguments::FetchArguments;
use crate::ask;
use crate::cluster::{Cluster, ClusterError};
use crate::error::Error;
use crate::gateway::{Gateway, GatewayError};
use crate::print::{bytes, line, say};

pub use plan::{Choice, Wanted, one, plan};
pub use ranges::{FileAddress, Remote};
pub use sparse::Sparse;
pub use transfer::{Outcome, ProgressCallback, fetch};

/// Longest wait for the next piece of a file.
const STALL_TIMEOUT: Duration = Duration::from_mins(1);
/// Attempts in a row that bring nothing.
const MAX_FAILED_ATTEMPTS: u32 = 5;

/// Why an artifact was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The session has not published anything.
    #[error("session {session} has published nothing: {why}")]
    NothingPublished {
        /// Name of the session.
        session: String,
        /// Why, and what to do.
        why: String,
    },
    /// The session has no capture of that name.
    #[error("session {session} has no capture {capture}; it has {existing}")]
    NoSuchCapture {
        /// Name of the session.
        session: String,
        /// What was asked for.
        capture: String,
        /// What there is.
        existing: String,
    },
    /// One capture must be named.
    #[error("session {session} has several captures; name one with --capture: {existing}")]
    SeveralCaptures {
        /// Name of the session.
        session: String,
        /// What there is.
        existing: String,
    },
    /// No capture published an artifact of that name.
    #[error("session {session} published no {artifact}; it published {existing}")]
    NoSuchArtifact {
        /// Name of the session.
        session: String,
        /// What was asked for.
        artifact: String,
        /// What there is.
        existing: String,
    },
    /// An artifact's name or checksum is not what agents write.
    #[error("capture {capture} lists an artifact that cannot be one: {what}")]
    Odd {
        /// Name of the capture.
        capture: String,
        /// The name or the checksum.
        what: String,
    },
    /// Something else is at the place already.
    #[error(
        "{0} is there already and holds something else: give --force to replace it, or --output to write elsewhere"
    )]
    Exists(PathBuf),
    /// A file cannot be written or read.
    #[error("{path}: {source}")]
    Io {
        /// File or folder that could not be written.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The gateway did not give it.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The transfer broke off, again and again.
    #[error("{name} broke off at {received} of {size} bytes: {reason}; the same command goes on from there")]
    BrokenOff {
        /// Name of the artifact.
        name: String,
        /// Bytes that are here.
        received: u64,
        /// Bytes that it has.
        size: u64,
        /// What happened last.
        reason: String,
    },
    /// A file of which parts are read is another one now.
    #[error("{0} changed while it was read; open it again")]
    Changed(String),
    /// The gateway does not give the parts that are asked for, or does not say of which content
    /// they are.
    #[error("the gateway gives no parts of {0}; fetch it whole")]
    NoParts(String),
    /// What came is not what was published.
    #[error(
        "{name} is not what was published (SHA-256 {found} instead of {expected}): nothing was kept of it; fetch it again, and tell your administrator if it stays so"
    )]
    Corrupt {
        /// Name of the artifact.
        name: String,
        /// What was published.
        expected: String,
        /// SHA-256 of what was received.
        found: String,
    },
}

/// A session and its captures, those of this very session by name.
pub async fn session_with_captures(
    cluster: &Cluster,
    name: &str,
) -> Result<(ProfilingSession, Vec<Capture>), ClusterError> {
    let session = ask::session(cluster, name).await?;
    let captures: Api<Capture> = cluster.api();
    let labels = format!("{SESSION_LABEL}={name}");
    let doing = format!("list captures of session {name}");
    let mut captures = cluster.list(&doing, &captures, Some(&labels)).await?;
    captures.sort_by_cached_key(ResourceExt::name_any);
    Ok((session, captures))
}

/// Fetches an artifact to its place, with a bar on a terminal.
pub(crate) async fn fetch_shown(gateway: &Gateway, wanted: &Wanted, force: bool) -> Result<Outcome, FetchError> {
    // Hidden where standard error is no terminal.
    let bar = ProgressBar::new(wanted.bytes);
    let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    let bar = bar.with_message(wanted.name.clone());
    let result = fetch(gateway, wanted, force, &|received| bar.set_position(received)).await;
    bar.finish_and_clear();
    result
}

/// Runs `fetch`: plans the transfers and makes them.
pub async fn run(cluster: &Cluster, arguments: &FetchArguments) -> Result<(), Error> {
    let (session, captures) = session_with_captures(cluster, &arguments.session.0).await?;
    let choice = Choice {
        capture: arguments.capture.as_deref(),
        artifacts: &arguments.artifacts,
        output: arguments.output.as_deref(),
    };
    let wanted = plan(&session, &captures, &choice, std::path::Path::is_dir)?;
    let gateway = Gateway::find(cluster, &arguments.gateway).await?;
    for wanted in &wanted {
        let outcome = fetch_shown(&gateway, wanted, arguments.force).await?;
        let size = bytes(wanted.bytes);
        let message = match outcome {
            Outcome::Fetched => format!("{} ({size})\n", line(&wanted.to.display().to_string())),
            Outcome::AlreadyThere => format!("{} ({size}, unchanged)\n", line(&wanted.to.display().to_string())),
        };
        say(&message)?;
    }
    Ok(())
}
