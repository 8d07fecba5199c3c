//! What traces of Kineto say in these columns.

use std::path::Path;

use flopwatch_model::{Allocation, Category, ColumnId, MemoryKind, Timeline};
use flopwatch_trace::ReadLimits;

use super::{numbers, texts, through_a_file};
use crate::capture::{counted, read_as, timeline_of};
use crate::kineto::{document, read_text};
use crate::nsys::corpus;

/// An operator with inputs, a collective with its kernel, and a kernel that says how full it makes
/// the device.
pub(super) const OPERATORS: &str = r#"
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
    let timeline = timeline_of(read_text(&document(OPERATORS)).unwrap());
    let of = |category| &timeline.capture.events[&category];
    let none = u64::from(ColumnId::UNKNOWN);

    let operators = of(Category::CpuOp);
    let shapes = Some("[[64,3,7,7],[]]");
    assert_eq!(texts(operators, ColumnId::InputShapes), [shapes, None, shapes]);
    let types = Some(r#"["float","signed char"]"#);
    assert_eq!(texts(operators, ColumnId::InputTypes), [types, None, None]);
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
    assert_eq!(capture.losses.list(), []);
    let timeline = timeline_of(capture);
    let host = Allocation {
        t_ns: 10_000,
        process: 100,
        thread: Some(101),
        bytes: 512,
        ..Allocation::default()
    };
    let device = Allocation {
        t_ns: 20_000,
        process: 100,
        thread: Some(101),
        device: Some(1),
        address: 140_000_000_000_000,
        bytes: -512,
        allocated: Some(0),
        reserved: Some(2_097_152),
        ..Allocation::default()
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
    let limits = ReadLimits {
        // A sixteenth of it is ten texts of seven bytes.
        max_string_bytes: 70 * 16,
        ..ReadLimits::default()
    };
    let text = document(&events.join(","));
    let read = |path: &Path| flopwatch_trace::kineto::read(path, &limits);
    let capture = read_as("trace.json", text, read).unwrap();
    let operators = &capture.events[&Category::CpuOp];
    assert_eq!(operators.len(), 200);
    let message = texts(operators, ColumnId::InputShapes);
    assert_eq!((message[9], message[10], message[199]), (Some("[[109]]"), None, None));
    assert_eq!(counted(&capture), [("texts of input_shapes".to_owned(), 190)]);
}

#[test]
fn columns_of_texts_do_not_depend_on_the_order_of_events() {
    let events = OPERATORS.split("\n  {\"ph\"").filter(|event| !event.is_empty());
    let events = events.map(|event| format!("{{\"ph\"{}", event.trim_end().trim_end_matches(',')));
    let mut events: Vec<String> = events.collect();
    assert_eq!(events.len(), 7);
    let of = |events: &[String]| timeline_of(read_text(&document(&events.join(","))).unwrap());
    let in_order = of(&events);
    events.reverse();
    assert_eq!(of(&events), in_order);
}

#[test]
fn traces_of_the_corpus_say_their_shapes_collectives_and_occupancy() {
    let read = |name: &str| {
        let capture = flopwatch_trace::kineto::read(&corpus(name)?, &ReadLimits::default());
        Some(timeline_of(capture.unwrap()))
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
