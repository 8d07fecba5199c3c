//! The heartbeats of the node's programs: how often and how long ranges of each name ran, read four times a second of the flight recorders'
//! files.
//!
//! **Bound.** Of each container the 16 names that took the longest have a series for a capture, a row of 8 bytes for each second, and the
//! readings of the last 90 s, 48 bytes each. A name that is there gives way to one that took twice as long. Each reading looks at the names
//! that are known; the whole table of names, in which others may have come, is looked at in every fourth. After a reading of all that took
//! some processor time, 200 times as long passes before the next one: files of megabytes whose programs wrap them each moment are read less
//! often.

mod series;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flopwatch_api::overhead::{OverheadSignal, OverheadSpec, SignalSource};
use flopwatch_nvml::{ContainerIdentity, ProcessorClock};
use flopwatch_overhead::Sample;
use flopwatch_trace::recorder::{Extent, Heartbeat, NamedRanges};
use prometheus::Registry;
use tracing::debug;

use super::work::utc_ns;
use crate::metrics_ring::span::{Name, Span};
use crate::metrics_ring::track::Track;
use crate::overhead::{NoSignal, Opened, Watch, choose};
use crate::transform::{EarlierSamples, SampledSeries};
use series::RangeCollector;

/// Time between two readings.
pub const BEAT: Duration = Duration::from_millis(250);
/// Time before a profiler attaches that its window is compared with.
pub const BEFORE: Duration = Duration::from_mins(1);
/// Readings of which one looks at the whole table of names; each container has its own turn.
const TURNS: usize = 4;
/// Shortest time between two rows of a series.
const ROW: Duration = Duration::from_millis(900);
/// How long readings are kept.
const KEPT: Duration = Duration::from_secs(90);
/// Names of a container that have a series.
const NAMES: usize = 16;
/// Times the processor time of a reading that pass before the next one.
const REST: u32 = 200;
/// Longest name of a series, in bytes.
const LONGEST: usize = 64;
/// Source of the series.
const RECORDER: &str = "recorder";
/// Where the series are beside those of devices.
const DEVICE: &str = "container";

/// The heartbeats of the containers whose files are held open.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    /// How long the series are.
    length: Duration,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    /// By the runtime's ID of the container.
    beats: BTreeMap<String, Beat>,
    /// No reading before that.
    rested: Option<Instant>,
    /// Readings so far.
    turn: usize,
}

/// What was counted of the ranges of a series.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    calls: u64,
    total_ns: u64,
    /// When the last of them ended, in ns since 1970.
    last_ns: Option<u64>,
}

/// By name of a series.
type Sums = BTreeMap<String, Sum>;

/// One container's.
#[derive(Debug)]
struct Beat {
    whose: ContainerIdentity,
    file: Arc<File>,
    /// None until its program has made the file's header.
    reader: Option<Heartbeat>,
    /// What the last reading said, the longest first.
    counted: Vec<NamedRanges>,
    /// When the last row was added.
    at: Option<Instant>,
    rates: BTreeMap<String, Rate>,
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

impl Heartbeats {
    /// With series of that length; none where it is zero.
    pub fn new(length: Duration) -> Self {
        Self {
            length,
            held: Arc::default(),
        }
    }

