//! One session of Nsight Systems in a pod's shared memory.
//!
//! Version 2022.4 names what it keeps in `/dev/shm` by PIDs. The containers of a pod have that
//! folder in common and begin to count their processes at 1, each for itself: a second session
//! would take over the names of the first, and both would lose their captures. So a supervisor
//! takes the pod's one slot before it launches a session, and keeps it until it ends. Versions that
//! leave nothing of theirs there (they keep it in their temporary folder) need no slot, and give it
//! back.
//!
//! The slot is the lock of the folder itself: it has no file that could stay behind.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg, OFlag};

use crate::list;

/// The folder of shared memory, as POSIX has it on Linux.
pub const SHARED_MEMORY: &str = "/dev/shm";
/// How often a slot that is taken is asked for again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A slot, until it is dropped or this process ends.
#[derive(Debug)]
pub struct Slot {
    _lock: Flock<File>,
}

/// Takes the slot of those who share the memory at `folder`, waiting for at most `patience`. None:
/// another has it. A folder that is not there, or cannot be opened, has nothing to share: an error.
#[expect(clippy::disallowed_methods, reason = "a supervisor has no runtime")]
pub fn take(folder: &Path, patience: Duration) -> io::Result<Option<Slot>> {
    let until = Instant::now() + patience;
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_DIRECTORY.bits())
        .open(folder)?;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(Some(Slot { _lock: lock })),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) if Instant::now() >= until => return Ok(None),
            Err((again, nix::errno::Errno::EWOULDBLOCK)) => file = again,
            Err((_, error)) => return Err(error.into()),
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Whether a profiler keeps its list of sessions in shared memory.
pub fn is_needed(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| {
        entries
            .filter_map(Result::ok)
            .any(|entry| list::is_list(entry.file_name().as_encoded_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_YET_TIMEOUT: Duration = Duration::from_millis(60);

    #[test]
    fn a_pod_has_one_place_and_it_comes_free_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path(), NOT_YET_TIMEOUT).unwrap();
        assert!(first.is_some());
        assert!(take(folder.path(), NOT_YET_TIMEOUT).unwrap().is_none());
        drop(first);
        assert!(take(folder.path(), NOT_YET_TIMEOUT).unwrap().is_some());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing of it stays");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests of a supervisor have no runtime")]
    fn who_waits_gets_the_place_that_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path(), NOT_YET_TIMEOUT).unwrap();
        let path = folder.path().to_owned();
        let waiting = std::thread::spawn(move || take(&path, Duration::from_secs(20)).unwrap().is_some());
        std::thread::sleep(NOT_YET_TIMEOUT);
        drop(first);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn without_a_folder_there_is_no_place() {
        let folder = tempfile::tempdir().unwrap();
        assert!(take(&folder.path().join("absent"), NOT_YET_TIMEOUT).is_err());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(take(&folder.path().join("file"), NOT_YET_TIMEOUT).is_err());
    }

    #[test]
    fn only_a_list_in_shared_memory_needs_a_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("quadd-agent-instance-7"), "").unwrap();
        assert!(!is_needed(folder.path()));
        fs::write(folder.path().join("NSys-2022.4.2.1"), "").unwrap();
        assert!(is_needed(folder.path()));
    }
}
