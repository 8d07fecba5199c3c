//! Decodes the events of a chunk of an nsys-rep file one after the other: each becomes a row of its
//! table, or is counted as unread.
//!
//! An event is a protobuf message, and so is what it holds; fields have numbers and no names. The
//! kind of an event is the number of the field that holds its body, and the kind of a call is the
//! call's class. The type that an event also names is not used: later versions of Nsight Systems
//! gave its numbers other meanings. Messages are nested three deep, and no deeper one is read.

use super::super::chains::{Chain, Frame};
use super::ReportError;
use super::chunks::Chunk;
use super::counters::Counters;
use super::events::{self, Part, RowBudget, TableId};
use super::layout::{self, Fields};
use super::unread::UnreadContent;
use crate::wire::{Damage, Message};

/// Most columns of numbers that a table has.
const MAX_COLUMNS: usize = 32;

/// Lowest field number of a body, in an event and in GPU work. All kinds have the fields below.
const MIN_BODY_FIELD: u64 = 100;

/// Field of an event that holds a body with work on a GPU.
const GPU_WORK_BODY: u64 = 107;
/// Field of an event that holds a body with a call of an API.
const CALL_BODY: u64 = 108;
/// Field of an event that holds a body with an NVTX range or mark.
const RANGE_BODY: u64 = 102;
/// Field of an event that holds a body with a sample of the CPU.
const CPU_SAMPLE_BODY: u64 = 104;
/// Field of an event that holds a body with a thread's scheduling.
const SCHEDULING_BODY: u64 = 106;
/// Field of an event that holds a body with a process.
const PROCESS_BODY: u64 = 113;
/// Field of an event that holds a body with an allocation or a release of GPU memory.
const MEMORY_USAGE_BODY: u64 = 123;
/// Fields of bodies that tell nothing of the program: mappings of memory, messages of the profiler,
/// and what it says of itself.
const PASSED_OVER_BODIES: [u64; 3] = [109, 110, 117];

/// Field of a call that holds its class.
const CLASS_FIELD: u64 = 6;

/// Decodes the events of a chunk into the tables of a part.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    counters: &'a Counters<'a>,
    budget: &'a RowBudget<'a>,
    part: &'a mut Part,
    /// The call stack of the sample that is decoded.
    call_stack: Chain,
}

/// Why an event could not be decoded.
enum DecodeError {
    /// The event's message is damaged.
    Damaged,
    /// The report has more rows than the limits allow.
    TooMany(ReportError),
}

impl From<Damage> for DecodeError {
    fn from(_: Damage) -> Self {
        Self::Damaged
    }
}

impl<'a> Decoder<'a> {
    pub(super) fn new(counters: &'a Counters<'a>, budget: &'a RowBudget<'a>, part: &'a mut Part) -> Self {
        Self {
            counters,
            budget,
            part,
            call_stack: Chain::default(),
        }
    }

    /// Decodes the events in the message of `chunk`.
    pub(super) fn chunk(&mut self, chunk: Chunk, message: Message<'_>) -> Result<(), ReportError> {
        self.decode_entries(message).map_err(|fault| match fault {
            DecodeError::Damaged => chunk.damaged("holds a damaged event"),
            DecodeError::TooMany(error) => error,
        })
    }

