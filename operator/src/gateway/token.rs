//! The token of a request: in its header, or in the cookie of a browser that signed in.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use flopwatch_http::bearer;
use jiff::Timestamp;

use crate::gateway::cookie::Cookies;
use crate::gateway::problem::Problem;

/// The token of a request.
pub(crate) struct Token(pub(crate) String);

impl<S> FromRequestParts<S> for Token
where
    S: Send + Sync,
    Arc<Cookies>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let token = if parts.headers.contains_key(AUTHORIZATION) {
            bearer(&parts.headers).map(str::to_owned)
        } else {
            of_browser(&Arc::<Cookies>::from_ref(state), &parts.headers)
        };
        token.map(Self).ok_or(Problem::Unauthenticated)
    }
}

/// The token of whoever signed in, for requests of this gateway's own pages alone.
pub(crate) fn of_browser(cookies: &Cookies, headers: &HeaderMap) -> Option<String> {
    if is_of_own_page(headers) {
        cookies.open(headers, Timestamp::now())
    } else {
        None
    }
}

/// Whether a page of this very origin sent the request. Browsers say so themselves and let no
/// script do it; a browser too old to say it counts as none, so a page of another site, or of
/// another port of the host, can have nothing done in the name of whoever signed in.
pub(crate) fn is_of_own_page(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.next().is_some_and(|site| site == "same-origin") && sites.next().is_none()
}
