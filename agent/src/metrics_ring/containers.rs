//! What the cgroups of the node's containers said: processor time, memory, pressure.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::{Duration, Instant};

use flopwatch_attach::usage::{ContainerUsage, Pressure};
use flopwatch_model::approximate;
use flopwatch_nvml::ProcessorClock;
use flopwatch_pipeline::transform::EarlierSamples;

use super::span::{CGROUP, Name, Span};
use super::track::{Track, rows};

/// Containers that are kept, those that ended within the ring's length included.
pub(super) const MAX_CONTAINERS: usize = 256;
/// Processor time that a round may take for containers, on average: what is left is read in the
/// next one.
const ROUND_BUDGET: Duration = Duration::from_micros(400);
/// Most that rounds save up for one that an interrupt or a cold cache made longer.
const MAX_SAVED_BUDGET: Duration = ROUND_BUDGET.saturating_mul(5);
/// Containers that are read between two looks at the clock of processor time, which takes as long
/// as reading half of one.
const CONTAINERS_BETWEEN_CLOCK_READS: usize = 4;
/// A reading that takes this long was interrupted, and is of no time that is known.
const MIN_STALL_DURATION: Duration = Duration::from_millis(10);
/// Time between two readings of a container's memory, in rounds.
const MEMORY_ROUNDS: u64 = 5;
/// [`MEMORY_ROUNDS`] as a size.
const MEMORY_ROWS: usize = 5;
/// Time between two readings of a container's pressure, in rounds: the kernel adds up what every
/// processor counted.
const PRESSURE_ROUNDS: u64 = 10;
/// [`PRESSURE_ROUNDS`] as a size.
const PRESSURE_ROWS: usize = 10;

/// Series of [`SampledContainer::processor`].
const PROCESSOR: [(&str, &str); 1] = [("cpu_usage", "cores")];
/// Series of [`SampledContainer::memory`].
const MEMORY: [(&str, &str); 1] = [("memory_used", "bytes")];
/// Series of [`SampledContainer::pressure`].
const PRESSURE: [(&str, &str); 3] = [
    ("cpu_pressure", "ratio"),
    ("memory_pressure", "ratio"),
    ("io_pressure", "ratio"),
];
/// Where the series of a container are beside those of devices.
const DEVICE: &str = "container";

/// The tracks of all containers.
#[derive(Debug)]
pub(super) struct Containers {
    length: Duration,
    held: BTreeMap<String, SampledContainer>,
    /// The container that the last round ended with.
    last: Option<String>,
    round: u64,
    /// Processor time that rounds did not use.
    saved: Duration,
}

/// The tracks of one container, and its counters while it runs.
#[derive(Debug)]
struct SampledContainer {
    open: Option<OpenCounters>,
    /// A row for each round.
    processor: Track,
    memory: Track,
    pressure: Track,
}

/// The counters of a container, and what they said last.
#[derive(Debug)]
struct OpenCounters {
    counters: ContainerUsage,
    processor: Option<(Instant, Duration)>,
    pressure: Option<(Instant, Pressure)>,
    /// So many rounds are its turns for memory and pressure before others'.
    phase: u64,
}

/// What came of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RoundOutcome {
    /// Containers whose counters were read.
    pub(super) read: usize,
    /// Containers that were due and left to the next round.
    pub(super) missed: u64,
}

impl Containers {
    pub(super) const fn new(length: Duration) -> Self {
        Self {
            length,
            held: BTreeMap::new(),
            last: None,
            round: 0,
            saved: MAX_SAVED_BUDGET,
        }
    }

    /// Containers that are sampled now.
    pub(super) fn open(&self) -> usize {
        self.held.values().filter(|held| held.open.is_some()).count()
    }

    /// Takes note of which containers run. Returns those that are not sampled yet.
    pub(super) fn missing(&mut self, running: &BTreeSet<String>) -> BTreeSet<String> {
        for (id, held) in &mut self.held {
            if !running.contains(id) {
                held.open = None;
            }
        }
        let is_open = |id: &String| self.held.get(id).is_some_and(|held| held.open.is_some());
        running.iter().filter(|id| !is_open(id)).cloned().collect()
    }

    /// Samples those from now on. Returns those that have no room.
    pub(super) fn hold(&mut self, found: BTreeMap<String, ContainerUsage>) -> BTreeSet<String> {
        let held = found.into_iter().map(|(id, counters)| self.hold_one(id, counters));
        held.filter_map(Result::err).collect()
    }

    /// Makes room for a container, if need be in the place of the one that ended first.
    fn hold_one(&mut self, id: String, counters: ContainerUsage) -> Result<(), String> {
        if !self.held.contains_key(&id) && self.held.len() >= MAX_CONTAINERS {
            let ended = self.held.iter().filter(|(_, held)| held.open.is_none());
            let first = ended.min_by_key(|(_, held)| held.processor.last());
            let Some(first) = first.map(|(id, _)| id.clone()) else {
                return Err(id);
            };
            self.held.remove(&first);
        }
        let phase = u64::try_from(self.held.len()).unwrap_or_default() % PRESSURE_ROUNDS;
        let length = self.length;
        let held = self.held.entry(id).or_insert_with(|| SampledContainer {
            open: None,
            processor: Track::new(PROCESSOR.len(), rows(length, 1)),
            memory: Track::new(MEMORY.len(), rows(length, MEMORY_ROWS)),
            pressure: Track::new(PRESSURE.len(), rows(length, PRESSURE_ROWS)),
        });
        held.open = Some(OpenCounters {
            counters,
            processor: None,
            pressure: None,
            phase,
        });
        Ok(())
    }

