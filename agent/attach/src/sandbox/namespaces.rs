//! Leaves the machine's namespaces, as far as the caller's rights allow.

use nix::sched::{CloneFlags, unshare};
use rustix::thread::{CapabilitySet, capabilities};

use super::{Stage, at};

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
    // In a user namespace even an ordinary user may leave the others, where the system allows those. There root stays root only
    // with the right to give files rights, and a namespace is not left again.
    let stays = !user.is_root() || held.effective.contains(CapabilitySet::SETFCAP);
    let left = if stays {
        unshare(CloneFlags::CLONE_NEWUSER | all)
    } else {
        Err(nix::errno::Errno::EPERM)
    };
    if let Err(error) = left {
        missing.push(format!("processes, files and a network of its own: {}", error.desc()));
        return Ok(Space {
            privileged: false,
            mounts: false,
            processes: false,
        });
    }
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{0} {0} 1", user.as_raw())),
        ("gid_map", format!("{0} {0} 1", group.as_raw())),
    ];
    for (file, text) in maps {
        std::fs::write(format!("/proc/self/{file}"), text).map_err(at("keep the user in a namespace of its own"))?;
    }
    Ok(Space {
        privileged: false,
        mounts: true,
        processes: true,
    })
}
