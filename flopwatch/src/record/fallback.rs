//! The library that starts a program without the profiler where its session is gone.
//!
//! A session ends with its window, and the command may run on: each program that it starts then
//! would be ended by the profiler's own library. So the launcher's fallback library is preloaded
//! before that one, as in a prepared pod. It lies in a folder of its own, which stays for as long
//! as the command may start programs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flopwatch_launcher::copy::{self, CopyError};
use tempfile::TempDir;

/// The library in its folder.
#[derive(Debug)]
pub struct Fallback {
    folder: TempDir,
    library: PathBuf,
}

impl Fallback {
    /// Writes the library. It goes when this is dropped, unless [`Fallback::stay`] was called.
    pub(super) fn install() -> Result<Self, CopyError> {
        let folder = tempfile::Builder::new()
            .prefix(".flopwatch-fallback-")
            .tempdir()
            .map_err(|source| CopyError::new("make a folder in", &std::env::temp_dir(), source))?;
        // The command may start programs as another user.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))
            .map_err(|source| CopyError::new("set the mode of", folder.path(), source))?;
        let library = copy::install_fallback(folder.path())?;
        Ok(Self { folder, library })
    }

    pub(super) fn library(&self) -> &Path {
        &self.library
    }

    /// The command runs: the library stays, whatever becomes of this process.
    pub(super) fn stay(&mut self) {
        self.folder.disable_cleanup(true);
    }

    /// The command has ended: the library goes.
    pub(super) fn remove(mut self) {
        self.folder.disable_cleanup(false);
    }
}
