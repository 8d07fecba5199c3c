//! Kinds of memory, which the names of copies and memsets tell: `Memcpy HtoD (Pageable -> Device)`,
//! `Memset (Device)`.

use super::gather::Gather;
use flopwatch_model::{ColumnId, MemoryKind, NameId, Values};

impl Gather<'_> {
    /// Gives copies and memsets the kinds of memory that their names tell.
    pub(super) fn fill_memory_kinds(&mut self) {
        for (category, events) in &mut self.capture.events {
            if !category.optional_columns().contains(&ColumnId::DstMemoryKind) {
                continue;
            }
            let kinds: Vec<[u32; 2]> = events.names.iter().map(|name| memory_kinds(name)).collect();
            for (at, id) in [ColumnId::SrcMemoryKind, ColumnId::DstMemoryKind]
                .into_iter()
                .enumerate()
            {
                let of_name: Vec<u32> = kinds.iter().filter_map(|kinds| kinds.get(at).copied()).collect();
                if of_name.iter().all(|kind| *kind == 0) {
                    continue;
                }
                let of_event = |name: &NameId| of_name.get(name.index()).copied().unwrap_or(0);
                let values = Values::U32(events.name.iter().map(of_event).collect());
                let slot = events.add_column(id);
                if let Some(column) = events.columns.get_mut(slot) {
                    column.values = values;
                }
            }
        }
    }
}

/// The kinds that a name tells: copied from, and copied to or set.
fn memory_kinds(name: &str) -> [u32; 2] {
    let kind = |text: &str| MemoryKind::from_words(text.as_bytes()).map_or(0, MemoryKind::number);
    let inside = name.rsplit_once('(').and_then(|(_, behind)| behind.strip_suffix(')'));
    match inside.map(|inside| inside.split_once("->")) {
        Some(Some((from, to))) => [kind(from), kind(to)],
        Some(None) => [0, kind(inside.unwrap_or_default())],
        None => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_kinds_of_memory() {
        let number = MemoryKind::number;
        for (name, kinds) in [
            (
                "Memcpy HtoD (Pageable -> Device)",
                [number(MemoryKind::Pageable), number(MemoryKind::Device)],
            ),
            ("Memset (Device)", [0, number(MemoryKind::Device)]),
            ("Memcpy DtoD", [0, 0]),
            ("Memcpy (odd)", [0, 0]),
        ] {
            assert_eq!(memory_kinds(name), kinds, "{name}");
        }
    }
}
