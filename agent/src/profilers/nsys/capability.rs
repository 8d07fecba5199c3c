//! Whether Nsight Systems is open for a container: by how it was prepared, and by what else is in
//! its program.

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_launcher::needed::Outdated;
use flopwatch_launcher::state::Reason;

use crate::profilers::facts::{Facts, Preparation, closed, open};

/// Beginning of the names of the libraries that the session itself brings into the program.
const OWN_LIBRARIES: &str = "libToolsInjection";

/// Bytes of GPU memory that tracing CUDA may take beside the program, whose own next allocation
/// must not fail for it: buffers of each context, and 128 MiB where the hardware traces.
const GPU_MEMORY: u64 = 256 << 20;

/// What is not open: the reason, what was found, and what to do about it.
type Closed = (CaptureReason, &'static str, &'static str);

const OTHER_PROFILER: &str = "Turn the other profiler off and restart the pod; a process takes one CUDA profiler only.";

const OUTDATED: &str = "Give the agents an Nsight Systems of the driver's own major version of CUDA (images.tools of the chart), and create the pod anew.";

/// Decides.
pub(super) fn decide(facts: &Facts) -> Capability {
    let Some((reason, found, remedy)) = preparation(facts) else {
        return decide_live(facts);
    };
    let others = if facts.preparation == Preparation::None {
        names(facts, |_| true)
    } else {
        String::new()
    };
    let found = if !others.is_empty() {
        format!("{found} Another profiler is mapped: {others}.")
    } else if !facts.detail.is_empty() {
        format!("{found} {}.", facts.detail)
    } else {
        found.to_owned()
    };
    closed(ProfilerType::Nsys, reason, &found, remedy)
}

/// A session that answers is of use where it is the only profiler and the agent can read what it
/// collects.
fn decide_live(facts: &Facts) -> Capability {
    let others = names(facts, |name| !name.starts_with(OWN_LIBRARIES));
    if !others.is_empty() {
        let found = format!("Mapped: {others}.");
        return closed(ProfilerType::Nsys, CaptureReason::OtherProfiler, &found, OTHER_PROFILER);
    }
    if let Some(Outdated { cupti, driver }) = facts.outdated.filter(|_| facts.mapped.cuda) {
        let found = format!(
            "Its CUPTI is of CUDA {}.{}, the driver of CUDA {}.{}: such pairs lose kernels and stop programs, so CUDA is not traced.",
            cupti.0, cupti.1, driver.0, driver.1
        );
        return closed(ProfilerType::Nsys, CaptureReason::VersionUnsupported, &found, OUTDATED);
    }
    if let Some(obstacle) = facts.gpu.memory_closed(GPU_MEMORY) {
        return obstacle.close(ProfilerType::Nsys);
    }
    if facts.tools {
        return open(ProfilerType::Nsys);
    }
    closed(
        ProfilerType::Nsys,
        CaptureReason::ProfilerUnavailable,
        "",
        "The agent has no Nsight Systems to import captures with. Set images.tools in the chart.",
    )
}

/// Names of mapped libraries of profilers.
fn names(facts: &Facts, wanted: impl Fn(&str) -> bool) -> String {
    let names = facts.mapped.profilers.iter().map(String::as_str);
    names.filter(|name| wanted(name)).collect::<Vec<_>>().join(", ")
}

/// What closes it; none where the session answers.
fn preparation(facts: &Facts) -> Option<Closed> {
    Some(match facts.preparation {
        Preparation::None => (
            CaptureReason::NotPrepared,
            "The container's command is its own.",
            "Label the pod flopwatch.dev/prepare=nsys and create it anew.",
        ),
        Preparation::Waiting => (
            CaptureReason::NotGrafted,
            "The launcher waits for its session.",
            "Wait until the container runs.",
        ),
        Preparation::Plain(reason) => plain(reason, !facts.detail.is_empty()),
        Preparation::OtherVersion => (
            CaptureReason::VersionUnsupported,
            "The launcher in the container speaks a later protocol than this agent.",
            "Bring the agents to the version that prepared the pod (its annotation flopwatch.dev/prepared-version), or create the pod anew.",
        ),
        Preparation::OtherTools => (
            CaptureReason::VersionUnsupported,
            "The Nsight Systems in the container is",
            "Create the pod anew, so that it gets the tools of today; or let the agents carry those of its version as well: name their image in the chart's images.olderTools.",
        ),
        Preparation::SessionLost => (
            CaptureReason::SessionGone,
            "No session of that name answers in the container.",
            "Restart the pod; its profiling session ended and cannot be joined again.",
        ),
        Preparation::Live => return None,
    })
}

