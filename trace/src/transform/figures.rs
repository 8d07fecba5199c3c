//! Exact figures per name.

use rayon::prelude::*;

use super::engine::Columns;
use crate::model::{Figures, index};

/// Figures of the lengths, one per name.
pub(super) fn by_name(columns: &Columns) -> Vec<Figures> {
    by_key(columns.names, &columns.name, columns.duration_ns.iter().copied())
}

/// Figures of `values` by `key`: one per key below `keys`, zeros for a key that does not occur.
pub fn by_key(keys: u32, key: &[u32], values: impl Iterator<Item = u64> + Clone) -> Vec<Figures> {
    // Most lengths are less than four seconds: half the memory.
    if values.clone().all(|value| u32::try_from(value).is_ok()) {
        let narrow = values.map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        return grouped(keys, key, narrow);
    }
    grouped(keys, key, values)
}

fn grouped<T: Copy + Default + Ord + Send>(keys: u32, key: &[u32], values: impl Iterator<Item = T>) -> Vec<Figures>
where
    u64: From<T>,
{
    let mut places = vec![0_usize; index(keys)];
    for key in key {
        if let Some(count) = places.get_mut(index(*key)) {
            *count += 1;
        }
    }
    let counts = places.clone();
    let mut next = 0;
    for place in &mut places {
        let first = next;
        next += *place;
        *place = first;
    }
    let mut grouped = vec![T::default(); next];
    for (key, value) in key.iter().zip(values) {
        let Some(place) = places.get_mut(index(*key)) else {
            continue;
        };
        if let Some(slot) = grouped.get_mut(*place) {
            *slot = value;
        }
        *place += 1;
    }
    let mut groups = Vec::with_capacity(counts.len());
    let mut rest = &mut grouped[..];
    for count in counts {
        let (group, behind) = rest.split_at_mut(count.min(rest.len()));
        groups.push(group);
        rest = behind;
    }
    groups.into_par_iter().map(Figures::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_own_figures() {
        let figures = by_key(3, &[2, 0, 2, 2], [10, 7, 30, 20].into_iter());
        assert_eq!((figures[0].count, figures[0].total), (1, 7));
        assert_eq!(figures[1], Figures::default());
        assert_eq!(
            (figures[2].count, figures[2].total, figures[2].lower_median),
            (3, 60, 20)
        );
    }
}
