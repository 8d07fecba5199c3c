//! Routes for those alone who may read their paths.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};

use crate::bearer::bearer;
use crate::grant::Denied;
use crate::review::{Credentials, Reviewer};

/// Routes for those alone who may `get` their paths as `nonResourceURLs`: metrics, which name every
/// tenant's pods. Others hear 401, 403, or 503 where the Kubernetes API does not answer.
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
