//! Nsight Systems: its words for what it traces, and the categories of the timeline that come of
//! each.

use flopwatch_model::Category;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::schema::KubeSchema;

/// A category that Nsight Systems can trace.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "lowercase")]
pub enum TraceCategory {
    /// Kernels, copies, memory operations and the CUDA API.
    Cuda,
    /// NVTX ranges.
    Nvtx,
    /// Blocking calls of the operating system's runtime libraries.
    Osrt,
    /// cuBLAS calls.
    Cublas,
    /// cuDNN calls.
    Cudnn,
    /// MPI calls.
    Mpi,
}

impl TraceCategory {
    /// Every category, in the order in which lists are written.
    pub const ALL: [Self; 6] = [Self::Cuda, Self::Nvtx, Self::Osrt, Self::Cublas, Self::Cudnn, Self::Mpi];

    /// The name as Nsight Systems' `--trace` and our manifests write it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The category of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == name)
    }

    /// The categories of the timeline whose events it records; empty for those that reach the profiler's own report alone.
    pub const fn records(self) -> &'static [Category] {
        match self {
            Self::Cuda => &Category::CUDA,
            Self::Nvtx => &[Category::NvtxRange],
            Self::Osrt => &[Category::OsRuntime],
            Self::Cublas => &[Category::CublasApi],
            Self::Cudnn => &[Category::CudnnApi],
            Self::Mpi => &[],
        }
    }

    /// The one that must be traced for events of a category of the timeline; none where Nsight Systems records no such events.
    pub fn recording(category: Category) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|traced| traced.records().contains(&category))
    }
}

/// How CUDA graphs are traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CudaGraphTrace {
    /// A launch of a graph is one row, without its kernels.
    #[default]
    Graph,
    /// Every node of a graph: each kernel, at a higher cost.
    Node,
}

impl CudaGraphTrace {
    /// Every mode.
    pub const ALL: [Self; 2] = [Self::Graph, Self::Node];

    /// The word of Nsight Systems and of the annotation `flopwatch.dev/nsys-cuda-graph-trace`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Node => "node",
        }
    }

    /// The mode of that word, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

/// What of the program begins and ends a range that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum RangeTrigger {
    /// `cudaProfilerStart` and `cudaProfilerStop`.
    CudaProfilerApi,
    /// An NVTX range.
    Nvtx,
}

impl RangeTrigger {
    /// Every trigger.
    pub const ALL: [Self; 2] = [Self::CudaProfilerApi, Self::Nvtx];

    /// The name as it stands in manifests.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The category that must be traced for it to be seen.
    pub const fn traced(self) -> TraceCategory {
        match self {
            Self::CudaProfilerApi => TraceCategory::Cuda,
            Self::Nvtx => TraceCategory::Nvtx,
        }
    }
}

/// The ranges of the program that are recorded, and nothing else of the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "resources", x_kube(validation = Rule::new("!has(self.name) || self.trigger == 'Nvtx'")
    .message("spec.profiler.nsys.captureRange.name is given, so trigger must be Nvtx")))]
pub struct CaptureRange {
    /// What begins and ends a range.
    pub trigger: RangeTrigger,
    /// The NVTX range, as `name`, `name@domain` or `name@*`. It is fixed when the container starts (pod annotation
    /// `flopwatch.dev/nsys-nvtx-capture`); default: the one that the annotation names. Asking for another fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 127), regex(pattern = "^[!-~]([ -~]*[!-~])?$"))]
    pub name: Option<String>,
    /// Ranges that are recorded, each into a report of its own; they become one timeline. The window ends with the last of them.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 8))]
    pub count: i32,
}

/// Reads a range as command lines name it: `cuda-profiler-api`, `nvtx` or `nvtx:NAME`, with `,xCOUNT` behind it for several.
///
/// Fails with what may stand there.
pub fn parse_capture_range(text: &str) -> Result<CaptureRange, String> {
    const KNOWN: &str = "write cuda-profiler-api, nvtx or nvtx:NAME, and for up to 8 ranges ,xCOUNT behind it";
    let (range, count) = match text.rsplit_once(",x") {
        Some((range, count)) => (range, count.parse().map_err(|_no_number| KNOWN.to_owned())?),
        None => (text, 1),
    };
    let (trigger, name) = match range.split_once(':') {
        None if range == "cuda-profiler-api" => (RangeTrigger::CudaProfilerApi, None),
        None if range == "nvtx" => (RangeTrigger::Nvtx, None),
        Some(("nvtx", name)) if is_range_name(name) => (RangeTrigger::Nvtx, Some(name.to_owned())),
        _ => return Err(KNOWN.to_owned()),
    };
    if !(1..=8).contains(&count) {
        return Err(KNOWN.to_owned());
    }
    Ok(CaptureRange { trigger, name, count })
}

