//! Sign-in of browsers: a token is shown once, and a cookie that only this gateway can decrypt
//! stands for it from then on.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::header::{CACHE_CONTROL, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, PostParams};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::gateway::api_server::{ApiServer, call_api_server};
use crate::gateway::cookie::{CookieError, Cookies, clear_cookie};
use crate::gateway::extract::body;
use crate::gateway::problem::{Problem, ProblemDetails};
use crate::gateway::token::{is_of_own_page, of_browser};

/// Who signs in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    /// A token of the cluster, such as `kubectl create token` makes.
    #[schema(max_length = 2816, pattern = r"^\s*[!-~]+\s*$")]
    token: String,
}

/// What browsers say of requests of the gateway's own pages.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "its field is for the document")]
struct OwnPage {
    /// Browsers set it themselves.
    #[param(rename = "Sec-Fetch-Site", pattern = "^same-origin$", example = "same-origin")]
    site: String,
}

/// Who is signed in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SignedIn {
    /// The user's name in the cluster; null when nobody is.
    user: Option<String>,
}

/// The headers of an answer that sets a cookie.
type CookieHeaders = [(HeaderName, HeaderValue); 2];

fn cookie_headers(cookie: Result<HeaderValue, CookieError>) -> Result<CookieHeaders, Problem> {
    let cookie = cookie.map_err(|error| match error {
        CookieError::Long(_) => Problem::BadRequest(error.to_string()),
        CookieError::Seal => Problem::Own(error.to_string()),
    })?;
    Ok([
        (SET_COOKIE, cookie),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ])
}

/// The name of whoever has the token, as the API server says.
async fn user_of(api_server: &ApiServer, token: &str) -> Result<String, Problem> {
    let api: Api<SelfSubjectReview> = Api::all(api_server.client(token)?);
    let review = call_api_server(api.create(&PostParams::default(), &SelfSubjectReview::default())).await?;
    let user = review.status.and_then(|status| status.user_info);
    user.and_then(|user| user.username).ok_or(Problem::Unauthenticated)
}

/// Who is signed in with this browser.
#[utoipa::path(get, path = "/api/sign-in", tag = "browsers", security(()),
    responses(
        (status = 200, body = SignedIn),
        (status = 503, body = ProblemDetails, content_type = "application/problem+json")))]
pub(crate) async fn signed_in(
    State(api_server): State<ApiServer>,
    State(cookies): State<Arc<Cookies>>,
    headers: HeaderMap,
) -> Result<([(HeaderName, HeaderValue); 1], Json<SignedIn>), Problem> {
    let user = match of_browser(&cookies, &headers) {
        None => None,
        Some(token) => match user_of(&api_server, &token).await {
            Ok(user) => Some(user),
            // The token ended before the cookie.
            Err(Problem::Unauthenticated) => None,
            Err(problem) => return Err(problem),
        },
    };
    let fresh = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((fresh, Json(SignedIn { user })))
}

/// Signs a browser in: for an hour, a cookie stands for the token in requests of the viewer's own
/// pages, and in no others.
#[utoipa::path(post, path = "/api/sign-in", tag = "browsers", security(()), request_body = SignIn, params(OwnPage),
    responses(
        (status = 200, body = SignedIn, headers(("Set-Cookie" = String, description = "The cookie, sealed."))),
        (status = 400, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 401, body = ProblemDetails, content_type = "application/problem+json", description = "The cluster does not know the token."),
        (status = 403, body = ProblemDetails, content_type = "application/problem+json", description = "The request is of another site."),
        (status = 413, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 415, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 500, body = ProblemDetails, content_type = "application/problem+json"),
        (status = 503, body = ProblemDetails, content_type = "application/problem+json")))]
pub(crate) async fn sign_in(
    State(api_server): State<ApiServer>,
    State(cookies): State<Arc<Cookies>>,
    headers: HeaderMap,
    asked_for: Result<Json<SignIn>, JsonRejection>,
) -> Result<(CookieHeaders, Json<SignedIn>), Problem> {
    if !is_of_own_page(&headers) {
        return Err(Problem::OtherSite);
    }
    let SignIn { token } = body(asked_for)?;
    let token = token.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Problem::BadRequest(
            "token must be one word of letters, digits and signs".to_owned(),
        ));
    }
    let cookie = cookie_headers(cookies.seal(token, Timestamp::now()))?;
    let user = user_of(&api_server, token).await?;
    Ok((cookie, Json(SignedIn { user: Some(user) })))
}

/// Signs a browser out.
#[utoipa::path(delete, path = "/api/sign-in", tag = "browsers", security(()), params(OwnPage),
    responses(
        (status = 204, description = "The browser forgets its cookie."),
        (status = 403, body = ProblemDetails, content_type = "application/problem+json", description = "The request is of another site.")))]
pub(crate) async fn sign_out(headers: HeaderMap) -> Result<(StatusCode, CookieHeaders), Problem> {
    if !is_of_own_page(&headers) {
        return Err(Problem::OtherSite);
    }
    Ok((StatusCode::NO_CONTENT, cookie_headers(clear_cookie())?))
}
