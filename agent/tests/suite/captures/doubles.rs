//! Doubles of the one container and of its GPU: what is inside is what a test says.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use flopwatch_agent::profilers::Progress;
use flopwatch_agent::profilers::containers::{Containers, Probed, Sampler};
use flopwatch_agent::profilers::facts::{Facts, Preparation};
use flopwatch_agent::profilers::ncu::launched::Launched;
use flopwatch_agent::profilers::nsys::collector::Collector;
use flopwatch_attach::graft::{Bounds, GraftError, LauncherState};
use flopwatch_attach::nsys::{Collection, SessionState};
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::rootfs::Volume;
use flopwatch_launcher::guard::Verdict;
use flopwatch_launcher::raw_capture;
use flopwatch_launcher::state::Reason;
use flopwatch_nvml::ContainerIdentity;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::transform::{SampledSeries, Samples};
use futures::FutureExt as _;
use futures::future::BoxFuture;

/// The process that the container runs.
const PROCESS: ProcessId = ProcessId { pid: 7, start_time: 1 };
/// What every raw capture holds.
const RAW: &[u8] = b"a raw capture";

/// The inside of the one container.
#[derive(Debug)]
pub(crate) struct Inside {
    /// Whether the profiler's session is open for a collection; else there are metrics alone.
    pub(crate) nsys: bool,
    /// What the kernel says of the volume that captures are written to.
    pub(crate) volume: Volume,
    /// What the session's supervisor said.
    pub(crate) verdict: Option<Verdict>,
    /// Whether the session hangs on its way to its end.
    pub(crate) hangs: bool,
    /// Bounds of all collections that were started.
    pub(crate) started: Vec<Bounds>,
    /// What the last one records.
    pub(crate) collection: Collection,
    /// The collection that runs.
    pub(crate) collecting: Option<String>,
    /// Raw captures that lie there.
    pub(crate) raw: BTreeMap<String, &'static [u8]>,
    /// Raw captures that were copied out.
    pub(crate) copied: usize,
    /// How often GPUs were sampled.
    pub(crate) sampled: usize,
    /// Ids of the GPUs that the kubelet gave it.
    pub(crate) assigned: Vec<String>,
    /// Whether the container has mapped libcuda.
    pub(crate) cuda: bool,
    /// Share in which the driver saw kernels of its processes.
    pub(crate) gpu: f64,
    /// Processor time that it has used so far, and what it uses between two looks.
    pub(crate) processor: (Duration, Duration),
    /// The program that a profiler starts; none where there is no such.
    pub(crate) launched: Option<Program>,
}

/// A program that its profiler starts, and what the profiler leaves of it.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// What the launcher was told: `begin`, `refuse`, `end`, `let go`.
    pub(crate) told: Vec<&'static str>,
    /// Whether it has ended.
    pub(crate) ended: bool,
    /// Whether it has mapped NCCL.
    pub(crate) nccl: bool,
    /// What the profiler writes when it ends.
    pub(crate) leaves: BTreeMap<&'static str, Vec<u8>>,
}

impl Default for Inside {
    fn default() -> Self {
        Self {
            nsys: false,
            volume: Volume {
                bytes: 100 << 30,
                free: 80 << 30,
            },
            verdict: None,
            hangs: false,
            started: Vec::new(),
            collection: Collection::default(),
            collecting: None,
            raw: BTreeMap::new(),
            copied: 0,
            sampled: 0,
            assigned: Vec::new(),
            cuda: false,
            gpu: 0.0,
            processor: (Duration::ZERO, Duration::ZERO),
            launched: None,
        }
    }
}

impl Inside {
    /// Names of the raw captures of a collection, in the order of their ranges.
    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a String> {
        self.raw
            .keys()
            .filter(move |raw| raw_capture::split_stem(raw).0 == name)
    }

