//! Start-up: what compiling and loading of code cost before the program ran at its pace, and after
//! how many runs that is paid back.

use std::collections::BTreeMap;

use flopwatch_measures::compiled::CompileActivity;
use flopwatch_measures::coverage::Coverage;
use flopwatch_measures::enclosing::Threads;
use flopwatch_measures::host_call::{HostCall, process_of};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::launch::LaunchJoin;
use flopwatch_measures::pace::Pace;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, Figures, NameId, Needs, RowId, Timeline, gpu_work_and, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Bars, Page, Table, Tile, TimelineLocation, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analyses::module_loading::{CodeWork, SEEN_IN};
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// From this many runs on it is doubtful whether compiling pays off (the contract with earlier
/// tools).
const MAX_WORTHWHILE_RUNS: f64 = 1000.0;

/// Compiling and loading of code against the steady state.
#[derive(Debug)]
pub struct StartUp;

/// Parameters of [`StartUp`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StartUpParams {
    /// Most kernels in the list.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for StartUpParams {
    fn default() -> Self {
        Self { limit: 20 }
    }
}

/// What is taken for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunSource {
    /// Iterations of the loop that has most, without the first one and those in which code was
    /// compiled or loaded.
    Iterations,
    /// Outermost runs of what torch.compile made, without those in which code was compiled.
    CompiledRegions,
}

/// The result of the analysis `start-up`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct StartUpResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Time in ns in which any process compiled, linked or loaded code: the union per process,
    /// summed over processes.
    pub code_ns: u64,
    /// The part of it that compiled: TorchDynamo, Inductor, Triton, XLA, NVRTC.
    pub compile_ns: u64,
    /// By what was done.
    pub kinds: Vec<StartUpKind>,
    /// From the start of the capture to the first GPU work in ns; null without any.
    pub first_gpu_work_ns: Option<u64>,
    /// The part of `first_gpu_work_ns` in which code was compiled, linked or loaded.
    pub code_before_gpu_work_ns: Option<u64>,
    /// What is taken for a run; null where nothing repeats.
    pub run_source: Option<RunSource>,
    /// Runs at the program's pace.
    pub runs: u64,
    /// Runs that were slower by code: the first, and those in which code was compiled or loaded.
    pub cold_runs: u64,
    /// Mean length in ns of a run at the program's pace; null without any.
    pub mean_run_ns: Option<u64>,
    /// Break-even: `compile_ns` over `mean_run_ns`. After so many runs the program has run as long
    /// as it compiled; above 1,000 compiling is doubtful. Null where nothing was compiled or
    /// nothing repeats.
    pub break_even_runs: Option<f64>,
    /// The same of all of `code_ns`.
    pub start_up_runs: Option<f64>,
    /// Mean length in ns of a run of the second capture, of a program that is not compiled; null
    /// without one.
    pub eager_run_ns: Option<u64>,
    /// Runs after which compiling has saved more than it cost: `compile_ns` over `eager_run_ns`
    /// less `mean_run_ns`. Null without a second capture, and where a run saves nothing.
    pub paid_back_runs: Option<f64>,
    /// Kernels that were launched at least three times.
    pub relaunched_kernels: u64,
    /// What the first launches of these took longer than the median of their later ones, in ns: an
    /// estimate of lazy loading, also where the source does not record it. Null where no launches
    /// were recorded.
    pub first_launch_excess_ns: Option<u64>,
    /// The kernels with the largest excess.
    pub first_launches: Vec<FirstLaunch>,
}

/// Work on code of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StartUpKind {
    /// What was done.
    pub kind: CodeWork,
    /// Events.
    pub events: u64,
    /// Time in ns in which it was done: the union per process, summed over processes.
    pub held_ns: u64,
    /// The part of it before the program ran at its pace; null where nothing repeats.
    pub before_pace_ns: Option<u64>,
    /// The longest event.
    pub longest: TimelineLocation,
}

