//! Timelines made by hand, whose every figure can be counted: for tests of measures and analyses.
//!
//! A [`Trace`] takes rows and events in any order; [`Trace::build`] sorts the events as the
//! transform does and joins GPU work to its launches. An [`EventHandle`] refers to an event before
//! it has its final index. [`mixed`] generates random GPU work for property tests.
//!
//! ```
//! use flopwatch_analysis_testing::Trace;
//!
//! let mut trace = Trace::new();
//! let stream = trace.stream(1, 0, 7);
//! trace.kernel(stream, "gemm", 10, 30);
//! assert_eq!(trace.build().total_events(), 1);
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a mistake in a trace made by hand fails its test"
)]

pub mod mixed;

use std::collections::BTreeMap;

use flopwatch_model::{
    Allocation, Category, ColumnId, Device, Event, Events, MemoryKind, Metric, NameId, Row, RowId, Timeline, Track,
};

/// An event that was added, so that others can refer to it before all are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHandle {
    category: Category,
    position: usize,
}

struct Pending {
    start_ns: u64,
    end_ns: u64,
    row: RowId,
    name: String,
    numbers: Vec<(ColumnId, u64)>,
    texts: Vec<(ColumnId, String)>,
    launch: Option<usize>,
}

/// Builds a [`Timeline`]: rows and events in any order. [`Trace::build`] sorts the events as the
/// transform does, by start and then the longest first, and joins GPU work to its launches.
#[derive(Default)]
pub struct Trace {
    rows: Vec<Row>,
    devices: Vec<Device>,
    captured: Vec<Category>,
    events: BTreeMap<Category, Vec<Pending>>,
    allocations: Vec<Allocation>,
}

impl Trace {
    /// A trace without rows and events.
    pub fn new() -> Self {
        Self::default()
    }

    /// A row of any kind.
    pub fn row(&mut self, row: Row) -> RowId {
        self.rows.push(row);
        RowId::from_index(self.rows.len() - 1).unwrap()
    }

    /// A stream of a device, of work that `process` launched.
    pub fn stream(&mut self, process: u32, device: u32, stream: u64) -> RowId {
        self.row(Row {
            device: Some(device),
            context: Some(1),
            stream: Some(stream),
            ..Row::of(process, Track::GpuStream)
        })
    }

    /// What a thread does on `track`.
    pub fn thread(&mut self, process: u32, thread: u64, track: Track) -> RowId {
        self.row(Row {
            thread: Some(thread),
            ..Row::of(process, track)
        })
    }

    /// A line of an accelerator without streams, such as `/device:TPU:0 XLA Ops`.
    pub fn device_line(&mut self, label: &str) -> RowId {
        self.row(Row {
            device: Some(0),
            label: label.to_owned(),
            ..Row::of(0, Track::Device)
        })
    }

    /// A GPU that events refer to.
    pub fn device(&mut self, device: Device) {
        self.devices.push(device);
    }

    /// Says that `category` was recorded, with events or without. Categories of events are recorded
    /// anyway.
    pub fn captured(&mut self, category: Category) {
        self.captured.push(category);
    }

    /// An event from `start_ns` to `end_ns`.
    pub fn event(&mut self, category: Category, row: RowId, name: &str, start_ns: u64, end_ns: u64) -> EventHandle {
        let list = self.events.entry(category).or_default();
        list.push(Pending {
            start_ns,
            end_ns,
            row,
            name: name.to_owned(),
            numbers: Vec::new(),
            texts: Vec::new(),
            launch: None,
        });
        EventHandle {
            category,
            position: list.len() - 1,
        }
    }

    /// A kernel whose launch was not recorded.
    pub fn kernel(&mut self, stream: RowId, name: &str, start_ns: u64, end_ns: u64) -> EventHandle {
        self.event(Category::CudaKernel, stream, name, start_ns, end_ns)
    }

    /// A call of the CUDA API.
    pub fn call(&mut self, thread: RowId, name: &str, start_ns: u64, end_ns: u64) -> EventHandle {
        self.event(Category::CudaApi, thread, name, start_ns, end_ns)
    }

    /// A call of the CUDA API, and GPU work of `category` that it launches.
    pub fn launch(
        &mut self,
        call: (RowId, u64, u64),
        category: Category,
        work: (RowId, &str, u64, u64),
    ) -> EventHandle {
        let call = self.call(call.0, "cudaLaunchKernel", call.1, call.2);
        let work = self.event(category, work.0, work.1, work.2, work.3);
        self.launched_by(work, call);
        work
    }

    /// A call of the CUDA API, and the kernel that it launches.
    pub fn launch_kernel(&mut self, call: (RowId, u64, u64), kernel: (RowId, &str, u64, u64)) -> EventHandle {
        self.launch(call, Category::CudaKernel, kernel)
    }

    /// A step that the profiler of PyTorch marked on `thread`.
    pub fn step(&mut self, thread: RowId, number: u64, start_ns: u64, end_ns: u64) -> EventHandle {
        let name = format!("ProfilerStep#{number}");
        let step = self.event(Category::Step, thread, &name, start_ns, end_ns);
        self.number(step, ColumnId::StepNumber, number);
        step
    }

    /// What an allocator of device memory did: bytes below 0 are taken back.
    pub fn allocation(&mut self, process: u32, device: u32, t_ns: u64, bytes: i64, allocated: Option<u64>) {
        self.allocations.push(Allocation {
            t_ns,
            process,
            device: Some(device),
            bytes,
            allocated,
            ..Allocation::default()
        });
    }

