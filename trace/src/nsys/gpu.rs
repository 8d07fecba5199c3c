//! Kernels, copies, memsets and synchronisations.

use std::ops::Range;

use super::names::Text;
use super::tables::Table;
use super::{Failure, Found, GlobalId, Reader, Span};
use crate::hdf5_io::TableError;
use crate::model::{Category, DropReason, Row, Track};

const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
const MEMCPY: &str = "CUPTI_ACTIVITY_KIND_MEMCPY";
const MEMSET: &str = "CUPTI_ACTIVITY_KIND_MEMSET";
const SYNCHRONIZATION: &str = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION];

/// "No stream" of CUPTI, stored in 32 bits.
const NO_STREAM: u64 = 0xFFFF_FFFF;

/// Category and name of each copy kind, by its number in CUPTI. The names are those of `nsys stats` since 2023.
const COPY_KINDS: [(Category, &str); 14] = [
    (Category::CudaMemcpyOther, "[CUDA memcpy Unknown]"),
    (Category::CudaMemcpyH2d, "[CUDA memcpy Host-to-Device]"),
    (Category::CudaMemcpyD2h, "[CUDA memcpy Device-to-Host]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Host-to-Array]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Array-to-Host]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Array-to-Array]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Array-to-Device]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Device-to-Array]"),
    (Category::CudaMemcpyD2d, "[CUDA memcpy Device-to-Device]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Host-to-Host]"),
    (Category::CudaMemcpyP2p, "[CUDA memcpy Peer-to-Peer]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Unified Host-to-Device]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Unified Device-to-Host]"),
    (Category::CudaMemcpyOther, "[CUDA memcpy Unified Device-to-Device]"),
];

/// Names of the synchronisation types, by their number in CUPTI.
const SYNC_TYPES: [&str; 5] = [
    "Unknown sync",
    "Event sync",
    "Stream wait sync",
    "Stream sync",
    "Context sync",
];

/// The columns that all GPU activity has, of some rows.
struct Activity {
    span: Vec<Span>,
    row: Vec<Row>,
    correlation: Vec<u32>,
}

impl Activity {
    fn read(table: &Table, slab: &Range<usize>, track: Track) -> Result<Self, TableError> {
        let start: Vec<i64> = table.required("start", slab)?;
        let end: Vec<i64> = table.required("end", slab)?;
        let device: Vec<u32> = table.required("deviceId", slab)?;
        let context: Vec<u64> = table.optional("contextId", slab)?;
        let stream: Vec<u64> = table.optional("streamId", slab)?;
        let global_pid: Vec<u64> = table.optional_ids("globalPid", slab)?;
        let places = device.into_iter().zip(context).zip(stream).zip(global_pid);
        let row = places.map(|(((device, context), stream), global_pid)| {
            let process = GlobalId(global_pid);
            Row {
                capture: 0,
                machine: process.machine(),
                process: process.process(),
                track,
                device: Some(device),
                context: Some(context),
                stream: (stream < NO_STREAM).then_some(stream),
                thread: None,
                label: String::new(),
            }
        });
        Ok(Self {
            span: start
                .into_iter()
                .zip(end)
                .map(|(start, end)| Span { start, end })
                .collect(),
            row: row.collect(),
            correlation: table.optional("correlationId", slab)?,
        })
    }

    /// Span, row and correlation of each row.
    fn rows(self) -> impl Iterator<Item = (Span, Row, u32)> {
        self.span
            .into_iter()
            .zip(self.row)
            .zip(self.correlation)
            .map(|((span, row), correlation)| (span, row, correlation))
    }
}

