//! Cgroups for what is started inside containers: outside both the container's and the agent's,
//! bounded before anything enters.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};
use serde::{Deserialize, Serialize};

use crate::devices;
use crate::process::Procfs;
use crate::usage::memory::MemoryUsage;
use crate::usage::{ContainerUsage, Hierarchies};

/// What all that is started inside one container may take together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory in bytes, files in memory and caches of files included.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub processes: u32,
    /// Processor time, in thousandths of one core.
    pub cpu_millis: u32,
}

/// Length of a period in which processor time is counted, in microseconds; the kernel's own
/// default.
const PERIOD_US: u64 = 100_000;

/// A cgroup of its own: the container's memory is not used up by the profiler, and the profiler's
/// session outlives the agent's container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCgroup {
    /// Where the cgroup file systems are mounted, writable; from a pod with `hostPID` that is
    /// `/proc/1/root/sys/fs/cgroup`.
    pub root: PathBuf,
    /// Path below it, for example `flopwatch/1a2b3c4d`; made where absent.
    pub name: String,
    /// Memory, processes and processor time that the cgroup may take.
    pub limits: Limits,
}

/// Controllers that a cgroup of version 2 must be given by its parents.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// A folder of a cgroup in one hierarchy.
pub(crate) struct CgroupFolder {
    /// Where the hierarchy is mounted.
    hierarchy: PathBuf,
    pub(crate) folder: PathBuf,
    /// Whether the hierarchy is that of version 2.
    pub(crate) unified: bool,
}

impl CgroupFolder {
    pub(crate) fn has(&self, file: &str) -> bool {
        self.folder.join(file).exists()
    }

    pub(crate) fn write(&self, file: &str, value: &str) -> Result<(), String> {
        write(&self.folder.join(file), value)
    }

    /// Whether memory is counted in this hierarchy.
    pub(crate) fn counts_memory(&self) -> bool {
        if self.unified {
            let controllers = std::fs::read_to_string(self.hierarchy.join("cgroup.controllers")).unwrap_or_default();
            return controllers.split_whitespace().any(|name| name == "memory");
        }
        self.hierarchy.join("memory.usage_in_bytes").exists()
    }

    /// Bounds its memory, swap included; false where memory is not counted in this hierarchy.
    pub(crate) fn bound_memory(&self, bytes: u64) -> Result<bool, String> {
        let bytes = bytes.to_string();
        if self.has("memory.max") {
            self.write("memory.max", &bytes)?;
            if self.has("memory.swap.max") {
                self.write("memory.swap.max", "0")?;
            }
            return Ok(true);
        }
        if !self.has("memory.limit_in_bytes") {
            return Ok(false);
        }
        let with_swap = self.has("memory.memsw.limit_in_bytes");
        if with_swap {
            // Refused where it would fall below the other limit, which is then set first below.
            self.write("memory.memsw.limit_in_bytes", &bytes).ok();
        }
        self.write("memory.limit_in_bytes", &bytes)?;
        if with_swap {
            self.write("memory.memsw.limit_in_bytes", &bytes)?;
        }
        Ok(true)
    }
}

/// Writes a file of a cgroup.
pub(crate) fn write(file: &Path, value: &str) -> Result<(), String> {
    std::fs::write(file, value).map_err(|error| format!("{} = {value}: {error}", file.display()))
}

