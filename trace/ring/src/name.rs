//! The table of names: each text once, found by its hash, and what ranges of the name there were.
//!
//! The number of a name is the number of its entry and one; 0 stands for none. A name's entry is
//! the first free one from its hash's place on.

/// Bytes of an entry.
pub const BYTES: usize = 128;
/// Most entries, so that a number fits a slot.
pub const MAX_ENTRIES: usize = 32_768;
/// Entries that are looked at for a hash.
pub const PROBES: usize = 8;

/// The hash, 64 bits; 0 for a free entry.
pub const HASH_AT: usize = 0;
/// Push/pop ranges that ended, 64 bits; those that segments still hold come on top.
pub const CALLS_AT: usize = 8;
/// Ticks that those took together, 64 bits.
pub const TICKS_AT: usize = 16;
/// Bytes of the text, and [`CUT`] where the text was longer; 0 until the text is there. 32 bits.
pub const LENGTH_AT: usize = 24;
/// Ticks at the end of the last range that is counted here, 64 bits.
pub const LAST_AT: usize = 32;
/// The text, UTF-8 as the program wrote it.
pub const TEXT_AT: usize = 40;
/// Most bytes of a text.
pub const TEXT_BYTES: usize = BYTES - TEXT_AT;
/// Says in a length that the text was longer.
pub const CUT: u32 = 1 << 31;
/// Bytes of a name that are looked at.
pub const MAX_NAME_BYTES: usize = 1024;
