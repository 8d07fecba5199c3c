//! Exports of our own making, in the layout of `nsys export --type hdf`: a compound dataset per table, chunks of 4,096 rows,
//! shuffle and deflate, strings of variable length.

use std::path::{Path, PathBuf};

use flopwatch_trace::model::{Capture, Timeline};
use flopwatch_trace::nsys_hdf::ReadError;
use flopwatch_trace::transform::{TransformOptions, transform};
use flopwatch_trace::{ReadLimits, nsys_hdf};
use hdf5::types::{H5Type, TypeDescriptor, VarLenAscii};
use hdf5::{File, H5Type as DeriveH5Type};

/// As the tables name their columns.
macro_rules! table_row {
    ($name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        #[derive(DeriveH5Type, Debug, Clone, Default)]
        #[repr(C)]
        #[allow(non_snake_case)]
        pub(crate) struct $name { $(pub(crate) $field: $type),* }
    };
}

table_row!(Kernel {
    start: i64,
    end: i64,
    deviceId: u32,
    contextId: u64,
    greenContextId: u64,
    streamId: u64,
    correlationId: u32,
    globalPid: u64,
    demangledName: u64,
    shortName: u64,
    mangledName: u64,
    registersPerThread: u32,
    gridX: i32,
    gridY: i32,
    gridZ: i32,
    blockX: i32,
    blockY: i32,
    blockZ: i32,
    staticSharedMemory: i32,
    dynamicSharedMemory: i32,
    graphNodeId: u64,
});
table_row!(Memcpy {
    start: i64,
    end: i64,
    deviceId: u32,
    contextId: u64,
    greenContextId: u64,
    streamId: u64,
    correlationId: u32,
    globalPid: u64,
    bytes: u64,
    copyKind: u64,
});
table_row!(Memset {
    start: i64,
    end: i64,
    deviceId: u32,
    contextId: u64,
    greenContextId: u64,
    streamId: u64,
    correlationId: u32,
    globalPid: u64,
    value: u32,
    bytes: u64,
});
table_row!(Synchronization {
    start: i64,
    end: i64,
    deviceId: u32,
    contextId: u64,
    streamId: u64,
    correlationId: u32,
    globalPid: u64,
    syncType: u32,
});
table_row!(Runtime {
    start: i64,
    end: i64,
    eventClass: u32,
    globalTid: u64,
    correlationId: u32,
    nameId: u64,
    returnValue: u32,
});
table_row!(Osrt {
    start: i64,
    end: i64,
    eventClass: u32,
    globalTid: u64,
    nameId: u64,
    nestingLevel: u32
});
table_row!(Nvtx {
    start: i64,
    end: i64,
    eventType: u32,
    color: u32,
    text: VarLenAscii,
    globalTid: u64,
    endGlobalTid: u64,
    textId: u32,
    domainId: u64,
});
table_row!(StringId {
    id: i32,
    value: VarLenAscii
});
table_row!(NameValue {
    name: VarLenAscii,
    value: VarLenAscii
});
table_row!(Process {
    globalPid: u64,
    pid: u64,
    name: VarLenAscii
});
table_row!(ThreadName {
    nameId: u64,
    priority: u64,
    globalTid: u64
});
table_row!(Gpu {
    id: u32,
    name: VarLenAscii,
    totalMemory: u64,
    memoryBandwidth: u64,
    smCount: u32,
    computeMajor: u32,
    computeMinor: u32,
});
table_row!(SessionStart { utcEpochNs: u64 });
table_row!(Analysis {
    duration: u64,
    startTime: u64,
    stopTime: u64
});
table_row!(GraphTrace {
    start: i64,
    end: i64,
    graphId: u32
});

pub(crate) fn text(value: &str) -> VarLenAscii {
    VarLenAscii::from_ascii(value).unwrap()
}

/// `globalTid` of a thread on machine 1.
pub(crate) fn global(process: u64, thread: u64) -> u64 {
    (1 << 48) | (process << 24) | thread
}

/// Which nsys the export pretends to be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    V2022,
    V2023,
}

/// An export under construction.
pub(crate) struct Export {
    folder: tempfile::TempDir,
    file: File,
    schema: Schema,
}