fn describe(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn below_its_root(name: &str) -> Result<&Path, String> {
    let path = Path::new(name);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    if name.is_empty() || !inside {
        return Err(format!("{name:?} is not a path below the root"));
    }
    Ok(path)
}

/// The folders of that name, one per hierarchy.
pub(crate) fn places(root: &Path, name: &str) -> Result<Vec<CgroupFolder>, String> {
    let name = below_its_root(name)?;
    let place = |hierarchy: PathBuf| CgroupFolder {
        folder: hierarchy.join(name),
        unified: hierarchy.join("cgroup.controllers").exists(),
        hierarchy,
    };
    if root.join("cgroup.controllers").exists() {
        return Ok(vec![place(root.to_owned())]);
    }
    let entries = std::fs::read_dir(root).map_err(|error| describe(root, &error))?;
    // Version 1: one folder per hierarchy, beside them symlinks for the controllers of joint ones.
    let roots = entries.filter_map(|entry| {
        entry
            .ok()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    });
    let places: Vec<CgroupFolder> = roots
        .map(|entry| entry.path())
        .filter(|path| path.join("cgroup.procs").exists())
        .map(place)
        .collect();
    if places.is_empty() {
        return Err(format!("{} holds no cgroup file system", root.display()));
    }
    Ok(places)
}

/// Makes the folders of a cgroup whose members are cgroups; what is there stays. The roots of the
/// cgroup file systems are closed even to their owner: making the first folder below them takes
/// `CAP_DAC_OVERRIDE`, once per node; below a folder of root's own nothing more than root.
pub fn make_parent(root: &Path, name: &str) -> Result<(), String> {
    for place in places(root, name)? {
        make(&place)?;
    }
    Ok(())
}

/// Makes the folder, with the controllers or the processors of those above it; what is there stays.
pub(crate) fn make(place: &CgroupFolder) -> Result<(), String> {
    std::fs::create_dir_all(&place.folder).map_err(|error| describe(&place.folder, &error))?;
    if place.unified {
        return share_controllers(place);
    }
    if place.has("cpuset.cpus") {
        inherit_cpuset(place).map_err(|error| describe(&place.folder, &error))?;
    }
    Ok(())
}

/// The folders above a cgroup, the hierarchy's own first.
fn above(place: &CgroupFolder) -> Vec<&Path> {
    let mut above: Vec<&Path> = place
        .folder
        .ancestors()
        .skip(1)
        .take_while(|path| path.starts_with(&place.hierarchy))
        .collect();
    above.reverse();
    above
}

/// A cgroup of version 2 has the controllers that each cgroup above it shares.
fn share_controllers(place: &CgroupFolder) -> Result<(), String> {
    for folder in above(place) {
        let list = |file: &str| {
            let file = folder.join(file);
            std::fs::read_to_string(&file).map_err(|error| describe(&file, &error))
        };
        let (there, shared) = (list("cgroup.controllers")?, list("cgroup.subtree_control")?);
        let has = |list: &str, name: &str| list.split_whitespace().any(|word| word == name);
        for name in CONTROLLERS {
            if has(&there, name) && !has(&shared, name) {
                let file = folder.join("cgroup.subtree_control");
                std::fs::write(&file, format!("+{name}")).map_err(|error| describe(&file, &error))?;
            }
        }
    }
    Ok(())
}

/// A new cpuset of version 1 is empty and takes no process until it is told which processors and
/// memory are its own: here, those of its parents.
fn inherit_cpuset(place: &CgroupFolder) -> std::io::Result<()> {
    let ours = above(place).into_iter().skip(1).chain([place.folder.as_path()]);
    for folder in ours {
        let Some(parent) = folder.parent() else { continue };
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if std::fs::read_to_string(folder.join(file))?.trim().is_empty() {
                std::fs::write(folder.join(file), std::fs::read(parent.join(file))?)?;
            }
        }
    }
    Ok(())
}

impl OwnCgroup {
    /// Processor time of all that was started in it, those that ended too; none where it is not
    /// there, or nobody counts.
    pub fn processor_time(&self) -> Option<Duration> {
        let hierarchies = Hierarchies::below(&self.root)?;
        let usage = ContainerUsage::open(&hierarchies, below_its_root(&self.name).ok()?).ok()?;
        usage.processor_time().ok()
    }

    /// The counters of its memory; none where it is not there, or nobody counts.
    pub fn memory(&self) -> Option<MemoryUsage> {
        let hierarchies = Hierarchies::below(&self.root)?;
        MemoryUsage::open(&hierarchies, below_its_root(&self.name).ok()?).ok()
    }

    /// Makes it, bounds it, and moves the calling process in. `pid` is a process of the container,
    /// whose devices are the most that ours may have. Fails where a bound cannot be set: nothing
    /// has entered then.
    pub(crate) fn join(&self, procfs: &Procfs, pid: i32) -> Result<(), String> {
        enter_outermost(procfs);
        let places = places(&self.root, &self.name)?;
        for place in &places {
            make(place)?;
            self.bound(place)?;
        }
        bound_devices(&places, procfs, pid)?;
        for place in &places {
            place.write("cgroup.procs", "0")?;
        }
        Ok(())
    }

    /// Sets the limits whose controllers are in this hierarchy.
    fn bound(&self, place: &CgroupFolder) -> Result<(), String> {
        let quota = u64::from(self.limits.cpu_millis) * PERIOD_US / 1000;
        place.bound_memory(self.limits.memory_bytes)?;
        if place.has("pids.max") {
            place.write("pids.max", &self.limits.processes.to_string())?;
        }
        if place.has("cpu.max") {
            place.write("cpu.max", &format!("{quota} {PERIOD_US}"))?;
        }
        if place.has("cpu.cfs_quota_us") {
            place.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
            place.write("cpu.cfs_quota_us", &quota.to_string())?;
        }
        Ok(())
    }

