//! The processes of this machine by name.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// Age at which the list of processes is read anew from `/proc`.
const MAX_READING_AGE: Duration = Duration::from_millis(200);

/// PIDs by `comm`.
#[derive(Debug)]
pub(crate) struct Processes {
    by_name: BTreeMap<String, Vec<u32>>,
    seen: Option<Instant>,
}

impl Processes {
    pub(crate) const fn new() -> Self {
        Self {
            by_name: BTreeMap::new(),
            seen: None,
        }
    }

    /// PIDs of the processes whose `comm` is `name`, in ascending order.
    pub(crate) fn named(&mut self, name: &str) -> Vec<u32> {
        if self.seen.is_none_or(|seen| seen.elapsed() > MAX_READING_AGE) {
            self.by_name = scan();
            self.seen = Some(Instant::now());
        }
        self.by_name.get(name).cloned().unwrap_or_default()
    }
}

fn scan() -> BTreeMap<String, Vec<u32>> {
    let mut by_name: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/proc") else {
        return by_name;
    };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Ok(comm) = fs::read_to_string(entry.path().join("comm")) {
            by_name
                .entry(comm.trim_end_matches('\n').to_owned())
                .or_default()
                .push(pid);
        }
    }
    for pids in by_name.values_mut() {
        pids.sort_unstable();
    }
    by_name
}
