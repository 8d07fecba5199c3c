//! The HTTP service in front of the store.

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
use axum::routing::get;
use axum::{Json, Router};
use flopwatch_api::artifact::{Artifact, Output, artifacts_path};
use flopwatch_api::capture::SessionReference;
use flopwatch_api::form::{Form, TIMELINE};
use flopwatch_http::{Credentials, Denied, Grant, Service, Verb, answer, bearer, is_for_this_machine};
use futures::StreamExt;
use jiff::Timestamp;
use prometheus::IntCounter;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::conversion::{ConversionError, ConversionLimits, Converter, Desk};
use crate::metrics::ArtifactMetrics;
use crate::problem::Problem;
use crate::store::{Source, Store, StoreError};

/// Serves the artifacts of a store to those who may read them.
///
/// - `GET /v1/namespaces/{namespace}/captures/{capture}/artifacts`: the list, as JSON.
/// - `GET|HEAD /v1/namespaces/{namespace}/captures/{capture}/artifacts/{name}`: the content; a single range,
///   `If-Range` and `If-None-Match` are understood. The entity tag is the SHA-256.
/// - Likewise under the name of a [`Form`], where the capture has a timeline and there is a [`Converter`]: it is made on the
///   first request and kept for a time.
/// - A form of a capture of another node, with its UID as `?uid=`, is made of the timeline in the bucket, where there is one.
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
    desk: Option<Desk>,
    bucket: Option<Bucket>,
}

/// Which capture of that name is meant.
#[derive(Debug, Deserialize)]
struct Which {
    uid: Option<String>,
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
    forms: Vec<FormLink>,
}

/// A form that is made on demand, and where it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FormLink {
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
                desk: None,
                bucket: None,
            }),
        }
    }

    /// A service over `store` that makes forms on demand, of captures of other nodes too where there is a bucket.
    pub fn converting(
        store: Arc<Store>,
        access: Access,
        metrics: ArtifactMetrics,
        converter: Arc<dyn Converter>,
        limits: ConversionLimits,
        bucket: Option<Bucket>,
    ) -> Self {
        let desk = Some(Desk::new(converter, limits, metrics.clone()));
        Self {
            inner: Arc::new(Inner {
                store,
                access,
                metrics,
                desk,
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
            .fallback(|| async { Problem::NotFound("such path".to_owned()) })
            .method_not_allowed_fallback(|| async { Problem::Method })
            .layer(middleware::from_fn_with_state(self.inner.clone(), guard))
            .with_state(self.inner.clone())
    }
}

/// Host check, headers of every answer, and the count.
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
    let forms = match (&inner.desk, manifest.artifact(TIMELINE)) {
        (Some(_), Some(timeline)) if may_raw || !is_raw(timeline) => Form::ALL.to_vec(),
        _ => Vec::new(),
    };
    let forms = forms.into_iter().map(|form| FormLink {
        name: form.name(),
        media_type: form.media_type(),
        path: format!("{base}/{}", form.name()),
    });
    let list = ArtifactList {
        namespace: &namespace,
        capture: &capture,
        session: &manifest.session,
        created: manifest.created,
        artifacts,
        forms: forms.collect(),
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
    which: Result<Query<Which>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path((namespace, capture, name)) = path.map_err(Problem::BadPath)?;
    let Query(Which { uid }) = which.map_err(Problem::BadQuery)?;
    check_name("artifact", &name).map_err(Problem::BadName)?;
    let found = match uid.filter(|_| Form::from_name(&name).is_some()) {
        Some(uid) => find_anywhere(&inner, &namespace, &capture, uid).await,
        None => find(&inner, &namespace, &capture).await,
    };
    let (manifest, source, _) = open(&inner, &headers, &namespace, found, Wanted::Artifact(&name)).await?;
    let (artifact, form) = match (manifest.artifact(&name), Form::from_name(&name), &inner.desk) {
        (Some(artifact), ..) => (artifact.clone(), None),
        (None, Some(form), Some(desk)) => (desk.form(&inner.store, &manifest, &source, form).await?, Some(form)),
        _ => return Err(Problem::NotFound(format!("artifact {name:?} in this capture"))),
    };
    let answer = answer(&headers, &artifact, &name).map_err(Problem::Range)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    let Some(range) = answer.range else {
        return Ok(response);
    };
    let content = match (inner.store.read(&artifact, range).await, form) {
        (Ok(content), _) => content,
        // Damaged, or let go of since it was found: the next request makes it anew.
        (Err(StoreError::Corrupt { .. }), Some(form)) => {
            let forgotten = inner.store.forget_form(&manifest, form).await;
            forgotten.map_err(|error| Problem::of_store(&error, &name))?;
            return Err(ConversionError::UnderWay.into());
        }
        (Err(error), _) => return Err(Problem::of_store(&error, &name)),
    };
    let counter = inner.metrics.sent_bytes.clone();
    let content = content.inspect(move |chunk| match chunk {
        Ok(chunk) => counter.inc_by(u64::try_from(chunk.len()).unwrap_or(u64::MAX)),
        Err(error) => tracing::error!(%error, "reading an artifact failed while it was sent"),
    });
    *response.body_mut() = Body::from_stream(content);
    Ok(response)
}

/// What a request is after.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    List,
    Artifact(&'a str),
}

/// What was found of a capture: its manifest and where its artifacts are, or nothing.
type Found = Result<Option<(Manifest, Source)>, StoreError>;

async fn find(inner: &Inner, namespace: &str, capture: &str) -> Found {
    let manifest = inner.store.get(namespace, capture).await?;
    Ok(manifest.map(|manifest| (manifest, Source::Node)))
}

/// Looks for the capture of that UID, here and then in the bucket.
async fn find_anywhere(inner: &Inner, namespace: &str, capture: &str, uid: String) -> Found {
    check_name("uid", &uid)?;
    let here = find(inner, namespace, capture).await?;
    let Some(bucket) = &inner.bucket else {
        return Ok(here.filter(|(manifest, _)| manifest.capture.uid == uid));
    };
    if let Some((manifest, source)) = here
        && manifest.capture.uid == uid
    {
        return Ok(Some((manifest, source)));
    }
    let capture = CaptureId {
        namespace: namespace.to_owned(),
        name: capture.to_owned(),
        uid,
    };
    let stored = bucket.find(&capture).await?;
    Ok(stored.map(|stored| {
        (
            stored.manifest.clone(),
            Source::Bucket(bucket.clone(), Box::new(stored)),
        )
    }))
}

/// The manifest and where its artifacts are, if the caller may read it; and whether they may read raw captures, where that was
/// asked.
async fn open(
    inner: &Inner,
    headers: &HeaderMap,
    namespace: &str,
    found: Found,
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
    // Whoever may not get the session hears the same whether or not there is a capture. What is absent belongs to no
    // session, so its absence is told to those who may get every session of the namespace.
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

/// What a name stands for: an artifact, or the timeline that a form is made of.
fn source_of<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a Artifact> {
    let timeline = || Form::from_name(name).and_then(|_form| manifest.artifact(TIMELINE));
    manifest.artifact(name).or_else(timeline)
}

/// Raw by type, or anything else that was published as sensitive.
fn is_raw(artifact: &Artifact) -> bool {
    artifact.type_ == Output::Raw || artifact.sensitive
}
