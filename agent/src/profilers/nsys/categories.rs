//! What a container's session traces, in the profiler's words, and what that gives in the timeline.

use std::collections::BTreeSet;

use flopwatch_api::capture::{CategoryCount, TraceOutcome, TracedCategory};
use flopwatch_api::preparation::{NSYS_TRACE_ANNOTATION, NSYS_TRACE_DEFAULT, split_names};
use flopwatch_api::profiler::{ProfilerSpec, TraceCategory};
use flopwatch_api::reason::CaptureReason;
use flopwatch_launcher::needed::Outdated;
use flopwatch_model::Category;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sentence::names;
use flopwatch_pipeline::verify::{events, held};

use crate::profilers::profiler::holds;

/// What a container's session traces, from the pod's annotation. One without a word that is known
/// stands for the default. Tools that are too old for the driver trace no CUDA.
pub fn traced_categories(annotation: Option<&str>, outdated: Option<Outdated>) -> BTreeSet<TraceCategory> {
    let mut traced = named(annotation.unwrap_or_default());
    if traced.is_empty() {
        traced = named(NSYS_TRACE_DEFAULT);
    }
    if outdated.is_some() && traced.remove(&TraceCategory::Cuda) && traced.is_empty() {
        // A session must trace something.
        traced.insert(TraceCategory::Nvtx);
    }
    traced
}

fn named(list: &str) -> BTreeSet<TraceCategory> {
    split_names(list).filter_map(TraceCategory::from_name).collect()
}

/// Fails where a session that traces `traced` cannot hold what was asked for.
pub fn covers(spec: &ProfilerSpec, require: &[Category], traced: &BTreeSet<TraceCategory>) -> Result<(), Failure> {
    // What it never records cannot be required of it: the window would be for nothing.
    let is_recorded = |category: &Category| TraceCategory::recording(*category).is_some();
    holds(require, is_recorded, |never| {
        format!(
            "a timeline of Nsight Systems holds no events of {never}, so they cannot be required of it: take them out of \
             spec.require"
        )
    })?;
    let listed = spec.nsys.iter().flat_map(|options| options.trace.iter().copied());
    let ranges = spec.nsys.iter().filter_map(|options| options.capture_range.as_ref());
    let triggers = ranges.map(|range| range.trigger.traced());
    let required = require.iter().copied().filter_map(TraceCategory::recording);
    prepared_for(&listed.chain(triggers).chain(required).collect(), traced)
}

fn prepared_for(wanted: &BTreeSet<TraceCategory>, traced: &BTreeSet<TraceCategory>) -> Result<(), Failure> {
    let missing: Vec<_> = wanted.difference(traced).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the container records {} since its start, not {}: annotate the pod template with {NSYS_TRACE_ANNOTATION}: {} and let \
         the pod be created anew",
        names(traced.iter().map(|category| category.as_str())),
        names(missing.into_iter().map(|category| category.as_str())),
        wanted
            .union(traced)
            .map(|category| category.as_str())
            .collect::<Vec<_>>()
            .join(","),
    );
    Err(Failure::new(CaptureReason::CategoryNotPrepared, message))
}

/// What came of each category that was traced.
pub fn outcomes(traced: &BTreeSet<TraceCategory>, counts: &[CategoryCount]) -> Vec<TracedCategory> {
    let outcome = |category: TraceCategory| {
        if events(category.records(), counts) > 0 {
            TraceOutcome::Captured
        } else if held(category.records(), counts).next().is_some() {
            TraceOutcome::Empty
        } else {
            TraceOutcome::Unsupported
        }
    };
    traced
        .iter()
        .map(|&category| TracedCategory {
            category,
            outcome: outcome(category),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_traced_category_is_captured_empty_or_unsupported() {
        use TraceCategory::{Cublas, Cuda, Nvtx, Osrt};
        let counts = [("nvtx_range", 3), ("cuda_kernel", 0), ("cuda_api", 0)].map(|(category, events)| CategoryCount {
            category: category.to_owned(),
            events,
        });
        let outcomes: Vec<_> = outcomes(&BTreeSet::from([Cuda, Nvtx, Osrt, Cublas]), &counts)
            .into_iter()
            .map(|one| (one.category, one.outcome))
            .collect();
        assert_eq!(
            outcomes,
            [
                (Cuda, TraceOutcome::Empty),
                (Nvtx, TraceOutcome::Captured),
                (Osrt, TraceOutcome::Unsupported),
                (Cublas, TraceOutcome::Unsupported),
            ]
        );
    }

    #[test]
    fn a_missing_category_names_the_annotation_and_its_whole_value() {
        let traced = traced_categories(None, None);
        let required = [Category::OsRuntime];
        let failure = covers(&ProfilerSpec::default(), &required, &traced).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::CategoryNotPrepared);
        assert!(
            failure.message.contains("flopwatch.dev/nsys-trace: cuda,nvtx,osrt"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn what_it_never_records_cannot_be_required_of_it() {
        let traced = traced_categories(Some("cuda,cublas"), None);
        let failure = covers(&ProfilerSpec::default(), &[Category::CpuOp], &traced).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::ProfilerUnavailable);
        assert!(failure.message.contains("cpu_op"), "{}", failure.message);
    }
}
