//! A report of Nsight Compute, beside NVIDIA's own reader.

use super::{Bench, Rival, Source, Verdict, speed};
use flopwatch_toolchain::wheel::Requirements;

pub(super) fn bench() -> Bench {
    Bench {
        name: "profiled",
        what: "A report of Nsight Compute of 100 launches with 800 metrics each, beside NVIDIA's ncu-report",
        input: Source::Made(
            "made.ncu-rep",
            &["make-report", "--launches", "100", "--metrics", "800"],
        ),
        ours: &["read"],
        writes: false,
        python: Requirements::BenchNcu,
        rivals: &[Rival {
            what: "ncu-report 2026.3.1, every metric",
            script: "profiled.py",
            args: &[],
        }],
        judge: |ours, rival| {
            let milliseconds = ours.seconds * 1e3;
            let mut verdicts = Vec::from(speed(ours, rival, "", 0.0).map(|verdict| Verdict {
                budget: None,
                ..verdict
            }));
            verdicts.push(Verdict {
                what: "milliseconds",
                value: format!("{milliseconds:.1}"),
                budget: Some(("100", milliseconds < 100.0)),
            });
            verdicts
        },
    }
}
