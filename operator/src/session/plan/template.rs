//! Sessions that make their own pod: of a template, or as a copy of another.

use std::collections::BTreeSet;
use std::sync::Arc;

use flopwatch_api::pod;
use flopwatch_api::reason::SessionReason;
use flopwatch_api::session::StartMode;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use super::{Over, Plan, PlanBuilder, admit};
use crate::preparation_failure::preparation_failure;
use crate::session::own_pod::{self, Attempt};
use crate::session::targets::{Selection, choose_among};

impl PlanBuilder<'_> {
    /// The session's own pod, if it has made one and it is seen.
    pub(super) fn own_pod(&self) -> Option<&Arc<Pod>> {
        self.session.spec.target.own_pod_field()?;
        let made = match self.world.attempt {
            Some(Attempt::Made(pod)) => Some(pod),
            _ => None,
        };
        let name = own_pod::name(self.session);
        let seen = self.world.pods.iter().find(|pod| pod.name_any() == name);
        made.or(seen).filter(|pod| own_pod::is_own(self.session, pod))
    }

    /// Name and UID of the session's copy of a pod, which goes when the session has ended; None
    /// where it goes already.
    pub(super) fn replica(&self) -> Option<(String, String)> {
        self.session.spec.target.replica_of.as_ref()?;
        let copy = self.own_pod().filter(|pod| pod.metadata.deletion_timestamp.is_none())?;
        Some((copy.name_any(), copy.uid()?))
    }

    /// Makes the session's pod, waits for it, and makes captures of its containers.
    pub(super) fn take_own_pod(mut self) -> Plan {
        let name = own_pod::name(self.session);
        if let Some(pod) = self.own_pod().map(Arc::clone) {
            self.status.pod_name = Some(name);
            return self.take(&pod);
        }
        if self.world.pods.iter().any(|pod| pod.name_any() == name) {
            let message =
                format!("there is a pod {name} that the session did not make: delete it, and create the session anew");
            return self.end_without_captures(SessionReason::PodRefused, SessionReason::Failed, &message);
        }
        if self.status.pod_name.is_some() {
            let message = format!("pod {name} was deleted before a capture could be made");
            return self.end_without_captures(SessionReason::PodEnded, SessionReason::Failed, &message);
        }
        match self.world.attempt {
            Some(Attempt::Waits { reason, message }) => self.wait(*reason, message.clone()),
            Some(Attempt::Refused { reason, message }) => {
                self.end_without_captures(*reason, SessionReason::Failed, message)
            }
            Some(Attempt::Made(_)) | None => self.make_own_pod(),
        }
    }

    fn make_own_pod(self) -> Plan {
        let template = match (&self.session.spec.target.pod_template, self.world.replica) {
            (Some(template), _) | (None, Some(Ok(template))) => template,
            (None, Some(Err(why))) => {
                let (message, refused) = (why.to_string(), SessionReason::PodRefused);
                return match why.waiting_reason() {
                    Some(reason) => self.wait(reason, message),
                    None => self.end_without_captures(refused, SessionReason::Failed, &message),
                };
            }
            (None, None) => return self.choose(),
        };
        let kernels = match self.world.top_kernels {
            Ok(kernels) => kernels,
            Err(why) => {
                let reason = SessionReason::NoTopKernels;
                return self.end_without_captures(reason, SessionReason::Failed, why);
            }
        };
        let manifest = own_pod::manifest(self.session, template, kernels);
        let wanted = own_pod::typed(manifest.clone()).map_or(1, |pod| own_pod::captures(self.session, &pod));
        match admit(self.world.quota, wanted) {
            Err(Over::Now(message)) => self.wait(SessionReason::NamespaceLimit, message),
            Err(Over::Ever(message)) => {
                self.end_without_captures(SessionReason::NamespaceLimit, SessionReason::Failed, &message)
            }
            Ok(()) => Plan {
                create_pod: Some(Box::new(manifest)),
                status: self.status,
                decisive: true,
                ..Plan::default()
            },
        }
    }

    fn take(self, pod: &Pod) -> Plan {
        let name = pod.name_any();
        if let Some((message, _)) = own_pod::unprepared(self.session, pod) {
            return self.end_without_captures(SessionReason::PodNotPrepared, SessionReason::Failed, &message);
        }
        let made = || {
            self.world
                .captures
                .iter()
                .map(|capture| capture.spec.pod_ref.uid.clone())
        };
        let kept: BTreeSet<String> = made().collect();
        if own_pod::unfinished(pod).is_none() && kept.is_empty() {
            let message = format!(
                "pod {name} ended (phase {}) before a capture could be made; its log says why",
                pod::phase(pod)
            );
            return self.end_without_captures(SessionReason::PodEnded, SessionReason::Failed, &message);
        }
        let scheduled = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let ready = match self.session.spec.start {
            // The node's agent must know of the capture before the container asks for its session.
            StartMode::ContainerStart => scheduled,
            StartMode::Now => scheduled && pod::phase(pod) == "Running",
        };
        if !ready && kept.is_empty() {
            let failure = preparation_failure(pod).map(|failure| failure.note());
            let why = failure.or_else(|| unscheduled(pod));
            let why = why.map_or_else(String::new, |why| format!("; {why}"));
            let message = format!("pod {name} is not running (phase {}){why}", pod::phase(pod));
            return self.wait(SessionReason::WaitingForTargets, message);
        }
        match choose_among(&self.session.spec.target, vec![pod], &kept) {
            Selection::Found(targets) => self.make_captures(&targets, None),
            Selection::Waiting(message) => self.wait(SessionReason::WaitingForTargets, message),
            Selection::Impossible { reason, message } => {
                self.end_without_captures(reason, SessionReason::Failed, &message)
            }
        }
    }
}

/// What the scheduler says of a pod that it found no node for.
fn unscheduled(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let mut refused = conditions.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    let message = refused.next()?.message.as_deref()?;
    Some(format!("the scheduler says: {message}"))
}
