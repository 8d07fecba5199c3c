//! Reports of Nsight Compute: of our own making, and those of the corpus against NVIDIA's own
//! reader.

use std::collections::BTreeMap;
use std::path::Path;

use flopwatch_model::{
    Capture, FocusMetric, Instances, KernelCode, KernelProfile, LossReason, MetricValue, OpenRange, RuleKind,
    RuleResult, Scope, Speedup, ValueList,
};
use flopwatch_trace::{ReadLimits, ncu};
use serde_json::{Value, json};

use crate::capture::{lost, read_as};
use crate::limits::limited;
use crate::message::{Message, new};
use crate::ncu_reports::nvidia_says;
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

/// A rule with a message, and a table that is none.
fn rule() -> Message {
    let message = new()
        .text(1, "Set API_TOKEN=abcdef and use fewer registers")
        .number(2, 4)
        .number(3, 1)
        .text(4, "Occupancy");
    let focus = new()
        .number(1, 1)
        .text(2, "launch__registers_per_thread")
        .double(3, 128.0)
        .number(4, 2)
        .text(5, "Decrease");
    let worth = new().number(1, 2).double(2, 12.5);
    let item = new().message(1, &message).message(8, &focus).message(10, &worth);
    let table = new().message(2, &new().text(1, "a table"));
    new()
        .text(1, "TheoreticalOccupancy")
        .text(2, "Theoretical Occupancy")
        .message(3, &new().message(1, &item).message(1, &table))
        .text(4, "Occupancy")
}

/// Ranges on a thread's stack, of which one has a registered name, one of another thread and one of
/// none.
fn state(thread: u64) -> Message {
    let attributes = |message: &Message| {
        let none = new().number(1, 0);
        let event = new().number(1, 3).number(2, 0).message(3, &none).message(4, &none);
        event.message(5, message)
    };
    let registered = attributes(&new().number(1, 3).number(3, 99));
    let step = new()
        .text(1, "step 7")
        .message(2, &attributes(&new().number(1, 1).text(2, "step 7")));
    let layer = new().text(1, "").message(2, &registered);
    let stack = new().number(1, 1).message(3, &step).message(3, &layer);
    let epoch = new().number(1, 1).text(2, "epoch");
    let string = new().number(1, 99).text(2, "layer 3");
    new()
        .message(1, &new().number(1, 1).text(2, "training").message(3, &string))
        .message(2, &new().number(1, 5).message(2, &new().number(1, 1).message(3, &step)))
        .message(2, &new().number(1, thread).message(2, &stack))
        .message(3, &new().number(1, 1).message(3, &epoch))
}

/// Two launches and a range in two blocks, each with strings of its own.
pub(crate) fn report() -> Vec<u8> {
    let part = |address: u64, count: u64| {
        new()
            .message(1, &new().number(5, address))
            .message(2, &new().number(5, count))
    };
    let executed = metric(5, &new().number(5, 12))
        .message(3, &part(0x7000, 5))
        .message(3, &part(0x7010, 7));
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
        .message(13, &executed)
        .message(13, &metric(4, &new().double(3, f64::NAN)))
        .message(13, &metric(9, &new().double(3, 1.0)))
        .message(
            17,
            &new().text(1, "SpeedOfLight").text(2, "GPU Speed Of Light Throughput"),
        )
        .message(19, &new().text(1, "Silent").text(2, "Found nothing"))
        .message(19, &rule())
        .message(21, &state(77))
        .message(15, &new().number(1, 5))
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
    let source = new()
        .number(1, 5)
        .text(2, "__global__ void gemm")
        .text(3, ".entry gemm")
        .bytes(4, b"not an ELF file");
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
                .message(4, &strings(&["device__name", "smsp__none.avg", "inst_executed"]))
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
    read_as("kernels.ncu-rep", bytes, |path| ncu::read(path, limits))
}

