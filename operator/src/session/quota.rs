//! How many captures a namespace may have at once, has, and is about to have.

use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::session::ProfilingSession;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use crate::controller::context::Context;
use crate::session::own_pod;
use crate::session::plan::is_choosing;

/// What a namespace may have at once, and has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quota {
    /// Most captures at once; None: no limit.
    pub limit: Option<usize>,
    /// Captures of the namespace that have not ended, this session's included once it has any, and
    /// those that other sessions will make of the pods that they made.
    pub taken: usize,
}

impl Quota {
    /// As the session's namespace has it, by its captures and its pods.
    pub fn of(session: &ProfilingSession, captures: &[Arc<Capture>], pods: &[Arc<Pod>], context: &Context) -> Self {
        let Some(limit) = context.namespace_limit else {
            return Self::default();
        };
        let at_work = captures.iter().filter(|capture| !Phase::of(capture).has_ended());
        let others = context.stores.sessions.state_filter(|other| {
            other.metadata.namespace == session.metadata.namespace
                && other.metadata.uid != session.metadata.uid
                && other.metadata.deletion_timestamp.is_none()
                && other.spec.target.makes_pod()
                && is_choosing(other)
        });
        let promised = others.iter().map(|other| promised(other, captures, pods));
        Self {
            limit: Some(limit.get()),
            taken: promised.fold(at_work.count(), usize::saturating_add),
        }
    }
}

/// Captures that a session will make of its own pod. The pod counts, not what the session's status
/// says of it: that is written after the pod was made, and seen later still.
fn promised(session: &ProfilingSession, captures: &[Arc<Capture>], pods: &[Arc<Pod>]) -> usize {
    let name = own_pod::name(session);
    let own = pods
        .iter()
        .find(|pod| pod.name_any() == name && own_pod::is_own(session, pod));
    let Some(pod) = own.filter(|pod| own_pod::unfinished(pod).is_some()) else {
        return 0;
    };
    let uid = pod.uid().unwrap_or_default();
    let made = captures
        .iter()
        .filter(|capture| capture.spec.pod_ref.uid == uid)
        .count();
    own_pod::captures(session, pod).saturating_sub(made)
}
