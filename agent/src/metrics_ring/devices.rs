//! What NVML said of the node's GPUs and partitions, and which containers had processes on them.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use flopwatch_nvml::{Metric, ProcessTotal, TimedReading, UnitReading};
use flopwatch_pipeline::transform::EarlierSamples;

use super::span::{NVML, Name, Span};
use super::track::{Track, rows};

/// GPUs and partitions that are kept: eight GPUs of seven partitions each.
pub(super) const MAX_UNITS: usize = 64;
/// Pairs of a container and a GPU or partition on which it has processes that are kept.
pub(super) const MAX_HOLDERS: usize = 128;
/// Time between two values of PCIe throughput, in rounds.
const PCIE_ROUNDS: usize = 10;
/// How long the answer to whose a process is holds.
const OWNER_CACHE_TTL: Duration = Duration::from_secs(1);

/// Finds the container of a process, by its 64 hex digits, from the PID on the host.
pub(super) type ContainerOf = Box<dyn Fn(u32) -> Option<String> + Send + Sync>;

/// The tracks of all units.
pub(super) struct Devices {
    length: Duration,
    container_of: ContainerOf,
    /// By UUID.
    units: BTreeMap<String, Unit>,
    known: HashMap<u32, (Instant, Option<String>)>,
    /// Whether a container was on any unit in the last round in which processes were read.
    used: bool,
}

/// The tracks of a GPU or partition.
#[derive(Debug)]
struct Unit {
    parent: Option<String>,
    quick: Track,
    gpm: Track,
    pcie: Track,
    /// By container.
    holders: BTreeMap<String, Holder>,
}

/// What a container's processes have of a unit.
#[derive(Debug)]
struct Holder {
    /// A row for each round with processes in which any was seen.
    memory: Track,
    /// At the driver's own times.
    utilization: Track,
}

impl Devices {
    pub(super) fn new(length: Duration, container_of: ContainerOf) -> Self {
        Self {
            length,
            container_of,
            units: BTreeMap::new(),
            known: HashMap::new(),
            used: false,
        }
    }

    /// Whether a container was on any unit when processes were read last.
    pub(super) const fn is_used(&self) -> bool {
        self.used
    }

    /// Takes a round in, in which processes were read where it is `whole`. Returns how many
    /// readings had no room.
    pub(super) fn take(&mut self, readings: &[UnitReading], whole: bool) -> u64 {
        let now = Instant::now();
        self.known
            .retain(|_, (asked, _)| now.duration_since(*asked) < OWNER_CACHE_TTL);
        let mut refused = 0_u64;
        self.used &= !whole;
        let mut holders: usize = self.units.values().map(|unit| unit.holders.len()).sum();
        for reading in readings {
            let uuid = &reading.device.uuid;
            if !self.units.contains_key(uuid) && self.units.len() < MAX_UNITS {
                let unit = Unit::new(self.length, reading.parent.clone());
                self.units.insert(uuid.clone(), unit);
            }
            let Some(unit) = self.units.get_mut(uuid) else {
                refused = refused.saturating_add(1);
                continue;
            };
            unit.take(reading);
            if !whole {
                continue;
            }
            for (container, total) in totals(reading, &mut self.known, &self.container_of, now) {
                self.used = true;
                if !unit.holders.contains_key(container) && holders >= MAX_HOLDERS {
                    refused = refused.saturating_add(1);
                    continue;
                }
                let before = unit.holders.len();
                unit.hold(container, reading.unix_ns, total, self.length);
                holders = holders.saturating_add(unit.holders.len() - before);
            }
        }
        refused
    }

    /// Drops what is older than that.
    pub(super) fn expire(&mut self, oldest_utc_ns: u64) {
        self.units.retain(|_, unit| {
            for track in [&mut unit.quick, &mut unit.gpm, &mut unit.pcie] {
                track.expire(oldest_utc_ns);
            }
            unit.holders.retain(|_, holder| {
                holder.memory.expire(oldest_utc_ns);
                holder.utilization.expire(oldest_utc_ns);
                !holder.memory.is_empty()
            });
            !unit.quick.is_empty()
        });
    }

    /// Bytes of its tracks.
    pub(super) fn bytes(&self) -> usize {
        self.units.values().map(Unit::bytes).sum()
    }

