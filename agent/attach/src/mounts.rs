//! The mounts that a process sees, as procfs tells them, and which of them the way to a path
//! crosses.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// A line of `/proc/PID/mountinfo`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mount<'a> {
    id: &'a str,
    /// The mount that it is in.
    parent: &'a str,
    /// Major and minor number of its file system.
    pub(crate) device: &'a str,
    /// What of the file system is mounted.
    pub(crate) root: &'a str,
    /// Where, as the kernel writes it: see [`unescaped`].
    pub(crate) point: &'a str,
    /// Options of the mount.
    pub(crate) options: &'a str,
    /// The kernel's name of its file system's kind.
    pub(crate) kind: &'a str,
}

/// The mounts of a table, in its order; lines that are none are left out.
pub(crate) fn mounts(mountinfo: &str) -> impl Iterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some(Mount {
            id: words.next()?,
            parent: words.next()?,
            device: words.next()?,
            root: words.next()?,
            point: words.next()?,
            options: words.next()?,
            // Behind optional fields and a dash.
            kind: words.skip_while(|word| *word != "-").nth(1)?,
        })
    })
}

/// A mount on the way to a path.
#[derive(Debug)]
pub(crate) struct Crossed<'a> {
    pub(crate) mount: Mount<'a>,
    /// Path of the mount point, unescaped.
    pub(crate) point: PathBuf,
}

/// The mounts that the way to an absolute path crosses, from the root on; none where the root is
/// none.
pub(crate) fn crossed<'a>(mountinfo: &'a str, path: &Path) -> Vec<Crossed<'a>> {
    let mut ids = BTreeSet::new();
    let mut roots = Vec::new();
    // Those that may be crossed, by the mount that they are in.
    let mut inside: BTreeMap<&str, Vec<Crossed<'a>>> = BTreeMap::new();
    for mount in mounts(mountinfo) {
        ids.insert(mount.id);
        let point = unescaped(mount.point);
        if point == Path::new("/") {
            roots.push(mount);
        } else if path.starts_with(&point) {
            inside.entry(mount.parent).or_default().push(Crossed { mount, point });
        }
    }
    // One that was mounted over the root is in it, and no path from the root crosses it.
    let is_root = |mount: &Mount<'_>| mount.parent == mount.id || !ids.contains(mount.parent);
    let Some(root) = roots.into_iter().find(is_root) else {
        return Vec::new();
    };
    let mut id = root.id;
    let mut way = vec![Crossed {
        mount: root,
        point: PathBuf::from("/"),
    }];
    // Each is taken once, so that no table makes a loop.
    while let Some(next) = inside.remove(id).and_then(first) {
        id = next.mount.id;
        way.push(next);
    }
    way
}

/// The mounts that a path leads to, in the order of the table: without those that another one
/// covers, at the same place or above it.
pub(crate) fn reached(mountinfo: &str) -> impl Iterator<Item = Crossed<'_>> {
    mounts(mountinfo).filter_map(|mount| {
        let way = crossed(mountinfo, &unescaped(mount.point));
        way.into_iter().next_back().filter(|last| last.mount.id == mount.id)
    })
}

