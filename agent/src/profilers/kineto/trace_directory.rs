//! The folder of a capture's traces in its container, looked at on threads that may be left behind.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::{Gate, Late};
use flopwatch_attach::kineto::TraceFolder;
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_pipeline::failure::{Failure, chain};

use super::Collection;
use crate::profilers::Site;

/// How long a container's files are waited for.
const FILES_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two questions whether work is to go on.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

/// Where the traces of a capture lie.
#[derive(Clone, Debug)]
pub(super) struct TraceDirectory<'a> {
    gate: &'a Gate,
    site: &'a Site,
    path: PathBuf,
    /// Reason of every failure to look at the folder.
    reason: CaptureReason,
}

impl<'a> TraceDirectory<'a> {
    /// The folder of a collection's traces. Failures to look at it have that reason.
    pub(super) fn of(gate: &'a Gate, site: &'a Site, collection: &Collection, reason: CaptureReason) -> Self {
        Self::at(gate, site, collection.folder(&site.capture), reason)
    }

    /// The folder at that path of the container.
    pub(super) fn at(gate: &'a Gate, site: &'a Site, path: PathBuf, reason: CaptureReason) -> Self {
        Self {
            gate,
            site,
            path,
            reason,
        }
    }

    /// The folder as the container's process sees it; nothing is opened yet.
    pub(super) fn folder(&self) -> TraceFolder {
        TraceFolder::new(self.site.containers.procfs(), self.site.process, self.path.clone())
    }

    /// Does something short with it.
    pub(super) fn inspect<T: Send + 'static>(
        &self,
        work: impl FnOnce(&TraceFolder) -> Result<T, RootfsError> + Send + 'static,
    ) -> Result<T, Failure> {
        let folder = self.folder();
        let done = self
            .gate
            .within(&self.site.container_id, FILES_TIMEOUT, move || work(&folder));
        done.map_err(|late| self.silent(late))?
            .map_err(|error| self.failed(&error))
    }

    /// Does something with it that takes time, until that is done, `limit` has passed, or `goes_on`
    /// says no, which the work is told.
    pub(super) fn work<T: Send + 'static>(
        &self,
        limit: Duration,
        goes_on: &dyn Fn() -> bool,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let done = until(self.gate, &self.site.container_id, limit, goes_on, work);
        done.map_err(|late| self.silent(late))
    }

    fn silent(&self, late: Late) -> Failure {
        let message = format!("the container's files do not answer: {late}");
        Failure::new(self.reason, message)
    }

    /// The failure that a file of the container made.
    pub(super) fn failed(&self, error: &RootfsError) -> Failure {
        if !self.site.containers.is_alive(self.site.process) {
            let message = "the container has ended, and what it had written of its traces with it";
            return Failure::new(CaptureReason::TargetNotRunning, message);
        }
        let mut message = chain(error);
        if matches!(error, RootfsError::Mount(_)) {
            message.push_str(
                ": set TMPDIR of the program to a folder of its container, or of a volume that is on the node's own disk or in memory",
            );
        }
        Failure::new(self.reason, message)
    }
}

/// Does work on a thread that may be left behind. Where `goes_on` says no, the work is told, and
/// has as long as a look to end.
fn until<T: Send + 'static>(
    gate: &Gate,
    key: &str,
    limit: Duration,
    goes_on: &dyn Fn() -> bool,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, Late> {
    let is_over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_over);
    let (tell, answer) = sync_channel(1);
    gate.begin(
        key,
        move || work(&told),
        move |found| {
            // Nobody listens any more where it came too late.
            tell.send(found).ok();
        },
    )?;
    let mut end = Instant::now() + limit;
    loop {
        match answer.recv_timeout(ASK_INTERVAL) {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Disconnected) => return Err(Late::NoThread),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        if now >= end {
            is_over.store(true, Ordering::Relaxed);
            return Err(Late::Waited(limit));
        }
        if !is_over.load(Ordering::Relaxed) && !goes_on() {
            is_over.store(true, Ordering::Relaxed);
            end = end.min(now + FILES_TIMEOUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_never_comes_back_is_left_behind_at_its_limit() {
        let gate = Gate::default();
        let (release, held) = sync_channel::<()>(0);
        let limit = Duration::from_millis(50);
        let left = until(&gate, "hangs", limit, &|| true, move |_| held.recv().is_ok());
        assert_eq!(left, Err(Late::Waited(limit)));
        assert_eq!(until(&gate, "hangs", limit, &|| true, |_| 1), Err(Late::Busy));
        assert_eq!(until(&gate, "other", Duration::from_mins(1), &|| true, |_| 2), Ok(2));
        drop(release);
    }

    #[test]
    fn work_that_is_not_to_go_on_is_told_and_waited_for() {
        let gate = Gate::default();
        let ended = until(&gate, "x", Duration::from_mins(1), &|| false, |is_over| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            "ended"
        });
        assert_eq!(ended, Ok("ended"));
    }
}
