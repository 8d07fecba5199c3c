//! The graft with CUDA tracing, on a real GPU: programs started through the launcher, captured
//! twice, their session killed, themselves ended, everything timed. No container takes part: the
//! programs have the machine's own namespaces.

mod pace;
pub(crate) mod program;
mod report;
mod window;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use flopwatch_attach::nsys::{Collection, HostTools, SessionState};
use serde::Serialize;

use crate::findings::Findings as _;
use crate::machine;
use program::{Program, Started, Supervisors, session_process};
use report::GraftResults;
use window::{WindowResult, capture};

/// How the graft is checked.
#[derive(Debug, Args)]
pub(crate) struct GraftOptions {
    /// Where results.json, results.md and the timelines go.
    #[arg(long, default_value = "results-graft")]
    output: PathBuf,
    /// The Python that has PyTorch.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Length of a capture in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Events per step of the small CUDA program.
    #[arg(long, default_value_t = 200_000)]
    events: u64,
    /// Fail where there is no GPU, instead of checking what can be checked without.
    #[arg(long)]
    require_gpu: bool,
}

/// What a capture of a program must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Holds {
    /// GPU kernels.
    Kernels,
    /// NVTX ranges.
    Ranges,
}

/// A program and what it needs.
struct Subject {
    name: &'static str,
    command: Vec<String>,
    holds: Holds,
}

/// What came of one program.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ProgramResult {
    pub(crate) program: String,
    pub(crate) holds: Holds,
    /// Why it did not run.
    pub(crate) not_run: Option<String>,
    /// What failed on the way.
    pub(crate) failed: Option<String>,
    pub(crate) grafted: Option<GraftedResult>,
}

/// What was found of a program that was grafted.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct GraftedResult {
    /// Milliseconds from the start to the first report, without the launcher.
    pub(crate) plain_first_ms: Option<u64>,
    /// Milliseconds from the start to the first report, with the launcher.
    pub(crate) grafted_first_ms: Option<u64>,
    /// How long the launcher held the program back, in milliseconds.
    pub(crate) waited_ms: u64,
    /// Steps per second without the launcher.
    pub(crate) plain_per_second: Option<f64>,
    /// With it, and no collection running.
    pub(crate) idle_per_second: Option<f64>,
    pub(crate) windows: Vec<WindowResult>,
    /// After the session was killed in the middle of a third collection.
    pub(crate) after_kill_per_second: Option<f64>,
    /// How it ended on SIGTERM, plainly and grafted.
    pub(crate) ends: [String; 2],
}

impl ProgramResult {
    /// Whether it did what it must, as far as it ran.
    pub(crate) fn passed(&self) -> bool {
        let whole = |grafted: &GraftedResult| {
            let found = |window: &WindowResult| match self.holds {
                Holds::Kernels => window.kernels > 0,
                Holds::Ranges => window.ranges > 0,
            };
            let [plain, ended] = &grafted.ends;
            grafted.windows.len() == 2
                && grafted.windows.iter().all(found)
                && grafted.after_kill_per_second.is_some_and(|pace| pace > 0.0)
                && plain == ended
        };
        self.failed.is_none() && (self.not_run.is_some() || self.grafted.as_ref().is_some_and(whole))
    }
}

/// Checks every program that can run here, and writes the results.
pub(crate) fn check(options: &GraftOptions) -> Result<()> {
    let own = std::env::current_exe()?;
    let bundle = own.parent().context("this program lies in no folder")?;
    let tools = HostTools {
        nsys: bundle.join("nsys/target-linux-x64/nsys"),
        importer: bundle.join("nsys/host-linux-x64/QdstrmImporter"),
        libraries: vec![bundle.join("nsys/libraries")],
    };
    let machine = machine::describe();
    if options.require_gpu && machine.gpu.is_none() {
        bail!("{}", machine.no_gpu.unwrap_or_default());
    }
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let subjects = [
        Subject {
            name: "ranges without a GPU",
            command: vec![text(&bundle.join("flopwatch-sample-workload"))],
            holds: Holds::Ranges,
        },
        Subject {
            name: "a small CUDA program",
            command: vec![text(&own), "work".to_owned(), options.events.to_string()],
            holds: Holds::Kernels,
        },
        Subject {
            name: "PyTorch",
            command: vec![text(&options.python), text(&bundle.join("torch_program.py"))],
            holds: Holds::Kernels,
        },
    ];
    std::fs::create_dir_all(&options.output)?;
    let mut results = GraftResults::new(machine);
    for subject in &subjects {
        eprintln!("{} ...", subject.name);
        let result = observe(options, bundle, &tools, subject, results.machine.no_gpu.as_deref());
        if let Some(reason) = &result.failed {
            eprintln!("{}: {reason}", subject.name);
        }
        results.programs.push(result);
    }
    results.conclude("the graft", &options.output)
}

