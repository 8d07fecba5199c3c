//! The temporary folder of a program that serves on this machine: it goes with the program, and
//! with the next one where that program was killed.
//!
//! The folder holds copies of captures, which may be many gigabytes, and which nobody else should
//! keep. A program that is killed has no moment to remove it. So a program holds a lock (`flock`)
//! of its folder for as long as it runs, which the kernel takes back however it ends; each program
//! that makes such a folder first removes those of its user that nobody holds.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::TempDir;

/// What a folder is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// What `flopwatch serve` and `flopwatch open` show.
    Serve,
    /// What `kubectl flopwatch open` fetched.
    Open,
    /// What `flopwatch mcp` has open.
    Mcp,
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Serve, Self::Open, Self::Mcp];

    /// What the names of its folders begin with.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Serve => ".flopwatch-serve-",
            Self::Open => ".flopwatch-open-",
            Self::Mcp => ".flopwatch-mcp-",
        }
    }
}

/// Entries of the temporary folder that are looked at: a program's start does not wait for a folder
/// of millions.
const MAX_ENTRIES: usize = 20_000;

/// Folders that are made until one can be locked. One that another program takes for left is made
/// once more.
const MAX_ATTEMPTS: usize = 32;

/// A temporary folder that this program alone uses.
#[derive(Debug)]
pub struct OwnFolder {
    folder: TempDir,
    /// `None` on a file system without locks: no program removes a folder that it cannot lock.
    _lock: Option<File>,
}

impl OwnFolder {
    /// Makes an empty folder in `parent`, once those are removed there that ended programs of this
    /// user left.
    pub fn make(parent: &Path, purpose: Purpose) -> io::Result<Self> {
        remove_left(parent);
        for _ in 0..MAX_ATTEMPTS {
            let folder = tempfile::Builder::new().prefix(purpose.prefix()).tempdir_in(parent)?;
            match Lock::of(folder.path()) {
                Lock::Held(lock) => return Ok(Self::of(folder, Some(lock))),
                Lock::Impossible => return Ok(Self::of(folder, None)),
                // Another program removes it.
                Lock::Others => {}
            }
        }
        Err(io::Error::other("other programs removed each folder that was made"))
    }

    fn of(folder: TempDir, lock: Option<File>) -> Self {
        Self { folder, _lock: lock }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whose the lock of a folder is.
enum Lock {
    /// This program's, until the file is closed.
    Held(File),
    /// Another program's, or nobody's: the folder is gone.
    Others,
    /// The folder cannot be locked.
    Impossible,
}

impl Lock {
    fn of(folder: &Path) -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::open(folder, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Self::Others,
            Err(_) => return Self::Impossible,
        };
        match file.try_lock() {
            // It may have been removed between the two.
            Ok(()) if is_at(&file, folder) => Self::Held(file),
            Ok(()) | Err(TryLockError::WouldBlock) => Self::Others,
            Err(TryLockError::Error(_)) => Self::Impossible,
        }
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Removes the folders of this user's programs that have ended. One that cannot be removed stays:
/// it is not this program's work.
fn remove_left(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let user = geteuid().as_raw();
    for entry in entries.take(MAX_ENTRIES).flatten() {
        let name = entry.file_name();
        let is_ours = Purpose::ALL
            .iter()
            .any(|purpose| name.as_encoded_bytes().starts_with(purpose.prefix().as_bytes()));
        // Not that of what a link leads to.
        if !is_ours
            || !entry
                .metadata()
                .is_ok_and(|found| found.is_dir() && found.uid() == user)
        {
            continue;
        }
        let path = entry.path();
        if let Lock::Held(_lock) = Lock::of(&path)
            && let Err(error) = fs::remove_dir_all(&path)
        {
            tracing::debug!(path = %path.display(), %error, "a left folder stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(parent: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(parent).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn the_next_program_removes_what_ended_ones_left_and_nothing_that_one_uses() {
        let parent = tempfile::tempdir().unwrap();
        let used = OwnFolder::make(parent.path(), Purpose::Serve).unwrap();
        fs::write(used.path().join("capture"), "in use").unwrap();
        for left in [
            ".flopwatch-serve-Ab12Cd",
            ".flopwatch-open-Ab12Cd",
            ".flopwatch-mcp-Ab12Cd",
        ] {
            fs::create_dir_all(parent.path().join(left).join("captures/a")).unwrap();
            fs::write(parent.path().join(left).join("captures/a/events.h5"), "left").unwrap();
        }
        let next = OwnFolder::make(parent.path(), Purpose::Mcp).unwrap();
        let expected = [used.path(), next.path()].map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names(parent.path()), BTreeSet::from(expected));
        assert_eq!(fs::read(used.path().join("capture")).unwrap(), b"in use");
        drop((used, next));
        assert_eq!(names(parent.path()), BTreeSet::new());
    }

    #[test]
    fn files_links_and_folders_of_other_names_stay() {
        let (parent, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("mine"), "").unwrap();
        symlink(elsewhere.path(), parent.path().join(".flopwatch-serve-link")).unwrap();
        fs::write(parent.path().join(".flopwatch-serve-file"), "").unwrap();
        for other in [".flopwatch-record-Ab12Cd", "flopwatch-serve-Ab12Cd", ".flopwatch-serve"] {
            fs::create_dir(parent.path().join(other)).unwrap();
        }
        let before = names(parent.path());
        drop(OwnFolder::make(parent.path(), Purpose::Serve).unwrap());
        assert_eq!(names(parent.path()), before);
        assert!(elsewhere.path().join("mine").exists());
    }

    #[test]
    fn programs_that_begin_at_once_each_have_a_folder() {
        let parent = tempfile::tempdir().unwrap();
        let made: Vec<_> = std::thread::scope(|scope| {
            let begin = || scope.spawn(|| OwnFolder::make(parent.path(), Purpose::Serve).unwrap());
            let threads: Vec<_> = (0..16).map(|_| begin()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(made.iter().all(|folder| folder.path().is_dir()));
        assert_eq!(names(parent.path()).len(), made.len());
    }
}
