//! The tables of labels and of domains in the file.

use core::sync::atomic::Ordering;

use flopwatch_ring::header::{Count, DOMAINS, DOMAINS_AT, OTHER_DOMAIN};
use flopwatch_ring::label::{BYTES, ENTRIES, NAME_AT, PROBES, TABLE_AT, first_entry, key};

use crate::memory::Memory;
use crate::names;
use crate::text::Text;

/// Names a thread or a category; a later name replaces an earlier one.
pub(crate) fn name(memory: &Memory, kind: u8, domain: u8, number: u32, text: &Text<'_>) {
    let name = names::number(memory, text);
    let key = key(kind, domain, number);
    let first = usize::try_from(first_entry(key)).unwrap_or(0);
    for probe in 0..PROBES {
        let at = first.wrapping_add(probe).checked_rem(ENTRIES).unwrap_or(0);
        let at = TABLE_AT.wrapping_add(at.wrapping_mul(BYTES));
        let (Some(slot), Some(value)) = (memory.word(at), memory.half(at.wrapping_add(NAME_AT))) else {
            break;
        };
        let found = slot.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
        if found.is_ok() || found == Err(key) {
            value.store(u32::from(name), Ordering::Release);
            return;
        }
    }
    memory.count(Count::LabelsWithoutEntry);
}

/// The number of the domain of that name, which is entered where it is new.
pub(crate) fn domain(memory: &Memory, text: &Text<'_>) -> u8 {
    let name = u32::from(names::number(memory, text));
    // A domain whose name has no entry cannot be told from another such one.
    if name != 0 {
        for domain in 1..DOMAINS {
            let at = DOMAINS_AT.wrapping_add(domain.wrapping_mul(4));
            let Some(slot) = memory.half(at) else { break };
            let found = slot.compare_exchange(0, name, Ordering::Relaxed, Ordering::Relaxed);
            if found.is_ok() || found == Err(name) {
                return u8::try_from(domain).unwrap_or(OTHER_DOMAIN);
            }
        }
    }
    memory.count(Count::HandlesWithoutEntry);
    OTHER_DOMAIN
}
