//! On what kind of file system a path of a container lies: judged by the mounts of one of its
//! processes, without touching a file system.
//!
//! A program answers for a file of FUSE and a server for one of a network: either may never do so,
//! and a container may have chosen it. A thread that waits for such an answer may be one that
//! nobody can end, so the kind is judged before the first file is opened. Every mount that the way
//! to the path crosses counts, since each is asked for the next name. The one exception is the root
//! that the runtime made for the container: whoever answers for that is the node's.
//!
//! A process that may mount (in a user namespace of its own) can put a file system in the way after
//! the judgment: whoever reads keeps a limit of time beside it. A file that is open already stays
//! on what it was opened on.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

use crate::mounts::{Crossed, crossed};
use crate::process::{ProcessError, ProcessId, Procfs};

/// Most bytes of a table of mounts that is read: some forty thousand mounts.
const MAX_MOUNTS_BYTES: u64 = 4 << 20;

/// File systems of this machine's disks.
const DISK: [&str; 17] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jfs", "ntfs3", "squashfs",
    "udf", "vfat", "xfs", "zfs", "zonefs",
];

/// File systems that a server answers for, or another machine.
const NETWORK: [&str; 25] = [
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "exafs", "gfs2", "gpfs", "kafs", "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "quobyte", "smb3", "smbfs", "virtiofs", "wekafs", "yrfs",
];

/// A kind of file system, by who answers for its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountKind {
    /// The root that the runtime made for the container, whatever its file system is.
    OwnRoot,
    /// Memory (tmpfs).
    Memory,
    /// A disk of this machine.
    Disk,
    /// Layers of an image (overlay), mounted by the runtime.
    Layers,
    /// A server, or another machine.
    Network,
    /// A program (FUSE).
    Fuse,
    /// One that nobody knows here, such as an automounter's, the kernel's own ones, or layers that
    /// the process itself may have mounted.
    Other,
}

impl MountKind {
    /// Whether the kernel of this machine alone answers for its files, or who made the container.
    pub const fn may_be_read(self) -> bool {
        matches!(self, Self::OwnRoot | Self::Memory | Self::Disk | Self::Layers)
    }
}

/// Why a path of a container is not to be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// The mounts cannot be read.
    #[error("the container's mounts cannot be read: {0}")]
    Unread(String),
    /// The process has ended, or its PID belongs to another one by now.
    #[error("process {pid} is gone")]
    Gone {
        /// The PID that was asked for.
        pid: i32,
    },
    /// Such a path may lead anywhere.
    #[error("{} is no absolute path without `..`", .0.display())]
    NotAbsolute(PathBuf),
    /// Who answers for a file system on the way is not the kernel alone: it may never answer.
    #[error(
        "{} lies behind a file system of the kind {kind} (mounted at {}), which may never answer",
        path.display(),
        point.display()
    )]
    Unanswered {
        /// Path in the container.
        path: PathBuf,
        /// Path in the container at which the file system is mounted.
        point: PathBuf,
        /// The kernel's name of its kind.
        kind: String,
    },
    /// The path is to lie in memory, and lies on another kind of file system.
    #[error("{} lies on a file system of the kind {kind}, not in memory", path.display())]
    NotMemory {
        /// Path in the container.
        path: PathBuf,
        /// The kernel's name of its kind.
        kind: String,
    },
}

/// On what kind of file system `path` lies in the container of `process`. It need not exist.
pub fn kind(procfs: &Procfs, process: ProcessId, path: &Path) -> Result<MountKind, MountError> {
    Ok(View::of(procfs, process)?.lies_on(path)?.kind)
}

/// Checks that the kernel alone, or who made the container, answers for every file system on the
/// way to `path` and for the one that it lies on.
pub fn check_readable(procfs: &Procfs, process: ProcessId, path: &Path) -> Result<(), MountError> {
    View::of(procfs, process)?.check_readable(path)
}

/// Checks the same, and that `path` lies in memory.
pub fn check_memory(procfs: &Procfs, process: ProcessId, path: &Path) -> Result<(), MountError> {
    View::of(procfs, process)?.check_memory(path)
}

/// Whether an open file lies in memory. The kernel answers for that at once, unless it does not lie
/// there.
pub fn is_in_memory(file: &File) -> std::io::Result<bool> {
    Ok(fstatfs(file)?.filesystem_type() == TMPFS_MAGIC)
}

/// The mounts that a process sees, and who may have mounted them.
#[derive(Debug)]
struct View {
    mountinfo: String,
    /// It is in the node's own user namespace, where nobody mounts without rights over the node.
    by_node: bool,
    /// Its root is that of its mount namespace, and no folder that it went into.
    is_whole: bool,
}

/// A mount on the way to a path, judged.
#[derive(Debug)]
struct Judged {
    kind: MountKind,
    /// The kernel's name of it.
    name: String,
    point: PathBuf,
}

