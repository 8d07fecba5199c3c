//! Forms on demand, over real HTTP. What makes them here writes the timeline backwards; the agent's own tests have the real one.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::let_underscore_must_use,
    reason = "a test fails by panicking, in its helpers too"
)]

#[expect(dead_code, reason = "each test program uses its part of the rig")]
mod rig;

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flopwatch_api::artifact::{Output, artifacts_path};
use flopwatch_api::form::Form;
use flopwatch_artifacts::{
    Access, ArtifactService, CaptureId, ConversionError, ConversionLimits, Converter, Store, StoreOptions,
};
use flopwatch_http::ReviewerOptions;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rig::{Answer, Captures, Listening, TIMELINE, api_server, raw, sessions};
use tokio::sync::Semaphore;

/// Writes the timeline backwards, as soon as there is a permit.
#[derive(Debug)]
struct Backwards {
    folder: PathBuf,
    permits: Semaphore,
    begun: AtomicUsize,
}

impl Converter for Backwards {
    fn folder(&self) -> BoxFuture<'_, Result<PathBuf, ConversionError>> {
        std::fs::create_dir(&self.folder).unwrap();
        std::future::ready(Ok(self.folder.clone())).boxed()
    }

    fn convert<'a>(&'a self, form: Form, timeline: &'a Path) -> BoxFuture<'a, Result<File, ConversionError>> {
        async move {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.permits.acquire().await.unwrap().forget();
            if form == Form::Chrome {
                return Err(ConversionError::Failed("the child failed: no such format".to_owned()));
            }
            let text = std::fs::read_to_string(timeline).unwrap();
            let written = match form {
                Form::Kernels => String::new(),
                _ => text.chars().rev().collect(),
            };
            let output = timeline.with_file_name("form");
            std::fs::write(&output, written).unwrap();
            Ok(File::open(output).unwrap())
        }
        .boxed()
    }

    fn remove<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, ()> {
        std::fs::remove_dir_all(folder).unwrap();
        std::future::ready(()).boxed()
    }
}

struct Rig {
    captures: Captures,
    converter: Arc<Backwards>,
}

impl Rig {
    /// With so many conversions that need not wait.
    async fn new(permits: usize) -> Self {
        let captures = Captures::new().await;
        let converter = Arc::new(Backwards {
            folder: captures.root.path().join("conversion"),
            permits: Semaphore::new(permits),
            begun: AtomicUsize::new(0),
        });
        Self { captures, converter }
    }

    /// The same with its capture in another store, within those bounds.
    async fn within(self, folder: &Path, options: StoreOptions) -> Self {
        let store = Store::open(folder, options, self.captures.metrics.clone())
            .await
            .unwrap();
        let captures = Captures {
            store: Arc::new(store),
            ..self.captures
        };
        let file = captures.file("timeline.h5", Output::Timeline, "", TIMELINE.as_bytes());
        captures.publish("train", &[file]).await;
        Self { captures, ..self }
    }

    fn listen(&self, access: Access, limits: ConversionLimits) -> Listening {
        let converter = Arc::clone(&self.converter);
        let (store, metrics) = (Arc::clone(&self.captures.store), self.captures.metrics.clone());
        Listening::plain(&ArtifactService::converting(
            store, access, metrics, converter, limits, None,
        ))
    }

    fn open(&self) -> Listening {
        self.listen(Access::LoopbackOnly, ConversionLimits::default())
    }

    fn begun(&self) -> usize {
        self.converter.begun.load(Ordering::SeqCst)
    }

