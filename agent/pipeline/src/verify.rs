//! No empty success: a capture holds events of everything that was asked for, or it failed.
//!
//! What is missing is held against signs that the profiler had no part in: a program that did
//! nothing is told from a profiler that missed its work. The latter gets one second try
//! (`plan::tries_again` of the agent).

use flopwatch_api::capture::CategoryCount;
use flopwatch_api::reason::CaptureReason;
use flopwatch_model::Category;

use crate::activity::ActivityEvidence;
use crate::failure::Failure;
use crate::sentence::names;

/// What a program that runs in the interpreter or in a framework is likely to do whenever it has a
/// processor.
const ON_PROCESSORS: [Category; 2] = [Category::CpuOp, Category::PythonFunction];

/// Events that must be there: at least one of any of these categories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Required {
    /// How a message names them.
    name: String,
    any_of: Vec<Category>,
}

impl Required {
    fn cuda() -> Self {
        Self {
            name: "cuda_*".to_owned(),
            any_of: Category::CUDA.to_vec(),
        }
    }

    /// Any of these.
    fn any(categories: &[Category]) -> Self {
        let names: Vec<_> = categories.iter().map(|category| category.name()).collect();
        Self {
            name: names.join(" or "),
            any_of: categories.to_vec(),
        }
    }

    fn is_held(&self, counts: &[CategoryCount]) -> bool {
        events(&self.any_of, counts) > 0
    }

    /// What says, beside the profiler, that there was such work.
    fn sign(&self, activity: &ActivityEvidence) -> Option<String> {
        let any = |of: &[Category]| self.any_of.iter().any(|category| of.contains(category));
        if any(&Category::CUDA) {
            return activity.of_gpu();
        }
        any(&ON_PROCESSORS).then(|| activity.of_processor()).flatten()
    }
}

/// Whether a capture holds CUDA events: its program uses CUDA, whatever was mapped when somebody
/// looked.
pub fn holds_cuda(counts: &[CategoryCount]) -> bool {
    Required::cuda().is_held(counts)
}

/// What must hold events: what the session lists, otherwise anything of CUDA where the process has
/// mapped libcuda, otherwise anything of what its profiler `expects`.
pub fn required(listed: &[Category], uses_cuda: bool, expects: &[Category]) -> Vec<Required> {
    match (listed.is_empty(), uses_cuda) {
        (false, _) => listed
            .iter()
            .map(|category| Required::any(std::slice::from_ref(category)))
            .collect(),
        (true, true) => vec![Required::cuda()],
        (true, false) => vec![Required::any(expects)],
    }
}

/// Fails with the names of what is required and holds no event.
pub fn verify(required: &[Required], counts: &[CategoryCount]) -> Result<(), Failure> {
    judge(required, counts, false, &ActivityEvidence::default())
}

/// Fails where the file that was read `ends_early`, and with the names of what is required and
/// holds no event: as missed by the profiler where signs of the window say that there was such
/// work.
pub fn judge(
    required: &[Required],
    counts: &[CategoryCount],
    ends_early: bool,
    activity: &ActivityEvidence,
) -> Result<(), Failure> {
    if ends_early {
        let message = "the profiler's file ends before its events do: how many are missing cannot be told. Ask for a shorter window, \
                       or look whether the container's disk is full";
        return Err(Failure::new(CaptureReason::CaptureTruncated, message));
    }
    let empty: Vec<_> = required.iter().filter(|required| !required.is_held(counts)).collect();
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
    let missing = format!(
        "the window holds no events of {}; it holds {captured}",
        names(empty.iter().map(|required| required.name.as_str()))
    );
    if let Some(sign) = empty.iter().find_map(|required| required.sign(activity)) {
        let message = format!(
            "{missing}. The profiler may have missed them: {sign}. Restart the pod, or choose another profiler"
        );
        return Err(Failure::new(CaptureReason::EventsMissed, message));
    }
    let message = format!(
        "{missing}. Check that the program does such work within the window, or set spec.require (--require on a command line) \
         to what it does"
    );
    Err(Failure::new(CaptureReason::RequiredEventsMissing, message))
}

/// Events of any of these categories.
pub fn events(categories: &[Category], counts: &[CategoryCount]) -> i64 {
    held(categories, counts).map(|count| count.events).sum()
}

