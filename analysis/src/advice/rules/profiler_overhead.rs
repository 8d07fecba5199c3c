//! Time that the profiler itself took.

use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_model::Category;
use flopwatch_report::page::Unit;

use crate::advice::wording::{share, time};
use crate::advice::{Area, Facts, FindingDraft, Rule, Severity, Threshold, Verdict};

const SHARE: Threshold = Threshold::percent(
    "profiler's own work of the window",
    2,
    "nsys-ai 0.3.0: 2 % is the noise of one run",
);

/// Fires where the profiler's own work takes a part of the window.
pub(super) static RULE: Rule = Rule {
    id: "profiler-overhead",
    title: "The profiler takes time",
    area: Area::Capture,
    needs: &[&[Category::Overhead]],
    of_gpu_work: true,
    thresholds: &[SHARE],
    evaluate,
    #[cfg(test)]
    captures: [|| overhead("Buffer Flush"), || overhead("Lazy Function Loading")],
};

fn evaluate(facts: &Facts<'_>) -> Verdict {
    let Some(overhead) = facts.events(Category::Overhead) else {
        return Verdict::Quiet;
    };
    // Kineto files the loading of code by the driver under overhead; that is the program's.
    let own = (0..overhead.len()).filter(|at| !overhead.name_of(*at).contains("Lazy Function Loading"));
    let own: Vec<usize> = own.collect();
    let times: Intervals = own.iter().map(|at| Interval::of(overhead, *at)).collect();
    let taken = times.clip(facts.window).len_ns();
    let window = facts.window.len();
    if !SHARE.reached(taken, window) {
        return Verdict::Quiet;
    }
    let pieces = own.iter().filter_map(|at| {
        let time = Interval::of(overhead, *at);
        Some((time.len(), overhead.name_of(*at), time, *overhead.row.get(*at)?))
    });
    FindingDraft::new(format!(
        "The profiler was at work for {} of the window ({}): gaps and host times beside it are not the program's.",
        time(taken),
        share(taken, window)
    ))
    .severity(Severity::Medium)
    .evidence("profiler's own work in the window", taken, Unit::Ns)
    .at(facts.largest(pieces, Unit::Ns))
    .do_this("Capture fewer categories, without stacks and shapes, or a window that ends before the buffers are full.")
    .into()
}

/// A window of 1,000 us, of which an overhead of `name` takes 50 us.
#[cfg(test)]
fn overhead(name: &str) -> flopwatch_model::Timeline {
    let mut scene = crate::advice::scene::Scene::new();
    scene.kernel("gemm", (0, 100));
    scene.kernel("gemm", (900, 100));
    scene.on_thread(1, flopwatch_model::Track::Overhead, Category::Overhead, name, (200, 50));
    scene.build()
}
