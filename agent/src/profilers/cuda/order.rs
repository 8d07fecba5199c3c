//! What a session asks for, in the words of the tracer's file.

use std::time::Duration;

use flopwatch_api::profiler::{CudaGraphs, CudaKind, CudaOptions};
use flopwatch_pipeline::cuda_window::{MAX_WINDOW, Order};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

/// How long after its order a window begins, in all programs of a container at one time: each has
/// been woken by then.
const START_DELAY: Duration = Duration::from_millis(5);
/// Where no agent ends the window, programs end it so long after its time.
const DEADLINE_GRACE: Duration = Duration::from_secs(5);

/// The order of a window of `length`, given at `now_utc_ns`.
pub(super) fn order(options: &CudaOptions, length: Duration, now_utc_ns: u64) -> Order {
    let start_at_utc_ns = later(now_utc_ns, START_DELAY);
    let longest = length.saturating_add(DEADLINE_GRACE).min(MAX_WINDOW);
    Order {
        kinds: kinds(options),
        graphs: match options.graphs {
            Some(CudaGraphs::Nodes) => GraphLevel::Nodes,
            Some(CudaGraphs::Whole) | None => GraphLevel::Whole,
        },
        start_at_utc_ns,
        deadline_utc_ns: later(start_at_utc_ns, longest),
        is_late: true,
    }
}

fn later(time_ns: u64, by: Duration) -> u64 {
    time_ns.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX))
}

/// The kinds of records, with what tells where and for whom each of them ran.
fn kinds(options: &CudaOptions) -> Kinds {
    let always = Kinds::PLACES.with(Kinds::CORRELATIONS).with(Kinds::OVERHEAD);
    let recorded = options.recorded().iter();
    recorded.fold(always, |kinds, kind| kinds.with(of_kind(*kind)))
}

const fn of_kind(kind: CudaKind) -> Kinds {
    match kind {
        CudaKind::Kernels => Kinds::KERNELS,
        CudaKind::Copies => Kinds::COPIES,
        CudaKind::Memsets => Kinds::SETS,
        CudaKind::Waits => Kinds::SYNCS,
        CudaKind::Calls => Kinds::RUNTIME.with(Kinds::DRIVER),
        CudaKind::Graphs => Kinds::GRAPHS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_window_begins_a_moment_later_and_ends_by_itself_behind_its_time() {
        let order = order(&CudaOptions::default(), Duration::from_secs(10), 100 * SECOND);
        assert_eq!(order.start_at_utc_ns, 100 * SECOND + 5_000_000);
        assert_eq!(order.deadline_utc_ns, order.start_at_utc_ns + 15 * SECOND);
        assert_eq!((order.kinds, order.graphs), (Kinds::ALL, GraphLevel::Whole));
    }

    #[test]
    fn what_is_named_is_recorded_and_what_says_where_it_ran() {
        let options = CudaOptions {
            kinds: vec![CudaKind::Kernels],
            graphs: Some(CudaGraphs::Nodes),
        };
        let order = order(&options, Duration::from_secs(1), 0);
        assert_eq!(order.graphs, GraphLevel::Nodes);
        assert!(order.kinds.has(Kinds::KERNELS) && order.kinds.has(Kinds::PLACES));
        assert!(!order.kinds.has(Kinds::COPIES) && !order.kinds.has(Kinds::RUNTIME));
    }
}
