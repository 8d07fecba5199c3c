//! What the tracer's file of a container still holds of a time that is past, while its programs
//! write to it.

use std::fs::{self, File};
use std::path::PathBuf;

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_attach::tracer::{self, open_to_read};
use flopwatch_pipeline::cuda_window;
use flopwatch_pipeline::failure::Failure;
use flopwatch_trace::tracer::Drain;

use super::window::failed;
use super::{FILES_TIMEOUT, limits};
use crate::profilers::Site;

/// What is taken before it is whole, in the capture's folder.
const PARTIAL: &str = "recent.partial";

/// Takes what the file at `path` of the site's container holds of what ran since a time, in ns
/// since the Unix epoch, into the capture's folder, under a name that is there only when it is
/// whole; false where there is no such file, or it holds nothing of that.
pub(crate) fn take(gate: &Gate, site: &Site, path: PathBuf, since_utc_ns: u64, name: &str) -> Result<bool, Failure> {
    let not_stored = || Failure::because(CaptureReason::StoreFailed);
    let partial = site.folder.join(PARTIAL);
    let copy = File::create(&partial).map_err(not_stored())?;
    let (procfs, process, limits) = (site.containers.procfs(), site.process, limits(site));
    let taken = gate.within(&site.container_id, FILES_TIMEOUT, move || {
        let file = open_to_read(&procfs, process, &path)?;
        Ok::<_, cuda_window::Error>(Drain::recent(file, copy, &limits, since_utc_ns, false)?)
    });
    let taken = taken.map_err(Failure::because(CaptureReason::AttachFailed))?;
    let records = match taken {
        Err(cuda_window::Error::File(tracer::Error::Container(RootfsError::NotFound { .. }))) => 0,
        taken => taken.map_err(|error| failed(&error))?,
    };
    if records == 0 {
        fs::remove_file(&partial).map_err(not_stored())?;
        return Ok(false);
    }
    fs::rename(partial, site.folder.join(name)).map_err(not_stored())?;
    Ok(true)
}
