//! Names in the file. A name's memory belongs to CUPTI or to the program, which may have given it
//! back when a module was unloaded: the kernel copies it, and says where there is nothing.
//!
//! That takes a microsecond or two, as much as forty records, so the numbers of addresses are kept
//! for a tick. Another name may stand at an address since: a record may have the name that stood
//! there within the tick, as one has the name that stands there when its buffer comes.

use core::sync::atomic::{AtomicU64, Ordering};

use flopwatch_injected::clock::{MONOTONIC, nanoseconds};
use flopwatch_injected::kernel;
use flopwatch_tracer_file::header::HEAP_USED_AT;
use flopwatch_tracer_file::name::{CUT, HASH_AT, LENGTH_AT, MAX_ENTRIES, MAX_NAME_BYTES, PLACE_AT, PROBES, hash};
use flopwatch_tracer_file::process::Count;
use flopwatch_tracer_file::wanted::TICK_NS;

use crate::file::TraceFile;
use crate::tracer::Tracer;

/// Addresses whose numbers are kept.
const ADDRESSES: usize = 512;
/// How far the hash is shifted to a place of so many.
const SHIFT: u32 = u64::BITS - ADDRESSES.trailing_zeros();
/// Places that are looked at for an address: two addresses that took each other's place would be
/// looked at for each of their records.
const KEPT_PROBES: usize = 4;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bits of a number that is kept, below its address.
const NUMBER_BITS: u32 = 17;
/// Bits of an address that is kept: those that programs have, but for the ones that ask the kernel
/// for more.
const ADDRESS_BITS: u32 = u64::BITS - NUMBER_BITS;
/// The largest number that is kept.
const MAX_NUMBER: u64 = (1 << NUMBER_BITS) - 1;

const _: () = assert!(MAX_ENTRIES < 1 << NUMBER_BITS);

static KEPT: Kept = Kept::new();

/// Forgets what stands at addresses, for a window that begins.
pub(crate) fn forget() {
    KEPT.forget();
}

/// The numbers of names.
pub(crate) struct Names {
    tracer: &'static Tracer,
}

impl Names {
    /// Those of a buffer that comes now.
    pub(crate) fn new(tracer: &'static Tracer) -> Self {
        KEPT.forget_old(nanoseconds(MONOTONIC));
        Self { tracer }
    }

    /// The number of the name at an address; 0 for none.
    #[inline]
    pub(crate) fn number(&self, address: u64) -> u32 {
        if address == 0 {
            return 0;
        }
        match KEPT.find(address) {
            Ok(known) => known,
            Err(place) => {
                let found = number(self.tracer, address);
                KEPT.put(place, address, found);
                found
            }
        }
    }
}

/// Addresses with the numbers of what stands there. All threads share them: an entry is one word,
/// the address above the number, and 0 where there is none.
struct Kept {
    entries: [AtomicU64; ADDRESSES],
    /// When all were forgotten for their age, on the monotonic clock.
    since_ns: AtomicU64,
}

impl Kept {
    const fn new() -> Self {
        Self {
            entries: [const { AtomicU64::new(0) }; ADDRESSES],
            since_ns: AtomicU64::new(0),
        }
    }

    /// The number of an address, or where it may be kept.
    #[inline]
    fn find(&self, address: u64) -> Result<u32, usize> {
        let first = usize::try_from(address.wrapping_mul(ODD) >> SHIFT).unwrap_or(0);
        for probe in 0..KEPT_PROBES {
            let place = first.wrapping_add(probe) & ADDRESSES.wrapping_sub(1);
            let entry = self.entries.get(place).map_or(0, |entry| entry.load(Ordering::Relaxed));
            if entry == 0 {
                return Err(place);
            }
            if entry >> NUMBER_BITS == address {
                return Ok(u32::try_from(entry & MAX_NUMBER).unwrap_or(0));
            }
        }
        Err(first)
    }

    /// Keeps a number; an address or a number that an entry has no room for is looked at each time.
    fn put(&self, place: usize, address: u64, number: u32) {
        let number = u64::from(number);
        let fits = address >> ADDRESS_BITS == 0 && number <= MAX_NUMBER;
        if let Some(entry) = self.entries.get(place).filter(|_| fits) {
            entry.store((address << NUMBER_BITS) | number, Ordering::Relaxed);
        }
    }

    /// Forgets all that is older than a tick. What another thread keeps meanwhile is as old as a
    /// tick at most when it is forgotten.
    fn forget_old(&self, now: u64) {
        let since = self.since_ns.load(Ordering::Relaxed);
        let is_old = now.saturating_sub(since) >= TICK_NS;
        if is_old
            && self
                .since_ns
                .compare_exchange(since, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.forget();
        }
    }

