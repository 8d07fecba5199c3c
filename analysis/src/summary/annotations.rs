//! Ranges that a framework marked by other means than NVTX. Their repetition on the GPU is no part of the sums.

use super::table::{Measure, Table};
use crate::model::{Category, Timeline};

pub(super) fn table(timeline: &Timeline) -> Table {
    Table::of(timeline, &[Category::Annotation], Measure::Duration)
}
