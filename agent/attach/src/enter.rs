//! A program of ours inside a container's namespaces, as the container's own user, with no privilege left.
//!
//! What is executed is a sealed copy of a program of the caller's own mount namespace, never a file of the container. It runs in
//! a cgroup with device rules and limits, and below a filter of system calls; where one of them cannot be had, nothing enters.
//! Entered are the mount, PID, network, IPC and UTS namespaces; not the user namespace (the users are the host's numbers of
//! the container's users) and not the cgroup namespace. The caller needs, over the container: `CAP_SYS_ADMIN` (setns),
//! `CAP_SYS_PTRACE` (the pidfd of another user's process), `CAP_SYS_CHROOT` (setns to a mount namespace), `CAP_SETUID`,
//! `CAP_SETGID`, `CAP_SETPCAP` (to give them up), `CAP_DAC_READ_SEARCH` (files of other users).

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::wait::{WaitStatus, waitpid};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_dumpable_behavior};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};
use serde::{Deserialize, Serialize};

use crate::own_cgroup::OwnCgroup;
use crate::privilege;
use crate::process::{ProcessId, Procfs};
use crate::program::Program;
use crate::reexec::{self, Output, Reexec, ReexecError, Report};
use crate::seccomp::{self, Profile};
use crate::volumes::{KubeletVolumes, VolumeError};

/// How long a command may take to obey SIGTERM before it is killed: a supervisor ends its tree in this time.
const OBEY: Duration = Duration::from_secs(4);

/// A program to run inside a container.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// procfs that shows the host's processes.
    pub proc_root: PathBuf,
    /// A process of the container: its namespaces, root and user are taken.
    pub process: ProcessId,
    /// Where the kubelet keeps the volumes that the container must show; none, only where no kubelet made it: whatever it shows.
    pub volumes: Option<KubeletVolumes>,
    /// Where its processes are counted and bounded; none, only where there is no container around the program: where the caller is.
    pub cgroup: Option<OwnCgroup>,
    /// The program: a path of the caller's own mount namespace.
    pub program: PathBuf,
    /// The name that it is to see as its own, and its arguments.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// How long it may run. A detached one is not bounded.
    pub deadline: Duration,
    /// Start it and leave it running, its output thrown away.
    pub detach: bool,
}

/// Runs the program and waits for its end; with `detach`, for its start.
pub fn run(reexec: &Reexec, entry: &Entry) -> Result<Output, ReexecError> {
    reexec::run(reexec, "enter", entry, entry.deadline + OBEY)
}

/// The child's side.
pub(crate) fn child(spec: &str) -> Report {
    let entry: Entry = match serde_json::from_str(spec) {
        Ok(entry) => entry,
        Err(error) => return Report::failed("read the request", error),
    };
    enter(&entry).unwrap_or_else(|(stage, error)| Report::failed(stage, error))
}

type Stage = (&'static str, String);

fn at<E: std::fmt::Display>(stage: &'static str) -> impl FnOnce(E) -> Stage {
    move |error| (stage, error.to_string())
}

fn enter(entry: &Entry) -> Result<Report, Stage> {
    // A group of its own, so that whoever started this can end all of it; and no terminal.
    rustix::process::setsid().map_err(at("start a session"))?;
    // Before anything of the container can see this process: nothing in it may trace it or read its memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(at("hide from tracing"))?;
    let procfs = Procfs::new(&entry.proc_root);
    let process = procfs
        .pidfd(entry.process)
        .map_err(at("find the container's process"))?;
    let owner = procfs.owner(entry.process).map_err(at("read the container's user"))?;
    let root = rustix::fs::open(
        procfs.folder(entry.process.pid).join("root"),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(at("open the container's root"))?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(at("open the null device"))?;
    if let Some(volumes) = &entry.volumes {
        check_volumes(volumes, &procfs, entry.process).map_err(at("trust the container's volumes"))?;
    }
    // What was read by PID is of the process that the descriptor holds only if that has not ended meanwhile.
    if !procfs.is_alive(entry.process) {
        return Err(("find the container's process", "it has ended".into()));
    }
    if let Some(cgroup) = &entry.cgroup {
        cgroup
            .join(&procfs, entry.process.pid)
            .map_err(|error| ("join the cgroup", error))?;
        // Its device rules are of this process's cgroup only if that has not ended meanwhile either.
        if !procfs.is_alive(entry.process) {
            return Err(("find the container's process", "it has ended".into()));
        }
    }
    // Of the agent's own mount namespace, while this still is in it; the copy's memory is counted where its processes are.
    let program = Program::copy(&entry.program).map_err(at("copy the program"))?;
    let namespaces = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME;
    move_into_thread_name_spaces(process.as_fd(), namespaces).map_err(at("enter the namespaces"))?;
    // The process's own root: in a container that was made by chroot the namespace's root is another.
    rustix::process::fchdir(&root).map_err(at("enter the root"))?;
    rustix::process::chroot(".").map_err(at("enter the root"))?;
    rustix::process::chdir("/").map_err(at("enter the root"))?;
    drop(root);
    privilege::become_user(owner.uid, owner.gid, &owner.groups).map_err(at("give up privileges"))?;
    // A change of user resets it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(at("hide from tracing"))?;
    start(entry, &program, null.as_fd())
}

fn check_volumes(volumes: &KubeletVolumes, procfs: &Procfs, process: ProcessId) -> Result<(), VolumeError> {
    let container = procfs.container(process.pid).ok_or(VolumeError::NoPod)?;
    volumes.check(&container.pod_uid, procfs, process.pid)
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Vec<CString>, Stage> {
    let words = words.into_iter().map(|word| CString::new(word.as_bytes()));
    words.collect::<Result<_, _>>().map_err(at("read the request"))
}

fn start(entry: &Entry, program: &Program, null: BorrowedFd<'_>) -> Result<Report, Stage> {
    let arguments = words(entry.arguments.iter().map(String::as_str))?;
    let environment: Vec<String> = entry
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let environment = words(environment.iter().map(String::as_str))?;
    // This process too: from here on it only waits.
    seccomp::confine(Profile::Entered).map_err(at("confine the program"))?;
    let child = program
        .start(&arguments, &environment, null, entry.detach)
        .map_err(at("start the program"))?;
    if entry.detach {
        // This process ends now: the program gets a reaper outside the container for its parent.
        return Ok(Report::Detached);
    }
    let pid = rustix::process::Pid::from_raw(child.as_raw()).ok_or(("watch the program", "no PID".to_owned()))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(at("watch the program"))?;
    let mut ended = wait(&pidfd, entry.deadline);
    let late = !ended;
    if late {
        pidfd_send_signal(&pidfd, Signal::TERM).ok();
        ended = wait(&pidfd, OBEY);
    }
    if !ended {
        pidfd_send_signal(&pidfd, Signal::KILL).ok();
    }
    match waitpid(child, None).map_err(at("wait for the program"))? {
        _ if late => Ok(Report::TimedOut),
        WaitStatus::Exited(_, code) => Ok(Report::Exited(code)),
        WaitStatus::Signaled(_, signal, _) => Ok(Report::Signaled(flopwatch_launcher::signals::number(signal))),
        other => Err(("wait for the program", format!("{other:?}"))),
    }
}

/// Waits for a process's end; true when it came in time.
fn wait(pidfd: &std::os::fd::OwnedFd, limit: Duration) -> bool {
    let deadline = std::time::Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(1..) => return true,
            _ if left.is_zero() => return false,
            _ => {}
        }
    }
}
