//! The profiler's list of sessions in shared memory, and what its processes leave beside it.
//!
//! Version 2022.4 keeps the sessions of a machine, or of a pod, in one file in `/dev/shm`. A
//! process of it that is killed in the middle of a change leaves the list as it was at that moment:
//! every other one then waits for it for ever, `nsys sessions list` too. And who is killed does not
//! remove its own names. What no living process has open is nobody's: it is removed, and the next
//! session makes a new list.
//!
//! A list is spoilt for good when a process holds its lock and polls for something in it
//! ([`hang`]): nobody but that one may change the list, so what it waits for never comes, and so
//! fares whoever comes next. Such a list is removed though others have it open: their sessions
//! cannot be reached through it any more. Any other list that is used stays; then the reason names
//! who uses it.

use std::ffi::{CString, OsStr, OsString};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::geteuid;

use crate::spawn::{self, Streams};
use crate::{aside, hang, lease, manager_lock, slot};

/// How the name of the list begins; its version follows.
const LIST: &[u8] = b"NSys-";
/// How the other names begin that the profiler's processes have in shared memory, each for as long
/// as its process lives.
const BESIDE: [&[u8]; 3] = [b"quadd-agent-instance-", b"quadd-create-agent-", b"sem.nsys_sem_"];
/// How the names begin of lists that were moved aside by one of ours that was killed before it
/// removed them.
const ASIDE: &[u8] = aside::NAME.as_bytes();
/// How old a name is at least that is removed: between making a file and opening it a process may
/// lose the processor.
const MIN_STALE_AGE: Duration = Duration::from_millis(200);
/// How long a list may take to answer. A good one answers within 50 ms on an idle machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a list that does not answer is looked at again: who uses it may be on its way out.
const RECHECK_TIMEOUT: Duration = Duration::from_secs(4);
/// How long a process polls in the list at least, with the list's lock, until the list is held to
/// be spoilt. In 300 records at up to seven times the work that the machine could do nobody held
/// the lock of a good list for a second.
const MIN_SPOILT_DURATION: Duration = Duration::from_millis(1500);
/// Longest wait for those who look after shared memory at the same time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for a change of the list that is under way.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How many users of a list a reason names.
const MAX_NAMED: usize = 4;

/// Whether a file of that name is the list of a version.
pub(crate) fn is_list(name: &[u8]) -> bool {
    name.starts_with(LIST)
}

/// A process that has the list open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct User {
    pid: i32,
    /// Its name, without arguments: those may hold secrets.
    name: String,
}

/// A list that does not answer, and is not ours to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stuck {
    list: PathBuf,
    owner: u32,
    users: Vec<User>,
    holder: Option<i32>,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the profiler's list of sessions, {}, does not answer within {ANSWER_TIMEOUT:?}",
            self.list.display()
        )?;
        if let Some(pid) = self.holder {
            write!(f, "; process {pid} holds its lock")?;
        }
        if self.users.is_empty() {
            return write!(
                f,
                "; who uses it cannot be seen from here: when no session of user {} is needed any more, remove the file",
                self.owner
            );
        }
        let users: Vec<String> = self
            .users
            .iter()
            .take(MAX_NAMED)
            .map(|user| format!("{} ({})", user.pid, user.name))
            .collect();
        write!(
            f,
            "; it is used by {} process(es), among them {}: once they have ended the next start makes a new list",
            self.users.len(),
            users.join(", ")
        )
    }
}

/// How the profiler is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Profiler<'a> {
    /// Command line tool of the profiler.
    pub(crate) nsys: &'a Path,
    /// Temporary folder of the profiler.
    pub(crate) tmp: &'a Path,
    /// Environment that it gets.
    pub(crate) environment: &'a [CString],
    /// The signal mask that it gets.
    pub(crate) mask: &'a SigSet,
}

