//! The profiler's own lock around its list of sessions.
//!
//! Version 2022.4 changes its list in shared memory only while it holds the lock of a file in its
//! temporary folder. The list is the machine's, or the pod's; the temporary folder is each
//! session's own. Sessions with different locks make, shrink and remove the same list at the same
//! time, and then wait for ever for what the other took away. So the lock of every session on a
//! machine is a link to the one that the profiler uses by default: its users' own sessions take
//! that too.
//!
//! Who holds it knows that no process of the profiler is in the middle of a change.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;

/// Where the profiler keeps its lock below its temporary folder.
const BELOW: &str = "nvidia/nsight_systems";
/// The profiler's default temporary folder, where the machine's lock is.
const DEFAULT: &str = "/tmp";
/// How the lock's name begins and ends; the version stands between.
const NAME: (&str, &str) = ("SessionManager-", ".lock");
/// How often a lock that is taken is asked for again.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The lock, until it is dropped.
#[derive(Debug)]
pub(crate) struct ManagerLock {
    _file: File,
}

/// Makes sessions of this version of the profiler (as [`version`] has it) whose temporary folder is
/// `tmp` use the machine's lock. `tmp` is the caller's own and has no lock yet.
pub fn share(tmp: &Path, version: &str) -> io::Result<()> {
    let name = format!("{}{version}{}", NAME.0, NAME.1);
    let shared = Path::new(DEFAULT).join(BELOW);
    make_folders(Path::new(DEFAULT))?;
    let file = open_or_make(&shared.join(&name))?;
    // What cleans old files up leaves it alone for as long as the session may live.
    file.set_times(FileTimes::new().set_modified(SystemTime::now())).ok();
    make_folders(tmp)?;
    symlink(shared.join(&name), tmp.join(BELOW).join(&name))
}

/// Makes a lock of its own for sessions whose temporary folder is `tmp`, where they have none.
pub(crate) fn make(tmp: &Path, version: &str) -> io::Result<()> {
    if find(tmp).is_none() {
        make_folders(tmp)?;
        open_or_make(&tmp.join(BELOW).join(format!("{}{version}{}", NAME.0, NAME.1)))?;
    }
    Ok(())
}

/// The version in the lock's name, of what `nsys --version` says (`2022.4.2.1-df9881f`); none when
/// it is not one.
pub fn version(message: &str) -> Option<&str> {
    let number = message.split('-').next()?;
    let is_number = number
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_number.then_some(number)
}

/// Open to everybody, as the profiler makes them.
fn make_folders(base: &Path) -> io::Result<()> {
    let mut folder = base.to_owned();
    for part in BELOW.split('/') {
        folder.push(part);
        match fs::create_dir(&folder) {
            Ok(()) => fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn open_or_make(path: &Path) -> io::Result<File> {
    match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let made = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    match made {
        Ok(file) => {
            file.set_permissions(fs::Permissions::from_mode(0o666))?;
            Ok(file)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open(path),
        Err(error) => Err(error),
    }
}

/// Opens a lock; the file is never written, and nothing but a file is one.
fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}

/// Takes the lock of the sessions whose temporary folder is `tmp`, waiting for at most `patience`.
/// None: it is held for longer, or there is none.
pub(crate) fn hold(tmp: &Path, patience: Duration) -> Option<ManagerLock> {
    hold_unless_taken(tmp, patience).ok().flatten()
}

/// Somebody else has the lock for longer than was waited.
#[derive(Debug)]
pub(crate) struct Taken;

/// Likewise; none where there is no lock, which then nobody takes.
#[expect(clippy::disallowed_methods, reason = "a supervisor has no runtime")]
pub(crate) fn hold_unless_taken(tmp: &Path, patience: Duration) -> Result<Option<ManagerLock>, Taken> {
    let until = Instant::now() + patience;
    let Some(file) = find(tmp).and_then(|path| open(&path).ok()) else {
        return Ok(None);
    };
    loop {
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&whole_file())) {
            Ok(_) => return Ok(Some(ManagerLock { _file: file })),
            Err(Errno::EAGAIN | Errno::EACCES) if Instant::now() < until => {}
            Err(Errno::EAGAIN | Errno::EACCES) => return Err(Taken),
            Err(_) => return Ok(None),
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The PID of the process of this namespace that has the lock; none when nobody has it, or nobody
/// here.
pub(crate) fn holder(tmp: &Path) -> Option<i32> {
    let file = open(&find(tmp)?).ok()?;
    let mut lock = whole_file();
    fcntl(&file, FcntlArg::F_OFD_GETLK(&mut lock)).ok()?;
    Some(lock.l_pid).filter(|pid| *pid > 0)
}

/// The lock in `tmp`, or the machine's where that one is a link to it: no other link is followed.
fn find(tmp: &Path) -> Option<PathBuf> {
    let folder = tmp.join(BELOW);
    let is_lock = |name: &OsStr| {
        let name = name.as_bytes();
        name.starts_with(NAME.0.as_bytes()) && name.ends_with(NAME.1.as_bytes())
    };
    let name = fs::read_dir(&folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .find(|name| is_lock(name))?;
    let (own, shared) = (folder.join(&name), Path::new(DEFAULT).join(BELOW).join(&name));
    match fs::read_link(&own) {
        Ok(target) if target == shared => Some(shared),
        Ok(_) => None,
        Err(_) => Some(own),
    }
}

fn whole_file() -> libc::flock {
    let short = |value: libc::c_int| libc::c_short::try_from(value).unwrap_or_default();
    libc::flock {
        l_type: short(libc::F_WRLCK),
        l_whence: short(libc::SEEK_SET),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_YET_TIMEOUT: Duration = Duration::from_millis(40);

    #[test]
    fn two_sessions_of_a_machine_have_one_lock() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // A version that nobody has, and a name of this process alone.
        let version = format!("0.{}", std::process::id());
        for tmp in [&one, &other] {
            share(tmp.path(), &version).unwrap();
        }
        let held = hold(one.path(), NOT_YET_TIMEOUT);
        assert!(held.is_some());
        assert!(hold(other.path(), NOT_YET_TIMEOUT).is_none());
        drop(held);
        assert!(hold(other.path(), NOT_YET_TIMEOUT).is_some());
        fs::remove_file(find(one.path()).unwrap()).unwrap();
    }

    #[test]
    fn nobody_can_send_a_supervisor_elsewhere_or_make_it_wait() {
        let tmp = tempfile::tempdir().unwrap();
        make_folders(tmp.path()).unwrap();
        let lock = tmp.path().join(BELOW).join("SessionManager-1.lock");
        symlink("/dev/null", &lock).unwrap();
        assert!(hold(tmp.path(), NOT_YET_TIMEOUT).is_none());
        fs::remove_file(&lock).unwrap();
        nix::unistd::mkfifo(&lock, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(hold(tmp.path(), NOT_YET_TIMEOUT).is_none());
    }

    #[test]
    fn the_version_of_a_lock_is_the_number_alone() {
        assert_eq!(version("2022.4.2.1-df9881f"), Some("2022.4.2.1"));
        for odd in ["", "../x", "2022.", "a.b"] {
            assert_eq!(version(odd), None, "{odd}");
        }
    }
}
