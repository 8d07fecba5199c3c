//! From an export to findings with advice, beside nsys-ai.

use super::{Bench, Figures, Rival, Source, Verdict, speed};
use flopwatch_toolchain::wheel::Requirements;

/// A file that the rival has not seen.
pub(super) fn of_a_new_file() -> Bench {
    const RIVALS: &[Rival] = &[Rival {
        what: "nsys-ai 0.3",
        script: "diagnose.py",
        args: &[],
    }];
    beside(
        "diagnose",
        "Findings of an export as SQLite of 258,000 events, beside nsys-ai",
        RIVALS,
        |ours, rival| Vec::from(speed(ours, rival, "20", 20.0)),
    )
}

/// A file of which the rival has kept tables; ours keeps nothing.
pub(super) fn of_a_known_file() -> Bench {
    const RIVALS: &[Rival] = &[Rival {
        what: "nsys-ai 0.3, with its tables of an earlier look",
        script: "diagnose.py",
        args: &["again"],
    }];
    beside(
        "diagnose-again",
        "The same, where nsys-ai has looked at the file before",
        RIVALS,
        |ours, rival| {
            let told = speed(ours, rival, "", 0.0).map(|verdict| Verdict {
                budget: None,
                ..verdict
            });
            Vec::from(told)
        },
    )
}

fn beside(
    name: &'static str,
    what: &'static str,
    rivals: &'static [Rival],
    judge: fn(&Figures, &Figures) -> Vec<Verdict>,
) -> Bench {
    Bench {
        name,
        what,
        input: Source::Longer("mfu_2gpu.sqlite", "nsys-ai/mfu_2gpu_before.sqlite", "8"),
        ours: &["diagnose"],
        writes: false,
        python: Requirements::BenchNsysAi,
        rivals,
        judge,
    }
}
