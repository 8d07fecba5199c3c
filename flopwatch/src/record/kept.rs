//! Libraries that a command's programs load, in a folder that stays for as long as the command may
//! start programs.
//!
//! Beside Nsight Systems that is the library which starts a program without the profiler where its
//! session is gone: a session ends with its window, and the command may run on. Each program that
//! it starts then would be ended by the profiler's own library. So the launcher's fallback library
//! is preloaded before that one, as in a prepared pod.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flopwatch_launcher::copy::{self, CopyError};
use tempfile::TempDir;

/// A folder of libraries.
#[derive(Debug)]
pub struct Kept {
    folder: TempDir,
}

impl Kept {
    /// Makes an empty folder. It goes when this is dropped, unless [`Kept::stay`] was called.
    pub(super) fn make(prefix: &str) -> Result<Self, CopyError> {
        let folder = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir()
            .map_err(|source| CopyError::new("make a folder in", &std::env::temp_dir(), source))?;
        // The command may start programs as another user.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))
            .map_err(|source| CopyError::new("set the mode of", folder.path(), source))?;
        Ok(Self { folder })
    }

    /// A folder with the fallback library, and its path.
    pub(super) fn with_fallback() -> Result<(Self, PathBuf), CopyError> {
        let kept = Self::make(".flopwatch-fallback-")?;
        let library = copy::install_fallback(kept.path())?;
        Ok((kept, library))
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The command runs: the libraries stay, whatever becomes of this process.
    pub(super) fn stay(&mut self) {
        self.folder.disable_cleanup(true);
    }

    /// The command has ended: the libraries go.
    pub(super) fn remove(mut self) {
        self.folder.disable_cleanup(false);
    }
}
