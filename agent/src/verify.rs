//! No empty success: a capture holds events of everything that was asked for, or it failed.

use flopwatch_api::capture::CategoryCount;
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::requirement::Requirement;
use flopwatch_trace::model::Category;

use crate::choice::names;
use crate::failure::Failure;

/// Events that must be there: at least one of any of these categories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Required {
    /// How a message names them.
    name: &'static str,
    any_of: Vec<Category>,
}

impl Required {
    fn cuda() -> Self {
        Self {
            name: "cuda_*",
            any_of: Category::CUDA.to_vec(),
        }
    }

    fn is_held(&self, counts: &[CategoryCount]) -> bool {
        events(&self.any_of, counts) > 0
    }
}

impl From<Requirement> for Required {
    fn from(requirement: Requirement) -> Self {
        Self {
            name: requirement.as_str(),
            any_of: match requirement {
                Requirement::Category(category) => vec![category],
                Requirement::Former(word) => word.records().to_vec(),
            },
        }
    }
}

/// Whether a capture holds CUDA events: its program uses CUDA, whatever was mapped when somebody looked.
pub fn holds_cuda(counts: &[CategoryCount]) -> bool {
    Required::cuda().is_held(counts)
}

/// What must hold events: what the session lists, otherwise anything of CUDA where the process has mapped libcuda, otherwise
/// NVTX ranges.
pub fn required(listed: &[Requirement], uses_cuda: bool) -> Vec<Required> {
    match (listed.is_empty(), uses_cuda) {
        (false, _) => listed.iter().copied().map(Required::from).collect(),
        (true, true) => vec![Required::cuda()],
        (true, false) => vec![Requirement::Category(Category::NvtxRange).into()],
    }
}

/// Fails with the names of what is required and holds no event.
pub fn verify(required: &[Required], counts: &[CategoryCount]) -> Result<(), Failure> {
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
    let message = format!(
        "the window holds no events of {}; it holds {captured}. Check that the program does such work within the window, or set \
         spec.require to what it does",
        names(empty.into_iter().map(|required| required.name)),
    );
    Err(Failure::new(CaptureReason::RequiredEventsMissing, message))
}

/// Events of any of these categories.
pub(crate) fn events(categories: &[Category], counts: &[CategoryCount]) -> i64 {
    held(categories, counts).map(|count| count.events).sum()
}

/// What a timeline holds of these categories.
pub(crate) fn held<'a>(
    categories: &'a [Category],
    counts: &'a [CategoryCount],
) -> impl Iterator<Item = &'a CategoryCount> {
    counts
        .iter()
        .filter(|count| Category::from_name(&count.category).is_some_and(|held| categories.contains(&held)))
}

#[cfg(test)]
mod tests {
    use flopwatch_api::profiler::TraceCategory;

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

    fn of(category: Category) -> Required {
        Requirement::Category(category).into()
    }

    #[test]
    fn without_a_list_cuda_is_required_of_programs_that_use_it_and_nvtx_of_others() {
        assert_eq!(required(&[], true), [Required::cuda()]);
        assert_eq!(required(&[], false), [of(Category::NvtxRange)]);
        let listed = [Requirement::Category(Category::OsRuntime)];
        assert_eq!(required(&listed, true), [of(Category::OsRuntime)]);
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
    fn a_stored_capture_with_a_former_word_succeeds_with_what_it_meant() {
        let former = required(&[Requirement::Former(TraceCategory::Cuda)], false);
        assert!(verify(&former, &counts(&[("cuda_sync", 1)])).is_ok());
        let failure = verify(&former, &counts(&[("nvtx_range", 1)])).unwrap_err();
        assert!(failure.message.contains("no events of cuda;"), "{}", failure.message);
    }

    #[test]
    fn the_failure_names_what_is_empty_and_what_was_captured() {
        let required = required(&[], true);
        let failure = verify(&required, &counts(&[("nvtx_range", 12)])).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::RequiredEventsMissing);
        assert!(failure.message.contains("no events of cuda") && failure.message.contains("12 nvtx_range"));
    }
}
