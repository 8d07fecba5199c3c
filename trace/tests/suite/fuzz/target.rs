//! What is fuzzed: a reader, and whole files that it reads.

use std::path::Path;
use std::time::Duration;

use flopwatch_measures::hlo_program::HloPrograms;
use flopwatch_model::{Capture, Timeline};
use flopwatch_trace::{
    ReadLimits, hlo, kineto, ncu, nsys_hdf, nsys_report, nsys_sqlite, pprof, read, recorder, timeline_file, xplane,
};

use crate::export::Schema;
use crate::nsys::{self, corpus};
use crate::sample::sample;
use crate::{
    formats, hlo as programs, kineto as traces, ncu_report, nsys_report as reports, pprof as profile,
    recorder as rings, xplane as profiles,
};

/// Longest file of the corpus that is damaged, in bytes: what is large is slow, and no more
/// telling.
const LONGEST: u64 = 400 << 10;

/// A reader with its files.
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) read: fn(&Path) -> Result<Capture, String>,
    pub(super) seeds: fn() -> Seeds,
}

pub(super) type Seeds = Vec<Seed>;

/// A whole file, damaged before `pack`.
pub(super) struct Seed {
    pub(super) bytes: Vec<u8>,
    pub(super) pack: fn(Vec<u8>) -> Vec<u8>,
}

fn plain(bytes: Vec<u8>) -> Seed {
    let pack = |bytes| bytes;
    Seed { bytes, pack }
}

/// Damaged below the compression.
fn packed(bytes: Vec<u8>) -> Seed {
    let pack = |bytes: Vec<u8>| traces::gzip_of(bytes);
    Seed { bytes, pack }
}

fn of_corpus(files: &[&str]) -> Vec<Seed> {
    let small = files.iter().filter_map(|file| corpus(file));
    small
        .filter(|path| path.metadata().is_ok_and(|metadata| metadata.len() <= LONGEST))
        .map(|path| plain(std::fs::read(path).unwrap()))
        .collect()
}

