//! Files of the fleet that wait for the object store: in a folder of the node's disk that has a
//! bound, so that they outlive the agent. A file is named after its path in the store. The oldest
//! capture's files go first.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use flopwatch_fleet::{FilePath, Table};
use tracing::warn;

use crate::node::journal::replace;

/// Stands for the `/` of a path in a file's name; no path has one.
const SEPARATOR: &str = "@";

/// Why files were not kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    /// They alone are more than all may be.
    #[error("{bytes} bytes are more than the {most} that may wait (--fleet-bytes)")]
    TooLarge {
        /// Bytes of the files that are refused.
        bytes: u64,
        /// Most bytes of all.
        most: u64,
    },
    /// They cannot be written.
    #[error("the folder of waiting files cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// A file that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Since when.
    since: SystemTime,
    /// Path in the object store that the file is copied to.
    pub(super) path: FilePath,
    file: PathBuf,
    bytes: u64,
}

/// Folder of files that wait for their copy to the object store, with its bounds.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    /// Most files.
    files: usize,
    /// Most bytes of all files.
    bytes: u64,
    /// Held while files are added: two captures that end at once must not both take the last room.
    adding: Mutex<()>,
}

impl Spool {
    /// Opens the folder; says how many files in it are none of ours, which are removed.
    pub(super) fn open(folder: PathBuf, files: usize, bytes: u64) -> io::Result<(Self, usize)> {
        fs::create_dir_all(&folder)?;
        let mut removed = 0;
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path_of(&path).is_none() {
                warn!(file = %path.display(), "a file that is no waiting file of the fleet is removed");
                fs::remove_file(&path)?;
                // What a crash left of a file that was not whole was never counted as one.
                removed += usize::from(path.extension().is_none_or(|ending| ending != "tmp"));
            }
        }
        let spool = Self {
            folder,
            files,
            bytes,
            adding: Mutex::default(),
        };
        Ok((spool, removed))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What waits: the oldest first, and rows before their capture, which says that they are there.
    pub(super) fn list(&self) -> io::Result<Vec<Waiting>> {
        let mut waiting = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let file = entry.path();
            // It may be on its way in, or have gone.
            if let (Some(path), Ok(facts)) = (path_of(&file), entry.metadata()) {
                waiting.push(Waiting {
                    since: facts.modified()?,
                    path,
                    file,
                    bytes: facts.len(),
                });
            }
        }
        waiting.sort_by_key(|one: &Waiting| {
            let uid = one.path.capture_uid.clone();
            (one.since, uid, one.path.table == Table::Captures)
        });
        Ok(waiting)
    }

    /// Adds the files of a capture, in that order. The oldest others go where there is no room;
    /// gives how many.
    pub(super) fn add(&self, added: &[(FilePath, Vec<u8>)]) -> Result<usize, SpoolError> {
        let _turn = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = added.iter().map(|(_, content)| length(content)).sum();
        if bytes > self.bytes {
            let most = self.bytes;
            return Err(SpoolError::TooLarge { bytes, most });
        }
        let dropped = self.make_room(added, bytes)?;
        for (path, content) in added {
            let name = path.to_string().replace('/', SEPARATOR);
            replace(&self.folder.join(name), content, File::sync_all)?;
        }
        Ok(dropped)
    }

    /// Removes the oldest captures' files until these have room; gives how many. What they replace
    /// does not count.
    fn make_room(&self, added: &[(FilePath, Vec<u8>)], bytes: u64) -> io::Result<usize> {
        let mut waiting = self.list()?;
        waiting.retain(|one| added.iter().all(|(path, _)| *path != one.path));
        let mut held: u64 = waiting.iter().map(|one| one.bytes).sum();
        let mut files = waiting.len();
        let mut dropped = 0;
        while files > 0 && (held + bytes > self.bytes || files + added.len() > self.files) {
            let Some(oldest) = waiting.first().map(|one| one.path.capture_uid.clone()) else {
                break;
            };
            // Rows without their capture count for nothing, and a capture without its rows for
            // something else.
            for gone in waiting.extract_if(.., |one| one.path.capture_uid == oldest) {
                fs::remove_file(&gone.file)?;
                held = held.saturating_sub(gone.bytes);
                files -= 1;
                dropped += 1;
            }
        }
        Ok(dropped)
    }
}

impl Waiting {
    /// Its content; none when it went meanwhile.
    pub(super) fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.file) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes it; one that is gone is fine.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Where a file of the folder belongs in the store; none where it is none of ours.