impl Reader<'_> {
    pub(super) fn read_kernels(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(KERNEL)? else {
            return Ok(());
        };
        self.captured(&table, [Category::CudaKernel]);
        // Negative numbers, which only a forged file has, become 0 in the conversion to unsigned.
        let columns = [
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
        ];
        let name_column = ["demangledName", "shortName", "mangledName"]
            .into_iter()
            .find(|column| table.has(column));
        for slab in table.slabs() {
            let activity = Activity::read(&table, &slab, Track::GpuStream)?;
            let names: Vec<u64> = table.required(name_column.unwrap_or("demangledName"), &slab)?;
            let mut own = vec![Vec::with_capacity(columns.len()); slab.len()];
            for column in columns {
                for (own, value) in own.iter_mut().zip(table.optional::<u64>(column, &slab)?) {
                    own.push(value);
                }
            }
            for (((span, row, correlation), name), own) in activity.rows().zip(names).zip(&own) {
                let name = Text::Id(name).into();
                self.push(
                    &table,
                    Found {
                        category: Category::CudaKernel,
                        span,
                        row,
                        name,
                        correlation,
                        own,
                    },
                )?;
            }
        }
        Ok(())
    }

    pub(super) fn read_copies(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(MEMCPY)? else {
            return Ok(());
        };
        self.captured(&table, Category::MEMCPY);
        for slab in table.slabs() {
            let activity = Activity::read(&table, &slab, Track::GpuStream)?;
            let bytes: Vec<u64> = table.optional("bytes", &slab)?;
            let kinds: Vec<u64> = table.optional("copyKind", &slab)?;
            for (((span, row, correlation), bytes), kind) in activity.rows().zip(bytes).zip(kinds) {
                let known = usize::try_from(kind).ok().and_then(|kind| COPY_KINDS.get(kind));
                // A kind that is newer than this program is kept under "other", with its number for a name.
                let (category, name) = match known {
                    Some((category, name)) => (*category, Text::Fixed(name)),
                    None => (
                        Category::CudaMemcpyOther,
                        Text::Inline(format!("[CUDA memcpy kind {kind}]")),
                    ),
                };
                let own = &[bytes];
                self.push(
                    &table,
                    Found {
                        category,
                        span,
                        row,
                        name: name.into(),
                        correlation,
                        own,
                    },
                )?;
            }
        }
        Ok(())
    }

    pub(super) fn read_memsets(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(MEMSET)? else {
            return Ok(());
        };
        self.captured(&table, [Category::CudaMemset]);
        for slab in table.slabs() {
            let activity = Activity::read(&table, &slab, Track::GpuStream)?;
            let bytes: Vec<u64> = table.optional("bytes", &slab)?;
            for ((span, row, correlation), bytes) in activity.rows().zip(bytes) {
                let name = Text::Fixed("[CUDA memset]").into();
                let own = &[bytes];
                self.push(
                    &table,
                    Found {
                        category: Category::CudaMemset,
                        span,
                        row,
                        name,
                        correlation,
                        own,
                    },
                )?;
            }
        }
        Ok(())
    }

    pub(super) fn read_synchronisations(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(SYNCHRONIZATION)? else {
            return Ok(());
        };
        self.captured(&table, [Category::CudaSync]);
        for slab in table.slabs() {
            let activity = Activity::read(&table, &slab, Track::CudaSync)?;
            let kinds: Vec<u64> = table.optional("syncType", &slab)?;
            for ((span, row, correlation), kind) in activity.rows().zip(kinds) {
                let known = usize::try_from(kind)
                    .ok()
                    .and_then(|kind| SYNC_TYPES.get(kind))
                    .copied();
                let name = match known {
                    Some(name) => Text::Fixed(name),
                    None => Text::Inline(format!("Sync type {kind}")),
                };
                let found = Found {
                    category: Category::CudaSync,
                    span,
                    row,
                    name: name.into(),
                    correlation,
                    own: &[],
                };
                self.push(&table, found)?;
            }
        }
        Ok(())
    }

    /// Whether GPU work was recorded as whole graphs, so that there are no rows of its kernels.
    pub(super) fn has_graph_trace(&self) -> bool {
        let graphs = "table CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
        self.capture
            .drops
            .list()
            .iter()
            .any(|drop| drop.reason == DropReason::Unsupported && drop.what == graphs)
    }
}
