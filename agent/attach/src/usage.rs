//! What a container uses, by the counters of its cgroup: version 2, or version 1 with the unified
//! hierarchy beside it.
//!
//! A container's cgroup is found from above, in the host's tree of cgroups: no process of it has to
//! be looked at.

pub mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::Procfs;

/// Folders of the tree that are looked at; a node of 250 pods has some 1,500.
const FOLDERS: usize = 5_000;
/// How deep.
const MAX_DEPTH: usize = 16;
/// Bytes of a file of counters that are read: what is looked for stands at the beginning.
const MAX_FILE_BYTES: usize = 4096;

/// Where the counters of processor time, memory and pressure are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchies {
    processor: PathBuf,
    memory: Option<PathBuf>,
    /// Version 2 alone knows pressure.
    pressure: Option<PathBuf>,
    unified: bool,
}

impl Hierarchies {
    /// Those that are mounted below `root`, such as `/sys/fs/cgroup`; none where processor time is
    /// not counted there.
    pub fn below(root: &Path) -> Option<Self> {
        if root.join("cgroup.controllers").exists() {
            let root = root.to_owned();
            return Some(Self {
                processor: root.clone(),
                memory: Some(root.clone()),
                pressure: Some(root),
                unified: true,
            });
        }
        let folders: Vec<PathBuf> = folders(root).map(|(_, folder)| folder).collect();
        let with = |file: &str| folders.iter().find(|folder| folder.join(file).exists()).cloned();
        Some(Self {
            processor: with("cpuacct.usage")?,
            memory: with("memory.usage_in_bytes"),
            pressure: with("cgroup.controllers"),
            unified: false,
        })
    }

    /// The paths of the cgroups of those containers, by their 64 hex digits, relative to each
    /// hierarchy. A container that is not there is left out. `procfs` knows how deep the caller's
    /// own pods are.
    pub fn find(&self, wanted: &BTreeSet<String>, procfs: &Procfs) -> BTreeMap<String, PathBuf> {
        let mut found = BTreeMap::new();
        let mut left = vec![(PathBuf::new(), 0_usize)];
        let mut looked_at = 0_usize;
        while let Some((path, depth)) = left.pop() {
            if looked_at >= FOLDERS || found.len() >= wanted.len() {
                break;
            }
            looked_at = looked_at.saturating_add(1);
            if let Some(container) = procfs.container_of_path(&path) {
                // What is below is the container's own to name.
                if wanted.contains(&container.container_id) {
                    found.insert(container.container_id, path);
                }
                continue;
            }
            if depth < MAX_DEPTH {
                let below = folders(&self.processor.join(&path));
                left.extend(below.map(|(name, _)| (path.join(name), depth.saturating_add(1))));
            }
        }
        found
    }
}

/// The folders in a folder, with their names; links are left out.
fn folders(folder: &Path) -> impl Iterator<Item = (std::ffi::OsString, PathBuf)> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| (entry.file_name(), entry.path()))
}

/// The counters of one container, kept open.
#[derive(Debug)]
pub struct ContainerUsage {
    processor: File,
    memory: Option<File>,
    pressure: Option<PathBuf>,
    unified: bool,
}

/// Time in which at least one task of a container waited, since the container's start; none where
/// the kernel does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// For a processor.
    pub processor: Option<Duration>,
    /// For memory.
    pub memory: Option<Duration>,
    /// For a disk.
    pub io: Option<Duration>,
}

impl ContainerUsage {
    /// Opens the counters of the cgroup at `path`, as [`Hierarchies::find`] gives it. Fails where
    /// its processor time is not counted.
    pub fn open(hierarchies: &Hierarchies, path: &Path) -> io::Result<Self> {
        let unified = hierarchies.unified;
        let (time, bytes) = if unified {
            ("cpu.stat", "memory.current")
        } else {
            ("cpuacct.usage", "memory.usage_in_bytes")
        };
        let memory = hierarchies.memory.as_ref();
        Ok(Self {
            processor: File::open(hierarchies.processor.join(path).join(time))?,
            memory: memory.and_then(|memory| File::open(memory.join(path).join(bytes)).ok()),
            // Beside version 1 a container need not be in the unified hierarchy.
            pressure: hierarchies
                .pressure
                .as_ref()
                .map(|pressure| pressure.join(path))
                .filter(|folder| folder.exists()),
            unified,
        })
    }

    /// Processor time of all its processes, those that ended too. Fails when the container is gone.
    pub fn processor_time(&self) -> io::Result<Duration> {
        let mut buffer = [0; MAX_FILE_BYTES];
        let text = read(&self.processor, &mut buffer)?;
        let value = if self.unified {
            let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
            line.and_then(|value| value.parse().ok()).map(Duration::from_micros)
        } else {
            text.trim().parse().ok().map(Duration::from_nanos)
        };
        value.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no processor time in it"))
    }

