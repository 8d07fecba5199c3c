//! The rule `unified-memory`: pages of unified memory that migrate between host and device while
//! the program runs.

use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::moved_bytes::MovedBytes;
use flopwatch_model::{Category, ColumnId, Events};
use flopwatch_report::page::Unit;

use crate::advice::wording::{bytes, count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent("time in which pages migrate, of the window", 1, "ours");

/// Fires where pages migrate during 1 % of the window or more.
pub(super) static RULE: Rule = Rule {
    id: "unified-memory",
    title: "Pages of unified memory migrate",
    area: Area::Transfers,
    needs: &[&[Category::CudaMigration]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| scene(100), || scene(10_000)],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let Some(events) = facts.events(Category::CudaMigration) else {
        return Verdict::Quiet;
    };
    let window = facts.window.len();
    let [migrating, beside_work] = [false, true].map(|beside_work| {
        facts.per_gpu(|gpu| {
            let times = of_gpu(facts, events, gpu.gpu).clip(facts.window);
            if beside_work {
                times.intersect(&gpu.work.busy()).len_ns()
            } else {
                times.len_ns()
            }
        })
    });
    if !SHARE.reached(migrating, window) {
        return Verdict::Quiet;
    }
    let number = events.count();
    let sizes = (0..events.len()).map(|at| events.number(ColumnId::Bytes, at));
    let moved = sizes.collect::<MovedBytes>().known();
    let size = moved.map_or_else(|| "an unknown number of bytes".to_owned(), bytes);
    let idle = migrating.saturating_sub(beside_work);
    let found = FindingDraft::new(format!(
        "{} of unified memory ({size}) took {} ({} of the window): {} beside work of the GPU, which waits for its \
         pages, and {} while it had none.",
        count(number, "migration", "migrations"),
        time(migrating),
        share(migrating, window),
        time(beside_work),
        time(idle)
    ))
    .worth(migrating, "pages are where they are used before they are touched")
    .confidence(Confidence::Medium)
    .evidence("migrations", number, Unit::None);
    let found = match moved {
        Some(moved) => found.evidence("moved", moved, Unit::Bytes).evidence(
            "mean size",
            moved.checked_div(number).unwrap_or(0),
            Unit::Bytes,
        ),
        None => found,
    };
    let pieces = events.row.iter().enumerate();
    let pieces = pieces.map(|(at, row)| (Interval::of(events, at), *row));
    found
        .evidence("migrating beside work of the GPU", beside_work, Unit::Ns)
        .evidence("migrating while the GPU had no work", idle, Unit::Ns)
        .at(facts.longest("longest migration", pieces))
        .do_this(
            "Move data before it is used: cudaMemPrefetchAsync to the device ahead of the kernels, and back \
             before the host reads it.",
        )
        .do_this(
            "Say how data is used (cudaMemAdvise: read mostly, preferred location), keep apart what host and \
             device touch, or allocate with cudaMalloc and copy in large pieces.",
        )
        .into()
}

/// When pages of a GPU's process migrate from or to it.
fn of_gpu(facts: &Facts<'_>, events: &Events, gpu: Gpu) -> Intervals {
    let own = events.row.iter().enumerate();
    let own = own.filter(|(_, row)| Gpu::of_row(facts.timeline, **row) == Some(gpu));
    own.map(|(at, _)| Interval::of(events, at)).collect()
}

/// A kernel of that length, in which pages come for 2 us, and behind which others go for 3 us.
#[cfg(test)]
fn scene(kernel: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "add", (10, kernel));
    for (name, start, length) in [
        ("[CUDA memcpy Unified Host-to-Device]", 20, 2),
        ("[CUDA memcpy Unified Device-to-Host]", kernel + 20, 3),
    ] {
        let migration = scene.work_on((0, 0), Category::CudaMigration, name, (start, length));
        scene.number(migration, ColumnId::Bytes, 4096);
    }
    scene.launch((kernel + 30, 5), "add", (kernel + 40, 10));
    scene.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::rule::judge;
    use crate::advice::rules::ALL;

    #[test]
    fn pages_that_migrate_are_no_copies_and_lack_no_launch() {
        let mut scene = crate::advice::scene::Scene::new();
        for at in 0..10 {
            scene.launch((at * 200, 5), "add", (at * 200 + 10, 100));
            for page in 0..20 {
                let start = at * 200 + 112 + page * 4;
                let name = "[CUDA memcpy Unified Device-to-Host]";
                let migration = scene.work_on((0, 0), Category::CudaMigration, name, (start, 2));
                scene.number(migration, ColumnId::Bytes, 4096);
            }
        }
        let timeline = scene.build();
        let facts = Facts::of(&timeline, 5);
        let fires = ALL
            .iter()
            .filter(|rule| matches!(judge(rule, &facts), Verdict::Fires(_)));
        let ids: Vec<&str> = fires.map(|rule| rule.id).collect();
        assert!(ids.contains(&"unified-memory"), "{ids:?}");
        assert!(
            !ids.contains(&"small-copies") && !ids.contains(&"launches-unmatched"),
            "{ids:?}"
        );
    }
}
