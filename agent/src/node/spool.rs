//! Folders of captures under way.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flopwatch_api::reason::CaptureReason;
use nix::sys::statvfs::statvfs;
use nix::unistd::Gid;
use tracing::warn;

use crate::failure::Failure;

/// Makes a capture's folder: ours, writable for the group that its children run as, closed to everybody else.
///
/// It stays in our hands, so that its files can be removed without a capability for it; giving the group needs CAP_CHOWN
/// or the membership in that group.
pub(crate) fn make(folder: &Path, group: u32) -> Result<(), Failure> {
    let failed = || Failure::because(CaptureReason::StoreFailed);
    std::fs::create_dir_all(folder).map_err(failed())?;
    nix::unistd::chown(folder, None, Some(Gid::from_raw(group))).map_err(|error| {
        let message = format!("the spool folder cannot be given to group {group} of the child processes: {error}");
        Failure::new(CaptureReason::StoreFailed, message)
    })?;
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o2770))
        .map_err(Failure::because(CaptureReason::StoreFailed))
}

/// Fails when less than `floor` bytes are free on the folder's file system.
pub(super) fn check_free(folder: &Path, floor: u64) -> Result<(), Failure> {
    let free = match statvfs(folder) {
        Ok(facts) => facts.blocks_available().saturating_mul(facts.fragment_size()),
        Err(error) => {
            warn!(folder = %folder.display(), %error, "the free disk space is unknown");
            return Ok(());
        }
    };
    if free >= floor {
        return Ok(());
    }
    let message = format!("the node's disk has {free} bytes free and the agent must leave {floor} (--min-free-bytes)");
    Err(Failure::new(CaptureReason::DiskSpace, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_by_its_numbers() {
        let folder = tempfile::tempdir().unwrap();
        check_free(folder.path(), 1).unwrap();
        let failure = check_free(folder.path(), u64::MAX).unwrap_err();
        assert_eq!(failure.reason, CaptureReason::DiskSpace);
    }

    #[test]
    fn a_capture_folder_is_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join("uid");
        make(&spool, nix::unistd::getgid().as_raw()).unwrap();
        assert_eq!(std::fs::metadata(&spool).unwrap().permissions().mode() & 0o7777, 0o2770);
        make(&spool, nix::unistd::getgid().as_raw()).unwrap();
    }
}
