//! The HTTP service in front of the store.

mod analyses;
mod inputs;

use std::sync::Arc;

use crate::manifest::{CaptureId, Manifest, ManifestError, check_name};
use crate::object_store::Bucket;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, VARY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use flopwatch_analysis::{Request as AnalysisRequest, catalogue};
use flopwatch_api::artifact::{
    Artifact, INPUTS_PATH, Output, TIMELINE, TIMELINE_TYPE, artifacts_path, timeline_source,
};
use flopwatch_api::capture::SessionReference;
use flopwatch_http::{Credentials, Denied, Grant, Service, Verb, answer, bearer, is_for_this_machine};
use futures::StreamExt;
use jiff::Timestamp;
use prometheus::IntCounter;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::conversion::{ConversionError, ConversionLimits, ConversionQueue, Converter};
use crate::derivation::Derivation;
use crate::input::{Input, Inputs};
use crate::metrics::ArtifactMetrics;
use crate::problem::Problem;
use crate::store::{Source, Store, StoreError};

/// Serves the artifacts of a store to those who may read them.
///
/// - `GET /v1/namespaces/{namespace}/captures/{capture}/artifacts`: the list, as JSON.
/// - `GET|HEAD /v1/namespaces/{namespace}/captures/{capture}/artifacts/{name}`: the content; a
///   single range, `If-Range` and `If-None-Match` are understood. The entity tag is the SHA-256.
/// - Likewise `timeline.h5` of a capture of which only the raw one was published, and under the
///   file name of an export of the [catalogue], where there is a [`Converter`]: it is made on the
///   first request and kept for a time.
/// - `GET|HEAD /v1/namespaces/{namespace}/captures/{capture}/analyses/{name}?{parameter}={value}`:
///   the result of any analysis of the catalogue; further captures are named by
///   `with=NAMESPACE/CAPTURE/UID` or `with=NAMESPACE/CAPTURE/UID/STORED`.
/// - A capture of another node, with its UID as `?uid=`, is read from the object store, where there
///   is one: with `stored=`, the SHA-256 of its manifest there, as the status of the Capture says
///   (`storeSha256`). Without it nothing of the store is believed.
/// - `PUT /v1/inputs/{namespace}/{capture}/{uid}`: the gateway hands over a timeline of another
///   node's capture.
/// - `GET /healthz`.
///
/// Errors are problem details (RFC 9457) with a `reason` of a closed set.
#[derive(Clone, Debug)]
pub struct ArtifactService {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Arc<Store>,
    access: Access,
    metrics: ArtifactMetrics,
    queue: Option<ConversionQueue>,
    bucket: Option<Bucket>,
}

/// The query that identifies a capture among those of its name.
#[derive(Debug, Deserialize)]
struct CaptureQuery {
    uid: Option<String>,
    stored: Option<String>,
}

/// The list of a capture's artifacts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactList<'a> {
    namespace: &'a str,
    capture: &'a str,
    session: &'a SessionReference,
    created: Timestamp,
    artifacts: Vec<Link<'a>>,
    derived: Vec<DerivedLink>,
}

/// A file that is made on demand, and where it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DerivedLink {
    name: &'static str,
    media_type: &'static str,
    path: String,
}

/// An artifact and where it is.
#[derive(Serialize)]
struct Link<'a> {
    #[serde(flatten)]
    artifact: &'a Artifact,
    path: String,
}

impl ArtifactService {
    /// A service over `store`.
    pub fn new(store: Arc<Store>, access: Access, metrics: ArtifactMetrics) -> Self {
        Self {
            inner: Arc::new(Inner {
                store,
                access,
                metrics,
                queue: None,
                bucket: None,
            }),
        }
    }

    /// A service over `store` that runs analyses on demand, of captures of other nodes too where
    /// there is a bucket.
    pub fn converting(
        store: Arc<Store>,
        access: Access,
        metrics: ArtifactMetrics,
        converter: Arc<dyn Converter>,
        limits: ConversionLimits,
        bucket: Option<Bucket>,
    ) -> Self {
        let queue = Some(ConversionQueue::new(converter, limits, metrics.clone()));
        Self {
            inner: Arc::new(Inner {
                store,
                access,
                metrics,
                queue,
                bucket,
            }),
        }
    }
}

