//! Time of the operations of compiled programs (HLO), as it was measured.
//!
//! On a GPU an operation's work is its kernels, copies and memsets; on an accelerator without
//! streams it is an operation of the device; on a processor it is an annotation of the thread that
//! ran it. Lines that a profiler derives of these (`XLA Ops` of a GPU, `XLA Modules`, `Steps`)
//! repeat their time, and are not looked at.

use std::collections::HashMap;

use flopwatch_model::{Category, Column, ColumnId, Events, NameId, Needs, RowId, Timeline, gpu_work_and};

use crate::interval::Interval;

/// What [`HloTime::of`] reads.
pub const HLO_TIME: Needs = Needs::of(gpu_work_and![Category::DeviceOp, Category::Annotation])
    .columns(&[
        ColumnId::Bytes,
        ColumnId::Flops,
        ColumnId::ProgramId,
        ColumnId::HloOp,
        ColumnId::HloCategory,
        ColumnId::HloModule,
        ColumnId::TfOp,
    ])
    .names()
    .rows()
    .programs();

/// A kernel that takes less than this share of its operation's time, one of so many, says nothing
/// of how often the operation ran.
const SMALL_KERNEL: u64 = 10;

/// Operations and their time.
#[derive(Debug, Clone, Default)]
pub struct HloTime {
    /// The operations, in the order in which they ran first.
    pub operations: Vec<MeasuredOperation>,
    /// Time in ns of GPU work that belongs to no operation.
    pub other_ns: u64,
    /// Pieces of such work.
    pub other_events: u64,
}

/// An operation of a program.
#[derive(Debug, Clone, Default)]
pub struct MeasuredOperation {
    /// Name of the operation in its program.
    pub name: String,
    /// Name of the program; may be empty.
    pub program: String,
    /// Number of the program; 0 where the capture does not say.
    pub program_id: u64,
    /// Kind of operation as the profiler names it; may be empty.
    pub category: String,
    /// Operation of the framework; may be empty.
    pub framework_op: String,
    /// First device that it ran on; `None` of a processor.
    pub device: Option<u32>,
    /// Whether it runs beside the operations of the device, as copies that another operation waits
    /// for do: its time is that of others too.
    pub is_asynchronous: bool,
    /// Events.
    pub events: u64,
    /// Time in ns of its events.
    pub total_ns: u64,
    /// Time in ns without that of operations inside it.
    pub self_ns: u64,
    /// Time of its longest event.
    pub longest: Option<(RowId, Interval)>,
    /// Floating-point operations that the profiler states, of all events together; `None` where it
    /// states none.
    pub flops: Option<u64>,
    /// Bytes that the profiler states, of all events together.
    pub bytes: Option<u64>,
    /// Its kernels by name; empty where it has none.
    pub kernels: Vec<MeasuredKernel>,
}

/// A kernel of an operation.
#[derive(Debug, Clone, Default)]
pub struct MeasuredKernel {
    /// Name of the kernel.
    pub name: String,
    /// Launches.
    pub launches: u64,
    /// Time in ns.
    pub total_ns: u64,
}

impl MeasuredOperation {
    /// How often it ran. An operation of several kernels ran as often as the rarest of those that
    /// take a tenth of its time or more.
    pub fn occurrences(&self) -> u64 {
        let all: u64 = self.kernels.iter().map(|kernel| kernel.total_ns).sum();
        let large = self
            .kernels
            .iter()
            .filter(|kernel| kernel.total_ns >= all / SMALL_KERNEL);
        large.map(|kernel| kernel.launches).min().unwrap_or(self.events)
    }
}

impl HloTime {
    /// Of a capture. Needs [`HLO_TIME`].
    pub fn of(timeline: &Timeline) -> Self {
        let mut found = Self::default();
        let mut known: HashMap<(u64, String, String, bool), usize> = HashMap::new();
        for (category, events) in &timeline.capture.events {
            let is_work = category.is_gpu_work();
            if is_work || matches!(category, Category::DeviceOp | Category::Annotation) {
                found.add(timeline, *category, events, &mut known);
            }
        }
        found
    }

