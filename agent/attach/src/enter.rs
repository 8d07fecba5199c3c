//! Runs a program of ours inside a container's namespaces, as the container's own user and without
//! privileges.
//!
//! What is executed is a sealed copy of a program of the caller's own mount namespace, never a file
//! of the container. The program runs in a cgroup with device rules and limits, and below a filter
//! of system calls; it is not started where one of these cannot be applied.
//!
//! The program is in the container's mount, PID, network, IPC and UTS namespaces. It stays in the
//! caller's user namespace, where the container's users have the host's numbers, and in the
//! caller's cgroup namespace.
//!
//! The caller needs, over the container: `CAP_SYS_ADMIN` (setns), `CAP_SYS_PTRACE` (the pidfd of
//! another user's process), `CAP_SYS_CHROOT` (setns to a mount namespace), `CAP_SETUID`,
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

/// How long a program may take to obey SIGTERM before it is killed. A supervisor ends its tree of
/// processes in this time.
const TERMINATION_TIMEOUT: Duration = Duration::from_secs(4);

/// A program to run inside a container.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// procfs that shows the host's processes.
    pub proc_root: PathBuf,
    /// A process of the container, whose namespaces, root and user the program gets.
    pub process: ProcessId,
    /// Where the kubelet keeps the volumes that the container must show. None only for a container
    /// that no kubelet made: its mounts are not checked.
    pub volumes: Option<KubeletVolumes>,
    /// The cgroup that counts and bounds the program's processes. None only where there is no
    /// container: the processes stay in the caller's cgroup.
    pub cgroup: Option<OwnCgroup>,
    /// The program: a path of the caller's own mount namespace.
    pub program: PathBuf,
    /// The name that the program sees as its own, then its arguments.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// How long the program may run. A detached program has no bound.
    pub deadline: Duration,
    /// Whether the program is left running once it has started, with its output thrown away.
    pub detach: bool,
}

/// Runs the program and waits for its end; with `detach`, for its start alone. Fails where the
/// program could not be started.
pub fn run(reexec: &Reexec, entry: &Entry) -> Result<Output, ReexecError> {
    reexec::run(reexec, "enter", entry, entry.deadline + TERMINATION_TIMEOUT)
}

/// The part of [`run`] in the calling program that was started again: enters the container, runs
/// the program and reports how that ended.
pub(crate) fn child(spec: &str) -> Report {
    let entry: Entry = match serde_json::from_str(spec) {
        Ok(entry) => entry,
        Err(error) => return Report::failed("read the request", error),
    };
    enter(&entry).unwrap_or_else(|(action, error)| Report::failed(action, error))
}

