//! Publishing to a real server of S3, reading back, removing and sweeping; and what becomes of all
//! that when the server fails.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use clap::Parser;
use flopwatch_api::artifact::{Artifact, Output};
use flopwatch_api::capture::SessionReference;
use flopwatch_artifacts::object_store::{Bucket, Contents, Limits, ObjectStoreError, StoreArguments, Stored, Swept};
use flopwatch_artifacts::{CaptureId, MANIFEST_VERSION, Manifest};
use flopwatch_bucket_rig::{BUCKET, S3Server};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    store: StoreArguments,
}

/// Contents of artifacts by name.
struct Files(BTreeMap<String, Vec<u8>>);

impl Contents for Files {
    fn open<'a>(
        &'a self,
        artifact: &'a Artifact,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Result<Bytes, String>>, String>> {
        let content = self.0[&artifact.name].clone();
        let pieces: Vec<_> = content
            .chunks(300_000)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        std::future::ready(Ok(futures::stream::iter(pieces).boxed())).boxed()
    }
}

fn limits() -> Limits {
    Limits {
        upload: Duration::from_secs(20),
        answer: Duration::from_secs(20),
        ..Limits::default()
    }
}

fn arguments(server: &S3Server) -> StoreArguments {
    drop(rustls::crypto::ring::default_provider().install_default());
    let (url, endpoint) = (format!("--store-url=s3://{BUCKET}/team/a"), server.endpoint());
    Flags::parse_from(["x", &url, "--store-endpoint", &endpoint]).store
}

fn bucket(server: &S3Server) -> Bucket {
    bucket_within(server, limits())
}

fn bucket_within(server: &S3Server, limits: Limits) -> Bucket {
    let opened = arguments(server).open_with("cluster", limits, S3Server::credentials);
    opened.unwrap().unwrap()
}

/// The same for who waits until a server that is away does not answer.
fn hasty_bucket(server: &S3Server) -> Bucket {
    let hasty = Limits {
        answer: Duration::from_secs(1),
        ..limits()
    };
    bucket_within(server, hasty)
}

fn content(bytes: u32) -> Vec<u8> {
    (0..bytes / 4)
        .flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect()
}

fn id(name: &str) -> CaptureId {
    CaptureId {
        namespace: "team".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
    }
}

fn sha256_of(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

fn artifact(name: &str, type_: Output, content: &[u8]) -> Artifact {
    Artifact {
        name: name.to_owned(),
        type_,
        bytes: i64::try_from(content.len()).unwrap(),
        sha256: sha256_of(content),
        media_type: "application/octet-stream".to_owned(),
        sensitive: false,
    }
}

/// A capture with a timeline of several parts and a small summary.
fn capture(name: &str) -> (Manifest, Files) {
    let files = [
        ("timeline.h5", Output::Timeline, content(20_000_000)),
        ("summary.json", Output::Summary, b"{}".to_vec()),
    ];
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        capture: id(name),
        session: SessionReference {
            name: "train".to_owned(),
            id: "0badcafe".to_owned(),
        },
        created: Timestamp::UNIX_EPOCH,
        captured: Vec::new(),
        artifacts: files
            .iter()
            .map(|(name, type_, content)| artifact(name, *type_, content))
            .collect(),
    };
    let files = files.map(|(name, _, content)| (name.to_owned(), content));
    (manifest, Files(files.into()))
}

