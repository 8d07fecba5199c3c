//! Why a process does not record, in words with a remedy.

use flopwatch_tracer_file::process::{Holder, Phase, Process, Reason};

/// Why a process did not record what was ordered last; `None` for one that has no reason.
pub fn why_not(process: &Process) -> Option<String> {
    if process.phase == Phase::Stuck {
        return Some(reason(process, Reason::Stuck));
    }
    (process.phase == Phase::Refused).then(|| reason(process, process.reason))
}

fn reason(process: &Process, why: Reason) -> String {
    let holder = holder(process.holder);
    match why {
        Reason::None => "it refused without a reason".to_owned(),
        Reason::NoDriver => {
            "no driver of CUDA is loaded that says its version; install NVIDIA's driver (libcuda.so.1)".to_owned()
        }
        Reason::NoCupti => {
            let major = process.driver_version / 1000;
            format!(
                "the program has loaded no libcupti, and there is none for its driver, which is of CUDA {major}; name the folder of \
                 one (FLOPWATCH_CUDA_CUPTI, `record --cupti`)"
            )
        }
        Reason::OtherMajor => {
            let major = process.driver_version / 1000;
            format!("the libcupti is not of CUDA {major}, as the driver is; use one of that version")
        }
        Reason::ExcludedVersion => {
            "the libcupti is of 13.2, which ends programs; use one of 13.0, 13.1, or 13.3 and later".to_owned()
        }
        Reason::TwoCopies => "the program has loaded two copies of libcupti; have it load one".to_owned(),
        Reason::OtherProfiler => format!("{holder} is loaded, which records itself; start the program without it"),
        Reason::Held => format!("{holder} has CUPTI's one subscription; try again when it records no more"),
        Reason::MissingFunction => "the libcupti lacks a function; use one of 11.8 or later".to_owned(),
        Reason::Cupti => format!("CUPTI answered with its code {}", process.result),
        Reason::NodesTooOld => {
            "a libcupti before 12.6 records no nodes of graphs; record graphs as wholes, or use a later one".to_owned()
        }
        Reason::NoMemory => "there is no memory for 16 MiB of buffers".to_owned(),
        Reason::Stuck => {
            "a call of CUPTI took longer than two seconds, so that it is called no more; start the program anew"
                .to_owned()
        }
        Reason::NoKind => format!(
            "CUPTI records nothing of what was asked for; its last code was {}",
            process.result
        ),
    }
}

const fn holder(holder: Holder) -> &'static str {
    match holder {
        Holder::None | Holder::Unknown => "another tool",
        Holder::NsightSystems => "Nsight Systems",
        Holder::NsightCompute => "Nsight Compute",
        Holder::Parcagpu => "Polar Signals' parcagpu",
        Holder::Pytorch => "PyTorch's profiler or monitor",
        Holder::Jax => "JAX's profiler",
        Holder::Tensorflow => "TensorFlow's profiler",
        Holder::CuptiPython => "a tool that is built with cupti-python",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flopwatch_tracer_file::process::{BYTES, CLAIM_AT, HOLDER_AT, PHASE_AT, REASON_AT, USED, claim};

    fn process(phase: Phase, reason: Reason, holder: Holder) -> Process {
        let mut slot = [0; BYTES];
        slot[CLAIM_AT..][..8].copy_from_slice(&claim(1, USED).to_le_bytes());
        for (at, bits) in [
            (PHASE_AT, phase.bits()),
            (REASON_AT, reason.bits()),
            (HOLDER_AT, holder.bits()),
        ] {
            slot[at..][..4].copy_from_slice(&bits.to_le_bytes());
        }
        Process::of_bytes(&slot).unwrap()
    }

    #[test]
    fn a_refusal_says_who_has_the_subscription_and_what_helps() {
        let held = why_not(&process(Phase::Refused, Reason::Held, Holder::Pytorch)).unwrap();
        assert_eq!(
            held,
            "PyTorch's profiler or monitor has CUPTI's one subscription; try again when it records no more"
        );
        for reason in Reason::ALL {
            let text = why_not(&process(Phase::Refused, *reason, Holder::None)).unwrap();
            assert!(!text.is_empty() && !text.ends_with('.'), "{text}");
        }
        assert_eq!(why_not(&process(Phase::Recording, Reason::None, Holder::None)), None);
        let stuck = why_not(&process(Phase::Stuck, Reason::Stuck, Holder::None)).unwrap();
        assert!(stuck.contains("two seconds"), "{stuck}");
    }
}
