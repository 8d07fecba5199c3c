//! Files of a container, seen from outside through `/proc/PID/root`.
//!
//! No symlink is followed, and only regular files are touched: a pipe or a device in a file's place
//! is refused, never opened for long.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, fstatvfs, mkdirat, open, openat2, unlinkat,
};
use rustix::io::Errno;

use crate::mount_kind::MountError;
use crate::process::{ProcessError, ProcessId, Procfs};

/// Bytes moved at a time.
const BLOCK: usize = 256 << 10;

/// Why a file of a container could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RootfsError {
    /// The process whose root it is has ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// There is no such file.
    #[error("{} does not exist in the container", path.display())]
    NotFound {
        /// Path in the container.
        path: PathBuf,
    },
    /// It is something else: a folder, a symlink, a pipe, a device.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// Path in the container.
        path: PathBuf,
    },
    /// Who answers for a file system on the way to it may never answer, or cannot be told.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The file holds more bytes than the caller takes.
    #[error("{} holds more than {limit} bytes", path.display())]
    TooLarge {
        /// Path in the container.
        path: PathBuf,
        /// The caller's limit.
        limit: u64,
    },
    /// The kernel refused.
    #[error("cannot {action} {} in the container", path.display())]
    Io {
        /// Path in the container.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The place that the bytes go to failed.
    #[error("cannot write what was read from {}", path.display())]
    Sink {
        /// Path in the container.
        path: PathBuf,
        /// What the sink said.
        source: std::io::Error,
    },
    /// The caller's progress callback asked to stop.
    #[error("stopped while copying {}", path.display())]
    Stopped {
        /// Path in the container.
        path: PathBuf,
    },
}

impl RootfsError {
    /// What the kernel refused to do with a path of a container.
    pub(crate) fn io<E: Into<std::io::Error>>(path: &Path, action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            action,
            source: source.into(),
        }
    }
}

/// A file's size and age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Last change, seconds since 1970.
    pub modified_unix: i64,
}

/// Room of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    /// Bytes that it has.
    pub bytes: u64,
    /// Bytes that users may still write.
    pub free: u64,
}

/// The root of a container, pinned: it stays the same when the process ends.
#[derive(Debug)]
pub struct ContainerRoot {
    root: OwnedFd,
}

impl ContainerRoot {
    /// Opens the root of `process`. Fails when the PID is another process by now.
    pub fn open(procfs: &Procfs, process: ProcessId) -> Result<Self, RootfsError> {
        let root = Self::of_folder(&procfs.folder(process.pid).join("root"))?;
        if procfs.identify(process.pid)? == process {
            Ok(root)
        } else {
            Err(ProcessError::Gone { pid: process.pid }.into())
        }
    }

    /// Takes a folder of this machine for the root, where there is no container.
    pub fn of_folder(path: &Path) -> Result<Self, RootfsError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(path, flags, Mode::empty()).map_err(RootfsError::io(path, "open the root"))?;
        Ok(Self { root })
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, RootfsError> {
        let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        // `EAGAIN`: a rename elsewhere made the kernel unsure; asking again is the documented
        // answer.
        let mut attempts = 0;
        let opened = loop {
            attempts += 1;
            match openat2(
                self.root.as_fd(),
                path,
                flags | OFlags::CLOEXEC | OFlags::NOFOLLOW,
                Mode::empty(),
                how,
            ) {
                Err(Errno::AGAIN) if attempts < 16 => {}
                other => break other,
            }
        };
        opened.map_err(|source| match source {
            Errno::NOENT | Errno::NOTDIR => RootfsError::NotFound { path: path.to_owned() },
            Errno::LOOP | Errno::NXIO => RootfsError::NotAFile { path: path.to_owned() },
            source => RootfsError::io(path, "open")(source),
        })
    }

    /// Opens a regular file for reading, of at most `limit` bytes by now.
    pub fn open_file(&self, path: &Path, limit: u64) -> Result<File, RootfsError> {
        self.file(path, OFlags::RDONLY, limit)
    }

    /// Opens a regular file for reading and writing, of at most `limit` bytes by now.
    pub fn open_to_change(&self, path: &Path, limit: u64) -> Result<File, RootfsError> {
        self.file(path, OFlags::RDWR, limit)
    }

