//! Memory that the CUDA driver gave out or took back (`--cuda-memory-usage=true`).

use super::gpu::memory_kind;
use super::{Failure, GlobalId, Reader};
use flopwatch_model::{Allocation, LossReason, MemoryKind};

const USAGE: &str = "CUDA_GPU_MEMORY_USAGE_EVENTS";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[USAGE];

/// `memoryOperationType` of a release; 0 is an allocation.
const RELEASE: u32 = 1;

/// Kinds of the host's memory.
const OF_HOST: [MemoryKind; 2] = [MemoryKind::Pageable, MemoryKind::Pinned];

impl Reader<'_> {
    /// Reads what the driver did. It follows `rebase`, which left in `duration_ns` by how much the
    /// session's start was moved back.
    pub(super) fn read_memory_usage(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(USAGE)? else {
            return Ok(());
        };
        let moved = i64::try_from(self.capture.duration_ns).unwrap_or(i64::MAX);
        let mut early = 0;
        for slab in table.slabs() {
            self.count_samples(USAGE, slab.len())?;
            let times: Vec<i64> = table.required("start", &slab)?;
            let processes: Vec<u64> = table.optional_ids("globalPid", &slab)?;
            let devices: Vec<u32> = table.optional("deviceId", &slab)?;
            let kinds: Vec<u32> = table.optional("memKind", &slab)?;
            let addresses: Vec<u64> = table.optional("address", &slab)?;
            let sizes: Vec<i64> = table.required("bytes", &slab)?;
            let operations: Vec<u32> = table.optional("memoryOperationType", &slab)?;
            let correlations: Vec<u32> = table.optional("correlationId", &slab)?;
            let who = times.into_iter().zip(processes).zip(devices.into_iter().zip(kinds));
            let what = addresses
                .into_iter()
                .zip(sizes)
                .zip(operations.into_iter().zip(correlations));
            for (((time, process), (device, kind)), ((address, size), (operation, correlation))) in who.zip(what) {
                let Ok(t_ns) = u64::try_from(time.saturating_add(moved)) else {
                    early += 1;
                    continue;
                };
                let kind = memory_kind(kind);
                self.capture.allocations.push(Allocation {
                    t_ns,
                    process: GlobalId(process).process(),
                    thread: None,
                    correlation,
                    device: (!OF_HOST.contains(&kind)).then_some(device),
                    kind: Some(kind),
                    address,
                    bytes: if operation == RELEASE {
                        size.saturating_neg()
                    } else {
                        size
                    },
                    allocated: None,
                    reserved: None,
                });
            }
        }
        let what = format!("{USAGE}: rows before the session");
        self.capture.losses.add(LossReason::Skipped, &what, early);
        Ok(())
    }
}
