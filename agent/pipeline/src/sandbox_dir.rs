//! The folder of the children of one piece of work: theirs alone, under a user of their own, one
//! child after the other.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use flopwatch_attach::sandbox::product::{self, ProductError};
use flopwatch_attach::sandbox::users::{User, Users, UsersError};
use nix::unistd::{Gid, setfsgid};

use crate::ahead::Ahead;

/// Name of such a folder in one that no child may write to.
pub const NAME: &str = "work";

/// Why there is no such folder.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no user for it.
    #[error(transparent)]
    User(#[from] UsersError),
    /// The folder cannot be made.
    #[error("{path}: cannot be made: {source}")]
    Io {
        /// Folder of the child.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The folder does not belong to the group of its children.
    #[error(
        "{path}: belongs to group {found}, and not to {wanted} of its children: the file system does not keep groups apart"
    )]
    Group {
        /// Folder of the child.
        path: PathBuf,
        /// ID of the group that the folder belongs to.
        found: u32,
        /// ID of the children's group.
        wanted: u32,
    },
}

/// A folder that children write to, and who they are. Ends with their user given back; the folder
/// stays.
#[derive(Debug)]
pub struct SandboxDir {
    folder: PathBuf,
    user: User,
    /// Whether the children are another user than this process.
    other: bool,
    /// The sandbox of the next child, where it is made ready already.
    ahead: Mutex<Option<Ahead>>,
}

impl SandboxDir {
    /// Makes `folder` anew, which must not be there, in one of the caller's that no child may write
    /// to.
    ///
    /// Where children are other users it stays in our hands, so that what lies in it can be removed
    /// without a capability for that, and is given to their group alone. That takes no more than
    /// the right to take on a group.
    pub fn make(folder: PathBuf, users: &Users) -> Result<Self, Error> {
        let user = users.lease()?;
        let other = users.are_others();
        let io = |source| Error::Io {
            path: folder.clone(),
            source,
        };
        if other {
            // Belongs to this thread alone, and what it makes is of that group.
            let own = setfsgid(Gid::from_raw(user.id()));
            let made = std::fs::create_dir(&folder)
                .and_then(|()| std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o770)));
            setfsgid(own);
            made.map_err(io)?;
            let found = std::fs::metadata(&folder).map_err(io)?.gid();
            if found != user.id() {
                let (path, wanted) = (folder, user.id());
                return Err(Error::Group { path, found, wanted });
            }
        } else {
            std::fs::create_dir(&folder).map_err(io)?;
            std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).map_err(io)?;
        }
        // Children work elsewhere: a path that starts where this process is would lead them astray.
        let folder = folder.canonicalize().map_err(io)?;
        Ok(Self {
            folder,
            user,
            other,
            ahead: Mutex::default(),
        })
    }

    /// Absolute path of the folder, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// A path in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Who its children are.
    pub const fn user(&self) -> u32 {
        self.user.id()
    }

    /// Opens what a child made under a name.
    pub fn open(&self, name: &str) -> Result<File, ProductError> {
        product::open(&self.folder, Path::new(name), Some(self.user()))
    }

    /// Lets the children read a file of ours, which lies where nobody else can reach it.
    pub fn show(&self, file: &Path) -> io::Result<()> {
        if self.other {
            std::fs::set_permissions(file, PermissionsExt::from_mode(0o644))?;
        }
        Ok(())
    }

    /// A folder that was left behind, to be emptied: in its children's name, where no other has it.
    pub fn left(folder: &Path, users: &Users) -> Option<Self> {
        let user = users.lease_again(std::fs::symlink_metadata(folder).ok()?.gid())?;
        Some(Self {
            folder: folder.to_owned(),
            user,
            other: users.are_others(),
            ahead: Mutex::default(),
        })
    }

    /// Keeps a sandbox for the next child.
    pub(crate) fn keep_ahead(&self, ahead: Ahead) {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
    }

    /// The sandbox that is kept for the next child.
    pub(crate) fn take_ahead(&self) -> Option<Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_of_its_own_children_alone() {
        let parent = tempfile::tempdir().unwrap();
        let users = if nix::unistd::geteuid().is_root() {
            Users::range(71_000..=71_009)
        } else {
            Users::caller()
        };
        let sandbox_dirs: Vec<SandboxDir> = ["a", "b"]
            .map(|name| SandboxDir::make(parent.path().join(name), &users).unwrap())
            .into();
        for sandbox_dir in &sandbox_dirs {
            let facts = std::fs::metadata(sandbox_dir.path()).unwrap();
            assert_eq!(facts.uid(), nix::unistd::geteuid().as_raw());
            assert_eq!(facts.mode() & 0o007, 0, "closed to others");
            assert_eq!(facts.mode() & 0o7000, 0, "nothing is inherited");
            if users.are_others() {
                assert_eq!((facts.gid(), facts.mode() & 0o777), (sandbox_dir.user(), 0o770));
            }
        }
        if users.are_others() {
            assert_ne!(sandbox_dirs[0].user(), sandbox_dirs[1].user());
        }
        let again = SandboxDir::make(parent.path().join("a"), &users).unwrap_err();
        assert!(matches!(again, Error::Io { .. }), "{again}");
    }
}
