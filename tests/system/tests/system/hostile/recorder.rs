//! A flight recorder's file where nobody answers for it: no other pod's recording waits for it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::preparation::{PREPARED_FOR_ANNOTATION, RECORDER_DIR, UNPREPARED_ANNOTATION};
use flopwatch_system_tests::cluster::{Cluster, Group};
use flopwatch_system_tests::fetch::reader_token;
use flopwatch_system_tests::mounts::Unanswered;
use flopwatch_system_tests::node;
use flopwatch_system_tests::pods::prepared_for;
use flopwatch_system_tests::recordings::{heartbeat, timeline};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};

fn asked(pod: &str) -> Value {
    json!({
        "target": { "podName": pod, "containerNames": ["main"] }, "durationSeconds": 5,
        "profiler": { "type": "Recorder" }
    })
}

#[tokio::test]
async fn a_recorders_file_that_never_answers_keeps_no_other_pods_recording() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Hostile).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("recorder-hangs").await?;
    // No program of it calls NVTX, so that its file is looked for as long as it runs.
    let mut silent = prepared_for("silent", "recorder");
    silent["spec"]["containers"][0]["command"] = json!(["/bin/sh", "-c", "while :; do sleep 1; done"]);
    silent["spec"]["containers"][0]["args"] = json!([]);
    namespace.create_pod(namespace.on_kept_node(silent).await?).await?;
    let silent = namespace.running("silent").await?;
    let hangs = Unanswered::over(node::first_process(&silent)?, Path::new(RECORDER_DIR))?;
    namespace.create_session("hangs", asked("silent")).await?;
    let end = namespace.end_of("hangs").await?;
    ensure!(end.reason == "AttachFailed" && end.message.contains("fuse"), "{end:?}");

    let trainer = namespace.on_kept_node(prepared_for("trainer", "recorder")).await?;
    namespace.create_pod(trainer).await?;
    namespace.has_run("trainer", Duration::from_secs(8)).await?;
    namespace.create_session("other", asked("trainer")).await?;
    let end = namespace.end_of("other").await?;
    ensure!(end.succeeded, "{end:?}");
    let capture = namespace.only_capture("other").await?;
    let token = reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    let recorded = timeline(&cluster, &token, &capture, "timeline.h5").await?;
    let rates = heartbeat(&recorded, "step")?;
    ensure!(rates.len() >= 3, "{rates:?}");
    drop(hangs);
    namespace.delete().await
}

#[tokio::test]
async fn a_volume_by_the_recorders_name_that_is_not_in_memory_leaves_the_pod_unprepared() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::Hostile).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("recorder-volume").await?;
    namespace.prepares_pods().await?;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    for source in [
        json!({ "emptyDir": {} }),
        json!({ "csi": { "driver": "fuse.example.com" } }),
    ] {
        let mut pod = prepared_for("trainer", "recorder");
        let mut volume = source.clone();
        volume["name"] = json!("flopwatch-recorder-0");
        pod["spec"]["volumes"] = json!([volume]);
        let mount = json!({ "name": "flopwatch-recorder-0", "mountPath": RECORDER_DIR });
        pod["spec"]["containers"][0]["volumeMounts"] = json!([mount]);
        let pod: Pod = serde_json::from_value(pod)?;
        let made = namespace.api::<Pod>().create(&dry, &pod).await?;
        let annotations = made.annotations();
        ensure!(
            !annotations.contains_key(PREPARED_FOR_ANNOTATION),
            "{source}: {annotations:?}"
        );
        let why = annotations.get(UNPREPARED_ANNOTATION).context("not told")?;
        ensure!(why.contains("already has a volume"), "{source}: {why}");
    }
    namespace.delete().await
}
