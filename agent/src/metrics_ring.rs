//! The metrics ring: what the node's GPUs and containers did in the last minutes, in memory,
//! whether or not a capture runs.
//!
//! Ten times a second it takes of every GPU what changes quickly of a capture's own samples, and of
//! every container its processor time; twice a second of GPUs while no container is on any. Twice a
//! second come temperatures, what processes have of a GPU, and containers' memory; GPM comes each
//! second round, PCIe throughput and pressure once a second. A container gets its own series and
//! those of its devices, never another's.
//!
//! **Bound.** A row of a track is 4 bytes of time and 4 for each value. With the usual ten minutes
//! (6,000 rounds) a GPU takes 216 kB for its 8 quick series, 144 to 288 kB for the 11 of GPM and 7
//! kB for PCIe; what a container's processes have on a GPU 19 to 96 kB; a container 67 kB. Eight
//! GPUs, each with one container, are 4 MB, and 50 more containers 3.4 MB. At most 64 GPUs and
//! partitions, 128 pairs of a container and a GPU, and 256 containers are kept, 62 MB; what is
//! beyond is counted.
//!
//! **Cost.** Three threads: NVML is read by the one thread that always reads it, so that a driver
//! that hangs does not stop the containers' samples, and containers' counters are found and opened
//! by another one than reads them. Containers are read for 0.4 ms of a round on average and 2.4 ms
//! at most, the rest in the next one. A round of NVML that takes more than a tenth of the interval
//! leaves the next ones out, and a thread that comes late takes no round twice. What is left out is
//! counted.

mod containers;
mod devices;
mod finder;
mod gauges;
mod rounds;
pub(crate) mod span;
pub(crate) mod track;
mod upkeep;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flopwatch_attach::process::Procfs;
use flopwatch_nvml::{Observation, Observer, Round, Wanted, utc_ns};
use prometheus::Registry;
use tracing::{info, warn};

use containers::Containers;
use devices::Devices;
use finder::Finder;
use flopwatch_pipeline::gpus::Gpus;
use flopwatch_pipeline::transform::EarlierSamples;
use gauges::Gauges;
use span::{NVML, Span};
use track::ROUND_INTERVAL;
use upkeep::Running;

/// Why the ring does not turn.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two metrics share a name.
    #[error("metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
    /// The ring's thread could not be started.
    #[error("the thread of the metrics ring cannot be started")]
    Thread(#[from] std::io::Error),
}

/// What the ring is of.
pub struct Sources<'a> {
    /// How long samples are kept.
    pub length: Duration,
    /// The node's GPUs, or their absence.
    pub gpus: &'a Gpus,
    /// The host's processes, by which a process on a GPU is of a container.
    pub procfs: Procfs,
    /// The host's cgroup file systems.
    pub cgroup_root: PathBuf,
    /// The ids of the containers that run on the node; asked once a second.
    pub running: Running,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// The ring, until it is dropped.
