//! What Nsight Compute says of a program that it made no report of, and what that means for a
//! capture.

use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;

/// Most characters of the log that a message repeats.
const MAX_MESSAGE_CHARS: usize = 400;

/// Words in its log, the reason that they stand for, and the remedy. The first that is found
/// counts.
const KNOWN_ERRORS: [(&str, CaptureReason, &str); 8] = [
    (
        "ERR_NVGPUCTRPERM",
        CaptureReason::CountersRestricted,
        "the driver keeps the GPU's counters for administrators: load it with NVreg_RestrictProfilingToAdminUsers=0 \
         (https://developer.nvidia.com/ERR_NVGPUCTRPERM), or give the container the capability SYS_ADMIN",
    ),
    (
        "does not have permission to access NVIDIA GPU Performance Counters",
        CaptureReason::CountersRestricted,
        "ask the administrator of the virtual GPU to allow profiling",
    ),
    (
        "driver resource was unavailable",
        CaptureReason::CountersBusy,
        "another tool has the GPU's counters, such as DCGM with its profiling metrics: pause it, and try again",
    ),
    (
        "Profiling is not supported",
        CaptureReason::ProfilerUnavailable,
        "use a GPU and a driver that this version of Nsight Compute supports, or another version of it (images.ncu)",
    ),
    (
        "lock file",
        CaptureReason::CollectionFailed,
        "let the program's user write to /tmp, where Nsight Compute keeps a lock",
    ),
    (
        "Unable to write to file",
        CaptureReason::CollectionFailed,
        "let the program's user write to the volume at /flopwatch/run",
    ),
    (
        "No kernels were profiled",
        CaptureReason::RequiredEventsMissing,
        "check in the pod's log that the program found a CUDA driver and launched a kernel that the filter lets through \
         (spec.profiler.ncu)",
    ),
    (
        "No ranges were profiled",
        CaptureReason::RequiredEventsMissing,
        "check in the pod's log that the program found a CUDA driver, and that it marks a range: one of nvtxInclude, or \
         cudaProfilerStart and cudaProfilerStop",
    ),
];

/// Why there is no report, by the profiler's log; none where there is no log.
pub(super) fn failure(log: Option<&str>) -> Failure {
    let Some(log) = log.filter(|log| !log.trim().is_empty()) else {
        let message = "Nsight Compute was not started or refused its command line; the pod's log has its words";
        return Failure::new(CaptureReason::CollectionFailed, message);
    };
    let known = KNOWN_ERRORS.iter().find(|(words, ..)| log.contains(words));
    let (reason, remedy) = known.map_or(
        (
            CaptureReason::CollectionFailed,
            "the pod's log has the program's own words",
        ),
        |(_, reason, remedy)| (*reason, *remedy),
    );
    Failure::new(
        reason,
        format!("Nsight Compute made no report ({}): {remedy}", log_excerpt(log)),
    )
}

/// The errors and warnings of the log as one line.
fn log_excerpt(log: &str) -> String {
    let lines: Vec<&str> = log
        .lines()
        .filter_map(|line| {
            line.strip_prefix("==ERROR== ")
                .or_else(|| line.strip_prefix("==WARNING== "))
        })
        .map(str::trim)
        .collect();
    let all = lines.join(" ");
    all.chars()
        .filter(|letter| !letter.is_control())
        .take(MAX_MESSAGE_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_its_words_has_a_reason_and_a_remedy() {
        for (log, reason, remedy) in [
            (
                "==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0. For instructions\n==WARNING== No kernels were profiled.\n",
                "CountersRestricted",
                "NVreg_RestrictProfilingToAdminUsers=0",
            ),
            (
                "==ERROR== The user does not have permission to access NVIDIA GPU Performance Counters on the target vGPU device 0.\n",
                "CountersRestricted",
                "virtual GPU",
            ),
            (
                "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data.\n==ERROR== Failed to profile \"k\" in process 7\n==WARNING== No kernels were profiled.\n",
                "CountersBusy",
                "DCGM",
            ),
            (
                "==ERROR== Profiling is not supported on device 0. To find out supported GPUs refer --list-chips option.\n",
                "ProfilerUnavailable",
                "images.ncu",
            ),
            (
                "==ERROR== The application returned an error code (1).\n==WARNING== No kernels were profiled.\n",
                "RequiredEventsMissing",
                "spec.profiler.ncu",
            ),
            (
                "==WARNING== No ranges were profiled.\n",
                "RequiredEventsMissing",
                "nvtxInclude",
            ),
            ("==ERROR== something of tomorrow\n", "CollectionFailed", "pod's log"),
        ] {
            let failure = failure(Some(log));
            assert_eq!(failure.reason.as_str(), reason, "{log}");
            assert!(failure.message.contains(remedy), "{}", failure.message);
        }
        assert_eq!(failure(None).reason, CaptureReason::CollectionFailed);
        assert!(failure(Some(" \n")).message.contains("command line"));
    }

    #[test]
    fn its_words_are_repeated_without_control_characters_and_not_without_end() {
        let log = format!("==ERROR== \u{1b}[31mred {}\n", "x".repeat(5000));
        let message = failure(Some(&log)).message;
        assert!(!message.contains('\u{1b}') && message.len() < 600, "{}", message.len());
    }
}
