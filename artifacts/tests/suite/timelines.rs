//! Timelines of raw captures on demand, over real HTTP. What makes them here writes what it was
//! given; the agent's own tests have the real one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::converting::Converting;
use crate::rig::{Captures, options, path, publication, readers};
use flopwatch_analysis::catalogue;
use flopwatch_api::artifact::{Output, analysis_path, artifacts_path};
use flopwatch_artifacts::{
    ConversionError, ConversionLimits, Publication, RawCapture, Store, StoreError, StoreOptions,
};
use flopwatch_http::ReviewerOptions;
use tokio::sync::Semaphore;

/// What the double makes of the capture that is published here.
const MADE: &str = "01234567 cuda_kernel,nvtx_range report samples";

fn read(path: Option<&PathBuf>) -> String {
    path.map_or_else(|| "none".to_owned(), |path| std::fs::read_to_string(path).unwrap())
}

fn transform(raw: &RawCapture) -> Result<String, ConversionError> {
    let report = read(raw.reports.first());
    if report == "broken" {
        let message = "the export failed (exit code 1): this is no report".to_owned();
        return Err(ConversionError::Failed(message));
    }
    let (captured, samples) = (raw.captured.join(","), read(raw.samples.as_ref()));
    Ok(format!("{} {captured} {report} {samples}", raw.session_id))
}

/// With a capture of which the raw files were published alone.
async fn rig() -> Converting {
    let rig = over(Captures::new().await);
    rig.publish("train", "report", Some("samples")).await;
    rig
}

fn over(captures: Captures) -> Converting {
    Converting::new(
        captures,
        Semaphore::MAX_PERMITS,
        |request, texts| Ok(format!("{}: {}", request.definition().name, texts.join(" + "))),
        transform,
    )
}

