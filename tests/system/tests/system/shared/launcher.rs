//! The prepared container behaves as it did: exit codes, signals, environment, a start without an
//! agent.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::cluster::{Group, TestNamespace, kubectl};
use flopwatch_system_tests::pods::{shell, workload};
use flopwatch_system_tests::sessions::{capture_condition, spec, with};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::json;

/// Runs the same script in a prepared and in an unprepared pod, and returns exit code and output of
/// both.
async fn both(namespace: &TestNamespace, name: &str, script: &str) -> Result<[(i32, String); 2]> {
    let outcome = async |prepared: bool| {
        let name = format!("{name}-{}", if prepared { "prepared" } else { "plain" });
        namespace.create_pod(shell(&name, prepared, script)).await?;
        let code = namespace.exit_code(&name).await?;
        // Output and errors are two pipes, and which of them the runtime reads first is its own
        // affair.
        let log = namespace.logs(&name).await?;
        let mut lines: Vec<&str> = log.lines().collect();
        lines.sort_unstable();
        anyhow::Ok((code, lines.join("\n")))
    };
    Ok([outcome(true).await?, outcome(false).await?])
}

#[tokio::test]
async fn a_prepared_container_ends_and_prints_as_an_unprepared_one() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "launcher").await? else {
        return Ok(());
    };
    for (name, script, code) in [
        ("zero", "echo out; echo err >&2; exit 0", 0),
        ("seven", "echo $$; exit 7", 7),
        ("killed", "kill -9 $$; sleep 1; exit 3", 3),
        ("missing", "exec /no/such/program", 127),
        ("own", "echo $WORKLOADS_OWN; id -u; pwd; umask; cat; ulimit -n", 0),
    ] {
        let [prepared, plain] = both(&namespace, name, script).await?;
        ensure!(prepared == plain, "{name}: prepared {prepared:?}, plain {plain:?}");
        ensure!(plain.0 == code, "{name}: {plain:?}");
    }
    namespace.delete().await
}

#[tokio::test]
async fn a_prepared_workload_gets_its_sigterm_and_its_last_words() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "sigterm").await? else {
        return Ok(());
    };
    let script = "trap 'echo last words; exit 5' TERM; echo ready; while :; do sleep 0.1; done";
    namespace.graft(shell("trapper", true, script)).await?;
    namespace.says("trapper", "ready").await?;
    let name = namespace.name.clone();
    let reader = tokio::spawn(async move { kubectl(&name, &["logs", "-f", "trapper", "-c", "main"]).await });
    let pods = namespace.api::<Pod>();
    pods.delete("trapper", &DeleteParams::default()).await?;
    let log = reader.await??;
    ensure!(log.contains("last words"), "{log}");
    namespace.delete().await
}

#[tokio::test]
async fn of_a_pods_containers_the_first_to_start_is_profiled_and_the_other_says_why_not() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "pair").await? else {
        return Ok(());
    };
    let mut pod = workload("pair", true, &["--quiet"]);
    let mut second = pod["spec"]["containers"][0].clone();
    second["name"] = json!("second");
    let containers = pod["spec"]["containers"].as_array_mut().context("no containers")?;
    containers.push(second);
    namespace.run(pod).await?;
    let target = json!({ "podName": "pair", "containerNames": ["main", "second"] });
    let both = with(spec("pair", 1, "Nsys"), json!({ "target": target }));
    namespace.create_session("pair", both).await?;
    namespace.finished("pair").await?;
    let captures = namespace.captures("pair").await?;
    let ends = captures
        .iter()
        .filter_map(|capture| capture_condition(capture, "Succeeded"));
    let (recorded, refused): (Vec<_>, Vec<_>) = ends.partition(|end| end.status == "True");
    ensure!(recorded.len() == 1 && refused.len() == 1, "{recorded:?} {refused:?}");
    for end in refused {
        ensure!(
            end.reason == "NotGrafted" && end.message.contains("another container of this pod"),
            "{end:?}"
        );
    }
    namespace.delete().await
}
