//! One of the captures.

use std::collections::BTreeMap;

use flopwatch_measures::compiled::{CompileActivity, CompileId, Run};
use flopwatch_measures::enclosing::{LaunchInterval, LaunchedWork, Threads};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::pace::Pace;
use flopwatch_measures::work::{GPU_WORK, GpuWork};
use flopwatch_model::{Category, RowId, Timeline, approximate, count, index, ratio};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::TimelineLocation;

use super::{CompileSide, CompileThread, CompiledRegion, TorchCompileResult};
use crate::cut::cut;

/// What is known of a capture.
pub(super) struct Side<'a> {
    pub(super) timeline: &'a Timeline,
    input: u32,
    threads: Threads,
    pub(super) compiled: CompileActivity,
    work: GpuWork,
    launched: LaunchedWork,
    pub(super) pace: Pace,
}

impl<'a> Side<'a> {
    pub(super) fn of(timeline: &'a Timeline, input: u32) -> Self {
        let threads = Threads::of(timeline);
        let compiled = CompileActivity::of(timeline, &threads);
        let work = GpuWork::of(timeline);
        let launched = LaunchedWork::of(timeline, &threads, &work);
        let pace = Pace::of(timeline, &work, |time| compiled.any_compile_ns_within(time) > 0);
        Self {
            timeline,
            input,
            threads,
            compiled,
            work,
            launched,
            pace,
        }
    }

    pub(super) fn has_gpu(&self) -> bool {
        !self.work.all().is_empty()
    }

    /// Sum of the lengths of work that threads launched in `times`.
    fn launched_ns(&self, times: &BTreeMap<u32, Intervals>) -> u64 {
        let parts = times
            .iter()
            .flat_map(|(thread, times)| times.as_slice().iter().map(move |time| (*thread, *time)));
        parts
            .flat_map(|(thread, time)| self.launched.inside(thread, time))
            .map(|launched| launched.time.len())
            .sum()
    }

    pub(super) fn compared(&self, label: String) -> CompileSide {
        let gpu_ns: u64 = self.work.all().iter().map(|work| work.time.len()).sum();
        let has_gpu = self.has_gpu();
        let compiled_gpu_ns = has_gpu.then(|| self.launched_ns(&self.compiled.running()));
        let graph_gpu_ns = has_gpu.then(|| self.launched_ns(&self.compiled.in_graphs()));
        let (triton_kernels, triton_ns, kernels_ns) = self.triton();
        CompileSide {
            label,
            is_compiled: !self.compiled.is_empty(),
            compile_ns: self.compiled.compile_ns(),
            graph_breaks: count(
                self.compiled
                    .graph_breaks(self.timeline, &self.threads, self.input)
                    .len(),
            ),
            recompiles: count(self.compiled.recompiles(self.timeline, self.input).len()),
            iterations: self.pace.iterations,
            mean_iteration_ns: self.pace.mean_ns,
            kernels_per_iteration: self.kernels_per_iteration(),
            gpu_ns: has_gpu.then_some(gpu_ns),
            compiled_gpu_ns,
            graph_gpu_ns,
            coverage_ratio: compiled_gpu_ns.and_then(|ns| ratio(ns, gpu_ns)),
            graph_coverage_ratio: graph_gpu_ns.and_then(|ns| ratio(ns, gpu_ns)),
            unmatched: self.launched.unmatched(),
            triton_ratio: ratio(triton_ns, kernels_ns),
            triton_kernels,
            graph_launches: self.graph_launches(),
            speedup: None,
            iterations_to_pay_back: None,
        }
    }

    /// Kernels of Triton, their time and that of all kernels in ns.
    fn triton(&self) -> (u64, u64, u64) {
        let Some(kernels) = self.timeline.capture.events.get(&Category::CudaKernel) else {
            return (0, 0, 0);
        };
        let is_triton: Vec<bool> = kernels.names.iter().map(|name| name.starts_with("triton_")).collect();
        let mut found = (0, 0, 0_u64);
        for (name, length) in kernels.name.iter().zip(&kernels.duration_ns) {
            found.2 = found.2.saturating_add(*length);
            if is_triton.get(name.index()).copied().unwrap_or(false) {
                found.0 += 1;
                found.1 += length;
            }
        }
        found
    }

