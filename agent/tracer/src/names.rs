//! Names in the file. A name's memory belongs to CUPTI or to the program, which may have given it
//! back when a module was unloaded: the kernel copies it, and says where there is nothing.

use core::sync::atomic::Ordering;

use flopwatch_injected::kernel;
use flopwatch_tracer_file::header::HEAP_USED_AT;
use flopwatch_tracer_file::name::{CUT, HASH_AT, LENGTH_AT, MAX_NAME_BYTES, PLACE_AT, PROBES, hash};
use flopwatch_tracer_file::process::Count;

use crate::file::TraceFile;
use crate::tracer::Tracer;

/// Addresses whose numbers are kept. An address is looked at anew for every buffer: another name
/// may stand there since.
const KEPT: usize = 512;
/// How far the hash is shifted to a place of so many.
const SHIFT: u32 = u64::BITS - KEPT.trailing_zeros();
/// Places that are looked at for an address. The kernel takes a microsecond to copy a name: two
/// addresses that took each other's place would cost that much at each of their records.
const KEPT_PROBES: usize = 4;
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The numbers of names in one buffer.
pub(crate) struct Names {
    tracer: &'static Tracer,
    kept: Kept,
}

impl Names {
    pub(crate) const fn new(tracer: &'static Tracer) -> Self {
        let kept = Kept([(0, 0); KEPT]);
        Self { tracer, kept }
    }

    /// The number of the name at an address; 0 for none.
    #[inline]
    pub(crate) fn number(&mut self, address: u64) -> u32 {
        if address == 0 {
            return 0;
        }
        match self.kept.find(address) {
            Ok(known) => known,
            Err(place) => {
                let found = number(self.tracer, address);
                self.kept.put(place, address, found);
                found
            }
        }
    }
}

/// Addresses with the numbers of what stands there; address 0 where there is none.
struct Kept([(u64, u32); KEPT]);

impl Kept {
    /// The number of an address, or where it may be kept.
    #[inline]
    fn find(&self, address: u64) -> Result<u32, usize> {
        let first = usize::try_from(address.wrapping_mul(ODD) >> SHIFT).unwrap_or(0);
        for probe in 0..KEPT_PROBES {
            let place = first.wrapping_add(probe) & KEPT.wrapping_sub(1);
            match self.0.get(place) {
                Some((known, number)) if *known == address => return Ok(*number),
                Some((0, _)) => return Err(place),
                _ => {}
            }
        }
        Err(first)
    }

    fn put(&mut self, place: usize, address: u64, number: u32) {
        if let Some(kept) = self.0.get_mut(place) {
            *kept = (address, number);
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
    fn the_numbers_of_a_hundred_names_stay_known_however_far_they_lie_apart() {
        for distance in [8_u64, 100, 4096, 1 << 21] {
            let mut kept = Kept([(0, 0); KEPT]);
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
