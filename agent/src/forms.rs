//! Forms of published timelines, made on demand by sandboxed children: nothing of a timeline is read in this process.
//!
//! Each conversion has a folder that is ours, with the timeline in it, and in that one a folder of its child.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flopwatch_analysis::export::{ExportFormat, Table};
use flopwatch_api::form::Form;
use flopwatch_api::session::TransformDevice;
use flopwatch_artifacts::{ConversionError, Converter};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::conversion::Conversion;
use crate::failure::chain;
use crate::node::{spool, sweep};
use crate::steps::Steps;
use crate::transform::Job;
use crate::workplace::{self, Workplace};

/// Makes forms in a folder of its own.
#[derive(Debug)]
pub struct Forms {
    steps: Steps,
    folder: PathBuf,
    next: AtomicU64,
}

impl Forms {
    /// With `steps`, whose bounds hold, in `folder`. What an earlier process left there is removed.
    pub async fn open(steps: Steps, folder: PathBuf) -> std::io::Result<Self> {
        sweep::remove_folder(&folder, &steps).await;
        tokio::fs::create_dir_all(&folder).await?;
        Ok(Self {
            steps,
            folder,
            next: AtomicU64::new(0),
        })
    }

    async fn write(&self, form: Form, timeline: &Path) -> Result<File, ConversionError> {
        let failed = |error: &(dyn std::error::Error + 'static)| ConversionError::Failed(chain(error));
        let place = Workplace::make(timeline.with_file_name(workplace::NAME), &self.steps.limits().users)
            .map_err(|error| failed(&error))?;
        let output = place.at(form.name());
        let (format, table) = made_with(form);
        let job = Job {
            export: Some(timeline.to_owned()),
            samples: None,
            session_id: None,
            captured: Vec::new(),
            device: TransformDevice::Cpu,
            others: 0,
            timeline: None,
            summary: place.at("summary.json"),
            conversion: Some(Conversion {
                format,
                table,
                gzip: form == Form::Chrome,
                output,
            }),
        };
        let written = self.steps.transform(&place, &job, std::future::pending()).await;
        written.map_err(|error| failed(&error))?;
        place.open(form.name()).map_err(|error| failed(&error))
    }
}

impl Converter for Forms {
    fn folder(&self) -> BoxFuture<'_, Result<PathBuf, ConversionError>> {
        async {
            let folder = self.folder.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
            let made = spool::make(&folder).map_err(|failure| failure.message);
            made.map_err(ConversionError::Failed)?;
            Ok(folder)
        }
        .boxed()
    }

    fn convert<'a>(&'a self, form: Form, timeline: &'a Path) -> BoxFuture<'a, Result<File, ConversionError>> {
        self.write(form, timeline).boxed()
    }

    fn remove<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, ()> {
        sweep::remove_folder(folder, &self.steps).boxed()
    }
}

const fn made_with(form: Form) -> (ExportFormat, Table) {
    match form {
        Form::EventsCsv => (ExportFormat::Csv, Table::Events),
        Form::EventsParquet => (ExportFormat::Parquet, Table::Events),
        Form::SamplesCsv => (ExportFormat::Csv, Table::Samples),
        Form::SamplesParquet => (ExportFormat::Parquet, Table::Samples),
        Form::Chrome => (ExportFormat::Chrome, Table::Events),
        Form::Perfetto => (ExportFormat::Perfetto, Table::Events),
        Form::EventsJson => (ExportFormat::Json, Table::Events),
        Form::Kernels => (ExportFormat::Kernels, Table::Events),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Limits;

    #[test]
    fn a_form_has_the_media_type_of_its_format_unless_it_is_compressed() {
        for form in Form::ALL {
            let (format, table) = made_with(form);
            let compressed = form == Form::Chrome;
            assert_eq!(form.media_type() == format.media_type(), !compressed, "{form:?}");
            assert!(table == Table::Events || format.is_table(), "{form:?}");
            assert!(form.name().contains(format.extension()), "{form:?}");
        }
    }

    #[tokio::test]
    async fn what_an_earlier_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("conversions");
        std::fs::create_dir_all(left.join("0")).unwrap();
        std::fs::write(left.join("0/timeline.h5"), "x").unwrap();
        let steps = Steps::new("/nonexistent".into(), None, Limits::default());
        let forms = Forms::open(steps, left.clone()).await.unwrap();
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
