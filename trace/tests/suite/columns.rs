//! Columns that only some sources fill: kept by every reader that finds them, by the transform and by the file.

use flopwatch_analysis::export::{ExportFormat, Table};
use flopwatch_trace::model::{
    Allocation, Capture, Category, ColumnId, Event, Events, MemoryKind, NameDetail, Row, Timeline, Track,
};
use flopwatch_trace::transform::{TransformOptions, transform};
use flopwatch_trace::{ReadLimits, timeline_file};
use hdf5::H5Type as DeriveH5Type;
use hdf5::types::VarLenAscii;
use proptest::prelude::*;
use rusqlite::types::Value;

use crate::export::{Export, Finished, Kernel, Runtime, Schema, SqlCell, TableRow, global, table_row, text};
use crate::kineto::{document, read_text};

table_row!(Copy {
    start: i64,
    end: i64,
    deviceId: u32,
    contextId: u64,
    streamId: u64,
    correlationId: u32,
    globalPid: u64,
    bytes: u64,
    copyKind: u64,
    srcKind: u32,
    dstKind: u32,
});
table_row!(Set {
    start: i64,
    end: i64,
    deviceId: u32,
    contextId: u64,
    streamId: u64,
    correlationId: u32,
    globalPid: u64,
    bytes: u64,
    memKind: u32,
});
table_row!(Range {
    start: i64,
    end: i64,
    eventType: u32,
    category: u32,
    text: VarLenAscii,
    globalTid: u64,
    textId: u32,
    domainId: u64,
});
table_row!(GpuSample {
    timestamp: i64,
    typeId: u64,
    metricId: u32,
    value: i64,
});
table_row!(GpuMetric {
    typeId: u64,
    metricId: u32,
    metricName: VarLenAscii,
});

table_row!(Usage {
    start: i64,
    globalPid: u64,
    deviceId: u32,
    address: u64,
    bytes: u64,
    memKind: u32,
    memoryOperationType: u32,
});

const STRINGS: &[(i32, &str)] = &[
    (1, "void gemm<float>(float*, int)"),
    (2, "gemm"),
    (3, "_Z4gemmIfEvPfi"),
    (4, "void relu<half>(half*)"),
    (5, "relu"),
    (6, "cudaMalloc_v3020"),
    (7, "cudaFree_v3020"),
];

fn kernels() -> Vec<Kernel> {
    let kernel = |start, names: [u64; 3]| Kernel {
        start,
        end: start + 10,
        contextId: 1,
        streamId: 7,
        globalPid: global(100, 0),
        demangledName: names[0],
        shortName: names[1],
        mangledName: names[2],
        ..Kernel::default()
    };
    // The symbol of the second one is not known.
    vec![kernel(100, [1, 2, 3]), kernel(200, [4, 5, 0]), kernel(300, [1, 2, 3])]
}

fn copies() -> Vec<Copy> {
    let copy = |start, kind, from, to| Copy {
        start,
        end: start + 5,
        contextId: 1,
        streamId: 7,
        globalPid: global(100, 0),
        bytes: 8,
        copyKind: kind,
        srcKind: from,
        dstKind: to,
        ..Copy::default()
    };
    vec![copy(10, 1, 0, 2), copy(20, 1, 1, 2), copy(30, 2, 2, 99)]
}

fn calls(returned: u32) -> Vec<Runtime> {
    let call = |start, name, returned| Runtime {
        start,
        end: start + 1,
        globalTid: global(100, 101),
        nameId: name,
        returnValue: returned,
        ..Runtime::default()
    };
    vec![call(1, 6, returned), call(3, 7, 0)]
}

fn ranges() -> Vec<Range> {
    let range = |start, kind, category, name: &str, domain| Range {
        start,
        end: start + 1,
        eventType: kind,
        category,
        text: text(name),
        globalTid: global(100, 101),
        domainId: domain,
        ..Range::default()
    };
    vec![
        range(0, 75, 0, "NCCL", 3),
        range(0, 33, 5, "collective", 3),
        range(10, 59, 5, "ncclAllReduce", 3),
        range(20, 59, 5, "ncclAllReduce", 0),
        range(30, 59, 0, "step", 0),
    ]
}

