//! How much memory a child that reads foreign files may have: less than would make the kernel end a process of this container.

use std::path::Path;

/// Where a container finds the bounds of its own cgroup, in both versions of the file system, below `/sys/fs/cgroup`.
const OWN_LIMIT: [&str; 2] = ["memory.max", "memory/memory.limit_in_bytes"];

/// Bytes that this container may use; none without a bound, or where the kernel does not say.
pub(super) fn own_limit(cgroup: &Path) -> Option<u64> {
    let limits = OWN_LIMIT
        .iter()
        .filter_map(|name| std::fs::read_to_string(cgroup.join(name)).ok());
    // "max" is no number; version 1 writes a number near 2^63 where there is no bound.
    limits.filter_map(|text| text.trim().parse().ok()).min()
}

/// The address space of a child: what was asked for, but at most three quarters of what the container may use.
pub(super) fn child_bytes(asked: u64, own_limit: Option<u64>) -> u64 {
    own_limit.map_or(asked, |limit| asked.min(limit - limit / 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_stays_below_the_containers_limit() {
        let cases = [
            ("no limit", 1 << 30, None, 1 << 30),
            ("room enough", 1536 << 20, Some(2 << 30), 1536 << 20),
            ("a container made smaller", 1536 << 20, Some(1 << 30), 768 << 20),
            (
                "what version 1 writes without a bound",
                1 << 30,
                Some(0x7fff_ffff_ffff_f000),
                1 << 30,
            ),
        ];
        for (what, asked, limit, expected) in cases {
            assert_eq!(child_bytes(asked, limit), expected, "{what}");
        }
    }

    #[test]
    fn both_versions_of_the_cgroup_file_system_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(own_limit(folder.path()), None);
        std::fs::write(folder.path().join("memory.max"), "max\n").unwrap();
        assert_eq!(own_limit(folder.path()), None);
        std::fs::write(folder.path().join("memory.max"), "2147483648\n").unwrap();
        assert_eq!(own_limit(folder.path()), Some(2 << 30));
        let older = tempfile::tempdir().unwrap();
        std::fs::create_dir(older.path().join("memory")).unwrap();
        std::fs::write(older.path().join("memory/memory.limit_in_bytes"), "1073741824\n").unwrap();
        assert_eq!(own_limit(older.path()), Some(1 << 30));
    }
}
