//! Whether a process polls for something in a file that it has mapped.
//!
//! The profiler's processes wait for each other within their list by looking again and again, with short sleeps between. While
//! one of them holds the list's lock nobody else may change the list: one that polls then waits for somebody who was killed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::stat::{major, minor};

/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Whether `pid` has `file` mapped and one of its threads sleeps for a time at most looks, for as long as `time`, and `goes_on`
/// holds at each. A process that works, or waits for the processor, does not sleep. False where it may not be looked at.
#[expect(clippy::disallowed_methods, reason = "a supervisor has no runtime")]
pub(crate) fn polls(pid: i32, file: &fs::Metadata, time: Duration, goes_on: impl Fn() -> bool) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    if !maps.lines().any(|line| maps_file(line, file)) {
        return false;
    }
    let until = Instant::now() + time;
    let (mut looks, mut asleep) = (0_u32, 0_u32);
    while Instant::now() < until {
        if !goes_on() {
            return false;
        }
        looks += 1;
        asleep += u32::from(sleeps(pid));
        std::thread::sleep(LOOK);
    }
    asleep * 2 > looks
}

/// Whether a thread of a process sleeps for a time.
fn sleeps(pid: i32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads
        .filter_map(Result::ok)
        .any(|thread| fs::read_to_string(thread.path().join("syscall")).is_ok_and(|call| is_sleep(&call)))
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
    fn who_has_not_mapped_a_file_does_not_poll_in_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let time = Duration::from_millis(40);
        assert!(!polls(own, &file.as_file().metadata().unwrap(), time, || true));
    }
}
