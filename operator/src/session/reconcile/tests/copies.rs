//! Sessions that profile a copy of a pod.

use super::*;

/// A session that asks for a copy of the pod `train-0`, which mounts a claim of that access mode.
fn asked(mode: &str) -> World {
    let mut session = session();
    session["spec"]["target"] = json!({"replicaOf": "train-0"});
    let world = world(&session, &[]);
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-train-0"}});
    world.server.put(&json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "train-0", "namespace": "team", "uid": "uid-train-0"},
        "spec": {"containers": [{"name": "main", "image": "train:1"}], "volumes": [volume]}
    }));
    world.server.put(&json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-train-0", "namespace": "team"},
        "spec": {"accessModes": [mode]}, "status": {"accessModes": [mode]}
    }));
    world
}

impl World {
    /// The namespace's administrator binds ClusterRole flopwatch-pod-templates.
    fn binds_pod_templates(&self) {
        for (verb, resource) in [("create", "pods"), ("get", "persistentvolumeclaims")] {
            let right = Right::resource(verb, "", resource).in_namespace("team");
            self.server.allow(rig::CONTROLLER, right);
        }
    }

    /// The reason of TargetsFound once the session was taken up and its copy decided about.
    async fn found(&mut self) -> String {
        self.pass().await;
        self.catch_up();
        self.pass().await;
        self.condition("TargetsFound")["reason"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_pod_with_a_claim_of_one_node_is_not_copied() {
    for mode in ["ReadWriteOnce", "ReadWriteOncePod"] {
        let mut world = asked(mode);
        world.binds_pod_templates();
        assert_eq!(world.found().await, "PodRefused");
        let message = world.condition("Succeeded")["message"].clone();
        let words = format!("pod train-0 mounts claim data-train-0 ({mode})");
        assert!(message.as_str().unwrap().starts_with(&words), "{message}");
        assert_eq!(world.server.all("pods").len(), 1, "{mode}");
    }
    let mut world = asked("ReadWriteMany");
    world.binds_pod_templates();
    assert_eq!(world.found().await, "WaitingForTargets");
    assert_eq!(world.server.all("pods").len(), 2, "the original and its copy");
}

#[tokio::test]
async fn where_claims_cannot_be_read_the_session_waits_for_the_role_that_lets_the_controller() {
    let mut world = asked("ReadWriteMany");
    assert_eq!(world.found().await, "PodsNotAllowed");
    let found = world.condition("TargetsFound");
    assert!(
        found["message"].as_str().unwrap().contains("flopwatch-pod-templates"),
        "{found}"
    );
    assert_eq!(world.condition("Succeeded")["status"], "Unknown", "a binding may come");
    world.binds_pod_templates();
    world.catch_up();
    world.pass().await;
    assert_eq!(world.server.all("pods").len(), 2);
}
