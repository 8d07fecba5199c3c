//! Journals of captures under way: one file each, beside the capture's folder in the spool, where
//! no child can write.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use tracing::warn;

use crate::adoption::Journal;

/// Longest journal that is read, in bytes.
const MAX_JOURNAL_BYTES: u64 = 64 << 10;

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
        if facts.len() > MAX_JOURNAL_BYTES {
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

/// All journals of a spool that can be read, with their files.
pub(super) fn all(spool: &Path) -> Vec<(PathBuf, Journal)> {
    let entries = match std::fs::read_dir(spool) {
        Ok(entries) => entries,
        Err(error) => {
            warn!(spool = %spool.display(), %error, "journals cannot be looked for");
            return Vec::new();
        }
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let journals = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    journals
        .filter_map(|path| read(&path).map(|journal| (path, journal)))
        .collect()
}

/// Writes a journal, all of it or nothing; it outlives the machine's power.
pub(super) fn write(path: &Path, journal: &Journal) -> Result<(), Failure> {
    let text = serde_json::to_vec(journal).map_err(Failure::because(CaptureReason::StoreFailed))?;
    replace(path, &text, File::sync_all).map_err(|error| {
        let reason = if error.kind() == io::ErrorKind::StorageFull {
            CaptureReason::DiskSpace
        } else {
            CaptureReason::StoreFailed
        };
        let message = format!("the agent cannot write down how far the capture is: {error}");
        Failure::new(reason, message)
    })
}

/// Replaces a file: what is to be in it is on the disk before it has its name, and the name before
/// this returns.
pub(super) fn replace(path: &Path, text: &[u8], sync: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut prefix = name.to_owned();
    prefix.push(".");
    // What a crash leaves of it is swept by its name.
    let mut file = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".tmp")
        .tempfile_in(folder)?;
    file.write_all(text)?;
    sync(file.as_file())?;
    file.persist(path)?;
    sync(&File::open(folder)?)
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
    use std::cell::RefCell;
    use std::os::fd::AsRawFd as _;

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
        assert_eq!(read(&file), Some(journal.clone()));
        assert_eq!(all(spool.path()), [(file.clone(), journal)]);
        assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 1);
        std::fs::write(&file, "{").unwrap();
        assert_eq!(read(&file), None);
        assert_eq!(all(spool.path()), []);
        remove(&file);
        remove(&file);
    }

    #[test]
    fn a_journal_is_on_the_disk_before_it_has_its_name_and_its_name_is_before_anything_else_happens() {
        let spool = tempfile::tempdir().unwrap();
        let file = path(spool.path(), "0-1");
        std::fs::write(&file, "before").unwrap();
        let synced = RefCell::new(Vec::new());
        replace(&file, b"after", |what| {
            let what = std::fs::read_link(format!("/proc/self/fd/{}", what.as_raw_fd()))?;
            let held = std::fs::read_to_string(&what).unwrap_or_default();
            synced.borrow_mut().push((what, held, std::fs::read_to_string(&file)?));
            Ok(())
        })
        .unwrap();
        let synced = synced.into_inner();
        let [(written, held, named), (folder, _, then)] = synced.as_slice() else {
            panic!("{synced:?}");
        };
        assert!(
            owner(written.file_name().unwrap().to_str().unwrap()) == "0-1",
            "{written:?}"
        );
        assert_eq!((held.as_str(), named.as_str()), ("after", "before"));
        assert_eq!((folder.as_path(), then.as_str()), (spool.path(), "after"));
        let failed = replace(&file, b"never", |_| Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 1);
    }

    #[test]
    fn everything_in_the_spool_is_named_after_its_capture() {
        for name in ["0-1", "0-1.json", "0-1.json.12.tmp"] {
            assert_eq!(owner(name), "0-1");
        }
    }
}
