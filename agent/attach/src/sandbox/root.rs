//! The root folder of a sandbox: an empty file system in memory, and on it, at the paths that they
//! have outside, what the tool needs. Everything is read-only but the tool's own folder, `/tmp` and
//! `/dev/shm`.
//!
//! The old root is covered rather than left by `pivot_root`, which the default filter of container
//! runtimes refuses to the agent. Back would lead a descriptor, of which none is handed on, or a
//! right that the tool does not have.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rustix::fs::{FileType, Mode, OFlags};

use super::Sandboxed;
use super::stage::{Stage, at};
use crate::mounts;

/// What programs need of any system, where it is there: a link stays a link.
const SYSTEM: [&str; 13] = [
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/bin",
    "/sbin",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
];
/// Devices that hold nothing of the machine.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Where drivers keep what programs for the GPU load, beside the system's own folders; and what
/// they ask of the machine.
const DRIVER: [&str; 5] = [
    "/sys",
    "/opt/nvidia",
    "/run/nvidia/driver",
    "/run/opengl-driver",
    "/home/kubernetes/bin/nvidia",
];
/// Links of `/dev` that shells expect.
const STREAMS: [(&str, &str); 4] = [
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
];
/// Memory that the root, `/tmp` and `/dev/shm` may take together, and how many files.
const ROOT_MOUNT_OPTIONS: &str = "size=64m,nr_inodes=16384,mode=0755";

/// Something of the machine that is to be seen.
enum Seen {
    /// A file or folder.
    Bound { from: OwnedFd, to: PathBuf, folder: bool },
    /// A link and what it says.
    Link { at: PathBuf, says: PathBuf },
}

/// Goes into a root of its own. Call it in a mount namespace of one's own, with the right to mount.
/// Fails with the machine's root in place.
pub(super) fn enter(sandboxed: &Sandboxed, missing: &mut Vec<String>) -> Result<(), Stage> {
    // As the table of mounts has it.
    let base = &sandboxed
        .directory
        .canonicalize()
        .map_err(at("find the tool's folder"))?;
    // Mounts that come or go outside may come and go here; nothing of here is seen outside.
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_SLAVE,
        None::<&str>,
    )
    .map_err(at("keep mounts apart"))?;
    // Opened before anything is covered.
    let seen = inspect(sandboxed, base)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("sandbox"), base, Some("tmpfs"), flags, Some(ROOT_MOUNT_OPTIONS)).map_err(at("make an empty root"))?;
    let made = hide(base)
        .and_then(|()| furnish(base, &seen, sandboxed.gpu, missing))
        .and_then(|()| protect(base, &sandboxed.directory))
        .and_then(|()| go(base));
    if made.is_err() {
        umount2(base, MntFlags::MNT_DETACH).ok();
    }
    made?;
    rustix::process::chdir(&sandboxed.directory).map_err(at("enter the tool's folder"))
}

/// Leaves the new root out of every folder that is shown with all that is mounted in it: the tool's
/// own folder may lie in one.
fn hide(base: &Path) -> Result<(), Stage> {
    let flags = MsFlags::MS_UNBINDABLE;
    mount(None::<&str>, base, None::<&str>, flags, None::<&str>).map_err(at("make an empty root"))
}

