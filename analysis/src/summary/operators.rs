//! Operators of a framework on the CPU. They nest: a caller's time holds that of what it calls.

use super::table::{Measure, Table};
use crate::model::{Category, Timeline};

pub(super) fn table(timeline: &Timeline) -> Table {
    Table::of(timeline, &[Category::CpuOp], Measure::Duration)
}
