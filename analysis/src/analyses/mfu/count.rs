//! The floating-point operations that a capture holds, call by call.

use std::collections::BTreeSet;

use flopwatch_measures::enclosing::{LaunchedWork, Threads};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::operator_flops::FlopFormula;
use flopwatch_measures::range_tree::innermost;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, ColumnId, Events, KernelProfile, RowId, Timeline, index};
use flopwatch_summary::duration_ns;

use super::{FlopsSource, whole};

/// A call whose operations are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedCall<'a> {
    pub(super) name: &'a str,
    /// Shapes of its inputs; empty where none were recorded.
    pub(super) shapes: &'a str,
    pub(super) element_type: Option<&'static str>,
    pub(super) flops: u64,
    /// When GPUs worked for it, in ns.
    pub(super) gpu_time_ns: u64,
    pub(super) device: u32,
    /// Its first work's place in [`GpuWork::all`].
    pub(super) work: Option<u32>,
    /// When it ran, and the timeline's row.
    pub(super) place: Option<(Interval, RowId)>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct CountedCalls<'a> {
    pub(super) source: Option<FlopsSource>,
    pub(super) pieces: Vec<CountedCall<'a>>,
    pub(super) kernel_time_ns: u64,
    pub(super) known_kernel_time_ns: u64,
    pub(super) without_kernels: u64,
    pub(super) without_shapes: u64,
}

impl<'a> CountedCalls<'a> {
    /// From the first source that knows any: counters, the compiler, operators.
    pub(super) fn of(timeline: &'a Timeline, work: &GpuWork) -> Self {
        let counters = Self::of_profiles(&timeline.capture.profiles);
        if !counters.pieces.is_empty() {
            return counters;
        }
        let events = &timeline.capture.events;
        let compiled = events
            .get(&Category::DeviceOp)
            .map(|operations| Self::of_device_operations(timeline, operations));
        if let Some(compiled) = compiled.filter(|compiled| !compiled.pieces.is_empty()) {
            return compiled;
        }
        Self::of_operators(timeline, work)
    }

    /// Types of number of the calls; `None` of those whose type is not known.
    pub(super) fn types(&self) -> BTreeSet<Option<&'static str>> {
        self.pieces.iter().map(|piece| piece.element_type).collect()
    }

    /// From counters of Nsight Compute. A type of number counts where additions, products and
    /// multiply-adds of it were all counted.
    fn of_profiles(profiles: &'a [KernelProfile]) -> Self {
        let mut counted = Self::default();
        for profile in profiles {
            let Some(gpu_time_ns) = duration_ns(profile) else {
                continue;
            };
            counted.kernel_time_ns = counted.kernel_time_ns.saturating_add(gpu_time_ns);
            let mut is_known = false;
            for (letter, element_type) in [("f", "fp32"), ("h", "fp16"), ("d", "fp64")] {
                let Some(flops) = instructions(profile, letter) else {
                    continue;
                };
                if flops > 0 || !is_known {
                    counted.pieces.push(CountedCall {
                        name: &profile.name,
                        shapes: "",
                        element_type: Some(element_type),
                        flops,
                        gpu_time_ns,
                        device: profile.device,
                        work: None,
                        place: None,
                    });
                }
                is_known = true;
            }
            if is_known {
                counted.known_kernel_time_ns = counted.known_kernel_time_ns.saturating_add(gpu_time_ns);
            }
        }
        counted.source = (!counted.pieces.is_empty()).then_some(FlopsSource::Counters);
        counted
    }

    /// From the compiler's count of each operation of a program. Of operations inside each other
    /// the innermost that has a count is taken.
    fn of_device_operations(timeline: &Timeline, operations: &'a Events) -> Self {
        let mut counted = Self::default();
        let Some(flops) = operations.column(ColumnId::Flops) else {
            return counted;
        };
        let flops_of = |at: usize| flops.get(at).filter(|flops| *flops > 0);
        let mut busy: Vec<Vec<Interval>> = vec![Vec::new(); timeline.capture.rows.len()];
        for (at, row) in operations.row.iter().enumerate() {
            if let Some(busy) = busy.get_mut(row.index()) {
                busy.push(Interval::of(operations, at));
            }
        }
        counted.kernel_time_ns = busy.into_iter().map(|times| Intervals::union_of(times).len_ns()).sum();
        for at in innermost(operations, |at| flops_of(at).is_some()) {
            let (Some(flops), Some(row)) = (flops_of(at), operations.row.get(at)) else {
                continue;
            };
            let time = Interval::of(operations, at);
            counted.known_kernel_time_ns = counted.known_kernel_time_ns.saturating_add(time.len());
            counted.pieces.push(CountedCall {
                name: operations.name_of(at),
                shapes: "",
                element_type: None,
                flops,
                gpu_time_ns: time.len(),
                device: timeline.row(*row).and_then(|row| row.device).unwrap_or(0),
                work: None,
                place: Some((time, *row)),
            });
        }
        counted.known_kernel_time_ns = counted.known_kernel_time_ns.min(counted.kernel_time_ns);
        counted.source = (!counted.pieces.is_empty()).then_some(FlopsSource::Hlo);
        counted
    }

    /// From framework operators: their own count where they have one, else the formula of their
    /// shapes. Of operators inside each other the innermost that is known is taken, so that a
    /// linear layer and the matrix product in it count once.
    fn of_operators(timeline: &'a Timeline, work: &GpuWork) -> Self {
        let mut counted = Self::default();
        let kernels = timeline.capture.events.get(&Category::CudaKernel);
        counted.kernel_time_ns = kernels.map_or(0, |kernels| kernels.duration_ns.iter().sum());
        let Some(operators) = timeline.capture.events.get(&Category::CpuOp) else {
            return counted;
        };
        let known = KnownOperators::of(operators);
        counted.without_shapes = known.without_shapes;
        let threads = Threads::of(timeline);
        let launched = LaunchedWork::of(timeline, &threads, work);
        for at in innermost(operators, |at| known.flops(at).is_some()) {
            let (Some(flops), Some(row)) = (known.flops(at), operators.row.get(at)) else {
                continue;
            };
            let time = Interval::of(operators, at);
            let works = threads
                .of_row(*row)
                .map_or(&[][..], |thread| launched.inside(thread, time));
            let pieces = works
                .iter()
                .filter_map(|of| Some((of, work.all().get(index(of.work))?)));
            let kernels: Vec<_> = pieces
                .filter(|(_, piece)| piece.category == Category::CudaKernel)
                .collect();
            let Some((first, piece)) = kernels.first() else {
                counted.without_kernels += 1;
                continue;
            };
            let kernel_time_ns: u64 = kernels.iter().map(|(of, _)| of.time.len()).sum();
            counted.known_kernel_time_ns = counted.known_kernel_time_ns.saturating_add(kernel_time_ns);
            counted.pieces.push(CountedCall {
                name: operators.name_of(at),
                shapes: operators.text(ColumnId::InputShapes, at).unwrap_or(""),
                element_type: known.element_type(at),
                flops,
                gpu_time_ns: Intervals::union_of(kernels.iter().map(|(of, _)| of.time)).len_ns(),
                device: timeline.row(piece.row).and_then(|row| row.device).unwrap_or(0),
                work: Some(first.work),
                place: Some((time, *row)),
            });
        }
        counted.source = (!counted.pieces.is_empty()).then_some(FlopsSource::Operators);
        counted
    }
}

