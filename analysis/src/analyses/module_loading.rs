//! The analysis `module-loading`: how long a program loads, links and compiles code for its GPUs,
//! and how much of that is left in its steady state.

use std::collections::BTreeMap;

use flopwatch_measures::host_call::{HostCall, ProcessGpus, without_version};
use flopwatch_measures::operation_name::normalised;
use flopwatch_measures::steady_state::{PhasedCost, SteadyState};
use flopwatch_model::{Category, Needs, Timeline, gpu_work_and, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::category::label;
use flopwatch_report::page::{Page, Table, TimelineLocation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::group::Group;
use crate::input::Inputs;

/// The analysis `module-loading`.
#[derive(Debug)]
pub struct ModuleLoading;

/// Parameters of [`ModuleLoading`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModuleLoadingParams {
    /// Maximum number of names in the result; those with the longest time are kept.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for ModuleLoadingParams {
    fn default() -> Self {
        Self { limit: 100 }
    }
}

/// An activity on code for GPUs: loading, linking, compiling or unloading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum CodeWork {
    /// Loads a module or library: `cuModuleLoadData`, `cuLibraryLoadData`.
    Load,
    /// Loads a function at its first use: `Lazy Function Loading`, `cuModuleGetFunction`,
    /// `cuLibraryGetKernel`.
    LazyLoad,
    /// Links or compiles PTX at run time: `cuLinkComplete`, the driver's compiler, `nvJitLink`.
    Link,
    /// Compiles: NVRTC, torch.compile, Triton, XLA.
    Compile,
    /// Unloads a module or library.
    Unload,
}

/// Prefixes of names of API calls, after `cuda`, `cu` or `hip`, and the activity of such calls.
const CALLS: &[(&str, CodeWork)] = &[
    ("ModuleLoad", CodeWork::Load),
    ("LibraryLoad", CodeWork::Load),
    ("ModuleGetFunction", CodeWork::LazyLoad),
    ("LibraryGetKernel", CodeWork::LazyLoad),
    ("LibraryGetModule", CodeWork::LazyLoad),
    ("KernelGetFunction", CodeWork::LazyLoad),
    ("LinkCreate", CodeWork::Link),
    ("LinkAdd", CodeWork::Link),
    ("LinkComplete", CodeWork::Link),
    ("ModuleUnload", CodeWork::Unload),
    ("LibraryUnload", CodeWork::Unload),
];

/// Words, in lower case, by which the names of events other than API calls are recognised, and the
/// activity of such events.
const WORDS: &[(&str, CodeWork)] = &[
    ("lazy function loading", CodeWork::LazyLoad),
    ("driver compiler", CodeWork::Link),
    ("nvjitlink", CodeWork::Link),
    ("(dynamo_timed)", CodeWork::Compile),
    ("nvrtc", CodeWork::Compile),
    ("compile_inner", CodeWork::Compile),
    ("compile_fx", CodeWork::Compile),
    ("backend_compile", CodeWork::Compile),
    ("xlacompile", CodeWork::Compile),
    ("xlaoptimize", CodeWork::Compile),
    ("client::compile", CodeWork::Compile),
    ("compiler::run", CodeWork::Compile),
    ("compiler::compile", CodeWork::Compile),
    ("hlopasspipeline", CodeWork::Compile),
    ("runhlopasses", CodeWork::Compile),
    ("compilegpuasm", CodeWork::Compile),
    ("compilemodule", CodeWork::Compile),
    ("triton/compiler", CodeWork::Compile),
];

/// Categories whose events are searched for loading and compiling.
pub(crate) const SEEN_IN: [Category; 5] = [
    Category::CudaApi,
    Category::Overhead,
    Category::NvtxRange,
    Category::Annotation,
    Category::CpuOp,
];

impl CodeWork {
    /// The activity's name in JSON, as `lazy_load`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The activity of an event with this category and name; `None` where the event neither loads
    /// nor compiles code.
    pub fn of(category: Category, name: &str) -> Option<Self> {
        if category == Category::CudaApi {
            let bare = without_version(name);
            let function = ["cuda", "cu", "hip"]
                .iter()
                .find_map(|prefix| bare.strip_prefix(prefix));
            let found = function.and_then(|function| CALLS.iter().find(|(word, _)| function.starts_with(word)));
            if let Some((_, work)) = found {
                return Some(*work);
            }
        }
        let small = name.to_ascii_lowercase();
        let found = WORDS.iter().find(|(word, _)| small.contains(word));
        found.map(|(_, work)| *work)
    }
}

