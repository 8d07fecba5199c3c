//! The buffers that CUPTI fills: a fixed pool, which is never given back to the system. CUPTI may
//! write to a buffer long after a window, and frees of ours would be its crash.
//!
//! CUPTI gives back a buffer that is full, and on request one whose records are all complete. A
//! program that keeps the GPU busy has none of the latter, so CUPTI gets as much of a buffer as is
//! full soon.
#![allow(unsafe_code, reason = "memory that another library writes to")]

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use flopwatch_injected::kernel;
use flopwatch_tracer_file::wanted::TICK_NS;

/// Buffers of the pool.
pub(crate) const BUFFERS: usize = 16;
/// Bytes of a buffer, the most that CUPTI gets.
pub(crate) const BYTES: usize = 1 << 20;
/// The least that CUPTI gets of one: what NVIDIA's own samples have.
const LEAST_BYTES: usize = 32 << 10;
/// Bytes of the buffer that is thrown away.
pub(crate) const DISCARDED_BYTES: usize = 64 << 10;

/// The pool, and behind it the buffer that is thrown away; null until the first window.
static BEGIN: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Whether CUPTI has each buffer.
static GIVEN: [AtomicU32; BUFFERS] = [const { AtomicU32::new(0) }; BUFFERS];
/// Bytes that CUPTI got of the last one.
static LAST_BYTES: AtomicUsize = AtomicUsize::new(LEAST_BYTES);
/// When that was, on the monotonic clock.
static LAST_NS: AtomicU64 = AtomicU64::new(0);

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

/// Makes the pool, unless it is there, for a window that begins; false where there is no memory.
pub(crate) fn prepare() -> bool {
    LAST_BYTES.store(LEAST_BYTES, Ordering::Relaxed);
    if !BEGIN.load(Ordering::Relaxed).is_null() {
        return true;
    }
    let bytes = BUFFERS.wrapping_mul(BYTES).wrapping_add(DISCARDED_BYTES);
    let made = kernel::anonymous(bytes);
    BEGIN.store(made.map_or(ptr::null_mut(), NonNull::as_ptr), Ordering::Release);
    made.is_some()
}

/// A free buffer, or the one that is thrown away: CUPTI ends the program where it gets none. `now`
/// is a time of the monotonic clock.
pub(crate) fn take(now: u64) -> Given {
    let free = GIVEN.iter().position(|given| {
        given
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    });
    match free {
        Some(at) => Given {
            begin: place(at),
            bytes: next_bytes(now),
        },
        None => discarded(),
    }
}

/// Bytes that CUPTI gets of the next buffer. Threads of CUPTI that come at once may each go by the
/// same last one.
fn next_bytes(now: u64) -> usize {
    let since = now.saturating_sub(LAST_NS.swap(now, Ordering::Relaxed));
    let bytes = bytes_behind(LAST_BYTES.load(Ordering::Relaxed), since);
    LAST_BYTES.store(bytes, Ordering::Relaxed);
    bytes
}

/// Bytes of a buffer behind one of so many, which was enough for so long: as many as are full
/// within a tick, and no fewer than a quarter of one takes.
const fn bytes_behind(last: usize, since_ns: u64) -> usize {
    if since_ns < TICK_NS / 4 && last < BYTES {
        last << 1
    } else if since_ns > TICK_NS && last > LEAST_BYTES {
        last >> 1
    } else {
        last
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
    fn a_buffer_is_as_long_as_is_full_within_a_tick() {
        let behind = |since_ns: &[u64]| {
            since_ns
                .iter()
                .fold(LEAST_BYTES, |last, since| bytes_behind(last, *since))
        };
        assert_eq!(behind(&[TICK_NS; 3]), LEAST_BYTES);
        assert_eq!(behind(&[0, 0]), LEAST_BYTES << 2);
        assert_eq!(behind(&[0; 20]), BYTES);
        assert_eq!(behind(&[0, 0, TICK_NS / 2]), LEAST_BYTES << 2);
        assert_eq!(behind(&[0, 0, TICK_NS + 1]), LEAST_BYTES << 1);
        assert_eq!(behind(&[TICK_NS + 1; 20]), LEAST_BYTES);
    }

    #[test]
    fn a_pool_that_is_empty_gives_the_buffer_that_is_thrown_away() {
        assert_eq!(known(ptr::null()), Known::Foreign);
        assert!(prepare() && prepare());
        let taken: Vec<Given> = (0..BUFFERS).map(|_| take(0)).collect();
        for (at, buffer) in taken.iter().enumerate() {
            assert_eq!(known(buffer.begin), Known::Pool(at));
            assert!((LEAST_BYTES..=BYTES).contains(&buffer.bytes));
        }
        assert_eq!(given(), 16);
        let more = take(0);
        assert_eq!((known(more.begin), more.bytes), (Known::Discarded, DISCARDED_BYTES));
        give_back(3);
        assert_eq!((known(take(0).begin), given()), (Known::Pool(3), 16));
        let inside = taken[0].begin.wrapping_add(8);
        assert_eq!(known(inside), Known::Foreign);
        (0..BUFFERS).for_each(give_back);
        // SAFETY: nobody writes to it.
        assert_eq!(unsafe { part(0, 8, 24) }.map(<[u8]>::len), Some(16));
        // SAFETY: as above.
        assert!(unsafe { part(0, 8, BYTES + 1) }.is_none() && unsafe { part(BUFFERS, 0, 1) }.is_none());
    }
}
