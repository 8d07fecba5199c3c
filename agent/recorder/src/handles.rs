//! What programs hold: handles of domains and of registered strings, each with its number in the
//! file.
//!
//! A handle is the profiler's where there is one. Otherwise it is ours, and says the number itself.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Entries that are looked at for a handle.
const MAX_PROBES: usize = 32;
/// What our own handles have in common: no address of memory.
const OWN: usize = 0x46_4c_50_57 << 32;
const NUMBERS: usize = 0xffff_ffff;

/// A table of handles of other libraries.
pub(crate) struct Handles<const ENTRIES: usize>([Entry; ENTRIES]);

struct Entry {
    handle: AtomicPtr<c_void>,
    number: AtomicU32,
}

/// Handles of domains.
pub(crate) static DOMAINS: Handles<1024> = Handles::new();
/// Handles of registered strings.
pub(crate) static STRINGS: Handles<8192> = Handles::new();

/// A handle of our own with a number.
pub(crate) fn own(number: u32) -> *mut c_void {
    ptr::without_provenance_mut(OWN | usize::try_from(number).unwrap_or(0))
}

impl<const ENTRIES: usize> Handles<ENTRIES> {
    const fn new() -> Self {
        Self(
            [const {
                Entry {
                    handle: AtomicPtr::new(ptr::null_mut()),
                    number: AtomicU32::new(0),
                }
            }; ENTRIES],
        )
    }

    fn entries(&self, handle: *mut c_void) -> impl Iterator<Item = &Entry> {
        const { assert!(ENTRIES.is_power_of_two()) }
        let first = handle.addr().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mask = ENTRIES.wrapping_sub(1);
        (0..MAX_PROBES).filter_map(move |probe| self.0.get(first.wrapping_add(probe) & mask))
    }

    /// The number of a handle; `None` for one that is not known.
    #[inline]
    pub(crate) fn number(&self, handle: *mut c_void) -> Option<u32> {
        if handle.addr() & !NUMBERS == OWN {
            return u32::try_from(handle.addr() & NUMBERS).ok();
        }
        let entry = self
            .entries(handle)
            .find(|entry| entry.handle.load(Ordering::Relaxed) == handle)?;
        Some(entry.number.load(Ordering::Acquire))
    }

    /// Notes the number of a handle; false where there is no place for it.
    pub(crate) fn note(&self, handle: *mut c_void, number: u32) -> bool {
        for entry in self.entries(handle) {
            let found = entry
                .handle
                .compare_exchange(ptr::null_mut(), handle, Ordering::Relaxed, Ordering::Relaxed);
            if found.is_ok() || found == Err(handle) {
                entry.number.store(number, Ordering::Release);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_of_a_profiler_has_the_number_that_was_noted_last() {
        static TABLE: Handles<64> = Handles::new();
        let handle = ptr::without_provenance_mut(0x7f00_1234_5678);
        assert_eq!(TABLE.number(handle), None);
        assert!(TABLE.note(handle, 7) && TABLE.note(handle, 8));
        assert_eq!(TABLE.number(handle), Some(8));
    }

    #[test]
    fn a_table_that_is_full_says_so_and_keeps_what_it_has() {
        static TABLE: Handles<32> = Handles::new();
        let handle = |at: usize| ptr::without_provenance_mut(at * 64);
        assert!((1..=32).all(|at| TABLE.note(handle(at), u32::try_from(at).unwrap())));
        assert!(!TABLE.note(handle(33), 33));
        assert!((1..=32).all(|at| TABLE.number(handle(at)) == Some(u32::try_from(at).unwrap())));
    }

    #[test]
    fn a_handle_of_our_own_says_its_number() {
        assert_eq!(STRINGS.number(own(4711)), Some(4711));
    }
}