/// Sees to it that a session can start: removes what nobody uses any more, and asks a list that
/// somebody uses. Returns the names of the lists that were removed. The caller has the place in
/// `folder`, or asks without it in `has_place`.
pub(crate) fn look_after(folder: &Path, has_place: bool, profiler: Profiler<'_>) -> Result<Vec<OsString>, Stuck> {
    let until = Instant::now() + RECHECK_TIMEOUT;
    loop {
        let removed = sweep(folder, has_place, profiler.tmp);
        let Some(list) = first_list(folder) else {
            return Ok(removed);
        };
        let name = || list.file_name().map(OsString::from);
        match answers(&list, folder, profiler) {
            Answer::Given => return Ok(removed),
            Answer::Spoilt => return Ok(removed.into_iter().chain(name()).collect()),
            Answer::None => {}
        }
        // Who did not answer had it open.
        if first_list(folder).is_none() || Instant::now() >= until {
            remove_unused(&list, profiler.tmp);
            return if list.exists() {
                Err(describe(list, profiler.tmp))
            } else {
                Ok(name().into_iter().collect())
            };
        }
    }
}

/// Removes what this user's processes of the profiler left in `folder` when they ended; returns the
/// lists among it.
pub(crate) fn sweep(folder: &Path, has_place: bool, tmp: &Path) -> Vec<OsString> {
    // Not two at a time: the second could remove what was made anew behind the first.
    let _turn = if has_place {
        None
    } else {
        match slot::take(folder, LOCK_TIMEOUT) {
            Ok(Some(turn)) => Some(turn),
            _ => return Vec::new(),
        }
    };
    let mut removed = Vec::new();
    let is_young = remove_left(folder, tmp, &mut removed);
    if is_young {
        pause(MIN_STALE_AGE);
        remove_left(folder, tmp, &mut removed);
    }
    removed
}

/// Removes what nobody has open, and says whether something was too young for that. While somebody
/// changes the list nothing is removed.
fn remove_left(folder: &Path, tmp: &Path, lists: &mut Vec<OsString>) -> bool {
    let mut is_young = false;
    // Between the look at a list and its removal nobody of the profiler opens it.
    let Ok(change) = manager_lock::hold_unless_taken(tmp, CHANGE_TIMEOUT) else {
        return false;
    };
    for name in names(folder) {
        let path = folder.join(&name);
        match judge(&path) {
            Judgement::Left => {
                if fs::remove_file(&path).is_ok() && is_list(name.as_bytes()) {
                    lists.push(name);
                }
            }
            Judgement::Young => is_young = true,
            Judgement::Used => {}
        }
    }
    drop(change);
    is_young
}

/// Removes the list in `folder` where it is spoilt for good; says whether it was.
pub(crate) fn remove_spoilt(folder: &Path, tmp: &Path) -> bool {
    let Some(list) = first_list(folder) else { return false };
    let remove = || {
        let file = open(&list).ok()?;
        let holder = manager_lock::holder(tmp)?;
        // With the lock from the first look to the last: nobody can have made a new list in
        // between.
        let holds = || manager_lock::holder(tmp) == Some(holder);
        let is_spoilt = hang::polls(holder, &file.metadata().ok()?, MIN_SPOILT_DURATION, holds) && holds();
        // The lock is its holder's and cannot be had for this. A holder that ends just now gives it
        // to others, who may use the list or make a new one: what stands between the last look and
        // the removal.
        Some(is_spoilt && aside::remove(&list, &file, holds))
    };
    remove().unwrap_or(false)
}

/// Removes a list that does not answer, whoever made it, where nobody has it open and this user
/// may.
fn remove_unused(list: &Path, tmp: &Path) {
    // Whoever has the lock may be about to open it; a session that is started now would wait for
    // that one anyway.
    let Ok(change) = manager_lock::hold_unless_taken(tmp, CHANGE_TIMEOUT) else {
        return;
    };
    if open(list).is_ok_and(|file| !lease::is_written(&file).unwrap_or(true)) {
        fs::remove_file(list).ok();
    }
    drop(change);
}

enum Judgement {
    /// Of this user, and nobody has it open.
    Left,
    /// Of this user, and nobody has it open, but it is so young that it may be in the making.
    Young,
    /// Used, another user's, or not to be told.
    Used,
}