    /// Opens a regular file.
    fn file(&self, path: &Path, access: OFlags, limit: u64) -> Result<File, RootfsError> {
        // Looked at before it is opened: opening a device may already do something.
        let facts = self.stat(path)?;
        if facts.bytes > limit {
            return Err(RootfsError::TooLarge {
                path: path.to_owned(),
                limit,
            });
        }
        let fd = self.resolve(path, access | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        check(&fd, path)?;
        Ok(File::from(fd))
    }

    /// Size and age of a regular file.
    pub fn stat(&self, path: &Path) -> Result<FileFacts, RootfsError> {
        check(&self.resolve(path, OFlags::PATH)?, path)
    }

    /// Room of the file system that a folder is on.
    pub fn volume(&self, path: &Path) -> Result<Volume, RootfsError> {
        let folder = self.resolve(path, OFlags::PATH | OFlags::DIRECTORY)?;
        let facts = fstatvfs(&folder).map_err(RootfsError::io(path, "ask for the free space at"))?;
        Ok(Volume {
            bytes: facts.f_blocks.saturating_mul(facts.f_frsize),
            free: facts.f_bavail.saturating_mul(facts.f_frsize),
        })
    }

    /// Whether a regular file is there.
    pub fn has(&self, path: &Path) -> bool {
        self.stat(path).is_ok()
    }

    /// Reads a file of at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, RootfsError> {
        let mut bytes = Vec::new();
        self.copy_out(path, &mut bytes, limit, |_| true)?;
        Ok(bytes)
    }

    /// Copies a file out, at most `limit` bytes; returns how many. `progress` is told the bytes so
    /// far and may return false to stop.
    pub fn copy_out(
        &self,
        path: &Path,
        to: &mut dyn Write,
        limit: u64,
        progress: impl FnMut(u64) -> bool,
    ) -> Result<u64, RootfsError> {
        let file = self.open_file(path, limit)?;
        copy(&file, path, to, limit, progress)
    }

