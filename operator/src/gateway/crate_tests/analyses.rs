//! Analyses through the gateway: of one capture, and of two that lie on different nodes. The
//! timelines are empty; what runs is the real engine.

use flopwatch_analysis::catalogue;
use flopwatch_artifacts::ConversionLimits;
use flopwatch_bucket_rig::{S3Server, SECRET_KEY};
use flopwatch_model::Timeline;
use flopwatch_trace::timeline_file;
use serde_json::{Value, json};

use super::engine::Engine;
use super::rig::{OTHER_NODE, Rig, artifacts, column, finished};
use super::stored::bucket;

const ANALYSES: &str = "/api/profiling/session/0badcafe/analyses";

/// A timeline file that holds nothing.
pub(super) fn empty() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    timeline_file::write(&Timeline::default(), &path).unwrap();
    std::fs::read(path).unwrap()
}

async fn rig() -> Rig {
    Rig::converting(&empty(), Engine::converter, ConversionLimits::default()).await
}

/// Two nodes without an object store. The other holds the capture `train-b` of the session
/// `team/other` (00000bad), whose timeline is the same but for its capture.
async fn two_nodes() -> (Rig, Value) {
    let rig = Rig::on_two_nodes(&empty(), Engine::converter).await;
    rig.session("team", "other", "00000bad", 1, "True");
    let status = rig.publish_on_the_other("train-b", "other", "00000bad", &empty()).await;
    (rig, status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_analysis_of_one_capture_comes_from_its_agent() {
    let rig = rig().await;
    let path = format!("{ANALYSES}/kernels-per-stream");
    let answer = rig.get(&path, "reader").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/json");
    let named = "attachment; filename=\"kernels-per-stream.json\"";
    assert_eq!(answer.header("content-disposition"), named);
    assert_eq!(answer.json()["rows"], json!([]));
    assert_eq!(answer.json()["not_captured"][0]["what"], "what streams ran");
    let tag = answer.header("etag").to_owned();
    let again = rig.get_with(&path, "reader", &[("If-None-Match", &tag)]).await;
    assert_eq!(again.status, 304);
    assert_eq!(rig.ask("HEAD", &path, Some("reader"), &[], "").await.status, 200);
    assert_eq!(rig.status(&path, "stranger").await, 403);
    assert_eq!(rig.ask("GET", &path, None, &[], "").await.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_written_as_it_is_asked_for_and_no_page_of_it_runs_here() {
    let rig = rig().await;
    let expected = [
        (
            "page",
            "application/vnd.flopwatch.page+json",
            "kernels-per-stream.page.json",
        ),
        ("html", "text/html; charset=utf-8", "kernels-per-stream.html"),
        ("csv", "text/csv; charset=utf-8", "kernels-per-stream.csv"),
        ("text", "text/plain; charset=utf-8", "kernels-per-stream.txt"),
    ];
    for (format, media_type, file_name) in expected {
        let path = format!("{ANALYSES}/kernels-per-stream?format={format}");
        let answer = rig.get(&path, "reader").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), media_type);
        assert_eq!(
            answer.header("content-disposition"),
            format!("attachment; filename=\"{file_name}\"")
        );
        assert_eq!(answer.header("content-security-policy"), "default-src 'none'; sandbox");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(rig.status(&path, "stranger").await, 403);
    }
    let unknown = rig
        .get(&format!("{ANALYSES}/kernels-per-stream?format=pdf"), "reader")
        .await;
    assert_eq!(unknown.status, 400, "{unknown:?}");
    assert!(unknown.detail().contains("html"), "{unknown:?}");
}

#[tokio::test]
async fn the_catalogue_is_listed_for_everybody() {
    let rig = Rig::new().await;
    let list = rig.ask("GET", "/api/profiling/analyses", None, &[], "").await.json();
    let names = column(&list["analyses"], "name");
    let known: Vec<&str> = catalogue::CATALOGUE.iter().map(|definition| definition.name).collect();
    assert_eq!(names, known);
    let mut all = list["analyses"].as_array().unwrap().iter();
    let changes = all.find(|one| one["name"] == "kernel-changes").unwrap();
    let version = catalogue::find("kernel-changes").unwrap().version;
    assert_eq!(json!([changes["inputs"], changes["version"]]), json!(["two", version]));
    assert!(changes["parameters"]["properties"]["limit"].is_object(), "{changes}");
}

#[tokio::test]
async fn what_is_no_request_of_the_catalogue_says_what_is() {
    let rig = Rig::new().await;
    for (path, status, words) in [
        (
            "flame-chart",
            404,
            vec!["flame-chart", "kernels-per-stream", "kernel-changes"],
        ),
        ("kernels-per-stream?colour=red", 400, vec!["colour", "it has none"]),
        (
            "kernel-changes?with=0badcafe&colour=red",
            400,
            vec!["colour", "limit", "name_contains"],
        ),
        ("kernel-changes?with=0badcafe&limit=0", 400, vec!["limit", "1"]),
        ("kernel-changes", 400, vec!["two captures", "with=SESSION_ID/CAPTURE"]),
        ("kernels-per-stream?with=0badcafe", 400, vec!["one capture"]),
    ] {
        let answer = rig.get(&format!("{ANALYSES}/{path}"), "reader").await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        for word in words {
            assert!(answer.detail().contains(word), "{path}: {answer:?}");
        }
        let of_a_stranger = rig.status(&format!("{ANALYSES}/{path}"), "stranger").await;
        // The catalogue is public; what a session's request lacks is not.
        assert_eq!(of_a_stranger, if status == 404 { 404 } else { 403 }, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_captures_of_different_nodes_meet_on_the_first_ones() {
    let (rig, _) = two_nodes().await;
    let path = format!("{ANALYSES}/kernel-changes?capture=train-a&with=00000bad/train-b");
    let answer = rig.get(&path, "reader").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["rows"], json!([]));
    assert_eq!(answer.json()["not_captured"][0]["what"], "kernels before");
    assert_eq!(rig.inputs_taken(), 1);
    assert_eq!(rig.json(&path, "reader").await, answer.json());
    assert_eq!(rig.ask("HEAD", &path, Some("reader"), &[], "").await.status, 200);
    assert_eq!(rig.inputs_taken(), 1, "a kept result needs no content");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_read_the_second_session_has_nothing_brought() {
    let (rig, _) = two_nodes().await;
    rig.session("closed", "secret", "00005ec1", 2, "True");
    let mut status = finished(&rig.other_url(), &artifacts());
    status["artifacts"][0]["sensitive"] = json!(true);
    rig.capture_on(OTHER_NODE, "other", "00000bad", "train-b", &status);
    for (with, user, reason) in [
        ("00005ec1", "reader", "Forbidden"),
        ("12345678", "reader", "Forbidden"),
        ("00000bad", "stranger", "Forbidden"),
        ("00000bad", "reader", "RawForbidden"),
    ] {
        let answer = rig.get(&format!("{ANALYSES}/kernel-changes?with={with}"), user).await;
        assert_eq!(answer.told(), format!("403 {reason}"), "{with} {user}: {answer:?}");
    }
    assert_eq!(rig.inputs_taken(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_that_is_not_what_its_status_says_is_not_taken() {
    let (rig, mut status) = two_nodes().await;
    status["artifacts"][0]["sha256"] = json!("0".repeat(64));
    rig.capture_on(OTHER_NODE, "other", "00000bad", "train-b", &status);
    let answer = rig
        .get(&format!("{ANALYSES}/kernel-changes?with=00000bad"), "reader")
        .await;
    assert_eq!(answer.told(), "502 NotBrought", "{answer:?}");
    assert!(answer.detail().contains("SHA-256"), "{answer:?}");
    assert_eq!(rig.inputs_taken(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_reads_a_copy_in_the_object_store_itself() {
    let server = S3Server::start().await;
    let bucket = bucket(&server, SECRET_KEY);
    let rig = Rig::with_store(bucket.clone()).await;
    rig.agent.copy_to(&bucket).await;
    rig.copied(None, Some("s3://x"));
    // The one agent that is left holds neither capture: both are read from the store.
    let path = format!("{ANALYSES}/kernel-changes?with=0badcafe/train-a");
    let answer = rig.get(&path, "reader").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["rows"], json!([]));
    assert_eq!(rig.inputs_taken(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_paths_of_the_profiling_suite_answer_of_a_session_and_of_the_latest() {
    let rig = rig().await;
    let nothing = json!({
        "gpu_idle_time_pct": null, "compute_time_pct": null, "communication_time_pct": null,
        "top_kernels": [], "recommendations": [], "bottlenecks": [],
    });
    for path in ["/api/profiler/hta?session=0badcafe", "/api/profiler/hta"] {
        let answer = rig.get(path, "reader").await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(answer.json(), nothing, "{path}");
        assert_eq!(rig.status(path, "stranger").await, 403, "{path}");
        assert_eq!(rig.ask("GET", path, None, &[], "").await.status, 401, "{path}");
    }
    let kernels = rig.get("/api/profiler/kernels?limit=3", "reader").await;
    assert_eq!(kernels.json(), json!({"kernels": null}));
    let path = "/api/profiler/memory?sample_interval_ms=1.0&record_history=true";
    let nothing = json!({"points": null, "peak_allocated_mb": null, "peak_time_ms": null});
    assert_eq!(rig.json(path, "reader").await, nothing);
    let path = "/api/profiler/flame?min_duration_us=10.0&max_depth=50&group_small_kernels=true";
    let flame = rig.json(path, "reader").await;
    assert_eq!(json!([flame["name"], flame["value"]]), json!(["all", 0]));
    let page = rig.get("/api/profiler/flame?format=html", "reader").await;
    assert!(page.body.starts_with(b"<!doctype html>"), "{page:?}");
    let timeline = rig.json("/api/profiler/timeline?min_duration_us=0.5", "reader").await;
    let keys = [
        "cpu_active_time_us",
        "gpu_active_time_us",
        "overlap_time_us",
        "total_time_us",
    ];
    let found: Vec<&String> = timeline.as_object().unwrap().keys().collect();
    assert_eq!(found, keys);
    // An eager capture may stand beside.
    for beside in ["", "&with=0badcafe/train-a"] {
        let path = format!("/api/profiler/compile?session=0badcafe{beside}");
        let answer = rig.get(&path, "reader").await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let compile = answer.json();
        assert_eq!(
            json!([compile["speedup"], compile["graph_breaks"]]),
            json!([null, []]),
            "{path}"
        );
        assert_eq!(compile.as_object().unwrap().len(), 8, "{path}");
    }
    for wrong in [
        "kernels?limit=0",
        "hta?with=0badcafe/train-a",
        "hta?capture=train-a",
        "hta?session=0badcafe&session=0badcafe",
        "timeline?depth=3",
    ] {
        let answer = rig.get(&format!("/api/profiler/{wrong}"), "reader").await;
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
}
