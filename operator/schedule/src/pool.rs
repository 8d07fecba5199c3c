//! Pools the slowdowns of several windows into one estimate with a 95 % interval.
//!
//! Each window says how much longer a unit of work took in it, with a 95 % interval. The windows of
//! a class are on several pods at several times, so they differ by more than each one's own
//! uncertainty. That is a random-effects meta-analysis:
//!
//! * on the scale on which windows are measured, the logarithm of the ratio, where intervals are
//!   about symmetric;
//! * the variance between windows by DerSimonian and Laird (1986, their moment estimator);
//! * the interval by Hartung, Knapp, Sidik and Jonkman: a quantile of Student's t in place of the
//!   normal one, because the variance is itself estimated, from few windows at first; and never
//!   narrower than the interval without that (Rover, Knapp and Friede 2015).
//!
//! One window alone has its own interval: how windows differ cannot be told from it.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::ledger::Slowdown;

/// Half of the width of a 95 % interval of the normal distribution, in standard deviations.
const NORMAL_QUANTILE_975: f64 = 1.959_963_984_540_054;
/// Basis points in the whole.
const BASIS_POINTS: f64 = 10_000.0;
/// Least standard error of a window's estimate, since estimates are rounded to basis points.
const MIN_STANDARD_ERROR: f64 = 0.5 / BASIS_POINTS;

/// A window's effect and its variance, as logarithms of ratios.
#[derive(Clone, Copy, Debug)]
struct Effect {
    log: f64,
    variance: f64,
}

impl Effect {
    fn of(slowdown: Slowdown) -> Self {
        let error = (logarithm(slowdown.high) - logarithm(slowdown.low)) / (2.0 * NORMAL_QUANTILE_975);
        Self {
            log: logarithm(slowdown.basis_points),
            variance: error.max(MIN_STANDARD_ERROR).powi(2),
        }
    }
}

/// Pools the slowdowns of a class's windows into one, in basis points with a 95 % interval; None
/// where there are no windows.
pub(crate) fn pool(windows: impl Iterator<Item = Slowdown>) -> Option<Slowdown> {
    let windows: Vec<Slowdown> = windows.collect();
    if let [one] = windows.as_slice() {
        return Some(*one);
    }
    let effects: Vec<Effect> = windows.into_iter().map(Effect::of).collect();
    let freedom = f64::from(u32::try_from(effects.len()).unwrap_or(u32::MAX)) - 1.0;
    let quantile = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);

    let fixed = Weighted::of(&effects, 0.0);
    let squares: f64 = effects.iter().map(|effect| effect.variance.recip().powi(2)).sum();
    let scale = fixed.weight - squares / fixed.weight;
    let between = ((fixed.scatter - freedom) / scale).max(0.0);

    let random = Weighted::of(&effects, between);
    let spread = (random.scatter / freedom).max(1.0);
    let half = quantile * (spread / random.weight).sqrt();
    Some(Slowdown {
        basis_points: basis_points(random.mean),
        low: basis_points(random.mean - half),
        high: basis_points(random.mean + half),
    })
}

/// Effects weighted by the inverse of their variances, to each of which that between windows is
/// added.
struct Weighted {
    weight: f64,
    mean: f64,
    /// Weighted sum of the squared distances from the mean.
    scatter: f64,
}

impl Weighted {
    fn of(effects: &[Effect], between: f64) -> Self {
        let weighted = || {
            effects
                .iter()
                .map(|effect| ((effect.variance + between).recip(), effect.log))
        };
        let weight: f64 = weighted().map(|(weight, _)| weight).sum();
        let mean = weighted().map(|(weight, log)| weight * log).sum::<f64>() / weight;
        let scatter = weighted().map(|(weight, log)| weight * (log - mean).powi(2)).sum();
        Self { weight, mean, scatter }
    }
}

/// The logarithm of how many times as long a unit of work took.
fn logarithm(basis_points: i32) -> f64 {
    // Nothing is quicker than at once.
    (f64::from(basis_points.max(-9_999)) / BASIS_POINTS).ln_1p()
}

#[allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "there is no TryFrom for it; the cast saturates"
)]
fn basis_points(log: f64) -> i32 {
    (log.exp_m1() * BASIS_POINTS).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lower end, estimate, upper end.
    type Row = (i32, i32, i32);

    fn slowdown((low, basis_points, high): Row) -> Slowdown {
        Slowdown {
            basis_points,
            low,
            high,
        }
    }

    fn of(windows: &[Row]) -> Option<Row> {
        let pool = pool(windows.iter().copied().map(slowdown))?;
        Some((pool.low, pool.basis_points, pool.high))
    }

    #[test]
    fn no_window_says_nothing_and_one_says_what_it_says() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(-50, 100, 260)]), Some((-50, 100, 260)));
    }

    #[test]
    fn windows_are_pooled_as_a_reference_in_python_does() {
        // The formulas of the module's description, with the quantiles of scipy.stats.t.
        let rows: [(&[Row], Row); 4] = [
            (&[(-200, 100, 400), (-150, 140, 420)], (-1_134, 121, 1_554)),
            (
                &[(50, 120, 190), (300, 420, 560), (-40, 60, 170), (90, 180, 260)],
                (-50, 188, 432),
            ),
            (
                &[
                    (-500, 50, 650),
                    (-310, -20, 280),
                    (800, 1_500, 2_300),
                    (100, 240, 380),
                    (-90, 10, 110),
                ],
                (-349, 211, 804),
            ),
            (&[(-10, 0, 10), (-9_000, 100, 90_000)], (-65, 0, 65)),
        ];
        for (windows, expected) in rows {
            assert_eq!(of(windows), Some(expected), "{windows:?}");
        }
    }

    #[test]
    fn windows_that_agree_narrow_the_interval_and_those_that_differ_widen_it() {
        let width = |windows: &[Row]| of(windows).map(|(low, _, high)| high - low).unwrap();
        let alike = [(-200, 100, 400); 10];
        assert!(width(&alike) < 600 / 2);
        let apart: Vec<Row> = (0..10).map(|at| (300 * at - 10, 300 * at, 300 * at + 10)).collect();
        assert!(width(&apart) > 600, "each is sure of itself, and they do not agree");
        let exact = [(100, 100, 100), (100, 100, 100)];
        assert!(of(&exact).is_some_and(|(low, mean, high)| low < mean && mean == 100 && high > mean));
    }
}
