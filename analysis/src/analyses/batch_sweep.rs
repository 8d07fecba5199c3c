//! Batch-size sweep: captures of one program with different batch sizes side by side, and from
//! where on a larger batch no longer pays.

use std::collections::BTreeMap;

use flopwatch_measures::coverage::Coverage;
use flopwatch_measures::pace::Pace;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, ColumnId, Needs, Timeline, approximate, gpu_work_and, index, ratio, whole};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Bars, Page, Table, Tile, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analyses::mfu::{MfuParams, MfuResult};
use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// Captures with different batch sizes.
#[derive(Debug)]
pub struct BatchSweep;

/// Parameters of [`BatchSweep`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BatchSweepParams {
    /// The batch size of each capture in their order, separated by commas, e.g. `8,16,32`; one that
    /// is left out is taken from the shapes of operators. Count what one iteration works on, over
    /// all devices.
    #[schemars(length(max = 1024))]
    pub batch_sizes: String,
    /// Peak of one device in TFLOP/s for the type of number that the model computes with, without
    /// sparsity; it goes before the rates that the captures state.
    #[schemars(range(min = 0.000_001, max = 1_000_000_000.0))]
    pub peak_tflops: Option<f64>,
    /// From this share in percent of the best throughput on a batch is large enough: the smallest
    /// of these is the knee.
    #[schemars(range(min = 1.0, max = 100.0))]
    pub knee_percent: f64,
}

impl Default for BatchSweepParams {
    fn default() -> Self {
        Self {
            batch_sizes: String::new(),
            peak_tflops: None,
            knee_percent: 90.0,
        }
    }
}

/// Where a batch size is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchSizeSource {
    /// It was given.
    Given,
    /// The leading dimension of most inputs of convolutions, linear layers, embeddings and
    /// attention. Models that fold the sequence into it need the size to be given.
    Shapes,
}

/// The result of the analysis `batch-sweep`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct BatchSweepResult {
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
    /// Reservations about the figures, as sentences.
    pub cautions: Vec<String>,
    /// The captures, the smallest batch first; those of unknown size last.
    pub rows: Vec<BatchSweepRow>,
    /// The smallest batch with at least `knee_percent` of the best throughput; null without two
    /// captures of known size and time.
    pub knee_batch: Option<u64>,
    /// The best throughput in items per second.
    pub best_items_per_second: Option<f64>,
    /// Time of an iteration in ns that does not depend on the batch: where the line through the
    /// captures (least squares) meets no items. Null without two different sizes. Below 0 where
    /// larger batches are slower per item.
    pub fixed_ns: Option<f64>,
    /// Time in ns that each further item costs, by that line.
    pub further_item_ns: Option<f64>,
}

/// A capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct BatchSweepRow {
    /// The capture, counted from 0 in the order in which they were named.
    pub input: u32,
    /// Items of an iteration; null where not known.
    pub batch_size: Option<u64>,
    /// Where it is known from.
    pub batch_size_source: Option<BatchSizeSource>,
    /// Iterations that count: without the first one and those in which code was compiled.
    pub iterations: u64,
    /// Mean length of these in ns; null without any.
    pub mean_iteration_ns: Option<u64>,
    /// Items per second.
    pub items_per_second: Option<f64>,
    /// Time of an item in ns.
    pub item_ns: Option<f64>,
    /// Efficiency against linear: throughput over that of the smallest batch, of the same ratio of
    /// sizes. 1 is as long an iteration with more items.
    pub linear_efficiency_ratio: Option<f64>,
    /// GPU busy time of those iterations; null where no GPU work was recorded.
    pub gpu_busy_ratio: Option<f64>,
    /// Most memory in bytes that the framework had given out on a device; null where allocations
    /// were not recorded.
    pub peak_memory_bytes: Option<u64>,
    /// Roofline prediction in ns: what the floating-point operations of an iteration take at the
    /// peak rate. Traffic of memory is not in it. Null where operations or rate are not known.
    pub predicted_iteration_ns: Option<u64>,
    /// `predicted_iteration_ns` of `mean_iteration_ns`: the model FLOP utilisation.
    pub predicted_ratio: Option<f64>,
}