/// What was being done, and what went wrong.
type ActionError = (&'static str, String);

/// Maps what went wrong in `action` to its error.
fn failed_to<E: std::fmt::Display>(action: &'static str) -> impl FnOnce(E) -> ActionError {
    move |error| (action, error.to_string())
}

/// Enters the container and runs the program.
fn enter(entry: &Entry) -> Result<Report, ActionError> {
    // This process gets a process group of its own, which the caller can end as a whole, and no
    // terminal.
    rustix::process::setsid().map_err(failed_to("start a session"))?;
    // No process of the container may trace this process or read its memory, from before any of
    // them can see it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed_to("hide from tracing"))?;
    let procfs = Procfs::new(&entry.proc_root);
    let pidfd = procfs
        .pidfd(entry.process)
        .map_err(failed_to("find the container's process"))?;
    let owner = procfs
        .owner(entry.process)
        .map_err(failed_to("read the container's user"))?;
    let root = rustix::fs::open(
        procfs.folder(entry.process.pid).join("root"),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(failed_to("open the container's root"))?;
    let null_device = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed_to("open the null device"))?;
    if let Some(volumes) = &entry.volumes {
        check_volumes(volumes, &procfs, entry.process).map_err(failed_to("trust the container's volumes"))?;
    }
    // The user and the root were read by PID: they are those of the pidfd's process only if that
    // has not ended meanwhile.
    if !procfs.is_alive(entry.process) {
        return Err(("find the container's process", "it has ended".into()));
    }
    if let Some(cgroup) = &entry.cgroup {
        cgroup
            .join(&procfs, entry.process.pid)
            .map_err(|error| ("join the cgroup", error))?;
        // The cgroup took the container's device rules by that PID too.
        if !procfs.is_alive(entry.process) {
            return Err(("find the container's process", "it has ended".into()));
        }
    }
    // The program is copied while this process still is in the agent's mount namespace, and once it
    // is in the cgroup, which counts the copy's memory.
    let program = Program::copy(&entry.program).map_err(failed_to("copy the program"))?;
    let namespaces = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME;
    move_into_thread_name_spaces(pidfd.as_fd(), namespaces).map_err(failed_to("enter the namespaces"))?;
    // The root of the container's process: in a container that was made by chroot, the root of the
    // mount namespace is another folder.
    rustix::process::fchdir(&root).map_err(failed_to("enter the root"))?;
    rustix::process::chroot(".").map_err(failed_to("enter the root"))?;
    rustix::process::chdir("/").map_err(failed_to("enter the root"))?;
    drop(root);
    privilege::become_user(owner.uid, owner.gid, &owner.groups).map_err(failed_to("give up privileges"))?;
    // The change of user has reset this.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed_to("hide from tracing"))?;
    start(entry, &program, null_device.as_fd())
}

/// Fails where the container shows other volumes than the kubelet's of its pod.
fn check_volumes(volumes: &KubeletVolumes, procfs: &Procfs, process: ProcessId) -> Result<(), VolumeError> {
    let container = procfs.container(process.pid).ok_or(VolumeError::NoPod)?;
    volumes.check(&container.pod_uid, procfs, process.pid)
}

/// The texts as an execve takes them. Fails where one holds a NUL.
fn c_strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<CString>, ActionError> {
    let strings = texts.into_iter().map(|text| CString::new(text.as_bytes()));
    strings.collect::<Result<_, _>>().map_err(failed_to("read the request"))
}

/// Starts the program, and ends it at its deadline.
fn start(entry: &Entry, program: &Program, null_device: BorrowedFd<'_>) -> Result<Report, ActionError> {
    let arguments = c_strings(entry.arguments.iter().map(String::as_str))?;
    let environment: Vec<String> = entry
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let environment = c_strings(environment.iter().map(String::as_str))?;
    // The filter holds for this process too, which only waits from here on.
    seccomp::confine(Profile::Entered).map_err(failed_to("confine the program"))?;
    let child = program
        .start(&arguments, &environment, null_device, entry.detach)
        .map_err(failed_to("start the program"))?;
    if entry.detach {
        // This process ends now, and a process outside the container becomes the program's parent.
        return Ok(Report::Detached);
    }
    let pid = rustix::process::Pid::from_raw(child.as_raw()).ok_or(("watch the program", "no PID".to_owned()))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(failed_to("watch the program"))?;
    let mut ended = wait_for_end(&pidfd, entry.deadline);
    let timed_out = !ended;
    if timed_out {
        pidfd_send_signal(&pidfd, Signal::TERM).ok();
        ended = wait_for_end(&pidfd, TERMINATION_TIMEOUT);
    }
    if !ended {
        pidfd_send_signal(&pidfd, Signal::KILL).ok();
    }
    match waitpid(child, None).map_err(failed_to("wait for the program"))? {
        _ if timed_out => Ok(Report::TimedOut),
        WaitStatus::Exited(_, code) => Ok(Report::Exited(code)),
        WaitStatus::Signaled(_, signal, _) => Ok(Report::Signaled(flopwatch_launcher::signals::number(signal))),
        other => Err(("wait for the program", format!("{other:?}"))),
    }
}

/// Waits for the end of a process, at most for `limit`. Returns whether the process has ended.
fn wait_for_end(pidfd: &std::os::fd::OwnedFd, limit: Duration) -> bool {
    let deadline = std::time::Instant::now() + limit;
    loop {
        let time_left = deadline.saturating_duration_since(std::time::Instant::now());
        let timeout = Timespec::try_from(time_left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(1..) => return true,
            _ if time_left.is_zero() => return false,
            _ => {}
        }
    }
}
