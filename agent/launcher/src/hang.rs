//! Whether a process polls for something in a file that it has mapped.
//!
//! The profiler's processes wait for each other within their list by looking again and again, with
//! short sleeps between. While one of them holds the list's lock nobody else may change the list:
//! one that polls then waits for somebody who was killed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::stat::{major, minor};

/// Pause between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Looks at which a thread that polls is asleep at least: one alone may be chance.
const MIN_ASLEEP: u32 = 2;

/// Whether `pid` has `file` mapped and one of its threads polls for as long as `time`, and
/// `goes_on` holds at each look. False where it may not be looked at.
#[expect(clippy::disallowed_methods, reason = "a supervisor has no runtime")]
pub(crate) fn polls(pid: i32, file: &fs::Metadata, time: Duration, goes_on: impl Fn() -> bool) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    if !maps.lines().any(|line| maps_file(line, file)) {
        return false;
    }
    let began = Instant::now();
    let before = threads(pid);
    let mut asleep: BTreeMap<OsString, u32> = BTreeMap::new();
    let mut looks = 0_u32;
    while began.elapsed() < time {
        if !goes_on() {
            return false;
        }
        looks += 1;
        for thread in sleepers(pid) {
            *asleep.entry(thread).or_default() += 1;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let passed = began.elapsed();
    let after = threads(pid);
    asleep.into_iter().any(|(thread, asleep)| {
        let spent = |times: &BTreeMap<OsString, Spent>| times.get(&thread).copied();
        let spent = spent(&before).zip(spent(&after));
        is_polling(asleep, looks, passed, spent.map(|(before, after)| after.since(before)))
    })
}

/// Whether a thread that was asleep for a time at so many looks polls: it sleeps for longer than it
/// computes. The time in which it waited for a processor says nothing of it. Where nobody tells
/// that, it is asleep at most looks.
fn is_polling(asleep: u32, looks: u32, passed: Duration, spent: Option<Spent>) -> bool {
    let Some(Spent { ran, waited }) = spent else {
        return asleep * 2 > looks;
    };
    asleep >= MIN_ASLEEP && passed.saturating_sub(ran + waited) > ran
}

/// What a thread has spent its time with, as the kernel's scheduler counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spent {
    /// On a processor.
    ran: Duration,
    /// Waiting for a processor.
    waited: Duration,
}

impl Spent {
    /// The first two numbers of `schedstat`, in nanoseconds.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text
            .split_ascii_whitespace()
            .map(|field| field.parse().map(Duration::from_nanos));
        Some(Self {
            ran: fields.next()?.ok()?,
            waited: fields.next()?.ok()?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(before.ran),
            waited: self.waited.saturating_sub(before.waited),
        }
    }
}

/// The folders of a process's threads.
fn tasks(pid: i32) -> impl Iterator<Item = fs::DirEntry> {
    let folder = fs::read_dir(format!("/proc/{pid}/task"));
    folder.into_iter().flatten().filter_map(Result::ok)
}

fn threads(pid: i32) -> BTreeMap<OsString, Spent> {
    let spent = |thread: &fs::DirEntry| Spent::parse(&fs::read_to_string(thread.path().join("schedstat")).ok()?);
    tasks(pid)
        .filter_map(|thread| Some((thread.file_name(), spent(&thread)?)))
        .collect()
}

/// The threads of a process that sleep for a time.
fn sleepers(pid: i32) -> impl Iterator<Item = OsString> {
    let sleeps =
        |thread: &fs::DirEntry| fs::read_to_string(thread.path().join("syscall")).is_ok_and(|call| is_sleep(&call));
    tasks(pid).filter(sleeps).map(|thread| thread.file_name())
}

/// The number of the call stands first; `running` for a thread that is in none.
fn is_sleep(call: &str) -> bool {
    let number: Option<libc::c_long> = call
        .split_ascii_whitespace()
        .next()
        .and_then(|number| number.parse().ok());
    number.is_some_and(|number| [libc::SYS_nanosleep, libc::SYS_clock_nanosleep].contains(&number))
}

/// Whether a line of a process's `maps` is of a file.
pub(crate) fn maps_file(line: &str, file: &fs::Metadata) -> bool {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let device = format!("{:02x}:{:02x}", major(file.dev()), minor(file.dev()));
    fields.next() == Some(&device) && fields.next() == Some(&file.ino().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sleep_for_a_time_is_one() {
        assert!(is_sleep(&format!("{} 0x0 0x0 0x7f10 0x0", libc::SYS_clock_nanosleep)));
        for other in [
            format!("{} 0x7f10 0x80", libc::SYS_futex),
            "running".into(),
            String::new(),
        ] {
            assert!(!is_sleep(&other), "{other}");
        }
    }

    #[test]
    fn a_thread_that_waits_for_a_processor_between_its_sleeps_polls_and_one_that_computes_does_not() {
        let passed = Duration::from_millis(1500);
        let spent = |ran, waited| {
            Some(Spent {
                ran: Duration::from_millis(ran),
                waited: Duration::from_millis(waited),
            })
        };
        assert!(is_polling(60, 75, passed, spent(50, 50)), "on a machine with time");
        assert!(is_polling(6, 75, passed, spent(100, 1200)), "behind others");
        assert!(!is_polling(30, 75, passed, spent(900, 100)), "it computes");
        assert!(!is_polling(1, 75, passed, spent(0, 0)), "it may be chance");
        assert!(is_polling(40, 75, passed, None) && !is_polling(30, 75, passed, None));
        assert_eq!(Spent::parse("7000000 9000000 3\n"), spent(7, 9));
        assert_eq!(Spent::parse("7000000"), None);
    }

    #[test]
    fn who_has_not_mapped_a_file_does_not_poll_in_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let time = Duration::from_millis(40);
        assert!(!polls(own, &file.as_file().metadata().unwrap(), time, || true));
    }
}
