//! How much memory a cgroup and the node have left.
//!
//! What the kernel can take back at once, the caches of files, does not count as taken: a program
//! that reads many files is at its limit all the time, and comes to no harm.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use super::{Hierarchies, MAX_FILE_BYTES, read};
use crate::process::Procfs;

/// A limit of this many bytes or more is none: version 1 writes a number near 2^63.
const NO_LIMIT_BYTES: u64 = 1 << 62;
/// What a line of `memory.stat` begins with that counts a cache of files, those of the cgroups
/// below included; of version 2 and of version 1.
const CACHES: [[&str; 2]; 2] = [
    ["inactive_file ", "active_file "],
    ["total_inactive_file ", "total_active_file "],
];

/// The memory of a cgroup and of those that it lies in, kept open.
#[derive(Debug)]
pub struct MemoryUsage {
    /// From the cgroup itself to the one right below the hierarchy's own.
    levels: Vec<Level>,
    caches: [&'static str; 2],
}

/// What a cgroup takes and has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryReading {
    /// Bytes that it holds, without caches of files; files in memory are included.
    pub used_bytes: u64,
    /// What it has left of the limit that it would meet first; none where nothing limits it.
    pub room: Option<Room>,
}

/// What is left of a memory that has an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of it all.
    pub whole_bytes: u64,
    /// Bytes that are left.
    pub left_bytes: u64,
}

/// The files of one cgroup.
#[derive(Debug)]
struct Level {
    usage: File,
    stat: File,
    limit: File,
}

impl Level {
    fn open(folder: &Path, unified: bool) -> io::Result<Self> {
        let (usage, limit) = if unified {
            ("memory.current", "memory.max")
        } else {
            ("memory.usage_in_bytes", "memory.limit_in_bytes")
        };
        Ok(Self {
            usage: File::open(folder.join(usage))?,
            stat: File::open(folder.join("memory.stat"))?,
            limit: File::open(folder.join(limit))?,
        })
    }

    /// Bytes that it holds, without caches of files.
    fn used_bytes(&self, caches: [&str; 2]) -> io::Result<u64> {
        let mut buffer = [0; MAX_FILE_BYTES];
        let usage = number(read(&self.usage, &mut buffer)?)?;
        let statistics = read(&self.stat, &mut buffer)?;
        let of_files = caches.iter().filter_map(|cache| {
            let line = statistics.lines().find_map(|line| line.strip_prefix(*cache));
            line.and_then(|value| value.trim().parse::<u64>().ok())
        });
        Ok(of_files.fold(usage, u64::saturating_sub))
    }

    /// Its limit; none where it has none.
    fn limit_bytes(&self) -> io::Result<Option<u64>> {
        let mut buffer = [0; MAX_FILE_BYTES];
        let text = read(&self.limit, &mut buffer)?.trim();
        if text == "max" {
            return Ok(None);
        }
        Ok(Some(number(text)?).filter(|limit| *limit < NO_LIMIT_BYTES))
    }
}

impl MemoryUsage {
    /// Looks for a container's counters in the tree of cgroups below `root`, such as
    /// `/sys/fs/cgroup`. `procfs` knows how deep the caller's own pods are.
    pub fn find(root: &Path, container_id: &str, procfs: &Procfs) -> io::Result<Self> {
        let none = |what: &'static str| io::Error::new(io::ErrorKind::NotFound, what);
        let hierarchies = Hierarchies::below(root).ok_or_else(|| none("no hierarchy counts processor time"))?;
        let wanted = BTreeSet::from([container_id.to_owned()]);
        let path = hierarchies.find(&wanted, procfs).remove(container_id);
        let path = path.ok_or_else(|| none("the container has no cgroup"))?;
        Self::open(&hierarchies, &path)
    }

    /// Opens the counters of the cgroup at `path`, as [`Hierarchies::find`] gives it, and of those
    /// that it lies in. Fails where its memory is not counted.
    pub fn open(hierarchies: &Hierarchies, path: &Path) -> io::Result<Self> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "no hierarchy counts memory");
        let memory = hierarchies.memory.as_ref().ok_or_else(none)?;
        let unified = hierarchies.unified;
        // The hierarchy's own has no limit.
        let folders = path.ancestors().filter(|path| !path.as_os_str().is_empty());
        let levels = folders.map(|path| Level::open(&memory.join(path), unified));
        let [unified_caches, earlier_caches] = CACHES;
        Ok(Self {
            levels: levels.collect::<io::Result<_>>()?,
            caches: if unified { unified_caches } else { earlier_caches },
        })
    }

    /// What it takes and has left now. Fails when it is gone.
    pub fn read(&self) -> io::Result<MemoryReading> {
        let mut used_bytes = None;
        let mut room: Option<Room> = None;
        for level in &self.levels {
            let limit = level.limit_bytes()?;
            // The kernel adds up what every processor counted: only where it matters.
            if limit.is_none() && used_bytes.is_some() {
                continue;
            }
            let used = level.used_bytes(self.caches)?;
            used_bytes.get_or_insert(used);
            let Some(whole_bytes) = limit else { continue };
            let left_bytes = whole_bytes.saturating_sub(used);
            if room.is_none_or(|least| left_bytes < least.left_bytes) {
                room = Some(Room {
                    whole_bytes,
                    left_bytes,
                });
            }
        }
        let used_bytes = used_bytes.ok_or(io::ErrorKind::NotFound)?;
        Ok(MemoryReading { used_bytes, room })
    }
}