    /// Names of what lies in a folder, at most `limit` of them; none where there is no such folder.
    pub fn list(&self, path: &Path, limit: usize) -> Result<Vec<OsString>, RootfsError> {
        let folder = match self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY) {
            Err(RootfsError::NotFound { .. }) => return Ok(Vec::new()),
            other => other?,
        };
        let failed = || RootfsError::io(path, "list");
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
            if names.len() >= limit {
                break;
            }
        }
        Ok(names)
    }

    /// Makes a folder for its user alone, in one that is there. One that is there already, or
    /// anything else of that name, is refused.
    pub fn make_folder(&self, path: &Path) -> Result<(), RootfsError> {
        let (folder, name) = self.parent_of(path)?;
        mkdirat(&folder, name, Mode::RWXU).map_err(RootfsError::io(path, "make the folder"))
    }

    /// Removes an empty folder; true when it was there. Safe to run twice.
    pub fn remove_folder(&self, path: &Path) -> Result<bool, RootfsError> {
        self.unlink(path, AtFlags::REMOVEDIR)
    }

    /// Removes a file, or the symlink, pipe or socket in its place, never what that leads to; true
    /// when something was there. Safe to run twice.
    pub fn remove(&self, path: &Path) -> Result<bool, RootfsError> {
        self.unlink(path, AtFlags::empty())
    }

    fn unlink(&self, path: &Path, flags: AtFlags) -> Result<bool, RootfsError> {
        let (folder, name) = match self.parent_of(path) {
            Err(RootfsError::NotFound { .. }) => return Ok(false),
            other => other?,
        };
        match unlinkat(&folder, name, flags) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(source) => Err(RootfsError::io(path, "remove")(source)),
        }
    }

    /// The folder that a path is in, and its name there.
    fn parent_of<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), RootfsError> {
        let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back()) else {
            return Err(RootfsError::NotAFile { path: path.to_owned() });
        };
        let parent = if parent.as_os_str().is_empty() {
            Path::new("/")
        } else {
            parent
        };
        Ok((self.resolve(parent, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }
}

/// Copies an open file of a container, which lies at `path`, at most `limit` bytes; returns how
/// many. `progress` is told the bytes so far and may return false to stop.
pub fn copy(
    mut file: &File,
    path: &Path,
    to: &mut dyn Write,
    limit: u64,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<u64, RootfsError> {
    let mut block = vec![0; BLOCK];
    let mut total = 0;
    loop {
        let read = match file.read(&mut block) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(RootfsError::io(path, "read")(source)),
        };
        let Some(part) = block.get(..read).filter(|part| !part.is_empty()) else {
            return Ok(total);
        };
        // It may still grow while it is read.
        total += u64::try_from(read).unwrap_or(u64::MAX);
        if total > limit {
            return Err(RootfsError::TooLarge {
                path: path.to_owned(),
                limit,
            });
        }
        to.write_all(part).map_err(|source| RootfsError::Sink {
            path: path.to_owned(),
            source,
        })?;
        if !progress(total) {
            return Err(RootfsError::Stopped { path: path.to_owned() });
        }
    }
}

fn check(fd: &OwnedFd, path: &Path) -> Result<FileFacts, RootfsError> {
    let stat = fstat(fd).map_err(RootfsError::io(path, "look at"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(RootfsError::NotAFile { path: path.to_owned() });
    }
    Ok(FileFacts {
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified_unix: stat.st_mtime,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_containers_symlinks_lead_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("outside"), "secret").unwrap();
        let inside = folder.path().join("root");
        std::fs::create_dir(&inside).unwrap();
        symlink("../outside", inside.join("up")).unwrap();
        symlink("..", inside.join("parent")).unwrap();
        symlink(folder.path(), inside.join("absolute")).unwrap();
        let root = ContainerRoot::of_folder(&inside).unwrap();
        assert!(root.read(Path::new("/up"), 100).is_err());
        for path in [
            "/parent/outside",
            "/absolute/outside",
            "/../outside",
            "/../../etc/passwd",
        ] {
            assert!(root.read(Path::new(path), 100).is_err(), "{path}");
            assert!(!matches!(root.remove(Path::new(path)), Ok(true)), "{path}");
        }
        assert!(folder.path().join("outside").exists());
    }

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let root = ContainerRoot::of_folder(folder.path()).unwrap();
        for path in ["/pipe", "/folder"] {
            assert!(
                matches!(root.read(Path::new(path), 100), Err(RootfsError::NotAFile { .. })),
                "{path}"
            );
        }
    }

    #[test]
    fn copies_are_bounded_and_can_be_stopped_and_removal_repeats() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("sub/file"), vec![1; 600_000]).unwrap();
        let root = ContainerRoot::of_folder(folder.path()).unwrap();
        let path = Path::new("/sub/file");
        let mut seen = Vec::new();
        let copied = root.copy_out(path, &mut std::io::sink(), 600_000, |bytes| {
            seen.push(bytes);
            true
        });
        assert_eq!(copied.unwrap(), 600_000);
        assert_eq!(seen, [262_144, 524_288, 600_000]);
        assert!(matches!(
            root.read(path, 599_999),
            Err(RootfsError::TooLarge { limit: 599_999, .. })
        ));
        assert!(matches!(
            root.copy_out(path, &mut std::io::sink(), 600_000, |_| false),
            Err(RootfsError::Stopped { .. })
        ));
        assert!(root.remove(path).unwrap());
        assert!(!root.remove(path).unwrap());
        assert!(matches!(root.stat(path), Err(RootfsError::NotFound { .. })));
        assert!(!root.remove(Path::new("/absent/file")).unwrap());
    }

    #[test]
    fn what_was_planted_in_a_files_place_is_removed_itself() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("full")).unwrap();
        std::fs::write(folder.path().join("full/file"), "kept").unwrap();
        symlink("full/file", folder.path().join("link")).unwrap();
        symlink("full", folder.path().join("way")).unwrap();
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let root = ContainerRoot::of_folder(folder.path()).unwrap();
        for planted in ["/link", "/way", "/pipe"] {
            assert!(root.remove(Path::new(planted)).unwrap(), "{planted}");
        }
        assert!(root.remove(Path::new("/full")).is_err());
        assert_eq!(
            std::fs::read_to_string(folder.path().join("full/file")).unwrap(),
            "kept"
        );
    }

    #[test]
    fn a_folder_is_listed_up_to_a_limit_and_a_link_out_of_the_root_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("out")).unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(folder.path().join("out").join(name), "").unwrap();
        }
        symlink("/etc", folder.path().join("link")).unwrap();
        let root = ContainerRoot::of_folder(folder.path()).unwrap();
        let mut names = root.list(Path::new("/out"), 10).unwrap();
        names.sort();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(root.list(Path::new("/out"), 2).unwrap().len(), 2);
        assert!(root.list(Path::new("/absent"), 10).unwrap().is_empty());
        assert!(root.list(Path::new("/link"), 10).map_or(true, |names| names.is_empty()));
    }
}
