//! Whole graphs, migrations of unified memory and sizes that are not said, in exports of nsys of
//! our own making: HDF5 and SQLite alike.

use flopwatch_model::{Capture, Category, ColumnId, Timeline};
use flopwatch_summary::summarise;

use crate::capture::{names, published};
use crate::columns::through_a_file;
use crate::export::{Export, Finished, GraphTrace, Kernel, Memcpy, Runtime, Schema, global};

const STRINGS: &[(i32, &str)] = &[(1, "cudaGraphLaunch_v10000"), (2, "copy_inputs(float*)")];

/// The capture, which both containers hold.
fn read(export: &Finished) -> Capture {
    let capture = export.read().unwrap();
    assert_eq!(export.read_sqlite().unwrap(), capture);
    capture
}

fn values(timeline: &Timeline, category: Category, id: ColumnId) -> Vec<u64> {
    let values = timeline.capture.events[&category].column(id).unwrap();
    (0..values.len()).map(|at| values.get(at).unwrap()).collect()
}

/// Two launches of a graph on GPU 0, of which one call was recorded, and on GPU 1 a kernel, as of a
/// graph whose nodes were recorded.
fn mixed() -> Export {
    let process = global(100, 0);
    let graph = |start, end, correlation, executable| GraphTrace {
        start,
        end,
        contextId: 1,
        streamId: 7,
        correlationId: correlation,
        globalPid: process,
        graphId: 3,
        graphExecId: executable,
        ..GraphTrace::default()
    };
    let call = Runtime {
        start: 90,
        end: 95,
        globalTid: global(100, 101),
        correlationId: 11,
        nameId: 1,
        ..Runtime::default()
    };
    let node = Kernel {
        start: 150,
        end: 160,
        deviceId: 1,
        contextId: 2,
        streamId: 9,
        correlationId: 11,
        globalPid: process,
        demangledName: 2,
        graphNodeId: 5,
        ..Kernel::default()
    };
    Export::new(Schema::V2023, STRINGS)
        .table(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
            &[graph(100, 400, 11, 4), graph(500, 650, 12, 0)],
        )
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &[node])
        .table("CUPTI_ACTIVITY_KIND_RUNTIME", &[call])
}

#[test]
fn a_whole_graph_is_work_of_its_stream_with_its_numbers_and_its_launch() {
    let export = mixed().finish();
    let timeline = published(read(&export));
    let graphs = &timeline.capture.events[&Category::CudaGraph];
    assert_eq!(names(graphs), ["[CUDA graph 3 executable 4]", "[CUDA graph 3]"]);
    assert_eq!(graphs.duration_ns, [300, 150]);
    assert_eq!(values(&timeline, Category::CudaGraph, ColumnId::GraphId), [3, 3]);
    assert_eq!(values(&timeline, Category::CudaGraph, ColumnId::GraphExec), [4, 0]);
    let launches = values(&timeline, Category::CudaGraph, ColumnId::Launch);
    assert_eq!(launches, [0, u64::from(ColumnId::NO_LAUNCH)]);
    let row = timeline.row(graphs.row[0]).unwrap();
    assert_eq!((row.process, row.device, row.stream), (100, Some(0), Some(7)));
    assert_eq!(timeline.capture.events[&Category::CudaApi].names, ["cudaGraphLaunch"]);
    assert!(timeline.capture.losses.list().is_empty());
    // The nodes of the other GPU's graph share the call.
    let summary = summarise(&timeline);
    let busy: Vec<(u32, u64)> = summary.gpus.iter().map(|gpu| (gpu.device, gpu.busy_ns)).collect();
    assert_eq!(busy, [(0, 450), (1, 10)]);
    assert_eq!((summary.launches.matched, summary.launches.unmatched), (2, 1));
    assert_eq!(summary.cuda_graphs.rows.len(), 2);
    // Whether graphs hold copies is not known.
    assert!(!summary.memcpy_time.captured && summary.kernels.captured);
    through_a_file(&timeline);
}

#[test]
fn who_knows_what_was_recorded_cannot_know_what_graphs_hide() {
    let mut capture = read(&mixed().finish());
    capture.declare_captured(Category::CUDA);
    assert!(capture.captured.contains(&Category::CudaSync));
    assert!(!capture.captured.contains(&Category::CudaMemcpyH2d) && !capture.captured.contains(&Category::CudaMemset));
}

fn copy(start: i64, kind: u64, bytes: u64) -> Memcpy {
    Memcpy {
        start,
        end: start + 10,
        contextId: 1,
        streamId: 7,
        globalPid: global(100, 0),
        bytes,
        copyKind: kind,
        ..Memcpy::default()
    }
}

#[test]
fn migrations_of_unified_memory_are_no_copies_and_no_work() {
    let copies = [
        copy(100, 11, 4096),
        copy(120, 1, 8),
        copy(140, 12, 4096),
        copy(160, 13, 0),
    ];
    let export = Export::new(Schema::V2023, STRINGS)
        .table("CUPTI_ACTIVITY_KIND_MEMCPY", &copies)
        .finish();
    let timeline = published(read(&export));
    let migrations = &timeline.capture.events[&Category::CudaMigration];
    assert_eq!(migrations.start_ns, [100, 140, 160]);
    assert!(migrations.column(ColumnId::Launch).is_none());
    let sizes = values(&timeline, Category::CudaMigration, ColumnId::Bytes);
    assert_eq!(sizes, [4096, 4096, ColumnId::NO_SIZE]);
    assert_eq!(values(&timeline, Category::CudaMemcpyH2d, ColumnId::Bytes), [8]);
    assert!(!timeline.capture.events.contains_key(&Category::CudaMemcpyOther));
    let summary = summarise(&timeline);
    // As nsys stats has them: among copies.
    assert_eq!((summary.memcpy_time.rows.len(), summary.memcpy_size.rows.len()), (4, 3));
    assert_eq!(summary.memcpy_size.unknown, 1);
    assert_eq!((summary.launches.matched, summary.launches.unmatched), (0, 1));
    assert_eq!(summary.gpus[0].busy_ns, 10);
    through_a_file(&timeline);
}

#[test]
fn an_export_without_migrations_does_not_say_that_there_were_none() {
    let export = Export::new(Schema::V2023, STRINGS)
        .table("CUPTI_ACTIVITY_KIND_MEMCPY", &[copy(100, 1, 8)])
        .finish();
    let capture = read(&export);
    assert!(capture.captured.contains(&Category::CudaMemcpyD2h));
    assert!(!capture.captured.contains(&Category::CudaMigration));
}

#[test]
fn a_size_that_is_not_said_is_not_zero() {
    let whole = Export::new(Schema::V2023, STRINGS)
        .table("CUPTI_ACTIVITY_KIND_MEMCPY", &[copy(100, 1, 0), copy(120, 1, 8)])
        .finish();
    let timeline = published(read(&whole));
    let copies = &timeline.capture.events[&Category::CudaMemcpyH2d];
    let sizes = [0, 1].map(|at| copies.number(ColumnId::Bytes, at));
    assert_eq!(sizes, [None, Some(8)]);
    let without = Export::new(Schema::V2023, STRINGS)
        .table_without("CUPTI_ACTIVITY_KIND_MEMCPY", &[copy(100, 1, 8)], &["bytes"])
        .finish();
    let summary = summarise(&published(read(&without)));
    assert_eq!((summary.memcpy_size.rows.len(), summary.memcpy_size.unknown), (0, 1));
    assert!(summary.render(5).contains("1 of unknown size"));
    assert!(summary.to_csv(5).contains("\nmemcpy_size,not said,bytes,,,,1,,,,,,\n"));
}