    /// Adds the series of a container's devices: each from the first to the last round in which a
    /// process of the container was seen there, so that nothing shows of who had the device before
    /// or after it.
    pub(super) fn add(&self, found: &mut EarlierSamples, container_id: &str, span: Span) {
        let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
        for (uuid, unit) in &self.units {
            let holder = unit.holders.get(container_id);
            let Some((holder, had)) = holder.and_then(|holder| Some((holder, holder.span()?.within(span)?))) else {
                continue;
            };
            had.add(found, &holder.memory, 0, name(uuid, Metric::ProcessMemoryUsed));
            had.add(found, &holder.utilization, 0, name(uuid, Metric::ProcessSmUtilization));
            for uuid in std::iter::once(uuid.as_str()).chain(unit.parent.as_deref()) {
                seen.entry(uuid)
                    .and_modify(|known| {
                        known.from = known.from.min(had.from);
                        known.until = known.until.max(had.until);
                    })
                    .or_insert(had);
            }
        }
        for (uuid, had) in seen {
            if let Some(unit) = self.units.get(uuid) {
                unit.add(found, uuid, had);
            }
        }
    }
}

impl Unit {
    fn new(length: Duration, parent: Option<String>) -> Self {
        Self {
            parent,
            holders: BTreeMap::new(),
            quick: Track::new(Metric::QUICK.len(), rows(length, 1)),
            gpm: Track::new(Metric::GPM.len(), rows(length, 1)),
            pcie: Track::new(Metric::PCIE.len(), rows(length, PCIE_ROUNDS)),
        }
    }

    fn take(&mut self, reading: &UnitReading) {
        let quick = Metric::QUICK.iter().map(|metric| reading.values.get(metric).copied());
        self.quick.push(reading.unix_ns, quick);
        for timed in &reading.timed {
            let row = |metrics: &'static [Metric]| metrics.iter().map(|metric| timed.values.get(metric).copied());
            match kind(timed) {
                Some(Timed::Gpm) => self.gpm.push(timed.unix_ns, row(&Metric::GPM)),
                Some(Timed::Pcie) => self.pcie.push(timed.unix_ns, row(&Metric::PCIE)),
                None => {}
            }
        }
    }

    /// Keeps what the processes of a container have of it.
    fn hold(&mut self, container: &str, unix_ns: u64, total: ProcessTotal, length: Duration) {
        if !self.holders.contains_key(container) {
            let holder = Holder {
                memory: Track::new(1, rows(length, 1)),
                utilization: Track::new(1, rows(length, 1)),
            };
            self.holders.insert(container.to_owned(), holder);
        }
        if let Some(holder) = self.holders.get_mut(container) {
            holder.memory.push(unix_ns, [total.memory_used]);
            if let Some((at, ratio)) = total.sm_utilization {
                holder.utilization.push(at, [Some(ratio)]);
            }
        }
    }

    fn bytes(&self) -> usize {
        let holders = self.holders.values();
        let holders = holders.map(|holder| holder.memory.bytes() + holder.utilization.bytes());
        self.quick.bytes() + self.gpm.bytes() + self.pcie.bytes() + holders.sum::<usize>()
    }

    fn add(&self, found: &mut EarlierSamples, uuid: &str, span: Span) {
        let tracks: [(&Track, &[Metric]); 3] = [
            (&self.quick, &Metric::QUICK),
            (&self.gpm, &Metric::GPM),
            (&self.pcie, &Metric::PCIE),
        ];
        for (track, metrics) in tracks {
            for (column, metric) in metrics.iter().enumerate() {
                span.add(found, track, column, name(uuid, *metric));
            }
        }
        span.count_gaps(found, &self.quick, None);
    }
}

impl Holder {
    /// From the first to the last round in which a process of the container was seen.
    fn span(&self) -> Option<Span> {
        Some(Span {
            from: self.memory.first()?,
            until: self.memory.last()?,
        })
    }
}

