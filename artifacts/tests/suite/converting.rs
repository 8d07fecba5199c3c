//! A service that has results made, and the double that makes them: it writes texts, as soon as
//! there is a permit. The agent's own tests have the real one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flopwatch_analysis::Request;
use flopwatch_artifacts::{Access, ArtifactService, ConversionError, ConversionLimits, Converter, RawCapture};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::rig::{Captures, Listening};

/// The result of a request for timelines of these contents.
type Convert = fn(&Request, &[String]) -> Result<String, ConversionError>;
/// The timeline of a raw capture.
type Transform = fn(&RawCapture) -> Result<String, ConversionError>;

/// The double. A transform takes half a second, so that others come meanwhile.
#[derive(Debug)]
pub(crate) struct Double {
    pub(crate) folder: PathBuf,
    pub(crate) permits: Semaphore,
    begun: AtomicUsize,
    transforms: AtomicUsize,
    convert: Convert,
    transform: Transform,
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
        async move {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.permits.acquire().await.unwrap().forget();
            let read = |timeline: &&Path| std::fs::read_to_string(timeline).unwrap();
            let texts: Vec<String> = inputs.iter().map(read).collect();
            let text = (self.convert)(request, &texts)?;
            Ok(write(self.folder.join("result"), text))
        }
        .boxed()
    }

    fn transform<'a>(&'a self, folder: &'a Path, raw: &'a RawCapture) -> BoxFuture<'a, Result<File, ConversionError>> {
        async move {
            self.transforms.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(500)).await;
            let text = (self.transform)(raw)?;
            Ok(write(folder.join("made"), text))
        }
        .boxed()
    }

    fn remove<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, ()> {
        std::fs::remove_dir_all(folder).unwrap();
        std::future::ready(()).boxed()
    }
}

/// The transform where there is no raw capture.
pub(crate) fn no_raw_capture(raw: &RawCapture) -> Result<String, ConversionError> {
    panic!("no raw capture is here: {raw:?}");
}

/// A store and what makes results for its service.
pub(crate) struct Converting {
    pub(crate) captures: Captures,
    pub(crate) double: Arc<Double>,
}

impl Converting {
    /// With so many conversions that need not wait.
    pub(crate) fn new(captures: Captures, permits: usize, convert: Convert, transform: Transform) -> Self {
        let double = Arc::new(Double {
            folder: captures.root.path().join("conversion"),
            permits: Semaphore::new(permits),
            begun: AtomicUsize::new(0),
            transforms: AtomicUsize::new(0),
            convert,
            transform,
        });
        Self { captures, double }
    }

    pub(crate) fn listen(&self, access: Access, limits: ConversionLimits) -> Listening {
        let converter: Arc<Double> = Arc::clone(&self.double);
        let (store, metrics) = (Arc::clone(&self.captures.store), self.captures.metrics.clone());
        let service = ArtifactService::converting(store, access, metrics, converter, limits, None);
        Listening::plain(&service)
    }

    pub(crate) fn open(&self) -> Listening {
        self.listen(Access::LoopbackOnly, ConversionLimits::default())
    }

    pub(crate) fn begun(&self) -> usize {
        self.double.begun.load(Ordering::SeqCst)
    }

    pub(crate) fn transforms(&self) -> usize {
        self.double.transforms.load(Ordering::SeqCst)
    }

    pub(crate) fn conversions(&self, form: &str, result: &str) -> u64 {
        let labels = format!("form=\"{form}\",result=\"{result}\"");
        let series = format!("flopwatch_artifact_conversions_total{{{labels}}}");
        self.captures.metric(&series)
    }
}
