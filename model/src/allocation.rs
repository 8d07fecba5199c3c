//! What an allocator of memory did.

/// Memory that an allocator gave out or took back. Allocations have no length of time and are no event category.
///
/// Their order in a timeline is that of these fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allocation {
    /// When, in ns relative to the session's start.
    pub t_ns: u64,
    /// Process id as the profiler saw it; 0 where it does not say.
    pub process: u32,
    /// Ordinal of the device whose memory it is; `None` for the host's.
    pub device: Option<u32>,
    /// Where the memory begins; 0 where the source does not say.
    pub address: u64,
    /// Bytes: above 0 where they are given out, below 0 where they are taken back.
    pub bytes: i64,
    /// Bytes that the allocator has given out by then on this device, where the source says it.
    pub allocated: Option<u64>,
    /// Bytes that the allocator has reserved by then on this device, where the source says it.
    pub reserved: Option<u64>,
}