#[test]
fn launches_and_ranges_have_their_places_and_every_value_exactly() {
    let capture = read(&whole(), &ReadLimits::default()).unwrap();
    let [gemm, copy, range] = capture.profiles.as_slice() else {
        panic!("{:?}", capture.profiles)
    };
    assert_eq!((gemm.grid, gemm.block), ([1024, 2, 1], [256, 1, 1]));
    for (of, name, id, process, place) in [
        (gemm, "gemm(float *)", 0, 4711, (3, 5, 13)),
        (copy, "copy", 1, 4712, (0, 0, 0)),
        (range, "range", 2, 4712, (0, 6, 0)),
    ] {
        assert_eq!((of.name.as_str(), of.id, of.process), (name, id, process));
        assert_eq!((of.device, of.context, of.stream), place, "{name}");
    }
    let values = |profile: &KernelProfile| -> Vec<(String, MetricValue, String)> {
        let metrics = profile.metrics.iter();
        let value = |(name, metric): (&String, &flopwatch_model::Metric)| {
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
            is("inst_executed", MetricValue::Integer(12), "inst"),
            is("launch__device_id", MetricValue::Integer(3), ""),
        ]
    );
    for (profile, ns) in [(copy, 0.5), (range, 9.0)] {
        let time = is("gpu__time_duration.sum", MetricValue::Number(ns), "ns");
        assert_eq!(values(profile), [time]);
    }
    let mut losses = lost(&capture);
    losses.retain(|loss| loss.0 == LossReason::Unsupported);
    let expected = [
        "metrics without a name",
        "metrics without a value",
        "values that are no numbers",
    ];
    let expected = expected.map(|what| (LossReason::Unsupported, what.to_owned(), 1));
    assert_eq!(losses, expected);
    assert_eq!(capture.redactions, 2);
}

#[test]
fn a_launch_keeps_what_rules_said_of_it_the_ranges_around_it_and_the_parts_of_its_metrics() {
    let capture = read(&whole(), &ReadLimits::default()).unwrap();
    let gemm = &capture.profiles[0];
    let rule = RuleResult {
        rule: "TheoreticalOccupancy".to_owned(),
        name: "Theoretical Occupancy".to_owned(),
        section: "Occupancy".to_owned(),
        kind: RuleKind::Optimization,
        title: "Occupancy".to_owned(),
        text: "Set API_TOKEN=[redacted] and use fewer registers".to_owned(),
        speedup: Some(Speedup {
            percent: 12.5,
            scope: Scope::Global,
        }),
        metrics: vec![FocusMetric {
            name: "launch__registers_per_thread".to_owned(),
            value: Some(128.0),
            info: "Decrease".to_owned(),
        }],
    };
    assert_eq!(gemm.rules, [rule]);
    let range = |name: &str, thread| OpenRange {
        domain: "training".to_owned(),
        name: name.to_owned(),
        thread,
    };
    let open = [
        range("step 7", Some(77)),
        range("layer 3", Some(77)),
        range("epoch", None),
    ];
    assert_eq!(gemm.ranges, open);
    assert_eq!(gemm.sections, ["SpeedOfLight"]);
    let code = KernelCode {
        source: "__global__ void gemm".to_owned(),
        ptx: ".entry gemm".to_owned(),
        machine_code_bytes: 15,
        ..KernelCode::default()
    };
    assert_eq!(gemm.code.as_deref(), Some(&code));
    let executed = Instances {
        keys: ValueList::Integers(vec![0x7000, 0x7010]),
        values: ValueList::Integers(vec![5, 7]),
    };
    assert_eq!(gemm.instances["inst_executed"], executed);
    for other in &capture.profiles[1..] {
        assert!(other.rules.is_empty() && other.ranges.is_empty() && other.instances.is_empty());
    }
}

