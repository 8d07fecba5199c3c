//! A GPU that has nothing to do.

use crate::advice::facts::{Gap, GapCause};
use crate::advice::wording::{share, time};
use crate::advice::{About, Area, Confidence, Facts, Found, Rule, Threshold, Verdict};
use crate::model::Category;
use crate::page::Unit;

/// Fires where the GPU is idle for a part of the window.
#[derive(Debug)]
pub(super) struct GpuIdle;

const SHARE: Threshold = Threshold::percent(
    "idle share of the window",
    10,
    "XProf: a tenth of the step is the least that its smart suggestions name",
);

static ABOUT: About = About {
    id: "gpu-idle",
    title: "The GPU is idle",
    area: Area::Idle,
    needs: &[&[Category::CudaKernel]],
    of_gpu_work: true,
    thresholds: &[SHARE],
};

impl Rule for GpuIdle {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        let idle = facts.per_gpu(|gpu| gpu.idle.len_ns());
        let window = facts.window.len();
        if !SHARE.reached(idle, window) {
            return Verdict::Quiet;
        }
        let of = |cause: GapCause| facts.gap_time(facts.gaps().filter(|gap: &&Gap| gap.cause == cause));
        let (host, unknown) = (of(GapCause::HostWait), of(GapCause::Unknown));
        Found::new(format!(
            "The GPU did nothing for {} of {} ({}); for {} of it the host had not yet launched the next work.",
            time(idle),
            time(window),
            share(idle, window),
            time(host)
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
        .evidence("idle", idle, Unit::Ns)
        .evidence("waiting for the host to launch", host, Unit::Ns)
        .evidence(
            "between work that was launched in time, gaps below 30 us",
            of(GapCause::KernelWait),
            Unit::Ns,
        )
        .evidence(
            "longer gaps before work that was launched in time",
            of(GapCause::Other),
            Unit::Ns,
        )
        .evidence("before work whose launch was not recorded", unknown, Unit::Ns)
        .at(facts.longest_gaps(facts.gaps()))
        .do_this("See the findings below it for what the host did meanwhile; open the longest gaps in the timeline.")
        .into()
    }

    #[cfg(test)]
    fn fires(&self) -> crate::model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        scene.launch((0, 5), "gemm", (10, 80));
        scene.launch((95, 5), "gemm", (100, 10));
        scene.build()
    }

    #[cfg(test)]
    fn quiet(&self) -> crate::model::Timeline {
        let mut scene = crate::advice::scene::Scene::new();
        scene.launch((0, 5), "gemm", (10, 80));
        scene.launch((5, 5), "gemm", (91, 19));
        scene.build()
    }
}
