//! The parts of a request as handlers take them: what cannot be read of one is a problem for its
//! sender.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::StatusCode;

use crate::gateway::problem::Problem;

/// Parameters of the path.
pub(crate) fn path<T>(path: Result<Path<T>, PathRejection>) -> Result<T, Problem> {
    path.map(|Path(path)| path)
        .map_err(|rejection| Problem::BadRequest(rejection.body_text()))
}

/// Parameters of the query.
pub(crate) fn query<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Problem> {
    query
        .map(|Query(query)| query)
        .map_err(|rejection| Problem::BadRequest(rejection.body_text()))
}

/// The body as JSON.
pub(crate) fn body<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, Problem> {
    let Json(body) = body.map_err(|rejection| match rejection.status() {
        StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST => Problem::BadRequest(rejection.body_text()),
        status => Problem::Refused {
            status,
            message: rejection.body_text(),
        },
    })?;
    Ok(body)
}
