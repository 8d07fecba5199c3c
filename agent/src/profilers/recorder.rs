//! The flight recorder: what the container's programs keep of their last ranges, and of their last
//! kernels where the CUDA tracer has recorded some, taken at once.

pub(crate) mod ring;

use std::fs::File;
use std::path::{Path, PathBuf};

use flopwatch_api::artifact::{CUDA_TRACE, RING, SAMPLES};
use flopwatch_api::capability::Capability;
use flopwatch_api::preparation::{FLOPWATCH_RECORDER_DIR, RECORDER_FILE};
use flopwatch_api::profiler::{ProfilerSpec, ProfilerType};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::Gate;
use flopwatch_model::Category;
use flopwatch_pipeline::failure::Failure;
use flopwatch_pipeline::sandbox_dir::SandboxDir;
use flopwatch_pipeline::transform::read_samples;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};

use super::cuda::{self, recent};
use super::facts::{Facts, closed, open};
use super::profiler::{collected, holds};
use super::{Observed, Profiler, RawFiles, Recipe, Remains, Site};
use crate::nsys_versions::NsysVersions;
use crate::profilers::containers::Probed;
use ring::RingError;

/// Name of an empty file in the capture's folder: all that there was has been taken.
const TAKEN: &str = "recorder.taken";

/// The flight recorder.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Looks at containers' files.
    gate: Gate,
}

/// What the journal keeps of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecorderSource {
    /// The recorder's file in the container; none where there is no recorder.
    ring: Option<PathBuf>,
    /// The file of the CUDA tracer in the container; none where there is no tracer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernels: Option<PathBuf>,
    /// What the node kept of a container that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<Remains>,
}

/// Where the flight recorder of a container's programs keeps its file, in the container; none where
/// they have none.
pub(crate) fn file(facts: &Facts) -> Option<PathBuf> {
    let folder = Path::new(facts.variables.get(FLOPWATCH_RECORDER_DIR)?);
    folder.is_absolute().then(|| folder.join(RECORDER_FILE))
}

impl Recorder {
    /// Takes the ranges, and says whether there are any.
    fn take_ranges(&self, site: &Site, source: &RecorderSource) -> Result<bool, Failure> {
        let taken = match (&source.kept, &source.ring) {
            (Some(kept), _) => match &kept.ring {
                Some(ring) => ring::copy_kept(site, ring, RING),
                None => return Ok(false),
            },
            (None, Some(ring)) => ring::take(&self.gate, site, ring.clone(), RING),
            (None, None) => return Ok(false),
        };
        match taken {
            Ok(()) => Ok(true),
            Err(RingError::NotThere) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the kernels of the capture's time, and says whether there are any.
    fn take_kernels(&self, site: &Site, source: &RecorderSource) -> Result<bool, Failure> {
        if let Some(kept) = source.kept.as_ref().and_then(|kept| kept.kernels.as_ref()) {
            ring::copy_kept(site, kept, CUDA_TRACE)?;
            return Ok(true);
        }
        let Some(path) = source.kernels.clone() else {
            return Ok(false);
        };
        let samples = read_samples(&site.folder.join(SAMPLES));
        let samples = samples.map_err(Failure::because(CaptureReason::StoreFailed))?;
        recent::take(&self.gate, site, path, samples.window_start_utc_ns, CUDA_TRACE)
    }
}

impl Profiler for Recorder {
    type State = RecorderSource;

    fn type_(&self) -> ProfilerType {
        ProfilerType::Recorder
    }

    fn variables(&self) -> &'static [&'static str] {
        &[FLOPWATCH_RECORDER_DIR]
    }

    fn capability(&self, facts: &Facts) -> Capability {
        if file(facts).is_some() || cuda::file(facts).is_some() {
            return open(self.type_());
        }
        closed(
            self.type_(),
            CaptureReason::NotPrepared,
            "The container's programs have no flight recorder.",
            "Give the pod the label flopwatch.dev/prepare: recorder (words combine, as in nsys.recorder) and create it anew.",
        )
    }

    fn attach(&self, _spec: &ProfilerSpec, probed: &Probed, _pod: Option<&Pod>) -> Result<RecorderSource, Failure> {
        Ok(RecorderSource {
            ring: file(&probed.facts),
            kernels: cuda::file(&probed.facts),
            kept: None,
        })
    }

    fn attach_to_kept(&self, kept: Remains) -> Result<Option<RecorderSource>, Failure> {
        Ok(Some(RecorderSource {
            ring: None,
            kernels: None,
            kept: Some(kept),
        }))
    }

    fn looks_back(&self, source: &RecorderSource, now_utc_ns: u64) -> Result<Option<u64>, Failure> {
        let kept = source.kept.as_ref();
        Ok(Some(kept.map_or(now_utc_ns, |kept| kept.ended_utc_ns)))
    }

    fn covers(&self, _spec: &ProfilerSpec, require: &[Category], source: &RecorderSource) -> Result<(), Failure> {
        let is_kept = |category: &Category| match source.kernels {
            Some(_) => *category == Category::NvtxRange || Category::CUDA.contains(category),
            None => *category == Category::NvtxRange,
        };
        holds(require, is_kept, |missing| {
            format!(
                "the flight recorder keeps NVTX ranges, and kernels of containers that are prepared for recorder-kernels, and the \
                 session asks for {missing}: take them out of spec.require, or use another profiler"
            )
        })
    }

    fn start(&self, _site: &Site, _source: &RecorderSource) -> Result<(), Failure> {
        Ok(())
    }

    /// Always [`Observed::Gone`] without a failure: the recording is taken anew.
    fn observe(&self, _site: Option<&Site>, _source: &RecorderSource) -> Result<Observed, Failure> {
        Ok(Observed::Gone(None))
    }

    /// Always false: a recording has no window that could be ended.
    fn can_be_ended(&self) -> bool {
        false
    }

    fn stopping(&self) -> &'static str {
        "taking what was recorded"
    }

    fn stop(&self, site: &Site, source: &RecorderSource, _goes_on: &dyn Fn() -> bool) -> Result<RawFiles, Failure> {
        let has_kernels = self.take_kernels(site, source)?;
        if !self.take_ranges(site, source)? && !has_kernels {
            return Err(RingError::NotThere.into());
        }
        // Last: it stands for the whole of them.
        File::create(site.folder.join(TAKEN)).map_err(Failure::because(CaptureReason::StoreFailed))?;
        collected(self, site, "the flight recorder's file is not in the capture's folder")
    }

    fn raw_files(&self, folder: &Path) -> Option<RawFiles> {
        RawFiles::find(folder, &[TAKEN])
    }

    fn discard(&self, _site: &Site) {}

    fn steps(&self, _: &RecorderSource, raw: &RawFiles, _: &SandboxDir, _: &NsysVersions) -> Result<Recipe, Failure> {
        let files = [RING, CUDA_TRACE].map(|name| (name, raw.path(name)));
        let collected: Vec<_> = files.into_iter().filter(|(_, path)| path.is_file()).collect();
        let has_ranges = collected.iter().any(|(name, _)| *name == RING);
        Ok(Recipe {
            inputs: collected.iter().map(|(_, path)| path.clone()).collect(),
            collected,
            // What was recorded of CUDA its file says itself.
            captured: has_ranges.then_some(Category::NvtxRange).into_iter().collect(),
            ..Recipe::default()
        })
    }
}
