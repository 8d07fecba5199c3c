//! Summaries by time of what GPUs did.

use std::borrow::Cow;
use std::collections::HashMap;

use flopwatch_model::{Category, ColumnId, Needs, Timeline, gpu_work_and};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Page;

use super::kernel_names::{KERNELS_AND_RANGES, Kernels};
use super::parameters::{NsysKernelParams, NsysParams};
use super::times::{Group, Grouping, Label, NsysTimes, Shape};
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Copies, migrations of unified memory, and memsets.
pub(super) const MEMORY: &[Category] = &[
    Category::CudaMemcpyH2d,
    Category::CudaMemcpyD2h,
    Category::CudaMemcpyD2d,
    Category::CudaMemcpyP2p,
    Category::CudaMemcpyOther,
    Category::CudaMemset,
    Category::CudaMigration,
];

/// What tables of all GPU work are made of.
pub(super) const GPU_PARTS: &[(&[Category], &str)] =
    &[(&[Category::CudaKernel], "kernels"), (MEMORY, "copies and memsets")];

/// Everything that CUDA does and is asked for, and the ranges around it.
const CUDA_AND_RANGES: &[Category] = gpu_work_and![Category::CudaMigration, Category::CudaApi, Category::NvtxRange];

const NAMES: Needs = Needs::NOTHING
    .names()
    .name_details()
    .rows()
    .columns(&[ColumnId::Launch]);

/// The launch of a kernel and its shape.
pub(super) const SHAPES: &[ColumnId] = &[
    ColumnId::Launch,
    ColumnId::GridX,
    ColumnId::GridY,
    ColumnId::GridZ,
    ColumnId::BlockX,
    ColumnId::BlockY,
    ColumnId::BlockZ,
];

/// What is listed under a category of its own in tables that mix kernels, operations on memory and
/// calls.
const KERNEL: Option<&str> = Some("CUDA_KERNEL");
const OPERATION: Option<&str> = Some("MEMORY_OPER");
const CALL: Option<&str> = Some("CUDA_API");

/// Times of kernels by name.
#[derive(Debug)]
pub struct CudaGpuKernSum;

/// Times of kernels by name, grid and block.
#[derive(Debug)]
pub struct CudaGpuKernGbSum;

/// Times of copies and memsets.
#[derive(Debug)]
pub struct CudaGpuMemTimeSum;

/// Times of kernels, copies and memsets together.
#[derive(Debug)]
pub struct CudaGpuSum;

/// Times of CUDA calls, kernels, copies and memsets together.
#[derive(Debug)]
pub struct CudaApiGpuSum;

/// Adds the kernels of `timeline`, and gives what their names lack.
fn add_kernels(
    grouping: &mut Grouping<'_>,
    timeline: &Timeline,
    params: &NsysKernelParams,
    by_shape: bool,
    category: Option<&'static str>,
) -> Vec<NotCaptured> {
    let Some(kernels) = Kernels::of(timeline, params) else {
        return Vec::new();
    };
    let group = |number: u32, shape: Option<Shape>| Group {
        name: Cow::Owned(kernels.name_of_number(number).to_owned()),
        category,
        shape,
        ..Group::default()
    };
    let durations = kernels.events.duration_ns.iter().enumerate();
    if by_shape {
        let shape_of = kernels.shape();
        let mut known: HashMap<(u32, Shape), u32> = HashMap::new();
        for (at, duration) in durations {
            let Some(number) = kernels.number(at) else { continue };
            let key = (number, shape_of(at));
            let key = *known
                .entry(key)
                .or_insert_with(|| grouping.key(group(key.0, Some(key.1))));
            grouping.add(key, *duration);
        }
    } else {
        let numbers = 0..u32::try_from(kernels.names().len()).unwrap_or(u32::MAX);
        let keys: Vec<u32> = numbers.map(|number| grouping.key(group(number, None))).collect();
        for (at, duration) in durations {
            let number = kernels.number(at);
            if let Some(key) = number.and_then(|number| keys.get(flopwatch_model::index(number))) {
                grouping.add(*key, *duration);
            }
        }
    }
    kernels.not_captured
}

/// Adds the events of `categories` by name.
fn add_named<'a>(
    grouping: &mut Grouping<'a>,
    timeline: &'a Timeline,
    categories: &[Category],
    category: Option<&'static str>,
) {
    for events in categories
        .iter()
        .filter_map(|category| timeline.capture.events.get(category))
    {
        let group = |name| Group::named(name).in_category(category);
        grouping.add_events(events, group, |at| events.duration_ns.get(at).copied());
    }
}

