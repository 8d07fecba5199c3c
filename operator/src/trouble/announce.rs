//! Says on each pod that is held up why, and what to do.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_controller::events::{Event, EventType, PublishError};
use kube::ResourceExt as _;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::controller::context::Context;
use crate::trouble::{InitContainer, TroubleReason, trouble};

/// Shortest time between two Events about one pod and one cause.
pub const RESEND: Duration = Duration::from_mins(10);
/// Wait after a round that the API server cut short.
const RETRY: Duration = Duration::from_secs(30);
/// Shortest time between two rounds: a roll-out that goes wrong changes many pods at once.
pub(crate) const PACE: Duration = Duration::from_secs(1);
/// Most Events within [`RESEND`], and so most that is remembered.
const MAX_TOLD: usize = 10_000;

/// Who was told what, and when.
#[derive(Debug, Default)]
pub struct Told(HashMap<Subject, Instant>);

/// UID of a pod, and what holds it up.
type Subject = (String, InitContainer, TroubleReason);

impl Told {
    /// Whether an Event is due now; it then counts as sent.
    fn due(&mut self, subject: &Subject, now: Instant) -> bool {
        if self.0.contains_key(subject) || self.0.len() >= MAX_TOLD {
            return false;
        }
        self.0.insert(subject.clone(), now);
        true
    }

    fn forget_old(&mut self, now: Instant) {
        self.0.retain(|_, sent| now.duration_since(*sent) < RESEND);
    }
}

/// Looks at every pod that is held up when `changed` says that there may be another, and from time to time. Runs for
/// ever; the leader's work.
pub async fn keep(context: &Context, changed: &Notify) {
    let mut told = Told::default();
    loop {
        let wait = if round(context, &mut told).await { RESEND } else { RETRY };
        tokio::time::sleep(PACE).await;
        // A change ends the wait early.
        drop(tokio::time::timeout(wait, changed.notified()).await);
    }
}

/// Tells whoever is due; false if the API server did not answer, and the rest was left for later.
pub async fn round(context: &Context, told: &mut Told) -> bool {
    let now = Instant::now();
    told.forget_old(now);
    for pod in context.stores.pods.state_filter(|pod| trouble(pod).is_some()) {
        let (Some(trouble), Some(uid)) = (trouble(&pod), pod.uid()) else {
            continue;
        };
        if trouble.ended.is_some_and(is_old) {
            continue;
        }
        let reason = trouble.reason();
        let subject = (uid, trouble.container, reason);
        if !told.due(&subject, now) {
            continue;
        }
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        tracing::warn!(namespace, pod = name, reason = reason.as_str(), %trouble, "the preparation holds a pod up");
        let event = Event {
            type_: EventType::Warning,
            reason: reason.as_str().to_owned(),
            action: "Prepare".to_owned(),
            note: Some(trouble.note()),
            related: None,
        };
        let Err(error) = context.events.publish(pod.as_ref(), &event).await else {
            continue;
        };
        context.metrics.events_failed.inc();
        tracing::warn!(namespace, pod = name, reason = event.reason, %error, "cannot publish an event");
        // What the API server refuses it refuses again; the others go on.
        if !matches!(error, PublishError::Kube(kube::Error::Api(_))) {
            told.0.remove(&subject);
            return false;
        }
    }
    true
}

/// Whether a pod ended so long ago that it is no news.
fn is_old(ended: Timestamp) -> bool {
    Duration::try_from(Timestamp::now().duration_since(ended)).is_ok_and(|age| age >= RESEND)
}

#[cfg(test)]
mod tests;
