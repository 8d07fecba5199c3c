//! Our own exports hold the capture that they were made of: a Chrome trace comes back as it was,
//! and a Perfetto trace holds the same events in the same processes, with arrows from the same
//! calls.

use std::collections::{BTreeMap, HashMap};

use flopwatch_analysis::export::{ExportFormat, Table, export};
use flopwatch_model::wire::{Message, Value};
use flopwatch_model::{Capture, Category, ColumnId, CounterSeries, Events, Row, Timeline};
use flopwatch_trace::{ReadLimits, read};

use crate::capture::{read_as, timeline_of};
use crate::cases::case;
use crate::export::Schema;
use crate::nsys::corpus;
use crate::processes::launches;
use crate::sample::sample;

fn exported(timeline: &Timeline, format: ExportFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    export(timeline, format, Table::Events, &mut bytes).unwrap();
    bytes
}

/// What our reader makes of the Chrome trace of a timeline.
fn come_back(timeline: &Timeline) -> Timeline {
    let text = exported(timeline, ExportFormat::Chrome);
    let again = read_as("trace.json", text, |path| read(path, &ReadLimits::default()));
    timeline_of(again.unwrap())
}

/// What an event says in a column of its own.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Own<'a> {
    Number(u64),
    Text(&'a str),
}

/// An event without the numbers that a file gives to names, rows and calls.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told<'a> {
    start_ns: u64,
    duration_ns: u64,
    row: &'a Row,
    name: &'a str,
    correlation: u32,
    own: Vec<(&'static str, Own<'a>)>,
    call: Option<(u64, &'a str, &'a Row)>,
}

/// The call that launched an event.
fn call_of(events: &Events, at: usize) -> Option<usize> {
    usize::try_from(events.number(ColumnId::Launch, at)?).ok()
}

fn told(timeline: &Timeline) -> BTreeMap<Category, Vec<Told<'_>>> {
    let row = |events: &Events, at: usize| timeline.row(events.row[at]).unwrap();
    let calls = timeline.capture.events.get(&Category::CudaApi);
    let mut found = BTreeMap::new();
    for (category, events) in &timeline.capture.events {
        let event = |at: usize| Told {
            start_ns: events.start_ns[at],
            duration_ns: events.duration_ns[at],
            row: row(events, at),
            name: events.name_of(at),
            correlation: events.correlation[at],
            own: own(events, at),
            call: call_of(events, at).map(|call| {
                let calls = calls.unwrap();
                (calls.start_ns[call], calls.name_of(call), row(calls, call))
            }),
        };
        let mut all: Vec<Told<'_>> = (0..events.len()).map(event).collect();
        all.sort_unstable();
        found.insert(*category, all);
    }
    found
}

