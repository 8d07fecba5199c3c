//! Results of analyses of published timelines, and timelines of raw captures, made on demand by
//! sandboxed children: nothing of a capture is read in this process.
//!
//! Each conversion has a folder that is ours, with the capture in it, and in that one a folder of
//! its child.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flopwatch_analysis::Request;
use flopwatch_api::session::TransformDevice;
use flopwatch_artifacts::{ConversionError, Converter, RawCapture};
use flopwatch_model::Category;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::analysis::Job;
use crate::failure::chain;
use crate::folder;
use crate::products::{self, Recipe, Wanted};
use crate::sandbox_dir::{self, SandboxDir};
use crate::steps::ChildRunner;

/// Makes results in a folder of its own.
#[derive(Debug)]
pub struct DerivedArtifacts {
    steps: ChildRunner,
    raw: ChildRunner,
    folder: PathBuf,
    next: AtomicU64,
}

impl DerivedArtifacts {
    /// In `folder`: what an earlier process left there is removed. Analyses are run with `steps`,
    /// raw captures are transformed with those of `raw`; the bounds of each hold.
    pub async fn open(steps: ChildRunner, raw: ChildRunner, folder: PathBuf) -> std::io::Result<Self> {
        folder::remove(&folder, &steps).await;
        tokio::fs::create_dir_all(&folder).await?;
        Ok(Self {
            steps,
            raw,
            folder,
            next: AtomicU64::new(0),
        })
    }

    async fn write(&self, request: &Request, inputs: &[&Path]) -> Result<File, ConversionError> {
        let failed = |error: &(dyn std::error::Error + 'static)| ConversionError::Failed(chain(error));
        let beside = inputs
            .first()
            .ok_or_else(|| ConversionError::Failed("no capture was named".to_owned()))?;
        let sandbox = SandboxDir::make(beside.with_file_name(sandbox_dir::NAME), &self.steps.limits().users)
            .map_err(|error| failed(&error))?;
        let name = request.file_name();
        let job = Job {
            request: request.clone(),
            inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
            names: Vec::new(),
            device: TransformDevice::Cpu,
            others: 0,
            output: sandbox.at(&name),
        };
        let written = self.steps.analyze(&sandbox, &job, std::future::pending()).await;
        written.map_err(|error| failed(&error))?;
        sandbox.open(&name).map_err(|error| failed(&error))
    }

    async fn timeline(&self, folder: &Path, raw: &RawCapture) -> Result<File, ConversionError> {
        let failed = |error: &(dyn std::error::Error + 'static)| ConversionError::Failed(chain(error));
        let sandbox = SandboxDir::make(folder.join(sandbox_dir::NAME), &self.raw.limits().users)
            .map_err(|error| failed(&error))?;
        let recipe = Recipe {
            inputs: raw.reports.clone(),
            // A newer program may have recorded what this one does not know.
            captured: raw
                .captured
                .iter()
                .filter_map(|name| Category::from_name(name))
                .collect(),
            ..Recipe::default()
        };
        let wanted = Wanted {
            samples: raw.samples.clone(),
            session_id: Some(raw.session_id.clone()),
            device: TransformDevice::Cpu,
            fleet: None,
        };
        let made = products::run(&self.raw, &sandbox, recipe, wanted, std::future::pending(), |_stage| {}).await;
        made.and_then(|products| products.timeline())
            .map_err(|error| failed(&error))
    }
}

impl Converter for DerivedArtifacts {
    fn folder(&self) -> BoxFuture<'_, Result<PathBuf, ConversionError>> {
        async {
            let folder = self.folder.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
            let made = folder::make(&folder).map_err(|failure| failure.message);
            made.map_err(ConversionError::Failed)?;
            Ok(folder)
        }
        .boxed()
    }

    fn convert<'a>(
        &'a self,
        request: &'a Request,
        inputs: &'a [&'a Path],
    ) -> BoxFuture<'a, Result<File, ConversionError>> {
        self.write(request, inputs).boxed()
    }

    fn transform<'a>(&'a self, folder: &'a Path, raw: &'a RawCapture) -> BoxFuture<'a, Result<File, ConversionError>> {
        self.timeline(folder, raw).boxed()
    }

    fn remove<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, ()> {
        folder::remove(folder, &self.steps).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Limits;

    #[tokio::test]
    async fn what_an_earlier_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("conversions");
        std::fs::create_dir_all(left.join("0")).unwrap();
        std::fs::write(left.join("0/timeline.h5"), "x").unwrap();
        let steps = ChildRunner::new("/nonexistent".into(), None, Limits::default());
        let forms = DerivedArtifacts::open(steps.clone(), steps, left.clone())
            .await
            .unwrap();
        assert_eq!(std::fs::read_dir(&left).unwrap().count(), 0);
        let first = forms.folder().await.unwrap();
        let second = forms.folder().await.unwrap();
        assert_ne!(first, second);
        std::fs::write(first.join("timeline.h5"), "x").unwrap();
        for _ in 0..2 {
            forms.remove(&first).await;
        }
        assert_eq!(std::fs::read_dir(&left).unwrap().count(), 1);
    }
}
