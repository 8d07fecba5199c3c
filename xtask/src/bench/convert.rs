//! A capture from the profiler's export to the timeline file: one of a usual size, and one in which
//! the fixed cost of HDF5's structure vanishes.

use super::{Bench, Figures, Rival, Source, Verdict, speed};
use flopwatch_toolchain::wheel::Requirements;

const RIVALS: &[Rival] = &[Rival {
    what: "h5py + numpy, gzip, no lanes, tiles or levels",
    script: "convert.py",
    args: &[],
}];

pub(super) fn usual() -> Bench {
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
        python: Requirements::BenchH5py,
        rivals: RIVALS,
        judge: |ours, rival| {
            let megabytes = ours.peak_bytes / 1_000_000;
            let mut verdicts = Vec::from(speed(ours, rival, "5", 5.0));
            verdicts.push(Verdict {
                what: "peak of memory",
                value: format!("{megabytes} MB"),
                budget: Some(("100 MB", ours.peak_bytes <= 100_000_000)),
            });
            verdicts.extend(sizes(ours, rival));
            verdicts
        },
    }
}

pub(super) fn large() -> Bench {
    Bench {
        name: "convert-large",
        what: "10 M events (5 M kernels, 2.5 M copies, 2.5 M NVTX ranges): nsys HDF5 to timeline file",
        input: Source::Made(
            "export-large.h5",
            &[
                "make-export",
                "--kernels",
                "5000000",
                "--copies",
                "2500000",
                "--ranges",
                "2500000",
            ],
        ),
        ours: &["convert"],
        writes: true,
        python: Requirements::BenchH5py,
        rivals: RIVALS,
        judge: |ours, rival| {
            let mut verdicts = Vec::from(speed(ours, rival, "10", 10.0));
            verdicts.extend(sizes(ours, rival));
            verdicts
        },
    }
}

fn sizes(ours: &Figures, rival: &Figures) -> Vec<Verdict> {
    let events = ours.count("/events");
    let per_event = |name: &str| ours.count(name) / events;
    let (published, whole) = (per_event("/stored/published"), per_event("/file_bytes"));
    let told = |what, value: f64| Verdict {
        what,
        value: format!("{value:.2}"),
        budget: None,
    };
    vec![
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
        Verdict {
            what: "bytes per event: the whole file",
            value: format!("{whole:.2}"),
            budget: Some(("6", whole <= 6.0)),
        },
        told(
            "bytes per event: the rival's whole file",
            rival.count("/file_bytes") / events,
        ),
    ]
}
