//! A GPU that waits for the next batch.

use crate::advice::wording::{count, share, time};
use crate::advice::{About, Area, Confidence, Facts, Found, Rule, Threshold, Verdict};
use crate::measures::interval::{Interval, Intervals};
use crate::model::{Category, Events, index};
use crate::page::Unit;

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
    needs: &[&[
        Category::CpuOp,
        Category::Annotation,
        Category::NvtxRange,
        Category::PythonFunction,
    ]],
    of_gpu_work: true,
    thresholds: &[SHARE],
};

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
        let categories = ABOUT.needs.iter().flat_map(|list| list.iter());
        let lists = categories.filter_map(|category| facts.events(*category));
        let pieces: Vec<(u64, String, Interval, u32)> = lists.flat_map(loading).collect();
        let times: Intervals = pieces.iter().map(|(_, _, time, _)| *time).collect();
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
    fn fires(&self) -> crate::model::Timeline {
        scene((110, 30))
    }

    /// Data is loaded for as long while the GPU works.
    #[cfg(test)]
    fn quiet(&self) -> crate::model::Timeline {
        scene((20, 30))
    }
}

/// The events of a category that load data.
fn loading(events: &Events) -> Vec<(u64, String, Interval, u32)> {
    let picked: Vec<bool> = events.names.iter().map(|name| loads_data(name)).collect();
    if !picked.contains(&true) {
        return Vec::new();
    }
    let all = events.name.iter().zip(&events.row).enumerate();
    let picked = all.filter(|(_, (name, _))| picked.get(index(**name)).copied().unwrap_or(false));
    picked
        .map(|(at, (_, row))| {
            let time = Interval::of(events, at);
            (time.len(), events.name_of(at).to_owned(), time, *row)
        })
        .collect()
}

#[cfg(test)]
fn scene(load: (u64, u64)) -> crate::model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.launch((0, 5), "gemm", (10, 100));
    scene.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", load);
    scene.launch((140, 5), "gemm", (150, 100));
    scene.build()
}