fn kernels(timeline: &Timeline, params: &NsysKernelParams, by_shape: bool) -> NsysTimes {
    let mut not_captured = NotCaptured::of_parts(&timeline.capture, &[(&[Category::CudaKernel], "kernels")]);
    let mut grouping = Grouping::default();
    not_captured.extend(add_kernels(&mut grouping, timeline, params, by_shape, None));
    NsysTimes::of(grouping, params.limit, not_captured)
}

fn mixed(timeline: &Timeline, params: &NsysKernelParams, calls: bool) -> NsysTimes {
    let mut grouping = Grouping::default();
    let mut not_captured = Vec::new();
    if calls {
        let missing = NotCaptured::unless_any(&timeline.capture, &[Category::CudaApi], "CUDA calls");
        not_captured.extend(missing);
        add_named(&mut grouping, timeline, &[Category::CudaApi], CALL);
    }
    not_captured.extend(NotCaptured::of_parts(&timeline.capture, GPU_PARTS));
    add_named(&mut grouping, timeline, MEMORY, OPERATION);
    not_captured.extend(add_kernels(&mut grouping, timeline, params, false, KERNEL));
    NsysTimes::of(grouping, params.limit, not_captured)
}

impl Analysis for CudaGpuKernSum {
    const NAME: &'static str = "cuda_gpu_kern_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Times of GPU kernels by name, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = NAMES.only(KERNELS_AND_RANGES);
    type Params = NsysKernelParams;
    type Output = NsysTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysKernelParams) -> Result<NsysTimes, AnalysisError> {
        Ok(kernels(inputs.first(), params, false))
    }

    fn page(output: &NsysTimes) -> Result<Page, AnalysisError> {
        Ok(output.page(Self::NAME, Self::ABOUT, "Instances", &[Label::Name("Name")]))
    }
}

impl Analysis for CudaGpuKernGbSum {
    const NAME: &'static str = "cuda_gpu_kern_gb_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Times of GPU kernels by name, grid and block, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = NAMES.only(KERNELS_AND_RANGES).columns(SHAPES);
    type Params = NsysKernelParams;
    type Output = NsysTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysKernelParams) -> Result<NsysTimes, AnalysisError> {
        Ok(kernels(inputs.first(), params, true))
    }

    fn page(output: &NsysTimes) -> Result<Page, AnalysisError> {
        let labels = [Label::Shape, Label::Name("Name")];
        Ok(output.page(Self::NAME, Self::ABOUT, "Instances", &labels))
    }
}

impl Analysis for CudaGpuMemTimeSum {
    const NAME: &'static str = "cuda_gpu_mem_time_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Times of copies and memsets on GPUs by kind, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = Needs::of(MEMORY).names();
    type Params = NsysParams;
    type Output = NsysTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysTimes, AnalysisError> {
        let timeline = inputs.first();
        let mut grouping = Grouping::default();
        add_named(&mut grouping, timeline, MEMORY, None);
        let missing = NotCaptured::of_parts(&timeline.capture, &[(MEMORY, "copies and memsets")]);
        Ok(NsysTimes::of(grouping, params.limit, missing))
    }

    fn page(output: &NsysTimes) -> Result<Page, AnalysisError> {
        Ok(output.page(Self::NAME, Self::ABOUT, "Count", &[Label::Name("Operation")]))
    }
}

impl Analysis for CudaGpuSum {
    const NAME: &'static str = "cuda_gpu_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Times of GPU kernels, copies and memsets together, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = NAMES.only(CUDA_AND_RANGES);
    type Params = NsysKernelParams;
    type Output = NsysTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysKernelParams) -> Result<NsysTimes, AnalysisError> {
        Ok(mixed(inputs.first(), params, false))
    }

    fn page(output: &NsysTimes) -> Result<Page, AnalysisError> {
        let labels = [Label::Category, Label::Name("Operation")];
        Ok(output.page(Self::NAME, Self::ABOUT, "Instances", &labels))
    }
}

impl Analysis for CudaApiGpuSum {
    const NAME: &'static str = "cuda_api_gpu_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Times of CUDA calls, GPU kernels, copies and memsets together, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = NAMES.only(CUDA_AND_RANGES);
    type Params = NsysKernelParams;
    type Output = NsysTimes;

    fn run(inputs: &Inputs<'_>, params: &NsysKernelParams) -> Result<NsysTimes, AnalysisError> {
        Ok(mixed(inputs.first(), params, true))
    }

    fn page(output: &NsysTimes) -> Result<Page, AnalysisError> {
        let labels = [Label::Category, Label::Name("Operation")];
        Ok(output.page(Self::NAME, Self::ABOUT, "Instances", &labels))
    }
}