fn judge(path: &Path) -> Judgement {
    let Ok(file) = open(path) else { return Judgement::Used };
    let Ok(metadata) = file.metadata() else {
        return Judgement::Used;
    };
    let is_own = metadata.is_file() && metadata.uid() == geteuid().as_raw();
    if !is_own || lease::is_written(&file).unwrap_or(true) {
        return Judgement::Used;
    }
    let changed = metadata.modified().unwrap_or_else(|_| SystemTime::now());
    // A clock that was set back makes it younger than now.
    match SystemTime::now().duration_since(changed) {
        Ok(age) if age < MIN_STALE_AGE => Judgement::Young,
        _ => Judgement::Left,
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(path)
}

/// The profiler's names in `folder`.
fn names(folder: &Path) -> Vec<OsString> {
    let is_profilers = |name: &OsString| {
        let name = name.as_bytes();
        is_list(name) || name.starts_with(ASIDE) || BESIDE.iter().any(|beside| name.starts_with(beside))
    };
    fs::read_dir(folder).map_or_else(
        |_| Vec::new(),
        |entries| {
            entries
                .filter_map(|entry| Some(entry.ok()?.file_name()))
                .filter(is_profilers)
                .collect()
        },
    )
}

fn first_list(folder: &Path) -> Option<PathBuf> {
    let list = names(folder).into_iter().find(|name| is_list(name.as_bytes()))?;
    Some(folder.join(list))
}

/// What a list says.
enum Answer {
    Given,
    /// Nothing, and it was removed.
    Spoilt,
    None,
}

/// Whether `nsys sessions list` comes to an end in time, whatever that is. A list that is spoilt is
/// removed.
fn answers(list: &Path, folder: &Path, profiler: Profiler<'_>) -> Answer {
    // Without a lock it looks at no list.
    let name = list.file_name().map_or(&b""[..], OsStr::as_bytes);
    let version = name
        .strip_prefix(LIST)
        .and_then(|version| std::str::from_utf8(version).ok());
    if let Some(version) = version.and_then(manager_lock::version) {
        manager_lock::make(profiler.tmp, version).ok();
    }
    let words = [profiler.nsys.as_os_str().as_bytes(), b"sessions", b"list"];
    let command: Vec<CString> = words.iter().filter_map(|word| CString::new(*word).ok()).collect();
    let Ok(nothing) = OpenOptions::new().write(true).open("/dev/null") else {
        return Answer::Given;
    };
    let Ok(pid) = spawn::start(
        &command,
        profiler.environment,
        profiler.mask,
        &Streams::Helper(Some(nothing)),
    ) else {
        // What cannot be asked is told by the launch that follows.
        return Answer::Given;
    };
    let until = Instant::now() + ANSWER_TIMEOUT;
    loop {
        match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) if Instant::now() < until => pause(POLL_INTERVAL),
            // Over a list that was cut short it crashes.
            Ok(WaitStatus::Signaled(..)) => return Answer::None,
            Ok(WaitStatus::StillAlive) => {
                // It waits for the lock or in the list, and changes nothing: it only reads.
                let is_spoilt = remove_spoilt(folder, profiler.tmp);
                kill(pid, Signal::SIGKILL).ok();
                waitpid(pid, None).ok();
                return if is_spoilt { Answer::Spoilt } else { Answer::None };
            }
            _ => return Answer::Given,
        }
    }
}

fn describe(list: PathBuf, tmp: &Path) -> Stuck {
    let metadata = fs::symlink_metadata(&list).ok();
    Stuck {
        owner: metadata.as_ref().map_or(0, MetadataExt::uid),
        users: metadata.map_or_else(Vec::new, |metadata| users(&metadata)),
        holder: manager_lock::holder(tmp),
        list,
    }
}

/// The processes that have a file mapped or open, as far as this user may see.
fn users(of: &fs::Metadata) -> Vec<User> {
    let maps_it = |maps: &str| maps.lines().any(|line| hang::maps_file(line, of));
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
            (maps_it(&maps) || has_open(pid, of)).then(|| User {
                pid,
                name: fs::read_to_string(format!("/proc/{pid}/comm"))
                    .unwrap_or_default()
                    .trim_end()
                    .to_owned(),
            })
        })
        .collect()
}

