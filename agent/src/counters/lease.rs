//! Who has the counters of which GPU, and until when.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Stands for every GPU of the node, where it is not known which ones a container has.
const NODE: &str = "node";
/// Most GPUs that are taken one by one.
const MAX_GPUS: usize = 64;

/// A lease of the performance counters of GPUs, which one profiler at a time may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// UID of the capture that has the counters.
    pub owner: String,
    /// When the lease ends by itself, in ms since the Unix epoch.
    pub deadline_unix_ms: u64,
    /// Whether DCGM must be paused for as long as the lease lasts.
    #[serde(default)]
    pub pauses: bool,
}

impl Lease {
    /// Whether the lease has passed its deadline.
    pub const fn has_ended(&self, now_unix_ms: u64) -> bool {
        self.deadline_unix_ms <= now_unix_ms
    }
}

/// The lease of somebody else that keeps `owner` from `gpus`, and its GPU.
pub(super) fn busy<'a>(
    held: &'a BTreeMap<String, Lease>,
    gpus: &BTreeSet<String>,
    owner: &str,
    now_unix_ms: u64,
) -> Option<(&'a str, &'a Lease)> {
    let overlaps = |gpu: &String| gpu == NODE || gpus.contains(NODE) || gpus.contains(gpu);
    let mut others = held
        .iter()
        .filter(|(_, lease)| lease.owner != owner && !lease.has_ended(now_unix_ms));
    others
        .find(|(gpu, _)| overlaps(gpu))
        .map(|(gpu, lease)| (gpu.as_str(), lease))
}

/// What is leased for a container that has GPUs of these names: they themselves where all are UUIDs
/// of GPUs or of their partitions, else the whole node. The names become those of files, so nothing
/// but a UUID's letters is taken.
pub fn gpus<'a>(devices: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let is_uuid = |name: &&str| {
        (name.starts_with("GPU-") || name.starts_with("MIG-"))
            && name.len() <= 64
            && name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    let names: BTreeSet<&str> = devices.into_iter().collect();
    if (1..=MAX_GPUS).contains(&names.len()) && names.iter().all(is_uuid) {
        names.into_iter().map(str::to_owned).collect()
    } else {
        BTreeSet::from([NODE.to_owned()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_containers_gpus_are_uuids_or_the_whole_node() {
        let leased = |names: &[&str]| gpus(names.iter().copied()).into_iter().collect::<Vec<_>>();
        assert_eq!(leased(&["GPU-b", "GPU-a", "GPU-b"]), ["GPU-a", "GPU-b"]);
        assert_eq!(leased(&["MIG-0-1"]), ["MIG-0-1"]);
        for unknown in [&[][..], &[""], &["nvidia0"], &["GPU-a", "../x"], &["GPU-a", ""]] {
            assert_eq!(leased(unknown), ["node"], "{unknown:?}");
        }
        let many: Vec<String> = (0..=MAX_GPUS).map(|at| format!("GPU-{at}")).collect();
        assert_eq!(
            gpus(many.iter().map(String::as_str)),
            BTreeSet::from(["node".to_owned()])
        );
    }

    #[test]
    fn the_whole_node_and_any_gpu_of_it_keep_each_other_out() {
        let lease = Lease {
            owner: "first".into(),
            deadline_unix_ms: 10,
            pauses: false,
        };
        let of = |gpu: &str| BTreeMap::from([(gpu.to_owned(), lease.clone())]);
        let wants = |gpu: &str| BTreeSet::from([gpu.to_owned()]);
        for (held, wanted, keeps) in [
            ("GPU-a", "GPU-a", true),
            ("GPU-a", "GPU-b", false),
            ("GPU-a", "node", true),
            ("node", "GPU-a", true),
        ] {
            let found = busy(&of(held), &wants(wanted), "second", 9).is_some();
            assert_eq!(found, keeps, "{held} {wanted}");
        }
        assert!(busy(&of("GPU-a"), &wants("GPU-a"), "first", 9).is_none());
        assert!(busy(&of("GPU-a"), &wants("GPU-a"), "second", 10).is_none());
    }
}
