//! How much memory the children that read foreign files may have, each and together.
//!
//! They live in cgroups beside this container's, each with a bound of its own, so that the kernel
//! ends the one that takes too much and nothing else. Together they stay within three quarters of
//! what this container may use: what whoever installs the agent lets it take is meant for its
//! children too.

use std::path::Path;

/// The folder of the children's cgroups in each hierarchy. It lies at the top, where the processor
/// time of all of them can be weighed against that of the node's pods.
pub(super) const CGROUP: &str = "flopwatch-children";

/// Where a container finds the bounds of its own cgroup, in both versions of the file system, below
/// `/sys/fs/cgroup`.
const OWN_LIMIT: [&str; 2] = ["memory.max", "memory/memory.limit_in_bytes"];

/// What children may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Most bytes of each.
    pub(super) each_bytes: u64,
    /// Most children that live at once; others wait for their turn.
    pub(super) at_once: usize,
}

/// Bytes that this container may use; none without a bound, or where the kernel does not say.
pub(super) fn own_limit(cgroup: &Path) -> Option<u64> {
    let limits = OWN_LIMIT
        .iter()
        .filter_map(|name| std::fs::read_to_string(cgroup.join(name)).ok());
    // "max" is no number; version 1 writes a number near 2^63 where there is no bound.
    limits.filter_map(|text| text.trim().parse().ok()).min()
}

/// What so many children may take that each are to have the bytes that were asked for: as many at
/// once as fit into three quarters of what the container may use, and none more than these.
pub(super) fn shares(asked_bytes: u64, own_limit: Option<u64>, wanted: usize) -> Shares {
    let wanted = wanted.max(1);
    let Some(limit) = own_limit else {
        return Shares {
            each_bytes: asked_bytes,
            at_once: wanted,
        };
    };
    let together = limit - limit / 4;
    let each_bytes = asked_bytes.min(together);
    let fit = together.checked_div(each_bytes).unwrap_or(0);
    Shares {
        each_bytes,
        at_once: usize::try_from(fit).unwrap_or(usize::MAX).clamp(1, wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::node::size::bytes;
    use clap::Parser as _;
    use serde_json::Value;

    const MEBIBYTE: u64 = 1 << 20;

    #[test]
    fn the_sum_of_living_children_stays_below_three_quarters_of_the_containers_limit() {
        // Whoever asks for 1.5 GiB each for two captures and a conversion.
        let cases = [
            ("no limit", None, 1536, 3),
            ("room for all", Some(6144), 1536, 3),
            ("room for two", Some(5120), 1536, 2),
            ("room for one: they take turns", Some(2048), 1536, 1),
            ("room for less than one", Some(1024), 768, 1),
        ];
        for (what, limit, each, at_once) in cases {
            let limit = limit.map(|limit: u64| limit * MEBIBYTE);
            let found = shares(1536 * MEBIBYTE, limit, 3);
            let expected = Shares {
                each_bytes: each * MEBIBYTE,
                at_once,
            };
            assert_eq!(found, expected, "{what}");
            let together = found.each_bytes * u64::try_from(found.at_once).unwrap();
            assert!(limit.is_none_or(|limit| together <= limit / 4 * 3), "{what}");
        }
        // What version 1 writes without a bound.
        let unbounded = shares(1 << 30, Some(0x7fff_ffff_ffff_f000), 3);
        assert_eq!((unbounded.each_bytes, unbounded.at_once), (1 << 30, 3));
        assert_eq!(shares(0, Some(0), 0).at_once, 1);
    }

    #[test]
    fn all_children_that_may_live_at_once_fit_what_the_chart_gives_the_agent() {
        let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/flopwatch/values.yaml");
        let values: Value = serde_saphyr::from_str(&std::fs::read_to_string(chart).unwrap()).unwrap();
        let agent = &values["agent"];
        let limit = agent["resources"]["limits"]["memory"].as_str().unwrap();
        let limit = bytes(&format!("{limit}B")).unwrap();
        let captures = agent["maxCaptures"].as_u64().unwrap();
        let captures = format!("--max-captures={captures}");
        let line = [
            "flopwatch-agent",
            "run",
            "--node-name=n1",
            "--advertise-address=127.0.0.1",
            captures.as_str(),
        ];
        let Command::Run(options) = Cli::parse_from(line).command else {
            unreachable!("it says run");
        };
        let (each_bytes, at_once) = (options.child_memory_bytes, options.children_at_once());
        let expected = Shares { each_bytes, at_once };
        let found = shares(each_bytes, Some(limit), at_once);
        assert_eq!(found, expected, "none waits for its turn, and none has less");
        let together = each_bytes * u64::try_from(at_once).unwrap();
        assert!(together <= limit / 4 * 3, "{together} of {limit}");
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