#[test]
fn a_report_that_is_cut_off_anywhere_names_the_place() {
    let report = whole();
    let mut refused = 0;
    for end in MAGIC.len()..report.len() {
        if let Err(error) = read(&report[..end], &ReadLimits::default()) {
            let is_known = error.contains("kernels.ncu-rep") && error.contains("damaged at byte");
            assert!(is_known, "{error}");
            refused += 1;
        }
    }
    // Whole up to the end of a block is a report: it was cut off while it was written.
    assert_eq!(refused, report.len() - MAGIC.len() - 3);
    let limits = limited(|of| of.max_rows = 2);
    let error = read(&report, &limits).unwrap_err();
    assert!(error.contains("more than 2 launches"), "{error}");
}

/// A rule's message with NVIDIA's numbers of kinds and scopes; some of what informs has no kind
/// there, and ours does not tell.
fn as_nvidia_says_it(rule: &RuleResult, information: &Value) -> Value {
    let kind = match rule.kind {
        RuleKind::Information if information == &Value::from(0) => 0,
        RuleKind::Information => 1,
        RuleKind::Optimization => 2,
        RuleKind::Warning => 3,
        RuleKind::Error => 4,
    };
    let speedup = rule.speedup.map(|speedup| {
        let scope = match speedup.scope {
            Scope::Unknown => 0,
            Scope::Local => 1,
            Scope::Global => 2,
        };
        json!([scope, speedup.percent])
    });
    let metrics = rule.metrics.iter().map(|of| json!([of.name, of.value, of.info]));
    let metrics: Vec<Value> = metrics.collect();
    json!([
        rule.rule,
        rule.name,
        rule.section,
        rule.title,
        rule.text,
        kind,
        metrics,
        speedup
    ])
}

fn values(list: &ValueList) -> Value {
    match list {
        ValueList::Integers(list) => json!(list),
        ValueList::Numbers(list) => json!(list),
        ValueList::Texts(list) => json!(list),
    }
}

/// What NVIDIA's reader says of each launch, by the name of the metric.
fn oracle(path: &Path) -> Option<Vec<Value>> {
    nvidia_says("ncu_rep.py", path, &[])
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
        let Some(expected) = oracle(&path) else { return };
        let lengths = [capture.profiles.len(), expected.len()];
        assert_eq!(lengths, [launches; 2], "{report}");
        for (profile, expected) in capture.profiles.iter().zip(&expected) {
            assert_eq!(expected["name"], profile.name.as_str(), "{report}");
            let told = expected["metrics"].as_object().unwrap();
            for (name, metric) in &profile.metrics {
                let told = &told[name];
                let same = match &metric.value {
                    MetricValue::Number(number) => told["value"].as_f64() == Some(*number),
                    MetricValue::Integer(number) => told["value"].as_u64() == Some(*number),
                    MetricValue::Text(text) => told["value"] == text.as_str(),
                };
                assert!(same, "{report}: {name}: {metric:?}, and NVIDIA's reader says {told}");
                assert_eq!(told["unit"], metric.unit.as_str(), "{report}: {name}");
            }
            let without = told.keys().filter(|name| !profile.metrics.contains_key(*name));
            assert_eq!(without.collect::<Vec<_>>(), [""; 0], "{report}");
            let told_rules = expected["rules"].as_array().unwrap();
            assert_eq!(profile.rules.len(), told_rules.len(), "{report}");
            for (rule, told) in profile.rules.iter().zip(told_rules) {
                assert_eq!(&as_nvidia_says_it(rule, &told[5]), told, "{report}");
            }
            let mut sections = profile.sections.clone();
            sections.sort_unstable();
            assert_eq!(json!(sections), expected["sections"], "{report}");
            let parts = expected["instances"].as_object().unwrap();
            let named: BTreeMap<&String, [Value; 2]> = profile
                .instances
                .iter()
                .map(|(name, of)| (name, [values(&of.keys), values(&of.values)]))
                .collect();
            let known: Vec<&String> = named.keys().copied().collect();
            assert_eq!(known, parts.keys().collect::<Vec<_>>(), "{report}");
            for (name, found) in &named {
                assert_eq!(json!(found), parts[*name], "{report}: {name}");
            }
            let (rules, parts) = (profile.rules.len(), named.len());
            println!("{report}: {rules} messages of rules, {parts} metrics with parts");
        }
    }
}

