//! Numbers in bytes, none of which is taken to be there.

/// Two halves of a word.
pub(crate) fn joined(lower: u32, upper: u32) -> u64 {
    (u64::from(upper) << 32) | u64::from(lower)
}

/// The halves of a word: lower, upper.
pub(crate) fn halves(word: u64) -> (u32, u32) {
    let half = |part: u64| u32::try_from(part & 0xffff_ffff).unwrap_or(0);
    (half(word), half(word >> 32))
}

/// The 32 bits at a place; `None` where the bytes end before.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*four))
}

/// The 64 bits at a place; `None` where the bytes end before.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*eight))
}