impl Service for ArtifactService {
    fn is_open(&self) -> bool {
        matches!(self.inner.access, Access::LoopbackOnly)
    }

    fn refused_connections(&self) -> IntCounter {
        self.inner.metrics.refused_connections.clone()
    }

    fn router(&self) -> Router {
        let artifacts = "/v1/namespaces/{namespace}/captures/{capture}/artifacts";
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route(artifacts, get(list))
            .route(&format!("{artifacts}/{{name}}"), get(fetch))
            .route(
                "/v1/namespaces/{namespace}/captures/{capture}/analyses/{name}",
                get(analyses::analyse),
            )
            .route(
                &format!("{INPUTS_PATH}/{{namespace}}/{{capture}}/{{uid}}"),
                put(inputs::receive_input),
            )
            .fallback(|| async { Problem::NotFound("such path".to_owned()) })
            .method_not_allowed_fallback(|| async { Problem::Method })
            .layer(middleware::from_fn_with_state(self.inner.clone(), guard))
            .with_state(self.inner.clone())
    }
}

/// Checks the host of a request, sets the headers of every answer and counts it.
async fn guard(State(inner): State<Arc<Inner>>, request: Request, next: Next) -> Response {
    let mut response = if matches!(inner.access, Access::LoopbackOnly) && !is_for_this_machine(request.headers()) {
        Problem::ForeignHost.into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; sandbox"),
    );
    headers.insert(VARY, HeaderValue::from_static("Authorization"));
    inner
        .metrics
        .requests
        .with_label_values(&[class(response.status())])
        .inc();
    response
}

const fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        ..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}

async fn list(
    State(inner): State<Arc<Inner>>,
    path: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path((namespace, capture)) = path.map_err(Problem::BadPath)?;
    let found = find(&inner, &namespace, &capture).await;
    let (manifest, _, may_raw) = open(&inner, &headers, &namespace, found, Wanted::List).await?;
    let base = artifacts_path(&namespace, &capture);
    let artifacts = manifest
        .artifacts
        .iter()
        .filter(|artifact| may_raw || !is_raw(artifact))
        .map(|artifact| Link {
            path: format!("{base}/{}", artifact.name),
            artifact,
        })
        .collect();
    let source =
        timeline_source(&manifest.artifacts).filter(|source| inner.queue.is_some() && (may_raw || !is_raw(source)));
    let timeline = source.filter(|source| source.name != TIMELINE);
    let timeline = timeline.map(|_raw| (TIMELINE, TIMELINE_TYPE));
    let exports = source.map(|_| catalogue::artifacts().map(|(name, definition)| (name, definition.media_type())));
    let derived = timeline.into_iter().chain(exports.into_iter().flatten());
    let derived = derived.map(|(name, media_type)| DerivedLink {
        name,
        media_type,
        path: format!("{base}/{name}"),
    });
    let list = ArtifactList {
        namespace: &namespace,
        capture: &capture,
        session: &manifest.session,
        created: manifest.created,
        artifacts,
        derived: derived.collect(),
    };
    let mut response = Json(list).into_response();
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    Ok(response)
}

async fn fetch(
    State(inner): State<Arc<Inner>>,
    path: Result<Path<(String, String, String)>, PathRejection>,
    which: Result<Query<CaptureQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path((namespace, capture, name)) = path.map_err(Problem::BadPath)?;
    let Query(CaptureQuery { uid, stored }) = which.map_err(Problem::BadQuery)?;
    check_name("artifact", &name).map_err(Problem::BadName)?;
    let export = catalogue::artifact(&name);
    let may_be_made = export.is_some() || name == TIMELINE;
    let uid = uid.filter(|_| may_be_made);
    let found = find_named(&inner, &namespace, capture, uid, stored.as_deref()).await;
    let (manifest, source, _) = open(&inner, &headers, &namespace, found, Wanted::Artifact(&name)).await?;
    match (manifest.artifact(&name), export) {
        (Some(artifact), _) if matches!(source, Source::Node) => {
            send(&inner, &headers, artifact).await.map_err(|unsent| match unsent {
                Unsent::Problem(problem) => problem,
                Unsent::Damaged(error) => Problem::of_store(&error, &name),
            })
        }
        (None, request) if inner.queue.is_some() && may_be_made => {
            let input = input(manifest, source)?;
            serve_result(&inner, &headers, request, Inputs::from(input)).await
        }
        _ => Err(Problem::NotFound(format!("artifact {name:?} in this capture"))),
    }
}