#[test]
fn ptx_that_a_compiler_left_in_machine_code_is_read() {
    let Some(path) = corpus("indexspaces/indexspaces_profile_a.ncu-rep") else {
        return;
    };
    let capture = ncu::read(&path, &ReadLimits::default()).unwrap();
    let code = capture.profiles[0].code.as_ref().unwrap();
    assert_eq!(code.machine_code_bytes, 6912);
    for line in [
        "mov.u32 \t%r2, %tid.x;",
        "cvt.u64.u32 \t%rd5, %r3;",
        "add.s32 \t%r3, %r2, 1;",
    ] {
        // NVIDIA's reader gives these lines for the launch's first instructions.
        assert!(code.ptx.contains(line), "{line}: {}", code.ptx);
    }
}

#[test]
fn ranges_that_were_open_are_those_of_nvidias_reader() {
    // No report of the corpus has any, so that a real one gets ours.
    let Some(path) = corpus("mojo-gtx1660ti/mojo_profile.ncu-rep") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let annotated = folder.path().join("annotated.ncu-rep");
    std::fs::write(&annotated, with_state(&std::fs::read(path).unwrap())).unwrap();
    let capture = ncu::read(&annotated, &ReadLimits::default()).unwrap();
    let ranges = capture.profiles[0].ranges.iter();
    let names: Vec<&str> = ranges.map(|range| range.name.as_str()).collect();
    assert_eq!(names, ["step 7", "layer 3", "epoch"]);
    let Some(expected) = oracle(&annotated) else { return };
    let open = json!([["training", ["step 7", "layer 3"], ["epoch"]]]);
    assert_eq!(expected[0]["ranges"], open);
    assert_eq!(expected[1]["ranges"], json!([]));
}

/// The report with [`state`] in its first launch.
fn with_state(report: &[u8]) -> Vec<u8> {
    let size = |at: usize| usize::try_from(u32::from_le_bytes(report[at..at + 4].try_into().unwrap())).unwrap();
    let mut at = MAGIC.len();
    at += 4 + size(at);
    let state = new().message(21, &state(45_625)).0;
    loop {
        let header = &report[at + 4..at + 4 + size(at)];
        let mut fields = HeaderFields { bytes: header, at: 0 };
        let mut numbers = BTreeMap::new();
        while let Some((field, value, span)) = fields.next_field() {
            numbers.insert(field, (value, span));
        }
        let payload = at + 4 + header.len();
        let bytes = numbers.get(&5).map_or(0, |(bytes, _)| usize::try_from(*bytes).unwrap());
        if numbers.get(&2).is_none_or(|(launches, _)| *launches == 0) {
            at = payload + bytes;
            continue;
        }
        let (_, span) = numbers[&5].clone();
        let grown = new().number(5, u64::try_from(bytes + state.len()).unwrap()).0;
        let header = [&header[..span.start], &grown, &header[span.end..]].concat();
        let launch = payload + 4 + size(payload);
        return [
            &report[..at],
            &Message(header).sized(),
            &Message([&report[payload + 4..launch], &state].concat()).sized(),
            &report[launch..],
        ]
        .concat();
    }
}

/// Numbers and lengths in a header, each with where its field lies.
struct HeaderFields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl HeaderFields<'_> {
    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.bytes[self.at];
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn next_field(&mut self) -> Option<(u64, u64, std::ops::Range<usize>)> {
        let start = self.at;
        if start == self.bytes.len() {
            return None;
        }
        let key = self.varint();
        let value = self.varint();
        if key & 7 == 2 {
            self.at += usize::try_from(value).unwrap();
        }
        Some((key >> 3, value, start..self.at))
    }
}
