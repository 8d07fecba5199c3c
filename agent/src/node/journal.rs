//! Journals of captures under way: one file each, beside the capture's folder in the spool, where no child can write.

use std::io;
use std::path::{Path, PathBuf};

use flopwatch_api::reason::CaptureReason;
use flopwatch_launcher::run_dir::write_atomically;
use tracing::warn;

use crate::adoption::Journal;
use crate::failure::Failure;

/// Longest journal that is read, in bytes.
const LIMIT: u64 = 64 << 10;

/// The file of a capture's journal.
pub(super) fn path(spool: &Path, uid: &str) -> PathBuf {
    spool.join(format!("{uid}.json"))
}

/// The capture that a file or folder of the spool belongs to.
pub(super) fn owner(name: &str) -> &str {
    name.split_once('.').map_or(name, |(uid, _)| uid)
}

/// Reads a journal; none when there is none, or none that this version understands.
pub(super) fn read(path: &Path) -> Option<Journal> {
    let read = || {
        let facts = std::fs::metadata(path)?;
        if facts.len() > LIMIT {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    };
    match read() {
        Ok(journal) => Some(journal),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            warn!(journal = %path.display(), %error, "a journal cannot be read");
            None
        }
    }
}

/// Writes a journal, all of it or nothing.
pub(super) fn write(path: &Path, journal: &Journal) -> Result<(), Failure> {
    let text = serde_json::to_vec(journal).map_err(Failure::because(CaptureReason::StoreFailed))?;
    write_atomically(path, &text).map_err(|error| {
        let reason = if error.kind() == io::ErrorKind::StorageFull {
            CaptureReason::DiskSpace
        } else {
            CaptureReason::StoreFailed
        };
        let message = format!("the agent cannot write down how far the capture is: {error}");
        Failure::new(reason, message)
    })
}

/// Removes a journal; one that is not there is fine.
pub(super) fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            warn!(journal = %path.display(), %error, "a journal stays until the next sweep");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_replaced_in_one_step_and_removed_twice() {
        let spool = tempfile::tempdir().unwrap();
        let file = path(spool.path(), "0-1");
        assert_eq!(read(&file), None);
        let journal = Journal {
            adoptions: 2,
            ..Journal::default()
        };
        write(&file, &Journal::default()).unwrap();
        write(&file, &journal).unwrap();
        assert_eq!(read(&file), Some(journal));
        assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 1);
        std::fs::write(&file, "{").unwrap();
        assert_eq!(read(&file), None);
        remove(&file);
        remove(&file);
    }

    #[test]
    fn everything_in_the_spool_is_named_after_its_capture() {
        for name in ["0-1", "0-1.json", "0-1.json.12.tmp"] {
            assert_eq!(owner(name), "0-1");
        }
    }
}
