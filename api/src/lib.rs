//! Flopwatch's custom resources: what a user asks for, what the operator hands to a node, and what
//! comes back.
//!
//! * [`session::ProfilingSession`] is a user's request: a target in the same namespace, a goal, a
//!   window.
//! * [`schedule::ProfilingSchedule`] makes sessions again and again, of a sample of the pods.
//! * [`capture::Capture`] is one target container's part of it, handed to the agent of one node.
//! * [`reason`] holds every condition type and every reason, as closed sets: the program, the
//!   documentation and the metrics labels read the same list.
//! * [`phase`] and [`pod`] hold the predicates that all parts share: has a capture ended, was a
//!   container prepared.
//! * [`preparation`] holds the labels, annotations and paths by which admission, launcher and agent
//!   understand each other about a prepared pod.
//!
//! This crate does no I/O and depends on no other crate of ours but [`flopwatch_model`], whose
//! categories a session may require. Everything in it is a contract: a change is additive, and
//! `charts/flopwatch/files/crds` is regenerated with it (a test fails when the two drift).

#![allow(
    clippy::duplicated_attributes,
    reason = "printer columns and rules repeat their keys by design"
)]
#![allow(
    unreachable_pub,
    reason = "the KubeSchema derive repeats each struct inside a function"
)]

pub mod artifact;
pub mod capability;
pub mod capture;
pub mod overhead;
#[cfg(feature = "resources")]
pub mod phase;
#[cfg(feature = "resources")]
pub mod pod;
pub mod preparation;
pub mod profiler;
pub mod reason;
#[cfg(feature = "resources")]
pub mod schedule;
mod schema;
pub mod selector;
pub mod session;

/// The API group of every custom resource.
pub const GROUP: &str = "flopwatch.dev";
/// The version of every custom resource.
pub const VERSION: &str = "v1alpha1";

/// Field manager of the operator: session status, capture spec, the capture's finalizer, the `Lost` condition.
pub const OPERATOR_FIELD_MANAGER: &str = "flopwatch-operator";
/// Field manager of the agents: all other capture status.
pub const AGENT_FIELD_MANAGER: &str = "flopwatch-agent";

/// Audience of the tokens that the gateway shows to the agent of a node: good for nothing else, and for no other node.
pub fn agent_audience(node: &str) -> String {
    format!("flopwatch-agent/{node}")
}
/// Signer of the agents' certificates, as a CertificateSigningRequest names it.
pub const AGENT_SIGNER: &str = "flopwatch.dev/agent";
/// DNS name in the certificate of the agent of a node, below the one under which any agent is asked for.
pub fn agent_server_name(node: &str, any: &str) -> String {
    format!("{node}.{any}")
}
/// Audience of tokens that are good for reading metrics alone, with the right to.
pub const METRICS_AUDIENCE: &str = "flopwatch-metrics";

/// Label on captures, and on pods that a session made: name of the session they belong to.
pub const SESSION_LABEL: &str = "flopwatch.dev/session";
/// Label on captures: `status.id` of the session they belong to.
pub const SESSION_ID_LABEL: &str = "flopwatch.dev/session-id";
/// Annotation on sessions, set by admission from the authenticated user: who asked. Users cannot set it themselves.
pub const REQUESTED_BY_ANNOTATION: &str = "flopwatch.dev/requested-by";
/// Finalizer on captures, held by the operator until the agent has release the target and of the artifacts.
pub const CAPTURE_FINALIZER: &str = "flopwatch.dev/capture";
/// Prefix of annotations on sessions that hold the further fields of a request to the gateway, such as `solver`.
pub const REQUEST_ANNOTATION_PREFIX: &str = "request.flopwatch.dev/";