    /// Reads the counters of the containers in turn, for as long as a round may take: from the one
    /// after the last one of the round before. What a round leaves of its time, later ones may
    /// take.
    pub(super) fn read(&mut self, utc_ns: impl Fn() -> u64) -> RoundOutcome {
        self.round = self.round.wrapping_add(1);
        let clock = ProcessorClock::start();
        let allowed = self.saved + ROUND_BUDGET;
        let last = self.last.take();
        let after = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut taken = RoundOutcome::default();
        let mut due = 0_usize;
        let mut out_of_time = false;
        for part in [Some((after, Bound::Unbounded)), last.as_deref().map(until)] {
            let Some(part) = part else { continue };
            for (id, held) in self.held.range_mut::<str, _>(part) {
                if held.open.is_none() {
                    continue;
                }
                due = due.saturating_add(1);
                out_of_time |= taken.read.is_multiple_of(CONTAINERS_BETWEEN_CLOCK_READS) && clock.elapsed() > allowed;
                if !out_of_time {
                    held.read(self.round, utc_ns());
                    taken.read = taken.read.saturating_add(1);
                    self.last.get_or_insert_default().clone_from(id);
                }
            }
        }
        self.saved = MAX_SAVED_BUDGET.min(allowed.saturating_sub(clock.elapsed()));
        taken.missed = u64::try_from(due.saturating_sub(taken.read)).unwrap_or(u64::MAX);
        taken
    }

    /// Drops what is older than that, and containers of which nothing is left.
    pub(super) fn expire(&mut self, oldest_utc_ns: u64) {
        self.held.retain(|_, held| {
            for track in held.tracks_mut() {
                track.expire(oldest_utc_ns);
            }
            held.open.is_some() || !held.processor.is_empty()
        });
    }

    /// Bytes of its tracks.
    pub(super) fn bytes(&self) -> usize {
        let held = self.held.values();
        held.map(|held| held.processor.bytes() + held.memory.bytes() + held.pressure.bytes())
            .sum()
    }

    /// Adds the series of one container.
    pub(super) fn add(&self, found: &mut EarlierSamples, container_id: &str, span: Span) {
        let Some(held) = self.held.get(container_id) else {
            return;
        };
        let tracks: [(&Track, &[(&str, &str)]); 3] = [
            (&held.processor, &PROCESSOR),
            (&held.memory, &MEMORY),
            (&held.pressure, &PRESSURE),
        ];
        for (track, series) in tracks {
            for (column, (metric, unit)) in series.iter().enumerate() {
                let name = Name {
                    source: CGROUP,
                    device: DEVICE,
                    metric,
                    unit,
                };
                span.add(found, track, column, name);
            }
        }
        let end = held.open.as_ref().map(|_| u64::MAX);
        span.count_gaps(found, &held.processor, end);
    }
}

impl SampledContainer {
    const fn tracks_mut(&mut self) -> [&mut Track; 3] {
        [&mut self.processor, &mut self.memory, &mut self.pressure]
    }

    /// Reads the counters. A container that is gone is not read again.
    fn read(&mut self, round: u64, utc_ns: u64) {
        let Some(open) = &mut self.open else { return };
        let now = Instant::now();
        let Ok(time) = open.counters.processor_time() else {
            self.open = None;
            return;
        };
        // The next reading tells what was used meanwhile, where it is not known of which time this
        // one is.
        let is_exact = now.elapsed() < MIN_STALL_DURATION;
        let before = open.processor.filter(|_| is_exact);
        if is_exact {
            open.processor = Some((now, time));
        }
        let cores = before.and_then(|(at, before)| share(time.checked_sub(before), now.duration_since(at)));
        self.processor.push(utc_ns, [cores]);
        let turn = round.wrapping_add(open.phase);
        if turn.is_multiple_of(MEMORY_ROUNDS) {
            let bytes = open.counters.memory_bytes();
            self.memory.push(utc_ns, [bytes.map(|bytes| approximate(bytes.into()))]);
        }
        if turn.is_multiple_of(PRESSURE_ROUNDS) {
            let pressure = open.counters.pressure();
            if let Some((at, before)) = open.pressure.replace((now, pressure)) {
                let took = now.duration_since(at);
                let waited = |now: Option<Duration>, before: Option<Duration>| {
                    share(now.zip(before).and_then(|(now, before)| now.checked_sub(before)), took)
                };
                let row = [
                    waited(pressure.processor, before.processor),
                    waited(pressure.memory, before.memory),
                    waited(pressure.io, before.io),
                ];
                self.pressure.push(utc_ns, row);
            }
        }
    }
}