fn samples() -> Vec<GpuSample> {
    let sample = |timestamp, kind, metric, value| GpuSample {
        timestamp,
        typeId: kind,
        metricId: metric,
        value,
    };
    vec![
        sample(500, 0x0100_0001, 2, 75),
        sample(400, 0x0100_0001, 2, 50),
        sample(400, 0x0100_0001, 9, -3),
        sample(-7, 0x0100_0001, 2, 1),
    ]
}

fn metrics() -> Vec<GpuMetric> {
    let metric = |kind, metric, name: &str| GpuMetric {
        typeId: kind,
        metricId: metric,
        metricName: text(name),
    };
    vec![
        metric(0x0100_0001, 2, "SMs Active [Throughput %]"),
        metric(0x0100_0001, 3, "nobody sampled this"),
    ]
}

fn export(returned: u32) -> Finished {
    let set = Set {
        start: 50,
        end: 60,
        contextId: 1,
        streamId: 7,
        globalPid: global(100, 0),
        bytes: 4,
        memKind: 4,
        ..Set::default()
    };
    Export::new(Schema::V2023, STRINGS)
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &kernels())
        .table("CUPTI_ACTIVITY_KIND_MEMCPY", &copies())
        .table("CUPTI_ACTIVITY_KIND_MEMSET", &[set])
        .table("CUPTI_ACTIVITY_KIND_RUNTIME", &calls(returned))
        .table("NVTX_EVENTS", &ranges())
        .table("GPU_METRICS", &samples())
        .table("TARGET_INFO_GPU_METRICS", &metrics())
        .finish()
}

pub(crate) fn numbers(events: &Events, id: ColumnId) -> Option<Vec<u64>> {
    let values = events.column(id)?;
    (0..values.len()).map(|at| values.get(at)).collect()
}

pub(crate) fn texts(events: &Events, id: ColumnId) -> Vec<Option<&str>> {
    (0..events.len()).map(|at| events.text(id, at)).collect()
}

/// Writes a timeline and reads it back: nothing is lost.
pub(crate) fn through_a_file(timeline: &Timeline) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    timeline_file::write(timeline, &path).unwrap();
    assert_eq!(&timeline_file::read(&path, &ReadLimits::default()).unwrap(), timeline);
}

#[test]
fn an_export_of_nsys_fills_them_whichever_container_it_is() {
    let export = export(2);
    let capture = export.read().unwrap();
    assert_eq!(export.read_sqlite().unwrap(), capture);
    let timeline = transform(capture, TransformOptions::default());
    let of = |category| &timeline.capture.events[&category];

    let kernels = of(Category::CudaKernel);
    let detail = |detail| -> Vec<Option<&str>> { (0..3).map(|at| kernels.name_detail(detail, at)).collect() };
    assert_eq!(detail(NameDetail::Short), [Some("gemm"), Some("relu"), Some("gemm")]);
    assert_eq!(
        detail(NameDetail::Mangled),
        [Some("_Z4gemmIfEvPfi"), None, Some("_Z4gemmIfEvPfi")]
    );

    let number = |kind: MemoryKind| u64::from(kind.number());
    let [pageable, pinned, device] = [MemoryKind::Pageable, MemoryKind::Pinned, MemoryKind::Device].map(number);
    let up = of(Category::CudaMemcpyH2d);
    assert_eq!(numbers(up, ColumnId::SrcMemoryKind), Some(vec![pageable, pinned]));
    assert_eq!(numbers(up, ColumnId::DstMemoryKind), Some(vec![device; 2]));
    let down = of(Category::CudaMemcpyD2h);
    assert_eq!(
        numbers(down, ColumnId::DstMemoryKind),
        Some(vec![number(MemoryKind::Unknown)])
    );
    let set = of(Category::CudaMemset);
    assert_eq!(
        numbers(set, ColumnId::DstMemoryKind),
        Some(vec![number(MemoryKind::Managed)])
    );

    assert_eq!(numbers(of(Category::CudaApi), ColumnId::ReturnValue), Some(vec![2, 0]));

    let ranges = of(Category::NvtxRange);
    assert_eq!(
        texts(ranges, ColumnId::RangeCategory),
        [Some("collective"), Some("5"), None]
    );
    let domains: Vec<_> = (0..3).map(|at| ranges.name_detail(NameDetail::Domain, at)).collect();
    assert_eq!(domains, [Some("NCCL"), None, None]);
    assert_eq!(ranges.name_of(0), "NCCL:ncclAllReduce");
    through_a_file(&timeline);
}

