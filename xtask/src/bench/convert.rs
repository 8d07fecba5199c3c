//! A usual capture from the profiler's export to the timeline file.

use super::{Bench, Figures, Rival, Source, Verdict, speed};
use flopwatch_toolchain::requirements;

pub(super) fn bench() -> Bench {
    Bench {
        name: "convert",
        what: "236 k events (120 k kernels, 60 k copies, 56 k NVTX ranges): nsys HDF5 to timeline file",
        input: Source::Made(
            "export.h5",
            &[
                "make-export",
                "--kernels",
                "120000",
                "--copies",
                "60000",
                "--ranges",
                "56000",
            ],
        ),
        ours: &["convert"],
        writes: true,
        python: requirements!("bench-h5py"),
        rivals: &[Rival {
            what: "h5py + numpy, gzip, no lanes, tiles or levels",
            script: "convert.py",
            args: &[],
        }],
        judge,
    }
}

fn judge(ours: &Figures, rival: &Figures) -> Vec<Verdict> {
    let events = ours.count("/events");
    let per_event = |name: &str| ours.count(name) / events;
    let published = per_event("/stored/published");
    let megabytes = ours.peak_bytes / 1_000_000;
    let told = |what, value: f64| Verdict {
        what,
        value: format!("{value:.2}"),
        budget: None,
    };
    let mut verdicts = Vec::from(speed(ours, rival, "10", 10.0));
    verdicts.extend([
        Verdict {
            what: "peak of memory",
            value: format!("{megabytes} MB"),
            budget: Some(("100 MB", ours.peak_bytes <= 100_000_000)),
        },
        Verdict {
            what: "bytes per event: start, length, stream, name",
            value: format!("{published:.2}"),
            budget: Some(("6", published <= 6.0)),
        },
        told("bytes per event: own columns of the category", per_event("/stored/own")),
        told(
            "bytes per event: row, lane, correlation, launch",
            per_event("/stored/further"),
        ),
        told("bytes per event: levels of detail", per_event("/stored/lod")),
        told("bytes per event: the whole file", per_event("/file_bytes")),
        told(
            "bytes per event: the rival's whole file",
            rival.count("/file_bytes") / events,
        ),
    ]);
    verdicts
}
