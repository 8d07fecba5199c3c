//! The watch on this node's captures. One that this version cannot read (a later version's, say) is
//! counted and skipped: it must not blind the agent for all others.

use flopwatch_api::capture::Capture;
use futures::{Stream, StreamExt};
use kube::core::DeserializeGuard;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, ResourceExt};
use tracing::warn;

use crate::metrics::Metrics;

/// Lists from the API server's cache. Without pages: while the cache is being filled, as after a
/// restart, the API server takes each page from etcd, for which it reads all objects of all nodes
/// for every agent; a list as a whole it refuses until the cache is there, and the watch comes
/// again.
pub(super) fn from_cache() -> watcher::Config {
    watcher::Config {
        page_size: None,
        ..watcher::Config::default().any_semantic()
    }
}

/// Starts watching. The stream must be polled for the store to be filled; it yields each capture
/// that was added or changed.
pub fn captures(
    client: Client,
    node: &str,
    metrics: Metrics,
) -> (
    Store<Capture>,
    impl Stream<Item = Result<Capture, watcher::Error>> + Send + use<>,
) {
    let (store, writer) = reflector::store();
    let config = from_cache().fields(&format!("spec.nodeName={node}"));
    let known = store.clone();
    let events = watcher(Api::<DeserializeGuard<Capture>>::all(client), config).filter_map(move |event| {
        let event = event.map(|event| readable(event, &known, &metrics)).transpose();
        std::future::ready(event)
    });
    (store, reflector(writer, events).applied_objects())
}

/// The event as far as it can be read. Of a capture that can no longer be read nothing stays in the
/// store, as after a new list.
fn readable(
    event: Event<DeserializeGuard<Capture>>,
    known: &Store<Capture>,
    metrics: &Metrics,
) -> Option<Event<Capture>> {
    match event {
        Event::Init => Some(Event::Init),
        Event::InitDone => Some(Event::InitDone),
        Event::InitApply(guard) => read(guard, metrics).ok().map(Event::InitApply),
        Event::Apply(guard) => match read(guard, metrics) {
            Ok(capture) => Some(Event::Apply(capture)),
            Err(key) => known.get(&key).map(|before| Event::Delete(Capture::clone(&before))),
        },
        Event::Delete(guard) => match read(guard, metrics) {
            Ok(capture) => Some(Event::Delete(capture)),
            Err(key) => known.get(&key).map(|before| Event::Delete(Capture::clone(&before))),
        },
    }
}

/// The capture, or the name of one that cannot be read.
fn read(guard: DeserializeGuard<Capture>, metrics: &Metrics) -> Result<Capture, ObjectRef<Capture>> {
    let (namespace, name) = (guard.namespace().unwrap_or_default(), guard.name_any());
    guard.0.map_err(|invalid| {
        metrics.watch_error("captures");
        warn!(namespace, name, error = %invalid.error, "a capture cannot be read and is skipped");
        ObjectRef::new(&name).within(&namespace)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use flopwatch_test_harness::ApiServer;
    use prometheus::Registry;
    use serde_json::{Value, json};
    use tokio::time::timeout;

    use super::*;

    /// A capture of node `n` as the API server has it.
    pub(crate) fn stored(name: &str) -> Value {
        json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
            "metadata": {"name": name, "namespace": "team", "uid": format!("uid-{name}")},
            "spec": {
                "sessionRef": {"name": "s", "id": "0123abcd"}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
                "containerName": "main", "durationSeconds": 5, "startDeadlineSeconds": 60, "outputs": ["Timeline"]
            }
        })
    }

    /// One that this version cannot read.
    pub(crate) fn unreadable(name: &str) -> Value {
        let mut capture = stored(name);
        capture["spec"]["durationSeconds"] = json!("of a later version");
        capture
    }

    /// An API server that has these captures.
    pub(crate) fn api_server(captures: &[Value]) -> ApiServer {
        let server = ApiServer::new();
        for capture in captures {
            server.put(capture);
        }
        server
    }

    /// Names that the stream yields until it has been silent for a moment.
    async fn seen(mut stream: impl Stream<Item = Result<Capture, watcher::Error>> + Unpin) -> Vec<String> {
        let mut names = Vec::new();
        while let Ok(Some(capture)) = timeout(Duration::from_secs(1), stream.next()).await {
            names.push(capture.unwrap().name_any());
        }
        names
    }

    fn names(store: &Store<Capture>) -> Vec<String> {
        let mut names: Vec<String> = store.state().iter().map(|capture| capture.name_any()).collect();
        names.sort();
        names
    }

    #[tokio::test(start_paused = true)]
    async fn a_capture_that_cannot_be_read_does_not_blind_the_agent_for_the_others() {
        let server = api_server(&[stored("a"), unreadable("b"), stored("c")]);
        let metrics = Metrics::register(&Registry::new()).unwrap();
        let (store, stream) = captures(server.client("team"), "n", metrics);
        let mut stream = pin!(stream);
        assert_eq!(seen(&mut stream).await, ["a", "c"]);
        server.put(&unreadable("later"));
        server.put(&stored("fresh"));
        assert_eq!(seen(&mut stream).await, ["fresh"]);
        assert_eq!(names(&store), ["a", "c", "fresh"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_capture_that_can_no_longer_be_read_is_not_acted_on_as_it_was() {
        let mut held = stored("b");
        held["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        held["metadata"]["finalizers"] = json!(["example.com/held"]);
        let server = api_server(&[stored("a"), held, stored("c")]);
        let metrics = Metrics::register(&Registry::new()).unwrap();
        let (store, stream) = captures(server.client("team"), "n", metrics);
        let mut stream = pin!(stream);
        assert_eq!(seen(&mut stream).await, ["a", "b", "c"]);
        server.edit("captures", "team", "a", |capture| {
            capture["spec"] = unreadable("a")["spec"].take();
        });
        // It goes with its last finalizer.
        server.edit("captures", "team", "b", |capture| {
            capture["spec"] = unreadable("b")["spec"].take();
            capture["metadata"]["finalizers"] = json!([]);
        });
        assert_eq!(server.get("captures", "team", "b"), None);
        assert_eq!(seen(&mut stream).await, [""; 0]);
        assert_eq!(names(&store), ["c"]);
    }
}
