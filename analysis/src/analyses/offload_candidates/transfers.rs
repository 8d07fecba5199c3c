//! Copies between host and device around kernels.

use std::collections::BTreeMap;

use flopwatch_measures::moved_bytes::MovedBytes;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, NameId, Timeline, index};

/// Copies around the launches of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Copies {
    pub(super) in_bytes: MovedBytes,
    pub(super) out_bytes: MovedBytes,
    pub(super) ns: u64,
}

/// Copies by the kernel that they are for: what goes in belongs to the next kernel of the GPU, what
/// comes out to the one before.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    by_kernel: BTreeMap<String, Copies>,
    pub(super) total_ns: u64,
    pub(super) total_bytes: MovedBytes,
}

impl Transfers {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut found = Self::default();
        let kernels = timeline.capture.events.get(&Category::CudaKernel);
        let mut by_name: BTreeMap<NameId, Copies> = BTreeMap::new();
        for work in GpuWork::of(timeline).by_gpu(timeline).values() {
            let (mut before, mut pending) = (None, Copies::default());
            for piece in work.all() {
                let bytes = || {
                    let mut moved = MovedBytes::default();
                    moved.add(piece.bytes(timeline));
                    moved
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
                    // What is copied for a graph is for none of the kernels around it.
                    Category::CudaGraph => (before, pending) = (None, Copies::default()),
                    Category::CudaMemcpyH2d => {
                        let bytes = bytes();
                        found.count(piece.time.len(), bytes);
                        pending.add(Copies {
                            in_bytes: bytes,
                            ..copies
                        });
                    }
                    Category::CudaMemcpyD2h => {
                        let bytes = bytes();
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
            if let Some(name) = names.and_then(|names| names.get(name.index())) {
                found.by_kernel.insert(name.clone(), copies);
            }
        }
        found
    }

    fn count(&mut self, ns: u64, bytes: MovedBytes) {
        self.total_ns = self.total_ns.saturating_add(ns);
        self.total_bytes.add(bytes.known());
    }

    pub(super) fn of_kernel(&self, name: &str) -> Copies {
        self.by_kernel.get(name).copied().unwrap_or_default()
    }
}

impl Copies {
    fn add(&mut self, other: Self) {
        self.in_bytes.add(other.in_bytes.known());
        self.out_bytes.add(other.out_bytes.known());
        self.ns = self.ns.saturating_add(other.ns);
    }
}
