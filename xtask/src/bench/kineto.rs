//! A large Kineto trace into columns, beside a quick JSON library and beside what people use.

use super::{Bench, Rival, Source, speed};
use flopwatch_toolchain::wheel::Requirements;

const INPUT: Source = Source::Made("trace.json", &["make-trace", "--megabytes", "1000"]);

pub(super) fn beside_orjson() -> Bench {
    of("kineto", "1 GB of Kineto JSON to columns, beside orjson", INPUT)
}

/// The bench of [`beside_orjson`] with a small trace, for the short form.
pub(super) fn small() -> Bench {
    of(
        "kineto-small",
        "64 MB of Kineto JSON to columns, beside orjson",
        Source::Made("trace.json", &["make-trace", "--megabytes", "64"]),
    )
}

fn of(name: &'static str, what: &'static str, input: Source) -> Bench {
    Bench {
        name,
        what,
        input,
        ours: &["read"],
        writes: false,
        python: Requirements::BenchOrjson,
        rivals: &[Rival {
            what: "orjson, then the same columns",
            script: "kineto.py",
            args: &["orjson"],
        }],
        judge: |ours, rival| Vec::from(speed(ours, rival, "25", 25.0)),
    }
}

pub(super) fn beside_hta() -> Bench {
    Bench {
        name: "kineto-hta",
        what: "1 GB of Kineto JSON to columns, beside HolisticTraceAnalysis",
        input: INPUT,
        ours: &["read"],
        writes: false,
        python: Requirements::BenchHta,
        rivals: &[Rival {
            what: "HolisticTraceAnalysis 0.5, parse",
            script: "kineto.py",
            args: &["hta"],
        }],
        judge: |ours, rival| Vec::from(speed(ours, rival, "60", 60.0)),
    }
}