    async fn until_begun(&self, count: usize) {
        for _ in 0..500 {
            if self.begun() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no conversion began within 5 s");
    }

    fn conversions(&self, form: Form, result: &str) -> u64 {
        let labels = format!("form=\"{}\",result=\"{result}\"", form.name());
        self.captures
            .metric(&format!("flopwatch_artifact_conversions_total{{{labels}}}"))
    }

    fn stored(&self, folder: &str) -> usize {
        let folder = self.captures.root.path().join("store").join(folder);
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }
}

fn path(form: Form) -> String {
    format!("{}/{}", artifacts_path("team", "train"), form.name())
}

fn backwards() -> String {
    TIMELINE.chars().rev().collect()
}

#[track_caller]
fn refused(answer: &Answer, status: u16, reason: &str) {
    assert_eq!(
        (answer.status, answer.reason().as_str()),
        (status, reason),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn that_a_capture_has_nothing_of_a_kind_is_found_out_once_and_said() {
    let rig = Rig::new(9).await;
    let server = rig.open();
    for _ in 0..2 {
        refused(&server.get(&path(Form::Kernels), &[]).await, 404, "NotCaptured");
    }
    assert_eq!(rig.begun(), 1);
}

#[tokio::test]
async fn a_form_is_made_once_and_served_like_an_artifact() {
    let rig = Rig::new(1).await;
    let listening = rig.open();
    let list = listening.get(&artifacts_path("team", "train"), &[]).await.json();
    assert_eq!(list["forms"].as_array().unwrap().len(), Form::ALL.len());
    assert_eq!(list["forms"][0]["path"], path(Form::EventsCsv));

    let path = path(Form::EventsCsv);
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
    assert_eq!(rig.conversions(Form::EventsCsv, "made"), 1);
    assert_eq!(rig.conversions(Form::EventsCsv, "kept"), 3);
    assert!(!rig.converter.folder.exists());
}

#[tokio::test]
async fn who_asks_for_the_same_form_waits_for_the_same_conversion() {
    let rig = Rig::new(0).await;
    let listening = rig.open();
    let path = path(Form::EventsParquet);
    let asking = futures::future::join_all((0..8).map(|_| listening.get(&path, &[])));
    let opening = async {
        rig.until_begun(1).await;
        rig.converter.permits.add_permits(1);
    };
    let (answers, ()) = tokio::join!(asking, opening);
    for answer in answers {
        assert_eq!((answer.status, answer.text()), (200, backwards()));
    }
    assert_eq!((rig.begun(), rig.conversions(Form::EventsParquet, "made")), (1, 1));
}

#[tokio::test]
async fn a_form_that_takes_long_is_asked_for_again_and_too_many_are_refused() {
    let rig = Rig::new(0).await;
    let limits = ConversionLimits {
        at_once: 1,
        waiting: 1,
        patience: Duration::from_millis(50),
    };
    let listening = rig.listen(Access::LoopbackOnly, limits);
    for form in [Form::EventsCsv, Form::Perfetto, Form::EventsCsv] {
        let answer = listening.get(&path(form), &[]).await;
        refused(&answer, 503, "Converting");
        assert_eq!(answer.header("retry-after"), "2");
    }
    refused(&listening.get(&path(Form::SamplesCsv), &[]).await, 503, "Busy");
    assert_eq!(rig.conversions(Form::SamplesCsv, "refused"), 1);
    assert_eq!(rig.begun(), 1, "the other waits for its turn");
    // Nobody waits any more: both are made all the same.
    rig.converter.permits.add_permits(2);
    rig.until_begun(2).await;
    for form in [Form::EventsCsv, Form::Perfetto] {
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
    let rig = Rig::new(2).await;
    let listening = rig.open();
    for _ in 0..2 {
        let answer = listening.get(&path(Form::Chrome), &[]).await;
        refused(&answer, 500, "ConversionFailed");
        assert!(
            answer.text().contains("the child failed: no such format"),
            "{}",
            answer.text()
        );
    }
    assert_eq!(rig.conversions(Form::Chrome, "failed"), 2);
    assert!(!rig.converter.folder.exists());
    assert_eq!((rig.stored("derived/team"), rig.stored("objects")), (0, 3));
}

#[tokio::test]
async fn a_capture_without_a_timeline_has_no_forms() {
    let rig = Rig::new(1).await;
    let file = rig
        .captures
        .file("summary.json", Output::Summary, "application/json", b"{}");
    rig.captures.publish("bare", &[file]).await;
    let listening = rig.open();
    let base = artifacts_path("team", "bare");
    refused(
        &listening.get(&format!("{base}/timeline.csv"), &[]).await,
        404,
        "NotFound",
    );
    assert_eq!(listening.get(&base, &[]).await.json()["forms"], serde_json::json!([]));
    let plain = Listening::plain(&rig.captures.service(Access::LoopbackOnly));
    refused(&plain.get(&path(Form::EventsCsv), &[]).await, 404, "NotFound");
}

#[tokio::test]
async fn forms_go_with_their_capture() {
    for sweep in [false, true] {
        let rig = Rig::new(1).await;
        let listening = rig.open();
        assert_eq!(listening.get(&path(Form::EventsCsv), &[]).await.status, 200);
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
    let rig = Rig::new(2).await;
    let listening = rig.open();
    assert_eq!(listening.get(&path(Form::EventsCsv), &[]).await.text(), backwards());
    let file = rig.captures.file("timeline.h5", Output::Timeline, "", b"abc");
    rig.captures.publish("train", &[file]).await;
    assert_eq!(listening.get(&path(Form::EventsCsv), &[]).await.text(), "cba");
}

#[tokio::test]
async fn forms_that_outlive_their_bounds_are_let_go() {
    for (bytes, age, kept) in [
        (72, Duration::from_mins(1), 2),
        (71, Duration::from_mins(1), 1),
        (72, Duration::ZERO, 1),
    ] {
        let rig = Rig::new(9).await;
        let folder = rig.captures.root.path().join("bounded");
        let options = StoreOptions {
            free_bytes_floor: 0,
            form_bytes: bytes,
            form_age: age,
        };
        let rig = rig.within(&folder, options).await;
        let listening = rig.open();
        for form in [Form::EventsCsv, Form::Perfetto] {
            assert_eq!(listening.get(&path(form), &[]).await.status, 200);
        }
        let record = std::fs::read_to_string(folder.join("derived/team/train.json")).unwrap();
        assert_eq!(record.matches("mediaType").count(), kept, "{bytes} {age:?} {record}");
        assert!(record.contains("timeline.pftrace"), "the newest stays: {record}");
    }
}

#[tokio::test]
async fn a_form_that_is_larger_than_all_may_be_is_refused() {
    let rig = Rig::new(1).await;
    let folder = rig.captures.root.path().join("small");
    let options = StoreOptions {
        free_bytes_floor: 0,
        form_bytes: 35,
        ..StoreOptions::default()
    };
    let rig = rig.within(&folder, options).await;
    let answer = rig.open().get(&path(Form::EventsCsv), &[]).await;
    refused(&answer, 500, "ConversionFailed");
    assert!(
        answer.text().contains("36 bytes is more than the 35"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn a_form_that_was_damaged_is_made_anew() {
    let rig = Rig::new(2).await;
    let listening = rig.open();
    let path = path(Form::EventsCsv);
    let tag = listening
        .get(&path, &[])
        .await
        .header("etag")
        .trim_matches('"')
        .to_owned();
    let object = rig.captures.root.path().join("store/objects").join(tag);
    std::fs::write(object, "damaged").unwrap();
    refused(&listening.get(&path, &[]).await, 503, "Converting");
    assert_eq!(listening.get(&path, &[]).await.text(), backwards());
    assert_eq!(rig.begun(), 2);
}

#[tokio::test]
async fn a_form_needs_the_right_to_what_it_is_made_of() {
    let rig = Rig::new(9).await;
    // An artifact under a form's name is no form.
    let named = rig.captures.file("timeline.csv", Output::Raw, "", b"secret");
    rig.captures.publish("named", &[named]).await;
    // Nor is a form of something sensitive less so.
    let file = rig.captures.file("timeline.h5", Output::Raw, "", b"abc");
    rig.captures.publish("sensitive", &[file]).await;
    let api = api_server(
        &["stranger", "reader", "rawreader"],
        &[("reader", sessions()), ("rawreader", sessions()), ("rawreader", raw())],
    );
    let reviewer = rig.captures.reviewer(&api, ReviewerOptions::default());
    let listening = rig.listen(Access::Kubernetes(reviewer), ConversionLimits::default());
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
        let answer = listening
            .get(&path, &[("Authorization", &format!("Bearer {user}"))])
            .await;
        assert_eq!(answer.status, status, "{user} {capture} {}", answer.text());
    }
}
