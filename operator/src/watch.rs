//! Resilient watches: an object that does not parse is counted and skipped, a broken stream is
//! reopened.

use std::fmt::Debug;
use std::hash::Hash;

use futures::{Stream, StreamExt as _};
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_objects};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::metrics::Metrics;

/// What a watch saw, after the store was brought up to date.
#[derive(Debug)]
pub enum Change<K> {
    /// The object was added or changed.
    Applied(K),
    /// The object is gone.
    Deleted(K),
    /// The whole set was read anew; objects may have come or gone unseen.
    Relisted,
}

/// What `api` holds and each change of it, as the watch tells it; what does not parse and what
/// breaks is counted and left out. `prune` drops what nobody reads, so that a large cluster's pods
/// fit.
pub fn events<K>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    prune: fn(K) -> K,
    metrics: Metrics,
) -> impl Stream<Item = Event<K>> + Send + Unpin
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Default + Eq + Hash + Clone + Debug + Unpin + Send + Sync,
{
    let kind = K::kind(&K::DynamicType::default()).into_owned();
    let count = move |event: &str| metrics.watch_events.with_label_values(&[kind.as_str(), event]).inc();
    // On the heap: the state of a watch is large, and there are several side by side.
    Box::pin(watch_objects(api, config).default_backoff().filter_map(move |result| {
        let event = match result {
            Err(error) => {
                count("error");
                tracing::warn!(kind = %K::kind(&K::DynamicType::default()), %error, "watch broke and will be reopened");
                None
            }
            Ok(event) => {
                let (event, counted) = match event {
                    Event::Apply(guard) => (valid(guard, prune).map(Event::Apply), "applied"),
                    Event::Delete(guard) => (valid(guard, prune).map(Event::Delete), "deleted"),
                    Event::InitApply(guard) => (valid(guard, prune).map(Event::InitApply), ""),
                    Event::Init => (Some(Event::Init), ""),
                    Event::InitDone => (Some(Event::InitDone), "relisted"),
                };
                match (&event, counted) {
                    (None, _) => count("invalid"),
                    (Some(_), "") => {}
                    (Some(_), counted) => count(counted),
                }
                event
            }
        };
        std::future::ready(event)
    }))
}

/// Keeps `writer`'s store at what `api` holds and yields each change. `prune` as in [`events`].
pub fn follow<K>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    prune: fn(K) -> K,
    mut writer: Writer<K>,
    metrics: Metrics,
) -> impl Stream<Item = Change<K>> + Send + Unpin
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Default + Eq + Hash + Clone + Debug + Unpin + Send + Sync,
{
    events(api, config, prune, metrics).filter_map(move |event| {
        writer.apply_watcher_event(&event);
        std::future::ready(match event {
            Event::Apply(object) => Some(Change::Applied(object)),
            Event::Delete(object) => Some(Change::Deleted(object)),
            Event::InitDone => Some(Change::Relisted),
            Event::Init | Event::InitApply(_) => None,
        })
    })
}

fn valid<K: Resource>(guard: DeserializeGuard<K>, prune: fn(K) -> K) -> Option<K>
where
    K::DynamicType: Default,
{
    let (namespace, name) = (guard.namespace(), guard.name_any());
    match guard.0 {
        Ok(object) => Some(prune(object)),
        Err(invalid) => {
            let kind = K::kind(&K::DynamicType::default()).into_owned();
            tracing::warn!(%kind, namespace, name, error = %invalid.error, "object does not parse and is skipped");
            None
        }
    }
}
