//! Sessions that start at the same time.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::Semaphore;

use super::*;

/// Longest pass that nothing holds up.
const MAX_PLAN_TIME: Duration = Duration::from_secs(5);

/// Sessions and captures of several namespaces.
struct Side {
    server: ApiServer,
    context: Arc<Context>,
    /// What the listing of captures waits for in `slow`.
    gate: Arc<Semaphore>,
}

impl Side {
    /// Whether somebody waits at the gate.
    fn asked(&self) -> bool {
        let calls = self.server.calls();
        calls.iter().any(|call| lists_captures(call) && is_slow(call))
    }

    fn made_in(&self, namespace: &str) -> usize {
        let captures = self.server.all("captures").into_iter();
        captures
            .filter(|capture| capture["metadata"]["namespace"] == namespace)
            .count()
    }
}

fn lists_captures(call: &Call) -> bool {
    call.verb == Verb::List && call.path.ends_with("/captures")
}

fn is_slow(call: &Call) -> bool {
    call.path.contains("/namespaces/slow/")
}

/// Sessions that have their id and look for the pod of their namespace; one capture at once in each
/// namespace. The listing of captures waits in `slow` until the gate opens, and everywhere long
/// enough for another pass to come between it and what follows from it.
fn sides(sessions: &[(&str, &str)]) -> (Side, Vec<Arc<ProfilingSession>>) {
    let plain: Vec<(&str, &str, Value)> = sessions
        .iter()
        .map(|(namespace, name)| (*namespace, *name, json!({})))
        .collect();
    limited(1, &plain)
}

/// The same with so many captures at once, and with something added to each session's spec.
fn limited(limit: usize, sessions: &[(&str, &str, Value)]) -> (Side, Vec<Arc<ProfilingSession>>) {
    let server = ApiServer::new();
    let begun = |(id, (namespace, name, spec)): (usize, &(&str, &str, Value))| -> ProfilingSession {
        let mut session = session();
        json_patch::merge(&mut session["spec"], spec);
        session["metadata"]["namespace"] = json!(namespace);
        session["metadata"]["name"] = json!(name);
        session["metadata"]["uid"] = json!(format!("uid-{name}"));
        session["status"] = json!({"id": format!("{id:08x}")});
        serde_json::from_value(server.put(&session)).unwrap()
    };
    let begun: Vec<ProfilingSession> = sessions.iter().enumerate().map(begun).collect();
    let namespaces: BTreeSet<&str> = sessions.iter().map(|(namespace, ..)| *namespace).collect();
    let stores = Stores {
        sessions: filled(begun.clone()).0,
        pods: filled(namespaces.into_iter().map(running).collect()).0,
        ..rig::stores()
    };
    let mut context = rig::context(&server, stores);
    context.namespace_limit = NonZeroUsize::new(limit);
    let gate = Arc::new(Semaphore::new(0));
    let closed = Arc::clone(&gate);
    server.delay(move |call| {
        let (lists, slow, gate) = (lists_captures(call), is_slow(call), Arc::clone(&closed));
        let wait = async move {
            if lists && slow {
                drop(gate.acquire().await.unwrap());
            }
            if lists {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        wait.boxed()
    });
    let side = Side {
        server,
        context: Arc::new(context),
        gate,
    };
    (side, begun.into_iter().map(Arc::new).collect())
}

#[tokio::test]
async fn a_namespace_whose_calls_hang_holds_up_no_other() {
    let (side, sessions) = sides(&[("quick", "a"), ("slow", "b")]);
    let [quick, slow] = <[_; 2]>::try_from(sessions).unwrap();
    let hanging = tokio::spawn(reconcile(slow, Arc::clone(&side.context)));
    for _ in 0..100 {
        if side.asked() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(side.asked(), "the slow namespace's call hangs");
    let started = tokio::time::timeout(MAX_PLAN_TIME, reconcile(quick, Arc::clone(&side.context))).await;
    assert!(started.is_ok(), "it waited for the other namespace's call");
    assert_eq!((side.made_in("quick"), side.made_in("slow")), (1, 0));
    side.gate.add_permits(1);
    hanging.await.unwrap();
    assert_eq!(side.made_in("slow"), 1);
}

#[tokio::test]
async fn sessions_of_one_namespace_never_take_its_last_place_twice() {
    let (side, sessions) = sides(&[("team", "a"), ("team", "b"), ("team", "c")]);
    let mut again = Vec::new();
    for session in sessions {
        again.push(tokio::spawn(reconcile(session, Arc::clone(&side.context))));
    }
    for pass in again {
        let next = pass.await.unwrap();
        assert_ne!(next, Action::await_change(), "who got no place comes again");
    }
    assert_eq!(side.made_in("team"), 1);
}

/// A session's own pod, of so many containers that ask for a GPU.
fn own_pod_of(containers: usize) -> Value {
    let containers: Vec<Value> = (0..containers)
        .map(|at| json!({"name": format!("c{at}"), "resources": {"limits": {"nvidia.com/gpu": "1"}}}))
        .collect();
    json!({"target": {"podName": null, "podTemplate": {"spec": {"containers": containers}}}})
}

/// One pass after the other over sessions of one namespace with that limit; no watch sees what they
/// make. How many pods and captures there are then.
async fn made(limit: usize, specs: &[Value]) -> (usize, usize) {
    let named: Vec<(&str, &str, Value)> = ["a", "b", "c"]
        .into_iter()
        .zip(specs)
        .map(|(name, spec)| ("team", name, spec.clone()))
        .collect();
    let (side, sessions) = limited(limit, &named);
    let create = Right::resource("create", "", "pods").in_namespace("team");
    side.server.allow(rig::CONTROLLER, create);
    for session in sessions {
        reconcile(session, Arc::clone(&side.context)).await;
    }
    (side.server.all("pods").len(), side.made_in("team"))
}

#[tokio::test]
async fn a_pod_that_a_session_made_has_its_place_before_any_watch_has_seen_it() {
    assert_eq!(made(1, &[own_pod_of(1), own_pod_of(1)]).await, (1, 0));
    assert_eq!(made(1, &[own_pod_of(1), json!({})]).await, (1, 0));
}

#[tokio::test]
async fn a_pod_takes_as_many_places_as_it_will_have_captures() {
    assert_eq!(made(3, &[own_pod_of(2), json!({})]).await, (1, 1));
    assert_eq!(made(2, &[own_pod_of(2), json!({})]).await, (1, 0));
    assert_eq!(
        made(3, &[own_pod_of(4)]).await,
        (0, 0),
        "more than the namespace may ever have"
    );
}
