//! Maps the rows of a timeline to what viewers of traces show: processes, and tracks below them.

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_model::{Row, Track};

/// Identity of a process of the timeline: process ids repeat across captures and machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessKey {
    capture: u32,
    machine: u32,
    /// The process id that the profiler recorded.
    pub(super) process: u32,
}

impl ProcessKey {
    pub(super) fn of(row: &Row) -> Self {
        Self {
            capture: row.capture,
            machine: row.machine,
            process: row.process,
        }
    }

    /// The process's name in the viewer. Capture and machine are named unless both are 0, since two
    /// of them may have a process of one id.
    pub(super) fn name(self) -> String {
        let Self {
            capture,
            machine,
            process,
        } = self;
        match (capture, machine) {
            (0, 0) => format!("process {process}"),
            _ => format!("process {process} (capture {capture}, machine {machine})"),
        }
    }
}

/// The processes of `rows`, each with its number in the file: the process id, which viewers show,
/// where no other process has it, otherwise the next free number.
pub(super) fn processes(rows: &[Row]) -> BTreeMap<ProcessKey, u32> {
    let mut taken = BTreeSet::from([SERIES]);
    let keys: BTreeSet<ProcessKey> = rows.iter().map(ProcessKey::of).collect();
    // Process ids of the first capture come first in the order of keys.
    let mut next = 1_u32;
    let mut numbers = BTreeMap::new();
    let mut later = Vec::new();
    for key in keys {
        let fits = i32::try_from(key.process).is_ok();
        if fits && taken.insert(key.process) {
            numbers.insert(key, key.process);
        } else {
            later.push(key);
        }
    }
    for key in later {
        while !taken.insert(next) {
            next = next.saturating_add(1);
        }
        numbers.insert(key, next);
    }
    numbers
}

/// Number of the process below which the file has all series; no program has the process id 0.
pub(super) const SERIES: u32 = 0;

/// Name of a row's track in the viewer: the row's label and the kind of its events; a track after
/// the first has its number behind that.
pub(super) fn name(row: &Row, track: u32) -> String {
    let what = match row.track {
        Track::GpuStream | Track::Device | Track::Derived => "",
        Track::CudaSync => "synchronisation",
        Track::CudaApi => "CUDA API",
        Track::Nvtx => "NVTX",
        Track::Library => "libraries",
        Track::OsRuntime => "OS runtime",
        Track::CpuOp => "operators",
        Track::Annotation => "annotations",
        Track::Python => "Python",
        Track::CpuSample => "samples",
        Track::CpuRunning => "on a CPU",
        Track::Overhead => "profiler",
        Track::GpuAnnotation => "annotations on the GPU",
        Track::Other => "other",
    };
    let mut name = row.label.clone();
    if !what.is_empty() {
        name = format!("{name}: {what}");
    }
    match track {
        0 => name,
        _ => format!("{name} ({})", track.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(capture: u32, process: u32) -> Row {
        Row {
            capture,
            thread: Some(1),
            label: "t".to_owned(),
            ..Row::of(process, Track::Nvtx)
        }
    }

    #[test]
    fn processes_keep_their_ids_where_they_are_unique() {
        let rows = [row(0, 7), row(0, 0), row(1, 7), row(0, u32::MAX), row(0, 2)];
        let numbers: Vec<u32> = processes(&rows).into_values().collect();
        // In the order of capture and process: 0, 2, 7, the largest, and the other 7.
        assert_eq!(numbers, [1, 2, 7, 3, 4]);
    }
}
