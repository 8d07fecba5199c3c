//! Exact figures per name.

use super::engine::Columns;
use flopwatch_model::{Figures, figures_by_key, listed};

/// Figures of the lengths, one per name.
pub(super) fn by_name(columns: &Columns) -> Vec<Figures> {
    figures_by_key(columns.names, &columns.name, listed(&columns.duration_ns))
}
