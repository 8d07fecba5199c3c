//! What a session asks of a container's session beside categories, held against what was fixed when
//! the container started.

use flopwatch_api::pod;
use flopwatch_api::preparation::{
    NSYS_CUDA_GRAPH_ANNOTATION, NSYS_GPU_METRICS_ANNOTATION, NSYS_NVTX_CAPTURE_ANNOTATION,
};
use flopwatch_api::profiler::{CaptureRange, CudaGraphTrace, NsysOptions, RangeTrigger, is_range_name};
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};

use crate::profilers::facts::Facts;

/// What is fixed when the container starts, beside the categories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixed {
    /// How CUDA graphs are traced.
    pub cuda_graph_trace: CudaGraphTrace,
    /// The NVTX range that can be captured.
    pub nvtx_capture: Option<String>,
    /// Whether the pod has the files by which metrics of GPUs are sampled.
    #[serde(default)]
    pub gpu_metrics: bool,
}

impl Fixed {
    /// What a pod's annotations say. A word that is not known stands for the default: admission
    /// refused it.
    pub fn of(pod: &Pod) -> Self {
        let graph = pod::annotation(pod, NSYS_CUDA_GRAPH_ANNOTATION).map(str::trim);
        let range = pod::annotation(pod, NSYS_NVTX_CAPTURE_ANNOTATION).map(str::trim);
        let metrics = pod::annotation(pod, NSYS_GPU_METRICS_ANNOTATION).map(str::trim);
        Self {
            gpu_metrics: metrics == Some("true"),
            cuda_graph_trace: graph.and_then(CudaGraphTrace::from_name).unwrap_or_default(),
            nvtx_capture: range.filter(|name| is_range_name(name)).map(str::to_owned),
        }
    }
}

/// Why hardware counters are closed to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CountersClosed {
    reason: String,
    message: String,
}

impl CountersClosed {
    /// What was found of the container that closes them.
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let closed = |reason: CaptureReason, message: String| Self {
            reason: reason.as_str().to_owned(),
            message,
        };
        if !facts.nvml {
            let message = "the node has no NVML, so there is no GPU whose metrics could be sampled: take \
                           spec.profiler.nsys.gpuMetrics out, or run the pod on a node with a GPU driver";
            return Some(closed(CaptureReason::NvmlUnavailable, message.to_owned()));
        }
        let obstacle = facts.counters_closed()?;
        let message = format!(
            "gpuMetrics reads hardware counters. {} {}",
            obstacle.found, obstacle.remedy
        );
        Some(closed(obstacle.reason, message))
    }
}

/// Fails where a session that was started with `fixed` cannot do what is asked for.
pub(super) fn covers(asked: &NsysOptions, fixed: &Fixed, counters: Option<&CountersClosed>) -> Result<(), Failure> {
    if let Some(mode) = asked.cuda_graph_trace
        && mode != fixed.cuda_graph_trace
    {
        let message = format!(
            "the container traces CUDA graphs by {} since its start, not by {}: annotate the pod template with \
             {NSYS_CUDA_GRAPH_ANNOTATION}: {} and let the pod be created anew",
            fixed.cuda_graph_trace.as_str(),
            mode.as_str(),
            mode.as_str()
        );
        return Err(Failure::new(CaptureReason::OptionNotPrepared, message));
    }
    if let Some(range) = &asked.capture_range {
        covers_range(range, fixed)?;
    }
    if asked.gpu_metrics.is_none() {
        return Ok(());
    }
    match counters {
        Some(closed) => {
            let reason = CaptureReason::from_name(&closed.reason).unwrap_or(CaptureReason::ProfilerUnavailable);
            Err(Failure::new(reason, closed.message.clone()))
        }
        None if fixed.gpu_metrics => Ok(()),
        None => {
            let message = format!(
                "the pod lacks the files by which metrics of GPUs are sampled: annotate the pod template with \
                 {NSYS_GPU_METRICS_ANNOTATION}: \"true\" and let the pod be created anew"
            );
            Err(Failure::new(CaptureReason::OptionNotPrepared, message))
        }
    }
}

fn covers_range(range: &CaptureRange, fixed: &Fixed) -> Result<(), Failure> {
    let (wanted, fixed) = match (range.trigger, &range.name, &fixed.nvtx_capture) {
        (RangeTrigger::CudaProfilerApi, ..) | (RangeTrigger::Nvtx, None, Some(_)) => return Ok(()),
        (RangeTrigger::Nvtx, Some(wanted), Some(fixed)) if wanted == fixed => return Ok(()),
        (RangeTrigger::Nvtx, wanted, fixed) => (wanted.as_deref().unwrap_or("<name of the range>"), fixed),
    };
    let since = match fixed {
        Some(fixed) => format!("the container can capture the NVTX range {fixed:?} since its start, and no other"),
        None => "the container can capture no NVTX range since its start".to_owned(),
    };
    let message = format!(
        "{since}: annotate the pod template with {NSYS_NVTX_CAPTURE_ANNOTATION}: {wanted} and let the pod be created anew"
    );
    Err(Failure::new(CaptureReason::OptionNotPrepared, message))
}

