//! The period of what a container uses, as a hint where nobody counts its work.
//!
//! A program that works in steps mostly shows them in its processor time or in its GPU's activity.
//! Their length can be told from the series alone: it is the first lag at which the series is like
//! itself again, and the more of its multiples fit into the time, the nearer it is known.
//!
//! **What it does not see.** Whether it is that of the work. A thread that wakes by the clock has a
//! period too, and keeps it however slow the work is; so it is told beside the verdict `Blind`, and
//! is none. Steps of less than four samples, programs without steps, and changes that are smaller
//! than what the samples tell apart are not seen either.

use std::time::Duration;

use flopwatch_pipeline::transform::SampledSeries;

/// Time between two samples in seconds: that of the metrics ring.
const STEP_SECONDS: f64 = 0.1;
/// Longest pause between two points of a series that is one still, in samples.
const MAX_PAUSE_SAMPLES: f64 = 4.5;
/// Most samples that are looked at, the latest ones.
const MAX_SAMPLES: usize = 1_200;
/// Shortest period in samples.
const MIN_PERIOD_SAMPLES: usize = 4;
/// How like itself a series is after a period, at least.
const MIN_CORRELATION: f64 = 0.7;
/// How unlike itself it was at a shorter lag: one that changes slowly is like itself at every lag.
const MAX_CORRELATION_BEFORE: f64 = 0.3;
/// How like itself it is after several periods, for these to tell the period more nearly; and after
/// no shorter time than its period.
const STILL_LIKE: f64 = 0.5;
/// Periods that differ by more are not taken for the same step's: short steps look alike after two
/// or three of them, and not always after as many.
const SAME: std::ops::Range<f64> = 0.8..1.3;

/// A period.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Period {
    seconds: f64,
    /// How far the true one may be, as a part of it: a sample over all periods that were compared.
    resolution: f64,
}

/// Says by how much the period of the series that show one changed, before a window and in it; none
/// where none has one in both.
pub(crate) fn hint(before: &[SampledSeries], during: &[SampledSeries]) -> Option<String> {
    let found = before.iter().find_map(|series| {
        let same = |other: &&SampledSeries| {
            (&other.source, &other.device, &other.metric) == (&series.source, &series.device, &series.metric)
        };
        let (usual, now) = (Period::of(series)?, Period::of(during.iter().find(same)?)?);
        SAME.contains(&(now.seconds / usual.seconds))
            .then_some((&series.metric, usual, now))
    });
    let (metric, usual, now) = found?;
    let percent = 100.0 * (now.seconds / usual.seconds - 1.0);
    let least = 100.0 * (usual.resolution + now.resolution);
    let change = if percent.abs() <= least {
        format!("which is the same to within {least:.1} %")
    } else {
        let way = if percent > 0.0 { "longer" } else { "shorter" };
        format!("{:.1} % {way}, to within {least:.1} %", percent.abs())
    };
    Some(format!(
        "{metric} had a period of {:.2} s before the window and of {:.2} s in it, {change}; whether that is the work's, nobody says",
        usual.seconds, now.seconds
    ))
}

impl Period {
    /// The period of a series; none where it has none that is certain.
    fn of(series: &SampledSeries) -> Option<Self> {
        let values = level(&sampled(&series.t_utc_ns, &series.value)?)?;
        let count = values.len();
        let like = |lag: usize| correlation(&values, lag);
        let is_peak = |lag: usize| like(lag) >= like(lag - 1) && like(lag) > like(lag + 1);
        let unlike = (1..count / 3).find(|lag| like(*lag) < MAX_CORRELATION_BEFORE)?;
        // One that is somewhat like itself sooner may be so after several periods by chance.
        let first =
            (unlike.max(MIN_PERIOD_SAMPLES)..count / 3).find(|lag| is_peak(*lag) && like(*lag) >= STILL_LIKE)?;
        if like(first) < MIN_CORRELATION {
            return None;
        }
        let (mut lag, mut periods) = (between(&like, first), 1.0);
        loop {
            // The next multiple is near where this one says.
            let expected = lag / periods * (periods + 1.0);
            let reach = (lag / periods / 4.0).max(1.0);
            let near: Vec<usize> = (first..count / 2)
                .filter(|lag| (float(*lag) - expected).abs() <= reach)
                .collect();
            let best = near.into_iter().filter(|lag| is_peak(*lag));
            let best = best.max_by(|one, other| like(*one).total_cmp(&like(*other)));
            match best.filter(|lag| like(*lag) >= STILL_LIKE) {
                Some(best) => (lag, periods) = (between(&like, best), periods + 1.0),
                None => break,
            }
        }
        Some(Self {
            seconds: lag / periods * STEP_SECONDS,
            resolution: 1.0 / lag,
        })
    }
}

