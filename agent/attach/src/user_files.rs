//! Files of a container, touched with the rights of the user of one of its processes.
//!
//! Nobody gets more of a container by a capture than its own user could read there. Before anything
//! is opened, the mounts on the way to it are judged: what a server or a program answers for may
//! never answer. A mount may still come in between, so callers bound these calls too
//! ([`Gate`](crate::bounded::Gate)).

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::container_user::ContainerUser;
use crate::mount_kind::check_readable;
use crate::process::{ProcessId, Procfs};
use crate::rootfs::{ContainerRoot, RootfsError, Volume};

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
}

/// A path of a folder, and what lies there, or why nobody looked or it is neither.
#[derive(Debug)]
pub struct Entry {
    /// Path in the container.
    pub path: PathBuf,
    /// What lies there.
    pub kind: Result<Kind, RootfsError>,
}

/// The files of a container, as one of its users has them.
#[derive(Debug)]
pub struct UserFiles {
    root: ContainerRoot,
    user: ContainerUser,
    /// Whose mounts are judged; none where there is no container.
    container: Option<(Procfs, ProcessId)>,
}

impl UserFiles {
    /// Those that the user of `process` has in its container. Fails when the PID is another process
    /// by now.
    pub fn open(procfs: &Procfs, process: ProcessId) -> Result<Self, RootfsError> {
        let user = ContainerUser::of(procfs, process)?;
        check_readable(procfs, process, Path::new("/"))?;
        Ok(Self {
            root: ContainerRoot::open(procfs, process)?,
            user,
            container: Some((procfs.clone(), process)),
        })
    }

    /// Those that a user has below a folder of this machine, where there is no container.
    pub fn of_folder(path: &Path, user: ContainerUser) -> Result<Self, RootfsError> {
        Ok(Self {
            root: ContainerRoot::of_folder(path)?,
            user,
            container: None,
        })
    }

    /// Who has them.
    pub const fn user(&self) -> &ContainerUser {
        &self.user
    }

    /// Room of the file system that a folder is on.
    pub fn volume(&self, path: &Path) -> Result<Volume, RootfsError> {
        self.at(path, |root| root.volume(path))
    }

    /// Whether a regular file is there.
    pub fn has(&self, path: &Path) -> Result<bool, RootfsError> {
        self.at(path, |root| Ok(root.has(path)))
    }

    /// Opens a regular file for reading, of at most `limit` bytes by now.
    pub fn open_file(&self, path: &Path, limit: u64) -> Result<File, RootfsError> {
        self.at(path, |root| root.open_file(path, limit))
    }

    /// Opens a regular file for reading and writing, of at most `limit` bytes by now.
    pub fn open_to_change(&self, path: &Path, limit: u64) -> Result<File, RootfsError> {
        self.at(path, |root| root.open_to_change(path, limit))
    }

    /// Names of what lies in a folder, at most `limit` of them; none where there is no such folder.
    pub fn list(&self, folder: &Path, limit: usize) -> Result<Vec<OsString>, RootfsError> {
        self.at(folder, |root| root.list(folder, limit))
    }

    /// What lies in a folder, at most `limit` paths, in their order; none where there is no such
    /// folder.
    pub fn entries(&self, folder: &Path, limit: usize) -> Result<Vec<Entry>, RootfsError> {
        let names = self.list(folder, limit)?;
        let mut paths: Vec<PathBuf> = names.into_iter().map(|name| folder.join(name)).collect();
        paths.sort_unstable();
        let judged: Vec<_> = paths.into_iter().map(|path| (self.judge(&path), path)).collect();
        // One thread for all of them.
        self.act(folder, || {
            let entries = judged.into_iter().map(|(judged, path)| Entry {
                kind: judged.and_then(|()| kind(&self.root, &path)),
                path,
            });
            Ok(entries.collect())
        })
    }

