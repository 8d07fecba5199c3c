//! Taking a copy of the recorder's file out of a container, while its programs write to it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_api::preparation::RECORDER_BYTES;
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::{Gate, Late};
use flopwatch_attach::mount_kind::{self, MountError};
use flopwatch_attach::rootfs::{ContainerRoot, RootfsError};
use flopwatch_pipeline::failure::{Failure, chain};
use flopwatch_trace::ReadLimits;
use flopwatch_trace::recorder::{self, snapshot};

use crate::profilers::Site;

/// How long the container's files are waited for.
const FILES_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RingError {
    /// No program of the container has begun to record.
    #[error(
        "no program of the container has called NVTX since the container started, so there is no recording: mark its steps with NVTX \
         (torch.cuda.nvtx, the package nvtx, NVTX 3 in C), or look in its environment whether NVTX_INJECTION64_PATH is still there"
    )]
    NotThere,
    /// The container's files do not answer.
    #[error(transparent)]
    Late(#[from] Late),
    /// The file lies where nobody may ever answer for it, or where it lies cannot be told.
    #[error(
        "the flight recorder's file is not opened: its folder (FLOPWATCH_RECORDER_DIR) must lie in memory or on a disk of the node"
    )]
    Mount(#[from] MountError),
    /// The file cannot be opened.
    #[error(transparent)]
    Rootfs(RootfsError),
    /// The file is not one, or cannot be copied.
    #[error("the flight recorder's file: {0}")]
    Snapshot(#[from] recorder::Failure),
    /// The copy cannot be made.
    #[error("the copy cannot be made: {0}")]
    Copy(#[from] std::io::Error),
}

impl From<RootfsError> for RingError {
    fn from(error: RootfsError) -> Self {
        match error {
            RootfsError::NotFound { .. } => Self::NotThere,
            error => Self::Rootfs(error),
        }
    }
}

impl From<RingError> for Failure {
    fn from(error: RingError) -> Self {
        let reason = match &error {
            RingError::NotThere => CaptureReason::RequiredEventsMissing,
            RingError::Late(_) | RingError::Mount(_) | RingError::Rootfs(_) => CaptureReason::AttachFailed,
            RingError::Snapshot(_) => CaptureReason::CollectionFailed,
            RingError::Copy(_) => CaptureReason::StoreFailed,
        };
        Self::new(reason, chain(&error))
    }
}

/// Copies the file at `ring` of the site's container into the capture's folder, under a name that
/// is there only when it is whole.
pub(crate) fn take(gate: &Gate, site: &Site, ring: PathBuf, name: &str) -> Result<(), RingError> {
    let partial = site.folder.join("ring.partial");
    let mut copy = File::create(&partial)?;
    let (procfs, process) = (site.containers.procfs(), site.process);
    let limit = (*RECORDER_BYTES.end()).min(site.limits.capture_bytes);
    gate.within(&site.container_id, FILES_TIMEOUT, move || {
        mount_kind::check_readable(&procfs, process, &ring)?;
        let file = ContainerRoot::open(&procfs, process)?.open_file(&ring, limit)?;
        snapshot(&file, &mut copy, &ReadLimits::default())?;
        Ok::<_, RingError>(copy.sync_data()?)
    })??;
    Ok(std::fs::rename(partial, site.folder.join(name))?)
}

/// Copies what the node kept of a container into the capture's folder.
pub(crate) fn copy_kept(site: &Site, kept: &Path, name: &str) -> Result<(), RingError> {
    let partial = site.folder.join("ring.partial");
    std::fs::copy(kept, &partial)?;
    Ok(std::fs::rename(partial, site.folder.join(name))?)
}
