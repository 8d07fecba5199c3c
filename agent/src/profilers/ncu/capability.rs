//! Whether Nsight Compute is open for a container: its profiler must start the program.

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_launcher::state::Reason;
use flopwatch_pipeline::failure::Failure;

use crate::profilers::facts::{Facts, Preparation, closed, open};

/// What opens it.
const REMEDY: &str = "Give the session spec.target.replicaOf in place of podName (kubectl flopwatch profile --replica): it makes a copy of the pod, whose \
     program Nsight Compute starts. Or spec.target.podTemplate, with a pod of its own.";

/// Decides. `can_pause`: DCGM can be made to let go of the counters.
pub(super) fn decide(facts: &Facts, can_pause: bool) -> Capability {
    if facts.preparation == Preparation::Plain(Reason::Launched) {
        return facts
            .counters_closed()
            .filter(|obstacle| !can_pause || obstacle.reason != CaptureReason::CountersBusy)
            .map_or_else(|| open(ProfilerType::Ncu), |obstacle| obstacle.close(ProfilerType::Ncu));
    }
    let found = if facts.mapped.nccl {
        "Nsight Compute cannot join a program that runs. NCCL is mapped: name the kernels to profile, as a replay of NCCL's own hangs."
    } else {
        "Nsight Compute cannot join a program that runs."
    };
    closed(ProfilerType::Ncu, CaptureReason::NotPrepared, found, REMEDY)
}

/// Why a program that mapped NCCL is not profiled on.
pub(super) fn nccl() -> Failure {
    let message = "the program has mapped NCCL, whose kernels wait for those of other processes and hang when they are replayed one \
                   by one: name the kernels to profile (spec.profiler.ncu.kernelRegex, kernelNames, topKernelsOf or nvtxInclude), or \
                   use replayMode: Application";
    Failure::new(CaptureReason::ProfilerUnavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_open_where_the_profiler_starts_the_program_and_nowhere_else() {
        let decided = |preparation| {
            let facts = Facts {
                preparation,
                tools: true,
                ..Facts::default()
            };
            decide(&facts, false)
        };
        assert!(decided(Preparation::Plain(Reason::Launched)).available);
        for preparation in [
            Preparation::None,
            Preparation::Live,
            Preparation::Waiting,
            Preparation::Plain(Reason::Unclaimed),
        ] {
            let capability = decided(preparation);
            assert_eq!(capability.reason, "NotPrepared", "{preparation:?}");
            assert!(capability.remedy.contains("spec.target.replicaOf"), "{capability:?}");
        }
    }

    #[test]
    fn counters_that_the_driver_keeps_close_it_before_the_program_runs() {
        let mut facts = Facts {
            preparation: Preparation::Plain(Reason::Launched),
            ..Facts::default()
        };
        facts.gpu.counters_restricted = true;
        assert_eq!(decide(&facts, true).reason, "CountersRestricted");
    }

    #[test]
    fn dcgm_closes_it_unless_it_can_be_paused() {
        let mut facts = Facts {
            preparation: Preparation::Plain(Reason::Launched),
            ..Facts::default()
        };
        facts.gpu.counter_holders.insert("nv-hostengine");
        assert_eq!(decide(&facts, false).reason, "CountersBusy");
        assert!(decide(&facts, true).available);
    }

    #[test]
    fn nccl_is_named_where_it_is_mapped() {
        let mut facts = Facts::default();
        assert!(!decide(&facts, false).remedy.contains("NCCL"));
        facts.mapped.nccl = true;
        assert!(decide(&facts, false).remedy.contains("NCCL"));
        assert!(nccl().message.contains("kernelRegex"));
    }
}
