//! Reports of Nsight Compute: of our own making, and those of the corpus against NVIDIA's own reader.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use flopwatch_trace::model::{Capture, KernelProfile, LossReason, MetricValue};
use flopwatch_trace::{ReadLimits, ncu};
use serde_json::Value;

use crate::message::{Message, new};
use crate::nsys::corpus;

const MAGIC: &[u8] = b"NVR\0";

/// A block: its header, and behind it what it announces.
fn block(header: Message, payload: &[Message]) -> Vec<u8> {
    let payload: Vec<u8> = payload.iter().flat_map(Message::sized).collect();
    let header = header.number(5, u64::try_from(payload.len()).unwrap());
    [header.sized(), payload].concat()
}

fn metric(name: u64, value: &Message) -> Message {
    new().number(1, name).message(2, value)
}

fn sizes(x: u64, y: u64, z: u64) -> Message {
    new().number(1, x).number(2, y).number(3, z)
}

fn strings(texts: &[&str]) -> Message {
    texts.iter().fold(new(), |table, text| table.text(1, text))
}

/// Two launches and a range in two blocks, each with strings of its own.
pub(crate) fn report() -> Vec<u8> {
    let gemm = new()
        .number(1, 77)
        .text(5, "_Z4gemmPf")
        .text(6, "gemm")
        .text(7, "gemm(float *)")
        .message(10, &sizes(1024, 2, 1))
        .message(11, &sizes(256, 1, 1))
        .message(13, &metric(0, &new().double(3, 1234.5)))
        .message(13, &metric(1, &new().number(5, 3)))
        .message(13, &metric(2, &new().number(4, 4_000_000_000)))
        .message(
            13,
            &metric(3, &new().text(1, "HF_TOKEN=abcdef"))
                .message(3, &new())
                .message(3, &new()),
        )
        .message(13, &metric(4, &new().double(3, f64::NAN)))
        .message(13, &metric(9, &new().double(3, 1.0)))
        .message(19, &new().text(1, "SOLBottleneck"))
        .number(22, 5)
        .number(23, 13)
        .number(99, 1);
    let copy = new()
        .text(6, "copy")
        .message(13, &metric(0, &new().float(2, 0.5)))
        .message(13, &new().number(1, 1));
    let range = new().message(4, &metric(0, &new().double(3, 9.0))).number(11, 6);
    let session = new().number(1, 4711).text(11, "ncu --set full python train.py");
    let names = ["gpu__time_duration.sum", "launch__device_id", "device__serial"];
    let source = new().text(2, "__global__ void gemm");
    [
        [MAGIC, &new().number(1, 7).sized()].concat(),
        block(new().message(3, &session), &[]),
        block(
            new().number(1, 1).number(2, 1).message(4, &strings(&names)),
            &[source, gemm],
        ),
        block(
            new()
                .number(2, 1)
                .number(7, 1)
                .message(4, &strings(&["device__name", "smsp__none.avg"]))
                .message(6, &new().number(1, 4712)),
            &[copy, range],
        ),
        b" Version 2022.3.0.0 (build 31729285)".to_vec(),
    ]
    .concat()
}

/// The report without what follows its last block, which no report has.
fn whole() -> Vec<u8> {
    let report = report();
    let end = report.len() - b" Version 2022.3.0.0 (build 31729285)".len();
    report[..end].to_vec()
}

fn read(bytes: &[u8], limits: &ReadLimits) -> Result<Capture, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernels.ncu-rep");
    std::fs::write(&path, bytes).unwrap();
    ncu::read(&path, limits).map_err(|error| error.to_string())
}

