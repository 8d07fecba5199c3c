//! Derived artifacts on demand, over real HTTP. What makes them here writes the timeline backwards;
//! the agent's own tests have the real one.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::rig::{Answer, Captures, Listening, TIMELINE, api_server, raw, sessions};
use flopwatch_analysis::{Request, catalogue};
use flopwatch_api::artifact::{Output, analysis_path, artifacts_path};
use flopwatch_artifacts::{
    Access, ArtifactService, CaptureId, ConversionError, ConversionLimits, Converter, RawCapture, Store, StoreOptions,
};
use flopwatch_http::ReviewerOptions;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

const EVENTS_CSV: &str = "timeline.csv";
const EVENTS_PARQUET: &str = "timeline.parquet";
const SAMPLES_CSV: &str = "samples.csv";
const CHROME: &str = "timeline.json.gz";
const PERFETTO: &str = "timeline.pftrace";
const KERNELS: &str = "kernels.json";

/// Writes the timelines backwards, as soon as there is a permit.
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

    fn convert<'a>(
        &'a self,
        request: &'a Request,
        inputs: &'a [&'a Path],
    ) -> BoxFuture<'a, Result<File, ConversionError>> {
        async move {
            let form = request.definition().file_name();
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.permits.acquire().await.unwrap().forget();
            if form == CHROME {
                return Err(ConversionError::Failed("the child failed: no such format".to_owned()));
            }
            let texts = inputs.iter().map(|timeline| std::fs::read_to_string(timeline).unwrap());
            let text: Vec<String> = texts.map(|text| text.chars().rev().collect()).collect();
            let written = match form.as_str() {
                KERNELS => String::new(),
                _ => text.join("|"),
            };
            let output = inputs[0].with_file_name("form");
            std::fs::write(&output, written).unwrap();
            Ok(File::open(output).unwrap())
        }
        .boxed()
    }

    fn transform<'a>(&'a self, folder: &'a Path, raw: &'a RawCapture) -> BoxFuture<'a, Result<File, ConversionError>> {
        panic!("no raw capture is here: {} {raw:?}", folder.display());
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

    fn conversions(&self, form: &str, result: &str) -> u64 {
        let labels = format!("form=\"{form}\",result=\"{result}\"");
        self.captures
            .metric(&format!("flopwatch_artifact_conversions_total{{{labels}}}"))
    }

    fn stored(&self, folder: &str) -> usize {
        let folder = self.captures.root.path().join("store").join(folder);
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }
}

fn path(form: &str) -> String {
    format!("{}/{form}", artifacts_path("team", "train"))
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
        let counters = analysis_path("team", "train", "kernel-counters");
        refused(&server.get(&counters, &[]).await, 404, "NotCaptured");
    }
    assert_eq!(rig.begun(), 1);
}

#[tokio::test]
async fn a_form_is_made_once_and_served_like_an_artifact() {
    let rig = Rig::new(1).await;
    let listening = rig.open();
    let list = listening.get(&artifacts_path("team", "train"), &[]).await.json();
    assert_eq!(
        list["derived"].as_array().unwrap().len(),
        catalogue::artifacts().count()
    );
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
    assert!(!rig.converter.folder.exists());
}

#[tokio::test]
async fn who_asks_for_the_same_form_waits_for_the_same_conversion() {
    let rig = Rig::new(0).await;
    let listening = rig.open();
    let path = path(EVENTS_PARQUET);
    let asking = futures::future::join_all((0..8).map(|_| listening.get(&path, &[])));
    let opening = async {
        rig.until_begun(1).await;
        rig.converter.permits.add_permits(1);
    };
    let (answers, ()) = tokio::join!(asking, opening);
    for answer in answers {
        assert_eq!((answer.status, answer.text()), (200, backwards()));
    }
    assert_eq!((rig.begun(), rig.conversions(EVENTS_PARQUET, "made")), (1, 1));
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
    for form in [EVENTS_CSV, PERFETTO, EVENTS_CSV] {
        let answer = listening.get(&path(form), &[]).await;
        refused(&answer, 503, "Converting");
        assert_eq!(answer.header("retry-after"), "2");
    }
    refused(&listening.get(&path(SAMPLES_CSV), &[]).await, 503, "Busy");
    assert_eq!(rig.conversions(SAMPLES_CSV, "refused"), 1);
    assert_eq!(rig.begun(), 1, "the other waits for its turn");
    // Nobody waits any more: both are made all the same.
    rig.converter.permits.add_permits(2);
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
    let rig = Rig::new(2).await;
    let listening = rig.open();
    for _ in 0..2 {
        let answer = listening.get(&path(CHROME), &[]).await;
        refused(&answer, 500, "ConversionFailed");
        assert!(
            answer.text().contains("the child failed: no such format"),
            "{}",
            answer.text()
        );
    }
    assert_eq!(rig.conversions(CHROME, "failed"), 2);
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
    assert_eq!(listening.get(&base, &[]).await.json()["derived"], serde_json::json!([]));
    let plain = Listening::plain(&rig.captures.service(Access::LoopbackOnly));
    refused(&plain.get(&path(EVENTS_CSV), &[]).await, 404, "NotFound");
}

