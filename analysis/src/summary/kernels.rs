//! GPU kernels by name, whatever their grid.

use super::table::{Measure, Table};
use crate::model::{Category, Timeline};

pub(super) fn table(timeline: &Timeline) -> Table {
    Table::of(timeline, &[Category::CudaKernel], Measure::Duration)
}
