//! File systems over a folder that one process sees: a small one, so that its disk can be filled
//! and the machine's stays as it is, and one for which nobody answers.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::node::Process;

/// A tmpfs over a folder of a process's mount namespace, until this value ends.
#[derive(Debug)]
pub struct SmallDisk {
    namespace: File,
    folder: PathBuf,
    /// The folder as this process reaches it.
    seen: PathBuf,
}

impl SmallDisk {
    /// Mounts a file system of `mebibytes` over `folder` as `process` sees it; it belongs to who
    /// owned the folder.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn over(process: Process, folder: &Path, mebibytes: u32) -> Result<Self> {
        let namespace = File::open(format!("/proc/{}/ns/mnt", process.pid)).context("opening the mount namespace")?;
        let target = folder.to_owned();
        within(&namespace, move || {
            use std::os::unix::fs::MetadataExt as _;
            let owned = std::fs::metadata(&target)?;
            let options = format!(
                "size={mebibytes}m,mode={:o},uid={},gid={}",
                owned.mode() & 0o7777,
                owned.uid(),
                owned.gid()
            );
            mount(
                Some("tmpfs"),
                &target,
                Some("tmpfs"),
                MsFlags::empty(),
                Some(options.as_str()),
            )?;
            Ok(())
        })
        .with_context(|| format!("mounting over {}", folder.display()))?;
        let below = folder.strip_prefix("/").unwrap_or(folder);
        Ok(Self {
            namespace,
            folder: folder.to_owned(),
            seen: process.root().join(below),
        })
    }

    /// Writes until it is full, but for `left` bytes.
    ///
    /// # Errors
    /// When the file system cannot be written.
    pub fn fill(&self, left: u64) -> Result<()> {
        let ballast = File::create(self.seen.join("ballast"))?;
        let mut held = 0;
        for _ in 0..1000 {
            let facts = nix::sys::statvfs::statvfs(&self.seen)?;
            let free = facts.blocks_available().saturating_mul(facts.fragment_size());
            let bytes = i64::try_from(free.saturating_sub(left))?;
            if bytes == 0 {
                return Ok(());
            }
            match nix::fcntl::fallocate(&ballast, nix::fcntl::FallocateFlags::empty(), held, bytes) {
                Ok(()) => held += bytes,
                // Somebody wrote meanwhile.
                Err(nix::errno::Errno::ENOSPC) => {}
                Err(error) => return Err(error.into()),
            }
        }
        anyhow::bail!("others free space as fast as it is filled")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let folder = self.folder.clone();
        // The namespace may be gone with its last process; so is the mount then.
        within(&self.namespace, move || Ok(umount2(&folder, MntFlags::MNT_DETACH)?)).ok();
    }
}

/// A file system of FUSE over a folder that one process sees, for which nobody answers. What waits
/// for it comes back with an error when this value ends.
#[derive(Debug)]
pub struct Unanswered {
    namespace: File,
    folder: PathBuf,
    fuse: Option<File>,
}

impl Unanswered {
    /// Mounts it over `folder` as `process` sees it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn over(process: Process, folder: &Path) -> Result<Self> {
        let namespace = File::open(format!("/proc/{}/ns/mnt", process.pid))?;
        let fuse = File::options().read(true).write(true).open("/dev/fuse")?;
        let descriptor = fuse.as_raw_fd();
        within(&namespace, || {
            let options = format!("fd={descriptor},rootmode=40000,user_id=0,group_id=0,allow_other");
            let (kind, none) = (Some("fuse"), MsFlags::empty());
            Ok(mount(Some("nobody"), folder, kind, none, Some(options.as_str()))?)
        })
        .with_context(|| format!("mounting over {}", folder.display()))?;
        Ok(Self {
            namespace,
            folder: folder.to_owned(),
            fuse: Some(fuse),
        })
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        // The connection ends with its descriptor.
        drop(self.fuse.take());
        let folder = &self.folder;
        // The namespace may be gone with its last process; so is the mount then.
        within(&self.namespace, || Ok(umount2(folder, MntFlags::MNT_DETACH)?)).ok();
    }
}

/// Lets `work` write below a folder that is mounted read-only for a process, as that process sees
/// it; it is read-only again afterwards.
///
/// # Errors
/// When the kernel refuses, or `work` fails.
pub fn written(process: Process, folder: &Path, work: impl FnOnce(&Path) -> Result<()> + Send) -> Result<()> {
    let namespace = File::open(format!("/proc/{}/ns/mnt", process.pid)).context("opening the mount namespace")?;
    let again = |flags: MsFlags| {
        let none = None::<&str>;
        mount(none, folder, none, MsFlags::MS_BIND | MsFlags::MS_REMOUNT | flags, none)
    };
    within(&namespace, move || {
        again(MsFlags::empty())?;
        let done = work(folder);
        again(MsFlags::MS_RDONLY)?;
        done
    })
}

/// Does something in a mount namespace, on a thread that ends with it.
fn within(namespace: &File, work: impl FnOnce() -> Result<()> + Send) -> Result<()> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // The kernel lets nobody change mount namespaces while a folder is shared with other
            // threads.
            unshare(CloneFlags::CLONE_FS)?;
            setns(namespace.as_fd(), CloneFlags::CLONE_NEWNS)?;
            work()
        });
        thread.join().map_err(|_panic| anyhow::anyhow!("the thread failed"))?
    })
}
