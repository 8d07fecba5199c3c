//! Processes as the host's procfs shows them: identity, owner, container, and what they have
//! mapped.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::process::{MMapPath, Process};
use serde::{Deserialize, Serialize};

use crate::bounded::{Gate, Late};
use crate::cgroup::{self, ContainerCgroup};

/// Most threads of a process whose times are read.
const MAX_THREADS: usize = 1024;

/// What threads have done with the time in which they had something to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// They ran on a processor.
    pub ran: Duration,
    /// They waited for one.
    pub waited: Duration,
}

/// Why a process could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It has ended, or its PID belongs to another process by now.
    #[error("process {pid} is gone")]
    Gone {
        /// The PID that was asked for.
        pid: i32,
    },
    /// procfs refused or is not understood.
    #[error("cannot read {what} of process {pid}")]
    Read {
        /// The PID that was asked for.
        pid: i32,
        /// The file of procfs.
        what: &'static str,
        /// What procfs said.
        source: procfs::ProcError,
    },
    /// The process's memory did not answer in time.
    #[error("cannot read {what} of process {pid} in time")]
    Late {
        /// The PID that was asked for.
        pid: i32,
        /// The file of procfs.
        what: &'static str,
        /// Why its file did not answer.
        source: Late,
    },
    /// The kernel gave no descriptor of the process.
    #[error("cannot open process {pid}")]
    Open {
        /// The PID that was asked for.
        pid: i32,
        /// Error of the kernel.
        source: io::Error,
    },
}

/// A process for good: a PID alone may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// PID in the namespace of the procfs it was read from.
    pub pid: i32,
    /// Start, in clock ticks since the boot.
    pub start_time: u64,
}

/// Who a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// PID in the innermost namespace, the one that the container itself sees.
    pub inner_pid: i32,
    /// Seccomp mode: 0 none, 1 strict, 2 filter.
    pub seccomp: u32,
}

/// What of interest a process has mapped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each library is mapped or not, whatever others are"
)]
pub struct Mapped {
    /// The CUDA driver's library.
    pub cuda: bool,
    /// CUPTI's library, by its path in the container.
    pub cupti: Option<String>,
    /// Whether NCCL is mapped.
    pub nccl: bool,
    /// Whether PyTorch is mapped, which has Kineto in it.
    pub torch: bool,
    /// Whether DCGM's module is mapped that holds the GPU's counters. DCGM loads it with the first
    /// metric that needs it.
    pub dcgm_profiling: bool,
    /// Whether JAX's library is mapped, which has the service of its profiler.
    pub jax: bool,
    /// Whether the C library is musl.
    pub musl: bool,
    /// Injection libraries of profilers, by file name.
    pub profilers: BTreeSet<String>,
}

/// Beginnings of the file names of profilers' injection libraries.
const PROFILERS: &[&str] = &[
    "libToolsInjection",
    "libparcagpucupti",
    "libzymtrace",
    "libcuda-injection",
    "libdd_cuda",
    "libNvNsightInjection",
];

/// Beginnings of the file names of the libraries that have JAX's profiler, of this and of earlier
/// versions.
const JAX: &[&str] = &["libjax_common.so", "xla_extension."];

impl Mapped {
    /// Sorts mapped paths.
    pub fn from_paths<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut mapped = Self::default();
        for path in paths {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            mapped.cuda |= name.starts_with("libcuda.so");
            mapped.nccl |= name.starts_with("libnccl.so");
            mapped.torch |= name.starts_with("libtorch_cpu.so") || name.starts_with("libtorch.so");
            mapped.dcgm_profiling |= name.starts_with("libdcgmmoduleprofiling.so");
            mapped.musl |= name.starts_with("ld-musl-");
            mapped.jax |= JAX.iter().any(|library| name.starts_with(library));
            if name.starts_with("libcupti.so") {
                mapped.cupti = Some(path.display().to_string());
            }
            if PROFILERS.iter().any(|profiler| name.starts_with(profiler)) {
                mapped.profilers.insert(name.to_owned());
            }
        }
        mapped
    }
}

