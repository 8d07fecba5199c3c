//! Artifacts whose node is gone, out of a real server of S3.

use clap::Parser;
use flopwatch_artifacts::object_store::{Bucket, Limits, StoreArguments};
use flopwatch_artifacts::{CaptureId, Manifest};
use flopwatch_bucket_rig::{BUCKET, S3Server};
use serde_json::{Value, json};
use std::time::Duration;

use super::rig::{Rig, finished, timeline_content};

const TIMELINE: &str = "/api/profiling/timeline/0badcafe.h5";
const SUMMARY: &str = "/api/profiling/session/0badcafe/artifacts/summary.json";
const RAW: &str = "/api/profiling/session/0badcafe/artifacts/capture.nsys-rep";

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    store: StoreArguments,
}

pub(super) fn bucket(server: &S3Server, secret: &str) -> Bucket {
    drop(rustls::crypto::ring::default_provider().install_default());
    let (url, endpoint) = (format!("--store-url=s3://{BUCKET}/x"), server.endpoint());
    let flags = Flags::parse_from(["x", &url, "--store-endpoint", &endpoint]);
    let limits = Limits {
        answer: Duration::from_secs(2),
        ..Limits::default()
    };
    let variable = |name: &str| match name {
        "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
        other => S3Server::credentials(other),
    };
    flags.store.open_with("cluster", limits, variable).unwrap().unwrap()
}

/// A gateway whose capture has replicas in the store.
async fn copied(server: &S3Server) -> (Rig, Bucket) {
    let bucket = bucket(server, flopwatch_bucket_rig::SECRET_KEY);
    let rig = Rig::with_store(bucket.clone()).await;
    rig.agent.copy_to(&bucket).await;
    rig.copied(Some(&rig.agent_url()), Some(&bucket.url(&capture())));
    (rig, bucket)
}

fn capture() -> CaptureId {
    CaptureId {
        namespace: "team".to_owned(),
        name: "train-a".to_owned(),
        uid: "uid-of-train-a".to_owned(),
    }
}

#[tokio::test]
async fn what_the_node_gave_the_store_gives_when_the_node_is_gone() {
    let server = S3Server::start().await;
    let (rig, _) = copied(&server).await;
    let ask =
        async |method: &str, headers: &[(&str, &str)]| rig.ask(method, TIMELINE, Some("reader"), headers, "").await;
    let whole = timeline_content();
    let requests: [(&str, Vec<(&str, &str)>); 8] = [
        ("GET", vec![]),
        ("HEAD", vec![]),
        ("GET", vec![("Range", "bytes=1048570-1048580")]),
        ("GET", vec![("Range", "bytes=-1")]),
        ("GET", vec![("Range", "bytes=99999999-")]),
        ("GET", vec![("If-None-Match", "*")]),
        ("HEAD", vec![("Range", "bytes=0-9")]),
        ("GET", vec![("If-Range", "\"other\""), ("Range", "bytes=0-1")]),
    ];
    let mut before = Vec::new();
    for (method, headers) in &requests {
        before.push(ask(method, headers).await);
    }
    assert!(before[0].body == whole && before[2].body == whole[1_048_570..1_048_581]);
    rig.agent.stop();
    for ((method, headers), before) in requests.iter().zip(&before) {
        let after = ask(method, headers).await;
        assert_eq!(after.status, before.status, "{method} {headers:?}");
        assert!(after.body == before.body || after.status == 416, "{method} {headers:?}");
        for name in [
            "etag",
            "content-length",
            "content-range",
            "content-type",
            "accept-ranges",
            "repr-digest",
            "content-disposition",
        ] {
            assert!(
                after.header(name) == before.header(name) || (after.status == 416 && name.starts_with("content-")),
                "{method} {headers:?} {name}: {after:?}"
            );
        }
    }
    // What may be read stays the same too.
    assert_eq!(rig.status(TIMELINE, "stranger").await, 403);
    assert_eq!(rig.get(RAW, "reader").await.told(), "403 RawForbidden");
    assert_eq!(rig.get(RAW, "raw-reader").await.body, b"secret");
    let other = RAW.replace("capture.nsys-rep", "other");
    assert_eq!(rig.status(&other, "reader").await, 404);
    // So it is when the status says that no node has it any more.
    rig.copied(None, Some("s3://profiles/x"));
    assert_eq!(rig.get(SUMMARY, "reader").await.body, b"{}");
    rig.copied(None, None);
    assert_eq!(rig.get(SUMMARY, "reader").await.told(), "409 NotReady");
}

