//! Folders of captures under way.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flopwatch_api::reason::CaptureReason;
use tracing::warn;

use crate::disk::{self, Floor};
use crate::failure::Failure;

/// Makes a capture's folder: the agent's alone. Children have one of their own in it ([`crate::workplace`]).
pub(crate) fn make(folder: &Path) -> Result<(), Failure> {
    let failed = || Failure::because(CaptureReason::StoreFailed);
    std::fs::create_dir_all(folder).map_err(failed())?;
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).map_err(failed())
}

/// Fails when less than the floor is free on the folder's file system.
pub(super) fn check_free(folder: &Path, floor: Floor) -> Result<(), Failure> {
    match disk::volume(folder) {
        Ok(volume) => floor
            .above(volume)
            .map(drop)
            .map_err(Failure::because(CaptureReason::DiskSpace)),
        Err(error) => {
            warn!(folder = %folder.display(), %error, "the free disk space is unknown");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_by_its_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let floor = |bytes, percent| Floor { bytes, percent };
        check_free(folder.path(), floor(1, 0)).unwrap();
        for floor in [floor(u64::MAX, 0), floor(0, 100)] {
            let failure = check_free(folder.path(), floor).unwrap_err();
            assert_eq!(failure.reason, CaptureReason::DiskSpace);
        }
    }

    #[test]
    fn h1_a_capture_folder_is_closed_to_everybody_but_the_agent() {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join("uid");
        make(&spool).unwrap();
        assert_eq!(std::fs::metadata(&spool).unwrap().permissions().mode() & 0o7777, 0o700);
        make(&spool).unwrap();
    }
}
