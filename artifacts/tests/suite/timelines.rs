//! Timelines of raw captures on demand, over real HTTP. What makes them here writes what it was
//! given; the agent's own tests have the real one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::rig::{Captures, Listening, api_server, raw, sessions};
use flopwatch_analysis::{Request, catalogue};
use flopwatch_api::artifact::{Output, analysis_path, artifacts_path};
use flopwatch_api::capture::SessionReference;
use flopwatch_artifacts::{
    Access, ArtifactService, CaptureId, ConversionError, ConversionLimits, Converter, Publication, RawCapture, Store,
    StoreError, StoreOptions,
};
use flopwatch_http::ReviewerOptions;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;

/// What the double makes of the capture that is published here.
const MADE: &str = "01234567 cuda_kernel,nvtx_range report samples";

/// Writes what it was given. A transform takes half a second, so that others come meanwhile.
#[derive(Debug)]
struct Double {
    folder: PathBuf,
    transforms: AtomicUsize,
}

fn read(path: Option<&PathBuf>) -> String {
    path.map_or_else(|| "none".to_owned(), |path| std::fs::read_to_string(path).unwrap())
}

fn write(path: PathBuf, text: String) -> File {
    std::fs::write(&path, text).unwrap();
    File::open(path).unwrap()
}

impl Converter for Double {
    fn folder(&self) -> BoxFuture<'_, Result<PathBuf, ConversionError>> {
        std::fs::create_dir(&self.folder).unwrap();
        std::future::ready(Ok(self.folder.clone())).boxed()
    }

    fn convert<'a>(
        &'a self,
        request: &'a Request,
        inputs: &'a [&'a Path],
    ) -> BoxFuture<'a, Result<File, ConversionError>> {
        let read = |path: &&Path| std::fs::read_to_string(path).unwrap();
        let texts: Vec<String> = inputs.iter().map(read).collect();
        let text = format!("{}: {}", request.definition().name, texts.join(" + "));
        std::future::ready(Ok(write(self.folder.join("result"), text))).boxed()
    }

    fn transform<'a>(&'a self, folder: &'a Path, raw: &'a RawCapture) -> BoxFuture<'a, Result<File, ConversionError>> {
        async move {
            self.transforms.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(500)).await;
            let report = read(raw.reports.first());
            if report == "broken" {
                let message = "the export failed (exit code 1): this is no report".to_owned();
                return Err(ConversionError::Failed(message));
            }
            let (captured, samples) = (raw.captured.join(","), read(raw.samples.as_ref()));
            let text = format!("{} {captured} {report} {samples}", raw.session_id);
            Ok(write(folder.join("made"), text))
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
    double: Arc<Double>,
}

impl Rig {
    /// With a capture of which the raw files were published alone.
    async fn new() -> Self {
        let rig = Self::over(Captures::new().await);
        rig.publish("train", "report", Some("samples")).await;
        rig
    }

    fn over(captures: Captures) -> Self {
        let double = Arc::new(Double {
            folder: captures.root.path().join("conversion"),
            transforms: AtomicUsize::new(0),
        });
        Self { captures, double }
    }

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
        Self::over(Captures {
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
            capture: CaptureId {
                namespace: "team".into(),
                name: capture.into(),
                uid: "uid".into(),
            },
            session: SessionReference {
                name: "session".into(),
                id: "01234567".into(),
            },
            created: Timestamp::UNIX_EPOCH,
            captured: vec!["cuda_kernel".into(), "nvtx_range".into()],
        };
        let files: Vec<_> = [report].into_iter().chain(samples).collect();
        self.captures.store.publish(publication, &files).await.unwrap();
    }

    fn listen(&self, access: Access) -> Listening {
        let converter: Arc<Double> = Arc::clone(&self.double);
        let (store, metrics) = (Arc::clone(&self.captures.store), self.captures.metrics.clone());
        let limits = ConversionLimits::default();
        Listening::plain(&ArtifactService::converting(
            store, access, metrics, converter, limits, None,
        ))
    }

    fn open(&self) -> Listening {
        self.listen(Access::LoopbackOnly)
    }

    fn transforms(&self) -> usize {
        self.double.transforms.load(Ordering::SeqCst)
    }

    fn conversions(&self, result: &str) -> u64 {
        let labels = format!("form=\"timeline.h5\",result=\"{result}\"");
        self.captures
            .metric(&format!("flopwatch_artifact_conversions_total{{{labels}}}"))
    }
}

fn options() -> StoreOptions {
    StoreOptions {
        free_bytes_floor: 0,
        ..StoreOptions::default()
    }
}

fn path(capture: &str) -> String {
    format!("{}/timeline.h5", artifacts_path("team", capture))
}

#[tokio::test]
async fn who_asks_for_the_timeline_of_a_raw_capture_gets_it_and_it_is_made_once() {
    let rig = Rig::new().await;
    let listening = rig.open();
    let path = path("train");
    let answers = futures::future::join_all((0..8).map(|_| listening.get(&path, &[]))).await;
    for answer in answers {
        assert_eq!((answer.status, answer.text().as_str()), (200, MADE));
        assert_eq!(answer.header("content-type"), "application/x-hdf5");
    }
    let part = listening.get(&path, &[("Range", "bytes=0-7")]).await;
    assert_eq!((part.status, part.text().as_str()), (206, "01234567"));
    let head = listening.ask("HEAD", &path, &[]).await;
    assert_eq!((head.status, head.header("etag")), (200, part.header("etag")));
    assert_eq!(
        (rig.transforms(), rig.conversions("made"), rig.conversions("kept")),
        (1, 1, 2)
    );
    assert!(!rig.double.folder.exists());

    // The list says that it can be had, with everything that is made of it.
    let list = listening.get(&artifacts_path("team", "train"), &[]).await.json();
    assert_eq!(
        list["derived"].as_array().unwrap().len(),
        catalogue::artifacts().count() + 1
    );
    assert_eq!(
        (&list["derived"][0]["name"], &list["derived"][0]["path"]),
        (&"timeline.h5".into(), &path.into())
    );
}

