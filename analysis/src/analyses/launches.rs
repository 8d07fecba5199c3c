//! How long launching takes, and how long launched work waits.

use std::cmp::Reverse;

use flopwatch_measures::largest::largest;
use flopwatch_measures::launch::{Launch, LaunchCoverage, LaunchJoin, Spread};
use flopwatch_measures::work::{GPU_WORK, GpuWork, Work};
use flopwatch_model::{Category, ColumnId, Needs, RowId, Timeline, figures_by_key, gpu_work_and, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table, Tile, TimelineLocation, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cut::cut;
use crate::definition::{Analysis, AnalysisError};
use crate::input::Inputs;

/// Lengths of launching calls and of what they launched, and the delay between.
#[derive(Debug)]
pub struct Launches;

/// Parameters of [`Launches`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LaunchesParams {
    /// A call longer than this, in ns, is slow.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub slow_call_ns: u64,
    /// Work that begins later than this behind the end of its call, in ns, is late.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub late_ns: u64,
    /// Whether copies and memsets count beside kernels.
    pub include_memory: bool,
    /// Most rows of each list.
    #[schemars(range(min = 1, max = 10_000))]
    pub limit: u32,
}

impl Default for LaunchesParams {
    fn default() -> Self {
        Self {
            slow_call_ns: 50_000,
            late_ns: 100_000,
            include_memory: true,
            limit: 50,
        }
    }
}

/// The result of the analysis `launches`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct LaunchFigures {
    /// How much of the work has its call.
    pub coverage: LaunchCoverage,
    /// Lengths of the calls. One that launched several GPU operations counts once.
    pub call: Spread,
    /// Lengths of the work that they launched.
    pub gpu: Spread,
    /// From the end of a call to the start of its first work; 0 where the work began before.
    pub delay: Spread,
    /// Calls whose first work ran shorter than they did: launching it cost more than it did.
    pub short_gpu_ops: u64,
    /// Calls longer than the threshold.
    pub slow_calls: u64,
    /// Calls whose first work began later than the threshold behind them.
    pub late_gpu_ops: u64,
    /// The figures per kernel, copy and memset, the most often launched first.
    pub names: Vec<LaunchesOfName>,
    /// Names that were left out.
    pub names_left_out: u64,
    /// The longest calls, longest first.
    pub slowest_calls: Vec<LaunchRow>,
    /// GPU operations with the longest delay, longest first.
    pub latest_gpu_ops: Vec<LaunchRow>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// Launches of one name.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LaunchesOfName {
    /// The kernel's, copy's or memset's.
    pub name: String,
    /// Category of the work.
    pub category: Category,
    /// Lengths of the calls, those counted of which this was the first work.
    pub call: Spread,
    /// Lengths on the GPU.
    pub gpu: Spread,
    /// Delays behind those calls.
    pub delay: Spread,
    /// Those calls whose first work ran shorter than they did.
    pub short_gpu_ops: u64,
}

/// A call and its first work.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LaunchRow {
    /// Name of the function that was called.
    pub call_name: String,
    /// Start of the call in ns since the session's start.
    pub call_start_ns: u64,
    /// Length of the call in ns.
    pub call_ns: u64,
    /// Name of the kernel, copy or set that it launched.
    pub work_name: String,
    /// Start of the work in ns.
    pub work_start_ns: u64,
    /// Length of the work in ns.
    pub work_ns: u64,
    /// The timeline's row of the work.
    pub work_row: RowId,
    /// From the end of the call to the start of the work in ns.
    pub delay_ns: u64,
}

const NEEDED: &[Category] = gpu_work_and![Category::CudaApi];

fn is_short(launch: &Launch) -> bool {
    launch.work.time.len() < launch.call.len()
}

impl LaunchRow {
    fn of(timeline: &Timeline, launch: &Launch) -> Self {
        let calls = timeline.capture.events.get(&Category::CudaApi);
        Self {
            call_name: calls.map_or("", |calls| calls.name_of(launch.at)).to_owned(),
            call_start_ns: launch.call.start,
            call_ns: launch.call.len(),
            work_name: launch.work.name(timeline).to_owned(),
            work_start_ns: launch.work.time.start,
            work_ns: launch.work.time.len(),
            work_row: launch.work.row,
            delay_ns: launch.delay_ns(),
        }
    }
}

/// The `limit` of `launches` with the largest `key` above `above`, largest first and of equal ones
/// the earlier call, as rows, and how many are above.
fn rows_of(
    timeline: &Timeline,
    launches: &[&Launch],
    (limit, above): (u32, u64),
    key: impl Fn(&Launch) -> u64,
) -> (Vec<LaunchRow>, u64) {
    let mut count = 0;
    let found = launches.iter().copied().filter(|launch| key(launch) > above);
    let found = found.inspect(|_| count += 1);
    let found = largest(found, index(limit), |launch| (key(launch), Reverse(launch.call.start)));
    let rows = found.into_iter().map(|launch| LaunchRow::of(timeline, launch));
    (rows.collect(), count)
}

