//! Whether the folders that a container shows are the volumes that admission added: read from its
//! mounts, without touching a file system.
//!
//! An emptyDir is told by where the kernel says that it lies. An image is the runtime's to mount,
//! anywhere; that it is the one that the pod's manifest names follows from who could have mounted
//! another: in the node's own user namespace, nobody without rights over the node. What the
//! manifest names is held by admission and by a policy.

use std::path::Path;

use flopwatch_launcher::run_dir::{DEFAULT_RUN_DIR, DEFAULT_TOOLS_DIR, TARGET_FOLDER};
use serde::{Deserialize, Serialize};

use crate::mounts::{Mount, mounts};
use crate::process::Procfs;

/// How the kubelet names the folder of a pod's emptyDirs.
const EMPTY_DIRS: &str = "/volumes/kubernetes.io~empty-dir/";
/// Folder in the container below which nothing is mounted but the two.
const OURS: &str = "/flopwatch";

/// Why a container is not entered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// The mounts of the container's process cannot be read.
    #[error("its mounts cannot be read: {0}")]
    Unread(String),
    /// The cgroup of the process names no pod.
    #[error("it is in no pod")]
    NoPod,
    /// Nothing is mounted where the volume should be.
    #[error("nothing is mounted at {0}")]
    Absent(&'static str),
    /// More than the volume is mounted there: over it, in it or around it.
    #[error("something else is mounted at {0}")]
    Covered(String),
    /// The mount at the path is another volume, or another pod's.
    #[error("what is mounted at {0} is not the volume that admission added")]
    Foreign(&'static str),
    /// Who answers for its file system is not the kernel alone: it may never answer.
    #[error("what is mounted at {0} is a file system of the kind {1}")]
    Remote(&'static str, String),
    /// The tools could be changed by who runs beside them.
    #[error("{0} can be written to")]
    Writable(&'static str),
}

/// Where the kubelet of a node keeps its pods' volumes, as mounts tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubeletVolumes {
    /// Major and minor number of the file system that they are on; empty where nothing is known,
    /// which is no mount's.
    device: String,
    pods: String,
}

/// The emptyDirs of one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PodVolumes {
    device: String,
    /// Path of the pod's emptyDirs within their file system.
    folder: String,
}

/// Who may have mounted what a process sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MountedBy {
    /// The container's runtime, and who has rights over the node.
    Node,
    /// The process itself: it is in a user namespace of its own.
    Anyone,
}

impl Mount<'_> {
    fn is_read_only(&self) -> bool {
        self.options.split(',').any(|option| option == "ro")
    }

    /// Whether it may be that folder of an image, as a runtime unpacks it.
    fn is_image(&self, folder: &str) -> bool {
        let unpacked = self.kind == "overlay" || LOCAL.contains(&self.kind);
        let above = self.root.strip_suffix(folder);
        unpacked && above.is_some_and(|above| above.ends_with('/'))
    }
}

impl KubeletVolumes {
    /// Reads it from the caller's own mounts, of which `own` is an emptyDir; none when the caller
    /// runs in no pod.
    pub fn of_own(mountinfo: &str, own: &Path) -> Option<Self> {
        let own = own.to_str()?;
        let mount = mounts(mountinfo).find(|mount| mount.point == own)?;
        let (pod, _volume) = mount.root.rsplit_once(EMPTY_DIRS)?;
        let (pods, _uid) = pod.rsplit_once('/')?;
        pods.ends_with("/pods").then(|| Self {
            device: mount.device.to_owned(),
            pods: pods.to_owned(),
        })
    }

    /// Where it is not known: no container has such volumes.
    pub const fn unknown() -> Self {
        Self {
            device: String::new(),
            pods: String::new(),
        }
    }

    /// Checks the mounts of a process of a container of that pod: its tools folder is the pod's or
    /// that of an image, read-only, and its run folder is the pod's too or lies on a local file
    /// system; and nothing else is mounted over, in or around them.
    pub fn check(&self, pod_uid: &str, procfs: &Procfs, pid: i32) -> Result<(), VolumeError> {
        let mounts = std::fs::read_to_string(procfs.folder(pid).join("mountinfo"));
        let mounts = mounts.map_err(|error| VolumeError::Unread(error.to_string()))?;
        let mounted_by = match procfs.shares_users(pid) {
            Ok(true) => MountedBy::Node,
            Ok(false) => MountedBy::Anyone,
            Err(error) => return Err(VolumeError::Unread(error.to_string())),
        };
        self.of_pod(pod_uid).check(&mounts, mounted_by)
    }