/// The result of `module-loading`: time that the host spent loading, linking and compiling code for
/// GPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ModuleLoadingResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Start of the steady state in ns since the session's start: the start of the loop's second
    /// iteration. Null where no iterations are found.
    pub steady_from_ns: Option<u64>,
    /// Cost of all activities together. Phases of a compiler nest, so that the sum of their lengths
    /// means less than `held_ns`, which counts each nanosecond once.
    pub all: PhasedCost,
    /// Cost per activity, the longest time first.
    pub kinds: Vec<CodeWorkRow>,
    /// Cost per name, the longest time first.
    pub names: Vec<CodeWorkName>,
    /// Number of names that `limit` left out of `names`.
    pub names_left_out: u64,
}

/// The cost of one activity.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CodeWorkRow {
    /// The activity.
    pub kind: CodeWork,
    /// Time and number of the events, in all and in the steady state.
    pub cost: PhasedCost,
}

/// The cost of all events of one name and activity.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CodeWorkName {
    /// The events' name, without numbers and addresses that differ from call to call.
    pub name: String,
    /// The category of the events.
    pub category: Category,
    /// The activity.
    pub kind: CodeWork,
    /// Time and number of the events, in all and in the steady state.
    pub cost: PhasedCost,
    /// Where in the timeline the longest of the events is.
    pub longest: TimelineLocation,
}

impl Analysis for ModuleLoading {
    const NAME: &'static str = "module-loading";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "When code is loaded onto GPUs, linked or compiled: how long that takes, and what of it is left in the steady state.";
    const TITLE: &'static str = "Loading and compiling of code";
    const GROUP: Group = Group::Host;
    const NEEDS: Needs = Needs::of(gpu_work_and![
        Category::CudaApi,
        Category::NvtxRange,
        Category::Annotation,
        Category::Step,
        Category::CpuOp,
        Category::Overhead
    ])
    .columns(flopwatch_measures::iteration::ITERATION_COLUMNS)
    .names()
    .rows();
    type Params = ModuleLoadingParams;
    type Output = ModuleLoadingResult;

    fn run(inputs: &Inputs<'_>, params: &ModuleLoadingParams) -> Result<ModuleLoadingResult, AnalysisError> {
        Ok(ModuleLoadingResult::of(inputs.first(), *params))
    }

    fn page(output: &ModuleLoadingResult) -> Result<Page, AnalysisError> {
        Ok(page(Self::TITLE, Self::ABOUT, output))
    }
}

