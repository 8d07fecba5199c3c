//! Nsight Compute: the profiler starts the program itself, in a pod that a session made for it, and
//! leaves one report.
//!
//! What is profiled was fixed when the pod was made (`operator/src/admission/prepare/ncu.rs`). The
//! launcher in the container waits for [`Profiler::start`], so that the program never runs before
//! its capture does.

mod capability;
pub mod launched;
mod report;
mod words;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::artifact::NCU_REPORT;
use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::{NcuOptions, ProfilerSpec, ProfilerType, ReplayMode};
use flopwatch_api::reason::CaptureReason;
use flopwatch_launcher::run_dir::unix_ms;
use flopwatch_model::Category;
use flopwatch_pipeline::failure::{Failure, chain};
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};

use super::facts::{CUDA_MPS_PIPE_DIRECTORY, Facts};
use super::profiler::collected;
use super::{Observed, Profiler, RawFiles, Recipe, Site};
use crate::counters::{self, Counters, Lease};
use crate::nsys_versions::NsysVersions;
use crate::profilers::containers::Probed;

/// Beyond the window, how long the program's end and the report may take before the counters are
/// free for others.
const LEASE_GRACE: Duration = Duration::from_mins(5);

/// Nsight Compute.
#[derive(Debug, Default)]
pub struct Ncu {
    /// The leases of the node's counters; none outside of a node.
    pub counters: Option<Arc<Counters>>,
}

/// What the journal keeps of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterUse {
    /// Whether launches of NCCL would be replayed one by one, which they never come back from.
    #[serde(default)]
    replays_any: bool,
    /// The GPUs whose counters it takes.
    #[serde(default)]
    gpus: BTreeSet<String>,
    /// Whether DCGM has the counters and is paused for it.
    #[serde(default)]
    pauses: bool,
}

impl Ncu {
    /// Takes the counters before anything on the GPU needs them.
    fn take(&self, site: &Site, kept: &CounterUse) -> Result<(), Failure> {
        let Some(counters) = &self.counters else { return Ok(()) };
        let longest = site.length + LEASE_GRACE;
        let lease = Lease {
            owner: site.capture.clone(),
            deadline_unix_ms: unix_ms().saturating_add(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)),
            pauses: kept.pauses,
        };
        counters.take(&kept.gpus, &lease, unix_ms()).map_err(|error| {
            let reason = match &error {
                counters::Error::Busy { .. } | counters::Error::Dcgm(_) => CaptureReason::CountersBusy,
                counters::Error::Folder { .. } => CaptureReason::StoreFailed,
            };
            Failure::new(reason, chain(&error))
        })
    }

    fn release(&self, site: &Site) {
        if let Some(counters) = &self.counters {
            counters.release(&site.capture);
        }
    }
}

impl Profiler for Ncu {
    type State = CounterUse;

    fn type_(&self) -> ProfilerType {
        ProfilerType::Ncu
    }

    fn variables(&self) -> &'static [&'static str] {
        &[CUDA_MPS_PIPE_DIRECTORY]
    }

    fn capability(&self, facts: &Facts) -> Capability {
        let can_pause = self.counters.as_ref().is_some_and(|counters| counters.can_pause());
        capability::decide(facts, can_pause)
    }

    fn attach(&self, _spec: &ProfilerSpec, probed: &Probed, pod: Option<&Pod>) -> Result<CounterUse, Failure> {
        let options = pod.map(report::options).unwrap_or_default();
        let gpus = probed.facts.gpu.gpus();
        Ok(CounterUse {
            replays_any: replays_any(&options),
            gpus: counters::gpus(gpus.iter().map(|gpu| gpu.uuid.as_str())),
            pauses: !probed.facts.gpu.counter_holders.is_empty(),
        })
    }

    /// Its timelines have profiles of kernels in place of events; that there are some is what its
    /// report says.
    fn records_events(&self) -> bool {
        false
    }

    fn covers(&self, _spec: &ProfilerSpec, require: &[Category], _kept: &CounterUse) -> Result<(), Failure> {
        if require.is_empty() {
            return Ok(());
        }
        let message = "a capture of Nsight Compute holds counters of kernels and no events, so none can be required of it: leave \
                       spec.require out, or use Nsys";
        Err(Failure::new(CaptureReason::ProfilerUnavailable, message))
    }

    fn start(&self, site: &Site, kept: &CounterUse) -> Result<(), Failure> {
        self.take(site, kept)?;
        report::start(site)
    }

    fn check(&self, site: &Site, kept: &CounterUse) -> Result<(), Failure> {
        if kept.replays_any && site.containers.mapped(&site.container_id).nccl {
            return Err(capability::nccl());
        }
        report::check(site)
    }

    /// The container stays for its capture.
    fn has_ended(&self, site: &Site) -> bool {
        report::launched(site).has_ended()
    }

    fn observe(&self, site: Option<&Site>, _kept: &CounterUse) -> Result<Observed, Failure> {
        Ok(match site {
            None => Observed::ended_with("the report"),
            Some(site) if report::launched(site).has_ended() => Observed::Done,
            Some(_) => Observed::Collecting,
        })
    }

    /// The program begins with the window and ends with it.
    fn can_be_ended(&self) -> bool {
        false
    }

    fn stopping(&self) -> &'static str {
        "taking the report out of the container"
    }

    fn stop(&self, site: &Site, _kept: &CounterUse, goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        // Whatever comes of it, the program has ended or its container does.
        let stopped = report::stop(site, goes_on);
        self.release(site);
        stopped?;
        collected(self, site, "the report is not in the capture's folder")
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        RawFiles::find(folder, &[NCU_REPORT])
    }

    fn discard(&self, site: &Site) {
        report::discard(site);
        self.release(site);
    }

    fn steps(&self, _: &CounterUse, raw: &RawFiles, _: &SandboxDir, _: &NsysVersions) -> Result<Recipe, Failure> {
        let report = raw.path(NCU_REPORT);
        Ok(Recipe {
            inputs: vec![report.clone()],
            collected: vec![(NCU_REPORT, report)],
            ..Recipe::default()
        })
    }
}

