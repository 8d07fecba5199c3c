//! The own columns of each kind of record.

use flopwatch_model::{Category, ColumnId, Events};
use flopwatch_tracer_file::record::{Kernel, MemoryCopy, MemorySet, Peer};

use crate::cupti::memory_kind;

/// Columns of kernels beside those that every kernel has; one in which no event says anything is
/// left out at the end.
const KERNELS: [ColumnId; 4] = [
    ColumnId::GraphNode,
    ColumnId::ClusterX,
    ColumnId::ClusterY,
    ColumnId::ClusterZ,
];
/// Columns of copies beside those that every copy has.
const COPIES: [ColumnId; 3] = [ColumnId::SrcMemoryKind, ColumnId::DstMemoryKind, ColumnId::GraphNode];
/// Columns of memsets beside those that every memset has.
const SETS: [ColumnId; 2] = [ColumnId::DstMemoryKind, ColumnId::GraphNode];

/// No events of a category, with the columns that are filled here.
pub(super) fn of(category: Category) -> Events {
    let more: &[ColumnId] = match category {
        Category::CudaKernel => &KERNELS,
        Category::CudaMemset => &SETS,
        Category::CudaGraph => &[ColumnId::GraphId],
        Category::CudaApi => &[ColumnId::ReturnValue],
        _ if Category::COPIES.contains(&category) => &COPIES,
        _ => &[],
    };
    let mut events = Events::new(category);
    for id in more {
        events.add_column(*id);
    }
    events
}

/// Stands for the launch, which the transform finds.
const NO_LAUNCH: u64 = 0xFFFF_FFFF;

/// The columns of a kernel.
pub(super) fn kernel(kernel: &Kernel) -> [u64; 14] {
    let (shape, run) = (&kernel.shape, &kernel.run);
    [
        u64::from(shape.grid_x),
        u64::from(shape.grid_y),
        u64::from(shape.grid_z),
        u64::from(shape.block_x),
        u64::from(shape.block_y),
        u64::from(shape.block_z),
        u64::from(shape.registers),
        u64::from(shape.static_shared),
        u64::from(shape.dynamic_shared),
        NO_LAUNCH,
        run.graph_node,
        u64::from(shape.cluster_x),
        u64::from(shape.cluster_y),
        u64::from(shape.cluster_z),
    ]
}

/// The columns of a copy of a category.
pub(super) fn copy(category: Category, copy: &MemoryCopy) -> Vec<u64> {
    copied(category, copy.bytes, (copy.source, copy.destination), copy.graph_node)
}

/// The columns of a copy between devices.
pub(super) fn peer(category: Category, peer: &Peer) -> Vec<u64> {
    copied(category, peer.bytes, (peer.source, peer.destination), peer.graph_node)
}

fn copied(category: Category, bytes: u64, (source, destination): (u8, u8), node: u64) -> Vec<u64> {
    let kind = |number: u8| u64::from(memory_kind(u32::from(number)).number());
    let mut own = vec![size(bytes)];
    // No call launches a migration.
    own.extend((category != Category::CudaMigration).then_some(NO_LAUNCH));
    own.extend([kind(source), kind(destination), node]);
    own
}

/// The columns of a memset.
pub(super) fn set(set: &MemorySet) -> [u64; 4] {
    let kind = memory_kind(u32::from(set.memory)).number();
    [size(set.bytes), NO_LAUNCH, u64::from(kind), set.graph_node]
}

/// The columns of a whole graph.
pub(super) fn graph(number: u32) -> [u64; 2] {
    [NO_LAUNCH, u64::from(number)]
}

/// CUPTI records nothing of 0 bytes.
fn size(bytes: u64) -> u64 {
    if bytes == 0 { ColumnId::NO_SIZE } else { bytes }
}
