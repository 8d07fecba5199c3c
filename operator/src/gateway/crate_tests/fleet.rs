//! What the fleet spends its time on, out of a real server of S3, for those who may list the
//! sessions that it came of.

use flopwatch_api::GROUP;
use flopwatch_artifacts::object_store::Bucket;
use flopwatch_bucket_rig::{S3Server, SECRET_KEY};
use flopwatch_fleet::{CaptureRow, FilePath, Row, Sketch, Table, name_hash, write_captures, write_rows};
use flopwatch_test_harness::{Identity, Right};
use serde_json::{Value, json};

use super::rig::{Answer, Rig, column};
use super::stored::bucket;

const HOUR: i64 = 3_600_000_000_000;
/// 2026-11-25T12:00:00Z.
const NOON: i64 = 1_795_608_000_000_000_000;
const DAY: &str = "since=2026-11-25T00:00:00Z&until=2026-11-26T00:00:00Z";

/// A capture that succeeded, drawn with a probability of 10 %, and ran the kernel `gemm` for an
/// hour.
fn capture(namespace: &str, uid: &str) -> (CaptureRow, Vec<Row>) {
    let capture = CaptureRow {
        namespace: namespace.to_owned(),
        capture_uid: uid.to_owned(),
        trigger: "Schedule".to_owned(),
        image: format!("registry/{namespace}"),
        window_start: NOON,
        window_ns: 2 * HOUR,
        probability_per_billion: 100_000_000,
        succeeded: true,
        categories: vec!["cuda_kernel".to_owned(), "nvtx_range".to_owned()],
        ..CaptureRow::default()
    };
    let rows = vec![row(&capture, "cuda_kernel", "gemm", HOUR)];
    (capture, rows)
}

fn row(capture: &CaptureRow, category: &str, name: &str, total_ns: i64) -> Row {
    let mut sketch = Sketch::default();
    sketch.add(total_ns.unsigned_abs());
    Row {
        capture_uid: capture.capture_uid.clone(),
        namespace: capture.namespace.clone(),
        image: capture.image.clone(),
        window_start: capture.window_start,
        window_ns: capture.window_ns,
        probability_per_billion: capture.probability_per_billion,
        category: category.to_owned(),
        name: name.to_owned(),
        name_hash: name_hash(name),
        calls: 1,
        total_ns,
        min_ns: total_ns,
        max_ns: total_ns,
        median_ns: total_ns,
        sketch: Some(sketch),
        ..Row::default()
    }
}

async fn put(bucket: &Bucket, path: &FilePath, content: Vec<u8>) {
    bucket.put_fleet_file(&path.to_string(), content.into()).await.unwrap();
}

fn place(table: Table, capture: &CaptureRow) -> FilePath {
    FilePath::new(table, capture.window_start, &capture.namespace, &capture.capture_uid).unwrap()
}

async fn put_capture(bucket: &Bucket, capture: &CaptureRow) {
    let content = write_captures(std::slice::from_ref(capture)).unwrap();
    put(bucket, &place(Table::Captures, capture), content).await;
}

async fn put_rows(bucket: &Bucket, capture: &CaptureRow, rows: &[Row]) {
    let content = write_rows(rows).unwrap();
    put(bucket, &place(Table::Rows, capture), content).await;
}

async fn put_both(bucket: &Bucket, (capture, rows): &(CaptureRow, Vec<Row>)) {
    put_rows(bucket, capture, rows).await;
    put_capture(bucket, capture).await;
}

async fn fleet() -> (S3Server, Rig, Bucket) {
    let server = S3Server::start().await;
    let bucket = bucket(&server, SECRET_KEY);
    (server, Rig::with_store(bucket.clone()).await, bucket)
}

