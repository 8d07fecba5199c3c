//! Derived artifacts on demand, over real HTTP. What makes them here writes the timeline backwards;
//! the agent's own tests have the real one.

use std::collections::HashSet;
use std::time::Duration;

use crate::converting::{Converting, no_raw_capture};
use crate::rig::{Captures, Listening, TIMELINE, options, path, readers};
use flopwatch_analysis::{Request, catalogue};
use flopwatch_api::artifact::{Output, analysis_path, artifacts_path};
use flopwatch_artifacts::{Access, CaptureId, ConversionError, ConversionLimits, StoreOptions};
use flopwatch_http::ReviewerOptions;

const EVENTS_CSV: &str = "timeline.csv";
const EVENTS_PARQUET: &str = "timeline.parquet";
const SAMPLES_CSV: &str = "samples.csv";
const CHROME: &str = "timeline.json.gz";
const PERFETTO: &str = "timeline.pftrace";
const KERNELS: &str = "kernels.json";

/// Writes the timelines backwards.
fn write(request: &Request, texts: &[String]) -> Result<String, ConversionError> {
    let texts: Vec<String> = texts.iter().map(|text| text.chars().rev().collect()).collect();
    match request.definition().file_name().as_str() {
        CHROME => Err(ConversionError::Failed("the child failed: no such format".to_owned())),
        KERNELS => Ok(String::new()),
        _ => Ok(texts.join("|")),
    }
}

/// With so many conversions that need not wait.
async fn rig(permits: usize) -> Converting {
    Converting::new(Captures::new().await, permits, write, no_raw_capture)
}

/// The same with its capture in another store, within those bounds.
async fn rig_within(folder: &str, options: StoreOptions) -> Converting {
    let captures = Captures::new().await.within(folder, options).await;
    Converting::new(captures, 9, write, no_raw_capture)
}

