//! What is ordered of programs whose kernels are recorded all the time, and when nothing is.

use std::time::Duration;

use flopwatch_trace::tracer::why_not;
use flopwatch_tracer::proven::Cuda;
use flopwatch_tracer_file::process::{Phase, Process};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds, Mode, Wanted};

use super::RENEWAL_INTERVAL;
use super::pace::WHOLE_PERCENT;

/// How long an order stands that nobody renews.
const STANDING_DURATION: Duration = Duration::from_secs(3);
/// Orders that a program may be behind: it looks for one between two calls of CUPTI, each of which
/// takes two seconds at most.
const MAX_ORDERS_BEHIND: u32 = 3;
/// What is recorded: kernels, graphs as wholes, and what tells where they ran.
const KINDS: Kinds = Kinds::KERNELS.with(Kinds::GRAPHS).with(Kinds::PLACES);

/// The order that has kernels recorded from now on: all the time, or for so many percent of the
/// second until the next order.
pub(super) fn continuous(now_utc_ns: u64, percent: u32) -> Wanted {
    let standing = if percent >= WHOLE_PERCENT {
        STANDING_DURATION
    } else {
        RENEWAL_INTERVAL.saturating_mul(percent) / WHOLE_PERCENT
    };
    let standing = u64::try_from(standing.as_nanos()).unwrap_or(u64::MAX);
    Wanted {
        generation: 0,
        mode: Mode::Continuous,
        kinds: KINDS,
        graphs: GraphLevel::Whole,
        start_at_ns: 0,
        deadline_ns: now_utc_ns.saturating_add(standing),
    }
}

/// Whether what is wanted is a window that is not over: a capture has ordered it, of this agent or
/// of an earlier one.
pub(super) fn is_anothers(wanted: Option<Wanted>, now_utc_ns: u64) -> bool {
    wanted.is_some_and(|wanted| wanted.mode == Mode::Window && now_utc_ns < wanted.deadline_ns)
}

/// Why programs that followed an order are not to be recorded: one has a driver that is not open,
/// or each refuses.
pub(super) fn refusal(processes: &[Process], ordered: u32, is_open: impl Fn(u32) -> bool) -> Option<String> {
    let followed = || processes.iter().filter(move |process| process.generation == ordered);
    let drivers = followed().map(|process| process.driver_version);
    let mut closed = drivers.filter(|driver| *driver != 0 && !is_open(*driver));
    if let Some(driver) = closed.next() {
        return Some(format!(
            "no GPU has shown yet that the CUDA tracer works with drivers of CUDA {}",
            Cuda::of_driver(driver)
        ));
    }
    let is_refused = |process: &Process| matches!(process.phase, Phase::Refused | Phase::Stuck);
    let all_refuse = followed().all(is_refused);
    followed().next().filter(|_| all_refuse).and_then(why_not)
}

/// Whether programs that followed an order, the one behind it or one shortly before still record. A
/// process that followed only earlier ones has ended without a word.
pub(super) fn are_recording(processes: &[Process], ordered: u32) -> bool {
    let next = ordered.wrapping_add(1).max(1);
    let is_recent = |generation: u32| next.wrapping_sub(generation) <= MAX_ORDERS_BEHIND.saturating_add(1);
    let is_active = |phase: Phase| {
        matches!(
            phase,
            Phase::Waiting | Phase::Opening | Phase::Recording | Phase::Ending
        )
    };
    let mut followed = processes.iter().filter(|process| is_recent(process.generation));
    followed.any(|process| is_active(process.phase))
}

#[cfg(test)]
mod tests {
    use flopwatch_tracer_file::process::{BYTES, CLAIM_AT, Reason, USED, claim};

    use super::*;

    fn process(generation: u32, phase: Phase) -> Process {
        let mut slot = [0; BYTES];
        slot[CLAIM_AT..][..8].copy_from_slice(&claim(1, USED).to_le_bytes());
        let mut process = Process::of_bytes(&slot).unwrap();
        (process.generation, process.phase, process.driver_version) = (generation, phase, 13_000);
        process
    }

    #[test]
    fn an_order_stands_for_three_seconds_and_goes_on_with_the_one_before() {
        let (first, next) = (continuous(1_000_000_000, 100), continuous(2_000_000_000, 100));
        assert_eq!(first.deadline_ns, 4_000_000_000);
        assert!(next.goes_on_from(&first));
        assert!(!next.kinds.has(Kinds::RUNTIME) && next.graphs == GraphLevel::Whole);
        let part = continuous(1_000_000_000, 25);
        assert_eq!(
            part.deadline_ns, 1_250_000_000,
            "a quarter of the second until the next"
        );
    }

    #[test]
    fn a_window_is_left_alone_until_its_deadline_and_nothing_else_is() {
        let window = Wanted {
            mode: Mode::Window,
            deadline_ns: 100,
            ..continuous(0, 100)
        };
        assert!(is_anothers(Some(window), 99) && !is_anothers(Some(window), 100));
        assert!(!is_anothers(Some(continuous(0, 100)), 1) && !is_anothers(None, 1));
    }

    #[test]
    fn programs_are_not_recorded_that_all_refuse_or_have_a_driver_that_is_not_open() {
        let recording = process(7, Phase::Recording);
        let mut refused = process(7, Phase::Refused);
        refused.reason = Reason::NoCupti;
        let earlier = process(6, Phase::Refused);
        let of = |processes: &[Process], open: u32| refusal(processes, 7, |driver| driver == open);
        assert_eq!(of(&[recording, refused, earlier], 13_000), None);
        assert_eq!(of(&[], 13_000), None);
        assert_eq!(of(&[earlier], 13_000), None, "of another order");
        assert!(of(&[refused, earlier], 13_000).is_some_and(|why| why.contains("libcupti")));
        assert!(of(&[recording], 12_080).is_some_and(|why| why.contains("CUDA 13.0")));
        let mut untold = recording;
        untold.driver_version = 0;
        assert_eq!(of(&[untold], 12_080), None);
    }

    #[test]
    fn programs_are_waited_for_that_followed_one_of_the_last_orders_and_record() {
        assert!(are_recording(&[process(7, Phase::Recording)], 7));
        assert!(are_recording(&[process(8, Phase::Ending)], 7));
        assert!(
            are_recording(&[process(4, Phase::Recording)], 7),
            "it is in a long call"
        );
        assert!(!are_recording(
            &[process(8, Phase::Idle), process(3, Phase::Recording)],
            7
        ));
    }
}
