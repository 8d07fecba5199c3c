//! What a source lacks, which is never reported as zero.

use flopwatch_model::{Capture, Category, gpu_work_and};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::page::category::label;

/// A part of a result that has no figures because the capture does not hold what they are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotCaptured {
    /// What has no figures, e.g. `launch delays`.
    pub what: String,
    /// Why, and what to do so that the next capture has it.
    pub reason: String,
}

impl NotCaptured {
    /// `what` has no figures for `reason`.
    pub fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            reason: reason.into(),
        }
    }

    /// `what` has no figures where none of `categories` was recorded; `None` where one was, with
    /// events or without. Of kernels without whole graphs it is what [`NotCaptured::inside_graphs`]
    /// says too.
    pub fn unless_any(capture: &Capture, categories: &[Category], what: &str) -> Option<Self> {
        if looks_inside(categories)
            && let Some(inside) = Self::inside_graphs(capture, what)
        {
            return Some(inside);
        }
        if categories.iter().any(|category| capture.captured.contains(category)) {
            return None;
        }
        // Eight names for what is one thing to the reader would hide the others.
        let gpu_work: &[Category] = gpu_work_and![];
        let is_gpu_work = gpu_work.iter().all(|work| categories.contains(work));
        let together = is_gpu_work.then_some("GPU work");
        let others = categories
            .iter()
            .filter(|category| !is_gpu_work || !category.is_gpu_work());
        let names: Vec<&str> = together
            .into_iter()
            .chain(others.map(|category| label(*category)))
            .collect();
        let tool = if capture.source.tool.is_empty() {
            "the profiler"
        } else {
            &capture.source.tool
        };
        let reason = format!(
            "{tool} recorded no {}; capture with a profiler and options that record them",
            names.join(" and no ")
        );
        Some(Self::new(what, reason))
    }

    /// Each of `parts` that has no figures by [`NotCaptured::unless_any`]: the categories that it
    /// is made of, and what it is.
    pub fn of_parts(capture: &Capture, parts: &[(&[Category], &str)]) -> Vec<Self> {
        let missing = |(categories, what): &(&[Category], &str)| Self::unless_any(capture, categories, what);
        parts.iter().filter_map(missing).collect()
    }

    /// `what` has no figures of what ran inside of whole CUDA graphs; `None` where there are no
    /// such graphs. Needs the events of [`Category::CudaGraph`].
    pub fn inside_graphs(capture: &Capture, what: &str) -> Option<Self> {
        let graphs = capture.events.get(&Category::CudaGraph)?.count();
        let reason = format!(
            "{graphs} launches of CUDA graphs were recorded as one piece of work each, which counts as computation, without \
             the kernels and copies in them; record the nodes (cudaGraphTrace: Node, --cuda-graph-trace=node)"
        );
        (graphs > 0).then(|| Self::new(what, reason))
    }
}

/// Whether what looks at `categories` looks at kernels, and not at the graphs that may hide them.
pub fn looks_inside(categories: &[Category]) -> bool {
    categories.contains(&Category::CudaKernel) && !categories.contains(&Category::CudaGraph)
}

#[cfg(test)]
mod tests {
    use flopwatch_model::{Event, Events};

    use super::*;

    #[test]
    fn kernels_in_whole_graphs_are_told_where_kernels_alone_are_looked_at() {
        let mut capture = Capture::default();
        capture.captured.insert(Category::CudaKernel);
        let notice = |capture: &Capture, categories| NotCaptured::unless_any(capture, categories, "x");
        assert_eq!(notice(&capture, &[Category::CudaKernel]), None);
        let mut graphs = Events::new(Category::CudaGraph);
        graphs.push(Event::default(), &[]);
        capture.events.insert(Category::CudaGraph, graphs);
        let reason = notice(&capture, &[Category::CudaKernel]).unwrap().reason;
        assert!(reason.starts_with("1 launches of CUDA graphs"), "{reason}");
        assert_eq!(notice(&capture, gpu_work_and![]), None);
    }

    #[test]
    fn all_kinds_of_gpu_work_are_named_as_one() {
        let missing = |categories| {
            NotCaptured::unless_any(&Capture::default(), categories, "x")
                .unwrap()
                .reason
        };
        let notice = missing(gpu_work_and![Category::NvtxRange]);
        assert!(
            notice.starts_with("the profiler recorded no GPU work and no NVTX ranges;"),
            "{notice}"
        );
        let notice = missing(&[Category::CudaKernel, Category::CudaMemset]);
        assert!(
            notice.starts_with("the profiler recorded no kernels and no memsets;"),
            "{notice}"
        );
    }
}
