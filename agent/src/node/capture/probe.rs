//! What is open for a container: read from procfs and the run folder, without touching the target.

mod gpu;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::capability::Capability;
use flopwatch_api::pod;
use flopwatch_api::preparation::{NSYS_SESSION, PREPARE_CONTAINERS_ANNOTATION, PreparationWord};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::graft::{GraftError, LauncherState, Target, speaks};
use flopwatch_attach::nsys::SessionState;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::usage::memory::MemoryUsage;
use flopwatch_launcher::state::Reason;
use flopwatch_nvml::{ContainerIdentity, DeviceSelection, GpuState, Resolver};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::{Instant, sleep};
use tracing::{debug, info};

use crate::failure::{Failure, chain};
use crate::gpus::Gpus;
use crate::node::entering::Entering;
use crate::node::pod_resources::PodResources;
use crate::node::{Node, Options};
use crate::profilers::containers::{Containers, Probed, Sampler};
use crate::profilers::facts::{Facts, Preparation, VARIABLES};
use crate::profilers::jax::service;
use crate::profilers::ncu::launched::Launched;
use crate::profilers::nsys::collector::Collector;
use crate::toolbox::Toolbox;

/// How long a launcher that still waits is waited for: longer than its own bound.
const LAUNCHER: Duration = Duration::from_secs(25);
/// Pause between two looks at it.
const LOOK: Duration = Duration::from_millis(250);
/// How long a process may take to end whose files are gone already.
const ENDING: Duration = Duration::from_millis(500);

/// Letters of a version that are looked at.
const VERSION: usize = 64;
/// Letters of the reason why a launcher got no session.
const FAILURE: usize = 300;

/// Name of a capture that was never asked for.
const ABANDONED: &str = "abandoned";

/// The containers of this machine, by its procfs and its NVML.
#[derive(Debug)]
pub struct Host {
    /// The host's processes.
    procfs: Procfs,
    /// How containers are entered.
    entering: Entering,
    /// The versions of the tools that the agent carries.
    toolbox: Arc<Toolbox>,
    /// The node's GPUs.
    gpus: Gpus,
    /// Who knows which container was given which of them; none where nobody is to be asked.
    pod_resources: Option<PodResources>,
    /// What of the node serves its GPUs.
    services: gpu::Services,
}

impl Containers for Host {
    fn probe<'a>(&'a self, container_id: &'a str, prepared: bool) -> BoxFuture<'a, Result<Probed, Failure>> {
        probe(self, container_id, prepared).boxed()
    }

    fn probe_held<'a>(&'a self, container_id: &'a str) -> BoxFuture<'a, Result<Probed, Failure>> {
        probe_held(self, container_id).boxed()
    }

    fn uses_cuda<'a>(&'a self, container_id: &'a str) -> BoxFuture<'a, bool> {
        uses_cuda(self, container_id).boxed()
    }

    fn assigned<'a>(&'a self, container: &'a ContainerIdentity) -> BoxFuture<'a, Vec<String>> {
        let asked = async {
            let Some(kubelet) = &self.pod_resources else {
                return Vec::new();
            };
            kubelet.devices(container).await.unwrap_or_else(|error| {
                info!(reason = %chain(&error), "the kubelet does not say which GPUs a container has");
                Vec::new()
            })
        };
        asked.boxed()
    }

    fn processor_time(&self, container_id: &str) -> Option<Duration> {
        let processes = self.procfs.of_container(container_id).ok()?;
        let times = processes
            .into_iter()
            .filter_map(|process| self.procfs.processor_time(process).ok());
        times.reduce(Duration::saturating_add)
    }

    fn memory(&self, container_id: &str) -> Option<MemoryUsage> {
        MemoryUsage::find(&self.entering.cgroup_root, container_id, &self.procfs)
            .inspect_err(|error| debug!(%error, "nobody counts the container's memory"))
            .ok()
    }

    fn first_process(&self, container_id: &str) -> Option<ProcessId> {
        self.procfs.of_container(container_id).ok()?.first().copied()
    }

    fn is_alive(&self, process: ProcessId) -> bool {
        self.procfs.is_alive(process)
    }

    fn collector(&self, container_id: &str, process: ProcessId) -> Arc<dyn Collector> {
        Arc::new(self.way_in(container_id, process))
    }

    fn launched(&self, container_id: &str, process: ProcessId) -> Arc<dyn Launched> {
        Arc::new(self.way_in(container_id, process))
    }