    fn of_pod(&self, uid: &str) -> PodVolumes {
        PodVolumes {
            device: self.device.clone(),
            folder: format!("{}/{uid}{EMPTY_DIRS}", self.pods),
        }
    }
}

impl PodVolumes {
    fn check(&self, mountinfo: &str, mounted_by: MountedBy) -> Result<(), VolumeError> {
        let tools = only(mountinfo, DEFAULT_TOOLS_DIR);
        let is_image = |mount: &Mount<'_>| mounted_by == MountedBy::Node && mount.is_image(TOOLS_IN_IMAGE);
        let from_image = tools.as_ref().is_ok_and(is_image);
        let others = mounts(mountinfo).find(|mount| {
            let ours = mount.point == DEFAULT_TOOLS_DIR || mount.point == DEFAULT_RUN_DIR;
            let ours = ours || from_image && mount.point == PROFILER_DIR;
            let ours = ours || BESIDE.contains(&mount.point) && LOCAL.contains(&mount.kind);
            let near = mount.point.strip_prefix(OURS);
            !ours && near.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if let Some(mount) = others {
            return Err(VolumeError::Covered(mount.point.to_owned()));
        }
        let tools = tools?;
        if !from_image && !self.holds(&tools, |name| name == TOOLS) {
            return Err(VolumeError::Foreign(DEFAULT_TOOLS_DIR));
        }
        if !tools.is_read_only() {
            return Err(VolumeError::Writable(DEFAULT_TOOLS_DIR));
        }
        if from_image {
            let profiler = only(mountinfo, PROFILER_DIR)?;
            if !profiler.is_image(TARGET_FOLDER) {
                return Err(VolumeError::Foreign(PROFILER_DIR));
            }
            if !profiler.is_read_only() {
                return Err(VolumeError::Writable(PROFILER_DIR));
            }
        }
        let run = only(mountinfo, DEFAULT_RUN_DIR)?;
        let own = self.holds(&run, |name| {
            let index = name.strip_prefix(RUN_PREFIX);
            index.is_some_and(|index| index.bytes().all(|byte| byte.is_ascii_digit()))
        });
        // What lies in it is the container's to write in any case: it must answer, no more.
        if own || LOCAL.contains(&run.kind) {
            Ok(())
        } else {
            Err(VolumeError::Remote(DEFAULT_RUN_DIR, run.kind.to_owned()))
        }
    }

    /// Whether it shows a volume of the pod by that name.
    fn holds(&self, mount: &Mount<'_>, is_named: impl Fn(&str) -> bool) -> bool {
        mount.device == self.device && mount.root.strip_prefix(&self.folder).is_some_and(is_named)
    }
}

/// The one mount at that place.
fn only<'a>(mountinfo: &'a str, point: &'static str) -> Result<Mount<'a>, VolumeError> {
    let mut there = mounts(mountinfo).filter(|mount| mount.point == point);
    let mount = there.next().ok_or(VolumeError::Absent(point))?;
    match there.next() {
        None => Ok(mount),
        Some(_) => Err(VolumeError::Covered(point.to_owned())),
    }
}

/// File systems that no other machine and no program answers for.
const LOCAL: [&str; 7] = ["btrfs", "ext3", "ext4", "f2fs", "tmpfs", "xfs", "zfs"];

/// Where volumes of other preparations lie beside the two (`flopwatch_api::preparation`): the
/// flight recorder's file, and dumps of JAX's compiler. Nothing that enters the container goes
/// there.
const BESIDE: [&str; 2] = ["/flopwatch/recorder", "/flopwatch/jax"];

/// Where the profiler's folder is mounted when the tools are those of an image, and the folder of
/// the launcher's image that they are (`flopwatch_api::preparation`).
const PROFILER_DIR: &str = "/flopwatch/tools/target-linux-x64";
const TOOLS_IN_IMAGE: &str = "usr/lib/flopwatch/tools";

/// Names of the two volumes; the second has the container's number behind it
/// (`flopwatch_api::preparation`).
const TOOLS: &str = "flopwatch-tools";
const RUN_PREFIX: &str = "flopwatch-run-";

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "0a1b2c3d-1111-2222-3333-444455556666";
    const AGENT: &str = "99999999-1111-2222-3333-444455556666";

    fn folder(pod: &str, name: &str) -> String {
        format!("/lib/kubelet/pods/{pod}/volumes/kubernetes.io~empty-dir/{name}")
    }

    fn line(device: &str, root: &str, point: &str, options: &str) -> String {
        format!("1490 1480 {device} {root} {point} {options} - ext4 /dev/vda rw\n")
    }

    fn volumes() -> PodVolumes {
        let own = line("254:0", "/", "/", "ro") + &line("254:0", &folder(AGENT, "tools"), "/opt/nsys", "ro,relatime");
        let kubelet = KubeletVolumes::of_own(&own, Path::new("/opt/nsys")).unwrap();
        assert_eq!(KubeletVolumes::of_own(&own, Path::new("/elsewhere")), None);
        assert_eq!(KubeletVolumes::of_own(&own, Path::new("/")), None);
        kubelet.of_pod(POD)
    }

    fn tools(options: &str) -> String {
        line("254:0", &folder(POD, "flopwatch-tools"), "/flopwatch/tools", options)
    }

    fn run() -> String {
        line(
            "254:0",
            &folder(POD, "flopwatch-run-3"),
            "/flopwatch/run",
            "rw,relatime",
        )
    }

    #[test]
    fn only_the_volumes_that_admission_added_are_trusted() {
        let root = line("0:55", "/", "/", "rw");
        let good = format!("{root}{}{}", tools("ro,relatime"), run());
        assert_eq!(volumes().check(&good, MountedBy::Anyone), Ok(()));
        let foreign = VolumeError::Foreign("/flopwatch/tools");
        let of_a_container = line("0:55", &folder(POD, "flopwatch-tools"), "/flopwatch/tools", "ro");
        let of_another = line("254:0", &folder(AGENT, "flopwatch-tools"), "/flopwatch/tools", "ro");
        let below = line(
            "254:0",
            &folder(POD, "flopwatch-run-3/flopwatch-tools"),
            "/flopwatch/tools",
            "ro",
        );
        for (what, mounts, error) in [
            ("no mount at all", root.clone(), VolumeError::Absent("/flopwatch/tools")),
            (
                "a file system of the container's own",
                of_a_container + &run(),
                foreign.clone(),
            ),
            ("another pod's", of_another + &run(), foreign.clone()),
            ("a folder of a volume", below + &run(), foreign),
            (
                "writable tools",
                tools("rw") + &run(),
                VolumeError::Writable("/flopwatch/tools"),
            ),
            ("no run folder", tools("ro"), VolumeError::Absent("/flopwatch/run")),
            (
                "a run folder that a program answers for",
                tools("ro") + &line("0:66", "/", "/flopwatch/run", "rw").replace("ext4", "fuse.sshfs"),
                VolumeError::Remote("/flopwatch/run", "fuse.sshfs".into()),
            ),
            (
                "a run folder on a server",
                tools("ro") + &line("0:66", "/", "/flopwatch/run", "rw").replace("ext4", "nfs4"),
                VolumeError::Remote("/flopwatch/run", "nfs4".into()),
            ),
            (
                "a second mount over the tools",
                tools("ro") + &tools("ro") + &run(),
                VolumeError::Covered("/flopwatch/tools".into()),
            ),
            (
                "something in the tools",
                good.clone() + &line("0:9", "/", "/flopwatch/tools/target-linux-x64", "ro"),
                VolumeError::Covered("/flopwatch/tools/target-linux-x64".into()),
            ),
            (
                "something around them",
                good.clone() + &line("0:9", "/", "/flopwatch", "ro"),
                VolumeError::Covered("/flopwatch".into()),
            ),
        ] {
            assert_eq!(volumes().check(&mounts, MountedBy::Anyone), Err(error), "{what}");
        }
        assert_eq!(
            KubeletVolumes::unknown().of_pod(POD).check(&good, MountedBy::Anyone),
            Err(VolumeError::Foreign("/flopwatch/tools"))
        );
        let small = tools("ro") + &line("0:66", "/", "/flopwatch/run", "rw").replace("ext4", "tmpfs");
        assert_eq!(volumes().check(&small, MountedBy::Anyone), Ok(()));
        let beside = good.clone() + &line("0:9", "/", "/flopwatch-data", "rw");
        assert_eq!(volumes().check(&beside, MountedBy::Anyone), Ok(()));
        let recorder = good.clone() + &line("0:66", "/", "/flopwatch/recorder", "rw").replace("ext4", "tmpfs");
        assert_eq!(volumes().check(&recorder, MountedBy::Anyone), Ok(()));
        let remote = good + &line("0:66", "/", "/flopwatch/recorder", "rw").replace("ext4", "fuse.sshfs");
        let covered = VolumeError::Covered("/flopwatch/recorder".into());
        assert_eq!(volumes().check(&remote, MountedBy::Anyone), Err(covered));
    }

    fn image(root: &str, point: &str, options: &str) -> String {
        line("0:77", root, point, options).replace("ext4 /dev/vda", "overlay overlay")
    }

    #[test]
    fn images_are_trusted_where_only_the_runtime_can_have_mounted_them() {
        const ROOT: &str = "/usr/lib/flopwatch/tools";
        const NSYS: &str = "/opt/nsys/target-linux-x64";
        const AT: &str = "/flopwatch/tools/target-linux-x64";
        let root = line("0:55", "/", "/", "rw");
        let launcher = || image(ROOT, "/flopwatch/tools", "ro,relatime");
        let nsys = || image(NSYS, AT, "ro,relatime");
        let good = format!("{root}{}{}{}", launcher(), nsys(), run());
        let check = |mounts: &str| volumes().check(mounts, MountedBy::Node);
        assert_eq!(check(&good), Ok(()));
        // Where every process may mount, one may have mounted this.
        let covered = VolumeError::Covered(AT.into());
        assert_eq!(volumes().check(&good, MountedBy::Anyone), Err(covered.clone()));
        let alone = format!("{root}{}{}", launcher(), run());
        let foreign = VolumeError::Foreign("/flopwatch/tools");
        assert_eq!(volumes().check(&alone, MountedBy::Anyone), Err(foreign.clone()));
        for (what, mounts, error) in [
            ("no profiler", alone.clone(), VolumeError::Absent(AT)),
            (
                "all of an image in the place of its folder",
                image("/", "/flopwatch/tools", "ro") + &run(),
                foreign.clone(),
            ),
            (
                "a folder by another name",
                image("/my-usr/lib/flopwatch/toolsx", "/flopwatch/tools", "ro") + &run(),
                foreign.clone(),
            ),
            (
                "a program that answers for the image",
                launcher().replace("overlay overlay", "fuse.stargz stargz") + &run(),
                foreign,
            ),
            (
                "a writable launcher",
                image(ROOT, "/flopwatch/tools", "rw") + &nsys() + &run(),
                VolumeError::Writable("/flopwatch/tools"),
            ),
            (
                "a writable profiler",
                launcher() + &image(NSYS, AT, "rw") + &run(),
                VolumeError::Writable(AT),
            ),
            (
                "another folder for the profiler",
                launcher() + &image("/opt/mine", AT, "ro") + &run(),
                VolumeError::Foreign(AT),
            ),
            (
                "a second profiler over the first",
                good.clone() + &nsys(),
                VolumeError::Covered(AT.into()),
            ),
            (
                "something in the profiler",
                good.clone() + &image("/x", "/flopwatch/tools/target-linux-x64/x", "ro"),
                VolumeError::Covered("/flopwatch/tools/target-linux-x64/x".into()),
            ),
            (
                "a profiler in a copied launcher's folder",
                tools("ro") + &nsys() + &run(),
                covered,
            ),
            (
                "no run folder",
                launcher() + &nsys(),
                VolumeError::Absent("/flopwatch/run"),
            ),
        ] {
            assert_eq!(check(&mounts), Err(error), "{what}");
        }
        let copied = format!("{root}{}{}", tools("ro,relatime"), run());
        assert_eq!(check(&copied), Ok(()));
    }
}
