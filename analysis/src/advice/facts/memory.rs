//! Memory of GPUs that the framework's allocator has reserved.

use std::collections::BTreeMap;

use super::Facts;

/// The tool whose captures are XLA's.
const XLA: &str = "XLA profiler";

/// The most that was reserved on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReservedMemory {
    /// How much, in bytes.
    pub(crate) bytes: u64,
    /// What of it was given out then; `None` where the source does not say.
    pub(crate) allocated_bytes: Option<u64>,
    /// When, in ns.
    pub(crate) t_ns: u64,
    /// How much memory the GPU has; `None` where the source does not say.
    pub(crate) memory_bytes: Option<u64>,
}

impl Facts<'_> {
    /// The most that the framework's allocator had reserved on each GPU; empty where that was not
    /// recorded.
    pub(crate) fn reserved(&self) -> BTreeMap<u32, ReservedMemory> {
        let capture = &self.timeline.capture;
        // XLA reserves most of a device ahead, whether a program needs it or not.
        if capture.source.tool == XLA {
            return BTreeMap::new();
        }
        let mut max: BTreeMap<u32, ReservedMemory> = BTreeMap::new();
        for allocation in &capture.allocations {
            let (Some(device), Some(reserved_bytes)) = (allocation.device, allocation.reserved) else {
                continue;
            };
            let now = ReservedMemory {
                bytes: reserved_bytes,
                allocated_bytes: allocation.allocated,
                t_ns: allocation.t_ns,
                memory_bytes: None,
            };
            let entry = max.entry(device).or_insert(now);
            if reserved_bytes > entry.bytes {
                *entry = now;
            }
        }
        for (device, reserved) in &mut max {
            let known = capture.devices.iter().find(|known| known.id == *device);
            reserved.memory_bytes = known.and_then(|device| device.memory_bytes);
        }
        max
    }
}
