//! Sessions that start at the same time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;

use super::*;

/// Longest pass that nothing holds up.
const PROMPT: Duration = Duration::from_secs(5);

/// Sessions and captures of several namespaces. The listing of captures waits in `slow` until the gate opens, and everywhere
/// long enough for another pass to come between it and what follows from it.
struct Side {
    sessions: BTreeMap<String, Value>,
    captures: Mutex<Vec<Value>>,
    gate: Semaphore,
    /// Whether somebody waits at the gate.
    asked: AtomicBool,
}

impl Side {
    async fn answer(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let rest = path
            .strip_prefix("/apis/flopwatch.dev/v1alpha1/namespaces/")
            .unwrap_or_default();
        let mut parts = rest.splitn(3, '/');
        let (namespace, kind, name) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        match (method, kind, name) {
            ("GET", Some("profilingsessions"), Some(name)) => (200, self.sessions[name].clone()),
            ("GET", Some("captures"), None) => {
                let listed: Vec<Value> = {
                    let captures = self.captures.lock().unwrap();
                    let here = captures
                        .iter()
                        .filter(|capture| capture["metadata"]["namespace"] == namespace);
                    here.cloned().collect()
                };
                if namespace == "slow" {
                    self.asked.store(true, Ordering::Release);
                    drop(self.gate.acquire().await.unwrap());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                (
                    200,
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": listed}),
                )
            }
            ("POST", Some("captures"), None) => {
                self.captures.lock().unwrap().push(body.clone());
                (201, body)
            }
            ("PATCH", Some("profilingsessions"), Some(name)) => {
                let mut session = self.sessions[name.trim_end_matches("/status")].clone();
                session["status"] = body["status"].clone();
                (200, session)
            }
            _ => (201, body),
        }
    }

    fn made_in(&self, namespace: &str) -> usize {
        let captures = self.captures.lock().unwrap();
        captures
            .iter()
            .filter(|capture| capture["metadata"]["namespace"] == namespace)
            .count()
    }
}

/// Sessions that have their id and look for the pod of their namespace; one capture at once in each namespace.
fn sides(sessions: &[(&str, &str)]) -> (Arc<Side>, Arc<Context>, Vec<Arc<ProfilingSession>>) {
    let begun = |namespace: &str, name: &str, id: usize| {
        let mut session = session();
        session["metadata"]["namespace"] = json!(namespace);
        session["metadata"]["name"] = json!(name);
        session["metadata"]["uid"] = json!(format!("uid-{name}"));
        session["status"] = json!({"id": format!("{id:08x}")});
        session
    };
    let pod = |namespace: &str| {
        let pod = json!({
            "metadata": {"name": "p", "namespace": namespace, "uid": format!("uid-p-{namespace}")},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
            "status": {"phase": "Running"}
        });
        serde_json::from_value::<Pod>(pod).unwrap()
    };
    let all: BTreeMap<String, Value> = sessions
        .iter()
        .enumerate()
        .map(|(id, (namespace, name))| ((*name).to_owned(), begun(namespace, name, id)))
        .collect();
    let parsed: Vec<ProfilingSession> = all
        .values()
        .map(|session| serde_json::from_value(session.clone()).unwrap())
        .collect();
    let side = Arc::new(Side {
        sessions: all,
        captures: Mutex::default(),
        gate: Semaphore::new(0),
        asked: AtomicBool::new(false),
    });
    let shared = Arc::clone(&side);
    let client = served(move |method, path, body| {
        let side = Arc::clone(&shared);
        async move { side.answer(&method, &path, body).await }
    });
    let namespaces: std::collections::BTreeSet<&str> = sessions.iter().map(|(namespace, _)| *namespace).collect();
    let stores = Stores {
        sessions: filled(parsed.clone()).0,
        captures: filled(Vec::new()).0,
        pods: filled(namespaces.into_iter().map(pod).collect()).0,
        nodes: filled(Vec::new()).0,
        agents: filled(Vec::new()).0,
    };
    let reporter = Reporter {
        controller: "flopwatch.dev/test".into(),
        instance: None,
    };
    let events = EventRecorder::new(client.clone(), reporter);
    let metrics = Metrics::new().unwrap();
    let mut context = Context::new(client, stores, metrics, events, Suspension::default(), PROMPT);
    context.namespace_limit = std::num::NonZeroUsize::new(1);
    (side, Arc::new(context), parsed.into_iter().map(Arc::new).collect())
}

#[tokio::test]
async fn m7_a_namespace_whose_calls_hang_holds_up_no_other() {
    let (side, context, sessions) = sides(&[("quick", "a"), ("slow", "b")]);
    let [quick, slow] = <[_; 2]>::try_from(sessions).unwrap();
    let hanging = tokio::spawn(reconcile(slow, Arc::clone(&context)));
    for _ in 0..100 {
        if side.asked.load(Ordering::Acquire) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(side.asked.load(Ordering::Acquire), "the slow namespace's call hangs");
    let started = tokio::time::timeout(PROMPT, reconcile(quick, Arc::clone(&context))).await;
    assert!(started.is_ok(), "it waited for the other namespace's call");
    assert_eq!((side.made_in("quick"), side.made_in("slow")), (1, 0));
    side.gate.add_permits(1);
    hanging.await.unwrap();
    assert_eq!(side.made_in("slow"), 1);
}

#[tokio::test]
async fn m7_sessions_of_one_namespace_never_take_its_last_place_twice() {
    let (side, context, sessions) = sides(&[("team", "a"), ("team", "b"), ("team", "c")]);
    let mut again = Vec::new();
    for session in sessions {
        again.push(tokio::spawn(reconcile(session, Arc::clone(&context))));
    }
    for pass in again {
        let next = pass.await.unwrap();
        assert_ne!(next, Action::await_change(), "who got no place comes again");
    }
    assert_eq!(side.made_in("team"), 1);
}
