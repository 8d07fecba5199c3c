//! A record of CUPTI as one of the file.
//!
//! Every field stands at the same place in all releases from 11.8 to 13.5: later ones append. What
//! a record has is told by its length, which is the way to the next one, and by no version. The
//! crate's `layouts` have the same places by their names, to hold a new release against.
//!
//! Most records are kernels and calls. These have a way of their own, on which the processor keeps
//! the fields in its registers: their length is looked at once, and no other kind's record is in
//! the way.

use flopwatch_tracer_file::record::{
    Call, Context, Correlation, DRIVER, Device, Graph, Kernel, KernelRun, MemoryCopy, MemorySet, Overhead, Partition,
    Peer, RUNTIME, Record, Shape, Stream, Wait,
};

/// Bytes of a kernel's record up to the end of its last field that every release has.
const KERNEL_BYTES: usize = 188;
/// Bytes of a call's record.
const CALL_BYTES: usize = 40;

/// Takes what records of CUPTI come to.
pub(crate) trait Sink {
    /// The number of the name at an address.
    fn name(&mut self, address: u64) -> u32;
    /// Takes a kernel.
    fn kernel(&mut self, kernel: &Kernel);
    /// Takes a call.
    fn call(&mut self, call: &Call);
    /// Takes a record of any other kind.
    fn other(&mut self, record: &Record);
}

/// Why a record of CUPTI comes to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOut {
    /// It is of a kind that is not known here.
    Unknown,
    /// It has no times, or they are in the wrong order.
    Timeless,
    /// It ends before its fields do.
    Short,
}

/// Converts a record that has these bytes.
#[inline]
pub(crate) fn convert(bytes: &[u8], into: &mut impl Sink) -> Result<(), LeftOut> {
    let raw = Raw(bytes);
    match raw.u32(0).ok_or(LeftOut::Short)? {
        3 | 10 => {
            let kernel = kernel(raw, |address| into.name(address)).ok_or(LeftOut::Short)?;
            in_order(kernel.run.start_ns, kernel.run.end_ns)?;
            into.kernel(&kernel);
            Ok(())
        }
        kind @ (4 | 5) => {
            let call = call(raw, if kind == 4 { DRIVER } else { RUNTIME }).ok_or(LeftOut::Short)?;
            in_order(call.start_ns, call.end_ns)?;
            into.call(&call);
            Ok(())
        }
        kind => other(kind, raw, into),
    }
}

/// Converts a record that is neither a kernel nor a call.
#[inline(never)]
fn other(kind: u32, raw: Raw<'_>, into: &mut impl Sink) -> Result<(), LeftOut> {
    let record = match kind {
        1 => copy(raw).map(Record::Copy),
        22 => peer(raw).map(Record::Peer),
        2 => set(raw).map(Record::Set),
        38 => wait(raw).map(Record::Sync),
        39 => correlation(raw).map(Record::Correlation),
        51 => graph(raw).map(Record::Graph),
        17 => overhead(raw).map(Record::Overhead),
        9 => context(raw).map(Record::Context),
        37 => stream(raw).map(Record::Stream),
        8 => device(raw, |address| into.name(address)).map(Record::Device),
        _ => return Err(LeftOut::Unknown),
    };
    let record = record.ok_or(LeftOut::Short)?;
    if let Some((start, end)) = record.times() {
        in_order(start, end)?;
    }
    let part = match &record {
        Record::Device(device) if device.is_partition != 0 => Some(partition(raw, device).ok_or(LeftOut::Short)?),
        _ => None,
    };
    into.other(&record);
    if let Some(part) = part {
        into.other(&Record::Partition(part));
    }
    Ok(())
}

/// Fails for times of work that has none, or that ends before its begin.
#[inline]
const fn in_order(start: u64, end: u64) -> Result<(), LeftOut> {
    if start == 0 || end < start {
        Err(LeftOut::Timeless)
    } else {
        Ok(())
    }
}