#[tokio::test]
async fn analyses_and_exports_of_raw_captures_are_made_of_the_same_timeline() {
    let rig = Rig::new().await;
    rig.publish("other", "second", None).await;
    let listening = rig.open();
    let csv = format!("{}/timeline.csv", artifacts_path("team", "train"));
    let answer = listening.get(&csv, &[]).await;
    assert_eq!((answer.status, answer.text()), (200, format!("events-csv: {MADE}")));
    let both = format!(
        "{}?with=team/other/uid",
        analysis_path("team", "train", "kernel-changes")
    );
    let answer = listening.get(&both, &[]).await;
    let expected = format!("kernel-changes: {MADE} + 01234567 cuda_kernel,nvtx_range second none");
    assert_eq!((answer.status, answer.text()), (200, expected));
    assert_eq!(listening.get(&path("other"), &[]).await.status, 200);
    assert_eq!(rig.transforms(), 2, "one for each capture");
}

#[tokio::test]
async fn a_raw_capture_of_which_no_timeline_can_be_made_says_why_and_leaves_nothing() {
    let rig = Rig::new().await;
    rig.publish("cut", "broken", None).await;
    let listening = rig.open();
    let csv = format!("{}/timeline.csv", artifacts_path("team", "cut"));
    for path in [path("cut"), csv] {
        let answer = listening.get(&path, &[]).await;
        assert_eq!((answer.status, answer.reason().as_str()), (500, "ConversionFailed"));
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        let expected = "It could not be made: the export failed (exit code 1): this is no report.";
        assert_eq!(detail, expected);
    }
    assert!(!rig.double.folder.exists());
    assert!(!rig.captures.root.path().join("store/derived/team").exists());
    // One whose content is not what was published is not transformed at all.
    let object = {
        let manifest = rig.captures.store.get("team", "train").await.unwrap().unwrap();
        let sha256 = &manifest.artifact("capture.nsys-rep").unwrap().sha256;
        rig.captures.root.path().join("store/objects").join(sha256)
    };
    std::fs::write(object, "damaged").unwrap();
    let answer = listening.get(&path("train"), &[]).await;
    assert_eq!((answer.status, answer.reason().as_str()), (500, "Corrupt"));
    assert_eq!(rig.transforms(), 2);
}

#[tokio::test]
async fn a_timeline_that_was_made_outlives_the_process_and_is_made_again_once_it_is_damaged() {
    let rig = Rig::new().await;
    assert_eq!(rig.open().get(&path("train"), &[]).await.text(), MADE);
    let rig = rig.again(options()).await;
    let listening = rig.open();
    let answer = listening.get(&path("train"), &[]).await;
    assert_eq!((answer.text().as_str(), rig.transforms()), (MADE, 0));
    let object = rig.captures.root.path().join("store/objects");
    std::fs::write(object.join(answer.header("etag").trim_matches('"')), "damaged").unwrap();
    // Whoever asks for what is made of it hears so too.
    let csv = format!("{}/timeline.csv", artifacts_path("team", "train"));
    let answer = listening.get(&csv, &[]).await;
    assert_eq!((answer.status, answer.reason().as_str()), (503, "Converting"));
    assert_eq!(listening.get(&csv, &[]).await.text(), format!("events-csv: {MADE}"));
    assert_eq!(rig.transforms(), 1);
}

#[tokio::test]
async fn no_timeline_is_made_where_the_disk_or_the_bounds_have_no_room_for_it() {
    let rig = Rig::new().await;
    let full = StoreOptions {
        free_bytes_floor: u64::MAX,
        ..options()
    };
    let rig = rig.again(full).await;
    let answer = rig.open().get(&path("train"), &[]).await;
    assert_eq!((answer.status, answer.reason().as_str()), (500, "ConversionFailed"));
    assert!(answer.text().contains("free"), "{}", answer.text());
    assert_eq!(rig.transforms(), 0, "what would not fit is not begun");
    let small = StoreOptions {
        derived_bytes: 10,
        ..options()
    };
    let rig = rig.again(small).await;
    let answer = rig.open().get(&path("train"), &[]).await;
    assert_eq!((answer.status, answer.reason().as_str()), (500, "ConversionFailed"));
    assert!(answer.text().contains("is more than the 10"), "{}", answer.text());
}

#[tokio::test]
async fn what_is_made_of_a_raw_capture_needs_the_right_to_it() {
    let rig = Rig::new().await;
    let api = api_server(
        &["reader", "rawreader"],
        &[("reader", sessions()), ("rawreader", sessions()), ("rawreader", raw())],
    );
    let access = rig.captures.kubernetes(&api, ReviewerOptions::default());
    let listening = rig.listen(access);
    let csv = format!("{}/timeline.csv", artifacts_path("team", "train"));
    let summary = analysis_path("team", "train", "summary");
    for path in [path("train"), csv, summary] {
        for (user, status) in [("reader", 403), ("rawreader", 200)] {
            let token = format!("Bearer {user}");
            let answer = listening.get(&path, &[("Authorization", &token)]).await;
            assert_eq!(answer.status, status, "{user} {path}: {}", answer.text());
        }
    }
    let base = artifacts_path("team", "train");
    let list = listening.get(&base, &[("Authorization", "Bearer reader")]).await.json();
    assert_eq!(list["derived"], serde_json::json!([]));
}
