//! The reader of nsys exports and the transform, on exports of our own making.

use flopwatch_model::{Category, ColumnId, Events, LossReason, Timeline, Track};
use flopwatch_summary::summarise;
use flopwatch_trace::ReadLimits;
use flopwatch_trace::nsys_hdf::Failure;

use crate::capture::{lost, timeline_of};
use crate::export::{Export, GraphTrace, Kernel, Nvtx, Osrt, Runtime, Schema, global, text};
use crate::limits::limited;
use crate::sample::sample;

fn column(timeline: &Timeline, category: Category, id: ColumnId) -> Vec<u64> {
    let values = timeline.capture.events[&category].column(id).unwrap();
    (0..values.len()).map(|at| values.get(at).unwrap()).collect()
}

fn names(timeline: &Timeline, category: Category) -> Vec<&str> {
    crate::capture::names(&timeline.capture.events[&category])
}

#[test]
fn both_schemas_in_any_row_order_give_the_same_timeline() {
    let reference = sample(Schema::V2022, false).timeline();
    for (schema, reverse) in [(Schema::V2022, true), (Schema::V2023, false), (Schema::V2023, true)] {
        let mut other = sample(schema, reverse).timeline();
        if schema == Schema::V2023 {
            assert_eq!(other.capture.source.schema_version, "3.7.2");
            other.capture.source = reference.capture.source.clone();
        }
        assert_eq!(other, reference, "{schema:?}, reversed: {reverse}");
    }
}

#[test]
fn times_count_from_the_earliest_event_where_one_lies_before_the_session() {
    let timeline = sample(Schema::V2022, false).timeline();
    let start = timeline.capture.session_start_utc_ns;
    assert_eq!(start, Some(1_700_000_000_000_000_000 - 100));
    let kernels = &timeline.capture.events[&Category::CudaKernel];
    assert_eq!(kernels.start_ns, [1100, 1100, 2000, 2600]);
    assert_eq!(kernels.duration_ns, [1000, 500, 600, 0]);
    assert_eq!(timeline.capture.duration_ns, 9100);
}

#[test]
fn kernels_keep_their_shape_and_find_the_launch_of_their_own_process() {
    let timeline = sample(Schema::V2022, false).timeline();
    let kernels = names(&timeline, Category::CudaKernel);
    assert_eq!(kernels, ["void gemm<float>(float*, int)"; 4]);
    for (id, value) in [
        (ColumnId::GridX, 70_000),
        (ColumnId::BlockX, 256),
        (ColumnId::SharedDynamic, 2048),
    ] {
        assert_eq!(column(&timeline, Category::CudaKernel, id), [value; 4], "{id:?}");
    }
    let launches = column(&timeline, Category::CudaKernel, ColumnId::Launch);
    let calls = &timeline.capture.events[&Category::CudaApi];
    let start = |at: u64| calls.start_ns.get(usize::try_from(at).unwrap()).copied();
    let starts: Vec<Option<u64>> = launches.into_iter().map(start).collect();
    // Two processes use id 10: each kernel finds its own call.
    assert_eq!(starts, [Some(1000), Some(1090), Some(1060), None]);
    let summary = summarise(&timeline);
    assert_eq!((summary.launches.matched, summary.launches.unmatched), (9, 2));
}

#[test]
fn kernels_that_overlap_in_a_stream_get_lanes_and_none_is_lost() {
    let timeline = sample(Schema::V2022, false).timeline();
    let kernels = &timeline.capture.events[&Category::CudaKernel];
    assert_eq!(kernels.lane, [0, 0, 1, 0]);
    // The unnamed range ends at the very time at which `io` starts, so that its lane is free again.
    assert_eq!(timeline.capture.events[&Category::NvtxRange].lane, [0, 1, 2, 0, 2, 0]);
}

#[test]
fn copies_are_sorted_by_kind_and_unknown_kinds_are_kept() {
    let timeline = sample(Schema::V2022, false).timeline();
    let bytes = |category| column(&timeline, category, ColumnId::Bytes);
    assert_eq!(bytes(Category::CudaMemcpyH2d), [4096]);
    assert_eq!(bytes(Category::CudaMemcpyD2h), [8192]);
    assert_eq!(bytes(Category::CudaMemcpyD2d), [1]);
    assert_eq!(bytes(Category::CudaMemcpyP2p), [u64::from(u32::MAX) + 1]);
    assert_eq!(bytes(Category::CudaMemcpyOther), [3, 5]);
    let other = names(&timeline, Category::CudaMemcpyOther);
    assert_eq!(other, ["[CUDA memcpy Host-to-Host]", "[CUDA memcpy kind 77]"]);
}

