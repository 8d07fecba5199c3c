//! No empty success: a capture holds events of everything that was asked for, or it failed.

use std::collections::BTreeSet;

use flopwatch_api::capture::{CategoryCount, TraceOutcome, TracedCategory};
use flopwatch_api::profiler::TraceCategory;
use flopwatch_api::reason::CaptureReason;
use flopwatch_trace::model::Category;

use crate::choice::names;
use crate::failure::Failure;

/// Whether a capture holds CUDA events: its program uses CUDA, whatever was mapped when somebody looked.
pub fn holds_cuda(counts: &[CategoryCount]) -> bool {
    events(TraceCategory::Cuda, counts) > 0
}

/// The categories that must hold events: those that the session lists, otherwise cuda where the process has mapped
/// libcuda, otherwise nvtx.
pub fn required(listed: &[TraceCategory], uses_cuda: bool) -> Vec<TraceCategory> {
    match (listed.is_empty(), uses_cuda) {
        (false, _) => listed.to_vec(),
        (true, true) => vec![TraceCategory::Cuda],
        (true, false) => vec![TraceCategory::Nvtx],
    }
}

/// Fails with the names of the required categories that hold no event.
pub fn verify(required: &[TraceCategory], counts: &[CategoryCount]) -> Result<(), Failure> {
    let empty: Vec<_> = required
        .iter()
        .filter(|category| events(**category, counts) == 0)
        .collect();
    if empty.is_empty() {
        return Ok(());
    }
    let captured: Vec<_> = counts
        .iter()
        .filter(|count| count.events > 0)
        .map(|count| format!("{} {}", count.events, count.category))
        .collect();
    let captured = if captured.is_empty() {
        "no events at all".to_owned()
    } else {
        captured.join(", ")
    };
    let message = format!(
        "the window holds no events of {}; it holds {captured}. Check that the program does such work within the window, or set \
         spec.require to what it does",
        names(empty.into_iter()),
    );
    Err(Failure::new(CaptureReason::RequiredEventsMissing, message))
}

/// What came of each category that was traced.
pub fn outcomes(traced: &BTreeSet<TraceCategory>, counts: &[CategoryCount]) -> Vec<TracedCategory> {
    let outcome = |category: TraceCategory| {
        if events(category, counts) > 0 {
            TraceOutcome::Captured
        } else if held(category, counts).next().is_some() {
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

/// Whether a timeline can hold events of a category at all; one that it cannot hold cannot be required.
pub fn is_supported(asked: TraceCategory) -> bool {
    Category::ALL.iter().any(|held| belongs(*held, asked))
}

/// Events of one of the profiler's categories, which may stand in several categories of the timeline.
fn events(category: TraceCategory, counts: &[CategoryCount]) -> i64 {
    held(category, counts).map(|count| count.events).sum()
}

/// What the timeline holds of one of the profiler's categories.
fn held(category: TraceCategory, counts: &[CategoryCount]) -> impl Iterator<Item = &CategoryCount> {
    let held =
        move |count: &&CategoryCount| Category::from_name(&count.category).is_some_and(|held| belongs(held, category));
    counts.iter().filter(held)
}

fn belongs(held: Category, asked: TraceCategory) -> bool {
    match asked {
        TraceCategory::Cuda => held.is_gpu_work() || matches!(held, Category::CudaApi | Category::CudaSync),
        TraceCategory::Nvtx => held == Category::NvtxRange,
        TraceCategory::Osrt => held == Category::OsRuntime,
        // The timeline has no category of their own for library calls yet, so requiring them is refused.
        TraceCategory::Cublas | TraceCategory::Cudnn | TraceCategory::Mpi => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, i64)]) -> Vec<CategoryCount> {
        counts
            .iter()
            .map(|(category, events)| CategoryCount {
                category: (*category).to_owned(),
                events: *events,
            })
            .collect()
    }

    #[test]
    fn without_a_list_cuda_is_required_of_programs_that_use_it_and_nvtx_of_others() {
        assert_eq!(required(&[], true), [TraceCategory::Cuda]);
        assert_eq!(required(&[], false), [TraceCategory::Nvtx]);
        assert_eq!(required(&[TraceCategory::Osrt], true), [TraceCategory::Osrt]);
    }

    #[test]
    fn each_traced_category_is_captured_empty_or_unsupported() {
        use TraceCategory::{Cublas, Cuda, Nvtx, Osrt};
        let counts = counts(&[("nvtx_range", 3), ("cuda_kernel", 0), ("cuda_api", 0)]);
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
    fn every_required_category_must_hold_events() {
        type Row<'a> = (&'a [TraceCategory], &'a [(&'a str, i64)], bool);
        use TraceCategory::{Cuda, Nvtx, Osrt};
        let rows: [Row<'_>; 6] = [
            (&[Nvtx], &[("nvtx_range", 1)], true),
            (&[Nvtx], &[("nvtx_range", 0), ("os_runtime", 9)], false),
            (&[Cuda], &[("cuda_memcpy_h2d", 1)], true),
            (&[Cuda], &[("cuda_api", 3)], true),
            (&[Cuda, Nvtx], &[("cuda_kernel", 3)], false),
            (&[Osrt], &[], false),
        ];
        for (required, held, succeeds) in rows {
            assert_eq!(
                verify(required, &counts(held)).is_ok(),
                succeeds,
                "{required:?} in {held:?}"
            );
        }
    }

    #[test]
    fn the_failure_names_what_is_empty_and_what_was_captured() {
        let failure = verify(&[TraceCategory::Cuda], &counts(&[("nvtx_range", 12)])).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::RequiredEventsMissing);
        assert!(failure.message.contains("no events of cuda") && failure.message.contains("12 nvtx_range"));
    }
}
