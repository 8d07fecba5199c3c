//! The sampling loop: reads what is due, passes samples on, and reopens NVML after it was lost.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;

use super::{Resolver, Shared, Sink, load};
use crate::device::{Extent, Handle, ProcessUtilization, Unsupported, handles};
use crate::error::{Failure, Reason, reason};
use crate::gpm::Gpm;
use crate::metric::Attribution;
use crate::observer::{Observer, Round, WHOLE_ROUNDS, left_out, unwanted};
use crate::processor_clock::ProcessorClock;
use crate::recording::Recorder;
use crate::snapshot::{Snapshot, TimedReading, UnitReading, UnitSnapshot};

/// Waits between attempts to open NVML again.
const MIN_REOPEN_INTERVAL: Duration = Duration::from_secs(1);
const MAX_REOPEN_INTERVAL: Duration = Duration::from_mins(1);

/// Samples of a process older than this many intervals, and a second, say nothing about now.
const STALE_INTERVALS: u32 = 2;

/// The thread's own things.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) library: PathBuf,
    pub(super) resolver: Resolver,
}

/// Why sampling ended.
enum End {
    /// The sampler was told to stop.
    Stop,
    /// NVML does not answer.
    Lost(Reason),
}

/// What is due in one round.
struct Due {
    metrics: bool,
    recorders: Vec<Arc<Mutex<Recorder>>>,
    observers: Vec<DueObserver>,
}

/// An observer that a round is due for.
struct DueObserver {
    id: u64,
    whole: bool,
    observer: Arc<dyn Observer>,
    missed: u64,
}

impl Due {
    /// How much is to be read for all of them.
    fn extent(&self) -> Extent {
        let whole = self.metrics || !self.recorders.is_empty() || self.observers.iter().any(|due| due.whole);
        if whole { Extent::Whole } else { Extent::Quick }
    }
}

impl Worker {
    pub(super) fn run(self, nvml: Nvml) {
        let mut open = Some(nvml);
        let mut wait = MIN_REOPEN_INTERVAL;
        loop {
            let started = Instant::now();
            if let Some(nvml) = open.take() {
                let end = self.sample(&nvml);
                self.shared.set_snapshot(None);
                match end {
                    End::Stop => return,
                    End::Lost(reason) => {
                        tracing::warn!(reason = reason.as_str(), "NVML is lost; opening it again");
                        self.fail_recorders(reason);
                    }
                }
            }
            if started.elapsed() > MAX_REOPEN_INTERVAL {
                wait = MIN_REOPEN_INTERVAL;
            }
            if self.pause(wait) {
                return;
            }
            wait = (wait * 2).min(MAX_REOPEN_INTERVAL);
            match load(self.library.as_os_str()) {
                Ok(nvml) => {
                    self.shared.counters.reopened();
                    tracing::info!("NVML is open again");
                    open = Some(nvml);
                }
                Err(error) => {
                    let reason = reason(&error);
                    self.shared.counters.error(reason);
                    self.fail_recorders(reason);
                }
            }
        }
    }

