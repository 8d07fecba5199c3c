//! The processes below this one, and their end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::signals::SignalWatch;

/// How long the end of killed processes is waited for.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a process is given to end its execve(2): between taking the new memory and filling in
/// the arguments it shows none.
const EXEC_TIMEOUT: Duration = Duration::from_millis(100);

/// Reaps every child that has ended; returns their wait statuses, and whether any child is left.
pub fn reap() -> (Vec<(Pid, WaitStatus)>, bool) {
    let mut ended = Vec::new();
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return (ended, true),
            Ok(status) => {
                if let Some(pid) = status.pid() {
                    ended.push((pid, status));
                }
            }
            Err(Errno::EINTR) => {}
            Err(_) => return (ended, false),
        }
    }
}

/// Sends SIGKILL to every process below this one. They get no chance to pass a SIGTERM on to the
/// workload.
pub fn kill_descendants() {
    let parents = parents();
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    for pid in descendants(own, &parents) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
    }
}

/// Kills every descendant and waits until the last is reaped, at most two seconds (a process in an
/// uninterruptible call of the kernel cannot be waited for).
pub fn end_all() {
    let deadline = Instant::now() + KILL_TIMEOUT;
    let Ok(watch) = SignalWatch::new(&[]) else {
        return kill_descendants();
    };
    loop {
        kill_descendants();
        watch.wait(Duration::from_millis(5));
        let (_, alive) = reap();
        if !alive || Instant::now() >= deadline {
            return;
        }
    }
}

/// Sends a signal to every process below `of` but those whose name begins with `spared`. Those that
/// have ended already are fine.
pub(crate) fn signal_below(of: Pid, signal: Signal, spared: &str) {
    for pid in descendants(of.as_raw(), &parents()) {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if !name.starts_with(spared) {
            kill(Pid::from_raw(pid), signal).ok();
        }
    }
}

/// Ends the programs that the profiler's sessions below this process were started around
/// ([`crate::stub`]).
pub fn end_stubs() {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    for pid in descendants(own, &parents()) {
        if fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| is_stub(&line)) {
            kill(Pid::from_raw(pid), Signal::SIGTERM).ok();
        }
    }
}

/// `launcher stub FILE`, as a program of its own or of the agent's.
fn is_stub(line: &[u8]) -> bool {
    let mut words = line.split(|byte| *byte == 0).skip(1);
    match words.next() {
        Some(b"stub") => true,
        Some(b"launcher") => words.next() == Some(b"stub"),
        _ => false,
    }
}

/// Whether a process below this one was started with that argument. One that is in the middle of
/// execve(2) shows no arguments: it is looked at again, for a tenth of a second at most.
#[expect(clippy::disallowed_methods, reason = "a supervisor has no runtime")]
pub fn has(argument: &str) -> bool {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let deadline = Instant::now() + EXEC_TIMEOUT;
    loop {
        let below = descendants(own, &parents());
        let lines: Vec<Option<Vec<u8>>> = below.iter().map(|pid| arguments(*pid)).collect();
        let has = |line: &Vec<u8>| line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes());
        if lines.iter().flatten().any(has) {
            return true;
        }
        if lines.iter().all(Option::is_some) || Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The arguments of a process, each ended by a zero byte; none of one that has ended, and None
/// where they are not there yet.
fn arguments(pid: i32) -> Option<Vec<u8>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    (!line.is_empty() || has_ended(&stat())).then_some(line)
}

/// Whether a stat line, empty where the process is gone, is that of a process that runs no more.
fn has_ended(stat: &str) -> bool {
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_none_or(|state| state.starts_with(['Z', 'X']))
}

/// Parent of every process that /proc shows.
fn parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse::<i32>().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parent_of(&stat)?))
        })
        .collect()
}

/// The parent in a stat line; the name, in brackets, may hold anything.
fn parent_of(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn descendants(of: i32, parents: &BTreeMap<i32, i32>) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut frontier = vec![of];
    while let Some(parent) = frontier.pop() {
        for (child, _) in parents.iter().filter(|(_, of)| **of == parent) {
            if found.insert(*child) {
                frontier.push(*child);
            }
        }
    }
    found
}

/// The exit code that a shell gives for a status.
pub fn exit_code(status: WaitStatus) -> i32 {
    match status {
        WaitStatus::Exited(_, code) => code,
        WaitStatus::Signaled(_, signal, _) => 128 + crate::signals::number(signal),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        assert_eq!(parent_of("12 (a) b) c) S 7 12 12 0"), Some(7));
        assert_eq!(parent_of("12 (a"), None);
    }

    #[test]
    fn a_zombie_has_ended_and_a_process_without_arguments_has_not() {
        assert!(has_ended("12 (a) b) Z 7 12 12 0"));
        assert!(has_ended(""));
        assert!(!has_ended("12 (a) Z) R 7 12 12 0"));
    }

    #[test]
    fn a_stub_is_told_from_the_launch_around_it() {
        assert!(is_stub(b"/t/launcher\0stub\0/r/env\0"));
        assert!(is_stub(b"/bin/flopwatch-agent\0launcher\0stub\0/r/env\0"));
        assert!(!is_stub(b"/t/nsys\0launch\0--wait=all\0/t/launcher\0stub\0/r/env\0"));
        assert!(!is_stub(b""));
    }

    /// Tests that start processes.
    mod crate_tests {
        use super::*;

        #[test]
        fn a_child_is_known_by_an_argument_until_it_has_ended() {
            let mark = "--of-this-test-alone";
            assert!(!has(mark));
            let mut child = std::process::Command::new("sh")
                .args(["-c", "read line", "sh", mark])
                .stdin(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            assert!(has(mark));
            drop(child.stdin.take());
            child.wait().unwrap();
            assert!(!has(mark));
        }
    }

    #[test]
    fn descendants_are_followed_to_the_last() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (9, 0)]);
        assert_eq!(descendants(2, &parents), BTreeSet::from([3, 4]));
    }
}