#[test]
fn ranges_carry_their_domain_and_unfinished_ones_end_with_the_table() {
    let timeline = sample(Schema::V2022, false).timeline();
    let expected = ["", "step", "PyTorch:forward", "io", "PyTorch:backward", "late"];
    assert_eq!(names(&timeline, Category::NvtxRange), expected);
    let of_ranges = |id| column(&timeline, Category::NvtxRange, id);
    assert_eq!(of_ranges(ColumnId::RangeStyle), [0, 0, 0, 1, 0, 0]);
    assert_eq!(of_ranges(ColumnId::Color), [0xFF00_FF00; 6]);
    assert_eq!(timeline.capture.events[&Category::NvtxRange].duration_ns[5], 10);
}

#[test]
fn what_is_cut_or_left_out_is_counted() {
    let timeline = sample(Schema::V2022, false).timeline();
    let expected = [
        (LossReason::Truncated, "CUPTI_ACTIVITY_KIND_RUNTIME: not ended", 1),
        (LossReason::Truncated, "NVTX_EVENTS: not ended", 1),
        (LossReason::Skipped, "CUPTI_ACTIVITY_KIND_KERNEL: end before start", 1),
        (LossReason::Unsupported, "NVTX events of type 44", 1),
        (LossReason::Unsupported, "NVTX marks", 1),
        (LossReason::Unsupported, "OSRT_API: events of class 31", 1),
        (LossReason::Unsupported, "table SCHED_EVENTS", 2),
    ];
    let expected = expected.map(|(reason, what, count)| (reason, what.to_owned(), count));
    assert_eq!(lost(&timeline.capture), expected);
    let text = summarise(&timeline).render(5);
    assert!(text.contains("Unsupported: 1 (NVTX marks)"), "{text}");
}

#[test]
fn rows_say_which_process_thread_device_and_stream_they_are() {
    let timeline = sample(Schema::V2022, false).timeline();
    let rows = &timeline.capture.rows;
    let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    let expected = [
        "python3 (100) GPU 0 stream 7",
        "python3 (100) GPU 0 stream 300",
        "python3 (100) GPU 0 any stream",
        "python3 (100) worker (101)",
        "python3 (100) worker (101)",
        "python3 (100) thread (102)",
        "worker (200) GPU 1 stream 7",
        "worker (200) thread (201)",
    ];
    assert_eq!(labels, expected);
    assert_eq!((rows[0].machine, rows[0].process, rows[0].stream), (1, 100, Some(7)));
    assert_eq!((rows[2].track, rows[2].stream), (Track::CudaSync, None));
    assert_eq!(timeline.capture.devices.len(), 2);
    assert_eq!(timeline.capture.devices[0].compute_capability, None);
    assert_eq!(timeline.capture.devices[1].compute_capability, Some((9, 0)));
}

#[test]
fn api_names_lose_the_version_that_cupti_appends() {
    let timeline = sample(Schema::V2022, false).timeline();
    let calls = &timeline.capture.events[&Category::CudaApi];
    assert_eq!(calls.names, ["cudaLaunchKernel", "cudaMemcpyAsync"]);
}

#[test]
fn a_gpu_that_runs_two_things_at_once_is_busy_once() {
    let summary = summarise(&sample(Schema::V2022, false).timeline());
    let busy: Vec<(u32, u64)> = summary.gpus.iter().map(|gpu| (gpu.device, gpu.busy_ns)).collect();
    // Device 0: kernels 1000..2500, copies 100..200 and 2600..3100, set 50..90.
    assert_eq!(busy, [(0, 1500 + 100 + 500 + 40), (1, 500)]);
}

#[test]
fn a_gpu_is_busy_in_the_part_of_the_window_that_holds_events_too() {
    let timeline = sample(Schema::V2022, false).timeline();
    let summary = summarise(&timeline);
    let events = || timeline.capture.events.values();
    let begin = events().flat_map(|events| &events.start_ns).min().unwrap();
    let ends = |events: &Events| {
        let times = events.start_ns.iter().zip(&events.duration_ns);
        times.map(|(start, length)| start + length).max()
    };
    let span = events().filter_map(ends).max().unwrap() - begin;
    assert_eq!(summary.events_span_ns, span);
    assert!(span < summary.window_ns, "{span} of {}", summary.window_ns);
    for gpu in &summary.gpus {
        let (of_span, of_window) = (gpu.busy_ratio_of_events_span, gpu.busy_ratio_of_window);
        let [window, span] = [summary.window_ns, span].map(|ns| f64::from(u32::try_from(ns).unwrap()));
        let difference = of_span - of_window * window / span;
        assert!(difference.abs() < 1e-12, "{of_span} {of_window}");
    }
    assert_eq!(summarise(&Timeline::default()).events_span_ns, 0);
}