    fn mapped(&self, container_id: &str) -> Mapped {
        let processes = self.procfs.of_container(container_id).unwrap_or_default();
        union(processes.iter().filter_map(|process| self.procfs.mapped(*process).ok()))
    }

    fn procfs(&self) -> Procfs {
        self.procfs.clone()
    }

    fn has_gpus(&self) -> bool {
        self.gpus.is_available()
    }

    fn sample(&self, container_id: &str, interval: Duration) -> Box<dyn Sampler> {
        let (procfs, container_id) = (self.procfs.clone(), container_id.to_owned());
        let target = move |pid: u32| {
            let container = i32::try_from(pid).ok().and_then(|pid| procfs.container(pid));
            container.is_some_and(|container| container.container_id == container_id)
        };
        let sampling = self.gpus.record(interval, DeviceSelection::OfTarget, Arc::new(target));
        Box::new(sampling)
    }
}

impl Host {
    /// The machine whose processes `procfs` shows, and whose pods `resolver` finds by these.
    pub fn new(
        options: &Options,
        entering: &Entering,
        procfs: &Procfs,
        toolbox: &Arc<Toolbox>,
        gpus: Gpus,
        resolver: Resolver,
    ) -> Self {
        Self {
            procfs: procfs.clone(),
            entering: entering.clone(),
            toolbox: Arc::clone(toolbox),
            gpus,
            pod_resources: options.pod_resources.clone().map(PodResources::new),
            services: gpu::Services::new(options.gpu_service_namespace.clone(), resolver),
        }
    }

    /// The way into a prepared container through one of its processes.
    fn way_in(&self, container_id: &str, process: ProcessId) -> Target {
        self.entering.target(container_id, process)
    }
}

/// The way into a prepared container; none when it ended.
pub(in crate::node) fn grafted(node: &Node, container_id: &str) -> Option<Target> {
    let process = node.procfs.of_container(container_id).ok()?.first().copied()?;
    Some(node.entering.target(container_id, process))
}

/// What the agent brings along.
#[derive(Clone)]
struct Own {
    nvml: bool,
    gpus: Vec<GpuState>,
    services: gpu::Services,
    toolbox: Arc<Toolbox>,
}

impl Own {
    fn of(host: &Host) -> Self {
        Self {
            nvml: host.gpus.is_available(),
            gpus: host.gpus.states(),
            services: host.services.clone(),
            toolbox: Arc::clone(&host.toolbox),
        }
    }
}

/// How a container was prepared.
struct Prepared {
    how: Preparation,
    /// What belongs to it: the launcher's own words, or versions.
    detail: String,
    /// Version of the tools; empty where none were asked.
    tools: String,
}

impl From<Preparation> for Prepared {
    fn from(how: Preparation) -> Self {
        Self {
            how,
            detail: String::new(),
            tools: String::new(),
        }
    }
}

/// Looks at a running container.
async fn probe(host: &Host, container_id: &str, prepared: bool) -> Result<Probed, Failure> {
    let deadline = Instant::now() + LAUNCHER;
    loop {
        let (seen, waiting) = look(host, container_id, prepared).await?;
        if !waiting || Instant::now() >= deadline {
            return Ok(seen);
        }
        sleep(LOOK).await;
    }
}

/// Looks at a container that is held: its launcher waits, and its session is there.
async fn probe_held(host: &Host, container_id: &str) -> Result<Probed, Failure> {
    let (procfs, id) = (host.procfs.clone(), container_id.to_owned());
    let own = Own::of(host);
    let mut grafted = host.way_in(container_id, ProcessId { pid: 0, start_time: 0 });
    let looked = tokio::task::spawn_blocking(move || {
        let processes = processes(&procfs, &id)?;
        grafted.process = first(&processes)?;
        let prepared =
            live(&grafted, &own.toolbox).map_err(|failure| unless_ended(failure, &procfs, &id, grafted.process))?;
        probed(&procfs, &processes, prepared, &own)
    });
    looked.await.map_err(Failure::because(CaptureReason::AttachFailed))?
}

/// Whether any process of the container has mapped libcuda.
async fn uses_cuda(host: &Host, container_id: &str) -> bool {
    let (procfs, id) = (host.procfs.clone(), container_id.to_owned());
    let looked = tokio::task::spawn_blocking(move || {
        let processes = procfs.of_container(&id).unwrap_or_default();
        union(processes.iter().filter_map(|process| procfs.mapped(*process).ok())).cuda
    });
    looked.await.unwrap_or(false)
}

