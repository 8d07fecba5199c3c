//! A GPU that waits for the next batch.

use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::facts::times;
use crate::advice::wording::{count, share, time};
use crate::advice::{About, Area, Confidence, Facts, Found, Rule, Threshold, Verdict};

/// Fires where the GPU is idle while data is loaded.
#[derive(Debug)]
pub(super) struct InputBound;

const SHARE: Threshold = Threshold::percent(
    "idle time while data is loaded, of the window",
    5,
    "XProf: input of 5 % of the step is moderate; from 10 % on the program is input-bound",
);

static ABOUT: About = About {
    id: "input-bound",
    title: "The GPU waits for data",
    area: Area::Host,
    needs: &[CATEGORIES],
    of_gpu_work: true,
    thresholds: &[SHARE],
};

const CATEGORIES: &[Category] = &[
    Category::CpuOp,
    Category::Annotation,
    Category::NvtxRange,
    Category::PythonFunction,
];

/// What names of ranges, operators and functions hold that load data; letters of either case are the same.
const LOADING: &[&str] = &[
    "dataloader",
    "data_loader",
    "dataloading",
    "data_loading",
    "data loading",
    "load_data",
    "load data",
    "load_batch",
    "load batch",
    "next_batch",
    "next batch",
    "get_batch",
    "fetch_batch",
    "input_pipeline",
    "iteratorgetnext",
    "iterator::",
];

fn loads_data(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    LOADING.iter().any(|word| name.contains(word))
}

impl Rule for InputBound {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let pieces = facts.named(CATEGORIES, loads_data);
        let times = times(&pieces);
        let waiting = facts.per_gpu(|gpu| gpu.idle.intersect(&times).len_ns());
        let window = facts.window.len();
        if !SHARE.reached(waiting, window) {
            return Verdict::Quiet;
        }
        let loads = u64::try_from(pieces.len()).unwrap_or(u64::MAX);
        Found::new(format!(
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
        .at(facts.largest(pieces, Unit::Ns))
        .do_this("Load ahead: DataLoader(num_workers > 0, prefetch_factor >= 2, persistent_workers=True, pin_memory=True); tf.data prefetch and parallel map.")
        .do_this("Decode and augment on the GPU (DALI, torchcodec, kornia), or once ahead of the run.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline {
        scene((110, 30))
    }

    /// Data is loaded for as long while the GPU works.
    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        scene((20, 30))
    }
}

#[cfg(test)]
fn scene(load: (u64, u64)) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 100));
    scene.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", load);
    scene.launch((140, 5), "gemm", (150, 100));
    scene.build()
}
