//! One session of Nsight Systems in a pod's shared memory.
//!
//! Version 2022.4 names what it keeps in `/dev/shm` by PIDs. The containers of a pod have that folder in common and begin to
//! count their processes at 1, each for itself: a second session would take over the names of the first, and both would lose
//! their captures. So a keeper takes the pod's one place before it launches a session, and keeps it until it ends. Versions
//! that leave nothing of theirs there (they keep it in their temporary folder) need no place, and give it back.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg, OFlag};

/// The folder of shared memory, as POSIX has it on Linux.
pub const SHARED_MEMORY: &str = "/dev/shm";
/// The file whose lock is the place.
const NAME: &str = "flopwatch-session";
/// How the names of the list of sessions begin that version 2022.4 keeps in shared memory.
const LIST: &str = "NSys-";
/// How often a place that is taken is asked for again.
const LOOK: Duration = Duration::from_millis(50);

/// A place, until it is dropped or this process ends.
#[derive(Debug)]
pub struct Place {
    _lock: Flock<File>,
}

/// Takes the place of the pod whose shared memory is at `folder`, waiting for at most `patience`. None: another container has
/// it. A folder that is not there, or does not take our file, has nothing to share: an error.
#[expect(clippy::disallowed_methods, reason = "a keeper has no runtime")]
pub fn take(folder: &Path, patience: Duration) -> io::Result<Option<Place>> {
    let until = Instant::now() + patience;
    let mut file = open(&folder.join(NAME))?;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(Some(Place { _lock: lock })),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) if Instant::now() >= until => return Ok(None),
            Err((again, nix::errno::Errno::EWOULDBLOCK)) => file = again,
            Err((_, error)) => return Err(error.into()),
        }
        std::thread::sleep(LOOK);
    }
}

/// Opened without `O_CREAT` where it is there: the kernel refuses that for another user's file in a folder that is open to all
/// (`fs.protected_regular`).
fn open(path: &Path) -> io::Result<File> {
    let there = || {
        OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
            .open(path)
    };
    match there() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path);
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => there(),
        other => other,
    }
}

/// Whether a profiler keeps its list of sessions in shared memory.
pub fn is_needed(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| {
        entries
            .filter_map(Result::ok)
            .any(|entry| entry.file_name().as_encoded_bytes().starts_with(LIST.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(60);

    #[test]
    fn a_pod_has_one_place_and_it_comes_free_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path(), SOON).unwrap();
        assert!(first.is_some());
        assert!(take(folder.path(), SOON).unwrap().is_none());
        drop(first);
        assert!(take(folder.path(), SOON).unwrap().is_some());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests of a keeper have no runtime")]
    fn who_waits_gets_the_place_that_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path(), SOON).unwrap();
        let path = folder.path().to_owned();
        let waiting = std::thread::spawn(move || take(&path, Duration::from_secs(20)).unwrap().is_some());
        std::thread::sleep(SOON);
        drop(first);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn nobody_can_send_a_keeper_elsewhere_or_make_it_wait() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join(NAME)).unwrap();
        assert!(take(folder.path(), SOON).is_err());
        assert!(take(&folder.path().join("absent"), SOON).is_err());
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
