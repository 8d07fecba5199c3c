//! Derived artifacts of a timeline through the gateway. What makes them here writes how large the
//! timeline is; the agent's own tests have the real one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_analysis::{Input, Request, ResultType, catalogue};
use flopwatch_artifacts::{ConversionError, Converter, RawCapture};
use flopwatch_model::Timeline;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::PATHS;
use super::rig::{Rig, artifacts, timeline_content};

const EVENTS_CSV: &str = "timeline.csv";
const EVENTS_PARQUET: &str = "timeline.parquet";
const CHROME: &str = "timeline.json.gz";
const PERFETTO: &str = "timeline.pftrace";
const EVENTS_JSON: &str = "events.json";
const KERNELS: &str = "kernels.json";

/// Writes how large the timelines are; as a Chrome trace that fails.
#[derive(Debug)]
pub(super) struct Sizes {
    pub(super) folder: PathBuf,
    /// How long the derived artifact for Perfetto takes; without it, it never ends.
    pub(super) perfetto: Option<Duration>,
}

impl Converter for Sizes {
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
            match form.as_str() {
                CHROME => return Err(ConversionError::Failed("the child was ended".to_owned())),
                PERFETTO => match self.perfetto {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                },
                _ => {}
            }
            let sizes = inputs.iter().map(|timeline| std::fs::metadata(timeline).unwrap().len());
            let bytes: u64 = sizes.sum();
            let message = match form.as_str() {
                EVENTS_JSON => earliest(bytes).to_string(),
                KERNELS => String::new(),
                _ if request.definition().media_type() == "application/json" => json!({ "bytes": bytes }).to_string(),
                _ => format!("{bytes} bytes"),
            };
            let output = inputs[0].with_file_name("form");
            if let ResultType::Json { .. } = request.definition().result {
                // As of captures that hold nothing.
                let empty = Timeline::default();
                let inputs: Vec<Input<'_>> = inputs.iter().map(|_input| Input::whole(&empty)).collect();
                request.run(&inputs, &mut File::create(&output).unwrap()).unwrap();
            } else {
                std::fs::write(&output, message).unwrap();
            }
            Ok(File::open(output).unwrap())
        }
        .boxed()
    }

    fn transform<'a>(&'a self, folder: &'a Path, raw: &'a RawCapture) -> BoxFuture<'a, Result<File, ConversionError>> {
        let report = std::fs::read_to_string(raw.reports.first().unwrap()).unwrap();
        if report == "broken" {
            let message = "the export failed (exit code 1): this is no report".to_owned();
            return std::future::ready(Err(ConversionError::Failed(message))).boxed();
        }
        let output = folder.join("made");
        std::fs::write(&output, format!("{report} of {}", raw.session_id)).unwrap();
        std::future::ready(Ok(File::open(output).unwrap())).boxed()
    }

    fn remove<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, ()> {
        std::fs::remove_dir_all(folder).unwrap();
        std::future::ready(()).boxed()
    }
}

/// What stands for the earliest events of a timeline of so many bytes.
fn earliest(bytes: u64) -> Value {
    json!({"session_id": "0badcafe", "total_duration_ns": bytes, "total_events": 0, "events": []})
}

fn path(form: &str) -> String {
    format!("/api/profiling/session/0badcafe/artifacts/{form}")
}

#[tokio::test]
async fn a_form_comes_from_the_agent_like_an_artifact() {
    let rig = Rig::new().await;
    let list = rig.json(PATHS[1], "reader").await;
    let expected = json!({
        "name": "timeline.csv", "media_type": "text/csv; charset=utf-8",
        "about": "Every event of the timeline, a line each (RFC 4180)."
    });
    assert_eq!(
        (list["derived"].as_array().unwrap().len(), &list["derived"][0]),
        (catalogue::artifacts().count(), &expected)
    );

    let path = path(EVENTS_CSV);
    let content = format!("{} bytes", timeline_content().len());
    let whole = rig.get(&path, "reader").await;
    assert_eq!((whole.status, whole.body.as_slice()), (200, content.as_bytes()));
    assert_eq!(whole.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(
        whole.header("content-disposition"),
        "attachment; filename=\"timeline.csv\""
    );
    let tag = whole.header("etag").to_owned();
    let head = rig.ask("HEAD", &path, Some("reader"), &[], "").await;
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, content.len().to_string().as_str())
    );
    let part = rig.get_with(&path, "reader", &[("Range", "bytes=0-0")]).await;
    assert_eq!((part.status, part.body.as_slice()), (206, &content.as_bytes()[..1]));
    let again = rig.get_with(&path, "reader", &[("If-None-Match", &tag)]).await;
    assert_eq!(again.status, 304);
    let events = rig.get("/api/profiling/timeline/0badcafe", "reader").await;
    let bytes = u64::try_from(timeline_content().len()).unwrap();
    assert_eq!((events.status, events.json()), (200, earliest(bytes)));
    assert_eq!(events.header("content-type"), "application/json");
    assert_eq!(rig.status("/api/profiling/timeline/00000009", "reader").await, 403);
    assert_eq!(rig.status(&path, "stranger").await, 403);
    assert_eq!(rig.ask("GET", &path, None, &[], "").await.status, 401);
}

#[tokio::test]
async fn a_form_that_cannot_be_made_or_not_yet_says_so() {
    let rig = Rig::new().await;
    let failed = rig.get(&path(CHROME), "reader").await;
    assert_eq!(failed.told(), "502 ConversionFailed");
    let detail = failed.detail();
    assert_eq!(detail, "It could not be made: the child was ended.");
    let waiting = rig.get(&path(PERFETTO), "reader").await;
    assert_eq!(waiting.told(), "503 Converting");
    assert_eq!(waiting.header("retry-after"), "2");
    let full = rig.get(&path(EVENTS_PARQUET), "reader").await;
    assert_eq!(full.told(), "503 Busy");
}

#[tokio::test]
async fn a_capture_without_a_timeline_has_no_forms() {
    let rig = Rig::new().await;
    let mut bare = artifacts();
    let all = bare.as_array_mut().unwrap();
    all.retain(|artifact| artifact["type"] == "Summary");
    rig.capture("train-a", &rig.agent_url(), &bare);
    assert_eq!(rig.status(&path(EVENTS_CSV), "reader").await, 404);
    let list = rig.json(PATHS[1], "reader").await;
    assert_eq!(list["derived"], json!([]));
}