/// The fields of a record, each of which may lie behind its end.
#[derive(Clone, Copy)]
struct Raw<'a>(&'a [u8]);

impl Raw<'_> {
    /// The first bytes alone, whose number the compiler knows; `None` where there are fewer.
    #[inline]
    fn first(self, bytes: usize) -> Option<Self> {
        self.0.get(..bytes).map(Raw)
    }

    #[inline]
    fn get<const COUNT: usize>(self, at: usize) -> Option<[u8; COUNT]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    #[inline]
    fn u8(self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    #[inline]
    fn u16(self, at: usize) -> Option<u16> {
        self.get(at).map(u16::from_le_bytes)
    }

    #[inline]
    fn u32(self, at: usize) -> Option<u32> {
        self.get(at).map(u32::from_le_bytes)
    }

    #[inline]
    fn u64(self, at: usize) -> Option<u64> {
        self.get(at).map(u64::from_le_bytes)
    }

    /// A number of 32 bits as one of 16.
    #[inline]
    fn small(self, at: usize) -> Option<u16> {
        self.u32(at).map(|number| u16::try_from(number).unwrap_or(u16::MAX))
    }
}

#[inline]
fn kernel(whole: Raw<'_>, mut name_of: impl FnMut(u64) -> u32) -> Option<Kernel> {
    let raw = whole.first(KERNEL_BYTES)?;
    let shape = Shape {
        grid_x: raw.u32(52)?,
        grid_y: raw.u32(56)?,
        grid_z: raw.u32(60)?,
        block_x: raw.u32(64)?,
        block_y: raw.u32(68)?,
        block_z: raw.u32(72)?,
        static_shared: raw.u32(76)?,
        dynamic_shared: raw.u32(80)?,
        local_per_thread: raw.u32(84)?,
        executed_shared: raw.u32(140)?,
        registers: raw.u16(6)?,
        cluster_x: raw.small(176)?,
        cluster_y: raw.small(180)?,
        cluster_z: raw.small(184)?,
        // 13.0.
        is_device_launched: whole.u8(208).unwrap_or(0),
    };
    let run = KernelRun {
        start_ns: raw.u64(16)?,
        end_ns: raw.u64(24)?,
        graph_node: raw.u64(144)?,
        correlation: raw.u32(92)?,
        device: raw.u32(40)?,
        context: raw.u32(44)?,
        stream: raw.u32(48)?,
        graph: raw.u32(156)?,
        channel: raw.u32(168)?,
        launch_kind: raw.u8(136)?,
        channel_kind: raw.u8(172)?,
        name: name_of(raw.u64(104)?),
    };
    Some(Kernel { run, shape })
}

fn copy(raw: Raw<'_>) -> Option<MemoryCopy> {
    Some(MemoryCopy {
        start_ns: raw.u64(16)?,
        end_ns: raw.u64(24)?,
        bytes: raw.u64(8)?,
        graph_node: raw.u64(64)?,
        correlation: raw.u32(44)?,
        device: raw.u32(32)?,
        context: raw.u32(36)?,
        stream: raw.u32(40)?,
        graph: raw.u32(72)?,
        kind: raw.u8(4)?,
        source: raw.u8(5)?,
        destination: raw.u8(6)?,
        flags: raw.u8(7)?,
    })
}

fn peer(raw: Raw<'_>) -> Option<Peer> {
    Some(Peer {
        start_ns: raw.u64(16)?,
        end_ns: raw.u64(24)?,
        bytes: raw.u64(8)?,
        graph_node: raw.u64(72)?,
        correlation: raw.u32(60)?,
        device: raw.u32(32)?,
        context: raw.u32(36)?,
        stream: raw.u32(40)?,
        source_device: raw.small(44)?,
        destination_device: raw.small(52)?,
        kind: raw.u8(4)?,
        source: raw.u8(5)?,
        destination: raw.u8(6)?,
        flags: raw.u8(7)?,
    })
}