async fn top(rig: &Rig, query: &str, user: &str) -> Value {
    let answer = rig.get(&format!("/api/fleet/top?{query}&{DAY}"), user).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn captures_stand_for_those_that_were_not_drawn_and_what_is_missing_is_told() {
    let (_server, rig, bucket) = fleet().await;
    for number in 0..9 {
        put_both(&bucket, &capture("team", &format!("drawn-{number}"))).await;
    }
    let failed = CaptureRow {
        succeeded: false,
        reason: Some("TargetNotRunning".to_owned()),
        categories: Vec::new(),
        ..capture("team", "failed").0
    };
    put_capture(&bucket, &failed).await;
    let mut asked = capture("team", "asked");
    (asked.0.trigger, asked.0.probability_per_billion) = ("Manual".to_owned(), 1_000_000_000);
    let ran = [("cuda_kernel", "copy"), ("nvtx_range", "step")];
    asked.1 = ran.map(|(category, name)| row(&asked.0, category, name, HOUR)).into();
    put_both(&bucket, &asked).await;
    let found = top(&rig, "by=kernels&namespace=team", "reader").await;
    let names = "captures failed not_captured not_drawn captures_without_rows".split(' ');
    for (name, count) in names.zip([11, 1, 1, 1, 0]) {
        assert_eq!(found[name], count, "{name}: {found}");
    }
    assert_eq!(column(&found["groups"], "key"), ["gemm", "copy"]);
    let gemm = &found["groups"][0];
    assert_eq!(
        json!([gemm["captures"], gemm["observed"]["total_ns"]]),
        json!([9, 9 * HOUR])
    );
    let total = gemm["total_ns"]["value"].as_f64().unwrap();
    assert!((total - 90.0 * 3.6e12).abs() < 1e6, "{gemm}");
    let [low, high] = ["low", "high"].map(|end| gemm["total_ns"][end].as_f64().unwrap());
    assert!(low < total && total < high, "{gemm}");
    let share = gemm["share"]["value"].as_f64().unwrap();
    assert!((share - 90.0 / 91.0).abs() < 1e-9, "{gemm}");
    let drawn = top(&rig, "by=kernels&namespace=team&drawn_only=true&limit=1", "reader").await;
    assert_eq!(
        json!([drawn["captures"], drawn["not_drawn"], drawn["other_groups"]]),
        json!([10, 1, 0])
    );
    let ranges = top(&rig, "by=ranges&namespace=team", "reader").await;
    assert_eq!(ranges["groups"][0]["key"], "step");
    let images = top(&rig, "by=images&namespace=team", "reader").await;
    assert_eq!(images["groups"][0]["key"], "registry/team");
}

#[tokio::test]
async fn nobody_sees_what_came_of_sessions_that_they_may_not_list() {
    let (_server, rig, bucket) = fleet().await;
    put_both(&bucket, &capture("team", "own")).await;
    put_both(&bucket, &capture("other", "foreign")).await;
    // Rows that claim another namespace than their capture has.
    let (posing, mut rows) = capture("team", "posing");
    rows[0].namespace = "other".to_owned();
    rows[0].name = "posed".to_owned();
    rows[0].name_hash = name_hash("posed");
    put_rows(&bucket, &posing, &rows).await;
    put_capture(&bucket, &posing).await;
    let own = top(&rig, "by=images&namespace=team", "reader").await;
    let groups = |found: &Value| column(&found["groups"], "key").len();
    assert_eq!((&own["captures"], groups(&own)), (&json!(2), 1), "{own}");
    let text = own.to_string();
    for foreign in ["registry/other", "foreign", "posed"] {
        assert!(!text.contains(foreign), "{foreign}: {text}");
    }
    assert_eq!(
        json!([own["unread"][0]["files"], own["captures_without_rows"]]),
        json!([1, 0]),
        "{own}"
    );
    let all = top(&rig, "by=images", "admin").await;
    assert_eq!((&all["captures"], groups(&all)), (&json!(3), 2), "{all}");
    let example = all["unread"][0]["example"].as_str().unwrap();
    assert!(example.ends_with("posing.parquet"), "{all}");
    for (query, user) in [
        ("by=images", "reader"),
        ("by=images&namespace=other", "reader"),
        ("by=images&namespace=team", "raw-reader"),
        ("by=images&namespace=team", "stranger"),
    ] {
        let refused = rig.get(&format!("/api/fleet/top?{query}"), user).await;
        assert_eq!(refused.told(), "403 Forbidden", "{query} {user}");
    }
    let nobody = rig.ask("GET", "/api/fleet/top?by=images", None, &[], "").await;
    assert_eq!(nobody.status, 401);
}

#[tokio::test]
async fn sums_of_a_namespace_read_and_tell_nothing_of_another() {
    let (server, rig, bucket) = fleet().await;
    put_both(&bucket, &capture("team", "own")).await;
    for number in 0..20 {
        put_both(&bucket, &capture("other", &format!("foreign-{number}"))).await;
    }
    // What cannot be read, rows alone, and what is there twice: of the other.
    let mut twice = capture("other", "foreign-0").0;
    twice.window_start += HOUR * 13;
    put_capture(&bucket, &twice).await;
    put_rows(&bucket, &capture("other", "alone").0, &capture("other", "alone").1).await;
    std::fs::write(server.object("foreign-1.parquet"), "x").unwrap();
    // As many requests as the namespace's own files need: two days of two tables are listed, and
    // two files are read.
    let days = "since=2026-11-25T00:00:00Z&until=2026-11-27T00:00:00Z";
    server.fail_after(6);
    let answer = rig
        .get(&format!("/api/fleet/top?by=kernels&namespace=team&{days}"), "reader")
        .await;
    server.recover();
    let found = answer.json();
    assert_eq!((answer.status, &found["captures"]), (200, &json!(1)), "{found}");
    for of_all in ["repeated", "rows_without_capture", "captures_without_rows"] {
        assert_eq!(found[of_all], 0, "{of_all}: {found}");
    }
    assert_eq!(found["unread"], json!([]), "{found}");
    let all = rig.json(&format!("/api/fleet/top?by=kernels&{days}"), "admin").await;
    assert_eq!((&all["captures"], &all["repeated"]), (&json!(20), &json!(1)), "{all}");
}

#[tokio::test]
async fn a_capture_in_the_folder_of_another_namespace_counts_in_neither() {
    let (_server, rig, bucket) = fleet().await;
    put_both(&bucket, &capture("team", "own")).await;
    let (planted, rows) = capture("other", "planted");
    let wrong = |table| FilePath::new(table, NOON, "team", "planted").unwrap();
    put(&bucket, &wrong(Table::Rows), write_rows(&rows).unwrap()).await;
    let content = write_captures(&[planted]).unwrap();
    put(&bucket, &wrong(Table::Captures), content).await;
    for (namespace, user, captures, unread) in [("team", "reader", 1, 1), ("other", "admin", 0, 0)] {
        let found = top(&rig, &format!("by=kernels&namespace={namespace}"), user).await;
        let files = found["unread"].as_array().unwrap().len();
        assert_eq!((&found["captures"], files), (&json!(captures), unread), "{found}");
    }
}

#[tokio::test]
async fn files_that_are_damaged_missing_or_of_another_are_told_and_never_count() {
    let (server, rig, bucket) = fleet().await;
    put_both(&bucket, &capture("team", "good")).await;
    // Its rows are not there yet.
    put_capture(&bucket, &capture("team", "early").0).await;
    // Its capture is not.
    let (absent, rows) = capture("team", "absent");
    put_rows(&bucket, &absent, &rows).await;
    // Cut, under another's name, twice, and nothing of ours.
    put_both(&bucket, &capture("team", "cut")).await;
    let cut = server.object("table=rows/date=2026-11-25/tenant=team/cut.parquet");
    std::fs::write(&cut, &std::fs::read(&cut).unwrap()[..100]).unwrap();
    let renamed = write_captures(&[capture("team", "good").0]).unwrap();
    put(&bucket, &place(Table::Captures, &capture("team", "renamed").0), renamed).await;
    let mut twice = capture("team", "twice");
    put_both(&bucket, &twice).await;
    twice.0.window_start += 24 * HOUR;
    put_capture(&bucket, &twice.0).await;
    std::fs::write(cut.with_file_name("notes.txt"), "x").unwrap();
    let path = "/api/fleet/top?by=kernels&namespace=team&since=2026-11-25T00:00:00Z&until=2026-11-27T00:00:00Z";
    let answer = rig.get(path, "reader").await;
    let found = answer.json();
    // good, early, cut and one of the two.
    assert_eq!(
        json!([found["captures"], found["not_captured"]]),
        json!([4, 2]),
        "{found}"
    );
    assert_eq!(found["groups"][0]["captures"], 2, "{found}");
    assert_eq!(
        json!([
            found["captures_without_rows"],
            found["rows_without_capture"],
            found["repeated"]
        ]),
        json!([1, 1, 1]),
        "{found}"
    );
    let unread = column(&found["unread"], "files").into_iter();
    assert_eq!(unread.filter_map(Value::as_u64).sum::<u64>(), 3, "{found}");
    for example in column(&found["unread"], "example") {
        assert!(example.as_str().unwrap().contains("/tenant=team/"), "{found}");
    }
}

#[tokio::test]
async fn what_cannot_be_had_says_what_helps() {
    let rig = Rig::new().await;
    let none = rig.get("/api/fleet/top?by=kernels&namespace=team", "reader").await;
    assert_eq!(none.told(), "404 NoObjectStore");
    assert!(none.detail().contains("store.url"), "{none:?}");
    for query in [
        "by=pods",
        "",
        "by=kernels&limit=0",
        "by=kernels&limit=501",
        "by=kernels&namespace=../x",
        "by=kernels&since=yesterday",
        "by=kernels&since=2026-01-01T00:00:00Z&until=2026-06-01T00:00:00Z",
        "by=kernels&unknown=1",
    ] {
        let answer = rig.get(&format!("/api/fleet/top?{query}"), "admin").await;
        assert_eq!(answer.status, 400, "{query}");
    }
    let (mut server, rig, bucket) = fleet().await;
    put_both(&bucket, &capture("team", "own")).await;
    server.stop();
    let path = format!("/api/fleet/top?by=kernels&namespace=team&{DAY}");
    let down = rig.get(&path, "reader").await;
    assert!(
        [503, 504].contains(&down.status) && down.reason().starts_with("ObjectStore"),
        "{down:?}"
    );
    server.start_again().await;
    assert_eq!(rig.json(&path, "reader").await["captures"], 1);
}

/// Status and reason of an answer to whoever asks while the store does not answer.
const SLOW: &str = "504 ObjectStoreSlow";

#[tokio::test]
async fn one_user_takes_no_turn_of_another() {
    let (mut server, rig, bucket) = fleet().await;
    put_both(&bucket, &capture("team", "own")).await;
    let silent = server.silence().await;
    let path = format!("/api/fleet/top?by=kernels&namespace=team&{DAY}");
    let ask = |user| rig.get(&path, user);
    let (one, two, three, other) = tokio::join!(ask("reader"), ask("reader"), ask("reader"), ask("admin"));
    let mut told = [one, two, three].map(|answer| answer.told());
    told.sort();
    assert_eq!(told, ["503 Busy", "503 Busy", SLOW]);
    // It had its turn, and the store gave it nothing.
    assert_eq!(other.told(), SLOW);
    drop(silent);
    server.start_again().await;
    let (one, two) = tokio::join!(ask("reader"), ask("admin"));
    assert_eq!(json!([one.json()["captures"], two.json()["captures"]]), json!([1, 1]));
}

#[tokio::test]
async fn a_store_that_does_not_answer_keeps_four_users_waiting_and_no_more() {
    let (mut server, rig, _bucket) = fleet().await;
    let users = ["u0", "u1", "u2", "u3", "u4"];
    for user in users {
        rig.cluster.server.add_token(user, Identity::new(user));
        let list = Right::resource("list", GROUP, "profilingsessions").in_namespace("team");
        rig.cluster.server.allow(user, list);
    }
    let silent = server.silence().await;
    let path = format!("/api/fleet/top?by=kernels&namespace=team&{DAY}");
    let asked = users.map(|user| rig.get(&path, user));
    let answers = futures::future::join_all(asked).await;
    let mut told: Vec<_> = answers.iter().map(Answer::told).collect();
    told.sort();
    assert_eq!(told, ["503 Busy", SLOW, SLOW, SLOW, SLOW]);
    drop(silent);
    server.start_again().await;
    assert_eq!(rig.status(&path, "u4").await, 200);
}
