//! What was read of one container's ranges: what they count, and the series of those that took the
//! longest.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::{Duration, Instant};

use flopwatch_nvml::utc_ns;
use flopwatch_overhead::Sample;
use flopwatch_pipeline::transform::{EarlierSamples, SampledSeries};
use flopwatch_trace::recorder::NamedRanges;

use crate::metrics_ring::span::{Name, Span};
use crate::metrics_ring::track::Track;

/// Shortest time between two rows of a series.
const MIN_ROW_INTERVAL: Duration = Duration::from_millis(900);
/// How long readings are kept.
const READING_TTL: Duration = Duration::from_secs(90);
/// Names of a container that have a series.
const MAX_SERIES: usize = 16;
/// Longest name of a series, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Source of the series.
const RECORDER: &str = "recorder";
/// Where the series are beside those of devices.
const DEVICE: &str = "container";

/// What was counted of the ranges of a series.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    calls: u64,
    total_ns: u64,
    /// When the last of them ended, in ns since 1970.
    last_ns: Option<u64>,
}

/// By name of a series: names that differ in letters no series may have are one.
type Sums = BTreeMap<String, Sum>;

/// What a reading counted.
#[derive(Debug)]
pub(super) struct Reading {
    /// When it ended.
    at: Instant,
    /// The same in ns since 1970.
    at_ns: u64,
    /// The ranges, the longest first.
    counted: Vec<NamedRanges>,
    sums: Sums,
}

/// What is kept of a container's readings.
#[derive(Debug, Default)]
pub(super) struct Rates {
    /// What the last reading counted, the longest first.
    counted: Vec<NamedRanges>,
    /// When the last row was added.
    at: Option<Instant>,
    /// By name.
    series: BTreeMap<String, Rate>,
}

/// One name's series.
#[derive(Debug)]
struct Rate {
    /// As of the last row.
    calls: u64,
    /// As of the last row.
    total_ns: u64,
    track: Track,
    /// The readings, oldest first.
    samples: VecDeque<Sample>,
}

impl Reading {
    /// Of ranges that were counted by now.
    pub(super) fn now(counted: Vec<NamedRanges>) -> Self {
        Self::of(counted, Instant::now(), utc_ns())
    }

    fn of(mut counted: Vec<NamedRanges>, at: Instant, at_ns: u64) -> Self {
        counted.sort_by(|one, other| {
            other
                .total_ns
                .cmp(&one.total_ns)
                .then_with(|| one.name.cmp(&other.name))
        });
        let mut sums = Sums::new();
        for named in &counted {
            let sum = sums.entry(metric(&named.name)).or_default();
            *sum = Sum {
                calls: sum.calls.saturating_add(named.calls),
                total_ns: sum.total_ns.saturating_add(named.total_ns),
                last_ns: sum.last_ns.max(named.last_utc_ns),
            };
        }
        Self {
            at,
            at_ns,
            counted,
            sums,
        }
    }
}

impl Rates {
    /// Whether no name has a series yet.
    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The longest ranges, so many names of them, and how many names there are.
    pub(super) fn longest(&self, names: usize) -> (Vec<NamedRanges>, usize) {
        let longest = self.counted.iter().take(names).cloned();
        (longest.collect(), self.counted.len())
    }

    /// What was read since a time in ns since 1970, by name, oldest first.
    pub(super) fn since(&self, since_ns: u64) -> BTreeMap<String, Vec<Sample>> {
        let of = |rate: &Rate| {
            let from = rate.samples.partition_point(|sample| sample.at_ns < since_ns);
            rate.samples.range(from..).copied().collect()
        };
        self.series
            .iter()
            .map(|(name, rate)| (name.clone(), of(rate)))
            .collect()
    }

