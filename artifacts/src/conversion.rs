//! Derived artifacts on demand, timelines of raw captures among them: one conversion for all who
//! ask for the same, a bounded queue, and nothing foreign read in this process.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flopwatch_analysis::Request;
use flopwatch_api::artifact::{Artifact, MAX_REPORTS, Output, SAMPLES, TIMELINE, raw_captures, report_name};
use futures::future::{BoxFuture, try_join_all};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};

use crate::derivation::Derivation;
use crate::input::{Input, Inputs};
use crate::manifest::CaptureId;
use crate::metrics::{ArtifactMetrics, Conversion};
use crate::object_store::ObjectStoreError;
use crate::store::{SourceFile, Store, StoreError};

/// A raw capture, and what its timeline is to say.
#[derive(Clone, Debug)]
pub struct RawCapture {
    /// The profiler's own files, under their names: of Nsight Systems one for each range of the
    /// program that it recorded; none of a capture of metrics alone.
    pub reports: Vec<PathBuf>,
    /// The series that were sampled beside it.
    pub samples: Option<PathBuf>,
    /// The session's identifier.
    pub session_id: String,
    /// As in [`Manifest`](crate::Manifest).
    pub captured: Vec<String>,
}

/// Runs analyses and transforms. Captures are foreign files: whoever implements this reads them in
/// a sandbox, with a deadline.
pub trait Converter: Debug + Send + Sync {
    /// Makes an empty folder for one conversion, which nobody else may write to.
    fn folder(&self) -> BoxFuture<'_, Result<PathBuf, ConversionError>>;

    /// Runs `request` on the timelines `inputs`, in their order, which are in such a folder. What
    /// it gives was made by whoever read foreign files: an implementation opens it without
    /// following a link. Fails with [`ConversionError::Failed`].
    fn convert<'a>(
        &'a self,
        request: &'a Request,
        inputs: &'a [&'a Path],
    ) -> BoxFuture<'a, Result<File, ConversionError>>;

    /// Makes the timeline file of a raw capture, whose files are in `folder`, which is such a one;
    /// as [`convert`](Self::convert) otherwise.
    fn transform<'a>(&'a self, folder: &'a Path, raw: &'a RawCapture) -> BoxFuture<'a, Result<File, ConversionError>>;

    /// Removes such a folder with what is in it. Safe to repeat.
    fn remove<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, ()>;
}

/// Limits on conversions.
#[derive(Clone, Debug)]
pub struct ConversionLimits {
    /// Most conversions that run at once.
    pub at_once: usize,
    /// Most conversions that wait to run.
    pub waiting: usize,
    /// Longest time that a request waits for its result; the conversion goes on afterwards.
    pub patience: Duration,
}

impl Default for ConversionLimits {
    /// One at a time, so that the workloads keep the node; eight more wait; a request waits for 20
    /// s.
    fn default() -> Self {
        Self {
            at_once: 1,
            waiting: 8,
            patience: Duration::from_secs(20),
        }
    }
}

/// Why there is no derived artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// As many conversions as may be are waiting.
    #[error("as many conversions as may be are waiting; try again")]
    Busy,
    /// The result is being made, and takes longer than a request waits.
    #[error("it is being made; ask again")]
    UnderWay,
    /// The result cannot be made, for this reason.
    #[error("{0}")]
    Failed(String),
    /// The capture holds nothing that the result would show.
    #[error("the capture holds nothing of the kind")]
    NotCaptured,
    /// A capture has neither a timeline nor a raw capture that one could be made of.
    #[error("the capture has no timeline that it could be made of, and no raw capture")]
    NoTimeline,
    /// Captures of other nodes are neither here nor in the object store.
    #[error("{} of the captures are not on this node", .0.len())]
    MissingInputs(Vec<CaptureId>),
    /// A timeline or a raw capture is not what was published.
    #[error("the capture is damaged")]
    Corrupt,
    /// The object store that holds a timeline fails.
    #[error("{0}")]
    ObjectStore(String),
    /// The artifact store failed; the log says how.
    #[error("the artifact store failed")]
    Store,
}

impl From<StoreError> for ConversionError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } | StoreError::ObjectStore(ObjectStoreError::Corrupt { .. }) => Self::Corrupt,
            StoreError::ObjectStore(error) if error.is_transient() => Self::ObjectStore(error.to_string()),
            StoreError::NoSpace { .. } | StoreError::DerivedTooLarge { .. } | StoreError::CaptureChanged { .. } => {
                Self::Failed(error.to_string())
            }
            other => {
                tracing::error!(error = %other, "the store failed under a conversion");
                Self::Store
            }
        }
    }
}