impl Analysis for BatchSweep {
    const NAME: &'static str = "batch-sweep";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Captures of one program with different batch sizes: throughput, time per item, memory, efficiency against linear, and the batch from which on more no longer pays.";
    const TITLE: &'static str = "Batch-size sweep";
    const GROUP: Group = Group::TensorCores;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = Needs::of(gpu_work_and![
        Category::CudaApi,
        Category::NvtxRange,
        Category::Annotation,
        Category::Step,
        Category::CpuOp,
        Category::DeviceOp,
        Category::Derived
    ])
    .columns(&[
        ColumnId::Launch,
        ColumnId::StepNumber,
        ColumnId::RangeStyle,
        ColumnId::Flops,
        ColumnId::InputShapes,
        ColumnId::InputTypes,
    ])
    .rows()
    .names()
    .allocations()
    .profiles();
    type Params = BatchSweepParams;
    type Output = BatchSweepResult;

    fn run(inputs: &Inputs<'_>, params: &BatchSweepParams) -> Result<BatchSweepResult, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        Ok(BatchSweepResult::of(&timelines, params))
    }

    fn page(output: &BatchSweepResult) -> Result<Page, AnalysisError> {
        Ok(page(Self::TITLE, Self::ABOUT, output))
    }
}

impl BatchSweepResult {
    /// Of `timelines`. Needs [`BatchSweep::NEEDS`](Analysis::NEEDS).
    pub fn of(timelines: &[&Timeline], params: &BatchSweepParams) -> Self {
        let given: Vec<Option<u64>> = params
            .batch_sizes
            .split(',')
            .map(|size| size.trim().parse().ok().filter(|size| *size > 0))
            .collect();
        let mut result = Self::default();
        for (input, timeline) in (0_u32..).zip(timelines) {
            let given = given.get(index(input)).copied().flatten();
            let row = result.row(input, timeline, given, params);
            result.rows.push(row);
        }
        result
            .rows
            .sort_by_key(|row| (row.batch_size.is_none(), row.batch_size, row.input));
        result.compare(params.knee_percent);
        result
    }

    fn row(&mut self, input: u32, timeline: &Timeline, given: Option<u64>, params: &BatchSweepParams) -> BatchSweepRow {
        let work = GpuWork::of(timeline);
        let compiling = compiling(timeline);
        let pace = Pace::of(timeline, &work, |time| compiling.within(time) > 0);
        let from_shapes = || Some((batch_of(timeline)?, BatchSizeSource::Shapes));
        let batch = given.map(|size| (size, BatchSizeSource::Given)).or_else(from_shapes);
        if batch.is_none() {
            self.not_captured.push(NotCaptured::new(
                format!("the batch size of capture {}", input + 1),
                "no shapes of operators tell it: give batch_sizes, or record shapes (torch.profiler with record_shapes=True)",
            ));
        }
        self.not_captured.extend(pace.not_found.as_ref().map(|missing| {
            NotCaptured::new(
                format!("{} of capture {}", missing.what, input + 1),
                missing.reason.clone(),
            )
        }));
        let cautions = pace.cautions.iter();
        self.cautions
            .extend(cautions.map(|caution| format!("Capture {}: {caution}", input + 1)));
        let per_second = |size: u64, ns: u64| ratio(size, ns).map(|per_ns| per_ns * 1e9);
        let size = batch.map(|(size, _)| size);
        let known = size.zip(pace.mean_ns);
        let total: u64 = pace.times.iter().map(|time| time.len()).sum();
        let busy = || {
            let busy = Coverage::of(&work.busy());
            ratio(pace.times.iter().map(|time| busy.within(*time)).sum::<u64>(), total)
        };
        let mfu = MfuResult::of(
            timeline,
            &MfuParams {
                peak_tflops: params.peak_tflops,
                limit: 1,
                ..MfuParams::default()
            },
        );
        let predicted_ratio = mfu.mfu_ratio.filter(|_| mfu.iterations > 0);
        let allocated = timeline.capture.allocations.iter();
        let on_devices = allocated.filter(|allocation| allocation.device.is_some());
        BatchSweepRow {
            input,
            batch_size: size,
            batch_size_source: batch.map(|(_, source)| source),
            iterations: pace.iterations,
            mean_iteration_ns: pace.mean_ns,
            items_per_second: known.and_then(|(size, ns)| per_second(size, ns)),
            item_ns: known.and_then(|(size, ns)| ratio(ns, size)),
            linear_efficiency_ratio: None,
            gpu_busy_ratio: (!work.all().is_empty()).then(busy).flatten(),
            peak_memory_bytes: on_devices.filter_map(|allocation| allocation.allocated).max(),
            predicted_iteration_ns: predicted_ratio
                .zip(pace.mean_ns)
                .map(|(share, ns)| whole(share * approximate(ns.into()))),
            predicted_ratio,
        }
    }

