//! What the agent wants, as this process does it.

use flopwatch_tracer_file::header::WANTED_AT;
use flopwatch_tracer_file::wanted::{BYTES, MAX_WINDOW_NS, Mode, Wanted};

use crate::file::TraceFile;

/// What stands in the file; `None` where it is being written or makes no sense.
pub(crate) fn wanted(file: &TraceFile) -> Option<Wanted> {
    let mut bytes = [0; BYTES];
    let (words, _) = bytes.as_chunks_mut::<8>();
    for (place, to) in words.iter_mut().enumerate() {
        *to = file.get(WANTED_AT.wrapping_add(place.wrapping_mul(8))).to_le_bytes();
    }
    Wanted::of_bytes(&bytes)
}

/// A window on the monotonic clock, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

impl Window {
    /// The window that is wanted, of what both clocks say now; `None` for none, or one that is
    /// over. The agent tells real time, which hosts share; a step of that clock is no step of a
    /// window that has begun.
    pub(crate) fn of(wanted: &Wanted, monotonic_ns: u64, realtime_ns: u64) -> Option<Self> {
        if wanted.mode == Mode::Off {
            return None;
        }
        let from_now = |at_ns: u64| monotonic_ns.saturating_add(at_ns.saturating_sub(realtime_ns));
        let begin_ns = from_now(wanted.start_at_ns);
        let longest = begin_ns.saturating_add(MAX_WINDOW_NS);
        let end_ns = match wanted.deadline_ns {
            0 => longest,
            deadline => from_now(deadline).min(longest),
        };
        (begin_ns < end_ns).then_some(Self { begin_ns, end_ns })
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

    use super::*;

    fn window(start_at_ns: u64, deadline_ns: u64) -> Option<(u64, u64)> {
        let wanted = Wanted {
            generation: 1,
            mode: Mode::Window,
            kinds: Kinds::ALL,
            graphs: GraphLevel::Whole,
            start_at_ns,
            deadline_ns,
        };
        let off = Wanted {
            mode: Mode::Off,
            ..wanted
        };
        assert_eq!(Window::of(&off, 50, 7_000), None);
        Window::of(&wanted, 50, 7_000).map(|window| (window.begin_ns, window.end_ns))
    }

    #[test]
    fn times_of_the_real_clock_become_those_of_the_monotonic_one() {
        assert_eq!(window(7_010, 7_020), Some((60, 70)));
        assert_eq!(window(0, 7_020), Some((50, 70)));
        assert_eq!(window(0, 0), Some((50, 50 + MAX_WINDOW_NS)));
        assert_eq!(window(7_010, u64::MAX), Some((60, 60 + MAX_WINDOW_NS)));
    }

    #[test]
    fn a_window_that_is_over_is_none() {
        assert_eq!(window(0, 6_000), None);
        assert_eq!(window(7_020, 7_010), None);
        assert_eq!(window(u64::MAX, 7_010), None);
    }
}