fn limits() -> ReadLimits {
    ReadLimits {
        max_text_bytes: 64 << 20,
        max_chunk_bytes: 4 << 20,
        max_events: 1_000_000,
        max_table_rows: 1_000_000,
        max_string_bytes: 16 << 20,
        max_rows: 1 << 16,
        max_query_time: Duration::from_secs(20),
    }
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

/// Every format that is read here and not by another program.
pub(super) const ALL: &[Target] = &[
    Target {
        name: "nsys-hdf",
        read: |path| nsys_hdf::read(path, &limits()).map_err(text),
        seeds: || {
            let mut seeds: Seeds = [Schema::V2022, Schema::V2023]
                .map(|schema| plain(std::fs::read(sample(schema, false).path()).unwrap()))
                .into();
            if let Some(export) = nsys::export("alpa-jax/jax_profile_mem.nsys-rep") {
                let bytes = std::fs::read(export.path()).unwrap();
                seeds.extend((bytes.len() <= 4 << 20).then(|| plain(bytes)));
            }
            seeds
        },
    },
    Target {
        name: "nsys-sqlite",
        read: |path| nsys_sqlite::read(path, &limits()).map_err(text),
        seeds: || {
            let own = [Schema::V2022, Schema::V2023]
                .map(|schema| plain(std::fs::read(sample(schema, false).sqlite()).unwrap()));
            own.into_iter().chain(of_corpus(&["nsys-ai/mock.sqlite"])).collect()
        },
    },
    Target {
        name: "nsys-report",
        read: |path| nsys_report::read(path, &limits()).map_err(text),
        seeds: || {
            let small = nsys::reports_of_corpus().into_iter();
            let small = small.filter(|path| path.metadata().is_ok_and(|metadata| metadata.len() <= LONGEST));
            let small = small.map(|path| plain(std::fs::read(path).unwrap()));
            let events = reports::sample().chunks.into_iter().flat_map(|chunk| chunk.0);
            // Damaged below the container, which would not let much through.
            let inside = Seed {
                bytes: events.collect(),
                pack: reports::writer::around,
            };
            let whole = plain(reports::sample().bytes());
            [whole, inside].into_iter().chain(small).collect()
        },
    },
    Target {
        name: "timeline",
        read: |path| {
            let read = timeline_file::read(path, &limits()).map_err(text)?;
            Ok(read.capture)
        },
        seeds: || {
            let export = sample(Schema::V2023, false);
            let path = export.beside("timeline.h5");
            timeline_file::write(&export.timeline(), &path).unwrap();
            vec![plain(std::fs::read(path).unwrap())]
        },
    },
    Target {
        name: "kineto",
        read: |path| kineto::read(path, &limits()).map_err(text),
        seeds: || {
            let document = traces::document(traces::EVENTS);
            let mut seeds = of_corpus(&[
                "hta/triton_example-triton_example.json.gz",
                "hta/cuda_event_sync-event_sync_trace.json.gz",
                "kineto-samples/gpu_metrics_input.json",
            ]);
            seeds.push(plain(traces::gzip_of(&document)));
            seeds.push(packed(document.clone().into_bytes()));
            seeds.push(plain(document.into_bytes()));
            seeds
        },
    },
    Target {
        name: "xplane",
        read: |path| xplane::read(path, &limits()).map_err(text),
        seeds: || {
            let mut seeds = of_corpus(&["tracelens-jax/jax_conv_minimal_08.xplane.pb"]);
            seeds.push(plain(profiles::space("forward")));
            seeds
        },
    },
    Target {
        name: "hlo",
        read: |path| {
            let capture = hlo::read(path, &limits()).map_err(text)?;
            // What looks into a program has it damaged too.
            let timeline = Timeline {
                capture,
                ..Timeline::default()
            };
            let _ = HloPrograms::of(&timeline);
            Ok(timeline.capture)
        },
        seeds: || {
            let text = programs::text("x.3", "jit(f)/dot");
            vec![
                plain(programs::program("jit_f").0),
                plain(format!("{text}\n{}", programs::PLAN).into_bytes()),
                plain(text.into_bytes()),
            ]
        },
    },
    Target {
        name: "ncu-csv",
        read: |path| ncu::read(path, &limits()).map_err(text),
        seeds: || {
            let mut seeds = of_corpus(&[
                "llm-perf-opt-ncu/kernel_0003.details.csv",
                "llm-perf-opt-ncu/kernel_0003.metrics.csv",
            ]);
            seeds.push(plain(formats::details("gemm").into_bytes()));
            seeds.push(plain(formats::RAW.into()));
            seeds
        },
    },
    Target {
        name: "ncu-report",
        read: |path| ncu::read(path, &limits()).map_err(text),
        seeds: || {
            let mut seeds = of_corpus(&["mojo-gtx1660ti/mojo_profile.ncu-rep"]);
            seeds.push(plain(ncu_report::report()));
            seeds
        },
    },
    Target {
        name: "pprof",
        read: |path| pprof::read(path, &limits()).map_err(text),
        seeds: || {
            let mut seeds = of_corpus(&["microjax/memory.prof"]);
            seeds.push(plain(profile::profile()));
            seeds.push(packed(profile::profile()));
            seeds
        },
    },
    Target {
        name: "recorder",
        read: |path| {
            // Both ways to read it go over the same bytes.
            recorder::counts(path).map_err(text)?;
            recorder::read(path, &limits()).map_err(text)
        },
        seeds: || vec![plain(rings::ring().0)],
    },
    Target {
        name: "any",
        read: |path| read(path, &limits()).map_err(text),
        seeds: || {
            vec![
                plain(traces::document(traces::EVENTS).into_bytes()),
                plain(profiles::space("forward")),
                plain(formats::details("gemm").into_bytes()),
                plain(std::fs::read(sample(Schema::V2022, false).sqlite()).unwrap()),
                plain(reports::sample().bytes()),
                plain(b"\x89HDF\r\n\x1a\n".repeat(600)),
                plain(b"U3w[END]NVIDIA Nsight Systems Stream 2022.4.2.1-df9881f!\n".repeat(9)),
            ]
        },
    },
];

pub(super) fn find(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}
