//! Watches that nothing can stop: an object that does not parse is counted and skipped, a broken stream is reopened.

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

/// Keeps `writer`'s store at what `api` holds and yields each change. `prune` drops what nobody reads, so that a large
/// cluster's pods fit.
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
    let kind = K::kind(&K::DynamicType::default()).into_owned();
    let count = move |event: &str| metrics.watch_events.with_label_values(&[kind.as_str(), event]).inc();
    // On the heap: the state of a watch is large, and there are several side by side.
    Box::pin(watch_objects(api, config).default_backoff().filter_map(move |result| {
        let change = match result {
            Err(error) => {
                count("error");
                tracing::warn!(kind = %K::kind(&K::DynamicType::default()), %error, "watch broke and will be reopened");
                None
            }
            Ok(event) => {
                let event = match event {
                    Event::Apply(guard) => valid(guard, prune).map(Event::Apply),
                    Event::InitApply(guard) => valid(guard, prune).map(Event::InitApply),
                    Event::Delete(guard) => valid(guard, prune).map(Event::Delete),
                    Event::Init => Some(Event::Init),
                    Event::InitDone => Some(Event::InitDone),
                };
                if let Some(event) = event {
                    writer.apply_watcher_event(&event);
                    match event {
                        Event::Apply(object) => {
                            count("applied");
                            Some(Change::Applied(object))
                        }
                        Event::Delete(object) => {
                            count("deleted");
                            Some(Change::Deleted(object))
                        }
                        Event::InitDone => {
                            count("relisted");
                            Some(Change::Relisted)
                        }
                        Event::Init | Event::InitApply(_) => None,
                    }
                } else {
                    count("invalid");
                    None
                }
            }
        };
        std::future::ready(change)
    }))
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
