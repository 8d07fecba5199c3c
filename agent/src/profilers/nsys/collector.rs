//! The way to the session in a container: a trait, so that tests put a double here.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_api::preparation::NSYS_SESSION;
use flopwatch_attach::graft::{Bounds, GraftError, LauncherState, Target};
use flopwatch_attach::nsys::{Collection, SessionState};
use flopwatch_attach::rootfs::Volume;
use flopwatch_launcher::guard::Verdict;

use crate::profilers::Progress;

/// The profiler's session in one container. Every call may block, but is bounded.
pub trait Collector: Send + Sync {
    /// Room of the volume that captures are written to.
    fn volume(&self) -> Result<Volume, GraftError>;

    /// Starts a collection whose raw captures will have that name; its bounds hold from before the
    /// start on.
    fn start(&self, name: &str, collection: &Collection, bounds: Bounds) -> Result<(), GraftError>;

    /// Ends it; returns the paths of its raw captures in the container, one for each range that it
    /// recorded.
    fn stop(&self, name: &str) -> Result<Vec<PathBuf>, GraftError>;

    /// Ends it and throws it away. Safe to run twice.
    fn discard(&self, name: &str) -> Result<(), GraftError>;

    /// Why the session's supervisor ended the collection by itself; none where it did not.
    fn verdict(&self) -> Option<Verdict>;

    /// State of the session.
    fn session(&self) -> Result<SessionState, GraftError>;

    /// Has the session's supervisor end a session that hangs on its way to its end. Safe to run
    /// twice.
    fn end_session(&self) -> Result<(), GraftError>;

    /// Waits until no control command is at work.
    fn await_quiet(&self) -> io::Result<()>;

    /// How many raw captures of that name lie in the container.
    fn captures(&self, name: &str) -> Result<usize, GraftError>;

    /// Copies a raw capture out, at most `limit` bytes.
    fn copy_out(&self, path: &Path, to: &mut dyn Write, limit: u64, progress: Progress<'_>) -> Result<u64, GraftError>;

    /// Removes the raw captures of that name; true when there was one. Safe to run twice.
    fn remove(&self, name: &str) -> Result<bool, GraftError>;

    /// What the launcher did in the end; none while it waits.
    fn launcher(&self) -> Result<Option<LauncherState>, GraftError>;

    /// Waits for what [`Collector::launcher`] tells, for at most `limit`.
    fn await_launcher(&self, limit: Duration) -> Result<LauncherState, GraftError>;

    /// Processor time that the session, its supervisor and control commands have used so far; none
    /// where that cannot be read.
    fn processor_time(&self) -> Option<Duration>;

    /// Whether the program of a container that is held has ended.
    fn has_ended(&self) -> bool;

    /// Whether the process that it goes through still runs.
    fn is_alive(&self) -> bool;
}

impl Collector for Target {
    fn volume(&self) -> Result<Volume, GraftError> {
        Self::volume(self)
    }

    fn start(&self, name: &str, collection: &Collection, bounds: Bounds) -> Result<(), GraftError> {
        self.start_collection(NSYS_SESSION, name, collection, bounds)
    }

    fn stop(&self, name: &str) -> Result<Vec<PathBuf>, GraftError> {
        self.stop_ranges(NSYS_SESSION, name)
    }

    fn discard(&self, name: &str) -> Result<(), GraftError> {
        self.discard_collection(NSYS_SESSION, name)
    }

    fn verdict(&self) -> Option<Verdict> {
        self.guard_verdict()
    }

    fn session(&self) -> Result<SessionState, GraftError> {
        self.session_state(NSYS_SESSION)
    }

    fn end_session(&self) -> Result<(), GraftError> {
        self.end_hanging_session()
    }

    fn await_quiet(&self) -> io::Result<()> {
        Self::await_quiet(self)
    }

    fn captures(&self, name: &str) -> Result<usize, GraftError> {
        Ok(self.captures_of(name)?.len())
    }

    fn copy_out(&self, path: &Path, to: &mut dyn Write, limit: u64, progress: Progress<'_>) -> Result<u64, GraftError> {
        self.copy_capture(path, to, limit, progress)
    }

    fn remove(&self, name: &str) -> Result<bool, GraftError> {
        self.remove_captures_of(name)
    }

    fn launcher(&self) -> Result<Option<LauncherState>, GraftError> {
        self.read_state()
    }

    fn await_launcher(&self, limit: Duration) -> Result<LauncherState, GraftError> {
        self.await_state(limit)
    }

    fn processor_time(&self) -> Option<Duration> {
        self.cgroup.as_ref()?.processor_time()
    }

    fn has_ended(&self) -> bool {
        Self::has_ended(self).unwrap_or(false)
    }

    fn is_alive(&self) -> bool {
        self.procfs.is_alive(self.process)
    }
}