#[test]
fn launches_and_ranges_have_their_places_and_every_value_exactly() {
    let capture = read(&whole(), &ReadLimits::default()).unwrap();
    let [gemm, copy, range] = capture.profiles.as_slice() else {
        panic!("{:?}", capture.profiles)
    };
    let place = |profile: &KernelProfile| {
        (
            profile.id,
            profile.process,
            profile.device,
            profile.context,
            profile.stream,
        )
    };
    assert_eq!(
        (gemm.name.as_str(), place(gemm)),
        ("gemm(float *)", (0, 4711, 3, 5, 13))
    );
    assert_eq!((gemm.grid, gemm.block), ([1024, 2, 1], [256, 1, 1]));
    assert_eq!((copy.name.as_str(), place(copy)), ("copy", (1, 4712, 0, 0, 0)));
    assert_eq!((range.name.as_str(), place(range)), ("range", (2, 4712, 0, 6, 0)));
    let values = |profile: &KernelProfile| -> Vec<(String, MetricValue, String)> {
        let metrics = profile.metrics.iter();
        let value = |(name, metric): (&String, &flopwatch_trace::model::Metric)| {
            (name.clone(), metric.value.clone(), metric.unit.clone())
        };
        metrics.map(value).collect()
    };
    let is = |name: &str, value, unit: &str| (name.to_owned(), value, unit.to_owned());
    assert_eq!(
        values(gemm),
        [
            is("device__name", MetricValue::Text("HF_TOKEN=[redacted]".to_owned()), ""),
            is("device__serial", MetricValue::Integer(4_000_000_000), ""),
            is("gpu__time_duration.sum", MetricValue::Number(1234.5), "ns"),
            is("launch__device_id", MetricValue::Integer(3), ""),
        ]
    );
    assert_eq!(
        values(copy),
        [is("gpu__time_duration.sum", MetricValue::Number(0.5), "ns")]
    );
    assert_eq!(
        values(range),
        [is("gpu__time_duration.sum", MetricValue::Number(9.0), "ns")]
    );
    let drops: BTreeMap<String, u64> = capture
        .drops
        .list()
        .into_iter()
        .filter(|drop| drop.reason == LossReason::Unsupported)
        .map(|drop| (drop.what, drop.count))
        .collect();
    let expected = [
        ("code of kernels", 1),
        ("instances of metrics", 2),
        ("metrics without a name", 1),
        ("metrics without a value", 1),
        ("results of rules", 1),
        ("values that are no numbers", 1),
    ];
    assert_eq!(drops, expected.map(|(what, count)| (what.to_owned(), count)).into());
    assert_eq!(capture.redactions, 1);
}

#[test]
fn a_report_that_is_cut_off_anywhere_names_the_place() {
    let report = whole();
    let mut refused = 0;
    for end in MAGIC.len()..report.len() {
        if let Err(error) = read(&report[..end], &ReadLimits::default()) {
            assert!(
                error.contains("kernels.ncu-rep") && error.contains("damaged at byte"),
                "{error}"
            );
            refused += 1;
        }
    }
    // Whole up to the end of a block is a report: it was cut off while it was written.
    assert_eq!(refused, report.len() - MAGIC.len() - 3);
    let limits = ReadLimits {
        max_rows: 2,
        ..ReadLimits::default()
    };
    let error = read(&report, &limits).unwrap_err();
    assert!(error.contains("more than 2 launches"), "{error}");
}

/// What NVIDIA's reader says of each launch, by the name of the metric; `None` without a Python that has it.
fn oracle(path: &Path) -> Option<Vec<Value>> {
    let python = std::env::var_os("FLOPWATCH_H5PY")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/independent/ncu_rep.py");
    let told = Command::new(python).arg(script).arg(path).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    Some(serde_json::from_slice(&told.stdout).unwrap())
}

#[test]
fn every_value_of_the_corpus_is_that_of_nvidias_reader() {
    for (report, launches) in [
        ("mojo-gtx1660ti/mojo_profile.ncu-rep", 4),
        ("indexspaces/indexspaces_profile_a.ncu-rep", 2),
        ("nukexc-gh200/profile_fastc.ncu-rep", 1),
    ] {
        let Some(path) = corpus(report) else { continue };
        let capture = ncu::read(&path, &ReadLimits::default()).unwrap();
        let Some(expected) = oracle(&path) else {
            println!("skipped: FLOPWATCH_H5PY names no Python with ncu-report (cargo xtask setup makes one)");
            return;
        };
        assert_eq!(
            (capture.profiles.len(), expected.len()),
            (launches, launches),
            "{report}"
        );
        for (profile, expected) in capture.profiles.iter().zip(&expected) {
            assert_eq!(expected["name"], profile.name.as_str(), "{report}");
            let told = expected["metrics"].as_object().unwrap();
            let mut units = 0;
            for (name, metric) in &profile.metrics {
                let told = &told[name];
                let same = match &metric.value {
                    MetricValue::Number(number) => told["value"].as_f64() == Some(*number),
                    MetricValue::Integer(number) => told["value"].as_u64() == Some(*number),
                    MetricValue::Text(text) => told["value"] == text.as_str(),
                };
                assert!(same, "{report}: {name}: {metric:?}, and NVIDIA's reader says {told}");
                if !metric.unit.is_empty() {
                    assert_eq!(told["unit"], metric.unit.as_str(), "{report}: {name}");
                    units += 1;
                }
            }
            let without: Vec<&String> = told
                .keys()
                .filter(|name| !profile.metrics.contains_key(*name))
                .collect();
            assert!(without.is_empty(), "{report}: {without:?}");
            let with_unit = told.values().filter(|metric| metric["unit"] != "").count();
            assert!(
                units * 2 > with_unit,
                "{report}: {units} of {with_unit} units are known"
            );
            println!("{report}: {units} of {with_unit} units");
        }
    }
}
