//! What the CUDA tracer keeps of a collection in the journal: where the file is, and what is asked
//! of it.

use std::path::PathBuf;

use flopwatch_api::profiler::{CudaGraphTrace, CudaGraphs, CudaOptions, ProfilerSpec, TraceCategory};
use flopwatch_api::reason::CaptureReason;
use flopwatch_model::Category;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sentence::names;
use flopwatch_tracer::proven;
use serde::{Deserialize, Serialize};

use super::probe::{self, Look};
use super::{PROGRAM_MEMORY, driver};
use crate::profilers::facts::Facts;
use crate::profilers::profiler::holds;
use crate::profilers::recorder;

/// What the journal keeps of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaSource {
    /// The file that the container's programs share; none where they have no tracer.
    pub(super) file: Option<PathBuf>,
    /// What is recorded.
    #[serde(default)]
    pub(super) options: CudaOptions,
    /// The flight recorder's file of the same programs; none where they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ring: Option<PathBuf>,
    /// Programs that had the library in them when the container was probed.
    #[serde(default)]
    pub(super) programs: u64,
    /// Why nothing shows that the tracer works with the driver; none where a GPU has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unproven: Option<String>,
    /// The number of the window's order; 0 before it is prepared.
    #[serde(default)]
    pub(super) generation: u32,
    /// When it was prepared, in ns since the Unix epoch: what ended before is of no window of it.
    #[serde(default)]
    pub(super) prepared_utc_ns: u64,
}

impl CudaSource {
    /// What is asked for of a container that was probed.
    pub(super) fn of(spec: &ProfilerSpec, facts: &Facts) -> Self {
        let programs = facts.found.get::<Look>().map_or(0, |look| look.programs().len());
        let by_nodes = spec.nsys.as_ref().and_then(|nsys| nsys.cuda_graph_trace) == Some(CudaGraphTrace::Node);
        let mut options = spec.cuda.clone().unwrap_or_default();
        options.graphs = options.graphs.or(by_nodes.then_some(CudaGraphs::Nodes));
        Self {
            file: probe::file(&facts.variables),
            options,
            ring: recorder::file(facts),
            programs: u64::try_from(programs).unwrap_or(u64::MAX),
            unproven: driver::unproven(facts, proven::check),
            generation: 0,
            prepared_utc_ns: 0,
        }
    }

    /// Categories that it records.
    fn records(&self) -> Vec<Category> {
        let ranges = self.ring.as_ref().map(|_| Category::NvtxRange);
        let cuda = self.options.records().into_iter();
        cuda.chain([Category::Overhead]).chain(ranges).collect()
    }

    /// Bytes of its programs' memory that a window takes.
    pub(super) fn memory(&self) -> u64 {
        self.programs.saturating_mul(PROGRAM_MEMORY)
    }

    /// Fails where it does not record what the session asks for.
    pub(super) fn covers(&self, spec: &ProfilerSpec, require: &[Category]) -> Result<(), Failure> {
        let unfit = unfit(spec);
        if !unfit.is_empty() {
            let message = format!(
                "the CUDA tracer has no {} as the session asks for it: take it out of spec.profiler.nsys, or use Nsys",
                names(unfit.into_iter())
            );
            return Err(Failure::new(CaptureReason::ProfilerUnavailable, message));
        }
        let records = self.records();
        let is_recorded = |category: &Category| records.contains(category);
        holds(require, is_recorded, |missing| {
            format!(
                "a timeline of the CUDA tracer holds no events of {missing} as the session asks for it: take them out of \
                 spec.require, name their kinds in spec.profiler.cuda.kinds, give the pod a flight recorder for nvtx_range, or \
                 use another profiler"
            )
        })
    }
}

/// What of another profiler's options it does not have.
fn unfit(spec: &ProfilerSpec) -> Vec<&'static str> {
    let Some(nsys) = &spec.nsys else {
        return Vec::new();
    };
    let traced = nsys
        .trace
        .iter()
        .filter(|traced| !matches!(traced, TraceCategory::Cuda | TraceCategory::Nvtx));
    let options = [
        (nsys.capture_range.is_some(), "captureRange"),
        (nsys.gpu_metrics.is_some(), "gpuMetrics"),
    ];
    let options = options
        .into_iter()
        .filter_map(|(is_asked, name)| is_asked.then_some(name));
    traced.map(|traced| traced.as_str()).chain(options).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(ring: Option<&str>) -> CudaSource {
        CudaSource {
            file: Some("/flopwatch/cuda/cuda.trace".into()),
            options: CudaOptions::default(),
            ring: ring.map(Into::into),
            programs: 2,
            unproven: None,
            generation: 0,
            prepared_utc_ns: 0,
        }
    }

    fn refusal(spec: &ProfilerSpec, require: &[Category], source: &CudaSource) -> String {
        let covered = source.covers(spec, require);
        covered.err().map(|failure| failure.message).unwrap_or_default()
    }

    #[test]
    fn what_it_does_not_record_is_refused_by_name() {
        let (spec, all) = (ProfilerSpec::default(), source(None));
        let cuda = [Category::CudaKernel, Category::CudaGraph, Category::CudaApi];
        assert_eq!(refusal(&spec, &cuda, &all), "");
        assert!(refusal(&spec, &[Category::CudaMigration], &all).contains("cuda_migration"));
        assert!(refusal(&spec, &[Category::NvtxRange], &all).contains("flight recorder"));
        assert_eq!(refusal(&spec, &[Category::NvtxRange], &source(Some("/r"))), "");
        let nsys = serde_json::json!({"nsys": {"trace": ["cuda", "osrt"], "gpuMetrics": {}}});
        let nsys: ProfilerSpec = serde_json::from_value(nsys).unwrap();
        let refused = refusal(&nsys, &[], &all);
        assert!(refused.contains("no osrt and gpuMetrics"), "{refused}");
    }

    #[test]
    fn nodes_of_graphs_are_recorded_by_either_word() {
        let of = |spec: serde_json::Value| {
            let spec: ProfilerSpec = serde_json::from_value(spec).unwrap();
            CudaSource::of(&spec, &Facts::default()).options.graphs
        };
        assert_eq!(of(serde_json::json!({})), None);
        let nodes = Some(CudaGraphs::Nodes);
        assert_eq!(
            of(serde_json::json!({"type": "Cuda", "cuda": {"graphs": "Nodes"}})),
            nodes
        );
        assert_eq!(of(serde_json::json!({"nsys": {"cudaGraphTrace": "Node"}})), nodes);
    }

    #[test]
    fn the_journal_reads_back_and_the_memory_is_that_of_each_program() {
        let source = source(Some("/r"));
        let text = serde_json::to_string(&source).unwrap();
        assert_eq!(serde_json::from_str::<CudaSource>(&text).unwrap(), source);
        assert_eq!(source.memory(), 64 << 20);
    }
}
