//! Traces of several processes in one archive (tar), which become one capture: a capture on demand
//! has a trace per process.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::{Failure, ReadError, read_text};
use crate::limits::ReadLimits;
use flopwatch_model::{Capture, Category, Events, Loss, LossReason, count};

/// Most files of an archive.
const MAX_FILES: usize = 4096;
/// Name of the file of an archive that lists what its maker knows to be missing, as JSON of a list
/// of [`Loss`].
pub const LOSSES: &str = "losses.json";
/// Longest of these in bytes; a longer one is no list.
const MAX_LOSSES: u64 = 64 << 10;
/// Beginning of the names of spans in which Kineto says when it recorded.
const SPANS: &str = "PyTorch Profiler";
/// Where the format's name is in the header of an archive's first file.
const MAGIC_AT: usize = 257;
const MAGIC: &[u8] = b"ustar";

/// Whether a file that begins so is an archive.
pub(crate) fn begins_like_an_archive(begin: &[u8]) -> bool {
    begin.get(MAGIC_AT..).is_some_and(|rest| rest.starts_with(MAGIC))
}

/// Reads the traces in the archive at `path` as one capture, and what [`LOSSES`] says. What is no
/// regular file in it is passed over. The traces of processes that did nothing are counted
/// ([`Loss::IDLE_PROCESSES`]); that all of them are such is an error.
pub fn read_archive(path: &Path, limits: &ReadLimits) -> Result<Capture, ReadError> {
    traces(path, limits).map_err(ReadError::at(path))
}

fn traces(path: &Path, limits: &ReadLimits) -> Result<Capture, Failure> {
    let mut archive = tar::Archive::new(File::open(path)?);
    let (mut entries, mut losses) = (Vec::new(), Vec::new());
    for entry in archive.entries_with_seek()? {
        let mut entry = entry?;
        if entries.len() >= MAX_FILES {
            return Err(Failure::TooMany {
                what: "files",
                limit: count(MAX_FILES),
            });
        }
        if let Some(list) = listed_losses(&mut entry) {
            losses.extend(list);
        } else if entry.header().entry_type().is_file() {
            entries.push((entry.raw_file_position(), entry.size()));
        }
    }
    if entries.is_empty() {
        return Err(Failure::NoEvents);
    }
    // Together they may hold what one may.
    let mut left = *limits;
    let mut captures = Vec::with_capacity(entries.len());
    let mut idle: usize = 0;
    for (position, size) in entries {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(position))?;
        let capture = read_text(file.take(size), size, &left)?;
        let events: u64 = capture.events.values().map(Events::count).sum();
        left.max_events = left.max_events.saturating_sub(events);
        left.max_text_bytes = left.max_text_bytes.saturating_sub(size);
        idle += usize::from(is_idle(&capture));
        captures.push(capture);
    }
    if idle == captures.len() {
        return Err(Failure::Idle { processes: count(idle) });
    }
    let mut capture = Capture::merge(captures)?;
    capture.losses.add(LossReason::Idle, Loss::IDLE_PROCESSES, count(idle));
    for loss in losses {
        capture.losses.add(loss.reason, &loss.what, loss.count);
    }
    Ok(capture)
}

/// Whether a trace is of a process that did nothing: it holds at most what the profiler says of
/// itself, and lost nothing, for what it lost may have been the process's work.
fn is_idle(capture: &Capture) -> bool {
    let is_of_profiler = |(category, events): (&Category, &Events)| match category {
        Category::Overhead => true,
        Category::Other => events.names.iter().all(|name| name.starts_with(SPANS)),
        _ => events.is_empty(),
    };
    let lost = |loss: &Loss| loss.is_of_something() && loss.reason != LossReason::Unsupported;
    capture.events.iter().all(is_of_profiler)
        && capture.counters.is_empty()
        && capture.allocations.is_empty()
        && !capture.losses.list().iter().any(lost)
}

/// The list of a file that is [`LOSSES`]; none of any other, which may be a trace of that name.
fn listed_losses<R: Read + Seek>(entry: &mut tar::Entry<'_, R>) -> Option<Vec<Loss>> {
    let is_list = entry.header().entry_type().is_file() && *entry.path_bytes() == *LOSSES.as_bytes();
    let mut text = Vec::new();
    if !is_list || entry.size() > MAX_LOSSES || entry.read_to_end(&mut text).is_err() {
        return None;
    }
    serde_json::from_slice(&text).ok()
}