impl Export {
    /// With what every export has: versions and the session's start. `strings` are `StringIds`.
    pub(crate) fn new(schema: Schema, strings: &[(i32, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("export.h5")).unwrap();
        let export = Self { folder, file, schema };
        let (table, product, version) = match schema {
            Schema::V2022 => ("EXPORT_META_DATA", "2022.4.2.1", "3.0.0"),
            Schema::V2023 => ("META_DATA_EXPORT", "2023.4.4.54", "3.7.2"),
        };
        let meta = [
            ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
            ("EXPORT_PRODUCT_VERSION", product),
            ("EXPORT_SCHEMA_VERSION", version),
            ("EXPORT_HOST", "a-host-that-is-nobody's-business"),
        ];
        let meta = meta.map(|(name, value)| NameValue {
            name: text(name),
            value: text(value),
        });
        let strings: Vec<StringId> = strings
            .iter()
            .map(|(id, value)| StringId {
                id: *id,
                value: text(value),
            })
            .collect();
        export.table(table, &meta).table("StringIds", &strings).table(
            "TARGET_INFO_SESSION_START_TIME",
            &[SessionStart {
                utcEpochNs: 1_700_000_000_000_000_000,
            }],
        )
    }

    /// Adds a table, less the columns that this schema does not have yet.
    pub(crate) fn table<T: H5Type>(self, name: &str, rows: &[T]) -> Self {
        let newer: &[&str] = if self.schema == Schema::V2022 {
            &["greenContextId"]
        } else {
            &[]
        };
        self.table_without(name, rows, newer)
    }

    /// Adds a table less some columns.
    pub(crate) fn table_without<T: H5Type>(self, name: &str, rows: &[T], columns: &[&str]) -> Self {
        let TypeDescriptor::Compound(mut compound) = T::type_descriptor() else {
            panic!("rows are compounds")
        };
        compound.fields.retain(|field| !columns.contains(&field.name.as_str()));
        let stored = TypeDescriptor::Compound(compound.to_packed_repr());
        let builder = self.file.new_dataset_builder().chunk(4096).shuffle().deflate(1);
        // The exporter's tables can grow.
        let dataset = builder.empty_as(stored).shape((rows.len()..,)).create(name).unwrap();
        dataset.write_raw(rows).unwrap();
        self
    }

    /// What the capture was asked for, as 2023 records it beside command line and environment.
    pub(crate) fn capture_options(self, options: &[(&str, &str)]) -> Self {
        let rows = options.iter().map(|(name, value)| NameValue {
            name: text(name),
            value: text(value),
        });
        self.table("META_DATA_CAPTURE", &rows.collect::<Vec<NameValue>>())
    }

    /// Access to the file itself, for what no export holds.
    pub(crate) fn forge(self, change: impl FnOnce(&File)) -> Self {
        change(&self.file);
        self
    }

    pub(crate) fn finish(self) -> Finished {
        self.file.close().unwrap();
        Finished {
            path: self.folder.path().join("export.h5"),
            folder: self.folder,
        }
    }
}

/// A written export and the folder that goes with it.
pub(crate) struct Finished {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Finished {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self) -> Result<Capture, ReadError> {
        self.read_within(&ReadLimits::default())
    }

    pub(crate) fn read_within(&self, limits: &ReadLimits) -> Result<Capture, ReadError> {
        nsys_hdf::read(&self.path, limits)
    }