const fn one() -> i32 {
    1
}

/// Whether Nsight Systems takes this for an NVTX range: at most 127 printable ASCII characters, without blanks around them.
pub fn is_range_name(name: &str) -> bool {
    (1..=127).contains(&name.len()) && name.trim() == name && name.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Hardware counters of the GPUs, sampled beside the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuMetrics {
    /// Samples per second.
    #[serde(default = "ten_kilohertz")]
    #[schemars(range(min = 10, max = 200_000))]
    pub frequency_hertz: i32,
}

const fn ten_kilohertz() -> i32 {
    10_000
}

impl Default for GpuMetrics {
    fn default() -> Self {
        Self {
            frequency_hertz: ten_kilohertz(),
        }
    }
}

/// Options of Nsight Systems.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NsysOptions {
    /// Categories that the capture must have been able to record. They are fixed when the container starts (pod
    /// annotation `flopwatch.dev/nsys-trace`, default `cuda,nvtx`); asking for more fails and names the annotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 6), extend("x-kubernetes-list-type" = "set"))]
    pub trace: Vec<TraceCategory>,
    /// How the capture must have traced CUDA graphs. It is fixed when the container starts (pod annotation
    /// `flopwatch.dev/nsys-cuda-graph-trace`, default `graph`); asking for the other mode fails and names the annotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda_graph_trace: Option<CudaGraphTrace>,
    /// Record these ranges of the program alone; default: all of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_range: Option<CaptureRange>,
    /// Sample hardware counters of all GPUs that the container sees. Refused where the driver keeps them for administrators, and on
    /// a node without NVML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_metrics: Option<GpuMetrics>,
}

impl NsysOptions {
    /// What a session asks for by name, as it stands in its manifest. A profiler that has none of it is no answer.
    pub fn asked(&self) -> Vec<&'static str> {
        let named = [
            (self.cuda_graph_trace.is_some(), "cudaGraphTrace"),
            (self.capture_range.is_some(), "captureRange"),
            (self.gpu_metrics.is_some(), "gpuMetrics"),
        ];
        let traced = self.trace.iter().map(|category| category.as_str());
        traced
            .chain(
                named
                    .into_iter()
                    .filter_map(|(is_asked, name)| is_asked.then_some(name)),
            )
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_is_recorded_by_one_word_at_most() {
        for category in Category::ALL.iter().copied() {
            let words: Vec<_> = TraceCategory::ALL
                .into_iter()
                .filter(|word| word.records().contains(&category))
                .collect();
            assert!(words.len() <= 1, "{category:?}: {words:?}");
            assert_eq!(TraceCategory::recording(category), words.first().copied());
        }
        assert_eq!(TraceCategory::recording(Category::CudaSync), Some(TraceCategory::Cuda));
        assert_eq!(TraceCategory::recording(Category::CpuOp), None);
    }

    #[test]
    fn a_range_has_a_printable_name() {
        let long = "x".repeat(128);
        for (name, is_one) in [
            ("step", true),
            ("train step@torch", true),
            ("step@*", true),
            ("", false),
            (" step", false),
            ("st\nep", false),
            ("schritt-ä", false),
            (long.as_str(), false),
        ] {
            assert_eq!(is_range_name(name), is_one, "{name:?}");
        }
    }

    #[test]
    fn a_range_of_a_command_line_is_read() {
        use RangeTrigger::{CudaProfilerApi, Nvtx};
        for (text, trigger, name, count) in [
            ("cuda-profiler-api", CudaProfilerApi, None, 1),
            ("cuda-profiler-api,x3", CudaProfilerApi, None, 3),
            ("nvtx", Nvtx, None, 1),
            ("nvtx:train step@torch,x8", Nvtx, Some("train step@torch"), 8),
        ] {
            let name = name.map(str::to_owned);
            assert_eq!(
                parse_capture_range(text),
                Ok(CaptureRange { trigger, name, count }),
                "{text}"
            );
        }
        for wrong in [
            "",
            "cuda",
            "nvtx:",
            "nvtx:step,x0",
            "nvtx:step,x9",
            "nvtx:step,xy",
            "cuda-profiler-api:step",
        ] {
            assert!(parse_capture_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_left_out_of_the_options_has_its_default() {
        let options: NsysOptions =
            serde_json::from_str(r#"{"captureRange": {"trigger": "CudaProfilerApi"}, "gpuMetrics": {}}"#).unwrap();
        assert_eq!(options.capture_range.as_ref().map(|range| range.count), Some(1));
        assert_eq!(
            options.gpu_metrics,
            Some(GpuMetrics {
                frequency_hertz: 10_000
            })
        );
        assert_eq!(options.asked(), ["captureRange", "gpuMetrics"]);
        assert!(NsysOptions::default().asked().is_empty());
    }
}