    /// Decodes the entries of a chunk. Field 1 is an event and field 2 a generic event.
    fn decode_entries(&mut self, message: Message<'_>) -> Result<(), DecodeError> {
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (1, Some(event)) => {
                    self.part.events += 1;
                    self.decode_event(event)?;
                }
                (2, Some(event)) => {
                    self.part.generic += 1;
                    self.decode_generic(event)?;
                }
                (number, _) => self.part.unread.add(UnreadContent::Entry(number)),
            }
            self.budget.count(self.part, false).map_err(DecodeError::TooMany)?;
        }
        Ok(())
    }

    fn decode_event(&mut self, event: Message<'_>) -> Result<(), Damage> {
        let mut last_body = None;
        for field in event.fields() {
            let (number, value) = field?;
            if number >= MIN_BODY_FIELD
                && let Some(body) = value.message()
            {
                last_body = Some((number, body));
            }
        }
        match last_body {
            Some((GPU_WORK_BODY, body)) => self.decode_gpu_work(body)?,
            Some((CALL_BODY, body)) => self.decode_call(body)?,
            Some((RANGE_BODY, body)) => self.decode_range(body)?,
            Some((CPU_SAMPLE_BODY, body)) => self.decode_cpu_sample(body)?,
            Some((SCHEDULING_BODY, body)) => self.decode_fields(events::SWITCHES, &layout::SWITCH, body)?,
            Some((PROCESS_BODY, body)) => self.decode_process(body)?,
            Some((MEMORY_USAGE_BODY, body)) => self.decode_fields(events::USAGES, &layout::USAGE, body)?,
            Some((number, _)) if PASSED_OVER_BODIES.contains(&number) => {}
            Some((number, _)) => self.count_unread(UnreadContent::Body(number)),
            None => self.count_unread(UnreadContent::Body(0)),
        }
        Ok(())
    }

    /// Counts content that is not decoded, which becomes a loss of the capture.
    fn count_unread(&mut self, content: UnreadContent) {
        self.part.unread.add(content);
    }

    /// Decodes a body whose fields all are columns of numbers of `table`.
    fn decode_fields(&mut self, table: TableId, fields: &Fields, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; MAX_COLUMNS];
        fields.fill(body, &mut row)?;
        self.part
            .push(table, row.get(..fields.count()).unwrap_or_default(), &[]);
        Ok(())
    }

    /// Decodes work on a GPU: the fields that all such work has, and the message of its kind. The
    /// kind is the field number of that message.
    fn decode_gpu_work(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; MAX_COLUMNS];
        let mut last_work = None;
        for field in body.fields() {
            let (number, value) = field?;
            if number < MIN_BODY_FIELD {
                layout::ON_DEVICE.set(number, value, &mut row);
            } else if let Some(work) = value.message() {
                last_work = Some((number, work));
            }
        }
        let (table, fields, work) = match last_work {
            Some((101, work)) => (events::KERNELS, &layout::KERNEL, work),
            Some((102, work)) => (events::COPIES, &layout::MEMCPY, work),
            Some((103, work)) => (events::SETS, &layout::MEMSET, work),
            Some((105, work)) => (events::SYNCS, &layout::SYNC, work),
            Some((106, work)) => (events::RECORDS, &layout::RECORD, work),
            Some((107, work)) => (events::GRAPHS, &layout::GRAPH, work),
            unknown => {
                let number = unknown.map_or(0, |(number, _)| number);
                self.count_unread(UnreadContent::Work(number));
                return Ok(());
            }
        };
        let (common_columns, work_columns) = row.split_at_mut(layout::ON_DEVICE.count());
        let count = common_columns.len().saturating_add(fields.count());
        fields.fill(work, work_columns)?;
        self.part.push(table, row.get(..count).unwrap_or_default(), &[]);
        Ok(())
    }

    /// Decodes a call of the CUDA API, of cuDNN, of cuBLAS or of the operating system. Overhead of
    /// the profiler has the form of a call too, and is counted as unread.
    fn decode_call(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; MAX_COLUMNS];
        let mut class = 0;
        for field in body.fields() {
            let (number, value) = field?;
            if number == CLASS_FIELD {
                class = value.number().unwrap_or(0);
            }
            layout::CALL.set(number, value, &mut row);
        }
        let row = row.get(..layout::CALL.count()).unwrap_or_default();
        match class {
            // Calls of the CUDA API.
            0 | 1 => self.part.push(events::CALLS, row, &[]),
            // Calls of the operating system, and marks of when their recording began and ended.
            27 | 31 | 32 => self.part.push(events::OS_CALLS, row, &[]),
            // Calls of cuDNN and of cuBLAS, and marks of when their recording began and ended.
            28 | 33 | 34 => self.part.push(events::CUDNN_CALLS, row, &[]),
            29 | 35 | 36 => self.part.push(events::CUBLAS_CALLS, row, &[]),
            // Marks of when the recording of other kinds of events began and ended.
            6..=11 => {}
            3 => self.count_unread(UnreadContent::Table("PROFILER_OVERHEAD")),
            103 => self.count_unread(UnreadContent::Table("CUPTI_ACTIVITY_KIND_OVERHEAD")),
            class => self.count_unread(UnreadContent::Class(class)),
        }
        Ok(())
    }

    /// Decodes an NVTX range, a mark, or the name of a domain or category. Field 7 is its text.
    /// Payloads are passed over.
    fn decode_range(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; MAX_COLUMNS];
        let mut text = &[][..];
        for field in body.fields() {
            let (number, value) = field?;
            match number {
                7 => text = value.bytes().unwrap_or_default(),
                number => layout::RANGE.set(number, value, &mut row),
            }
        }
        let row = row.get(..layout::RANGE.count()).unwrap_or_default();
        self.part.push(events::RANGES, row, &[text]);
        Ok(())
    }

    /// Decodes a sample of the CPU. Each field 4 is a frame of its call stack, the innermost first.
    fn decode_cpu_sample(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; 2];
        self.call_stack.clear();
        for field in body.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (4, Some(frame)) => self.call_stack.push(decode_frame(frame)?),
                (number, _) => layout::CPU_SAMPLE.set(number, value, &mut row),
            }
        }
        self.part.push_sample(row, &self.call_stack);
        Ok(())
    }

    /// Decodes a process. Field 6 is its name, for which its command in field 5 stands in. The
    /// arguments in field 9 and the environments in fields 10 and 13 are passed over: they may hold
    /// secrets.
    fn decode_process(&mut self, body: Message<'_>) -> Result<(), Damage> {
        let mut row = [0; MAX_COLUMNS];
        let (mut name, mut command) = (&[][..], &[][..]);
        for field in body.fields() {
            let (number, value) = field?;
            match number {
                6 => name = value.bytes().unwrap_or_default(),
                5 => command = value.bytes().unwrap_or_default(),
                number => layout::PROCESS.set(number, value, &mut row),
            }
        }
        let name = if name.is_empty() { command } else { name };
        // The name and the command may each be a whole command line.
        let end = name.iter().position(u8::is_ascii_whitespace).unwrap_or(name.len());
        let program = name.get(..end).unwrap_or_default();
        if !name.is_empty() {
            let row = row.get(..layout::PROCESS.count()).unwrap_or_default();
            self.part.push(events::PROCESSES, row, &[program]);
        }
        Ok(())
    }

    /// Decodes a generic event. Field 1 is its type, 2 its time and 3 its data. Generic events that
    /// are no samples of GPU counters are counted as unread.
    fn decode_generic(&mut self, event: Message<'_>) -> Result<(), DecodeError> {
        let (mut kind, mut time, mut data) = (0, 0, &[][..]);
        for field in event.fields() {
            let (number, value) = field?;
            match number {
                1 => kind = value.number().unwrap_or(0),
                2 => time = value.number().unwrap_or(0),
                3 => data = value.bytes().unwrap_or_default(),
                _ => {}
            }
        }
        let Some(fields) = self.counters.fields(kind) else {
            self.count_unread(UnreadContent::Table("GENERIC_EVENTS"));
            return Ok(());
        };
        // Fields do not overlap, so the data has at least as many bytes as fields.
        if fields.len() > data.len() {
            self.count_unread(UnreadContent::Values);
            return Ok(());
        }
        for (metric, field) in (0_u64..).zip(fields) {
            match field.value(data) {
                Some(value) => self.part.push(events::SAMPLES, &[time, kind, metric, value], &[]),
                None => self.count_unread(UnreadContent::Values),
            }
        }
        Ok(())
    }
}

/// Decodes a frame of a call stack. Field 1 is the id of its function's name, 2 the id of the name
/// of its program or library, and 6 tells that the function's name was not found. The address in
/// field 8 is passed over.
fn decode_frame(message: Message<'_>) -> Result<Frame, Damage> {
    let (mut symbol, mut module, mut unresolved) = (0, 0, 0);
    for field in message.fields() {
        let (number, value) = field?;
        let target = match number {
            1 => &mut symbol,
            2 => &mut module,
            6 => &mut unresolved,
            _ => continue,
        };
        *target = value.number().unwrap_or(0);
    }
    Ok(Frame {
        symbol: (unresolved == 0).then_some(symbol),
        module,
    })
}