/// The timeline of a capture, or the raw capture that one can be made of.
fn input(manifest: Manifest, source: Source) -> Result<Input, ConversionError> {
    Input::of(manifest, source).ok_or(ConversionError::NoTimeline)
}

/// Answers with the result of an analysis, or without a `request` with the timeline of the one raw
/// capture. It is made now unless it was made before.
async fn serve_result(
    inner: &Inner,
    headers: &HeaderMap,
    request: Option<AnalysisRequest>,
    inputs: Inputs,
) -> Result<Response, Problem> {
    let nobody = || Problem::NotFound("analysis on this server: it serves files alone".to_owned());
    let queue = inner.queue.as_ref().ok_or_else(nobody)?;
    let deadline = queue.deadline();
    let (derivation, inputs) = match request {
        None => (Derivation::Timeline, inputs),
        Some(request) => {
            let timelines = queue.timelines(&inner.store, inputs, deadline).await?;
            (Derivation::Analysis(request), timelines)
        }
    };
    let artifact = queue.derive(&inner.store, &derivation, &inputs, deadline).await?;
    match send(inner, headers, &artifact).await {
        Ok(response) => Ok(response),
        Err(Unsent::Problem(problem)) => Err(problem),
        // Damaged, or removed since it was found: the next request makes it anew.
        Err(Unsent::Damaged(StoreError::Corrupt { .. })) => {
            let forgotten = inner.store.forget_derived(&derivation, &inputs).await;
            forgotten.map_err(|error| Problem::of_store(&error, &artifact.name))?;
            Err(ConversionError::UnderWay.into())
        }
        Err(Unsent::Damaged(error)) => Err(Problem::of_store(&error, &artifact.name)),
    }
}

/// Why there is no answer with an artifact.
enum Unsent {
    /// The request cannot be answered so.
    Problem(Problem),
    /// The artifact cannot be read.
    Damaged(StoreError),
}

/// Answers with an artifact of the store, or the part of it that was asked for.
async fn send(inner: &Inner, headers: &HeaderMap, artifact: &Artifact) -> Result<Response, Unsent> {
    let answer = answer(headers, artifact, &artifact.name).map_err(|error| Unsent::Problem(Problem::Range(error)))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    let Some(range) = answer.range else {
        return Ok(response);
    };
    let content = inner.store.read(artifact, range).await.map_err(Unsent::Damaged)?;
    let counter = inner.metrics.sent_bytes.clone();
    let content = content.inspect(move |chunk| match chunk {
        Ok(chunk) => counter.inc_by(u64::try_from(chunk.len()).unwrap_or(u64::MAX)),
        Err(error) => tracing::error!(%error, "reading an artifact failed while it was sent"),
    });
    *response.body_mut() = Body::from_stream(content);
    Ok(response)
}

/// What a request reads.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    List,
    Artifact(&'a str),
}

/// The result of looking a capture up: its manifest and where its artifacts are read, or None.
type LookupResult = Result<Option<(Manifest, Source)>, StoreError>;

async fn find(inner: &Inner, namespace: &str, capture: &str) -> LookupResult {
    let manifest = inner.store.get(namespace, capture).await?;
    Ok(manifest.map(|manifest| (manifest, Source::Node)))
}

/// Looks a capture up: with a UID everywhere, and without one in this node's store by its name.
async fn find_named(
    inner: &Inner,
    namespace: &str,
    name: String,
    uid: Option<String>,
    stored: Option<&str>,
) -> LookupResult {
    let Some(uid) = uid else {
        return find(inner, namespace, &name).await;
    };
    let capture = CaptureId {
        namespace: namespace.to_owned(),
        name,
        uid,
    };
    find_anywhere(inner, &capture, stored).await
}