    fn graph_launches(&self) -> u64 {
        let Some(calls) = self.timeline.capture.events.get(&Category::CudaApi) else {
            return 0;
        };
        let is_launch: Vec<bool> = calls
            .names
            .iter()
            .map(|name| name.starts_with("cudaGraphLaunch") || name.starts_with("cuGraphLaunch"))
            .collect();
        let launches = calls
            .name
            .iter()
            .filter(|name| is_launch.get(name.index()).copied().unwrap_or(false));
        count(launches.count())
    }

    /// Kernels whose launch began in an iteration that counts, on any thread of the capture.
    fn kernels_per_iteration(&self) -> Option<f64> {
        if self.timeline.capture.events.contains_key(&Category::CudaGraph) {
            // How many run in a whole graph was not recorded.
            return None;
        }
        let iterations = &self.pace.times;
        let first = iterations.first()?;
        let is_kernel = |launched: &&LaunchInterval| {
            let work = self.work.all().get(index(launched.work));
            work.is_some_and(|work| work.category == Category::CudaKernel)
        };
        let mut kernels = 0;
        for thread in 0..self.threads.count() {
            for time in iterations {
                kernels += self.launched.inside(thread, *time).iter().filter(is_kernel).count();
            }
        }
        let of = u128::from(count(iterations.len()));
        (kernels > 0 && !first.is_empty()).then(|| approximate(u128::from(count(kernels))) / approximate(of))
    }

    fn location(&self, time: Interval, row: RowId) -> TimelineLocation {
        TimelineLocation::new(time.start, time.end, Some(row)).of_input(self.input)
    }

    fn compile_threads(&self) -> Vec<CompileThread> {
        let of = |(thread, union): (u32, &Intervals)| {
            let longest = union.as_slice().iter().max_by_key(|time| time.len())?;
            let row = self.compiled.within(thread, *longest).first()?.row;
            let described = self.timeline.row(row)?;
            Some(CompileThread {
                process: described.process,
                thread: described.thread,
                compile_ns: union.len_ns(),
                pieces: count(union.as_slice().len()),
                longest: self.location(*longest, row),
            })
        };
        let mut threads: Vec<CompileThread> = self.compiled.compiling().filter_map(of).collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.compile_ns));
        threads
    }

    fn regions(&self) -> Vec<CompiledRegion> {
        // What runs launched, less what runs inside them did.
        let sums = |run: &Run| {
            let launched = self.launched.inside(run.mark.thread, run.mark.time);
            let ns: u64 = launched.iter().map(|launched| launched.time.len()).sum();
            (count(launched.len()), ns)
        };
        let runs = self.compiled.runs();
        let mut own: Vec<(u64, u64)> = runs.iter().map(sums).collect();
        for run in runs {
            let (operations, ns) = sums(run);
            if let Some(outer) = run.outer.and_then(|outer| own.get_mut(outer)) {
                *outer = (outer.0.saturating_sub(operations), outer.1.saturating_sub(ns));
            }
        }
        let mut found: BTreeMap<Option<CompileId>, CompiledRegion> = BTreeMap::new();
        for (run, (operations, ns)) in runs.iter().zip(own) {
            let location = run.mark.location(self.input);
            let region = found.entry(run.id).or_insert_with(|| CompiledRegion {
                code: run.id,
                runs: 0,
                inner_runs: 0,
                total_ns: 0,
                compile_ns: 0,
                gpu_operations: self.has_gpu().then_some(0),
                gpu_ns: self.has_gpu().then_some(0),
                gpu_operations_per_run: None,
                longest: location,
            });
            region.runs += 1;
            region.inner_runs += u64::from(run.outer.is_some());
            region.total_ns = region.total_ns.saturating_add(run.mark.time.len());
            region.compile_ns = region.compile_ns.saturating_add(run.compile_ns);
            region.gpu_operations = region.gpu_operations.map(|known| known + operations);
            region.gpu_ns = region.gpu_ns.map(|known| known + ns);
            if run.mark.time.len() > region.longest.end_ns - region.longest.start_ns {
                region.longest = location;
            }
        }
        let mut regions: Vec<CompiledRegion> = found.into_values().collect();
        for region in &mut regions {
            region.gpu_operations_per_run = region
                .gpu_operations
                .and_then(|operations| ratio(operations, region.runs));
        }
        regions.sort_by_key(|region| std::cmp::Reverse(region.total_ns));
        regions
    }

    /// How often the phase of that name ran.
    fn calls(&self, name: impl Fn(&str) -> bool) -> u64 {
        let phases = self.compiled.phases(self.timeline, self.input);
        let chosen = phases.iter().filter(|phase| name(&phase.name));
        chosen.map(|phase| phase.calls).sum()
    }
}

