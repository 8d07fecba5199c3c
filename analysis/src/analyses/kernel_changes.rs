//! How the kernels of two captures differ: before and after a change.

use flopwatch_measures::counterpart::{Counterpart, MatchedBy, NameTally, Parts, Presence, Tally, Units, counterparts};
use flopwatch_measures::kernel_name;
use flopwatch_model::{Category, Needs, Timeline, approximate, figures_by_key, listed};
use flopwatch_report::NotCaptured;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::group::Group;
use crate::input::Inputs;

/// Time, launches and mean of each kernel in two captures.
#[derive(Debug)]
pub struct KernelChanges;

/// Parameters of [`KernelChanges`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KernelChangesParams {
    /// Most kernels in the result, those whose total time differs most.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
    /// Only kernels whose name contains this text.
    #[schemars(length(max = 1024))]
    pub name_contains: String,
}

impl Default for KernelChangesParams {
    fn default() -> Self {
        Self {
            limit: 1000,
            name_contains: String::new(),
        }
    }
}

/// The result: a row per kernel, the largest difference of total time first.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Changes {
    /// Total time in ns of all kernels before.
    pub before_total_ns: u64,
    /// The same after.
    pub after_total_ns: u64,
    /// Kernels that differ or not, in the result or not.
    pub kernels: usize,
    /// The kernels.
    pub rows: Vec<Change>,
    /// Parts of the result that the capture has no data for, each with the reason.
    pub not_captured: Vec<NotCaptured>,
}

/// One kernel in both captures.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The kernel's name; its short name where several of a side are one.
    pub name: String,
    /// Which captures it is in.
    pub presence: Presence,
    /// By what the two sides were matched. Kernels whose whole name has no counterpart are matched
    /// by their short name.
    pub matched_by: MatchedBy,
    /// Total time in ns before.
    pub before_total_ns: u64,
    /// Total time in ns after.
    pub after_total_ns: u64,
    /// `after_total_ns` less `before_total_ns`.
    pub difference_ns: i64,
    /// The part of the difference in ns that comes from more or fewer launches: their change times
    /// the mean before, rounded once.
    pub count_part_ns: i64,
    /// The rest, in ns: launches after times the change of the mean.
    pub duration_part_ns: i64,
    /// Launches before.
    pub before_launches: u64,
    /// Launches after.
    pub after_launches: u64,
    /// Mean time in ns of a launch before; null without any.
    pub before_mean_ns: Option<f64>,
    /// Mean time in ns of a launch after; null without any.
    pub after_mean_ns: Option<f64>,
}

impl Analysis for KernelChanges {
    const NAME: &'static str = "kernel-changes";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "Time, launches and mean of each kernel in two captures, before and after, and what comes of launches and of their length.";
    const INPUTS: InputCount = InputCount::Two;
    const TITLE: &'static str = "Changes of kernels";
    const GROUP: Group = Group::Comparison;
    const NEEDS: Needs = Needs::of(&[Category::CudaKernel, Category::CudaGraph])
        .names()
        .name_details();
    type Params = KernelChangesParams;
    type Output = Changes;

    fn run(inputs: &Inputs<'_>, params: &KernelChangesParams) -> Result<Changes, AnalysisError> {
        let (before, after) = (inputs.first(), inputs.second());
        let mut kernels = counterparts(&by_name(before), &by_name(after));
        kernels.retain(|kernel| kernel.name.contains(&params.name_contains));
        let sum =
            |tally: fn(&Counterpart<'_>) -> Tally| narrow(kernels.iter().map(|kernel| tally(kernel).total_ns).sum());
        let missing = [(before, "kernels before"), (after, "kernels after")];
        let missing =
            missing.map(|(timeline, what)| NotCaptured::unless_any(&timeline.capture, &[Category::CudaKernel], what));
        let mut changes = Changes {
            before_total_ns: sum(|kernel| kernel.before),
            after_total_ns: sum(|kernel| kernel.after),
            kernels: kernels.len(),
            rows: kernels.iter().map(Change::of).collect(),
            not_captured: missing.into_iter().flatten().collect(),
        };
        changes.rows.sort_by(|a, b| {
            let size = |change: &Change| change.difference_ns.unsigned_abs();
            size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
        });
        changes
            .rows
            .truncate(usize::try_from(params.limit).unwrap_or(usize::MAX));
        Ok(changes)
    }
}

impl Change {
    fn of(kernel: &Counterpart<'_>) -> Self {
        let mean = |tally: Tally| {
            let count = approximate(tally.count.into());
            (tally.count > 0).then(|| approximate(tally.total_ns) / count)
        };
        let parts = Parts::of(kernel.before, kernel.after, Units::WHOLE);
        Self {
            name: kernel.name.to_owned(),
            presence: kernel.presence(),
            matched_by: kernel.matched_by,
            before_total_ns: parts.before_ns,
            after_total_ns: parts.after_ns,
            difference_ns: parts.difference_ns,
            count_part_ns: parts.count_ns,
            duration_part_ns: parts.duration_ns,
            before_launches: kernel.before.count,
            after_launches: kernel.after.count,
            before_mean_ns: mean(kernel.before),
            after_mean_ns: mean(kernel.after),
        }
    }
}

fn narrow(total: u128) -> u64 {
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// The kernels that ran, each name once.
fn by_name(timeline: &Timeline) -> Vec<NameTally<'_>> {
    let Some(kernels) = timeline.capture.events.get(&Category::CudaKernel) else {
        return Vec::new();
    };
    let count = u32::try_from(kernels.names.len()).unwrap_or(u32::MAX);
    let figures = figures_by_key(count, &kernels.name, listed(&kernels.duration_ns));
    let named = kernels.names.iter().zip(figures).enumerate();
    let named = named.map(|(position, (name, figures))| NameTally {
        name,
        short: kernel_name::short_of(kernels, position),
        tally: Tally {
            count: figures.count,
            total_ns: figures.total,
        },
        longest: None,
    });
    named.filter(|named| named.tally.count > 0).collect()
}
