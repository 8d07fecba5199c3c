//! Places of the header, in bytes from the file's begin. What threads write while they record
//! stands alone in its cache line.

/// [`MAGIC`](crate::MAGIC).
pub const MAGIC_AT: usize = 0;
/// [`VERSION`](crate::VERSION), 32 bits.
pub const VERSION_AT: usize = 8;
/// Whether ticks are those of the processor's time-stamp counter (1) or nanoseconds of
/// `CLOCK_MONOTONIC` (0), 32 bits.
pub const TICKS_ARE_TSC_AT: usize = 12;
/// Bytes of the file, 64 bits; all other places follow from it.
pub const BYTES_AT: usize = 16;
/// Ticks when the file was made, 64 bits.
pub const TICKS_AT: usize = 24;
/// `CLOCK_MONOTONIC` at those ticks, in ns, 64 bits.
pub const MONOTONIC_AT: usize = 32;
/// `CLOCK_REALTIME` at those ticks, in ns, 64 bits.
pub const REALTIME_AT: usize = 40;
/// Segments that threads have looked at so far, 64 bits: the next one looks at this number modulo
/// the segments.
pub const CURSOR_AT: usize = 64;
/// Serial number of the thread that began last, 64 bits.
pub const SERIAL_AT: usize = 128;
/// The first of the [`Count`]s, 64 bits each.
pub const COUNTS_AT: usize = 192;
/// The table of domains: the number of a name for each, 32 bits. Entry 0 is the default domain.
pub const DOMAINS_AT: usize = 1024;
/// Entries of the table of domains.
pub const DOMAINS: usize = 255;
/// Stands in a slot for a domain that found no entry.
pub const OTHER_DOMAIN: u8 = 255;

/// What the writers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Processes that began to record, children of `fork` included.
    Processes,
    /// Copies of NVTX whose calls are recorded.
    Copies,
    /// Copies of NVTX beyond those that one process can record.
    CopiesLeftOut,
    /// Events that found no segment.
    EventsWithoutSegment,
    /// Names that found no entry, each time that they were used; their text stands beside the
    /// event.
    NamesWithoutEntry,
    /// Labels of threads and categories that found no entry.
    LabelsWithoutEntry,
    /// Domains and registered strings that found no entry.
    HandlesWithoutEntry,
    /// Profilers' libraries that were named and did not load.
    ProfilersNotLoaded,
    /// Events of segments that were taken anew.
    EventsOverwritten,
}

impl Count {
    /// Every count, in the order of their places.
    pub const ALL: [Self; 9] = [
        Self::Processes,
        Self::Copies,
        Self::CopiesLeftOut,
        Self::EventsWithoutSegment,
        Self::NamesWithoutEntry,
        Self::LabelsWithoutEntry,
        Self::HandlesWithoutEntry,
        Self::ProfilersNotLoaded,
        Self::EventsOverwritten,
    ];

    /// Offset of the count in the header, in bytes.
    pub const fn at(self) -> usize {
        let slot = match self {
            Self::Processes => 0,
            Self::Copies => 1,
            Self::CopiesLeftOut => 2,
            Self::EventsWithoutSegment => 3,
            Self::NamesWithoutEntry => 4,
            Self::LabelsWithoutEntry => 5,
            Self::HandlesWithoutEntry => 6,
            Self::ProfilersNotLoaded => 7,
            Self::EventsOverwritten => 8,
        };
        COUNTS_AT + slot * 8
    }
}