#[test]
fn hardware_counters_of_an_export_become_series() {
    let export = export(0);
    let capture = export.read().unwrap();
    assert_eq!(export.read_sqlite().unwrap(), capture);
    let found: Vec<_> = capture
        .counters
        .iter()
        .map(|series| {
            assert!(series.is_well_formed());
            let name = (series.source.as_str(), series.device.as_str(), series.metric.as_str());
            (
                name,
                series.unit.as_str(),
                series.t_ns.as_slice(),
                series.value.as_slice(),
            )
        })
        .collect();
    let active = ("nsys", "gpu1", "SMs_Active_Throughput_pct");
    assert_eq!(
        found,
        [
            (active, "%", &[400, 500][..], &[50.0, 75.0][..]),
            (("nsys", "gpu1", "metric_9"), "", &[400][..], &[-3.0][..]),
        ]
    );
    let drops: Vec<_> = capture
        .drops
        .list()
        .into_iter()
        .map(|drop| (drop.what, drop.count))
        .collect();
    assert_eq!(drops, [("GPU_METRICS: samples before the session".to_owned(), 1)]);
}

#[test]
fn what_the_driver_gave_out_and_took_back_is_kept_beside_the_events() {
    let usage = |start, kind, operation| Usage {
        start,
        globalPid: global(100, 0),
        deviceId: 1,
        address: 0x7f00_0000_0000,
        bytes: 2_097_152,
        memKind: kind,
        memoryOperationType: operation,
    };
    let export = Export::new(Schema::V2023, STRINGS)
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &kernels())
        .table(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            &[usage(90, 2, 1), usage(10, 2, 0), usage(20, 1, 0)],
        )
        .finish();
    let capture = export.read().unwrap();
    assert_eq!(export.read_sqlite().unwrap(), capture);
    assert_eq!(capture.drops.list(), []);
    let timeline = transform(capture, TransformOptions::default());
    let found: Vec<_> = timeline
        .capture
        .allocations
        .iter()
        .map(|of| (of.t_ns, of.process, of.device, of.address, of.bytes))
        .collect();
    let address = 0x7f00_0000_0000;
    assert_eq!(
        found,
        [
            (10, 100, Some(1), address, 2_097_152),
            (20, 100, None, address, 2_097_152),
            (90, 100, Some(1), address, -2_097_152),
        ]
    );
    through_a_file(&timeline);
}

#[test]
fn a_table_of_events_has_them_behind_its_other_columns() {
    let csv = |timeline: &Timeline| {
        let mut bytes = Vec::new();
        flopwatch_analysis::export::export(timeline, ExportFormat::Csv, Table::Events, &mut bytes).unwrap();
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        (heads, lines)
    };
    let plain = Export::new(Schema::V2023, STRINGS).table("CUPTI_ACTIVITY_KIND_KERNEL", &kernels());
    let (heads, _) = csv(&plain.finish().timeline());
    assert_eq!((heads.len(), heads.last().map(String::as_str)), (36, Some("flops")));
    let capture = read_text(&document(OPERATORS)).unwrap();
    let (heads, lines) = csv(&transform(capture, TransformOptions::default()));
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let cell = |line: usize, name: &str| lines[line].get(at(name)).unwrap();
    assert!(at("input_shapes") > 35 && at("blocks_per_sm_milli") > 35);
    // Kernels come first, copies and memsets then, operators last.
    assert_eq!([0, 1].map(|line| cell(line, "blocks_per_sm_milli")), ["", "2370"]);
    assert_eq!([0, 1].map(|line| cell(line, "collective")), ["allreduce", ""]);
    assert_eq!([4, 5].map(|line| cell(line, "input_shapes")), ["[[64,3,7,7],[]]", ""]);
}

