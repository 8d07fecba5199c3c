//! Room for captures under way.

use std::path::Path;

use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::disk::{self, Floor};
use flopwatch_pipeline::failure::Failure;
use tracing::warn;

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
}
