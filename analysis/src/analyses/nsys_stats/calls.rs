//! Summaries by time of calls and of NVTX ranges.

use flopwatch_model::{Category, ColumnId, Events, Needs, Timeline};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;

use super::parameters::NsysParams;
use super::times::{Group, Grouping, Label, NsysTimes};
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Times of calls of the CUDA runtime and driver.
#[derive(Debug)]
pub struct CudaApiSum;

/// Times of calls of the operating system.
#[derive(Debug)]
pub struct OsrtSum;

/// Times of NVTX ranges by style and name.
#[derive(Debug)]
pub struct NvtxSum;

/// Times of NVTX push/pop ranges by name.
#[derive(Debug)]
pub struct NvtxPushpopSum;

/// The style of a range by its number in [`ColumnId::RangeStyle`].
pub(super) const fn style(number: u64) -> &'static str {
    if number == 0 { "PushPop" } else { "StartEnd" }
}

/// Whether the range at a place is of the push/pop style.
pub(super) fn is_push_pop(ranges: &Events) -> impl Fn(usize) -> bool {
    let styles = ranges.column(ColumnId::RangeStyle);
    move |at| styles.and_then(|styles| styles.get(at)).unwrap_or(0) == 0
}

fn calls(timeline: &Timeline, category: Category, what: &str, params: &NsysParams) -> NsysTimes {
    let mut grouping = Grouping::default();
    if let Some(events) = timeline.capture.events.get(&category) {
        grouping.add_events(events, Group::named, |at| events.duration_ns.get(at).copied());
    }
    let missing = NotCaptured::of_parts(&timeline.capture, &[(&[category], what)]);
    NsysTimes::of(grouping, params.limit, missing)
}

fn ranges(timeline: &Timeline, by_style: bool, params: &NsysParams) -> NsysTimes {
    let mut grouping = Grouping::default();
    if let Some(events) = timeline.capture.events.get(&Category::NvtxRange) {
        let push_pop = is_push_pop(events);
        let styles: &[(bool, u64)] = if by_style {
            &[(true, 0), (false, 1)]
        } else {
            &[(true, 0)]
        };
        for (wanted, number) in styles {
            let keys = events.names.iter().map(|name| {
                let group = Group::named(name);
                grouping.key(Group {
                    style: by_style.then(|| style(*number)),
                    ..group
                })
            });
            let keys: Vec<u32> = keys.collect();
            for (at, (name, duration)) in events.name.iter().zip(&events.duration_ns).enumerate() {
                if let Some(key) = keys.get(name.index()).filter(|_| push_pop(at) == *wanted) {
                    grouping.add(*key, *duration);
                }
            }
        }
    }
    let missing = NotCaptured::of_parts(&timeline.capture, &[(&[Category::NvtxRange], "NVTX ranges")]);
    NsysTimes::of(grouping, params.limit, missing)
}

impl Analysis for CudaApiSum {
    const NAME: &'static str = "cuda_api_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Times of calls of the CUDA runtime and driver by function, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = Needs::of(&[Category::CudaApi]).names();
    type Params = NsysParams;
    type Output = NsysTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysTimes, AnalysisError> {
        Ok(calls(inputs.first(), Category::CudaApi, "CUDA calls", params))
    }

    fn page(output: &NsysTimes) -> Result<Page, AnalysisError> {
        Ok(output.page(Self::NAME, Self::ABOUT, "Num Calls", &[Label::Name("Name")]))
    }
}

impl Analysis for OsrtSum {
    const NAME: &'static str = "osrt_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Times of calls of the operating system by function, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = Needs::of(&[Category::OsRuntime]).names();
    type Params = NsysParams;
    type Output = NsysTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysTimes, AnalysisError> {
        let what = "calls of the operating system";
        Ok(calls(inputs.first(), Category::OsRuntime, what, params))
    }

    fn page(output: &NsysTimes) -> Result<Page, AnalysisError> {
        Ok(output.page(Self::NAME, Self::ABOUT, "Num Calls", &[Label::Name("Name")]))
    }
}

const RANGES: Needs = Needs::of(&[Category::NvtxRange])
    .columns(&[ColumnId::RangeStyle])
    .names();

impl Analysis for NvtxSum {
    const NAME: &'static str = "nvtx_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Times of NVTX ranges by style and name, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = RANGES;
    type Params = NsysParams;
    type Output = NsysTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysTimes, AnalysisError> {
        Ok(ranges(inputs.first(), true, params))
    }

    fn page(output: &NsysTimes) -> Result<Page, AnalysisError> {
        let labels = [Label::Style, Label::Name("Range")];
        Ok(output.page(Self::NAME, Self::ABOUT, "Instances", &labels))
    }
}

impl Analysis for NvtxPushpopSum {
    const NAME: &'static str = "nvtx_pushpop_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Times of NVTX push/pop ranges by name, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = RANGES;
    type Params = NsysParams;
    type Output = NsysTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysTimes, AnalysisError> {
        Ok(ranges(inputs.first(), false, params))
    }

    fn page(output: &NsysTimes) -> Result<Page, AnalysisError> {
        Ok(output.page(Self::NAME, Self::ABOUT, "Instances", &[Label::Name("Range")]))
    }
}
