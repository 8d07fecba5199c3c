//! Names and rows in their published numbering: sorted, each once.

use crate::model::{Column, Events, Row, Values, index};

/// Sorts rows and merges equal ones; gives the new index of each old one.
pub(super) fn sort_rows(rows: &mut Vec<Row>) -> Vec<u32> {
    let old = std::mem::take(rows);
    let (new, sorted) = number(old, |_| true, Row::eq);
    *rows = sorted;
    new
}

/// A further form of a name: one that is not empty comes first.
type Form = (bool, String);

fn form(text: Option<String>) -> Form {
    let text = text.unwrap_or_default();
    (text.is_empty(), text)
}

/// Sorts names, drops those that no event uses, merges equal ones. Where equal names have different further forms, the first of
/// these stays.
pub(super) fn sort_names(events: &mut Events) {
    let used = used(events.names.len(), events.name.iter());
    let has_short = !events.short_names.is_empty();
    let has_mangled = !events.mangled_names.is_empty();
    let mut short = std::mem::take(&mut events.short_names).into_iter();
    let mut mangled = std::mem::take(&mut events.mangled_names).into_iter();
    let names = std::mem::take(&mut events.names).into_iter();
    let old: Vec<(String, Form, Form)> = names
        .map(|name| (name, form(short.next()), form(mangled.next())))
        .collect();
    let keep = |at| used.get(at).copied().unwrap_or(false);
    let (new, sorted) = number(old, keep, |a, b| a.0 == b.0);
    for name in &mut events.name {
        *name = new.get(index(*name)).copied().unwrap_or(*name);
    }
    for (name, (_, short), (_, mangled)) in sorted {
        events.names.push(name);
        if has_short {
            events.short_names.push(short);
        }
        if has_mangled {
            events.mangled_names.push(mangled);
        }
    }
}

/// Sorts the texts of a column, drops those that no event uses, merges equal ones. The empty text stays the first.
pub(super) fn sort_texts(column: &mut Column) {
    let Values::U32(values) = &mut column.values else {
        return;
    };
    if column.texts.is_empty() {
        return;
    }
    let used = used(column.texts.len(), values.iter());
    let old = std::mem::take(&mut column.texts);
    let keep = |at| at == 0 || used.get(at).copied().unwrap_or(false);
    let (new, texts) = number(old, keep, String::eq);
    for value in values {
        *value = new.get(index(*value)).copied().unwrap_or(0);
    }
    column.texts = texts;
}

/// Which of so many places are referred to.
fn used<'a>(places: usize, references: impl Iterator<Item = &'a u32>) -> Vec<bool> {
    let mut used = vec![false; places];
    for place in references {
        if let Some(used) = used.get_mut(index(*place)) {
            *used = true;
        }
    }
    used
}

/// The items that `keep` picks, sorted, the first of those that are the `same`, and for each old place the new one.
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
        if let Some(place) = new.get_mut(at) {
            *place = u32::try_from(sorted.len()).unwrap_or(u32::MAX).saturating_sub(1);
        }
    }
    (new, sorted)
}
