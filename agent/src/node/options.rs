//! Flags of `run`. Those that differ from pod to pod come from the environment.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use flopwatch_api::session::StorageMode;
use flopwatch_artifacts::ConversionLimits;
use flopwatch_artifacts::object_store::StoreArguments;
use flopwatch_attach::sandbox::ToolCgroups;
use flopwatch_attach::sandbox::users::{UserRange, Users};
use flopwatch_pipeline::disk::Floor;
use flopwatch_pipeline::steps;
use tokio::sync::Semaphore;
use tracing::warn;

use crate::node::memory;
use crate::node::recordings::Recordings;
use crate::node::size::bytes;
use crate::observability::LogFormat;
use crate::profilers::Limits;

/// Where a container sees its own cgroup.
const OWN_CGROUP: &str = "/sys/fs/cgroup";

/// What an agent is told.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Node whose captures are carried out.
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node_name: String,
    /// Namespace that the agent runs in.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAME", default_value = "flopwatch-system")]
    pub namespace: String,
    /// Pod that the agent runs as.
    #[arg(long, env = "POD_NAME", value_name = "NAME", default_value = "flopwatch-agent")]
    pub pod_name: String,
    /// Address at which others reach the artifacts of this node.
    #[arg(long, env = "POD_IP", value_name = "ADDRESS")]
    pub advertise_address: IpAddr,
    /// procfs that shows the host's processes (the pod needs hostPID).
    #[arg(long, value_name = "DIR", default_value = "/proc")]
    pub proc: PathBuf,
    /// The host's cgroup file systems, writable: a profiler's session gets a cgroup of its own.
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/cgroup")]
    pub cgroup_root: PathBuf,
    /// The launcher, a static program: the one program of the agent's that enters containers
    /// [default: flopwatch-launcher beside this program].
    #[arg(long, value_name = "FILE")]
    pub launcher: Option<PathBuf>,
    /// Memory that the profiler may take in one container, beside the container's own: bytes, or a
    /// number with KiB, MiB, GiB.
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = bytes)]
    pub profiler_memory_bytes: u64,
    /// Processes and threads that the profiler may have in one container.
    #[arg(long, value_name = "COUNT", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..))]
    pub profiler_processes: u32,
    /// Processor time that the profiler may take in one container, in thousandths of one core.
    #[arg(long, value_name = "MILLICORES", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(10..))]
    pub profiler_cpu_millis: u32,
    /// Folder of artifacts; it should outlive the pod.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/flopwatch")]
    pub data_dir: PathBuf,
    /// Folder of captures under way; it should outlive the pod [default: spool in the data folder].
    #[arg(long, value_name = "DIR")]
    pub spool_dir: Option<PathBuf>,
    /// Folder with host-linux-x64 and target-linux-x64 of Nsight Systems.
    #[arg(long, value_name = "DIR", default_value = "/opt/nsys")]
    pub tools_dir: PathBuf,
    /// Folder of an earlier version of Nsight Systems, laid out alike, whose raw captures are read
    /// too; may be given again.
    #[arg(long, value_name = "DIR")]
    pub older_tools_dir: Vec<PathBuf>,
    /// Address of the artifact service (HTTPS).
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,
    /// Folder in memory for tls.crt and tls.key: the agent makes its own key there, and the
    /// controller signs the certificate.
    #[arg(long, value_name = "DIR", default_value = "/run/flopwatch-tls")]
    pub tls_dir: PathBuf,
    /// DNS name under which any agent is asked for; its certificate has that of its node below it.
    #[arg(
        long,
        env = "FLOPWATCH_SERVER_NAME",
        value_name = "NAME",
        default_value = "flopwatch-agent.flopwatch.svc"
    )]
    pub server_name: String,
    /// Address of /healthz and /readyz (HTTP).
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9465")]
    pub listen_health: SocketAddr,
    /// Address of /metrics (HTTPS), for those who may read it.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:9464")]
    pub listen_metrics: SocketAddr,
    /// The NVML library [default: libnvidia-ml.so.1 where the loader finds it].
    #[arg(long, value_name = "FILE")]
    pub nvml_library: Option<PathBuf>,
    /// Have the CUDA tracer record with drivers of which no GPU has shown yet that it works, where
    /// a session asks for it by name: for tests of it.
    #[arg(long)]
    pub allow_unproven_cuda: bool,
    /// DCGM's dcgmi: where DCGM holds the GPUs' counters, it is paused while Nsight Compute
    /// profiles [default: none, and it never is].
    #[arg(long, env = "FLOPWATCH_DCGMI", value_name = "FILE")]
    pub dcgmi: Option<PathBuf>,
    /// Address of the DCGM host engine that is paused [default: that of dcgmi].
    #[arg(long, env = "FLOPWATCH_DCGM_HOST", value_name = "HOST:PORT", requires = "dcgmi")]
    pub dcgm_host: Option<String>,
    /// Namespace whose pods are believed to be services of the node's GPUs when their processes
    /// have names of DCGM or of the Multi-Process Service; may be given again. What runs in no pod
    /// is believed anyway [default: none].
    #[arg(long, value_name = "NAMESPACE")]
    pub gpu_service_namespace: Vec<String>,
    /// Socket at which the kubelet says which container has which GPUs (below its root folder:
    /// pod-resources/kubelet.sock) [default: none, and it is not asked].
    #[arg(long, value_name = "FILE")]
    pub pod_resources: Option<PathBuf>,
    /// How long samples of GPUs and containers are kept in memory, for what lies before a capture;
    /// 0: they are not.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u16).range(..=3600))]
    pub metrics_ring_seconds: u16,
    /// Names of NVTX ranges that have Prometheus series, of each container with a flight recorder:
    /// those that took the longest; 0: none.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=64))]
    pub range_metrics: u16,
    /// Captures that are recorded at once on this node, and that are processed at once.
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_captures: u16,
    /// Largest raw capture: bytes, or a number with KiB, MiB, GiB.
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = bytes)]
    pub max_capture_bytes: u64,
    /// Most memory that what a window records may take in the programs, where the window cannot be
    /// ended (PyTorch's Kineto): a window that would take more is shortened. What a container's
    /// limit leaves, and half of what the node has free, may be less.
    #[arg(long, value_name = "BYTES", default_value = "32GiB", value_parser = bytes)]
    pub max_window_memory_bytes: u64,
    /// Disk space to leave free on the node, if the share below is not more.
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = bytes)]
    pub min_free_bytes: u64,
    /// Share of a disk to leave free on the node, if the bytes above are not more; above the 10 %
    /// below which the kubelet evicts pods.
    #[arg(long, value_name = "PERCENT", default_value_t = 15, value_parser = clap::value_parser!(u8).range(..=90))]
    pub min_free_percent: u8,
    /// Space for what flight recorders held of containers that ended abnormally; the oldest go
    /// first. 0: nothing is kept.
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = bytes)]
    pub kept_recordings_bytes: u64,
    /// How long such a recording is kept.
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    pub kept_recordings_hours: u16,
    /// Space for derived artifacts of timelines that were made on demand; the oldest go first.
    #[arg(long, value_name = "BYTES", default_value = "4GiB", value_parser = bytes)]
    pub max_derived_bytes: u64,
    /// How long such a derived artifact is kept.
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    pub derived_hours: u16,
    /// Space for artifacts of ended captures; the oldest go first, those with replicas in the
    /// object store before others. 0: as much as the disk has, but for what is left free.
    #[arg(long, value_name = "BYTES", default_value = "20GiB", value_parser = bytes)]
    pub max_artifact_bytes: u64,
    /// How long artifacts stay on the node at most. 0: as long as their session's retention says.
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    pub artifact_days: u16,
    /// Space for fleet rows of captures that ended and wait for the object store; the oldest go
    /// first. 0: none are made.
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = bytes)]
    pub fleet_bytes: u64,
    /// Where the object store is.
    #[command(flatten)]
    pub store: StoreArguments,
    /// Where artifacts are kept of sessions that say nothing of it, where there is an object store:
    /// Node, Replicated or Durable.
    #[arg(long, value_name = "MODE", default_value = "Replicated", value_parser = storage_mode())]
    pub store_default: StorageMode,
    /// How long a capture with storage Durable waits for an object store that fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub store_patience_seconds: u32,
    /// Longest import of a raw capture.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub import_timeout_seconds: u32,
    /// Longest transform of what was captured.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub transform_timeout_seconds: u32,
    /// Users and groups of the child processes that read captures, one for each: numbers that
    /// nothing else on the node has. A capture has one from its window on and a second one while
    /// its prelude is made: four times --max-captures are enough, and some for conversions.
    #[arg(long, value_name = "FIRST-LAST", default_value_t)]
    pub child_users: UserRange,
    /// Memory of such a child. All that live at once take three quarters of the container's own
    /// memory limit at most; they take turns where that is too little for --max-captures and a
    /// conversion.
    #[arg(long, value_name = "BYTES", default_value = "1536MiB", value_parser = bytes)]
    pub child_memory_bytes: u64,
    /// Format of the log.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// What to log: a level, or a list of target=level.
    #[arg(long, env = "FLOPWATCH_LOG", value_name = "FILTER", default_value = "info")]
    pub log_level: String,
}