/// Events of a category with a column of texts, whose list is in any order and says some texts twice.
fn any_texts() -> impl Strategy<Value = Vec<(u64, u32, u64)>> {
    prop::collection::vec((0..20_u64, 0..6_u32, 0..3_u64), 0..60)
}

fn with_texts(all: &[(u64, u32, u64)]) -> Timeline {
    let mut events = Events::new(Category::CpuOp);
    events.names = vec!["op".to_owned()];
    let place = events.add_column(ColumnId::InputShapes);
    let texts = ["[[2]]", "[]", "[[1]]", "[]", "never said"].map(str::to_owned);
    events.columns[place].texts.extend(texts);
    for (start_ns, text, external) in all.iter().copied() {
        let event = Event {
            start_ns,
            ..Event::default()
        };
        // Only four of the five are said, and none.
        events.push(event, &[external, ColumnId::NO_SEQUENCE, u64::from(text.min(4))]);
    }
    let row = Row {
        capture: 0,
        machine: 0,
        process: 1,
        track: Track::CpuOp,
        device: None,
        context: None,
        stream: None,
        thread: Some(1),
        label: String::new(),
    };
    let capture = Capture {
        events: [(Category::CpuOp, events)].into(),
        rows: vec![row],
        ..Capture::default()
    };
    transform(capture, TransformOptions::default())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn texts_stay_with_their_events_in_any_order_of_the_input(
        (all, shuffled) in any_texts().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
    ) {
        let timeline = with_texts(&all);
        prop_assert_eq!(&timeline, &with_texts(&shuffled));
        let Some(events) = timeline.capture.events.get(&Category::CpuOp) else {
            prop_assert!(all.is_empty());
            return Ok(());
        };
        let column = events.columns.iter().find(|column| column.id == ColumnId::InputShapes).unwrap();
        prop_assert_eq!(&column.texts[0], "");
        prop_assert!(column.texts.is_sorted_by(|a, b| a < b), "{:?}", column.texts);
        let list = [None, Some("[[2]]"), Some("[]"), Some("[[1]]"), Some("[]")];
        let message = |(start, text, external): (u64, u32, u64)| {
            (start, external, list[usize::try_from(text.min(4)).unwrap()].map(str::to_owned))
        };
        let mut expected: Vec<_> = all.iter().copied().map(message).collect();
        let external = numbers(events, ColumnId::ExternalId).unwrap();
        let text = |at| events.text(ColumnId::InputShapes, at).map(str::to_owned);
        let mut found: Vec<_> = (0..events.len()).map(|at| (events.start_ns[at], external[at], text(at))).collect();
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected);
        through_a_file(&timeline);
    }
}

#[test]
fn a_column_in_which_nothing_is_said_is_not_there() {
    let timeline = export(0).timeline();
    let calls = &timeline.capture.events[&Category::CudaApi];
    assert_eq!(calls.column(ColumnId::ReturnValue), None);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    timeline_file::write(&timeline, &path).unwrap();
    let file = hdf5::File::open(&path).unwrap();
    assert!(!file.link_exists("cuda_api/return_value") && !file.link_exists("names/cuda_api.short_name"));
    assert!(file.link_exists("names/cuda_kernel.short_name") && file.link_exists("names/nvtx_range.range_category"));
}

