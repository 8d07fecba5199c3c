//! Sessions are made, followed, listed, described and stopped.

use flopwatch_test_harness::ApiServer;
use serde_json::{Value, json};

use crate::cluster::{Cluster, everything};
use crate::fetching::capture;

/// A cluster with a pod to profile.
async fn with_trainer() -> Cluster {
    let cluster = Cluster::start().await;
    cluster.api.put(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "trainer", "namespace": "team"}
    }));
    cluster
}

/// A session of `team`.
fn session(cluster: &Cluster, name: &str) -> Option<Value> {
    cluster.api.get("profilingsessions", "team", name)
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z"
    })
}

/// What controller and agent do next once the program has told `line` of the only session: a
/// capture comes, works, and ends so.
fn carry_on(api: &ApiServer, line: &str, succeeded: &str, reason: &str) {
    let Some(session) = api.all("profilingsessions").pop() else {
        return;
    };
    let name = session["metadata"]["name"].as_str().unwrap();
    let at = format!("{name}-1");
    let work = |stage: &str, percent: i32| {
        api.edit("captures", "team", &at, |capture| {
            capture["status"]["progress"] = json!({"stage": stage, "percent": percent});
        });
    };
    match line {
        "0 % Waiting for the controller" => {
            let mut made = capture(&at, &json!({"progress": {"stage": "Attaching", "percent": 5}}));
            made["metadata"]["labels"]["flopwatch.dev/session"] = json!(name);
            api.put(&made);
        }
        "5 % Attaching" => work("Collecting", 40),
        "40 % Collecting" => work("Publishing", 95),
        "95 % Publishing" => {
            api.edit("captures", "team", &at, |capture| {
                let verdict = condition("Succeeded", succeeded, reason, "as the agent says");
                capture["status"] = json!({"conditions": [verdict], "progress": {"stage": "Done", "percent": 100}});
            });
            let of_session = if succeeded == "True" { "Succeeded" } else { "Failed" };
            api.edit("profilingsessions", "team", name, |session| {
                session["status"] = json!({
                    "id": "0badcafe", "counts": {"captures": 1},
                    "conditions": [condition("Succeeded", succeeded, of_session, "as the controller says")]
                });
            });
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_waited_for_tells_its_stages_and_its_end() {
    let cluster = with_trainer().await;
    let profile = "profile pod/trainer -c main --duration 5s --wait";
    let goes_on = |line: &str| carry_on(&cluster.api, line, "True", "Succeeded");
    let ran = cluster.run_heard(profile, goes_on).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        ran.out,
        "profilingsession.flopwatch.dev/trainer-0 created\nprofilingsession.flopwatch.dev/trainer-0 succeeded\n"
    );
    assert!(ran.err.contains(" 40 % Collecting\n"), "{ran:?}");
    let made = session(&cluster, "trainer-0").unwrap();
    assert_eq!(made["spec"]["target"]["containerNames"], json!(["main"]));
    assert_eq!(made["spec"]["durationSeconds"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_does_not_exist_is_told_at_once_unless_it_is_waited_for() {
    let cluster = with_trainer().await;
    let ran = cluster.run("profile pod/gone --name mine --wait").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let told = "error: there is no pod gone in namespace team; --wait-for-pod makes the session";
    assert!(ran.err.starts_with(told), "{ran:?}");
    let ran = cluster.run("recent gone").await;
    assert!(ran.code == 1 && ran.err.contains("no pod gone"), "{ran:?}");
    assert_eq!(session(&cluster, "mine"), None);
    let ran = cluster.run("profile pod/gone --name mine --wait-for-pod").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(session(&cluster, "mine").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_fails_ends_with_a_code_of_its_own_and_the_reasons() {
    let cluster = with_trainer().await;
    let goes_on = |line: &str| carry_on(&cluster.api, line, "False", "NotPrepared");
    let ran = cluster.run_heard("profile trainer --name mine --wait", goes_on).await;
    assert_eq!(ran.code, 3, "{ran:?}");
    let expected =
        "error: session mine failed: Failed: as the controller says\n  pod trainer: NotPrepared: as the agent says\n";
    assert!(ran.err.ends_with(expected), "{ran:?}");
    let again = cluster.run("watch mine").await;
    assert_eq!(again.code, 3, "one that has ended is told at once: {again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_in_time_and_the_session_goes_on() {
    let cluster = with_trainer().await;
    let ran = cluster.run("profile trainer --name mine --wait --timeout 1s").await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("has not ended within 1 s"), "{ran:?}");
    let made = session(&cluster, "mine").unwrap();
    assert_eq!(made["spec"]["stop"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_makes_nothing_and_shows_what_would_be_made() {
    let cluster = with_trainer().await;
    let ran = cluster.run("profile trainer --name mine --dry-run").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    for line in [
        "kind: ProfilingSession\n",
        "apiVersion: flopwatch.dev/v1alpha1\n",
        "podName: trainer\n",
    ] {
        assert!(ran.out.contains(line), "{ran:?}");
    }
    let ran = cluster
        .run("profile trainer --name mine --dry-run=server -o name")
        .await;
    assert_eq!(ran.out, "profilingsession.flopwatch.dev/mine\n", "{ran:?}");
    assert_eq!(session(&cluster, "mine"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_described_and_stopped() {
    let cluster = with_trainer().await;
    let ran = cluster.run("sessions").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
    assert!(ran.err.contains("No sessions in namespace team"), "{ran:?}");

    cluster.run("profile trainer --name mine").await;
    let mut theirs = session(&cluster, "mine").unwrap();
    theirs["metadata"]["namespace"] = json!("others");
    theirs["metadata"]["name"] = json!("theirs");
    cluster.api.put(&theirs);
    let ran = cluster.run("sessions -o name").await;
    assert_eq!(ran.out, "profilingsession.flopwatch.dev/mine\n");
    let ran = cluster.run("sessions -A").await;
    assert!(ran.out.starts_with("NAMESPACE   NAME"), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 3, "{ran:?}");
    assert!(!ran.out.contains('\u{1b}'), "no colours where there is no terminal");

    let ran = cluster.run("describe profilingsession/mine").await;
    assert!(ran.out.starts_with("Name:            mine\n"), "{ran:?}");
    let ran = cluster.run("stop mine --discard").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let stopped = session(&cluster, "mine").unwrap();
    assert_eq!(stopped["spec"]["stop"], "Discard");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_refuses_is_told_with_what_helps() {
    let cluster = with_trainer().await;
    let ran = cluster.run("describe nothing").await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            1,
            "error: cannot read session nothing: profilingsessions.flopwatch.dev \"nothing\" not found\n"
        )
    );
    cluster.allow_only([]);
    let ran = cluster.run("profile trainer").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("ClusterRole flopwatch-user"), "{ran:?}");
    cluster.api.allow("ada", everything());
    cluster.api.remove_group("flopwatch.dev");
    let ran = cluster.run("sessions").await;
    assert!(ran.err.contains("Flopwatch is not installed"), "{ran:?}");
    let ran = cluster.run("sessions --context other").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("other"), "{ran:?}");
    let ran = cluster.run("profile trainer --duration 10h").await;
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectls_completion_is_given_the_names_of_the_cluster() {
    let cluster = with_trainer().await;
    cluster.run("profile trainer --name mine").await;
    let ran = cluster.run("__complete describe m").await;
    assert_eq!(ran.out, "mine\n:4\n", "{ran:?}");
    let ran = cluster.run("__complete doctor pod/").await;
    assert_eq!(ran.out, "pod/trainer\n:4\n", "{ran:?}");
    let ran = cluster.run("completion kubectl").await;
    assert!(ran.out.contains("exec kubectl-flopwatch __complete \"$@\""), "{ran:?}");
}
