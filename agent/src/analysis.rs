//! A capture in the format of another program, beside the files that are published.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use flopwatch_analysis::export::{self, ExportError, ExportFormat, Table};
use flopwatch_trace::model::{Drop, Timeline};
use serde::{Deserialize, Serialize};

/// Longest report that is read, in bytes.
const MAX_REPORT_BYTES: u64 = 16 << 20;

/// What to write where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The format.
    pub format: ExportFormat,
    /// Which table, where the format is one.
    pub table: Table,
    /// Whether the file is compressed with gzip.
    pub gzip: bool,
    /// The file to write; [`Report`] goes beside it.
    pub output: PathBuf,
}

/// What was written, as the child says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Events.
    pub events: u64,
    /// Samples of series.
    pub samples: u64,
    /// What the format, or the table, does not hold.
    pub left_out: Vec<Drop>,
}

/// Why there is no such file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be made.
    #[error("{path}: {source}")]
    Io {
        /// The file that was to be made.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The format's writer fails.
    #[error("{path}: {source}")]
    Export {
        /// The file that was to be made.
        path: PathBuf,
        /// What the writer said.
        source: ExportError,
    },
    /// The report cannot be written or read.
    #[error("{path}: {source}")]
    Report {
        /// The report's file.
        path: PathBuf,
        /// What is wrong with its text.
        source: serde_json::Error,
    },
}

impl Conversion {
    /// Options of `flopwatch-agent transform` that ask for it.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut options = vec![
            "--converted-format".to_owned(),
            self.format.name().to_owned(),
            "--converted-table".to_owned(),
            self.table.name().to_owned(),
            "--converted".to_owned(),
            self.output.to_string_lossy().into_owned(),
        ];
        options.extend(self.gzip.then(|| "--converted-gzip".to_owned()));
        options
    }

    /// Where the report is.
    pub(crate) fn report(&self) -> PathBuf {
        self.output.with_extension("report.json")
    }

    /// Writes the file and its report.
    pub(crate) fn write(&self, timeline: &Timeline) -> Result<(), Error> {
        let file = File::create(&self.output).map_err(io(&self.output))?;
        let failed = |source| Error::Export {
            path: self.output.clone(),
            source,
        };
        let exported = if self.gzip {
            let mut packed = GzEncoder::new(BufWriter::new(file), Compression::fast());
            let exported = export::export(timeline, self.format, self.table, &mut packed).map_err(failed)?;
            let finished = packed.finish().and_then(|mut file| file.flush());
            finished.map_err(io(&self.output))?;
            exported
        } else {
            export::export(timeline, self.format, self.table, file).map_err(failed)?
        };
        let report = Report {
            events: exported.events,
            samples: exported.samples,
            left_out: exported.left_out.list(),
        };
        let path = self.report();
        let file = File::create(&path).map_err(io(&path))?;
        serde_json::to_writer(file, &report).map_err(|source| Error::Report { path, source })
    }

    /// Reads the report that a child wrote.
    pub(crate) fn read_report(&self, file: File) -> Result<Report, Error> {
        let reader = BufReader::new(file.take(MAX_REPORT_BYTES));
        let path = self.report();
        serde_json::from_reader(reader).map_err(|source| Error::Report { path, source })
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}
