//! Captures leave rows of the fleet in an object store, each once, and never wait for it.

use std::collections::HashSet;
use std::time::Duration;

use clap::Parser;
use flopwatch_agent::node::fleet_outbox::noted::recover;
use flopwatch_artifacts::object_store::{Bucket, Limits, StoreArguments};
use flopwatch_bucket_rig::{BUCKET, S3Server};
use flopwatch_fleet::{CaptureRow, FilePath, Limits as ReadLimits, Row, Table, read_captures, read_rows};
use serde_json::json;

use super::rig::{Rig, eventually};
use super::sample::{ask, ask_named, rig};
use super::sample_profiler::Sample;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    store: StoreArguments,
}

fn bucket(server: &S3Server) -> Bucket {
    drop(rustls::crypto::ring::default_provider().install_default());
    let (url, endpoint) = (format!("--store-url=s3://{BUCKET}/x"), server.endpoint());
    let flags = Flags::parse_from(["x", &url, "--store-endpoint", &endpoint]);
    let limits = Limits {
        answer: Duration::from_secs(1),
        ..Limits::default()
    };
    let opened = flags.store.open_with("cluster", limits, S3Server::credentials);
    opened.unwrap().unwrap()
}

/// A node whose profiler records an operator, with a pod of a known image, and the store that its
/// rows go to.
async fn fleet() -> (S3Server, Rig) {
    let server = S3Server::start().await;
    let mut rig = rig(&Sample::default());
    rig.bucket = Some(bucket(&server));
    rig.server.edit("pods", "team", "p", |pod| {
        pod["metadata"]["labels"] = json!({"app.kubernetes.io/version": "1.2"});
        pod["spec"]["containers"][0]["image"] = json!("registry/llm:v1");
        pod["status"]["containerStatuses"][0]["imageID"] = json!("registry/llm@sha256:aa");
    });
    (server, rig)
}

/// The files of a table that the store holds: paths and contents.
fn files(server: &S3Server, table: Table) -> Vec<(FilePath, Vec<u8>)> {
    let objects = server.objects().into_iter();
    let files = objects.filter_map(|(key, file)| {
        let path = FilePath::parse(key.strip_prefix("x/cluster/")?)?;
        (path.table == table).then(|| (path, std::fs::read(file).unwrap()))
    });
    files.collect()
}

fn captures(server: &S3Server) -> Vec<CaptureRow> {
    let files = files(server, Table::Captures).into_iter();
    let rows = files.flat_map(|(path, content)| {
        let rows = read_captures(content, &ReadLimits::default()).unwrap();
        assert!(rows.iter().all(|row| row.capture_uid == path.capture_uid), "{path}");
        rows
    });
    rows.collect()
}

fn rows(server: &S3Server) -> Vec<Row> {
    let files = files(server, Table::Rows).into_iter();
    files
        .flat_map(|(_, content)| read_rows(content, &ReadLimits::default()).unwrap())
        .collect()
}

/// Waits until the store holds so many captures.
async fn stored(server: &S3Server, count: usize) -> Vec<CaptureRow> {
    eventually("rows of captures", || {
        let found = captures(server);
        (found.len() >= count).then_some(found)
    })
    .await
}

#[tokio::test]
async fn a_capture_that_succeeded_leaves_its_row_and_a_row_of_each_name() {
    let (server, rig) = fleet().await;
    ask(&rig, "Kineto", "cpu_op");
    rig.server.edit("captures", "team", "c", |capture| {
        capture["metadata"]["annotations"] = json!({"flopwatch.dev/probability-per-billion": "111111"});
        capture["metadata"]["labels"] = json!({"flopwatch.dev/schedule": "always"});
    });
    let life = rig.live().await;
    rig.ends("c", "Succeeded").await;
    let [capture] = stored(&server, 1).await.try_into().unwrap();
    assert_eq!(capture.capture_uid, rig.uid("c"));
    assert!(
        capture.succeeded && capture.window_ns > 0 && capture.window_start > 0,
        "{capture:?}"
    );
    assert!(capture.categories.contains(&"cpu_op".to_owned()), "{capture:?}");
    let told = (
        capture.trigger.as_str(),
        capture.probability_per_billion,
        capture.schedule.as_deref(),
    );
    assert_eq!(told, ("Schedule", 111_111, Some("always")));
    let told = (
        capture.cluster.as_str(),
        capture.namespace.as_str(),
        capture.node.as_str(),
    );
    assert_eq!(told, ("cluster", "team", "n1"));
    let rows = rows(&server);
    let operator = rows.iter().find(|row| row.name == "aten::mm").unwrap();
    assert_eq!(
        (operator.category.as_str(), operator.calls, operator.total_ns),
        ("cpu_op", 1, 5_000)
    );
    for row in &rows {
        assert_eq!(row.capture_uid, capture.capture_uid);
        assert_eq!(
            (row.image.as_str(), row.image_digest.as_deref()),
            ("registry/llm:v1", Some("sha256:aa"))
        );
        assert_eq!(
            (row.version.as_deref(), row.window_start),
            (Some("1.2"), capture.window_start)
        );
    }
    // Nothing of it is an artifact.
    let artifacts = rig.server.get("captures", "team", "c").unwrap()["status"]["artifacts"].to_string();
    assert!(!artifacts.contains("fleet"), "{artifacts}");
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
}