/// Looks a capture up in this node's store, among the timelines that the gateway uploaded, and then
/// in the object store, where its manifest must have the SHA-256 `stored`.
async fn find_anywhere(inner: &Inner, capture: &CaptureId, stored: Option<&str>) -> LookupResult {
    check_name("uid", &capture.uid)?;
    let here = find(inner, &capture.namespace, &capture.name).await?;
    if let Some((manifest, source)) = here
        && manifest.capture.uid == capture.uid
    {
        return Ok(Some((manifest, source)));
    }
    if let Some((manifest, content)) = inner.store.received(capture) {
        return Ok(Some((manifest, Source::Received(content))));
    }
    let (Some(bucket), Some(sha256)) = (&inner.bucket, stored) else {
        return Ok(None);
    };
    let stored = bucket.find(capture, sha256).await?;
    Ok(stored.map(|stored| {
        (
            stored.manifest.clone(),
            Source::ObjectStore(bucket.clone(), Box::new(stored)),
        )
    }))
}

/// The manifest and where its artifacts are, if the caller may read it; and whether they may read
/// raw captures, where that was asked.
async fn open(
    inner: &Inner,
    headers: &HeaderMap,
    namespace: &str,
    found: LookupResult,
    wanted: Wanted<'_>,
) -> Result<(Manifest, Source, bool), Problem> {
    if let Err(StoreError::Manifest(error @ ManifestError::Name { .. })) = found {
        return Err(Problem::BadName(error));
    }
    let credentials = match inner.access {
        Access::Kubernetes(_) => Some(Credentials::new(bearer(headers).ok_or(Problem::Unauthenticated)?)),
        Access::LoopbackOnly => None,
    };
    let session = found
        .as_ref()
        .ok()
        .and_then(Option::as_ref)
        .map(|(manifest, _)| manifest.session.name.as_str());
    // Whoever may not get the session hears the same whether or not there is a capture. What is
    // absent belongs to no session, so its absence is told to those who may get every session of
    // the namespace.
    let session_grant = Grant {
        verb: Verb::Get,
        namespace,
        session,
        raw: false,
    };
    if let (Access::Kubernetes(reviewer), Some(credentials)) = (&inner.access, &credentials) {
        reviewer
            .review(credentials, &session_grant)
            .await
            .map_err(|denied| match denied {
                Denied::Unauthenticated => Problem::Unauthenticated,
                Denied::Forbidden => Problem::Forbidden,
                Denied::Unavailable => Problem::Reviews,
            })?;
    }
    let (manifest, source) = found
        .map_err(|error| Problem::of_store(&error, "the manifest"))?
        .ok_or_else(|| Problem::NotFound(format!("published capture of that name in namespace {namespace:?}")))?;
    let asks_for_raw = match wanted {
        Wanted::List => manifest.artifacts.iter().any(is_raw),
        Wanted::Artifact(name) => source_of(&manifest, name).is_some_and(is_raw),
    };
    let mut may_raw = true;
    if let (true, Access::Kubernetes(reviewer), Some(credentials)) = (asks_for_raw, &inner.access, &credentials) {
        let grant = Grant {
            verb: Verb::Get,
            namespace,
            session: Some(&manifest.session.name),
            raw: true,
        };
        match (reviewer.review(credentials, &grant).await, wanted) {
            (Ok(_), _) => {}
            (Err(Denied::Forbidden), Wanted::List) => may_raw = false,
            (Err(Denied::Forbidden), Wanted::Artifact(_)) => return Err(Problem::RawForbidden),
            (Err(Denied::Unauthenticated), _) => return Err(Problem::Unauthenticated),
            (Err(Denied::Unavailable), _) => return Err(Problem::Reviews),
        }
    }
    Ok((manifest, source, may_raw))
}

/// What a name stands for: an artifact, or what a timeline or an export is made of.
fn source_of<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a Artifact> {
    let is_made = || name == TIMELINE || catalogue::artifact(name).is_some();
    let source = || is_made().then(|| timeline_source(&manifest.artifacts)).flatten();
    manifest.artifact(name).or_else(source)
}

/// Raw by type, or anything else that was published as sensitive.
fn is_raw(artifact: &Artifact) -> bool {
    artifact.type_ == Output::Raw || artifact.sensitive
}
