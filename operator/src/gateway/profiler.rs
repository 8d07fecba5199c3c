//! Results of analyses under the paths that clients of an earlier PyTorch profiling suite use.

#![allow(
    unused_qualifications,
    reason = "utoipa's macro qualifies the parameters of handlers without a path"
)]

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRef, FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_http::Verb;
use kube::ResourceExt as _;
use utoipa::IntoParams;

use crate::gateway::access::SessionAccess;
use crate::gateway::cookie::Cookies;
use crate::gateway::deliver::{Delivery, published};
use crate::gateway::extract::query;
use crate::gateway::messages::{SessionState, TransferHeaders};
use crate::gateway::problem::{OfCapture, Problem, Transfer};
use crate::gateway::sessions::{Filter, id_of};
use crate::gateway::token::Token;

/// Most of the newest sessions that are searched for the latest one that the caller may read: each
/// may cost a review of the caller's right.
const MAX_SESSIONS_SEARCHED: usize = 64;

/// What is asked for; everything else is a parameter of the analysis.
#[derive(Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProfilerQuery {
    /// The session's `session_id`; without it the latest with a timeline that the caller may read.
    #[param(pattern = "^[0-9a-f]{8}$", example = "0badcafe")]
    session: Option<String>,
    /// Name of the capture; needed where a session that is named has several.
    #[param(max_length = 253)]
    capture: Option<String>,
    #[param(ignore)]
    parameters: Vec<(String, String)>,
}

impl ProfilerQuery {
    fn read(pairs: Vec<(String, String)>) -> Result<Self, Problem> {
        let mut request = Self::default();
        for (name, value) in pairs {
            let slot = match name.as_str() {
                "session" => &mut request.session,
                "capture" => &mut request.capture,
                _ => {
                    request.parameters.push((name, value));
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                return Err(Problem::BadRequest(format!("{name} is given more than once")));
            }
        }
        Ok(request)
    }
}

/// The first capture with a timeline of the latest session that the caller may get.
async fn latest(access: &SessionAccess, token: &Token) -> Result<(Arc<ProfilingSession>, Arc<Capture>), Problem> {
    let filter = Filter {
        status: Some(SessionState::Completed),
        ..Filter::default()
    };
    let mut refused = None;
    for session in access.sessions.page(&filter, None, MAX_SESSIONS_SEARCHED).sessions {
        let captures = access.sessions.captures_of(&session);
        let with_timeline = captures
            .into_iter()
            .find(|capture| published(capture, TIMELINE).is_some());
        let (Some(capture), Some(namespace), Some(_)) = (with_timeline, session.namespace(), id_of(&session)) else {
            continue;
        };
        match access
            .allow(token, Verb::Get, &namespace, Some(&session.name_any()), false)
            .await
        {
            Ok(_) => return Ok((session, capture)),
            Err(Problem::Forbidden) => refused = Some(Problem::Forbidden),
            Err(other) => return Err(other),
        }
    }
    if let Some(refused) = refused {
        return Err(refused);
    }
    // That there is none is told to those who may get every session.
    access.allow(token, Verb::Get, "", None, false).await?;
    Err(Problem::NotFound("session with a timeline".to_owned()))
}

/// A request for a result under one of these paths.
pub(crate) struct ProfilerRequest {
    delivery: Delivery,
    token: Token,
    method: Method,
    query: ProfilerQuery,
    headers: HeaderMap,
}

impl<S> FromRequestParts<S> for ProfilerRequest
where
    S: Send + Sync,
    Arc<Cookies>: FromRef<S>,
    Delivery: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let token = Token::from_request_parts(parts, state).await?;
        let pairs = Query::from_request_parts(parts, state).await;
        Ok(Self {
            delivery: Delivery::from_ref(state),
            token,
            method: parts.method.clone(),
            query: ProfilerQuery::read(query(pairs)?)?,
            headers: parts.headers.clone(),
        })
    }
}

impl ProfilerRequest {
    /// Answers with the result of `analysis`.
    async fn answer(self, analysis: &str) -> Result<Response<Body>, Problem> {
        let Self {
            delivery,
            token,
            method,
            query,
            headers,
        } = self;
        let found = match (&query.session, &query.capture) {
            (Some(id), capture) => delivery.access.capture(&token, id, capture.as_deref()).await?,
            (None, None) => latest(&delivery.access, &token).await?,
            (None, Some(_)) => {
                return Err(Problem::BadRequest("a capture is named without its session".to_owned()));
            }
        };
        delivery
            .analyze(&token, analysis, found, query.parameters, &method, &headers)
            .await
    }
}