impl Converting {
    async fn until_begun(&self, count: usize) {
        for _ in 0..500 {
            if self.begun() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no conversion began within 5 s");
    }

    fn stored(&self, folder: &str) -> usize {
        let folder = self.captures.root.path().join("store").join(folder);
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }
}

fn backwards() -> String {
    TIMELINE.chars().rev().collect()
}

#[tokio::test]
async fn that_a_capture_has_nothing_of_a_kind_is_found_out_once_and_said() {
    let rig = rig(9).await;
    let server = rig.open();
    for _ in 0..2 {
        let counters = analysis_path("team", "train", "kernel-counters");
        assert_eq!(server.get(&counters, &[]).await.told(), "404 NotCaptured");
    }
    assert_eq!(rig.begun(), 1);
}

#[tokio::test]
async fn a_form_is_made_once_and_served_like_an_artifact() {
    let rig = rig(1).await;
    let listening = rig.open();
    let list = listening.get(&artifacts_path("team", "train"), &[]).await.json();
    let derived = list["derived"].as_array().unwrap();
    assert_eq!(derived.len(), catalogue::artifacts().count());
    assert_eq!(list["derived"][0]["path"], path(EVENTS_CSV));

    let path = path(EVENTS_CSV);
    let whole = listening.get(&path, &[]).await;
    assert_eq!((whole.status, whole.text()), (200, backwards()));
    assert_eq!(whole.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(
        whole.header("content-disposition"),
        "attachment; filename=\"timeline.csv\""
    );
    let tag = whole.header("etag").to_owned();
    let head = listening.ask("HEAD", &path, &[]).await;
    assert_eq!(
        (head.status, head.header("content-length"), head.header("etag")),
        (200, "36", tag.as_str())
    );
    let part = listening.get(&path, &[("Range", "bytes=0-2")]).await;
    assert_eq!((part.status, part.text().as_str()), (206, "zyx"));
    assert_eq!(listening.get(&path, &[("If-None-Match", &tag)]).await.status, 304);
    assert_eq!(rig.begun(), 1);
    assert_eq!(rig.conversions(EVENTS_CSV, "made"), 1);
    assert_eq!(rig.conversions(EVENTS_CSV, "kept"), 3);
    assert!(!rig.double.folder.exists());
}

#[tokio::test]
async fn who_asks_for_the_same_form_waits_for_the_same_conversion() {
    let rig = rig(0).await;
    let listening = rig.open();
    let path = path(EVENTS_PARQUET);
    let asking = futures::future::join_all((0..8).map(|_| listening.get(&path, &[])));
    let opening = async {
        rig.until_begun(1).await;
        rig.double.permits.add_permits(1);
    };
    let (answers, ()) = tokio::join!(asking, opening);
    for answer in answers {
        assert_eq!((answer.status, answer.text()), (200, backwards()));
    }
    assert_eq!((rig.begun(), rig.conversions(EVENTS_PARQUET, "made")), (1, 1));
}

#[tokio::test]
async fn a_form_that_takes_long_is_asked_for_again_and_too_many_are_refused() {
    let rig = rig(0).await;
    let limits = ConversionLimits {
        at_once: 1,
        waiting: 1,
        patience: Duration::from_millis(50),
    };
    let listening = rig.listen(Access::LoopbackOnly, limits);
    for form in [EVENTS_CSV, PERFETTO, EVENTS_CSV] {
        let answer = listening.get(&path(form), &[]).await;
        assert_eq!(answer.told(), "503 Converting");
        assert_eq!(answer.header("retry-after"), "2");
    }
    assert_eq!(listening.get(&path(SAMPLES_CSV), &[]).await.told(), "503 Busy");
    assert_eq!(rig.conversions(SAMPLES_CSV, "refused"), 1);
    assert_eq!(rig.begun(), 1, "the other waits for its turn");
    // Nobody waits any more: both are made all the same.
    rig.double.permits.add_permits(2);
    rig.until_begun(2).await;
    for form in [EVENTS_CSV, PERFETTO] {
        let mut answer = listening.get(&path(form), &[]).await;
        for _ in 0..400 {
            if answer.status == 200 {
                break;
            }
            answer = listening.get(&path(form), &[]).await;
        }
        assert_eq!((answer.status, answer.text()), (200, backwards()));
    }
    assert_eq!(rig.begun(), 2);
}

#[tokio::test]
async fn a_conversion_that_fails_says_why_and_leaves_nothing() {
    let rig = rig(2).await;
    let listening = rig.open();
    for _ in 0..2 {
        let answer = listening.get(&path(CHROME), &[]).await;
        assert_eq!(answer.told(), "500 ConversionFailed");
        let text = answer.text();
        assert!(text.contains("the child failed: no such format"), "{text}");
    }
    assert_eq!(rig.conversions(CHROME, "failed"), 2);
    assert!(!rig.double.folder.exists());
    assert_eq!((rig.stored("derived/team"), rig.stored("objects")), (0, 3));
}

#[tokio::test]
async fn a_capture_without_a_timeline_has_no_forms() {
    let rig = rig(1).await;
    rig.captures.put("bare", "summary.json", Output::Summary, b"{}").await;
    let listening = rig.open();
    let base = artifacts_path("team", "bare");
    let csv = format!("{base}/timeline.csv");
    assert_eq!(listening.get(&csv, &[]).await.told(), "404 NotFound");
    assert_eq!(listening.get(&base, &[]).await.json()["derived"], serde_json::json!([]));
    let plain = Listening::plain(&rig.captures.service(Access::LoopbackOnly));
    assert_eq!(plain.get(&path(EVENTS_CSV), &[]).await.told(), "404 NotFound");
}

#[tokio::test]
async fn forms_go_with_their_capture() {
    for sweep in [false, true] {
        let rig = rig(1).await;
        let listening = rig.open();
        assert_eq!(listening.get(&path(EVENTS_CSV), &[]).await.status, 200);
        assert_eq!((rig.stored("derived/team"), rig.stored("objects")), (1, 4));
        if sweep {
            let live = HashSet::from([CaptureId {
                namespace: "team".to_owned(),
                name: "train".to_owned(),
                uid: "uid".to_owned(),
            }]);
            let kept = rig.captures.store.sweep(&live).await.unwrap();
            assert_eq!((kept.objects, rig.stored("derived/team")), (0, 1));
            rig.captures.store.sweep(&HashSet::new()).await.unwrap();
        } else {
            rig.captures.store.delete("team", "train").await.unwrap();
        }
        assert_eq!(
            (rig.stored("derived/team"), rig.stored("objects")),
            (0, 0),
            "sweep: {sweep}"
        );
    }
}

#[tokio::test]
async fn a_form_of_what_was_published_anew_is_made_anew() {
    let rig = rig(2).await;
    let listening = rig.open();
    assert_eq!(listening.get(&path(EVENTS_CSV), &[]).await.text(), backwards());
    rig.captures.put("train", "timeline.h5", Output::Timeline, b"abc").await;
    assert_eq!(listening.get(&path(EVENTS_CSV), &[]).await.text(), "cba");
}

#[tokio::test]
async fn forms_that_outlive_their_bounds_are_released() {
    for (bytes, age, kept) in [
        (72, Duration::from_mins(1), 2),
        (71, Duration::from_mins(1), 1),
        (72, Duration::ZERO, 1),
    ] {
        let options = StoreOptions {
            free_bytes_floor: 0,
            derived_bytes: bytes,
            derived_age: age,
        };
        let rig = rig_within("bounded", options).await;
        let listening = rig.open();
        for form in [EVENTS_CSV, PERFETTO] {
            assert_eq!(listening.get(&path(form), &[]).await.status, 200);
        }
        let record = rig.captures.root.path().join("bounded/derived/team/train.json");
        let record = std::fs::read_to_string(record).unwrap();
        assert_eq!(record.matches("mediaType").count(), kept, "{bytes} {age:?} {record}");
        assert!(record.contains("timeline.pftrace"), "the newest stays: {record}");
    }
}

#[tokio::test]
async fn a_form_that_is_larger_than_all_may_be_is_refused() {
    let small = StoreOptions {
        derived_bytes: 35,
        ..options()
    };
    let rig = rig_within("small", small).await;
    let answer = rig.open().get(&path(EVENTS_CSV), &[]).await;
    assert_eq!(answer.told(), "500 ConversionFailed");
    let text = answer.text();
    assert!(text.contains("36 bytes is more than the 35"), "{text}");
}

#[tokio::test]
async fn a_form_that_was_damaged_is_made_anew() {
    let rig = rig(2).await;
    let listening = rig.open();
    let path = path(EVENTS_CSV);
    let answer = listening.get(&path, &[]).await;
    let object = rig.captures.root.path().join("store/objects");
    std::fs::write(object.join(answer.header("etag").trim_matches('"')), "damaged").unwrap();
    assert_eq!(listening.get(&path, &[]).await.told(), "503 Converting");
    assert_eq!(listening.get(&path, &[]).await.text(), backwards());
    assert_eq!(rig.begun(), 2);
}

#[tokio::test]
async fn a_form_needs_the_right_to_what_it_is_made_of() {
    let rig = rig(9).await;
    // An artifact under a derived artifact's name is no derived artifact.
    rig.captures.put("named", "timeline.csv", Output::Raw, b"secret").await;
    // Nor is a derived artifact of something sensitive less so.
    rig.captures.put("sensitive", "timeline.h5", Output::Raw, b"abc").await;
    let access = rig.captures.kubernetes(&readers(), ReviewerOptions::default());
    let listening = rig.listen(access, ConversionLimits::default());
    for (user, capture, status) in [
        ("nobody", "train", 401),
        ("stranger", "train", 403),
        ("reader", "train", 200),
        ("reader", "named", 403),
        ("rawreader", "named", 200),
        ("reader", "sensitive", 403),
        ("rawreader", "sensitive", 200),
    ] {
        let path = format!("{}/timeline.csv", artifacts_path("team", capture));
        let answer = listening.get_as(user, &path).await;
        assert_eq!(answer.status, status, "{user} {capture} {}", answer.text());
    }
}

fn analysis(capture: &str, name: &str) -> String {
    analysis_path("team", capture, name)
}

#[tokio::test]
async fn an_analysis_is_made_once_for_each_choice_of_parameters_and_captures() {
    let rig = rig(9).await;
    rig.captures.put("other", "timeline.h5", Output::Timeline, b"abc").await;
    let listening = rig.open();
    let one = analysis("train", "kernels-per-stream");
    for _ in 0..2 {
        let answer = listening.get(&one, &[]).await;
        assert_eq!((answer.status, answer.text()), (200, backwards()));
        assert_eq!(answer.header("content-type"), "application/json");
    }
    assert_eq!(rig.begun(), 1);
    let two = format!("{}?with=team/other/uid", analysis("train", "kernel-changes"));
    assert_eq!(listening.get(&two, &[]).await.text(), format!("{}|cba", backwards()));
    let turned = format!("{}?with=team/train/uid", analysis("other", "kernel-changes"));
    assert_eq!(listening.get(&turned, &[]).await.text(), format!("cba|{}", backwards()));
    assert_eq!(listening.get(&format!("{two}&limit=7"), &[]).await.status, 200);
    assert_eq!(rig.begun(), 4);
    // Defaults that are said are defaults.
    for path in [&two, &turned, &format!("{two}&limit=1000"), &format!("{two}&limit=7")] {
        assert_eq!(listening.get(path, &[]).await.status, 200);
    }
    assert_eq!(rig.begun(), 4);
}

#[tokio::test]
async fn what_is_no_request_of_the_catalogue_is_refused() {
    let rig = rig(9).await;
    let listening = rig.open();
    for (path, status, reason, words) in [
        ("no-such-analysis", 404, "NotFound", "kernels-per-stream"),
        ("kernels-per-stream?colour=red", 400, "BadParameter", "colour"),
        (
            "kernel-changes?with=team/train/uid&limit=many",
            400,
            "BadParameter",
            "limit",
        ),
        ("kernel-changes", 400, "BadInputs", "two captures"),
        // On one machine it is said what can be chosen.
        ("kernel-changes?with=team", 400, "BadInputs", "team/train/uid"),
        ("kernel-changes?with=team/other/uid", 400, "BadInputs", "team/train/uid"),
        (
            "kernel-changes?with=team/train/another",
            400,
            "BadInputs",
            "team/train/uid",
        ),
    ] {
        let answer = listening.get(&analysis("train", path), &[]).await;
        assert_eq!(answer.told(), format!("{status} {reason}"), "{path}");
        assert!(answer.text().contains(words), "{path}: {}", answer.text());
    }
    assert_eq!(rig.begun(), 0);
}

#[tokio::test]
async fn a_result_of_an_older_version_or_layout_is_never_served() {
    for (version, served) in [(2, true), (1, false)] {
        let rig = rig(9).await;
        let path = analysis("train", "kernels-per-stream");
        assert_eq!(rig.open().get(&path, &[]).await.text(), backwards());
        let record = rig.captures.root.path().join("store/derived/team/train.json");
        let written = std::fs::read_to_string(&record).unwrap();
        let older = written.replace("\"version\":2", &format!("\"version\":{version}"));
        std::fs::write(&record, &older).unwrap();
        assert_eq!(rig.open().get(&path, &[]).await.text(), backwards());
        assert_eq!(rig.begun(), if served { 1 } else { 2 });
        let key = "kernels-per-stream@2";
        assert!(written.contains(key), "{written}");
        std::fs::write(&record, written.replace(key, "kernels-per-stream@0")).unwrap();
        assert_eq!(rig.open().get(&path, &[]).await.text(), backwards());
        assert_eq!(rig.begun(), if served { 2 } else { 3 });
    }
}

#[tokio::test]
async fn who_may_not_read_the_second_capture_gets_nothing_of_both() {
    let rig = rig(9).await;
    rig.captures.put("sensitive", "timeline.h5", Output::Raw, b"abc").await;
    let access = rig.captures.kubernetes(&readers(), ReviewerOptions::default());
    let listening = rig.listen(access, ConversionLimits::default());
    let path = format!("{}?with=team/sensitive/uid", analysis("train", "kernel-changes"));
    let elsewhere = format!("{}?with=other/train/uid", analysis("train", "kernel-changes"));
    for (user, path, status) in [
        ("rawreader", &path, 200),
        ("reader", &path, 403),
        ("reader", &elsewhere, 403),
        ("rawreader", &elsewhere, 403),
    ] {
        let answer = listening.get_as(user, path).await;
        assert_eq!(answer.status, status, "{user} {path} {}", answer.text());
    }
}
