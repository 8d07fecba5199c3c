//! Profiles that a program records of itself when the agent asks: PyTorch by Kineto, JAX by its
//! profiler service.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use flopwatch_agent::profilers::containers::Probed;
use flopwatch_agent::profilers::facts::Facts;
use flopwatch_agent::profilers::jax::{Jax, service};
use flopwatch_agent::profilers::kineto::Kineto;
use flopwatch_agent::profilers::{Profiler, Site};
use flopwatch_api::artifact::{TRACES, XPLANE};
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType};
use flopwatch_attach::process::{ProcessId, Procfs};
use flopwatch_trace::{ReadLimits, read, xplane};

use super::container::Program as Container;
use super::{Outcome, ProfilersOptions, events, text};
use crate::graft::program::{Program, Started};

/// Events of any category.
pub(super) const ANY: &str = "events";
/// Where the JAX program has its service.
const PORT: u16 = 9012;

/// PyTorch in network and PID namespaces of its own, as a pod has them: the agent enters the first.
pub(super) fn kineto(options: &ProfilersOptions, bundle: &Path, gpu: bool) -> Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("flopwatch-kineto-").tempdir()?;
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary)?;
    let mut command: Vec<String> = vec!["env".into(), "KINETO_USE_DAEMON=1".into()];
    command.push(format!("TMPDIR={}", text(&temporary)));
    // CUDA's driver asks /proc of itself.
    command.extend(["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"].map(str::to_owned));
    command.extend([text(&options.python), text(&bundle.join("torch_program.py"))]);
    command.extend((!gpu).then(|| "cpu".to_owned()));
    let program = match Program::plain(&folder.path().join("program"), &command)? {
        Started::Running(program) => program,
        Started::Unavailable(reason) => return Ok(Outcome::NotRun(reason)),
    };
    let process = child(program.pid())?;
    let mut facts = Facts::default();
    facts.variables.insert("TMPDIR".to_owned(), text(&temporary));
    let profiler = Kineto::default();
    let length = Duration::from_secs(options.seconds);
    let site = Container::plain(process, bundle).site(folder.path(), length);
    record(
        &profiler,
        ProfilerType::Kineto,
        &site,
        &probed(facts, process, gpu),
        &program,
    )?;
    let capture = read(&folder.path().join(TRACES), &ReadLimits::default())?;
    program.works_for(Duration::from_secs(1)).context("after the capture")?;
    Ok(Outcome::Found(events(&capture)))
}

/// JAX, asked at the port that it listens at.
pub(super) fn jax(options: &ProfilersOptions, bundle: &Path, gpu: bool) -> Result<Outcome> {
    let folder = tempfile::Builder::new().prefix("flopwatch-jax-").tempdir()?;
    let mut command = vec![
        text(options.jax_python.as_ref().unwrap_or(&options.python)),
        text(&bundle.join("jax_program.py")),
        PORT.to_string(),
    ];
    command.extend((!gpu).then(|| "cpu".to_owned()));
    let program = match Program::plain(&folder.path().join("program"), &command)? {
        Started::Running(program) => program,
        Started::Unavailable(reason) => return Ok(Outcome::NotRun(reason)),
    };
    let procfs = Procfs::default();
    let process = procfs.identify(i32::try_from(program.pid())?)?;
    let mut facts = Facts::default();
    facts.found.keep(service::find(&procfs, &[process]));
    let length = Duration::from_secs(options.seconds);
    let site = Container::plain(process, bundle).site(folder.path(), length);
    record(
        &Jax::default(),
        ProfilerType::Jax,
        &site,
        &probed(facts, process, gpu),
        &program,
    )?;
    let capture = xplane::read(&folder.path().join(XPLANE), &ReadLimits::default())?;
    program.works_for(Duration::from_secs(1)).context("after the capture")?;
    let mut found = events(&capture);
    let all: u64 = found.values().sum();
    found.insert(ANY.to_owned(), all);
    Ok(Outcome::Found(found))
}

/// One capture as the agent takes it, with the program at work for all of the window.
fn record(
    profiler: &impl Profiler,
    type_: ProfilerType,
    site: &Site,
    probed: &Probed,
    program: &Program,
) -> Result<()> {
    let spec = ProfilerSpec {
        type_,
        ..ProfilerSpec::default()
    };
    let failed = |failure: flopwatch_pipeline::failure::Failure| anyhow!("{failure}");
    let state = profiler.attach(&spec, probed, None).map_err(failed)?;
    let state = profiler.prepare(site, state).map_err(failed)?;
    let recorded = profiler.start(site, &state).map_err(failed).and_then(|()| {
        program.works_for(site.length)?;
        profiler.stop(site, &state, &|| true).map_err(failed)
    });
    if recorded.is_err() {
        profiler.discard(site);
    }
    recorded.map(|_| ())
}

fn probed(facts: Facts, process: ProcessId, uses_cuda: bool) -> Probed {
    Probed {
        facts,
        process,
        uses_cuda,
        tools: String::new(),
    }
}

/// The only child of a process.
fn child(pid: u32) -> Result<ProcessId> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(Procfs::default().identify(children.trim().parse()?)?)
}