    /// As when the program has gone through so many ranges that are recorded, and the last was the
    /// last that is.
    pub(crate) fn end_ranges(&mut self, count: u32) {
        if let Some(name) = self.collecting.take() {
            for number in 1..=count {
                self.raw.insert(format!("{name}.{number}"), RAW);
            }
        }
    }
}

/// The double of the node's containers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubles(Arc<Mutex<Inside>>);

impl Doubles {
    /// The inside, to look at or to change.
    pub(crate) fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap()
    }
}

impl Containers for Doubles {
    fn probe<'a>(&'a self, _: &'a str, _: bool) -> BoxFuture<'a, Result<Probed, Failure>> {
        let facts = Facts {
            preparation: match &*self.inside() {
                Inside { launched: Some(_), .. } => Preparation::Plain(Reason::Launched),
                Inside { nsys: true, .. } => Preparation::Live,
                _ => Preparation::None,
            },
            nvml: true,
            tools: true,
            ..Facts::default()
        };
        let found = Probed::of(facts, PROCESS);
        async { Ok(found) }.boxed()
    }

    fn probe_held<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Probed, Failure>> {
        self.probe(id, true)
    }

    fn uses_cuda<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        let cuda = self.inside().cuda;
        async move { cuda }.boxed()
    }

    fn assigned<'a>(&'a self, container: &'a ContainerIdentity) -> BoxFuture<'a, Vec<String>> {
        let known = (container.pod.as_str(), container.container.as_str()) == ("p", "main");
        let assigned = if known {
            self.inside().assigned.clone()
        } else {
            Vec::new()
        };
        async { assigned }.boxed()
    }

    fn processor_time(&self, _: &str) -> Option<Duration> {
        let mut inside = self.inside();
        let (used, more) = inside.processor;
        inside.processor.0 += more;
        Some(used)
    }

    fn first_process(&self, _: &str) -> Option<ProcessId> {
        Some(PROCESS)
    }

    fn is_alive(&self, _: ProcessId) -> bool {
        true
    }

    fn collector(&self, _: &str, _: ProcessId) -> Arc<dyn Collector> {
        Arc::new(self.clone())
    }

    fn launched(&self, _: &str, _: ProcessId) -> Arc<dyn Launched> {
        Arc::new(self.clone())
    }

    fn mapped(&self, _: &str) -> Mapped {
        let nccl = self.inside().launched.as_ref().is_some_and(|program| program.nccl);
        Mapped {
            nccl,
            ..Mapped::default()
        }
    }

    fn procfs(&self) -> Procfs {
        Procfs::default()
    }

    fn has_gpus(&self) -> bool {
        true
    }

    fn sample(&self, _: &str, _: Duration) -> Box<dyn Sampler> {
        let mut inside = self.inside();
        inside.sampled += 1;
        Box::new(OneGpu(inside.gpu))
    }
}

/// What a sampler of one GPU would give: its power, and the share of its time that the container's
/// processes had.
struct OneGpu(f64);

impl Sampler for OneGpu {
    fn finish(self: Box<Self>) -> Samples {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = u64::try_from(now.unwrap().as_nanos()).unwrap();
        let series = |metric: &str, unit: &str, value: [f64; 2]| SampledSeries {
            source: "nvml".to_owned(),
            device: "0".to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            t_utc_ns: vec![now - 500_000_000, now - 400_000_000],
            value: value.to_vec(),
        };
        Samples {
            series: vec![
                series("power_watts", "W", [100.0, 110.0]),
                series("process_sm_utilization", "ratio", [self.0, self.0]),
            ],
            ..Samples::default()
        }
    }
}

impl Collector for Doubles {
    fn volume(&self) -> Result<Volume, GraftError> {
        Ok(self.inside().volume)
    }

    fn start(&self, name: &str, collection: &Collection, bounds: Bounds) -> Result<(), GraftError> {
        let mut inside = self.inside();
        inside.started.push(bounds);
        inside.collection = collection.clone();
        inside.collecting = Some(name.to_owned());
        Ok(())
    }

