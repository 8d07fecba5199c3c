//! Names and rows in their published numbering: sorted, each once.

use rayon::prelude::*;

use flopwatch_model::{Column, Events, NameId, Row, RowId, Values, index};

/// Sorts rows and merges equal ones; gives the new id of each old one.
pub(super) fn sort_rows(rows: &mut Vec<Row>) -> Vec<RowId> {
    let old = std::mem::take(rows);
    let (new, sorted) = number(old, |_| true, Row::eq);
    *rows = sorted;
    RowId::from_numbers(new)
}

/// Details of a name, in the order of the lists that they come from; one that says something comes
/// before one that does not.
type Details = Vec<(bool, String)>;

/// Sorts names, drops those that no event uses, merges equal ones. Where equal names have different
/// details, the first of these stay.
pub(super) fn sort_names(events: &mut Events) {
    let used = used(events.names.len(), NameId::numbers(&events.name));
    let mut lists: Vec<_> = events
        .name_details
        .values_mut()
        .map(|list| std::mem::take(list).into_iter())
        .collect();
    let mut details = || -> Details {
        let texts = lists.iter_mut().map(|list| list.next().unwrap_or_default());
        texts.map(|text| (text.is_empty(), text)).collect()
    };
    let names = std::mem::take(&mut events.names).into_iter();
    let old: Vec<(String, Details)> = names.map(|name| (name, details())).collect();
    let keep = |at| used.get(at).copied().unwrap_or(false);
    let (new, sorted) = number(old, keep, |a, b| a.0 == b.0);
    let renumber = |name: &mut NameId| *name = new.get(name.index()).map_or(*name, |new| NameId::new(*new));
    events.name.par_iter_mut().with_min_len(1 << 14).for_each(renumber);
    for (name, details) in sorted {
        events.names.push(name);
        for (list, (_, text)) in events.name_details.values_mut().zip(details) {
            list.push(text);
        }
    }
}

/// Sorts the texts of a column, drops those that no event uses, merges equal ones. The empty text
/// stays the first.
pub(super) fn sort_texts(column: &mut Column) {
    let Values::U32(values) = &mut column.values else {
        return;
    };
    if column.texts.is_empty() {
        return;
    }
    let used = used(column.texts.len(), values);
    let old = std::mem::take(&mut column.texts);
    let keep = |at| at == 0 || used.get(at).copied().unwrap_or(false);
    let (new, texts) = number(old, keep, String::eq);
    for value in values {
        if let Some(new) = new.get(index(*value)) {
            *value = *new;
        }
    }
    column.texts = texts;
}

/// References that a core looks at, at least.
const MIN_PIECE_REFERENCES: usize = 1 << 18;

/// Which of so many places are referred to.
fn used(name_count: usize, references: &[u32]) -> Vec<bool> {
    let of_piece = |references: &[u32]| {
        let mut used = vec![false; name_count];
        for number in references {
            if let Some(used) = used.get_mut(index(*number)) {
                *used = true;
            }
        }
        used
    };
    let both = |mut used: Vec<bool>, more: Vec<bool>| {
        for (used, more) in used.iter_mut().zip(more) {
            *used |= more;
        }
        used
    };
    let pieces = references.par_chunks(MIN_PIECE_REFERENCES.max(name_count));
    pieces.map(of_piece).reduce(|| vec![false; name_count], both)
}

/// The items that `keep` picks, sorted, the first of those that are the `same`, and for each old
/// place the new one.
fn number<T: Ord>(old: Vec<T>, keep: impl Fn(usize) -> bool, same: impl Fn(&T, &T) -> bool) -> (Vec<u32>, Vec<T>) {
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
        if sorted.last().is_none_or(|last| !same(last, &item)) {
            sorted.push(item);
        }
        if let Some(slot) = new.get_mut(at) {
            *slot = u32::try_from(sorted.len()).unwrap_or(u32::MAX).saturating_sub(1);
        }
    }
    (new, sorted)
}
