//! The user and the groups of a process in a container, which a thread takes on.
//!
//! The agent may read every file of its node; whoever asks for a capture may not. A thread of this
//! module opens what the container's own user could open, and no capability of the agent helps it.

use std::io;

use nix::unistd::{setfsgid, setfsuid};
use rustix::process::{Gid, getgroups};
use rustix::thread::set_thread_groups;

use crate::privilege::drop_capabilities;
use crate::process::{ProcessError, ProcessId, Procfs};

/// Who a process is to the files of its container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerUser {
    uid: u32,
    gid: u32,
    /// Supplementary groups, in ascending order.
    groups: Vec<u32>,
}

impl ContainerUser {
    /// Who `process` is now. Fails when the PID is another process by now.
    pub fn of(procfs: &Procfs, process: ProcessId) -> Result<Self, ProcessError> {
        let owner = procfs.owner(process)?;
        // Asked last: what was read is of this process.
        if procfs.identify(process.pid)? != process {
            return Err(ProcessError::Gone { pid: process.pid });
        }
        let mut groups = owner.groups;
        groups.sort_unstable();
        Ok(Self {
            uid: owner.uid,
            gid: owner.gid,
            groups,
        })
    }

    /// The number of the user.
    pub const fn uid(&self) -> u32 {
        self.uid
    }

    /// Does `work` with the user's rights and no others, on a thread that ends with it. Fails where
    /// they cannot be taken on: nothing is done then.
    pub fn act<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("flopwatch-user".into());
            let thread = thread.spawn_scoped(scope, || -> io::Result<T> {
                self.take_on()?;
                Ok(work())
            })?;
            thread
                .join()
                .unwrap_or_else(|_panic| Err(io::Error::other("the user's thread ended early")))
        })
    }

    /// Makes the calling thread the user, to files; to signals it stays who it is.
    fn take_on(&self) -> io::Result<()> {
        let mut own: Vec<u32> = getgroups()?.into_iter().map(Gid::as_raw).collect();
        own.sort_unstable();
        // Who may not choose groups can still act as itself.
        if own != self.groups {
            let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
            set_thread_groups(&groups)?;
        }
        let (uid, gid) = (self.uid.into(), self.gid.into());
        // The group first: without the right to take on any, the user's own is all that is left.
        setfsgid(gid);
        setfsuid(uid);
        // Both say who it was before, and never that they failed.
        if setfsgid(gid) != gid || setfsuid(uid) != uid {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // Root is no more to files than any other user without these.
        Ok(drop_capabilities()?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown};
    use std::path::{Path, PathBuf};

    use super::*;

    /// A user and a group that nobody has.
    const NOBODY: u32 = 41_001;
    const GROUP: u32 = 41_002;

    fn is_root() -> bool {
        let root = nix::unistd::geteuid().is_root();
        if !root {
            println!("skipped: becoming another user needs root");
        }
        root
    }

    fn user(uid: u32, groups: &[u32]) -> ContainerUser {
        ContainerUser {
            uid,
            gid: uid,
            groups: groups.to_owned(),
        }
    }

    /// A file of that owner and mode, in a folder that everybody may enter.
    fn file(folder: &Path, name: &str, owner: (u32, u32), mode: u32) -> PathBuf {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        let path = folder.join(name);
        fs::write(&path, name).unwrap();
        chown(&path, Some(owner.0), Some(owner.1)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_thread_reads_what_its_user_and_groups_may_and_nothing_else() {
        if !is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let of_root = file(folder.path(), "of-root", (0, 0), 0o600);
        let of_group = file(folder.path(), "of-group", (0, GROUP), 0o640);
        let own = file(folder.path(), "own", (NOBODY, NOBODY), 0o400);
        let read = |user: &ContainerUser, path: &Path| user.act(|| fs::read_to_string(path)).unwrap();
        let denied = |user: &ContainerUser, path: &Path| {
            let error = read(user, path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{}", path.display());
        };
        let alone = user(NOBODY, &[]);
        assert_eq!(read(&alone, &own).unwrap(), "own");
        denied(&alone, &of_root);
        denied(&alone, &of_group);
        let member = user(NOBODY, &[GROUP]);
        assert_eq!(read(&member, &of_group).unwrap(), "of-group");
        denied(&member, &of_root);
        // A container's root is to files what its number says, whatever the agent may.
        let root = user(0, &[]);
        assert_eq!(read(&root, &of_root).unwrap(), "of-root");
        denied(&root, &own);
        assert_eq!(fs::read_to_string(&own).unwrap(), "own", "the caller stays who it is");
    }

    #[test]
    fn whoever_may_not_become_another_user_does_nothing_as_one() {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        let this = ContainerUser::of(&procfs, own).unwrap();
        assert_eq!(this.uid(), nix::unistd::geteuid().as_raw());
        assert_eq!(this.act(|| 7).unwrap(), 7, "everybody may act as itself");
        // A thread that has given up its capabilities is no root any more.
        let refused = this.act(|| user(NOBODY, &[GROUP]).act(|| 7)).unwrap();
        assert!(refused.is_err(), "{refused:?}");
        let later = ProcessId {
            start_time: own.start_time + 1,
            ..own
        };
        assert!(matches!(
            ContainerUser::of(&procfs, later),
            Err(ProcessError::Gone { .. })
        ));
    }

    #[test]
    fn work_that_panics_is_an_error_and_no_more() {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        let user = ContainerUser::of(&procfs, own).unwrap();
        let ended: io::Result<()> = user.act(|| panic!("on purpose"));
        assert!(ended.is_err());
    }
}