#[test]
fn optional_columns_may_be_missing() {
    let kernel = Kernel {
        start: 1,
        end: 2,
        shortName: 1,
        ..Kernel::default()
    };
    let absent = [
        "demangledName",
        "gridX",
        "correlationId",
        "globalPid",
        "contextId",
        "streamId",
        "greenContextId",
    ];
    let export = Export::new(Schema::V2022, &[(1, "gemm")])
        .table_without("CUPTI_ACTIVITY_KIND_KERNEL", &[kernel], &absent)
        .finish();
    let timeline = timeline_of(export.read().unwrap());
    assert_eq!(names(&timeline, Category::CudaKernel), ["gemm"]);
    assert_eq!(column(&timeline, Category::CudaKernel, ColumnId::GridX), [0]);
}

#[test]
fn a_missing_required_column_names_table_and_column() {
    let table = "CUPTI_ACTIVITY_KIND_KERNEL";
    let export = Export::new(Schema::V2022, &[])
        .table_without(table, &[Kernel::default()], &["end", "greenContextId"])
        .finish();
    let error = export.read().unwrap_err().to_string();
    for part in [table, "column end", "export.h5"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn what_was_not_recorded_is_not_captured_rather_than_zero() {
    let calls = [Runtime {
        start: 1,
        end: 2,
        globalTid: global(1, 1),
        nameId: 1,
        ..Runtime::default()
    }];
    let kernels = [Kernel {
        start: 1,
        end: 2,
        demangledName: 1,
        ..Kernel::default()
    }];
    let base = |schema| Export::new(schema, &[(1, "x")]);
    let asked = [("CAPTURE_EVENT_TYPE", "Cuda"), ("CAPTURE_EVENT_TYPE", "OSRuntime")];
    let graphs = [GraphTrace {
        start: 1,
        end: 2,
        graphId: 3,
        ..GraphTrace::default()
    }];
    let (api, kernel) = (Category::CudaApi, Category::CudaKernel);
    let (set, os) = (Category::CudaMemset, Category::OsRuntime);
    let empty = || base(Schema::V2023).capture_options(&asked);
    let with_calls = || empty().table("CUPTI_ACTIVITY_KIND_RUNTIME", &calls);
    let with_kernels = base(Schema::V2022).table("CUPTI_ACTIVITY_KIND_KERNEL", &kernels);
    let with_graphs = with_calls().table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &graphs);
    let graph = Category::CudaGraph;
    let cases: [(&str, Export, &[Category], &[Category]); 5] = [
        ("nothing at all", base(Schema::V2022), &[], &[api, kernel, set, os]),
        ("asked for, nothing happened", empty(), &[api, kernel, set, os], &[]),
        ("calls without any activity", with_calls(), &[api, os], &[kernel, set]),
        ("kernels and no sets", with_kernels, &[kernel, set], &[api, os]),
        ("whole graphs, no kernels", with_graphs, &[api, graph], &[kernel, set]),
    ];
    for (case, export, captured, missing) in cases {
        let found = export.finish().read().unwrap().captured;
        for category in captured {
            assert!(found.contains(category), "{case}: {category:?} was captured");
        }
        for category in missing {
            assert!(!found.contains(category), "{case}: {category:?} was not captured");
        }
    }
}

#[test]
fn a_summary_says_not_captured_and_the_caller_can_know_better() {
    let mut capture = Export::new(Schema::V2022, &[]).finish().read().unwrap();
    let summary = |capture| summarise(&timeline_of(capture));
    let text = summary(capture.clone()).render(5);
    let says = text.contains("Not captured: Kernels") && !text.contains("No events");
    assert!(says, "{text}");
    capture.declare_captured([Category::NvtxRange]);
    let declared = summary(capture);
    assert!(declared.nvtx.captured && !declared.kernels.captured);
    let text = declared.render(5);
    assert!(text.contains("No events: NVTX ranges"), "{text}");
}

#[test]
fn limits_name_the_file_the_table_and_the_limit() {
    let cases = [
        (limited(|of| of.max_events = 3), "CUPTI_ACTIVITY_KIND_KERNEL", "3"),
        (limited(|of| of.max_table_rows = 9), "NVTX_EVENTS", "9"),
        (limited(|of| of.max_string_bytes = 25), "NVTX_EVENTS", "25"),
        (limited(|of| of.max_string_bytes = 50), "StringIds", "50"),
        (limited(|of| of.max_rows = 2), "CUPTI_ACTIVITY_KIND_KERNEL", "2"),
        (limited(|of| of.max_chunk_bytes = 100), "StringIds", "100"),
    ];
    for (limits, table, limit) in cases {
        let error = sample(Schema::V2022, false).read_within(&limits).unwrap_err();
        let error = error.to_string();
        for part in ["export.h5", table, limit] {
            assert!(error.contains(part), "{limits:?}: {error}");
        }
    }
}

#[test]
fn a_table_that_claims_huge_strings_is_refused_before_they_are_read() {
    // Each row refers to the same text in no way that HDF5 could share in memory.
    let long = "x".repeat(1 << 20);
    let rows: Vec<Nvtx> = (0..100)
        .map(|start| Nvtx {
            start,
            end: start + 1,
            eventType: 59,
            text: text(&long),
            ..Nvtx::default()
        })
        .collect();
    let export = Export::new(Schema::V2022, &[]).table("NVTX_EVENTS", &rows).finish();
    let error = export.read().unwrap_err().to_string();
    assert!(error.contains("NVTX_EVENTS") && error.contains("bytes"), "{error}");
}

#[test]
fn a_file_that_nsys_did_not_finish_is_no_export() {
    let export = Export::new(Schema::V2022, &[])
        .forge(|file| file.unlink("EXPORT_META_DATA").unwrap())
        .finish();
    assert!(matches!(export.read().unwrap_err().error, Failure::NotAnExport(_)));
    let missing = flopwatch_trace::nsys_hdf::read("/nowhere/x.h5".as_ref(), &ReadLimits::default()).unwrap_err();
    assert!(missing.to_string().contains("/nowhere/x.h5"), "{missing}");
}

#[test]
fn a_forged_table_that_lies_in_another_file_is_refused() {
    let secret = Export::new(Schema::V2022, &[])
        .table("OSRT_API", &[Osrt::default()])
        .finish();
    let target = secret.path().to_str().unwrap().to_owned();
    let linked = Export::new(Schema::V2022, &[])
        .forge(|file| file.link_external(&target, "OSRT_API", "OSRT_API").unwrap())
        .finish();
    let stored_elsewhere = Export::new(Schema::V2022, &[])
        .forge(|file| {
            let builder = file.new_dataset::<i64>().external("/etc/hostname", 0, 8).no_chunk();
            builder.shape(1).create("OSRT_API").unwrap();
        })
        .finish();
    for export in [linked, stored_elsewhere] {
        let error = export.read().unwrap_err().to_string();
        for part in ["OSRT_API", "not read from a foreign file"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn which_core_reads_which_piece_of_a_table_changes_nothing() {
    // Three pieces and a bit, in which marks, ranges that have not ended, ends before starts,
    // threads and names come in no order.
    let rows: Vec<Nvtx> = (0..13_000_u32)
        .map(|at| Nvtx {
            start: i64::from(at * 7919 % 13_001) + 1,
            end: match at % 701 {
                0 => 0,
                1 => 1,
                _ => i64::from(at * 7919 % 13_001) + 50,
            },
            eventType: if at % 97 == 5 { 34 } else { 59 },
            text: text(&format!("step {}", at * 31 % 577)),
            globalTid: global(u64::from(at / 5000), u64::from(at % 3)),
            ..Nvtx::default()
        })
        .collect();
    let export = Export::new(Schema::V2023, &[]).table("NVTX_EVENTS", &rows).finish();
    let on = |cores| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build().unwrap();
        pool.install(|| export.read().unwrap())
    };
    let alone = on(1);
    let reasons: Vec<_> = alone.losses.list().iter().map(|drop| drop.reason).collect();
    let expected = [LossReason::Truncated, LossReason::Skipped, LossReason::Unsupported];
    assert_eq!(reasons, expected);
    for cores in [2, 3, 8] {
        for _ in 0..5 {
            assert!(on(cores) == alone, "{cores}");
        }
    }
    let database = export.read_sqlite().unwrap();
    assert!(database.rows == alone.rows && database.events == alone.events && database.losses == alone.losses);
}
