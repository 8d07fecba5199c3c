//! A GPU that has nothing to do.

use flopwatch_measures::gap::{Gap, IdleClass};
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::wording::{share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "idle share of the window",
    10,
    "XProf: a tenth of the step is the least that its smart suggestions name",
);

/// Fires where the GPU is idle for a part of the window.
pub(super) static RULE: Rule = Rule {
    id: "gpu-idle",
    title: "The GPU is idle",
    area: Area::Idle,
    needs: &[&[Category::CudaKernel, Category::CudaGraph]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene((95, 5), (100, 10)), || scene((5, 5), (91, 19))],
};

/// What the idle time is made of, for people; gaps behind the last work of a GPU are in none.
const PARTS: &[(&str, IdleClass)] = &[
    ("waiting for the host to launch", IdleClass::HostWait),
    (
        "gaps below 30 µs before work that was launched in time",
        IdleClass::KernelWait,
    ),
    ("longer gaps before work that was launched in time", IdleClass::Other),
    (
        "before work whose launch was not recorded",
        IdleClass::LaunchNotRecorded,
    ),
];

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let idle = facts.per_gpu(|gpu| gpu.idle.len_ns());
    let window = facts.window.len();
    if !SHARE.reached(idle, window) {
        return Verdict::below(SHARE, idle, window);
    }
    let of = |class: IdleClass| facts.gap_time(facts.gaps().filter(|gap: &&Gap| gap.class == class));
    let (host, unknown) = (of(IdleClass::HostWait), of(IdleClass::LaunchNotRecorded));
    let activities = facts.idle_parts.activities();
    let cause = if unknown > idle / 2 {
        format!(
            "why cannot be told of {} of it, because the launches of the work that ends it were not recorded",
            time(unknown)
        )
    } else {
        let longest = activities.first().map_or(String::new(), |longest| {
            format!(
                "; what the launching thread did longest meanwhile: {} ({})",
                longest.activity.label(),
                time(facts.shared(longest.idle_ns))
            )
        });
        format!(
            "for {} of it the host had not yet launched the next work{longest}",
            time(host)
        )
    };
    let mut found = FindingDraft::new(format!(
        "The GPU did nothing for {} of {} ({}); {cause}.",
        time(idle),
        time(window),
        share(idle, window),
    ))
    .worth(
        idle,
        "all of it can be filled: an upper bound, of which the findings on causes hold the parts",
    )
    .confidence(if host > idle / 2 {
        Confidence::High
    } else {
        Confidence::Medium
    })
    .evidence("idle", idle, Unit::Ns);
    for (what, class) in PARTS {
        let part = of(*class);
        if part > 0 {
            found = found.evidence(*what, part, Unit::Ns);
        }
    }
    for cause in activities.iter().take(facts.rows) {
        let what = format!("meanwhile the launching thread: {}", cause.activity.label());
        found = found.evidence(what, facts.shared(cause.idle_ns), Unit::Ns);
    }
    found
        .at(facts.longest_gaps(facts.gaps()))
        .do_this("Open the longest gaps in the timeline, or list them with their causes (analysis `idle`).")
        .into()
}

#[cfg(test)]
fn scene(call: (u64, u64), kernel: (u64, u64)) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 80));
    scene.launch(call, "gemm", kernel);
    scene.build()
}
