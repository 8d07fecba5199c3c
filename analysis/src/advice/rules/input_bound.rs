//! A GPU that waits for the next batch.

use flopwatch_report::page::Unit;

use crate::advice::facts::{IdleOwner, PROGRAM, times};
use crate::advice::wording::{count, share, time};
use crate::advice::{Area, Confidence, Facts, FindingDraft, Rule, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "idle time while data is loaded, of the window",
    5,
    "XProf: input of 5 % of the step is moderate; from 10 % on the program is input-bound",
);

/// Fires where the GPU is idle while data is loaded.
pub(super) static RULE: Rule = Rule {
    id: "input-bound",
    title: "The GPU waits for data",
    area: Area::Host,
    needs: &[PROGRAM],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    // In the second data is loaded for as long while the GPU works.
    #[cfg(test)]
    captures: [|| scene((110, 30)), || scene((20, 30))],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let pieces = &facts.host_ranges.loading;
    let times = times(pieces);
    let waiting = facts.shared(facts.idle_parts.total_ns(IdleOwner::LoadData));
    let window = facts.window.len();
    if !SHARE.reached(waiting, window) {
        return Verdict::below(SHARE, waiting, window);
    }
    let loads = u64::try_from(pieces.len()).unwrap_or(u64::MAX);
    FindingDraft::new(format!(
        "Data is loaded for {} in {}, and the GPU is idle in {} of it ({} of the window).",
        time(times.len_ns()),
        count(loads, "range", "ranges"),
        time(waiting),
        share(waiting, window)
    ))
    .worth(waiting, "the next batch is ready when it is asked for")
    .confidence(Confidence::Medium)
    .evidence("time in which data is loaded", times.len_ns(), Unit::Ns)
    .evidence("GPU idle meanwhile", waiting, Unit::Ns)
    .at(facts.largest(pieces.iter().copied(), Unit::Ns))
    .do_this(facts.framework.pick(
        "Load ahead: DataLoader(num_workers > 0, prefetch_factor >= 2, persistent_workers=True, pin_memory=True).",
        "Load ahead: prefetch to the device (jax.device_put of the next batch while this one runs), tf.data prefetch and parallel map, Grain with workers.",
        "Load ahead: read the next piece on a thread of its own while the GPU works, into pinned memory.",
    ))
    .do_this("Decode and augment on the GPU (DALI, torchcodec, kornia), or once ahead of the run.")
    .into()
}

#[cfg(test)]
fn scene(load: (u64, u64)) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 100));
    scene.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", load);
    scene.launch((140, 5), "gemm", (150, 100));
    scene.build()
}
