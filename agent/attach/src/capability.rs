//! What can attach to a container: from what a probe found to a decision with its reason and remedy. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::process::Mapped;

/// The ways to profile a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Profiler {
    /// Nsight Systems, in a prepared pod.
    Nsys,
    /// Nsight Compute.
    Ncu,
    /// PyTorch's on-demand trace.
    Kineto,
    /// JAX's profiler service.
    Jax,
    /// NVML sampling.
    Metrics,
}

/// Variables that a probe reads from the target's environment.
pub const VARIABLES: [&str; 4] = [
    "KINETO_USE_DAEMON",
    "CUDA_INJECTION64_PATH",
    "NSYS_PROFILING_SESSION_ID",
    "CUDA_MPS_PIPE_DIRECTORY",
];

/// How the container stands to preparation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Preparation {
    /// Its command is not the launcher's.
    None,
    /// The launcher still waits.
    Waiting,
    /// The workload was started plain: with the launcher's reason.
    Plain(PlainReason),
    /// Its launcher is of a later version than this agent.
    OtherVersion,
    /// Grafted, and its session answers, but with tools whose captures cannot be read here.
    OtherTools,
    /// Grafted, and its session answers.
    Live,
    /// Grafted, and its session is gone.
    SessionLost,
}

/// Why a prepared container was started plain, as far as it changes the remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlainReason {
    /// No agent claimed it in time.
    Unclaimed,
    /// A grafted start died early.
    EarlyDeath,
    /// The workload brings a profiler of its own.
    OtherProfiler,
    /// The program is one of musl.
    Musl,
    /// The program is static.
    Static,
    /// The container's glibc is too old.
    OldGlibc,
    /// How the program is loaded cannot be told.
    UnknownProgram,
    /// Everything else: the session could not be started.
    SessionFailed,
}

impl PlainReason {
    /// From the launcher's state file.
    pub fn from_state(reason: &str) -> Self {
        match reason {
            "unclaimed" => Self::Unclaimed,
            "early_death" => Self::EarlyDeath,
            "other_profiler" => Self::OtherProfiler,
            "musl" => Self::Musl,
            "static_program" => Self::Static,
            "old_glibc" => Self::OldGlibc,
            "unknown_program" => Self::UnknownProgram,
            _ => Self::SessionFailed,
        }
    }
}

/// What a probe found, without touching the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// How the container stands to preparation.
    pub preparation: Preparation,
    /// What the launcher found of the program, where that is why it was started plain; empty otherwise.
    pub detail: String,
    /// Libraries mapped by its processes.
    pub mapped: Mapped,
    /// The variables of [`VARIABLES`] that are set.
    pub variables: BTreeMap<String, String>,
    /// Whether the node's NVML answers.
    pub nvml: bool,
}

/// Why a way is open or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reason {
    /// Open.
    Available,
    /// The pod was not prepared when it was created.
    NotPrepared,
    /// The launcher has not become the workload yet.
    StillStarting,
    /// Started plain: no agent was there in time.
    StartedUnclaimed,
    /// Started plain: an earlier grafted start died early.
    StartedPlainAfterEarlyDeath,
    /// Started plain: no session could be started.
    SessionNotStarted,
    /// Started plain: the tools are not made for such a program.
    Musl,
    /// Started plain: a static program takes no library.
    StaticProgram,
    /// Started plain: the tools need a newer glibc.
    OldGlibc,
    /// Started plain: how the program is loaded could not be told.
    UnknownProgram,
    /// Prepared by a later version, which this one does not understand.
    OtherVersion,
    /// Prepared with tools whose captures this version cannot read.
    OtherTools,
    /// The session is gone.
    SessionLost,
    /// Another profiler is in the process.
    OtherProfiler,
    /// No NVML on the node.
    NoNvml,
    /// The door is open, this version does not go through it.
    NotInThisVersion,
    /// The program did not open that door, and this version would not go through it.
    DoorClosed,
}

