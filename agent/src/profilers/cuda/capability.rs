//! Whether a container's programs record CUDA on request.

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::sentence::names;
use flopwatch_trace::tracer::{lasts, why_not};
use flopwatch_tracer_file::process::{Process, Reason};

use super::driver::{self, Check};
use super::probe::{Look, file};
use crate::profilers::facts::{CUDA_MPS_PIPE_DIRECTORY, Facts, closed, open};

/// Bytes of GPU memory that a program's window takes at the most, whose own next allocation must
/// not fail for it: eight buffers of 3.2 MB, and what CUPTI takes when it is opened.
const GPU_MEMORY: u64 = 64 << 20;

/// Decides from what the probe found. `check` says for which drivers the tracer is proven.
pub(super) fn decide(facts: &Facts, allow_unproven: bool, check: Check) -> Capability {
    let closed = |reason, found: &str, remedy: &str| closed(ProfilerType::Cuda, reason, found, remedy);
    let is_prepared = file(&facts.variables).is_some();
    let unproven = driver::unproven(facts, check).filter(|_| !allow_unproven);
    // Nobody prepares a pod in vain.
    if let Some(why) = unproven.filter(|_| is_prepared || driver::generation(facts).is_some()) {
        return closed(
            CaptureReason::VersionUnsupported,
            &format!("The driver is unproven: {why}."),
            "Choose another profiler until then.",
        );
    }
    if !is_prepared {
        return closed(
            CaptureReason::NotPrepared,
            "The container's programs have no CUDA tracer.",
            "Give the pod the label flopwatch.dev/prepare: cuda (words combine, as in kineto.cuda) and create it anew.",
        );
    }
    if !facts.mapped.profilers.is_empty() {
        let found = names(facts.mapped.profilers.iter().map(String::as_str));
        return closed(
            CaptureReason::OtherProfiler,
            &format!("The program has {found} mapped, and one profiler alone can have CUPTI."),
            "Prepare the pod for the CUDA tracer without nsys (label flopwatch.dev/prepare: cuda), or choose Nsys.",
        );
    }
    let mps_client = facts.variables.contains_key(CUDA_MPS_PIPE_DIRECTORY);
    if let Some(found) = facts.gpu.shared_through_mps(mps_client) {
        return closed(
            CaptureReason::MultiProcessService,
            found,
            "Run the pod on a GPU without the service, with which no GPU has shown yet that the CUDA tracer works.",
        );
    }
    match facts.found.get::<Look>() {
        Some(Look::Programs(programs)) if !programs.is_empty() => decide_running(facts, programs),
        Some(Look::Unread(why)) => closed(
            CaptureReason::ProfilerUnavailable,
            &format!("The file of the CUDA tracer cannot be used: {why}."),
            "Let FLOPWATCH_CUDA_DIR name a folder in memory that the program's user can write to, and create the pod anew.",
        ),
        Some(Look::Musl) => closed(
            CaptureReason::ProfilerUnavailable,
            "The programs are of musl, and CUDA's driver, which loads the tracer, is for glibc.",
            "Use an image with glibc (Debian, Ubuntu, UBI) instead of musl (Alpine).",
        ),
        Some(Look::Programs(_) | Look::NoFile) | None => closed(
            CaptureReason::ProfilerUnavailable,
            "The container is prepared, and none of its programs has begun CUDA.",
            "Wait until one has called CUDA, or look in its environment whether CUDA_INJECTION64_PATH is still there.",
        ),
    }
}

/// Programs with the library in them record unless each of them says for good that it does not.
fn decide_running(facts: &Facts, programs: &[Process]) -> Capability {
    if let Some(first) = programs.first().filter(|_| programs.iter().all(lasts)) {
        let reason = if first.reason == Reason::OtherProfiler {
            CaptureReason::OtherProfiler
        } else {
            CaptureReason::ProfilerUnavailable
        };
        let why = why_not(first).unwrap_or_default();
        let found = format!("Its programs refuse: {why}.");
        return closed(
            ProfilerType::Cuda,
            reason,
            &found,
            "They are asked again once the pod is created anew.",
        );
    }
    let needed = u64::try_from(programs.len()).map_or(u64::MAX, |count| count.saturating_mul(GPU_MEMORY));
    if let Some(obstacle) = facts.gpu.memory_closed(needed) {
        return obstacle.close(ProfilerType::Cuda);
    }
    open(ProfilerType::Cuda)
}

#[cfg(test)]
mod tests {
    use flopwatch_api::preparation::FLOPWATCH_CUDA_DIR;
    use flopwatch_tracer::proven::{Cuda, Unproven};
    use flopwatch_tracer_file::process::{BYTES, CLAIM_AT, Holder, Phase, USED, claim};

    use super::*;
    use crate::profilers::gpu_facts::DeviceFacts;