/// Whether every launch is run again in place: kernels of NCCL wait for those of other processes,
/// which do not come again.
fn replays_any(options: &NcuOptions) -> bool {
    options.replay_mode == ReplayMode::Kernel && !options.has_filter()
}

#[cfg(test)]
mod tests {
    use flopwatch_attach::process::ProcessId;

    use super::*;
    use crate::profilers::gpu_facts::DeviceFacts;

    /// What a capture of a container leases whose environment names another one's GPU.
    fn leased(assigned: &[&str], seen: &[&str]) -> Vec<String> {
        let mut facts = Facts::default();
        let variable = ("NVIDIA_VISIBLE_DEVICES".to_owned(), "GPU-b".to_owned());
        facts.variables.extend([variable]);
        facts.gpu.assigned = assigned.iter().map(|id| (*id).to_owned()).collect();
        facts.gpu.devices = seen
            .iter()
            .map(|uuid| DeviceFacts {
                uuid: (*uuid).to_owned(),
                ..DeviceFacts::default()
            })
            .collect();
        let probed = Probed::of(facts, ProcessId { pid: 7, start_time: 1 });
        let kept = Ncu::default().attach(&ProfilerSpec::default(), &probed, None).unwrap();
        kept.gpus.into_iter().collect()
    }

    #[test]
    fn a_container_with_gpu_a_whose_environment_names_b_leases_a() {
        for (assigned, seen, expected) in [
            (&["GPU-a"][..], &[][..], &["GPU-a"][..]),
            (&[], &["GPU-a"], &["GPU-a"]),
            (
                &["GPU-a::3", "GPU-a::4", "MIG-c"],
                &["GPU-d"],
                &["GPU-a", "GPU-d", "MIG-c"],
            ),
            // Nobody knows, or a device plugin names it otherwise.
            (&[], &[], &["node"]),
            (&["nvidia0"], &[], &["node"]),
            (&["GPU-a", "../x"], &[], &["node"]),
        ] {
            assert_eq!(leased(assigned, seen), expected, "{assigned:?} {seen:?}");
        }
    }

    #[test]
    fn nccl_ends_a_capture_that_would_replay_any_kernel_and_no_other() {
        let any = |text: &str| replays_any(&serde_json::from_str(text).unwrap());
        assert!(any("{}"));
        assert!(!any(r#"{"replayMode": "Application"}"#));
        assert!(!any(r#"{"replayMode": "Range"}"#));
        assert!(!any(r#"{"kernelNames": ["gemm"]}"#));
    }

    #[test]
    fn events_cannot_be_required_of_counters() {
        let kept = CounterUse::default();
        let covers = |require: &[Category]| Ncu::default().covers(&ProfilerSpec::default(), require, &kept);
        assert!(covers(&[]).is_ok());
        let failure = covers(&[Category::CudaKernel]).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::ProfilerUnavailable);
        assert!(failure.message.contains("spec.require"));
    }
}
