//! Python's garbage collector while the GPU waits.

use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::facts::times;
use crate::advice::wording::{count, share, time};
use crate::advice::{About, Area, Confidence, Facts, Found, Rule, Threshold, Verdict};

/// Fires where the GPU is idle while ranges run that are named after garbage collection.
#[derive(Debug)]
pub(super) struct GarbageCollection;

const SHARE: Threshold = Threshold::percent(
    "idle time while garbage is collected, of the window",
    1,
    "ours; nsys-ai 0.3.0 lists such ranges without a threshold",
);

static ABOUT: About = About {
    id: "garbage-collection",
    title: "The GPU waits for garbage collection",
    area: Area::Host,
    needs: &[CATEGORIES],
    of_gpu_work: true,
    thresholds: &[SHARE],
};

const CATEGORIES: &[Category] = &[
    Category::NvtxRange,
    Category::Annotation,
    Category::CpuOp,
    Category::PythonFunction,
];

/// `gc` as a word, or `garbage`: letters of `gc` are in many other names.
fn collects(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    name.contains("garbage") || words.any(|word| word == "gc")
}

impl Rule for GarbageCollection {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let pieces = facts.named(CATEGORIES, collects);
        let times = times(&pieces);
        let waiting = facts.per_gpu(|gpu| gpu.idle.intersect(&times).len_ns());
        let window = facts.window.len();
        if !SHARE.reached(waiting, window) {
            return Verdict::Quiet;
        }
        let number = u64::try_from(pieces.len()).unwrap_or(u64::MAX);
        Found::new(format!(
            "Garbage is collected for {} in {}, and the GPU is idle in {} of it ({} of the window).",
            time(times.len_ns()),
            count(number, "range", "ranges"),
            time(waiting),
            share(waiting, window)
        ))
        .worth(waiting, "collection runs where the GPU has work queued, or not at all in the loop")
        .confidence(Confidence::Medium)
        .evidence("time in which garbage is collected", times.len_ns(), Unit::Ns)
        .evidence("GPU idle meanwhile", waiting, Unit::Ns)
        .at(facts.largest(pieces, Unit::Ns))
        .do_this("Collect by hand every N steps on all ranks at once (gc.disable(), gc.collect(1)), and keep what lives long out of it (gc.freeze() after the warm-up).")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline {
        scene("Python GC", (110, 30))
    }

    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        scene("allgcd", (110, 30))
    }
}

#[cfg(test)]
fn scene(name: &str, collection: (u64, u64)) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 100));
    scene.range(name, collection);
    scene.launch((140, 5), "gemm", (150, 100));
    scene.build()
}
