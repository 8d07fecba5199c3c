//! Where the counters of containers are: their cgroups, found and opened apart from the thread that
//! reads them, for a file of a cgroup can be long in opening while pods come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use flopwatch_attach::process::Procfs;
use flopwatch_attach::usage::{ContainerUsage, Hierarchies};
use flopwatch_nvml::ProcessorClock;

/// After a look for containers' cgroups, so many times what it took of the processor passes before
/// the next one.
const SCAN_SHARE_DIVISOR: u32 = 200;
/// Longest pause before a container is looked for again whose cgroup was not found.
pub(super) const MAX_RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// Finds containers' counters, and those that are not there less and less often.
#[derive(Debug)]
pub(super) struct Finder {
    hierarchies: Option<Hierarchies>,
    procfs: Procfs,
    /// IDs of containers for which there was no room at the last look.
    refused: BTreeSet<String>,
    /// IDs of containers whose cgroup was not found at the last look.
    lost: BTreeSet<String>,
    /// When they are looked for again, and the pause after that.
    next: (Option<Instant>, Duration),
    /// When any cgroup is looked for again.
    rested: Option<Instant>,
}

impl Finder {
    pub(super) fn new(cgroup_root: &Path, procfs: Procfs) -> Self {
        Self {
            hierarchies: Hierarchies::below(cgroup_root),
            procfs,
            refused: BTreeSet::new(),
            lost: BTreeSet::new(),
            next: (None, Duration::ZERO),
            rested: None,
        }
    }

    /// Whether the machine counts anything here.
    pub(super) const fn is_supported(&self) -> bool {
        self.hierarchies.is_some()
    }

    /// Opens the counters of those containers that can be found, where it is time for a look, and
    /// gives them to `hold`, which returns those that it has no room for. Returns how many of these
    /// were not among those of the look before.
    pub(super) fn inspect(
        &mut self,
        wanted: BTreeSet<String>,
        now: Instant,
        hold: impl FnOnce(BTreeMap<String, ContainerUsage>) -> BTreeSet<String>,
    ) -> u64 {
        let Some(hierarchies) = &self.hierarchies else {
            return 0;
        };
        let known_lost = wanted
            .iter()
            .all(|id| self.lost.contains(id) || self.refused.contains(id));
        let (again, pause) = self.next;
        let is_early = |then: Option<Instant>| then.is_some_and(|then| now < then);
        if wanted.is_empty() || is_early(self.rested) || (known_lost && is_early(again)) {
            return 0;
        }
        let clock = ProcessorClock::start();
        let paths = hierarchies.find(&wanted, &self.procfs);
        self.rested = Some(now + clock.elapsed() * SCAN_SHARE_DIVISOR);
        let pause = if known_lost {
            (pause * 2).min(MAX_RETRY_INTERVAL)
        } else {
            Duration::from_secs(1)
        };
        self.next = (Some(now + pause), pause);
        let opened: BTreeMap<_, _> = paths
            .into_iter()
            .filter_map(|(id, path)| Some((id, ContainerUsage::open(hierarchies, &path).ok()?)))
            .collect();
        self.lost = wanted;
        self.lost.retain(|id| !opened.contains_key(id));
        let refused = hold(opened);
        let more = refused.difference(&self.refused).count();
        self.refused = refused;
        u64::try_from(more).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_whose_cgroup_is_not_there_is_looked_for_less_and_less_often() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("cgroup.controllers"), "").unwrap();
        let absent = "f".repeat(64);
        let (mut finder, mut now) = (Finder::new(root.path(), Procfs::new("/nowhere")), Instant::now());
        let inspect = |finder: &mut Finder, now: Instant| {
            let mut found = 0;
            finder.inspect(BTreeSet::from([absent.clone()]), now, |opened| {
                found = opened.len();
                BTreeSet::new()
            });
            found
        };
        inspect(&mut finder, now);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let again = finder.next.0.unwrap();
            pauses.push(again.duration_since(now).as_secs());
            now = again;
            inspect(&mut finder, now);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        let pod = "kubepods/pod0a1b2c3d-1111-2222-3333-444455556666";
        let folder = root.path().join(pod).join(&absent);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("cpu.stat"), "usage_usec 1\n").unwrap();
        assert_eq!(
            inspect(&mut finder, now + Duration::from_secs(1)),
            0,
            "its time has not come"
        );
        assert_eq!(inspect(&mut finder, now + MAX_RETRY_INTERVAL), 1);
    }
}
