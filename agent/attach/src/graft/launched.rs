//! The agent's side of a program that its profiler starts: there is no session, but a launcher that
//! waits for the agent, and files that the profiler leaves ([`flopwatch_launcher::profile`]).

use std::io::Write;
use std::path::PathBuf;

use flopwatch_launcher::run_dir;

use super::{GraftError, Target};
use crate::rootfs::RootfsError;

impl Target {
    /// Lets the profiler start the program. Safe to run twice.
    pub fn begin(&self) -> Result<(), GraftError> {
        self.send_verb("begin")
    }

    /// Has the program ended, so that the profiler writes its report. Safe to run twice.
    pub fn end_program(&self) -> Result<(), GraftError> {
        self.send_verb("shutdown")
    }

    /// Bytes of a file that the profiler wrote; none where there is no such file.
    pub fn written_bytes(&self, name: &str) -> Result<Option<u64>, GraftError> {
        match self.root()?.stat(&self.written(name)) {
            Ok(facts) => Ok(Some(facts.bytes)),
            Err(RootfsError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Copies a file out that the profiler wrote, at most `limit` bytes, and leaves it where it is;
    /// returns its bytes.
    pub fn copy_written(
        &self,
        name: &str,
        to: &mut dyn Write,
        limit: u64,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<u64, GraftError> {
        Ok(self.root()?.copy_out(&self.written(name), to, limit, progress)?)
    }

    /// Removes the files that the profiler wrote and lets the container end. Safe to run twice.
    pub fn let_go(&self, names: &[&str]) -> Result<(), GraftError> {
        let root = self.root()?;
        for name in names.iter().chain([&run_dir::UNTAKEN]) {
            root.remove(&self.written(name))?;
        }
        Ok(())
    }

    /// Where the profiler writes a file, in the container.
    fn written(&self, name: &str) -> PathBuf {
        self.run_dir.join(run_dir::OUT).join(name)
    }
}
