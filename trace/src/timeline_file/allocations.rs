//! What allocators did, as the file holds it: a column per field.

use hdf5::Group;

use super::read::{Failure, Reader};
use super::write::list;
use super::{NONE_U32, NONE_U64};
use flopwatch_model::{Allocation, MemoryKind};

pub(super) fn write(group: &Group, all: &[Allocation]) -> hdf5::Result<()> {
    let wide = |field: fn(&Allocation) -> u64| -> Vec<u64> { all.iter().map(field).collect() };
    let small = |field: fn(&Allocation) -> u32| -> Vec<u32> { all.iter().map(field).collect() };
    list(group, "t_ns", &wide(|of| of.t_ns))?;
    list(group, "process", &small(|of| of.process))?;
    list(group, "thread", &wide(|of| of.thread.unwrap_or(NONE_U64)))?;
    list(group, "correlation", &small(|of| of.correlation))?;
    list(group, "kind", &small(|of| of.kind.map_or(0, MemoryKind::number)))?;
    list(group, "device", &small(|of| of.device.unwrap_or(NONE_U32)))?;
    list(group, "address", &wide(|of| of.address))?;
    list(group, "bytes", &all.iter().map(|of| of.bytes).collect::<Vec<i64>>())?;
    list(group, "allocated", &wide(|of| of.allocated.unwrap_or(NONE_U64)))?;
    list(group, "reserved", &wide(|of| of.reserved.unwrap_or(NONE_U64)))
}

impl Reader<'_> {
    pub(super) fn allocations(&mut self, group: &Group) -> Result<Vec<Allocation>, Failure> {
        let times: Vec<u64> = self.numbers(group, "t_ns", None)?;
        let count = Some(times.len());
        self.within_limit(times.len(), "allocations")?;
        if !times.is_sorted() {
            return Err(Failure::Inconsistent("allocations: not sorted by time".to_owned()));
        }
        let processes: Vec<u32> = self.numbers(group, "process", count)?;
        let threads: Vec<u64> = self.numbers(group, "thread", count)?;
        let correlations: Vec<u32> = self.numbers(group, "correlation", count)?;
        let kinds: Vec<u32> = self.numbers(group, "kind", count)?;
        let devices: Vec<u32> = self.numbers(group, "device", count)?;
        let addresses: Vec<u64> = self.numbers(group, "address", count)?;
        let bytes: Vec<i64> = self.numbers(group, "bytes", count)?;
        let allocated: Vec<u64> = self.numbers(group, "allocated", count)?;
        let reserved: Vec<u64> = self.numbers(group, "reserved", count)?;
        let asked = threads.into_iter().zip(correlations).zip(kinds);
        let who = times.into_iter().zip(processes).zip(devices).zip(asked);
        let what = addresses.into_iter().zip(bytes).zip(allocated).zip(reserved);
        let all = who.zip(what).map(
            |(
                (((t_ns, process), device), ((thread, correlation), kind)),
                (((address, bytes), allocated), reserved),
            )| Allocation {
                t_ns,
                process,
                thread: (thread != NONE_U64).then_some(thread),
                correlation,
                device: (device != NONE_U32).then_some(device),
                kind: MemoryKind::from_number(kind.into()),
                address,
                bytes,
                allocated: (allocated != NONE_U64).then_some(allocated),
                reserved: (reserved != NONE_U64).then_some(reserved),
            },
        );
        Ok(all.collect())
    }
}
