//! Holds whoever opens a certain file, until told otherwise: a stage of a capture stands still at
//! its first look at its input.
//!
//! The kernel asks the listener of a fanotify group for permission and makes the caller wait; a
//! killed caller does not come back. When the group's descriptor closes, whoever waits goes on.

use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::fanotify::{EventFFlags, Fanotify, FanotifyResponse, InitFlags, MarkFlags, MaskFlags, Response};
use std::os::fd::AsFd as _;
use tokio::sync::watch;

use crate::cluster::STATE_TIMEOUT;
use crate::node::Process;

/// Time between two looks at whether the gate is open, in milliseconds.
const POLL_INTERVAL_MS: u16 = 20;

/// A gate before a file; it opens when the value ends.
#[derive(Debug)]
pub struct Gate {
    open: Arc<AtomicBool>,
    waiting: watch::Receiver<Option<Process>>,
    thread: Option<JoinHandle<()>>,
}

impl Gate {
    /// Holds the first process that opens `file` in `folder` and that `who` accepts; all others
    /// pass.
    ///
    /// # Errors
    /// When the kernel has no such gates or the folder does not exist.
    pub fn before(folder: &Path, file: &str, who: impl Fn(Process) -> bool + Send + 'static) -> Result<Self> {
        let group = Fanotify::init(
            InitFlags::FAN_CLASS_CONTENT | InitFlags::FAN_NONBLOCK | InitFlags::FAN_CLOEXEC,
            EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC,
        )
        .context("this kernel asks nobody before files are opened (fanotify)")?;
        group
            .mark(
                MarkFlags::FAN_MARK_ADD,
                MaskFlags::FAN_OPEN_PERM | MaskFlags::FAN_EVENT_ON_CHILD,
                nix::fcntl::AT_FDCWD,
                Some(folder),
            )
            .with_context(|| format!("watching {}", folder.display()))?;
        let open = Arc::new(AtomicBool::new(false));
        let (sender, waiting) = watch::channel(None);
        let (told, file) = (Arc::clone(&open), file.to_owned());
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                let mut fds = [PollFd::new(group.as_fd(), PollFlags::POLLIN)];
                poll(&mut fds, PollTimeout::from(POLL_INTERVAL_MS)).ok();
                for event in group.read_events().unwrap_or_default() {
                    let Some(fd) = event.fd() else { continue };
                    let path = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default();
                    let named = path.file_name().is_some_and(|name| name == file.as_str());
                    let opener = Process::find(event.pid());
                    if let Some(opener) = opener.filter(|opener| named && who(*opener)) {
                        sender.send_replace(Some(opener));
                    } else {
                        group
                            .write_response(FanotifyResponse::new(fd, Response::FAN_ALLOW))
                            .ok();
                    }
                }
            }
        });
        Ok(Self {
            open,
            waiting,
            thread: Some(thread),
        })
    }

    /// Waits until somebody stands at the gate.
    ///
    /// # Errors
    /// When nobody came in time.
    pub async fn reached(&mut self) -> Result<Process> {
        let reached = tokio::time::timeout(STATE_TIMEOUT, self.waiting.wait_for(Option::is_some)).await;
        let process = reached.with_context(|| format!("nobody came to the gate within {STATE_TIMEOUT:?}"))?;
        let process = *process.context("the gate's thread ended")?;
        process.context("nobody stands at the gate")
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod crate_tests {
    use super::*;

    #[tokio::test]
    async fn who_is_held_stands_still_until_the_gate_opens() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: gates are root's");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (input, other) = (folder.path().join("input"), folder.path().join("other"));
        std::fs::write(&input, "").unwrap();
        std::fs::write(&other, "").unwrap();
        let mut gate = Gate::before(folder.path(), "input", |process| process.runs("cat")).unwrap();
        assert!(
            std::process::Command::new("cat")
                .arg(&other)
                .status()
                .unwrap()
                .success()
        );
        let mut held = std::process::Command::new("cat").arg(&input).spawn().unwrap();
        let process = gate.reached().await.unwrap();
        assert_eq!(u32::try_from(process.pid), Ok(held.id()));
        assert!(held.try_wait().unwrap().is_none());
        drop(gate);
        assert!(held.wait().unwrap().success());
    }
}
