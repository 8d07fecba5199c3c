//! NVTX ranges by style and name, the domain before the name. Ranges nest: an outer one holds the time of the inner ones.

use super::table::{Measure, Table};
use crate::model::{Category, Timeline};

pub(super) fn table(timeline: &Timeline) -> Table {
    Table::of(timeline, &[Category::NvtxRange], Measure::Duration)
}
