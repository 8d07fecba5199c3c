//! JAX: the profiler service that a program runs itself (`jax.profiler.start_server`), asked from
//! within its pod's network.
//!
//! The service records for the length of the window and answers with the result. One of an earlier
//! version writes it to the program's own disk, from where it is taken. A service whose caller goes
//! away stops recording.

mod answer;
mod dumps;
mod exchange;
mod left;
mod message;
pub mod service;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flopwatch_api::artifact::{JAX_DUMPS, XPLANE};
use flopwatch_api::capability::Capability;
use flopwatch_api::pod;
use flopwatch_api::preparation::{JAX_DUMP_IR_TO, JAX_DUMPS_ANNOTATION, JAX_PORT_ANNOTATION, XLA_FLAGS};
use flopwatch_api::profiler::{JaxOptions, ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::{Gate, Late};
use flopwatch_attach::network::connect;
use flopwatch_attach::process::{Mapped, ProcessId, Procfs};
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_model::Category;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::disk::Space;
use flopwatch_pipeline::failure::{Failure, chain};
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::facts::{Facts, TMPDIR, closed, open};
use super::findings::Findings;
use super::kineto::temporary_folder;
use super::profiler::collected;
use super::{Observed, Profiler, RawFiles, Recipe, Site};
use crate::grpc::CallError;
use crate::nsys_versions::NsysVersions;
use crate::profilers::containers::Probed;
use dumps::{Places, Sink};
use exchange::{Errand, Exchange, ExchangeError};
use service::{SOCKET_TIMEOUT, Service};

/// The answer of the service in the capture's folder, while it comes and until the result is out of
/// it.
const ANSWER: &str = "profile.answer";
/// The result before it is whole.
const PARTIAL: &str = "profile.partial";
/// The archive of the dumps before it is whole.
const PARTIAL_DUMPS: &str = "dumps.partial";
/// How long a look into the container, and a copy out of it, may take.
const FILES_TIMEOUT: Duration = Duration::from_secs(10);
const COPY_TIMEOUT: Duration = Duration::from_mins(3);
/// Bytes of the program's memory that its service takes at the most to put a profile together, for
/// each byte that it recorded.
///
/// By the source of XLA: an event of the host's tracer is recorded in 48 bytes and its name, one of
/// Python's in 56, and nothing bounds their number. When the window ends each becomes a message of
/// some 90 bytes, and of 50 to 100 more for each value that its name held; the messages of all
/// tracers of the host are copied into one list before the first ones go, and then the answer is
/// written, of some 20 bytes for each. What an event was recorded in goes meanwhile. An event of 48
/// bytes with one value so takes 340.
pub const TAKEN_TOGETHER: u64 = 6;
/// Bytes that a window may record in a second, of which nothing is known before it has begun:
/// events of the host's tracer, some half a million, and calls of Python functions, some four
/// million.
const HOST_PACE_BYTES: u64 = 50 << 20;
const PYTHON_PACE_BYTES: u64 = 200 << 20;
/// How long it takes at the most to see what a window records, and to end it.
const MAX_END_DURATION: Duration = Duration::from_millis(400);
/// The port of the examples of JAX's documentation.
const REMEDY: &str = "Call jax.profiler.start_server(9012) once in the program, before its work, and start it anew.";

/// JAX's own profiler.
#[derive(Debug, Default)]
pub struct Jax {
    /// Requests that are under way, by the UID of their capture.
    exchanges: Mutex<HashMap<String, Running>>,
    /// Work on containers' files that may not come back, by capture.
    gate: Gate,
}

/// A request that is under way.
#[derive(Debug)]
struct Running {
    exchange: Exchange,
    /// The process whose service was asked.
    process: ProcessId,
    /// Name of the session in the service.
    session: String,
}

/// What the journal keeps of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door {
    /// The services that answered the probe.
    services: Vec<Service>,
    /// The port that the pod's annotation names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    annotated: Option<u16>,
    /// What the session asks for.
    #[serde(default)]
    options: JaxOptions,
    /// Folders of the container whose files are taken too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dumps: Vec<PathBuf>,
    /// The folder for temporary files that the container's environment names; none in the journal
    /// of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temporary: Option<PathBuf>,
}

