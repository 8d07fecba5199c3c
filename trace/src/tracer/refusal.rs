//! Why a process does not record, in words with a remedy.

use flopwatch_tracer_file::process::{Holder, Phase, Process, Reason};

/// Codes of CUPTI, as its header `cupti_result.h` has them, of devices that it does not serve: the
/// code and what is said of it.
const DEVICES: [(u32, &str); 6] = [
    (33, VIRTUAL),
    (40, VIRTUAL),
    (
        41,
        "the GPU is in the mode of confidential computing, of which CUPTI records nothing; run the program on another one",
    ),
    (
        42,
        "the GPU is one for mining, of which CUPTI records nothing; run the program on another one",
    ),
    (
        44,
        "the GPUs are joined by SLI, of which CUPTI records nothing; run the program on another one",
    ),
    (
        45,
        "CUPTI records nothing under this version of WSL; run the program on Linux itself",
    ),
];
const VIRTUAL: &str = "the GPU is a virtual one, of which CUPTI records only what its host allows; have the host's \
                       administrator allow profiling for it, or run the program on another one";

/// Whether a process will not record for as long as it runs, whoever asks it again.
pub fn lasts(process: &Process) -> bool {
    let is_refused = process.phase == Phase::Refused;
    let lasting = match process.reason {
        Reason::OtherMajor
        | Reason::ExcludedVersion
        | Reason::TwoCopies
        | Reason::OtherProfiler
        | Reason::MissingFunction => true,
        Reason::Cupti => device(process.result).is_some(),
        _ => false,
    };
    process.phase == Phase::Stuck || (is_refused && lasting)
}

/// What is said of a device that CUPTI does not serve, by its code.
fn device(result: u32) -> Option<&'static str> {
    DEVICES.iter().find(|(code, _)| *code == result).map(|(_, said)| *said)
}

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
        Reason::Cupti => device(process.result).map_or_else(
            || format!("CUPTI answered with its code {}", process.result),
            str::to_owned,
        ),
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

    #[test]
    fn a_device_that_cupti_does_not_serve_is_told_and_stays_so() {
        let of_code = |result| {
            let mut process = process(Phase::Refused, Reason::Cupti, Holder::None);
            process.result = result;
            process
        };
        for (code, says) in [(33, "virtual"), (40, "virtual"), (41, "confidential computing")] {
            let why = why_not(&of_code(code)).unwrap();
            assert!(why.contains(says) && lasts(&of_code(code)), "{code}: {why}");
        }
        assert_eq!(why_not(&of_code(14)).unwrap(), "CUPTI answered with its code 14");
        assert!(!lasts(&of_code(14)), "it may do so for once");
    }

    #[test]
    fn what_may_pass_is_asked_again_and_what_lasts_is_not() {
        let refused = |reason| lasts(&process(Phase::Refused, reason, Holder::None));
        assert!(refused(Reason::TwoCopies) && refused(Reason::OtherProfiler));
        assert!(!refused(Reason::Held) && !refused(Reason::NoCupti) && !refused(Reason::NoDriver));
        assert!(lasts(&process(Phase::Stuck, Reason::Stuck, Holder::None)));
        assert!(
            !lasts(&process(Phase::Recording, Reason::TwoCopies, Holder::None)),
            "of before"
        );
    }

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
