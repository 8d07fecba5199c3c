//! What is open for a container: read from procfs and the run folder, without touching the target.

use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::graft::Target;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_nvml::GpuState;
use flopwatch_pipeline::failure::Failure;
use tokio::time::{Instant, sleep};

use super::{Host, gpu};
use crate::nsys_versions::NsysVersions;
use crate::profilers::Registry;
use crate::profilers::containers::Probed;
use crate::profilers::facts::{Facts, Preparation};
use crate::profilers::gpu_facts::GpuFacts;
use crate::profilers::nsys::prepared::{self, Prepared};

/// How long a launcher that still waits is waited for: longer than its own bound.
const LAUNCHER_TIMEOUT: Duration = Duration::from_secs(25);
/// Pause between two looks at it.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long a process may take to end whose files are gone already.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// What the agent brings along.
#[derive(Clone)]
struct AgentFacts {
    nvml: bool,
    driver: Option<u32>,
    gpus: Vec<GpuState>,
    services: gpu::Services,
    nsys_versions: Arc<NsysVersions>,
    profilers: Registry,
}

impl AgentFacts {
    fn of(host: &Host) -> Self {
        Self {
            nvml: host.gpus.is_available(),
            driver: host.gpus.cuda_driver(),
            gpus: host.gpus.states(),
            services: host.services.clone(),
            nsys_versions: Arc::clone(&host.nsys_versions),
            profilers: host.profilers.clone(),
        }
    }
}

