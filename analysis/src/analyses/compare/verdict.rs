//! The verdict of `compare`: the time that is compared, and whether its change is a regression, an
//! improvement or noise.

use flopwatch_measures::interval::Interval;
use flopwatch_measures::iteration::IterationUnit;
use flopwatch_measures::significance::{change_of_median, mann_whitney, median};
use flopwatch_model::{approximate, ratio};
use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

use super::CompareParams;
use super::comparability::Comparability;
use super::side::Side;

/// Minimum number of iterations per capture for the Mann–Whitney test: with 4 and 4 the smallest
/// p-value is 0.029, with 3 and 3 it is 0.1.
const LEAST_TESTED: usize = 4;
/// Ratio of the smaller number of kernel launches to the larger one, below which two whole captures
/// did different work, so that their lengths cannot be compared.
const SAME_WORK: f64 = 0.98;

/// The verdict on a change of the compared time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// The second capture is slower, by the threshold or more and by more than noise.
    RegressionLikely,
    /// The second capture is faster, by the threshold or more and by more than noise.
    ImprovementLikely,
    /// The change is below the threshold.
    Neutral,
    /// The captures do not allow a verdict, and the reason says why.
    Inconclusive,
}

impl ComparisonVerdict {
    /// The verdict's name in JSON, as `regression_likely`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The time by which two captures are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparedTimeKind {
    /// The median length of an iteration.
    Iteration,
    /// The time from the first work of a GPU to its last, of the GPU for which that is longest.
    GpuSpan,
    /// No time: one of the captures has neither iterations nor GPU work.
    Nothing,
}

/// The compared time of both captures, and the statistics of its change.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedTime {
    /// Which time is compared.
    pub kind: ComparedTimeKind,
    /// The compared time of the first capture in ns; null where `kind` is `nothing`.
    pub before_ns: Option<f64>,
    /// The compared time of the second capture in ns; null where `kind` is `nothing`.
    pub after_ns: Option<f64>,
    /// Mean length of an iteration of the first capture in ns; null where `kind` is not
    /// `iteration`. A few long iterations change the mean and not the median.
    pub before_mean_ns: Option<f64>,
    /// Mean length of an iteration of the second capture in ns; null where `kind` is not
    /// `iteration`.
    pub after_mean_ns: Option<f64>,
    /// Change in percent: 100 × (`after_ns` / `before_ns` − 1). Positive where the second capture
    /// is slower.
    pub change_percent: Option<f64>,
    /// Lower bound of the confidence interval of the change in percent, by a percentile bootstrap
    /// with the confidence of the parameters; null without enough iterations.
    pub change_low_percent: Option<f64>,
    /// Upper bound of the confidence interval of the change in percent; null without enough
    /// iterations.
    pub change_high_percent: Option<f64>,
    /// Two-sided p-value of the Mann–Whitney test of the lengths of iterations; null where a
    /// capture has fewer than four.
    pub p_value: Option<f64>,
    /// Smallest change in percent that is distinguished from noise: the parameter, or half the
    /// width of the confidence interval where that is more.
    pub noise_floor_percent: f64,
    /// Change in percent from which on the verdict is a regression or an improvement.
    pub threshold_percent: f64,
}

impl ComparedTime {
    /// Speed-up: `before_ns` divided by `after_ns`; above 1 where the second capture is faster.
    /// `None` where either is missing or 0.
    pub(super) fn speedup(&self) -> Option<f64> {
        let (before, after) = self.before_ns.zip(self.after_ns)?;
        (before > 0.0 && after > 0.0).then(|| before / after)
    }
}

pub(super) struct Judgement {
    pub(super) verdict: ComparisonVerdict,
    pub(super) reason: String,
    pub(super) time: ComparedTime,
}

pub(super) fn of(
    before: &Side<'_>,
    after: &Side<'_>,
    comparability: &Comparability,
    params: &CompareParams,
) -> Judgement {
    let time = time(before, after, params);
    let (verdict, reason) = judge(&time, before.found.unit(), comparability, params);
    Judgement { verdict, reason, time }
}