/// The mount that the way comes to first, of those in one mount: what lies deeper in that is
/// covered.
fn first(inside: Vec<Crossed<'_>>) -> Option<Crossed<'_>> {
    inside.into_iter().min_by_key(|crossed| crossed.point.as_os_str().len())
}

/// A path as it is, of how a table of mounts has it: with the octal number of a byte that would
/// part words.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let escaped = after
            .first_chunk::<3>()
            .filter(|_| *byte == b'\\')
            .copied()
            .and_then(octal);
        bytes.push(escaped.unwrap_or(*byte));
        rest = match escaped {
            Some(_) => after.get(3..).unwrap_or_default(),
            None => after,
        };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn octal(digits: [u8; 3]) -> Option<u8> {
    let digits = std::str::from_utf8(&digits).ok()?;
    u8::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds of what the way to a path crosses, of mounts with an ID, a parent, a place and a
    /// kind each.
    fn way(table: &[(u32, u32, &str, &str)], path: &str) -> String {
        let lines = table.iter().map(|(id, parent, point, kind)| {
            format!("{id} {parent} 0:{id} / {point} rw,relatime shared:1 master:2 - {kind} none rw\n")
        });
        let mountinfo: String = lines.collect();
        let kinds = crossed(&mountinfo, Path::new(path))
            .into_iter()
            .map(|crossed| crossed.mount.kind.to_owned());
        kinds.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_way_crosses_what_is_mounted_in_what_it_crossed() {
        let table = [
            (100, 99, "/", "overlay"),
            (101, 100, "/data", "xfs"),
            (102, 101, "/data/deep/er", "nfs4"),
            (103, 100, "/data-of-mine", "cifs"),
            (104, 100, "/deep", "ext4"),
        ];
        for (path, kinds) in [
            ("/", "overlay"),
            ("/tmp/x", "overlay"),
            ("/data", "overlay xfs"),
            ("/data/deep/x", "overlay xfs"),
            ("/data/deep/er/x", "overlay xfs nfs4"),
            ("/data-of-mine/x", "overlay cifs"),
        ] {
            assert_eq!(way(&table, path), kinds, "{path}");
        }
    }

    #[test]
    fn what_was_mounted_over_others_is_crossed_and_what_it_covers_is_not() {
        let again = [
            (100, 99, "/", "overlay"),
            (101, 100, "/a", "tmpfs"),
            (102, 101, "/a", "nfs4"),
        ];
        assert_eq!(way(&again, "/a/b"), "overlay tmpfs nfs4");
        let covered = [
            (100, 99, "/", "overlay"),
            (101, 100, "/a/b", "nfs4"),
            (102, 100, "/a", "tmpfs"),
        ];
        assert_eq!(way(&covered, "/a/b/c"), "overlay tmpfs");
        // A path from the root crosses nothing that is mounted over the root itself.
        let over = [
            (101, 100, "/", "tmpfs"),
            (100, 99, "/", "overlay"),
            (102, 100, "/a", "nfs4"),
        ];
        assert_eq!(way(&over, "/a/b"), "overlay nfs4");
    }

    #[test]
    fn a_mount_that_another_one_covers_is_not_reached() {
        let table = r"
100 99 0:1 / / rw - overlay none rw
101 100 0:2 / /sys rw - sysfs none rw
102 101 0:3 / /sys/fs/cgroup rw - tmpfs none rw
103 100 0:4 / /own rw - ext4 none rw
104 101 0:5 / /sys rw - tmpfs none rw
";
        let reached: Vec<_> = reached(table).map(|reached| reached.mount.id).collect();
        assert_eq!(reached, ["100", "103", "104"]);
    }

    #[test]
    fn a_table_without_a_root_or_with_a_loop_has_an_end() {
        assert_eq!(way(&[(101, 100, "/a", "tmpfs")], "/a/b"), "");
        let own_parent = [
            (1, 1, "/", "rootfs"),
            (101, 102, "/a", "tmpfs"),
            (102, 101, "/a", "tmpfs"),
        ];
        assert_eq!(way(&own_parent, "/a/b"), "rootfs");
        assert_eq!(mounts("no table of mounts\n\n1 2 3 4 5 6 -\n").count(), 0);
    }

    #[test]
    fn a_place_with_a_space_or_a_backslash_is_found() {
        let table = [(100, 99, "/", "overlay"), (101, 100, r"/my\040data\134", "cifs")];
        assert_eq!(way(&table, r"/my data\/x"), "overlay cifs");
        assert_eq!(way(&table, r"/my\040data/x"), "overlay");
        for (text, path) in [
            (r"/a\", r"/a\"),
            (r"/a\04", r"/a\04"),
            (r"/a\999", r"/a\999"),
            (r"/\134040", r"/\040"),
        ] {
            assert_eq!(unescaped(text), Path::new(path), "{text}");
        }
    }
}