    /// Bytes of memory that are charged to it, files in memory and caches of files included; none
    /// where nobody counts.
    pub fn memory_bytes(&self) -> Option<u64> {
        let mut buffer = [0; MAX_FILE_BYTES];
        read(self.memory.as_ref()?, &mut buffer).ok()?.trim().parse().ok()
    }

    /// Time that the container has waited so far, by resource.
    pub fn pressure(&self) -> Pressure {
        let waited = |file: &str| {
            let mut buffer = [0; MAX_FILE_BYTES];
            let file = File::open(self.pressure.as_ref()?.join(file)).ok()?;
            let text = read(&file, &mut buffer).ok()?;
            let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
            let total = some.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
            total.parse().ok().map(Duration::from_micros)
        };
        Pressure {
            processor: waited("cpu.pressure"),
            memory: waited("memory.pressure"),
            io: waited("io.pressure"),
        }
    }
}

/// The beginning of a file of counters, as it is now.
fn read<'a>(file: &File, buffer: &'a mut [u8; MAX_FILE_BYTES]) -> io::Result<&'a str> {
    let length = file.read_at(buffer, 0)?;
    let text = buffer.get(..length).unwrap_or_default();
    std::str::from_utf8(text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0a1b2c3d-1111-2222-3333-444455556666";
    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn write(folder: &Path, file: &str, text: &str) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
    }

    fn find(hierarchies: &Hierarchies, ids: &[&str]) -> BTreeMap<String, PathBuf> {
        let wanted = ids.iter().map(|id| (*id).to_owned()).collect();
        hierarchies.find(&wanted, &Procfs::new("/nowhere"))
    }

    #[test]
    fn a_container_of_version_2_is_found_and_its_counters_are_read() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "cgroup.controllers", "cpu memory\n");
        let of = root.path().join(format!("kubepods/burstable/pod{UID}/{ID}"));
        write(
            &of,
            "cpu.stat",
            "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n",
        );
        write(&of, "memory.current", "4096\n");
        write(
            &of,
            "cpu.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
        );
        let hierarchies = Hierarchies::below(root.path()).unwrap();
        let found = find(&hierarchies, &[ID]);
        let usage = ContainerUsage::open(&hierarchies, &found[ID]).unwrap();
        assert_eq!(usage.processor_time().unwrap(), Duration::from_millis(1500));
        assert_eq!(usage.memory_bytes(), Some(4096));
        let expected = Pressure {
            processor: Some(Duration::from_micros(2500)),
            ..Pressure::default()
        };
        assert_eq!(usage.pressure(), expected);
        write(&of, "cpu.stat", "usage_usec 1600000\n");
        assert_eq!(
            usage.processor_time().unwrap(),
            Duration::from_millis(1600),
            "as it is now"
        );
    }

    #[test]
    fn a_container_of_version_1_has_its_counters_in_several_hierarchies() {
        let root = tempfile::tempdir().unwrap();
        let below = format!("kubepods/pod{UID}/{ID}");
        let of = |hierarchy: &str| root.path().join(hierarchy);
        write(&of("cpu"), "cgroup.procs", "");
        write(&of("cpuacct"), "cpuacct.usage", "9\n");
        write(&of("memory"), "memory.usage_in_bytes", "9\n");
        write(&of("cpuacct").join(&below), "cpuacct.usage", "250000000\n");
        write(&of("memory").join(&below), "memory.usage_in_bytes", "8192\n");
        let hierarchies = Hierarchies::below(root.path()).unwrap();
        let usage = ContainerUsage::open(&hierarchies, &find(&hierarchies, &[ID])[ID]).unwrap();
        assert_eq!(usage.processor_time().unwrap(), Duration::from_millis(250));
        assert_eq!(
            (usage.memory_bytes(), usage.pressure()),
            (Some(8192), Pressure::default())
        );
    }

    #[test]
    fn what_a_container_makes_below_its_own_cgroup_is_not_another_container() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "cgroup.controllers", "");
        let other = ID.replace('0', "f");
        let folder = root
            .path()
            .join(format!("kubepods/pod{UID}/{ID}/kubepods/pod{UID}/{other}"));
        write(&folder, "cpu.stat", "usage_usec 1\n");
        let hierarchies = Hierarchies::below(root.path()).unwrap();
        assert_eq!(find(&hierarchies, &[&other]), BTreeMap::new());
        assert_eq!(find(&hierarchies, &[ID]).len(), 1);
    }

    #[test]
    fn a_machine_without_counters_has_none() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Hierarchies::below(root.path()), None);
        assert_eq!(Hierarchies::below(&root.path().join("absent")), None);
    }
}
