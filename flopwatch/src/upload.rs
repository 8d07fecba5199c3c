//! Files that somebody drops onto the viewer, or adds to a comparison there: taken in, converted by
//! sandboxed children, and published beside what is served. Nothing of them is read in this process
//! but the first bytes, which tell their format; only profiles of operations, bounded JSON that
//! holds no capture, are read here, and nothing of them is kept.
//!
//! - `GET /v1/dropped`: what is taken, as JSON.
//! - `POST /v1/dropped?name=NAME`: the file as `application/octet-stream`; answers when its
//!   timeline is there, with what the list of captures says of it. A client that goes away ends the
//!   conversion. One file is taken at a time. To a profile of operations the answer is its
//!   dashboard: the document of a page, or what `&format=` names (`json`, `html`, `csv`, `text`).

mod refusal;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::{Query, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use flopwatch_artifacts::StoreError;
use flopwatch_report::Format;
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::analyze::profile;
use crate::arguments::SourceArguments;
use crate::captures::{Captures, HeldCapture, Origin};
use crate::conversion::Conversion;
use crate::guard::own_pages_only;
use refusal::Refusal;

/// URL path of both routes.
const PATH: &str = "/v1/dropped";
/// Media type of an uploaded file: a page of another site cannot send it without a CORS preflight.
const MEDIA_TYPE: &str = "application/octet-stream";
/// Longest name of a file in answers, in characters.
const MAX_NAME_CHARS: usize = 200;

/// Limits on uploaded files and their conversion.
#[derive(Clone, Debug)]
pub struct UploadLimits {
    /// Largest file, in bytes.
    pub bytes: u64,
    /// Longest wait for the next bytes of a file.
    pub stall: Duration,
    /// Timelines of dropped files that are kept; the oldest goes.
    pub kept: usize,
}

impl Default for UploadLimits {
    /// Files of 8 GiB, a minute without bytes, eight timelines.
    fn default() -> Self {
        Self {
            bytes: 8 << 30,
            stall: Duration::from_mins(1),
            kept: 8,
        }
    }
}

/// Receives dropped files, converts them, and publishes their timelines.
#[derive(Debug)]
pub struct Uploads {
    captures: Arc<Captures>,
    /// Folder of files that are being converted.
    folder: PathBuf,
    /// How files are read.
    reading: SourceArguments,
    limits: UploadLimits,
    permit: Semaphore,
}

/// The answer to `GET`: the largest file that is accepted.
#[derive(Debug, Serialize)]
struct UploadInfo {
    most_bytes: u64,
}

/// The query of an upload: the name of the file, and the format of the dashboard where the file is
/// a profile of operations.
#[derive(Debug, Default, Deserialize)]
struct UploadQuery {
    #[serde(default)]
    name: String,
    format: Option<Format>,
}

/// The result of an upload.
#[derive(Debug)]
enum Outcome {
    /// The capture that was made of the file.
    Capture(HeldCapture),
    /// The dashboard of a profile.
    Dashboard(Format, Vec<u8>),
}

impl IntoResponse for Outcome {
    fn into_response(self) -> Response {
        match self {
            Self::Capture(held) => Json(held).into_response(),
            Self::Dashboard(format, written) => {
                let kind = format.media_type().unwrap_or("application/json");
                ([(CONTENT_TYPE, kind)], written).into_response()
            }
        }
    }
}

impl Uploads {
    /// Receives files in `folder`, which exists, and publishes their timelines among `captures`.
    /// `reading` says how they are read.
    pub fn new(captures: Arc<Captures>, folder: PathBuf, reading: SourceArguments, limits: UploadLimits) -> Self {
        Self {
            captures,
            folder,
            reading,
            limits,
            permit: Semaphore::new(1),
        }
    }

    /// The routes, which answer requests of this machine alone.
    pub fn router(self) -> Router {
        Router::new()
            .route(PATH, get(upload_info).post(upload))
            .layer(middleware::from_fn(own_pages_only))
            .with_state(Arc::new(self))
    }

