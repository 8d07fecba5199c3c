//! The credential of a request, and routes for those alone who may read their paths.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};

use crate::review::{Credentials, Denied, Reviewer};

/// The bearer token of the one `Authorization` that there is.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (values.next().is_none() && scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Routes for those alone who may `get` their paths as `nonResourceURLs`: metrics, which name every tenant's pods. Others hear 401, 403,
/// or 503 where the Kubernetes API does not answer.
pub fn for_readers_of_paths(routes: Router, reviewer: Arc<Reviewer>) -> Router {
    routes.route_layer(middleware::from_fn_with_state(reviewer, review))
}

async fn review(State(reviewer): State<Arc<Reviewer>>, request: Request, next: Next) -> Response {
    let token = bearer(request.headers()).map(str::to_owned);
    let path = request.uri().path().to_owned();
    let answer = match &token {
        Some(token) => reviewer.review_path(&Credentials::new(token), &path).await,
        None => Err(Denied::Unauthenticated),
    };
    match answer {
        Ok(_) => next.run(request).await,
        Err(Denied::Unauthenticated) => {
            let how = [(WWW_AUTHENTICATE, "Bearer realm=\"flopwatch\"")];
            (StatusCode::UNAUTHORIZED, how, "a token of this cluster is needed\n").into_response()
        }
        Err(Denied::Forbidden) => {
            let words = format!(
                "the right to get the nonResourceURL {path} is needed (ClusterRole flopwatch-metrics-reader)\n"
            );
            (StatusCode::FORBIDDEN, words).into_response()
        }
        Err(Denied::Unavailable) => {
            let words = "the Kubernetes API could not be asked who may read this\n";
            (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "2")], words).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values
            .iter()
            .map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    #[test]
    fn a_bearer_token_is_the_only_credential() {
        assert_eq!(bearer(&headers(&["Bearer abc"])), Some("abc"));
        assert_eq!(bearer(&headers(&["bearer abc"])), Some("abc"));
        for value in ["", "Bearer", "Bearer ", "Basic abc", "abc"] {
            assert_eq!(bearer(&headers(&[value])), None, "{value}");
        }
        let mut two = headers(&["Bearer abc"]);
        two.append(AUTHORIZATION, HeaderValue::from_static("Bearer abc"));
        assert_eq!((bearer(&two), bearer(&headers(&[]))), (None, None));
    }
}