fn set(raw: Raw<'_>) -> Option<MemorySet> {
    Some(MemorySet {
        start_ns: raw.u64(16)?,
        end_ns: raw.u64(24)?,
        bytes: raw.u64(8)?,
        graph_node: raw.u64(64)?,
        correlation: raw.u32(44)?,
        device: raw.u32(32)?,
        context: raw.u32(36)?,
        stream: raw.u32(40)?,
        graph: raw.u32(72)?,
        flags: raw.u16(48)?,
        memory: raw.u16(50)?,
    })
}

#[inline]
fn call(whole: Raw<'_>, domain: u8) -> Option<Call> {
    let raw = whole.first(CALL_BYTES)?;
    Some(Call {
        start_ns: raw.u64(8)?,
        end_ns: raw.u64(16)?,
        function: raw.u32(4)?,
        process: raw.u32(24)?,
        thread: raw.u32(28)?,
        correlation: raw.u32(32)?,
        status: raw.u32(36)?,
        domain,
    })
}

fn wait(raw: Raw<'_>) -> Option<Wait> {
    Some(Wait {
        start_ns: raw.u64(8)?,
        end_ns: raw.u64(16)?,
        kind: raw.u32(4)?,
        correlation: raw.u32(24)?,
        context: raw.u32(28)?,
        stream: raw.u32(32)?,
        event: raw.u32(36)?,
    })
}

fn correlation(raw: Raw<'_>) -> Option<Correlation> {
    Some(Correlation {
        identifier: raw.u64(8)?,
        kind: raw.u32(4)?,
        correlation: raw.u32(16)?,
    })
}

fn graph(raw: Raw<'_>) -> Option<Graph> {
    let (device, context) = (raw.u32(24)?, raw.u32(32)?);
    Some(Graph {
        start_ns: raw.u64(8)?,
        end_ns: raw.u64(16)?,
        correlation: raw.u32(4)?,
        device,
        graph: raw.u32(28)?,
        context,
        stream: raw.u32(36)?,
        // 12.4; before, a graph that ends on another device does not say so.
        end_device: raw.u32(48).unwrap_or(device),
        end_context: raw.u32(52).unwrap_or(context),
    })
}

fn overhead(raw: Raw<'_>) -> Option<Overhead> {
    Some(Overhead {
        start_ns: raw.u64(24)?,
        end_ns: raw.u64(32)?,
        kind: raw.u32(4)?,
        object_kind: raw.u32(8)?,
        // 12.4.
        correlation: raw.u32(40).unwrap_or(0),
    })
}

fn context(raw: Raw<'_>) -> Option<Context> {
    Some(Context {
        context: raw.u32(4)?,
        device: raw.u32(8)?,
        api: raw.u16(12)?,
        null_stream: raw.u16(14)?,
        // 12.4.
        parent: raw.u32(16).unwrap_or(0),
        multiprocessors: raw.u16(22).unwrap_or(0),
    })
}

fn stream(raw: Raw<'_>) -> Option<Stream> {
    Some(Stream {
        context: raw.u32(4)?,
        stream: raw.u32(8)?,
        priority: raw.u32(12)?,
        flags: raw.u32(16)?,
    })
}

fn device(raw: Raw<'_>, mut name_of: impl FnMut(u64) -> u32) -> Option<Device> {
    Some(Device {
        uuid: raw.get(120)?,
        memory_bytes: raw.u64(16)?,
        device: raw.u32(112)?,
        multiprocessors: raw.u32(44)?,
        major: raw.small(104)?,
        minor: raw.small(108)?,
        gpu_instance: raw.u32(152)?,
        compute_instance: raw.u32(156)?,
        is_visible: raw.u8(144)?,
        is_partition: raw.u8(145)?,
        name: name_of(raw.u64(136)?),
    })
}

fn partition(raw: Raw<'_>, device: &Device) -> Option<Partition> {
    Some(Partition {
        uuid: raw.get(160)?,
        device: device.device,
    })
}

#[cfg(test)]
#[path = "convert_tests.rs"]
pub(crate) mod tests;
