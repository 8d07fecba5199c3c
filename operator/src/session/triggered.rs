//! Sessions that say that an alert made them, held against the schedule that they name.
//!
//! The gateway makes them with its own account, and the policy `flopwatch-triggered` sees their
//! form alone. So whoever holds its token could name any pod and any profiler. What the schedule
//! itself would not have asked for is refused, once, when the controller takes the session up.

use std::sync::Arc;

use flopwatch_api::schedule::{ProfilingSchedule, SCHEDULE_LABEL, TARGET_UID_ANNOTATION, TRIGGER_ANNOTATION};
use flopwatch_api::session::{ProfilingSession, ProfilingSessionSpec};
use flopwatch_schedule::{is_of, trigger_of_session};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use kube::core::{Selector, SelectorExt as _};
use kube::runtime::reflector::ObjectRef;

use crate::controller::context::Context;
use crate::deadline::{CallError, bounded};
use crate::schedule::session::triggered_spec;

/// Why no alert can have made a session that says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forged {
    /// No schedule of its namespace owns it, or the schedule is gone.
    #[error(
        "annotation flopwatch.dev/trigger says that an alert made the session, and no ProfilingSchedule of its \
         namespace owns it: leave the annotation out"
    )]
    NoSchedule,
    /// The schedule makes no session of that name for an alert.
    #[error("ProfilingSchedule {0} has no trigger that makes a session of this name")]
    NoTrigger(String),
    /// The session's spec differs from what the schedule asks for.
    #[error("the session's spec is not what ProfilingSchedule {0} asks for when an alert fires")]
    OtherSpec(String),
    /// The pod that it names is not there.
    #[error("there is no pod {0} of the UID that annotation flopwatch.dev/target-uid names")]
    NoPod(String),
    /// The schedule does not profile that pod.
    #[error("ProfilingSchedule {schedule} does not select pod {pod}")]
    NotSelected {
        /// Name of the schedule.
        schedule: String,
        /// Name of the pod.
        pod: String,
    },
}

/// UID of the pod that an alert was about, by what its session says; None where no alert is said to
/// have made the session. Such a session profiles that very pod, and none of the same name.
pub fn pod_uid(session: &ProfilingSession) -> Option<&str> {
    let annotations = session.annotations();
    annotations.get(TRIGGER_ANNOTATION)?;
    Some(annotations.get(TARGET_UID_ANNOTATION).map_or("", String::as_str))
}

/// What speaks against a new session that says that an alert made it; None for any other. A session
/// that was taken up stays as it is when its schedule is changed. `pods` are those that the session
/// can mean, as the watch has them.
pub async fn forged(
    session: &ProfilingSession,
    pods: &[Arc<Pod>],
    context: &Context,
) -> Result<Option<Forged>, CallError> {
    let is_new = session.status.as_ref().is_none_or(|status| status.id.is_none());
    let Some(uid) = pod_uid(session).filter(|_| is_new) else {
        return Ok(None);
    };
    let namespace = session.namespace().unwrap_or_default();
    let Some(name) = session.labels().get(SCHEDULE_LABEL).filter(|name| !name.is_empty()) else {
        return Ok(Some(Forged::NoSchedule));
    };
    let cached = context.stores.schedules.get(&ObjectRef::new(name).within(&namespace));
    let pod = pods.first().map(AsRef::as_ref);
    if hold(session, cached.as_deref(), pod).is_ok() {
        return Ok(None);
    }
    // The gateway decided by what the API server said, and the watches may be behind it.
    let schedules: Api<ProfilingSchedule> = Api::namespaced(context.client.clone(), &namespace);
    let schedule = bounded("reading a session's schedule", schedules.get_opt(name)).await?;
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let target = session.spec.target.pod_name.as_deref().unwrap_or_default();
    let named = ListParams::default().fields(&format!("metadata.name={target}"));
    let listed = bounded("reading the pod of an alert", pods.list(&named)).await?;
    let pod = listed.items.iter().find(|pod| pod.metadata.uid.as_deref() == Some(uid));
    Ok(hold(session, schedule.as_ref(), pod).err())
}

/// Holds a session against the schedule that it names and the pod that it targets.
fn hold(session: &ProfilingSession, schedule: Option<&ProfilingSchedule>, pod: Option<&Pod>) -> Result<(), Forged> {
    let schedule = schedule.filter(|schedule| schedule.metadata.deletion_timestamp.is_none());
    let schedule = schedule
        .filter(|schedule| is_of(schedule, session))
        .ok_or(Forged::NoSchedule)?;
    let name = || schedule.name_any();
    if trigger_of_session(schedule, session).is_none() {
        return Err(Forged::NoTrigger(name()));
    }
    let target = session.spec.target.pod_name.clone().unwrap_or_default();
    let asked = ProfilingSessionSpec {
        stop: None,
        ..session.spec.clone()
    };
    if asked != triggered_spec(schedule, &target) {
        return Err(Forged::OtherSpec(name()));
    }
    let pod = pod.ok_or_else(|| Forged::NoPod(target.clone()))?;
    let selector: Result<Selector, _> = schedule.spec.pod_selector().clone().try_into();
    if selector.is_ok_and(|selector| selector.matches(pod.labels())) {
        Ok(())
    } else {
        Err(Forged::NotSelected {
            schedule: name(),
            pod: target,
        })
    }
}