    /// What the driver did: bytes below 0 are taken back.
    pub fn driver_allocation(&mut self, process: u32, device: u32, t_ns: u64, bytes: i64) {
        self.allocations.push(Allocation {
            t_ns,
            process,
            device: Some(device),
            kind: Some(MemoryKind::Device),
            bytes,
            ..Allocation::default()
        });
    }

    /// Says which call launched `work`.
    pub fn launched_by(&mut self, work: EventHandle, call: EventHandle) {
        assert_eq!(call.category, Category::CudaApi);
        self.pending(work).launch = Some(call.position);
    }

    /// Says a number of an event.
    pub fn number(&mut self, of: EventHandle, column: ColumnId, value: u64) {
        self.pending(of).numbers.push((column, value));
    }

    /// Says a text of an event.
    pub fn text(&mut self, of: EventHandle, column: ColumnId, value: &str) {
        self.pending(of).texts.push((column, value.to_owned()));
    }

    fn pending(&mut self, added: EventHandle) -> &mut Pending {
        &mut self.events.get_mut(&added.category).unwrap()[added.position]
    }

    /// The timeline of all that was added.
    pub fn build(mut self) -> Timeline {
        let mut timeline = Timeline::default();
        let api = self.events.get_mut(&Category::CudaApi).map(sort).unwrap_or_default();
        for (category, mut pending) in self.events {
            if category != Category::CudaApi {
                sort(&mut pending);
            }
            let ends = pending.iter().map(|event| event.end_ns);
            let end = ends.max().unwrap_or(0);
            timeline.capture.duration_ns = timeline.capture.duration_ns.max(end);
            timeline.capture.captured.insert(category);
            timeline
                .capture
                .events
                .insert(category, columns(category, &pending, &api));
        }
        timeline.capture.captured.extend(self.captured);
        timeline.capture.rows = self.rows;
        timeline.capture.devices = self.devices;
        self.allocations.sort_by_key(|allocation| allocation.t_ns);
        timeline.capture.allocations = self.allocations;
        timeline
    }
}

/// Metrics of a launch as Nsight Compute says them: name, value and unit.
pub fn metrics(list: &[(&str, f64, &str)]) -> BTreeMap<String, Metric> {
    let metric = |(name, value, unit): &(&str, f64, &str)| {
        let (value, unit) = ((*value).into(), (*unit).to_owned());
        ((*name).to_owned(), Metric { value, unit })
    };
    list.iter().map(metric).collect()
}

/// Sorts, and gives for each former place the new one.
fn sort(events: &mut Vec<Pending>) -> Vec<u32> {
    let mut sorted: Vec<(usize, Pending)> = std::mem::take(events).into_iter().enumerate().collect();
    sorted.sort_by_key(|(_, event)| (event.start_ns, std::cmp::Reverse(event.end_ns)));
    let mut new_positions = vec![0; sorted.len()];
    for (new, (old, _)) in (0_u32..).zip(&sorted) {
        new_positions[*old] = new;
    }
    events.extend(sorted.into_iter().map(|(_, event)| event));
    new_positions
}

fn columns(category: Category, pending: &[Pending], api: &[u32]) -> Events {
    let mut events = Events::new(category);
    let mut names: Vec<&str> = pending.iter().map(|event| event.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for event in pending {
        let name = names.binary_search(&event.name.as_str()).unwrap();
        let common = Event {
            start_ns: event.start_ns,
            duration_ns: event.end_ns - event.start_ns,
            row: event.row,
            name: NameId::from_index(name).unwrap(),
            correlation: event.launch.map_or(0, |call| api[call] + 1),
        };
        events.push(common, &[]);
        let at = events.len() - 1;
        let launch = event.launch.map(|call| (ColumnId::Launch, u64::from(api[call])));
        for (id, value) in event.numbers.iter().copied().chain(launch) {
            let column = events.add_column(id);
            events.columns[column].values.set(at, value);
        }
        for (id, text) in &event.texts {
            let column = events.add_column(*id);
            let column = &mut events.columns[column];
            let known = column.texts.iter().position(|known| known == text);
            let position = known.unwrap_or_else(|| {
                column.texts.push(text.clone());
                column.texts.len() - 1
            });
            column.values.set(at, u64::try_from(position).unwrap());
        }
    }
    if category == Category::CudaApi {
        events.correlation = (1..=u32::try_from(pending.len()).unwrap()).collect();
    }
    events.names = names.into_iter().map(str::to_owned).collect();
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_sorted_and_its_work_joined_to_its_launches() {
        let mut trace = Trace::new();
        let (stream, thread) = (trace.stream(1, 0, 7), trace.thread(1, 1, Track::CudaApi));
        let late = trace.call(thread, "cudaLaunchKernel", 50, 60);
        let early = trace.call(thread, "cudaLaunchKernel", 10, 20);
        for (name, call, start) in [("second", late, 70), ("first", early, 20)] {
            let kernel = trace.kernel(stream, name, start, start + 10);
            trace.launched_by(kernel, call);
        }
        let timeline = trace.build();
        let kernels = &timeline.capture.events[&Category::CudaKernel];
        assert_eq!((kernels.name_of(0), kernels.name_of(1)), ("first", "second"));
        let launches: Vec<u64> = (0..2)
            .filter_map(|at| kernels.column(ColumnId::Launch)?.get(at))
            .collect();
        assert_eq!(launches, [0, 1]);
        assert_eq!(kernels.row[0], stream);
        assert_eq!(timeline.capture.duration_ns, 80);
    }
}
