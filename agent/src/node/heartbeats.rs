//! The heartbeats of the node's programs: how often and how long ranges of each name ran, read four
//! times a second of the flight recorders' files.
//!
//! **Bound.** Of each container the 16 names that took the longest have a series for a capture, a
//! row of 8 bytes for each second, and the readings of the last 90 s, 48 bytes each. A name that is
//! there gives way to one that took twice as long. Each reading looks at the names that are known;
//! the whole table of names, in which others may have come, is looked at in every fourth.
//!
//! **Each container pays for its own file.** A file is the container's to write, and so it decides
//! how long a reading takes. Each is read on a thread of its own, once at a time, while nothing is
//! locked that another container or a capture needs. After a reading that took some processor time,
//! 200 times as long passes for each container of the node before that container's next one: files
//! of megabytes whose programs wrap them each moment are read less often, and all together take
//! 0.5 % of a core. What never comes back keeps its thread and no more.

#[cfg(test)]
mod hanging;
mod rates;
mod series;
mod turn;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::ops::Range;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flopwatch_api::overhead::{OverheadSignal, OverheadSpec, SignalSource};
use flopwatch_attach::bounded::Gate;
use flopwatch_nvml::{ContainerIdentity, ProcessorClock};
use flopwatch_overhead::Sample;
use flopwatch_pipeline::transform::SampledSeries;
use prometheus::Registry;
use tracing::debug;

use crate::overhead::{NoSignal, Opened, Watch, choose};
use rates::{Rates, Reading};
use series::RangeCollector;
use turn::FileReadings;

/// Time between two readings.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(250);
/// Time before a profiler attaches that its window is compared with.
pub const BASELINE_DURATION: Duration = Duration::from_mins(1);
/// How long readings of a round are waited for.
const ROUND_TIMEOUT: Duration = Duration::from_millis(100);
/// Readings of a round at once.
const MAX_CONCURRENT: usize = 8;
/// Times the processor time of a reading that pass before the next one of the same file, for each
/// file that is held.
const REST_FACTOR: u32 = 200;

/// The heartbeats of the containers whose files are held open.
#[derive(Clone, Debug)]
pub struct Heartbeats {
    /// How long the series are.
    length: Duration,
    /// Readings that are under way, by container.
    gate: Gate,
    /// By the runtime's ID of the container. Held for look-ups alone.
    held: Arc<Mutex<BTreeMap<String, Arc<Beat>>>>,
}

/// One container's.
#[derive(Debug)]
struct Beat {
    whose: ContainerIdentity,
    turn: Mutex<FileReadings>,
    rates: Mutex<Rates>,
}

