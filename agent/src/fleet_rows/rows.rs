//! Rows of a capture's timeline: made in the transform's child, and taken from it only where they
//! are of the capture that the agent asked for.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flopwatch_fleet::{CaptureRow, Limits, ReadError, Row, WriteError, read_rows, rows, write_rows};
use flopwatch_model::Timeline;
use flopwatch_pipeline::fleet_rows::FleetFiles;
use flopwatch_summary::Summary;

/// Longest row of a capture that a child reads, in bytes.
const MAX_CAPTURE_BYTES: u64 = 1 << 20;

/// Why a child made no rows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// File that could not be read or written.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The capture's row is none.
    #[error("{path}: is no row of a capture: {source}")]
    Capture {
        /// File of the capture's row.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The rows cannot be a file.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why the rows that a child made are not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The file of the rows cannot be read.
    #[error("their file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// They are not what this program writes, or too many.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A row says that it is of another capture than the agent's.
    #[error("row {place} is not of this capture: its {column} is another")]
    Foreign {
        /// Index of the row in its file, from 0.
        place: usize,
        /// What is another.
        column: &'static str,
    },
    /// They cannot be written again.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The row with what its summary tells. The window stays the agent's own.
#[must_use]
pub fn described(row: CaptureRow, summary: &Summary) -> CaptureRow {
    let window_ns = row.window_ns;
    CaptureRow {
        window_ns,
        ..row.with_summary(summary)
    }
}

/// Writes the rows of a timeline: what a child does when all else is done.
pub fn write(files: &FleetFiles, timeline: &Timeline, summary: &Summary) -> Result<(), Error> {
    let capture = described(read_capture(&files.capture)?, summary);
    let content = write_rows(&rows(timeline, summary, &capture))?;
    std::fs::write(&files.rows, content).map_err(io_error(&files.rows))
}

fn read_capture(path: &Path) -> Result<CaptureRow, Error> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(io_error(path))?;
    file.take(MAX_CAPTURE_BYTES)
        .read_to_end(&mut text)
        .map_err(io_error(path))?;
    serde_json::from_slice(&text).map_err(|source| Error::Capture {
        path: path.to_owned(),
        source,
    })
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    |source| Error::Io {
        path: path.to_owned(),
        source,
    }
}

/// The file to keep of rows that a child made. It reads foreign files and may lie: what is not
/// within bounds, or says that it is of another capture than `capture`, is refused. What is kept is
/// written here, so that nobody reads a file of the child's making again.
pub fn take(file: File, capture: &CaptureRow) -> Result<Vec<u8>, Refusal> {
    let limits = Limits::default();
    let mut content = Vec::new();
    let most = u64::try_from(limits.file_bytes).unwrap_or(u64::MAX);
    file.take(most.saturating_add(1)).read_to_end(&mut content)?;
    let rows = read_rows(content, &limits)?;
    let foreign = |(place, row): (usize, &Row)| differs(row, capture).map(|column| Refusal::Foreign { place, column });
    if let Some(refusal) = rows.iter().enumerate().find_map(foreign) {
        return Err(refusal);
    }
    Ok(write_rows(&rows)?)
}

