//! The events of one category in a piece of a trace: names and other texts by numbers of the
//! piece's own, and the columns that few events have as lists of those that do.

use super::event::{ExtraColumns, ExtraValue};
use super::interner::Interner;
use super::part::{RowKey, no_events};
use flopwatch_model::{Category, ColumnId, Events};

/// What events say in a column that few have.
#[derive(Debug)]
pub(super) struct Sparse<'a> {
    pub(super) id: ColumnId,
    /// Which events, and their values: in a column of texts their numbers in `texts`.
    pub(super) values: Vec<(u32, u64)>,
    pub(super) texts: Interner<&'a [u8]>,
}

/// Events of one category.
#[derive(Debug)]
pub(super) struct Columns<'a> {
    pub(super) events: Events,
    pub(super) names: Interner<&'a [u8]>,
    pub(super) sparse: Vec<Sparse<'a>>,
    /// The row of the last event, which is often the next one's, and its number.
    pub(super) last_row: Option<(RowKey<'a>, u32)>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(category: Category) -> Self {
        Self {
            events: no_events(category),
            names: Interner::default(),
            sparse: Vec::new(),
            last_row: None,
        }
    }

    /// Notes what the last event says, in the columns that `category` may have.
    pub(super) fn set_columns(&mut self, category: Category, extra: &ExtraColumns<'a>) {
        let Some(at) = self.events.len().checked_sub(1) else {
            return;
        };
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        for (id, extra_value) in extra {
            if !category.optional_columns().contains(id) && !category.columns().contains(id) {
                continue;
            }
            let slot = self.sparse.iter().position(|sparse| sparse.id == *id);
            let slot = slot.unwrap_or_else(|| {
                self.sparse.push(Sparse {
                    id: *id,
                    values: Vec::new(),
                    texts: Interner::default(),
                });
                self.sparse.len() - 1
            });
            if let Some(sparse) = self.sparse.get_mut(slot) {
                let value = match extra_value {
                    ExtraValue::Number(number) => *number,
                    ExtraValue::Text(text) => sparse.texts.number(text).into(),
                };
                sparse.values.push((at, value));
            }
        }
    }
}