impl ModuleLoadingResult {
    /// Computes the result for one timeline.
    pub fn of(timeline: &Timeline, params: ModuleLoadingParams) -> Self {
        let capture = &timeline.capture;
        let (gpus, steady) = (ProcessGpus::of(timeline), SteadyState::of(timeline));
        let mut by_name: BTreeMap<(CodeWork, Category, String), Vec<HostCall>> = BTreeMap::new();
        for category in SEEN_IN {
            let Some(events) = capture.events.get(&category) else {
                continue;
            };
            let kinds: Vec<Option<CodeWork>> = events.names.iter().map(|name| CodeWork::of(category, name)).collect();
            let of_name = |name: usize| kinds.get(name).copied().flatten();
            for call in HostCall::list(timeline, category, |name| of_name(name).is_some()) {
                let name = events.name.get(index(call.at)).map(|name| name.index());
                if let Some(kind) = name.and_then(of_name) {
                    let name = normalised(without_version(call.name(timeline))).into_owned();
                    by_name.entry((kind, category, name)).or_default().push(call);
                }
            }
        }
        let cost = |calls: &[HostCall]| PhasedCost::of(timeline, &gpus, &steady, calls);
        let mut by_kind: BTreeMap<CodeWork, Vec<HostCall>> = BTreeMap::new();
        for ((kind, ..), calls) in &by_name {
            by_kind.entry(*kind).or_default().extend(calls);
        }
        let all: Vec<HostCall> = by_kind.values().flatten().copied().collect();
        let kinds = by_kind.into_iter().map(|(kind, calls)| CodeWorkRow {
            kind,
            cost: cost(&calls),
        });
        let mut kinds: Vec<CodeWorkRow> = kinds.collect();
        kinds.sort_by_key(|row| std::cmp::Reverse(row.cost.cost.held_ns));
        let names = by_name.into_iter().filter_map(|((kind, category, name), calls)| {
            let longest = calls
                .iter()
                .max_by_key(|call| (call.time.len(), call.time.start))?
                .location();
            Some(CodeWorkName {
                name,
                category,
                kind,
                cost: cost(&calls),
                longest,
            })
        });
        let mut names: Vec<CodeWorkName> = names.collect();
        names.sort_by_key(|row| std::cmp::Reverse(row.cost.cost.held_ns));
        let names_left_out = cut(&mut names, params.limit);
        let missing = NotCaptured::unless_any(capture, &SEEN_IN, "loading and compiling of code");
        let idle = gpus.not_captured(timeline, "how much of it the GPU was idle");
        let phases = steady.not_found.clone();
        Self {
            not_captured: missing.into_iter().chain(idle).chain(phases).collect(),
            steady_from_ns: steady.from_ns,
            all: cost(&all),
            kinds,
            names,
            names_left_out,
        }
    }
}

fn page(title: &str, about: &str, result: &ModuleLoadingResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    if result.all.cost.calls == 0 {
        page.text("", "No loading, linking or compiling of code was recorded.");
        return page;
    }
    page.tiles(result.all.tiles(["Events", "Events in steady state"], true));
    page.table(PhasedCost::by_kind(
        result.kinds.iter().map(|row| (row.kind.name(), &row.cost)),
    ));
    let names = Table::of("By name", &result.names)
        .left_out(result.names_left_out)
        .column("Name", |row| row.name.as_str())
        .column("In", |row| label(row.category))
        .column("Kind", |row| row.kind.name().replace('_', " "))
        .at(|row| row.longest);
    page.table(PhasedCost::columns(names, |row| &row.cost));
    page
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;

    use super::*;

    #[test]
    fn loading_linking_and_compiling_are_told_apart_by_names() {
        for (category, name, work) in [
            (Category::CudaApi, "cuModuleLoadDataEx", Some(CodeWork::Load)),
            (Category::CudaApi, "cuLibraryLoadData", Some(CodeWork::Load)),
            (Category::CudaApi, "cuModuleUnload", Some(CodeWork::Unload)),
            (Category::CudaApi, "cuLinkComplete", Some(CodeWork::Link)),
            (Category::CudaApi, "cudaLaunchKernel_v7000", None),
            (Category::Overhead, "Lazy Function Loading", Some(CodeWork::LazyLoad)),
            (
                Category::CpuOp,
                "compile_fx_inner (dynamo_timed)",
                Some(CodeWork::Compile),
            ),
            (Category::CpuOp, "Torch-Compiled Region: 0/0", None),
            (
                Category::NvtxRange,
                "TSL:XlaCompile:#module=jit_step#",
                Some(CodeWork::Compile),
            ),
        ] {
            assert_eq!(CodeWork::of(category, name), work, "{name}");
        }
    }

    #[test]
    fn phases_of_a_compiler_that_nest_hold_the_host_once() {
        let mut trace = Trace::new();
        let operators = trace.thread(1, 1, Track::CpuOp);
        trace.event(
            Category::CpuOp,
            operators,
            "entire_frame_compile (dynamo_timed)",
            0,
            100,
        );
        trace.event(Category::CpuOp, operators, "compile_fx_inner (dynamo_timed)", 20, 80);
        let result = ModuleLoadingResult::of(&trace.build(), ModuleLoadingParams::default());
        assert_eq!((result.all.cost.total_ns, result.all.cost.held_ns), (160, 100));
        assert_eq!(result.names[0].name, "entire_frame_compile (dynamo_timed)");
        assert_eq!(result.kinds[0].kind, CodeWork::Compile);
    }
}
