//! Readers against an independent reading of the same file: small programs in Python that use its
//! standard library alone, and h5py (of the Python that `FLOPWATCH_PYTHON` names) for HDF5.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use flopwatch_model::{Capture, Category, ColumnId, Values};
use flopwatch_trace::{ReadLimits, kineto, nsys_hdf, nsys_report, nsys_sqlite, xplane};

use crate::capture::timeline_of;
use crate::nsys::{self, corpus};

/// What a program of `tests/suite/independent` prints: group, what, value.
type Sums = BTreeMap<(String, String), i128>;

/// Runs `script` over `path`; a printed reason to skip where there is no Python.
fn reading(script: &str, path: &Path) -> Option<Sums> {
    reading_with("python3".as_ref(), script, path)
}

fn reading_with(python: &OsStr, script: &str, path: &Path) -> Option<Sums> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/independent");
    let Ok(output) = Command::new(python).arg(folder.join(script)).arg(path).output() else {
        println!("skipped: no {} on this machine", python.display());
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let sums = lines.lines().map(|line| {
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap().to_owned();
        ((word(), word()), word().parse().unwrap())
    });
    Some(sums.collect())
}

/// The sum of what events say.
fn sum(id: ColumnId, values: &Values) -> i128 {
    let values = (0..values.len()).map(|at| values.get(at).unwrap());
    let said = values.filter(|value| id.missing() == 0 || *value != id.missing());
    said.map(i128::from).sum()
}

/// The same figures of what a reader of ours found.
fn figures(capture: &Capture, asked: &Sums) -> Sums {
    let figure = |group: &str, what: &str| -> i128 {
        if group == "session" {
            return i128::from(capture.session_start_utc_ns.unwrap_or(0));
        }
        if group == "samples" {
            let samples = capture.counters.iter().map(|series| series.value.len());
            return i128::try_from(samples.sum::<usize>()).unwrap();
        }
        let category = Category::from_name(group).unwrap_or_else(|| panic!("no category {group}"));
        let Some(events) = capture.events.get(&category) else {
            return -1;
        };
        match what {
            "events" => i128::from(events.count()),
            "names" => i128::try_from(events.names.len()).unwrap(),
            "duration" => events.duration_ns.iter().map(|ns| i128::from(*ns)).sum(),
            "start" => events.start_ns.iter().map(|ns| i128::from(*ns)).sum(),
            "correlation" => events.correlation.iter().map(|id| i128::from(*id)).sum(),
            _ => {
                let id = [
                    ColumnId::Bytes,
                    ColumnId::GridX,
                    ColumnId::GridY,
                    ColumnId::GridZ,
                    ColumnId::BlockX,
                    ColumnId::BlockY,
                    ColumnId::Registers,
                    ColumnId::SharedDynamic,
                    ColumnId::ExternalId,
                    ColumnId::StepNumber,
                    ColumnId::Flops,
                    ColumnId::RangeStyle,
                    ColumnId::Color,
                    ColumnId::Cpu,
                ];
                let id = id.into_iter().find(|id| id.name() == what);
                let id = id.unwrap_or_else(|| panic!("no column {what}"));
                events.column(id).map_or(0, |values| sum(id, values))
            }
        }
    };
    asked
        .keys()
        .map(|(group, what)| ((group.clone(), what.clone()), figure(group, what)))
        .collect()
}

/// Compares every figure, and that no category is there that the other reading lacks.
fn compare(path: &Path, capture: &Capture, expected: &Sums) {
    assert_eq!(figures(capture, expected), *expected, "{}", path.display());
    let known: Vec<&str> = expected.keys().map(|(group, _)| group.as_str()).collect();
    for category in capture.events.keys() {
        assert!(known.contains(&category.name()), "{}: {category:?}", path.display());
    }
}

#[test]
fn kineto_traces_of_the_corpus_hold_what_python_finds_in_them() {
    let traces = [
        "hta/alexnet-benchmark_result_2869224_1695835535_trace.json.gz",
        "hta/cuda_event_sync-event_sync_trace.json.gz",
        "hta/nccl_parser_config-nccl_data.json.gz",
        "hta/trace_compare-base-base.json.gz",
        "hta/trace_compare-test-test.json.gz",
        "hta/trace_diff-control-control.json.gz",
        "hta/trace_filter-sampled_rank-0.json.gz",
        "hta/trace_filter-sampled_rank-1.json.gz",
        "hta/triton_example-triton_example.json.gz",
        "kineto-samples/gpu_metrics_expected.json",
        "kineto-samples/gpu_metrics_input.json",
        "kineto-samples/resnet50_w0_span1.pt.trace.json.gz",
        "nsightful/power_iteration__baseline.json.gz",
        "param-resnet/resnet_kineto.json.gz",
        "tracelens-h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
        "tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz",
    ];
    for trace in traces {
        let Some(path) = corpus(trace) else { continue };
        let Some(expected) = reading("kineto.py", &path) else {
            return;
        };
        let capture = kineto::read(&path, &ReadLimits::default()).unwrap();
        compare(&path, &capture, &expected);
        let mut losses = capture.losses.list();
        losses.retain(|drop| drop.what != "instant events");
        assert_eq!(losses, [], "{trace}");
        let counts = expected.iter().filter(|(key, _)| key.1 == "events");
        println!("{trace}: {} events", counts.map(|(_, n)| n).sum::<i128>());
    }
}

