//! Events that are known by their names.

use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_model::{Category, RowId};
use rayon::prelude::*;

use super::Facts;

/// A piece of time that a name stands for: its length, the name, when it was, and its row.
pub(crate) type NamedTime<'a> = (u64, &'a str, Interval, RowId);

impl<'a> Facts<'a> {
    /// The events of `categories` whose name `picks` picks; it is asked once per name.
    pub(crate) fn named(&self, categories: &[Category], picks: impl Fn(&str) -> bool + Sync) -> Vec<NamedTime<'a>> {
        let mut found = Vec::new();
        for events in categories.iter().filter_map(|category| self.events(*category)) {
            let names = events.names.par_iter().with_min_len(1024);
            let picked: Vec<bool> = names.map(|name| picks(name)).collect();
            if !picked.contains(&true) {
                continue;
            }
            for (at, (name, row)) in events.name.iter().zip(&events.row).enumerate() {
                if picked.get(name.index()).copied().unwrap_or(false) {
                    let time = Interval::of(events, at);
                    found.push((time.len(), events.name_of(at), time, *row));
                }
            }
        }
        found
    }
}

/// When any of `pieces` was.
pub(crate) fn times(pieces: &[NamedTime<'_>]) -> Intervals {
    pieces.iter().map(|(_, _, time, _)| *time).collect()
}