#[test]
fn a_damaged_list_of_texts_is_refused() {
    let timeline = export(0).timeline();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.h5");
    let list = "names/nvtx_range.range_category";
    let forged: [(&[&str], &str); 4] = [
        (&["", "5"], "an event refers to a text that is not there"),
        (&["a", "b", "c"], "the first text is not empty"),
        (&["", "b", "a"], "not sorted, each text once"),
        (&[], "the first text is not empty"),
    ];
    for (texts, reason) in forged {
        timeline_file::write(&timeline, &path).unwrap();
        let file = hdf5::File::open_rw(&path).unwrap();
        file.unlink(list).unwrap();
        let texts: Vec<hdf5::types::VarLenUnicode> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let builder = file.new_dataset_builder();
        if texts.is_empty() {
            builder
                .empty::<hdf5::types::VarLenUnicode>()
                .shape(0)
                .create(list)
                .unwrap();
        } else {
            builder.chunk(texts.len()).with_data(&texts).create(list).unwrap();
        }
        file.close().unwrap();
        let error = timeline_file::read(&path, &ReadLimits::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(list) && error.contains(reason), "{error}");
    }
    timeline_file::write(&timeline, &path).unwrap();
    let file = hdf5::File::open_rw(&path).unwrap();
    file.unlink(list).unwrap();
    file.close().unwrap();
    let error = timeline_file::read(&path, &ReadLimits::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("has no dataset nvtx_range.range_category"), "{error}");
}

/// An operator with inputs, a collective with its kernel, and a kernel that says how full it makes the device.
const OPERATORS: &str = r#"
  {"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 100, "tid": 101, "ts": 10, "dur": 5,
   "args": {"External id": 1, "Input Dims": [[64, 3, 7, 7], []], "Input type": ["float", "signed char"], "flops": 1024}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 100, "tid": 101, "ts": 20, "dur": 5, "args": {"External id": 2}},
  {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 100, "tid": 101, "ts": 30, "dur": 5,
   "args": {"External id": 3, "Input Dims": [[64,3,7,7], []], "Collective name": "allreduce", "In msg nelems": 6563840,
    "Out msg nelems": 6563840, "Group size": 2, "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": [0, 1]}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 40, "dur": 5,
   "args": {"device": 0, "stream": 7, "Collective name": "allreduce", "dtype": "Float", "Group size": 2,
    "Process Group Ranks": "[0, 1]", "est. achieved occupancy %": 0}},
  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 50, "dur": 5, "args": {"device": 0, "stream": 7,
   "blocks per SM": 2.3703704, "warps per SM": 37.925926, "est. achieved occupancy %": 59, "Input Dims": [[1]]}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pinned)", "pid": 0, "tid": 7, "ts": 60, "dur": 5,
   "args": {"device": 0, "stream": 7, "bytes": 4}},
  {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 70, "dur": 5,
   "args": {"device": 0, "stream": 7, "bytes": 4}}"#;