    /// Writes the body to a file of `work`.
    async fn receive(&self, body: Body, work: &TempDir) -> Result<PathBuf, Refusal> {
        let path = work.path().join("dropped");
        let mut file = tokio::fs::File::create(&path).await.map_err(Refusal::Disk)?;
        let mut parts: BodyDataStream = body.into_data_stream();
        let mut bytes: u64 = 0;
        loop {
            let part = match timeout(self.limits.stall, parts.next()).await {
                Ok(Some(Ok(part))) => part,
                Ok(Some(Err(_broken))) => return Err(Refusal::Broken),
                Ok(None) => break,
                Err(_elapsed) => return Err(Refusal::Stalled(self.limits.stall)),
            };
            bytes = bytes.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
            self.check(bytes)?;
            file.write_all(&part).await.map_err(Refusal::Disk)?;
        }
        file.flush().await.map_err(Refusal::Disk)?;
        Ok(path)
    }

    fn check(&self, bytes: u64) -> Result<(), Refusal> {
        let max_bytes = self.limits.bytes;
        if bytes > max_bytes {
            return Err(Refusal::TooLarge { max_bytes });
        }
        Ok(())
    }

    /// Converts the file, publishes its timeline, and removes the oldest timelines beyond the
    /// limit. `until` ends the work early.
    async fn convert(
        &self,
        file: &Path,
        name: String,
        work: &TempDir,
        until: impl Future<Output = ()>,
    ) -> Result<HeldCapture, Refusal> {
        let source = self.reading.clone().source(file.to_owned(), Some(name.clone()));
        let made = Conversion::of(&source, work.path(), until).await;
        let Conversion { files, events, .. } = made.map_err(|error| unreadable(&error, file, &name))?;
        let held = self
            .captures
            .publish(Origin::Dropped, name, Some(events), &files)
            .await?;
        self.captures.keep_dropped(self.limits.kept).await?;
        Ok(held)
    }
}

/// The dashboard of a profile of operations; `None` where the file is something else.
async fn dashboard(file: &Path, name: &str, format: Format) -> Result<Option<Vec<u8>>, Refusal> {
    let path = file.to_owned();
    let written = tokio::task::spawn_blocking(move || profile::render_profile(&path, format));
    let written = written.await.map_err(Refusal::Task)?;
    written.map_err(|error| unreadable(&error, file, name))
}

/// The refusal of a file that cannot be read; the message has the file's own name in the place of
/// its path on this machine.
fn unreadable(error: &dyn std::error::Error, file: &Path, name: &str) -> Refusal {
    let message = flopwatch_pipeline::failure::chain(error);
    Refusal::Unreadable(message.replace(&file.display().to_string(), name))
}

async fn upload_info(State(uploads): State<Arc<Uploads>>) -> Json<UploadInfo> {
    Json(UploadInfo {
        most_bytes: uploads.limits.bytes,
    })
}

async fn upload(
    State(uploads): State<Arc<Uploads>>,
    Query(UploadQuery { name, format }): Query<UploadQuery>,
    request: Request,
) -> Result<Outcome, Refusal> {
    let (head, body) = request.into_parts();
    if head.headers.get(CONTENT_TYPE).is_none_or(|kind| kind != MEDIA_TYPE) {
        return Err(Refusal::MediaType);
    }
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if let Some(length) = length.and_then(|length| length.parse().ok()) {
        uploads.check(length)?;
    }
    let name: String = match name.trim() {
        "" => "the file".to_owned(),
        name => name
            .chars()
            .filter(|letter| !letter.is_control())
            .take(MAX_NAME_CHARS)
            .collect(),
    };
    // Whoever waits here may go away, and this is dropped with them; the work then ends, and takes
    // its folder with it after its children.
    let gone = CancellationToken::new();
    let _ended_with_this = gone.clone().drop_guard();
    let until = gone.clone();
    let work = tokio::spawn(async move {
        let _permit = uploads.permit.try_acquire().map_err(|_taken| Refusal::Busy)?;
        let work = tempfile::tempdir_in(&uploads.folder).map_err(Refusal::Disk)?;
        let received = tokio::select! {
            received = uploads.receive(body, &work) => received?,
            () = gone.cancelled() => return Err(Refusal::Broken),
        };
        let format_or_page = format.unwrap_or(Format::Page);
        if let Some(written) = dashboard(&received, &name, format_or_page).await? {
            return Ok(Outcome::Dashboard(format_or_page, written));
        }
        if format.is_some() {
            return Err(Refusal::NoProfile);
        }
        let capture = uploads.convert(&received, name, &work, until.cancelled()).await?;
        Ok(Outcome::Capture(capture))
    });
    work.await.map_err(Refusal::Task)?
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

#[cfg(test)]
mod crate_tests;
