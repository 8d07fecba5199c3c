//! Whether two captures can be compared: a score, and each reason for what it lacks.

use flopwatch_measures::counterpart::{Presence, Units};
use flopwatch_measures::iteration::IterationSource;
use flopwatch_model::{approximate, count};
use flopwatch_report::page::category::label;
use schemars::JsonSchema;
use serde::Serialize;

use super::differences::TimeDifference;
use super::side::Side;

/// What is left of the score where two profilers with different costs recorded.
const OTHER_PROFILER: f64 = 0.5;
/// The factor of the amount of work.
const LAUNCHES: &str = "launches";

/// How well two captures can be compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparability {
    /// The product of the factors, from 0 (not at all) to 1.
    pub score_ratio: f64,
    /// What it is made of.
    pub factors: Vec<ComparabilityFactor>,
}

/// A part of the score.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparabilityFactor {
    /// What is compared, such as `gpus`.
    pub name: String,
    /// From 0 to 1; 1 lowers nothing.
    pub ratio: f64,
    /// What was found, in a sentence.
    pub about: String,
}

impl Comparability {
    /// The fewer launches of kernels over the more, per iteration or capture; 1 of none.
    pub(super) fn same_work_ratio(&self) -> f64 {
        let found = self.factors.iter().find(|factor| factor.name == LAUNCHES);
        found.map_or(1.0, |factor| factor.ratio)
    }
}

pub(super) fn of(before: &Side<'_>, after: &Side<'_>, units: Units, kernels: &[TimeDifference]) -> Comparability {
    let factors = vec![
        recorded(before, after),
        gpus(before, after),
        profiler(before, after),
        kernel_overlap(kernels),
        launches(kernels, units),
        iterations(before, after),
        lengths(before, after),
        losses(before, after),
    ];
    let product: f64 = factors.iter().map(|factor| factor.ratio).product();
    Comparability {
        score_ratio: product,
        factors,
    }
}

fn factor(name: &str, ratio: f64, about: impl Into<String>) -> ComparabilityFactor {
    ComparabilityFactor {
        name: name.to_owned(),
        ratio,
        about: about.into(),
    }
}

/// The smaller over the larger; 1 of two zeros.
fn ratio(one: u128, other: u128) -> f64 {
    let (low, high) = (one.min(other), one.max(other));
    if high == 0 {
        1.0
    } else {
        approximate(low) / approximate(high)
    }
}

fn recorded(before: &Side<'_>, after: &Side<'_>) -> ComparabilityFactor {
    let name = "recorded";
    match (before.work.all().is_empty(), after.work.all().is_empty()) {
        (false, false) => factor(name, 1.0, "Both hold work of GPUs."),
        (true, true) => factor(
            name,
            1.0,
            "Neither holds work of GPUs: ranges and iterations alone are compared.",
        ),
        (true, false) => factor(
            name,
            0.0,
            "The first capture holds no work of GPUs: check that it recorded the program.",
        ),
        (false, true) => factor(
            name,
            0.0,
            "The second capture holds no work of GPUs: check that it recorded the program.",
        ),
    }
}

fn gpus(before: &Side<'_>, after: &Side<'_>) -> ComparabilityFactor {
    let name = "gpus";
    let (old, new) = (before.gpus(), after.gpus());
    if old.is_empty() || new.is_empty() {
        return factor(name, 1.0, "No work of GPUs to compare on one side or both.");
    }
    let count = |list: &[String]| u128::try_from(list.len()).unwrap_or(u128::MAX);
    if old.iter().chain(&new).any(String::is_empty) {
        let about = format!(
            "{} and {} GPUs did work; a source does not name their models.",
            old.len(),
            new.len()
        );
        return factor(name, ratio(count(&old), count(&new)), about);
    }
    let models = |list: &[String]| {
        let mut models = list.to_vec();
        models.dedup();
        models
    };
    if models(&old) != models(&new) {
        let about = format!(
            "The models differ: {} and {}.",
            models(&old).join(", "),
            models(&new).join(", ")
        );
        return factor(name, 0.0, about);
    }
    let about = if old.len() == new.len() {
        format!("Both ran on {} x {}.", old.len(), models(&old).join(", "))
    } else {
        format!("{} and {} GPUs of the same model did work.", old.len(), new.len())
    };
    factor(name, ratio(count(&old), count(&new)), about)
}

fn profiler(before: &Side<'_>, after: &Side<'_>) -> ComparabilityFactor {
    let name = "profiler";
    let (old, new) = (&before.timeline.capture.source, &after.timeline.capture.source);
    if old.tool != new.tool {
        let about = format!("{} and {} slow a program down differently.", old.tool, new.tool);
        return factor(name, OTHER_PROFILER, about);
    }
    let (old_set, new_set) = (&before.timeline.capture.captured, &after.timeline.capture.captured);
    let other: Vec<&str> = old_set
        .symmetric_difference(new_set)
        .map(|category| label(*category))
        .collect();
    let mut about = if old.tool_version == new.tool_version {
        "The same profiler.".to_owned()
    } else {
        format!(
            "The same profiler in versions {} and {}.",
            old.tool_version, new.tool_version
        )
    };
    if !other.is_empty() {
        about = format!(
            "{about} One side alone recorded {}, which costs time.",
            other.join(", ")
        );
    }
    factor(name, 1.0, about)
}

