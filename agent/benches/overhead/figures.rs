//! How often windows were judged as they were.

use std::collections::BTreeMap;
use std::time::Duration;

use flopwatch_api::overhead::OverheadReason;
use serde_json::{Value, json};

use crate::course::{Case, Seen};

/// How far an estimate may be off, in basis points.
const APART: f64 = 100.0;
/// Within which harm beyond the budget is to be ended.
const MAX_HARM_DURATION: Duration = Duration::from_secs(5);

/// The figures of each case.
pub(crate) fn of(seen: &[Seen]) -> Vec<Value> {
    let mut cases: BTreeMap<Option<i32>, Vec<&Seen>> = BTreeMap::new();
    for one in seen {
        let harm = match one.case {
            Case::Harm(basis_points) => Some(basis_points),
            Case::Drift(_) => None,
        };
        cases.entry(harm).or_default().push(one);
    }
    cases.into_iter().map(|(harm, seen)| case(harm, &seen)).collect()
}

/// Of windows with one harm, in basis points, or of those in which the load changed.
fn case(harm: Option<i32>, seen: &[&Seen]) -> Value {
    let count = |is: &dyn Fn(&Seen) -> bool| seen.iter().filter(|one| is(one)).count();
    let estimate = |one: &Seen| one.told.slowdown_basis_points.map(f64::from);
    let near = |one: &Seen, truth: f64| estimate(one).is_some_and(|found| (found - truth).abs() <= APART);
    let errors: Vec<f64> = seen.iter().filter_map(|one| Some(estimate(one)? - one.own)).collect();
    let widths = seen
        .iter()
        .filter_map(|one| Some(f64::from(one.told.high? - one.told.low?)));
    let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in seen {
        *verdicts.entry(one.told.verdict.as_str()).or_default() += 1;
    }
    let planted = harm.unwrap_or(0);
    let covers = |one: &Seen| {
        let ends = one.told.low.zip(one.told.high);
        ends.is_some_and(|(low, high)| (low..=high).contains(&planted))
    };
    let slowest = seen.iter().filter_map(|one| one.ended).max();
    json!({
        "harm_basis_points": harm, "windows": seen.len(), "estimated": count(&|one| estimate(one).is_some()),
        "near_own_count": count(&|one| near(one, one.own)), "near_planted": count(&|one| near(one, planted.into())),
        "covered": count(&covers), "mean_width_basis_points": mean(widths).map(f64::round),
        "largest_error_basis_points": errors.iter().map(|error| error.abs()).fold(0.0, f64::max).round(),
        "ended": count(&|one| one.ended.is_some()), "ended_soon": count(&|one| one.ended.is_some_and(|time| time <= MAX_HARM_DURATION)),
        "slowest_end_ms": slowest.map(|time| time.as_millis()), "verdicts": verdicts,
        "load_changed": count(&|one| one.told.reason == OverheadReason::LoadChanged),
    })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The nearest whole number.
#[expect(clippy::cast_possible_truncation, reason = "basis points are few")]
pub(crate) fn whole(value: f64) -> i32 {
    value.round() as i32
}
