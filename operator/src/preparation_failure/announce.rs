//! Publishes an Event on each pod that the preparation keeps from starting: the reason, and the
//! remedy.

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
use crate::preparation_failure::{InjectedComponent, preparation_failure};

/// Shortest time between two Events about one pod and one cause.
pub const MIN_RESEND_INTERVAL: Duration = Duration::from_mins(10);
/// Wait after a round that the API server cut short.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// Shortest time between two rounds: a roll-out that goes wrong changes many pods at once.
pub(crate) const MIN_ROUND_INTERVAL: Duration = Duration::from_secs(1);
/// Age up to which a pod that was created unprepared gets its one Event.
const MAX_NEWS_AGE: Duration = Duration::from_hours(1);
/// Most Events that are remembered.
const MAX_SENT_EVENTS: usize = 10_000;

/// The Events that were sent, and until when each is remembered.
#[derive(Debug, Default)]
pub struct SentEvents(HashMap<Subject, Instant>);

/// The UID of a pod, the injected component that holds the pod up if one does, and the reason of
/// the Event.
type Subject = (String, Option<InjectedComponent>, &'static str);

impl SentEvents {
    /// Whether an Event is due now; if so, it is recorded as sent until `now + remembered`.
    fn record_if_due(&mut self, subject: &Subject, now: Instant, remembered: Duration) -> bool {
        if self.0.contains_key(subject) || self.0.len() >= MAX_SENT_EVENTS {
            return false;
        }
        self.0.insert(subject.clone(), now + remembered);
        true
    }

    fn forget_old(&mut self, now: Instant) {
        self.0.retain(|_, until| now < *until);
    }
}

/// Sends the Events that are due whenever `changed` is notified, and every 10 minutes. Runs for
/// ever, in the process that leads.
pub async fn keep(context: &Context, changed: &Notify) {
    let mut sent = SentEvents::default();
    loop {
        let wait = if round(context, &mut sent).await {
            MIN_RESEND_INTERVAL
        } else {
            RETRY_INTERVAL
        };
        tokio::time::sleep(MIN_ROUND_INTERVAL).await;
        // A change ends the wait early.
        drop(tokio::time::timeout(wait, changed.notified()).await);
    }
}

/// Sends every Event that is due; false if the API server did not answer, and the rest was left for
/// later.
pub async fn round(context: &Context, sent: &mut SentEvents) -> bool {
    let now = Instant::now();
    sent.forget_old(now);
    for pod in context
        .stores
        .pods
        .state_filter(|pod| preparation_failure(pod).is_some())
    {
        let (Some(failure), Some(uid)) = (preparation_failure(&pod), pod.uid()) else {
            continue;
        };
        if failure.ended.is_some_and(|ended| is_older(ended, MIN_RESEND_INTERVAL)) {
            continue;
        }
        let reason = failure.reason().as_str();
        let subject = (uid, Some(failure.component), reason);
        if sent.record_if_due(&subject, now, MIN_RESEND_INTERVAL)
            && !publish_warning(context, &pod, reason, failure.note()).await
        {
            sent.0.remove(&subject);
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
            .is_none_or(|Time(created)| is_older(created, MAX_NEWS_AGE))
        {
            continue;
        }
        let subject = (uid, None, reason.as_str());
        if sent.record_if_due(&subject, now, MAX_NEWS_AGE)
            && !publish_once(context, &pod, reason.as_str(), unprepared::note(&pod, reason)).await
        {
            sent.0.remove(&subject);
            return false;
        }
    }
    true
}

/// Publishes a warning on a pod; false if the API server did not answer. A refusal counts as sent:
/// the API server would refuse the same Event again.
async fn publish_warning(context: &Context, pod: &Pod, reason: &str, note: String) -> bool {
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

/// Publishes a warning on a pod once: the Event is named after the pod and the reason, so that the
/// process that leads next does not send another. False if the API server did not answer.
async fn publish_once(context: &Context, pod: &Pod, reason: &str, note: String) -> bool {
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

/// Whether `then` is at least `limit` ago.
fn is_older(then: Timestamp, limit: Duration) -> bool {
    Duration::try_from(Timestamp::now().duration_since(then)).is_ok_and(|age| age >= limit)
}

#[cfg(test)]
mod tests;
