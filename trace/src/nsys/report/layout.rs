//! Which field of which message fills which column of which table.
//!
//! Tables and columns have the names that exports have. Fields that fill no column are passed over.

use crate::wire::{Damage, Message, Value};

/// Field numbers below this fill columns; those above hold other messages.
const MAX_FIELDS: usize = 48;

/// Of a field that fills no column.
const NO_COLUMN: usize = usize::MAX;

/// Columns that fields of one message fill.
#[derive(Debug)]
pub(super) struct Fields {
    /// Field and column, in the order of the columns.
    columns: &'static [(usize, &'static str)],
    /// Place among `columns`, by field.
    slots: [usize; MAX_FIELDS],
}

impl Fields {
    const fn new(columns: &'static [(usize, &'static str)]) -> Self {
        let mut slots = [NO_COLUMN; MAX_FIELDS];
        let mut at = 0;
        while at < columns.len() {
            slots[columns[at].0] = at;
            at += 1;
        }
        Self { columns, slots }
    }

    /// How many columns there are.
    pub(super) fn count(&self) -> usize {
        self.columns.len()
    }

    /// Writes a field to its place in `row`.
    pub(super) fn set(&self, field: u64, value: Value<'_>, row: &mut [u64]) {
        let position = usize::try_from(field).ok().and_then(|field| self.slots.get(field));
        if let Some(slot) = position.and_then(|position| row.get_mut(*position))
            && let Some(number) = value.number()
        {
            *slot = number;
        }
    }

    /// Writes the fields of `message` to their places in `row`.
    pub(super) fn fill(&self, message: Message<'_>, row: &mut [u64]) -> Result<(), Damage> {
        for field in message.fields() {
            let (number, value) = field?;
            self.set(number, value, row);
        }
        Ok(())
    }
}

/// A table: its columns of numbers, which come from one or two messages, and its columns of texts.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) name: &'static str,
    fields: &'static [&'static Fields],
    pub(super) texts: &'static [&'static str],
}

impl Layout {
    /// The columns of numbers in their order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &'static str> {
        let fields = self.fields.iter().flat_map(|fields| fields.columns);
        fields.map(|(_, column)| *column)
    }
}

/// What every message of work on a device begins with.
pub(super) static ON_DEVICE: Fields = Fields::new(&[
    (1, "start"),
    (2, "end"),
    (3, "correlationId"),
    (4, "deviceId"),
    (5, "contextId"),
    (6, "streamId"),
    (8, "globalPid"),
]);

pub(super) static KERNEL: Fields = Fields::new(&[
    (1, "demangledName"),
    (2, "shortName"),
    (3, "mangledName"),
    (10, "gridX"),
    (11, "gridY"),
    (12, "gridZ"),
    (13, "blockX"),
    (14, "blockY"),
    (15, "blockZ"),
    (16, "staticSharedMemory"),
    (17, "dynamicSharedMemory"),
    (21, "registersPerThread"),
    (27, "graphNodeId"),
    (31, "clusterX"),
    (32, "clusterY"),
    (33, "clusterZ"),
]);

pub(super) static MEMCPY: Fields = Fields::new(&[
    (1, "bytes"),
    (2, "copyKind"),
    (4, "srcKind"),
    (5, "dstKind"),
    (11, "graphNodeId"),
]);

pub(super) static MEMSET: Fields = Fields::new(&[(1, "bytes"), (3, "graphNodeId"), (4, "memKind")]);

/// Reports until 2024 have the type in a field of its own, which newer exports call deprecated.
pub(super) static SYNC: Fields = Fields::new(&[
    (1, "eventId"),
    (2, "deprecatedSyncType"),
    (3, "eventSyncId"),
    (4, "syncType"),
]);

pub(super) static RECORD: Fields = Fields::new(&[(1, "eventId"), (2, "eventSyncId")]);

pub(super) static GRAPH: Fields = Fields::new(&[(1, "graphId"), (2, "graphExecId")]);

pub(super) static CALL: Fields = Fields::new(&[
    (1, "start"),
    (2, "end"),
    (3, "correlationId"),
    (6, "eventClass"),
    (7, "nameId"),
    (8, "returnValue"),
    (13, "globalTid"),
]);

pub(super) static RANGE: Fields = Fields::new(&[
    (1, "eventType"),
    (2, "start"),
    (5, "category"),
    (6, "color"),
    (9, "globalTid"),
    (10, "end"),
    (12, "textId"),
    (13, "domainId"),
]);

/// Samples of the CPU, but for their stacks.
pub(super) static CPU_SAMPLE: Fields = Fields::new(&[(1, "start"), (11, "globalTid")]);

/// The column of a sample's stack, which exports do not have: they list the frames of each sample.
pub(super) const STACK_COLUMN: &str = "stack";

static STACK: Fields = Fields::new(&[(1, STACK_COLUMN)]);

/// A switch of a thread onto a CPU or off it.
pub(super) static SWITCH: Fields = Fields::new(&[(1, "start"), (3, "cpu"), (4, "isSchedIn"), (6, "globalTid")]);