/// What the node has left: memory that it could give to programs without swapping; none where the
/// kernel does not say.
pub fn of_node(procfs: &Procfs) -> Option<Room> {
    let mut buffer = [0; MAX_FILE_BYTES];
    let file = File::open(procfs.root().join("meminfo")).ok()?;
    let text = read(&file, &mut buffer).ok()?;
    let bytes = |name: &str| -> Option<u64> {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes.saturating_mul(1 << 10))
    };
    Some(Room {
        whole_bytes: bytes("MemTotal:")?,
        left_bytes: bytes("MemAvailable:")?,
    })
}

fn number(text: &str) -> io::Result<u64> {
    text.trim()
        .parse::<u64>()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const CONTAINER: &str = "kubepods/burstable/pod0a1b2c3d/0123";
    const MEBIBYTE: u64 = 1 << 20;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        std::fs::create_dir_all(folder).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
    }

    /// All cgroups on the way to the container, of which none has a limit and each holds 1 MiB.
    fn machine(root: &Path, unified: bool) -> PathBuf {
        let (usage, limit, none) = if unified {
            write(root, &[("cgroup.controllers", "cpu memory\n")]);
            ("memory.current", "memory.max", "max\n")
        } else {
            write(&root.join("cpuacct"), &[("cpuacct.usage", "1\n")]);
            write(&root.join("memory"), &[("memory.usage_in_bytes", "1\n")]);
            (
                "memory.usage_in_bytes",
                "memory.limit_in_bytes",
                "9223372036854771712\n",
            )
        };
        let memory = if unified { root.to_owned() } else { root.join("memory") };
        for path in Path::new(CONTAINER).ancestors().take(4) {
            let files = [(usage, "1048576\n"), (limit, none), ("memory.stat", "anon 1048576\n")];
            write(&memory.join(path), &files);
        }
        memory
    }

    fn open(root: &Path) -> MemoryUsage {
        let hierarchies = Hierarchies::below(root).unwrap();
        MemoryUsage::open(&hierarchies, Path::new(CONTAINER)).unwrap()
    }

    #[test]
    fn caches_of_files_do_not_count_as_taken() {
        for (unified, usage, limit, stat) in [
            (
                true,
                "memory.current",
                "memory.max",
                "anon 104857600\nfile 300\ninactive_anon 5\ninactive_file 200\nactive_file 100\nunevictable 7\n",
            ),
            (
                false,
                "memory.usage_in_bytes",
                "memory.limit_in_bytes",
                "cache 300\ninactive_file 1\nactive_file 1\ntotal_inactive_file 200\ntotal_active_file 100\n",
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let of = machine(root.path(), unified).join(CONTAINER);
            let files = [(usage, "104857900\n"), (limit, "209715200\n"), ("memory.stat", stat)];
            write(&of, &files);
            let memory = open(root.path());
            let left = Room {
                whole_bytes: 200 * MEBIBYTE,
                left_bytes: 100 * MEBIBYTE,
            };
            let expected = MemoryReading {
                used_bytes: 100 * MEBIBYTE,
                room: Some(left),
            };
            assert_eq!(memory.read().unwrap(), expected);
            write(&of, &[(usage, "209715500\n")]);
            let read = memory.read().unwrap();
            assert_eq!(read.room.map(|room| room.left_bytes), Some(0), "as it is now");
        }
    }

    #[test]
    fn the_limit_that_would_be_met_first_counts_be_it_of_the_pod_or_of_all_pods() {
        let root = tempfile::tempdir().unwrap();
        let memory = machine(root.path(), true);
        assert_eq!(open(root.path()).read().unwrap().room, None);
        write(&memory.join(CONTAINER), &[("memory.max", "104857600\n")]);
        let all = [("memory.max", "1073741824\n"), ("memory.current", "1000000000\n")];
        write(&memory.join("kubepods"), &all);
        let expected = Room {
            whole_bytes: 1 << 30,
            left_bytes: 73_741_824,
        };
        let read = open(root.path()).read().unwrap();
        assert_eq!(read.room, Some(expected));
        assert_eq!(read.used_bytes, MEBIBYTE, "its own");
    }

    #[test]
    fn a_version_1_number_near_the_end_of_the_range_is_no_limit() {
        let root = tempfile::tempdir().unwrap();
        machine(root.path(), false);
        assert_eq!(open(root.path()).read().unwrap().room, None);
    }

    #[test]
    fn the_node_has_left_what_the_kernel_could_give_to_programs() {
        let root = tempfile::tempdir().unwrap();
        let procfs = Procfs::new(root.path());
        assert_eq!(of_node(&procfs), None);
        let text = "MemTotal:       16384 kB\nMemFree:          10 kB\nMemAvailable:    8192 kB\n";
        write(root.path(), &[("meminfo", text)]);
        let expected = Room {
            whole_bytes: 16 * MEBIBYTE,
            left_bytes: 8 * MEBIBYTE,
        };
        assert_eq!(of_node(&procfs), Some(expected));
    }
}
