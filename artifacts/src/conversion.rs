//! Forms on demand: one conversion for all who ask for it, a bounded queue, and nothing foreign read in this process.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flopwatch_api::artifact::Artifact;
use flopwatch_api::form::{Form, TIMELINE};
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use crate::manifest::{CaptureId, Manifest};
use crate::metrics::{ArtifactMetrics, Conversion};
use crate::object_store::BucketError;
use crate::store::{Source, SourceFile, Store, StoreError};

/// Makes forms. Timelines are foreign files: whoever implements this reads them in a sandbox, with a deadline.
pub trait Converter: Debug + Send + Sync {
    /// Makes an empty folder for one conversion, which nobody else may write to.
    fn folder(&self) -> BoxFuture<'_, Result<PathBuf, ConversionError>>;

    /// Reads `timeline`, which is in such a folder, and makes `form` of it. What it gives was made by whoever read a foreign file:
    /// an implementation opens it without following a link. Fails with [`ConversionError::Failed`].
    fn convert<'a>(&'a self, form: Form, timeline: &'a Path) -> BoxFuture<'a, Result<File, ConversionError>>;

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
    /// Longest time that a request waits for its form; whoever asks again finds it made, or waits on.
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

/// Why there is no form.
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
    /// The capture holds nothing that the form would show.
    #[error("the capture holds nothing of the kind")]
    NotCaptured,
    /// The capture has no timeline.
    #[error("the capture has no timeline that it could be made of")]
    NoTimeline,
    /// The timeline is not what was published.
    #[error("the timeline is damaged")]
    Corrupt,
    /// The bucket that holds the timeline fails.
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
            StoreError::NoSpace { .. } | StoreError::FormTooLarge { .. } | StoreError::CaptureChanged { .. } => {
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
type UnderWay = BTreeMap<(CaptureId, Form), watch::Receiver<Outcome>>;

/// Where forms are asked for.
#[derive(Debug)]
pub(crate) struct Desk {
    converter: Arc<dyn Converter>,
    limits: ConversionLimits,
    turns: Arc<Semaphore>,
    under_way: Arc<Mutex<UnderWay>>,
    metrics: ArtifactMetrics,
}

impl Desk {
    pub(crate) fn new(converter: Arc<dyn Converter>, limits: ConversionLimits, metrics: ArtifactMetrics) -> Self {
        Self {
            converter,
            turns: Arc::new(Semaphore::new(limits.at_once)),
            limits,
            under_way: Arc::default(),
            metrics,
        }
    }

    /// The form of a capture: one that was kept, or one that is made now. Whoever goes away meanwhile does not end a conversion:
    /// its form is kept for the next.
    pub(crate) async fn form(
        &self,
        store: &Arc<Store>,
        manifest: &Manifest,
        source: &Source,
        form: Form,
    ) -> Result<Artifact, ConversionError> {
        let timeline = manifest.artifact(TIMELINE).ok_or(ConversionError::NoTimeline)?;
        if let Some(kept) = store.form(manifest, timeline, form).await? {
            self.metrics.converted(form, Conversion::Kept);
            return present(form, kept);
        }
        let mut outcome = self.join(store, manifest, source, timeline, form)?;
        let outcome = timeout(self.limits.patience, outcome.wait_for(Option::is_some)).await;
        match outcome.map_err(|_elapsed| ConversionError::UnderWay)?.as_deref() {
            Ok(Some(outcome)) => outcome.clone().and_then(|made| present(form, made)),
            Ok(None) | Err(_) => Err(ConversionError::Failed("the conversion ended early".to_owned())),
        }
    }

    /// The conversion that is under way, or one that begins now.
    fn join(
        &self,
        store: &Arc<Store>,
        manifest: &Manifest,
        source: &Source,
        timeline: &Artifact,
        form: Form,
    ) -> Result<watch::Receiver<Outcome>, ConversionError> {
        let key = (manifest.capture.clone(), form);
        let mut under_way = locked(&self.under_way);
        if let Some(outcome) = under_way.get(&key) {
            return Ok(outcome.clone());
        }
        if under_way.len() >= self.limits.at_once.saturating_add(self.limits.waiting) {
            self.metrics.converted(form, Conversion::Refused);
            return Err(ConversionError::Busy);
        }
        let (tell, outcome) = watch::channel(None);
        under_way.insert(key.clone(), outcome.clone());
        drop(under_way);
        let place = Place {
            under_way: Arc::clone(&self.under_way),
            key,
        };
        let job = Job {
            converter: Arc::clone(&self.converter),
            store: Arc::clone(store),
            manifest: manifest.clone(),
            source: source.clone(),
            timeline: timeline.clone(),
            form,
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
            metrics.converted(form, result);
            if let Err(error) = &made {
                let CaptureId { namespace, name, .. } = &job.manifest.capture;
                tracing::warn!(%namespace, capture = name, form = form.name(), %error, "a conversion failed");
            }
            // First out of the map: who comes now finds the form in the store.
            drop(place);
            drop(tell.send(Some(made)));
        });
        Ok(outcome)
    }
}

/// The form, unless it says that there is nothing to show. That is kept like any other: nobody has it found out twice.
fn present(form: Form, artifact: Artifact) -> Result<Artifact, ConversionError> {
    if form.is_absent(artifact.bytes) {
        Err(ConversionError::NotCaptured)
    } else {
        Ok(artifact)
    }
}

fn locked(under_way: &Mutex<UnderWay>) -> MutexGuard<'_, UnderWay> {
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A conversion's place among those under way, given free however it ends.
struct Place {
    under_way: Arc<Mutex<UnderWay>>,
    key: (CaptureId, Form),
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.under_way).remove(&self.key);
    }
}

/// A conversion that a client waits for.
struct Job {
    converter: Arc<dyn Converter>,
    store: Arc<Store>,
    manifest: Manifest,
    source: Source,
    timeline: Artifact,
    form: Form,
}

impl Job {
    async fn run(&self) -> Result<Artifact, ConversionError> {
        // It may have been made between the look for it and this turn.
        if let Some(kept) = self.store.form(&self.manifest, &self.timeline, self.form).await? {
            return Ok(kept);
        }
        let folder = self.converter.folder().await?;
        let made = self.make(&folder).await;
        self.converter.remove(&folder).await;
        made
    }

    async fn make(&self, folder: &Path) -> Result<Artifact, ConversionError> {
        let timeline = folder.join(TIMELINE);
        self.store.copy_out(&self.timeline, &self.source, &timeline).await?;
        let made = self.converter.convert(self.form, &timeline).await?;
        let file = SourceFile {
            name: self.form.name().to_owned(),
            output: self.timeline.type_,
            media_type: self.form.media_type().to_owned(),
            content: Arc::new(made),
        };
        let guest = matches!(self.source, Source::Bucket(..));
        let (manifest, timeline) = (&self.manifest, &self.timeline);
        Ok(self
            .store
            .keep_form(manifest, timeline, self.form, &file, guest)
            .await?)
    }
}