async fn read(
    bucket: &Bucket,
    stored: &Stored,
    range: std::ops::Range<u64>,
) -> (Vec<u8>, Result<(), ObjectStoreError>) {
    let mut content = match bucket.read(stored, &stored.manifest.artifacts[0], range).await {
        Ok(content) => content,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let mut bytes = Vec::new();
    loop {
        match content.try_next().await {
            Ok(Some(piece)) => bytes.extend_from_slice(&piece),
            Ok(None) => return (bytes, Ok(())),
            Err(error) => return (bytes, Err(error)),
        }
    }
}

fn keys(server: &S3Server) -> Vec<String> {
    server.objects().into_iter().map(|(key, _)| key).collect()
}

/// Nothing was handed on, because it is corrupt.
#[track_caller]
fn corrupt((found, ended): (Vec<u8>, Result<(), ObjectStoreError>)) {
    let refused = matches!(ended, Err(ObjectStoreError::Corrupt { .. }));
    assert!(found.is_empty() && refused, "{ended:?}");
}

#[tokio::test]
async fn what_was_published_is_read_back_whole_and_in_parts() {
    let server = S3Server::start().await;
    let bucket = bucket(&server);
    let (manifest, files) = capture("a");
    assert!(!bucket.has_manifest(&id("a")).await.unwrap());
    assert!(bucket.find(&id("a"), &"0".repeat(64)).await.unwrap().is_none());
    let sha256 = bucket.publish(&manifest, &files).await.unwrap();
    assert!(bucket.has_manifest(&id("a")).await.unwrap());
    let stored = bucket.find(&id("a"), &sha256).await.unwrap().unwrap();
    assert_eq!((&stored.manifest, &stored.sha256), (&manifest, &sha256));
    let whole = &files.0["timeline.h5"];
    let bytes = u64::try_from(whole.len()).unwrap();
    for range in [
        0..bytes,
        0..1,
        5_000_000..5_000_001,
        1_048_575..3_000_000,
        bytes - 1..bytes,
        7..7,
    ] {
        let (found, ended) = read(&bucket, &stored, range.clone()).await;
        ended.unwrap();
        let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap());
        assert!(found == whole[start..end], "{range:?}");
    }
    let keys = keys(&server);
    assert_eq!(keys.len(), 3, "{keys:?}");
    let folder = "team/a/cluster/captures/team/a/uid-of-a/";
    assert!(keys.iter().all(|key| key.starts_with(folder)), "{keys:?}");
    assert_eq!(bucket.url(&id("a")), format!("s3://profiles/{folder}"));
}

#[tokio::test]
async fn nobody_sees_a_capture_whose_upload_broke_off_and_the_next_try_goes_on_with_it() {
    let mut server = S3Server::start().await;
    let bucket = hasty_bucket(&server);
    let (manifest, files) = capture("a");
    // The head of the first object, the beginning of its upload, and one part.
    server.fail_after(3);
    let broken = bucket.publish(&manifest, &files).await.unwrap_err();
    assert!(broken.is_transient(), "{broken}");
    server.recover();
    assert!(!bucket.has_manifest(&id("a")).await.unwrap());
    // The timeline arrives, the manifest does not.
    server.fail_after(8);
    bucket.publish(&manifest, &files).await.unwrap_err();
    server.recover();
    assert!(!bucket.has_manifest(&id("a")).await.unwrap());
    server.stop();
    let down = bucket.publish(&manifest, &files).await.unwrap_err();
    assert!(down.is_transient(), "{down}");
    server.start_again().await;
    let before = server.writes();
    let sha256 = bucket.publish(&manifest, &files).await.unwrap();
    // Of what had arrived nothing was sent again: at most the summary and the manifest were.
    assert!(server.writes() - before <= 2, "{} writes", server.writes() - before);
    let stored = bucket.find(&id("a"), &sha256).await.unwrap().unwrap();
    let bytes = u64::try_from(files.0["timeline.h5"].len()).unwrap();
    assert!(read(&bucket, &stored, 0..bytes).await.0 == files.0["timeline.h5"]);
    let again = server.writes();
    assert_eq!(bucket.publish(&manifest, &files).await.unwrap(), sha256);
    assert_eq!(server.writes() - again, 1, "only the manifest is written again");
}

#[tokio::test]
async fn a_corrupt_object_is_told_and_never_handed_on_as_good() {
    let server = S3Server::start().await;
    let bucket = bucket(&server);
    let (manifest, files) = capture("a");
    let sha256 = bucket.publish(&manifest, &files).await.unwrap();
    let stored = bucket.find(&id("a"), &sha256).await.unwrap().unwrap();
    let whole = &files.0["timeline.h5"];
    let bytes = u64::try_from(whole.len()).unwrap();
    let file = server.object(&manifest.artifacts[0].sha256);
    let mut damaged = whole.clone();
    damaged[10_000_000] ^= 1;
    std::fs::write(&file, &damaged).unwrap();

    // A part that is whole is good; one that is not is refused at once.
    assert!(read(&bucket, &stored, 0..1000).await.1.is_ok());
    corrupt(read(&bucket, &stored, 10_000_000..10_000_001).await);
    // What is known as damaged is not begun again.
    corrupt(read(&bucket, &stored, 0..bytes).await);
    // A client that has not met it yet gets an end before the end.
    let other = self::bucket(&server);
    let (found, ended) = read(&other, &stored, 0..bytes).await;
    assert!(
        found == whole[..found.len()] && found.len() < 10_000_001,
        "{} bytes",
        found.len()
    );
    assert!(matches!(ended, Err(ObjectStoreError::Corrupt { .. })), "{ended:?}");

    for wrong in [&whole[..1000], b""] {
        std::fs::write(&file, wrong).unwrap();
        corrupt(read(&bucket, &stored, 0..bytes).await);
        corrupt(read(&bucket, &stored, 5_000_000..5_000_010).await);
    }
    std::fs::remove_file(&file).unwrap();
    let (_, ended) = read(&bucket, &stored, 0..bytes).await;
    assert!(
        matches!(&ended, Err(ObjectStoreError::Corrupt { reason, .. }) if reason == "it is missing"),
        "{ended:?}"
    );
    std::fs::write(server.object("manifest.json"), "{").unwrap();
    let found = bucket.find(&id("a"), &sha256).await;
    assert!(matches!(found, Err(ObjectStoreError::Corrupt { .. })), "{found:?}");
}