/// What of a row says that it is of another capture.
fn differs(row: &Row, capture: &CaptureRow) -> Option<&'static str> {
    let same = [
        ("capture_uid", row.capture_uid == capture.capture_uid),
        ("namespace", row.namespace == capture.namespace),
        ("image", row.image == capture.image),
        ("image_digest", row.image_digest == capture.image_digest),
        ("version", row.version == capture.version),
        ("node", row.node == capture.node),
        ("workload", row.workload == capture.workload),
        ("window_start", row.window_start == capture.window_start),
        ("window_ns", row.window_ns == capture.window_ns),
        (
            "probability_per_billion",
            row.probability_per_billion == capture.probability_per_billion,
        ),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(column, _)| column)
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Capture, Category, Event, Events};
    use flopwatch_summary::summarise;

    use super::*;

    type Forge = fn(&mut CaptureRow);

    fn capture() -> CaptureRow {
        CaptureRow {
            capture_uid: "uid-1".to_owned(),
            namespace: "team".to_owned(),
            image: "registry/llm:v1".to_owned(),
            image_digest: Some("sha256:aa".to_owned()),
            version: Some("1.2".to_owned()),
            node: "n".to_owned(),
            workload: Some("llm".to_owned()),
            window_start: 1_767_225_600_000_000_000,
            window_ns: 5_000,
            probability_per_billion: 111_111,
            ..CaptureRow::default()
        }
    }

    /// A timeline with two runs of a range.
    fn timeline() -> Timeline {
        let mut events = Events::new(Category::NvtxRange);
        events.names = vec!["step".to_owned()];
        for start_ns in [0, 100] {
            let event = Event {
                start_ns,
                duration_ns: 50,
                ..Event::default()
            };
            events.push(event, &[]);
        }
        let mut capture = Capture {
            duration_ns: 1_000,
            events: [(Category::NvtxRange, events)].into(),
            ..Capture::default()
        };
        capture.declare_captured([Category::NvtxRange]);
        Timeline {
            capture,
            ..Timeline::default()
        }
    }

    /// The file that a child makes.
    fn made(folder: &Path, row: &CaptureRow) -> File {
        let files = FleetFiles {
            capture: folder.join("fleet.json"),
            rows: folder.join("fleet.parquet"),
        };
        std::fs::write(&files.capture, serde_json::to_vec(row).unwrap()).unwrap();
        let timeline = timeline();
        write(&files, &timeline, &summarise(&timeline)).unwrap();
        File::open(files.rows).unwrap()
    }

    #[test]
    fn rows_of_the_capture_are_taken_with_the_agents_window() {
        let folder = tempfile::tempdir().unwrap();
        let kept = take(made(folder.path(), &capture()), &capture()).unwrap();
        let rows = read_rows(kept, &Limits::default()).unwrap();
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.calls, row.total_ns, row.window_ns))
            .collect();
        assert_eq!(told, [("step", 2, 100, 5_000)]);
        let described = described(capture(), &summarise(&timeline()));
        assert_eq!(
            (described.window_ns, described.categories),
            (5_000, vec!["nvtx_range".to_owned()])
        );
    }

    #[test]
    fn rows_that_say_they_are_of_another_capture_are_refused() {
        let forged: [(&str, Forge); 10] = [
            ("capture_uid", |row| row.capture_uid = "uid-2".to_owned()),
            ("namespace", |row| row.namespace = "other".to_owned()),
            ("image", |row| row.image = "registry/other".to_owned()),
            ("image_digest", |row| row.image_digest = None),
            ("version", |row| row.version = Some("2".to_owned())),
            ("node", |row| row.node = "m".to_owned()),
            ("workload", |row| row.workload = None),
            ("window_start", |row| row.window_start += 1),
            ("window_ns", |row| row.window_ns += 1),
            ("probability_per_billion", |row| row.probability_per_billion = 1),
        ];
        for (wanted, forge) in forged {
            let folder = tempfile::tempdir().unwrap();
            let mut row = capture();
            forge(&mut row);
            match take(made(folder.path(), &row), &capture()) {
                Err(Refusal::Foreign { place: 0, column }) => assert_eq!(column, wanted),
                other => panic!("{wanted}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_too_large_or_no_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = |length: u64| {
            let path = folder.path().join("x");
            File::create(&path).unwrap().set_len(length).unwrap();
            File::open(path).unwrap()
        };
        let refused = take(file(1 << 40), &capture()).unwrap_err();
        assert!(matches!(refused, Refusal::Read(ReadError::File { .. })), "{refused}");
        assert!(matches!(take(file(100), &capture()), Err(Refusal::Read(_))));
    }

    #[test]
    fn a_row_that_is_none_makes_no_rows_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let files = FleetFiles {
            capture: folder.path().join("fleet.json"),
            rows: folder.path().join("fleet.parquet"),
        };
        std::fs::write(&files.capture, "{").unwrap();
        let (timeline, summary) = (timeline(), summarise(&timeline()));
        assert!(matches!(write(&files, &timeline, &summary), Err(Error::Capture { .. })));
        assert!(!files.rows.exists());
    }
}
