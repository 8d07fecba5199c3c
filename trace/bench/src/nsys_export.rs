//! Exports in the layout of `nsys export --type hdf` (schema 3.7.2): compound rows, chunks of 4,096
//! rows, shuffle and deflate 1.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use flopwatch_model::{Category, Events};
use flopwatch_trace::transform::{TransformOptions, transform};
use flopwatch_trace::{ReadLimits, nsys_hdf, timeline_file};
use hdf5::types::{TypeDescriptor, VarLenAscii};
use hdf5::{File, H5Type};
use serde_json::json;

use crate::report;

/// As the tables name their columns.
macro_rules! table_row {
    ($name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        #[derive(H5Type, Debug, Clone, Default)]
        #[repr(C)]
        #[allow(non_snake_case, reason = "the names of the export's columns")]
        struct $name { $($field: $type),* }
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
    launchType: u32,
    cacheConfig: u32,
    registersPerThread: u32,
    gridX: i32,
    gridY: i32,
    gridZ: i32,
    blockX: i32,
    blockY: i32,
    blockZ: i32,
    staticSharedMemory: i32,
    dynamicSharedMemory: i32,
    localMemoryPerThread: i32,
    localMemoryTotal: i32,
    gridId: i64,
    sharedMemoryExecuted: u32,
    graphNodeId: u64,
    sharedMemoryLimitConfig: u32,
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
    deprecatedSrcId: u64,
    srcKind: u64,
    dstKind: u64,
    srcDeviceId: u64,
    srcContextId: u64,
    dstDeviceId: u64,
    dstContextId: u64,
    migrationCause: u32,
    graphNodeId: u64,
    virtualAddress: u64,
});
table_row!(Nvtx {
    start: i64,
    end: i64,
    eventType: u32,
    rangeId: u32,
    category: u32,
    color: u32,
    text: VarLenAscii,
    globalTid: u64,
    endGlobalTid: u64,
    textId: u32,
    domainId: u64,
    uint64Value: u64,
    int64Value: i64,
    doubleValue: f64,
    uint32Value: u32,
    int32Value: i32,
    floatValue: f32,
    jsonTextId: u32,
    jsonText: VarLenAscii,
});
table_row!(StringId {
    id: i32,
    value: VarLenAscii
});
table_row!(NameValue {
    name: VarLenAscii,
    value: VarLenAscii
});

const KERNEL_NAMES: u32 = 300;
const RANGE_NAMES: u32 = 200;
const PROCESS: u64 = (1 << 48) | (4711 << 24);

fn table<T: H5Type>(file: &File, name: &str, rows: &[T]) -> Result<()> {
    let TypeDescriptor::Compound(compound) = T::type_descriptor() else {
        anyhow::bail!("rows are compounds")
    };
    let stored = TypeDescriptor::Compound(compound.to_packed_repr());
    let builder = file.new_dataset_builder().chunk(4096).shuffle().deflate(1);
    builder
        .empty_as(stored)
        .shape((rows.len()..,))
        .create(name)?
        .write_raw(rows)?;
    Ok(())
}

fn text(value: &str) -> Result<VarLenAscii> {
    VarLenAscii::from_ascii(value).map_err(|error| anyhow::anyhow!("{error}"))
}

/// Writes an export with so many rows: kernels on four streams of a training step's rhythm, copies
/// of all kinds, nested ranges.
pub(crate) fn make(out: &Path, kernels: u32, copies: u32, ranges: u32) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(5);
    let file = File::create(out)?;
    let meta = [
        ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
        ("EXPORT_PRODUCT_VERSION", "2023.4.4.54"),
        ("EXPORT_SCHEMA_VERSION", "3.7.2"),
    ];
    let meta = meta.map(|(name, value)| {
        Ok(NameValue {
            name: text(name)?,
            value: text(value)?,
        })
    });
    table(
        &file,
        "META_DATA_EXPORT",
        &meta.into_iter().collect::<Result<Vec<_>>>()?,
    )?;
    let strings = (0..KERNEL_NAMES).map(|id| {
        let value = format!(
            "void at::native::vectorized_elementwise_kernel<{id}, at::native::FillFunctor<float>>(int, T2, T3)"
        );
        Ok(StringId {
            id: i32::try_from(id)?,
            value: text(&value)?,
        })
    });
    table(&file, "StringIds", &strings.collect::<Result<Vec<_>>>()?)?;
    if kernels > 0 {
        make_kernels(&file, kernels, &mut random)?;
    }
    if copies > 0 {
        make_copies(&file, copies, &mut random)?;
    }
    if ranges > 0 {
        make_ranges(&file, ranges, &mut random)?;
    }
    Ok(file.close()?)
}

fn make_kernels(file: &File, kernels: u32, random: &mut fastrand::Rng) -> Result<()> {
    let mut clock = 1_000_000;
    let rows = (0..kernels).map(|at| {
        // A step launches the same few hundred kernels over and over.
        let kind = at % 487 * 7 % KERNEL_NAMES;
        let start = clock + random.i64(300..2_000);
        let end = start + i64::from(kind % 40) * 700 + random.i64(1_500..2_300);
        clock = if at % 4 == 0 { start } else { end };
        Kernel {
            start,
            end,
            contextId: 1,
            streamId: u64::from(7 + at % 4 * 3),
            correlationId: 1000 + at * 2,
            globalPid: PROCESS,
            demangledName: u64::from(kind),
            shortName: u64::from(kind),
            mangledName: u64::from(kind),
            launchType: 1,
            registersPerThread: 16 + kind % 200,
            gridX: i32::try_from(1 + kind % 97 * 13).unwrap_or(1),
            gridY: 1,
            gridZ: 1,
            blockX: 256,
            blockY: 1,
            blockZ: 1,
            dynamicSharedMemory: i32::try_from(kind % 5 * 4096).unwrap_or(0),
            gridId: i64::from(at) + 1,
            ..Kernel::default()
        }
    });
    table(file, "CUPTI_ACTIVITY_KIND_KERNEL", &rows.collect::<Vec<_>>())
}