#[cfg(test)]
mod tests {
    use flopwatch_api::profiler::GpuMetrics;
    use serde_json::json;

    use super::*;
    use crate::profilers::gpu_facts::GpuFacts;

    fn fixed(graph: CudaGraphTrace, range: Option<&str>) -> Fixed {
        Fixed {
            cuda_graph_trace: graph,
            nvtx_capture: range.map(str::to_owned),
            gpu_metrics: false,
        }
    }

    fn range(trigger: RangeTrigger, name: Option<&str>) -> CaptureRange {
        CaptureRange {
            trigger,
            name: name.map(str::to_owned),
            count: 1,
        }
    }

    fn refused(asked: &NsysOptions, fixed: &Fixed) -> Option<(CaptureReason, String)> {
        let failure = covers(asked, fixed, None).err()?;
        Some((failure.reason, failure.message))
    }

    #[test]
    fn a_graph_mode_that_the_container_does_not_have_is_refused_with_the_annotation() {
        use CudaGraphTrace::{Graph, Node};
        for (asked, has, is_refused) in [
            (None, Node, false),
            (Some(Graph), Graph, false),
            (Some(Node), Node, false),
            (Some(Node), Graph, true),
            (Some(Graph), Node, true),
        ] {
            let options = NsysOptions {
                cuda_graph_trace: asked,
                ..NsysOptions::default()
            };
            let found = refused(&options, &fixed(has, None));
            assert_eq!(found.is_some(), is_refused, "{asked:?} of {has:?}");
            if let (Some((reason, message)), Some(asked)) = (found, asked) {
                assert_eq!(reason, CaptureReason::OptionNotPrepared);
                let annotation = format!("flopwatch.dev/nsys-cuda-graph-trace: {}", asked.as_str());
                assert!(message.contains(&annotation), "{message}");
            }
        }
    }

    #[test]
    fn an_nvtx_range_must_be_the_one_of_the_annotation() {
        use RangeTrigger::{CudaProfilerApi, Nvtx};
        for (asked, has, is_refused) in [
            (range(CudaProfilerApi, None), None, false),
            (range(Nvtx, None), Some("step"), false),
            (range(Nvtx, Some("step")), Some("step"), false),
            (range(Nvtx, Some("epoch")), Some("step"), true),
            (range(Nvtx, Some("epoch")), None, true),
            (range(Nvtx, None), None, true),
        ] {
            let options = NsysOptions {
                capture_range: Some(asked.clone()),
                ..NsysOptions::default()
            };
            let found = refused(&options, &fixed(CudaGraphTrace::Graph, has));
            assert_eq!(found.is_some(), is_refused, "{asked:?} of {has:?}");
            if let Some((reason, message)) = found {
                assert_eq!(reason, CaptureReason::OptionNotPrepared);
                assert!(message.contains("flopwatch.dev/nsys-nvtx-capture: "), "{message}");
            }
        }
    }

    #[test]
    fn gpu_metrics_are_refused_without_a_gpu_and_where_counters_are_closed() {
        let asked = NsysOptions {
            gpu_metrics: Some(GpuMetrics::default()),
            ..NsysOptions::default()
        };
        let restricted = GpuFacts {
            counters_restricted: true,
            ..GpuFacts::default()
        };
        let facts = |nvml, gpu| Facts {
            gpu,
            nvml,
            ..Facts::default()
        };
        let lacking = Some(CaptureReason::OptionNotPrepared);
        for (facts, has, reason) in [
            (facts(true, GpuFacts::default()), true, None),
            (facts(true, GpuFacts::default()), false, lacking),
            (
                facts(false, GpuFacts::default()),
                false,
                Some(CaptureReason::NvmlUnavailable),
            ),
            (facts(true, restricted), true, Some(CaptureReason::CountersRestricted)),
        ] {
            let closed = CountersClosed::of(&facts);
            let fixed = Fixed {
                gpu_metrics: has,
                ..Fixed::default()
            };
            let refused = covers(&asked, &fixed, closed.as_ref()).err();
            assert_eq!(refused.map(|failure| failure.reason), reason);
            assert!(covers(&NsysOptions::default(), &Fixed::default(), closed.as_ref()).is_ok());
        }
    }

    #[test]
    fn what_a_pods_annotations_say_malformed_is_their_default() {
        let of = |annotations: serde_json::Value| {
            Fixed::of(&serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap())
        };
        assert_eq!(of(json!({})), Fixed::default());
        let (graph, nvtx) = (NSYS_CUDA_GRAPH_ANNOTATION, NSYS_NVTX_CAPTURE_ANNOTATION);
        assert_eq!(
            of(json!({graph: " node ", nvtx: " train step@torch "})),
            fixed(CudaGraphTrace::Node, Some("train step@torch"))
        );
        assert_eq!(of(json!({graph: "nodes", nvtx: "a\nb"})), Fixed::default());
    }
}