    fn forget(&self) {
        for entry in &self.entries {
            entry.store(0, Ordering::Relaxed);
        }
    }
}

/// Reads the name at an address, and gives its number; 0 for none.
#[cold]
#[inline(never)]
fn number(tracer: &Tracer, address: u64) -> u32 {
    let mut bytes = [0; MAX_NAME_BYTES];
    let copied = usize::try_from(address)
        .ok()
        .and_then(|address| kernel::copy_from(address, &mut bytes));
    let there = copied.and_then(|count| bytes.get(..count)).unwrap_or_default();
    let end = there.iter().position(|byte| *byte == 0);
    let is_whole = end.is_some();
    let text = there.get(..end.unwrap_or(there.len())).unwrap_or_default();
    if !is_whole && text.len() < MAX_NAME_BYTES {
        tracer.slot.count(Count::NamesUnread, 1);
        return 0;
    }
    if text.is_empty() {
        return 0;
    }
    entered(&tracer.file, text, !is_whole).unwrap_or_else(|| {
        tracer.slot.count(Count::NamesUnplaced, 1);
        0
    })
}

/// The number of a text, which is entered where it is new; `None` where there is no place for it.
fn entered(file: &TraceFile, text: &[u8], is_cut: bool) -> Option<u32> {
    let mask = file.layout.names.wrapping_sub(1);
    let hash = hash(text);
    let first = usize::try_from(hash >> 32).unwrap_or(0);
    for probe in 0..PROBES {
        let place = first.wrapping_add(probe) & mask;
        let at = file.layout.name(place)?;
        let entry = file.word(at.wrapping_add(HASH_AT))?;
        let number = u32::try_from(place.wrapping_add(1)).ok();
        let known = entry.load(Ordering::Relaxed);
        if known == hash {
            return number;
        }
        if known != 0 {
            continue;
        }
        match entry.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return write(file, at, text, is_cut).and(number),
            Err(other) if other == hash => return number,
            Err(_) => {}
        }
    }
    None
}

/// Puts a text into the heap and its place into its entry; `None` where the heap is full.
fn write(file: &TraceFile, entry: usize, text: &[u8], is_cut: bool) -> Option<()> {
    let room = text.len().checked_next_multiple_of(8)?;
    let used = usize::try_from(file.add(HEAP_USED_AT, u64::try_from(room).ok()?)).ok()?;
    if !used.is_multiple_of(8) || used.checked_add(room)? > file.layout.heap_bytes {
        return None;
    }
    file.put(file.layout.heap_at.checked_add(used)?, text);
    file.set_half(entry.wrapping_add(PLACE_AT), u32::try_from(used).ok()?);
    let length = u32::try_from(text.len()).ok()? | if is_cut { CUT } else { 0 };
    file.half(entry.wrapping_add(LENGTH_AT))?
        .store(length, Ordering::Release);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_known_for_a_tick_and_no_longer() {
        let kept = Kept::new();
        let known = |now| {
            kept.forget_old(now);
            kept.find(0x7fff_ffff_ffff)
        };
        kept.forget_old(1_000_000_000);
        let place = known(1_000_000_001).unwrap_err();
        kept.put(place, 0x7fff_ffff_ffff, 65_536);
        assert_eq!(known(1_000_000_000 + TICK_NS - 1), Ok(65_536));
        assert_eq!(known(1_000_000_000 + TICK_NS), Err(place));
        kept.put(place, 0x7fff_ffff_ffff, 0);
        assert_eq!(known(1_000_000_000 + TICK_NS), Ok(0));
        kept.forget();
        assert_eq!(known(1_000_000_000 + TICK_NS), Err(place));
    }

    #[test]
    fn an_address_that_an_entry_has_no_room_for_is_not_kept() {
        let kept = Kept::new();
        for (address, number) in [(1 << 47, 1), (u64::MAX, 1), (8, 1 << 17)] {
            let place = kept.find(address).unwrap_err();
            kept.put(place, address, number);
            assert_eq!(kept.find(address), Err(place));
        }
    }

    #[test]
    fn the_numbers_of_a_hundred_names_stay_known_however_far_they_lie_apart() {
        for distance in [8_u64, 100, 4096, 1 << 21] {
            let kept = Kept::new();
            let address = |at: u32| 0x7f12_3456_7000 + u64::from(at) * distance;
            for at in 0..100 {
                let place = kept.find(address(at)).unwrap_err();
                kept.put(place, address(at), at + 1);
            }
            let known = (0..100).filter(|at| kept.find(address(*at)) == Ok(at + 1));
            assert!(known.count() >= 99, "{distance} bytes apart");
        }
    }
}