    /// Publishes series of that many names of each container, those that took the longest; none of none.
    pub(crate) fn publish(&self, names: u16, registry: &Registry) -> prometheus::Result<()> {
        if names == 0 {
            return Ok(());
        }
        registry.register(Box::new(RangeCollector::new(self.clone(), names.into())?))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file of a container from now on.
    pub fn begin(&self, container_id: &str, whose: ContainerIdentity, file: Arc<File>) {
        let beat = Beat {
            whose,
            file,
            reader: None,
            counted: Vec::new(),
            at: None,
            rates: BTreeMap::new(),
        };
        self.held().beats.insert(container_id.to_owned(), beat);
    }

    /// The container has ended.
    pub(crate) fn end(&self, container_id: &str) {
        self.held().beats.remove(container_id);
    }

    /// Reads the files, unless it has just done so.
    pub fn read(&self) {
        let mut held = self.held();
        if held.rested.is_some_and(|then| Instant::now() < then) {
            return;
        }
        let clock = ProcessorClock::start();
        let turn = held.turn;
        held.turn = turn.wrapping_add(1);
        for (place, (id, beat)) in held.beats.iter_mut().enumerate() {
            let whole = place.wrapping_add(turn).is_multiple_of(TURNS) || beat.rates.is_empty();
            let extent = if whole { Extent::Whole } else { Extent::Known };
            if let Err(error) = beat.read(extent, self.length) {
                // A file that is being made, or one that somebody else writes to.
                debug!(container = id, %error, "a flight recorder's counters cannot be read");
            }
        }
        held.rested = Some(Instant::now() + clock.elapsed() * REST);
    }

    /// Watches a window of a container that has opened, by the range that shows best how fast its program is.
    pub fn watch(&self, container_id: &str, spec: &OverheadSpec, opened: Opened) -> Result<Watch, NoSignal> {
        let before_ns = u64::try_from(BEFORE.as_nanos()).unwrap_or(u64::MAX);
        let mut ranges = self.samples(container_id, opened.attach_ns.saturating_sub(before_ns));
        for samples in ranges.values_mut() {
            samples.retain(|sample| sample.at_ns <= opened.attach_ns);
        }
        let (name, choice) = choose(ranges)?;
        let source = SignalSource::Recorder;
        Ok(Watch::open(OverheadSignal { source, name }, choice, spec, opened))
    }

    /// Takes in what was read of a container since the last time.
    pub fn follow(&self, container_id: &str, watch: &mut Watch) {
        let mut ranges = self.samples(container_id, watch.since_ns());
        watch.take(ranges.remove(&watch.signal.name).unwrap_or_default());
    }

    /// What was read of a container's ranges since a time in ns since 1970, by name, oldest first.
    fn samples(&self, container_id: &str, since_ns: u64) -> BTreeMap<String, Vec<Sample>> {
        let held = self.held();
        let Some(beat) = held.beats.get(container_id) else {
            return BTreeMap::new();
        };
        let of = |rate: &Rate| {
            let from = rate.samples.partition_point(|sample| sample.at_ns < since_ns);
            rate.samples.range(from..).copied().collect()
        };
        beat.rates.iter().map(|(name, rate)| (name.clone(), of(rate))).collect()
    }

    /// Series of a container's ranges in a window, in ns since 1970: calls per second by name.
    pub(crate) fn within(&self, container_id: &str, window: Range<u64>) -> Vec<SampledSeries> {
        let mut found = EarlierSamples::default();
        let span = Span {
            from: window.start,
            until: window.end,
        };
        let held = self.held();
        let Some(beat) = held.beats.get(container_id) else {
            return Vec::new();
        };
        for (metric, rate) in &beat.rates {
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
}

impl Beat {
    fn read(&mut self, extent: Extent, length: Duration) -> Result<(), flopwatch_trace::recorder::Failure> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(Heartbeat::open(&self.file)?),
        };
        self.counted = reader.read(&self.file, extent)?;
        self.counted.sort_by(|one, other| {
            other
                .total_ns
                .cmp(&one.total_ns)
                .then_with(|| one.name.cmp(&other.name))
        });
        let (now, at) = (Instant::now(), utc_ns());
        let passed = self.at.map(|then| now.duration_since(then));
        let sums = self.sums();
        if passed.is_none_or(|passed| passed >= ROW) {
            self.at = Some(now);
            self.add(&sums, passed.map(|passed| passed.as_secs_f64()), at, length);
        }
        self.sample(&sums, at);
        Ok(())
    }

    /// Keeps what was read of each name that has a series.
    fn sample(&mut self, sums: &Sums, at_ns: u64) {
        let oldest = at_ns.saturating_sub(u64::try_from(KEPT.as_nanos()).unwrap_or(u64::MAX));
        for (name, rate) in &mut self.rates {
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

    /// Calls and time by name. Names that differ in letters no series may have are one.
    fn sums(&self) -> Sums {
        let mut sums = Sums::new();
        for named in &self.counted {
            let sum = sums.entry(metric(&named.name)).or_default();
            *sum = Sum {
                calls: sum.calls.saturating_add(named.calls),
                total_ns: sum.total_ns.saturating_add(named.total_ns),
                last_ns: sum.last_ns.max(named.last_utc_ns),
            };
        }
        sums
    }

    /// Adds a row to each series, which are of that length; none where it is zero.
    fn add(&mut self, sums: &Sums, passed: Option<f64>, at: u64, length: Duration) {
        let oldest = at.saturating_sub(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        let rows = usize::try_from(length.as_secs())
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        for (name, total_ns) in entering(&self.rates, sums) {
            if self.rates.len() >= NAMES {
                let least = self.rates.iter().min_by_key(|(_, rate)| rate.total_ns);
                let Some(least) = least
                    .filter(|(_, rate)| total_ns / 2 > rate.total_ns)
                    .map(|(name, _)| name.clone())
                else {
                    break;
                };
                self.rates.remove(&least);
            }
            let calls = sums.get(&name).map_or(0, |sum| sum.calls);
            let track = Track::new(1, rows);
            let rate = Rate {
                calls,
                total_ns,
                track,
                samples: VecDeque::new(),
            };
            self.rates.insert(name, rate);
        }
        for (name, rate) in &mut self.rates {
            let (calls, total_ns) = sums
                .get(name)
                .map_or((rate.calls, rate.total_ns), |sum| (sum.calls, sum.total_ns));
            let done = u32::try_from(calls.saturating_sub(rate.calls)).map_or(f64::from(u32::MAX), f64::from);
            if let Some(passed) = passed.filter(|passed| *passed > 0.0 && !length.is_zero()) {
                rate.track.push(at, [Some(done / passed)]);
            }
            (rate.calls, rate.total_ns) = (calls, total_ns);
            rate.track.expire(oldest);
        }
    }
}

/// Names without a series, those that took the longest first.
fn entering(rates: &BTreeMap<String, Rate>, sums: &Sums) -> Vec<(String, u64)> {
    let without = sums.iter().filter(|(name, _)| !rates.contains_key(*name));
    let mut without: Vec<_> = without.map(|(name, sum)| (name.clone(), sum.total_ns)).collect();
    without.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    without.truncate(NAMES);
    without
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
    let name: String = range.chars().take(LONGEST).map(fit).collect();
    if name.chars().all(|letter| letter == '.') {
        return "_".to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(calls: &[(&str, u64, u64)]) -> Vec<NamedRanges> {
        let named = |(name, calls, total_ns): &(&str, u64, u64)| NamedRanges {
            name: (*name).to_owned(),
            calls: *calls,
            total_ns: *total_ns,
            last_utc_ns: None,
        };
        calls.iter().map(named).collect()
    }

    fn beat() -> Beat {
        Beat {
            whose: ContainerIdentity {
                namespace: "team".to_owned(),
                pod: "p".to_owned(),
                container: "main".to_owned(),
            },
            file: Arc::new(tempfile::tempfile().unwrap()),
            reader: None,
            counted: Vec::new(),
            at: None,
            rates: BTreeMap::new(),
        }
    }

    const LENGTH: Duration = Duration::from_mins(1);
    const SECOND: u64 = 1_000_000_000;
    const NOW: u64 = 1_790_000_000 * SECOND;

    #[test]
    fn a_series_has_calls_per_second_from_the_second_reading_on() {
        let heartbeats = Heartbeats::new(LENGTH);
        let mut beat = beat();
        for (second, calls) in [(0, 5), (1, 25), (3, 65)] {
            beat.counted = named(&[("forward pass", calls, 1000)]);
            let passed = (second > 0).then_some(if second == 1 { 1.0 } else { 2.0 });
            beat.add(&beat.sums(), passed, NOW + second * SECOND, LENGTH);
        }
        heartbeats.held().beats.insert("a".to_owned(), beat);
        let found = heartbeats.within("a", NOW..NOW + 10 * SECOND);
        let [series] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (series.source.as_str(), series.metric.as_str()),
            ("recorder", "forward_pass")
        );
        assert_eq!(series.value, [20.0, 20.0]);
        assert_eq!(heartbeats.within("a", NOW..NOW + SECOND / 2), []);
        assert_eq!(heartbeats.within("another", 0..u64::MAX), []);
    }

    #[test]
    fn names_are_bounded_and_one_that_took_twice_as_long_takes_a_place() {
        let mut beat = beat();
        let many: Vec<(String, u64)> = (0..40).map(|number| (format!("n{number}"), 100 + number)).collect();
        beat.counted = many
            .iter()
            .flat_map(|(name, total)| named(&[(name, 1, *total)]))
            .collect();
        beat.add(&beat.sums(), None, NOW, LENGTH);
        assert_eq!(beat.rates.len(), NAMES);
        assert!(beat.rates.contains_key("n39") && !beat.rates.contains_key("n0"));
        beat.counted
            .extend(named(&[("long", 1, 1000), ("not long enough", 1, 130)]));
        beat.add(&beat.sums(), Some(1.0), NOW + SECOND, LENGTH);
        assert!(beat.rates.contains_key("long") && !beat.rates.contains_key("not_long_enough"));
        assert_eq!(beat.rates.len(), NAMES);
    }

    #[test]
    fn readings_of_the_last_ninety_seconds_are_kept_of_names_that_have_a_series() {
        let heartbeats = Heartbeats::new(LENGTH);
        let mut beat = beat();
        for second in 0..100 {
            beat.counted = named(&[("step", 3 * second, second)]);
            beat.add(&beat.sums(), None, NOW + second * SECOND, LENGTH);
            beat.sample(&beat.sums(), NOW + second * SECOND);
        }
        heartbeats.held().beats.insert("a".to_owned(), beat);
        let all = heartbeats.samples("a", 0);
        assert_eq!(all["step"].len(), 91);
        let last = heartbeats.samples("a", NOW + 98 * SECOND);
        let counts: Vec<u64> = last["step"].iter().map(|sample| sample.count).collect();
        assert_eq!(counts, [294, 297]);
        assert!(heartbeats.samples("another", 0).is_empty());
    }

    #[test]
    fn a_name_that_is_made_of_dots_names_no_folder_above() {
        assert_eq!([metric(".."), metric(""), metric("a/b c")], ["_", "_", "a_b_c"]);
        assert_eq!(metric(&"x".repeat(1000)).len(), LONGEST);
    }

    #[test]
    fn a_file_that_is_no_ring_has_no_heartbeat_and_takes_none_from_others() {
        let heartbeats = Heartbeats::new(LENGTH);
        heartbeats.begin("a", beat().whose, beat().file);
        heartbeats.read();
        assert_eq!(heartbeats.within("a", 0..u64::MAX), []);
        heartbeats.end("a");
        assert!(heartbeats.held().beats.is_empty());
    }

    #[test]
    fn prometheus_has_the_longest_names_of_each_container_and_the_number_of_the_others() {
        let heartbeats = Heartbeats::new(LENGTH);
        let mut beat = beat();
        beat.counted = named(&[("step", 7, 2 * SECOND), ("load", 3, SECOND), ("log", 1, 1)]);
        heartbeats.held().beats.insert("a".to_owned(), beat);
        let registry = Registry::new();
        heartbeats.publish(2, &registry).unwrap();
        let text = prometheus::TextEncoder::new()
            .encode_to_string(&registry.gather())
            .unwrap();
        let whose = "container=\"main\",namespace=\"team\",pod=\"p\"";
        for line in [
            format!("flopwatch_range_calls_total{{{whose},range=\"step\"}} 7"),
            format!("flopwatch_range_seconds_total{{{whose},range=\"load\"}} 1"),
            format!("flopwatch_range_names_left_out{{{whose}}} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(!text.contains("log"), "{text}");
    }
}
