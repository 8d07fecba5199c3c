//! From when on a program is past its warm-up, and what calls cost before and behind that.

use flopwatch_model::Timeline;
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Table, TableBuilder, Tile, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::host_call::{CallCost, HostCall, ProcessGpus};
use crate::iteration::{self, IterationOptions};

/// The steady state of a program: from the second iteration of its loop on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SteadyState {
    /// When it begins in ns; `None` where no iterations are found.
    pub from_ns: Option<u64>,
    /// What the iterations were found from.
    pub found_by: String,
    /// Why there is none.
    pub not_found: Option<NotCaptured>,
}

impl SteadyState {
    /// Of `timeline`: the start of the earliest second iteration of a loop. Needs what
    /// [`iteration::of`] needs.
    pub fn of(timeline: &Timeline) -> Self {
        let found = iteration::of(timeline, &IterationOptions::default());
        let second = found.loops().filter_map(|one| Some(one.get(1)?.time.start)).min();
        let not_found = second.is_none().then(|| {
            let reason = found.not_found.as_ref().map_or_else(
                || "the capture holds fewer than two iterations; capture for longer".to_owned(),
                |missing| missing.reason.clone(),
            );
            NotCaptured::new("what happens in the steady state", reason)
        });
        Self {
            from_ns: second,
            found_by: found.name,
            not_found,
        }
    }
}

/// What calls cost, in all and in the steady state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhasedCost {
    /// In all.
    pub cost: CallCost,
    /// Start of the first in ns; null without any.
    pub first_ns: Option<u64>,
    /// End of the last in ns; null without any.
    pub last_ns: Option<u64>,
    /// Of those that begin in the steady state; null where it is not known when that begins.
    pub steady: Option<CallCost>,
}

impl PhasedCost {
    /// Of `calls`.
    pub fn of(timeline: &Timeline, gpus: &ProcessGpus, steady: &SteadyState, calls: &[HostCall]) -> Self {
        let behind = |from: u64| {
            let calls = calls.iter().filter(|call| call.time.start >= from);
            gpus.cost(timeline, calls)
        };
        Self {
            cost: gpus.cost(timeline, calls),
            first_ns: calls.iter().map(|call| call.time.start).min(),
            last_ns: calls.iter().map(|call| call.time.end).max(),
            steady: steady.from_ns.map(behind),
        }
    }

    /// Tiles of what `what` cost, such as calls; without values where they were not recorded.
    pub fn tiles(&self, [what, in_steady_state]: [&str; 2], recorded: bool) -> [Tile; 5] {
        let (cost, steady) = (self.cost, self.steady);
        [
            Tile::new(what, recorded.then_some(cost.calls)),
            Tile::figure("Time in them", Unit::Ns, recorded.then_some(cost.held_ns)),
            Tile::figure("GPU idle meanwhile", Unit::Ns, cost.gpu_idle_ns),
            Tile::new(in_steady_state, steady.map(|steady| steady.calls)),
            Tile::figure("Time in steady state", Unit::Ns, steady.map(|steady| steady.held_ns)),
        ]
    }

    /// A table by kind: each kind's name, and what it cost.
    pub fn by_kind<'a>(kinds: impl IntoIterator<Item = (&'a str, &'a Self)>) -> Table {
        let table = Table::of("By kind", kinds).column("Kind", |(kind, _)| kind.replace('_', " "));
        Self::columns(table, |(_, cost)| cost).build()
    }

    /// Adds the columns of each row's cost.
    pub fn columns<'a, T: Copy>(table: TableBuilder<T>, cost: impl Fn(T) -> &'a Self) -> TableBuilder<T> {
        CallCost::columns(table, |row| cost(row).cost)
            .figure("First", Unit::Ns, |row| cost(row).first_ns)
            .figure("Last", Unit::Ns, |row| cost(row).last_ns)
            .column("Calls in steady state", |row| {
                cost(row).steady.map(|steady| steady.calls)
            })
            .figure("Total in steady state", Unit::Ns, |row| {
                cost(row).steady.map(|steady| steady.total_ns)
            })
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::{Category, Track};

    use super::*;

    #[test]
    fn the_steady_state_begins_with_the_second_iteration() {
        let mut trace = Trace::new();
        let steps = trace.thread(1, 1, Track::Annotation);
        let calls = trace.thread(1, 1, Track::CudaApi);
        for number in 0..3 {
            let start = 100 + number * 100;
            trace.step(steps, number, start, start + 100);
        }
        for start in [10, 150, 200, 350] {
            trace.call(calls, "cudaMalloc", start, start + 5);
        }
        let timeline = trace.build();
        let steady = SteadyState::of(&timeline);
        assert_eq!(steady.from_ns, Some(200));
        let calls = HostCall::list(&timeline, Category::CudaApi, |_| true);
        let cost = PhasedCost::of(&timeline, &ProcessGpus::default(), &steady, &calls);
        assert_eq!((cost.cost.calls, cost.steady.map(|steady| steady.calls)), (4, Some(2)));
        assert_eq!((cost.first_ns, cost.last_ns), (Some(10), Some(355)));
    }
}