fn has_open(pid: i32, file: &fs::Metadata) -> bool {
    let is_file = |descriptor: fs::DirEntry| {
        // Followed in the kernel, without a path.
        fs::metadata(descriptor.path()).is_ok_and(|found| (found.dev(), found.ino()) == (file.dev(), file.ino()))
    };
    fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|descriptors| descriptors.filter_map(Result::ok).any(is_file))
}

#[expect(clippy::disallowed_methods, reason = "a supervisor has no runtime")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_there(folder: &Path, name: &str) -> bool {
        folder.join(name).exists()
    }

    /// Files of the profiler, and one of somebody else.
    fn filled() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "NSys-2022.4.2.1",
            "quadd-agent-instance-7",
            "quadd-create-agent-1-2",
            "sem.nsys_sem_9",
            "flopwatch-aside-7-1",
            "torch_7",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        folder
    }

    #[test]
    fn what_nobody_uses_goes_and_what_is_not_the_profilers_stays() {
        let folder = filled();
        let tmp = tempfile::tempdir().unwrap();
        let removed = sweep(folder.path(), false, tmp.path());
        assert_eq!(removed, ["NSys-2022.4.2.1"]);
        let left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["torch_7"]);
    }

    #[test]
    fn what_a_living_process_has_open_stays() {
        let folder = filled();
        let tmp = tempfile::tempdir().unwrap();
        let open = |name: &str| OpenOptions::new().write(true).open(folder.path().join(name)).unwrap();
        let (list, agent) = (open("NSys-2022.4.2.1"), open("quadd-agent-instance-7"));
        assert_eq!(sweep(folder.path(), false, tmp.path()), Vec::<OsString>::new());
        assert!(is_there(folder.path(), "NSys-2022.4.2.1") && is_there(folder.path(), "quadd-agent-instance-7"));
        assert!(!is_there(folder.path(), "sem.nsys_sem_9"));
        drop((list, agent));
        assert_eq!(sweep(folder.path(), false, tmp.path()).len(), 1);
    }

    #[test]
    fn nothing_is_removed_while_somebody_changes_the_list() {
        let folder = filled();
        let tmp = tempfile::tempdir().unwrap();
        manager_lock::make(tmp.path(), "2022.4.2.1").unwrap();
        let change = manager_lock::hold(tmp.path(), Duration::ZERO).unwrap();
        assert!(sweep(folder.path(), false, tmp.path()).is_empty());
        remove_unused(&folder.path().join("NSys-2022.4.2.1"), tmp.path());
        assert!(is_there(folder.path(), "NSys-2022.4.2.1") && is_there(folder.path(), "sem.nsys_sem_9"));
        drop(change);
        assert_eq!(sweep(folder.path(), false, tmp.path()), ["NSys-2022.4.2.1"]);
        assert!(!is_there(folder.path(), "sem.nsys_sem_9"));
    }

    #[test]
    fn a_link_in_the_lists_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (tmp, victim) = (tempfile::tempdir().unwrap(), folder.path().join("victim"));
        fs::write(&victim, "").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("NSys-1")).unwrap();
        assert!(sweep(folder.path(), false, tmp.path()).is_empty());
        assert!(victim.exists());
    }

    #[test]
    fn a_list_that_does_not_answer_and_is_used_is_named_with_its_users() {
        let folder = tempfile::tempdir().unwrap();
        let (tmp, list) = (tempfile::tempdir().unwrap(), folder.path().join("NSys-1"));
        let _user = File::create(&list).unwrap();
        let stuck = describe(list.clone(), tmp.path());
        assert!(stuck.to_string().contains(&list.display().to_string()), "{stuck}");
        assert!(
            stuck
                .users
                .iter()
                .any(|user| u32::try_from(user.pid) == Ok(std::process::id()))
        );
        let unseen = Stuck {
            users: Vec::new(),
            ..stuck.clone()
        };
        assert!(unseen.to_string().contains("remove the file"), "{unseen}");
        let named = Stuck {
            users: vec![User {
                pid: 7,
                name: "nsys".into(),
            }],
            holder: Some(8),
            ..stuck
        };
        assert!(named.to_string().contains("among them 7 (nsys)"), "{named}");
        assert!(named.to_string().contains("process 8 holds its lock"), "{named}");
    }
}