#[tokio::test]
async fn without_a_copy_the_node_is_missed() {
    let server = S3Server::start().await;
    let (rig, _) = copied(&server).await;
    rig.copied(Some(&rig.agent_url()), None);
    rig.agent.stop();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(rig.get(SUMMARY, "reader").await.told(), "503 AgentUnreachable");
}

#[tokio::test]
async fn a_copy_stands_in_for_an_artifact_that_is_damaged_on_the_node() {
    let server = S3Server::start().await;
    let (rig, _) = copied(&server).await;
    let summary = &rig.agent.manifest.artifact("summary.json").unwrap().sha256;
    std::fs::write(rig.agent.folder.path().join("store/objects").join(summary), "[]").unwrap();
    let answer = rig.get(SUMMARY, "reader").await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"{}"[..]));
}

#[tokio::test]
async fn a_copy_that_is_damaged_is_told_and_never_served_as_good() {
    let server = S3Server::start().await;
    let (rig, _) = copied(&server).await;
    rig.agent.stop();
    let sha256 = |name: &str| rig.agent.manifest.artifact(name).unwrap().sha256.clone();
    std::fs::write(server.object(&sha256("summary.json")), "[]").unwrap();
    assert_eq!(rig.get(SUMMARY, "reader").await.told(), "502 Corrupt");
    // Damage behind the first block is met on the way: the answer ends before its length, and the
    // next is refused at once.
    let mut content = timeline_content();
    content[1_500_000] ^= 1;
    std::fs::write(server.object(&sha256("timeline.h5")), &content).unwrap();
    let cut = rig.get(TIMELINE, "reader").await;
    let length: usize = cut.header("content-length").parse().unwrap();
    assert!(
        cut.status == 200 && length == content.len() && cut.body.len() < 1_500_001,
        "{} bytes",
        cut.body.len()
    );
    assert_eq!(rig.get(TIMELINE, "reader").await.told(), "502 Corrupt");
    std::fs::remove_file(server.object("manifest.json")).unwrap();
    assert_eq!(rig.get(RAW, "raw-reader").await.told(), "404 NotFound");
}

/// Puts `content` in the place of the capture's timeline, of the same length, with a manifest that
/// has the digests of its blocks: what whoever has a node's credential for the store can do. Every
/// artifact stays in it as the capture's status says.
async fn forge(server: &S3Server, rig: &Rig, bucket: &Bucket, content: &[u8]) {
    let forged = rig.agent.publish(content, "forged", ("train", "0badcafe")).await;
    rig.agent.store.copy_to(bucket, &forged).await.unwrap();
    let read = |uid: &str| -> Value {
        let file = server.object(&format!("/{uid}/manifest.json"));
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    };
    let (mut own, with_digests) = (read("uid-of-train-a"), read("uid-of-forged"));
    let sha256 = |manifest: &Manifest| manifest.artifact("timeline.h5").unwrap().sha256.clone();
    let (right, wrong) = (sha256(&rig.agent.manifest), sha256(&forged));
    own["blocks"][&right] = with_digests["blocks"][&wrong].clone();
    std::fs::write(server.object(&format!("/uid-of-train-a/{right}")), content).unwrap();
    std::fs::write(server.object("/uid-of-train-a/manifest.json"), own.to_string()).unwrap();
}

#[tokio::test]
async fn what_another_node_writes_in_the_place_of_a_copy_is_refused() {
    let server = S3Server::start().await;
    let (rig, bucket) = copied(&server).await;
    rig.agent.stop();
    let mut content = timeline_content();
    content[7] ^= 1;
    forge(&server, &rig, &bucket, &content).await;
    let parts: [&[(&str, &str)]; 2] = [&[("Range", "bytes=0-9")], &[]];
    for headers in parts {
        let answer = rig.ask("GET", TIMELINE, Some("reader"), headers, "").await;
        assert_eq!(answer.status, 502, "{} bytes: {headers:?}", answer.body.len());
        assert_eq!(answer.reason(), "Corrupt");
        let detail = answer.detail();
        assert!(detail.contains("status"), "{detail}");
    }
    // Nor is anything made of it on another node.
    let form = "/api/profiling/session/0badcafe/artifacts/timeline.csv";
    let made = rig.get(form, "reader").await;
    assert_eq!(made.told(), "502 Agent");
    // With the next copy its own node's manifest is back, and what is whole is served.
    rig.agent.copy_to(&bucket).await;
    assert_eq!(rig.get(SUMMARY, "reader").await.body, b"{}");
}

