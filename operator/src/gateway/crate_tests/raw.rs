//! Timelines of captures of which the raw one is kept alone, through the gateway.

use flopwatch_bucket_rig::{S3Server, SECRET_KEY};
use serde_json::json;

use super::analyses::empty;
use super::engine::Engine;
use super::rig::{OTHER_NODE, Rig, finished};
use super::stored::bucket;

const H5: &str = "/api/profiling/timeline/0badcafe.h5";
const STATUS: &str = "/api/profiling/timeline/0badcafe/status";
const ARTIFACTS: &str = "/api/profiling/session/0badcafe/artifacts";

/// Says of `train-a` that its raw capture, which holds `report`, is kept alone.
async fn keep_raw_alone(rig: &mut Rig, report: &str) {
    let artifacts = rig
        .agent
        .publish_raw(report.as_bytes(), "train-a", ("train", "0badcafe"))
        .await;
    rig.capture("train-a", &rig.agent_url(), &artifacts);
}

#[tokio::test]
async fn the_timeline_of_a_raw_capture_is_made_for_those_who_may_read_that() {
    let mut rig = Rig::new().await;
    keep_raw_alone(&mut rig, "a report").await;
    let status = rig.json(STATUS, "reader").await;
    assert_eq!(json!([status["status"], status["artifact"]]), json!(["ready", null]));
    let list = rig.json(ARTIFACTS, "reader").await;
    assert_eq!(list["derived"][0]["name"], "timeline.h5");

    let answer = rig.get(H5, "raw-reader").await;
    assert_eq!(
        (answer.status, answer.body.as_slice()),
        (200, &b"a report of 0badcafe"[..])
    );
    assert_eq!(answer.header("content-type"), "application/x-hdf5");
    let part = rig.get_with(H5, "raw-reader", &[("Range", "bytes=0-0")]).await;
    assert_eq!((part.status, part.body.as_slice()), (206, &b"a"[..]));
    let events = rig.get(&format!("{ARTIFACTS}/timeline.csv"), "raw-reader").await;
    assert_eq!((events.status, events.body.as_slice()), (200, &b"20 bytes"[..]));
    for path in [H5, "/api/profiling/timeline/0badcafe"] {
        let refused = rig.get(path, "reader").await;
        assert_eq!(refused.told(), "403 RawForbidden", "{path}");
    }
}

#[tokio::test]
async fn a_raw_capture_of_which_no_timeline_can_be_made_says_what_the_export_said() {
    let mut rig = Rig::new().await;
    keep_raw_alone(&mut rig, "broken").await;
    let failed = rig.get(H5, "raw-reader").await;
    assert_eq!(failed.told(), "502 ConversionFailed");
    let detail = failed.detail();
    assert!(
        detail.contains("the export failed (exit code 1): this is no report"),
        "{detail}"
    );
}

#[tokio::test]
async fn the_timeline_of_a_raw_copy_is_made_on_another_node() {
    let server = S3Server::start().await;
    let bucket = bucket(&server, SECRET_KEY);
    let mut rig = Rig::with_store(bucket.clone()).await;
    keep_raw_alone(&mut rig, "a report").await;
    rig.agent.copy_to(&bucket).await;
    rig.copied(None, Some("s3://x"));
    for _ in 0..2 {
        let answer = rig.get(H5, "raw-reader").await;
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (200, &b"a report of 0badcafe"[..])
        );
        let events = rig.get(&format!("{ARTIFACTS}/timeline.csv"), "raw-reader").await;
        assert_eq!((events.status, events.body.as_slice()), (200, &b"20 bytes"[..]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_is_compared_with_a_raw_one_of_another_node() {
    let mut rig = Rig::on_two_nodes(&empty(), Engine::converter).await;
    rig.session("team", "other", "00000bad", 1, "True");
    let other = rig.other.as_mut().unwrap();
    let artifacts = other.publish_raw(&empty(), "train-b", ("other", "00000bad")).await;
    let status = finished(&rig.other_url(), &artifacts);
    rig.capture_on(OTHER_NODE, "other", "00000bad", "train-b", &status);
    let path = "/api/profiling/session/0badcafe/analyses/kernel-changes?with=00000bad";
    let answer = rig.get(path, "raw-reader").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(rig.inputs_taken(), 1, "its timeline was brought");
    assert_eq!(rig.get(path, "reader").await.reason(), "RawForbidden");
}
