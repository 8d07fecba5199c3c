//! Sizes of copies and memsets.

use flopwatch_model::{ColumnId, Needs, approximate, count};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table};
use schemars::JsonSchema;
use serde::Serialize;

use super::gpu::MEMORY;
use super::parameters::NsysParams;
use super::rounding::megabytes;
use super::times::{Group, Grouping};
use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Sizes of copies and memsets.
#[derive(Debug)]
pub struct CudaGpuMemSizeSum;

/// A summary by size, the largest total first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysSizes {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// The rows.
    pub rows: Vec<NsysSizesRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// The sizes of one operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysSizesRow {
    /// Sum in bytes.
    pub total_bytes: u64,
    /// Operations.
    pub count: u64,
    /// Arithmetic mean in bytes.
    pub avg_bytes: f64,
    /// The middle one in bytes, or the mean of the two middle ones.
    pub med_bytes: f64,
    /// The smallest in bytes.
    pub min_bytes: u64,
    /// The largest in bytes.
    pub max_bytes: u64,
    /// Sample standard deviation in bytes; 0 of a single one.
    pub stddev_bytes: f64,
    /// Name of the operation.
    pub operation: String,
}

impl Analysis for CudaGpuMemSizeSum {
    const NAME: &'static str = "cuda_gpu_mem_size_sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "Sizes of copies and memsets on GPUs by kind, as nsys stats has them.";
    const GROUP: crate::Group = crate::Group::NsysTables;
    const NEEDS: Needs = Needs::of(MEMORY).columns(&[ColumnId::Bytes]).names();
    type Params = NsysParams;
    type Output = NsysSizes;

    fn run(inputs: &Inputs<'_>, params: &NsysParams) -> Result<NsysSizes, AnalysisError> {
        let timeline = inputs.first();
        let mut grouping = Grouping::default();
        let mut unknown = 0_u64;
        for events in MEMORY
            .iter()
            .filter_map(|category| timeline.capture.events.get(category))
        {
            let size = |at: usize| events.number(ColumnId::Bytes, at);
            grouping.add_events(events, Group::named, size);
            unknown += count((0..events.len()).filter(|at| size(*at).is_none()).count());
        }
        let mut groups = grouping.figures();
        groups.sort_by(|(a, x), (b, y)| y.total.cmp(&x.total).then_with(|| a.cmp(b)));
        let left_out = cut(&mut groups, params.limit);
        let row = |(group, figures): (Group<'_>, flopwatch_summary::Statistics)| NsysSizesRow {
            total_bytes: figures.total,
            count: figures.calls,
            avg_bytes: figures.avg,
            med_bytes: figures.median,
            min_bytes: figures.min,
            max_bytes: figures.max,
            stddev_bytes: figures.stddev,
            operation: group.name.into_owned(),
        };
        let missing = NotCaptured::unless_any(&timeline.capture, MEMORY, "copies and memsets");
        let unsaid = (unknown > 0).then(|| {
            NotCaptured::new(
                format!("the size of {unknown} operations"),
                "the source does not say it: they are in no row",
            )
        });
        Ok(NsysSizes {
            not_captured: missing.into_iter().chain(unsaid).collect(),
            rows: groups.into_iter().map(row).collect(),
            left_out,
        })
    }

    fn page(output: &NsysSizes) -> Result<Page, AnalysisError> {
        let whole = |bytes: u64| megabytes(approximate(u128::from(bytes)));
        let table = Table::of("", &output.rows)
            .left_out(output.left_out)
            .number("Total (MB)", 3, |row| whole(row.total_bytes))
            .column("Count", |row| row.count)
            .number("Avg (MB)", 3, |row| megabytes(row.avg_bytes))
            .number("Med (MB)", 3, |row| megabytes(row.med_bytes))
            .number("Min (MB)", 3, |row| whole(row.min_bytes))
            .number("Max (MB)", 3, |row| whole(row.max_bytes))
            .number("StdDev (MB)", 3, |row| megabytes(row.stddev_bytes))
            .column("Operation", |row| row.operation.as_str());
        Ok(Page::of_table(Self::NAME, Self::ABOUT, &output.not_captured, table))
    }
}