    fn compare(&mut self, knee_percent: f64) {
        let known: Vec<(u64, u64)> = self
            .rows
            .iter()
            .filter_map(|row| row.batch_size.zip(row.mean_iteration_ns))
            .collect();
        let Some((first_size, first_ns)) = known.first().copied() else {
            return;
        };
        let first = ratio(first_size, first_ns);
        for row in &mut self.rows {
            let throughput = row
                .batch_size
                .zip(row.mean_iteration_ns)
                .and_then(|(size, ns)| ratio(size, ns));
            let sizes = row.batch_size.and_then(|size| ratio(size, first_size));
            row.linear_efficiency_ratio = throughput
                .zip(first)
                .zip(sizes)
                .map(|((throughput, first), sizes)| throughput / first / sizes);
        }
        let best = self
            .rows
            .iter()
            .filter_map(|row| row.items_per_second)
            .max_by(f64::total_cmp);
        self.best_items_per_second = best;
        let sizes: Vec<u64> = known.iter().map(|(size, _)| *size).collect();
        if sizes.iter().all(|size| *size == first_size) {
            self.not_captured.push(NotCaptured::new(
                "the knee",
                "it takes captures of at least two different batch sizes",
            ));
            return;
        }
        let enough = best.map(|best| best * knee_percent / 100.0);
        let knee = self.rows.iter().find(|row| {
            row.items_per_second
                .zip(enough)
                .is_some_and(|(items, enough)| items >= enough)
        });
        self.knee_batch = knee.and_then(|row| row.batch_size);
        if self.knee_batch == sizes.last().copied() {
            self.cautions.push(
                "The largest batch is the knee: throughput may still rise, so that a larger one is worth a capture where memory has room.".to_owned(),
            );
        }
        let line = line(&known);
        self.fixed_ns = line.map(|(fixed, _)| fixed);
        self.further_item_ns = line.map(|(_, further)| further);
        if self
            .rows
            .iter()
            .any(|row| row.batch_size_source == Some(BatchSizeSource::Shapes))
        {
            self.cautions.push(
                "Batch sizes are taken from shapes: a model that folds the sequence into the first dimension, or accumulates gradients, needs batch_sizes."
                    .to_owned(),
            );
        }
    }
}

/// When anything of torch.compile compiled.
fn compiling(timeline: &Timeline) -> Coverage {
    use flopwatch_measures::compiled::CompileActivity;
    use flopwatch_measures::enclosing::Threads;
    let compiled = CompileActivity::of(timeline, &Threads::of(timeline));
    let times = compiled.compiling().flat_map(|(_, union)| union.as_slice());
    Coverage::of(&times.copied().collect())
}

/// Operators whose input has the batch as its leading dimension, and the place of that input.
const BATCHED: &[(&str, usize)] = &[
    ("aten::conv2d", 0),
    ("aten::conv1d", 0),
    ("aten::conv3d", 0),
    ("aten::linear", 0),
    ("aten::embedding", 1),
    ("aten::scaled_dot_product_attention", 0),
];

