//! Chrome traces as Kineto writes them, and reading of whatever format.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result};
use flopwatch_model::{Capture, Category, Events};
use flopwatch_trace::ReadLimits;
use flopwatch_trace::transform::{TransformOptions, transform};
use serde_json::json;

use crate::report;

const OPERATORS: [&str; 6] = [
    "aten::linear",
    "aten::addmm",
    "aten::layer_norm",
    "aten::gelu",
    "aten::copy_",
    "aten::_softmax",
];

const KERNELS: [&str; 4] = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3>)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)",
    "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(c10::BFloat16*, c10::BFloat16 const*, int, int, int, bool const*, int, bool)",
];

/// Where the next group of events begins.
struct GroupStart {
    /// The group's number.
    id: u64,
    /// When the thread is free for its operator, in ns.
    thread: u64,
    /// When each stream has done its last kernel, in ns.
    streams: [u64; 2],
}

/// Writes a trace of at least `megabytes`: operators, calls, kernels and the flows between them.
/// One thread runs one operator after another, and one stream one kernel after another.
pub(crate) fn make(out: &Path, megabytes: u64) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut file = BufWriter::with_capacity(1 << 20, File::create(out)?);
    let head = r#"{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84929347584,
      "computeMajor": 9, "computeMinor": 0, "warpSize": 32, "numSms": 132
    }
  ],
  "cupti_version": 24, "record_shapes": 1, "with_stack": 0,
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "traceEvents": [
"#;
    file.write_all(head.as_bytes())?;
    let mut written = 0;
    let mut next = GroupStart {
        id: 1,
        thread: 4_458_676_000_000_000,
        streams: [0; 2],
    };
    while written < megabytes * 1_000_000 {
        let event = group(&mut random, &mut next);
        file.write_all(event.as_bytes())?;
        written += u64::try_from(event.len())?;
        next.id += 1;
    }
    let tail = r#"  {
    "ph": "i", "name": "Record Window End", "s": "g", "pid": "", "tid": "", "ts": 4458676000000.000
  }
  ],
  "traceName": "trace.json",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1711964646000000000
}
"#;
    file.write_all(tail.as_bytes())?;
    file.into_inner().context("the trace was not written")?.sync_all()?;
    Ok(())
}

/// An operator, the call that it makes, the kernel that comes of it, and the arrows between these.
fn group(random: &mut fastrand::Rng, next: &mut GroupStart) -> String {
    let GroupStart {
        id,
        thread: at,
        streams: [often, seldom],
    } = next;
    let micros = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
    let operator = OPERATORS
        .get(random.usize(0..OPERATORS.len()))
        .copied()
        .unwrap_or_default();
    let kernel = KERNELS.get(random.usize(0..KERNELS.len())).copied().unwrap_or_default();
    let call = *at + random.u64(1_000..4_000);
    let (stream, free) = if random.u8(0..10) == 0 {
        (20, seldom)
    } else {
        (7, often)
    };
    let launch = (call + random.u64(3_000..5_000)).max(*free);
    let length = random.u64(1_500..18_000);
    *free = launch + length;
    let (rows, columns) = (1 << random.u32(5..13), 1 << random.u32(5..13));
    let text = format!(
        r#"  {{
    "ph": "X", "cat": "cpu_op", "name": "{operator}", "pid": 2910249, "tid": 2910249,
    "ts": {}, "dur": {},
    "args": {{
      "External id": {id},"Record function id": {id}, "Sequence number": {}, "Fwd thread id": 0, "Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"], "Input Strides": [[{rows}, 1], [{columns}, 1], []], "Input Dims": [[{columns}, {rows}], [{rows}, {columns}], []], "Ev Idx": {id}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 2910249, "tid": 2910249,
    "ts": {}, "dur": {},
    "args": {{
      "External id": {id}, "cbid": 211, "correlation": {id}
    }}
  }},
  {{
    "ph": "s", "id": {id}, "pid": 2910249, "tid": 2910249, "ts": {},
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": {stream},
    "ts": {}, "dur": {},
    "args": {{
      "External id": {id}, "queued": 0, "device": 0, "context": 1,
      "stream": {stream}, "correlation": {id},
      "registers per thread": {}, "shared memory": {},
      "blocks per SM": {}.{:06}, "warps per SM": {}.{:06},
      "grid": [{columns}, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": {}
    }}
  }},
  {{
    "ph": "f", "id": {id}, "pid": 0, "tid": {stream}, "ts": {},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
"#,
        micros(*at),
        micros(random.u64(10_000..20_000)),
        *id / 3,
        micros(call),
        micros(random.u64(2_000..6_000)),
        micros(call),
        micros(launch),
        micros(length),
        random.u32(16..128),
        random.u32(0..65_536),
        random.u32(0..9),
        random.u32(0..1_000_000),
        random.u32(0..60),
        random.u32(0..1_000_000),
        random.u32(0..100),
        micros(launch),
    );
    *at += random.u64(20_000..30_000);
    text
}

/// Reads a file of any format.
pub(crate) fn read(input: &Path) -> Result<()> {
    let clock = report::Clock::start()?;
    let capture = flopwatch_trace::read(input, &ReadLimits::default())?;
    let took = clock.stop()?;
    let events = || capture.events.values();
    let total: u64 = events().flat_map(|events| &events.duration_ns).sum();
    report::print(
        took,
        json!({
            "events": events().map(Events::count).sum::<u64>(),
            "total_ns": total,
            "kernels": kernels(&capture),
            "launches": capture.profiles.len(),
            "values": capture.profiles.iter().map(|profile| profile.metrics.len()).sum::<usize>(),
            "drops": capture.losses.list().len(),
        }),
    )
}

/// Reads a file of any format and transforms it.
pub(crate) fn open(input: &Path) -> Result<()> {
    let clock = report::Clock::start()?;
    let capture = flopwatch_trace::read(input, &ReadLimits::default())?;
    let session_id = "bench".to_owned();
    let timeline = transform(capture, TransformOptions { session_id });
    let took = clock.stop()?;
    let events = || timeline.capture.events.values();
    report::print(
        took,
        json!({
            "events": events().map(Events::count).sum::<u64>(),
            "total_ns": events().flat_map(|events| &events.duration_ns).sum::<u64>(),
        }),
    )
}

fn kernels(capture: &Capture) -> u64 {
    capture.events.get(&Category::CudaKernel).map_or(0, Events::count)
}