impl Options {
    /// What is kept of containers that ended abnormally.
    pub fn recordings(&self) -> Recordings {
        let age = Duration::from_hours(self.kept_recordings_hours.into());
        Recordings::new(self.data_dir.join("recordings"), self.kept_recordings_bytes, age)
    }

    /// Folder of captures under way.
    pub fn spool(&self) -> PathBuf {
        self.spool_dir.clone().unwrap_or_else(|| self.data_dir.join("spool"))
    }

    /// How long samples are kept in memory; none where they are not.
    pub fn metrics_ring(&self) -> Option<Duration> {
        (self.metrics_ring_seconds > 0).then(|| Duration::from_secs(self.metrics_ring_seconds.into()))
    }

    /// Bounds of what this node's captures may take.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            captures: usize::from(self.max_captures),
            capture_bytes: self.max_capture_bytes,
            window_memory_bytes: self.max_window_memory_bytes,
            floor: self.floor(),
        }
    }

    /// Disk space to leave free.
    pub const fn floor(&self) -> Floor {
        Floor {
            bytes: self.min_free_bytes,
            percent: self.min_free_percent,
        }
    }

    /// Children that may have work at once: each capture that is processed has one at a time, and
    /// so has each conversion. The one that makes a prelude in a window takes a turn that is free.
    pub(super) fn children_at_once(&self) -> usize {
        usize::from(self.max_captures).saturating_add(ConversionLimits::default().at_once)
    }

    /// Bounds of the children that read captures. Their users and their turns are given out by what
    /// this returns: ask once, where no other agent of the node has children.
    pub fn children(&self) -> steps::Limits {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        let (asked, wanted) = (self.child_memory_bytes, self.children_at_once());
        let shares = memory::shares(asked, memory::own_limit(Path::new(OWN_CGROUP)), wanted);
        if shares.at_once < wanted || shares.each_bytes < asked {
            warn!(
                at_once = shares.at_once,
                each_bytes = shares.each_bytes,
                "the agent's memory limit has no room for all its children at once: they take turns"
            );
        }
        steps::Limits {
            users: Users::range(self.child_users.0.clone()),
            whole: true,
            cgroups: Some(ToolCgroups::open(&self.proc, &self.cgroup_root, memory::CGROUP)),
            turns: Arc::new(Semaphore::new(shares.at_once)),
            memory_bytes: shares.each_bytes,
            // A report may be larger than its raw capture; a file that outgrows even this is a
            // runaway.
            file_bytes: self.max_capture_bytes.saturating_mul(4),
            floor: self.floor(),
            import: seconds(self.import_timeout_seconds),
            transform: seconds(self.transform_timeout_seconds),
        }
    }
}

fn storage_mode() -> impl TypedValueParser<Value = StorageMode> {
    let names = StorageMode::ALL.map(StorageMode::as_str);
    PossibleValuesParser::new(names).try_map(|name| StorageMode::from_name(&name).ok_or("no such mode"))
}
