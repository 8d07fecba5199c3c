//! A capture of a container that is nothing but its processes.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use flopwatch_agent::profilers::containers::{Containers as _, Probed};
use flopwatch_agent::profilers::facts::Facts;
use flopwatch_agent::profilers::{AnyProfiler, Journaled, Profiler as _, Site, State, cuda};
use flopwatch_api::artifact::CUDA_TRACE;
use flopwatch_api::capture::LiveFigures;
use flopwatch_api::profiler::ProfilerSpec;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::tracer::TraceFile;
use flopwatch_fake_cupti::{Program, Rig};
use flopwatch_model::{Capture, Category, Events};
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::cuda_window::{CudaWindow, Order};
use flopwatch_pipeline::failure::Failure;
use flopwatch_trace::{ReadLimits, tracer};
use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};
use tempfile::TempDir;

use super::super::processes::Processes;

/// Longest wait for something that is to happen.
const STATE_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) type Cuda = Journaled<cuda::Cuda>;

/// The CUDA tracer, with drivers that no GPU has proven too.
pub(crate) fn cuda() -> Cuda {
    Journaled(cuda::Cuda::new(true))
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
        let nobody = ProcessId { pid: 0, start_time: 0 };
        let site = containers.site(nobody, folder.path(), Duration::from_secs(1));
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

    /// Starts a program of the container that brings a driver of its own, and CUDA in it.
    pub(crate) fn start_with_driver(&mut self, version: u32) -> Program {
        let mut command = self.rig.command();
        command.env("FLOPWATCH_FAKE_DRIVER", version.to_string());
        let mut program = self.start_command(command);
        assert_eq!(program.ask("init"), "init 0");
        program
    }

    /// Starts a program of the container.
    pub(crate) fn start_without_cuda(&mut self) -> Program {
        self.start_command(self.rig.command())
    }

    fn start_command(&mut self, command: Command) -> Program {
        let mut program = Program::of(command);
        // It answers once it runs, and not what started it.
        let pid: i32 = i32::try_from(program.child.id()).unwrap();
        program.ask("pid");
        self.containers.add(pid);
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
    pub(crate) fn attach(&self, profiler: &AnyProfiler) -> State {
        let spec = ProfilerSpec {
            type_: profiler.type_(),
            ..ProfilerSpec::default()
        };
        let probed = Probed::of(self.facts(), self.site.process);
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

    /// Why there is no window: known at its begin, or at its end where the machine is so busy that
    /// the program takes longer to answer than a window waits to begin.
    pub(crate) fn refused(&mut self, cuda: &Cuda) -> Failure {
        match self.begin(cuda, super::WINDOW_DURATION) {
            Ok(state) => cuda.stop(&self.site, &state, &|| true).unwrap_err(),
            Err(failure) => failure,
        }
    }

    /// Begins a window as an agent does that is killed at once: what it drained is lost.
    pub(crate) fn begin_and_die(&self, cuda: &Cuda) -> State {
        let state = cuda.prepare(&self.site, self.attach(cuda)).unwrap();
        drop(self.window());
        state
    }

    /// A window of a minute, which nobody drains yet.
    pub(crate) fn window(&self) -> CudaWindow {
        let order = Order {
            kinds: Kinds::ALL,
            graphs: GraphLevel::Whole,
            start_at_utc_ns: 0,
            deadline_utc_ns: utc_ns() + 60_000_000_000,
            is_late: true,
        };
        let file = TraceFile::open(&self.rig.trace()).unwrap();
        let drained = self.site.folder.join("cuda.partial");
        CudaWindow::begin(file, &drained, order, &ReadLimits::default()).unwrap()
    }

    /// Waits until the open window has told of so many kernels and calls; gives what it told.
    pub(crate) fn told(&self, cuda: &Cuda, count: u64) -> LiveFigures {
        let (begin, count) = (Instant::now(), i64::try_from(count).unwrap());
        loop {
            let figures = cuda.live(&self.site).unwrap_or_default();
            let categories = figures.categories.iter();
            let launched = categories.filter(|one| ["cuda_kernel", "cuda_api"].contains(&one.category.as_str()));
            if launched.map(|one| one.events).sum::<i64>() == count {
                return figures;
            }
            assert!(begin.elapsed() < STATE_TIMEOUT, "{figures:?}, and not {count}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The file that the container's programs share, as one of them may open it.
    pub(crate) fn file(&self) -> File {
        File::options().read(true).write(true).open(self.rig.trace()).unwrap()
    }

    /// Waits until the programs' file holds so many records: libcupti has none of them any more.
    pub(crate) fn await_written(&self, count: u64) {
        let begin = Instant::now();
        let written = || records(&tracer::read(&self.rig.trace(), &ReadLimits::default()).unwrap());
        while written() != count {
            assert!(begin.elapsed() < STATE_TIMEOUT, "{} of {count} records", written());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What the window left.
    pub(crate) fn capture(&self) -> Capture {
        let file = self.site.folder.join(CUDA_TRACE);
        tracer::read(&file, &ReadLimits::default()).unwrap()
    }

    /// Kernels and calls of a window that lost nothing.
    pub(crate) fn records(&self) -> u64 {
        let capture = self.capture();
        assert_eq!(capture.losses.list(), []);
        records(&capture)
    }
}

/// Kernels and calls of a capture: what the program counts of a launch.
pub(crate) fn records(capture: &Capture) -> u64 {
    let count = |category| capture.events.get(&category).map_or(0, Events::count);
    count(Category::CudaKernel) + count(Category::CudaApi)
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