#[test]
fn xplane_profiles_of_the_corpus_hold_what_python_finds_in_them() {
    for profile in [
        "tracelens-jax/jax_conv_minimal_08.xplane.pb",
        "xprof/tpu_inference_2.xplane.pb",
    ] {
        let Some(path) = corpus(profile) else { continue };
        let Some(expected) = reading("xplane.py", &path) else {
            return;
        };
        let capture = xplane::read(&path, &ReadLimits::default()).unwrap();
        compare(&path, &capture, &expected);
        assert_eq!(capture.losses.list(), [], "{profile}");
    }
}

#[test]
fn databases_of_the_corpus_hold_what_python_finds_in_them() {
    for database in [
        "nsys-ai/mfu_2gpu_before.sqlite",
        "nsys-ai/mock.sqlite",
        "nsightful/power_iteration__baseline.sqlite",
        "pipit-nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite",
    ] {
        let Some(path) = corpus(database) else { continue };
        let Some(expected) = reading("nsys.py", &path) else {
            return;
        };
        let capture = nsys_sqlite::read(&path, &ReadLimits::default()).unwrap();
        compare(&path, &transformed(capture), &expected);
    }
}

#[test]
fn reports_of_the_corpus_hold_what_python_finds_in_them() {
    for path in nsys::reports_of_corpus() {
        let Some(expected) = reading("nsys.py", &path) else {
            return;
        };
        let capture = nsys_report::read(&path, &ReadLimits::default()).unwrap();
        compare(&path, &transformed(capture), &expected);
    }
}

#[test]
fn reports_of_the_corpus_hold_what_python_finds_in_their_exports() {
    for report in nsys::REPORTS {
        let Some(export) = nsys::export(report) else { continue };
        let path = export.sqlite();
        if let Some(expected) = reading("nsys.py", &path) {
            let capture = nsys_sqlite::read(&path, &ReadLimits::default()).unwrap();
            compare(&path, &transformed(capture), &expected);
        }
        let Some(python) = std::env::var_os("FLOPWATCH_PYTHON") else {
            println!("skipped: FLOPWATCH_PYTHON names no Python with h5py (cargo xtask setup makes one)");
            continue;
        };
        let path = export.path();
        if let Some(expected) = reading_with(&python, "nsys.py", &path) {
            let capture = nsys_hdf::read(&path, &ReadLimits::default()).unwrap();
            compare(&path, &transformed(capture), &expected);
        }
    }
}

/// As it is published: names that no event uses are gone, and equal ones are one.
fn transformed(capture: Capture) -> Capture {
    timeline_of(capture).capture
}

#[test]
fn nsight_compute_pages_of_the_corpus_hold_what_python_finds_in_them() {
    let numbers = [
        "0001", "0003", "0005", "0007", "0009", "0011", "0013", "0015", "0017", "0019",
    ];
    let pages = numbers
        .iter()
        .flat_map(|number| ["details", "metrics"].map(|page| format!("llm-perf-opt-ncu/kernel_{number}.{page}.csv")));
    for page in pages.chain(["nsightful/copy_blocked.csv".to_owned()]) {
        let Some(path) = corpus(&page) else { continue };
        let Some(expected) = reading("ncu.py", &path) else {
            return;
        };
        let capture = flopwatch_trace::read(&path, &ReadLimits::default()).unwrap();
        let profiles = || capture.profiles.iter();
        let metrics = || profiles().flat_map(|profile| profile.metrics.values());
        let found = |group: &str| match group {
            "launches" => i128::try_from(capture.profiles.len()).unwrap(),
            "block" => profiles().map(|profile| i128::from(profile.block[0])).sum(),
            "rules" => i128::try_from(profiles().map(|profile| profile.rules.len()).sum::<usize>()).unwrap(),
            "drops" => capture.losses.list().iter().map(|drop| i128::from(drop.count)).sum(),
            _ => i128::try_from(metrics().count()).unwrap(),
        };
        for ((group, what), value) in &expected {
            if what == "millionths" {
                let millionths =
                    metrics().map(|metric| format!("{:.0}", (metric.value.number().unwrap() * 1e6).round_ties_even()));
                let sum: i128 = millionths.map(|digits| digits.parse::<i128>().unwrap()).sum();
                assert_eq!(sum, *value, "{page}");
            } else {
                assert_eq!(found(group), *value, "{page}: {group} {what}");
            }
        }
    }
}