/// A procfs that shows the host's processes.
///
/// What needs a process's memory (its command line, environment and maps) waits for as long as that
/// process waits for a page of a file: it is read on threads of their own, which are left behind.
/// Names, states, cgroups and mounts need none.
#[derive(Debug, Clone)]
pub struct Procfs {
    root: PathBuf,
    gate: Gate,
    /// How many pods deep the caller is itself.
    depth: usize,
}

/// Reads of the memory of one container's processes that may be under way at once.
const MAX_CONCURRENT_READS: u32 = 8;
/// How long the memory of a process is waited for.
const MEMORY_READ_TIMEOUT: Duration = Duration::from_secs(2);

impl Default for Procfs {
    fn default() -> Self {
        Self::new("/proc")
    }
}

impl Procfs {
    /// Looks below `root`, for example `/proc` in a pod with `hostPID`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        let own = std::fs::read_to_string(root.join("self/cgroup")).unwrap_or_default();
        Self {
            root,
            gate: Gate::default(),
            depth: cgroup::depth(&own),
        }
    }

    /// Path at which procfs is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a process.
    pub fn folder(&self, pid: i32) -> PathBuf {
        self.root.join(pid.to_string())
    }

    fn open(&self, pid: i32, what: &'static str) -> Result<Process, ProcessError> {
        Process::new_with_root(self.folder(pid)).map_err(|source| error(pid, what, source))
    }

    /// Reads what needs the memory of a process.
    fn memory<T: Send + 'static>(
        &self,
        pid: i32,
        what: &'static str,
        read: impl FnOnce(&Self) -> Result<T, ProcessError> + Send + 'static,
    ) -> Result<T, ProcessError> {
        let own = self.clone();
        // What hangs in one container leaves the others their threads.
        let group = self
            .container(pid)
            .map_or_else(|| pid.to_string(), |container| container.container_id);
        let read = self
            .gate
            .among(&group, MAX_CONCURRENT_READS, MEMORY_READ_TIMEOUT, move || read(&own));
        read.unwrap_or_else(|source| Err(ProcessError::Late { pid, what, source }))
    }

    /// Every process there is.
    pub fn pids(&self) -> io::Result<Vec<i32>> {
        let entries = std::fs::read_dir(&self.root)?;
        Ok(entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect())
    }

    /// Identity of the process that has this PID now.
    pub fn identify(&self, pid: i32) -> Result<ProcessId, ProcessError> {
        let stat = self
            .open(pid, "stat")?
            .stat()
            .map_err(|source| error(pid, "stat", source))?;
        Ok(ProcessId {
            pid,
            start_time: stat.starttime,
        })
    }

    /// Whether the PID still is this process (a zombie is not).
    pub fn is_alive(&self, process: ProcessId) -> bool {
        self.open(process.pid, "stat")
            .and_then(|open| open.stat().map_err(|source| error(process.pid, "stat", source)))
            .is_ok_and(|stat| stat.starttime == process.start_time && stat.state != 'Z' && stat.state != 'X')
    }

    /// A descriptor that stays with the process, checked to be the one that was meant.
    pub fn pidfd(&self, process: ProcessId) -> Result<OwnedFd, ProcessError> {
        let gone = ProcessError::Gone { pid: process.pid };
        let Some(pid) = rustix::process::Pid::from_raw(process.pid) else {
            return Err(gone);
        };
        let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).map_err(|source| {
            ProcessError::Open {
                pid: process.pid,
                source: source.into(),
            }
        })?;
        // Read after the descriptor was opened: if it is the same process now, it was then.
        if self.identify(process.pid)? == process {
            Ok(fd)
        } else {
            Err(gone)
        }
    }

    /// Who the process is.
    pub fn owner(&self, process: ProcessId) -> Result<Owner, ProcessError> {
        let pid = process.pid;
        let status = self
            .open(pid, "status")?
            .status()
            .map_err(|source| error(pid, "status", source))?;
        Ok(Owner {
            uid: status.euid,
            gid: status.egid,
            groups: status.groups,
            inner_pid: status.nspid.and_then(|pids| pids.last().copied()).unwrap_or(status.pid),
            seccomp: status.seccomp.unwrap_or(0),
        })
    }

    /// Whether the process has CAP_SYS_ADMIN on the node: in the caller's user namespace and not in
    /// one of its own.
    pub fn is_administrator(&self, process: ProcessId) -> Result<bool, ProcessError> {
        const SYS_ADMIN: u32 = 21;
        let pid = process.pid;
        let open = self.open(pid, "status")?;
        let status = open.status().map_err(|source| error(pid, "status", source))?;
        if status.capeff >> SYS_ADMIN & 1 == 0 {
            return Ok(false);
        }
        self.shares_users(pid)
    }

    /// Whether the process is in the caller's user namespace.
    pub fn shares_users(&self, pid: i32) -> Result<bool, ProcessError> {
        let namespace = |folder: PathBuf| {
            std::fs::read_link(folder.join("ns/user")).map_err(|source| ProcessError::Open { pid, source })
        };
        Ok(namespace(self.folder(pid))? == namespace(self.root.join("self"))?)
    }

    /// Processor time that the process has used, and those of its children that it has waited for.
    pub fn processor_time(&self, process: ProcessId) -> Result<Duration, ProcessError> {
        let pid = process.pid;
        let stat = self.open(pid, "stat")?.stat();
        let stat = stat.map_err(|source| error(pid, "stat", source))?;
        if stat.starttime != process.start_time {
            return Err(ProcessError::Gone { pid });
        }
        let waited_for = [stat.cutime, stat.cstime].map(|ticks| u64::try_from(ticks).unwrap_or(0));
        let ticks = [stat.utime, stat.stime]
            .into_iter()
            .chain(waited_for)
            .fold(0, u64::saturating_add);
        let second = procfs::ticks_per_second().max(1);
        Ok(Duration::from_millis(ticks.saturating_mul(1000) / second))
    }

    /// What the threads of the process that live have done with their time, by the kernel's
    /// scheduler; of a process with more than 1,024 of them, what so many have.
    pub fn scheduled(&self, process: ProcessId) -> Result<Scheduled, ProcessError> {
        let pid = process.pid;
        let opened = self.open(pid, "task")?;
        let start_time = opened.stat().map_err(|source| error(pid, "stat", source))?.starttime;
        if start_time != process.start_time {
            return Err(ProcessError::Gone { pid });
        }
        let threads = opened.tasks().map_err(|source| error(pid, "task", source))?;
        // One that ends meanwhile is left out.
        let times = threads
            .take(MAX_THREADS)
            .filter_map(|thread| thread.ok()?.schedstat().ok());
        Ok(times.fold(Scheduled::default(), |sum, times| Scheduled {
            ran: sum.ran.saturating_add(Duration::from_nanos(times.sum_exec_runtime)),
            waited: sum.waited.saturating_add(Duration::from_nanos(times.run_delay)),
        }))
    }

    /// How many processors of the machine are online; none where the kernel does not say it.
    pub fn processors(&self) -> Option<u32> {
        let text = std::fs::read_to_string(self.root.join("stat")).ok()?;
        // `cpu` without a number is their sum.
        let numbered = |line: &&str| {
            let number = line.strip_prefix("cpu");
            number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
        };
        u32::try_from(text.lines().filter(numbered).count())
            .ok()
            .filter(|processors| *processors > 0)
    }

    /// The name of the process, which the kernel cuts to 15 bytes; none when it is gone.
    pub fn name(&self, pid: i32) -> Option<String> {
        let name = std::fs::read_to_string(self.folder(pid).join("comm")).ok()?;
        Some(name.trim_end_matches('\n').to_owned())
    }

    /// A parameter of the loaded NVIDIA driver, as `RmProfilingAdminOnly`; none without the driver
    /// or the parameter.
    pub fn driver_parameter(&self, name: &str) -> Option<u64> {
        let text = std::fs::read_to_string(self.root.join("driver/nvidia/params")).ok()?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.trim().parse().ok()
    }

    /// The container that the process is in; none on the host.
    pub fn container(&self, pid: i32) -> Option<ContainerCgroup> {
        cgroup::parse(
            &std::fs::read_to_string(self.folder(pid).join("cgroup")).ok()?,
            self.depth,
        )
    }

    /// The container whose cgroup is at `path` in the node's tree of cgroups, or that a cgroup
    /// above it is of.
    pub fn container_of_path(&self, path: &Path) -> Option<ContainerCgroup> {
        cgroup::parse(&format!("0::/{}", path.to_str()?), self.depth)
    }

    /// The processes of a container, by its 64 hex digits, in the order of their PIDs in it: the
    /// first is its PID 1 unless the pod shares one PID namespace.
    pub fn of_container(&self, container_id: &str) -> io::Result<Vec<ProcessId>> {
        self.processes(|pid| self.is_in(pid, container_id))
    }

    /// Whether the process `pid` is in the container, by its 64 hex digits.
    pub fn is_in(&self, pid: i32, container_id: &str) -> bool {
        let container = self.container(pid);
        container.is_some_and(|container| container.container_id == container_id)
    }

    /// The processes that `is_wanted` says true of, in the order of their pids in their own
    /// namespaces.
    pub fn processes(&self, is_wanted: impl Fn(i32) -> bool) -> io::Result<Vec<ProcessId>> {
        let mut found: Vec<(i32, ProcessId)> = self
            .pids()?
            .into_iter()
            .filter(|pid| is_wanted(*pid))
            .filter_map(|pid| self.identify(pid).ok())
            .filter_map(|process| Some((self.owner(process).ok()?.inner_pid, process)))
            .collect();
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, process)| process).collect())
    }

    /// What the process has mapped.
    pub fn mapped(&self, process: ProcessId) -> Result<Mapped, ProcessError> {
        let pid = process.pid;
        let maps = self.memory(pid, "maps", move |procfs| {
            let maps = procfs.open(pid, "maps")?.maps();
            maps.map_err(|source| error(pid, "maps", source))
        })?;
        let paths = maps.into_iter().filter_map(|map| match map.pathname {
            MMapPath::Path(path) => Some(path),
            _ => None,
        });
        let paths: BTreeSet<PathBuf> = paths.collect();
        Ok(Mapped::from_paths(paths.iter().map(PathBuf::as_path)))
    }

    /// The named variables of the environment that the process started with. No other leaves this
    /// function.
    pub fn variables(&self, process: ProcessId, names: &[&str]) -> Result<BTreeMap<String, String>, ProcessError> {
        let pid = process.pid;
        let bytes = self.memory(pid, "environ", move |procfs| {
            std::fs::read(procfs.folder(pid).join("environ")).map_err(|source| ProcessError::Open { pid, source })
        })?;
        Ok(select_variables(&bytes, names))
    }

    /// The words of the command line.
    pub fn command_line(&self, pid: i32) -> Result<Vec<String>, ProcessError> {
        self.memory(pid, "cmdline", move |procfs| {
            let words = procfs.open(pid, "cmdline")?.cmdline();
            words.map_err(|source| error(pid, "cmdline", source))
        })
    }
}

