//! The buffers that CUPTI fills: a fixed pool, which is never given back to the system. CUPTI may
//! write to a buffer long after a window, and frees of ours would be its crash.
#![allow(unsafe_code, reason = "memory that another library writes to")]

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use flopwatch_injected::kernel;

/// Buffers of the pool.
pub(crate) const BUFFERS: usize = 16;
/// Bytes of a buffer.
pub(crate) const BYTES: usize = 1 << 20;
/// Bytes of the buffer that is thrown away.
pub(crate) const DISCARDED_BYTES: usize = 64 << 10;

/// The pool, and behind it the buffer that is thrown away; null until the first window.
static BEGIN: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Whether CUPTI has each buffer.
static GIVEN: [AtomicU32; BUFFERS] = [const { AtomicU32::new(0) }; BUFFERS];

/// A buffer that CUPTI gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    pub(crate) begin: *mut u8,
    pub(crate) bytes: usize,
}

/// What an address that CUPTI gives us is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// The buffer of the pool with that index.
    Pool(usize),
    /// The one that is thrown away.
    Discarded,
    /// None of ours: another library had registered before, or has since.
    Foreign,
}

/// Makes the pool, unless it is there; false where there is no memory.
pub(crate) fn prepare() -> bool {
    if !BEGIN.load(Ordering::Relaxed).is_null() {
        return true;
    }
    let bytes = BUFFERS.wrapping_mul(BYTES).wrapping_add(DISCARDED_BYTES);
    let made = kernel::anonymous(bytes);
    BEGIN.store(made.map_or(ptr::null_mut(), NonNull::as_ptr), Ordering::Release);
    made.is_some()
}

/// A free buffer, or the one that is thrown away: CUPTI ends the program where it gets none.
pub(crate) fn take() -> Given {
    let free = GIVEN.iter().position(|given| {
        given
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    });
    match free {
        Some(at) => Given {
            begin: place(at),
            bytes: BYTES,
        },
        None => discarded(),
    }
}

/// The buffer that is thrown away. Several threads of CUPTI may have it at once.
pub(crate) fn discarded() -> Given {
    Given {
        begin: place(BUFFERS),
        bytes: DISCARDED_BYTES,
    }
}

/// What an address is.
pub(crate) fn known(address: *const u8) -> Known {
    let begin = BEGIN.load(Ordering::Acquire);
    let apart = address.addr().wrapping_sub(begin.addr());
    match apart.checked_div(BYTES) {
        _ if begin.is_null() || apart & BYTES.wrapping_sub(1) != 0 => Known::Foreign,
        Some(BUFFERS) => Known::Discarded,
        Some(at) if at < BUFFERS => Known::Pool(at),
        _ => Known::Foreign,
    }
}

/// Has a buffer back.
pub(crate) fn give_back(at: usize) {
    if let Some(given) = GIVEN.get(at) {
        given.store(0, Ordering::Release);
    }
}

/// Buffers that CUPTI has.
pub(crate) fn given() -> u64 {
    let given = GIVEN.iter().map(|given| u64::from(given.load(Ordering::Acquire)));
    given.fold(0, u64::wrapping_add)
}

/// The bytes from `from` to `to` of a buffer of the pool; `None` where it has not as many.
///
/// # Safety
///
/// CUPTI has completed the buffer, and it is not given back while the bytes are looked at.
pub(crate) unsafe fn part<'a>(at: usize, from: usize, to: usize) -> Option<&'a [u8]> {
    let bytes = to.checked_sub(from).filter(|_| at < BUFFERS && to <= BYTES)?;
    let begin = BEGIN.load(Ordering::Acquire);
    // SAFETY: the part lies within the buffer, which lies within the pool; nobody writes to a
    // completed one, as the caller says.
    (!begin.is_null()).then(|| unsafe { core::slice::from_raw_parts(place(at).add(from), bytes) })
}

/// The begin of a buffer, which the pool has been made for.
fn place(at: usize) -> *mut u8 {
    BEGIN
        .load(Ordering::Acquire)
        .wrapping_add(at.min(BUFFERS).wrapping_mul(BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_is_empty_gives_the_buffer_that_is_thrown_away() {
        assert_eq!(known(ptr::null()), Known::Foreign);
        assert!(prepare() && prepare());
        let taken: Vec<Given> = (0..BUFFERS).map(|_| take()).collect();
        for (at, buffer) in taken.iter().enumerate() {
            assert_eq!((known(buffer.begin), buffer.bytes), (Known::Pool(at), BYTES));
        }
        assert_eq!(given(), 16);
        let more = take();
        assert_eq!((known(more.begin), more.bytes), (Known::Discarded, DISCARDED_BYTES));
        give_back(3);
        assert_eq!((known(take().begin), given()), (Known::Pool(3), 16));
        let inside = taken[0].begin.wrapping_add(8);
        assert_eq!(known(inside), Known::Foreign);
        (0..BUFFERS).for_each(give_back);
        // SAFETY: nobody writes to it.
        assert_eq!(unsafe { part(0, 8, 24) }.map(<[u8]>::len), Some(16));
        // SAFETY: as above.
        assert!(unsafe { part(0, 8, BYTES + 1) }.is_none() && unsafe { part(BUFFERS, 0, 1) }.is_none());
    }
}
