//! What an allocator of memory did.

use super::MemoryKind;

/// Memory that an allocator gave out or took back. Allocations have no length of time and are no
/// event category.
///
/// A timeline has them by their time, and those of one time in the order in which the source tells
/// them: what is given out and taken back at once is told apart by nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allocation {
    /// When, in ns relative to the session's start.
    pub t_ns: u64,
    /// Process id as the profiler saw it; 0 where it does not say.
    pub process: u32,
    /// The thread that asked; `None` where the source does not say.
    pub thread: Option<u64>,
    /// Joins it to the call of the CUDA API that asked; 0 where the source does not say.
    pub correlation: u32,
    /// Ordinal of the device whose memory it is; `None` for the host's.
    pub device: Option<u32>,
    /// Kind of the memory, where the CUDA driver gives it out; `None` of an allocator of a
    /// framework, which gives out parts of what it has from the driver.
    pub kind: Option<MemoryKind>,
    /// Where the memory begins; 0 where the source does not say.
    pub address: u64,
    /// Bytes: above 0 where they are given out, below 0 where they are taken back, 0 where memory
    /// is taken back and the source does not say how much.
    pub bytes: i64,
    /// Bytes that the allocator has given out by then on this device, where the source says it.
    pub allocated: Option<u64>,
    /// Bytes that the allocator has reserved by then on this device, where the source says it.
    pub reserved: Option<u64>,
}