fn path_of(file: &Path) -> Option<FilePath> {
    FilePath::parse(&file.file_name()?.to_str()?.replace(SEPARATOR, "/"))
}

fn length(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    fn path(table: Table, uid: &str) -> FilePath {
        FilePath::new(table, 20_000 * DAY, "team", uid).unwrap()
    }

    /// Rows of ten bytes and the capture's of ten.
    fn files(uid: &str) -> [(FilePath, Vec<u8>); 2] {
        [Table::Rows, Table::Captures].map(|table| (path(table, uid), vec![7; 10]))
    }

    fn spool(folder: &tempfile::TempDir, files: usize, bytes: u64) -> Spool {
        Spool::open(folder.path().join("fleet"), files, bytes).unwrap().0
    }

    /// Adds the files of a capture, as of that second.
    fn add(spool: &Spool, uid: &str, second: u64) -> usize {
        let dropped = spool.add(&files(uid)).unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
        for one in spool.list().unwrap().iter().filter(|one| one.path.capture_uid == uid) {
            File::options()
                .write(true)
                .open(&one.file)
                .unwrap()
                .set_modified(at)
                .unwrap();
        }
        dropped
    }

    fn waiting(spool: &Spool) -> Vec<String> {
        let all = spool.list().unwrap();
        all.iter()
            .map(|one| format!("{} {}", one.path.table.as_str(), one.path.capture_uid))
            .collect()
    }

    #[test]
    fn what_waits_outlives_the_agent_and_goes_out_rows_first_and_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = spool(&folder, 10, 1_000);
        assert_eq!(
            (add(&first, "b", 200), add(&first, "a", 300), add(&first, "c", 100)),
            (0, 0, 0)
        );
        let next = spool(&folder, 10, 1_000);
        let expected = ["rows c", "captures c", "rows b", "captures b", "rows a", "captures a"];
        assert_eq!(waiting(&next), expected);
        let oldest = next.list().unwrap().remove(0);
        assert_eq!(oldest.read().unwrap(), Some(vec![7; 10]));
        for _ in 0..2 {
            oldest.remove().unwrap();
            assert_eq!(oldest.read().unwrap(), None);
        }
        assert_eq!(waiting(&next).len(), 5);
    }

    #[test]
    fn of_too_many_the_oldest_captures_go_with_all_their_files_and_are_counted() {
        for (most_files, most_bytes) in [(4, 1_000), (10, 45)] {
            let folder = tempfile::tempdir().unwrap();
            let spool = spool(&folder, most_files, most_bytes);
            assert_eq!((add(&spool, "old", 100), add(&spool, "middle", 200)), (0, 0));
            // The same again takes no more room.
            assert_eq!(add(&spool, "middle", 200), 0);
            assert_eq!(add(&spool, "new", 300), 2);
            assert_eq!(
                waiting(&spool),
                ["rows middle", "captures middle", "rows new", "captures new"]
            );
        }
    }

    #[test]
    fn what_is_larger_than_the_bound_is_refused_and_takes_nobodys_room() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(&folder, 10, 20);
        add(&spool, "a", 100);
        let large = [(path(Table::Captures, "b"), vec![0; 21])];
        assert!(matches!(
            spool.add(&large),
            Err(SpoolError::TooLarge { bytes: 21, most: 20 })
        ));
        assert_eq!(waiting(&spool), ["rows a", "captures a"]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error_and_no_loss_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(&folder, 10, 1_000);
        add(&spool, "a", 100);
        // A folder in the place of the file: what a full disk does to a write, without one.
        let name = path(Table::Rows, "b").to_string().replace('/', SEPARATOR);
        fs::create_dir(folder.path().join("fleet").join(name)).unwrap();
        assert!(matches!(spool.add(&files("b")), Err(SpoolError::Io(_))));
        assert!(waiting(&spool).contains(&"captures a".to_owned()));
    }

    #[test]
    fn what_a_crash_left_is_removed_and_what_is_foreign_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        add(&spool(&folder, 10, 1_000), "a", 100);
        let at = |name: &str| folder.path().join("fleet").join(name);
        let whole = path(Table::Rows, "b").to_string().replace('/', SEPARATOR);
        fs::write(at(&format!("{whole}.x.tmp")), "half").unwrap();
        fs::write(at("notes.txt"), "x").unwrap();
        let (spool, removed) = Spool::open(folder.path().join("fleet"), 10, 1_000).unwrap();
        assert_eq!((removed, waiting(&spool).len()), (1, 2));
    }
}
