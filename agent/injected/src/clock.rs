//! The kernel's clocks.

use crate::{kernel, loader};

/// The number of `CLOCK_REALTIME`.
pub const REALTIME: u32 = 0;
/// The number of `CLOCK_MONOTONIC`.
pub const MONOTONIC: u32 = 1;

const PER_SECOND: u64 = 1_000_000_000;

/// What a clock says, in ns.
#[cold]
pub fn nanoseconds(clock: u32) -> u64 {
    let mut time = [0_i64; 2];
    let asked = loader::clock_gettime().map(|get| get(clock.cast_signed(), &raw mut time));
    if asked != Some(0) {
        kernel::clock(clock, &mut time);
    }
    let [seconds, rest] = time.map(i64::cast_unsigned);
    seconds.wrapping_mul(PER_SECOND).wrapping_add(rest)
}

/// Waits until `is_so`, but no longer than a second: a child of `fork` waits for a thread that it
/// does not have.
pub fn wait_until(is_so: impl Fn() -> bool) {
    let begin = nanoseconds(MONOTONIC);
    while !is_so() && nanoseconds(MONOTONIC).wrapping_sub(begin) < PER_SECOND {
        kernel::step_aside();
    }
}
