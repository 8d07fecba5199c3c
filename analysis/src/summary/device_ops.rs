//! Operations of an accelerator that has no streams. Lines that a tool derived of them are no part of the sums.

use super::table::{Measure, Table};
use crate::model::{Category, Timeline};

pub(super) fn table(timeline: &Timeline) -> Table {
    Table::of(timeline, &[Category::DeviceOp], Measure::Duration)
}
