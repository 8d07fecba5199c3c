//! Folders in which this program keeps the sandbox folders of its children.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flopwatch_api::reason::CaptureReason;
use tracing::warn;

use crate::failure::{Failure, chain};
use crate::sandbox_dir;
use crate::steps::ChildRunner;

/// Makes a folder that is this program's alone. Children have one of their own in it
/// ([`crate::sandbox_dir`]).
pub fn make(folder: &Path) -> Result<(), Failure> {
    let failed = || Failure::because(CaptureReason::StoreFailed);
    std::fs::create_dir_all(folder).map_err(failed())?;
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).map_err(failed())
}

/// Removes a folder: first, as their user, what its children left. Safe to repeat.
pub async fn remove(folder: &Path, steps: &ChildRunner) {
    if !folder.exists() {
        return;
    }
    if let Err(error) = tokio::fs::remove_dir_all(folder).await {
        // Without CAP_DAC_OVERRIDE even root cannot empty a folder that another user made in it.
        for left in sandbox_dirs(folder).await {
            if let Err(error) = steps.clear(&left).await {
                warn!(folder = %left.display(), error = %chain(&error), "clearing a folder of children failed");
            }
        }
        match tokio::fs::remove_dir_all(folder).await {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(second) => warn!(folder = %folder.display(), first = %error, error = %second, "a spool folder stays"),
        }
    }
}

/// Folders of children: a folder itself, in it, and in those in it.
async fn sandbox_dirs(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.join(sandbox_dir::NAME)];
    found.extend(folder.ends_with(sandbox_dir::NAME).then(|| folder.to_owned()));
    if let Ok(mut entries) = tokio::fs::read_dir(folder).await {
        while let Ok(Some(entry)) = entries.next_entry().await {
            found.push(entry.path().join(sandbox_dir::NAME));
        }
    }
    found.retain(|path| path.symlink_metadata().is_ok_and(|facts| facts.is_dir()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_folder_is_closed_to_everybody_but_the_agent() {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join("uid");
        make(&spool).unwrap();
        assert_eq!(std::fs::metadata(&spool).unwrap().permissions().mode() & 0o7777, 0o700);
        make(&spool).unwrap();
    }
}
