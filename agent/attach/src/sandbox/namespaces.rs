//! Leaves the machine's namespaces, as far as the caller's rights allow.

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::ForkResult;
use rustix::thread::{CapabilitySet, capabilities};

use super::stage::{Stage, at};
use crate::fork::{exit_now, fork};

/// What was reached.
#[derive(Debug)]
pub(super) struct Space {
    /// The caller has the rights of the node's agent: whatever fails from here on is an error.
    pub(super) privileged: bool,
    /// Mounts are the sandbox's own.
    pub(super) mounts: bool,
    /// The next child is the first process of a PID namespace.
    pub(super) processes: bool,
}

/// What it takes to make another user's sandbox without a user namespace.
const RIGHTS: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP);

/// Leaves them. Mounts of the machine still arrive, until there is another root; nothing goes back.
pub(super) fn leave(missing: &mut Vec<String>) -> Result<Space, Stage> {
    let all = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    let held = capabilities(None).map_err(at("read the own rights"))?;
    if held.effective.contains(RIGHTS) {
        unshare(all).map_err(at("leave the machine's namespaces"))?;
        return Ok(Space {
            privileged: true,
            mounts: true,
            processes: true,
        });
    }
    missing.push("a user of its own: the caller may not change users".to_owned());
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // In a user namespace even an ordinary user may leave the others, where the system allows
    // those. There root stays root only with the right to give files rights, and a namespace is not
    // left again.
    let stays = !user.is_root() || held.effective.contains(CapabilitySet::SETFCAP);
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{0} {0} 1", user.as_raw())),
        ("gid_map", format!("{0} {0} 1", group.as_raw())),
    ];
    let left = if stays && keeps_its_user(&maps) {
        unshare(CloneFlags::CLONE_NEWUSER | all)
    } else {
        Err(Errno::EPERM)
    };
    if let Err(error) = left {
        missing.push(format!("processes, files and a network of its own: {}", error.desc()));
        return Ok(Space {
            privileged: false,
            mounts: false,
            processes: false,
        });
    }
    write(&maps).map_err(at("keep the user in a namespace of its own"))?;
    Ok(Space {
        privileged: false,
        mounts: true,
        processes: true,
    })
}

/// Whether this user is itself in a user namespace of its own. A system may give out namespaces in
/// which nobody has a right (AppArmor on Ubuntu 24.04), and none is left again: another process
/// tries.
fn keeps_its_user(maps: &[(&str, String)]) -> bool {
    let child = match fork() {
        Ok(ForkResult::Child) => {
            let kept = unshare(CloneFlags::CLONE_NEWUSER).is_ok() && write(maps).is_ok();
            exit_now(i32::from(!kept))
        }
        Ok(ForkResult::Parent { child }) => child,
        Err(_) => return false,
    };
    loop {
        match waitpid(child, None) {
            Err(Errno::EINTR) => {}
            ended => return matches!(ended, Ok(WaitStatus::Exited(_, 0))),
        }
    }
}

fn write(maps: &[(&str, String)]) -> std::io::Result<()> {
    maps.iter()
        .try_for_each(|(file, text)| std::fs::write(format!("/proc/self/{file}"), text))
}