/// The first launch of a kernel beside its later ones.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FirstLaunch {
    /// The kernel.
    pub kernel: String,
    /// Launches.
    pub launches: u64,
    /// Length in ns of the call that launched it first.
    pub first_call_ns: u64,
    /// Median of the others in ns; between two middle ones, their mean.
    pub median_ns: f64,
    /// Where the first call is.
    pub place: TimelineLocation,
}

impl Analysis for StartUp {
    const NAME: &'static str = "start-up";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Compiling and loading of code against the program's pace: what it cost, when, and after how many runs it is paid back.";
    const TITLE: &'static str = "Start-up";
    const GROUP: Group = Group::Compilation;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = Needs::of(gpu_work_and![
        Category::CudaApi,
        Category::NvtxRange,
        Category::Annotation,
        Category::Step,
        Category::CpuOp,
        Category::Overhead,
        Category::Derived
    ])
    .columns(flopwatch_measures::iteration::ITERATION_COLUMNS)
    .names()
    .rows();
    type Params = StartUpParams;
    type Output = StartUpResult;

    fn run(inputs: &Inputs<'_>, params: &StartUpParams) -> Result<StartUpResult, AnalysisError> {
        let beside = inputs.all().get(1).map(|input| input.timeline);
        Ok(StartUpResult::of(inputs.first(), beside, *params))
    }

    fn page(output: &StartUpResult) -> Result<Page, AnalysisError> {
        Ok(page(Self::TITLE, Self::ABOUT, output))
    }
}

/// Times of each process.
type ByProcess = BTreeMap<(u32, u32, u32), Vec<Interval>>;

fn merged_intervals(times: ByProcess) -> Vec<Intervals> {
    times.into_values().map(Intervals::union_of).collect()
}

fn len(unions: &[Intervals]) -> u64 {
    unions.iter().map(Intervals::len_ns).sum()
}

/// What a capture runs again and again.
struct Runs {
    source: RunSource,
    count: u64,
    cold: u64,
    mean_ns: u64,
    from_ns: Option<u64>,
}

impl Runs {
    /// The iterations of a capture; without any, its runs of compiled code.
    fn of(timeline: &Timeline, work: &GpuWork, code: &Coverage) -> Result<Self, Option<NotCaptured>> {
        let pace = Pace::of(timeline, work, |time| code.within(time) > 0);
        if let Some(mean_ns) = pace.mean_ns {
            return Ok(Self {
                source: RunSource::Iterations,
                count: pace.iterations,
                cold: pace.left_out,
                mean_ns,
                from_ns: pace.times.first().map(|time| time.start),
            });
        }
        let compiled = CompileActivity::of(timeline, &Threads::of(timeline));
        let Some(mean_ns) = compiled.mean_run_ns() else {
            return Err(pace.not_found);
        };
        let is_clean = |compile_ns: u64| compile_ns == 0;
        let clean = || compiled.outermost().filter(|run| is_clean(run.compile_ns));
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        Ok(Self {
            source: RunSource::CompiledRegions,
            count: count(clean().count()),
            cold: count(compiled.outermost().count()) - count(clean().count()),
            mean_ns,
            from_ns: clean().map(|run| run.mark.time.start).min(),
        })
    }
}

