//! A capture of a container that is nothing but its processes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::containers::{Containers, Probed, Sampler};
use flopwatch_agent::profilers::cuda::Cuda;
use flopwatch_agent::profilers::facts::Facts;
use flopwatch_agent::profilers::ncu::launched::Launched;
use flopwatch_agent::profilers::nsys::collector::Collector;
use flopwatch_agent::profilers::{AnyProfiler, Limits, Site, State};
use flopwatch_api::artifact::CUDA_TRACE;
use flopwatch_api::profiler::ProfilerSpec;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::tracer::TraceFile;
use flopwatch_fake_cupti::{Program, Rig};
use flopwatch_model::{Category, Events};
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::cuda_window::{CudaWindow, Order};
use flopwatch_pipeline::disk::Floor;
use flopwatch_pipeline::failure::Failure;
use flopwatch_trace::{ReadLimits, tracer};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tempfile::TempDir;

/// Longest wait for something that is to happen.
const STATE_TIMEOUT: Duration = Duration::from_mins(1);

/// The processes of the one container.
#[derive(Clone, Debug, Default)]
struct Processes(Arc<Mutex<BTreeSet<i32>>>);

impl Containers for Processes {
    fn probe<'a>(&'a self, _: &'a str, _: bool) -> BoxFuture<'a, Result<Probed, Failure>> {
        unreachable!("the test looks itself")
    }

    fn probe_held<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Probed, Failure>> {
        unreachable!("nothing is held")
    }

    fn uses_cuda<'a>(&'a self, _: &'a str) -> BoxFuture<'a, bool> {
        async { true }.boxed()
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        self.procfs().is_alive(process)
    }

    fn includes(&self, _: &str, pid: i32) -> bool {
        self.0.lock().unwrap().contains(&pid)
    }

    fn collector(&self, _: &str, _: ProcessId) -> Arc<dyn Collector> {
        unreachable!("there is no session of Nsight Systems")
    }

    fn launched(&self, _: &str, _: ProcessId) -> Arc<dyn Launched> {
        unreachable!("the program is not a profiler's")
    }

    fn mapped(&self, _: &str) -> Mapped {
        Mapped::default()
    }

    fn procfs(&self) -> Procfs {
        Procfs::default()
    }

    fn processor_time(&self, _: &str) -> Option<Duration> {
        None
    }

    fn has_gpus(&self) -> bool {
        false
    }

    fn sample(&self, _: &str, _: Duration) -> Box<dyn Sampler> {
        unreachable!("there are no GPUs")
    }
}

/// A node with one capture of one container.
pub(crate) struct Node {
    rig: Rig,
    containers: Processes,
    pub(crate) site: Site,
    _folder: TempDir,
}

impl Node {
    /// A container whose libcupti fails so.
    pub(crate) fn new(faults: &str) -> Self {
        let (folder, containers) = (tempfile::tempdir().unwrap(), Processes::default());
        let site = Site {
            containers: Arc::new(containers.clone()),
            container_id: "c".to_owned(),
            process: ProcessId { pid: 0, start_time: 0 },
            capture: "0-1".to_owned(),
            folder: folder.path().to_owned(),
            limits: Limits {
                captures: 1,
                capture_bytes: 64 << 20,
                window_memory_bytes: 32 << 30,
                floor: Floor::default(),
            },
            pod_room: None,
            length: Duration::from_secs(1),
        };
        Self {
            rig: Rig::new(1305).failing(faults),
            containers,
            site,
            _folder: folder,
        }
    }

    /// Starts a program of the container, and CUDA in it.
    pub(crate) fn start(&mut self) -> Program {
        let mut program = self.start_without_cuda();
        assert_eq!(program.ask("init"), "init 0");
        program
    }

    /// Starts a program of the container.
    pub(crate) fn start_without_cuda(&mut self) -> Program {
        let mut program = Program::of(self.rig.command());
        // It answers once it runs, and not what started it.
        let pid: i32 = i32::try_from(program.child.id()).unwrap();
        program.ask("pid");
        self.containers.0.lock().unwrap().insert(pid);
        if self.site.process.pid == 0 {
            self.site.process = Procfs::default().identify(pid).unwrap();
        }
        program
    }

    /// What a probe finds of the container.
    pub(crate) fn facts(&self) -> Facts {
        let procfs = Procfs::default();
        let variables = procfs.variables(self.site.process, &["FLOPWATCH_CUDA_DIR"]);
        let mut facts = Facts {
            variables: variables.unwrap(),
            ..Facts::default()
        };
        let processes = self.containers.processes("c").into_iter();
        let processes: Vec<_> = processes.map(|process| (process, Mapped::default())).collect();
        Cuda::default().inspect(&procfs, &processes, &mut facts.found);
        facts
    }

    /// What a profiler collects of the container, where nothing is said of how.
    pub(crate) fn attach(&self, profiler: &dyn AnyProfiler) -> State {
        let spec = ProfilerSpec {
            type_: profiler.type_(),
            ..ProfilerSpec::default()
        };
        let probed = Probed {
            facts: self.facts(),
            process: self.site.process,
            uses_cuda: true,
            tools: String::new(),
        };
        profiler.attach(&spec, &probed, None).unwrap()
    }

    /// The file that the container's programs share.
    pub(crate) fn trace(&self) -> PathBuf {
        self.rig.trace()
    }

    /// Begins a window, as the agent does.
    pub(crate) fn begin(&mut self, cuda: &Cuda, length: Duration) -> Result<State, Failure> {
        self.site.length = length;
        let state = cuda.prepare(&self.site, self.attach(cuda))?;
        cuda.start(&self.site, &state)?;
        Ok(state)
    }

    /// Begins a window as an agent does that is killed at once: what it drained is lost.
    pub(crate) fn begin_and_die(&self, cuda: &Cuda) -> State {
        let state = cuda.prepare(&self.site, self.attach(cuda)).unwrap();
        let order = Order {
            kinds: Kinds::ALL,
            graphs: GraphLevel::Whole,
            start_at_utc_ns: 0,
            deadline_utc_ns: utc_ns() + 60_000_000_000,
            is_late: true,
        };
        let file = TraceFile::open(&self.rig.trace()).unwrap();
        let drained = self.site.folder.join("cuda.partial");
        drop(CudaWindow::begin(file, &drained, order, &ReadLimits::default()).unwrap());
        state
    }

    /// Kernels and calls that the window left: what the program counts of a launch.
    pub(crate) fn records(&self) -> u64 {
        let file = self.site.folder.join(CUDA_TRACE);
        let capture = tracer::read(&file, &ReadLimits::default()).unwrap();
        assert_eq!(capture.losses.list(), []);
        let count = |category| capture.events.get(&category).map_or(0, Events::count);
        count(Category::CudaKernel) + count(Category::CudaApi)
    }
}

/// Launches kernels until a window records them, then so many more; gives how many records that
/// were, by the program's own count.
pub(crate) fn recorded_from(program: &mut Program, count: u64) -> u64 {
    let begin = Instant::now();
    loop {
        let recorded = program.recorded("launch 1");
        if recorded > 0 {
            return recorded + program.recorded(&format!("launch {count}"));
        }
        assert!(begin.elapsed() < STATE_TIMEOUT, "the window does not begin");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until what a program launches is recorded no more.
pub(crate) fn stops_recording(program: &mut Program) {
    let begin = Instant::now();
    while program.recorded("launch 1") > 0 {
        assert!(begin.elapsed() < STATE_TIMEOUT, "the window does not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}