#[tokio::test]
async fn captures_that_failed_were_refused_or_were_thrown_away_leave_a_row_and_no_other() {
    let (server, rig) = fleet().await;
    ask(&rig, "Kineto", "cuda_kernel");
    let life = rig.live().await;
    let (missing, _) = rig.end_of("c").await;
    assert_eq!(missing, "RequiredEventsMissing");
    stored(&server, 1).await;
    // Deleted in its window.
    rig.ask_for("deleted", 300, &json!({"type": "Kineto"}));
    rig.in_stage("deleted", "Collecting").await;
    // Refused, as the container has another.
    rig.ask("second", 1);
    assert_eq!(rig.end_of("second").await.0, "ContainerBusy");
    rig.server.delete("captures", "team", "deleted");
    // Its pod is not there.
    let mut absent = Rig::capture("absent", 1);
    absent["spec"]["podRef"] = json!({"name": "q", "uid": "uid-q"});
    rig.server.put(&absent);
    let mut found: Vec<_> = stored(&server, 4)
        .await
        .into_iter()
        .map(|row| {
            (
                row.capture,
                row.reason.unwrap_or_default(),
                row.succeeded,
                row.categories.len(),
                row.image,
            )
        })
        .collect();
    found.sort();
    let row = |name: &str, reason: &str, image: &str| (name.to_owned(), reason.to_owned(), false, 0, image.to_owned());
    let image = "registry/llm:v1";
    assert_eq!(
        found,
        [
            row("absent", "TargetNotRunning", ""),
            row("c", "RequiredEventsMissing", image),
            row("deleted", "Discarded", image),
            row("second", "ContainerBusy", image),
        ]
    );
    assert!(rows(&server).is_empty());
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
}

#[tokio::test]
async fn a_store_that_is_away_holds_up_no_capture_and_has_the_rows_when_it_is_back_though_the_agent_restarted() {
    let (mut server, rig) = fleet().await;
    server.stop();
    ask(&rig, "Kineto", "cpu_op");
    let life = rig.live().await;
    assert_eq!(rig.end_of("c").await.0, "Succeeded");
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
    server.start_again().await;
    assert!(captures(&server).is_empty());
    let life = rig.live().await;
    let found = stored(&server, 1).await;
    assert!(found[0].succeeded && !rows(&server).is_empty(), "{found:?}");
    life.end().await;
}

#[tokio::test]
async fn rows_that_are_too_large_to_wait_leave_the_row_of_their_capture_which_says_that_it_has_none() {
    let (server, mut rig) = fleet().await;
    ask(&rig, "Kineto", "cpu_op");
    let life = rig.live().await;
    assert_eq!(rig.end_of("c").await.0, "Succeeded");
    stored(&server, 1).await;
    life.end().await;
    let [rows_bytes, capture_bytes] =
        [Table::Rows, Table::Captures].map(|table| u64::try_from(files(&server, table)[0].1.len()).unwrap());
    rig.fleet_bytes = capture_bytes + rows_bytes / 2;
    let life = rig.live().await;
    ask_named(&rig, "d", 2, "Kineto", "cpu_op");
    assert_eq!(rig.end_of("d").await.0, "Succeeded");
    let found = stored(&server, 2).await;
    let told: Vec<_> = found
        .iter()
        .map(|row| (row.capture.as_str(), row.succeeded, row.categories.is_empty()))
        .collect();
    assert!(
        told.contains(&("c", true, false)) && told.contains(&("d", true, true)),
        "{told:?}"
    );
    assert!(rows(&server).iter().all(|row| row.capture_uid == rig.uid("c")));
    life.end().await;
}

#[tokio::test]
async fn a_capture_whose_agent_ended_before_its_end_was_told_leaves_one_row() {
    let (server, rig) = fleet().await;
    ask(&rig, "Kineto", "cpu_op");
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    rig.stored_but_untold("c", 500).await;
    life.end().await;
    assert!(captures(&server).is_empty(), "nobody knows yet how it ended");
    rig.server.heal();
    let life = rig.live().await;
    assert_eq!(rig.end_of("c").await.0, "Succeeded");
    let found = stored(&server, 1).await;
    assert!(
        found[0].succeeded && found[0].categories.contains(&"cpu_op".to_owned()),
        "{found:?}"
    );
    assert_eq!(rows(&server).iter().filter(|row| row.name == "aten::mm").count(), 1);
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    assert_eq!(captures(&server).len(), 1);
    life.end().await;
}

#[tokio::test]
async fn a_capture_whose_agent_ended_right_after_its_end_was_told_has_its_row_from_the_next() {
    let (server, rig) = fleet().await;
    ask(&rig, "Kineto", "cuda_kernel");
    let life = rig.live().await;
    rig.in_stage("c", "Collecting").await;
    let (uid, journal) = (rig.uid("c"), rig.journal("c"));
    let kept = std::fs::read(&journal).unwrap();
    rig.end_of("c").await;
    let before = stored(&server, 1).await;
    eventually("the spool to be empty", || rig.spooled().is_empty().then_some(())).await;
    life.end().await;
    for (path, _) in files(&server, Table::Captures) {
        std::fs::remove_file(server.object(&format!("{}.parquet", path.capture_uid))).unwrap();
    }
    // As the agent that died left it.
    std::fs::write(&journal, kept).unwrap();
    let life = rig.live().await;
    // One that is under way is left alone, and so is one that cannot be asked about.
    assert_eq!(recover(&life.node, |name| name == uid).await, HashSet::new());
    assert!(captures(&server).is_empty());
    assert_eq!(recover(&life.node, |_| false).await, HashSet::new());
    let after = stored(&server, 1).await;
    let told = |row: &CaptureRow| {
        (
            row.capture_uid.clone(),
            row.reason.clone(),
            row.succeeded,
            row.image.clone(),
        )
    };
    assert_eq!(told(&after[0]), told(&before[0]));
    life.end().await;
}