fn time(before: &Side<'_>, after: &Side<'_>, params: &CompareParams) -> ComparedTime {
    let mut time = ComparedTime {
        kind: ComparedTimeKind::Nothing,
        before_ns: None,
        after_ns: None,
        before_mean_ns: None,
        after_mean_ns: None,
        change_percent: None,
        change_low_percent: None,
        change_high_percent: None,
        p_value: None,
        noise_floor_percent: params.noise_floor_percent,
        threshold_percent: params.threshold_percent,
    };
    if let (false, false) = (before.iterations.is_empty(), after.iterations.is_empty()) {
        let lengths = |side: &Side<'_>| -> Vec<u64> { side.iterations.iter().copied().map(Interval::len).collect() };
        let (old, new) = (lengths(before), lengths(after));
        time.kind = ComparedTimeKind::Iteration;
        (time.before_ns, time.after_ns) = (median(&old), median(&new));
        (time.before_mean_ns, time.after_mean_ns) = (mean(&old), mean(&new));
        if old.len().min(new.len()) >= LEAST_TESTED {
            time.p_value = mann_whitney(&old, &new);
            if let Some((low, high)) = change_of_median(&old, &new, params.confidence_percent) {
                (time.change_low_percent, time.change_high_percent) = (Some(low), Some(high));
                time.noise_floor_percent = time.noise_floor_percent.max((high - low) / 2.0);
            }
        }
    } else if let Some((old, new)) = before.gpu_span_ns().zip(after.gpu_span_ns()) {
        time.kind = ComparedTimeKind::GpuSpan;
        (time.before_ns, time.after_ns) = (Some(approximate(old.into())), Some(approximate(new.into())));
    }
    let sides = time.before_ns.zip(time.after_ns);
    time.change_percent = sides
        .filter(|(before, _)| *before > 0.0)
        .map(|(before, after)| (after - before) / before * 100.0);
    time
}

fn mean(lengths: &[u64]) -> Option<f64> {
    let sum: u128 = lengths.iter().map(|length| u128::from(*length)).sum();
    let count = u128::try_from(lengths.len()).unwrap_or(u128::MAX);
    ratio(sum, count)
}

/// The order matters: captures that cannot be compared have no verdict, whatever their times; then
/// the threshold, then the spread.
fn judge(
    time: &ComparedTime,
    unit: IterationUnit,
    comparability: &Comparability,
    params: &CompareParams,
) -> (ComparisonVerdict, String) {
    use ComparisonVerdict::{ImprovementLikely, Inconclusive, Neutral, RegressionLikely};
    if comparability.score_ratio < params.least_comparability {
        let lowest = comparability.factors.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let why = lowest.map_or("", |factor| factor.about.as_str());
        let reason = format!(
            "The captures can hardly be compared (score {:.2}). {why}",
            comparability.score_ratio
        );
        return (Inconclusive, reason);
    }
    let Some(change) = time.change_percent else {
        let reason = "There is no time to compare: both captures need iterations or work of GPUs.";
        return (Inconclusive, reason.to_owned());
    };
    let what = match time.kind {
        ComparedTimeKind::Iteration => format!("The median {}", unit.one),
        _ => "The time from the first GPU work to the last".to_owned(),
    };
    let changed = format!("{what} changed by {change:+.1} %");
    if time.kind == ComparedTimeKind::GpuSpan && comparability.same_work_ratio() < SAME_WORK {
        let reason = format!(
            "{changed}, but the captures hold different amounts of work and no iterations by which to compare them. Mark iterations \
             (profiler steps, NVTX ranges), or capture the same number of them."
        );
        return (Inconclusive, reason);
    }
    let limit = params.threshold_percent.max(params.noise_floor_percent);
    if change.abs() < limit {
        return (Neutral, format!("{changed}, which is below {limit:.1} %."));
    }
    let significance = f64::from(100_u32.saturating_sub(params.confidence_percent)) / 100.0;
    match time.p_value {
        Some(p) if p >= significance => {
            let reason = format!(
                "{changed}, which the spread of the {} explains as well (p = {p:.3}). Capture more of them.",
                unit.many
            );
            return (Inconclusive, reason);
        }
        _ => {}
    }
    let by = match time.p_value {
        Some(p) => format!("more than the spread of the {} explains (p = {p:.2e})", unit.many),
        None => format!("above {limit:.1} %; one run a side cannot say more"),
    };
    let verdict = if change > 0.0 {
        RegressionLikely
    } else {
        ImprovementLikely
    };
    (verdict, format!("{changed}, {by}."))
}
