//! Says on each pod that is held up why, and what to do.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_controller::events::{Event, EventType, PublishError};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event as KubeEvent;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::{Resource as _, ResourceExt as _};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::controller::context::Context;
use crate::deadline::bounded;
use crate::preparation_failure::unprepared::{self, unprepared};
use crate::preparation_failure::{Part, preparation_failure};

/// Shortest time between two Events about one pod and one cause.
pub const RESEND: Duration = Duration::from_mins(10);
/// Wait after a round that the API server cut short.
const RETRY: Duration = Duration::from_secs(30);
/// Shortest time between two rounds: a roll-out that goes wrong changes many pods at once.
pub(crate) const PACE: Duration = Duration::from_secs(1);
/// Age from which a pod that was created unprepared is no news. It is told once.
const NEWS: Duration = Duration::from_hours(1);
/// Most Events that are remembered.
const MAX_TOLD: usize = 10_000;

/// Who was told what, and until when that is remembered.
#[derive(Debug, Default)]
pub struct Told(HashMap<Subject, Instant>);

/// UID of a pod, what holds it up if something of ours does, and the reason of the Event.
type Subject = (String, Option<Part>, &'static str);

impl Told {
    /// Whether an Event is due now; it then counts as sent.
    fn due(&mut self, subject: &Subject, now: Instant, remembered: Duration) -> bool {
        if self.0.contains_key(subject) || self.0.len() >= MAX_TOLD {
            return false;
        }
        self.0.insert(subject.clone(), now + remembered);
        true
    }

    fn forget_old(&mut self, now: Instant) {
        self.0.retain(|_, until| now < *until);
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
    for pod in context
        .stores
        .pods
        .state_filter(|pod| preparation_failure(pod).is_some())
    {
        let (Some(failure), Some(uid)) = (preparation_failure(&pod), pod.uid()) else {
            continue;
        };
        if failure.ended.is_some_and(|ended| is_older(ended, RESEND)) {
            continue;
        }
        let reason = failure.reason().as_str();
        let subject = (uid, Some(failure.part), reason);
        if told.due(&subject, now, RESEND) && !tell(context, &pod, reason, failure.note()).await {
            told.0.remove(&subject);
            return false;
        }
    }
    for pod in context.stores.pods.state_filter(|pod| unprepared(pod).is_some()) {
        let (Some(reason), Some(uid)) = (unprepared(&pod), pod.uid()) else {
            continue;
        };
        // Without a time of creation it is no pod of an API server, and old.
        if pod
            .creation_timestamp()
            .is_none_or(|Time(created)| is_older(created, NEWS))
        {
            continue;
        }
        let subject = (uid, None, reason.as_str());
        if told.due(&subject, now, NEWS)
            && !tell_once(context, &pod, reason.as_str(), unprepared::note(&pod, reason)).await
        {
            told.0.remove(&subject);
            return false;
        }
    }
    true
}

/// Warns on a pod; false if the API server did not answer. What it refuses it refuses again: that counts as told.
async fn tell(context: &Context, pod: &Pod, reason: &str, note: String) -> bool {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    tracing::warn!(namespace, pod = name, reason, note, "the preparation of a pod");
    let event = Event {
        type_: EventType::Warning,
        reason: reason.to_owned(),
        action: "Prepare".to_owned(),
        note: Some(note),
        related: None,
    };
    let Err(error) = context.events.publish(pod, &event).await else {
        return true;
    };
    context.metrics.events_failed.inc();
    tracing::warn!(namespace, pod = name, reason, %error, "cannot publish an event");
    matches!(error, PublishError::Kube(kube::Error::Api(_)))
}

/// Warns on a pod for good: the Event is named after the pod and the reason, so that whoever leads after this process finds it told. False
/// if the API server did not answer.
async fn tell_once(context: &Context, pod: &Pod, reason: &str, note: String) -> bool {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let event = KubeEvent {
        metadata: ObjectMeta {
            name: Some(format!(
                "{}.{}",
                pod.uid().unwrap_or_default(),
                reason.to_ascii_lowercase()
            )),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        type_: Some("Warning".to_owned()),
        reason: Some(reason.to_owned()),
        action: Some("Prepare".to_owned()),
        note: Some(note.clone()),
        regarding: Some(pod.object_ref(&())),
        event_time: Some(MicroTime(Timestamp::now())),
        reporting_controller: Some(context.reporter.controller.clone()),
        reporting_instance: context.reporter.instance.clone().or_else(|| Some(name.clone())),
        ..KubeEvent::default()
    };
    let api: Api<KubeEvent> = Api::namespaced(context.client.clone(), &namespace);
    let made = bounded("publishing an event", api.create(&PostParams::default(), &event)).await;
    let Err(error) = made else {
        tracing::warn!(namespace, pod = name, reason, note, "the preparation of a pod");
        return true;
    };
    if error.already_exists() {
        return true;
    }
    context.metrics.events_failed.inc();
    tracing::warn!(namespace, pod = name, reason, %error, "cannot publish an event");
    error.refusal().is_some()
}

/// Whether something was so long ago that it is no news.
fn is_older(then: Timestamp, news: Duration) -> bool {
    Duration::try_from(Timestamp::now().duration_since(then)).is_ok_and(|age| age >= news)
}

#[cfg(test)]
mod tests;