#[test]
fn a_trace_of_kineto_fills_them() {
    let capture = read_text(&document(OPERATORS)).unwrap();
    let timeline = transform(capture, TransformOptions::default());
    let of = |category| &timeline.capture.events[&category];
    let none = u64::from(ColumnId::NOT_SAID);

    let operators = of(Category::CpuOp);
    let shapes = Some("[[64,3,7,7],[]]");
    assert_eq!(texts(operators, ColumnId::InputShapes), [shapes, None, shapes]);
    assert_eq!(
        texts(operators, ColumnId::InputTypes),
        [Some(r#"["float","signed char"]"#), None, None]
    );
    assert_eq!(numbers(operators, ColumnId::Flops), Some(vec![1024, 0, 0]));
    let last = |id| operators.text(id, 2);
    assert_eq!(
        [
            ColumnId::Collective,
            ColumnId::ElementType,
            ColumnId::ProcessGroup,
            ColumnId::GroupRanks
        ]
        .map(last),
        [Some("allreduce"), Some("Float"), Some("0"), Some("[0,1]")]
    );
    assert_eq!(numbers(operators, ColumnId::InElements), Some(vec![0, 0, 6_563_840]));
    assert_eq!(numbers(operators, ColumnId::GroupSize), Some(vec![0, 0, 2]));

    let kernels = of(Category::CudaKernel);
    assert_eq!(texts(kernels, ColumnId::Collective), [Some("allreduce"), None]);
    assert_eq!(texts(kernels, ColumnId::GroupRanks), [Some("[0,1]"), None]);
    assert_eq!(numbers(kernels, ColumnId::BlocksPerSm), Some(vec![none, 2370]));
    assert_eq!(numbers(kernels, ColumnId::WarpsPerSm), Some(vec![none, 37_926]));
    assert_eq!(numbers(kernels, ColumnId::AchievedOccupancy), Some(vec![0, 590_000]));
    // A kernel has no inputs in the list of its columns.
    assert_eq!(kernels.column(ColumnId::InputShapes), None);

    let number = |kind: MemoryKind| Some(vec![u64::from(kind.number())]);
    let copies = of(Category::CudaMemcpyD2h);
    assert_eq!(numbers(copies, ColumnId::SrcMemoryKind), number(MemoryKind::Device));
    assert_eq!(numbers(copies, ColumnId::DstMemoryKind), number(MemoryKind::Pinned));
    let sets = of(Category::CudaMemset);
    assert_eq!(sets.column(ColumnId::SrcMemoryKind), None);
    assert_eq!(numbers(sets, ColumnId::DstMemoryKind), number(MemoryKind::Device));
    through_a_file(&timeline);
}

/// What PyTorch says of its allocators: with totals since 1.11, without before.
const MEMORY: &str = r#"
  {"ph": "X", "cat": "cpu_op", "name": "aten::empty", "pid": 100, "tid": 101, "ts": 10, "dur": 50, "args": {}},
  {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 100, "tid": 101, "ts": 30, "args": {"Bytes": -512,
   "Addr": 140000000000000, "Device Id": 1, "Device Type": 1, "Total Allocated": 0, "Total Reserved": 2097152}},
  {"ph": "i", "s": "t", "name": "[memory]", "pid": 100, "tid": 101, "ts": 20, "args": {"Bytes": 512, "Device Id": -1, "Device Type": 0}}"#;

#[test]
fn what_an_allocator_did_is_kept_beside_the_events() {
    let capture = read_text(&document(MEMORY)).unwrap();
    assert_eq!(capture.drops.list(), []);
    let timeline = transform(capture, TransformOptions::default());
    let host = Allocation {
        t_ns: 10_000,
        process: 100,
        bytes: 512,
        ..Allocation::default()
    };
    let device = Allocation {
        t_ns: 20_000,
        process: 100,
        device: Some(1),
        address: 140_000_000_000_000,
        bytes: -512,
        allocated: Some(0),
        reserved: Some(2_097_152),
    };
    assert_eq!(timeline.capture.allocations, [host, device]);
    assert_eq!(timeline.total_events(), 1);
    through_a_file(&timeline);
}

#[test]
fn a_secret_in_a_text_of_a_column_is_replaced() {
    let event = r#"{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
        "args": {"Process Group Name": "MY_TOKEN=t0ps3cret"}}"#;
    let capture = read_text(&document(event)).unwrap();
    let operators = &capture.events[&Category::CpuOp];
    assert_eq!(operators.text(ColumnId::ProcessGroup, 0), Some("MY_TOKEN=[redacted]"));
    assert_eq!(capture.redactions, 1);
}

#[test]
fn a_column_with_too_many_texts_keeps_the_first_ones_and_says_so() {
    let event = |at: u32| {
        format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": {at}, "dur": 1, "args": {{"Input Dims": [[{at}]]}}}}"#
        )
    };
    let events: Vec<String> = (100..300).map(event).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    std::fs::write(&path, document(&events.join(","))).unwrap();
    let limits = ReadLimits {
        // A sixteenth of it is ten texts of seven bytes.
        max_string_bytes: 70 * 16,
        ..ReadLimits::default()
    };
    let capture = flopwatch_trace::kineto::read(&path, &limits).unwrap();
    let operators = &capture.events[&Category::CpuOp];
    assert_eq!(operators.len(), 200);
    let message = texts(operators, ColumnId::InputShapes);
    assert_eq!((message[9], message[10], message[199]), (Some("[[109]]"), None, None));
    let drops: Vec<_> = capture
        .drops
        .list()
        .into_iter()
        .map(|drop| (drop.what, drop.count))
        .collect();
    assert_eq!(drops, [("texts of input_shapes".to_owned(), 190)]);
}

