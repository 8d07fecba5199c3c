//! Kernels, copies, memsets and synchronisations.

use std::ops::Range;

use super::names::Text;
use super::tables::Table;
use super::{Batch, Failure, GlobalId, Reader, RowKey, spans};
use crate::model::{Category, DropReason, Track, Values};

const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
const MEMCPY: &str = "CUPTI_ACTIVITY_KIND_MEMCPY";
const MEMSET: &str = "CUPTI_ACTIVITY_KIND_MEMSET";
const SYNCHRONIZATION: &str = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION];

/// "No stream" of CUPTI, stored in 32 bits.
pub(super) const NO_STREAM: u64 = 0xFFFF_FFFF;

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

/// The category of copies by the name that tables have for them; none for a name that no copy of Nsight Systems has.
pub fn copy_category(name: &str) -> Option<Category> {
    let found = COPY_KINDS.iter().find(|(_, known)| *known == name);
    found.map(|(category, _)| *category)
}

/// Names of the synchronisation types, by their number in CUPTI.
const SYNC_TYPES: [&str; 5] = [
    "Unknown sync",
    "Event sync",
    "Stream wait sync",
    "Stream sync",
    "Context sync",
];

impl Reader<'_> {
    /// The columns that all GPU activity has; names and own columns are the caller's to fill.
    fn activity(&mut self, table: &Table, slab: &Range<usize>, track: Track) -> Result<Batch, Failure> {
        let device: Vec<u32> = table.required("deviceId", slab)?;
        let context: Vec<u64> = table.optional("contextId", slab)?;
        let stream: Vec<u64> = table.optional("streamId", slab)?;
        let global_pid = table.optional_ids("globalPid", slab)?;
        let places = device.into_iter().zip(context).zip(stream).zip(global_pid);
        let row = places.map(|(((device, context), stream), global_pid)| {
            let key = RowKey::Gpu {
                track,
                process: GlobalId(global_pid),
                device,
                context,
                // All numbers from there on mean the same.
                stream: stream.min(NO_STREAM),
            };
            self.row(table, key)
        });
        Ok(Batch {
            row: row.collect::<Result<_, _>>()?,
            span: spans(table, slab)?,
            correlation: table.optional("correlationId", slab)?,
            ..Batch::default()
        })
    }

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
            let mut batch = self.activity(&table, &slab, Track::GpuStream)?;
            let names = table.required(name_column.unwrap_or("demangledName"), &slab)?;
            batch.name = self.names_of_ids(&table, Category::CudaKernel, names)?;
            for column in columns {
                batch.own.push(Values::U32(table.optional(column, &slab)?));
            }
            self.append(&table, Category::CudaKernel, &batch, |_| true)?;
        }
        Ok(())
    }

    pub(super) fn read_copies(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(MEMCPY)? else {
            return Ok(());
        };
        self.captured(&table, Category::MEMCPY);
        for slab in table.slabs() {
            let mut batch = self.activity(&table, &slab, Track::GpuStream)?;
            batch.own.push(Values::U64(table.optional("bytes", &slab)?));
            let kinds: Vec<u64> = table.optional("copyKind", &slab)?;
            let known = |kind: u64| usize::try_from(kind).ok().and_then(|kind| COPY_KINDS.get(kind));
            let category = |kind: u64| known(kind).map_or(Category::CudaMemcpyOther, |(category, _)| *category);
            for kind in &kinds {
                // A kind that is newer than this program is kept under "other", with its number for a name.
                let name = match known(*kind) {
                    Some((_, name)) => Text::Fixed(name),
                    None => Text::Inline(format!("[CUDA memcpy kind {kind}]")),
                };
                batch.name.push(self.name(&table, category(*kind), name.into())?);
            }
            for copies in Category::MEMCPY {
                let of_category = |at: usize| kinds.get(at).is_some_and(|kind| category(*kind) == copies);
                self.append(&table, copies, &batch, of_category)?;
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
            let mut batch = self.activity(&table, &slab, Track::GpuStream)?;
            batch.own.push(Values::U64(table.optional("bytes", &slab)?));
            let name = self.name(&table, Category::CudaMemset, Text::Fixed("[CUDA memset]").into())?;
            batch.name = vec![name; slab.len()];
            self.append(&table, Category::CudaMemset, &batch, |_| true)?;
        }
        Ok(())
    }

    pub(super) fn read_synchronisations(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(SYNCHRONIZATION)? else {
            return Ok(());
        };
        self.captured(&table, [Category::CudaSync]);
        for slab in table.slabs() {
            let mut batch = self.activity(&table, &slab, Track::CudaSync)?;
            let kinds: Vec<u64> = table.optional("syncType", &slab)?;
            for kind in kinds {
                let known = usize::try_from(kind)
                    .ok()
                    .and_then(|kind| SYNC_TYPES.get(kind))
                    .copied();
                let name = match known {
                    Some(name) => Text::Fixed(name),
                    None => Text::Inline(format!("Sync type {kind}")),
                };
                batch.name.push(self.name(&table, Category::CudaSync, name.into())?);
            }
            self.append(&table, Category::CudaSync, &batch, |_| true)?;
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
