//! How much of the GPU the grids of kernels fill.

use std::collections::BTreeMap;

use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_model::{Category, ColumnId, NameId, index};

use super::Facts;

/// Kernels that compute, by the size of their grids. Lengths are sums over all GPUs in ns.
#[derive(Debug, Default)]
pub(crate) struct Grids {
    /// Kernels whose blocks and whose GPU's multiprocessors are known.
    pub(crate) known: u64,
    /// Length of the kernels whose grid is known.
    pub(crate) known_ns: u64,
    /// The length of those with fewer blocks than the GPU has multiprocessors.
    pub(crate) small_ns: u64,
    /// Of each name (by its place) what multiprocessors without a block make while such a kernel
    /// runs alone: its length times their share.
    pub(crate) unused_ns: BTreeMap<NameId, u64>,
}

impl Grids {
    /// The unused time of all names.
    pub(crate) fn all_unused_ns(&self) -> u64 {
        self.unused_ns.values().sum()
    }
}

impl Facts<'_> {
    /// How much of the GPU the grids of kernels fill.
    pub(crate) fn grids(&self) -> Grids {
        let mut grids = Grids::default();
        let Some(kernels) = self.events(Category::CudaKernel) else {
            return grids;
        };
        let [x, y, z] = [ColumnId::GridX, ColumnId::GridY, ColumnId::GridZ].map(|id| kernels.column(id));
        let (Some(x), Some(y), Some(z)) = (x, y, z) else {
            return grids;
        };
        let blocks = |at: usize| {
            let blocks = x.get(at)?.saturating_mul(y.get(at)?).saturating_mul(z.get(at)?);
            (blocks > 0).then_some(blocks)
        };
        let devices = &self.timeline.capture.devices;
        for gpu in &self.gpus {
            let device = devices.iter().find(|known| known.id == gpu.gpu.device);
            let multiprocessors = device.and_then(|device| device.multiprocessors).map(u64::from);
            let Some(multiprocessors) = multiprocessors.filter(|count| *count > 0) else {
                continue;
            };
            let mut until = 0;
            let all = gpu.work.all();
            for (position, work) in all.iter().enumerate() {
                let next = all.get(position + 1);
                let alone = work.time.start >= until && next.is_none_or(|next| next.time.start >= work.time.end);
                until = until.max(work.time.end);
                if work.category != Category::CudaKernel || work.class != WorkClass::Compute {
                    continue;
                }
                let Some(blocks) = blocks(index(work.at)) else {
                    continue;
                };
                let length = work.time.len();
                grids.known += 1;
                grids.known_ns += length;
                if blocks >= multiprocessors {
                    continue;
                }
                grids.small_ns += length;
                // What runs beside it may have the rest.
                if alone && let Some(name) = kernels.name.get(index(work.at)) {
                    let part = u128::from(length) * u128::from(multiprocessors - blocks) / u128::from(multiprocessors);
                    *grids.unused_ns.entry(*name).or_default() += u64::try_from(part).unwrap_or(u64::MAX);
                }
            }
        }
        grids
    }
}
