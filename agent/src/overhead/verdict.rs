//! A verdict in the words of the API.

use flopwatch_api::overhead::{
    CaptureOverhead, OverheadBins, OverheadReason, OverheadSignal, OverheadVerdict, SignalSource,
};
use flopwatch_overhead::{Abort, Arms, Decision, Reason, Verdict};

use super::Watch;

const MILLISECOND: u64 = 1_000_000;

pub(super) fn of_window(watch: &Watch, arms: &Arms, decision: &Decision, stall_milliseconds: u64) -> CaptureOverhead {
    let verdict = match decision.verdict {
        Verdict::Within => OverheadVerdict::Within,
        Verdict::Exceeded => OverheadVerdict::Exceeded,
        Verdict::Inconclusive => OverheadVerdict::Inconclusive,
        Verdict::Blind => OverheadVerdict::Blind,
    };
    let reason = match decision.reason {
        Reason::UpperEndWithin => OverheadReason::UpperEndWithin,
        Reason::LowerEndAbove => OverheadReason::LowerEndAbove,
        Reason::BudgetWithinInterval => OverheadReason::BudgetWithinInterval,
        Reason::TooFewBins => OverheadReason::TooFewBins,
        Reason::LoadChanged => OverheadReason::LoadChanged,
        Reason::NoSignal => OverheadReason::NoSignal,
    };
    let estimate = decision.estimate;
    let count = |bins: &[_]| i32::try_from(bins.len()).unwrap_or(i32::MAX);
    let length = watch.length_ns.get() / MILLISECOND;
    CaptureOverhead {
        verdict,
        reason,
        message: sentence(watch, decision),
        signal: Some(watch.signal.clone()),
        slowdown_basis_points: estimate.map(|known| bounded(known.slowdown_basis_points)),
        low: estimate.map(|known| bounded(known.low_basis_points)),
        high: estimate.map(|known| bounded(known.high_basis_points)),
        bin_milliseconds: Some(i32::try_from(length).unwrap_or(i32::MAX)),
        bins: Some(OverheadBins {
            before: count(&arms.before),
            during: count(&arms.during),
            after: count(&arms.after),
        }),
        stall_milliseconds: Some(i64::try_from(stall_milliseconds).unwrap_or(i64::MAX)),
    }
}

/// Nothing showed how fast the target was, for that reason.
pub(crate) fn unwatched(reason: OverheadReason, message: String) -> CaptureOverhead {
    let verdict = if reason == OverheadReason::NoSignal {
        OverheadVerdict::Blind
    } else {
        OverheadVerdict::Inconclusive
    };
    CaptureOverhead {
        verdict,
        reason,
        message,
        signal: None,
        slowdown_basis_points: None,
        low: None,
        high: None,
        bin_milliseconds: None,
        bins: None,
        stall_milliseconds: None,
    }
}

/// The window was ended: what was seen then stands, whatever the rest of it shows.
pub(super) fn stopped(judged: CaptureOverhead, abort: Abort) -> CaptureOverhead {
    let length = judged.bin_milliseconds.unwrap_or(0);
    let time = length.saturating_mul(i32::try_from(abort.bins).unwrap_or(i32::MAX));
    CaptureOverhead {
        verdict: OverheadVerdict::Exceeded,
        reason: OverheadReason::Stopped,
        message: format!(
            "the window was ended after {time} ms running in which a unit of work took {} longer (p {:.4})",
            percent(abort.slowdown_basis_points),
            abort.p
        ),
        ..judged
    }
}

fn sentence(watch: &Watch, decision: &Decision) -> String {
    let signal = named(&watch.signal);
    let budget = percent(i64::from(watch.spec.during_basis_points));
    let found = decision.estimate.map(|known| {
        format!(
            "{} ({} to {})",
            percent(known.slowdown_basis_points),
            percent(known.low_basis_points),
            percent(known.high_basis_points)
        )
    });
    let found = found.unwrap_or_default();
    match decision.reason {
        Reason::UpperEndWithin => format!("by {signal}, work took {found} longer: within {budget}"),
        Reason::LowerEndAbove => format!("by {signal}, work took {found} longer: beyond {budget}"),
        Reason::BudgetWithinInterval => {
            format!("by {signal}, work took {found} longer: a longer window tells whether that is within {budget}")
        }
        Reason::TooFewBins if decision.estimate.is_some() => {
            format!(
                "by {signal}, work took {found} longer, which is no verdict of so short a window: take a longer one; a schedule puts \
                 several together"
            )
        }
        Reason::TooFewBins => {
            format!(
                "{signal} was read for too short a time to tell: take a longer window, and leave more time before it"
            )
        }
        Reason::LoadChanged => {
            format!("by {signal}, the target was not as fast after the window as before it: its load changed meanwhile")
        }
        Reason::NoSignal => format!("{signal} did not move"),
    }
}

fn named(signal: &OverheadSignal) -> String {
    match signal.source {
        SignalSource::Recorder => format!("the NVTX range {:?}", signal.name),
        SignalSource::Prometheus => format!("the counter {}", signal.name),
    }
}

/// Basis points in percent, with a digit behind the point.
fn percent(basis_points: i64) -> String {
    let tenths = (basis_points.unsigned_abs() + 5) / 10;
    let sign = if basis_points < 0 && tenths > 0 { "-" } else { "" };
    format!("{sign}{}.{} %", tenths / 10, tenths % 10)
}

fn bounded(basis_points: i64) -> i32 {
    let most = i64::from(i32::MAX);
    i32::try_from(basis_points.clamp(-most, most)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_too_seldom_was_counted_all_the_same() {
        let verdict = |reason| unwatched(reason, String::new()).verdict;
        assert_eq!(verdict(OverheadReason::NoSignal), OverheadVerdict::Blind);
        assert_eq!(verdict(OverheadReason::TooSeldom), OverheadVerdict::Inconclusive);
    }

    #[test]
    fn basis_points_are_told_in_percent() {
        assert_eq!(
            [percent(0), percent(4), percent(-4), percent(5), percent(-1234)],
            ["0.0 %", "0.0 %", "0.0 %", "0.1 %", "-12.3 %"]
        );
    }
}
