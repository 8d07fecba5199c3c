//! A profiler of the least: it writes one trace of PyTorch's format, and needs neither a prepared
//! pod nor tools.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flopwatch_agent::nsys_versions::NsysVersions;
use flopwatch_agent::profilers::containers::Probed;
use flopwatch_agent::profilers::facts::{Facts, open};
use flopwatch_agent::profilers::{Observed, Profiler, RawFiles, Recipe, STOP_TIMEOUT, Shortened, Site};
use flopwatch_api::artifact::TRACES;
use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::nsys::HostTools;
use flopwatch_model::Category;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use flopwatch_pipeline::steps::ToolJob;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};

const TRACE: &str = "trace.json";

/// The profiler, and the program that it talks to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Whether the program records.
    pub(crate) records: Arc<AtomicBool>,
    /// How often it was told to begin.
    pub(crate) starts: Arc<AtomicU32>,
    /// Collections that miss the operator, from the first on.
    pub(crate) misses: Arc<AtomicU32>,
    /// Collections whose file ends before its list of events does, from the first on.
    pub(crate) cuts: Arc<AtomicU32>,
    /// Collections whose file is no trace at all, from the first on.
    pub(crate) rubbish: Arc<AtomicU32>,
    /// Whether what an earlier agent collected is lost.
    pub(crate) loses: Arc<AtomicBool>,
    /// How often it was told of a collection of an earlier agent.
    pub(crate) follows: Arc<AtomicU32>,
    /// Milliseconds of processor time that its own processes use between two looks; none where it
    /// has no such.
    pub(crate) uses: Option<u64>,
    /// Looks at that.
    pub(crate) looks: Arc<AtomicU32>,
    /// What the next stop waits for, and how long it may.
    pub(crate) stuck: Arc<Mutex<Option<Receiver<()>>>>,
    pub(crate) stop_timeout: Option<Duration>,
    /// The window that it has instead of what was asked for.
    pub(crate) shortened: Option<Shortened>,
    /// Tools whose importer is run on the trace before anything else; none where there is nothing
    /// to import.
    pub(crate) importer: Option<HostTools>,
}

/// What the journal keeps.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    operator: String,
}

/// Takes one of what is left; whether there was one.
fn takes(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
        .is_ok()
}

impl Profiler for Sample {
    type State = Kept;

    fn type_(&self) -> ProfilerType {
        ProfilerType::Kineto
    }

    fn capability(&self, _: &Facts) -> Capability {
        open(self.type_())
    }

    fn attach(&self, _: &ProfilerSpec, _: &Probed, _: Option<&Pod>) -> Result<Kept, Failure> {
        let operator = "aten::mm".to_owned();
        Ok(Kept { operator })
    }

    fn follow(&self, earlier: &Kept, kept: Kept) -> Result<Kept, Failure> {
        assert_eq!(earlier.operator, "aten::mm");
        self.follows.fetch_add(1, Ordering::SeqCst);
        Ok(kept)
    }

    fn start(&self, _: &Site, _: &Kept) -> Result<(), Failure> {
        self.records.store(true, Ordering::SeqCst);
        self.starts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn observe(&self, _: Option<&Site>, _: &Kept) -> Result<Observed, Failure> {
        if self.loses.load(Ordering::SeqCst) {
            return Ok(Observed::Gone(None));
        }
        if self.records.load(Ordering::SeqCst) {
            return Ok(Observed::Collecting);
        }
        let failure = Failure::new(CaptureReason::SessionGone, "the program does not record");
        Ok(Observed::Gone(Some(failure)))
    }

    fn processor_time(&self, _: &Site) -> Option<Duration> {
        let looks = self.looks.fetch_add(1, Ordering::SeqCst);
        Some(Duration::from_millis(self.uses?) * looks)
    }

    fn shortened(&self, _: &Kept) -> Result<Option<Shortened>, Failure> {
        Ok(self.shortened.clone())
    }

    fn can_be_ended(&self) -> bool {
        false
    }

    fn stopping(&self) -> &'static str {
        "waiting for the trace"
    }

    fn stop_timeout(&self, _: &Kept) -> Result<Duration, Failure> {
        Ok(self.stop_timeout.unwrap_or(STOP_TIMEOUT))
    }

    fn stop(&self, site: &Site, kept: &Kept, _: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        self.records.store(false, Ordering::SeqCst);
        let stuck = self.stuck.lock().unwrap().take();
        if let Some(stuck) = stuck {
            // Until the test lets it go.
            stuck.recv().ok();
        }
        let event = |cat: &str, name: &str| {
            serde_json::json!({"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": 7, "ts": 10.0, "dur": 5.0,
                "args": {"External id": 1}})
        };
        let recorded = if takes(&self.misses) {
            event("user_annotation", "idle")
        } else {
            event("cpu_op", &kept.operator)
        };
        let trace = serde_json::json!({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": [recorded]});
        let mut text = trace.to_string();
        if takes(&self.cuts) {
            text.truncate(text.rfind(']').unwrap());
        }
        if takes(&self.rubbish) {
            "no trace".clone_into(&mut text);
        }
        std::fs::write(site.folder.join(TRACE), text).map_err(Failure::because(CaptureReason::CollectionFailed))?;
        Ok(self.raw_files(&site.folder).unwrap())
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        RawFiles::find(folder, &[TRACE])
    }

    fn discard(&self, _: &Site) {
        self.records.store(false, Ordering::SeqCst);
    }

    fn steps(&self, _: &Kept, raw: &RawFiles, place: &SandboxDir, _: &NsysVersions) -> Result<Recipe, Failure> {
        let import = ToolJob::Import {
            raw: raw.path(TRACE),
            report: place.at("report"),
        };
        Ok(Recipe {
            steps: self.importer.iter().map(|_| import.clone()).collect(),
            tools: self.importer.clone(),
            inputs: vec![raw.path(TRACE)],
            collected: vec![(TRACES, raw.path(TRACE))],
            captured: vec![Category::CpuOp],
            ..Recipe::default()
        })
    }
}
