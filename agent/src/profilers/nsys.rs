//! Nsight Systems: a session in a prepared container, and one raw capture for each collection in
//! it.
//!
//! The session is started with the container ([`crate::node::graft`]), and what it traces is fixed
//! from then on. A supervisor beside it bounds every collection, whatever becomes of the agent.

mod capability;
pub mod categories;
mod collection;
pub mod collector;
pub mod options;
pub mod prepared;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_api::artifact::{MAX_REPORTS, report_name, stream_name};
use flopwatch_api::capability::Capability;
use flopwatch_api::capture::{CategoryCount, TracedCategory};
use flopwatch_api::pod;
use flopwatch_api::preparation::NSYS_TRACE_ANNOTATION;
use flopwatch_api::profiler::{NsysOptions, ProfilerSpec, ProfilerType, TraceCategory};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::nsys::{HostTools, SessionState};
use flopwatch_model::Category;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::nsys_options;
use flopwatch_pipeline::products::nsys_imports;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};

use super::facts::{CUDA_MPS_PIPE_DIRECTORY, Facts};
use super::profiler::collected;
use super::{Observed, Profiler, RawFiles, Recipe, Site};
use crate::bound::Bound;
use crate::nsys_versions::NsysVersions;
use crate::profilers::containers::Probed;
pub(crate) use collection::{clean, file_name, owner};
use options::{CountersClosed, Fixed};

/// The raw capture in the capture's folder, of several the first. It is there only when all are.
use flopwatch_api::artifact::STREAM as RAW;

/// Nsight Systems.
#[derive(Debug)]
pub struct Nsys;

/// What the journal keeps of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// What the container's session traces.
    traced: BTreeSet<TraceCategory>,
    /// What else was fixed when the container started.
    #[serde(default)]
    fixed: Fixed,
    /// What the session asks for.
    #[serde(default)]
    asked: NsysOptions,
    /// Why it can have no hardware counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counters_closed: Option<CountersClosed>,
    /// Version of the tools in the container; empty where an agent wrote the journal that did not
    /// ask for it.
    #[serde(default)]
    tools: String,
    /// What the collection may write; none before it is prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound: Option<Bound>,
    /// Bytes of the container's volume that the collection must leave free.
    #[serde(default)]
    min_free_bytes: u64,
}

impl Session {
    /// The bound of the collection; of one whose journal has none, the agent's own.
    fn bound(&self, site: &Site) -> Bound {
        let agents = Bound::by_agent(site.limits.capture_bytes);
        self.bound.unwrap_or(agents)
    }
}

impl Profiler for Nsys {
    type State = Session;

    fn type_(&self) -> ProfilerType {
        ProfilerType::Nsys
    }

