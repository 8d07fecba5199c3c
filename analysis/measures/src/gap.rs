//! Gaps between pieces of GPU work, and whether the host was late.

use flopwatch_model::index;
use schemars::JsonSchema;
use serde::Serialize;

use crate::interval::Interval;
use crate::launch::WorkCalls;
use crate::work::GpuWork;

/// Longest gap before work that was launched in time which is put down to the GPU itself, in ns:
/// HTA's `consecutive_kernel_delay`.
pub const KERNEL_WAIT_NS: u64 = 30_000;

/// Why a gap is there, as HolisticTraceAnalysis tells it, from the work that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdleClass {
    /// The work was launched only after the work before it had ended: the host was late.
    HostWait,
    /// The work was launched in time and began within the threshold: the price of one kernel after
    /// another.
    KernelWait,
    /// The work was launched in time and began later than the threshold: it waited for an event,
    /// another stream, another GPU or memory.
    Other,
    /// The call that launched the work was not recorded.
    LaunchNotRecorded,
}

impl IdleClass {
    /// Every class, in published order.
    pub const ALL: [Self; 4] = [Self::HostWait, Self::KernelWait, Self::Other, Self::LaunchNotRecorded];

    /// For people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::HostWait => "host wait",
            Self::KernelWait => "kernel wait",
            Self::Other => "other",
            Self::LaunchNotRecorded => "launch not recorded",
        }
    }
}

impl IdleClass {
    /// The class of `gap`, up to work that `call` launched.
    pub fn of(gap: Interval, call: Option<Interval>, kernel_wait_ns: u64) -> Self {
        match call {
            None => Self::LaunchNotRecorded,
            Some(call) if call.start > gap.start => Self::HostWait,
            Some(_) if gap.len() < kernel_wait_ns => Self::KernelWait,
            Some(_) => Self::Other,
        }
    }
}

/// What counts as a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapOptions {
    /// See [`KERNEL_WAIT_NS`].
    pub kernel_wait_ns: u64,
    /// Time from here to the first work is a gap too, in ns; without it the first work begins none.
    pub from_ns: Option<u64>,
}

/// Time without work up to the next piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// From the end of the last work to the start of the next, in ns since the session's start.
    pub time: Interval,
    /// What kept the device without work.
    pub class: IdleClass,
    /// Place of the work that ends before it in [`GpuWork::all`]; `None` before the first.
    pub before: Option<u32>,
    /// Place of the work that ends it.
    pub after: u32,
}

/// The gaps between `gpu_ops`, which are places in `all` in the order of starts. `calls` are those
/// of `all`.
pub fn gaps(all: &GpuWork, gpu_ops: &[u32], calls: &WorkCalls, options: GapOptions) -> Vec<Gap> {
    let mut found = Vec::new();
    let mut last: Option<(u64, Option<u32>)> = options.from_ns.map(|from| (from, None));
    for at in gpu_ops {
        let Some(time) = all.all().get(index(*at)).map(|work| work.time) else {
            continue;
        };
        let end = time.end.max(time.start);
        let Some((until, before)) = last else {
            last = Some((end, Some(*at)));
            continue;
        };
        if time.start > until {
            let gap = Interval::new(until, time.start);
            found.push(Gap {
                time: gap,
                class: IdleClass::of(gap, calls.time(*at), options.kernel_wait_ns),
                before,
                after: *at,
            });
        }
        if end >= until {
            last = Some((end, Some(*at)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;

    use super::*;

    #[test]
    fn time_before_the_first_work_is_a_gap_where_it_is_asked_for() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        let thread = trace.thread(1, 1, Track::CudaApi);
        trace.launch_kernel((thread, 50, 60), (stream, "a", 70, 80));
        trace.kernel(stream, "b", 90, 95);
        let timeline = trace.build();
        let work = GpuWork::of(&timeline);
        let calls = WorkCalls::of(&timeline, &work);
        let of = |from_ns| {
            let options = GapOptions {
                kernel_wait_ns: KERNEL_WAIT_NS,
                from_ns,
            };
            let gaps = gaps(&work, &[0, 1], &calls, options);
            let seen = gaps
                .iter()
                .map(|gap| (gap.time.start, gap.time.end, gap.class, gap.before));
            seen.collect::<Vec<_>>()
        };
        let between = (80, 90, IdleClass::LaunchNotRecorded, Some(0));
        assert_eq!(of(None), [between]);
        assert_eq!(of(Some(20)), [(20, 70, IdleClass::HostWait, None), between]);
    }
}
