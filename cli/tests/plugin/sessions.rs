//! Sessions are made, followed, listed, described and stopped.

use serde_json::{Value, json};

use crate::api_server::{ApiServer, CAPTURES, SESSIONS};
use crate::fetching::capture;
use crate::{Ran, run};

struct Rig {
    api: ApiServer,
    folder: tempfile::TempDir,
}

impl Rig {
    async fn new() -> Self {
        Self {
            api: ApiServer::start().await,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    async fn run(&self, words: &str) -> Ran {
        let folder = self.folder.path();
        run(&self.api.kubeconfig(folder, &json!({"token": "of-ada"})), folder, words).await
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z"
    })
}

/// What controller and agent do with the session that is made: a capture comes, works, and ends so.
async fn carry_out(api: &ApiServer, succeeded: &str, reason: &str) {
    let (path, mut session) = api.made(SESSIONS).await;
    let name = session["metadata"]["name"].as_str().unwrap().to_owned();
    let at = format!("{CAPTURES}/{name}-1");
    let captured = |status: &Value| {
        let mut capture = capture(&format!("{name}-1"), status);
        capture["metadata"]["labels"]["flopwatch.dev/session"] = json!(name);
        capture
    };
    for (stage, percent) in [("Attaching", 5), ("Collecting", 40), ("Publishing", 95)] {
        api.put(
            &at,
            captured(&json!({"progress": {"stage": stage, "percent": percent}})),
        );
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let verdict = condition("Succeeded", succeeded, reason, "as the agent says");
    api.put(
        &at,
        captured(&json!({"conditions": [verdict], "progress": {"stage": "Done", "percent": 100}})),
    );
    let of_session = if succeeded == "True" { "Succeeded" } else { "Failed" };
    session["status"] = json!({
        "id": "0badcafe", "counts": {"captures": 1},
        "conditions": [condition("Succeeded", succeeded, of_session, "as the controller says")]
    });
    api.put(&path, session);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_waited_for_tells_its_stages_and_its_end() {
    let rig = Rig::new().await;
    let (ran, ()) = tokio::join!(
        rig.run("profile pod/trainer -c main --duration 5s --wait"),
        carry_out(&rig.api, "True", "Succeeded")
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        ran.out,
        "profilingsession.flopwatch.dev/trainer-x7k2p created\nprofilingsession.flopwatch.dev/trainer-x7k2p succeeded\n"
    );
    assert!(ran.err.contains(" 40 % Collecting\n"), "{ran:?}");
    let made = rig.api.get(&format!("{SESSIONS}/trainer-x7k2p")).unwrap();
    assert_eq!(made["spec"]["target"]["containerNames"], json!(["main"]));
    assert_eq!(made["spec"]["durationSeconds"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_fails_ends_with_a_code_of_its_own_and_the_reasons() {
    let rig = Rig::new().await;
    let (ran, ()) = tokio::join!(
        rig.run("profile trainer --name mine --wait"),
        carry_out(&rig.api, "False", "NotPrepared")
    );
    assert_eq!(ran.code, 3, "{ran:?}");
    let expected =
        "error: session mine failed: Failed: as the controller says\n  pod trainer: NotPrepared: as the agent says\n";
    assert!(ran.err.ends_with(expected), "{ran:?}");
    let again = rig.run("watch mine").await;
    assert_eq!(again.code, 3, "one that has ended is told at once: {again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_in_time_and_the_session_goes_on() {
    let rig = Rig::new().await;
    let ran = rig.run("profile trainer --name mine --wait --timeout 1s").await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.err.contains("has not ended within 1 s"), "{ran:?}");
    let made = rig.api.get(&format!("{SESSIONS}/mine")).unwrap();
    assert_eq!(made["spec"]["stop"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_makes_nothing_and_shows_what_would_be_made() {
    let rig = Rig::new().await;
    let ran = rig.run("profile trainer --name mine --dry-run").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    for line in [
        "kind: ProfilingSession\n",
        "apiVersion: flopwatch.dev/v1alpha1\n",
        "podName: trainer\n",
    ] {
        assert!(ran.out.contains(line), "{ran:?}");
    }
    let ran = rig.run("profile trainer --name mine --dry-run=server -o name").await;
    assert_eq!(ran.out, "profilingsession.flopwatch.dev/mine\n", "{ran:?}");
    assert_eq!(rig.api.get(&format!("{SESSIONS}/mine")), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_described_and_stopped() {
    let rig = Rig::new().await;
    let ran = rig.run("sessions").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
    assert!(ran.err.contains("No sessions in namespace team"), "{ran:?}");

    rig.run("profile trainer --name mine").await;
    let other = SESSIONS.replace("team", "others");
    let mut session = rig.api.get(&format!("{SESSIONS}/mine")).unwrap();
    session["metadata"]["namespace"] = json!("others");
    rig.api.put(&format!("{other}/theirs"), session);
    let ran = rig.run("sessions -o name").await;
    assert_eq!(ran.out, "profilingsession.flopwatch.dev/mine\n");
    let ran = rig.run("sessions -A").await;
    assert!(ran.out.starts_with("NAMESPACE   NAME"), "{ran:?}");
    assert_eq!(ran.out.lines().count(), 3, "{ran:?}");
    assert!(!ran.out.contains('\u{1b}'), "no colours where there is no terminal");

    let ran = rig.run("describe profilingsession/mine").await;
    assert!(ran.out.starts_with("Name:            mine\n"), "{ran:?}");
    let ran = rig.run("stop mine --discard").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let stopped = rig.api.get(&format!("{SESSIONS}/mine")).unwrap();
    assert_eq!(stopped["spec"]["stop"], "Discard");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_refuses_is_told_with_what_helps() {
    let rig = Rig::new().await;
    let ran = rig.run("describe nothing").await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (1, "error: cannot read session nothing: \"nothing\" not found\n")
    );
    rig.api.forbid(SESSIONS);
    let ran = rig.run("profile trainer").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("ClusterRole flopwatch-user"), "{ran:?}");
    rig.api.without_resources();
    let ran = rig.run("sessions").await;
    assert!(ran.err.contains("Flopwatch is not installed"), "{ran:?}");
    let ran = rig.run("sessions --context other").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("other"), "{ran:?}");
    let ran = rig.run("profile trainer --duration 10h").await;
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectls_completion_is_given_the_names_of_the_cluster() {
    let rig = Rig::new().await;
    rig.run("profile trainer --name mine").await;
    rig.api.put(
        "/api/v1/namespaces/team/pods/trainer",
        json!({"metadata": {"name": "trainer", "namespace": "team"}}),
    );
    let ran = rig.run("__complete describe m").await;
    assert_eq!(ran.out, "mine\n:4\n", "{ran:?}");
    let ran = rig.run("__complete doctor pod/").await;
    assert_eq!(ran.out, "pod/trainer\n:4\n", "{ran:?}");
    let ran = rig.run("completion kubectl").await;
    assert!(ran.out.contains("exec kubectl-flopwatch __complete \"$@\""), "{ran:?}");
}
