//! The time of one GPU.

use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, index};

/// One GPU.
#[derive(Debug)]
pub(crate) struct GpuFacts {
    /// The GPU, in its process.
    pub(crate) gpu: Gpu,
    /// Work of the GPU, by start.
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
}

impl GpuFacts {
    /// `gpu`, whose work is at `work_indices` in `all`.
    pub(crate) fn of(gpu: Gpu, (all, work_indices): (&GpuWork, &[u32]), window: Interval) -> Self {
        let work = work_indices.iter().filter_map(|at| all.all().get(index(*at)));
        let work = GpuWork::sorted(work.copied().collect());
        let compute = work.busy_with(WorkClass::Compute);
        let communication = work.busy_with(WorkClass::Communication);
        let exposed_communication = communication.subtract(&compute);
        let memory = work.busy_with(WorkClass::Memory);
        Self {
            gpu,
            exposed_memory: memory.subtract(&compute).subtract(&communication),
            idle: work.busy().gaps(window),
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
