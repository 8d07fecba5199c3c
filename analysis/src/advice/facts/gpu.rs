//! The time of one GPU.

use crate::measures::gpu::Gpu;
use crate::measures::interval::{Interval, Intervals};
use crate::measures::kernel_class::WorkClass;
use crate::measures::work::{GpuWork, Work};
use crate::model::{Category, Timeline};

/// Longest gap between two pieces of work of which the second was launched in time, that is put down to the GPU itself: HTA's
/// `consecutive_kernel_delay`.
pub(crate) const KERNEL_WAIT_NS: u64 = 30_000;

/// Why a GPU had nothing to do, as HTA classifies it (`hta/analyzers/breakdown_analysis.py`), here of the whole GPU and not of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GapCause {
    /// The call that launched the next work began after the gap did: the GPU waited for the host.
    HostWait,
    /// The work was launched before, and began within [`KERNEL_WAIT_NS`].
    KernelWait,
    /// The work was launched before and began later: it waited for an event, another stream or a queue.
    Other,
    /// The launch was not recorded.
    Unknown,
}

/// Time in which a GPU had nothing to do, up to its next work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    /// When.
    pub(crate) time: Interval,
    /// Why.
    pub(crate) cause: GapCause,
    /// The call that launched the work that ends it.
    pub(crate) launch: Option<Interval>,
    /// That work.
    pub(crate) work: Work,
}

/// One GPU.
#[derive(Debug)]
pub(crate) struct GpuFacts {
    /// Which.
    pub(crate) gpu: Gpu,
    /// Its work, by start.
    pub(crate) work: GpuWork,
    /// When it computed.
    pub(crate) compute: Intervals,
    /// When it communicated.
    pub(crate) communication: Intervals,
    /// When it communicated and did not compute.
    pub(crate) exposed_communication: Intervals,
    /// When it copied or set memory, and neither computed nor communicated.
    pub(crate) exposed_memory: Intervals,
    /// When it did nothing, within the capture's window.
    pub(crate) idle: Intervals,
    /// The parts of that which end with work, by start.
    pub(crate) gaps: Vec<Gap>,
}

impl GpuFacts {
    /// `gpu`, whose work is `work`.
    pub(crate) fn of(timeline: &Timeline, gpu: Gpu, work: GpuWork, window: Interval) -> Self {
        let compute = work.busy_with(WorkClass::Compute);
        let communication = work.busy_with(WorkClass::Communication);
        let exposed_communication = communication.subtract(&compute);
        let memory = work.busy_with(WorkClass::Memory);
        Self {
            gpu,
            exposed_memory: memory.subtract(&compute).subtract(&communication),
            idle: work.busy().gaps(window),
            gaps: gaps(timeline, &work, window.start),
            compute,
            communication,
            exposed_communication,
            work,
        }
    }

    /// When copies of `category` ran and it neither computed nor communicated.
    pub(crate) fn exposed_copies(&self, category: Category) -> Intervals {
        let copies = self.work.all().iter().filter(|work| work.category == category);
        let copies: Intervals = copies.map(|work| work.time).collect();
        copies.subtract(&self.compute).subtract(&self.communication)
    }
}

fn gaps(timeline: &Timeline, work: &GpuWork, start: u64) -> Vec<Gap> {
    let calls = timeline.capture.events.get(&Category::CudaApi);
    let mut gaps = Vec::new();
    let mut until = start;
    for piece in work.all() {
        // A piece without length ends a gap only where the next one begins: otherwise gaps would fall apart at it.
        if piece.time.is_empty() {
            continue;
        }
        let time = Interval::new(until, piece.time.start);
        until = until.max(piece.time.end);
        if time.is_empty() {
            continue;
        }
        let launch = piece.launch(timeline);
        let launch = launch.and_then(|at| calls.map(|calls| Interval::of(calls, at)));
        gaps.push(Gap {
            time,
            cause: match launch {
                None => GapCause::Unknown,
                Some(call) if call.start > time.start => GapCause::HostWait,
                Some(_) if time.len() < KERNEL_WAIT_NS => GapCause::KernelWait,
                Some(_) => GapCause::Other,
            },
            launch,
            work: *piece,
        });
    }
    gaps
}