impl Reason {
    /// What a user can do about it; empty where there is nothing to do.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Available => "",
            Self::NotPrepared => "Label the pod flopwatch.dev/prepare=nsys and create it anew.",
            Self::StillStarting => "Wait until the container runs.",
            Self::StartedUnclaimed => {
                "Restart the pod while the node's Flopwatch agent runs; the container started before the agent had seen it."
            }
            Self::StartedPlainAfterEarlyDeath => {
                "Look into the container's previous log: it ended within 30 s of a prepared start. Delete the pod to try anew."
            }
            Self::SessionNotStarted => "Look into the pod's Events for the profiler's error, then restart the pod.",
            Self::Musl => {
                "Use an image with glibc (Debian, Ubuntu, UBI) instead of musl (Alpine); metrics alone work as it is."
            }
            Self::StaticProgram => {
                "Start the workload with a dynamic program (not a static init such as tini-static); metrics alone work as it is."
            }
            Self::OldGlibc => {
                "Use an image with a newer glibc, or tools that need no newer one (images.tools); metrics alone work as it is."
            }
            Self::UnknownProgram => {
                "Give the container a command that is a readable program or script for x86-64; metrics alone work as it is."
            }
            Self::OtherVersion => {
                "Bring the agents to the version that prepared the pod (its annotation flopwatch.dev/prepared-version), or create the pod anew."
            }
            Self::OtherTools => {
                "Create the pod anew, so that it gets the tools of today; or let the agents carry those of its version as well: name their image in the chart's images.olderTools."
            }
            Self::SessionLost => "Restart the pod; its profiling session ended and cannot be joined again.",
            Self::OtherProfiler => {
                "Turn the other profiler off and restart the pod; a process takes one CUDA profiler only."
            }
            Self::NoNvml => "Run on a node with an NVIDIA driver, or make its libnvidia-ml.so.1 visible to the agent.",
            Self::NotInThisVersion => "This version of Flopwatch does not use this profiler; choose Nsys or Metrics.",
            Self::DoorClosed => {
                "This version of Flopwatch does not use this profiler, and the program was not started for it; choose Nsys or Metrics."
            }
        }
    }
}

/// The decision for one profiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    /// Which way.
    pub profiler: Profiler,
    /// Whether it is open.
    pub available: bool,
    /// What opens or closes it, of a closed set.
    pub reason: Reason,
    /// What the probe saw that led to it.
    pub found: String,
    /// What to do about it.
    pub remedy: String,
}

fn capability(profiler: Profiler, reason: Reason, found: impl Into<String>) -> Capability {
    Capability {
        profiler,
        available: reason == Reason::Available,
        reason,
        found: found.into(),
        remedy: reason.remedy().to_owned(),
    }
}

/// Decides for every profiler, the deepest first.
pub fn decide(facts: &Facts) -> Vec<Capability> {
    vec![nsys(facts), ncu(facts), kineto(facts), jax(), metrics(facts)]
}

fn nsys(facts: &Facts) -> Capability {
    let (reason, found) = match facts.preparation {
        Preparation::None => (Reason::NotPrepared, "The container's command is its own."),
        Preparation::Waiting => (Reason::StillStarting, "The launcher waits for its session."),
        Preparation::Plain(PlainReason::Unclaimed) => {
            (Reason::StartedUnclaimed, "The launcher was not claimed in time.")
        }
        Preparation::Plain(PlainReason::EarlyDeath) => {
            (Reason::StartedPlainAfterEarlyDeath, "A grafted start died within 30 s.")
        }
        Preparation::Plain(PlainReason::OtherProfiler) => (
            Reason::OtherProfiler,
            "The container sets CUDA_INJECTION64_PATH or NVTX_INJECTION64_PATH itself.",
        ),
        Preparation::Plain(PlainReason::Musl) => (Reason::Musl, "The program is loaded by musl:"),
        Preparation::Plain(PlainReason::Static) => (Reason::StaticProgram, "The program loads no libraries:"),
        Preparation::Plain(PlainReason::OldGlibc) => (Reason::OldGlibc, "The container's C library is too old:"),
        Preparation::Plain(PlainReason::UnknownProgram) => {
            (Reason::UnknownProgram, "How the program is loaded cannot be told:")
        }
        Preparation::Plain(PlainReason::SessionFailed) if facts.detail.is_empty() => {
            (Reason::SessionNotStarted, "The launcher got no session.")
        }
        Preparation::Plain(PlainReason::SessionFailed) => (Reason::SessionNotStarted, "The launcher got no session:"),
        Preparation::OtherVersion => (
            Reason::OtherVersion,
            "The launcher in the container speaks a later protocol than this agent.",
        ),
        Preparation::OtherTools => (Reason::OtherTools, "The Nsight Systems in the container is"),
        Preparation::SessionLost => (Reason::SessionLost, "No session of that name answers in the container."),
        Preparation::Live => {
            // The session's own libraries are in the process; anything else is another tool's.
            let others: Vec<&str> = facts
                .mapped
                .profilers
                .iter()
                .map(String::as_str)
                .filter(|name| !name.starts_with("libToolsInjection"))
                .collect();
            if others.is_empty() {
                (Reason::Available, "A live session.")
            } else {
                return capability(
                    Profiler::Nsys,
                    Reason::OtherProfiler,
                    format!("Mapped: {}.", others.join(", ")),
                );
            }
        }
    };
    if facts.preparation == Preparation::None && !facts.mapped.profilers.is_empty() {
        let names: Vec<&str> = facts.mapped.profilers.iter().map(String::as_str).collect();
        return capability(
            Profiler::Nsys,
            reason,
            format!("{found} Another profiler is mapped: {}.", names.join(", ")),
        );
    }
    if !facts.detail.is_empty() {
        return capability(Profiler::Nsys, reason, format!("{found} {}.", facts.detail));
    }
    capability(Profiler::Nsys, reason, found)
}