#[derive(Debug)]
pub struct MetricsRing {
    shared: Arc<Shared>,
    /// Rounds of NVML; none without NVML.
    _observation: Option<Observation>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// What the threads share.
struct Shared {
    length: Duration,
    devices: Mutex<Devices>,
    containers: Mutex<Containers>,
    gauges: Gauges,
    signals: Mutex<RingSignals>,
    wake: Condvar,
}

/// What the threads are told.
#[derive(Debug, Default)]
struct RingSignals {
    /// The ring has ended.
    ended: bool,
    /// Containers came since somebody waited for them.
    containers: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl MetricsRing {
    /// Starts it. Without NVML it holds containers alone, without cgroups GPUs alone.
    pub fn start(sources: Sources<'_>, registry: &Registry) -> Result<Self, Error> {
        let of_process = sources.procfs.clone();
        let container_of = move |pid: u32| {
            let container = of_process.container(i32::try_from(pid).ok()?)?;
            Some(container.container_id)
        };
        let mut finder = Finder::new(&sources.cgroup_root, sources.procfs);
        if !finder.is_supported() {
            warn!(root = %sources.cgroup_root.display(), "no cgroup file system counts processor time: the metrics ring holds no containers");
        }
        let shared = Arc::new(Shared {
            length: sources.length,
            devices: Mutex::new(Devices::new(sources.length, Box::new(container_of))),
            containers: Mutex::new(Containers::new(sources.length)),
            gauges: Gauges::register(registry)?,
            signals: Mutex::default(),
            wake: Condvar::new(),
        });
        let observer: Arc<dyn Observer> = Arc::<Shared>::clone(&shared);
        let observation = sources.gpus.observe(ROUND_INTERVAL, observer);
        let gpus = observation.is_some();
        let mut ring = Self {
            shared,
            _observation: observation,
            threads: Vec::new(),
        };
        let (of_thread, running) = (Arc::clone(&ring.shared), sources.running);
        ring.spawn("ring-upkeep", move || upkeep::run(&of_thread, &mut finder, &running))?;
        let of_thread = Arc::clone(&ring.shared);
        ring.spawn("metrics-ring", move || rounds::run(&of_thread))?;
        info!(seconds = sources.length.as_secs(), gpus, "the metrics ring turns");
        Ok(ring)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        self.threads.push(thread.spawn(work)?);
        Ok(())
    }

    /// What it holds of one container, by its 64 hex digits, in the time of `length` that ends at
    /// `until_utc_ns` (ns since 1970): the container's own series, and the whole-device series of
    /// the GPUs and partitions that its processes were on, for as long as they were seen there. A
    /// container that it does not know has no series. Copying some MB, it takes milliseconds.
    pub fn before(&self, container_id: &str, until_utc_ns: u64, length: Duration) -> EarlierSamples {
        let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let span = Span {
            from: until_utc_ns.saturating_sub(length),
            until: until_utc_ns,
        };
        let mut found = EarlierSamples {
            from_utc_ns: span.from,
            until_utc_ns: span.until,
            ..EarlierSamples::default()
        };
        self.shared.containers().add(&mut found, container_id, span);
        self.shared.devices().add(&mut found, container_id, span);
        found
    }
}

impl Drop for MetricsRing {
    fn drop(&mut self) {
        self.shared.signal(|signals| signals.ended = true);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                warn!("a thread of the metrics ring panicked");
            }
        }
    }
}

impl Observer for Shared {
    fn take(&self, round: &Round<'_>) -> Wanted {
        let mut devices = self.devices();
        let refused = devices.take(round.readings, round.whole);
        let is_used = devices.is_used();
        drop(devices);
        self.gauges.no_room_for_devices(refused);
        self.gauges.round(NVML, round.took, round.missed);
        // What a GPU did before a container was on it is shown to nobody.
        if is_used { Wanted::Every } else { Wanted::Whole }
    }
}

impl Shared {
    fn devices(&self) -> MutexGuard<'_, Devices> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn containers(&self) -> MutexGuard<'_, Containers> {
        self.containers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signals(&self) -> MutexGuard<'_, RingSignals> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signal(&self, what: impl FnOnce(&mut RingSignals)) {
        what(&mut self.signals());
        self.wake.notify_all();
    }

    /// Waits until then; false when the ring has ended.
    fn wait_until(&self, then: Instant) -> bool {
        let mut signals = self.signals();
        loop {
            let left = then.saturating_duration_since(Instant::now());
            if signals.ended || left.is_zero() {
                return !signals.ended;
            }
            let waited = self.wake.wait_timeout(signals, left);
            signals = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until containers come, or came since the last time; false when the ring has ended.
    fn wait_for_containers(&self) -> bool {
        let waits = |signals: &mut RingSignals| !signals.ended && !std::mem::take(&mut signals.containers);
        let signals = self.wake.wait_while(self.signals(), waits);
        !signals.unwrap_or_else(PoisonError::into_inner).ended
    }
}