/// The leading dimension of most of these inputs; of equally many the larger.
fn batch_of(timeline: &Timeline) -> Option<u64> {
    let operators = timeline.capture.events.get(&Category::CpuOp)?;
    let input_position = |name: &String| {
        BATCHED
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, input_position)| *input_position)
    };
    let input_positions: Vec<Option<usize>> = operators.names.iter().map(input_position).collect();
    let shapes = operators.column(ColumnId::InputShapes)?;
    let mut calls: BTreeMap<(usize, u64), (usize, u64)> = BTreeMap::new();
    for (at, name) in operators.name.iter().enumerate() {
        let input_position = input_positions.get(name.index()).copied().flatten();
        if let Some((input_position, shapes)) = input_position.zip(shapes.get(at)) {
            calls.entry((input_position, shapes)).or_insert((at, 0)).1 += 1;
        }
    }
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for ((input_position, _), (at, count)) in calls {
        let leading = || {
            let shapes: Vec<serde_json::Value> =
                serde_json::from_str(operators.text(ColumnId::InputShapes, at)?).ok()?;
            let shape = shapes.get(input_position)?.as_array()?;
            // A matrix has no batch that is told from its rows.
            shape.first()?.as_u64().filter(|_| shape.len() >= 2)
        };
        if let Some(size) = leading() {
            *sizes.entry(size).or_default() += count;
        }
    }
    let max = sizes.into_iter().max_by_key(|(size, count)| (*count, *size));
    max.map(|(size, _)| size)
}

/// The line `fixed + size * further` through `(size, ns)` by least squares.
fn line(points: &[(u64, u64)]) -> Option<(f64, f64)> {
    let count = f64::from(u32::try_from(points.len()).ok()?);
    let numbers = || {
        points
            .iter()
            .map(|(size, ns)| (approximate((*size).into()), approximate((*ns).into())))
    };
    let (size, ns) = numbers().fold((0.0, 0.0), |(size, ns), (x, y)| (size + x, ns + y));
    let (mean_size, mean_ns) = (size / count, ns / count);
    let (above, below) = numbers().fold((0.0, 0.0), |(above, below), (x, y)| {
        (
            above + (x - mean_size) * (y - mean_ns),
            below + (x - mean_size) * (x - mean_size),
        )
    });
    let further = above / below;
    (below > 0.0).then_some((mean_ns - further * mean_size, further))
}

