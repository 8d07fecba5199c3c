//! Identifiers that a program gave its calls, which stand apart from the calls.

use flopwatch_model::{Category, ColumnId, Events};
use flopwatch_tracer_file::record::Correlation;
use hashbrown::HashMap;

/// Identifiers by the number of the call. Of several of one call the first stays: that of the
/// outermost range is pushed first.
#[derive(Debug, Default)]
pub(super) struct External(HashMap<(u32, u32), u64>);

impl External {
    /// Notes the identifier of a call of a process.
    pub(super) fn note(&mut self, process: u32, correlation: &Correlation) {
        let key = (process, correlation.correlation);
        self.0.entry(key).or_insert(correlation.identifier);
    }

    /// Gives the events of a category their identifiers, where the category has such a column.
    /// `process_of` gives the process of an event.
    pub(super) fn fill(&self, category: Category, events: &mut Events, process_of: impl Fn(&Events, usize) -> u32) {
        let has_column = category.optional_columns().contains(&ColumnId::ExternalId);
        if self.0.is_empty() || !has_column {
            return;
        }
        let found: Vec<Option<u64>> = (0..events.len())
            .map(|at| {
                let correlation = events.correlation.get(at).copied().filter(|number| *number != 0)?;
                self.0.get(&(process_of(events, at), correlation)).copied()
            })
            .collect();
        events.add_column(ColumnId::ExternalId);
        if let Some(column) = events.column_mut(ColumnId::ExternalId) {
            for (at, identifier) in found.into_iter().enumerate() {
                if let Some(identifier) = identifier {
                    column.set(at, identifier);
                }
            }
        }
    }
}
