//! A small export: two processes that share correlation ids, two GPUs, every table, some of
//! everything that is counted.

use crate::export::{
    Analysis, Export, Finished, Gpu, Kernel, Memcpy, Memset, Nvtx, Osrt, Process, Runtime, Schema, Synchronization,
    ThreadName, global, text,
};

/// Strings of [`sample`].
const STRINGS: &[(i32, &str)] = &[
    (0, "[Unknown]"),
    (1, "void gemm<float>(float*, int)"),
    (2, "gemm"),
    (3, "cudaLaunchKernel_v7000"),
    (4, "cudaMemcpyAsync_v3020"),
    (5, "read"),
    (6, "worker"),
    (7, "backward"),
    (8, "ENV_TOKEN=this-string-is-referred-to-by-nothing"),
];

/// Processes of the events.
fn processes() -> (u64, u64) {
    (global(100, 0), global(200, 0))
}

fn kernels() -> Vec<Kernel> {
    let (a, b) = processes();
    let kernel = |start, end, device: u32, stream, correlation, process| Kernel {
        start,
        end,
        deviceId: device,
        contextId: 1,
        streamId: stream,
        correlationId: correlation,
        globalPid: process,
        demangledName: 1,
        shortName: 2,
        mangledName: 2,
        registersPerThread: 32,
        gridX: 70_000,
        gridY: 2,
        gridZ: 3,
        blockX: 256,
        blockY: 1,
        blockZ: 1,
        staticSharedMemory: 1024,
        dynamicSharedMemory: 2048,
        ..Kernel::default()
    };
    vec![
        kernel(1000, 2000, 0, 7, 10, a),
        // Overlaps the one before within its stream, as programmatic dependent launch does.
        kernel(1900, 2500, 0, 7, 11, a),
        kernel(1000, 1500, 1, 7, 10, b),
        // Launched before the capture began.
        kernel(2500, 2500, 0, 300, 99, a),
        // Ends before it starts.
        kernel(5000, 4000, 0, 7, 12, a),
    ]
}

fn copies() -> Vec<Memcpy> {
    let copy = |start, end, kind, bytes| Memcpy {
        start,
        end,
        contextId: 1,
        streamId: 7,
        correlationId: 20,
        globalPid: processes().0,
        bytes,
        copyKind: kind,
        ..Memcpy::default()
    };
    vec![
        copy(100, 200, 1, 4096),
        copy(2600, 2700, 2, 8192),
        copy(2700, 2800, 8, 1),
        copy(2800, 2900, 10, u64::from(u32::MAX) + 1),
        copy(2900, 3000, 9, 3),
        copy(3000, 3100, 77, 5),
    ]
}

fn calls() -> Vec<Runtime> {
    let call = |start, end, thread, correlation, name| Runtime {
        start,
        end,
        globalTid: thread,
        correlationId: correlation,
        nameId: name,
        ..Runtime::default()
    };
    vec![
        call(900, 950, global(100, 101), 10, 3),
        call(960, 980, global(100, 101), 11, 3),
        call(10, 40, global(100, 101), 20, 4),
        call(990, 995, global(200, 201), 10, 3),
        // Still running when the capture ended.
        call(3400, 0, global(200, 201), 30, 4),
    ]
}

fn os_calls() -> Vec<Osrt> {
    let call = |start, end, class, name| Osrt {
        start,
        end,
        eventClass: class,
        globalTid: global(100, 102),
        nameId: name,
        ..Osrt::default()
    };
    // The second one is the profiler's note that it has started.
    vec![call(0, 5, 27, 5), call(1, 1, 31, 2)]
}

fn ranges() -> Vec<Nvtx> {
    let range = |start, end, kind, name: &str, id, domain| Nvtx {
        start,
        end,
        eventType: kind,
        color: 0xFF00_FF00,
        text: text(name),
        globalTid: global(100, 101),
        textId: id,
        domainId: domain,
        ..Nvtx::default()
    };
    vec![
        range(0, 0, 75, "PyTorch", 0, 3),
        range(5, 3000, 59, "step", 0, 0),
        range(10, 2000, 59, "forward", 0, 3),
        range(2000, 2900, 59, "", 7, 3),
        range(20, 2950, 60, "io", 0, 0),
        // Before the session's start, without a name.
        range(-100, 20, 59, "", 0, 0),
        // Unfinished, a mark, a thread's name, a counter.
        range(2990, 0, 59, "late", 0, 0),
        range(7, 0, 34, "mark", 0, 0),
        range(1, 0, 39, "main thread", 0, 0),
        range(2, 0, 44, "counter", 0, 0),
    ]
}

fn names_of_processes() -> Vec<Process> {
    let (a, b) = processes();
    let process = |global_pid, pid, name| Process {
        globalPid: global_pid,
        pid,
        name: text(name),
    };
    vec![
        process(a, 100, "/usr/bin/python3 train.py --api-key=x"),
        process(b, 200, "worker"),
        process(global(300, 0), 300, "somebody-else"),
    ]
}

/// The export, its rows in the order of this file or the other way round.
pub(crate) fn sample(schema: Schema, reverse: bool) -> Finished {
    fn ordered<T>(mut rows: Vec<T>, reverse: bool) -> Vec<T> {
        if reverse {
            rows.reverse();
        }
        rows
    }
    let process = processes().0;
    let set = Memset {
        start: 50,
        end: 90,
        contextId: 1,
        streamId: 7,
        correlationId: 21,
        globalPid: process,
        bytes: 64,
        ..Memset::default()
    };
    let synchronization = Synchronization {
        start: 3100,
        end: 3300,
        contextId: 1,
        streamId: 0xFFFF_FFFF,
        correlationId: 22,
        globalPid: process,
        syncType: 1,
        ..Synchronization::default()
    };
    let gpu = Gpu {
        id: 1,
        name: text("NVIDIA H100 80GB HBM3"),
        totalMemory: 85_000_000_000,
        memoryBandwidth: 3_352_000_000_000,
        smCount: 132,
        computeMajor: 9,
        computeMinor: 0,
        ..Gpu::default()
    };
    let thread = ThreadName {
        nameId: 6,
        priority: 20,
        globalTid: global(100, 101),
    };
    Export::new(schema, STRINGS)
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &ordered(kernels(), reverse))
        .table("CUPTI_ACTIVITY_KIND_MEMCPY", &ordered(copies(), reverse))
        .table("CUPTI_ACTIVITY_KIND_MEMSET", &[set])
        .table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &[synchronization])
        .table("CUPTI_ACTIVITY_KIND_RUNTIME", &ordered(calls(), reverse))
        .table("OSRT_API", &ordered(os_calls(), reverse))
        .table("NVTX_EVENTS", &ordered(ranges(), reverse))
        .table("PROCESSES", &ordered(names_of_processes(), reverse))
        .table("ThreadNames", &[thread])
        .table("TARGET_INFO_GPU", &[gpu])
        .table(
            "ANALYSIS_DETAILS",
            &[Analysis {
                duration: 9000,
                startTime: 500,
                stopTime: 9500,
            }],
        )
        .table("SCHED_EVENTS", &[Osrt::default(), Osrt::default()])
        .finish()
}