/// Everything that is to be seen, parents before what lies in them. The tool's own folder is at
/// `base`, without any link.
fn inspect(sandboxed: &Sandboxed, base: &Path) -> Result<Vec<Seen>, Stage> {
    let mut wanted: Vec<PathBuf> = SYSTEM.iter().chain(&DEVICES).map(PathBuf::from).collect();
    wanted.extend(sandboxed.readable.iter().cloned());
    if sandboxed.gpu {
        wanted.extend(DRIVER.iter().map(PathBuf::from));
        wanted.extend(gpu_devices());
    }
    wanted.sort_by_key(|path| path.components().count());
    let own = open(&sandboxed.directory, OFlags::NOFOLLOW)
        .map_err(at("open the tool's folder"))?
        .ok_or_else(|| ("open the tool's folder", "it is not there".to_owned()))?;
    let mut seen = Vec::new();
    // What lies in a folder that is seen is seen with it, and what lies behind a link where that
    // leads. Nothing is made there: it would be made outside.
    let mut folders = vec![sandboxed.directory.clone()];
    for path in wanted {
        check(&path)?;
        if folders.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        if SYSTEM.iter().any(|system| path == Path::new(system))
            && let Ok(says) = std::fs::read_link(&path)
        {
            folders.push(path.clone());
            seen.push(Seen::Link { at: path, says });
            continue;
        }
        let Some(from) =
            open(&path, OFlags::empty()).map_err(|error| ("open what the tool reads", describe(&path, error)))?
        else {
            continue;
        };
        let folder = is_folder(&from).map_err(at("look at what the tool reads"))?;
        if folder {
            hold(&from, &path, &sandboxed.directory, base)?;
            folders.push(path.clone());
        }
        seen.push(Seen::Bound { from, to: path, folder });
    }
    check(&sandboxed.directory)?;
    let behind_link = |seen: &Seen| matches!(seen, Seen::Link { at, .. } if sandboxed.directory.starts_with(at));
    if seen.iter().any(behind_link) {
        return Err((
            "show the tool its folder",
            "it lies behind a link of the system's".to_owned(),
        ));
    }
    seen.push(Seen::Bound {
        from: own,
        to: sandboxed.directory.clone(),
        folder: true,
    });
    Ok(seen)
}

/// Refuses a folder in which a link leads to the tool's own: its place would be made where the link
/// leads, outside.
fn hold(folder: &OwnedFd, path: &Path, own: &Path, base: &Path) -> Result<(), Stage> {
    let Ok(rest) = own.strip_prefix(path) else {
        return Ok(());
    };
    let opened = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let real = std::fs::read_link(opened).map_err(at("look at what the tool reads"))?;
    if real.join(rest) == base {
        return Ok(());
    }
    Err((
        "show the tool its folder",
        describe(
            path,
            "the tool's folder lies in it behind a link: name one of them otherwise",
        ),
    ))
}

/// The nodes of the driver, in whatever number.
fn gpu_devices() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("nvidia"))
        .map(|entry| entry.path())
        .collect()
}

/// A path that is the same wherever it is asked for.
fn check(path: &Path) -> Result<(), Stage> {
    let mut parts = path.components();
    if parts.next() == Some(Component::RootDir)
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && path != Path::new("/")
    {
        Ok(())
    } else {
        Err(("show the tool a file", format!("{}: is no whole path", path.display())))
    }
}

fn describe(path: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn open(path: &Path, flags: OFlags) -> rustix::io::Result<Option<OwnedFd>> {
    match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty()) {
        Ok(opened) => Ok(Some(opened)),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_folder(opened: &OwnedFd) -> rustix::io::Result<bool> {
    let mode = rustix::fs::fstat(opened)?.st_mode;
    Ok(FileType::from_raw_mode(mode) == FileType::Directory)
}

/// Where a path of the machine is on the new root.
fn below(base: &Path, path: &Path) -> PathBuf {
    base.join(path.strip_prefix("/").unwrap_or(path))
}

fn furnish(base: &Path, seen: &[Seen], gpu: bool, missing: &mut Vec<String>) -> Result<(), Stage> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| ("furnish the root", describe(&path, error))
    };
    for name in ["tmp", "dev/shm", "proc"] {
        let folder = base.join(name);
        std::fs::create_dir_all(&folder).map_err(failed(&folder))?;
        if name != "proc" {
            let open_to_all = std::fs::Permissions::from_mode(0o1777);
            std::fs::set_permissions(&folder, open_to_all).map_err(failed(&folder))?;
        }
    }
    for (name, says) in STREAMS {
        let link = base.join(name);
        std::os::unix::fs::symlink(says, &link).map_err(failed(&link))?;
    }
    for seen in seen {
        let to = match seen {
            Seen::Link { at, .. } => at,
            Seen::Bound { to, .. } => to,
        };
        let place = below(base, to);
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent).map_err(failed(parent))?;
        }
        match seen {
            Seen::Link { says, .. } => std::os::unix::fs::symlink(says, &place).map_err(failed(&place))?,
            Seen::Bound { from, folder, .. } => {
                if *folder {
                    std::fs::create_dir_all(&place).map_err(failed(&place))?;
                } else {
                    std::fs::File::create_new(&place).map_err(failed(&place))?;
                }
                let from = format!("/proc/self/fd/{}", from.as_raw_fd());
                let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
                mount(Some(from.as_str()), &place, None::<&str>, flags, None::<&str>)
                    .map_err(|error| ("show the tool a file", describe(to, error)))?;
            }
        }
    }
    let proc = base.join("proc");
    let mut flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if !gpu {
        flags |= MsFlags::MS_RDONLY;
    }
    match mount(Some("proc"), &proc, Some("proc"), flags, None::<&str>) {
        // CUDA's driver names its threads by way of their files there, and makes no context where
        // it cannot.
        Ok(()) if gpu => close_machine(&proc),
        Ok(()) => Ok(()),
        // In a container whose own is covered in part the kernel lets nobody see the whole one
        // through a user namespace.
        Err(nix::errno::Errno::EPERM) => {
            missing.push("a /proc of its own processes: the system refuses one, so there is none".to_owned());
            Ok(())
        }
        Err(error) => Err(("show the tool its own processes", error.to_string())),
    }
}

