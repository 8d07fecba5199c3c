//! Collectives, ranks, synchronisation, modules, allocations and threads of real captures.

use serde_json::{Value, json};

use crate::captures::{analyze, timeline};
use crate::result::{assert_near, find, list, numbers, said, texts};

/// How many collectives of an operation the rows of a result have.
pub(crate) fn collectives(result: &Value, operation: &str) -> u64 {
    let rows = list(&result["rows"]).filter(|row| row["operation"] == operation);
    rows.map(|row| row["collectives"].as_u64().unwrap()).sum()
}

/// HTA's fixture of two A100s tells the sizes of its collectives, so that bandwidths can be divided
/// by hand.
#[test]
fn collectives_of_a_pytorch_trace_have_the_bandwidth_of_a_division_by_hand() {
    let Some(timeline) = timeline("hta/nccl_parser_config-nccl_data.json.gz") else {
        return;
    };
    let result = analyze("collectives", &json!({"limit": 100}), &[&timeline]);
    assert_eq!(result["collectives"], 21);
    assert_eq!(result["sized_collectives"], 21);
    assert_eq!(result["not_captured"], json!([]));
    // The overlap that exact interval algebra finds: 15.61 %, of 46,879,381 ns of communication.
    assert_near(&result["hidden_ratio"], 0.1561, 5e-5);
    assert_eq!(result["exposed_ns"], 39_559_468);
    // Elements, bytes of one, kernel's time in ns as the file has them, and the factor of the bus
    // for two ranks.
    for (elements, size, duration, factor) in [
        (6_637_568_u64, 4_u64, 2_636_669_u64, 1.0),
        (7_875_584, 4, 2_424_415, 1.0),
        (53_120, 4, 30_975, 1.0),
        (53, 8, 7_775, 1.0),
    ] {
        let mut calls = list(&result["longest"]);
        let call = calls.find(|call| call["duration_ns"] == duration).unwrap();
        assert_eq!(call["message_bytes"], elements * size);
        let bytes = f64::from(u32::try_from(elements * size).unwrap());
        let by_hand = bytes * 1e9 / f64::from(u32::try_from(duration).unwrap());
        let of_bus = by_hand * factor;
        assert_near(&call["algorithm_bytes_per_second"], by_hand, by_hand * 1e-12);
        assert_near(&call["bus_bytes_per_second"], of_bus, of_bus * 1e-12);
    }
    let of = |operation| collectives(&result, operation);
    assert_eq!((of("all_reduce"), of("broadcast")), (15, 6));
}

/// NCCL's kernels for sends and receives are all-to-all where PyTorch's NVTX ranges say so.
#[test]
fn sends_and_receives_in_an_all_to_all_are_an_all_to_all() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let result = analyze("collectives", &Value::Null, &[&timeline]);
    assert_eq!(result["collectives"], 66);
    let rows = &result["rows"];
    let of = |operation| collectives(&result, operation);
    assert_eq!(texts(rows, "operation"), ["all_to_all", "send_receive"]);
    // The launches of the last two lie outside of every range that the capture holds.
    assert_eq!((of("all_to_all"), of("send_receive")), (64, 2));
    let total: u64 = numbers(rows, "total_ns").iter().sum();
    assert_eq!(total, 17_172_652 + 8_229_100);
    assert_eq!(rows[0]["bus_bytes_per_second"], Value::Null);
    let missing = result["not_captured"][0]["what"].as_str().unwrap();
    assert_eq!(missing, "message sizes and bandwidth of 66 of 66 collectives");
}

fn rule<'a>(result: &'a Value, name: &str) -> &'a Value {
    find(&result["rules"], "rule", name)
}

/// `nsys analyze` of Nsight Systems 2026.1 on the same report: 3,008 rows of `cuda_api_sync` with
/// 2,430,800,213 ns, none of `cuda_memcpy_async` and `cuda_memset_sync`, and 3,011 of
/// `cuda_memcpy_sync`. 2,000 of the last copy within a device, which its own text says are left
/// out: the report names no device ids, on which its condition relies. 8 are the halves of four
/// copies between devices through the host.
#[test]
fn rules_of_nsys_find_what_nsys_finds() {
    let Some(timeline) = timeline("gpubootcamp-jacobi/jacobi_memcpy_sys_report.qdrep") else {
        return;
    };
    let result = analyze("host-sync", &Value::Null, &[&timeline]);
    let api = rule(&result, "cuda_api_sync");
    assert_eq!(said(api, &["count", "total_ns"]), json!([3008, 2_430_800_213_u64]));
    assert_eq!(rule(&result, "cuda_memcpy_async")["count"], 0);
    assert_eq!(rule(&result, "cuda_memset_sync")["count"], 0);
    let copies = rule(&result, "cuda_memcpy_sync");
    assert_eq!(copies["count"], 3011 - 2000);
    assert_eq!(copies["total_ns"], 173_260_038 + 36_640 + 28_670);
}

#[test]
fn waits_of_two_processes_are_held_by_their_ranges() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let result = analyze("host-sync", &Value::Null, &[&timeline]);
    assert_eq!(rule(&result, "cuda_api_sync")["total_ns"], 324_534_733);
    assert_eq!(texts(&result["kinds"], "kind"), ["stream", "pageable_copy"]);
    let holder = &result["holders"][0];
    assert_eq!(holder["name"], "aten::copy_");
    assert_eq!(holder["cost"]["calls"], 66);
}

