//! Work that the calling program does itself in the sandbox, in place of a tool: for a program that
//! has loaded all that the work needs by then, such as an interpreter with a library of ours. It is
//! started once, nothing of it need be seen in there, and what it makes leaves it by its standard
//! output: there is no folder of the machine's that it may write to.
//!
//! The sandbox's first process has the same part as for a tool: it is confined before it forks the
//! process that does the work, and says how that ended.

use std::fs::File;
use std::panic::catch_unwind;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::unistd::ForkResult;
use rustix::process::{Pid, Signal, set_parent_process_death_signal};

use super::stage::{Stage, at};
use crate::descriptors;
use crate::fork::{exit_now, fork};

/// What is done, on the words of [`Sandboxed::command`](super::Sandboxed::command); gives an exit
/// code.
pub type Work = fn(&[String]) -> u8;

/// Exit code where the process cannot be left alone with its outputs.
const EXIT_NOT_ALONE: u8 = 125;
/// Exit code of work that panicked.
const EXIT_PANICKED: u8 = 101;
/// What the folder holds at the most: the work has no use for it.
const FOLDER_MOUNT_OPTIONS: &str = "size=64k,nr_inodes=16,mode=0755";

/// Covers the tool's folder by an empty one in memory. Call it in a mount namespace of one's own,
/// with the right to mount.
pub(super) fn cover(folder: &Path) -> Result<(), Stage> {
    let (none, kept_apart) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE);
    mount(none, "/", none, kept_apart, none).map_err(at("keep mounts apart"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(
        Some("sandbox"),
        folder,
        Some("tmpfs"),
        flags,
        Some(FOLDER_MOUNT_OPTIONS),
    )
    .map_err(at("make an empty folder"))
}

/// Starts the work in a process of its own.
pub(super) fn start(work: Work, words: &[String]) -> Result<Option<Pid>, Stage> {
    match fork().map_err(at("start the work"))? {
        ForkResult::Parent { child } => Ok(Pid::from_raw(child.as_raw())),
        ForkResult::Child => exit_now(alone(work, words).into()),
    }
}

/// Does the work. What execve does for a tool is done first: of what this program has open nothing
/// but the outputs is left.
fn alone(work: Work, words: &[String]) -> u8 {
    let followed = set_parent_process_death_signal(Some(Signal::KILL));
    if followed.is_err() || descriptors::keep_outputs().is_err() {
        return EXIT_NOT_ALONE;
    }
    // It takes the lowest number, that of standard input; without it the next file does.
    std::mem::forget(File::open("/dev/null"));
    catch_unwind(|| work(words)).unwrap_or(EXIT_PANICKED)
}