    /// Calls per second by name in a window, in ns since 1970.
    pub(super) fn within(&self, window: &Range<u64>) -> Vec<SampledSeries> {
        let mut found = EarlierSamples::default();
        let span = Span {
            from: window.start,
            until: window.end,
        };
        for (metric, rate) in &self.series {
            let name = Name {
                source: RECORDER,
                device: DEVICE,
                metric,
                unit: "calls/s",
            };
            span.add(&mut found, &rate.track, 0, name);
        }
        found.series
    }

    /// Takes in what was read. Series are of that length; none are kept where it is zero.
    pub(super) fn take(&mut self, reading: Reading, length: Duration) {
        let Reading {
            at,
            at_ns,
            counted,
            sums,
        } = reading;
        self.counted = counted;
        let passed = self.at.map(|then| at.duration_since(then));
        if passed.is_none_or(|passed| passed >= MIN_ROW_INTERVAL) {
            self.at = Some(at);
            self.add(&sums, passed.map(|passed| passed.as_secs_f64()), at_ns, length);
        }
        self.sample(&sums, at_ns);
    }

    /// Keeps what was read of each name that has a series.
    fn sample(&mut self, sums: &Sums, at_ns: u64) {
        let oldest = at_ns.saturating_sub(u64::try_from(READING_TTL.as_nanos()).unwrap_or(u64::MAX));
        for (name, rate) in &mut self.series {
            if let Some(sum) = sums.get(name) {
                rate.samples.push_back(Sample {
                    at_ns,
                    count: sum.calls,
                    busy_ns: Some(sum.total_ns),
                    last_ns: sum.last_ns,
                });
            }
            while rate.samples.front().is_some_and(|sample| sample.at_ns < oldest) {
                rate.samples.pop_front();
            }
        }
    }