/// Object and manifest of `victim`, whose timeline becomes `content`, as somebody writes them who
/// may write everywhere: the artifacts stay as the capture's status names them, or else fit the
/// content too.
async fn forge(server: &S3Server, bucket: &Bucket, victim: &Manifest, content: &[u8], also_artifacts: bool) {
    let (mut forged, mut files) = capture("forged");
    files.0.insert("timeline.h5".to_owned(), content.to_vec());
    forged.artifacts[0] = artifact("timeline.h5", Output::Timeline, content);
    bucket.publish(&forged, &files).await.unwrap();
    let place = |capture: &CaptureId, object: &str| server.object(&format!("/{}/{object}", capture.uid));
    let read = |capture: &CaptureId| -> Value {
        serde_json::from_slice(&std::fs::read(place(capture, "manifest.json")).unwrap()).unwrap()
    };
    let (mut text, with_digests) = (read(&victim.capture), read(&forged.capture));
    let (right, wrong) = (&victim.artifacts[0].sha256, &forged.artifacts[0].sha256);
    let object = place(&victim.capture, right);
    let blocks = with_digests["blocks"][wrong].clone();
    if also_artifacts {
        text["artifacts"][0] = with_digests["artifacts"][0].clone();
        text["blocks"][wrong] = blocks;
        std::fs::write(object.with_file_name(wrong), content).unwrap();
    } else {
        text["blocks"][right] = blocks;
        std::fs::write(object, content).unwrap();
    }
    std::fs::write(place(&victim.capture, "manifest.json"), text.to_string()).unwrap();
}

#[tokio::test]
async fn objects_and_a_manifest_that_fits_them_are_refused_where_another_wrote_them() {
    for also_artifacts in [false, true] {
        let server = S3Server::start().await;
        let bucket = bucket(&server);
        let (manifest, files) = capture("a");
        let sha256 = bucket.publish(&manifest, &files).await.unwrap();
        let mut content = files.0["timeline.h5"].clone();
        content[0] ^= 1;
        forge(&server, &bucket, &manifest, &content, also_artifacts).await;
        let refused = bucket.find(&id("a"), &sha256).await.unwrap_err();
        assert!(
            matches!(&refused, ObjectStoreError::Corrupt { reason, .. } if reason.contains("status"))
                && !refused.is_transient(),
            "{refused}"
        );
        // It holds together: by itself it cannot be told from a right one.
        let text = std::fs::read(server.object("/uid-of-a/manifest.json")).unwrap();
        let forged = bucket.find(&id("a"), &sha256_of(&text)).await.unwrap().unwrap();
        assert_eq!(read(&bucket, &forged, 0..1).await.0, content[..1]);
        // Its own node writes the manifest again: what it describes is served, and nothing else.
        assert_eq!(bucket.publish(&manifest, &files).await.unwrap(), sha256);
        let stored = bucket.find(&id("a"), &sha256).await.unwrap().unwrap();
        let begun = read(&bucket, &stored, 0..1).await;
        if also_artifacts {
            assert_eq!(begun.0, files.0["timeline.h5"][..1]);
        } else {
            corrupt(begun);
        }
    }
}

