//! Where values are in memory, and when, as the compiler planned it.

use super::ReadError;
use super::budget::Budget;
use crate::wire::Message;

/// The plan of a module's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Buffers {
    /// The values that need memory.
    pub logical: Vec<LogicalBuffer>,
    /// The pieces of memory that they are in.
    pub allocations: Vec<Allocation>,
    /// In which order buffers were placed in allocations that are used again.
    pub traces: Vec<HeapTrace>,
}

/// A value that needs memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogicalBuffer {
    /// Number of the buffer.
    pub id: u64,
    /// Size of the buffer, in bytes.
    pub bytes: u64,
    /// Number of the instruction whose value it is; 0 where older versions name it only.
    pub instruction: u64,
    /// Name of that instruction, where the message has it.
    pub instruction_name: String,
    /// Which part of the instruction's value it is.
    pub shape_index: Vec<u64>,
    /// Memory in which it is, as the compiler numbers them.
    pub color: u64,
}

/// A piece of memory.
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own in the message")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Number of the allocation.
    pub index: u64,
    /// Size of the allocation, in bytes.
    pub bytes: u64,
    /// Whether it is on a thread's stack, and so no memory of the program.
    pub is_thread_local: bool,
    /// Whether it holds a parameter of the program.
    pub is_parameter: bool,
    /// Which parameter.
    pub parameter: u64,
    /// Whether it holds a constant.
    pub is_constant: bool,
    /// Whether it may hold a result of the program.
    pub is_live_out: bool,
    /// Memory in which it is, as the compiler numbers them.
    pub color: u64,
    /// What is in it, at times.
    pub assigned: Vec<BufferAssignment>,
}

/// A buffer in a piece of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BufferAssignment {
    /// Number of the logical buffer.
    pub buffer: u64,
    /// Offset in the allocation at which the buffer begins, in bytes.
    pub offset: u64,
    /// Size of the buffer, in bytes.
    pub bytes: u64,
}

/// In which order buffers were placed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapTrace {
    /// The events in order.
    pub events: Vec<HeapEvent>,
    /// Number of the allocation that they fill.
    pub allocation: u64,
}

/// A buffer begins or ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapEvent {
    /// What happened.
    pub kind: HeapEventKind,
    /// Number of the logical buffer.
    pub buffer: u64,
    /// Name of the instruction at which it happened.
    pub instruction: String,
    /// Number of the buffer whose memory it shares, of [`HeapEventKind::Share`].
    pub shared: u64,
}

/// What happened to a buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeapEventKind {
    /// The buffer was placed.
    #[default]
    Allocate,
    /// The buffer's last use is over.
    Free,
    /// The buffer took the memory of another one, which then lives as long as both.
    Share,
}

impl Buffers {
    /// `BufferAssignmentProto`: logical buffers 1, allocations 3, traces of the heap 4.
    pub(super) fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        let mut found = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (1, Some(message)) => found.logical.push(LogicalBuffer::read(message, budget)?),
                (3, Some(message)) => found.allocations.push(Allocation::read(message, budget)?),
                (4, Some(message)) => found.traces.push(HeapTrace::read(message, budget)?),
                _ => {}
            }
        }
        Ok(found)
    }
}

impl LogicalBuffer {
    /// `LogicalBufferProto`: id 1, size 2, where it is defined 3 (name 2, part 3, id 4), color 4.
    fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        budget.one::<Self>()?;
        let mut found = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (1, _) => found.id = value.number().unwrap_or(0),
                (2, _) => found.bytes = value.number().unwrap_or(0),
                (3, Some(message)) => {
                    for field in message.fields() {
                        let (number, value) = field?;
                        match number {
                            2 => found.instruction_name = budget.text(value)?,
                            3 => budget.numbers(value, &mut found.shape_index)?,
                            4 => found.instruction = value.number().unwrap_or(0),
                            _ => {}
                        }
                    }
                }
                (4, _) => found.color = value.number().unwrap_or(0),
                _ => {}
            }
        }
        Ok(found)
    }
}

impl Allocation {
    /// `BufferAllocationProto`; numbers of the fields are in the match.
    fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        budget.one::<Self>()?;
        let mut found = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            let is = value.number().is_some_and(|value| value != 0);
            match (number, value.message()) {
                (1, _) => found.index = value.number().unwrap_or(0),
                (2, _) => found.bytes = value.number().unwrap_or(0),
                (3, _) => found.is_thread_local = is,
                (5, _) => found.is_parameter = is,
                (6, _) => found.parameter = value.number().unwrap_or(0),
                (7, _) => found.is_live_out = is,
                (8, _) => found.color = value.number().unwrap_or(0),
                (9, Some(message)) => {
                    budget.one::<BufferAssignment>()?;
                    let mut assigned = BufferAssignment::default();
                    for field in message.fields() {
                        match field? {
                            (1, value) => assigned.buffer = value.number().unwrap_or(0),
                            (2, value) => assigned.offset = value.number().unwrap_or(0),
                            (3, value) => assigned.bytes = value.number().unwrap_or(0),
                            _ => {}
                        }
                    }
                    found.assigned.push(assigned);
                }
                (12, _) => found.is_constant = is,
                _ => {}
            }
        }
        Ok(found)
    }
}

impl HeapTrace {
    /// `HeapSimulatorTrace`: events 1, allocation 3.
    fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        budget.one::<Self>()?;
        let mut found = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (1, Some(message)) => found.events.push(HeapEvent::read(message, budget)?),
                (3, _) => found.allocation = value.number().unwrap_or(0),
                _ => {}
            }
        }
        Ok(found)
    }
}

impl HeapEvent {
    /// `HeapSimulatorTrace.Event`: kind 1, buffer 2, name of the instruction 4, buffer that it
    /// shares 5.
    fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        budget.one::<Self>()?;
        let mut found = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match number {
                1 => {
                    found.kind = match value.number() {
                        Some(1) => HeapEventKind::Free,
                        Some(2) => HeapEventKind::Share,
                        _ => HeapEventKind::Allocate,
                    }
                }
                2 => found.buffer = value.number().unwrap_or(0),
                4 => found.instruction = budget.text(value)?,
                5 => found.shared = value.number().unwrap_or(0),
                _ => {}
            }
        }
        Ok(found)
    }
}