/// The 32 all-to-all of both GPUs are one capture's, and so of one clock: figures of the file's own
/// rows, by SQL.
#[test]
fn ranks_of_one_capture_wait_for_each_other() {
    let Some(timeline) = timeline("nsys-ai/mfu_2gpu_before.sqlite") else {
        return;
    };
    let result = analyze("stragglers", &Value::Null, &[&timeline]);
    assert_eq!(result["matched"], 32);
    assert_eq!(said(&result, &["apart", "not_synchronising"]), json!([0, 2]));
    let ranks = list(&result["ranks"]).map(|rank| said(rank, &["device", "wait_ns"]));
    assert_eq!(ranks.collect::<Value>(), json!([[1, 2_450_705], [0, 10_898_336]]));
    assert_eq!(result["rows"][0]["latency_ns"], 5_677_303);
    assert_eq!(result["worst"][0]["start_skew_ns"], 3_339_732);
    // Of 32 distances those in the middle are 22,214 and 22,327 ns.
    assert_eq!(result["end_skew_median_ns"], 22_270.5);
}

#[test]
fn ranks_of_two_captures_are_aligned() {
    let (Some(first), Some(second)) = (
        timeline("hta/trace_filter-sampled_rank-0.json.gz"),
        timeline("hta/trace_filter-sampled_rank-1.json.gz"),
    ) else {
        return;
    };
    let result = analyze("stragglers", &Value::Null, &[&first, &second]);
    assert_eq!(result["clocks"], "by_ends");
}

fn phases(analysis: &str, capture: &str) -> Option<Value> {
    Some(analyze(analysis, &Value::Null, &[&timeline(capture)?]))
}

/// What each entry of a list is called in a field, its calls and their time in ns.
fn costs<'a>(entries: &'a Value, named: &str) -> Vec<(&'a str, u64, u64)> {
    let cost = |entry: &'a Value| {
        let figure = |field: &str| entry["cost"]["cost"][field].as_u64().unwrap();
        (entry[named].as_str().unwrap(), figure("calls"), figure("total_ns"))
    };
    list(entries).map(cost).collect()
}

#[test]
fn allocations_of_real_captures_are_counted() {
    if let Some(result) = phases("allocations", "gpubootcamp-jacobi/jacobi_memcpy_sys_report.qdrep") {
        // cudaMalloc, cudaFree, cudaHostAlloc and cudaFreeHost of `nsys stats`.
        assert_eq!(result["calls"]["cost"]["calls"], 9 + 11 + 5 + 5);
        assert_eq!(
            result["calls"]["cost"]["total_ns"],
            7_057_038 + 546_328_188 + 808_453_292 + 556_999_037
        );
    }
    // `dur` of the trace's events in µs: 33 cudaMalloc, 8 cudaFree and 2 cudaHostAlloc.
    if let Some(result) = phases("allocations", "param-resnet/resnet_kineto.json.gz") {
        let kinds = costs(&result["kinds"], "kind").into_iter();
        let kinds: Vec<(&str, u64, u64)> = kinds.map(|(kind, calls, ns)| (kind, calls, ns / 1000)).collect();
        assert_eq!(
            kinds,
            [
                ("device_free", 8, 1_210_637),
                ("device_allocate", 33, 12_526),
                ("host_allocate", 2, 1348),
            ]
        );
        assert_eq!(result["allocators"], json!([]), "the profiler recorded no memory");
    }
}

/// Sums of the rows of `CUPTI_ACTIVITY_KIND_RUNTIME` in nsys's own SQLite exports, by name without
/// its version.
#[test]
fn loading_of_code_in_real_captures_is_counted() {
    if let Some(result) = phases("module-loading", "alpa-jax/jax_profile_mem.nsys-rep") {
        assert_eq!(
            costs(&result["names"], "name"),
            [
                ("cuLinkCreate", 24, 2_453_302),
                ("cuModuleLoadFatBinary", 8, 1_878_152),
                ("cuLinkComplete", 24, 1_652_332),
                ("cuModuleUnload", 5, 89_690),
            ]
        );
        let all = said(&result["all"]["cost"], &["calls", "total_ns"]);
        assert_eq!(all, json!([61, 6_073_476]));
        assert_eq!(texts(&result["kinds"], "kind"), ["link", "load", "unload"]);
    }
    // The program loaded its code before the capture began.
    if let Some(result) = phases("module-loading", "gpubootcamp-jacobi/jacobi_memcpy_sys_report.qdrep") {
        assert_eq!(result["all"]["cost"]["calls"], 0);
    }
    // A report without calls of the CUDA API: nothing is known of loading.
    if let Some(result) = phases("module-loading", "trt-controlnet/cudagraph.nsys-rep") {
        assert!(list(&result["not_captured"]).len() > 0, "{result}");
    }
}

#[test]
fn parts_of_every_thread_add_up_to_the_window() {
    for capture in ["alpa-jax/jax_profile_mem.nsys-rep", "trt-controlnet/cudagraph.nsys-rep"] {
        let Some(timeline) = timeline(capture) else {
            continue;
        };
        let result = analyze("threads", &json!({"limit": 10_000}), &[&timeline]);
        assert!(list(&result["rows"]).len() > 0);
        for row in list(&result["rows"]) {
            let part = |name: &str| row[name].as_u64().unwrap();
            let sum = part("working_ns") + part("waiting_ns") + part("unrecorded_ns");
            assert_eq!(sum, result["window_ns"].as_u64().unwrap(), "{row}");
        }
    }
}