/// Figures of `launches` per name.
fn names(timeline: &Timeline, launches: &[&Launch], limit: u32) -> (Vec<LaunchesOfName>, u64) {
    // Names of all categories get numbers one behind the other.
    let mut first = std::collections::BTreeMap::new();
    let mut known: Vec<(Category, &str)> = Vec::new();
    for category in GPU_WORK.iter().copied() {
        first.insert(category, known.len());
        let names = timeline.capture.events.get(&category).map(|events| events.names.iter());
        known.extend(names.into_iter().flatten().map(|name| (category, name.as_str())));
    }
    let number = |launch: &Launch| {
        let name = launch.work.events(timeline)?.name.get(index(launch.work.at))?;
        u32::try_from(first.get(&launch.work.category)? + name.index()).ok()
    };
    let numbers = |launches: &[&Launch]| -> Vec<u32> {
        launches
            .iter()
            .map(|launch| number(launch).unwrap_or(u32::MAX))
            .collect()
    };
    let count = u32::try_from(known.len()).unwrap_or(u32::MAX);
    let all = numbers(launches);
    let firsts: Vec<&Launch> = launches.iter().copied().filter(|launch| launch.is_first).collect();
    let of_firsts = numbers(&firsts);
    let of_first = |value: fn(&Launch) -> u64| {
        let firsts = &firsts;
        figures_by_key(count, &of_firsts, move |at| {
            firsts.get(at).map_or(0, |launch| value(launch))
        })
    };
    let gpu = figures_by_key(count, &all, |at| {
        launches.get(at).map_or(0, |launch| launch.work.time.len())
    });
    let (call, delay) = (of_first(|launch| launch.call.len()), of_first(Launch::delay_ns));
    let mut short = vec![0_u64; known.len()];
    for (number, launch) in of_firsts.iter().zip(&firsts) {
        if let Some(short) = short.get_mut(index(*number)).filter(|_| is_short(launch)) {
            *short += 1;
        }
    }
    let figures = gpu.iter().zip(call.iter().zip(&delay)).zip(short);
    let mut rows: Vec<LaunchesOfName> = known
        .into_iter()
        .zip(figures)
        .filter(|(_, ((gpu, _), _))| gpu.count > 0)
        .map(
            |((category, name), ((gpu, (call, delay)), short_gpu_ops))| LaunchesOfName {
                name: name.to_owned(),
                category,
                call: Spread::from(call),
                gpu: Spread::from(gpu),
                delay: Spread::from(delay),
                short_gpu_ops,
            },
        )
        .collect();
    rows.sort_by(|a, b| b.gpu.count.cmp(&a.gpu.count).then_with(|| a.name.cmp(&b.name)));
    let left_out = cut(&mut rows, limit);
    (rows, left_out)
}

impl Launches {
    /// Of `timeline`, of which GPU work, calls, names and the column of launches were read.
    pub fn of(timeline: &Timeline, params: &LaunchesParams) -> LaunchFigures {
        let mut work = GpuWork::of(timeline);
        if !params.include_memory {
            let computes = |work: &Work| matches!(work.category, Category::CudaKernel | Category::CudaGraph);
            work = GpuWork::sorted(work.all().iter().copied().filter(computes).collect());
        }
        let joined = LaunchJoin::of(timeline, &work);
        let launches: Vec<&Launch> = joined.launches.iter().collect();
        let firsts: Vec<&Launch> = launches.iter().copied().filter(|launch| launch.is_first).collect();
        let slow = || {
            rows_of(timeline, &firsts, (params.limit, params.slow_call_ns), |launch| {
                launch.call.len()
            })
        };
        let late = || rows_of(timeline, &firsts, (params.limit, params.late_ns), Launch::delay_ns);
        let spreads = || -> [Spread; 3] {
            [
                firsts.iter().map(|launch| launch.call.len()).collect(),
                launches.iter().map(|launch| launch.work.time.len()).collect(),
                firsts.iter().map(|launch| launch.delay_ns()).collect(),
            ]
        };
        let ([call, gpu, delay], (rows, (names, names_left_out))) =
            rayon::join(spreads, || ((slow(), late()), names(timeline, &launches, params.limit)));
        let ((slowest_calls, slow_calls), (latest_gpu_ops, late_gpu_ops)) = rows;
        LaunchFigures {
            coverage: joined.coverage(),
            call,
            gpu,
            delay,
            short_gpu_ops: u64::try_from(firsts.iter().filter(|launch| is_short(launch)).count()).unwrap_or(u64::MAX),
            slow_calls,
            late_gpu_ops,
            names,
            names_left_out,
            slowest_calls,
            latest_gpu_ops,
            not_captured: not_captured(timeline, "launches"),
        }
    }
}

/// Why figures of launches are missing, where they are.
pub(crate) fn not_captured(timeline: &Timeline, what: &str) -> Vec<NotCaptured> {
    NotCaptured::of_parts(&timeline.capture, &[(GPU_WORK, what), (&[Category::CudaApi], what)])
}