/// What is locked is whole whatever happened to who held it.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heartbeats {
    /// With series of that length; none where it is zero.
    pub fn new(length: Duration) -> Self {
        Self {
            length,
            gate: Gate::default(),
            held: Arc::default(),
        }
    }

    /// Publishes series of that many names of each container, those that took the longest; none of
    /// none.
    pub(crate) fn publish(&self, names: u16, registry: &Registry) -> prometheus::Result<()> {
        if names == 0 {
            return Ok(());
        }
        registry.register(Box::new(RangeCollector::new(self.clone(), names.into())?))
    }

    /// Reads the file of a container from now on.
    pub fn begin(&self, container_id: &str, whose: ContainerIdentity, file: Arc<File>) {
        let mut held = lock(&self.held);
        let beat = Beat {
            whose,
            turn: Mutex::new(FileReadings::new(file, held.len())),
            rates: Mutex::default(),
        };
        held.insert(container_id.to_owned(), Arc::new(beat));
    }

    /// The container has ended.
    pub(crate) fn end(&self, container_id: &str) {
        lock(&self.held).remove(container_id);
    }

    /// Reads the files whose turn it is, and waits for that, 100 ms at most: what takes longer is
    /// taken in when it comes back, and not read again before. Returns the processor time of the
    /// readings that were waited for.
    pub fn read(&self) -> Duration {
        let until = Instant::now() + ROUND_TIMEOUT;
        let mut due = self.due();
        let (told, ended) = sync_channel(MAX_CONCURRENT);
        let (mut under_way, mut spent) = (0_usize, Duration::ZERO);
        loop {
            while under_way < MAX_CONCURRENT
                && let Some((id, beat)) = due.pop_front()
            {
                under_way += usize::from(self.begin_reading(&id, &beat, &told));
            }
            if under_way == 0 {
                return spent;
            }
            let Ok(took) = ended.recv_timeout(until.saturating_duration_since(Instant::now())) else {
                // Those that were not begun are the first of the next round.
                return spent;
            };
            under_way -= 1;
            spent += took;
        }
    }

    /// The containers that are to be read, those that have waited longest first.
    fn due(&self) -> VecDeque<(String, Arc<Beat>)> {
        let now = Instant::now();
        let held = lock(&self.held);
        let due = held.iter().filter_map(|(id, beat)| {
            let since = lock(&beat.turn).due(now)?;
            Some((since, (id.clone(), Arc::clone(beat))))
        });
        let mut due: Vec<_> = due.collect();
        drop(held);
        due.sort_by_key(|(since, _)| *since);
        due.into_iter().map(|(_, beat)| beat).collect()
    }

    /// Begins to read a container's file; false where it does not. `told` hears the processor time
    /// that it took.
    fn begin_reading(&self, id: &str, beat: &Arc<Beat>, told: &SyncSender<Duration>) -> bool {
        let nothing_known = lock(&beat.rates).is_empty();
        let Some((mut reader, extent)) = lock(&beat.turn).take(nothing_known) else {
            return false;
        };
        let work = move || {
            let clock = ProcessorClock::start();
            let found = reader.read(extent).map(Reading::now);
            (reader, found, clock)
        };
        let (of, beat_of, whose, told) = (self.clone(), Arc::clone(beat), id.to_owned(), told.clone());
        let begun = self.gate.begin(id, work, move |(reader, found, clock)| {
            match found {
                Ok(reading) => lock(&beat_of.rates).take(reading, of.length),
                // A file that is being made, or one that somebody else writes to.
                Err(error) => debug!(container = whose, %error, "a flight recorder's counters cannot be read"),
            }
            let took = clock.elapsed();
            let rest = took.saturating_mul(of.rest());
            lock(&beat_of.turn).give_back(reader, rest);
            // Nobody waits any more where it came late.
            told.send(took).ok();
        });
        if let Err(error) = &begun {
            debug!(container = id, %error, "a flight recorder's counters are not read");
            lock(&beat.turn).begin_anew();
        }
        begun.is_ok()
    }

    /// Times the processor time of a reading that pass before the next one of its file.
    fn rest(&self) -> u32 {
        let held = u32::try_from(lock(&self.held).len()).unwrap_or(u32::MAX);
        REST_FACTOR.saturating_mul(held.max(1))
    }

    /// All containers'.
    fn all(&self) -> Vec<Arc<Beat>> {
        lock(&self.held).values().cloned().collect()
    }

    fn of(&self, container_id: &str) -> Option<Arc<Beat>> {
        lock(&self.held).get(container_id).cloned()
    }

    /// Watches a window of a container that has opened, by the range that shows best how fast its
    /// program is.
    pub fn watch(&self, container_id: &str, spec: &OverheadSpec, opened: Opened) -> Result<Watch, NoSignal> {
        let before_ns = u64::try_from(BASELINE_DURATION.as_nanos()).unwrap_or(u64::MAX);
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
        let beat = self.of(container_id);
        beat.map(|beat| lock(&beat.rates).since(since_ns)).unwrap_or_default()
    }

    /// Series of a container's ranges in a window, in ns since 1970: calls per second by name.
    pub(crate) fn within(&self, container_id: &str, window: Range<u64>) -> Vec<SampledSeries> {
        let beat = self.of(container_id);
        beat.map(|beat| lock(&beat.rates).within(&window)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