/// What the processes of each container have of a unit.
fn totals<'a>(
    reading: &UnitReading,
    known: &'a mut HashMap<u32, (Instant, Option<String>)>,
    container_of: &ContainerOf,
    now: Instant,
) -> BTreeMap<&'a str, ProcessTotal> {
    for process in &reading.processes {
        let pid = process.pid;
        known.entry(pid).or_insert_with(|| (now, container_of(pid)));
    }
    let mut totals: BTreeMap<&str, ProcessTotal> = BTreeMap::new();
    for process in &reading.processes {
        if let Some((_, Some(container))) = known.get(&process.pid) {
            totals.entry(container).or_default().add(process);
        }
    }
    totals
}

/// Values with times of their own.
enum Timed {
    Gpm,
    Pcie,
}

fn kind(timed: &TimedReading) -> Option<Timed> {
    let first = timed.values.keys().next()?;
    Some(if first.is_gpm() { Timed::Gpm } else { Timed::Pcie })
}

fn name(uuid: &str, metric: Metric) -> Name<'_> {
    Name {
        source: NVML,
        device: uuid,
        metric: metric.as_str(),
        unit: metric.unit().as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flopwatch_nvml::{Attribution, DeviceIdentity, ProcessReading};

    const NOW: u64 = 1_790_000_000_000_000_000;
    const SECOND: u64 = 1_000_000_000;

    /// Container `a` has the processes below 10, `b` those below 20.
    fn devices() -> Devices {
        let container_of = |pid| match pid {
            0..10 => Some("a".to_owned()),
            10..20 => Some("b".to_owned()),
            _ => None,
        };
        Devices::new(Duration::from_mins(10), Box::new(container_of))
    }

    fn reading(uuid: &str, parent: Option<&str>, unix_ns: u64, pids: &[u32]) -> UnitReading {
        let process = |pid: &u32| ProcessReading {
            pid: *pid,
            memory_used: Some(4.0),
            sm_utilization: Some((unix_ns, 0.25)),
        };
        UnitReading {
            device: DeviceIdentity {
                index: 0,
                uuid: uuid.to_owned(),
                model: "G".to_owned(),
            },
            attribution: Attribution::Device,
            parent: parent.map(str::to_owned),
            unix_ns,
            values: BTreeMap::from([(Metric::Power, 300.0)]),
            timed: vec![
                TimedReading {
                    unix_ns,
                    values: BTreeMap::from([(Metric::SmActivity, 0.5)]),
                    ..TimedReading::default()
                },
                TimedReading {
                    unix_ns,
                    values: BTreeMap::from([(Metric::PcieReceive, 9.0)]),
                    ..TimedReading::default()
                },
            ],
            processes: pids.iter().map(process).collect(),
        }
    }

    fn of(devices: &Devices, container: &str, span: Span) -> Vec<(String, String, usize)> {
        let mut found = EarlierSamples::default();
        devices.add(&mut found, container, span);
        let series = found.series.into_iter();
        series
            .map(|series| (series.device, series.metric, series.value.len()))
            .collect()
    }

    const ALL: Span = Span {
        from: 0,
        until: u64::MAX,
    };

    #[test]
    fn a_container_has_the_series_of_its_own_devices_and_no_others() {
        let mut devices = devices();
        devices.take(
            &[
                reading("GPU-1", None, NOW, &[1, 2, 99]),
                reading("GPU-2", None, NOW, &[11]),
                reading("GPU-3", None, NOW, &[]),
            ],
            true,
        );
        let expected = [
            "process_memory_used",
            "process_sm_utilization",
            "power",
            "sm_activity",
            "pcie_receive",
        ];
        for (container, uuid) in [("a", "GPU-1"), ("b", "GPU-2")] {
            let expected = expected.map(|metric| (uuid.to_owned(), metric.to_owned(), 1));
            assert_eq!(of(&devices, container, ALL), expected, "{container}");
        }
        assert_eq!(of(&devices, "without a GPU", ALL), []);
        assert_eq!(of(&devices, "", ALL), []);
    }

    #[test]
    fn a_device_shows_nothing_of_who_had_it_before_and_after() {
        let mut devices = devices();
        for (second, pids) in [(0, [11]), (1, [1]), (2, [1]), (3, [12])] {
            devices.take(&[reading("GPU-1", None, NOW + second * SECOND, &pids)], true);
        }
        let power = |container, span| {
            let found = of(&devices, container, span).into_iter();
            found
                .filter(|(_, metric, _)| metric == "power")
                .map(|(_, _, points)| points)
                .sum::<usize>()
        };
        assert_eq!(power("a", ALL), 2);
        let first_two = Span {
            from: NOW - SECOND,
            until: NOW + SECOND,
        };
        assert_eq!(power("a", first_two), 1);
    }

    #[test]
    fn a_partition_brings_the_gpu_that_it_is_of() {
        let mut devices = devices();
        devices.take(
            &[
                reading("GPU-1", None, NOW, &[]),
                reading("MIG-1", Some("GPU-1"), NOW, &[1]),
                reading("MIG-2", Some("GPU-1"), NOW, &[11]),
            ],
            true,
        );
        let found = of(&devices, "a", ALL);
        let uuids: std::collections::BTreeSet<_> = found.iter().map(|(uuid, ..)| uuid.as_str()).collect();
        assert_eq!(uuids.into_iter().collect::<Vec<_>>(), ["GPU-1", "MIG-1"]);
    }

    #[test]
    fn gpus_are_used_while_a_container_is_on_one_by_the_last_round_that_tells() {
        let mut devices = devices();
        let mut used = |pids: &[u32], whole: bool| {
            devices.take(
                &[reading("GPU-1", None, NOW, pids), reading("GPU-2", None, NOW, &[])],
                whole,
            );
            devices.is_used()
        };
        assert!(!used(&[], true));
        assert!(used(&[1], true));
        assert!(used(&[], false), "nothing was asked of processes");
        assert!(!used(&[], true));
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let mut devices = devices();
        let readings: Vec<_> = (0..MAX_UNITS + 3)
            .map(|at| reading(&format!("GPU-{at}"), None, NOW, &[]))
            .collect();
        assert_eq!(devices.take(&readings, true), 3);
        let readings: Vec<_> = (0..MAX_HOLDERS + 2)
            .map(|at| reading(&format!("GPU-{at}"), None, NOW, &[1]))
            .collect();
        let beyond = u64::try_from(MAX_HOLDERS + 2 - MAX_UNITS).unwrap();
        assert_eq!(devices.take(&readings, true), beyond, "units");
        let crowd: Vec<u32> = (0..20).collect();
        let readings: Vec<_> = (0..MAX_UNITS)
            .map(|at| reading(&format!("GPU-{at}"), None, NOW, &crowd))
            .collect();
        let mut devices = Devices::new(Duration::from_mins(10), Box::new(|pid| Some(pid.to_string())));
        let pairs = u64::try_from(MAX_UNITS * crowd.len() - MAX_HOLDERS).unwrap();
        assert_eq!(devices.take(&readings, true), pairs, "pairs of a container and a GPU");
    }

    #[test]
    fn a_round_without_processes_does_not_say_that_there_are_none() {
        let mut devices = devices();
        for (second, whole) in [(0, true), (1, false), (2, true)] {
            let pids: &[u32] = if whole { &[1] } else { &[] };
            devices.take(&[reading("GPU-1", None, NOW + second * SECOND, pids)], whole);
        }
        let found = of(&devices, "a", ALL);
        let points = |metric: &str| found.iter().find(|(_, of, _)| of == metric).map(|(.., points)| *points);
        assert_eq!((points("power"), points("process_memory_used")), (Some(3), Some(2)));
    }

    #[test]
    fn a_unit_and_a_holder_go_when_all_of_theirs_is_too_old() {
        let mut devices = devices();
        devices.take(&[reading("GPU-1", None, NOW, &[1])], true);
        assert!(devices.bytes() > 0);
        devices.expire(NOW + SECOND);
        assert_eq!((devices.bytes(), of(&devices, "a", ALL)), (0, vec![]));
    }

    #[test]
    fn eight_gpus_of_ten_minutes_take_what_the_documents_say() {
        let mut devices = devices();
        for round in 0..6001 {
            let at = NOW + round * SECOND / 10;
            let all = (0..8).map(|gpu| {
                let mut reading = reading(&format!("GPU-{gpu}"), None, at, &[1]);
                if round % 2 == 1 {
                    reading.timed.clear();
                }
                reading
            });
            devices.take(&all.collect::<Vec<_>>(), round % 5 == 0);
        }
        let bytes = devices.bytes();
        assert!((3_000_000..4_000_000).contains(&bytes), "{bytes} bytes");
    }
}
