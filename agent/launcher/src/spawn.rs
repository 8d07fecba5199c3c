//! Starting a program with the signals that this process was given itself.
//!
//! `std`'s `Command` hands the mask of the moment on, in which the signals that are watched here
//! are blocked, and sets SIGPIPE to its default. A program would run deaf to SIGTERM, or end over a
//! pipe that it was told to ignore.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use nix::fcntl::OFlag;
use nix::sys::signal::{SigHandler, SigSet, Signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, pipe2};

use crate::exec;
use crate::fork::fork;

/// What a program gets for its standard streams, and for SIGPIPE.
#[derive(Debug)]
pub(crate) enum Streams {
    /// Those of this process, which was started for the program's sake; every disposition as this
    /// process got it.
    Own,
    /// Nothing to read, and its output goes there, or where this process's goes: a helper of ours,
    /// for which SIGPIPE is what it is by default, whatever Rust's runtime made of it here.
    Helper(Option<File>),
}

/// Starts `command` with the signal mask `mask`. Fails when there can be no second process, or the
/// command cannot be run.
pub(crate) fn start(command: &[CString], environment: &[CString], mask: &SigSet, streams: &Streams) -> io::Result<Pid> {
    let (told, tell) = pipe2(OFlag::O_CLOEXEC)?;
    match fork()? {
        ForkResult::Child => {
            let error = become_program(command, environment, mask, streams);
            // Nobody may listen any more.
            drop(File::from(tell).write_all(&error.raw_os_error().unwrap_or_default().to_le_bytes()));
            leave()
        }
        ForkResult::Parent { child } => {
            drop(tell);
            let mut code = Vec::new();
            File::from(told).read_to_end(&mut code)?;
            match <[u8; 4]>::try_from(code) {
                // The pipe closed by itself: the program runs.
                Err(_) => Ok(child),
                Ok(code) => {
                    waitpid(child, None).ok();
                    Err(io::Error::from_raw_os_error(i32::from_le_bytes(code)))
                }
            }
        }
    }
}

/// Replaces this process; returns only why that failed.
fn become_program(command: &[CString], environment: &[CString], mask: &SigSet, streams: &Streams) -> io::Error {
    let prepared = match streams {
        Streams::Own => Ok(()),
        Streams::Helper(output) => redirect(output.as_ref()).and_then(|()| default_sigpipe()),
    };
    if let Err(error) = prepared.and_then(|()| Ok(mask.thread_set_mask()?)) {
        return error;
    }
    let Err(error) = exec::exec(command, environment);
    error.into()
}

fn redirect(output: Option<&File>) -> io::Result<()> {
    let nothing = OpenOptions::new().read(true).open("/dev/null")?;
    dup2_stdin(nothing.as_fd())?;
    if let Some(output) = output {
        dup2_stdout(output.as_fd())?;
        dup2_stderr(output.as_fd())?;
    }
    Ok(())
}

#[allow(unsafe_code, reason = "a disposition could name a handler; this one is the default")]
fn default_sigpipe() -> io::Result<()> {
    // SAFETY: the default action runs no code of this process.
    unsafe { nix::sys::signal::signal(Signal::SIGPIPE, SigHandler::SigDfl) }?;
    Ok(())
}

#[expect(clippy::exit, reason = "the second process has no caller to return to")]
fn leave() -> ! {
    std::process::exit(127)
}