/// What closes it in a container whose program the launcher started without a session.
/// `is_detailed`: the launcher said more.
const fn plain(reason: Reason, is_detailed: bool) -> Closed {
    match reason {
        Reason::Unclaimed => (
            CaptureReason::NotGrafted,
            "The launcher was not claimed in time.",
            "Restart the pod while the node's Flopwatch agent runs; the container started before the agent had seen it.",
        ),
        Reason::EarlyDeath => (
            CaptureReason::NotGrafted,
            "A grafted start died within 30 s.",
            "Look into the container's previous log: it ended within 30 s of a prepared start. Delete the pod to try anew.",
        ),
        Reason::OtherProfiler => (
            CaptureReason::OtherProfiler,
            "The container sets CUDA_INJECTION64_PATH or NVTX_INJECTION64_PATH itself.",
            OTHER_PROFILER,
        ),
        Reason::Musl => (
            CaptureReason::NotGrafted,
            "The program is loaded by musl:",
            "Use an image with glibc (Debian, Ubuntu, UBI) instead of musl (Alpine); metrics alone work as it is.",
        ),
        Reason::StaticProgram => (
            CaptureReason::NotGrafted,
            "The program loads no libraries:",
            "Start the workload with a dynamic program (not a static init such as tini-static); metrics alone work as it is.",
        ),
        Reason::OldGlibc => (
            CaptureReason::NotGrafted,
            "The container's C library is too old:",
            "Use an image with a newer glibc, or tools that need no newer one (images.tools); metrics alone work as it is.",
        ),
        Reason::UnknownProgram => (
            CaptureReason::NotGrafted,
            "How the program is loaded cannot be told:",
            "Give the container a command that is a readable program or script for x86-64; metrics alone work as it is.",
        ),
        Reason::Launched => (
            CaptureReason::NotPrepared,
            "Nsight Compute starts the program of this pod.",
            "Use a pod that is prepared for nsys; a process takes one CUDA profiler only.",
        ),
        Reason::Session
        | Reason::RunDirUnusable
        | Reason::SessionFailed
        | Reason::SessionTimeout
        | Reason::EnvironmentMalformed
        | Reason::EnvironmentTooLarge
        | Reason::ExecFailed
        | Reason::Interrupted => (
            CaptureReason::NotGrafted,
            if is_detailed {
                "The launcher got no session:"
            } else {
                "The launcher got no session."
            },
            "Look into the pod's Events for the profiler's error, then restart the pod.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profilers::gpu_facts::DeviceFacts;

    fn facts(preparation: Preparation) -> Facts {
        Facts {
            preparation,
            tools: true,
            ..Facts::default()
        }
    }

    #[test]
    fn a_program_with_cuda_is_closed_to_tools_that_are_too_old_for_its_driver() {
        let mut facts = Facts {
            outdated: Some(Outdated {
                cupti: (12, 4),
                driver: (13, 0),
            }),
            ..facts(Preparation::Live)
        };
        assert!(decide(&facts).available);
        facts.mapped.cuda = true;
        let capability = decide(&facts);
        assert_eq!(capability.reason, "VersionUnsupported");
        assert!(
            capability.remedy.contains("CUDA 12.4, the driver of CUDA 13.0"),
            "{}",
            capability.remedy
        );
    }

    #[test]
    fn nsys_follows_the_preparation() {
        let plain = |word: &str| Preparation::Plain(Reason::from_name(word));
        for (preparation, reason, remedy) in [
            (Preparation::None, "NotPrepared", "Label the pod"),
            (Preparation::Waiting, "NotGrafted", "Wait until"),
            (plain("unclaimed"), "NotGrafted", "Restart the pod while"),
            (plain("early_death"), "NotGrafted", "previous log"),
            (plain("session_timeout"), "NotGrafted", "Look into the pod's Events"),
            (plain("a word of tomorrow"), "NotGrafted", "Look into the pod's Events"),
            (plain("other_profiler"), "OtherProfiler", "Turn the other profiler off"),
            (plain("musl"), "NotGrafted", "with glibc"),
            (plain("static_program"), "NotGrafted", "dynamic program"),
            (plain("old_glibc"), "NotGrafted", "newer glibc"),
            (plain("unknown_program"), "NotGrafted", "readable program"),
            (plain("launched"), "NotPrepared", "prepared for nsys"),
            (Preparation::SessionLost, "SessionGone", "Restart the pod"),
            (Preparation::OtherVersion, "VersionUnsupported", "Bring the agents"),
            (Preparation::OtherTools, "VersionUnsupported", "images.olderTools"),
            (Preparation::Live, "Available", ""),
        ] {
            let capability = decide(&facts(preparation));
            assert_eq!(capability.reason, reason, "{preparation:?}");
            assert!(capability.remedy.contains(remedy), "{preparation:?}: {capability:?}");
            assert_eq!(capability.available, capability.remedy.is_empty(), "{capability:?}");
        }
    }

    #[test]
    fn what_the_launcher_found_of_the_program_is_passed_on() {
        let facts = Facts {
            detail: "/bin/busybox is a program of musl (/lib/ld-musl-x86_64.so.1)".into(),
            ..facts(Preparation::Plain(Reason::Musl))
        };
        let remedy = decide(&facts).remedy;
        assert!(remedy.contains("/bin/busybox") && remedy.contains("glibc"), "{remedy}");
    }

    #[test]
    fn another_profiler_closes_nsys_and_its_own_libraries_do_not() {
        let mut live = facts(Preparation::Live);
        live.mapped.profilers.insert("libToolsInjection64.so".into());
        assert!(decide(&live).available);
        live.mapped.profilers.insert("libparcagpucupti.so".into());
        assert_eq!(decide(&live).reason, "OtherProfiler");
        live.preparation = Preparation::None;
        let unprepared = decide(&live);
        assert_eq!(unprepared.reason, "NotPrepared");
        assert!(unprepared.remedy.contains("libparcagpucupti.so"), "{unprepared:?}");
    }

    #[test]
    fn a_gpu_without_room_for_the_tracer_closes_nsys_before_the_program_fails_for_it() {
        let mut live = facts(Preparation::Live);
        let device = |free| DeviceFacts {
            uuid: "GPU-1".into(),
            memory_free: Some(free),
            ..DeviceFacts::default()
        };
        live.gpu.devices = vec![device(GPU_MEMORY)];
        assert!(decide(&live).available);
        live.gpu.devices.push(device(GPU_MEMORY - 1));
        assert_eq!(decide(&live).reason, "GpuMemory");
    }

    #[test]
    fn without_tools_a_live_session_is_of_no_use_and_says_so() {
        let facts = Facts {
            tools: false,
            ..facts(Preparation::Live)
        };
        let capability = decide(&facts);
        assert_eq!(capability.reason, "ProfilerUnavailable");
        assert!(capability.remedy.contains("images.tools"), "{capability:?}");
    }
}