impl Door {
    /// The service to ask: that of the port which the session names, else that of the annotation,
    /// else that of the lowest port.
    fn service(&self) -> Result<Service, Failure> {
        let asked = self
            .options
            .port
            .and_then(|port| u16::try_from(port).ok())
            .or(self.annotated);
        let of_port = |port| self.services.iter().find(|service| service.port == port);
        let found = asked.map_or_else(|| self.services.first(), of_port);
        found.copied().ok_or_else(|| {
            let ports: Vec<_> = self.services.iter().map(|service| service.port.to_string()).collect();
            let message = match asked {
                Some(port) => format!(
                    "no profiler service of JAX answers at port {port}; the container has some at {}: name one of them in \
                     spec.profiler.jax.port or the pod annotation {JAX_PORT_ANNOTATION}",
                    if ports.is_empty() { "none".to_owned() } else { ports.join(", ") }
                ),
                None => format!("no profiler service of JAX answers in the container. {REMEDY}"),
            };
            Failure::new(CaptureReason::ProfilerUnavailable, message)
        })
    }
}

impl Jax {
    fn exchanges(&self) -> MutexGuard<'_, HashMap<String, Running>> {
        // An entry is put in and taken out whole.
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the result from the program's own disk; returns its bytes.
    fn take_left(&self, site: &Site, service: Service, session: String, result: &File) -> Result<u64, Failure> {
        let collected = |message: String| Failure::new(CaptureReason::CollectionFailed, message);
        let mut result = result.try_clone().map_err(|error| collected(chain(&error)))?;
        let (procfs, capture, limit) = (
            site.containers.procfs(),
            site.capture.clone(),
            site.limits.capture_bytes,
        );
        let taken = self.gate.within(&site.capture, COPY_TIMEOUT, move || {
            left::take(&procfs, service.process, (&capture, &session), &mut result, limit)
        });
        taken.map_err(silent)?.map_err(|error| match error {
            RootfsError::TooLarge { .. } => Failure::new(CaptureReason::CaptureTooLarge, chain(&error)),
            error => collected(chain(&error)),
        })
    }

    /// Takes what the compiler wrote in the container, beside a result of `taken` bytes.
    fn take_dumps(&self, site: &Site, service: Service, places: Places, taken: u64) -> Result<(), Failure> {
        let collected = |error: std::io::Error| Failure::because(CaptureReason::CollectionFailed)(error);
        let partial = site.folder.join(PARTIAL_DUMPS);
        let file = File::create(&partial).map_err(collected)?;
        let space = Space::new(site.folder.clone(), site.limits.floor);
        let above = space.above().map_err(Failure::because(CaptureReason::DiskSpace))?;
        let sink = Sink {
            archive: file,
            copy: tempfile::tempfile_in(&site.folder).map_err(collected)?,
            // Each byte lies in the copy and in the archive for a while.
            limit: site.limits.capture_bytes.saturating_sub(taken).min(above / 2),
        };
        let procfs = site.containers.procfs();
        let packed = self.gate.within(&site.capture, COPY_TIMEOUT, move || {
            dumps::pack(&procfs, service.process, &places, sink)
        });
        let index = packed
            .map_err(silent)?
            .map_err(Failure::because(CaptureReason::CollectionFailed))?;
        info!(
            files = index.files,
            bytes = index.bytes,
            "took the dumps of the compiler"
        );
        std::fs::rename(&partial, site.folder.join(JAX_DUMPS)).map_err(collected)
    }

    /// Removes what the service may have written to the program's own disk.
    fn clean(&self, site: &Site, process: ProcessId) {
        let (procfs, capture) = (site.containers.procfs(), site.capture.clone());
        let cleaned = self.gate.within(&site.capture, FILES_TIMEOUT, move || {
            left::clean(&procfs, process, &capture);
        });
        if let Err(late) = cleaned {
            warn!(%late, "the container's files do not answer; what the program's service wrote stays");
        }
    }
}

