//! Kernels that use a part of the GPU only.

use std::collections::BTreeMap;

use crate::advice::wording::{share, short, time};
use crate::advice::{About, Area, Confidence, Evidence, Facts, Found, Rule, Threshold, Verdict};
use crate::measures::kernel_class::WorkClass;
use crate::model::{Category, ColumnId, index};
use crate::page::{Cell, Unit};

/// Fires where compute kernels have fewer blocks than the GPU has multiprocessors, and nothing else runs beside them.
#[derive(Debug)]
pub(super) struct SmallGrids;

const SHARE: Threshold = Threshold::percent(
    "time of multiprocessors without a block, of the window",
    3,
    "ours; ncu's rule calls such a grid too small",
);

static ABOUT: About = About {
    id: "small-grids",
    title: "Grids are smaller than the GPU",
    area: Area::Kernels,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHARE],
};

impl Rule for SmallGrids {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let devices = &facts.timeline.capture.devices;
        let multiprocessors = |device: u32| {
            let found = devices.iter().find(|known| known.id == device);
            found
                .and_then(|device| device.multiprocessors)
                .map(u64::from)
                .filter(|count| *count > 0)
        };
        let (mut known, mut unused) = (false, 0_u64);
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for gpu in &facts.gpus {
            let Some(multiprocessors) = multiprocessors(gpu.gpu.device) else {
                continue;
            };
            let mut until = 0;
            let all = gpu.work.all();
            for (place, work) in all.iter().enumerate() {
                let alone =
                    work.time.start >= until && all.get(place + 1).is_none_or(|next| next.time.start >= work.time.end);
                until = until.max(work.time.end);
                if work.category != Category::CudaKernel || work.class != WorkClass::Compute {
                    continue;
                }
                let Some(blocks) = blocks(facts, index(work.at)) else {
                    continue;
                };
                known = true;
                // What runs beside it may have the rest.
                if alone && blocks < multiprocessors {
                    let part = u128::from(work.time.len()) * u128::from(multiprocessors - blocks)
                        / u128::from(multiprocessors);
                    let part = u64::try_from(part).unwrap_or(u64::MAX);
                    unused += part;
                    *by_name.entry(work.name(facts.timeline)).or_default() += part;
                }
            }
        }
        if !known {
            return Verdict::abstain(
                "the source says no grids of kernels, or not how many multiprocessors the GPU has",
            );
        }
        let (unused, window) = (facts.shared(unused), facts.window.len());
        if !SHARE.reached(unused, window) {
            return Verdict::Quiet;
        }
        let mut names: Vec<(&str, u64)> = by_name.into_iter().collect();
        names.sort_by_key(|(_, unused)| std::cmp::Reverse(*unused));
        let rows = names.into_iter().take(facts.rows).map(|(name, unused)| Evidence {
            what: format!("share of the GPU without a block in {}", short(name)),
            value: Cell::from(unused),
            unit: Unit::Ns,
            place: None,
        });
        Found::new(format!(
            "Kernels with fewer blocks than the GPU has multiprocessors ran alone; the idle multiprocessors make {} ({} of the window).",
            time(unused),
            share(unused, window)
        ))
        .worth(unused, "the same work is spread over all multiprocessors and scales with them: an upper bound")
        .confidence(Confidence::Medium)
        .evidence("idle part of the GPU", unused, Unit::Ns)
        .at(rows)
        .do_this("Use a larger batch, or a kernel that splits the reduction dimension (split-K, stream-K, flash-decoding).")
        .do_this("Run independent small kernels on several streams side by side.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> crate::model::Timeline {
        scene(33)
    }

    #[cfg(test)]
    fn quiet(&self) -> crate::model::Timeline {
        scene(132)
    }
}

/// Blocks of the kernel at `at`; `None` where the source does not say them.
fn blocks(facts: &Facts<'_>, at: usize) -> Option<u64> {
    let kernels = facts.events(Category::CudaKernel)?;
    let [x, y, z] = [ColumnId::GridX, ColumnId::GridY, ColumnId::GridZ].map(|id| kernels.column(id)?.get(at));
    let blocks = x?.saturating_mul(y?).saturating_mul(z?);
    (blocks > 0).then_some(blocks)
}

#[cfg(test)]
fn scene(blocks: u64) -> crate::model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.device((9, 0), 132);
    for at in 0..4 {
        let kernel = scene.kernel("gemm", (at * 100, 90));
        for (id, value) in [(ColumnId::GridX, blocks), (ColumnId::GridY, 1), (ColumnId::GridZ, 1)] {
            scene.number(kernel, id, value);
        }
    }
    scene.build()
}
