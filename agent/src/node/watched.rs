//! The watch on this node's captures. One that this version cannot read (a later version's, say) is counted and skipped: it
//! must not blind the agent for all others.

use flopwatch_api::capture::Capture;
use futures::{Stream, StreamExt};
use kube::core::DeserializeGuard;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client, ResourceExt};
use tracing::warn;

use crate::metrics::Metrics;

/// Starts watching. The stream must be polled for the store to be filled; it yields each capture that was added or changed.
pub(super) fn captures(
    client: Client,
    node: &str,
    metrics: Metrics,
) -> (
    Store<Capture>,
    impl Stream<Item = Result<Capture, watcher::Error>> + Send + use<>,
) {
    let (store, writer) = reflector::store();
    let config = watcher::Config::default()
        .fields(&format!("spec.nodeName={node}"))
        .any_semantic();
    let known = store.clone();
    let events = watcher(Api::<DeserializeGuard<Capture>>::all(client), config).filter_map(move |event| {
        let event = event.map(|event| readable(event, &known, &metrics)).transpose();
        std::future::ready(event)
    });
    (store, reflector(writer, events).applied_objects())
}

/// The event as far as it can be read. Of a capture that can no longer be read nothing stays in the store, as after a new list.
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
    use std::convert::Infallible;
    use std::pin::pin;
    use std::time::Duration;

    use axum::body::{Body, Bytes};
    use axum::extract::RawQuery;
    use axum::response::{IntoResponse, Response};
    use axum::routing::get;
    use axum::{Json, Router};
    use futures::stream;
    use prometheus::Registry;
    use serde_json::{Value, json};
    use tokio::time::timeout;

    use super::*;

    /// A capture of node `n` as the API server has it.
    pub(crate) fn stored(name: &str) -> Value {
        json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
            "metadata": {"name": name, "namespace": "team", "uid": format!("uid-{name}"), "resourceVersion": "1"},
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

    /// An API server that lists these captures, and then tells these changes.
    pub(crate) fn api_server(listed: &[Value], changes: &[Value]) -> Client {
        let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": listed});
        let lines: Vec<String> = changes.iter().map(|change| format!("{change}\n")).collect();
        let answer = async move |RawQuery(query): RawQuery| -> Response {
            if query.unwrap_or_default().contains("watch=") {
                let told = stream::iter(lines.into_iter().map(|line| Ok::<_, Infallible>(Bytes::from(line))));
                return Body::from_stream(told.chain(stream::pending())).into_response();
            }
            Json(list).into_response()
        };
        let router = Router::new().route("/apis/flopwatch.dev/v1alpha1/captures", get(answer));
        Client::new(router, "default")
    }

    /// Names that the stream yields until it has been silent for a moment.
    async fn seen(stream: impl Stream<Item = Result<Capture, watcher::Error>>) -> Vec<String> {
        let mut stream = pin!(stream);
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

    #[tokio::test]
    async fn m6_a_capture_that_cannot_be_read_does_not_blind_the_agent_for_the_others() {
        let later = json!({"type": "ADDED", "object": unreadable("later")});
        let fresh = json!({"type": "ADDED", "object": stored("fresh")});
        let client = api_server(&[stored("a"), unreadable("b"), stored("c")], &[later, fresh]);
        let metrics = Metrics::register(&Registry::new()).unwrap();
        let (store, stream) = captures(client, "n", metrics);
        assert_eq!(seen(stream).await, ["a", "c", "fresh"]);
        assert_eq!(names(&store), ["a", "c", "fresh"]);
    }

    #[tokio::test]
    async fn m6_a_capture_that_can_no_longer_be_read_is_not_acted_on_as_it_was() {
        let changed = json!({"type": "MODIFIED", "object": unreadable("a")});
        let gone = json!({"type": "DELETED", "object": unreadable("b")});
        let client = api_server(&[stored("a"), stored("b"), stored("c")], &[changed, gone]);
        let metrics = Metrics::register(&Registry::new()).unwrap();
        let (store, stream) = captures(client, "n", metrics);
        assert_eq!(seen(stream).await, ["a", "b", "c"]);
        assert_eq!(names(&store), ["c"]);
    }
}