fn make_copies(file: &File, copies: u32, random: &mut fastrand::Rng) -> Result<()> {
    let mut clock = 1_500_000;
    let rows = (0..copies).map(|at| {
        let start = clock + random.i64(400..9_000);
        let bytes = random.u64(1..4096) * 256;
        let end = start + i64::try_from(bytes / 24).unwrap_or(0) + 900;
        clock = end;
        let kind = [1, 1, 1, 2, 2, 8, 10]
            .into_iter()
            .nth(usize::try_from(at % 7).unwrap_or(0));
        Memcpy {
            start,
            end,
            contextId: 1,
            streamId: 20,
            correlationId: 1001 + at * 4,
            globalPid: PROCESS,
            bytes,
            copyKind: kind.unwrap_or(1),
            ..Memcpy::default()
        }
    });
    table(file, "CUPTI_ACTIVITY_KIND_MEMCPY", &rows.collect::<Vec<_>>())
}

fn make_ranges(file: &File, ranges: u32, random: &mut fastrand::Rng) -> Result<()> {
    let mut clock = 900_000;
    let rows = (0..ranges).map(|at| {
        let outer = at % 16 == 0;
        let start = clock + random.i64(200..3_000);
        let end = start + if outer { 900_000 } else { random.i64(8_000..50_000) };
        clock = if outer { start } else { end };
        Ok(Nvtx {
            start,
            end,
            eventType: 59,
            color: 0xFF00_8000,
            text: text(&format!("layer {}: forward", at % RANGE_NAMES))?,
            globalTid: PROCESS + 4712,
            ..Nvtx::default()
        })
    });
    table(file, "NVTX_EVENTS", &rows.collect::<Result<Vec<_>>>()?)
}

/// Our side of the first bench.
pub(crate) fn convert(input: &Path, out: &Path) -> Result<()> {
    let clock = report::Clock::start()?;
    let first = Instant::now();
    let capture = flopwatch_trace::read(input, &ReadLimits::default())?;
    let read = first.elapsed();
    let second = Instant::now();
    let timeline = transform(capture, TransformOptions::default());
    let transformed = second.elapsed();
    let third = Instant::now();
    timeline_file::write_unsynced(&timeline, out)?;
    let written = third.elapsed();
    let took = clock.stop()?;
    report::print(
        took,
        json!({
            "events": timeline.total_events(),
            "read_seconds": read.as_secs_f64(),
            "transform_seconds": transformed.as_secs_f64(),
            "write_seconds": written.as_secs_f64(),
            "file_bytes": std::fs::metadata(out)?.len(),
            "stored": stored(out)?,
        }),
    )
}

/// Bytes that the parts of a timeline file take.
fn stored(path: &Path) -> Result<serde_json::Value> {
    const PUBLISHED: [&str; 4] = ["start_ns", "duration_ns", "stream", "name_idx"];
    let file = File::open(path)?;
    let (mut published, mut own, mut further, mut lod) = (0, 0, 0, 0);
    for category in Category::ALL.iter().copied() {
        if !file.link_exists(category.name()) {
            continue;
        }
        for dataset in file.group(category.name())?.datasets()? {
            let name = dataset.name();
            let name = name.rsplit('/').next().unwrap_or("");
            let kind = match name {
                name if PUBLISHED.contains(&name) => &mut published,
                "row" | "lane" | "correlation" | "launch" | "range_style" => &mut further,
                _ => &mut own,
            };
            *kind += dataset.storage_size();
        }
        let levels = format!("lod/{}", category.name());
        if file.link_exists(&levels) {
            for part in file.group(&levels)?.groups()? {
                lod += part
                    .datasets()?
                    .iter()
                    .map(|dataset| dataset.storage_size())
                    .sum::<u64>();
            }
        }
    }
    Ok(json!({"published": published, "own": own, "further": further, "lod": lod}))
}

/// A report through an export: Nsight Systems' own program, and our reading of what it wrote to
/// `out`.
pub(crate) fn read_exported(nsys: &Path, input: &Path, out: &Path) -> Result<()> {
    let clock = report::Clock::start()?;
    let first = Instant::now();
    let made = Command::new(nsys)
        .args(["export", "--type=hdf", "--force-overwrite=true", "--output"])
        .arg(out)
        .arg(input)
        .stdout(Stdio::null())
        .status()?;
    ensure!(made.success(), "nsys export failed ({made})");
    let exported = first.elapsed();
    let capture = nsys_hdf::read(out, &ReadLimits::default())?;
    let took = clock.stop()?;
    let events = || capture.events.values();
    report::print(
        took,
        json!({
            "events": events().map(Events::count).sum::<u64>(),
            "total_ns": events().flat_map(|events| &events.duration_ns).sum::<u64>(),
            "export_seconds": exported.as_secs_f64(),
            "file_bytes": std::fs::metadata(out)?.len(),
        }),
    )
}

/// Our side of the second bench.
pub(crate) fn ingest(input: &Path) -> Result<()> {
    let clock = report::Clock::start()?;
    let capture = nsys_hdf::read(input, &ReadLimits::default())?;
    let took = clock.stop()?;
    let events = capture.events.get(&Category::CudaKernel).context("kernels")?;
    let total: u64 = events.duration_ns.iter().sum();
    report::print(took, json!({"events": events.len(), "total_ns": total}))
}
