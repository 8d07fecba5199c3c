//! What a session's options of Nsight Systems are to the profiler, in a pod and on one machine.

use flopwatch_api::profiler::{CaptureRange, CudaGraphTrace, NsysOptions, RangeTrigger};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::nsys::{self, Collection};

use crate::failure::Failure;

/// How the profiler calls a mode.
pub const fn cuda_graph_trace(mode: CudaGraphTrace) -> nsys::CudaGraphTrace {
    match mode {
        CudaGraphTrace::Graph => nsys::CudaGraphTrace::Graph,
        CudaGraphTrace::Node => nsys::CudaGraphTrace::Node,
    }
}

/// What a collection records.
pub fn collection(asked: &NsysOptions) -> Collection {
    let range = asked.capture_range.as_ref().map(|range| nsys::CaptureRange {
        trigger: match range.trigger {
            RangeTrigger::CudaProfilerApi => nsys::RangeTrigger::CudaProfilerApi,
            RangeTrigger::Nvtx => nsys::RangeTrigger::Nvtx,
        },
        count: u32::try_from(range.count).unwrap_or(1),
    });
    let hertz = asked.gpu_metrics.as_ref().map(|metrics| metrics.frequency_hertz);
    Collection {
        sample: false,
        range,
        gpu_metrics_hertz: hertz.map(|hertz| u32::try_from(hertz).unwrap_or(10_000)),
    }
}

/// What a window lacks in which no range began.
pub fn missed(range: &CaptureRange, nvtx_capture: Option<&str>, tools: &str) -> Failure {
    let waited = match range.trigger {
        RangeTrigger::CudaProfilerApi => "the program did not call cudaProfilerStart in the window".to_owned(),
        RangeTrigger::Nvtx => {
            let name = nvtx_capture.unwrap_or_default();
            format!("the program did not begin the NVTX range {name:?} in the window")
        }
    };
    let remedy = if range.trigger == RangeTrigger::Nvtx && !tools.is_empty() && !tools.starts_with("2022.") {
        "Nsight Systems 2023.4 sees no NVTX range as one to capture in a program that made ranges before the window: use \
         trigger CudaProfilerApi, start: ContainerStart, or tools of 2022.4; else make the window longer (spec.durationSeconds)"
    } else {
        "make the window longer (spec.durationSeconds), or see that the program comes there while it is open"
    };
    Failure::new(CaptureReason::RangeMissed, format!("{waited}: {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_range_says_what_was_waited_for_and_what_this_version_cannot_see() {
        for (trigger, tools, words) in [
            (RangeTrigger::CudaProfilerApi, "2023.4.4.54", "cudaProfilerStart"),
            (
                RangeTrigger::Nvtx,
                "2022.4.2.1",
                "\"step\" in the window: make the window longer",
            ),
            (RangeTrigger::Nvtx, "2023.4.4.54", "ContainerStart"),
        ] {
            let range = CaptureRange {
                trigger,
                name: None,
                count: 1,
            };
            let failure = missed(&range, Some("step"), tools);
            assert_eq!(failure.reason, CaptureReason::RangeMissed);
            assert!(failure.message.contains(words), "{}", failure.message);
        }
    }
}