/// What an event says in columns of its own.
fn own(events: &Events, at: usize) -> Vec<(&'static str, Own<'_>)> {
    let columns = events.columns.iter().filter(|column| column.id != ColumnId::Launch);
    let said = columns.filter_map(|column| {
        let said = if column.id.is_text() {
            Own::Text(events.text(column.id, at)?)
        } else {
            Own::Number(column.values.get(at).filter(|value| *value != column.id.missing())?)
        };
        Some((column.id.name(), said))
    });
    let mut said: Vec<(&str, Own<'_>)> = said.collect();
    said.sort_unstable();
    said
}

/// The series without the samples that JSON has no text for.
fn finite(counters: &[CounterSeries]) -> Vec<CounterSeries> {
    let finite = |series: &CounterSeries| {
        let samples = series.t_ns.iter().zip(&series.value);
        let (t_ns, value) = samples.filter(|(_, value)| value.is_finite()).unzip();
        CounterSeries {
            t_ns,
            value,
            ..series.clone()
        }
    };
    let series = counters.iter().map(finite);
    series.filter(|series| !series.t_ns.is_empty()).collect()
}

fn assert_same(name: &str, after: &Timeline, before: &Timeline) {
    let (told_after, told_before) = (told(after), told(before));
    assert!(told_after.keys().eq(told_before.keys()), "{name}");
    for (category, events) in &told_before {
        let category_after = &told_after[category];
        assert_eq!(category_after.len(), events.len(), "{name}: {category:?}");
        for (after, before) in category_after.iter().zip(events) {
            assert_eq!(after, before, "{name}: {category:?}");
        }
    }
    let (after, before) = (&after.capture, &before.capture);
    assert_eq!(after.captured, before.captured, "{name}");
    assert_eq!(after.devices, before.devices, "{name}");
    assert_eq!(after.source, before.source, "{name}");
    assert_eq!(after.session_start_utc_ns, before.session_start_utc_ns, "{name}");
    assert_eq!(after.duration_ns, before.duration_ns, "{name}");
    assert_eq!(after.losses, before.losses, "{name}");
    assert_eq!(after.redactions, before.redactions, "{name}");
    assert!(after.counters == finite(&before.counters), "{name}: counters");
}

/// Captures of the corpus: two processes of one file, two that were merged, and of each profiler
/// one.
fn captures() -> Vec<(&'static str, Timeline)> {
    let one = |name| Some(read(&corpus(name)?, &ReadLimits::default()).unwrap());
    let ranks = || {
        let ranks = [
            "hta/trace_filter-sampled_rank-0.json.gz",
            "hta/trace_filter-sampled_rank-1.json.gz",
        ];
        let ranks: Option<Vec<Capture>> = ranks.map(one).into_iter().collect();
        Some(Capture::merge(ranks?).unwrap())
    };
    let all = [
        ("nsys-ai", one("nsys-ai/mfu_2gpu_before.sqlite")),
        ("two ranks", ranks()),
        (
            "bert",
            one("tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz"),
        ),
        ("counters", one("kineto-samples/gpu_metrics_expected.json")),
        ("jax", one("tracelens-jax/jax_conv_minimal_08.xplane.pb")),
        ("tpu", one("xprof/tpu_inference_2.xplane.pb")),
    ];
    let held = all
        .into_iter()
        .filter_map(|(name, capture)| Some((name, timeline_of(capture?))));
    held.collect()
}

#[test]
fn a_chrome_trace_of_ours_comes_back_as_the_capture_that_it_was_made_of() {
    let ours = sample(Schema::V2023, false).timeline();
    assert_same("sample", &come_back(&ours), &ours);
    for (name, timeline) in captures() {
        assert_same(name, &come_back(&timeline), &timeline);
    }
}

#[test]
fn two_processes_of_equal_ids_come_back_with_their_own_launches() {
    let Some(path) = case("two_processes_own_chrome_export.sqlite") else {
        return;
    };
    let timeline = timeline_of(read(&path, &ReadLimits::default()).unwrap());
    let of = |name, process, delay| [(name, process, Some(delay)); 5];
    let expected = [of("k700", 700, 10_000), of("k701", 701, 30_000)].concat();
    assert_eq!(launches(&timeline), expected);
    let again = come_back(&timeline);
    assert_eq!(launches(&again), expected);
    assert_same("two processes", &again, &timeline);
    assert_eq!(slices(&timeline), expected_slices(&timeline));
}

/// An event as a reader of Perfetto traces sees it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slice {
    process: String,
    category: String,
    name: String,
    start_ns: u64,
    duration_ns: u64,
    /// What it says of itself and its row.
    said: BTreeMap<String, u64>,
    /// Start, name and process of the call that an arrow leads from.
    call: Option<(u64, String, String)>,
}

/// What every event says of itself and its row, where it is known.
const PLACES: [&str; 5] = ["correlation", "thread", "device", "context", "stream"];

fn expected_slices(timeline: &Timeline) -> Vec<Slice> {
    let capture = &timeline.capture;
    let process = |row: &Row| match (row.capture, row.machine) {
        (0, 0) => format!("process {}", row.process),
        (capture, machine) => format!("process {} (capture {capture}, machine {machine})", row.process),
    };
    let mut slices = Vec::new();
    for (category, events) in &capture.events {
        for at in 0..events.len() {
            let row = timeline.row(events.row[at]).unwrap();
            let correlation = Some(events.correlation[at]).filter(|id| *id != 0);
            let values = [
                correlation.map(u64::from),
                row.thread,
                row.device.map(u64::from),
                row.context,
                row.stream,
            ];
            let said = PLACES.into_iter().zip(values);
            let said = said.filter_map(|(name, value)| Some((name.to_owned(), value?)));
            slices.push(Slice {
                process: process(row),
                category: category.name().to_owned(),
                name: events.name_of(at).to_owned(),
                start_ns: events.start_ns[at],
                duration_ns: events.duration_ns[at],
                said: said.collect(),
                call: call_of(events, at).map(|call| {
                    let calls = &capture.events[&Category::CudaApi];
                    let row = timeline.row(calls.row[call]).unwrap();
                    (calls.start_ns[call], calls.name_of(call).to_owned(), process(row))
                }),
            });
        }
    }
    slices.sort_unstable();
    slices
}

