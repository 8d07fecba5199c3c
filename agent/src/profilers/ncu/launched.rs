//! The way to a program that its profiler started: a trait, so that tests put a double here.

use std::io::Write;

use flopwatch_attach::graft::{GraftError, Target};
use flopwatch_attach::rootfs::Volume;

use crate::profilers::Progress;

/// A program that its profiler started, in one container. Every call may block, but is bounded.
pub trait Launched: Send + Sync {
    /// Room of the volume that the profiler writes to.
    fn volume(&self) -> Result<Volume, GraftError>;

    /// Lets the profiler start the program. Safe to run twice.
    fn begin(&self) -> Result<(), GraftError>;

    /// Tells the launcher that there will be no profile, and why: the program is not run.
    fn refuse(&self, why: &str) -> Result<(), GraftError>;

    /// Has the program ended, so that the profiler writes its report. Safe to run twice.
    fn end_program(&self) -> Result<(), GraftError>;

    /// Whether the profiler has ended.
    fn has_ended(&self) -> bool;

    /// Bytes of a file that the profiler wrote; none where there is no such file.
    fn written_bytes(&self, name: &str) -> Result<Option<u64>, GraftError>;

    /// Copies such a file out, at most `limit` bytes.
    fn copy_written(
        &self,
        name: &str,
        to: &mut dyn Write,
        limit: u64,
        progress: Progress<'_>,
    ) -> Result<u64, GraftError>;

    /// Removes such files and lets the container end. Safe to run twice.
    fn let_go(&self, names: &[&str]) -> Result<(), GraftError>;
}

impl Launched for Target {
    fn volume(&self) -> Result<Volume, GraftError> {
        Self::volume(self)
    }

    fn begin(&self) -> Result<(), GraftError> {
        Self::begin(self)
    }

    fn refuse(&self, why: &str) -> Result<(), GraftError> {
        Self::refuse(self, why)
    }

    fn end_program(&self) -> Result<(), GraftError> {
        Self::end_program(self)
    }

    fn has_ended(&self) -> bool {
        Self::has_ended(self).unwrap_or(false)
    }

    fn written_bytes(&self, name: &str) -> Result<Option<u64>, GraftError> {
        Self::written_bytes(self, name)
    }

    fn copy_written(
        &self,
        name: &str,
        to: &mut dyn Write,
        limit: u64,
        progress: Progress<'_>,
    ) -> Result<u64, GraftError> {
        Self::copy_written(self, name, to, limit, progress)
    }

    fn let_go(&self, names: &[&str]) -> Result<(), GraftError> {
        Self::let_go(self, names)
    }
}
