//! What exports of Nsight Systems say in these columns.

use flopwatch_model::{Category, ColumnId, CounterSeries, MemoryKind, NameDetail};
use flopwatch_trace::ReadLimits;
use hdf5::H5Type as DeriveH5Type;
use hdf5::types::VarLenAscii;
use rusqlite::types::Value;

use super::{numbers, texts, through_a_file};
use crate::capture::{counted, timeline_of};
use crate::export::{Export, Finished, Kernel, Runtime, Schema, SqlCell, TableRow, global, table_row, text};
use crate::nsys::corpus;

table_row!(Copy: work {
    bytes: u64,
    copyKind: u64,
    srcKind: u32,
    dstKind: u32,
});
table_row!(Set: work {
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
    correlationId: u32,
});

pub(super) const STRINGS: &[(i32, &str)] = &[
    (1, "void gemm<float>(float*, int)"),
    (2, "gemm"),
    (3, "_Z4gemmIfEvPfi"),
    (4, "void relu<half>(half*)"),
    (5, "relu"),
    (6, "cudaMalloc_v3020"),
    (7, "cudaFree_v3020"),
];

pub(super) fn kernels() -> Vec<Kernel> {
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

pub(super) fn export(returned: u32) -> Finished {
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

#[test]
fn an_export_of_nsys_fills_them_whichever_container_it_is() {
    let export = export(2);
    let capture = export.read().unwrap();
    assert_eq!(export.read_sqlite().unwrap(), capture);
    let timeline = timeline_of(capture);
    let of = |category| &timeline.capture.events[&category];

    let kernels = of(Category::CudaKernel);
    let detail = |detail| -> Vec<Option<&str>> { (0..3).map(|at| kernels.name_detail(detail, at)).collect() };
    assert_eq!(detail(NameDetail::Short), [Some("gemm"), Some("relu"), Some("gemm")]);
    let symbol = Some("_Z4gemmIfEvPfi");
    assert_eq!(detail(NameDetail::Mangled), [symbol, None, symbol]);

    let (from, to) = (ColumnId::SrcMemoryKind, ColumnId::DstMemoryKind);
    for (category, column, kinds) in [
        (
            Category::CudaMemcpyH2d,
            from,
            &[MemoryKind::Pageable, MemoryKind::Pinned][..],
        ),
        (Category::CudaMemcpyH2d, to, &[MemoryKind::Device; 2]),
        (Category::CudaMemcpyD2h, to, &[MemoryKind::Unknown]),
        (Category::CudaMemset, to, &[MemoryKind::Managed]),
    ] {
        let expected: Vec<u64> = kinds.iter().map(|kind| u64::from(kind.number())).collect();
        assert_eq!(numbers(of(category), column), Some(expected), "{category:?}");
    }

    assert_eq!(numbers(of(Category::CudaApi), ColumnId::ReturnValue), Some(vec![2, 0]));

    let ranges = of(Category::NvtxRange);
    let categories = texts(ranges, ColumnId::RangeCategory);
    assert_eq!(categories, [Some("collective"), Some("5"), None]);
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
    let series = |metric: &str, unit: &str, t_ns: &[u64], value: &[f64]| CounterSeries {
        source: "nsys".to_owned(),
        device: "gpu1".to_owned(),
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        t_ns: t_ns.to_vec(),
        value: value.to_vec(),
    };
    let active = series("SMs_Active_Throughput_pct", "%", &[400, 500], &[50.0, 75.0]);
    assert_eq!(capture.counters, [active, series("metric_9", "", &[400], &[-3.0])]);
    assert!(capture.counters.iter().all(CounterSeries::is_well_formed));
    let lost = ("GPU_METRICS: samples before the session".to_owned(), 1);
    assert_eq!(counted(&capture), [lost]);
}

#[test]
fn what_the_driver_gave_out_and_took_back_is_kept_beside_the_events() {
    let usage = |start, kind, operation, correlation| Usage {
        start,
        globalPid: global(100, 0),
        deviceId: 1,
        address: 0x7f00_0000_0000,
        bytes: 2_097_152,
        memKind: kind,
        memoryOperationType: operation,
        correlationId: correlation,
    };
    let export = Export::new(Schema::V2023, STRINGS)
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &kernels())
        .table(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            &[usage(90, 2, 1, 9), usage(10, 2, 0, 7), usage(20, 1, 0, 8)],
        )
        .finish();
    let capture = export.read().unwrap();
    assert_eq!(export.read_sqlite().unwrap(), capture);
    assert_eq!(capture.losses.list(), []);
    let timeline = timeline_of(capture);
    let allocations = timeline.capture.allocations.iter().map(|of| {
        assert_eq!((of.process, of.address), (100, 0x7f00_0000_0000));
        (of.t_ns, of.device, of.bytes, of.kind, of.correlation)
    });
    let (device, pinned) = (Some(MemoryKind::Device), Some(MemoryKind::Pinned));
    let expected = [
        (10, Some(1), 2_097_152, device, 7),
        (20, None, 2_097_152, pinned, 8),
        (90, Some(1), -2_097_152, device, 9),
    ];
    assert_eq!(allocations.collect::<Vec<_>>(), expected);
    through_a_file(&timeline);
}

#[test]
fn an_export_of_the_corpus_says_the_peak_rates_of_its_gpu() {
    let Some(path) = corpus("nsightful/power_iteration__baseline.sqlite") else {
        return;
    };
    let capture = flopwatch_trace::nsys_sqlite::read(&path, &ReadLimits::default()).unwrap();
    let gpu = &capture.devices[0];
    assert_eq!(gpu.name, "Tesla T4");
    // 40 multiprocessors of 64 units at 1.59 GHz; the data sheet has 8.1 TFLOP/s.
    assert_eq!(gpu.peak_flops, [("fp32".to_owned(), 8_140_800_000_000)].into());
    assert!(gpu.figures_from.starts_with("TARGET_INFO_GPU; "));
    // Kernels say their short names, copies the kinds of their memory.
    let kernels = &capture.events[&Category::CudaKernel];
    assert!((0..kernels.len()).all(|at| kernels.name_detail(NameDetail::Short, at).is_some()));
    let copies = &capture.events[&Category::CudaMemcpyD2h];
    let device = u64::from(MemoryKind::Device.number());
    assert_eq!(numbers(copies, ColumnId::SrcMemoryKind), Some(vec![device; 89]));
}
