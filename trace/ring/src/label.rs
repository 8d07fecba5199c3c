//! The table of labels: names of threads and of categories, which outlive the events around them.
//!
//! An entry is a key of 64 bits and the number of a name, 32 bits. A key's entry is the first free
//! one from its place on.

use crate::HEADER_BYTES;

/// Where the table begins.
pub const TABLE_AT: usize = HEADER_BYTES;
/// Entries.
pub const ENTRIES: usize = 1024;
/// Bytes of an entry.
pub const BYTES: usize = 16;
/// Bytes of the table.
pub const TABLE_BYTES: usize = ENTRIES * BYTES;
/// Where the number of the name is within an entry.
pub const NAME_AT: usize = 8;
/// Entries that are looked at for a key.
pub const PROBES: usize = 16;

/// Names a thread of the operating system.
pub const OF_THREAD: u8 = 1;
/// Names a category of a domain.
pub const OF_CATEGORY: u8 = 2;

/// The key of a thread or of a category of a domain.
pub const fn key(kind: u8, domain: u8, number: u32) -> u64 {
    u64::from_le_bytes([
        kind,
        domain,
        0,
        0,
        number.to_le_bytes()[0],
        number.to_le_bytes()[1],
        number.to_le_bytes()[2],
        number.to_le_bytes()[3],
    ])
}

/// What a key names: its kind, domain and number.
pub const fn of_key(key: u64) -> (u8, u8, u32) {
    let [kind, domain, _, _, a, b, c, d] = key.to_le_bytes();
    (kind, domain, u32::from_le_bytes([a, b, c, d]))
}

/// Where the search for a key begins.
pub const fn first_entry(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}