#[tokio::test]
async fn a_copy_of_which_the_status_says_no_manifest_is_not_believed() {
    let server = S3Server::start().await;
    let (rig, bucket) = copied(&server).await;
    rig.agent.stop();
    let mut status = finished("", &serde_json::to_value(&rig.agent.manifest.artifacts).unwrap());
    (status["url"], status["storeUrl"]) = (Value::Null, json!(bucket.url(&capture())));
    rig.capture_of("train", "0badcafe", "train-a", &status);
    for path in [SUMMARY, "/api/profiling/session/0badcafe/artifacts/timeline.csv"] {
        let answer = rig.get(path, "reader").await;
        assert_eq!(answer.told(), "502 Corrupt", "{path}");
        let detail = answer.detail();
        assert!(detail.contains("storeSha256"), "{detail}");
    }
}

#[tokio::test]
async fn a_store_that_fails_has_a_reason_of_its_own() {
    let mut server = S3Server::start().await;
    let (rig, bucket) = copied(&server).await;
    rig.agent.stop();
    server.stop();
    let down = rig.get(SUMMARY, "reader").await;
    assert!(
        [503, 504].contains(&down.status) && down.reason().starts_with("ObjectStore"),
        "{down:?}"
    );
    server.start_again().await;
    assert_eq!(rig.status(SUMMARY, "reader").await, 200);
    bucket.remove(&capture()).await.unwrap();
    assert_eq!(rig.status(TIMELINE, "reader").await, 502);
    assert_eq!(rig.get(TIMELINE, "reader").await.told(), "404 NotFound");

    let refused = Rig::with_store(self::bucket(&server, "wrong")).await;
    refused.copied(None, Some("s3://profiles/x"));
    let answer = refused.get(SUMMARY, "reader").await;
    assert_eq!(answer.told(), "503 ObjectStore");
    let detail = answer.detail();
    assert!(
        detail.contains("SignatureDoesNotMatch") && !detail.contains("rig-"),
        "{detail}"
    );
    server.remove_bucket();
    let gone = rig.get(SUMMARY, "reader").await;
    assert!(gone.detail().contains("no bucket"), "{gone:?}");
}

#[tokio::test]
async fn any_nodes_agent_makes_a_form_of_a_copy() {
    let server = S3Server::start().await;
    let (rig, bucket) = copied(&server).await;
    let form = "/api/profiling/session/0badcafe/artifacts/timeline.csv";
    rig.agent.stop();
    let made = rig.get(form, "reader").await;
    let content = format!("{} bytes", timeline_content().len());
    assert!(made.status == 200 && made.body == content.as_bytes(), "{made:?}");
    let name = "attachment; filename=\"timeline.csv\"";
    assert_eq!(made.header("content-disposition"), name);
    assert_eq!(rig.status(form, "stranger").await, 403);
    let failing = rig.get(&form.replace(".csv", ".json.gz"), "reader").await;
    assert_eq!(failing.told(), "502 ConversionFailed");
    // It is kept there, and goes when the copy is gone.
    let other = rig.other.as_ref().unwrap();
    assert_eq!(other.store.remote_captures().await.unwrap(), [capture()]);
    server.fail_after(2);
    let kept = rig.get(form, "reader").await;
    server.recover();
    assert_eq!(kept.body, made.body);
    bucket.remove(&capture()).await.unwrap();
    assert_eq!(rig.status(form, "reader").await, 404);
    for _ in 0..2 {
        other.store.forget_remote_capture(&capture()).await.unwrap();
        assert!(other.store.remote_captures().await.unwrap().is_empty());
    }
    other.stop();
    let nobody = rig.get(form, "reader").await;
    assert_eq!(nobody.told(), "503 AgentUnreachable");
}