/// The result of a conversion; None while it is under way.
type ConversionOutcome = Option<Result<Artifact, ConversionError>>;
/// The identity of a conversion: its captures in order, and [`Derivation::key`].
type ConversionKey = (Vec<CaptureId>, String);
type UnderWay = BTreeMap<ConversionKey, watch::Receiver<ConversionOutcome>>;

/// The conversions of a node, those that wait included.
#[derive(Debug)]
pub(crate) struct ConversionQueue {
    converter: Arc<dyn Converter>,
    limits: ConversionLimits,
    permits: Arc<Semaphore>,
    under_way: Arc<Mutex<UnderWay>>,
    metrics: ArtifactMetrics,
}

impl ConversionQueue {
    pub(crate) fn new(converter: Arc<dyn Converter>, limits: ConversionLimits, metrics: ArtifactMetrics) -> Self {
        Self {
            converter,
            permits: Arc::new(Semaphore::new(limits.at_once)),
            limits,
            under_way: Arc::default(),
            metrics,
        }
    }

    /// The instant until which a request that arrives now waits for its result.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.limits.patience
    }

    /// The timelines of captures: those that were published, and those that are made of raw
    /// captures.
    pub(crate) async fn timelines(
        &self,
        store: &Arc<Store>,
        inputs: Inputs,
        deadline: Instant,
    ) -> Result<Inputs, ConversionError> {
        let one = async |input: Input| -> Result<Input, ConversionError> {
            if input.is_timeline() {
                return Ok(input);
            }
            let raw = Inputs::from(input.clone());
            let made = self.derive(store, &Derivation::Timeline, &raw, deadline).await?;
            Ok(input.with_timeline(made))
        };
        let Inputs { first, others } = inputs;
        let (first, others) = tokio::try_join!(one(first), try_join_all(others.into_iter().map(one)))?;
        Ok(Inputs { first, others })
    }

    /// The result of `derivation` on these inputs: the one in the store, or one that is made now. A
    /// client that disconnects meanwhile does not end the conversion: its result is stored.
    pub(crate) async fn derive(
        &self,
        store: &Arc<Store>,
        derivation: &Derivation,
        inputs: &Inputs,
        deadline: Instant,
    ) -> Result<Artifact, ConversionError> {
        if let Some(kept) = store.derived(derivation, inputs).await? {
            self.metrics.converted(derivation, Conversion::Kept);
            return present(derivation, kept);
        }
        let missing = inputs.missing();
        if !missing.is_empty() {
            return Err(ConversionError::MissingInputs(missing));
        }
        let mut outcome = self.join(store, derivation, inputs)?;
        let outcome = timeout_at(deadline, outcome.wait_for(Option::is_some)).await;
        match outcome.map_err(|_elapsed| ConversionError::UnderWay)?.as_deref() {
            Ok(Some(outcome)) => outcome.clone().and_then(|made| present(derivation, made)),
            Ok(None) | Err(_) => Err(ConversionError::Failed("the conversion ended early".to_owned())),
        }
    }

    /// The conversion that is under way, or one that begins now.
    fn join(
        &self,
        store: &Arc<Store>,
        derivation: &Derivation,
        inputs: &Inputs,
    ) -> Result<watch::Receiver<ConversionOutcome>, ConversionError> {
        let captures = inputs.iter().map(|input| input.capture().clone());
        let key = (captures.collect(), derivation.key());
        let mut under_way = locked(&self.under_way);
        if let Some(outcome) = under_way.get(&key) {
            return Ok(outcome.clone());
        }
        if under_way.len() >= self.limits.at_once.saturating_add(self.limits.waiting) {
            self.metrics.converted(derivation, Conversion::Refused);
            return Err(ConversionError::Busy);
        }
        let (sender, outcome) = watch::channel(None);
        under_way.insert(key.clone(), outcome.clone());
        drop(under_way);
        let slot = UnderWaySlot {
            under_way: Arc::clone(&self.under_way),
            key,
        };
        let job = Job {
            converter: Arc::clone(&self.converter),
            store: Arc::clone(store),
            derivation: derivation.clone(),
            inputs: inputs.clone(),
        };
        let (permits, metrics) = (Arc::clone(&self.permits), self.metrics.clone());
        tokio::spawn(async move {
            let permit = permits.acquire_owned().await;
            let made = job.run().await;
            drop(permit);
            let result = if made.is_ok() {
                Conversion::Made
            } else {
                Conversion::Failed
            };
            metrics.converted(&job.derivation, result);
            if let Err(error) = &made {
                let CaptureId { namespace, name, .. } = job.inputs.first.capture();
                let result = job.derivation.file_name();
                tracing::warn!(%namespace, capture = name, result, %error, "a conversion failed");
            }
            // First out of the map: who comes now finds the result in the store.
            drop(slot);
            drop(sender.send(Some(made)));
        });
        Ok(outcome)
    }
}