impl Analysis for Launches {
    const NAME: &'static str = "launches";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "How long launching calls take, how long their work runs and waits, which GPU operations are shorter than their launch.";
    const TITLE: &'static str = "Launches";
    const GROUP: crate::Group = crate::Group::Launches;
    const NEEDS: Needs = Needs::of(NEEDED).columns(&[ColumnId::Launch]).names().rows();
    type Params = LaunchesParams;
    type Output = LaunchFigures;

    fn run(inputs: &Inputs<'_>, params: &LaunchesParams) -> Result<LaunchFigures, AnalysisError> {
        Ok(Self::of(inputs.first(), params))
    }

    fn page(output: &LaunchFigures) -> Result<Page, AnalysisError> {
        let mut page = Page::of(Self::TITLE, Self::ABOUT, &output.not_captured);
        page.tiles([
            Tile::new("GPU ops", output.coverage.gpu_ops),
            Tile::figure("With their call", Unit::Ratio, output.coverage.joined_ratio),
            Tile::figure("Med call", Unit::Ns, output.call.median_ns),
            Tile::figure("Med work", Unit::Ns, output.gpu.median_ns),
            Tile::figure("Med delay", Unit::Ns, output.delay.median_ns),
            Tile::new("Shorter than their call", output.short_gpu_ops),
            Tile::new("Slow calls", output.slow_calls),
            Tile::new("Late GPU ops", output.late_gpu_ops),
        ]);
        page.table(
            Table::of("Launches per name", &output.names)
                .left_out(output.names_left_out)
                .column("Name", |name| name.name.as_str())
                .column("GPU ops", |name| name.gpu.count)
                .figure("Avg call", Unit::Ns, |name| {
                    (name.call.count > 0).then_some(name.call.mean_ns)
                })
                .figure("Avg work", Unit::Ns, |name| name.gpu.mean_ns)
                .figure("Avg delay", Unit::Ns, |name| {
                    (name.delay.count > 0).then_some(name.delay.mean_ns)
                })
                .figure("Med delay", Unit::Ns, |name| {
                    (name.delay.count > 0).then_some(name.delay.median_ns)
                })
                .column("Shorter than their call", |name| name.short_gpu_ops),
        );
        page.table(rows_table("Slowest calls", &output.slowest_calls, output.slow_calls));
        page.table(rows_table(
            "Latest GPU ops",
            &output.latest_gpu_ops,
            output.late_gpu_ops,
        ));
        Ok(page)
    }
}

fn rows_table(title: &str, rows: &[LaunchRow], found: u64) -> impl Into<Table> {
    let ns = Unit::Ns;
    Table::of(title, rows)
        .left_out(found.saturating_sub(u64::try_from(rows.len()).unwrap_or(u64::MAX)))
        .column("Call", |row| row.call_name.as_str())
        .figure("Length of call", ns, |row| row.call_ns)
        .figure("Delay", ns, |row| row.delay_ns)
        .column("Work", |row| row.work_name.as_str())
        .figure("Length of work", ns, |row| row.work_ns)
        .at(|row| {
            TimelineLocation::new(
                row.call_start_ns,
                row.work_start_ns.max(row.call_start_ns) + row.work_ns,
                Some(row.work_row),
            )
        })
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;

    use super::*;

    #[test]
    fn calls_works_and_delays_are_counted_apart() {
        let mut trace = Trace::new();
        let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
        trace.launch_kernel((thread, 0, 10), (stream, "gemm", 15, 45));
        trace.launch_kernel((thread, 20, 50), (stream, "relu", 45, 50));
        trace.launch((thread, 50, 60), Category::CudaMemset, (stream, "Memset", 160, 161));
        trace.kernel(stream, "unknown", 200, 210);
        let timeline = trace.build();
        let params = LaunchesParams {
            slow_call_ns: 20,
            late_ns: 99,
            ..LaunchesParams::default()
        };
        let found = Launches::of(&timeline, &params);
        assert_eq!((found.coverage.gpu_ops, found.coverage.joined), (4, 3));
        assert_eq!((found.call.count, found.call.sum_ns, found.gpu.sum_ns), (3, 50, 36));
        // relu began inside its call.
        assert_eq!(
            (found.delay.sum_ns, found.delay.median_ns, found.delay.max_ns),
            (105, 5.0, 100)
        );
        assert_eq!((found.short_gpu_ops, found.slow_calls, found.late_gpu_ops), (2, 1, 1));
        assert_eq!(found.slowest_calls[0].work_name, "relu");
        assert_eq!(found.latest_gpu_ops[0].delay_ns, 100);
        let kernels = LaunchesParams {
            include_memory: false,
            ..params
        };
        assert_eq!(Launches::of(&timeline, &kernels).call.count, 2);
    }

    #[test]
    fn a_capture_without_calls_says_why_there_are_no_launches() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        trace.kernel(stream, "k", 0, 10);
        let found = Launches::of(&trace.build(), &LaunchesParams::default());
        assert_eq!((found.coverage.joined, found.call.count), (0, 0));
        assert!(found.not_captured[0].reason.contains("no CUDA API calls"));
    }
}
