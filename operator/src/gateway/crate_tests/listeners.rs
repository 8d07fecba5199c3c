//! What it costs that many listen.

use std::pin::Pin;
use std::time::Instant;

use axum::response::sse::Event as ServerSent;
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use futures::{Stream, StreamExt as _};
use kube::runtime::watcher::Event;
use prometheus::IntCounter;
use serde_json::json;

use super::super::*;
use crate::gateway::progress::Listener;

/// Clients that listen to one session, and sessions beside it.
const CLIENTS: usize = 256;
const OTHERS: usize = 5000;

fn session(id: &str) -> ProfilingSession {
    let session = json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
        "metadata": {"namespace": "team", "name": id, "uid": id}, "spec": {"target": {"podName": "p"}},
        "status": {"id": id, "conditions": []}
    });
    serde_json::from_value(session).unwrap()
}

fn capture(id: &str, percent: usize) -> Capture {
    let capture = json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
        "metadata": {
            "namespace": "team", "name": format!("{id}-a"), "uid": format!("{id}-a"),
            "labels": {"flopwatch.dev/session": id, "flopwatch.dev/session-id": id}
        },
        "spec": {
            "sessionRef": {"name": id, "id": id}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
            "containerName": "c", "profiler": {"type": "Nsys"}, "durationSeconds": 1, "startDeadlineSeconds": 1,
            "outputs": ["Timeline"]
        },
        "status": {"progress": {"stage": "Collecting", "percent": percent, "message": ""}}
    });
    serde_json::from_value(capture).unwrap()
}

type Ears = Pin<Box<dyn Stream<Item = Result<ServerSent, std::convert::Infallible>> + Send>>;

#[tokio::test(start_paused = true)]
#[allow(clippy::print_stdout, reason = "the figures are what the report says")]
async fn a_change_is_made_into_one_notice_however_many_listen() {
    let notices = IntCounter::new("notices", "notices").unwrap();
    let sessions = Sessions::new(notices.clone());
    sessions.session_event(Event::Init);
    sessions.capture_event(Event::Init);
    for at in 0..OTHERS {
        let id = format!("{at:08x}");
        sessions.session_event(Event::InitApply(session(&id)));
        sessions.capture_event(Event::InitApply(capture(&id, 0)));
    }
    sessions.session_event(Event::InitDone);
    sessions.capture_event(Event::InitDone);
    sessions.wait_until_listed().await;
    assert_eq!(
        notices.get(),
        2 * u64::try_from(OTHERS).unwrap(),
        "one for each object of the first lists"
    );

    let id = "00000007";
    let slots = Slots::new(CLIENTS, CLIENTS);
    let listen = || -> Ears {
        let slot = slots.take("reader").unwrap();
        let snapshot = sessions.watch(id).unwrap();
        Box::pin(
            Listener {
                snapshot,
                last_event_id: None,
                slot,
            }
            .listen(),
        )
    };
    let mut clients: Vec<Ears> = (0..CLIENTS).map(|_| listen()).collect();
    for client in &mut clients {
        for _ in ["profiling_started", "profiling_progress"] {
            drop(client.next().await.unwrap());
        }
    }
    let mut of_all = sessions.changes();
    for percent in 1..=10 {
        let (before, began) = (notices.get(), Instant::now());
        sessions.capture_event(Event::Apply(capture(id, percent)));
        for client in &mut clients {
            drop(client.next().await.unwrap());
        }
        println!(
            "{CLIENTS} clients, {OTHERS} sessions: a change was told to all within {:?}",
            began.elapsed()
        );
        assert_eq!(notices.get() - before, 1);
        assert_eq!(of_all.try_recv().unwrap().id, id);
        assert!(
            of_all.try_recv().is_err(),
            "who listens to all hears of what changed alone"
        );
    }
    // What others do concerns nobody here.
    sessions.capture_event(Event::Apply(capture("00000009", 1)));
    for client in &mut clients {
        let heard = tokio::time::timeout(Duration::from_millis(200), client.next()).await;
        assert!(heard.is_err());
    }
    // A change that changes nothing that is told is no news.
    of_all = sessions.changes();
    sessions.capture_event(Event::Apply(capture(id, 10)));
    assert!(of_all.try_recv().is_err());
}

#[tokio::test]
async fn a_new_list_drops_what_is_gone_and_keeps_who_listens() {
    let sessions = Sessions::new(IntCounter::new("notices", "notices").unwrap());
    for id in ["00000001", "00000002"] {
        sessions.session_event(Event::Apply(session(id)));
        sessions.capture_event(Event::Apply(capture(id, 5)));
    }
    let (mut first, mut second) = (sessions.watch("00000001").unwrap(), sessions.watch("00000002").unwrap());
    drop((first.borrow_and_update(), second.borrow_and_update()));
    sessions.session_event(Event::Init);
    sessions.session_event(Event::InitApply(session("00000001")));
    assert!(sessions.by_id("00000002").is_some(), "until the list is whole");
    sessions.session_event(Event::InitDone);
    assert!(sessions.by_id("00000002").is_none());
    assert!(second.borrow_and_update().is_gone);
    sessions.capture_event(Event::Init);
    sessions.capture_event(Event::InitDone);
    let known = sessions.by_id("00000001").unwrap();
    assert!(sessions.captures_of(&known).is_empty());
    assert!(first.has_changed().unwrap(), "its capture is gone");
    assert_eq!(sessions.page(&sessions::Filter::default(), None, 9).total, 1);
    assert_eq!(sessions.id_of_uid("00000002"), None);
}