#[tokio::test]
async fn a_nodes_credential_may_be_one_that_can_only_write() {
    let server = S3Server::start().await;
    let node = arguments(&server).open_with("cluster", limits(), S3Server::writer_credentials);
    let node = node.unwrap().unwrap();
    let (manifest, files) = capture("a");
    let sha256 = node.publish(&manifest, &files).await.unwrap();
    assert_eq!(node.publish(&manifest, &files).await.unwrap(), sha256);
    let rows = "fleet/v1/table=rows/x.parquet";
    node.put_fleet_file(rows, Bytes::from_static(b"rows")).await.unwrap();
    // What it wrote itself, and so what others did, it can neither read nor list nor remove.
    let listed: Result<Vec<_>, _> = node.list_fleet_files("fleet/v1/").try_collect().await;
    for (what, refused) in [
        ("find", node.find(&id("a"), &sha256).await.map(drop)),
        ("has_manifest", node.has_manifest(&id("a")).await.map(drop)),
        ("remove", node.remove(&id("a")).await),
        ("get_fleet_file", node.get_fleet_file(rows, 9).await.map(drop)),
        ("list_fleet_files", listed.map(drop)),
    ] {
        assert!(
            matches!(refused, Err(ObjectStoreError::Refused { .. })),
            "{what}: {refused:?}"
        );
    }
    let reader = bucket(&server);
    let stored = reader.find(&id("a"), &sha256).await.unwrap().unwrap();
    let bytes = u64::try_from(files.0["timeline.h5"].len()).unwrap();
    assert!(read(&reader, &stored, 0..bytes).await.0 == files.0["timeline.h5"]);
    reader.remove(&id("a")).await.unwrap();
    assert!(!reader.has_manifest(&id("a")).await.unwrap());
}

#[tokio::test]
async fn what_is_not_what_its_manifest_says_is_not_stored() {
    let server = S3Server::start().await;
    let bucket = bucket(&server);
    for bytes in [20_000_000, 100, 0] {
        let (manifest, mut files) = capture("a");
        files.0.insert("timeline.h5".to_owned(), vec![1; bytes]);
        let refused = bucket.publish(&manifest, &files).await.unwrap_err();
        assert!(
            matches!(refused, ObjectStoreError::Source { .. }) && !refused.is_transient(),
            "{refused}"
        );
        assert!(!bucket.has_manifest(&id("a")).await.unwrap());
    }
    let keys = keys(&server);
    assert!(keys.iter().all(|key| !key.contains("captures/")), "{keys:?}");
}

#[tokio::test]
async fn credentials_that_are_refused_and_a_bucket_that_is_missing_have_reasons_of_their_own() {
    let server = S3Server::start().await;
    let (manifest, files) = capture("a");
    for secret in ["wrong-secret", ""] {
        let variable = |name: &str| match name {
            "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
            // Where there is nothing at all the machine itself is asked, which no test does.
            "AWS_CONTAINER_CREDENTIALS_FULL_URI" => Some("http://127.0.0.1:9/".to_owned()),
            other => S3Server::credentials(other),
        };
        let refused = arguments(&server).open_with("cluster", limits(), variable);
        let Ok(Some(bucket)) = refused else { continue };
        let refused = bucket.publish(&manifest, &files).await.unwrap_err();
        assert!(
            matches!(refused, ObjectStoreError::Refused { .. }) && !refused.is_transient(),
            "{refused}"
        );
        let message = format!("{refused} {refused:?}");
        assert!(
            !message.contains("wrong-secret") && !message.contains("rig-access-key"),
            "{message}"
        );
        let unread = bucket.find(&id("a"), &"0".repeat(64)).await.unwrap_err();
        assert!(matches!(unread, ObjectStoreError::Refused { .. }), "{unread}");
    }
    server.remove_bucket();
    let missing = bucket(&server).publish(&manifest, &files).await.unwrap_err();
    assert!(
        matches!(&missing, ObjectStoreError::NoBucket(name) if name == BUCKET),
        "{missing}"
    );
}

