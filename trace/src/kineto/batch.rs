//! Events that are to be appended to the capture's: the work that needs no text any more, and so
//! goes on beside the reading of what comes.

use flopwatch_model::{Category, ColumnId, Events, NameId, RowId, Values, index};

/// A column that few events have: which of them, and their values.
pub(super) type SparseColumn = (ColumnId, Vec<(u32, u64)>);

/// Stands for a row that a piece does not have. The check behind each reader refuses it.
const NO_ROW: RowId = RowId::new(u32::MAX);

/// Stands for a name that a piece does not have. The check behind each reader refuses it.
const NO_NAME: NameId = NameId::new(u32::MAX);

/// Events of one category, with rows and names by ids of their piece.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) category: Category,
    pub(super) events: Events,
    /// The trace's ids of the piece's rows.
    pub(super) rows: Vec<RowId>,
    /// The trace's ids of the piece's names.
    pub(super) names: Vec<NameId>,
    /// Texts are the trace's numbers already.
    pub(super) sparse: Vec<SparseColumn>,
}

impl Batch {
    /// Appends them to the trace's events of their category.
    pub(super) fn append(self, to: &mut Events) {
        let mut from = self.events;
        let first = to.len();
        to.start_ns.append(&mut from.start_ns);
        to.duration_ns.append(&mut from.duration_ns);
        to.lane.append(&mut from.lane);
        to.correlation.append(&mut from.correlation);
        // An id for each event, so that their number is known before and no push looks for room.
        let row = |row: &RowId| self.rows.get(row.index()).copied().unwrap_or(NO_ROW);
        to.row.extend(from.row.iter().map(row));
        let name = |name: &NameId| self.names.get(name.index()).copied().unwrap_or(NO_NAME);
        to.name.extend(from.name.iter().map(name));
        for (to, from) in to.columns.iter_mut().zip(from.columns) {
            match (&mut to.values, from.values) {
                (Values::U32(to), Values::U32(mut from)) => to.append(&mut from),
                (Values::U64(to), Values::U64(mut from)) => to.append(&mut from),
                // Both were made for the same category by the same code.
                (Values::U32(_), Values::U64(_)) | (Values::U64(_), Values::U32(_)) => {}
            }
        }
        // What the piece does not say.
        let count = to.len();
        for column in &mut to.columns {
            column.values.resize(count, column.id.missing());
        }
        for (id, values) in self.sparse {
            let slot = to.add_column(id);
            let Some(column) = to.columns.get_mut(slot) else {
                continue;
            };
            for (at, value) in values {
                column.values.set(first.saturating_add(index(at)), value);
            }
        }
    }
}