    /// Removes its folders where no process is left in them; true when none remains. Safe to run
    /// twice.
    pub fn remove(&self) -> Result<bool, String> {
        remove(&self.root, &self.name)
    }
}

/// Removes the folders of that name where no process and no folder is left in them; true when none
/// remains. Safe to run twice.
pub fn remove(root: &Path, name: &str) -> Result<bool, String> {
    let mut gone = true;
    for place in places(root, name)? {
        match std::fs::remove_dir(&place.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => gone = false,
            _ => {}
        }
    }
    Ok(gone)
}

/// Enters the outermost cgroup namespace. A container has one of its own: paths are told relative
/// to it, and where those are delegated (systemd mounts it so) nobody leaves through one. The
/// node's first process is in the outermost; where it is not to be seen, what follows says what is
/// wrong.
pub(crate) fn enter_outermost(procfs: &Procfs) {
    if let Ok(outermost) = std::fs::File::open(procfs.folder(1).join("ns/cgroup")) {
        move_into_thread_name_spaces(outermost.as_fd(), ThreadNameSpaceType::CONTROL_GROUP).ok();
    }
}

/// Gives a cgroup no more devices than the container of a process has. The rules are in one of the
/// hierarchies; without them nothing enters.
pub(crate) fn bound_devices(places: &[CgroupFolder], procfs: &Procfs, pid: i32) -> Result<(), String> {
    let devices = procfs.root().join("devices");
    let gpus = std::fs::read_to_string(&devices).map_err(|error| describe(&devices, &error))?;
    let gpus: BTreeSet<u32> = devices::gpu_majors(&gpus);
    let file = procfs.folder(pid).join("cgroup");
    let lines = std::fs::read_to_string(&file).map_err(|error| describe(&file, &error))?;
    if let Some(place) = places.iter().find(|place| place.has("devices.list")) {
        let theirs = theirs(place, &lines, |controllers| {
            controllers.split(',').any(|name| name == "devices")
        })?;
        return devices::bound_v1(&place.folder, &theirs, &gpus);
    }
    let unified = places.iter().find(|place| place.unified);
    let place = unified.ok_or("no hierarchy of cgroups has device rules")?;
    let theirs = theirs(place, &lines, str::is_empty)?;
    devices::bound_v2(&place.folder, &theirs, &gpus)
}

/// The container's own folder in that hierarchy, from the text of its `/proc/PID/cgroup`.
fn theirs(place: &CgroupFolder, lines: &str, is_ours: impl Fn(&str) -> bool) -> Result<PathBuf, String> {
    let path = lines.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        is_ours(controllers).then_some(path)
    });
    let path = path.ok_or("the container is in no cgroup with device rules")?;
    match path.strip_prefix('/') {
        Some("") => Ok(place.hierarchy.clone()),
        Some(below) => Ok(place.hierarchy.join(below_its_root(below)?)),
        None => Err(format!("{path:?} is no path of a cgroup")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> CgroupFolder {
        CgroupFolder {
            hierarchy: "/sys/fs/cgroup/devices".into(),
            folder: "/sys/fs/cgroup/devices/flopwatch/x".into(),
            unified: false,
        }
    }

    #[test]
    fn a_cgroup_stays_below_its_root() {
        for name in ["", "/x", "../x", "a/../../x"] {
            assert!(places(Path::new("/nowhere"), name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_folders_above_are_told_from_the_hierarchys_own_down() {
        let place = place();
        let expected = ["/sys/fs/cgroup/devices", "/sys/fs/cgroup/devices/flopwatch"];
        assert_eq!(above(&place), expected.map(Path::new));
    }

    #[test]
    fn a_containers_device_rules_are_found_only_below_their_hierarchy() {
        let of = |lines: &str| theirs(&place(), lines, |names| names.split(',').any(|name| name == "devices"));
        assert_eq!(
            of("5:pids:/a\n4:x,devices:/kubepods/b:c\n"),
            Ok("/sys/fs/cgroup/devices/kubepods/b:c".into())
        );
        assert_eq!(of("4:devices:/\n"), Ok("/sys/fs/cgroup/devices".into()));
        for outside in ["4:devices:/../../x", "4:devices:x", "5:pids:/a", "0::/a", ""] {
            assert!(of(outside).is_err(), "{outside}");
        }
    }
}