/// The services that answered in a container, by their ports.
fn services(facts: &Facts) -> &[Service] {
    let found = facts.found.get::<Vec<Service>>();
    found.map(Vec::as_slice).unwrap_or_default()
}

impl Profiler for Jax {
    type State = Door;

    fn type_(&self) -> ProfilerType {
        ProfilerType::Jax
    }

    fn variables(&self) -> &'static [&'static str] {
        &[TMPDIR, XLA_FLAGS, JAX_DUMP_IR_TO]
    }

    fn inspect(&self, procfs: &Procfs, processes: &[(ProcessId, Mapped)], found: &mut Findings) {
        let with_jax = processes.iter().filter(|(_, mapped)| mapped.jax);
        let with_jax: Vec<_> = with_jax.map(|(process, _)| *process).collect();
        found.keep(service::find(procfs, &with_jax));
    }

    fn capability(&self, facts: &Facts) -> Capability {
        if !services(facts).is_empty() {
            return open(self.type_());
        }
        let found = if facts.mapped.jax {
            "The program has JAX loaded, and no profiler service of it answers."
        } else {
            "JAX is not loaded."
        };
        closed(self.type_(), CaptureReason::ProfilerUnavailable, found, REMEDY)
    }

    fn attach(&self, spec: &ProfilerSpec, probed: &Probed, pod: Option<&Pod>) -> Result<Door, Failure> {
        let annotated = pod.and_then(|pod| pod::annotation(pod, JAX_PORT_ANNOTATION));
        let options = spec.jax.clone().unwrap_or_default();
        let variable = |name: &str| probed.facts.variables.get(name).map(String::as_str);
        Ok(Door {
            services: services(&probed.facts).to_vec(),
            annotated: annotated.and_then(|port| port.trim().parse().ok()),
            dumps: if options.dumps == Some(true) {
                dumps::folders(variable)
            } else {
                Vec::new()
            },
            temporary: Some(temporary_folder(variable(TMPDIR)).into()),
            options,
        })
    }

    fn expects(&self) -> &'static [Category] {
        &[
            Category::Annotation,
            Category::PythonFunction,
            Category::Step,
            Category::CpuOp,
        ]
    }

    fn covers(&self, _spec: &ProfilerSpec, _require: &[Category], door: &Door) -> Result<(), Failure> {
        door.service()?;
        if door.options.dumps == Some(true) && door.dumps.is_empty() {
            let message = format!(
                "the container's environment names no folder for dumps of the compiler: give the pod the label flopwatch.dev/prepare: jax and \
                 the annotation {JAX_DUMPS_ANNOTATION}: \"true\" and create it anew, or set --xla_dump_to in XLA_FLAGS or JAX_DUMP_IR_TO to an \
                 absolute path; or leave spec.profiler.jax.dumps out"
            );
            return Err(Failure::new(CaptureReason::ProfilerUnavailable, message));
        }
        Ok(())
    }

    fn start(&self, site: &Site, door: &Door) -> Result<(), Failure> {
        let service = door.service()?;
        let procfs = site.containers.procfs();
        let stream = connect(&procfs, service.process, service.address, SOCKET_TIMEOUT)
            .map_err(Failure::because(CaptureReason::AttachFailed))?;
        let (folder, session) = (left::folder(&site.capture), left::session(&site.capture, utc_ns()));
        let request = message::Request {
            length: site.length,
            options: &door.options,
            folder: &folder.to_string_lossy(),
            session: &session,
            host: left::HOST,
        };
        let errand = Errand {
            stream,
            request: message::profile(&request).into_bytes(),
            session: session.clone(),
            length: site.length,
            answer: site.folder.join(ANSWER),
            limit: site.limits.capture_bytes,
            space: Space::new(site.folder.clone(), site.limits.floor),
        };
        let exchange = Exchange::begin(errand).map_err(Failure::because(CaptureReason::AttachFailed))?;
        let running = Running {
            exchange,
            process: service.process,
            session,
        };
        self.exchanges().insert(site.capture.clone(), running);
        Ok(())
    }

    fn check(&self, site: &Site, _door: &Door) -> Result<(), Failure> {
        let mut exchanges = self.exchanges();
        let running = exchanges.get_mut(&site.capture);
        let failure = running.and_then(|running| running.exchange.failure());
        failure.map_or(Ok(()), |error| Err(failed(error)))
    }

    /// The answer went to the earlier agent's connection, and a service that nobody listens to
    /// records no longer.
    fn observe(&self, _site: Option<&Site>, _door: &Door) -> Result<Observed, Failure> {
        Ok(Observed::Gone(None))
    }

    fn memory_to_begin(&self, door: &Door) -> Result<u64, Failure> {
        Ok(memory_to_begin(&door.options))
    }

    fn memory_to_end(&self) -> u64 {
        TAKEN_TOGETHER
    }

    fn stopping(&self) -> &'static str {
        "waiting for the program's answer"
    }

    fn stop(&self, site: &Site, door: &Door, goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        let Running {
            exchange,
            process,
            session,
        } = self.exchanges().remove(&site.capture).ok_or_else(|| {
            let message = "the request to the program's profiler service is not under way any more";
            Failure::new(CaptureReason::CollectionFailed, message)
        })?;
        exchange.finish(goes_on).map_err(|error| failed(&error))?;
        let (answer, partial) = (site.folder.join(ANSWER), site.folder.join(PARTIAL));
        let broken = |error: std::io::Error| Failure::because(CaptureReason::CollectionFailed)(error);
        let mut result = File::create(&partial).map_err(broken)?;
        let mut taken = File::open(&answer)
            .map_err(answer::AnswerError::Io)
            .and_then(|answer| answer::extract(answer, &mut result))
            .map_err(Failure::because(CaptureReason::CollectionFailed))?;
        let service = door.service()?;
        if taken == 0 {
            let left = self.take_left(site, service, session, &result);
            self.clean(site, process);
            taken = left?;
        }
        if taken == 0 {
            let message = "the program's profiler service answered without a result, and left none on its disk";
            return Err(Failure::new(CaptureReason::CollectionFailed, message));
        }
        if !door.dumps.is_empty() {
            let places = Places {
                folders: door.dumps.clone(),
                temporary: door.temporary.clone(),
            };
            self.take_dumps(site, service, places, taken)?;
        }
        std::fs::remove_file(&answer).map_err(broken)?;
        std::fs::rename(&partial, site.folder.join(XPLANE)).map_err(broken)?;
        collected(self, site, "the result is not in the capture's folder")
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        RawFiles::find(folder, &[XPLANE])
    }

    fn discard(&self, site: &Site) {
        // The service stops recording when its caller goes away.
        let running = self.exchanges().remove(&site.capture);
        self.clean(site, running.map_or(site.process, |running| running.process));
    }

    fn steps(&self, _: &Door, raw: &RawFiles, _: &SandboxDir, _: &NsysVersions) -> Result<Recipe, Failure> {
        let (profile, dumps) = (raw.path(XPLANE), raw.path(JAX_DUMPS));
        let dumps = dumps.is_file().then_some((JAX_DUMPS, dumps));
        Ok(Recipe {
            inputs: vec![profile.clone()],
            collected: [(XPLANE, profile)].into_iter().chain(dumps).collect(),
            ..Recipe::default()
        })
    }
}