impl View {
    fn of(procfs: &Procfs, process: ProcessId) -> Result<Self, MountError> {
        let pid = process.pid;
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => MountError::Gone { pid },
            _ => MountError::Unread(error.to_string()),
        };
        let of_process = |error: ProcessError| match error {
            ProcessError::Gone { .. } => MountError::Gone { pid },
            error => MountError::Unread(error.to_string()),
        };
        let folder = procfs.folder(pid);
        let mut mountinfo = String::new();
        File::open(folder.join("mountinfo"))
            .and_then(|file| file.take(MAX_MOUNTS_BYTES + 1).read_to_string(&mut mountinfo))
            .map_err(failed)?;
        if u64::try_from(mountinfo.len()).is_ok_and(|bytes| bytes > MAX_MOUNTS_BYTES) {
            return Err(MountError::Unread(format!(
                "there are more than {MAX_MOUNTS_BYTES} bytes"
            )));
        }
        let root = std::fs::read_link(folder.join("root")).map_err(failed)?;
        let by_node = procfs.shares_users(pid).map_err(of_process)?;
        // Asked last: what was read is of this process.
        if procfs.identify(pid).map_err(of_process)? != process {
            return Err(MountError::Gone { pid });
        }
        Ok(Self {
            mountinfo,
            by_node,
            is_whole: root == Path::new("/"),
        })
    }

    /// The mounts that the way to a path crosses, from the root on.
    fn way(&self, path: &Path) -> Result<Vec<Judged>, MountError> {
        let mut parts = path.components();
        if parts.next() != Some(Component::RootDir) || !parts.all(|part| matches!(part, Component::Normal(_))) {
            return Err(MountError::NotAbsolute(path.to_owned()));
        }
        let crossed = crossed(&self.mountinfo, path);
        if crossed.is_empty() {
            // Its root is a folder in a mount, of which the table has nothing.
            return Ok(vec![Judged {
                kind: MountKind::Other,
                name: "unknown".to_owned(),
                point: PathBuf::from("/"),
            }]);
        }
        let judged = crossed
            .into_iter()
            .enumerate()
            .map(|(place, Crossed { mount, point })| Judged {
                kind: self.judge(mount.kind, place == 0),
                name: mount.kind.to_owned(),
                point,
            });
        Ok(judged.collect())
    }

    fn judge(&self, name: &str, is_root: bool) -> MountKind {
        match name {
            _ if is_root && self.by_node && self.is_whole => MountKind::OwnRoot,
            "tmpfs" => MountKind::Memory,
            // Of a pod with users of its own the runtime mounts the root too. Elsewhere it may have
            // a server's folder below it.
            "overlay" if is_root || self.by_node => MountKind::Layers,
            "fuse" | "fuseblk" => MountKind::Fuse,
            _ if name.starts_with("fuse.") => MountKind::Fuse,
            _ if DISK.contains(&name) => MountKind::Disk,
            _ if NETWORK.contains(&name) => MountKind::Network,
            _ => MountKind::Other,
        }
    }

    fn lies_on(&self, path: &Path) -> Result<Judged, MountError> {
        let last = self.way(path)?.pop();
        last.ok_or_else(|| MountError::Unread("it has no root".to_owned()))
    }

    fn check_readable(&self, path: &Path) -> Result<(), MountError> {
        let unanswered = self.way(path)?.into_iter().find(|judged| !judged.kind.may_be_read());
        unanswered.map_or(Ok(()), |judged| {
            Err(MountError::Unanswered {
                path: path.to_owned(),
                point: judged.point,
                kind: judged.name,
            })
        })
    }

    fn check_memory(&self, path: &Path) -> Result<(), MountError> {
        self.check_readable(path)?;
        let last = self.lies_on(path)?;
        if last.kind == MountKind::Memory {
            return Ok(());
        }
        Err(MountError::NotMemory {
            path: path.to_owned(),
            kind: last.name,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const RECORDER: &str = "/flopwatch/recorder/recorder.ring";

    /// A container's root, and what a test mounts in it: ID, parent, place and kind of each.
    fn view(mounts: &[(u32, u32, &str, &str)]) -> View {
        let mut mountinfo = String::from("100 99 0:55 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/a:/b\n");
        for (id, parent, point, kind) in mounts {
            writeln!(mountinfo, "{id} {parent} 0:{id} / {point} rw,relatime - {kind} none rw").unwrap();
        }
        View {
            mountinfo,
            by_node: true,
            is_whole: true,
        }
    }

    fn kind_of(view: &View, path: &str) -> MountKind {
        view.lies_on(Path::new(path)).unwrap().kind
    }

    #[test]
    fn a_path_lies_on_the_deepest_mount_that_its_way_comes_to() {
        let view = view(&[
            (101, 100, "/proc", "proc"),
            (102, 100, "/flopwatch/recorder", "tmpfs"),
            (103, 100, "/flopwatch/recorder-of-mine", "nfs4"),
            (104, 100, "/data", "xfs"),
            (105, 104, "/data/scratch", "lustre"),
            (106, 100, "/models", "fuse.s3fs"),
            (107, 100, "/image", "overlay"),
        ]);
        for (path, kind) in [
            ("/", MountKind::OwnRoot),
            ("/tmp/x", MountKind::OwnRoot),
            (RECORDER, MountKind::Memory),
            ("/flopwatch/recorder-of-mine/x", MountKind::Network),
            ("/data/x", MountKind::Disk),
            ("/data/scratch/x", MountKind::Network),
            ("/models", MountKind::Fuse),
            ("/image/x", MountKind::Layers),
            ("/proc/1/environ", MountKind::Other),
        ] {
            assert_eq!(kind_of(&view, path), kind, "{path}");
            let checked = view.check_readable(Path::new(path));
            assert_eq!(checked.is_ok(), kind.may_be_read(), "{path}: {checked:?}");
        }
        assert_eq!(view.check_memory(Path::new(RECORDER)), Ok(()));
        assert!(matches!(
            view.check_memory(Path::new("/data/x")),
            Err(MountError::NotMemory { kind, .. }) if kind == "xfs"
        ));
    }

    #[test]
    fn a_recorders_file_behind_a_server_or_a_program_is_not_opened() {
        for kind in [
            "nfs",
            "nfs4",
            "cifs",
            "ceph",
            "lustre",
            "9p",
            "virtiofs",
            "fuse",
            "fuse.sshfs",
            "fuseblk",
            "autofs",
            "whatever",
        ] {
            for mounts in [
                vec![(101, 100, "/flopwatch/recorder", kind)],
                // The file alone.
                vec![(101, 100, "/flopwatch/recorder", "tmpfs"), (102, 101, RECORDER, kind)],
                // It is asked for the folder that memory is mounted at.
                vec![
                    (101, 100, "/flopwatch", kind),
                    (102, 101, "/flopwatch/recorder", "tmpfs"),
                ],
                // Mounted over memory.
                vec![
                    (101, 100, "/flopwatch/recorder", "tmpfs"),
                    (102, 101, "/flopwatch/recorder", kind),
                ],
                // In memory that covers memory.
                vec![
                    (101, 100, "/flopwatch/recorder", "tmpfs"),
                    (102, 100, "/flopwatch", "tmpfs"),
                    (103, 102, "/flopwatch/recorder", kind),
                ],
            ] {
                let refused = view(&mounts).check_memory(Path::new(RECORDER));
                assert!(
                    matches!(&refused, Err(MountError::Unanswered { kind: found, .. }) if found == kind),
                    "{mounts:?}: {refused:?}"
                );
            }
        }
    }

    #[test]
    fn a_root_is_the_runtimes_only_where_nobody_else_can_have_made_it() {
        let root_of = |kind: &str, by_node: bool, is_whole: bool| View {
            mountinfo: format!("100 99 0:55 / / rw - {kind} none rw\n"),
            by_node,
            is_whole,
        };
        let judged = |kind: &str, by_node, is_whole| kind_of(&root_of(kind, by_node, is_whole), "/tmp/x");
        assert_eq!(judged("fuse.fuse-overlayfs", true, true), MountKind::OwnRoot);
        assert_eq!(judged("nfs4", true, true), MountKind::OwnRoot);
        // A process that went into a volume.
        assert_eq!(judged("nfs4", true, false), MountKind::Network);
        // A process that may mount.
        assert_eq!(judged("fuse.mine", false, true), MountKind::Fuse);
        assert_eq!(judged("overlay", false, true), MountKind::Layers);
        let mut own = view(&[(101, 100, "/mine", "overlay")]);
        own.by_node = false;
        assert_eq!(kind_of(&own, "/mine/x"), MountKind::Other);
        // Its root is a folder in a volume: the table does not show that mount.
        let inside = View {
            mountinfo: "101 100 0:56 / /data rw - tmpfs none rw\n".to_owned(),
            by_node: true,
            is_whole: false,
        };
        assert_eq!(kind_of(&inside, "/data/x"), MountKind::Other);
    }

    #[test]
    fn a_path_that_goes_up_is_refused() {
        let view = view(&[]);
        for path in ["data", "", "/tmp/../data", ".."] {
            let refused = view.check_readable(Path::new(path));
            assert_eq!(refused, Err(MountError::NotAbsolute(path.into())), "{path}");
        }
    }

    #[test]
    fn the_mounts_of_a_process_are_its_own_and_no_later_processs() {
        let procfs = Procfs::default();
        let own = procfs.identify(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert_eq!(kind(&procfs, own, Path::new("/proc/self/stat")), Ok(MountKind::Other));
        assert!(check_readable(&procfs, own, Path::new("/proc/self/stat")).is_err());
        let later = ProcessId {
            start_time: own.start_time + 1,
            ..own
        };
        let gone = MountError::Gone { pid: own.pid };
        assert_eq!(kind(&procfs, later, Path::new("/tmp")), Err(gone));
    }

    #[test]
    fn an_open_file_says_whether_it_lies_in_memory() {
        assert!(!is_in_memory(&File::open("/proc/self/stat").unwrap()).unwrap());
        let name = c"flopwatch";
        let memory = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert!(is_in_memory(&File::from(memory)).unwrap());
    }
}