#[tokio::test]
async fn files_of_the_fleet_lie_beside_captures_and_no_sweep_removes_them() {
    let mut server = S3Server::start().await;
    let bucket = hasty_bucket(&server);
    let path = "fleet/v1/table=rows/date=2026-11-25/uid-1.parquet";
    for _ in 0..2 {
        bucket.put_fleet_file(path, Bytes::from_static(b"rows")).await.unwrap();
    }
    let other = "fleet/v1/table=rows/date=2026-11-26/uid-2.parquet";
    bucket.put_fleet_file(other, Bytes::new()).await.unwrap();
    let keys = keys(&server);
    assert_eq!(keys, [path, other].map(|path| format!("team/a/cluster/{path}")));
    let listed = async |folder: &str| -> Result<Vec<_>, ObjectStoreError> {
        bucket.list_fleet_files(folder).try_collect().await
    };
    let day = listed("fleet/v1/table=rows/date=2026-11-25/").await.unwrap();
    let told: Vec<_> = day.iter().map(|file| (file.path.as_str(), file.bytes)).collect();
    assert_eq!(told, [(path, 4)]);
    assert!(listed("fleet/v1/table=rows/date=2026-11-2/").await.unwrap().is_empty());
    assert_eq!(bucket.get_fleet_file(path, 4).await.unwrap(), "rows");
    let large = bucket.get_fleet_file(path, 3).await.unwrap_err();
    assert!(matches!(large, ObjectStoreError::Corrupt { .. }), "{large}");
    let missing = bucket.get_fleet_file("fleet/v1/x", 3).await.unwrap_err();
    assert!(matches!(missing, ObjectStoreError::Missing(_)), "{missing}");
    // Nothing else of the bucket is reached by it.
    for foreign in ["captures/team/a/uid/manifest.json", "../x", "", "/"] {
        assert!(bucket.put_fleet_file(foreign, Bytes::new()).await.is_err(), "{foreign}");
        assert!(listed(foreign).await.is_err() && bucket.get_fleet_file(foreign, 9).await.is_err());
    }
    let later = Timestamp::now().checked_add(Duration::from_hours(2)).unwrap();
    bucket.sweep(&HashSet::new(), later).await.unwrap();
    assert_eq!(server.objects().len(), 2);
    server.stop();
    assert!(listed("fleet/v1/table=rows/").await.unwrap_err().is_transient());
    let down = bucket.put_fleet_file(path, Bytes::new()).await.unwrap_err();
    assert!(down.is_transient(), "{down}");
    server.start_again().await;
    assert_eq!(bucket.get_fleet_file(path, 4).await.unwrap(), "rows");
}

#[tokio::test]
async fn a_capture_that_is_removed_leaves_nothing() {
    let server = S3Server::start().await;
    let bucket = hasty_bucket(&server);
    for name in ["a", "b"] {
        let (manifest, files) = capture(name);
        bucket.publish(&manifest, &files).await.unwrap();
    }
    for _ in 0..2 {
        bucket.remove(&id("a")).await.unwrap();
        assert!(!bucket.has_manifest(&id("a")).await.unwrap());
    }
    let keys = keys(&server);
    assert!(
        keys.len() == 3 && keys.iter().all(|key| key.contains("uid-of-b")),
        "{keys:?}"
    );
    server.stop();
    assert!(bucket.remove(&id("b")).await.unwrap_err().is_transient());
}

#[tokio::test]
async fn a_sweep_removes_what_has_no_capture_and_nothing_else() {
    let server = S3Server::start().await;
    let bucket = bucket(&server);
    for name in ["live", "gone"] {
        let (manifest, files) = capture(name);
        bucket.publish(&manifest, &files).await.unwrap();
    }
    // An upload that broke off before its manifest, and what is not ours.
    let (manifest, files) = capture("broken");
    bucket.publish(&manifest, &files).await.unwrap();
    std::fs::remove_file(server.object("uid-of-broken/manifest.json")).unwrap();
    let root = server.object("uid-of-live/manifest.json");
    let root = root.ancestors().nth(6).unwrap();
    std::fs::write(root.join("captures.txt"), "x").unwrap();
    let other = arguments(&server).open_with("other-cluster", limits(), S3Server::credentials);
    let (manifest, files) = capture("elsewhere");
    other.unwrap().unwrap().publish(&manifest, &files).await.unwrap();

    let live = HashSet::from([id("live")]);
    let now = Timestamp::now();
    let swept = bucket.sweep(&live, now).await.unwrap();
    assert_eq!(swept, Swept::default(), "all of it is too young");
    let later = now.checked_add(Duration::from_hours(2)).unwrap();
    let swept = bucket.sweep(&live, later).await.unwrap();
    assert_eq!((swept.captures, swept.objects), (2, 5), "{swept:?}");
    assert_eq!(bucket.sweep(&live, later).await.unwrap(), Swept::default());
    let left = keys(&server);
    for (what, count) in [
        ("uid-of-live", 3),
        ("uid-of-elsewhere", 3),
        ("uid-of-gone", 0),
        ("uid-of-broken", 0),
        ("captures.txt", 1),
    ] {
        let found = left.iter().filter(|key| key.contains(what)).count();
        assert_eq!(found, count, "{what}: {left:?}");
    }
    assert!(bucket.has_manifest(&id("live")).await.unwrap());
}
