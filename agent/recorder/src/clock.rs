//! Time: the processor's counter where it runs evenly, otherwise the kernel's clock.
#![allow(unsafe_code, reason = "the counter is read by an instruction")]

use core::arch::x86_64::{__cpuid, _rdtsc};

use flopwatch_injected::clock::{MONOTONIC, REALTIME, nanoseconds};

/// The function of the processor's identification that says whether its counter runs evenly, and
/// that bit.
const EVEN: (u32, u32) = (0x8000_0007, 1 << 8);
/// Ticks between which the kernel's clock is read; more often than this is tried once more.
const CLOSE: u64 = 20_000;
const MAX_TRIES: usize = 3;

/// One moment on three clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) ticks: u64,
    pub(crate) monotonic_ns: u64,
    pub(crate) realtime_ns: u64,
}

/// Whether the processor's counter runs evenly, at one pace on all cores.
pub(crate) fn is_even() -> bool {
    let most = __cpuid(0x8000_0000).eax;
    most >= EVEN.0 && __cpuid(EVEN.0).edx & EVEN.1 != 0
}

/// Now in ticks.
#[inline]
pub(crate) fn ticks(are_tsc: bool) -> u64 {
    if are_tsc {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _rdtsc() }
    } else {
        nanoseconds(MONOTONIC)
    }
}

/// Now on all clocks, read close to each other.
pub(crate) fn moment(are_tsc: bool) -> Moment {
    let read = || {
        let ticks_before = ticks(are_tsc);
        let monotonic_ns = nanoseconds(MONOTONIC);
        let took = ticks(are_tsc).wrapping_sub(ticks_before);
        (ticks_before.wrapping_add(took >> 1), monotonic_ns, took)
    };
    let mut best = read();
    for _ in 1..MAX_TRIES {
        if best.2 < CLOSE {
            break;
        }
        let again = read();
        if again.2 < best.2 {
            best = again;
        }
    }
    let (ticks, monotonic_ns, _) = best;
    let ahead = nanoseconds(REALTIME).wrapping_sub(nanoseconds(MONOTONIC));
    Moment {
        ticks,
        monotonic_ns,
        realtime_ns: monotonic_ns.wrapping_add(ahead),
    }
}
