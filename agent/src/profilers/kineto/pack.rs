//! The traces of a window, copied out of the container into one archive.

use std::fs::File;
use std::io::{Read, Seek as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::kineto::TraceFolder;
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_model::{Loss, count};
use flopwatch_pipeline::failure::Failure;
use flopwatch_trace::kineto::LOSSES;
use tar::{Builder, Header};

use super::RAW;
use super::trace_directory::TraceDirectory;
use crate::bound::Bound;
use crate::profilers::Site;

/// Most traces of a container.
const MAX_TRACES: usize = 256;
/// The archive before it is whole.
const PARTIAL: &str = "capture.partial";

/// The traces that an archive is made of, and their bound.
#[derive(Debug)]
pub(super) struct Contents {
    /// Names of the traces.
    pub(super) traces: Vec<String>,
    /// What is missing, or was cut.
    pub(super) losses: Vec<Loss>,
    /// Most bytes of the traces.
    pub(super) bound: Bound,
}

/// Why an archive was not made.
#[derive(Debug, thiserror::Error)]
enum PackError {
    /// A trace could not be copied out.
    #[error(transparent)]
    Trace(#[from] RootfsError),
    /// The archive could not be written.
    #[error("cannot write the archive of the traces")]
    Archive(#[from] std::io::Error),
}

/// Makes the archive in the capture's folder, while `goes_on` says so, within `limit`.
pub(super) fn pack(
    place: &TraceDirectory<'_>,
    site: &Site,
    contents: Contents,
    limit: Duration,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let failed = || Failure::because(CaptureReason::CollectionFailed);
    let partial = site.folder.join(PARTIAL);
    // Opened here: a thread that is left behind has no path to write to.
    let archive = File::create(&partial).map_err(failed())?;
    let copy = tempfile::tempfile_in(&site.folder).map_err(failed())?;
    let (folder, bound) = (place.folder(), contents.bound);
    let packed = place.work(limit, goes_on, move |is_over| {
        write(archive, copy, &folder, &contents, is_over)
    })?;
    packed.map_err(|error| match error {
        PackError::Trace(RootfsError::TooLarge { .. }) => outgrown(bound),
        PackError::Trace(RootfsError::Stopped { .. }) => {
            let message = "interrupted, or short of free disk space, while the traces were taken out";
            Failure::new(CaptureReason::DiskSpace, message)
        }
        PackError::Trace(error) => place.failed(&error),
        PackError::Archive(error) => failed()(error),
    })?;
    std::fs::rename(&partial, site.folder.join(RAW)).map_err(failed())
}

/// Copies the traces one after the other, with a list of what is missing where something is.
fn write(
    archive: File,
    mut copy: File,
    folder: &TraceFolder,
    contents: &Contents,
    is_over: &AtomicBool,
) -> Result<(), PackError> {
    let mut archive = Builder::new(archive);
    let mut left = contents.bound.bytes;
    for name in contents.traces.iter().take(MAX_TRACES) {
        copy.set_len(0)?;
        copy.rewind()?;
        let bytes = folder.copy_out(name, &mut copy, left, |_| !is_over.load(Ordering::Relaxed))?;
        left = left.saturating_sub(bytes);
        copy.rewind()?;
        append(&mut archive, name, &mut copy, bytes)?;
    }
    if !contents.losses.is_empty() {
        let list = serde_json::to_vec(&contents.losses).map_err(std::io::Error::from)?;
        append(&mut archive, LOSSES, &mut list.as_slice(), count(list.len()))?;
    }
    archive.into_inner()?.sync_data()?;
    Ok(())
}

fn append(archive: &mut Builder<File>, name: &str, content: &mut dyn Read, bytes: u64) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(bytes);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, content.take(bytes))
}

/// The failure of traces that are larger than they may be.
pub(super) fn outgrown(bound: Bound) -> Failure {
    let failure = bound.outgrown();
    let message = format!("{}; stacks and shapes make traces larger", failure.message);
    Failure::new(failure.reason, message)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use flopwatch_attach::kineto::folder_name;
    use flopwatch_attach::process::Procfs;
    use flopwatch_model::LossReason;

    use super::*;
    use crate::bound::BoundBy;

    const CAPTURE: &str = "0a1b2c3d-1111-2222-3333-444455556666";

    /// A folder of this process with two traces.
    fn traces(temporary: &Path) -> TraceFolder {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        let folder = TraceFolder::new(procfs, own, temporary.join(folder_name(CAPTURE)));
        folder.make().unwrap();
        for (name, text) in [("trace-1_7.json", "{\"a\": 1}"), ("trace-1_8.json", "{}")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn contents(bytes: u64) -> Contents {
        Contents {
            traces: ["trace-1_7.json", "trace-1_8.json"].map(str::to_owned).to_vec(),
            losses: vec![Loss {
                reason: LossReason::Dropped,
                what: "processes that wrote no trace".to_owned(),
                count: 2,
            }],
            bound: Bound {
                bytes,
                by: BoundBy::Agent,
            },
        }
    }

    #[test]
    fn traces_and_what_is_missing_are_in_one_archive() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = traces(temporary.path());
        let file = tempfile::NamedTempFile::new().unwrap();
        let over = AtomicBool::new(false);
        let copy = tempfile::tempfile().unwrap();
        write(file.reopen().unwrap(), copy, &folder, &contents(10), &over).unwrap();
        let mut archive = tar::Archive::new(file.reopen().unwrap());
        let held: BTreeMap<String, String> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let name = entry.path().unwrap().to_str().unwrap().to_owned();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                (name, text)
            })
            .collect();
        assert_eq!(
            (held["trace-1_7.json"].as_str(), held["trace-1_8.json"].as_str()),
            ("{\"a\": 1}", "{}")
        );
        let losses: Vec<Loss> = serde_json::from_str(&held[LOSSES]).unwrap();
        assert_eq!((losses.len(), losses[0].count), (1, 2));
    }

    #[test]
    fn traces_beyond_the_bound_and_copies_that_are_not_to_go_on_end_the_archive() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = traces(temporary.path());
        let write = |bytes, over| {
            let (archive, copy) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
            write(archive, copy, &folder, &contents(bytes), &AtomicBool::new(over))
        };
        assert!(matches!(
            write(9, false),
            Err(PackError::Trace(RootfsError::TooLarge { .. }))
        ));
        assert!(matches!(
            write(10, true),
            Err(PackError::Trace(RootfsError::Stopped { .. }))
        ));
        assert_eq!(outgrown(contents(9).bound).reason, CaptureReason::CaptureTooLarge);
    }
}