impl Converting {
    /// The same as a process has it that opens the store anew, within those bounds.
    async fn again(self, options: StoreOptions) -> Self {
        let Captures {
            root,
            store,
            registry,
            metrics,
        } = self.captures;
        drop(store);
        // The listener of the first process ends in its own time.
        let mut opened = None;
        for _ in 0..500 {
            match Store::open(&root.path().join("store"), options.clone(), metrics.clone()).await {
                Err(StoreError::InUse(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
                other => {
                    opened = Some(other.unwrap());
                    break;
                }
            }
        }
        let store = opened.expect("the first process ends within 5 s");
        over(Captures {
            store: Arc::new(store),
            root,
            registry,
            metrics,
        })
    }

    async fn publish(&self, capture: &str, report: &str, samples: Option<&str>) {
        let file = |name: &str, content: &str| self.captures.file(name, Output::Raw, "", content.as_bytes());
        let report = file("capture.nsys-rep", report);
        let samples = samples.map(|samples| file("samples.json", samples));
        let publication = Publication {
            captured: vec!["cuda_kernel".into(), "nvtx_range".into()],
            ..publication(capture)
        };
        let files: Vec<_> = [report].into_iter().chain(samples).collect();
        self.captures.store.publish(publication, &files).await.unwrap();
    }
}

#[tokio::test]
async fn who_asks_for_the_timeline_of_a_raw_capture_gets_it_and_it_is_made_once() {
    let rig = rig().await;
    let listening = rig.open();
    let path = path("timeline.h5");
    let answers = futures::future::join_all((0..8).map(|_| listening.get(&path, &[]))).await;
    for answer in answers {
        assert_eq!((answer.status, answer.text().as_str()), (200, MADE));
        assert_eq!(answer.header("content-type"), "application/x-hdf5");
    }
    let part = listening.get(&path, &[("Range", "bytes=0-7")]).await;
    assert_eq!((part.status, part.text().as_str()), (206, "01234567"));
    let head = listening.ask("HEAD", &path, &[]).await;
    assert_eq!((head.status, head.header("etag")), (200, part.header("etag")));
    let conversions = |result| rig.conversions("timeline.h5", result);
    assert_eq!((conversions("made"), conversions("kept")), (1, 2));
    assert_eq!(rig.transforms(), 1);
    assert!(!rig.double.folder.exists());

    // The list says that it can be had, with everything that is made of it.
    let list = listening.get(&artifacts_path("team", "train"), &[]).await.json();
    let derived = list["derived"].as_array().unwrap();
    assert_eq!(derived.len(), catalogue::artifacts().count() + 1);
    assert_eq!(
        (&list["derived"][0]["name"], &list["derived"][0]["path"]),
        (&"timeline.h5".into(), &path.into())
    );
}

#[tokio::test]
async fn analyses_and_exports_of_raw_captures_are_made_of_the_same_timeline() {
    let rig = rig().await;
    rig.publish("other", "second", None).await;
    let listening = rig.open();
    let csv = path("timeline.csv");
    let answer = listening.get(&csv, &[]).await;
    assert_eq!((answer.status, answer.text()), (200, format!("events-csv: {MADE}")));
    let both = format!(
        "{}?with=team/other/uid",
        analysis_path("team", "train", "kernel-changes")
    );
    let answer = listening.get(&both, &[]).await;
    let expected = format!("kernel-changes: {MADE} + 01234567 cuda_kernel,nvtx_range second none");
    assert_eq!((answer.status, answer.text()), (200, expected));
    let other = format!("{}/timeline.h5", artifacts_path("team", "other"));
    assert_eq!(listening.get(&other, &[]).await.status, 200);
    assert_eq!(rig.transforms(), 2, "one for each capture");
}

#[tokio::test]
async fn a_raw_capture_of_which_no_timeline_can_be_made_says_why_and_leaves_nothing() {
    let rig = rig().await;
    rig.publish("cut", "broken", None).await;
    let listening = rig.open();
    for name in ["timeline.h5", "timeline.csv"] {
        let path = format!("{}/{name}", artifacts_path("team", "cut"));
        let answer = listening.get(&path, &[]).await;
        assert_eq!(answer.told(), "500 ConversionFailed");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        let expected = "It could not be made: the export failed (exit code 1): this is no report.";
        assert_eq!(detail, expected);
    }
    assert!(!rig.double.folder.exists());
    assert!(!rig.captures.root.path().join("store/derived/team").exists());
    // One whose content is not what was published is not transformed at all.
    let object = rig.captures.object("capture.nsys-rep").await;
    std::fs::write(object, "damaged").unwrap();
    let answer = listening.get(&path("timeline.h5"), &[]).await;
    assert_eq!(answer.told(), "500 Corrupt");
    assert_eq!(rig.transforms(), 2);
}

#[tokio::test]
async fn a_timeline_that_was_made_outlives_the_process_and_is_made_again_once_it_is_damaged() {
    let rig = rig().await;
    assert_eq!(rig.open().get(&path("timeline.h5"), &[]).await.text(), MADE);
    let rig = rig.again(options()).await;
    let listening = rig.open();
    let answer = listening.get(&path("timeline.h5"), &[]).await;
    assert_eq!((answer.text().as_str(), rig.transforms()), (MADE, 0));
    let object = rig.captures.root.path().join("store/objects");
    std::fs::write(object.join(answer.header("etag").trim_matches('"')), "damaged").unwrap();
    // Whoever asks for what is made of it hears so too.
    let csv = path("timeline.csv");
    let answer = listening.get(&csv, &[]).await;
    assert_eq!(answer.told(), "503 Converting");
    assert_eq!(listening.get(&csv, &[]).await.text(), format!("events-csv: {MADE}"));
    assert_eq!(rig.transforms(), 1);
}

#[tokio::test]
async fn no_timeline_is_made_where_the_disk_or_the_bounds_have_no_room_for_it() {
    let rig = rig().await;
    let full = StoreOptions {
        free_bytes_floor: u64::MAX,
        ..options()
    };
    let rig = rig.again(full).await;
    let answer = rig.open().get(&path("timeline.h5"), &[]).await;
    assert_eq!(answer.told(), "500 ConversionFailed");
    assert!(answer.text().contains("free"), "{}", answer.text());
    assert_eq!(rig.transforms(), 0, "what would not fit is not begun");
    let small = StoreOptions {
        derived_bytes: 10,
        ..options()
    };
    let rig = rig.again(small).await;
    let answer = rig.open().get(&path("timeline.h5"), &[]).await;
    assert_eq!(answer.told(), "500 ConversionFailed");
    assert!(answer.text().contains("is more than the 10"), "{}", answer.text());
}

#[tokio::test]
async fn what_is_made_of_a_raw_capture_needs_the_right_to_it() {
    let rig = rig().await;
    let access = rig.captures.kubernetes(&readers(), ReviewerOptions::default());
    let listening = rig.listen(access, ConversionLimits::default());
    let csv = path("timeline.csv");
    let summary = analysis_path("team", "train", "summary");
    for path in [path("timeline.h5"), csv, summary] {
        for (user, status) in [("reader", 403), ("rawreader", 200)] {
            let answer = listening.get_as(user, &path).await;
            assert_eq!(answer.status, status, "{user} {path}: {}", answer.text());
        }
    }
    let base = artifacts_path("team", "train");
    let list = listening.get_as("reader", &base).await.json();
    assert_eq!(list["derived"], serde_json::json!([]));
}
