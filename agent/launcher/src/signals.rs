//! Waits that a signal can interrupt, without a handler that could leak into the workload.
//!
//! The signals are blocked and read from a signalfd: as PID 1 of a container, where a signal
//! without a handler is discarded, a blocked one still arrives. What the process was told to ignore
//! stays ignored.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals that end a wait.
pub const ENDING: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// Blocks signals while it lives and gives the mask back as it was.
#[derive(Debug)]
pub struct SignalWatch {
    before: SigSet,
    fd: SignalFd,
}

impl SignalWatch {
    /// Starts to watch those of `signals` that are neither ignored nor blocked already. Fails
    /// without a free descriptor.
    pub fn new(signals: &[Signal]) -> Result<Self, Errno> {
        let ignored = ignored_signals();
        let before = SigSet::thread_get_mask()?;
        let mut watched = SigSet::empty();
        for signal in signals {
            if !before.contains(*signal) && ignored & (1 << (number(*signal) - 1)) == 0 {
                watched.add(*signal);
            }
        }
        let fd = SignalFd::with_flags(&watched, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        watched.thread_block()?;
        Ok(Self { before, fd })
    }

    /// The mask that this process had before: what it starts gets that one.
    pub fn before(&self) -> &SigSet {
        &self.before
    }

    /// Sleeps for `pause`, or until a watched signal arrives, and returns it.
    pub fn wait(&self, pause: Duration) -> Option<Signal> {
        let timeout = PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        // An interrupted poll is a short sleep: every caller waits in a loop with its own clock.
        poll(&mut fds, timeout).ok();
        let info = self.fd.read_signal().ok().flatten()?;
        i32::try_from(info.ssi_signo)
            .ok()
            .and_then(|number| Signal::try_from(number).ok())
    }
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        self.before.thread_set_mask().ok();
    }
}

/// The signal's number.
#[expect(clippy::as_conversions, reason = "a fieldless enum has no other way to its number")]
pub fn number(signal: Signal) -> i32 {
    signal as i32
}

/// The mask of ignored signals, bit `n - 1` for signal `n`; 0 without /proc.
fn ignored_signals() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|text| parse_ignored(&text))
        .unwrap_or(0)
}

fn parse_ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ignored_mask_is_read_from_status() {
        assert_eq!(parse_ignored("Name:\tx\nSigIgn:\t0000000000001001\n"), Some(0x1001));
        assert_eq!(parse_ignored("Name:\tx\n"), None);
    }
}
