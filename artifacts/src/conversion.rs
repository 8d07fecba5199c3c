//! Derived artifacts on demand: one conversion for all who ask for the same, a bounded queue, and nothing foreign read in this process.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flopwatch_analysis::Request;
use flopwatch_api::artifact::{Artifact, TIMELINE};
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::input::{Input, Inputs};
use crate::manifest::CaptureId;
use crate::metrics::{ArtifactMetrics, Conversion};
use crate::object_store::BucketError;
use crate::store::{SourceFile, Store, StoreError};

/// Runs analyses. Timelines are foreign files: whoever implements this reads them in a sandbox, with a deadline.
pub trait Converter: Debug + Send + Sync {
    /// Makes an empty folder for one conversion, which nobody else may write to.
    fn folder(&self) -> BoxFuture<'_, Result<PathBuf, ConversionError>>;

    /// Runs `request` on the timelines `inputs`, in their order, which are in such a folder. What it gives was made by whoever read
    /// foreign files: an implementation opens it without following a link. Fails with [`ConversionError::Failed`].
    fn convert<'a>(
        &'a self,
        request: &'a Request,
        inputs: &'a [&'a Path],
    ) -> BoxFuture<'a, Result<File, ConversionError>>;

    /// Removes such a folder with what is in it. Safe to repeat.
    fn remove<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, ()>;
}

/// Bounds of conversions.
#[derive(Clone, Debug)]
pub struct ConversionLimits {
    /// Conversions at once.
    pub at_once: usize,
    /// Most that wait for their turn.
    pub waiting: usize,
    /// Longest time that a request waits for its result; whoever asks again finds it made, or waits on.
    pub patience: Duration,
}

impl Default for ConversionLimits {
    /// One at a time, so that the workloads keep the node; eight more wait; a request waits for 20 s.
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
    /// It is being made, and takes longer than a request waits.
    #[error("it is being made; ask again")]
    UnderWay,
    /// It cannot be made.
    #[error("{0}")]
    Failed(String),
    /// The capture holds nothing that the result would show.
    #[error("the capture holds nothing of the kind")]
    NotCaptured,
    /// A capture has no timeline.
    #[error("the capture has no timeline that it could be made of")]
    NoTimeline,
    /// Captures of other nodes are neither here nor in the object store.
    #[error("{} of the captures are not on this node", .0.len())]
    MissingInputs(Vec<CaptureId>),
    /// A timeline is not what was published.
    #[error("the timeline is damaged")]
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
            StoreError::Corrupt { .. } | StoreError::Bucket(BucketError::Corrupt { .. }) => Self::Corrupt,
            StoreError::Bucket(error) if error.is_passing() => Self::ObjectStore(error.to_string()),
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

/// What came of a conversion; nothing yet while it is under way.
type Outcome = Option<Result<Artifact, ConversionError>>;
/// What a conversion is known by: its captures in order, and [`Request::key`].
type Key = (Vec<CaptureId>, String);
type UnderWay = BTreeMap<Key, watch::Receiver<Outcome>>;

/// The conversions of a node, those that wait included.
#[derive(Debug)]
pub(crate) struct ConversionQueue {
    converter: Arc<dyn Converter>,
    limits: ConversionLimits,
    turns: Arc<Semaphore>,
    under_way: Arc<Mutex<UnderWay>>,
    metrics: ArtifactMetrics,
}

impl ConversionQueue {
    pub(crate) fn new(converter: Arc<dyn Converter>, limits: ConversionLimits, metrics: ArtifactMetrics) -> Self {
        Self {
            converter,
            turns: Arc::new(Semaphore::new(limits.at_once)),
            limits,
            under_way: Arc::default(),
            metrics,
        }
    }

    /// The result of `request` on captures: one that was kept, or one that is made now. Whoever goes away meanwhile does not end a
    /// conversion: its result is kept for the next.
    pub(crate) async fn derive(
        &self,
        store: &Arc<Store>,
        request: &Request,
        inputs: &Inputs,
    ) -> Result<Artifact, ConversionError> {
        if let Some(kept) = store.derived(request, inputs).await? {
            self.metrics.converted(request, Conversion::Kept);
            return present(request, kept);
        }
        let missing = inputs.missing();
        if !missing.is_empty() {
            return Err(ConversionError::MissingInputs(missing));
        }
        let mut outcome = self.join(store, request, inputs)?;
        let outcome = timeout(self.limits.patience, outcome.wait_for(Option::is_some)).await;
        match outcome.map_err(|_elapsed| ConversionError::UnderWay)?.as_deref() {
            Ok(Some(outcome)) => outcome.clone().and_then(|made| present(request, made)),
            Ok(None) | Err(_) => Err(ConversionError::Failed("the conversion ended early".to_owned())),
        }
    }