    fn stop(&self, name: &str) -> Result<Vec<PathBuf>, GraftError> {
        let path = |name: &str| PathBuf::from(format!("/flopwatch/run/out/{name}.qdstrm"));
        let mut inside = self.inside();
        if let Some(name) = inside.collecting.take()
            && inside.collection.range.is_none()
        {
            inside.raw.insert(name, RAW);
        }
        let paths: Vec<_> = inside.of(name).map(|name| path(name)).collect();
        if paths.is_empty() {
            return Err(GraftError::NoCapture { path: path(name) });
        }
        Ok(paths)
    }

    fn discard(&self, _: &str) -> Result<(), GraftError> {
        self.inside().collecting = None;
        Ok(())
    }

    fn verdict(&self) -> Option<Verdict> {
        self.inside().verdict
    }

    fn session(&self) -> Result<SessionState, GraftError> {
        let inside = self.inside();
        Ok(match inside.collecting {
            _ if inside.hangs => SessionState::Ending,
            Some(_) => SessionState::Collecting,
            None => SessionState::Idle,
        })
    }

    fn end_session(&self) -> Result<(), GraftError> {
        self.inside().hangs = false;
        Ok(())
    }

    fn await_quiet(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn processor_time(&self) -> Option<Duration> {
        None
    }

    fn captures(&self, name: &str) -> Result<usize, GraftError> {
        Ok(self.inside().of(name).count())
    }

    fn copy_out(&self, path: &Path, to: &mut dyn Write, _: u64, _: Progress<'_>) -> Result<u64, GraftError> {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut inside = self.inside();
        to.write_all(inside.raw[&name]).unwrap();
        inside.copied += 1;
        Ok(1)
    }

    fn remove(&self, name: &str) -> Result<bool, GraftError> {
        let mut inside = self.inside();
        let names: Vec<_> = inside.of(name).cloned().collect();
        inside.raw.retain(|raw, _| !names.contains(raw));
        Ok(!names.is_empty())
    }

    fn launcher(&self) -> Result<Option<LauncherState>, GraftError> {
        Ok(None)
    }

    fn await_launcher(&self, limit: Duration) -> Result<LauncherState, GraftError> {
        Err(GraftError::Undecided(limit))
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn is_alive(&self) -> bool {
        true
    }
}

impl Doubles {
    /// The program that its profiler starts.
    fn program<T>(&self, act: impl FnOnce(&mut Program) -> T) -> T {
        act(self.inside().launched.as_mut().unwrap())
    }
}

impl Launched for Doubles {
    fn volume(&self) -> Result<Volume, GraftError> {
        Ok(self.inside().volume)
    }

    fn begin(&self) -> Result<(), GraftError> {
        self.program(|program| program.told.push("begin"));
        Ok(())
    }

    fn refuse(&self, _: &str) -> Result<(), GraftError> {
        self.program(|program| program.told.push("refuse"));
        Ok(())
    }

    fn end_program(&self) -> Result<(), GraftError> {
        self.program(|program| {
            program.told.push("end");
            program.ended = true;
        });
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.program(|program| program.ended)
    }

    fn written_bytes(&self, name: &str) -> Result<Option<u64>, GraftError> {
        Ok(self.program(|program| {
            let bytes = program.leaves.get(name).filter(|_| program.ended);
            bytes.map(|bytes| u64::try_from(bytes.len()).unwrap())
        }))
    }

    fn copy_written(&self, name: &str, to: &mut dyn Write, _: u64, _: Progress<'_>) -> Result<u64, GraftError> {
        let bytes = self.program(|program| program.leaves.get(name).cloned());
        let bytes = bytes.ok_or(GraftError::Undecided(Duration::ZERO))?;
        to.write_all(&bytes).unwrap();
        Ok(u64::try_from(bytes.len()).unwrap())
    }

    fn let_go(&self, names: &[&str]) -> Result<(), GraftError> {
        self.program(|program| {
            program.leaves.retain(|name, _| !names.contains(name));
            program.told.push("let go");
        });
        Ok(())
    }
}
