//! A program to execute from a descriptor: a sealed copy of it in memory.
//!
//! A container sees what runs in it at `/proc/PID/exe`, and a container's root may write to a file
//! of root's that it can reach so (CVE-2019-5736). It reaches a copy which nobody can change.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::AtFlags;
use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, Pid};
use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

use crate::fork::{self, exit_now, fork};

/// Largest program that is copied.
const LIMIT: u64 = 64 << 20;

/// Why a program cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// The program cannot be copied into memory.
    #[error("{}: {source}", path.display())]
    Copy {
        /// The program's own path.
        path: PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The program cannot be executed.
    #[error("{action}: {source}")]
    Start {
        /// What was tried.
        action: &'static str,
        /// Error of the kernel.
        source: nix::Error,
    },
}

/// The copy; gone with its last process.
#[derive(Debug)]
pub(crate) struct Program {
    copy: OwnedFd,
}

impl Program {
    /// Copies the program at `path` of the caller's own mount namespace.
    pub(crate) fn copy(path: &Path) -> Result<Self, ProgramError> {
        Self::sealed(path).map_err(|source| ProgramError::Copy {
            path: path.to_owned(),
            source,
        })
    }

    fn sealed(path: &Path) -> std::io::Result<Self> {
        let from = File::open(path)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let copy = match memfd_create("flopwatch", flags | MemfdFlags::EXEC) {
            // Before Linux 6.3 there is no such flag, and every copy may be executed.
            Err(Errno::INVAL) => memfd_create("flopwatch", flags),
            other => other,
        }?;
        let mut to = File::from(copy);
        let copied = std::io::copy(&mut from.take(LIMIT + 1), &mut to)?;
        if copied > LIMIT {
            return Err(std::io::Error::other("larger than a program of ours"));
        }
        to.flush()?;
        fchmod(&to, Mode::from_raw_mode(0o555))?;
        fcntl_add_seals(
            &to,
            SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
        )?;
        Ok(Self { copy: to.into() })
    }

    /// Starts it in a child: standard input is `null`, and so is what it says where `quiet`.
    /// Returns when it runs, or says why it does not.
    pub(crate) fn start(
        &self,
        arguments: &[CString],
        environment: &[CString],
        null: BorrowedFd<'_>,
        quiet: bool,
    ) -> Result<Pid, ProgramError> {
        let failed = |action| move |source| ProgramError::Start { action, source };
        // Closed by the execve that goes well, and told why by the one that does not.
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|errno| failed("make a pipe")(nix::Error::from_raw(errno.raw_os_error())))?;
        match fork().map_err(failed("start a process"))? {
            ForkResult::Parent { child } => {
                drop(writer);
                let mut why = Vec::new();
                File::from(reader).read_to_end(&mut why).ok();
                match why.try_into().map(i32::from_ne_bytes) {
                    Ok(errno) => {
                        nix::sys::wait::waitpid(child, None).ok();
                        Err(failed("execute it")(nix::Error::from_raw(errno)))
                    }
                    Err(_nothing) => Ok(child),
                }
            }
            ForkResult::Child => {
                let error = self.become_it(arguments, environment, null, quiet);
                let errno = std::io::Error::from(error).raw_os_error().unwrap_or(0);
                File::from(writer).write_all(&errno.to_ne_bytes()).ok();
                exit_now(127)
            }
        }
    }

    /// The child's side: returns only when it failed.
    fn become_it(
        &self,
        arguments: &[CString],
        environment: &[CString],
        null: BorrowedFd<'_>,
        quiet: bool,
    ) -> nix::Error {
        let become_it = || {
            nix::unistd::dup2_stdin(null)?;
            if quiet {
                nix::unistd::dup2_stdout(null)?;
                nix::unistd::dup2_stderr(null)?;
            }
            // The runtime of this program ignores SIGPIPE; the other starts as from a shell.
            fork::default_of_a_broken_pipe()?;
            SigSet::empty().thread_set_mask()?;
            nix::unistd::execveat(self.copy.as_fd(), c"", arguments, environment, AtFlags::AT_EMPTY_PATH)
        };
        match become_it() {
            Err(error) => error,
            Ok(never) => match never {},
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_copy_in_memory_is_the_program_and_can_be_changed_by_nobody() {
        let own = std::env::current_exe().unwrap();
        let copy = Program::copy(&own).unwrap();
        let file = File::from(copy.copy);
        assert_eq!(file.metadata().unwrap().len(), own.metadata().unwrap().len());
        assert!(file.write_at(b"x", 0).is_err());
        assert!(file.set_len(1).is_err());
        // Root opens it anew, as a container's root would at /proc/PID/exe.
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        let written = File::options()
            .write(true)
            .open(again)
            .and_then(|file| file.write_at(b"x", 0));
        assert!(written.is_err(), "{written:?}");
    }

    #[test]
    fn what_is_no_program_is_told_before_anything_is_entered() {
        let missing = Program::copy(Path::new("/nowhere/launcher")).unwrap_err();
        assert!(missing.to_string().starts_with("/nowhere/launcher: "), "{missing}");
    }
}
