//! How the kernels of two captures differ: before and after a change.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError, InputCount};
use crate::input::Inputs;
use crate::model::{Category, Figures, Timeline, approximate, figures_by_key};
use crate::needs::{Needs, Selection};

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
    /// Whether both captures recorded kernels. `false` means that one did not, which is not the same as no kernels.
    pub captured: bool,
    /// Total time in ns of all kernels before.
    pub before_total_ns: u64,
    /// The same after.
    pub after_total_ns: u64,
    /// Kernels that differ or not, in the result or not.
    pub kernels: usize,
    /// The kernels.
    pub rows: Vec<Change>,
}

/// One kernel in both captures.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The kernel's name.
    pub name: String,
    /// Which captures it is in.
    pub presence: Presence,
    /// Total time in ns before.
    pub before_total_ns: u64,
    /// Total time in ns after.
    pub after_total_ns: u64,
    /// `after_total_ns` less `before_total_ns`.
    pub difference_ns: i64,
    /// Launches before.
    pub before_launches: u64,
    /// Launches after.
    pub after_launches: u64,
    /// Mean time in ns of a launch before; null without any.
    pub before_mean_ns: Option<f64>,
    /// Mean time in ns of a launch after; null without any.
    pub after_mean_ns: Option<f64>,
}

/// Which captures a kernel is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// Both.
    Both,
    /// The first alone: it is gone.
    Before,
    /// The second alone: it is new.
    After,
}

impl Analysis for KernelChanges {
    const NAME: &'static str = "kernel-changes";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "Time, launches and mean of each kernel in two captures, before and after, and the difference.";
    const INPUTS: InputCount = InputCount::Two;
    const NEEDS: Needs = Needs {
        categories: Selection::Only(&[Category::CudaKernel]),
        names: true,
        ..Needs::NOTHING
    };
    type Params = KernelChangesParams;
    type Output = Changes;

    fn run(inputs: &Inputs<'_>, params: &KernelChangesParams) -> Result<Changes, AnalysisError> {
        let (before, after) = (inputs.first(), inputs.second());
        let mut kernels: BTreeMap<&str, (Figures, Figures)> = BTreeMap::new();
        for (name, figures) in by_name(before) {
            kernels.entry(name).or_default().0 = figures;
        }
        for (name, figures) in by_name(after) {
            kernels.entry(name).or_default().1 = figures;
        }
        kernels.retain(|name, _| name.contains(&params.name_contains));
        let sum = |figures: fn(&(Figures, Figures)) -> u128| narrow(kernels.values().map(figures).sum());
        let captured = |timeline: &Timeline| timeline.capture.captured.contains(&Category::CudaKernel);
        let mut changes = Changes {
            captured: captured(before) && captured(after),
            before_total_ns: sum(|(before, _)| before.total),
            after_total_ns: sum(|(_, after)| after.total),
            kernels: kernels.len(),
            rows: kernels
                .iter()
                .map(|(name, (before, after))| Change::of(name, before, after))
                .collect(),
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
    fn of(name: &str, before: &Figures, after: &Figures) -> Self {
        let mean = |figures: &Figures| {
            let count = approximate(u128::from(figures.count));
            (figures.count > 0).then(|| approximate(figures.total) / count)
        };
        let (before_total_ns, after_total_ns) = (narrow(before.total), narrow(after.total));
        let difference = i128::from(after_total_ns) - i128::from(before_total_ns);
        Self {
            name: name.to_owned(),
            presence: match (before.count, after.count) {
                (_, 0) => Presence::Before,
                (0, _) => Presence::After,
                _ => Presence::Both,
            },
            before_total_ns,
            after_total_ns,
            difference_ns: i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX }),
            before_launches: before.count,
            after_launches: after.count,
            before_mean_ns: mean(before),
            after_mean_ns: mean(after),
        }
    }
}

fn narrow(total: u128) -> u64 {
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// The figures of each kernel that ran.
fn by_name(timeline: &Timeline) -> Vec<(&str, Figures)> {
    let Some(kernels) = timeline.capture.events.get(&Category::CudaKernel) else {
        return Vec::new();
    };
    let count = u32::try_from(kernels.names.len()).unwrap_or(u32::MAX);
    let figures = figures_by_key(count, &kernels.name, kernels.duration_ns.iter().copied());
    let named = kernels.names.iter().map(String::as_str).zip(figures);
    named.filter(|(_, figures)| figures.count > 0).collect()
}
