//! CUDA API calls by function, runtime and driver together, as `nsys stats` has them.

use super::table::{Measure, Table};
use crate::model::{Category, Timeline};

pub(super) fn table(timeline: &Timeline) -> Table {
    Table::of(timeline, &[Category::CudaApi], Measure::Duration)
}
