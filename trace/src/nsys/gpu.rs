//! Kernels, whole graphs, copies, migrations, memsets and synchronisations.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::gather::{NO_CLASS, OptionalColumn, PieceSummary, Plan, Slot, WorkerState, too_many_rows};
use super::keys::RowWords;
use super::names::Text;
use super::sync::{self, COLUMNS as SYNC_COLUMNS, Types};
use super::tables::{Piece, Table};
use super::{Failure, GlobalId, Reader, RowKey, waits};
use crate::cupti::{COPY_KINDS, NO_STREAM, graph_name};
use flopwatch_model::{Category, ColumnId, MemoryKind, Row, Track};

const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
const GRAPH: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
const MEMCPY: &str = "CUPTI_ACTIVITY_KIND_MEMCPY";
const MEMSET: &str = "CUPTI_ACTIVITY_KIND_MEMSET";
const SYNCHRONIZATION: &str = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";

/// The tables that are read here.
pub(super) const TABLES: &[&str] = &[KERNEL, GRAPH, MEMCPY, MEMSET, SYNCHRONIZATION];

/// The full name of a kernel.
const DEMANGLED: &str = "demangledName";
/// Other forms of a kernel's name.
const DETAILS: [&str; 2] = ["shortName", "mangledName"];

/// Kinds of memory in copies and memsets, in the order of their numbers in Nsight Systems, which
/// are not CUPTI's.
const MEMORY_KINDS: [MemoryKind; 8] = [
    MemoryKind::Pageable,
    MemoryKind::Pinned,
    MemoryKind::Device,
    MemoryKind::Array,
    MemoryKind::Managed,
    MemoryKind::DeviceStatic,
    MemoryKind::ManagedStatic,
    MemoryKind::Unknown,
];

/// The memory kind of that number in Nsight Systems.
pub(super) fn memory_kind(number: u32) -> MemoryKind {
    let known = usize::try_from(number).ok().and_then(|at| MEMORY_KINDS.get(at));
    known.copied().unwrap_or(MemoryKind::Unknown)
}

