//! The paths, and the document that describes them: both come of the same handlers.

use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use crate::gateway::problem::Problem;
use crate::gateway::state::Gateway;
use crate::gateway::{
    alerts, analyses, artifact_routes, document, fleet, profiler, session_routes, sign_in, stop, targets,
};

fn documented() -> (axum::Router<Gateway>, utoipa::openapi::OpenApi) {
    let (router, mut document) = OpenApiRouter::<Gateway>::with_openapi(document::declared())
        .routes(routes!(session_routes::modes))
        .routes(routes!(session_routes::run))
        .routes(routes!(session_routes::list))
        .routes(routes!(session_routes::session, session_routes::delete))
        .routes(routes!(session_routes::events))
        .routes(routes!(stop::stop))
        .routes(routes!(targets::targets))
        .routes(routes!(fleet::top))
        .routes(routes!(alerts::alerts).layer(DefaultBodyLimit::max(alerts::MAX_BODY_BYTES)))
        .routes(routes!(sign_in::signed_in, sign_in::sign_in, sign_in::sign_out))
        .routes(routes!(artifact_routes::artifacts))
        .routes(routes!(artifact_routes::artifact))
        .routes(routes!(artifact_routes::timeline))
        .routes(routes!(artifact_routes::timeline_status))
        .routes(routes!(artifact_routes::kernels))
        .routes(routes!(analyses::analyses))
        .routes(routes!(analyses::analysis))
        .routes(routes!(profiler::profiler_timeline))
        .routes(routes!(profiler::profiler_kernels))
        .routes(routes!(profiler::profiler_hta))
        .routes(routes!(profiler::profiler_compile))
        .routes(routes!(profiler::profiler_memory))
        .routes(routes!(profiler::profiler_flame))
        .split_for_parts();
    document::describe(&mut document);
    (router, document)
}

/// The OpenAPI 3.1 document, as it is served and committed.
pub fn openapi() -> Result<String, serde_json::Error> {
    document::complete(&documented().1)
}

/// The paths, with the document at `/api/openapi.json`.
pub(crate) fn router(gateway: Gateway) -> Result<axum::Router, serde_json::Error> {
    let (router, document) = documented();
    let document = axum::body::Bytes::from(document::complete(&document)?);
    let serve = move || {
        let document = document.clone();
        async move { ([(CONTENT_TYPE, "application/json")], document) }
    };
    Ok(router
        .route("/api/openapi.json", axum::routing::get(serve))
        .fallback(|| async { Problem::NotFound("such path; /api/openapi.json lists those there are".to_owned()) })
        .method_not_allowed_fallback(|| async { Problem::Method })
        .with_state(gateway))
}
