//! Memsets.

use super::table::{Measure, Table};
use crate::model::{Category, Timeline};

pub(super) fn times(timeline: &Timeline) -> Table {
    Table::of(timeline, &[Category::CudaMemset], Measure::Duration)
}

pub(super) fn sizes(timeline: &Timeline) -> Table {
    Table::of(timeline, &[Category::CudaMemset], Measure::Bytes)
}