    fn add(
        &mut self,
        timeline: &Timeline,
        category: Category,
        events: &Events,
        known: &mut HashMap<(u64, String, String, bool), usize>,
    ) {
        let column = |id| events.columns.iter().find(|column| column.id == id);
        let number = |column: Option<&Column>, at| column.and_then(|column| column.values.get(at)).unwrap_or(0);
        let ids = column(ColumnId::ProgramId);
        let modules = column(ColumnId::HloModule);
        let names = column(ColumnId::HloOp);
        let is_named_by_event = category == Category::DeviceOp;
        let asynchronous: Vec<bool> = timeline
            .capture
            .rows
            .iter()
            .map(|row| row.label.ends_with("Async XLA Ops"))
            .collect();
        // What an event says, as numbers, and the operation that this is.
        let mut operation_numbers: HashMap<(u64, u64, u64, bool), usize> = HashMap::new();
        let mut kernels: HashMap<(usize, NameId), usize> = HashMap::new();
        let mut open = OpenOperations::default();
        for (at, (row, event_name)) in events.row.iter().zip(&events.name).enumerate() {
            let (row, event_name) = (*row, *event_name);
            let time = Interval::of(events, at);
            let op_name = number(names, at);
            if op_name == 0 && !is_named_by_event {
                if category.is_gpu_work() {
                    self.other_ns = self.other_ns.saturating_add(time.len());
                    self.other_events += 1;
                }
                continue;
            }
            let is_asynchronous = is_named_by_event && asynchronous.get(row.index()).copied().unwrap_or(false);
            // Of device operations the event's own name is the operation's; that of asynchronous
            // ones names who waits.
            let name = if is_named_by_event {
                u64::from(event_name.number())
            } else {
                op_name
            };
            let key = (number(ids, at), number(modules, at), name, is_asynchronous);
            let operation_number = *operation_numbers.entry(key).or_insert_with(|| {
                let name = if is_named_by_event {
                    operation_name(events.name_of(at))
                } else {
                    events.text(ColumnId::HloOp, at).unwrap_or_default()
                };
                let module = events.text(ColumnId::HloModule, at).unwrap_or_default();
                let key = (key.0, module.to_owned(), name.to_owned(), is_asynchronous);
                let next = self.operations.len();
                let operation_number = *known.entry(key).or_insert(next);
                if operation_number == next {
                    self.operations.push(MeasuredOperation {
                        name: name.to_owned(),
                        program: module.to_owned(),
                        program_id: number(ids, at),
                        category: events.text(ColumnId::HloCategory, at).unwrap_or_default().to_owned(),
                        framework_op: events.text(ColumnId::TfOp, at).unwrap_or_default().to_owned(),
                        device: timeline.row(row).and_then(|row| row.device),
                        is_asynchronous,
                        ..MeasuredOperation::default()
                    });
                }
                operation_number
            });
            let nests = !category.is_gpu_work() && !is_asynchronous;
            let around = if nests {
                open.begin(row, time, operation_number)
            } else {
                None
            };
            if let Some(around) = around.and_then(|around| self.operations.get_mut(around)) {
                around.self_ns = around.self_ns.saturating_sub(time.len());
            }
            let Some(operation) = self.operations.get_mut(operation_number) else {
                continue;
            };
            operation.events += 1;
            operation.total_ns = operation.total_ns.saturating_add(time.len());
            operation.self_ns = operation.self_ns.saturating_add(time.len());
            if operation.longest.is_none_or(|(_, longest)| longest.len() < time.len()) {
                operation.longest = Some((row, time));
            }
            if is_named_by_event {
                operation.flops = add_known(operation.flops, events.number(ColumnId::Flops, at));
                operation.bytes = add_known(operation.bytes, events.number(ColumnId::Bytes, at));
            }
            if category.is_gpu_work() {
                let kernel = *kernels.entry((operation_number, event_name)).or_insert_with(|| {
                    operation.kernels.push(MeasuredKernel {
                        name: events.name_of(at).to_owned(),
                        ..MeasuredKernel::default()
                    });
                    operation.kernels.len() - 1
                });
                if let Some(kernel) = operation.kernels.get_mut(kernel) {
                    kernel.launches += 1;
                    kernel.total_ns = kernel.total_ns.saturating_add(time.len());
                }
            }
        }
    }
}

fn add_known(sum: Option<u64>, value: Option<u64>) -> Option<u64> {
    match (sum, value) {
        (Some(sum), Some(value)) => Some(sum.saturating_add(value)),
        (sum, value) => sum.or(value),
    }
}

/// `copy.1` of `%copy.1 = f32[2] copy(f32[2] %x)`, which is how some devices name their operations.
pub fn operation_name(text: &str) -> &str {
    let name = text.split(" = ").next().unwrap_or(text);
    name.strip_prefix('%').unwrap_or(name)
}