/// Makes mounts of those parts of a `/proc` that are the machine's and not a process's, which
/// [`protect`] makes read-only: root without a capability may still write to them.
fn close_machine(proc: &Path) -> Result<(), Stage> {
    for name in ["acpi", "bus", "driver", "fs", "irq", "scsi", "sys", "sysrq-trigger"] {
        let part = proc.join(name);
        if part.exists() {
            let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(Some(&part), &part, None::<&str>, flags, None::<&str>)
                .map_err(|error| ("close what is the machine's in /proc", describe(&part, error)))?;
        }
    }
    Ok(())
}

/// Makes everything read-only but the root itself and the tool's `own` folder, in which devices
/// mean nothing.
fn protect(base: &Path, own: &Path) -> Result<(), Stage> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").map_err(at("read the mounts"))?;
    let own = below(base, own);
    let keep = [base, &base.join("proc")];
    let mounts: Vec<_> = mounts::reached(&table)
        .filter(|reached| reached.point.starts_with(base))
        .map(|reached| (flags(reached.mount.options), reached.point))
        .collect();
    if !mounts.iter().any(|(_, place)| *place == own) {
        return Err((
            "make the root read-only",
            "its mounts are not in the table of mounts".to_owned(),
        ));
    }
    for (flags, place) in mounts {
        if keep.iter().any(|kept| place == **kept) {
            continue;
        }
        let more = if place == own {
            MsFlags::MS_NODEV
        } else {
            MsFlags::MS_RDONLY
        };
        let flags = flags | more | MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID;
        mount(None::<&str>, &place, None::<&str>, flags, None::<&str>)
            .map_err(|error| ("make the root read-only", describe(&place, error)))?;
    }
    Ok(())
}

/// The flags of a mount's own options, which have to be named again when it is mounted anew.
fn flags(options: &str) -> MsFlags {
    options.split(',').fold(MsFlags::empty(), |flags, word| {
        flags
            | match word {
                "nosuid" => MsFlags::MS_NOSUID,
                "nodev" => MsFlags::MS_NODEV,
                "noexec" => MsFlags::MS_NOEXEC,
                "noatime" => MsFlags::MS_NOATIME,
                "nodiratime" => MsFlags::MS_NODIRATIME,
                "relatime" => MsFlags::MS_RELATIME,
                _ => MsFlags::empty(),
            }
    })
}

/// Puts the new root over the old one.
fn go(base: &Path) -> Result<(), Stage> {
    rustix::process::chdir(base).map_err(at("enter the root"))?;
    mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>).map_err(at("enter the root"))?;
    rustix::process::chroot(".").map_err(at("enter the root"))?;
    rustix::process::chdir("/").map_err(at("enter the root"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_with_the_flags_that_it_has() {
        let expected = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC | MsFlags::MS_RELATIME;
        assert_eq!(flags("rw,nosuid,noexec,relatime"), expected);
    }

    #[test]
    fn only_whole_paths_are_shown() {
        for path in ["", "a", "/", "/a/../b", "../a"] {
            assert!(check(Path::new(path)).is_err(), "{path:?}");
        }
        check(Path::new("/a/b")).unwrap();
    }
}