/// Looks at a running container.
pub(super) async fn probe(host: &Host, container_id: &str, prepared: bool) -> Result<Probed, Failure> {
    let deadline = Instant::now() + LAUNCHER_TIMEOUT;
    loop {
        let (seen, waiting) = inspect(host, container_id, prepared).await?;
        if !waiting || Instant::now() >= deadline {
            return Ok(seen);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Looks at a container that is held: its launcher waits, and its session is there.
pub(super) async fn probe_held(host: &Host, container_id: &str) -> Result<Probed, Failure> {
    let (procfs, id) = (host.procfs.clone(), container_id.to_owned());
    let own = AgentFacts::of(host);
    let mut grafted = host.way_in(container_id, ProcessId { pid: 0, start_time: 0 });
    let looked = tokio::task::spawn_blocking(move || {
        let processes = processes(&procfs, &id)?;
        grafted.process = first(&processes)?;
        let prepared = prepared::live(&grafted, &own.nsys_versions)
            .map_err(|failure| unless_ended(failure, &procfs, &id, grafted.process))?;
        probed(&procfs, &processes, prepared, &own)
    });
    looked.await.map_err(Failure::because(CaptureReason::AttachFailed))?
}

/// Whether any process of the container has mapped libcuda.
pub(super) async fn uses_cuda(host: &Host, container_id: &str) -> bool {
    let (procfs, id) = (host.procfs.clone(), container_id.to_owned());
    let looked = tokio::task::spawn_blocking(move || mapped(&procfs, &id).cuda);
    looked.await.unwrap_or(false)
}

/// Libraries that the processes of a container have mapped.
pub(super) fn mapped(procfs: &Procfs, container_id: &str) -> Mapped {
    let processes = procfs.of_container(container_id).unwrap_or_default();
    union(processes.iter().filter_map(|process| procfs.mapped(*process).ok()))
}

async fn inspect(host: &Host, container_id: &str, prepared: bool) -> Result<(Probed, bool), Failure> {
    // The process is replaced below by the container's own.
    let grafted = host.way_in(container_id, ProcessId { pid: 0, start_time: 0 });
    let (procfs, id) = (host.procfs.clone(), container_id.to_owned());
    let own = AgentFacts::of(host);
    let looked = tokio::task::spawn_blocking(move || look_at(&procfs, grafted, &id, prepared, &own)).await;
    looked.map_err(Failure::because(CaptureReason::AttachFailed))?
}

fn look_at(
    procfs: &Procfs,
    mut grafted: Target,
    container_id: &str,
    prepared: bool,
    own: &AgentFacts,
) -> Result<(Probed, bool), Failure> {
    let processes = processes(procfs, container_id)?;
    grafted.process = first(&processes)?;
    let preparation = if prepared {
        prepared::inspect(&grafted, &own.nsys_versions)
            .map_err(|failure| unless_ended(failure, procfs, container_id, grafted.process))?
    } else {
        Preparation::None.into()
    };
    let waiting = preparation.how == Preparation::Waiting;
    Ok((probed(procfs, &processes, preparation, own)?, waiting))
}

fn first(processes: &[ProcessId]) -> Result<ProcessId, Failure> {
    processes.first().copied().ok_or_else(|| has_ended("that was probed"))
}

fn has_ended(container_id: &str) -> Failure {
    let message = format!("no process of container {container_id} is on this node; it has ended");
    Failure::new(CaptureReason::TargetNotRunning, message)
}

/// `failure` of a look at a container; or that it has ended, where `process`, its first one, went
/// away under the look.
#[expect(clippy::disallowed_methods, reason = "it runs on a thread for blocking work")]
fn unless_ended(failure: Failure, procfs: &Procfs, container_id: &str, process: ProcessId) -> Failure {
    // Its files are gone a moment before it is.
    let until = Instant::now() + EXIT_TIMEOUT;
    while procfs.is_alive(process) {
        if Instant::now() >= until {
            return failure;
        }
        std::thread::sleep(EXIT_TIMEOUT / 10);
    }
    has_ended(container_id)
}

/// The processes of a container, its first before the others.
fn processes(procfs: &Procfs, container_id: &str) -> Result<Vec<ProcessId>, Failure> {
    let processes = procfs
        .of_container(container_id)
        .map_err(Failure::because(CaptureReason::AttachFailed))?;
    if processes.is_empty() {
        return Err(has_ended(container_id));
    }
    Ok(processes)
}

fn probed(procfs: &Procfs, processes: &[ProcessId], prepared: Prepared, own: &AgentFacts) -> Result<Probed, Failure> {
    let process = first(processes)?;
    let each = processes
        .iter()
        .filter_map(|process| Some((*process, procfs.mapped(*process).ok()?)));
    let each: Vec<_> = each.collect();
    let found = own.profilers.inspect(procfs, &each);
    let mapped = union(each.into_iter().map(|(_, mapped)| mapped));
    // Absent where the environment cannot be read: the doors that it would tell of are closed for
    // this version anyway.
    let names: Vec<_> = own.profilers.variables().into_iter().collect();
    let variables = procfs.variables(process, &names).unwrap_or_default();
    let facts = Facts {
        preparation: prepared.how,
        detail: prepared.detail,
        mapped,
        variables,
        gpu: GpuFacts {
            driver: own.driver,
            ..gpu::inspect(procfs, processes, &own.gpus, &own.services)
        },
        found,
        nvml: own.nvml,
        tools: !own.nsys_versions.is_empty(),
        outdated: own.nsys_versions.outdated(),
    };
    Ok(Probed {
        tools: prepared.tools,
        ..Probed::of(facts, process)
    })
}

fn union(all: impl Iterator<Item = Mapped>) -> Mapped {
    let mut union = Mapped::default();
    for mapped in all {
        union.cuda |= mapped.cuda;
        union.nccl |= mapped.nccl;
        union.torch |= mapped.torch;
        union.dcgm_profiling |= mapped.dcgm_profiling;
        union.jax |= mapped.jax;
        union.musl |= mapped.musl;
        union.cupti = union.cupti.or(mapped.cupti);
        union.profilers.extend(mapped.profilers);
    }
    union
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_fails_because_the_container_ended_says_so() {
        let procfs = Procfs::new("/proc");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = procfs.identify(i32::try_from(child.id()).unwrap()).unwrap();
        let reason = || {
            let failure = Failure::new(CaptureReason::AttachFailed, "no root");
            unless_ended(failure, &procfs, "c0ffee", process).reason
        };
        assert_eq!(reason(), CaptureReason::AttachFailed);
        // Not waited for yet: a zombie.
        child.kill().unwrap();
        assert_eq!(reason(), CaptureReason::TargetNotRunning);
        child.wait().unwrap();
        assert_eq!(reason(), CaptureReason::TargetNotRunning);
    }
}