#[tokio::test]
async fn forms_go_with_their_capture() {
    for sweep in [false, true] {
        let rig = Rig::new(1).await;
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
    let rig = Rig::new(2).await;
    let listening = rig.open();
    assert_eq!(listening.get(&path(EVENTS_CSV), &[]).await.text(), backwards());
    let file = rig.captures.file("timeline.h5", Output::Timeline, "", b"abc");
    rig.captures.publish("train", &[file]).await;
    assert_eq!(listening.get(&path(EVENTS_CSV), &[]).await.text(), "cba");
}

#[tokio::test]
async fn forms_that_outlive_their_bounds_are_released() {
    for (bytes, age, kept) in [
        (72, Duration::from_mins(1), 2),
        (71, Duration::from_mins(1), 1),
        (72, Duration::ZERO, 1),
    ] {
        let rig = Rig::new(9).await;
        let folder = rig.captures.root.path().join("bounded");
        let options = StoreOptions {
            free_bytes_floor: 0,
            derived_bytes: bytes,
            derived_age: age,
        };
        let rig = rig.within(&folder, options).await;
        let listening = rig.open();
        for form in [EVENTS_CSV, PERFETTO] {
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
        derived_bytes: 35,
        ..StoreOptions::default()
    };
    let rig = rig.within(&folder, options).await;
    let answer = rig.open().get(&path(EVENTS_CSV), &[]).await;
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
    let path = path(EVENTS_CSV);
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
    // An artifact under a derived artifact's name is no derived artifact.
    let named = rig.captures.file("timeline.csv", Output::Raw, "", b"secret");
    rig.captures.publish("named", &[named]).await;
    // Nor is a derived artifact of something sensitive less so.
    let file = rig.captures.file("timeline.h5", Output::Raw, "", b"abc");
    rig.captures.publish("sensitive", &[file]).await;
    let api = api_server(
        &["stranger", "reader", "rawreader"],
        &[("reader", sessions()), ("rawreader", sessions()), ("rawreader", raw())],
    );
    let access = rig.captures.kubernetes(&api, ReviewerOptions::default());
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
        let answer = listening
            .get(&path, &[("Authorization", &format!("Bearer {user}"))])
            .await;
        assert_eq!(answer.status, status, "{user} {capture} {}", answer.text());
    }
}

fn analysis(capture: &str, name: &str) -> String {
    analysis_path("team", capture, name)
}

#[tokio::test]
async fn an_analysis_is_made_once_for_each_choice_of_parameters_and_captures() {
    let rig = Rig::new(9).await;
    let file = rig.captures.file("timeline.h5", Output::Timeline, "", b"abc");
    rig.captures.publish("other", &[file]).await;
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
    let rig = Rig::new(9).await;
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
        refused(&answer, status, reason);
        assert!(answer.text().contains(words), "{path}: {}", answer.text());
    }
    assert_eq!(rig.begun(), 0);
}

#[tokio::test]
async fn a_result_of_an_older_version_or_layout_is_never_served() {
    for (version, served) in [(2, true), (1, false)] {
        let rig = Rig::new(9).await;
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
    let rig = Rig::new(9).await;
    let file = rig.captures.file("timeline.h5", Output::Raw, "", b"abc");
    rig.captures.publish("sensitive", &[file]).await;
    let api = api_server(
        &["reader", "rawreader"],
        &[("reader", sessions()), ("rawreader", sessions()), ("rawreader", raw())],
    );
    let access = rig.captures.kubernetes(&api, ReviewerOptions::default());
    let listening = rig.listen(access, ConversionLimits::default());
    let path = format!("{}?with=team/sensitive/uid", analysis("train", "kernel-changes"));
    let elsewhere = format!("{}?with=other/train/uid", analysis("train", "kernel-changes"));
    for (user, path, status) in [
        ("rawreader", &path, 200),
        ("reader", &path, 403),
        ("reader", &elsewhere, 403),
        ("rawreader", &elsewhere, 403),
    ] {
        let answer = listening
            .get(path, &[("Authorization", &format!("Bearer {user}"))])
            .await;
        assert_eq!(answer.status, status, "{user} {path} {}", answer.text());
    }
}
