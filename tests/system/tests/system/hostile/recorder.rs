//! A flight recorder's file where nobody answers for it: no other pod's recording waits for it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::artifact::TIMELINE;
use flopwatch_api::preparation::{PREPARED_FOR_ANNOTATION, RECORDER_DIR, UNPREPARED_ANNOTATION};
use flopwatch_system_tests::cluster::{Group, TestNamespace};
use flopwatch_system_tests::mounts::Unanswered;
use flopwatch_system_tests::node;
use flopwatch_system_tests::pods::{labelled, prepared_for, shell};
use flopwatch_system_tests::recordings::heartbeat;
use kube::ResourceExt as _;
use serde_json::json;

#[tokio::test]
async fn a_recorders_file_that_never_answers_keeps_no_other_pods_recording() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "recorder-hangs").await? else {
        return Ok(());
    };
    // No program of it calls NVTX, so that its file is looked for as long as it runs.
    let silent = shell("silent", false, "while :; do sleep 1; done");
    namespace.create_kept(labelled(silent, "recorder")).await?;
    let silent = namespace.running("silent").await?;
    let hangs = Unanswered::over(node::first_process(&silent)?, Path::new(RECORDER_DIR))?;
    namespace.profile_main("hangs", "silent", 5, "Recorder").await?;
    namespace.fails_with("hangs", "AttachFailed", &["fuse"]).await?;

    namespace.create_kept(prepared_for("trainer", "recorder")).await?;
    namespace.has_run("trainer", Duration::from_secs(8)).await?;
    namespace.profile_main("other", "trainer", 5, "Recorder").await?;
    let capture = namespace.succeeded("other").await?;
    let recorded = namespace.timeline(&capture, TIMELINE).await?;
    let rates = heartbeat(&recorded, "step")?;
    ensure!(rates.len() >= 3, "{rates:?}");
    drop(hangs);
    namespace.delete().await
}

#[tokio::test]
async fn a_volume_by_the_recorders_name_that_is_not_in_memory_leaves_the_pod_unprepared() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Hostile, "recorder-volume").await? else {
        return Ok(());
    };
    namespace.prepares_pods().await?;
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
        let made = namespace.admitted(pod).await?;
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
