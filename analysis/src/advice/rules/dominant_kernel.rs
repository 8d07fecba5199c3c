//! One kernel that takes most of the kernels' time.

use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_model::{Category, index};
use flopwatch_report::page::Unit;

use crate::advice::wording::{count, share, short, time};
use crate::advice::{Area, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "one kernel's time of all kernel time",
    50,
    "nsys-ai 0.3.0, rule \"Kernel Hotspot\"",
);
const WINDOW: Threshold = Threshold::percent(
    "one kernel's time of the window",
    10,
    "XProf: a tenth of the step is the least that its smart suggestions name",
);

/// Fires where one kernel has half of all kernel time, and that is much of the window.
pub(super) static RULE: Rule = Rule {
    id: "dominant-kernel",
    title: "One kernel dominates",
    area: Area::Kernels,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHARE, WINDOW],
    evaluate,
    #[cfg(test)]
    captures: [fires, quiet],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let Some(kernels) = facts.events(Category::CudaKernel) else {
        return Verdict::Quiet;
    };
    let mut totals = vec![(0_u64, 0_u64); kernels.names.len()];
    for (name, length) in kernels.name.iter().zip(&kernels.duration_ns) {
        if let Some((launches, total)) = totals.get_mut(name.index()) {
            *launches += 1;
            *total += length;
        }
    }
    let all: u64 = totals.iter().map(|(_, total)| total).sum();
    // A collective is long because it waits: the rules on communication are about it.
    let computes = |name: &str| WorkClass::of(Category::CudaKernel, name) == Some(WorkClass::Compute);
    let largest = totals.iter().zip(&kernels.names).filter(|(_, name)| computes(name));
    let largest = largest.max_by_key(|((_, total), _)| *total);
    let Some(((launches, total), name)) = largest.filter(|((_, total), _)| SHARE.reached(*total, all)) else {
        return Verdict::Quiet;
    };
    // Where kernels are little of the window, none of them matters.
    let (own_ns, window) = (facts.shared(*total), facts.window.len());
    if !WINDOW.reached(own_ns, window) {
        return Verdict::Quiet;
    }
    // A program of one kernel is no finding: there is nothing beside it that could matter more.
    if totals.len() < 2 {
        return Verdict::Quiet;
    }
    let number = kernels.names.iter().position(|known| known == name);
    let own = facts.work.all().iter().filter(|work| {
        work.category == Category::CudaKernel && kernels.name.get(index(work.at)).map(|name| name.index()) == number
    });
    FindingDraft::new(format!(
        "{} takes {} of {} of kernel time ({}) and {} of the window, in {}: of all kernels it is the first to make faster.",
        short(name),
        time(*total),
        time(all),
        share(*total, all),
        share(own_ns, window),
        count(*launches, "launch", "launches")
    ))
    .severity(Severity::Low)
    .evidence("its time", *total, Unit::Ns)
    .evidence("all kernel time", all, Unit::Ns)
    .at(facts.longest_work("longest launch", own))
    .do_this("Profile this kernel with Nsight Compute (ncu --set full -k) and see whether memory, arithmetic or latency bounds it.")
    .into()
}

#[cfg(test)]
fn fires() -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.kernel("gemm", (0, 60));
    scene.kernel("add", (60, 60));
    scene.build()
}

#[cfg(test)]
fn quiet() -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    for (at, name) in ["gemm", "add", "norm"].into_iter().enumerate() {
        scene.kernel(name, (100 * u64::try_from(at).unwrap(), 60));
    }
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_a_little_kernel_time_is_no_finding() {
        let mut scene = crate::advice::scene::Scene::new();
        scene.kernel("gemm", (0, 60));
        scene.kernel("add", (60, 10));
        scene.kernel("add", (990, 10));
        let timeline = scene.build();
        let verdict = evaluate(&Facts::of(&timeline, 5));
        assert_eq!(verdict, Verdict::Quiet);
    }
}