/// The result, unless it says that there is nothing to show. That is kept like any other: nobody
/// has it found out twice.
fn present(derivation: &Derivation, artifact: Artifact) -> Result<Artifact, ConversionError> {
    if derivation.is_absent(artifact.bytes) {
        Err(ConversionError::NotCaptured)
    } else {
        Ok(artifact)
    }
}

fn locked(under_way: &Mutex<UnderWay>) -> MutexGuard<'_, UnderWay> {
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry of a conversion among those under way; dropping it removes the entry.
struct UnderWaySlot {
    under_way: Arc<Mutex<UnderWay>>,
    key: ConversionKey,
}

impl Drop for UnderWaySlot {
    fn drop(&mut self) {
        locked(&self.under_way).remove(&self.key);
    }
}

/// A conversion that a client waits for.
struct Job {
    converter: Arc<dyn Converter>,
    store: Arc<Store>,
    derivation: Derivation,
    inputs: Inputs,
}

impl Job {
    async fn run(&self) -> Result<Artifact, ConversionError> {
        // It may have been made between the look for it and this turn.
        if let Some(kept) = self.store.derived(&self.derivation, &self.inputs).await? {
            return Ok(kept);
        }
        let folder = self.converter.folder().await?;
        let made = self.make(&folder).await;
        self.converter.remove(&folder).await;
        made
    }

    async fn make(&self, folder: &Path) -> Result<Artifact, ConversionError> {
        let made = match &self.derivation {
            Derivation::Timeline => {
                let raw = self.raw(folder).await?;
                self.converter.transform(folder, &raw).await?
            }
            Derivation::Analysis(request) => {
                let paths = self.timelines(folder).await?;
                let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
                self.converter.convert(request, &paths).await?
            }
        };
        let file = SourceFile {
            name: self.derivation.file_name(),
            output: match self.derivation {
                Derivation::Timeline => Output::Timeline,
                Derivation::Analysis(_) => self.inputs.first.artifact.type_,
            },
            media_type: self.derivation.media_type().to_owned(),
            content: Arc::new(made),
        };
        Ok(self.store.keep_derived(&self.derivation, &self.inputs, &file).await?)
    }

    /// Copies of the timelines, in order.
    async fn timelines(&self, folder: &Path) -> Result<Vec<PathBuf>, ConversionError> {
        let mut paths = Vec::new();
        for (at, input) in self.inputs.iter().enumerate() {
            let path = match at {
                0 => folder.join(TIMELINE),
                _ => folder.join(format!("{}-{TIMELINE}", at + 1)),
            };
            match self.store.copy_out(&input.artifact, input.source(), &path).await {
                // It was made here, and is made anew for whoever asks again.
                Err(StoreError::Corrupt { .. }) if input.is_made() => {
                    let raw = Inputs::from(input.clone());
                    self.store.forget_derived(&Derivation::Timeline, &raw).await?;
                    return Err(ConversionError::UnderWay);
                }
                copied => copied?,
            }
            paths.push(path);
        }
        Ok(paths)
    }

    /// Copies of the files of the raw capture.
    async fn raw(&self, folder: &Path) -> Result<RawCapture, ConversionError> {
        let Input { manifest, .. } = &self.inputs.first;
        let copy = async |name: &str| {
            let is_raw = |artifact: &&Artifact| artifact.type_ == Output::Raw;
            let Some(artifact) = manifest.artifact(name).filter(is_raw) else {
                return Ok(None);
            };
            let path = folder.join(name);
            let copied = self.store.copy_out(artifact, self.inputs.first.source(), &path).await;
            copied.map(|()| Some(path))
        };
        let mut reports = Vec::new();
        for number in 1..=MAX_REPORTS {
            match copy(&report_name(number)).await? {
                Some(report) => reports.push(report),
                None => break,
            }
        }
        for name in raw_captures() {
            if reports.is_empty() {
                reports.extend(copy(name).await?);
            }
        }
        Ok(RawCapture {
            reports,
            samples: copy(SAMPLES).await?,
            session_id: manifest.session.id.clone(),
            captured: manifest.captured.clone(),
        })
    }
}