async fn look(host: &Host, container_id: &str, prepared: bool) -> Result<(Probed, bool), Failure> {
    // The process is replaced below by the container's own.
    let grafted = host.way_in(container_id, ProcessId { pid: 0, start_time: 0 });
    let (procfs, id) = (host.procfs.clone(), container_id.to_owned());
    let own = Own::of(host);
    let looked = tokio::task::spawn_blocking(move || look_at(&procfs, grafted, &id, prepared, &own)).await;
    looked.map_err(Failure::because(CaptureReason::AttachFailed))?
}

fn look_at(
    procfs: &Procfs,
    mut grafted: Target,
    container_id: &str,
    prepared: bool,
    own: &Own,
) -> Result<(Probed, bool), Failure> {
    let processes = processes(procfs, container_id)?;
    grafted.process = first(&processes)?;
    let preparation = if prepared {
        preparation(&grafted, &own.toolbox)
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

/// `failure` of a look at a container; or that it has ended, where `process`, its first one, went away under the look.
#[expect(clippy::disallowed_methods, reason = "it runs on a thread for blocking work")]
fn unless_ended(failure: Failure, procfs: &Procfs, container_id: &str, process: ProcessId) -> Failure {
    // Its files are gone a moment before it is.
    let until = Instant::now() + ENDING;
    while procfs.is_alive(process) {
        if Instant::now() >= until {
            return failure;
        }
        std::thread::sleep(ENDING / 10);
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

fn probed(procfs: &Procfs, processes: &[ProcessId], prepared: Prepared, own: &Own) -> Result<Probed, Failure> {
    let process = first(processes)?;
    let each = processes
        .iter()
        .filter_map(|process| Some((*process, procfs.mapped(*process).ok()?)));
    let each: Vec<_> = each.collect();
    let with_jax = each
        .iter()
        .filter(|(_, mapped)| mapped.jax)
        .map(|(process, _)| *process);
    let jax = service::find(procfs, &with_jax.collect::<Vec<_>>());
    let mapped = union(each.into_iter().map(|(_, mapped)| mapped));
    // Absent where the environment cannot be read: the doors that it would tell of are closed for this version anyway.
    let variables: BTreeMap<String, String> = procfs.variables(process, &VARIABLES).unwrap_or_default();
    let uses_cuda = mapped.cuda;
    let facts = Facts {
        preparation: prepared.how,
        detail: prepared.detail,
        mapped,
        variables,
        gpu: gpu::look(procfs, processes, &own.gpus, &own.services),
        jax,
        nvml: own.nvml,
        tools: !own.toolbox.is_empty(),
        outdated: own.toolbox.outdated(),
    };
    Ok(Probed {
        facts,
        process,
        uses_cuda,
        tools: prepared.tools,
    })
}

/// How a prepared container's start went, and whether its session answers.
fn preparation(grafted: &Target, toolbox: &Toolbox) -> Result<Prepared, Failure> {
    let Some(state) = grafted.read_state().map_err(attach_failed)? else {
        return Ok(Preparation::Waiting.into());
    };
    if !speaks(state.protocol) {
        return Ok(Preparation::OtherVersion.into());
    }
    let LauncherState { grafted: true, .. } = state else {
        let detail = if state.detail.is_empty() {
            grafted
                .failure()
                .map(|text| printable(&text, FAILURE))
                .unwrap_or_default()
        } else {
            state.detail
        };
        return Ok(Prepared {
            detail,
            ..Preparation::Plain(Reason::from_name(&state.reason)).into()
        });
    };
    let session = grafted.session_state(NSYS_SESSION).map_err(attach_failed)?;
    debug!(?session, "asked the session");
    match session {
        SessionState::Idle => live(grafted, toolbox),
        SessionState::Collecting => {
            // This agent carries one capture per container, so a collection that runs is one that nobody waits for.
            grafted
                .discard_collection(NSYS_SESSION, ABANDONED)
                .map_err(attach_failed)?;
            live(grafted, toolbox)
        }
        SessionState::Ending => {
            grafted.end_hanging_session().map_err(attach_failed)?;
            Ok(Preparation::SessionLost.into())
        }
        SessionState::Gone | SessionState::Other(_) => Ok(Preparation::SessionLost.into()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn attach_failed(error: GraftError) -> Failure {
    Failure::new(CaptureReason::AttachFailed, chain(&error))
}

/// The beginning of what comes out of a container.
fn printable(text: &str, most: usize) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(most).collect()
}

/// A session that answers, if what it collects can be read here.
fn live(grafted: &Target, toolbox: &Toolbox) -> Result<Prepared, Failure> {
    let text = grafted.tools_version().map_err(attach_failed)?.unwrap_or_default();
    let tools = printable(&text, VERSION);
    if toolbox.is_empty() || toolbox.get(&tools).is_some() {
        return Ok(Prepared {
            tools,
            ..Preparation::Live.into()
        });
    }
    let named = if tools.is_empty() { "of unknown version" } else { &tools };
    Ok(Prepared {
        detail: format!("{named}, and this node's agent carries {}", toolbox.versions()),
        how: Preparation::OtherTools,
        tools,
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
        union.cupti = union.cupti.or(mapped.cupti);
        union.profilers.extend(mapped.profilers);
    }
    union
}

/// Says of a pod that asked to be prepared why it is not: that it should ask is no remedy. What it did not ask for, and
/// what it was prepared for all the same, keeps its own remedy.
pub(super) fn explain_unprepared(capabilities: &mut [Capability], pod: &Pod, container: &str) {
    if !pod::asks_for_preparation(pod) {
        return;
    }
    // A label that cannot be read asked for something, and admission wrote down what is wrong with it.
    let asked = pod::asked_for(pod);
    let prepared = pod::prepared_for(pod, container);
    let is_missing = |capability: &Capability| {
        PreparationWord::of(capability.profiler)
            .is_some_and(|word| asked.as_ref().is_none_or(|asked| asked.contains(word)) && !prepared.contains(word))
    };
    let refused = pod::unprepared(pod).unwrap_or_default();
    let why = refused
        .lines()
        .find_map(|line| line.strip_prefix(container)?.strip_prefix(": "));
    let remedy = match why {
        Some(why) => format!("The pod asks to be prepared, and this container cannot be: {why}"),
        None if refused.is_empty() => {
            "The pod asks to be prepared, and Flopwatch's admission did not see it when it was created. Create it anew."
                .to_owned()
        }
        None => format!(
            "The pod's preparation chose other containers: name {container} in the annotation {PREPARE_CONTAINERS_ANNOTATION} and create the pod anew."
        ),
    };
    let unprepared = |one: &&mut Capability| one.reason == CaptureReason::NotPrepared.as_str() && is_missing(one);
    for capability in capabilities.iter_mut().filter(unprepared) {
        capability.remedy.clone_from(&remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profilers::Registry;
    use flopwatch_api::preparation::{PREPARE_LABEL, PREPARED_FOR_ANNOTATION, UNPREPARED_ANNOTATION};

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

    #[test]
    fn a_pod_that_asked_to_be_prepared_is_not_told_to_ask() {
        let closed = Facts {
            nvml: true,
            ..Facts::default()
        };
        let remedy = |labels: serde_json::Value, annotations: serde_json::Value| {
            let pod: Pod = serde_json::from_value(serde_json::json!({
                "metadata": {"name": "p", "labels": labels, "annotations": annotations}
            }))
            .unwrap();
            let mut capabilities = Registry::default().capabilities(&closed);
            explain_unprepared(&mut capabilities, &pod, "main");
            capabilities[0].remedy.clone()
        };
        let asked = || serde_json::json!({PREPARE_LABEL: "nsys"});
        let rows = [
            (serde_json::json!({}), serde_json::json!({}), "Label the pod"),
            (
                serde_json::json!({PREPARE_LABEL: "kineto"}),
                serde_json::json!({PREPARED_FOR_ANNOTATION: "main: kineto"}),
                "Label the pod",
            ),
            (
                serde_json::json!({PREPARE_LABEL: "nsys,kineto"}),
                serde_json::json!({UNPREPARED_ANNOTATION: "main: label flopwatch.dev/prepare names \"nsys,kineto\""}),
                "cannot be: label flopwatch.dev/prepare names",
            ),
            (asked(), serde_json::json!({}), "admission did not see it"),
            (
                asked(),
                serde_json::json!({UNPREPARED_ANNOTATION: "side: windows\nmain: the container has no command"}),
                "cannot be: the container has no command",
            ),
            (
                asked(),
                serde_json::json!({UNPREPARED_ANNOTATION: "side: windows"}),
                "flopwatch.dev/prepare-containers",
            ),
        ];
        for (labels, annotations, expected) in rows {
            let text = remedy(labels, annotations);
            assert!(text.contains(expected), "{text}");
        }
    }
}
