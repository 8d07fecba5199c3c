//! Files that somebody drops onto the viewer and that are no timelines: taken in, converted by sandboxed children, and published beside what is
//! served. Nothing of them is read in this process but the first bytes, which tell their format; only profiles of operations, bounded JSON that holds no
//! capture, are read here, and nothing of them is kept.
//!
//! - `GET /v1/dropped`: what is taken, as JSON.
//! - `POST /v1/dropped?name=NAME`: the file as `application/octet-stream`; answers when its timeline is there, with the path of it.
//!   A client that goes away ends the conversion. One file is taken at a time. To a profile of operations the answer is its dashboard: the
//!   document of a page, or what `&format=` names (`json`, `html`, `csv`, `text`).

mod refusal;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::{Query, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use flopwatch_api::artifact::{Output, TIMELINE, TIMELINE_TYPE, artifacts_path};
use flopwatch_api::capture::SessionReference;
use flopwatch_artifacts::{CaptureId, Publication, SourceFile, Store, StoreError};
use flopwatch_attach::nsys::HostTools;
use flopwatch_http::is_for_this_machine;
use flopwatch_pipeline::disassembly;
use flopwatch_pipeline::tools;
use flopwatch_report::Format;
use flopwatch_summary::Summary;
use futures::StreamExt as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::analyze::profile;
use crate::source::{self, Source};
use refusal::Refusal;

/// Where files are dropped.
const PATH: &str = "/v1/dropped";
/// What a file is sent as: a page of another site cannot send this without being asked who it is.
const MEDIA_TYPE: &str = "application/octet-stream";
/// Longest name that is repeated in answers.
const NAME_LETTERS: usize = 200;

/// Bounds of what is taken in.
#[derive(Clone, Debug)]
pub struct UploadLimits {
    /// Largest file, in bytes.
    pub bytes: u64,
    /// Longest wait for the next bytes of a file.
    pub stall: Duration,
    /// Longest time for each step of a conversion.
    pub step: Duration,
    /// Timelines of dropped files that are kept; the oldest goes.
    pub kept: usize,
}

impl Default for UploadLimits {
    /// Files of 8 GiB, a minute without bytes, 10 minutes for a step, eight timelines.
    fn default() -> Self {
        Self {
            bytes: 8 << 30,
            stall: Duration::from_mins(1),
            step: Duration::from_mins(10),
            kept: 8,
        }
    }
}

/// Takes files in.
#[derive(Debug)]
pub struct Uploads {
    store: Arc<Store>,
    /// Where files lie while they are converted.
    folder: PathBuf,
    /// Namespace of the store that timelines are published in.
    namespace: &'static str,
    /// The Nsight Systems for raw captures, or why there is none.
    tools: Result<HostTools, tools::Error>,
    limits: UploadLimits,
    turn: Semaphore,
    published: Mutex<VecDeque<String>>,
    next: AtomicU64,
}

/// What is taken.
#[derive(Debug, Serialize)]
struct Taken {
    most_bytes: u64,
}

/// The answer to a file.
#[derive(Debug, Serialize)]
struct Converted {
    /// Where its timeline is.
    path: String,
    events: u64,
}

/// What a file is called, and how its dashboard is written where it is a profile of operations.
#[derive(Debug, Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
    format: Option<Format>,
}

/// What became of a file.
#[derive(Debug)]
enum Outcome {
    Timeline(Converted),
    /// The dashboard of a profile.
    Dashboard(Format, Vec<u8>),
}

impl IntoResponse for Outcome {
    fn into_response(self) -> Response {
        match self {
            Self::Timeline(converted) => Json(converted).into_response(),
            Self::Dashboard(format, written) => {
                let kind = format.media_type().unwrap_or("application/json");
                ([(CONTENT_TYPE, kind)], written).into_response()
            }
        }
    }
}

