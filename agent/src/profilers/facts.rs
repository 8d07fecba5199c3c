//! What a probe finds of a container, without touching it: what every profiler decides from whether
//! it is open.

use std::collections::BTreeMap;

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::process::Mapped;
use flopwatch_launcher::needed::Outdated;
use flopwatch_launcher::state::Reason;

use super::findings::Findings;
use super::gpu_facts::{GpuFacts, Obstacle};

/// Where a program's temporary files go.
pub const TMPDIR: &str = "TMPDIR";
/// Set in clients of the Multi-Process Service.
pub const CUDA_MPS_PIPE_DIRECTORY: &str = "CUDA_MPS_PIPE_DIRECTORY";

/// How the container stands to preparation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preparation {
    /// The container's command is not the launcher's.
    #[default]
    None,
    /// The launcher still waits.
    Waiting,
    /// The program was started without a session, for the launcher's reason.
    Plain(Reason),
    /// The container's launcher is of a later version than this agent.
    OtherVersion,
    /// The container has a session that answers, of tools whose captures cannot be read here.
    OtherTools,
    /// The container has a session that answers.
    Live,
    /// The container's session is gone.
    SessionLost,
}

/// What a probe found.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// How the container stands to preparation.
    pub preparation: Preparation,
    /// What the launcher found of the program, where that is why it has no session, or versions;
    /// empty otherwise.
    pub detail: String,
    /// Libraries mapped by its processes.
    pub mapped: Mapped,
    /// The variables of its first process that are set, of those that profilers ask for
    /// ([`variables`](super::Profiler::variables)).
    pub variables: BTreeMap<String, String>,
    /// What was found of its GPUs, and of what else uses them.
    pub gpu: GpuFacts,
    /// What profilers found for themselves ([`inspect`](super::Profiler::inspect)).
    pub found: Findings,
    /// Whether the node's NVML answers.
    pub nvml: bool,
    /// Whether the agent carries tools to read raw captures of Nsight Systems with.
    pub tools: bool,
    /// Why these tools trace no CUDA: their CUPTI is too old for the node's driver.
    pub outdated: Option<Outdated>,
}

impl Facts {
    /// Why a profiler that runs as the container's program does cannot read the GPU's hardware
    /// counters; none where nothing is in the way.
    pub fn counters_closed(&self) -> Option<Obstacle> {
        let variables = &self.variables;
        self.gpu
            .counters_closed(variables.contains_key(CUDA_MPS_PIPE_DIRECTORY))
    }
}

/// A profiler that is open.
pub fn open(profiler: ProfilerType) -> Capability {
    Capability {
        profiler,
        available: true,
        reason: "Available".to_owned(),
        remedy: String::new(),
    }
}

/// A profiler that is closed: why, for programs; what the probe saw that led to it, and what to do
/// about it.
pub fn closed(profiler: ProfilerType, reason: CaptureReason, found: &str, remedy: &str) -> Capability {
    Capability {
        profiler,
        available: false,
        reason: reason.as_str().to_owned(),
        remedy: format!("{found} {remedy}").trim_start().to_owned(),
    }
}