fn ncu(facts: &Facts) -> Capability {
    let found = if facts.mapped.nccl {
        "NCCL is mapped: kernel replay would be refused without a filter."
    } else {
        "NCCL is not mapped."
    };
    capability(Profiler::Ncu, Reason::NotInThisVersion, found)
}

fn kineto(facts: &Facts) -> Capability {
    let cupti = facts
        .mapped
        .cupti
        .as_deref()
        .map_or("libcupti is not mapped".to_owned(), |path| format!("{path} is mapped"));
    // Its value is not shown: whether it is set is all that counts.
    if facts.variables.contains_key("KINETO_USE_DAEMON") {
        capability(
            Profiler::Kineto,
            Reason::NotInThisVersion,
            format!("KINETO_USE_DAEMON is set, {cupti}."),
        )
    } else {
        capability(
            Profiler::Kineto,
            Reason::DoorClosed,
            format!("KINETO_USE_DAEMON is not set, {cupti}."),
        )
    }
}

fn jax() -> Capability {
    capability(
        Profiler::Jax,
        Reason::NotInThisVersion,
        "Its profiler service was not looked for.",
    )
}

fn metrics(facts: &Facts) -> Capability {
    if facts.nvml {
        capability(Profiler::Metrics, Reason::Available, "NVML answers on the node.")
    } else {
        capability(Profiler::Metrics, Reason::NoNvml, "NVML does not answer on the node.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(preparation: Preparation) -> Facts {
        Facts {
            preparation,
            detail: String::new(),
            mapped: Mapped::default(),
            variables: BTreeMap::new(),
            nvml: false,
        }
    }

    fn reason_of(facts: &Facts, profiler: Profiler) -> Reason {
        decide(facts)
            .into_iter()
            .find(|capability| capability.profiler == profiler)
            .unwrap()
            .reason
    }

    #[test]
    fn nsys_follows_the_preparation() {
        for (preparation, reason) in [
            (Preparation::None, Reason::NotPrepared),
            (Preparation::Waiting, Reason::StillStarting),
            (
                Preparation::Plain(PlainReason::from_state("unclaimed")),
                Reason::StartedUnclaimed,
            ),
            (
                Preparation::Plain(PlainReason::from_state("early_death")),
                Reason::StartedPlainAfterEarlyDeath,
            ),
            (
                Preparation::Plain(PlainReason::from_state("session_timeout")),
                Reason::SessionNotStarted,
            ),
            (Preparation::Plain(PlainReason::from_state("musl")), Reason::Musl),
            (
                Preparation::Plain(PlainReason::from_state("static_program")),
                Reason::StaticProgram,
            ),
            (
                Preparation::Plain(PlainReason::from_state("old_glibc")),
                Reason::OldGlibc,
            ),
            (
                Preparation::Plain(PlainReason::from_state("unknown_program")),
                Reason::UnknownProgram,
            ),
            (Preparation::SessionLost, Reason::SessionLost),
            (Preparation::OtherVersion, Reason::OtherVersion),
            (Preparation::OtherTools, Reason::OtherTools),
            (Preparation::Live, Reason::Available),
        ] {
            assert_eq!(
                reason_of(&facts(preparation), Profiler::Nsys),
                reason,
                "{preparation:?}"
            );
        }
    }

    #[test]
    fn what_the_launcher_found_of_the_program_is_passed_on() {
        let facts = Facts {
            detail: "/bin/busybox is a program of musl (/lib/ld-musl-x86_64.so.1)".into(),
            ..facts(Preparation::Plain(PlainReason::Musl))
        };
        let nsys = decide(&facts).remove(0);
        assert!(
            nsys.found.contains("/bin/busybox") && nsys.remedy.contains("glibc"),
            "{nsys:?}"
        );
    }

    #[test]
    fn another_profiler_closes_nsys_and_its_own_libraries_do_not() {
        let mut facts = facts(Preparation::Live);
        facts.mapped.profilers.insert("libToolsInjection64.so".into());
        assert_eq!(reason_of(&facts, Profiler::Nsys), Reason::Available);
        facts.mapped.profilers.insert("libparcagpucupti.so".into());
        assert_eq!(reason_of(&facts, Profiler::Nsys), Reason::OtherProfiler);
    }

    #[test]
    fn what_is_closed_says_what_to_do() {
        for preparation in [Preparation::None, Preparation::OtherVersion, Preparation::Live] {
            for capability in decide(&facts(preparation)) {
                assert_eq!(capability.available, capability.remedy.is_empty(), "{capability:?}");
            }
        }
    }

    #[test]
    fn a_door_that_is_open_is_told_from_one_that_is_not() {
        let mut facts = facts(Preparation::None);
        assert_eq!(reason_of(&facts, Profiler::Kineto), Reason::DoorClosed);
        facts.variables.insert("KINETO_USE_DAEMON".into(), "1".into());
        assert_eq!(reason_of(&facts, Profiler::Kineto), Reason::NotInThisVersion);
    }
}
