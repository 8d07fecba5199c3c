//! What sums say.

use flopwatch_model::ratio;

use super::Totals;
use super::group::Sums;

/// Fewest captures that an interval is given of. Resamples of fewer hardly differ, and their
/// interval is too short.
const FEWEST_CAPTURES: u64 = 8;

/// The largest groups of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Captures in the time asked for, those that failed included.
    pub captures: u64,
    /// Captures that did not succeed. Some hold data even so.
    pub failed: u64,
    /// Captures in which none of the categories was captured. The sums hold nothing of them.
    pub not_captured: u64,
    /// The share of all windows, each by its weight, in which a category was captured. Where it is
    /// below 1, sums are too low: divided by it they are right if what is missing is like what is
    /// there. Shares of sums need no such division. `None` without captures.
    pub captured_share: Option<f64>,
    /// Captures that were there more than once in a call.
    pub repeated: u64,
    /// Rows whose capture was not given.
    pub rows_without_capture: u64,
    /// Windows in which a category was captured, added up as the sums are: time of pods in the
    /// fleet.
    pub window_ns: f64,
    /// The largest groups, the largest first.
    pub groups: Vec<Figures>,
    /// All other groups together, and names that have no row of their own.
    pub others: Figures,
    /// How many groups the others are. One that was let go of and came back counts again.
    pub other_groups: u64,
    /// Everything together.
    pub all: Figures,
}

/// Figures of one group.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Name, image or node; empty of the others and of all.
    pub key: String,
    /// Captures that hold it; `None` of the others, which are not told apart.
    pub captures: Option<u64>,
    /// Time in ns over the whole fleet and time.
    pub total_ns: Estimate,
    /// Calls over the whole fleet and time.
    pub calls: Estimate,
    /// Its time as a share of that of all groups, 0 to 1.
    pub share: Estimate,
    /// The same without weights: of the captures alone, and biased where they were not drawn alike.
    pub observed: ObservedSums,
    /// How much of `total_ns` may be missing, because the group was let go of before it came back.
    /// 0 of most.
    pub may_miss_ns: f64,
}

/// Sums over the captures themselves, without weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObservedSums {
    /// Time in ns.
    pub total_ns: u128,
    /// Calls.
    pub calls: u128,
    /// Its time as a share of that of all groups, 0 to 1; `None` of nothing.
    pub share: Option<f64>,
}

/// What is known of a figure of the fleet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate; `None` of a share of nothing.
    pub value: Option<f64>,
    /// The 95 % interval, lower and upper end; `None` where there are fewer than eight captures to
    /// tell it from.
    pub interval: Option<(f64, f64)>,
}

pub(super) fn report(totals: &Totals, top: usize) -> Report {
    let mut groups: Vec<(&String, &Sums)> = totals.groups.iter().collect();
    groups.sort_by(|(a, x), (b, y)| y.total_ns.total_cmp(&x.total_ns).then_with(|| a.cmp(b)));
    let shown = groups.get(..top.min(groups.len())).unwrap_or_default();
    let rest = groups.get(shown.len()..).unwrap_or_default();
    let mut others = totals.others.clone();
    for (_, sums) in rest {
        others.merge(sums);
    }
    let counts = &totals.counts;
    let all = &totals.all;
    let mut others = figures("", &others, all);
    others.captures = None;
    Report {
        captures: counts.captures,
        failed: counts.failed,
        not_captured: counts.not_captured,
        captured_share: (counts.weight > 0.0).then(|| counts.weight_captured / counts.weight),
        repeated: counts.repeated,
        rows_without_capture: counts.rows_without_capture,
        window_ns: counts.window_ns,
        groups: shown.iter().map(|(key, sums)| figures(key, sums, all)).collect(),
        others,
        other_groups: totals.let_go.saturating_add(flopwatch_model::count(rest.len())),
        all: figures("", all, all),
    }
}

fn figures(key: &str, sums: &Sums, all: &Sums) -> Figures {
    let enough = all.captures >= FEWEST_CAPTURES;
    let of_all = sums.resampled_ns.iter().zip(&all.resampled_ns);
    let shares = of_all.filter(|(_, all)| **all > 0.0).map(|(part, all)| part / all);
    let estimate = |value: f64, resampled: &[f64]| Estimate {
        value: Some(value),
        interval: enough.then(|| interval(resampled.to_vec())).flatten(),
    };
    Figures {
        key: key.to_owned(),
        captures: Some(sums.captures),
        total_ns: estimate(sums.total_ns, &sums.resampled_ns),
        calls: estimate(sums.calls, &sums.resampled_calls),
        share: Estimate {
            value: (all.total_ns > 0.0).then(|| sums.total_ns / all.total_ns),
            interval: enough.then(|| interval(shares.collect())).flatten(),
        },
        observed: ObservedSums {
            total_ns: sums.observed_ns,
            calls: sums.observed_calls,
            share: ratio(sums.observed_ns, all.observed_ns),
        },
        may_miss_ns: sums.may_miss_ns,
    }
}

/// The part of the sorted values that leaves 2.5 % of them out at each end.
fn interval(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let beyond = values.len() / 40;
    let low = values.get(beyond)?;
    let high = values
        .len()
        .checked_sub(beyond + 1)
        .and_then(|position| values.get(position))?;
    Some((*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_leaves_a_fortieth_out_at_each_end() {
        let values = (0..1_000).rev().map(|value: u32| f64::from(value));
        assert_eq!(interval(values.collect()), Some((25.0, 974.0)));
        assert_eq!(interval(vec![3.0]), Some((3.0, 3.0)));
        assert_eq!(interval(Vec::new()), None);
    }
}