    /// As if a GPU had shown 13.0 alone.
    fn proven(driver: u32) -> Result<(), Unproven> {
        match driver {
            13_000 => Ok(()),
            driver => Err(Unproven {
                driver: Cuda::of_driver(driver),
            }),
        }
    }

    fn program(phase: Phase, reason: Reason) -> Process {
        let mut slot = [0; BYTES];
        slot[CLAIM_AT..][..8].copy_from_slice(&claim(1, USED).to_le_bytes());
        let mut program = Process::of_bytes(&slot).unwrap();
        (program.phase, program.reason) = (phase, reason);
        program
    }

    /// Of a prepared container with these programs.
    fn facts(programs: &[Process]) -> Facts {
        let mut facts = Facts::default();
        let folder = (FLOPWATCH_CUDA_DIR.to_owned(), "/flopwatch/cuda".to_owned());
        facts.variables.extend([folder]);
        facts.gpu.driver = Some(13_000);
        facts.found.keep(Look::Programs(programs.to_vec()));
        facts
    }

    fn check(facts: &Facts, reason: &str, says: &str) {
        let found = decide(facts, false, proven);
        assert_eq!(found.reason, reason, "{found:?}");
        assert_eq!(found.available, reason == "Available");
        assert!(found.remedy.contains(says), "{found:?}");
        assert!(found.remedy.len() < 1024, "it fits into a status: {found:?}");
    }

    #[test]
    fn programs_that_run_are_open_and_everything_that_is_missing_has_its_remedy() {
        let idle = program(Phase::Idle, Reason::None);
        check(&facts(&[idle]), "Available", "");
        check(&Facts::default(), "NotPrepared", "flopwatch.dev/prepare: cuda");
        check(
            &facts(&[]),
            "ProfilerUnavailable",
            "none of its programs has begun CUDA",
        );
        let mut unread = facts(&[]);
        unread.found.keep(Look::Unread("it was cut".to_owned()));
        check(&unread, "ProfilerUnavailable", "cannot be used: it was cut");
        let mut musl = facts(&[]);
        musl.found.keep(Look::Musl);
        check(&musl, "ProfilerUnavailable", "Use an image with glibc");
        let mut nsys = facts(&[idle]);
        nsys.mapped.profilers.insert("libToolsInjection64.so".to_owned());
        check(&nsys, "OtherProfiler", "libToolsInjection64.so mapped");
        let mut mps = facts(&[idle]);
        mps.variables
            .insert(CUDA_MPS_PIPE_DIRECTORY.to_owned(), "/tmp/mps".to_owned());
        check(&mps, "MultiProcessService", "on a GPU without the service");
        let mut full = facts(&[idle, idle]);
        full.gpu.devices = vec![DeviceFacts {
            uuid: "GPU-1".to_owned(),
            memory_free: Some(100 << 20),
            ..DeviceFacts::default()
        }];
        check(&full, "GpuMemory", "may take 128 MiB");
    }

    #[test]
    fn what_a_program_says_for_good_closes_it_where_all_say_so() {
        let mut held = program(Phase::Refused, Reason::OtherProfiler);
        held.holder = Holder::Parcagpu;
        check(&facts(&[held]), "OtherProfiler", "parcagpu is loaded");
        let stuck = program(Phase::Stuck, Reason::Stuck);
        check(&facts(&[held, stuck]), "OtherProfiler", "parcagpu");
        let mut confidential = program(Phase::Refused, Reason::Cupti);
        confidential.result = 41;
        check(&facts(&[confidential]), "ProfilerUnavailable", "confidential computing");
        let other = program(Phase::Idle, Reason::None);
        check(&facts(&[held, other]), "Available", "");
        let passing = program(Phase::Refused, Reason::Held);
        check(&facts(&[passing]), "Available", "");
    }

    #[test]
    fn a_driver_that_no_gpu_has_proven_is_closed_unless_the_agent_is_told_otherwise() {
        let mut later = facts(&[program(Phase::Idle, Reason::None)]);
        later.gpu.driver = Some(13_010);
        check(&later, "VersionUnsupported", "drivers of CUDA 13.1");
        assert!(decide(&later, true, proven).available);
        let mut unknown = facts(&[program(Phase::Idle, Reason::None)]);
        unknown.gpu.driver = None;
        check(&unknown, "VersionUnsupported", "NVML does not say");
        // A container may bring a driver of its own.
        let mut compatible = program(Phase::Idle, Reason::None);
        compatible.driver_version = 13_010;
        check(&facts(&[compatible]), "VersionUnsupported", "drivers of CUDA 13.1");
        let mut unprepared = Facts::default();
        unprepared.gpu.driver = Some(12_080);
        check(&unprepared, "VersionUnsupported", "drivers of CUDA 12.8");
    }
}