pub(super) static USAGE: Fields = Fields::new(&[
    (1, "start"),
    (3, "deviceId"),
    (5, "globalPid"),
    (6, "address"),
    (8, "bytes"),
    (9, "memKind"),
    (10, "memoryOperationType"),
    (12, "correlationId"),
]);

pub(super) static PROCESS: Fields = Fields::new(&[(2, "globalPid")]);

static SAMPLE: Fields = Fields::new(&[(1, "timestamp"), (2, "typeId"), (3, "metricId"), (4, "value")]);

static METRIC: Fields = Fields::new(&[(1, "typeId"), (2, "metricId")]);

static STRING: Fields = Fields::new(&[(1, "id")]);

pub(super) static THREAD: Fields = Fields::new(&[(2, "nameId"), (3, "priority"), (4, "globalTid")]);

pub(super) static DEVICE: Fields = Fields::new(&[
    (1, "id"),
    (11, "totalMemory"),
    (12, "memoryBandwidth"),
    (13, "clockRate"),
    (14, "smCount"),
    (41, "computeMajor"),
    (42, "computeMinor"),
]);

/// The numbers of a MIG instance: of the GPU instance, and of the compute instance in it. The
/// columns, which exports do not have, hold one more, and 0 for none.
pub(super) static MIG: Fields = Fields::new(&[(1, "migGpuInstance"), (2, "migComputeInstance")]);

static DETAIL: Fields = Fields::new(&[(1, "duration")]);

static START: Fields = Fields::new(&[(1, "utcEpochNs")]);

macro_rules! tables {
    ($($table:ident: $name:literal, [$($fields:ident),*], [$($text:literal),*];)*) => {
        $(pub(super) static $table: Layout = Layout {
            name: $name,
            fields: &[$(&$fields),*],
            texts: &[$($text),*],
        };)*
    };
}

tables! {
    KERNELS: "CUPTI_ACTIVITY_KIND_KERNEL", [ON_DEVICE, KERNEL], [];
    GRAPHS: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", [ON_DEVICE, GRAPH], [];
    COPIES: "CUPTI_ACTIVITY_KIND_MEMCPY", [ON_DEVICE, MEMCPY], [];
    SETS: "CUPTI_ACTIVITY_KIND_MEMSET", [ON_DEVICE, MEMSET], [];
    SYNCS: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", [ON_DEVICE, SYNC], [];
    RECORDS: "CUPTI_ACTIVITY_KIND_CUDA_EVENT", [ON_DEVICE, RECORD], [];
    CALLS: "CUPTI_ACTIVITY_KIND_RUNTIME", [CALL], [];
    OS_CALLS: "OSRT_API", [CALL], [];
    CUDNN_CALLS: "CUDNN_EVENTS", [CALL], [];
    CUBLAS_CALLS: "CUBLAS_EVENTS", [CALL], [];
    RANGES: "NVTX_EVENTS", [RANGE], ["text"];
    SAMPLES: "GPU_METRICS", [SAMPLE], [];
    USAGES: "CUDA_GPU_MEMORY_USAGE_EVENTS", [USAGE], [];
    CPU_SAMPLES: "COMPOSITE_EVENTS", [CPU_SAMPLE, STACK], [];
    SWITCHES: "SCHED_EVENTS", [SWITCH], [];
    PROCESSES: "PROCESSES", [PROCESS], ["name"];
    METRICS: "TARGET_INFO_GPU_METRICS", [METRIC], ["metricName"];
    STRINGS: "StringIds", [STRING], ["value"];
    THREADS: "ThreadNames", [THREAD], [];
    DEVICES: "TARGET_INFO_GPU", [DEVICE, MIG], ["name", "uuid"];
    DETAILS: "ANALYSIS_DETAILS", [DETAIL], [];
    STARTS: "TARGET_INFO_SESSION_START_TIME", [START], [];
    CAPTURED: "META_DATA_CAPTURE", [], ["name", "value"];
    EXPORTED: "META_DATA_EXPORT", [], ["name", "value"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_goes_to_the_place_of_its_column() {
        // 2: 300, 27: 7, 5: text, 40: 1.
        let bytes = [0x10, 0xac, 0x02, 0xd8, 0x01, 7, 0x2a, 1, b'x', 0xc0, 0x02, 1];
        let mut row = [0; 16];
        let message = Message {
            bytes: &bytes,
            offset: 0,
        };
        KERNEL.fill(message, &mut row).unwrap();
        let position = |column| KERNEL.columns.iter().position(|(_, known)| *known == column).unwrap();
        assert_eq!((row[position("shortName")], row[position("graphNodeId")]), (300, 7));
        assert_eq!(row.iter().filter(|value| **value != 0).count(), 2);
        let columns: Vec<&str> = KERNELS.numbers().collect();
        assert_eq!(columns.len(), ON_DEVICE.count() + KERNEL.count());
        assert_eq!(columns[0], "start");
    }
}
