//! Nsight Compute by the product's way: the launcher starts `ncu`, `ncu` starts the program, the
//! agent takes the report.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use flopwatch_agent::profilers::Profiler as _;
use flopwatch_agent::profilers::containers::Probed;
use flopwatch_agent::profilers::facts::Facts;
use flopwatch_agent::profilers::ncu::Ncu;
use flopwatch_api::artifact::NCU_REPORT;
use flopwatch_api::profiler::{NcuOptions, ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use flopwatch_trace::{ReadLimits, ncu};

use super::container::Program as Container;
use super::{Outcome, ProfilersOptions, text};
use crate::counters;
use crate::graft::program::{Program, pause};

/// Launches that were profiled.
pub(super) const KERNELS: &str = "kernels";
/// How long the program may take under the profiler.
const RUN_TIMEOUT: Duration = Duration::from_mins(5);
/// What a sandboxed runtime's driver says in the place of counters.
const SANDBOXED: &str = "LibraryNotLoaded";

/// Profiles our own kernels with a session's default options.
pub(super) fn profile(options: &ProfilersOptions, bundle: &Path, own: &Path, gpu: bool) -> Result<Outcome> {
    let Some(tool) = counters::find() else {
        return Ok(Outcome::NotRun("no ncu on this machine".to_owned()));
    };
    let folder = tempfile::Builder::new().prefix("flopwatch-ncu-").tempdir()?;
    let run = folder.path().join("run");
    std::fs::create_dir(&run)?;
    let mut command = vec![text(&bundle.join("launcher")), "profile".to_owned()];
    command.extend(["--run-dir".to_owned(), text(&run), "--".to_owned(), text(&tool)]);
    command.extend(NcuOptions::default().arguments(&text(&run.join("out"))));
    command.extend([text(own), "kernels".to_owned(), "1000000".to_owned()]);
    let program = Program::spawn(folder.path(), &command)?;
    let target = program.launcher_with("state", bundle, &run, bundle)?;
    let process = target.process;
    let site = Container::launched_as(target).site(folder.path(), Duration::from_secs(options.seconds));

    let probed = Probed {
        facts: Facts::default(),
        process,
        uses_cuda: true,
        tools: String::new(),
    };
    let spec = ProfilerSpec {
        type_: ProfilerType::Ncu,
        ..ProfilerSpec::default()
    };
    let profiler = Ncu::default();
    let failed = |failure: Failure| anyhow!("{failure}");
    let state = profiler.attach(&spec, &probed, None).map_err(failed)?;
    profiler.start(&site, &state).map_err(failed)?;
    let begin = std::time::Instant::now();
    while !profiler.has_ended(&site) {
        if begin.elapsed() >= RUN_TIMEOUT {
            profiler.discard(&site);
            bail!("ncu did not end within {} s", RUN_TIMEOUT.as_secs());
        }
        pause(Duration::from_millis(100));
    }
    match profiler.stop(&site, &state, &|| true) {
        Ok(_) => {}
        Err(failure) if closes(&failure) => return Ok(Outcome::Closed(failure.to_string())),
        // As far as it goes without a driver: the profiler runs the program, and says in its log
        // that it saw no kernel.
        Err(failure) if !gpu && failure.reason == CaptureReason::RequiredEventsMissing => {
            return Ok(Outcome::NotRun(failure.to_string()));
        }
        Err(failure) => return Err(failed(failure)),
    }
    let capture = ncu::read(&folder.path().join(NCU_REPORT), &ReadLimits::default())?;
    let mut found = BTreeMap::from([(KERNELS.to_owned(), u64::try_from(capture.profiles.len())?)]);
    for launch in capture.profiles {
        *found.entry(launch.name).or_default() += u64::try_from(launch.metrics.len())?;
    }
    Ok(Outcome::Found(found))
}

/// Whether it says that this machine gives no counters, rather than that something broke.
fn closes(failure: &Failure) -> bool {
    matches!(
        failure.reason,
        CaptureReason::CountersRestricted | CaptureReason::CountersBusy | CaptureReason::ProfilerUnavailable
    ) || failure.message.contains(SANDBOXED)
}
