//! A hot kernel that keeps few warps on the multiprocessors.

use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_model::{Category, ColumnId, approximate};
use flopwatch_report::page::{Cell, Unit};

use crate::advice::wording::{share, short, time};
use crate::advice::{Area, Confidence, Evidence, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const HOT: Threshold = Threshold::percent("a kernel's time of all kernel time", 10, "ours");
const OCCUPANCY: Threshold = Threshold::percent(
    "occupancy, below which it fires",
    25,
    "ours: below a quarter of the warps there are few to hide the latency of memory",
);

/// Fires where a kernel with a large share of the time has a low occupancy.
pub(super) static RULE: Rule = Rule {
    id: "low-occupancy",
    title: "A hot kernel has a low occupancy",
    area: Area::Kernels,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[HOT, OCCUPANCY],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(200_000), || scene(250_000)],
};

#[derive(Debug, Clone, Copy, Default)]
struct OfName {
    total_ns: u64,
    launches: u64,
    /// Occupancy in millionths times length, and the length that it is known of.
    weighted: u128,
    known_ns: u64,
    registers: u64,
}

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let Some(kernels) = facts.events(Category::CudaKernel) else {
        return Verdict::Quiet;
    };
    let column = [ColumnId::AchievedOccupancy, ColumnId::TheoreticalOccupancy];
    let Some((kind, occupancy)) = column.iter().find_map(|id| Some((*id, kernels.column(*id)?))) else {
        return Verdict::abstain(
            "the source says no occupancy of kernels; Kineto traces estimate it, and Nsight Compute measures it (sm__warps_active)",
        );
    };
    let registers = kernels.column(ColumnId::Registers);
    let mut names = vec![OfName::default(); kernels.names.len()];
    for (at, (name, length)) in kernels.name.iter().zip(&kernels.duration_ns).enumerate() {
        let Some(entry) = names.get_mut(name.index()) else {
            continue;
        };
        entry.total_ns += length;
        entry.launches += 1;
        entry.registers = entry
            .registers
            .max(registers.and_then(|column| column.get(at)).unwrap_or(0));
        let achieved = occupancy
            .get(at)
            // Kineto rounds its estimate to whole percent: 0 is unknown, or below a half.
            .filter(|value| *value != u64::from(ColumnId::UNKNOWN) && *value > 0);
        if let Some(achieved) = achieved {
            entry.weighted += u128::from(achieved) * u128::from(*length);
            entry.known_ns += length;
        }
    }
    if names.iter().all(|entry| entry.known_ns == 0) {
        return Verdict::abstain(
            "the source says an occupancy of 0 % of every kernel, which is unknown or rounded; Nsight Compute measures it (sm__warps_active)",
        );
    }
    let all: u64 = names.iter().map(|entry| entry.total_ns).sum();
    let hot = names.iter().zip(&kernels.names).filter(|(entry, name)| {
        let computes = WorkClass::of(Category::CudaKernel, name) == Some(WorkClass::Compute);
        computes && HOT.reached(entry.total_ns, all) && entry.known_ns > 0
    });
    // Below the threshold in millionths: 25 % are 250,000.
    let low =
        hot.filter(|(entry, _)| entry.weighted < u128::from(OCCUPANCY.value) * 10_000 * u128::from(entry.known_ns));
    let mut low: Vec<(&OfName, &String)> = low.collect();
    low.sort_by_key(|(entry, _)| std::cmp::Reverse(entry.total_ns));
    let Some((first, name)) = low.first().copied() else {
        return Verdict::Quiet;
    };
    let mean = |entry: &OfName| approximate(entry.weighted / u128::from(entry.known_ns.max(1))) / 10_000.0;
    let rows = low.iter().take(facts.rows).map(|(entry, name)| Evidence {
        what: format!(
            "occupancy of {} ({} registers per thread)",
            short(name),
            entry.registers
        ),
        value: Cell::from(mean(entry)),
        unit: Unit::Percent,
        place: None,
    });
    let kind = if kind == ColumnId::AchievedOccupancy {
        "an estimated"
    } else {
        "a theoretical"
    };
    FindingDraft::new(format!(
        "{} takes {} ({} of kernel time) at {kind} occupancy of {:.0} %.",
        short(name),
        time(first.total_ns),
        share(first.total_ns, all),
        mean(first)
    ))
    .severity(Severity::Low)
    .confidence(Confidence::Low)
    .at(rows)
    .do_this("Confirm with Nsight Compute that latency bounds it (both throughputs below 60 %): kernels of matrix multiplication are fast at a low occupancy by design.")
    .do_this("If so: fewer registers or less shared memory per block, smaller blocks, or more blocks (a larger batch).")
    .into()
}

#[cfg(test)]
fn scene(millionths: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    let kernel = scene.kernel("gemm", (0, 100));
    scene.number(kernel, ColumnId::AchievedOccupancy, millionths);
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rule::judge;

    #[test]
    fn an_occupancy_that_was_rounded_to_nothing_is_not_known() {
        let timeline = scene(0);
        let verdict = judge(&RULE, &Facts::of(&timeline, 5));
        assert!(
            matches!(&verdict, Verdict::Abstains(reason) if reason.contains("0 %")),
            "{verdict:?}"
        );
    }
}