/// Bytes of memory that a window may take before it is seen to take too much and has ended.
fn memory_to_begin(options: &JaxOptions) -> u64 {
    let is_on = |level: Option<i32>, otherwise: bool| level.map_or(otherwise, |level| level > 0);
    let tracers = [
        (is_on(options.host_tracer_level, true), HOST_PACE_BYTES),
        (is_on(options.python_tracer_level, false), PYTHON_PACE_BYTES),
    ];
    let pace: u64 = tracers
        .into_iter()
        .filter(|(is_on, _)| *is_on)
        .map(|(_, pace)| pace)
        .sum();
    let ms = u64::try_from(MAX_END_DURATION.as_millis()).unwrap_or(u64::MAX);
    let recorded = pace.saturating_mul(ms) / 1000;
    recorded.saturating_mul(1 + TAKEN_TOGETHER)
}

/// The container's files did not answer in time.
fn silent(late: Late) -> Failure {
    let message = format!("the container's files do not answer: {late}");
    Failure::new(CaptureReason::CollectionFailed, message)
}

fn failed(error: &ExchangeError) -> Failure {
    let reason = match error {
        ExchangeError::Call(CallError::TooLarge { .. }) => CaptureReason::CaptureTooLarge,
        ExchangeError::NoSpace(_) => CaptureReason::DiskSpace,
        _ => CaptureReason::CollectionFailed,
    };
    let remedy = match error {
        ExchangeError::Call(CallError::TooLarge { .. }) => {
            " (--max-capture-bytes): ask for a shorter window, or fewer events"
        }
        ExchangeError::Call(CallError::Refused { .. }) => {
            "; it records one session at a time: check that the program does not profile itself"
        }
        _ => "",
    };
    Failure::new(reason, format!("{}{remedy}", chain(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(port: u16) -> Service {
        Service {
            process: ProcessId { pid: 7, start_time: 1 },
            port,
            address: ([127, 0, 0, 1], port).into(),
        }
    }

    #[test]
    fn a_program_whose_service_answers_is_open_and_another_is_told_what_to_add() {
        let jax = Jax::default();
        let mut facts = Facts::default();
        let closed = jax.capability(&facts);
        assert!(
            !closed.available && closed.remedy.starts_with("JAX is not loaded."),
            "{closed:?}"
        );
        facts.mapped = Mapped {
            jax: true,
            ..Mapped::default()
        };
        let closed = jax.capability(&facts);
        assert!(closed.remedy.contains("no profiler service of it answers"));
        assert!(closed.remedy.contains("jax.profiler.start_server(9012)"));
        facts.found.keep(vec![service(9012)]);
        assert!(jax.capability(&facts).available);
    }

    #[test]
    fn what_a_window_may_take_before_it_can_be_ended_is_by_what_it_is_to_record() {
        let mebibytes = |host: Option<i32>, python: Option<i32>| {
            let options = JaxOptions {
                host_tracer_level: host,
                python_tracer_level: python,
                ..JaxOptions::default()
            };
            memory_to_begin(&options) >> 20
        };
        assert_eq!(mebibytes(None, None), 140, "the host's tracer is on by default");
        assert_eq!(mebibytes(Some(0), None), 0);
        assert_eq!(mebibytes(None, Some(1)), 700);
        assert_eq!(mebibytes(Some(0), Some(1)), 560);
    }

    #[test]
    fn the_port_of_the_session_goes_before_that_of_the_pod_and_that_before_the_lowest() {
        let rows = [
            (&[9012, 9013, 9014][..], None, None, Some(9012)),
            (&[9012, 9013, 9014], Some(9013), None, Some(9013)),
            (&[9012, 9013, 9014], Some(9013), Some(9014), Some(9014)),
            (&[9012], Some(9013), None, None),
            (&[9012], None, Some(9013), None),
            (&[], None, None, None),
        ];
        for (ports, annotated, port, expected) in rows {
            let door = Door {
                services: ports.iter().copied().map(service).collect(),
                annotated,
                options: JaxOptions {
                    port,
                    ..JaxOptions::default()
                },
                dumps: Vec::new(),
                temporary: None,
            };
            let found = door.service().map(|service| service.port);
            match expected {
                Some(_) => assert_eq!(found.ok(), expected),
                None => assert_eq!(found.unwrap_err().reason, CaptureReason::ProfilerUnavailable),
            }
        }
    }
}
