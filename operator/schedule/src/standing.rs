//! Whether windows may be opened on pods of a class: budget and backoff.

use flopwatch_api::overhead::OverheadReason;
use flopwatch_api::schedule::{BackoffSpec, BudgetState, BudgetStatus, ProfilingScheduleSpec, UnknownOverhead};
use jiff::Timestamp;

use crate::ledger::{Account, Ledger, Slowdown};
use crate::slot::seconds_later;

/// Failures of the last ten windows up to which a class is profiled: more than a fifth suspend it.
const TOLERATED_FAILURES: usize = 2;

/// Basis points of what is lost in full.
const WHOLE: i128 = 10_000;

/// Whether windows may be opened on pods of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In every slot.
    Open,
    /// In every second slot, at random: it is not known yet whether the amortised budget is kept.
    Halved,
    /// Not before that instant: its last window failed or exceeded the budget.
    BackedOff {
        /// The instant.
        until: Timestamp,
    },
    /// Not before the schedule is changed: more than two of its last ten windows failed.
    Suspended,
    /// Not now: its pods lose more than the amortised budget. Each second without a window brings them nearer to it.
    OverBudget,
    /// Not before the schedule is changed: nothing told in any of its windows how fast its pods were, and `spec.budget.unknown` is Refuse.
    NoSensor,
}

/// How a class stands at an instant; a class without an account had no window yet, and is open.
pub fn standing(spec: &ProfilingScheduleSpec, account: Option<&Account>, at: Timestamp) -> Standing {
    let Some(account) = account else {
        return Standing::Open;
    };
    if account
        .failures_of_last_ten()
        .is_some_and(|failures| failures > TOLERATED_FAILURES)
    {
        return Standing::Suspended;
    }
    if let Some(until) = backed_off_until(&spec.backoff, account).filter(|until| *until > at) {
        return Standing::BackedOff { until };
    }
    if account.windows == 0 {
        return Standing::Open;
    }
    match account.slowdown {
        None if is_blind(account) && spec.budget.unknown == UnknownOverhead::Refuse => Standing::NoSensor,
        None => Standing::Open,
        Some(slowdown) => match against_budget(spec, account, slowdown) {
            BudgetState::Exceeded => Standing::OverBudget,
            BudgetState::Within => Standing::Open,
            BudgetState::Learning | BudgetState::Inconclusive | BudgetState::Blind => Standing::Halved,
        },
    }
}

/// Whether nothing told how fast its pods were. A window that could not be judged for another reason, such as a load that changed, may be
/// followed by one that can.
const fn is_blind(account: &Account) -> bool {
    account.blind_windows == account.windows
}

/// Until when a class is left alone: `initialSeconds` after one failure, twice as long after each further one in a row.
fn backed_off_until(backoff: &BackoffSpec, account: &Account) -> Option<Timestamp> {
    let (failures, last) = account.failures_in_a_row()?;
    let longest = i64::from(backoff.maximum_seconds);
    let doublings = failures.saturating_sub(1).min(32);
    let delay = i64::from(backoff.initial_seconds).saturating_mul(1 << doublings);
    Some(seconds_later(last, delay.min(longest)))
}

/// What pods of a class lost to windows of that slowdown, in milliseconds times basis points: of the time in windows a part, and all of the time
/// in which they stood still.
fn lost(account: &Account, basis_points: i32) -> i128 {
    let in_windows = 1_000 * i128::from(basis_points) * i128::from(account.window_seconds);
    in_windows + WHOLE * i128::from(account.stalled_milliseconds)
}

/// What pods of a class lose over all of their time, against the amortised budget. The upper end of the interval says that it is kept, the
/// lower end that it is not.
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

/// What all pods of the schedule lose over all of their time: the figures are those of classes that could be measured, the state is that of the
/// worst class.
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

/// Why windows could not be judged that something counted the work in: that of the class with the
/// most windows.
fn inconclusive(ledger: &Ledger) -> Option<OverheadReason> {
    let accounts = ledger.classes.values();
    let told = accounts.filter_map(|account| Some((account.windows, account.inconclusive?)));
    told.max().map(|(_, reason)| reason)
}

/// The quotient, rounded to the nearest whole number; None where nothing is divided by.
fn rounded(sum: i128, by: i128) -> Option<i32> {
    let quotient = (by > 0).then(|| (2 * sum + by).div_euclid(2 * by))?;
    i32::try_from(quotient).ok()
}

#[cfg(test)]
mod tests;