/// What a timeline holds of these categories.
pub fn held<'a>(categories: &'a [Category], counts: &'a [CategoryCount]) -> impl Iterator<Item = &'a CategoryCount> {
    counts
        .iter()
        .filter(|count| Category::from_name(&count.category).is_some_and(|held| categories.contains(&held)))
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

    const NVTX: [Category; 1] = [Category::NvtxRange];

    fn of(category: Category) -> Required {
        Required::any(&[category])
    }

    #[test]
    fn without_a_list_cuda_is_required_of_programs_that_use_it_and_what_the_profiler_expects_of_others() {
        assert_eq!(required(&[], true, &NVTX), [Required::cuda()]);
        assert_eq!(required(&[], false, &NVTX), [of(Category::NvtxRange)]);
        let any = required(&[], false, &[Category::CpuOp, Category::Annotation]);
        verify(&any, &counts(&[("annotation", 1)])).unwrap();
        let failure = verify(&any, &counts(&[("nvtx_range", 1)])).unwrap_err();
        assert!(
            failure.message.contains("no events of cpu_op or annotation"),
            "{}",
            failure.message
        );
        let listed = [Category::OsRuntime];
        assert_eq!(required(&listed, true, &NVTX), [of(Category::OsRuntime)]);
    }

    #[test]
    fn every_required_category_must_hold_events() {
        type Row<'a> = (&'a [Required], &'a [(&'a str, i64)], bool);
        let (cuda, nvtx, osrt) = (Required::cuda(), of(Category::NvtxRange), of(Category::OsRuntime));
        let only = std::slice::from_ref;
        let rows: [Row<'_>; 8] = [
            (only(&nvtx), &[("nvtx_range", 1)], true),
            (only(&nvtx), &[("nvtx_range", 0), ("os_runtime", 9)], false),
            (only(&cuda), &[("cuda_memcpy_h2d", 1)], true),
            (only(&cuda), &[("cuda_api", 3)], true),
            (&[cuda.clone(), nvtx.clone()], &[("cuda_kernel", 3)], false),
            (&[osrt], &[], false),
            (&[of(Category::CudaKernel)], &[("cuda_api", 3)], false),
            (&[of(Category::CpuOp)], &[("cpu_op", 3)], true),
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
        let required = required(&[], true, &NVTX);
        let failure = verify(&required, &counts(&[("nvtx_range", 12)])).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::RequiredEventsMissing);
        assert!(failure.message.contains("no events of cuda") && failure.message.contains("12 nvtx_range"));
        assert!(failure.message.contains("spec.require (--require"), "{failure}");
    }

    #[test]
    fn an_empty_window_is_missed_work_where_a_sign_of_it_was_seen_and_nothing_happened_where_none_was() {
        let gpu = ActivityEvidence {
            gpu_percent: Some(40),
            ..ActivityEvidence::default()
        };
        let processor = ActivityEvidence {
            processor_ms: Some(900),
            window_ms: 1000,
            ..ActivityEvidence::default()
        };
        let (kernels, operators, ranges) = (of(Category::CudaKernel), of(Category::CpuOp), of(Category::NvtxRange));
        let only = std::slice::from_ref;
        let rows = [
            (only(&kernels), &[][..], gpu, "EventsMissed"),
            (only(&kernels), &[], processor, "RequiredEventsMissing"),
            (
                only(&kernels),
                &[],
                ActivityEvidence::default(),
                "RequiredEventsMissing",
            ),
            (only(&kernels), &[("cuda_kernel", 1)], gpu, ""),
            (only(&operators), &[], processor, "EventsMissed"),
            (only(&operators), &[], gpu, "RequiredEventsMissing"),
            // A program need not mark ranges to be busy.
            (only(&ranges), &[], processor, "RequiredEventsMissing"),
            (
                &[ranges.clone(), kernels.clone()],
                &[("nvtx_range", 1)],
                gpu,
                "EventsMissed",
            ),
        ];
        for (required, held, activity, reason) in rows {
            let judged = judge(required, &counts(held), false, &activity);
            let found = judged.err().map(|failure| failure.reason.as_str()).unwrap_or_default();
            assert_eq!(found, reason, "{required:?} in {held:?} with {activity:?}");
        }
        let failure = judge(only(&kernels), &[], false, &gpu).unwrap_err();
        assert!(
            failure.message.contains("no events of cuda_kernel") && failure.message.contains("40 %"),
            "{failure:?}"
        );
    }

    #[test]
    fn a_file_that_ends_early_is_no_success_whatever_it_holds() {
        let kernels = of(Category::CudaKernel);
        let judged = judge(
            std::slice::from_ref(&kernels),
            &counts(&[("cuda_kernel", 9)]),
            true,
            &ActivityEvidence::default(),
        );
        assert_eq!(judged.unwrap_err().reason, CaptureReason::CaptureTruncated);
    }
}
