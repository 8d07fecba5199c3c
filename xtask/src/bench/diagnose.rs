//! From an export to findings with advice, beside nsys-ai.

use super::{Bench, Rival, Source, speed};
use flopwatch_toolchain::requirements;

pub(super) fn bench() -> Bench {
    Bench {
        name: "diagnose",
        what: "Findings of an export as SQLite of 258,000 events, beside nsys-ai",
        input: Source::Longer("mfu_2gpu.sqlite", "nsys-ai/mfu_2gpu_before.sqlite", "8"),
        ours: &["diagnose"],
        writes: false,
        python: requirements!("bench-nsys-ai"),
        rivals: &[
            Rival {
                what: "nsys-ai 0.3, a file that it sees first",
                script: "diagnose.py",
                args: &[],
            },
            Rival {
                what: "nsys-ai 0.3, with what it kept of an earlier look",
                script: "diagnose.py",
                args: &["again"],
            },
        ],
        judge: |ours, rival| Vec::from(speed(ours, rival, "20", 20.0)),
    }
}
