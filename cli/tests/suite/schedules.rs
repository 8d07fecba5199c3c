//! Schedules are listed, explained, suspended and resumed.

use flopwatch_test_harness::Right;
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// A cluster with a schedule of every ten seconds, a pod that it profiles, one that is too young
/// and one without a GPU.
async fn cluster() -> Cluster {
    let cluster = Cluster::start().await;
    let pod = |name: &str, started: &str, limits: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "team", "uid": format!("uid-{name}"), "labels": {"app": "llm"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": {"limits": limits}}]},
            "status": {"phase": "Running", "startTime": started}
        })
    };
    let gpu = json!({"nvidia.com/gpu": "1"});
    cluster.api.put(&pod("old", "2026-01-01T00:00:00Z", gpu.clone()));
    cluster.api.put(&pod("new", &jiff::Timestamp::now().to_string(), gpu));
    cluster.api.put(&pod("plain", "2026-01-01T00:00:00Z", json!({})));
    cluster.api.put(&json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "H100"}}
    }));
    cluster.api.put(&json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSchedule",
        "metadata": {"name": "always", "namespace": "team", "uid": "schedule", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "when": {"interval": {"seconds": 10}}, "jitterSeconds": 0,
            "select": {"podSelector": {"matchLabels": {"app": "llm"}}, "perRun": {"percent": 100, "maximum": 1000}},
            "session": {"durationSeconds": 5}
        },
        "status": {
            "skipped": [{"reason": "Missed", "count": 7}], "activeCount": 1,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Scheduled", "message": "2 pods can be profiled",
                "lastTransitionTime": "2026-01-01T00:00:00Z"
            }]
        }
    }));
    cluster
}

#[tokio::test]
async fn schedules_are_listed_and_one_that_is_not_there_is_said_to_be() {
    let cluster = cluster().await;
    let listed = cluster.run("schedule").await;
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.out.starts_with("NAME     WHEN         SUSPEND"), "{listed:?}");
    assert!(listed.out.contains("always   every 10 s   false"), "{listed:?}");
    let names = cluster.run("schedule -A -o name").await;
    assert_eq!(names.out, "profilingschedule.flopwatch.dev/always\n");
    let list: Value = serde_json::from_str(&cluster.run("schedules -o json").await.out).unwrap();
    assert_eq!(list["items"][0]["kind"], "ProfilingSchedule");
    let none = cluster.run("schedule -n lab").await;
    assert!(
        none.code == 0 && none.out.is_empty() && none.err.contains("No schedules in namespace lab"),
        "{none:?}"
    );
    let absent = cluster.run("schedule nightly").await;
    assert!(absent.code == 1 && absent.err.contains("nightly"), "{absent:?}");
    assert_eq!(cluster.run("schedule --suspend").await.code, 2);
}

#[tokio::test]
async fn the_next_runs_are_told_and_why_pods_are_left_out() {
    let cluster = cluster().await;
    let told = cluster.run("schedule psched/always --runs 3").await;
    assert_eq!(told.code, 0, "{told:?}");
    for part in [
        "every 10 s",
        "True Scheduled: 2 pods can be profiled",
        "1 match and have no container",
        "Next runs",
        "50.0000 %",
        "TooYoung",
        "the pod is younger than select.minPodAgeSeconds",
        "Missed   7",
    ] {
        assert!(told.out.contains(part), "{part} is not in\n{}", told.out);
    }
    let data: Value = serde_json::from_str(&cluster.run("schedule always --runs 3 -o json").await.out).unwrap();
    assert_eq!(data["runs"].as_array().map(Vec::len), Some(3));
    assert_eq!(data["runs"][0]["pod"], "old");
    assert_eq!(data["runs"][0]["probabilityPerBillion"], 500_000_000);
    let verdicts: Vec<&Value> = data["pods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pod| &pod["verdict"])
        .collect();
    assert_eq!(verdicts, ["TooYoung", "Drawn"]);
    assert_eq!(data["podsWithoutContainer"], 1);
}

#[tokio::test]
async fn who_may_not_list_nodes_is_told_what_that_hides() {
    let cluster = cluster().await;
    cluster.allow_only([
        Right::resource("*", "flopwatch.dev", "*"),
        Right::resource("list", "", "pods"),
    ]);
    let told = cluster.run("schedule always").await;
    assert!(
        told.code == 0 && told.out.contains("you may not list nodes"),
        "{told:?}"
    );
    let cluster = self::cluster().await;
    cluster.allow_only([Right::resource("get", "", "pods")]);
    let refused = cluster.run("schedule always").await;
    assert!(
        refused.code == 1 && refused.err.contains("you may not read the schedule"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_schedule_is_suspended_and_resumed() {
    let cluster = cluster().await;
    let suspend = || cluster.api.get("profilingschedules", "team", "always").unwrap()["spec"]["suspend"].clone();
    let told = cluster.run("schedule always --suspend").await;
    assert_eq!(
        (told.code, told.out.as_str()),
        (0, "profilingschedule.flopwatch.dev/always suspended\n")
    );
    assert_eq!(suspend(), true);
    let outlook = cluster.run("schedule always").await;
    assert!(outlook.out.contains("Next runs, were it not suspended"), "{outlook:?}");
    let told = cluster.run("schedule always --resume").await;
    assert_eq!(told.out, "profilingschedule.flopwatch.dev/always resumed\n");
    assert_eq!(suspend(), false);
}