impl StartUpResult {
    /// Of `timeline`; `beside` is a capture of the same program that is not compiled. Needs
    /// [`StartUp::NEEDS`](Analysis::NEEDS) of both.
    pub fn of(timeline: &Timeline, beside: Option<&Timeline>, params: StartUpParams) -> Self {
        let capture = &timeline.capture;
        let by_kind = code_calls(timeline);
        let unions = |calls: &mut dyn Iterator<Item = &HostCall>| {
            let mut times: ByProcess = BTreeMap::new();
            for call in calls {
                if let Some(row) = timeline.row(call.row) {
                    times.entry(process_of(row)).or_default().push(call.time);
                }
            }
            merged_intervals(times)
        };
        let all = unions(&mut by_kind.values().flatten());
        let any = all.iter().flat_map(Intervals::as_slice).copied();
        let code = Coverage::of(&any.collect());
        let work = GpuWork::of(timeline);
        let runs = Runs::of(timeline, &work, &code);
        let from_ns = runs.as_ref().ok().and_then(|runs| runs.from_ns);
        let kinds = by_kind.iter().filter_map(|(kind, calls)| {
            let union = unions(&mut calls.iter());
            let longest = calls.iter().max_by_key(|call| call.time.len())?;
            let before = |from: u64| {
                let window = Interval::new(0, from);
                union.iter().map(|union| union.clip(window).len_ns()).sum()
            };
            Some(StartUpKind {
                kind: *kind,
                events: u64::try_from(calls.len()).unwrap_or(u64::MAX),
                held_ns: len(&union),
                before_pace_ns: from_ns.map(before),
                longest: longest.location(),
            })
        });
        let mut kinds: Vec<StartUpKind> = kinds.collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.held_ns));
        let compile = kinds.iter().find(|kind| kind.kind == CodeWork::Compile);
        let first_gpu_work_ns = work.span().map(|span| span.start);
        let mut result = Self {
            code_ns: len(&all),
            compile_ns: compile.map_or(0, |kind| kind.held_ns),
            kinds,
            first_gpu_work_ns,
            code_before_gpu_work_ns: first_gpu_work_ns.map(|first| code.within(Interval::new(0, first))),
            ..Self::default()
        };
        result.not_captured.extend(NotCaptured::unless_any(
            capture,
            &SEEN_IN,
            "compiling and loading of code",
        ));
        match runs {
            Ok(runs) => result.at_pace(&runs, beside),
            Err(reason) => result.not_captured.extend(reason),
        }
        result.launches(timeline, &work, params.limit);
        result
    }

    fn at_pace(&mut self, runs: &Runs, beside: Option<&Timeline>) {
        self.run_source = Some(runs.source);
        (self.runs, self.cold_runs) = (runs.count, runs.cold);
        self.mean_run_ns = Some(runs.mean_ns);
        self.break_even_runs = (self.compile_ns > 0)
            .then(|| ratio(self.compile_ns, runs.mean_ns))
            .flatten();
        self.start_up_runs = (self.code_ns > 0).then(|| ratio(self.code_ns, runs.mean_ns)).flatten();
        let Some(beside) = beside.filter(|_| runs.source == RunSource::Iterations) else {
            return;
        };
        let work = GpuWork::of(beside);
        let code = code_calls(beside);
        let times = code.values().flatten().map(|call| call.time);
        let code = Coverage::of(&times.collect());
        let pace = Pace::of(beside, &work, |time| code.within(time) > 0);
        self.eager_run_ns = pace.mean_ns;
        self.not_captured.extend(
            pace.not_found
                .map(|missing| NotCaptured::new(format!("{} of the second capture", missing.what), missing.reason)),
        );
        let saved = pace.mean_ns.and_then(|eager| eager.checked_sub(runs.mean_ns));
        self.paid_back_runs = saved
            .filter(|_| self.compile_ns > 0)
            .and_then(|saved| ratio(self.compile_ns, saved));
    }

    /// First launches beside later ones.
    fn launches(&mut self, timeline: &Timeline, work: &GpuWork, limit: u32) {
        let Some(kernels) = timeline.capture.events.get(&Category::CudaKernel) else {
            return;
        };
        let joined = LaunchJoin::of(timeline, work);
        if joined.launches.is_empty() {
            return;
        }
        // Of each kernel its calls: start, length, row.
        let mut calls: BTreeMap<NameId, Vec<(u64, u64, RowId)>> = BTreeMap::new();
        let api = timeline.capture.events.get(&Category::CudaApi);
        let launches = joined.launches.iter();
        for launch in launches.filter(|launch| launch.is_first && launch.work.category == Category::CudaKernel) {
            let name = kernels.name.get(index(launch.work.at));
            let row = api.and_then(|api| api.row.get(launch.at));
            if let (Some(name), Some(row)) = (name, row) {
                let call = (launch.call.start, launch.call.len(), *row);
                calls.entry(*name).or_default().push(call);
            }
        }
        let mut found = Vec::new();
        for (name, mut calls) in calls {
            let Some(at) = calls
                .iter()
                .enumerate()
                .min_by_key(|(_, call)| call.0)
                .map(|(at, _)| at)
            else {
                continue;
            };
            let (start, first_call_ns, row) = calls.swap_remove(at);
            if calls.len() < 2 {
                continue;
            }
            let launches = u64::try_from(calls.len()).unwrap_or(u64::MAX) + 1;
            let mut later: Vec<u64> = calls.into_iter().map(|(_, length, _)| length).collect();
            let later = Figures::of(&mut later);
            self.relaunched_kernels += 1;
            let excess = first_call_ns.saturating_sub(later.whole_median());
            *self.first_launch_excess_ns.get_or_insert(0) += excess;
            if excess > 0 {
                let launch = FirstLaunch {
                    kernel: kernels.names.get(name.index()).cloned().unwrap_or_default(),
                    launches,
                    first_call_ns,
                    median_ns: later.median().unwrap_or(0.0),
                    place: TimelineLocation::new(start, start + first_call_ns, Some(row)),
                };
                found.push((excess, launch));
            }
        }
        found.sort_by_key(|(excess, _)| std::cmp::Reverse(*excess));
        found.truncate(index(limit));
        self.first_launches = found.into_iter().map(|(_, launch)| launch).collect();
    }
}