fn observe(
    options: &GraftOptions,
    bundle: &Path,
    tools: &HostTools,
    subject: &Subject,
    no_gpu: Option<&str>,
) -> ProgramResult {
    let mut result = ProgramResult {
        program: subject.name.to_owned(),
        holds: subject.holds,
        not_run: None,
        failed: None,
        grafted: None,
    };
    if let (Holds::Kernels, Some(reason)) = (subject.holds, no_gpu) {
        result.not_run = Some(reason.to_owned());
        return result;
    }
    match graft(options, bundle, tools, subject) {
        Ok(Outcome::Observed(grafted)) => result.grafted = Some(*grafted),
        Ok(Outcome::Unavailable(reason)) => result.not_run = Some(reason),
        Err(error) => result.failed = Some(format!("{error:#}")),
    }
    result
}

enum Outcome {
    Observed(Box<GraftedResult>),
    Unavailable(String),
}

/// The whole way of one program.
fn graft(options: &GraftOptions, bundle: &Path, tools: &HostTools, subject: &Subject) -> Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("flopwatch-graft-").tempdir()?;
    let length = Duration::from_secs(options.seconds);
    let session = format!("fw-{}", std::process::id());
    let mut found = GraftedResult::default();

    let plain = match Program::plain(&folder.path().join("plain"), &subject.command)? {
        Started::Running(program) => program,
        Started::Unavailable(reason) => return Ok(Outcome::Unavailable(reason)),
    };
    found.plain_first_ms = plain.first_report_ms();
    found.plain_per_second = plain.works_for(length)?;
    let plain_end = plain.end()?.to_string();

    let place = folder.path().join("grafted");
    let _supervisors = Supervisors::of(&place);
    let (started, target, state) = Program::grafted(bundle, &place, &subject.command, &session)?;
    let program = match started {
        Started::Running(program) => program,
        Started::Unavailable(reason) => return Ok(Outcome::Unavailable(reason)),
    };
    if !state.grafted {
        let why = target.failure().unwrap_or_default();
        bail!(
            "the launcher started it plainly: {} {} {why}",
            state.reason,
            state.detail
        );
    }
    if state.pid != program.pid() {
        bail!("the program has PID {}, the launcher had {}", state.pid, program.pid());
    }
    found.waited_ms = state.waited_ms;
    found.grafted_first_ms = program.first_report_ms();
    found.idle_per_second = program.works_for(length)?;
    for name in ["first", "second"] {
        let output = options
            .output
            .join(format!("{}-{name}.h5", subject.name.replace(' ', "-")));
        let window = capture(tools, &program, &target, &session, name, length, &output)?;
        found.windows.push(window);
    }
    found.after_kill_per_second = kill_session(&program, &target, &session, &place, length)?;
    found.ends = [plain_end, program.end()?.to_string()];
    Ok(Outcome::Observed(Box::new(found)))
}

/// Kills the profiler's session in the middle of a collection; the program's pace afterwards.
fn kill_session(
    program: &Program,
    target: &flopwatch_attach::graft::Target,
    session: &str,
    folder: &Path,
    length: Duration,
) -> Result<Option<f64>> {
    target.start_collection(session, "third", &Collection::default(), window::BOUNDS)?;
    program.works_for(Duration::from_millis(500))?;
    let process = session_process(folder)?.context("the session's process is not found")?;
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(process.pid),
        nix::sys::signal::Signal::SIGKILL,
    )?;
    let pace = program.works_for(length)?;
    if target.session_state(session)? == SessionState::Collecting {
        bail!("the session is said to collect although it was killed");
    }
    Ok(pace)
}
