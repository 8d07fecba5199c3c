//! Whether windows may be opened on pods of a class, by the overhead budget and the backoff.

use flopwatch_api::overhead::OverheadReason;
use flopwatch_api::schedule::{BackoffSpec, BudgetState, BudgetStatus, ProfilingScheduleSpec, UnknownOverhead};
use jiff::Timestamp;

use crate::ledger::{Account, Ledger, Slowdown};
use crate::slot::seconds_later;

/// Most failures among the last ten windows of a class that is profiled; more suspend it.
const MAX_FAILURES_OF_LAST_TEN: usize = 2;

/// Basis points in the whole.
const BASIS_POINTS: i128 = 10_000;

/// Whether windows may be opened on pods of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligibility {
    /// Windows may be opened in every slot.
    Open,
    /// Windows may be opened in a random half of the slots: it is not known yet whether the pods
    /// keep the amortised budget.
    Halved,
    /// No window may be opened before an instant: the last one failed or exceeded the budget.
    BackedOff {
        /// The instant from which on windows may be opened.
        until: Timestamp,
    },
    /// No window may be opened before the schedule is changed: more than two of the last ten
    /// failed.
    Suspended,
    /// No window may be opened now: the pods lose more than the amortised budget. The loss per time
    /// falls with each second without a window.
    OverBudget,
    /// No window may be opened before the schedule is changed: no window of the class had a signal
    /// of how fast its pods are, and `spec.budget.unknown` is Refuse.
    NoSensor,
}

/// Decides whether windows may be opened on pods of a class at the instant `at`. A class without an
/// account has had no window, and is [`Eligibility::Open`].
pub fn eligibility(spec: &ProfilingScheduleSpec, account: Option<&Account>, at: Timestamp) -> Eligibility {
    let Some(account) = account else {
        return Eligibility::Open;
    };
    if account
        .failures_of_last_ten()
        .is_some_and(|failures| failures > MAX_FAILURES_OF_LAST_TEN)
    {
        return Eligibility::Suspended;
    }
    if let Some(until) = backed_off_until(&spec.backoff, account).filter(|until| *until > at) {
        return Eligibility::BackedOff { until };
    }
    if account.windows == 0 {
        return Eligibility::Open;
    }
    match account.slowdown {
        None if is_blind(account) && spec.budget.unknown == UnknownOverhead::Refuse => Eligibility::NoSensor,
        None => Eligibility::Open,
        Some(slowdown) => match against_budget(spec, account, slowdown) {
            BudgetState::Exceeded => Eligibility::OverBudget,
            BudgetState::Within => Eligibility::Open,
            BudgetState::Learning | BudgetState::Inconclusive | BudgetState::Blind => Eligibility::Halved,
        },
    }
}

/// Whether no window had a signal of how fast the pods are. A window that could not be judged for
/// another reason, such as a load that changed, may be followed by one that can.
const fn is_blind(account: &Account) -> bool {
    account.blind_windows == account.windows
}

/// The instant until which a class is not profiled: `initialSeconds` after one failure, twice as
/// long after each further one in a row.
fn backed_off_until(backoff: &BackoffSpec, account: &Account) -> Option<Timestamp> {
    let (failures, last) = account.failures_in_a_row()?;
    let longest = i64::from(backoff.maximum_seconds);
    let doublings = failures.saturating_sub(1).min(32);
    let delay = i64::from(backoff.initial_seconds).saturating_mul(1 << doublings);
    Some(seconds_later(last, delay.min(longest)))
}

/// Time that pods of a class lost to windows of that slowdown, in milliseconds times basis points:
/// a share of the time in windows, and all of the time in which the pods stood still.
fn lost(account: &Account, basis_points: i32) -> i128 {
    let in_windows = 1_000 * i128::from(basis_points) * i128::from(account.window_seconds);
    in_windows + BASIS_POINTS * i128::from(account.stalled_milliseconds)
}

/// Compares the loss of pods of a class, over all of their time, with the amortised budget. The
/// budget is kept where the upper end of the interval is within it, and exceeded where the lower
/// end is above it.
fn against_budget(spec: &ProfilingScheduleSpec, account: &Account, slowdown: Slowdown) -> BudgetState {
    let allowed = 1_000 * i128::from(spec.budget.amortized_basis_points) * i128::from(account.pod_seconds);
    let lost = |basis_points: i32| lost(account, basis_points);
    if lost(slowdown.low) > allowed {
        BudgetState::Exceeded
    } else if lost(slowdown.high) <= allowed && account.pod_seconds > 0 {
        BudgetState::Within
    } else {
        BudgetState::Learning
    }
}

/// The loss of all pods of the schedule, over all of their time, for the schedule's status: the
/// figures are of the classes that could be measured, and the state is that of the worst class.
pub fn budget_status(spec: &ProfilingScheduleSpec, ledger: &Ledger) -> BudgetStatus {
    let windows: i64 = ledger.classes.values().map(|account| account.windows).sum();
    let measured = || {
        let accounts = ledger.classes.values();
        accounts.filter_map(|account| account.slowdown.map(|slowdown| (account, slowdown)))
    };
    let pod_seconds: i128 = measured().map(|(account, _)| i128::from(account.pod_seconds)).sum();
    let amortized = |end: fn(Slowdown) -> i32| {
        let lost = measured().map(|(account, slowdown)| lost(account, end(slowdown)));
        rounded(lost.sum(), 1_000 * pod_seconds)
    };
    let states: Vec<BudgetState> = measured()
        .map(|(account, slowdown)| against_budget(spec, account, slowdown))
        .collect();
    let (state, reason) = if states.contains(&BudgetState::Exceeded) {
        (BudgetState::Exceeded, None)
    } else if states.contains(&BudgetState::Learning) || windows == 0 {
        (BudgetState::Learning, None)
    } else if states.is_empty() {
        match inconclusive(ledger) {
            Some(reason) => (BudgetState::Inconclusive, Some(reason)),
            None => (BudgetState::Blind, Some(OverheadReason::NoSignal)),
        }
    } else {
        (BudgetState::Within, None)
    };
    BudgetStatus {
        state,
        amortized_basis_points: amortized(|slowdown| slowdown.basis_points),
        low: amortized(|slowdown| slowdown.low),
        high: amortized(|slowdown| slowdown.high),
        windows: i32::try_from(windows).unwrap_or(i32::MAX),
        reason,
    }
}

/// Why windows with a signal could not be judged: the reason of the class with the most windows.
fn inconclusive(ledger: &Ledger) -> Option<OverheadReason> {
    let accounts = ledger.classes.values();
    let reasons = accounts.filter_map(|account| Some((account.windows, account.inconclusive?)));
    reasons.max().map(|(_, reason)| reason)
}

/// The quotient, rounded to the nearest whole number; None where nothing is divided by.
fn rounded(sum: i128, by: i128) -> Option<i32> {
    let quotient = (by > 0).then(|| (2 * sum + by).div_euclid(2 * by))?;
    i32::try_from(quotient).ok()
}

#[cfg(test)]
mod tests;
