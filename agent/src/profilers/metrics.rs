//! NVML samples alone: they are taken beside every capture, so that there is nothing to start and
//! nothing to stop.

use std::path::Path;

use flopwatch_api::artifact::SAMPLES;
use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use flopwatch_pipeline::transform::Samples;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};

use super::facts::{Facts, closed, open};
use super::profiler::collected;
use super::{Observed, Profiler, RawFiles, Recipe, Site};
use crate::nsys_versions::NsysVersions;
use crate::profilers::containers::Probed;

/// Samples of NVML alone.
#[derive(Debug)]
pub struct Metrics;

/// What the journal keeps of a collection: nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Nothing {}

impl Profiler for Metrics {
    type State = Nothing;

    fn type_(&self) -> ProfilerType {
        ProfilerType::Metrics
    }

    fn capability(&self, facts: &Facts) -> Capability {
        if facts.nvml {
            return open(self.type_());
        }
        closed(
            self.type_(),
            CaptureReason::NvmlUnavailable,
            "NVML does not answer on the node.",
            "Run on a node with an NVIDIA driver, or make its libnvidia-ml.so.1 visible to the agent.",
        )
    }

    fn attach(&self, _spec: &ProfilerSpec, _probed: &Probed, _pod: Option<&Pod>) -> Result<Nothing, Failure> {
        Ok(Nothing {})
    }

    fn records_events(&self) -> bool {
        false
    }

    fn start(&self, _site: &Site, _state: &Nothing) -> Result<(), Failure> {
        Ok(())
    }

    /// The samples were in the memory of the earlier agent.
    fn observe(&self, _site: Option<&Site>, _state: &Nothing) -> Result<Observed, Failure> {
        Ok(Observed::Gone(None))
    }

    fn accept(&self, samples: &Samples) -> Result<(), Failure> {
        if samples.series.is_empty() {
            let message =
                "no process of the container was seen on a GPU within the window, so there is nothing to show";
            return Err(Failure::new(CaptureReason::RequiredEventsMissing, message));
        }
        Ok(())
    }

    fn stopping(&self) -> &'static str {
        "gathering the samples"
    }

    fn stop(&self, site: &Site, _state: &Nothing, _goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        collected(self, site, "the samples of the window are not in the capture's folder")
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        RawFiles::find(folder, &[SAMPLES])
    }

    fn discard(&self, _site: &Site) {}

    fn steps(&self, _: &Nothing, _: &RawFiles, _: &SandboxDir, _: &NsysVersions) -> Result<Recipe, Failure> {
        Ok(Recipe::default())
    }
}