/// Calls that compile, link or load code, by what they do. Unloading is none of it.
fn code_calls(timeline: &Timeline) -> BTreeMap<CodeWork, Vec<HostCall>> {
    let mut found: BTreeMap<CodeWork, Vec<HostCall>> = BTreeMap::new();
    for category in SEEN_IN {
        let Some(events) = timeline.capture.events.get(&category) else {
            continue;
        };
        let kinds: Vec<Option<CodeWork>> = events
            .names
            .iter()
            .map(|name| CodeWork::of(category, name).filter(|kind| *kind != CodeWork::Unload))
            .collect();
        let of_name = |name: usize| kinds.get(name).copied().flatten();
        for call in HostCall::list(timeline, category, |name| of_name(name).is_some()) {
            let name = events.name.get(index(call.at)).map(|name| name.index());
            if let Some(kind) = name.and_then(of_name) {
                found.entry(kind).or_default().push(call);
            }
        }
    }
    found
}

fn page(title: &str, about: &str, result: &StartUpResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    let some = |ns: u64| (!result.kinds.is_empty()).then_some(ns);
    page.tiles([
        Tile::figure("Compiling and loading", Unit::Ns, some(result.code_ns)),
        Tile::figure("Compiling", Unit::Ns, some(result.compile_ns)),
        Tile::figure("Until the first GPU work", Unit::Ns, result.first_gpu_work_ns),
        Tile::figure("Avg run at pace", Unit::Ns, result.mean_run_ns),
        Tile::new("Break-even in runs", result.break_even_runs),
        Tile::new("Paid back after runs", result.paid_back_runs),
        Tile::figure(
            "First launches over later ones",
            Unit::Ns,
            result.first_launch_excess_ns,
        ),
    ]);
    if result.kinds.is_empty() {
        page.text("", "No compiling, linking or loading of code was recorded.");
    } else {
        page.text("", sentence(result));
        page.table(
            Table::of("By what was done", &result.kinds)
                .column("What", |kind| kind.kind.name().replace('_', " "))
                .column("Events", |kind| kind.events)
                .figure("Time", Unit::Ns, |kind| kind.held_ns)
                .figure("Before the pace", Unit::Ns, |kind| kind.before_pace_ns)
                .at(|kind| kind.longest),
        );
        if let Some(mean_ns) = result.mean_run_ns {
            let times = [("compiling and loading", result.code_ns), ("one run at pace", mean_ns)];
            page.bars(
                Bars::of("Start-up beside one run", Unit::Ns, times, |(what, _)| what.to_owned())
                    .series("time", |(_, ns)| ns),
            );
        }
    }
    page.table_unless_empty(
        Table::of("First launches", &result.first_launches)
            .about("With lazy loading (CUDA 11.7 and later) a kernel is loaded by its first launch.")
            .column("Kernel", |one| one.kernel.as_str())
            .column("Launches", |one| one.launches)
            .figure("First launch", Unit::Ns, |one| one.first_call_ns)
            .figure("Med of the others", Unit::Ns, |one| one.median_ns)
            .at(|one| one.place),
    );
    page
}