    /// Samples until NVML is lost. PCIe has a thread beside, because the driver takes 20 ms for
    /// each direction.
    fn sample(&self, nvml: &Nvml) -> End {
        let finished = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let pcie = std::thread::Builder::new().name("flopwatch-pcie".to_owned());
            if let Err(error) = pcie.spawn_scoped(scope, || self.sample_pcie(nvml, &finished)) {
                tracing::warn!(%error, "PCIe throughput is not sampled");
            }
            let end = self.sample_quick(nvml);
            finished.store(true, Ordering::Relaxed);
            // Whoever looked before has begun to wait by now.
            drop(self.shared.control());
            self.shared.wake.notify_all();
            end
        })
    }

    fn sample_quick(&self, nvml: &Nvml) -> End {
        let count_error = |reason| self.shared.counters.error(reason);
        let mut unsupported = Unsupported::default();
        let mut utilization = ProcessUtilization::default();
        let mut units: Vec<Handle<'_>> = Vec::new();
        let mut gpm = Gpm::default();
        let mut next = Instant::now();
        loop {
            let Some(due) = self.wait_for_due(&mut next) else {
                return End::Stop;
            };
            let clock = ProcessorClock::start();
            let end = |reason| {
                self.show(&due, Err(reason), clock.elapsed());
                End::Lost(reason)
            };
            if due.metrics {
                // Partitions come and go, and so may GPUs.
                units = match handles(nvml, &count_error) {
                    Ok((count, units)) if units.is_empty() && count > 0 => return end(Reason::GpuLost),
                    Ok((_, units)) => units,
                    Err(Failure::Error(reason)) => {
                        count_error(reason);
                        return end(reason);
                    }
                    Err(Failure::Unsupported | Failure::NoData) => return end(Reason::Other),
                };
                utilization.forget_older_than(self.shared.interval * STALE_INTERVALS + Duration::from_secs(1));
            }
            let mut readings = Vec::with_capacity(units.len());
            let mut lost = Vec::new();
            for unit in &units {
                let read = unit
                    .read(due.extent(), &mut unsupported, &mut utilization, &count_error)
                    .and_then(|reading| {
                        let gpm = gpm.read(nvml, unit, &mut unsupported, &count_error)?;
                        Ok(self.with_timed(reading, gpm))
                    });
                match read {
                    Ok(reading) => readings.push(reading),
                    Err(reason) if reason.ends_session() => return end(reason),
                    Err(reason) => lost.push((unit.identity.uuid.clone(), reason)),
                }
            }
            units.retain(|unit| lost.iter().all(|(uuid, _)| *uuid != unit.identity.uuid));
            gpm.retain(&units);
            self.show(&due, Ok(&readings), clock.elapsed());
            self.hand_out(&due, &readings, &lost, &unsupported);
            if let (true, Some((_, reason))) = (readings.is_empty(), lost.first()) {
                return End::Lost(*reason);
            }
        }
    }

    /// Waits until something is due; `None` when it is time to stop.
    fn wait_for_due(&self, next: &mut Instant) -> Option<Due> {
        let mut control = self.shared.control();
        loop {
            if control.stop {
                return None;
            }
            let now = Instant::now();
            let mut due = Due {
                metrics: *next <= now,
                recorders: Vec::new(),
                observers: Vec::new(),
            };
            let mut first = *next;
            for (id, active) in &mut control.active {
                if active.next <= now {
                    let late = skipped(now.duration_since(active.next), active.interval);
                    // On the grid of the first sample, so that the rate does not drift.
                    active.next += active.interval * u32::try_from(late.saturating_add(1)).unwrap_or(u32::MAX);
                    match &active.sink {
                        Sink::Recorder(recorder) => {
                            if late > 0 {
                                recorder.lock().unwrap_or_else(PoisonError::into_inner).miss(late);
                                self.shared.counters.missed(late);
                            }
                            due.recorders.push(Arc::clone(recorder));
                        }
                        Sink::Observer(observer) => {
                            due.observers.push(DueObserver {
                                id: *id,
                                whole: active.rounds.is_multiple_of(WHOLE_ROUNDS),
                                observer: Arc::clone(observer),
                                missed: late.saturating_add(std::mem::take(&mut active.left_out)),
                            });
                            active.rounds = active.rounds.wrapping_add(1);
                        }
                    }
                }
                first = first.min(active.next);
            }
            if due.metrics {
                *next = now + self.shared.interval;
            }
            if due.metrics || !due.recorders.is_empty() || !due.observers.is_empty() {
                return Some(due);
            }
            let waited = self
                .shared
                .wake
                .wait_timeout(control, first.saturating_duration_since(now));
            control = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives observers the round, and leaves their next ones out where it took too long, or where
    /// they want none.
    fn show(&self, due: &Due, read: Result<&[UnitReading], Reason>, took: Duration) {
        for DueObserver {
            id, observer, missed, ..
        } in &due.observers
        {
            let wanted = observer.take(&Round {
                whole: due.extent() == Extent::Whole,
                readings: read.unwrap_or_default(),
                missed: missed.saturating_add(u64::from(read.is_err())),
                took,
            });
            if let Some(active) = self.shared.control().active.get_mut(id) {
                let unwanted = unwanted(wanted, active.rounds);
                active.rounds = active.rounds.wrapping_add(unwanted);
                let rounds = left_out(took, active.interval);
                active.left_out = active.left_out.saturating_add(rounds);
                let rounds = rounds.saturating_add(unwanted);
                active.next += active.interval * u32::try_from(rounds).unwrap_or(u32::MAX);
            }
        }
    }

    fn hand_out(&self, due: &Due, readings: &[UnitReading], lost: &[(String, Reason)], unsupported: &Unsupported) {
        for recorder in &due.recorders {
            let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
            let dropped = recorder.take(readings, &|uuid| unsupported.of(uuid).collect());
            self.shared.counters.dropped(dropped);
            for (_, reason) in lost {
                recorder.fail(*reason);
            }
        }
        if due.metrics {
            let resolver = &self.resolver;
            let units = readings
                .iter()
                .map(|reading| UnitSnapshot::attribute(reading, &|pid| resolver(pid)))
                .collect();
            self.shared.set_snapshot(Some(Snapshot {
                taken: Instant::now(),
                units,
            }));
        }
    }

    fn with_timed(&self, mut reading: UnitReading, gpm: Option<TimedReading>) -> UnitReading {
        let pcie = self.shared.pcie.lock().unwrap_or_else(PoisonError::into_inner);
        reading.timed.extend(pcie.get(&reading.device.uuid).cloned());
        reading.timed.extend(gpm);
        reading
    }

    /// Measures PCIe throughput once an interval, and at most once a second, until `finished`.
    fn sample_pcie(&self, nvml: &Nvml, finished: &AtomicBool) {
        let every = self.shared.interval.max(Duration::from_secs(1));
        let mut unsupported = Unsupported::default();
        let is_finished = || finished.load(Ordering::Relaxed);
        while !is_finished() {
            let units = handles(nvml, &|_| ()).map(|(_, units)| units).unwrap_or_default();
            let mut measured = std::collections::HashMap::new();
            for unit in units.iter().filter(|unit| unit.attribution == Attribution::Device) {
                if is_finished() {
                    break;
                }
                // What ends device or session is met, and counted, by the other thread.
                if let Ok(reading) = unit.read_pcie(&mut unsupported, &|_| ()) {
                    measured.insert(unit.identity.uuid.clone(), reading);
                }
            }
            *self.shared.pcie.lock().unwrap_or_else(PoisonError::into_inner) = measured;
            let until = Instant::now() + every;
            let mut control = self.shared.control();
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if is_finished() || left.is_zero() {
                    break;
                }
                let waited = self.shared.wake.wait_timeout(control, left);
                control = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        self.shared.pcie.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits; true when it is time to stop.
    fn pause(&self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        let mut control = self.shared.control();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if control.stop || left.is_zero() {
                return control.stop;
            }
            control = self
                .shared
                .wake
                .wait_timeout(control, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn fail_recorders(&self, reason: Reason) {
        let sinks: Vec<Sink> = self.shared.control().active.values().map(|a| a.sink.clone()).collect();
        for sink in sinks {
            if let Sink::Recorder(recorder) = sink {
                recorder.lock().unwrap_or_else(PoisonError::into_inner).fail(reason);
            }
        }
    }
}

/// Whole intervals that went by unused.
fn skipped(late: Duration, interval: Duration) -> u64 {
    u64::try_from(late.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u64::MAX)
}
