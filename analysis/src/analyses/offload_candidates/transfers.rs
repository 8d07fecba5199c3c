//! Copies between host and device around kernels.

use std::collections::BTreeMap;

use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, ColumnId, Timeline, index};

/// Copies around the launches of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Copies {
    pub(super) in_bytes: u64,
    pub(super) out_bytes: u64,
    pub(super) ns: u64,
}

/// Copies by the kernel that they are for: what goes in belongs to the next kernel of the GPU, what comes out to the one before.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    by_kernel: BTreeMap<String, Copies>,
    pub(super) total_ns: u64,
    pub(super) total_bytes: u64,
}

impl Transfers {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut found = Self::default();
        let kernels = timeline.capture.events.get(&Category::CudaKernel);
        let mut by_name: BTreeMap<u32, Copies> = BTreeMap::new();
        for work in GpuWork::of(timeline).by_gpu(timeline).values() {
            let (mut before, mut pending) = (None, Copies::default());
            for piece in work.all() {
                let bytes = || {
                    let column = piece.events(timeline)?.column(ColumnId::Bytes)?;
                    column.get(index(piece.at))
                };
                let copies = Copies {
                    ns: piece.time.len(),
                    ..Copies::default()
                };
                match piece.category {
                    Category::CudaKernel => {
                        before = kernels.and_then(|kernels| kernels.name.get(index(piece.at)).copied());
                        if let Some(name) = before {
                            by_name.entry(name).or_default().add(std::mem::take(&mut pending));
                        }
                    }
                    Category::CudaMemcpyH2d => {
                        let bytes = bytes().unwrap_or(0);
                        found.count(piece.time.len(), bytes);
                        pending.add(Copies {
                            in_bytes: bytes,
                            ..copies
                        });
                    }
                    Category::CudaMemcpyD2h => {
                        let bytes = bytes().unwrap_or(0);
                        found.count(piece.time.len(), bytes);
                        if let Some(name) = before {
                            by_name.entry(name).or_default().add(Copies {
                                out_bytes: bytes,
                                ..copies
                            });
                        }
                    }
                    _ => {}
                }
            }
        }
        let names = kernels.map(|kernels| &kernels.names);
        for (name, copies) in by_name {
            if let Some(name) = names.and_then(|names| names.get(index(name))) {
                found.by_kernel.insert(name.clone(), copies);
            }
        }
        found
    }

    fn count(&mut self, ns: u64, bytes: u64) {
        self.total_ns = self.total_ns.saturating_add(ns);
        self.total_bytes = self.total_bytes.saturating_add(bytes);
    }

    pub(super) fn of_kernel(&self, name: &str) -> Copies {
        self.by_kernel.get(name).copied().unwrap_or_default()
    }
}

impl Copies {
    fn add(&mut self, other: Self) {
        self.in_bytes = self.in_bytes.saturating_add(other.in_bytes);
        self.out_bytes = self.out_bytes.saturating_add(other.out_bytes);
        self.ns = self.ns.saturating_add(other.ns);
    }
}
