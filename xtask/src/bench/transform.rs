//! The heavy steps of the transform.

use super::{Bench, Figures, Rival, Source, Verdict, speed};
use flopwatch_toolchain::wheel::Requirements;

pub(super) fn bench() -> Bench {
    Bench {
        name: "transform",
        what: "10 M events: sort, lanes, levels of detail, figures per name",
        input: Source::Made("columns.bin", &["make-columns", "--events", "10000000"]),
        ours: &["transform"],
        writes: false,
        python: Requirements::BenchPolars,
        rivals: &[Rival {
            what: "numpy argsort + polars group-by",
            script: "transform.py",
            args: &[],
        }],
        judge,
    }
}

fn judge(ours: &Figures, rival: &Figures) -> Vec<Verdict> {
    let columns = ours.count("/raw_bytes");
    let peak = ours.count("/peak_bytes") / columns;
    let mut verdicts = Vec::from(speed(ours, rival, "6", 6.0));
    verdicts.push(Verdict {
        what: "peak of memory per byte of the raw columns",
        value: format!("{peak:.2}"),
        budget: Some(("3", peak <= 3.0)),
    });
    verdicts
}
