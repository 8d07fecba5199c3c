//! The node as the root of its machine sees it: the processes of pods, their files, and signals to
//! them.
//!
//! Faults are injected from here. It works where the test runs on the machine that the node is on,
//! as with the local cluster.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{self as unix, UnixDatagram};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::eventually;
use crate::pods::first_status;

/// A process that cannot be mistaken for a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Process id on the node.
    pub pid: i32,
    /// Clock ticks from boot to its start.
    pub start: u64,
}

impl Process {
    /// The process of that number, if it is one that still runs.
    pub fn find(pid: i32) -> Option<Self> {
        let (state, start) = stat(pid)?;
        (!matches!(state, 'Z' | 'X')).then_some(Self { pid, start })
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        Self::find(self.pid) == Some(self)
    }

    /// Whether a signal holds it stopped.
    pub fn is_stopped(self) -> bool {
        matches!(stat(self.pid), Some(('T', start)) if start == self.start)
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn ended(self) -> Result<()> {
        eventually(&format!("process {} to end", self.pid), || async {
            Ok((!self.is_alive()).then_some(()))
        })
        .await
    }

    /// Sends a signal. That it has ended by now is no error.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn signal(self, signal: Signal) -> Result<()> {
        if self.is_alive()
            && let Err(error) = kill(Pid::from_raw(self.pid), signal)
            && error != nix::errno::Errno::ESRCH
        {
            return Err(error).with_context(|| format!("{signal} to process {}", self.pid));
        }
        Ok(())
    }

    /// Words of the command line of the process.
    pub fn words(self) -> Vec<String> {
        let bytes = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        bytes
            .split(|&byte| byte == 0)
            .filter(|word| !word.is_empty())
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    }

    /// Whether a word of its command line is `name` or a path that ends with it.
    pub fn runs(self, name: &str) -> bool {
        self.words()
            .iter()
            .any(|word| Path::new(word).file_name().is_some_and(|file| file == name))
    }

    /// Path of the root folder of the process, seen from outside.
    pub fn root(self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.pid))
    }

    /// Bytes of memory that it has for itself: pages of its program, of which more are in memory
    /// the more of it has run, do not count.
    ///
    /// # Errors
    /// When it has ended.
    pub fn own_bytes(self) -> Result<u64> {
        self.memory("RssAnon:")
    }

    /// Most bytes of memory that it has had.
    ///
    /// # Errors
    /// When it has ended.
    pub fn peak_bytes(self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    /// A line of its status (proc_pid_status(5)) that is in KiB, in bytes.
    fn memory(self, name: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kibibytes.context("a process without memory")?.parse::<u64>()? << 10)
    }

    /// The process that started it, or took it over.
    pub fn parent(self) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        Self::find(line.trim().parse().ok()?)
    }

    /// Its number within its innermost PID namespace.
    pub fn inner_pid(self) -> Option<i32> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        line.split_whitespace().next_back()?.parse().ok()
    }
}

/// State and start of a process. Its name, which stands before them in brackets, may hold anything.
fn stat(pid: i32) -> Option<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Processes with `part` in the path of their cgroup, in the order of their numbers.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn in_cgroup(part: &str) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(process) = pid.and_then(Process::find) else {
            continue;
        };
        let cgroup = std::fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        if cgroup.contains(part) {
            found.push(process);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The processes of a pod's own containers.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn of_pod(pod: &Pod) -> Result<Vec<Process>> {
    let uid = pod.uid().context("a pod without a UID")?;
    in_cgroup(&format!("pod{uid}"))
}

/// What runs beside the first container of a pod on the profiler's account: its session, and
/// control commands.
///
/// # Errors
/// When the pod has no container yet or `/proc` cannot be read.
pub fn sessions_of(pod: &Pod) -> Result<Vec<Process>> {
    let id = container_id(pod)?;
    let short = id.get(..16).context("a container ID that is too short")?;
    in_cgroup(&format!("/flopwatch/{short}"))
}

/// PID 1 of a pod's first container.
///
/// # Errors
/// When there is none.
pub fn first_process(pod: &Pod) -> Result<Process> {
    let id = container_id(pod)?;
    in_cgroup(&id)?
        .into_iter()
        .find(|process| process.inner_pid() == Some(1))
        .with_context(|| format!("no process of container {id} is on this machine"))
}

/// Listens where a process has its network: what a pod would serve, without an image for it.
///
/// # Errors
/// When the process has ended, or the address is taken there.
pub fn listen_beside(process: Process, address: SocketAddr) -> Result<TcpListener> {
    beside(process, move || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    })
}

/// Takes an abstract name of Unix sockets where a process has its network. Nothing is read from the
/// socket, and nothing waits for it.
///
/// # Errors
/// When the process has ended, or the name is taken there.
pub fn bind_beside(process: Process, name: &str) -> Result<UnixDatagram> {
    let address = unix::SocketAddr::from_abstract_name(name)?;
    beside(process, move || {
        let socket = UnixDatagram::bind_addr(&address)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    })
}

/// Makes a socket where a process has its network. A thread of its own changes over; the socket
/// stays where it was made.
fn beside<T: Send + 'static>(process: Process, make: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let network = File::open(format!("/proc/{}/ns/net", process.pid))?;
    let thread = std::thread::spawn(move || {
        setns(network, CloneFlags::CLONE_NEWNET)?;
        make()
    });
    thread
        .join()
        .map_err(|_panic| anyhow!("the thread in the network ended"))?
}

/// The first container's ID, without the runtime's name.
///
/// # Errors
/// When the kubelet has told none.
pub fn container_id(pod: &Pod) -> Result<String> {
    let id = first_status(pod).and_then(|one| one.container_id.clone());
    let id = id.context("the pod has no container yet")?;
    Ok(id.rsplit_once('/').map_or(id.clone(), |(_, id)| id.to_owned()))
}

/// The API server of the local cluster: its process file lies beside the kubeconfig's folder. None
/// for another cluster.
pub fn api_server() -> Option<Process> {
    let kubeconfig = PathBuf::from(std::env::var_os("KUBECONFIG")?);
    let file = kubeconfig.parent()?.parent()?.join("run/kube-apiserver.pid");
    let text = std::fs::read_to_string(file).ok()?;
    let mut words = text.split_whitespace();
    let pid = words.next()?.parse().ok()?;
    let start = words.next()?.parse().ok()?;
    Some(Process { pid, start }).filter(|process| process.is_alive())
}

/// A process that stands still as long as this value lives.
#[derive(Debug)]
pub struct StoppedProcess(Process);

impl StoppedProcess {
    /// Stops it.
    ///
    /// # Errors
    /// When it has ended.
    pub fn hold(process: Process) -> Result<Self> {
        process.signal(Signal::SIGSTOP)?;
        ensure!(process.is_alive(), "process {} ended before it was held", process.pid);
        Ok(Self(process))
    }

    /// Process that is held.
    pub const fn process(&self) -> Process {
        self.0
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        self.0.signal(Signal::SIGCONT).ok();
    }
}

#[cfg(test)]
mod crate_tests {
    use super::*;

    #[test]
    fn a_process_is_held_and_released() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::find(i32::try_from(child.id()).unwrap()).unwrap();
        let held = StoppedProcess::hold(process).unwrap();
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !process.is_stopped() && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert!(process.is_stopped());
        drop(held);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.is_alive());
    }
}
