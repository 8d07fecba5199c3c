//! Forms made by the trace engine itself, which an agent runs in a sandboxed child.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use flopwatch_analysis::export::{ExportFormat, Table, export};
use flopwatch_api::form::Form;
use flopwatch_artifacts::{ConversionError, Converter};
use flopwatch_trace::{ReadLimits, timeline_file};
use futures::FutureExt as _;
use futures::future::BoxFuture;

/// Makes forms in this process.
#[derive(Debug)]
pub(super) struct Engine {
    folder: PathBuf,
}

impl Engine {
    pub(super) fn converter(folder: PathBuf) -> Arc<dyn Converter> {
        Arc::new(Self { folder })
    }
}

fn write(form: Form, timeline: &Path, output: &Path) {
    let timeline = timeline_file::read(timeline, &ReadLimits::default()).unwrap();
    let (format, table) = match form {
        Form::EventsCsv => (ExportFormat::Csv, Table::Events),
        Form::EventsParquet => (ExportFormat::Parquet, Table::Events),
        Form::SamplesCsv => (ExportFormat::Csv, Table::Samples),
        Form::SamplesParquet => (ExportFormat::Parquet, Table::Samples),
        Form::Chrome => (ExportFormat::Chrome, Table::Events),
        Form::Perfetto => (ExportFormat::Perfetto, Table::Events),
        Form::EventsJson => (ExportFormat::Json, Table::Events),
        Form::Kernels => (ExportFormat::Kernels, Table::Events),
    };
    let file = File::create(output).unwrap();
    if form == Form::Chrome {
        let mut packed = GzEncoder::new(file, Compression::fast());
        export(&timeline, format, table, &mut packed).unwrap();
        packed.finish().unwrap();
    } else {
        export(&timeline, format, table, file).unwrap();
    }
}

impl Converter for Engine {
    fn folder(&self) -> BoxFuture<'_, Result<PathBuf, ConversionError>> {
        std::fs::create_dir(&self.folder).unwrap();
        std::future::ready(Ok(self.folder.clone())).boxed()
    }

    fn convert<'a>(&'a self, form: Form, timeline: &'a Path) -> BoxFuture<'a, Result<File, ConversionError>> {
        let (timeline, output) = (timeline.to_owned(), timeline.with_file_name("form"));
        let written = tokio::task::spawn_blocking(move || {
            write(form, &timeline, &output);
            File::open(output).unwrap()
        });
        async { Ok(written.await.unwrap()) }.boxed()
    }

    fn remove<'a>(&'a self, folder: &'a Path) -> BoxFuture<'a, ()> {
        std::fs::remove_dir_all(folder).unwrap();
        std::future::ready(()).boxed()
    }
}
