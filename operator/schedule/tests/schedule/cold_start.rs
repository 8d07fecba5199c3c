//! What a controller does that was away.

use flopwatch_api::schedule::SkipReason;
use flopwatch_schedule::{Facts, History, Ledger, plan};
use serde_json::json;

use crate::fleet::{after, decided, follow, noon, open_session, planned, pods, spec};

/// The first time of a lone pod after noon.
fn first_time() -> jiff::Timestamp {
    let (spec, to) = (spec(json!({})), after(noon(), 900));
    let plans = follow(&spec, &pods(1), &mut decided(noon()), noon(), to, 1);
    plans.iter().find_map(|plan| plan.runs.first()).unwrap().opens
}

#[test]
fn after_three_hours_the_current_slot_runs_alone_and_the_others_are_counted() {
    let spec = spec(json!({}));
    let first = first_time();
    // It was there for the window of the first slot and comes back thirty seconds after that of the
    // thirteenth.
    let back = after(first, 3 * 3600 + 30);
    let plan = planned(&spec, &pods(1), &decided(after(first, 1)), back);
    assert_eq!(plan.runs.len(), 1);
    assert_eq!(plan.runs[0].opens, after(first, 3 * 3600));
    assert_eq!(plan.skipped.of(SkipReason::Missed), 11);
    assert_eq!(plan.planned_until, back);

    let mut history = decided(plan.planned_until);
    history.sessions.extend(plan.runs.iter().map(open_session));
    let again = planned(&spec, &pods(1), &history, after(back, 1));
    assert!(
        again.runs.is_empty() && again.skipped.is_empty(),
        "nothing is decided twice"
    );
}

#[test]
fn a_window_whose_deadline_is_over_is_counted_too() {
    let first = first_time();
    let (spec, back) = (spec(json!({})), after(first, 3 * 3600 + 61));
    let plan = planned(&spec, &pods(1), &decided(after(first, 1)), back);
    assert!(plan.runs.is_empty());
    assert_eq!(plan.skipped.of(SkipReason::Missed), 12);
}

#[test]
fn a_long_deadline_catches_nothing_up() {
    let first = first_time();
    let spec = spec(json!({ "startingDeadlineSeconds": 86_400 }));
    let plan = planned(&spec, &pods(1), &decided(after(first, 1)), after(first, 3 * 3600 + 30));
    assert_eq!(plan.runs.len(), 1);
    assert_eq!(plan.skipped.of(SkipReason::Missed), 11);
}

#[test]
fn missed_windows_of_a_fleet_are_as_many_as_there_would_have_been() {
    let spec = spec(json!({ "jitterSeconds": 120, "select": { "perRun": { "percent": 10 } } }));
    let fleet = pods(200);
    let away = 3 * 3600;
    let mut history = decided(noon());
    let present: usize = follow(&spec, &fleet, &mut history, noon(), after(noon(), away), 10)
        .iter()
        .map(|plan| plan.runs.len())
        .sum();
    let plan = planned(&spec, &fleet, &decided(noon()), after(noon(), away));
    let counted = plan.skipped.of(SkipReason::Missed) + i64::try_from(plan.runs.len()).unwrap();
    assert_eq!(counted, i64::try_from(present).unwrap());
}

#[test]
fn a_year_away_is_counted_at_once() {
    let first = first_time();
    let spec = spec(json!({ "when": { "interval": { "seconds": 10 } }, "session": { "durationSeconds": 5 } }));
    let year = 365 * 86_400;
    let plan = planned(&spec, &pods(1), &decided(first), after(first, year));
    let windows = plan.skipped.of(SkipReason::Missed) + i64::try_from(plan.runs.len()).unwrap();
    let expected = year / 10;
    assert!(
        (expected - 2..=expected + 1).contains(&windows),
        "{windows} of {expected}"
    );
}

#[test]
fn times_of_the_clock_in_a_blackout_were_not_missed() {
    let spec = spec(json!({
        "when": { "interval": null, "cron": { "expression": "0 * * * *" } },
        "blackouts": [{ "cron": "30 13 * * *", "durationSeconds": 7200 }],
    }));
    let plan = planned(&spec, &pods(1), &decided(noon()), after(noon(), 6 * 3600 + 10));
    // One, four and five were missed, two and three were in the blackout, six is now.
    assert_eq!(plan.skipped.of(SkipReason::Missed), 3);
    assert_eq!(plan.skipped.of(SkipReason::Blackout), 2);
    assert_eq!(plan.runs.len(), 1);
}

#[test]
fn a_schedule_decides_nothing_from_before_it_was_there_or_while_it_was_suspended() {
    let mut identity = crate::fleet::identity();
    identity.created = after(noon(), -5);
    let every = spec(json!({ "when": { "interval": null, "cron": { "expression": "* * * * *" } } }));
    let plan = plan(&Facts {
        spec: &every,
        identity: &identity,
        pods: &pods(3),
        history: &History::default(),
        ledger: &Ledger::default(),
        now: after(noon(), 1),
    })
    .unwrap();
    assert_eq!((plan.runs.len(), plan.skipped.is_empty()), (3, true));

    let suspended = spec(json!({ "suspend": true }));
    let plan = planned(&suspended, &pods(3), &decided(noon()), after(noon(), 86_400));
    assert!(plan.runs.is_empty() && plan.skipped.is_empty() && plan.next.is_none());
    assert_eq!(plan.planned_until, after(noon(), 86_400));
}