    /// Adds a row to each series.
    fn add(&mut self, sums: &Sums, passed: Option<f64>, at: u64, length: Duration) {
        let oldest = at.saturating_sub(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        let rows = usize::try_from(length.as_secs())
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        for (name, total_ns) in self.entering(sums) {
            if self.series.len() >= MAX_SERIES {
                let least = self.series.iter().min_by_key(|(_, rate)| rate.total_ns);
                let Some(least) = least
                    .filter(|(_, rate)| total_ns / 2 > rate.total_ns)
                    .map(|(name, _)| name.clone())
                else {
                    break;
                };
                self.series.remove(&least);
            }
            let calls = sums.get(&name).map_or(0, |sum| sum.calls);
            let track = Track::new(1, rows);
            let rate = Rate {
                calls,
                total_ns,
                track,
                samples: VecDeque::new(),
            };
            self.series.insert(name, rate);
        }
        for (name, rate) in &mut self.series {
            let sum = sums.get(name);
            let (calls, total_ns) = sum.map_or((rate.calls, rate.total_ns), |sum| (sum.calls, sum.total_ns));
            let done = u32::try_from(calls.saturating_sub(rate.calls)).map_or(f64::from(u32::MAX), f64::from);
            if let Some(passed) = passed.filter(|passed| *passed > 0.0 && !length.is_zero()) {
                rate.track.push(at, [Some(done / passed)]);
            }
            (rate.calls, rate.total_ns) = (calls, total_ns);
            rate.track.expire(oldest);
        }
    }

    /// Names without a series, those that took the longest first.
    fn entering(&self, sums: &Sums) -> Vec<(String, u64)> {
        let without = sums.iter().filter(|(name, _)| !self.series.contains_key(*name));
        let mut without: Vec<_> = without.map(|(name, sum)| (name.clone(), sum.total_ns)).collect();
        without.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        without.truncate(MAX_SERIES);
        without
    }
}

/// The name of a series of the timeline file for a range's: ASCII letters, digits and `._:-`.
fn metric(range: &str) -> String {
    let fit = |letter: char| {
        if letter.is_ascii_alphanumeric() || "._:-".contains(letter) {
            letter
        } else {
            '_'
        }
    };
    let name: String = range.chars().take(MAX_NAME_BYTES).map(fit).collect();
    if name.chars().all(|letter| letter == '.') {
        return "_".to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING_DURATION: Duration = Duration::from_mins(1);
    const SECOND: u64 = 1_000_000_000;
    const NOW: u64 = 1_790_000_000 * SECOND;

    /// Of names with calls and time, so many seconds after `begin` and after [`NOW`].
    fn reading(begin: Instant, second: u64, calls: &[(&str, u64, u64)]) -> Reading {
        let named = |(name, calls, total_ns): &(&str, u64, u64)| NamedRanges {
            name: (*name).to_owned(),
            calls: *calls,
            total_ns: *total_ns,
            last_utc_ns: None,
        };
        let counted = calls.iter().map(named).collect();
        Reading::of(counted, begin + Duration::from_secs(second), NOW + second * SECOND)
    }

    #[test]
    fn a_series_has_calls_per_second_from_the_second_reading_on() {
        let mut rates = Rates::default();
        let begin = Instant::now();
        for (second, calls) in [(0, 5), (1, 25), (3, 65)] {
            rates.take(reading(begin, second, &[("forward pass", calls, 1000)]), RING_DURATION);
        }
        let found = rates.within(&(NOW..NOW + 10 * SECOND));
        let [series] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (series.source.as_str(), series.metric.as_str()),
            ("recorder", "forward_pass")
        );
        assert_eq!(series.value, [20.0, 20.0]);
        assert_eq!(rates.within(&(NOW..NOW + SECOND / 2)), []);
    }

    #[test]
    fn names_are_bounded_and_one_that_took_twice_as_long_takes_a_place() {
        let mut rates = Rates::default();
        let names: Vec<(String, u64)> = (0..40).map(|number| (format!("n{number}"), 100 + number)).collect();
        let mut all: Vec<(&str, u64, u64)> = names.iter().map(|(name, total)| (name.as_str(), 1, *total)).collect();
        let begin = Instant::now();
        rates.take(reading(begin, 0, &all), RING_DURATION);
        assert_eq!(rates.series.len(), MAX_SERIES);
        assert!(rates.series.contains_key("n39") && !rates.series.contains_key("n0"));
        all.extend([("long", 1, 1000), ("not long enough", 1, 130)]);
        rates.take(reading(begin, 1, &all), RING_DURATION);
        assert!(rates.series.contains_key("long") && !rates.series.contains_key("not_long_enough"));
        assert_eq!(rates.series.len(), MAX_SERIES);
    }

    #[test]
    fn readings_of_the_last_ninety_seconds_are_kept_of_names_that_have_a_series() {
        let mut rates = Rates::default();
        let begin = Instant::now();
        for second in 0..100 {
            rates.take(reading(begin, second, &[("step", 3 * second, second)]), RING_DURATION);
        }
        assert_eq!(rates.since(0)["step"].len(), 91);
        let last = rates.since(NOW + 98 * SECOND);
        let counts: Vec<u64> = last["step"].iter().map(|sample| sample.count).collect();
        assert_eq!(counts, [294, 297]);
    }

    #[test]
    fn the_longest_names_are_told_and_how_many_there_are() {
        let mut rates = Rates::default();
        assert_eq!(rates.longest(2), (Vec::new(), 0));
        let counted = [("log", 1, 1), ("step", 7, 2 * SECOND), ("load", 3, SECOND)];
        rates.take(reading(Instant::now(), 0, &counted), RING_DURATION);
        let (longest, all) = rates.longest(2);
        let names: Vec<&str> = longest.iter().map(|named| named.name.as_str()).collect();
        assert_eq!((names, all), (vec!["step", "load"], 3));
    }

    #[test]
    fn a_name_that_is_made_of_dots_names_no_folder_above() {
        assert_eq!([metric(".."), metric(""), metric("a/b c")], ["_", "_", "a_b_c"]);
        assert_eq!(metric(&"x".repeat(1000)).len(), MAX_NAME_BYTES);
    }
}