    fn variables(&self) -> &'static [&'static str] {
        &[CUDA_MPS_PIPE_DIRECTORY]
    }

    fn capability(&self, facts: &Facts) -> Capability {
        capability::decide(facts)
    }

    fn attach(&self, spec: &ProfilerSpec, probed: &Probed, pod: Option<&Pod>) -> Result<Session, Failure> {
        let annotation = pod.and_then(|pod| pod::annotation(pod, NSYS_TRACE_ANNOTATION));
        Ok(Session {
            traced: categories::traced_categories(annotation, probed.facts.outdated),
            fixed: pod.map(Fixed::of).unwrap_or_default(),
            asked: spec.nsys.clone().unwrap_or_default(),
            counters_closed: CountersClosed::of(&probed.facts),
            tools: probed.tools.clone(),
            bound: None,
            min_free_bytes: 0,
        })
    }

    fn covers(&self, spec: &ProfilerSpec, require: &[Category], session: &Session) -> Result<(), Failure> {
        categories::covers(spec, require, &session.traced)?;
        let asked = spec.nsys.as_ref().unwrap_or(&session.asked);
        options::covers(asked, &session.fixed, session.counters_closed.as_ref())
    }

    fn prepare(&self, site: &Site, session: Session) -> Result<Session, Failure> {
        let (bound, min_free_bytes) = collection::bound(site)?;
        Ok(Session {
            bound: Some(bound),
            min_free_bytes,
            ..session
        })
    }

    fn start(&self, site: &Site, session: &Session) -> Result<(), Failure> {
        let records = nsys_options::collection(&session.asked);
        collection::start(site, &records, session.bound(site), session.min_free_bytes)
    }

    fn check(&self, site: &Site, session: &Session) -> Result<(), Failure> {
        collection::check(site, session.bound(site))
    }

    fn processor_time(&self, site: &Site) -> Option<Duration> {
        collection::collector(site).processor_time()
    }

    /// Whether the last range that was asked for is over.
    fn is_complete(&self, site: &Site, session: &Session) -> Result<bool, Failure> {
        let range = session.asked.capture_range.as_ref();
        Ok(range.is_some_and(|range| collection::has_ranges(site, usize::try_from(range.count).unwrap_or(1))))
    }

    /// The container stays for its capture.
    fn has_ended(&self, site: &Site) -> bool {
        collection::collector(site).has_ended()
    }

    fn observe(&self, site: Option<&Site>, _session: &Session) -> Result<Observed, Failure> {
        match site {
            Some(site) => collection::observe(site),
            None => Ok(observed(None)),
        }
    }

    fn stopping(&self) -> &'static str {
        "taking the capture out of the container"
    }

    fn stop(&self, site: &Site, session: &Session, goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        let missed = || {
            let range = session.asked.capture_range.as_ref()?;
            Some(nsys_options::missed(
                range,
                session.fixed.nvtx_capture.as_deref(),
                &session.tools,
            ))
        };
        collection::stop(site, session.bound(site), missed, goes_on)?;
        collected(self, site, "the raw capture is not in the capture's folder")
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        RawFiles::find(folder, &[RAW])
    }

    fn discard(&self, site: &Site) {
        clean(collection::collector(site).as_ref(), &file_name(&site.capture));
    }

    fn steps(
        &self,
        session: &Session,
        raw: &RawFiles,
        sandbox: &SandboxDir,
        nsys_versions: &NsysVersions,
    ) -> Result<Recipe, Failure> {
        let Session { traced, tools, .. } = session;
        let (steps, inputs) = nsys_imports(streams(raw).map(|(_, path)| path), |name| sandbox.at(name));
        let reports = (1..=inputs.len()).map(report_name).collect();
        Ok(Recipe {
            tools: tools_of(tools, nsys_versions)?,
            steps,
            inputs,
            reports,
            collected: Vec::new(),
            captured: traced.iter().flat_map(|traced| traced.records()).copied().collect(),
        })
    }

    fn unread(&self, raw: &RawFiles) -> Vec<(String, PathBuf)> {
        streams(raw).collect()
    }

    fn outcomes(&self, session: &Session, counts: &[CategoryCount]) -> Result<Vec<TracedCategory>, Failure> {
        Ok(categories::outcomes(&session.traced, counts))
    }
}

/// The raw captures, each with its name.
fn streams(raw: &RawFiles) -> impl Iterator<Item = (String, PathBuf)> {
    let names = (1..=MAX_REPORTS).map(stream_name);
    let files = names.map(move |name| (name.clone(), raw.path(&name)));
    files.take_while(|(_, path)| path.is_file())
}

/// Where a collection stands by the state of its session and whether its raw capture lies in the
/// container; none when the container ended.
pub(crate) fn observed(found: Option<&(SessionState, bool)>) -> Observed {
    match found {
        None => Observed::ended_with("the capture"),
        Some((SessionState::Collecting, _)) => Observed::Collecting,
        // Where the supervisor ended the collection by itself, the stop says so.
        Some((SessionState::Idle, _) | (_, true)) => Observed::Done,
        Some((SessionState::Gone | SessionState::Ending | SessionState::Other(_), false)) => {
            let message = "the profiler's session ended while the agent of the node was away; it comes back when the container \
                           restarts";
            Observed::Gone(Some(Failure::new(CaptureReason::SessionGone, message)))
        }
    }
}

/// The tools that a raw capture was made with; none for one whose journal does not name them: an
/// agent that began before versions were written down had one.
fn tools_of(version: &str, nsys_versions: &NsysVersions) -> Result<Option<HostTools>, Failure> {
    if version.is_empty() {
        return Ok(None);
    }
    if let Some(tools) = nsys_versions.get(version) {
        return Ok(Some(tools.clone()));
    }
    let message = format!(
        "the raw capture was made by Nsight Systems {version}, and this node's agent carries {} since it restarted",
        nsys_versions.versions()
    );
    Err(Failure::new(CaptureReason::VersionUnsupported, message))
}

#[cfg(test)]
mod tests {
    use flopwatch_api::artifact::Output;
    use flopwatch_pipeline::artifact_file::artifact_of;

    use super::*;

    #[test]
    fn raw_captures_that_no_tool_read_are_published_each_under_its_own_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["capture.qdstrm", "capture.2.qdstrm", "other.qdstrm"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let raw = Nsys.raw_files(folder.path()).unwrap();
        let (names, paths): (Vec<_>, Vec<_>) = Nsys.unread(&raw).into_iter().unzip();
        assert_eq!(names, ["capture.qdstrm", "capture.2.qdstrm"]);
        let expected: Vec<_> = names.iter().map(|name| folder.path().join(name)).collect();
        assert_eq!(paths, expected);
        for name in &names {
            let (published, output, _) = artifact_of(name).unwrap();
            assert_eq!((published, output), (name.as_str(), Output::Raw));
        }
    }
}