    /// Makes a folder for the user alone, in one that is there. One that is there already, or
    /// anything else of that name, is refused.
    pub fn make_folder(&self, path: &Path) -> Result<(), RootfsError> {
        self.at(path, |root| root.make_folder(path))
    }

    /// Removes an empty folder; true when it was there. Safe to run twice.
    pub fn remove_folder(&self, path: &Path) -> Result<bool, RootfsError> {
        self.at(path, |root| root.remove_folder(path))
    }

    /// Removes a file, or the symlink, pipe or socket in its place, never what that leads to; true
    /// when something was there. Safe to run twice.
    pub fn remove(&self, path: &Path) -> Result<bool, RootfsError> {
        self.at(path, |root| root.remove(path))
    }

    /// Does that as the user, where all mounts on the way to `path` may be read.
    fn at<T: Send>(
        &self,
        path: &Path,
        work: impl FnOnce(&ContainerRoot) -> Result<T, RootfsError> + Send,
    ) -> Result<T, RootfsError> {
        self.judge(path)?;
        self.act(path, || work(&self.root))
    }

    fn judge(&self, path: &Path) -> Result<(), RootfsError> {
        match &self.container {
            Some((procfs, process)) => Ok(check_readable(procfs, *process, path)?),
            None => Ok(()),
        }
    }

    fn act<T: Send>(
        &self,
        path: &Path,
        work: impl FnOnce() -> Result<T, RootfsError> + Send,
    ) -> Result<T, RootfsError> {
        let failed = RootfsError::io(path, "become the user for");
        self.user.act(work).unwrap_or_else(|source| Err(failed(source)))
    }
}

fn kind(root: &ContainerRoot, path: &Path) -> Result<Kind, RootfsError> {
    match root.stat(path) {
        Ok(_) => Ok(Kind::File),
        Err(RootfsError::NotAFile { .. }) if root.volume(path).is_ok() => Ok(Kind::Folder),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn own() -> (Procfs, ProcessId) {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        (procfs, own)
    }

    #[test]
    fn a_folders_entries_are_told_apart_and_links_are_neither() {
        let (procfs, process) = own();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "x").unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        symlink("file", folder.path().join("link")).unwrap();
        let files = UserFiles::open(&procfs, process).unwrap();
        let found = files.entries(folder.path(), 10).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|entry| {
                let name = entry.path.file_name().unwrap().to_str().unwrap();
                (name, entry.kind.as_ref().ok().copied())
            })
            .collect();
        let expected = [
            ("file", Some(Kind::File)),
            ("folder", Some(Kind::Folder)),
            ("link", None),
        ];
        assert_eq!(found, expected);
        assert_eq!(files.entries(folder.path(), 2).unwrap().len(), 2);
        assert!(files.entries(&folder.path().join("none"), 10).unwrap().is_empty());
    }

    #[test]
    fn what_nobody_may_answer_for_is_not_opened() {
        let (procfs, process) = own();
        let files = UserFiles::open(&procfs, process).unwrap();
        // The kernel answers for procfs, but for the memory of other processes too.
        let path = Path::new("/proc/self/environ");
        assert!(matches!(files.open_file(path, 1 << 20), Err(RootfsError::Mount(_))));
        assert!(matches!(files.list(Path::new("/proc"), 1), Err(RootfsError::Mount(_))));
        let within = UserFiles::of_folder(Path::new("/proc/self"), files.user().clone()).unwrap();
        assert!(within.open_file(Path::new("/stat"), 1 << 20).is_ok(), "no container");
    }

    #[test]
    fn a_folder_that_its_user_may_not_enter_is_not_listed() {
        let (procfs, process) = own();
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::write(closed.join("file"), "x").unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o0)).unwrap();
        let files = UserFiles::open(&procfs, process).unwrap();
        // Root too: it is no more to files than any other user without capabilities.
        assert!(files.list(&closed, 10).is_err());
        assert!(files.open_file(&closed.join("file"), 10).is_err());
        assert!(matches!(files.has(&closed.join("file")), Ok(false)));
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
}