fn error(pid: i32, what: &'static str, source: procfs::ProcError) -> ProcessError {
    match source {
        procfs::ProcError::NotFound(_) => ProcessError::Gone { pid },
        // A process that ends while it is read.
        procfs::ProcError::Io(ref io, _) if io.raw_os_error() == Some(nix::libc::ESRCH) => ProcessError::Gone { pid },
        source => ProcessError::Read { pid, what, source },
    }
}

fn select_variables(environ: &[u8], names: &[&str]) -> BTreeMap<String, String> {
    environ
        .split(|byte| *byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='))
        .filter(|(name, _)| names.contains(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_variables_are_taken() {
        let found = select_variables(b"SECRET=1\0KINETO_USE_DAEMON=1\0X\0", &["KINETO_USE_DAEMON", "ABSENT"]);
        assert_eq!(found, BTreeMap::from([("KINETO_USE_DAEMON".into(), "1".into())]));
    }

    #[test]
    fn mapped_libraries_are_sorted_by_name() {
        let paths = [
            "/lib/libcuda.so.550",
            "/cuda/libcupti.so.12",
            "/x/libToolsInjection64.so",
            "/torch/lib/libtorch_cpu.so",
            "/lib/libc.so.6",
            "/site-packages/jaxlib/libjax_common.so",
        ];
        let mapped = Mapped::from_paths(paths.iter().map(Path::new));
        assert!(mapped.cuda && mapped.jax && mapped.torch && !mapped.nccl);
        assert_eq!(mapped.cupti.as_deref(), Some("/cuda/libcupti.so.12"));
        assert_eq!(mapped.profilers, BTreeSet::from(["libToolsInjection64.so".into()]));
    }

    #[test]
    fn a_program_of_musl_is_told_by_its_loader() {
        let mapped = |path: &str| Mapped::from_paths([Path::new("/bin/program"), Path::new(path)]);
        assert!(mapped("/lib/ld-musl-x86_64.so.1").musl);
        assert!(!mapped("/lib64/ld-linux-x86-64.so.2").musl);
    }

    #[test]
    fn dcgm_holds_counters_where_its_module_is_mapped() {
        let mapped = |path: &str| Mapped::from_paths([Path::new(path)]);
        assert!(mapped("/usr/lib/libdcgmmoduleprofiling.so.4").dcgm_profiling);
        assert!(!mapped("/usr/lib/libdcgmmodulehealth.so.4").dcgm_profiling);
    }

    #[test]
    fn a_parameter_of_the_driver_is_read_by_its_whole_name() {
        let folder = tempfile::tempdir().unwrap();
        let procfs = Procfs::new(folder.path());
        assert_eq!(procfs.driver_parameter("RmProfilingAdminOnly"), None);
        std::fs::create_dir_all(folder.path().join("driver/nvidia")).unwrap();
        let text = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\nRegistryDwords: \"\"\n";
        std::fs::write(folder.path().join("driver/nvidia/params"), text).unwrap();
        assert_eq!(procfs.driver_parameter("RmProfilingAdminOnly"), Some(1));
        assert_eq!(procfs.driver_parameter("RmProfiling"), None);
        assert_eq!(procfs.driver_parameter("RegistryDwords"), None, "it is no number");
    }

    #[test]
    fn a_process_has_a_name_and_the_rights_that_the_kernel_says() {
        let procfs = Procfs::default();
        let pid = i32::try_from(std::process::id()).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let rights = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        let rights = u64::from_str_radix(rights.trim(), 16).unwrap();
        let own = procfs.identify(pid).unwrap();
        assert_eq!(procfs.is_administrator(own).unwrap(), rights & 1 << 21 != 0);
        assert!(
            procfs.name(pid).unwrap().starts_with("flopwatch_attac"),
            "cut by the kernel"
        );
    }

    #[test]
    fn a_process_is_itself_and_a_reused_pid_is_not() {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(procfs.is_alive(own));
        procfs.pidfd(own).unwrap();
        assert!(procfs.processor_time(own).unwrap() < Duration::from_hours(1));
        let other = ProcessId {
            start_time: own.start_time + 1,
            ..own
        };
        assert!(!procfs.is_alive(other));
        assert!(matches!(procfs.pidfd(other), Err(ProcessError::Gone { .. })));
        assert!(matches!(procfs.processor_time(other), Err(ProcessError::Gone { .. })));
        assert_eq!(procfs.owner(own).unwrap().uid, nix::unistd::geteuid().as_raw());
    }
}