/// Whether an operation begins (`copy-start.2`) or awaits (`copy-done.2`) work that runs beside
/// others: its own time is not that of the work. `name` is an operation's name or opcode.
pub fn begins_or_awaits(name: &str) -> bool {
    awaits(name) || opcode_of(name).ends_with("-start")
}

/// Whether an operation awaits the end of work that runs beside others: `copy-done.2`,
/// `all-reduce-done`.
pub fn awaits(name: &str) -> bool {
    opcode_of(name).ends_with("-done")
}

/// `copy-done` of `copy-done.2`.
fn opcode_of(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Operations that run on each row.
#[derive(Debug, Default)]
struct OpenOperations(HashMap<RowId, Vec<(Interval, usize)>>);

impl OpenOperations {
    /// An operation begins: the innermost one that it is within. Events of a timeline are in the
    /// order of their starts, and of those that start together the longest is first.
    fn begin(&mut self, row: RowId, time: Interval, operation: usize) -> Option<usize> {
        let open = self.0.entry(row).or_default();
        while open
            .last()
            .is_some_and(|(around, _)| around.end <= time.start || around.end < time.end)
        {
            open.pop();
        }
        let around = open.last().map(|(_, operation)| *operation);
        open.push((time, operation));
        around
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;

    use super::*;

    #[test]
    fn an_operation_of_two_kernels_ran_as_often_as_the_rarer_one_and_small_ones_say_nothing() {
        let mut trace = Trace::new();
        let stream = trace.stream(1, 0, 7);
        for turn in 0..3 {
            let begin = turn * 100;
            for (name, start, end) in [("gemm", 0, 40), ("reduce", 50, 70)] {
                let kernel = trace.kernel(stream, name, begin + start, begin + end);
                trace.text(kernel, ColumnId::HloOp, "dot.1");
                trace.text(kernel, ColumnId::HloModule, "jit_f");
            }
        }
        let set = trace.kernel(stream, "set", 400, 401);
        trace.text(set, ColumnId::HloOp, "dot.1");
        trace.text(set, ColumnId::HloModule, "jit_f");
        trace.kernel(stream, "alone", 500, 510);
        let time = HloTime::of(&trace.build());
        let [dot] = &time.operations[..] else {
            panic!("one operation")
        };
        assert_eq!(
            (dot.events, dot.occurrences(), dot.total_ns, dot.self_ns),
            (7, 3, 181, 181)
        );
        assert_eq!((time.other_events, time.other_ns), (1, 10));
    }

    #[test]
    fn time_of_operations_inside_another_is_not_its_own() {
        let mut trace = Trace::new();
        let row = trace.device_line("/device:TPU:0 XLA Ops");
        trace.event(Category::DeviceOp, row, "%while.1 = (s32[]) while(s32[] %x)", 0, 100);
        for start in [10, 40] {
            let inside = trace.event(
                Category::DeviceOp,
                row,
                "%add.2 = f32[] add(f32[] %a)",
                start,
                start + 20,
            );
            trace.number(inside, ColumnId::Flops, 5);
        }
        let time = HloTime::of(&trace.build());
        let of = |name: &str| time.operations.iter().find(|one| one.name == name).unwrap();
        assert_eq!((of("while.1").total_ns, of("while.1").self_ns), (100, 60));
        let add = of("add.2");
        assert_eq!(
            (add.total_ns, add.self_ns, add.occurrences(), add.flops),
            (40, 40, 2, Some(10))
        );
    }

    #[test]
    fn operations_that_begin_or_await_others_are_known_by_their_names() {
        for name in ["copy-start.2", "copy-start", "all-gather-done.1", "async-done"] {
            assert!(begins_or_awaits(name), "{name}");
        }
        assert!(awaits("send-done.3") && !awaits("send-start.3"));
        assert!(!begins_or_awaits("copy.2") && !begins_or_awaits("fusion.start"));
    }

    #[test]
    fn copies_that_run_beside_operations_are_apart() {
        let mut trace = Trace::new();
        let ops = trace.device_line("/device:TPU:0 XLA Ops");
        let beside = trace.device_line("/device:TPU:0 Async XLA Ops");
        trace.event(Category::DeviceOp, ops, "copy-start", 0, 1);
        trace.event(Category::DeviceOp, beside, "copy-start", 0, 90);
        let time = HloTime::of(&trace.build());
        let parts: Vec<(bool, u64)> = time
            .operations
            .iter()
            .map(|one| (one.is_asynchronous, one.total_ns))
            .collect();
        assert_eq!(parts.len(), 2);
        assert!(parts.contains(&(false, 1)) && parts.contains(&(true, 90)));
    }
}