/// The share of the kernels' time, of both sides, that kernels of both have.
fn kernel_overlap(kernels: &[TimeDifference]) -> ComparabilityFactor {
    let name = "kernels";
    let time = |kernel: &TimeDifference| u128::from(kernel.before_ns) + u128::from(kernel.after_ns);
    let all: u128 = kernels.iter().map(time).sum();
    let shared: u128 = kernels
        .iter()
        .filter(|kernel| kernel.presence == Presence::Both)
        .map(time)
        .sum();
    if all == 0 {
        return factor(name, 1.0, "No time of kernels to compare.");
    }
    let share = approximate(shared) / approximate(all);
    let about = format!(
        "Kernels that both have make up {:.1} % of the kernels' time.",
        share * 100.0
    );
    factor(name, share, about)
}

/// Launches per unit: the amount of work.
fn launches(kernels: &[TimeDifference], units: Units) -> ComparabilityFactor {
    if kernels.is_empty() {
        return factor(LAUNCHES, 1.0, "No launches to compare.");
    }
    let sum = |calls: fn(&TimeDifference) -> u64| kernels.iter().map(|kernel| u128::from(calls(kernel))).sum::<u128>();
    let (before, after) = (sum(|kernel| kernel.before_calls), sum(|kernel| kernel.after_calls));
    let (old_units, new_units) = (u128::from(units.before), u128::from(units.after));
    let each = |calls: u128, units: u128| approximate(calls) / approximate(units);
    let about = format!(
        "Kernels per iteration or capture: {:.1} and {:.1}.",
        each(before, old_units),
        each(after, new_units)
    );
    factor(LAUNCHES, ratio(before * new_units, after * old_units), about)
}

fn iterations(before: &Side<'_>, after: &Side<'_>) -> ComparabilityFactor {
    let (old, new) = (before.iterations.len(), after.iterations.len());
    let unit = before.found.unit();
    let mut about = match (before.found.source, after.found.source) {
        _ if old > 0 && old == new => format!(
            "Both have {old} {} ({}).",
            unit.of(count(old)),
            describe_iterations(before)
        ),
        _ if old > 0 => format!(
            "They have {old} and {new} {} ({}); times are compared per {}.",
            unit.many,
            describe_iterations(before),
            unit.one
        ),
        (Some(_), Some(_)) if describe_iterations(before) != describe_iterations(after) => format!(
            "Whole captures are compared: the iterations of one are {}, those of the other {}.",
            describe_iterations(before),
            describe_iterations(after)
        ),
        (Some(_), Some(_)) => {
            "Whole captures are compared, as was asked for or because all iterations are left out.".to_owned()
        }
        _ => "Whole captures are compared: one or both have no iterations.".to_owned(),
    };
    let cautions = before.found.cautions.iter().chain(&after.found.cautions);
    if old > 0
        && let Some(caution) = cautions.into_iter().next()
    {
        about = format!("{about} {caution}");
    }
    factor("iterations", 1.0, about)
}

/// What the iterations of a side are, for people.
fn describe_iterations(side: &Side<'_>) -> String {
    match side.found.source {
        Some(IterationSource::KernelPeriod) => "periods of the sequence of kernels".to_owned(),
        _ => side.found.name.clone(),
    }
}

/// Twice as long is what a regression may look like; still longer is another program, or another
/// window.
fn lengths(before: &Side<'_>, after: &Side<'_>) -> ComparabilityFactor {
    let name = "lengths";
    let length = |side: &Side<'_>| side.timeline.capture.duration_ns;
    let (old, new) = (length(before), length(after));
    let seconds = |ns: u64| approximate(ns.into()) / 1e9;
    let about = format!("The captures are {:.3} s and {:.3} s long.", seconds(old), seconds(new));
    if !before.iterations.is_empty() {
        return factor(name, 1.0, about);
    }
    factor(name, (2.0 * ratio(old.into(), new.into())).min(1.0), about)
}

fn losses(before: &Side<'_>, after: &Side<'_>) -> ComparabilityFactor {
    let name = "losses";
    let kept = |side: &Side<'_>| {
        let (kept, lost) = (u128::from(side.timeline.total_events()), u128::from(side.lost()));
        ratio(kept, kept + lost)
    };
    let (old, new) = (before.lost(), after.lost());
    if old == 0 && new == 0 {
        return factor(name, 1.0, "Neither profiler says that it lost events.");
    }
    let about = format!("The profiler says that it lost {old} and {new} events.");
    factor(name, kept(before).min(kept(after)), about)
}