impl TorchCompileResult {
    /// Fills the lists of the capture that is told in detail.
    pub(super) fn detail(&mut self, side: &Side<'_>, limit: u32) {
        let compiled = &side.compiled;
        self.compile_ns = compiled.compile_ns();
        self.threads = side.compile_threads();
        self.phases = compiled.phases(side.timeline, side.input);
        self.phases_left_out = cut(&mut self.phases, limit);
        self.graphs = side.calls(|name| name == "compile_fx_inner");
        self.graphs_generated = side.calls(|name| name == "fx_codegen_and_compile");
        self.restarts = side.calls(|name| name.starts_with("compile_attempt_") && name != "compile_attempt_0");
        (self.cache_lookups, self.cache_lookup_ns) = compiled.cache_lookups();
        self.mean_cache_lookup_ns = self.cache_lookup_ns.checked_div(self.cache_lookups);
        self.graph_breaks = compiled.graph_breaks(side.timeline, &side.threads, side.input);
        self.graph_breaks_left_out = cut(&mut self.graph_breaks, limit);
        self.given_up = compiled.given_up(side.timeline, side.input);
        self.given_up_left_out = cut(&mut self.given_up, limit);
        self.recompiles = compiled.recompiles(side.timeline, side.input);
        self.recompiles_left_out = cut(&mut self.recompiles, limit);
        self.regions = side.regions();
        self.regions_left_out = cut(&mut self.regions, limit);
        self.warm_runs = count(compiled.outermost().filter(|run| run.compile_ns == 0).count());
        self.mean_run_ns = compiled.mean_run_ns();
        let mean_run_ns = self.mean_run_ns.filter(|_| self.compile_ns > 0);
        self.break_even_runs = mean_run_ns.and_then(|mean_ns| ratio(self.compile_ns, mean_ns));
    }

    /// Says what is missing.
    pub(super) fn explain(&mut self, sides: &[Side<'_>]) {
        let mut missing = Vec::new();
        let Some(side) = self.input.and_then(|input| sides.get(index(input))) else {
            let nothing = sides.first().and_then(|side| {
                let captured = &side.timeline.capture;
                NotCaptured::unless_any(captured, &[Category::CpuOp, Category::Annotation], "torch.compile")
            });
            missing.push(nothing.unwrap_or_else(|| {
                NotCaptured::new(
                    "torch.compile",
                    "no event of torch.compile was recorded: the program is not compiled, or compiles and runs outside the capture; profile with torch.profiler from \
                     PyTorch 2.2 on while compiled code runs",
                )
            }));
            self.not_captured = missing;
            return;
        };
        if !side.has_gpu() {
            let what = "coverage, Triton's share and kernels per run";
            let no_work = || NotCaptured::new(what, "the capture holds no work of a GPU; record CUDA activities");
            missing.push(NotCaptured::unless_any(&side.timeline.capture, GPU_WORK, what).unwrap_or_else(no_work));
        }
        if self.compile_ns == 0 {
            missing.push(NotCaptured::new(
                "compile time",
                "nothing was compiled while the capture ran: the code was compiled before; begin the capture with the program's first call",
            ));
        }
        if !self.recompiles.is_empty() {
            missing.push(NotCaptured::new(
                "the guards that failed",
                "PyTorch's profiler does not record them; run with TORCH_LOGS=recompiles, or TORCH_TRACE and tlparse",
            ));
        }
        if self.captures.iter().all(|side| side.is_compiled) {
            missing.push(NotCaptured::new(
                "the speed-up",
                "no eager capture stands beside; add one of the same program without torch.compile",
            ));
        }
        let no_pace = sides.iter().zip(&self.captures).filter(|_| sides.len() > 1);
        missing.extend(no_pace.filter_map(|(side, of_side)| {
            let lacking = side.pace.not_found.as_ref()?;
            Some(NotCaptured::new(
                format!("{} of {}", lacking.what, of_side.label),
                lacking.reason.clone(),
            ))
        }));
        self.not_captured = missing;
    }
}