/// The series at equal steps, by lines between its points; none where it is too short or has
/// pauses.
fn sampled(times_ns: &[u64], values: &[f64]) -> Option<Vec<f64>> {
    let begin = *times_ns.first()?;
    let place = |at_ns: &u64| Duration::from_nanos(at_ns.saturating_sub(begin)).as_secs_f64() / STEP_SECONDS;
    let points: Vec<(f64, f64)> = times_ns.iter().map(place).zip(values.iter().copied()).collect();
    let pairs: Vec<_> = points.iter().zip(points.iter().skip(1)).collect();
    let is_series = |(one, other): &(&(f64, f64), &(f64, f64))| other.0 > one.0 && other.0 - one.0 <= MAX_PAUSE_SAMPLES;
    if !pairs.iter().all(is_series) || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut found = Vec::new();
    for (one, other) in pairs {
        while float(found.len()) < other.0 {
            let part = (float(found.len()) - one.0) / (other.0 - one.0);
            found.push(one.1 + (other.1 - one.1) * part);
        }
    }
    found.drain(..found.len().saturating_sub(MAX_SAMPLES));
    (found.len() >= 6 * MIN_PERIOD_SAMPLES).then_some(found)
}

/// The values without their mean and their trend; none where nothing is left.
fn level(values: &[f64]) -> Option<Vec<f64>> {
    let count = float(values.len());
    let middle = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let at = |place: usize| float(place) - middle;
    let (rise, run) = values
        .iter()
        .enumerate()
        .fold((0.0, 0.0), |(rise, run), (place, value)| {
            (rise + at(place) * (value - mean), run + at(place).powi(2))
        });
    let slope = rise / run;
    let left: Vec<f64> = values
        .iter()
        .enumerate()
        .map(|(place, value)| value - mean - slope * at(place))
        .collect();
    let power = left.iter().map(|value| value * value).sum::<f64>() / count;
    (power > 1e-12 * mean.abs().max(1e-6).powi(2)).then_some(left)
}

/// How like itself a series is after a lag: 1 for wholly.
fn correlation(values: &[f64], lag: usize) -> f64 {
    let pairs = || values.iter().zip(values.iter().skip(lag));
    let (products, one, other) = pairs().fold((0.0, 0.0, 0.0), |(products, one, other), (a, b)| {
        (products + a * b, one + a * a, other + b * b)
    });
    let size = f64::sqrt(one * other);
    if size > 0.0 { products / size } else { 0.0 }
}

/// Where between samples a peak is, by the parabola through it and its neighbours.
fn between(like: &impl Fn(usize) -> f64, peak: usize) -> f64 {
    let (before, at, after) = (like(peak.saturating_sub(1)), like(peak), like(peak.saturating_add(1)));
    let bend = before - 2.0 * at + after;
    let off = if bend < 0.0 {
        (before - after) / (2.0 * bend)
    } else {
        0.0
    };
    float(peak) + off.clamp(-0.5, 0.5)
}

fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series of some seconds: a step is busy in its first third, more or less.
    fn steps(seed: u64, seconds: f64, period: f64, noise: f64) -> SampledSeries {
        let mut random = fastrand::Rng::with_seed(seed);
        let begin = random.f64() * period;
        series(seconds, |at| {
            let busy = ((begin + at) / period).fract() < 0.35;
            let level = if busy { 3.0 } else { 1.0 };
            level + noise * (random.f64() + random.f64() + random.f64() - 1.5) * 2.0
        })
    }

    fn series(seconds: f64, mut value: impl FnMut(f64) -> f64) -> SampledSeries {
        let times: Vec<u64> = (0..nanoseconds(seconds)).step_by(100_000_000).collect();
        SampledSeries {
            source: "cgroup".to_owned(),
            device: "container".to_owned(),
            metric: "cpu_usage".to_owned(),
            unit: "cores".to_owned(),
            value: times
                .iter()
                .map(|at| value(Duration::from_nanos(*at).as_secs_f64()))
                .collect(),
            t_utc_ns: times.into_iter().map(|at| 1_790_000_000_000_000_000 + at).collect(),
        }
    }

    fn nanoseconds(seconds: f64) -> u64 {
        u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap()
    }

    #[test]
    fn a_period_is_found_to_within_what_it_says() {
        for (seconds, noise, least) in [(60.0, 0.3, 85), (60.0, 0.6, 10), (10.0, 0.3, 60)] {
            let (mut found, mut right, mut all) = (0, 0, 0);
            for seed in 0..100 {
                // None of a whole number of samples alone.
                let truth = 0.53 + 0.017 * f64::from(u32::try_from(seed).unwrap());
                all += 1;
                if let Some(period) = Period::of(&steps(seed, seconds, truth, noise)) {
                    found += 1;
                    // A few short steps may be taken for one.
                    let steps = (period.seconds / truth).round().clamp(1.0, 3.0);
                    right += u32::from((period.seconds / truth / steps - 1.0).abs() <= period.resolution);
                }
            }
            println!("{seconds} s, noise {noise}: {found} of {all} found, {right} right");
            assert!(
                found >= least && right >= found - 1,
                "{seconds} s, noise {noise}: {found} found, {right} right"
            );
        }
    }

    #[test]
    fn longer_steps_are_told_as_such_and_equal_ones_as_the_same() {
        for seed in 0..50 {
            let before = [steps(seed, 60.0, 1.03, 0.3)];
            let told = |factor: f64| hint(&before, &[steps(seed + 1000, 20.0, 1.03 * factor, 0.3)]).unwrap_or_default();
            assert!(told(1.0).contains("the same to within"), "{}", told(1.0));
            assert!(told(1.2).contains("% longer"), "{}", told(1.2));
            assert!(told(0.85).contains("% shorter"), "{}", told(0.85));
        }
    }

    #[test]
    fn what_has_no_period_has_none() {
        let mut told = 0;
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut other = fastrand::Rng::with_seed(seed + 1000);
            let mut third = fastrand::Rng::with_seed(seed + 2000);
            let (mut walk, mut level) = (0.0, 0.0);
            let series = [
                series(60.0, |_| random.f64()),
                series(60.0, |at| at * 0.1),
                series(60.0, |_| 7.0),
                series(60.0, |_| {
                    walk += other.f64() - 0.5;
                    walk
                }),
                series(60.0, |_| {
                    // Bursts that come by chance.
                    if third.f64() < 0.05 {
                        level = 3.0;
                    }
                    level *= 0.8;
                    level
                }),
            ];
            told += series.iter().filter(|series| Period::of(series).is_some()).count();
        }
        assert!(told <= 10, "{told} of 1000");
    }

    #[test]
    fn a_series_with_a_pause_or_of_few_samples_is_none() {
        let mut with_pause = steps(1, 60.0, 1.0, 0.0);
        for at in &mut with_pause.t_utc_ns[300..] {
            *at += 2_000_000_000;
        }
        assert_eq!(Period::of(&with_pause), None);
        assert_eq!(Period::of(&steps(1, 2.0, 1.0, 0.0)), None);
        assert_eq!(Period::of(&series(0.0, |_| 1.0)), None);
    }

    #[test]
    fn steps_that_become_longer_all_the_time_are_not_told_as_one_period() {
        let drifting = series(60.0, |at| f64::from(u8::from((at / (0.8 + 0.01 * at)).fract() < 0.35)));
        assert_eq!(Period::of(&drifting), None);
    }

    #[test]
    fn periods_of_another_step_are_not_compared() {
        assert_eq!(hint(&[steps(1, 60.0, 1.0, 0.1)], &[steps(2, 20.0, 2.0, 0.1)]), None);
        assert_eq!(hint(&[], &[steps(2, 20.0, 2.0, 0.1)]), None);
    }
}