impl Uploads {
    /// Takes files into `folder`, which is there, and publishes their timelines in `namespace` of `store`.
    pub fn new(
        store: Arc<Store>,
        folder: PathBuf,
        namespace: &'static str,
        tools: Result<HostTools, tools::Error>,
        limits: UploadLimits,
    ) -> Self {
        Self {
            store,
            folder,
            namespace,
            tools,
            limits,
            turn: Semaphore::new(1),
            published: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// The routes, for this machine alone.
    pub fn router(self) -> Router {
        Router::new()
            .route(PATH, get(taken).post(take))
            .layer(middleware::from_fn(guard))
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
        let most = self.limits.bytes;
        if bytes > most {
            return Err(Refusal::TooLarge { most });
        }
        Ok(())
    }

    /// Makes the timeline, publishes it, and lets the oldest one go. `until` ends the work early.
    async fn convert(
        &self,
        file: &Path,
        name: &str,
        work: &TempDir,
        until: impl Future<Output = ()>,
    ) -> Result<Converted, Refusal> {
        let source = Source {
            file: file.to_owned(),
            session_id: None,
            nsys_export: false,
            tools: self.tools.clone(),
            disassembler: disassembly::on_this_machine(),
            limit: self.limits.step,
            quiet: true,
        };
        let timeline = work.path().join("timeline.h5");
        let made = source::convert(&source, &timeline, false, until).await;
        let summary = made.map_err(|error| unreadable(&error, file, name))?;
        let capture = self.publish(&timeline, &summary, work).await?;
        let base = artifacts_path(self.namespace, &capture);
        Ok(Converted {
            path: format!("{base}/timeline.h5"),
            events: summary.total_events,
        })
    }

    async fn publish(&self, timeline: &Path, summary: &Summary, work: &TempDir) -> Result<String, Refusal> {
        let tables = work.path().join("summary.json");
        let text = summary.to_json().map_err(|error| Refusal::Store(error.to_string()))?;
        tokio::fs::write(&tables, text).await.map_err(Refusal::Disk)?;
        let name = format!("dropped-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let publication = Publication {
            capture: CaptureId {
                namespace: self.namespace.to_owned(),
                name: name.clone(),
                uid: name.clone(),
            },
            session: SessionReference {
                name: name.clone(),
                id: "00000000".to_owned(),
            },
            created: Timestamp::now(),
            captured: Vec::new(),
        };
        // Both were written by this process, in a folder that no child sees.
        let file = |name: &str, output: Output, media_type: &str, path: &Path| -> Result<SourceFile, Refusal> {
            Ok(SourceFile {
                name: name.to_owned(),
                output,
                media_type: media_type.to_owned(),
                content: Arc::new(std::fs::File::open(path).map_err(Refusal::Disk)?),
            })
        };
        let files = [
            file(TIMELINE, Output::Timeline, TIMELINE_TYPE, timeline)?,
            file("summary.json", Output::Summary, "application/json", &tables)?,
        ];
        self.store.publish(publication, &files).await?;
        let mut published = self.published.lock().await;
        published.push_back(name.clone());
        while published.len() > self.limits.kept {
            if let Some(oldest) = published.pop_front() {
                self.store.delete(self.namespace, &oldest).await?;
            }
        }
        Ok(name)
    }
}

/// The dashboard of a profile of operations; `None` where the file is something else.
async fn dashboard(file: &Path, name: &str, format: Format) -> Result<Option<Vec<u8>>, Refusal> {
    let path = file.to_owned();
    let written = tokio::task::spawn_blocking(move || profile::written(&path, format));
    let written = written.await.map_err(Refusal::Task)?;
    written.map_err(|error| unreadable(&error, file, name))
}

/// What says its path says where this process keeps files, which tells nobody anything.
fn unreadable(error: &dyn std::error::Error, file: &Path, name: &str) -> Refusal {
    let message = flopwatch_pipeline::failure::chain(error);
    Refusal::Unreadable(message.replace(&file.display().to_string(), name))
}

/// A page of another site may neither reach this under a name of its own nor have files of its own read here.
async fn guard(request: Request, next: Next) -> Response {
    if !is_for_this_machine(request.headers()) || !is_own(request.headers()) {
        return Refusal::Foreign.into_response();
    }
    next.run(request).await
}

/// Browsers say where a request comes from; other programs do not.
fn is_own(headers: &HeaderMap) -> bool {
    headers
        .get_all("sec-fetch-site")
        .iter()
        .all(|site| site == HeaderValue::from_static("same-origin"))
}

async fn taken(State(uploads): State<Arc<Uploads>>) -> Json<Taken> {
    Json(Taken {
        most_bytes: uploads.limits.bytes,
    })
}

async fn take(
    State(uploads): State<Arc<Uploads>>,
    Query(Named { name, format }): Query<Named>,
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
            .take(NAME_LETTERS)
            .collect(),
    };
    // Whoever waits here may go away, and this is dropped with them; the work then ends, and takes its folder with it after its children.
    let gone = CancellationToken::new();
    let _ended_with_this = gone.clone().drop_guard();
    let until = gone.clone();
    let work = tokio::spawn(async move {
        let _turn = uploads.turn.try_acquire().map_err(|_taken| Refusal::Busy)?;
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
        let converted = uploads.convert(&received, &name, &work, until.cancelled()).await?;
        Ok(Outcome::Timeline(converted))
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