/// From the first one to that one.
const fn until(id: &str) -> (Bound<&str>, Bound<&str>) {
    (Bound::Unbounded, Bound::Included(id))
}

/// Part of the time that something took.
fn share(of: Option<Duration>, time: Duration) -> Option<f64> {
    Some(of?.as_secs_f64() / time.as_secs_f64()).filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics_ring::finder::{Finder, MAX_RETRY_INTERVAL};
    use flopwatch_attach::process::Procfs;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const SECOND: u64 = 1_000_000_000;
    const NOW: u64 = 1_790_000_000 * SECOND;

    fn id(number: usize) -> String {
        format!("{number:064x}")
    }

    fn ids(numbers: std::ops::Range<usize>) -> BTreeSet<String> {
        numbers.map(id).collect()
    }

    fn folder(root: &TempDir, number: usize) -> PathBuf {
        let pod = "kubepods/pod0a1b2c3d-1111-2222-3333-444455556666";
        root.path().join(pod).join(id(number))
    }

    /// A tree of cgroups with so many containers.
    fn machine(containers: usize) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("cgroup.controllers"), "").unwrap();
        for number in 0..containers {
            let of = folder(&root, number);
            std::fs::create_dir_all(&of).unwrap();
            std::fs::write(of.join("cpu.stat"), "usage_usec 1000000\n").unwrap();
            std::fs::write(of.join("memory.current"), "4096\n").unwrap();
        }
        root
    }

    /// What samples those of a machine.
    struct Sampler {
        containers: Containers,
        finder: Finder,
    }

    impl Sampler {
        fn of(root: &TempDir) -> Self {
            Self {
                containers: Containers::new(Duration::from_mins(10)),
                finder: Finder::new(root.path(), Procfs::new("/nowhere")),
            }
        }

        /// Samples those that run. Returns how many more have no room.
        fn update(&mut self, running: &BTreeSet<String>, now: Instant) -> u64 {
            let missing = self.containers.missing(running);
            self.finder.inspect(missing, now, |found| self.containers.hold(found))
        }
    }

    /// Rounds in which a container was read.
    fn points(containers: &Containers, number: usize) -> usize {
        let held = containers.held.get(&id(number));
        held.map_or(0, |held| held.processor.times().count())
    }

    #[test]
    fn containers_beyond_the_bound_are_counted_once_and_get_in_when_others_end() {
        let root = machine(MAX_CONTAINERS + 3);
        let (mut sampler, now) = (Sampler::of(&root), Instant::now());
        assert_eq!(sampler.update(&ids(0..MAX_CONTAINERS + 3), now), 3);
        assert_eq!(sampler.containers.open(), MAX_CONTAINERS);
        let later = now + MAX_RETRY_INTERVAL * 2;
        assert_eq!(
            sampler.update(&ids(0..MAX_CONTAINERS + 3), later),
            0,
            "they are counted already"
        );
        let is_held = |sampler: &Sampler, at: usize| sampler.containers.held.contains_key(&id(at));
        let left: Vec<_> = (0..MAX_CONTAINERS + 3).filter(|at| !is_held(&sampler, *at)).collect();
        let running = (2..MAX_CONTAINERS + 3).map(id).collect();
        assert_eq!(sampler.update(&running, later + MAX_RETRY_INTERVAL * 2), 0);
        let held = left.iter().filter(|at| is_held(&sampler, **at)).count();
        assert_eq!(
            (held, sampler.containers.held.len()),
            (2, MAX_CONTAINERS),
            "in the place of two that ended"
        );
    }

    #[test]
    fn containers_take_turns_where_a_round_has_no_time_for_all() {
        let root = machine(MAX_CONTAINERS);
        let mut sampler = Sampler::of(&root);
        sampler.update(&ids(0..MAX_CONTAINERS), Instant::now());
        let mut read = 0;
        for round in 0..200 {
            let taken = sampler.containers.read(|| NOW + round * SECOND);
            assert_eq!(
                taken.read + usize::try_from(taken.missed).unwrap(),
                MAX_CONTAINERS,
                "all are accounted for"
            );
            read += taken.read;
        }
        let counts: Vec<_> = (0..MAX_CONTAINERS)
            .map(|number| points(&sampler.containers, number))
            .collect();
        assert_eq!(counts.iter().sum::<usize>(), read);
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1, "{least} to {most}: nobody is passed over");
    }

    #[test]
    fn a_container_that_ended_is_forgotten_after_the_rings_length() {
        let root = machine(1);
        let mut sampler = Sampler::of(&root);
        sampler.update(&ids(0..1), Instant::now());
        sampler.containers.read(|| NOW);
        sampler.containers.read(|| NOW + SECOND);
        sampler.update(&BTreeSet::new(), Instant::now());
        let mut containers = sampler.containers;
        assert_eq!(containers.read(|| NOW + 2 * SECOND), RoundOutcome::default());
        containers.expire(NOW + SECOND / 2);
        assert_eq!(points(&containers, 0), 1);
        containers.expire(NOW + 2 * SECOND);
        assert_eq!((points(&containers, 0), containers.bytes()), (0, 0));
    }
}