/// Reads columns of memory kinds into the own columns from `first` on.
fn read_memory_kinds(
    piece: &mut Piece<'_, '_>,
    slot: &mut Slot<'_>,
    first: usize,
    columns: &[&'static str],
) -> Result<(), Failure> {
    for (column, own) in columns.iter().zip(slot.own.iter_mut().skip(first)) {
        if let OptionalColumn::U32(values) = own {
            piece.read(column, values)?;
            for value in values.iter_mut() {
                *value = memory_kind(*value).number();
            }
        }
    }
    Ok(())
}

fn key([process, device, context, stream]: RowWords, track: Track) -> RowKey {
    RowKey::Gpu {
        track,
        process: GlobalId(process),
        device: u32::try_from(device).unwrap_or(u32::MAX),
        context,
        stream,
    }
}

fn on_stream(words: RowWords) -> RowKey {
    key(words, Track::GpuStream)
}

fn waiting(words: RowWords) -> RowKey {
    key(words, Track::CudaSync)
}

/// Columns that are read of every table of GPU activity.
const ACTIVITY: [&str; 5] = ["contextId", "streamId", "deviceId", "globalPid", "correlationId"];

/// The rows of GPU activity.
fn rows(worker: &mut WorkerState, table: &str, piece: &mut Piece<'_, '_>, slot: &mut Slot<'_>) -> Result<(), Failure> {
    let count = slot.rows();
    let [processes, devices, contexts, streams] = &mut worker.words;
    for (column, words) in [("contextId", &mut *contexts), ("streamId", &mut *streams)] {
        words.resize(count, 0);
        piece.read(column, words)?;
    }
    devices.resize(count, 0);
    worker.kinds.resize(count, 0);
    piece.read("deviceId", &mut worker.kinds)?;
    for (word, device) in devices.iter_mut().zip(&worker.kinds) {
        *word = u64::from(*device);
    }
    processes.resize(count, 0);
    piece.read_ids("globalPid", processes)?;
    let keys = processes.iter().zip(devices).zip(contexts.iter().zip(streams));
    for (row, ((process, device), (context, stream))) in slot.row.iter_mut().zip(keys) {
        // All numbers from there on mean the same.
        let words = [*process, *device, *context, (*stream).min(NO_STREAM)];
        let number = worker.rows.number(slot.piece, words, worker.most_rows);
        *row = number.ok_or_else(|| too_many_rows(table, worker.most_rows))?;
    }
    Ok(())
}

/// The node of a CUDA graph that launched the work; newer schemas alone have it.
const NODE: &str = "graphNodeId";

/// Thread blocks per cluster; schemas since 2025 alone have them.
const CLUSTERS: [&str; 3] = ["clusterX", "clusterY", "clusterZ"];

/// Reads the nodes of graphs into the own column at `number`, where there is one.
fn read_nodes(piece: &mut Piece<'_, '_>, slot: &mut Slot<'_>, number: usize) -> Result<(), Failure> {
    if let Some(OptionalColumn::U64(nodes)) = slot.own.get_mut(number) {
        piece.read_ids(NODE, nodes)?;
    }
    Ok(())
}

/// Reads the sizes. CUPTI records nothing of 0 bytes: 0 is what NULL becomes, and a column that the
/// schema lacks.
fn read_bytes(piece: &mut Piece<'_, '_>, slot: &mut Slot<'_>) -> Result<(), Failure> {
    if let Some(OptionalColumn::U64(bytes)) = slot.own.first_mut() {
        piece.read("bytes", bytes)?;
        for size in bytes.iter_mut().filter(|size| **size == 0) {
            *size = ColumnId::NO_SIZE;
        }
    }
    Ok(())
}

impl Reader<'_> {
    fn gather_activity(
        &mut self,
        table: &Table,
        (categories, optional): (&[Category], &[ColumnId]),
        numbers: &[&str],
        row: fn(RowWords) -> RowKey,
        fill: impl Fn(&mut WorkerState, &mut Piece<'_, '_>, &mut Slot<'_>) -> Result<PieceSummary, Failure> + Sync,
    ) -> Result<(), Failure> {
        if table.rows() == 0 {
            return Ok(());
        }
        self.captured(table, categories.iter().copied());
        table.must_have("deviceId")?;
        let plan = Plan {
            categories,
            optional,
            numbers: &[&ACTIVITY, numbers].concat(),
            texts: &[],
            row,
            open_ends: false,
            unsupported: &|number| number.to_string(),
        };
        let name = table.name();
        let fill = |worker: &mut WorkerState, piece: &mut Piece<'_, '_>, slot: &mut Slot<'_>| {
            rows(worker, name, piece, slot)?;
            piece.read("correlationId", slot.correlation)?;
            fill(worker, piece, slot)
        };
        self.gather(table, &plan, fill).map(drop)
    }

    pub(super) fn read_kernels(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(KERNEL)? else {
            return Ok(());
        };
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
        let name_column = [DEMANGLED, "shortName", "mangledName"]
            .into_iter()
            .find(|column| table.has(column));
        let name_column = name_column.unwrap_or(DEMANGLED);
        if table.rows() > 0 {
            table.must_have(name_column)?;
        }
        let details: &[&str] = if name_column == DEMANGLED { &DETAILS } else { &[] };
        let numbers = [&[name_column], details, &columns, &[NODE], &CLUSTERS].concat();
        let has_nodes = table.has(NODE);
        let mut optional = Vec::new();
        optional.extend(has_nodes.then_some(ColumnId::GraphNode));
        let clusters_from = Category::CudaKernel.columns().len() + optional.len();
        let has_clusters = CLUSTERS.into_iter().all(|column| table.has(column));
        if has_clusters {
            optional.extend([ColumnId::ClusterX, ColumnId::ClusterY, ColumnId::ClusterZ]);
        }
        let categories = (&[Category::CudaKernel][..], optional.as_slice());
        self.gather_activity(&table, categories, &numbers, on_stream, |worker, piece, slot| {
            let [ids, short, mangled, _] = &mut worker.words;
            piece.read(name_column, ids)?;
            if let Some(names) = worker.names.first_mut() {
                let mut next = names.count();
                for (name, id) in slot.name.iter_mut().zip(&*ids) {
                    *name = names.of_id(slot.piece, *id);
                }
                // A name has its details from the row where it comes first: few pieces have a new
                // one.
                if names.count() > next && name_column == DEMANGLED {
                    for (column, ids) in DETAILS.into_iter().zip([&mut *short, &mut *mangled]) {
                        piece.read(column, ids)?;
                    }
                    for (name, (short, mangled)) in slot.name.iter().zip(short.iter().zip(&*mangled)) {
                        if *name == next {
                            names.describe(next, [*short, *mangled]);
                            next += 1;
                        }
                    }
                }
            }
            for (column, own) in columns.into_iter().zip(&mut slot.own) {
                if let OptionalColumn::U32(values) = own {
                    piece.read(column, values)?;
                }
            }
            if has_nodes {
                read_nodes(piece, slot, Category::CudaKernel.columns().len())?;
            }
            if has_clusters {
                for (column, own) in CLUSTERS.into_iter().zip(slot.own.iter_mut().skip(clusters_from)) {
                    if let OptionalColumn::U32(values) = own {
                        piece.read(column, values)?;
                    }
                }
            }
            Ok(PieceSummary::default())
        })
    }

    /// Reads launches of graphs that were recorded as a whole, without their nodes: the default of
    /// Nsight Systems.
    pub(super) fn read_graphs(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(GRAPH)? else {
            return Ok(());
        };
        let optional = [ColumnId::GraphId, ColumnId::GraphExec];
        let categories = (&[Category::CudaGraph][..], &optional[..]);
        let numbers = ["graphId", "graphExecId"];
        self.gather_activity(&table, categories, &numbers, on_stream, |worker, piece, slot| {
            let [.., OptionalColumn::U32(graphs), OptionalColumn::U32(executables)] = slot.own.as_mut_slice() else {
                return Ok(PieceSummary::default());
            };
            piece.read("graphId", graphs)?;
            piece.read("graphExecId", executables)?;
            let Some(names) = worker.names.first_mut() else {
                return Ok(PieceSummary::default());
            };
            let pairs = graphs.iter().copied().zip(executables.iter().copied());
            // The number of the last name, as a loop launches one graph again and again.
            let mut last = None;
            for (pair, name) in pairs.zip(&mut *slot.name) {
                *name = match last {
                    Some((known, number)) if known == pair => number,
                    _ => names.of_key(slot.piece, Text::Inline(graph_name(pair.0, pair.1)).into()),
                };
                last = Some((pair, *name));
            }
            Ok(PieceSummary::default())
        })
    }

    pub(super) fn read_copies(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(MEMCPY)? else {
            return Ok(());
        };
        let columns = ["srcKind", "dstKind"];
        let message = columns.iter().all(|column| table.has(column));
        let has_nodes = table.has(NODE);
        let kinds = [ColumnId::SrcMemoryKind, ColumnId::DstMemoryKind];
        let mut optional = if message { kinds.to_vec() } else { Vec::new() };
        optional.extend(has_nodes.then_some(ColumnId::GraphNode));
        let categories = (&Category::COPIES[..], &optional[..]);
        // Columns that are not there are not asked for.
        let numbers = ["bytes", "copyKind", "srcKind", "dstKind", NODE];
        let own = Category::CudaMemcpyOther.columns().len();
        self.gather_activity(&table, categories, &numbers, on_stream, |worker, piece, slot| {
            read_bytes(piece, slot)?;
            if message {
                read_memory_kinds(piece, slot, own, &columns)?;
            }
            if has_nodes {
                read_nodes(piece, slot, own + if message { columns.len() } else { 0 })?;
            }
            let [kinds, ..] = &mut worker.words;
            piece.read("copyKind", kinds)?;
            // The number of the last name, as most copies are of one kind.
            let mut last = None;
            for ((kind, name), class) in kinds.iter().zip(&mut *slot.name).zip(&mut *slot.class) {
                if let Some((known, of_known, class_of_known)) = last
                    && known == *kind
                {
                    (*name, *class) = (of_known, class_of_known);
                    continue;
                }
                let known = usize::try_from(*kind).ok().and_then(|kind| COPY_KINDS.get(kind));
                // A kind that is newer than this program is kept under "other", with its number for
                // a name.
                let (category, text) = match known {
                    Some((category, name)) => (*category, Text::Fixed(name)),
                    None => (
                        Category::CudaMemcpyOther,
                        Text::Inline(format!("[CUDA memcpy kind {kind}]")),
                    ),
                };
                let number = Category::COPIES.iter().position(|copies| *copies == category);
                let number = number.unwrap_or_default();
                *class = u8::try_from(number).unwrap_or(NO_CLASS);
                if let Some(names) = worker.names.get_mut(number) {
                    *name = names.of_key(slot.piece, text.into());
                }
                last = Some((*kind, *name, *class));
            }
            let mut summary = PieceSummary::default();
            summary.mixed = slot.class.iter().any(|class| *class != 0);
            Ok(summary)
        })?;
        // An export does not say whether migrations were asked for: only one that holds some tells
        // it.
        if !self.capture.events.contains_key(&Category::CudaMigration) {
            self.capture.captured.remove(&Category::CudaMigration);
        }
        Ok(())
    }

    pub(super) fn read_memsets(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(MEMSET)? else {
            return Ok(());
        };
        let message = table.has("memKind");
        let has_nodes = table.has(NODE);
        let mut optional = Vec::new();
        optional.extend(message.then_some(ColumnId::DstMemoryKind));
        optional.extend(has_nodes.then_some(ColumnId::GraphNode));
        let categories = (&[Category::CudaMemset][..], &optional[..]);
        let own = Category::CudaMemset.columns().len();
        self.gather_activity(
            &table,
            categories,
            &["bytes", "memKind", NODE],
            on_stream,
            |worker, piece, slot| {
                read_bytes(piece, slot)?;
                if message {
                    read_memory_kinds(piece, slot, own, &["memKind"])?;
                }
                if has_nodes {
                    read_nodes(piece, slot, own + usize::from(message))?;
                }
                if let Some(names) = worker.names.first_mut() {
                    slot.name
                        .fill(names.of_key(slot.piece, Text::Fixed("[CUDA memset]").into()));
                }
                Ok(PieceSummary::default())
            },
        )
    }

    pub(super) fn read_synchronisations(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table(SYNCHRONIZATION)? else {
            return Ok(());
        };
        let records = if table.has(waits::EVENT) {
            self.read_records()?
        } else {
            waits::Records::default()
        };
        let optional = if records.is_empty() {
            &[][..]
        } else {
            &waits::COLUMNS[..]
        };
        let categories = (&[Category::CudaSync][..], optional);
        let types = Types::of(&table);
        self.gather_activity(&table, categories, &SYNC_COLUMNS, waiting, |worker, piece, slot| {
            types.read(worker, piece)?;
            // The words of processes and contexts are still those of the rows.
            records.fill(worker, piece, slot)?;
            if let Some(names) = worker.names.first_mut() {
                for (kind, name) in worker.kinds.iter().zip(&mut *slot.name) {
                    *name = names.of_key(slot.piece, sync::name(*kind).into());
                }
            }
            Ok(PieceSummary::default())
        })
    }

    /// Takes a synchronisation's device from its context, which belongs to one device: some exports
    /// name device 0 for every one of them. Contexts without work of their own keep what the export
    /// says.
    pub(super) fn place_synchronisations(&mut self) {
        let mut devices: HashMap<(u32, u32, Option<u64>), BTreeSet<u32>> = HashMap::new();
        let rows = &mut self.capture.rows;
        for row in rows.iter().filter(|row| row.track == Track::GpuStream) {
            let of_context = devices.entry((row.machine, row.process, row.context)).or_default();
            of_context.extend(row.device);
        }
        for at in 0..rows.len() {
            let Some(row) = rows.get(at).filter(|row| row.track == Track::CudaSync) else {
                continue;
            };
            let known = devices.get(&(row.machine, row.process, row.context));
            let Some(device) = known.filter(|known| known.len() == 1).and_then(BTreeSet::first) else {
                continue;
            };
            let placed = Row {
                device: Some(*device),
                ..row.clone()
            };
            // An export that names both devices for one wait keeps its two rows.
            if !rows.contains(&placed)
                && let Some(row) = rows.get_mut(at)
            {
                *row = placed;
            }
        }
    }
}
