//! The table of names in the file.

use core::sync::atomic::Ordering;

use flopwatch_ring::header::Count;
use flopwatch_ring::name::{CALLS_AT, CUT, HASH_AT, LAST_AT, LENGTH_AT, PROBES, TEXT_AT, TEXT_BYTES, TICKS_AT};

use crate::memory::Memory;
use crate::text::Text;

/// The number of a text, which is entered where it is new; 0 where the table has no place for it.
#[inline]
pub(crate) fn number(memory: &Memory, text: &Text<'_>) -> u16 {
    let mask = memory.layout().names.wrapping_sub(1);
    let first = usize::try_from(text.hash >> 32).unwrap_or(0);
    for probe in 0..PROBES {
        let place = first.wrapping_add(probe) & mask;
        let Some(at) = memory.layout().name(place) else { break };
        let Some(hash) = memory.word(at.wrapping_add(HASH_AT)) else {
            break;
        };
        let known = hash.load(Ordering::Relaxed);
        if known == text.hash || (known == 0 && enter(memory, at, text)) {
            return u16::try_from(place.wrapping_add(1)).unwrap_or(0);
        }
    }
    memory.count(Count::NamesWithoutEntry);
    0
}

/// Makes a free entry that of a text; false where another thread was faster with another text.
#[cold]
#[inline(never)]
fn enter(memory: &Memory, at: usize, text: &Text<'_>) -> bool {
    let Some(hash) = memory.word(at.wrapping_add(HASH_AT)) else {
        return false;
    };
    if let Err(other) = hash.compare_exchange(0, text.hash, Ordering::Relaxed, Ordering::Relaxed) {
        return other == text.hash;
    }
    let kept = text.bytes.get(..TEXT_BYTES).unwrap_or(text.bytes);
    for (place, part) in kept.chunks(8).enumerate() {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(part) {
            *to = *from;
        }
        if let Some(slot) = memory.word(at.wrapping_add(TEXT_AT).wrapping_add(place.wrapping_mul(8))) {
            slot.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }
    let cut = if text.cut || kept.len() < text.bytes.len() {
        CUT
    } else {
        0
    };
    let length = u32::try_from(kept.len()).unwrap_or(0);
    if let Some(slot) = memory.half(at.wrapping_add(LENGTH_AT)) {
        slot.store(length | cut, Ordering::Release);
    }
    true
}

/// Adds ranges of a name, of which the last ended at `last`.
pub(crate) fn add(memory: &Memory, number: u64, calls: u64, ticks: u64, last: u64) {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let Some(at) = place.and_then(|place| memory.layout().name(place)) else {
        return;
    };
    for (place, more) in [(CALLS_AT, calls), (TICKS_AT, ticks)] {
        if let Some(sum) = memory.word(at.wrapping_add(place)) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }
    if let Some(known) = memory.word(at.wrapping_add(LAST_AT)) {
        known.fetch_max(last, Ordering::Relaxed);
    }
}
