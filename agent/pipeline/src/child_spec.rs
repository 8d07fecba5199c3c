//! A child to run: what it is, and what it may read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::Floor;
use crate::sandbox_dir::SandboxDir;
use crate::steps::Error;

/// A child to run.
pub(crate) struct ChildSpec {
    pub(crate) name: &'static str,
    pub(crate) command: Vec<String>,
    pub(crate) gpu: bool,
    pub(crate) keeps_memory: bool,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) limit: Duration,
    /// Free disk space that it leaves.
    pub(crate) floor: Floor,
}

impl ChildSpec {
    pub(crate) const fn new(name: &'static str, command: Vec<String>, limit: Duration, floor: Floor) -> Self {
        Self {
            name,
            command,
            gpu: false,
            keeps_memory: false,
            readable: Vec::new(),
            limit,
            floor,
        }
    }

    /// Lets the child read a file; what lies in its own folder it can read as it is.
    pub(crate) fn reads(&mut self, sandbox: &SandboxDir, file: &Path) -> Result<(), Error> {
        if !file.starts_with(sandbox.path()) && !self.readable.iter().any(|shown| shown == file) {
            let step = self.name;
            sandbox.show(file).map_err(|source| Error::Prepare { step, source })?;
            self.readable.push(file.to_owned());
        }
        Ok(())
    }
}
