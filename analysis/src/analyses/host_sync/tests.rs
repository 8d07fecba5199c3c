//! Waits of traces made by hand.

use flopwatch_analysis_testing::{EventHandle, Trace};
use flopwatch_model::{MemoryKind, Track};

use super::*;

struct Host {
    trace: Trace,
    calls: RowId,
    stream: RowId,
}

impl Host {
    fn new() -> Self {
        let mut trace = Trace::new();
        let (calls, stream) = (trace.thread(1, 11, Track::CudaApi), trace.stream(1, 0, 7));
        Self { trace, calls, stream }
    }

    fn copy(&mut self, name: &str, at: u64, category: Category, kinds: [MemoryKind; 2], bytes: u64) -> EventHandle {
        let call = self.trace.call(self.calls, name, at, at + 50);
        let copy = self.trace.event(category, self.stream, "copy", at + 10, at + 40);
        self.trace.launched_by(copy, call);
        self.trace.number(copy, ColumnId::Bytes, bytes);
        self.trace
            .number(copy, ColumnId::SrcMemoryKind, kinds[0].number().into());
        self.trace
            .number(copy, ColumnId::DstMemoryKind, kinds[1].number().into());
        copy
    }

    fn result(self) -> HostSyncResult {
        HostSyncResult::of(&self.trace.build(), HostSyncParams::default())
    }
}

fn found(result: &HostSyncResult, rule: &str) -> u64 {
    let rule = result.rules.iter().find(|found| found.rule == rule);
    rule.unwrap().count
}

#[test]
fn a_wait_costs_the_hosts_time_and_what_the_gpu_idles_in_and_behind_it() {
    let mut host = Host::new();
    host.trace.kernel(host.stream, "gemm", 0, 80);
    host.trace.kernel(host.stream, "gemm", 130, 150);
    host.trace.call(host.calls, "cudaStreamSynchronize_v3020", 20, 100);
    let ranges = host.trace.thread(1, 11, Track::Nvtx);
    host.trace.event(Category::NvtxRange, ranges, "step 4", 0, 200);
    let result = host.result();
    assert_eq!((result.cost.calls, result.cost.total_ns), (1, 80));
    // The GPU has nothing to do from 80 to 130: 20 ns of the wait, 30 ns behind it.
    assert_eq!(result.cost.gpu_idle_ns, Some(20));
    assert_eq!(result.gpu_idle_after_ns, Some(30));
    assert_eq!(result.kinds[0].kind, SyncKind::Stream);
    let holder = &result.holders[0];
    assert_eq!((holder.category, holder.name.as_str()), (Category::NvtxRange, "step *"));
    assert_eq!(result.longest[0].held_by, "step 4");
    assert_eq!(found(&result, "cuda_api_sync"), 1);
}

#[test]
fn copies_wait_where_they_are_synchronous_or_of_pageable_memory() {
    use MemoryKind::{Device, Pageable, Pinned};
    let mut host = Host::new();
    let up = Category::CudaMemcpyH2d;
    let down = Category::CudaMemcpyD2h;
    let within = Category::CudaMemcpyD2d;
    host.copy("cudaMemcpyAsync_v3020", 0, up, [Pageable, Device], 100);
    host.copy("cudaMemcpyAsync_v3020", 100, up, [Pinned, Device], 100);
    host.copy("cudaMemcpy_v3020", 200, up, [Pageable, Device], 64_000);
    host.copy("cudaMemcpy_v3020", 300, up, [Pageable, Device], 64_001);
    host.copy("cudaMemcpy_v3020", 400, down, [Device, Pinned], 4);
    host.copy("cudaMemcpy_v3020", 500, within, [Device, Device], 1 << 20);
    let result = host.result();
    let kinds: Vec<_> = result.kinds.iter().map(|row| (row.kind, row.cost.calls)).collect();
    assert_eq!(kinds, [(SyncKind::Copy, 3), (SyncKind::PageableCopy, 1)]);
    assert_eq!(found(&result, "cuda_memcpy_async"), 1);
    assert_eq!(found(&result, "cuda_memcpy_sync"), 2);
    let row = &result.rules[1].rows[0];
    assert_eq!((row.duration_ns, row.bytes, row.stream), (30, Some(100), Some(7)));
    assert_eq!(row.source_kind.as_deref(), Some("pageable"));
}

#[test]
fn memsets_wait_for_memory_that_the_host_reaches_alone() {
    let mut host = Host::new();
    for (at, kind) in [
        (0, MemoryKind::Device),
        (100, MemoryKind::Managed),
        (200, MemoryKind::Pinned),
    ] {
        host.copy("cudaMemset_v3020", at, Category::CudaMemset, [kind, kind], 8);
    }
    host.copy(
        "cudaMemsetAsync_v3020",
        300,
        Category::CudaMemset,
        [MemoryKind::Pinned; 2],
        8,
    );
    let result = host.result();
    assert_eq!(found(&result, "cuda_memset_sync"), 2);
    assert_eq!(result.cost.calls, 2);
}

#[test]
fn a_capture_without_gpu_work_has_no_idle_time() {
    let mut host = Host::new();
    host.trace.call(host.calls, "cudaDeviceSynchronize", 0, 100);
    let result = host.result();
    assert_eq!((result.cost.gpu_idle_ns, result.gpu_idle_after_ns), (None, None));
    let missing: Vec<&str> = result.not_captured.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(
        missing,
        ["what holds the waits", "how much of the waits the GPU was idle"]
    );
}