/// `total_time_us`, `cpu_active_time_us`, `gpu_active_time_us` and `overlap_time_us`: the analysis
/// `profiler-timeline`, with its parameters.
#[utoipa::path(method(get, head), path = "/api/profiler/timeline", tag = "analyses",
    params(ProfilerQuery, TransferHeaders), extensions(("x-analysis" = json!("profiler-timeline"))),
    responses((status = 200), (status = 206, description = "A part of it."), OfCapture, Transfer))]
pub(crate) async fn profiler_timeline(request: ProfilerRequest) -> Result<Response<Body>, Problem> {
    request.answer("profiler-timeline").await
}

/// `kernels`, each with `name` and `cuda_time_us`: the analysis `profiler-kernels`, with its
/// parameters.
#[utoipa::path(method(get, head), path = "/api/profiler/kernels", tag = "analyses",
    params(ProfilerQuery, TransferHeaders), extensions(("x-analysis" = json!("profiler-kernels"))),
    responses((status = 200), (status = 206, description = "A part of it."), OfCapture, Transfer))]
pub(crate) async fn profiler_kernels(request: ProfilerRequest) -> Result<Response<Body>, Problem> {
    request.answer("profiler-kernels").await
}

/// `gpu_idle_time_pct`, `compute_time_pct`, `communication_time_pct`, `top_kernels`,
/// `recommendations` and `bottlenecks`: the analysis `profiler-hta`.
#[utoipa::path(method(get, head), path = "/api/profiler/hta", tag = "analyses",
    params(ProfilerQuery, TransferHeaders), extensions(("x-analysis" = json!("profiler-hta"))),
    responses((status = 200), (status = 206, description = "A part of it."), OfCapture, Transfer))]
pub(crate) async fn profiler_hta(request: ProfilerRequest) -> Result<Response<Body>, Problem> {
    request.answer("profiler-hta").await
}

/// `speedup` (null without an eager capture beside), `compile_time_ms`, `graph_breaks`,
/// `total_graph_breaks`, `fusion_ratio`, `ops_before_fusion`, `ops_after_fusion` and
/// `recommendations`: the analysis `profiler-compile`. `with=SESSION_ID/CAPTURE` names a capture of
/// the eager program.
#[utoipa::path(method(get, head), path = "/api/profiler/compile", tag = "analyses",
    params(ProfilerQuery, TransferHeaders), extensions(("x-analysis" = json!("profiler-compile"))),
    responses((status = 200), (status = 206, description = "A part of it."), OfCapture, Transfer))]
pub(crate) async fn profiler_compile(request: ProfilerRequest) -> Result<Response<Body>, Problem> {
    request.answer("profiler-compile").await
}

/// `points`, each with `time_ms` and `allocated_mb`, `peak_allocated_mb` and `peak_time_ms`: the
/// analysis `profiler-memory`, with its parameters.
#[utoipa::path(method(get, head), path = "/api/profiler/memory", tag = "analyses",
    params(ProfilerQuery, TransferHeaders), extensions(("x-analysis" = json!("profiler-memory"))),
    responses((status = 200), (status = 206, description = "A part of it."), OfCapture, Transfer))]
pub(crate) async fn profiler_memory(request: ProfilerRequest) -> Result<Response<Body>, Problem> {
    request.answer("profiler-memory").await
}

/// The flame graph of GPU time, or of CPU time with `weight=cpu`: the analysis `flame-graph`, with
/// its parameters, of which clients know `min_duration_us`, `max_depth` and `group_small_kernels`.
/// As JSON it is what d3-flame-graph draws; `format=html` is a page of its own.
#[utoipa::path(method(get, head), path = "/api/profiler/flame", tag = "analyses",
    params(ProfilerQuery, TransferHeaders), extensions(("x-analysis" = json!("flame-graph"))),
    responses((status = 200), (status = 206, description = "A part of it."), OfCapture, Transfer))]
pub(crate) async fn profiler_flame(request: ProfilerRequest) -> Result<Response<Body>, Problem> {
    request.answer("flame-graph").await
}
