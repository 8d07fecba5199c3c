//! The signals that a command finds ignored: those that it would find so without us.
//!
//! Rust's runtime ignores SIGPIPE before `main`, and sets it to its default in what it starts; a
//! signal that is listened to has its default in what is started from then on. A command that was
//! to ignore a hangup (`nohup`), or a broken pipe (as systemd's services do), would no longer.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;
use nix::sys::signal::{SigHandler, Signal};
use tokio::process::Command;

/// The signals whose disposition changes on the way from us to a command.
const CHANGED: [Signal; 5] = [
    Signal::SIGPIPE,
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGCHLD,
];

/// Whether SIGPIPE was ignored when this program started.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

#[allow(
    unsafe_code,
    reason = "only what runs before Rust's runtime sees how it found SIGPIPE"
)]
mod before_main {
    use super::{AtomicBool, Ordering, PIPE_WAS_IGNORED, libc};

    extern "C" fn remember() {
        let ignored: &AtomicBool = &PIPE_WAS_IGNORED;
        ignored.store(super::is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    }

    // SAFETY: the loader calls each entry of this section once, on the only thread, with C's
    // calling convention; the function takes nothing and asks the kernel one question.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static REMEMBER: extern "C" fn() = remember;
}

#[allow(unsafe_code, reason = "no safe interface asks for a disposition without changing it")]
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: an all-zero `sigaction` is a valid value of that plain C structure.
    let mut found: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null pointer changes nothing, and `found` is a structure to write to.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut found) };
    asked == 0 && found.sa_sigaction == libc::SIG_IGN
}

/// The signals that this program was told to ignore.
#[derive(Debug, Clone)]
pub(super) struct Ignored(Vec<Signal>);

impl Ignored {
    /// As it is before anything is listened to.
    pub(super) fn now() -> Self {
        let is = |signal: &Signal| match signal {
            Signal::SIGPIPE => PIPE_WAS_IGNORED.load(Ordering::Relaxed),
            other => is_ignored(flopwatch_launcher::signals::number(*other)),
        };
        Self(CHANGED.into_iter().filter(is).collect())
    }

    /// Has `command` ignore them too.
    #[allow(
        unsafe_code,
        reason = "what runs between fork and exec is the caller's to answer for"
    )]
    pub(super) fn hand_on(self, command: &mut Command) {
        let ignore = move || -> io::Result<()> {
            for signal in &self.0 {
                // SAFETY: ignoring a signal runs no code of this process.
                unsafe { nix::sys::signal::signal(*signal, SigHandler::SigIgn) }?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec it makes system calls alone and allocates nothing: what it
        // reads was there before.
        unsafe { command.pre_exec(ignore) };
    }
}