/// Floating-point operations of one type of number: `f`, `h` or `d`.
fn instructions(profile: &KernelProfile, letter: &str) -> Option<u64> {
    let of = |kind: &str| {
        let name = format!("smsp__sass_thread_inst_executed_op_{letter}{kind}_pred_on.sum");
        let value = profile.metrics.get(&name)?.value.number()?;
        (value >= 0.0).then_some(value)
    };
    Some(whole(of("add")? + of("mul")? + 2.0 * of("fma")?))
}

/// Operations of each call of an operator. Formulas are worked out once per name and shapes.
struct KnownOperators<'a> {
    operators: &'a Events,
    formulas: Vec<Option<FlopFormula>>,
    /// Per call; 0 where they are not known.
    flops: Vec<u64>,
    without_shapes: u64,
}

impl<'a> KnownOperators<'a> {
    fn of(operators: &'a Events) -> Self {
        let formulas: Vec<_> = operators.names.iter().map(|name| FlopFormula::of(name)).collect();
        let counts = operators.column(ColumnId::Flops);
        let shapes = operators.column(ColumnId::InputShapes);
        let mut worked_out = std::collections::HashMap::new();
        let mut without_shapes = 0;
        let calls = operators.name.iter().enumerate().map(|(at, name)| {
            if let Some(flops) = counts.and_then(|counts| counts.get(at)).filter(|flops| *flops > 0) {
                return flops;
            }
            let Some(formula) = formulas.get(name.index()).copied().flatten() else {
                return 0;
            };
            let key = (*name, shapes.and_then(|shapes| shapes.get(at)));
            let flops = *worked_out.entry(key).or_insert_with(|| {
                let shapes = operators.text(ColumnId::InputShapes, at);
                shapes.and_then(|shapes| formula.flops(shapes)).unwrap_or(0)
            });
            without_shapes += u64::from(flops == 0);
            flops
        });
        let flops = calls.collect();
        Self {
            operators,
            formulas,
            flops,
            without_shapes,
        }
    }

    fn flops(&self, at: usize) -> Option<u64> {
        self.flops.get(at).copied().filter(|flops| *flops > 0)
    }

    fn element_type(&self, at: usize) -> Option<&'static str> {
        let name = self.operators.name.get(at)?.index();
        let formula = self.formulas.get(name).copied().flatten()?;
        formula.element_type(self.operators.text(ColumnId::InputTypes, at)?)
    }
}