#[test]
fn columns_of_texts_do_not_depend_on_the_order_of_events() {
    let events: Vec<&str> = OPERATORS
        .split("\n  {\"ph\"")
        .filter(|event| !event.is_empty())
        .collect();
    let of = |events: Vec<&str>| {
        let events: Vec<String> = events
            .iter()
            .map(|event| format!("{{\"ph\"{}", event.trim_end().trim_end_matches(',')))
            .collect();
        let capture = read_text(&document(&events.join(","))).unwrap();
        transform(capture, TransformOptions::default())
    };
    assert_eq!(events.len(), 7);
    let reversed = events.iter().rev().copied().collect();
    assert_eq!(of(events), of(reversed));
}

#[test]
fn traces_of_the_corpus_say_their_shapes_collectives_and_occupancy() {
    let read = |name: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../shared/corpus")
            .join(name);
        if !path.exists() {
            println!("skipped: there is no {}", path.display());
            return None;
        }
        let capture = flopwatch_trace::kineto::read(&path, &ReadLimits::default()).unwrap();
        Some(transform(capture, TransformOptions::default()))
    };
    // What Python counts in the traces.
    let message = |timeline: &Timeline, category, id| {
        let events = &timeline.capture.events[&category];
        texts(events, id).into_iter().flatten().count()
    };
    if let Some(timeline) = read("hta/nccl_parser_config-nccl_data.json.gz") {
        assert_eq!(message(&timeline, Category::CudaKernel, ColumnId::Collective), 21);
        assert_eq!(message(&timeline, Category::CpuOp, ColumnId::Collective), 27);
        let kernels = &timeline.capture.events[&Category::CudaKernel];
        let occupied = numbers(kernels, ColumnId::AchievedOccupancy).unwrap();
        assert!(occupied.iter().all(|share| *share <= 1_000_000));
        through_a_file(&timeline);
    }
    if let Some(timeline) = read("tracelens-h100/gaunernst_bert-small-uncased__1016001.json.gz") {
        assert_eq!(message(&timeline, Category::CpuOp, ColumnId::InputShapes), 479);
        assert_eq!(message(&timeline, Category::CpuOp, ColumnId::InputTypes), 479);
        let allocations = &timeline.capture.allocations;
        assert_eq!(allocations.len(), 236);
        let devices: Vec<_> = allocations.iter().map(|of| of.device).collect();
        assert!(devices.contains(&Some(0)) && allocations.iter().all(|of| of.bytes != 0));
    }
}

#[test]
fn an_export_of_the_corpus_says_the_peak_rates_of_its_gpu() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let path = corpus.join("nsightful/power_iteration__baseline.sqlite");
    if !path.exists() {
        println!("skipped: there is no {}", path.display());
        return;
    }
    let capture = flopwatch_trace::nsys_sqlite::read(&path, &ReadLimits::default()).unwrap();
    let gpu = &capture.devices[0];
    assert_eq!(gpu.name, "Tesla T4");
    // 40 multiprocessors of 64 units at 1.59 GHz; the data sheet has 8.1 TFLOP/s.
    let rates: Vec<_> = gpu
        .peak_flops
        .iter()
        .map(|(name, rate)| (name.as_str(), *rate))
        .collect();
    assert_eq!(rates, [("fp32", 8_140_800_000_000)]);
    assert!(gpu.figures_from.starts_with("TARGET_INFO_GPU; "));
    // Kernels say their short names, copies the kinds of their memory.
    let kernels = &capture.events[&Category::CudaKernel];
    assert!((0..kernels.len()).all(|at| kernels.name_detail(NameDetail::Short, at).is_some()));
    let copies = &capture.events[&Category::CudaMemcpyD2h];
    let device = u64::from(MemoryKind::Device.number());
    assert_eq!(numbers(copies, ColumnId::SrcMemoryKind), Some(vec![device; 89]));
}
