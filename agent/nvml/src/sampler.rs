//! The thread that samples.

mod counters;
mod thread;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError as Raw;

use crate::collector::GpuCollector;
use crate::error::{NvmlError, reason};
use crate::observer::{Observation, Observer};
use crate::recording::{INTERVALS, Recorder, SubscribeError, Subscription, SubscriptionRequest};
use crate::snapshot::{ContainerIdentity, GpuState, Snapshot, TimedReading, UnitSnapshot};
pub(crate) use counters::Counters;

/// The driver's library as its packages name it; the name without a version is in its development
/// package alone.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Most recordings at once.
const MAX_SUBSCRIPTIONS: usize = 64;

/// Finds the container of a process by its PID on the host. Called about once a second for each
/// process on a GPU, on the sampling thread; it should answer in well under a millisecond.
pub type Resolver = Arc<dyn Fn(u32) -> Option<ContainerIdentity> + Send + Sync>;

/// How to sample.
#[derive(Clone)]
pub struct SamplerOptions {
    /// The library to load; `None`: `libnvidia-ml.so.1` where the loader finds it.
    pub library: Option<PathBuf>,
    /// Time between two samples for `/metrics`.
    pub interval: Duration,
    /// Finds the container of a process.
    pub resolver: Resolver,
}

impl SamplerOptions {
    /// The driver's own library, once a second.
    pub fn new(resolver: Resolver) -> Self {
        Self {
            library: None,
            interval: Duration::from_secs(1),
            resolver,
        }
    }
}

impl fmt::Debug for SamplerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SamplerOptions")
            .field("library", &self.library)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

/// Samples the node's GPUs until it is dropped. A GPU that is lost, or a driver that is loaded
/// anew, is met by opening NVML again, with waits of 1 s to 1 min between attempts.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    cuda_driver: Option<u32>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Sampler {
    /// Loads NVML and starts sampling. Fails when there is no NVML that works; call it again later,
    /// or go on without.
    pub fn open(options: SamplerOptions) -> Result<Self, NvmlError> {
        let library = options.library.clone().unwrap_or_else(|| PathBuf::from(LIBRARY));
        let nvml = load(library.as_os_str()).map_err(|source| match source {
            Raw::LibloadingError(_) => NvmlError::Absent {
                library: library.clone(),
                source,
            },
            source => NvmlError::Start {
                reason: reason(&source),
                source,
            },
        })?;
        let cuda_driver = nvml.sys_cuda_driver_version().ok();
        let cuda_driver = cuda_driver.and_then(|version| u32::try_from(version).ok());
        let interval = options.interval.clamp(*INTERVALS.start(), *INTERVALS.end());
        let shared = Arc::new(Shared {
            interval,
            control: Mutex::default(),
            wake: Condvar::new(),
            snapshot: Mutex::default(),
            pcie: Mutex::default(),
            counters: Counters::new(),
        });
        let worker = thread::Worker {
            shared: Arc::clone(&shared),
            library,
            resolver: options.resolver,
        };
        let thread = std::thread::Builder::new()
            .name("flopwatch-nvml".to_owned())
            .spawn(move || worker.run(nvml))?;
        Ok(Self {
            shared,
            cuda_driver,
            thread: Some(thread),
        })
    }

    /// The newest CUDA that the node's driver serves, such as 13000 for 13.0, as NVML said when it
    /// was opened; none where it does not say.
    pub const fn cuda_driver(&self) -> Option<u32> {
        self.cuda_driver
    }

    /// A collector to register once; it shows what was sampled last.
    pub fn collector(&self) -> prometheus::Result<GpuCollector> {
        GpuCollector::new(Arc::clone(&self.shared))
    }

    /// The GPUs and their partitions as they were sampled last, about a second ago; empty while
    /// NVML does not answer.
    pub fn states(&self) -> Vec<GpuState> {
        let units = self.shared.fresh_snapshot().map(|snapshot| snapshot.units);
        units.unwrap_or_default().iter().map(UnitSnapshot::state).collect()
    }

    /// Starts to record for a capture.
    pub fn subscribe(&self, request: SubscriptionRequest) -> Result<Subscription, SubscribeError> {
        if !INTERVALS.contains(&request.interval) {
            return Err(SubscribeError::Interval(request.interval));
        }
        let interval = request.interval;
        let recorder = Arc::new(Mutex::new(Recorder::new(request)));
        Ok(Subscription {
            id: self.begin(interval, Sink::Recorder(Arc::clone(&recorder)))?,
            shared: Arc::clone(&self.shared),
            recorder,
        })
    }

    /// Gives an observer every round of readings, one each `interval`, until the observation is
    /// dropped. It counts as one of the recordings at once.
    pub fn observe(&self, interval: Duration, observer: Arc<dyn Observer>) -> Result<Observation, SubscribeError> {
        if !INTERVALS.contains(&interval) {
            return Err(SubscribeError::Interval(interval));
        }
        Ok(Observation {
            id: self.begin(interval, Sink::Observer(observer))?,
            shared: Arc::clone(&self.shared),
        })
    }

    fn begin(&self, interval: Duration, sink: Sink) -> Result<u64, SubscribeError> {
        let mut control = self.shared.control();
        if control.active.len() >= MAX_SUBSCRIPTIONS {
            return Err(SubscribeError::TooMany(MAX_SUBSCRIPTIONS));
        }
        let id = control.next_id;
        control.next_id += 1;
        let active = Active {
            interval,
            next: Instant::now(),
            rounds: 0,
            left_out: 0,
            sink,
        };
        control.active.insert(id, active);
        drop(control);
        self.shared.wake.notify_all();
        Ok(id)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.control().stop = true;
        self.shared.wake.notify_all();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the sampling thread panicked");
        }
    }
}

fn load(library: &OsStr) -> Result<Nvml, Raw> {
    Nvml::builder().lib_path(library).init()
}

/// What the thread shares with the rest.
#[derive(Debug)]
pub(crate) struct Shared {
    interval: Duration,
    control: Mutex<Control>,
    wake: Condvar,
    snapshot: Mutex<Option<Snapshot>>,
    /// PCIe throughput by UUID, measured beside the rest.
    pcie: Mutex<HashMap<String, TimedReading>>,
    pub(crate) counters: Counters,
}

#[derive(Debug, Default)]
struct Control {
    stop: bool,
    next_id: u64,
    active: BTreeMap<u64, Active>,
}

/// A recording or an observation under way.
#[derive(Debug)]
struct Active {
    interval: Duration,
    next: Instant,
    /// Rounds of an observer so far.
    rounds: u64,
    /// Rounds that were left out because the one before took too long, and that the observer has
    /// not heard of.
    left_out: u64,
    sink: Sink,
}

/// Who takes the readings.
#[derive(Clone)]
enum Sink {
    Recorder(Arc<Mutex<Recorder>>),
    Observer(Arc<dyn Observer>),
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recorder(_) => "Recorder",
            Self::Observer(_) => "Observer",
        })
    }
}

impl Shared {
    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn unsubscribe(&self, id: u64) {
        self.control().active.remove(&id);
    }

    fn set_snapshot(&self, snapshot: Option<Snapshot>) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// The last snapshot, unless it is so old that the thread must be stuck in the driver.
    pub(crate) fn fresh_snapshot(&self) -> Option<Snapshot> {
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = (self.interval * 5).max(Duration::from_secs(10));
        snapshot.clone().filter(|snapshot| snapshot.taken.elapsed() < oldest)
    }
}