    /// The conversion that is under way, or one that begins now.
    fn join(
        &self,
        store: &Arc<Store>,
        request: &Request,
        inputs: &Inputs,
    ) -> Result<watch::Receiver<Outcome>, ConversionError> {
        let captures = inputs.iter().map(|input| input.capture().clone());
        let key = (captures.collect(), request.key().to_owned());
        let mut under_way = locked(&self.under_way);
        if let Some(outcome) = under_way.get(&key) {
            return Ok(outcome.clone());
        }
        if under_way.len() >= self.limits.at_once.saturating_add(self.limits.waiting) {
            self.metrics.converted(request, Conversion::Refused);
            return Err(ConversionError::Busy);
        }
        let (tell, outcome) = watch::channel(None);
        under_way.insert(key.clone(), outcome.clone());
        drop(under_way);
        let slot = Slot {
            under_way: Arc::clone(&self.under_way),
            key,
        };
        let job = Job {
            converter: Arc::clone(&self.converter),
            store: Arc::clone(store),
            request: request.clone(),
            inputs: inputs.clone(),
        };
        let (turns, metrics) = (Arc::clone(&self.turns), self.metrics.clone());
        tokio::spawn(async move {
            let turn = turns.acquire_owned().await;
            let made = job.run().await;
            drop(turn);
            let result = if made.is_ok() {
                Conversion::Made
            } else {
                Conversion::Failed
            };
            metrics.converted(&job.request, result);
            if let Err(error) = &made {
                let CaptureId { namespace, name, .. } = job.inputs.first.capture();
                let analysis = job.request.definition().name;
                tracing::warn!(%namespace, capture = name, analysis, %error, "a conversion failed");
            }
            // First out of the map: who comes now finds the result in the store.
            drop(slot);
            drop(tell.send(Some(made)));
        });
        Ok(outcome)
    }
}

/// The result, unless it says that there is nothing to show. That is kept like any other: nobody has it found out twice.
fn present(request: &Request, artifact: Artifact) -> Result<Artifact, ConversionError> {
    if request.definition().is_absent(artifact.bytes) {
        Err(ConversionError::NotCaptured)
    } else {
        Ok(artifact)
    }
}

fn locked(under_way: &Mutex<UnderWay>) -> MutexGuard<'_, UnderWay> {
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A conversion's place among those under way, given free however it ends.
struct Slot {
    under_way: Arc<Mutex<UnderWay>>,
    key: Key,
}

impl Drop for Slot {
    fn drop(&mut self) {
        locked(&self.under_way).remove(&self.key);
    }
}

/// A conversion that a client waits for.
struct Job {
    converter: Arc<dyn Converter>,
    store: Arc<Store>,
    request: Request,
    inputs: Inputs,
}

impl Job {
    async fn run(&self) -> Result<Artifact, ConversionError> {
        // It may have been made between the look for it and this turn.
        if let Some(kept) = self.store.derived(&self.request, &self.inputs).await? {
            return Ok(kept);
        }
        let folder = self.converter.folder().await?;
        let made = self.make(&folder).await;
        self.converter.remove(&folder).await;
        made
    }

    async fn make(&self, folder: &Path) -> Result<Artifact, ConversionError> {
        let mut paths = Vec::new();
        for (at, Input { timeline, source, .. }) in self.inputs.iter().enumerate() {
            let path = match at {
                0 => folder.join(TIMELINE),
                _ => folder.join(format!("{}-{TIMELINE}", at + 1)),
            };
            self.store.copy_out(timeline, source, &path).await?;
            paths.push(path);
        }
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let made = self.converter.convert(&self.request, &paths).await?;
        let file = SourceFile {
            name: self.request.file_name(),
            output: self.inputs.first.timeline.type_,
            media_type: self.request.media_type().to_owned(),
            content: Arc::new(made),
        };
        Ok(self.store.keep_derived(&self.request, &self.inputs, &file).await?)
    }
}
