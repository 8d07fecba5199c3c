//! A command inside a container's namespaces, as the container's own user, with no privilege left.
//!
//! Entered are the mount, PID, network, IPC and UTS namespaces; not the user namespace (the users are the host's numbers of
//! the container's users) and not the cgroup namespace. The caller needs, over the container: `CAP_SYS_ADMIN` (setns),
//! `CAP_SYS_PTRACE` (the pidfd of another user's process), `CAP_SYS_CHROOT` (setns to a mount namespace), `CAP_SETUID`,
//! `CAP_SETGID`, `CAP_SETPCAP` (to give them up), `CAP_DAC_READ_SEARCH` (files of other users).

use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{DumpableBehavior, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_dumpable_behavior};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};
use serde::{Deserialize, Serialize};

use crate::privilege;
use crate::process::{ProcessId, Procfs};
use crate::reexec::{self, Output, Reexec, ReexecError, Report};

/// How long a command may take to obey SIGTERM before it is killed: a keeper ends its tree in this time.
const OBEY: Duration = Duration::from_secs(4);

/// A cgroup for what is started inside a container, outside both the container's and the agent's: the container's memory is
/// not used up by the profiler, and the profiler's session outlives the agent's container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCgroup {
    /// Where the cgroup file systems are mounted, writable; from a pod with `hostPID` that is `/proc/1/root/sys/fs/cgroup`.
    pub root: PathBuf,
    /// Path below it, for example `flopwatch/1a2b3c4d`; made where absent.
    pub name: String,
}

/// A command to run inside a container.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    /// procfs that shows the host's processes.
    pub proc_root: PathBuf,
    /// A process of the container: its namespaces, root and user are taken.
    pub process: ProcessId,
    /// Where the command's processes are counted; none: where the caller is.
    pub cgroup: Option<OwnCgroup>,
    /// Absolute path in the container, and its arguments.
    pub command: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// How long it may run. A detached one is not bounded.
    pub deadline: Duration,
    /// Start it and leave it running, its output thrown away.
    pub detach: bool,
}

/// Runs the command and waits for its end; with `detach`, for its start.
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
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .map_err(at("open the container's root"))?;
    // What was read by PID is of the process that the descriptor holds only if that has not ended meanwhile.
    if !procfs.is_alive(entry.process) {
        return Err(("find the container's process", "it has ended".into()));
    }
    if let Some(cgroup) = &entry.cgroup {
        join_cgroup(cgroup, &procfs).map_err(|error| ("join the cgroup", error))?;
    }
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
    start(entry)
}

fn start(entry: &Entry) -> Result<Report, Stage> {
    let (program, arguments) = entry
        .command
        .split_first()
        .ok_or(("start the command", "it is empty".to_owned()))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(entry.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null());
    if entry.detach {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let mut child = command
        .spawn()
        .map_err(|error| ("start the command", format!("{program}: {error}")))?;
    if entry.detach {
        // This process ends now: the command gets a reaper outside the container for its parent.
        return Ok(Report::Detached);
    }
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or(("watch the command", "no PID".to_owned()))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(at("watch the command"))?;
    let mut ended = wait(&pidfd, entry.deadline);
    let late = !ended;
    if late {
        pidfd_send_signal(&pidfd, Signal::TERM).ok();
        ended = wait(&pidfd, OBEY);
    }
    if !ended {
        pidfd_send_signal(&pidfd, Signal::KILL).ok();
    }
    let status = child.wait().map_err(at("wait for the command"))?;
    Ok(
        match (status.code(), std::os::unix::process::ExitStatusExt::signal(&status)) {
            _ if late => Report::TimedOut,
            (Some(code), _) => Report::Exited(code),
            (None, signal) => Report::Signaled(signal.unwrap_or(0)),
        },
    )
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

/// The folders of a cgroup, one per hierarchy.
fn hierarchies(cgroup: &OwnCgroup) -> Result<Vec<PathBuf>, String> {
    let name = Path::new(&cgroup.name);
    if cgroup.name.is_empty() || !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(format!("{:?} is not a path below the root", cgroup.name));
    }
    if cgroup.root.join("cgroup.controllers").exists() {
        return Ok(vec![cgroup.root.join(name)]);
    }
    let entries = std::fs::read_dir(&cgroup.root).map_err(|error| format!("{}: {error}", cgroup.root.display()))?;
    // Version 1: one folder per hierarchy, beside them symlinks for the controllers of joint ones.
    let roots = entries.filter_map(|entry| {
        entry
            .ok()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    });
    Ok(roots
        .map(|entry| entry.path())
        .filter(|path| path.join("cgroup.procs").exists())
        .map(|path| path.join(name))
        .collect())
}

/// Makes the cgroup's folders; what is there stays. The roots of the cgroup file systems are closed even to their owner: making
/// the first folder below them takes `CAP_DAC_OVERRIDE`, once per node; below a folder of root's own nothing more than root.
pub fn make_cgroup(cgroup: &OwnCgroup) -> Result<(), String> {
    let hierarchies = hierarchies(cgroup)?;
    if hierarchies.is_empty() {
        return Err(format!("{} holds no cgroup file system", cgroup.root.display()));
    }
    for folder in hierarchies {
        let say = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(&folder).map_err(say)?;
        if folder.join("cpuset.cpus").exists() && !folder.join("cgroup.controllers").exists() {
            inherit_cpuset(&cgroup.root, &folder).map_err(say)?;
        }
    }
    Ok(())
}

fn join_cgroup(cgroup: &OwnCgroup, procfs: &Procfs) -> Result<(), String> {
    make_cgroup(cgroup)?;
    // A container has a cgroup namespace, and where those are delegated (systemd mounts it so) nobody leaves through one. The
    // node's first process is in the outermost; where it is not to be seen, the write below says what is wrong.
    if let Ok(outermost) = std::fs::File::open(procfs.folder(1).join("ns/cgroup")) {
        move_into_thread_name_spaces(outermost.as_fd(), ThreadNameSpaceType::CONTROL_GROUP).ok();
    }
    for folder in hierarchies(cgroup)? {
        std::fs::write(folder.join("cgroup.procs"), "0").map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok(())
}

/// A new cpuset of version 1 is empty and takes no process until it is told which processors and memory are its own: here,
/// those of its parents.
fn inherit_cpuset(root: &Path, folder: &Path) -> std::io::Result<()> {
    let ours: Vec<&Path> = folder
        .ancestors()
        .take_while(|path| path.parent() != Some(root))
        .collect();
    for folder in ours.into_iter().rev() {
        let Some(parent) = folder.parent() else { continue };
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if std::fs::read_to_string(folder.join(file))?.trim().is_empty() {
                std::fs::write(folder.join(file), std::fs::read(parent.join(file))?)?;
            }
        }
    }
    Ok(())
}

/// Removes the cgroup's folders where no process is left in them; true when none remains. Safe to run twice.
pub fn remove_cgroup(cgroup: &OwnCgroup) -> Result<bool, String> {
    let mut gone = true;
    for folder in hierarchies(cgroup)? {
        match std::fs::remove_dir(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => gone = false,
            _ => {}
        }
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_stays_below_its_root() {
        for name in ["", "/x", "../x", "a/../../x"] {
            assert!(
                hierarchies(&OwnCgroup {
                    root: "/nowhere".into(),
                    name: name.into()
                })
                .is_err(),
                "{name:?}"
            );
        }
    }
}
