//! How often a session is written whose captures go on.

use std::time::Duration;

use super::*;

/// Seconds between two writes of each capture's status.
const INTERVAL: i32 = 20;

/// A session that has made captures of three pods, as cache and API server know it.
async fn capturing() -> World {
    let mut session = session();
    session["spec"]["target"] = json!({"podSelector": {"matchLabels": {"app": "train"}}, "maxPods": 3});
    let mut world = world(&session, &[]);
    for name in ["p", "q", "r"] {
        let pod = json!({
            "metadata": {"name": name, "namespace": "team", "uid": format!("uid-{name}"), "labels": {"app": "train"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
            "status": {"phase": "Running"}
        });
        world
            .pods
            .apply_watcher_event(&WatchEvent::Apply(serde_json::from_value(pod).unwrap()));
    }
    world.pass().await;
    world.catch_up();
    world.pass().await;
    world.catch_up();
    for at in 0..3 {
        let interval = |capture: &mut Value| capture["spec"]["statusIntervalSeconds"] = json!(INTERVAL);
        world.server.edit("captures", "team", &world.capture(at), interval);
    }
    for at in 0..3 {
        world.report(at, &json!({}));
    }
    world
}

impl World {
    /// An agent writes a capture's status, and the watch shows it.
    fn report(&mut self, at: usize, status: &Value) {
        let name = self.capture(at);
        self.server
            .edit("captures", "team", &name, |capture| capture["status"] = status.clone());
        let capture = self.server.get("captures", "team", &name).unwrap();
        self.captures
            .apply_watcher_event(&WatchEvent::Apply(serde_json::from_value(capture).unwrap()));
    }

    /// The name of one of its captures.
    fn capture(&self, at: usize) -> String {
        let captures = self.server.all("captures");
        captures[at]["metadata"]["name"].as_str().unwrap().to_owned()
    }

    fn begins(&mut self, at: usize) {
        self.report(at, &json!({"startTime": "2026-01-01T00:00:00Z"}));
    }

    fn ends(&mut self, at: usize) {
        let succeeded = json!({
            "type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"
        });
        self.report(
            at,
            &json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [succeeded]}),
        );
    }

    /// One pass, after which the cache knows what it wrote: how often it wrote, and when it comes
    /// again.
    async fn wrote(&mut self) -> (usize, Action) {
        let before = self.writes().len();
        let again = self.pass().await;
        self.catch_up();
        (self.writes().len() - before, again)
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_captures_are_merged_into_one_write_of_their_session() {
    let mut world = capturing().await;
    assert_eq!(world.wrote().await.0, 0, "nothing has changed");
    world.begins(0);
    assert_eq!(world.wrote().await.0, 1, "the first change is told at once");
    assert_eq!(world.condition("Capturing")["message"], "1 of 3 captures are at work");
    world.begins(1);
    let (writes, again) = world.wrote().await;
    assert_eq!((writes, again), (0, Action::requeue(Duration::from_secs(20))));
    tokio::time::sleep(Duration::from_secs(15)).await;
    world.begins(2);
    let (writes, again) = world.wrote().await;
    assert_eq!((writes, again), (0, Action::requeue(Duration::from_secs(5))));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.wrote().await.0, 1);
    assert_eq!(world.condition("Capturing")["message"], "3 of 3 captures are at work");
}

#[tokio::test(start_paused = true)]
async fn a_sessions_end_is_written_at_once() {
    let mut world = capturing().await;
    for at in 0..3 {
        world.begins(at);
    }
    assert_eq!(world.wrote().await.0, 1);
    world.ends(0);
    world.ends(1);
    assert_eq!(world.wrote().await.0, 0, "that one goes on may wait");
    world.ends(2);
    assert_eq!(world.wrote().await.0, 1);
    assert_eq!(world.condition("Succeeded")["message"], "all 3 captures succeeded");
}
