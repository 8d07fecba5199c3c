//! Names and rows in their published numbering: sorted, each once.

use crate::model::{Events, Row, index};

/// Sorts rows and merges equal ones; gives the new index of each old one.
pub(super) fn sort_rows(rows: &mut Vec<Row>) -> Vec<u32> {
    let old = std::mem::take(rows);
    let (new, sorted) = number(old, |_| true);
    *rows = sorted;
    new
}

/// Sorts names, drops those that no event uses, merges equal ones.
pub(super) fn sort_names(events: &mut Events) {
    let mut used = vec![false; events.names.len()];
    for name in &events.name {
        if let Some(used) = used.get_mut(index(*name)) {
            *used = true;
        }
    }
    let old = std::mem::take(&mut events.names);
    let (new, names) = number(old, |at| used.get(at).copied().unwrap_or(false));
    for name in &mut events.name {
        *name = new.get(index(*name)).copied().unwrap_or(*name);
    }
    events.names = names;
}

/// The items that `keep` picks, sorted, each once, and for each old place the new one.
fn number<T: Ord>(old: Vec<T>, keep: impl Fn(usize) -> bool) -> (Vec<u32>, Vec<T>) {
    let mut new = vec![0_u32; old.len()];
    let mut kept: Vec<(T, usize)> = old
        .into_iter()
        .enumerate()
        .filter(|(at, _)| keep(*at))
        .map(|(at, item)| (item, at))
        .collect();
    kept.sort_unstable();
    let mut sorted: Vec<T> = Vec::new();
    for (item, at) in kept {
        if sorted.last() != Some(&item) {
            sorted.push(item);
        }
        if let Some(place) = new.get_mut(at) {
            *place = u32::try_from(sorted.len()).unwrap_or(u32::MAX).saturating_sub(1);
        }
    }
    (new, sorted)
}