/// The values of a field of a message, in order.
fn values(message: Message<'_>, field: u64) -> impl Iterator<Item = Value<'_>> {
    let fields = message.fields().map(Result::unwrap);
    fields.filter_map(move |(number, value)| (number == field).then_some(value))
}

fn number(message: Message<'_>, field: u64) -> Option<u64> {
    values(message, field).find_map(Value::number)
}

fn text(message: Message<'_>, field: u64) -> String {
    let bytes = values(message, field).find_map(Value::bytes).unwrap_or_default();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn fixed(message: Message<'_>, field: u64) -> Option<u64> {
    values(message, field).find_map(|value| match value {
        Value::Fixed(number) => Some(number),
        Value::Number(_) | Value::Bytes(_) | Value::Fixed32(_) => None,
    })
}

/// The slices of the Perfetto trace of a timeline, read by the field numbers of Perfetto's schema.
fn slices(timeline: &Timeline) -> Vec<Slice> {
    let bytes = exported(timeline, ExportFormat::Perfetto);
    let trace = Message {
        bytes: &bytes,
        offset: 0,
    };
    let mut interned: [HashMap<u64, String>; 3] = Default::default();
    let (mut parents, mut processes) = (HashMap::new(), HashMap::new());
    let mut running: HashMap<u64, Vec<(Slice, Option<u64>)>> = HashMap::new();
    let mut callers: HashMap<u64, (u64, String, String)> = HashMap::new();
    let mut found: Vec<(Slice, Option<u64>)> = Vec::new();
    for packet in values(trace, 1).filter_map(Value::message) {
        for data in values(packet, 12).filter_map(Value::message) {
            for (field, known) in (1..).zip(&mut interned) {
                for entry in values(data, field).filter_map(Value::message) {
                    known.insert(number(entry, 1).unwrap(), text(entry, 2));
                }
            }
        }
        for track in values(packet, 60).filter_map(Value::message) {
            let uuid = number(track, 1).unwrap();
            parents.insert(uuid, number(track, 5));
            if let Some(process) = values(track, 3).find_map(Value::message) {
                processes.insert(uuid, text(process, 6));
            }
        }
        let at_ns = number(packet, 8).unwrap_or(0);
        for event in values(packet, 11).filter_map(Value::message) {
            let place = number(event, 11).unwrap();
            match number(event, 9) {
                Some(1) => {
                    let [categories, names, annotations] = &interned;
                    let said = values(event, 4).filter_map(Value::message).filter_map(|said| {
                        let name = &annotations[&number(said, 1)?];
                        let known = PLACES.contains(&name.as_str());
                        Some((name.clone(), number(said, 3)?)).filter(|_| known)
                    });
                    let slice = Slice {
                        process: processes[&parents[&place].unwrap()].clone(),
                        category: categories[&number(event, 3).unwrap()].clone(),
                        name: names[&number(event, 10).unwrap()].clone(),
                        start_ns: at_ns,
                        duration_ns: 0,
                        said: said.collect(),
                        call: None,
                    };
                    if let Some(flow) = fixed(event, 47) {
                        let caller = (at_ns, slice.name.clone(), slice.process.clone());
                        callers.insert(flow, caller);
                    }
                    running.entry(place).or_default().push((slice, fixed(event, 48)));
                }
                Some(2) => {
                    let (slice, flow) = running.get_mut(&place).unwrap().pop().unwrap();
                    let duration_ns = at_ns - slice.start_ns;
                    found.push((Slice { duration_ns, ..slice }, flow));
                }
                _ => {}
            }
        }
    }
    let mut slices: Vec<Slice> = found
        .into_iter()
        .map(|(slice, flow)| Slice {
            call: flow.map(|flow| callers[&flow].clone()),
            ..slice
        })
        .collect();
    slices.sort_unstable();
    slices
}

#[test]
fn a_perfetto_trace_of_ours_holds_the_events_of_the_capture_that_it_was_made_of() {
    let ours = sample(Schema::V2023, false).timeline();
    assert_eq!(slices(&ours), expected_slices(&ours));
    for (name, timeline) in captures() {
        let (found, expected) = (slices(&timeline), expected_slices(&timeline));
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
    }
}