fn sentence(result: &StartUpResult) -> String {
    let runs = match result.run_source {
        Some(RunSource::Iterations) => {
            "A run is an iteration, without the first one and those in which code was compiled or loaded."
        }
        Some(RunSource::CompiledRegions) => {
            "A run is one of what torch.compile made, without those in which code was compiled."
        }
        None => return "Nothing repeats in the capture, so that start-up has nothing to stand beside.".to_owned(),
    };
    let mut text = format!("{runs} {} runs are at pace, {} are not.", result.runs, result.cold_runs);
    if result.break_even_runs.is_some_and(|runs| runs > MAX_WORTHWHILE_RUNS) {
        text.push_str(" Compiling took longer than 1,000 runs: it pays off in long programs alone.");
    }
    text
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;

    use super::*;

    /// Five steps of 100 ns behind a first one of 1,000 that compiles for 600 and loads for 100;
    /// each launches a kernel, the first time with a call of 50 ns.
    fn program(step_ns: u64, compiles: bool) -> Timeline {
        let mut trace = Trace::new();
        let (ops, steps) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::Annotation));
        let (api, stream) = (trace.thread(1, 1, Track::CudaApi), trace.stream(1, 0, 7));
        let mut start = 0;
        for number in 0..6 {
            let length = if number == 0 { 1000 } else { step_ns };
            trace.step(steps, number, start, start + length);
            let end = start + length;
            let call = if number == 0 { 50 } else { 10 };
            trace.launch_kernel((api, end - 60, end - 60 + call), (stream, "gemm", end - 5, end));
            start = end;
        }
        if compiles {
            trace.event(Category::CpuOp, ops, "entire_frame_compile (dynamo_timed)", 0, 600);
            trace.event(Category::CpuOp, ops, "compile_fx_inner (dynamo_timed)", 100, 500);
            trace.call(api, "cuModuleLoadData", 600, 700);
        }
        trace.build()
    }

    #[test]
    fn break_even_is_compile_time_over_mean_run_time() {
        let found = StartUpResult::of(&program(100, true), None, StartUpParams::default());
        assert_eq!(
            (found.code_ns, found.compile_ns, found.mean_run_ns),
            (700, 600, Some(100))
        );
        assert_eq!((found.runs, found.cold_runs), (5, 1));
        assert_eq!((found.break_even_runs, found.start_up_runs), (Some(6.0), Some(7.0)));
        assert_eq!(
            (found.first_gpu_work_ns, found.code_before_gpu_work_ns),
            (Some(995), Some(700))
        );
        let kinds: Vec<_> = found
            .kinds
            .iter()
            .map(|kind| (kind.kind, kind.held_ns, kind.before_pace_ns))
            .collect();
        assert_eq!(
            kinds,
            [(CodeWork::Compile, 600, Some(600)), (CodeWork::Load, 100, Some(100))]
        );
        assert_eq!((found.relaunched_kernels, found.first_launch_excess_ns), (1, Some(40)));
        assert_eq!(found.paid_back_runs, None);
    }

    #[test]
    fn what_a_run_saves_pays_compiling_back() {
        let (compiled, eager) = (program(100, true), program(150, false));
        let found = StartUpResult::of(&compiled, Some(&eager), StartUpParams::default());
        assert_eq!((found.eager_run_ns, found.paid_back_runs), (Some(150), Some(12.0)));
        // An eager program that is faster never pays it back.
        let slower = StartUpResult::of(&program(200, true), Some(&eager), StartUpParams::default());
        assert_eq!((slower.eager_run_ns, slower.paid_back_runs), (Some(150), None));
    }

    #[test]
    fn nothing_is_not_captured() {
        let found = StartUpResult::of(&Timeline::default(), None, StartUpParams::default());
        assert_eq!((found.break_even_runs, found.first_launch_excess_ns), (None, None));
        assert!(found.not_captured.len() >= 2, "{found:?}");
    }
}