fn page(title: &str, about: &str, result: &BatchSweepResult) -> Page {
    let mut page = Page::of(title, about, &result.not_captured);
    let known = || {
        let rows = result.rows.iter();
        rows.filter_map(|row| Some((row.batch_size?, row.items_per_second?, row)))
    };
    if known().next().is_none() {
        return page;
    }
    page.tiles([
        Tile::new("Knee", result.knee_batch),
        Tile::new("Best throughput, items per second", result.best_items_per_second),
        Tile::figure("Fixed time of an iteration", Unit::Ns, result.fixed_ns),
        Tile::figure("Each further item", Unit::Ns, result.further_item_ns),
    ]);
    if !result.cautions.is_empty() {
        page.text("", result.cautions.join(" "));
    }
    page.bars(
        Bars::of("Items per second by batch size", Unit::None, known(), |(size, ..)| {
            size.to_string()
        })
        .series("items per second", |(_, items, _)| items),
    );
    page.table(
        Table::of("Captures", &result.rows)
            .about(
                "The roofline's prediction is operations at the peak rate; traffic of memory is not in \
                 it.",
            )
            .column("Batch", |row| row.batch_size)
            .column("Capture", |row| row.input + 1)
            .column("Iterations", |row| row.iterations)
            .figure("Avg iteration", Unit::Ns, |row| row.mean_iteration_ns)
            .number("Items per second", 1, |row| row.items_per_second)
            .figure("Time of an item", Unit::Ns, |row| row.item_ns)
            .figure("Of linear", Unit::Ratio, |row| row.linear_efficiency_ratio)
            .figure("GPU busy", Unit::Ratio, |row| row.gpu_busy_ratio)
            .figure("Peak memory", Unit::Bytes, |row| row.peak_memory_bytes)
            .figure("Predicted by the roofline", Unit::Ns, |row| row.predicted_iteration_ns)
            .figure("Of the avg", Unit::Ratio, |row| row.predicted_ratio)
            .without_unknown(),
    );
    page
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;
    use proptest::prelude::*;

    use super::*;

    /// Three steps behind a first one, of 100 ns and 10 per item; a convolution of `size` images in
    /// each.
    fn program(size: u64) -> Timeline {
        let mut trace = Trace::new();
        let (ops, steps) = (trace.thread(1, 1, Track::CpuOp), trace.thread(1, 1, Track::Annotation));
        let length = 100 + 10 * size;
        for number in 0..4 {
            let start = number * length;
            trace.step(steps, number, start, start + length);
            let convolution = trace.event(Category::CpuOp, ops, "aten::conv2d", start + 5, start + 50);
            trace.text(
                convolution,
                ColumnId::InputShapes,
                &format!("[[{size},3,8,8],[16,3,3,3]]"),
            );
        }
        trace.allocation(1, 0, 5, 10, Some(1000 * size));
        trace.build()
    }

    #[test]
    fn throughput_efficiency_and_knee_can_be_counted() {
        let timelines: Vec<Timeline> = [40, 10, 90].map(program).into();
        let timelines: Vec<&Timeline> = timelines.iter().collect();
        let found = BatchSweepResult::of(&timelines, &BatchSweepParams::default());
        let actual: Vec<_> = found
            .rows
            .iter()
            .map(|row| (row.input, row.batch_size, row.mean_iteration_ns, row.peak_memory_bytes))
            .collect();
        let expected = [
            (1, Some(10), Some(200), Some(10_000)),
            (0, Some(40), Some(500), Some(40_000)),
            (2, Some(90), Some(1000), Some(90_000)),
        ];
        assert_eq!(actual, expected);
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-6 * expected;
        assert!(near(found.rows[1].items_per_second, 8e7));
        assert!(near(found.rows[2].item_ns, 1000.0 / 90.0));
        // Iterations 2.5 and 5 times as long as that of the smallest batch.
        assert!(near(found.rows[1].linear_efficiency_ratio, 0.4) && near(found.rows[2].linear_efficiency_ratio, 0.2));
        assert!(near(found.fixed_ns, 100.0) && near(found.further_item_ns, 10.0));
        // 40 items in 500 ns are 89 % of 90 in 1,000.
        assert_eq!(found.knee_batch, Some(90));
        let params = BatchSweepParams {
            knee_percent: 88.0,
            ..BatchSweepParams::default()
        };
        assert_eq!(BatchSweepResult::of(&timelines, &params).knee_batch, Some(40));
    }

    #[test]
    fn sizes_that_are_given_go_before_shapes() {
        let timelines = [program(10), program(10)];
        let params = BatchSweepParams {
            batch_sizes: "64, ".to_owned(),
            ..BatchSweepParams::default()
        };
        let found = BatchSweepResult::of(&[&timelines[0], &timelines[1]], &params);
        let actual: Vec<_> = found
            .rows
            .iter()
            .map(|row| (row.batch_size, row.batch_size_source))
            .collect();
        assert_eq!(
            actual,
            [
                (Some(10), Some(BatchSizeSource::Shapes)),
                (Some(64), Some(BatchSizeSource::Given))
            ]
        );
    }

    #[test]
    fn one_size_has_no_knee_and_nothing_has_no_figures() {
        let timeline = program(10);
        let found = BatchSweepResult::of(&[&timeline], &BatchSweepParams::default());
        assert_eq!((found.knee_batch, found.fixed_ns), (None, None));
        assert!(found.not_captured.iter().any(|missing| missing.what == "the knee"));
        let nothing = BatchSweepResult::of(&[&Timeline::default()], &BatchSweepParams::default());
        assert_eq!((nothing.best_items_per_second, nothing.not_captured.len()), (None, 2));
    }

    proptest! {
        #[test]
        fn the_line_through_points_of_a_line_is_that_line(fixed in 0_u64..1000, further in 1_u64..1000, sizes in prop::collection::btree_set(1_u64..500, 2..8)) {
            let points: Vec<(u64, u64)> = sizes.into_iter().map(|size| (size, fixed + further * size)).collect();
            let (found_fixed, found_further) = line(&points).unwrap();
            prop_assert!((found_fixed - approximate(fixed.into())).abs() < 1e-3);
            prop_assert!((found_further - approximate(further.into())).abs() < 1e-5);
        }
    }
}
