//! The handler that receives timelines of other nodes' captures from the gateway;
//! `store/received.rs` explains why that is safe.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use flopwatch_api::artifact::{Artifact, INPUTS_PATH, Output, TIMELINE, TIMELINE_TYPE};
use flopwatch_api::capture::SessionReference;
use flopwatch_api::reason::ArtifactReason;
use flopwatch_http::{Credentials, Denied, bearer};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use serde::Deserialize;

use super::Inner;
use crate::access::Access;
use crate::manifest::{CaptureId, MANIFEST_VERSION, Manifest};
use crate::problem::Problem;

/// The query of an upload: the timeline's session, size and digest, from the status of its capture.
#[derive(Debug, Deserialize)]
pub(super) struct ReceivedInput {
    session: String,
    session_id: String,
    bytes: i64,
    sha256: String,
    #[serde(default)]
    sensitive: bool,
}

pub(super) async fn receive_input(
    State(inner): State<Arc<Inner>>,
    path: Result<Path<(String, String, String)>, PathRejection>,
    input: Result<Query<ReceivedInput>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Problem> {
    let Path((namespace, name, uid)) = path.map_err(Problem::BadPath)?;
    // Where everybody on the machine is let in, nobody brings captures of other nodes.
    let Access::Kubernetes(reviewer) = &inner.access else {
        return Err(Problem::Method);
    };
    let token = bearer(&headers).ok_or(Problem::Unauthenticated)?;
    let allowed = reviewer.review_put(&Credentials::new(token), INPUTS_PATH).await;
    allowed.map_err(|denied| match denied {
        Denied::Unauthenticated => Problem::Unauthenticated,
        Denied::Forbidden => Problem::Input(
            StatusCode::FORBIDDEN,
            ArtifactReason::Forbidden,
            format!("Handing a timeline over needs `put` on the nonResourceURL {INPUTS_PATH}, which the gateway has."),
        ),
        Denied::Unavailable => Problem::Reviews,
    })?;
    let Query(input) = input.map_err(Problem::BadQuery)?;
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        capture: CaptureId { namespace, name, uid },
        session: SessionReference {
            name: input.session,
            id: input.session_id,
        },
        created: Timestamp::now(),
        artifacts: vec![Artifact {
            name: TIMELINE.to_owned(),
            type_: Output::Timeline,
            bytes: input.bytes,
            sha256: input.sha256,
            media_type: TIMELINE_TYPE.to_owned(),
            sensitive: input.sensitive,
        }],
        captured: Vec::new(),
    };
    let counter = inner.metrics.received_bytes.clone();
    let content = body
        .into_data_stream()
        .inspect_ok(move |piece| counter.inc_by(u64::try_from(piece.len()).unwrap_or(u64::MAX)));
    let received = inner.store.receive(manifest, content).await;
    let result = if received.is_ok() { "taken" } else { "refused" };
    inner.metrics.inputs.with_label_values(&[result]).inc();
    received.map_err(|error| {
        tracing::warn!(%error, "a timeline of another node was not taken");
        Problem::of_input(&error)
    })?;
    Ok(StatusCode::CREATED)
}