    pub(crate) fn timeline(&self) -> Timeline {
        transform(
            self.read().unwrap(),
            TransformOptions {
                session_id: "c0ffee00".to_owned(),
            },
        )
    }
}

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

/// Two processes that share correlation ids, two GPUs, every table, some of everything that is counted.
pub(crate) fn sample(schema: Schema, reverse: bool) -> Finished {
    fn ordered<T>(mut rows: Vec<T>, reverse: bool) -> Vec<T> {
        if reverse {
            rows.reverse();
        }
        rows
    }
    let (a, b) = (global(100, 0), global(200, 0));
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
    let kernels = vec![
        kernel(1000, 2000, 0, 7, 10, a),
        // Overlaps the one before within its stream, as programmatic dependent launch does.
        kernel(1900, 2500, 0, 7, 11, a),
        kernel(1000, 1500, 1, 7, 10, b),
        // Launched before the capture began.
        kernel(2500, 2500, 0, 300, 99, a),
        // Ends before it starts.
        kernel(5000, 4000, 0, 7, 12, a),
    ];
    let copy = |start, end, kind, bytes| Memcpy {
        start,
        end,
        contextId: 1,
        streamId: 7,
        correlationId: 20,
        globalPid: a,
        bytes,
        copyKind: kind,
        ..Memcpy::default()
    };
    let copies = vec![
        copy(100, 200, 1, 4096),
        copy(2600, 2700, 2, 8192),
        copy(2700, 2800, 8, 1),
        copy(2800, 2900, 10, u64::from(u32::MAX) + 1),
        copy(2900, 3000, 9, 3),
        copy(3000, 3100, 77, 5),
    ];
    let sets = vec![Memset {
        start: 50,
        end: 90,
        contextId: 1,
        streamId: 7,
        correlationId: 21,
        globalPid: a,
        bytes: 64,
        ..Memset::default()
    }];
    let syncs = vec![Synchronization {
        start: 3100,
        end: 3300,
        contextId: 1,
        streamId: 0xFFFF_FFFF,
        correlationId: 22,
        globalPid: a,
        syncType: 4,
        ..Synchronization::default()
    }];
    let call = |start, end, thread, correlation, name| Runtime {
        start,
        end,
        globalTid: thread,
        correlationId: correlation,
        nameId: name,
        ..Runtime::default()
    };
    let calls = vec![
        call(900, 950, global(100, 101), 10, 3),
        call(960, 980, global(100, 101), 11, 3),
        call(10, 40, global(100, 101), 20, 4),
        call(990, 995, global(200, 201), 10, 3),
        // Still running when the capture ended.
        call(3400, 0, global(200, 201), 30, 4),
    ];
    let os_calls = vec![Osrt {
        start: 0,
        end: 5,
        eventClass: 27,
        globalTid: global(100, 102),
        nameId: 5,
        ..Osrt::default()
    }];
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
    let ranges = vec![
        range(0, 0, 75, "PyTorch", 0, 3),
        range(5, 3000, 59, "step", 0, 0),
        range(10, 2000, 59, "forward", 0, 3),
        range(2000, 2900, 59, "", 7, 3),
        range(20, 2950, 60, "io", 0, 0),
        // Before the session's start, without a name, unfinished, a mark, a thread's name, a counter.
        range(-100, 20, 59, "", 0, 0),
        range(2990, 0, 59, "late", 0, 0),
        range(7, 0, 34, "mark", 0, 0),
        range(1, 0, 39, "main thread", 0, 0),
        range(2, 0, 44, "counter", 0, 0),
    ];
    let processes = vec![
        Process {
            globalPid: a,
            pid: 100,
            name: text("/usr/bin/python3 train.py --api-key=x"),
        },
        Process {
            globalPid: b,
            pid: 200,
            name: text("worker"),
        },
        Process {
            globalPid: global(300, 0),
            pid: 300,
            name: text("somebody-else"),
        },
    ];
    let threads = vec![ThreadName {
        nameId: 6,
        priority: 20,
        globalTid: global(100, 101),
    }];
    let gpus = vec![Gpu {
        id: 1,
        name: text("NVIDIA H100 80GB HBM3"),
        totalMemory: 85_000_000_000,
        memoryBandwidth: 3_352_000_000_000,
        smCount: 132,
        computeMajor: 9,
        computeMinor: 0,
    }];
    Export::new(schema, STRINGS)
        .table("CUPTI_ACTIVITY_KIND_KERNEL", &ordered(kernels, reverse))
        .table("CUPTI_ACTIVITY_KIND_MEMCPY", &ordered(copies, reverse))
        .table("CUPTI_ACTIVITY_KIND_MEMSET", &ordered(sets, reverse))
        .table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &ordered(syncs, reverse))
        .table("CUPTI_ACTIVITY_KIND_RUNTIME", &ordered(calls, reverse))
        .table("OSRT_API", &ordered(os_calls, reverse))
        .table("NVTX_EVENTS", &ordered(ranges, reverse))
        .table("PROCESSES", &ordered(processes, reverse))
        .table("ThreadNames", &ordered(threads, reverse))
        .table("TARGET_INFO_GPU", &ordered(gpus, reverse))
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
