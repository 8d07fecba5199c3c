//! Copies between host and GPU while the GPU computes nothing.

use flopwatch_measures::interval::Intervals;
use flopwatch_measures::work::Work;
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::wording::{count, share, time};
use crate::advice::{About, Area, Facts, Found, Rule, Threshold, Verdict};

/// Fires where copies from and to the host are not hidden behind kernels.
#[derive(Debug)]
pub(super) struct CopiesNotOverlapped;

const SHARE: Threshold = Threshold::percent(
    "copies with the host beside which nothing computes, of the window",
    5,
    "XProf: 5 % of the step is a moderate input pipeline",
);

static ABOUT: About = About {
    id: "copies-not-overlapped",
    title: "Copies with the host are not overlapped",
    area: Area::Transfers,
    needs: &[&[Category::CudaMemcpyH2d, Category::CudaMemcpyD2h]],
    of_gpu_work: true,
    thresholds: &[SHARE],
};

impl Rule for CopiesNotOverlapped {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let is_copy = |work: &&Work| matches!(work.category, Category::CudaMemcpyH2d | Category::CudaMemcpyD2h);
        let exposed = |gpu: &crate::advice::facts::GpuFacts| {
            let copies: Intervals = gpu.work.all().iter().filter(is_copy).map(|work| work.time).collect();
            copies.subtract(&gpu.compute).subtract(&gpu.communication).len_ns()
        };
        let exposed = facts.per_gpu(exposed);
        let window = facts.window.len();
        if !SHARE.reached(exposed, window) {
            return Verdict::Quiet;
        }
        let copies = || facts.work.all().iter().filter(is_copy);
        let moved = facts.moved(copies());
        let total: Intervals = copies().map(|work| work.time).collect();
        let compute = facts.per_gpu(|gpu| gpu.compute.len_ns());
        let found = Found::new(format!(
            "{} between host and GPU ({}) took {}; nothing computes beside {} of it ({} of the window).",
            count(u64::try_from(copies().count()).unwrap_or(u64::MAX), "copy", "copies"),
            moved.text(),
            time(total.len_ns()),
            time(exposed),
            share(exposed, window)
        ));
        moved
            .told(found)
        .worth(exposed.min(compute), "the copies run beside kernels, of which there are enough")
        .evidence("copies without computation beside them", exposed, Unit::Ns)
        .at(facts.longest_work("longest copy", copies()))
        .do_this("Prefetch the next batch: pinned memory (pin_memory=True), .to(device, non_blocking=True), a stream of its own.")
        .do_this("Keep on the GPU what is copied again and again; copy results rarely, asynchronously and into pinned memory.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> flopwatch_model::Timeline {
        scene(7)
    }

    /// The same copy beside the kernel.
    #[cfg(test)]
    fn quiet(&self) -> flopwatch_model::Timeline {
        scene(20)
    }
}

#[cfg(test)]
fn scene(start: u64) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.copy(Category::CudaMemcpyH2d, "cudaMemcpyAsync", (0, 5), (start, 10), 1 << 20);
    scene.kernel("gemm", (17, 90));
    scene.build()
}
