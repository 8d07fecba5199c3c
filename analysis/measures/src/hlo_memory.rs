//! The memory of a compiled program as its compiler planned it: which values are in memory when, in
//! the order of the program.
//!
//! A module's allocations hold its parameters, constants and results from begin to end, and its
//! temporaries one after another. When temporaries begin and end is in the trace of the compiler's
//! heap simulator, whose events are the steps of the program here. XProf's memory viewer has the
//! same definitions.

use std::collections::HashMap;

use flopwatch_model::hlo::{Allocation, Buffers, HeapEventKind, HeapTrace, Instruction, LogicalBuffer, Module};

/// What an allocation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HloBufferUse {
    /// A parameter of the program.
    Parameter,
    /// A result of the program.
    Output,
    /// A constant.
    Constant,
    /// A value that the program makes and uses itself.
    Temporary,
}

/// A value in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life<'a> {
    /// The value; `None` of an allocation that names none.
    pub buffer: Option<&'a LogicalBuffer>,
    /// Its size; of a value from begin to end that of its allocation.
    pub bytes: u64,
    /// Purpose of the value.
    pub kind: HloBufferUse,
    /// First step at which it is there.
    pub begin: usize,
    /// First step at which it is not.
    pub end: usize,
    /// Number of its allocation.
    pub allocation: u64,
    /// Offset in the allocation at which the value begins, in bytes.
    pub offset: u64,
}

/// The planned memory of a module, of one kind of memory.
#[derive(Debug, Clone, Default)]
pub struct PlannedMemory<'a> {
    /// From which step to which each value is in memory.
    pub lives: Vec<Life<'a>>,
    /// Names of the instructions at the steps.
    pub steps: Vec<&'a str>,
    /// Bytes in use at each step, and before the first.
    pub in_use: Vec<u64>,
    /// Bytes of parameters, constants, results and of temporaries without a known begin, which are
    /// there from begin to end.
    pub fixed_bytes: u64,
    /// Bytes of all allocations, gaps included.
    pub allocated_bytes: u64,
    /// Bytes of allocations by use.
    pub bytes_of: [u64; 4],
    /// Traces of the heap that were not followed, each of another allocation, which counts as a
    /// whole.
    pub other_traces: usize,
}

impl<'a> PlannedMemory<'a> {
    /// Of the memory that compilers number `space`; 0 is the ordinary one.
    pub fn of(buffers: &'a Buffers, space: u64) -> Self {
        let mut found = Self::default();
        let logical: HashMap<u64, &LogicalBuffer> = buffers.logical.iter().map(|buffer| (buffer.id, buffer)).collect();
        let counted = |allocation: &&Allocation| allocation.color == space && !allocation.is_thread_local;
        let allocations: Vec<&Allocation> = buffers.allocations.iter().filter(counted).collect();
        let traces = buffers.traces.iter().filter_map(|trace| {
            let allocation = allocation_of(trace, &allocations)?;
            (!trace.events.is_empty()).then_some((trace, allocation))
        });
        let traces: Vec<(&HeapTrace, &Allocation)> = traces.collect();
        // Events of several traces have no common order: the one with most is followed.
        let followed = traces.iter().copied().reduce(|max, one| {
            if one.0.events.len() > max.0.events.len() {
                one
            } else {
                max
            }
        });
        found.other_traces = traces.len().saturating_sub(1);
        for allocation in &allocations {
            found.allocated_bytes = found.allocated_bytes.saturating_add(allocation.bytes);
            let kind = use_of(allocation);
            if let Some(sum) = found.bytes_of.get_mut(place_of(kind)) {
                *sum = sum.saturating_add(allocation.bytes);
            }
            if followed.is_some_and(|(_, of)| of.index == allocation.index) {
                continue;
            }
            let largest = allocation
                .assigned
                .iter()
                .reduce(|max, one| if one.bytes > max.bytes { one } else { max });
            found.fixed_bytes = found.fixed_bytes.saturating_add(allocation.bytes);
            found.lives.push(Life {
                buffer: largest.and_then(|one| logical.get(&one.buffer).copied()),
                bytes: allocation.bytes,
                kind,
                begin: 0,
                end: usize::MAX,
                allocation: allocation.index,
                offset: 0,
            });
        }
        found.in_use.push(found.fixed_bytes);
        if let Some((trace, allocation)) = followed {
            found.follow(trace, allocation, &logical);
        }
        let steps = found.steps.len();
        for life in &mut found.lives {
            life.end = life.end.min(steps);
        }
        found
    }

    fn follow(&mut self, trace: &'a HeapTrace, allocation: &Allocation, logical: &HashMap<u64, &'a LogicalBuffer>) {
        // Each buffer's memory, and how many buffers use that memory now.
        let mut owner: HashMap<u64, u64> = HashMap::new();
        let mut users: HashMap<u64, (u64, usize)> = HashMap::new();
        let offsets: HashMap<u64, u64> = allocation.assigned.iter().map(|one| (one.buffer, one.offset)).collect();
        let mut in_use = self.fixed_bytes;
        for (step, event) in trace.events.iter().enumerate() {
            let name = logical
                .get(&event.buffer)
                .map_or("", |buffer| buffer.instruction_name.as_str());
            let named = if event.instruction.is_empty() {
                name
            } else {
                &event.instruction
            };
            self.steps.push(named);
            match event.kind {
                HeapEventKind::Allocate | HeapEventKind::Share => {
                    let memory = match event.kind {
                        HeapEventKind::Share => owner.get(&event.shared).copied().unwrap_or(event.shared),
                        _ => event.buffer,
                    };
                    owner.insert(event.buffer, memory);
                    if let Some((count, _)) = users.get_mut(&memory) {
                        *count += 1;
                    } else {
                        // Memory may be shared with a value whose last use is over: it is used
                        // again from here on.
                        users.insert(memory, (1, self.lives.len()));
                        let bytes = logical.get(&memory).map_or(0, |buffer| buffer.bytes);
                        self.lives.push(Life {
                            buffer: logical.get(&event.buffer).copied(),
                            bytes,
                            kind: use_of(allocation),
                            begin: step,
                            end: usize::MAX,
                            allocation: allocation.index,
                            offset: offsets.get(&event.buffer).copied().unwrap_or(0),
                        });
                        in_use = in_use.saturating_add(bytes);
                    }
                }
                HeapEventKind::Free => {
                    let of = owner.remove(&event.buffer).unwrap_or(event.buffer);
                    if let Some((count, life)) = users.get_mut(&of) {
                        *count = count.saturating_sub(1);
                        if *count == 0 {
                            if let Some(life) = self.lives.get_mut(*life) {
                                life.end = step;
                                in_use = in_use.saturating_sub(life.bytes);
                            }
                            users.remove(&of);
                        }
                    }
                }
            }
            self.in_use.push(in_use);
        }
    }

    /// Most bytes in use at once, and the step behind which they are; `None` where there are no
    /// steps.
    pub fn peak(&self) -> (u64, Option<usize>) {
        let mut peak = (self.fixed_bytes, None);
        for (at, bytes) in self.in_use.iter().enumerate() {
            if *bytes > peak.0 {
                peak = (*bytes, at.checked_sub(1));
            }
        }
        peak
    }

    /// The values that are in memory behind a step, the largest first.
    pub fn at(&self, step: Option<usize>) -> Vec<Life<'a>> {
        let step = step.unwrap_or(0);
        let is_there = |life: &&Life<'_>| {
            (life.begin <= step && life.end > step) || life.begin == 0 && life.end == self.steps.len()
        };
        let mut lives: Vec<Life<'a>> = self.lives.iter().filter(is_there).copied().collect();
        lives.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.allocation.cmp(&b.allocation)));
        lives
    }
}

/// The instruction whose value a buffer is.
pub fn instruction_of<'a>(module: &'a Module, buffer: &LogicalBuffer) -> Option<&'a Instruction> {
    let named = || {
        let name = &buffer.instruction_name;
        let mut all = module.instructions();
        all.find(|(_, instruction)| !name.is_empty() && instruction.name == *name)
    };
    let by_id = module
        .instruction(buffer.instruction)
        .filter(|_| buffer.instruction_name.is_empty());
    by_id.or_else(|| named().map(|(_, instruction)| instruction))
}

/// The allocation that a trace fills: the one that its buffers are in. The number that the trace
/// has is that of an earlier order of the allocations in some versions of XLA.
fn allocation_of<'a>(trace: &HeapTrace, allocations: &[&'a Allocation]) -> Option<&'a Allocation> {
    let first = trace.events.first()?.buffer;
    let holds = |one: &&&Allocation| one.assigned.iter().any(|assigned| assigned.buffer == first);
    let numbered = || allocations.iter().find(|one| one.index == trace.allocation);
    allocations.iter().find(holds).or_else(numbered).copied()
}

fn use_of(allocation: &Allocation) -> HloBufferUse {
    if allocation.is_parameter {
        HloBufferUse::Parameter
    } else if allocation.is_constant {
        HloBufferUse::Constant
    } else if allocation.is_live_out {
        HloBufferUse::Output
    } else {
        HloBufferUse::Temporary
    }
}

fn place_of(kind: HloBufferUse) -> usize {
    match kind {
        HloBufferUse::Parameter => 0,
        HloBufferUse::Output => 1,
        HloBufferUse::Constant => 2,
        HloBufferUse::Temporary => 3,
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_model::hlo::HeapEventKind::{Allocate, Free, Share};
    use flopwatch_model::hlo::{BufferAssignment, HeapEvent};

    use super::*;

    fn event(kind: HeapEventKind, buffer: u64, shared: u64) -> HeapEvent {
        HeapEvent {
            kind,
            buffer,
            instruction: format!("i{buffer}"),
            shared,
        }
    }

    /// A parameter of 100 bytes, and temporaries of 30, 40 and 50 bytes, of which the last takes
    /// the place of the first. A fourth shares the memory of the second, which so lives on.
    fn plan() -> Buffers {
        let logical = [(1, 100), (2, 30), (3, 40), (4, 50), (5, 40)];
        let assigned = [(2, 0), (3, 64), (4, 0), (5, 64)];
        Buffers {
            logical: logical
                .map(|(id, bytes)| LogicalBuffer {
                    id,
                    bytes,
                    ..LogicalBuffer::default()
                })
                .into(),
            allocations: vec![
                Allocation {
                    index: 0,
                    bytes: 100,
                    is_parameter: true,
                    assigned: vec![BufferAssignment {
                        buffer: 1,
                        offset: 0,
                        bytes: 100,
                    }],
                    ..Allocation::default()
                },
                Allocation {
                    index: 1,
                    bytes: 104,
                    assigned: assigned
                        .map(|(buffer, offset)| BufferAssignment {
                            buffer,
                            offset,
                            bytes: 0,
                        })
                        .into(),
                    ..Allocation::default()
                },
                Allocation {
                    index: 2,
                    bytes: 1 << 30,
                    is_thread_local: true,
                    ..Allocation::default()
                },
            ],
            traces: vec![HeapTrace {
                // Of an earlier order.
                allocation: 0,
                events: vec![
                    event(Allocate, 2, 0),
                    event(Allocate, 3, 0),
                    event(Free, 2, 0),
                    event(Share, 5, 3),
                    event(Free, 3, 0),
                    event(Allocate, 4, 0),
                    event(Free, 5, 0),
                    event(Free, 4, 0),
                ],
            }],
        }
    }

    #[test]
    fn memory_is_followed_from_step_to_step_and_shared_memory_is_free_when_its_last_user_is() {
        let plan = plan();
        let memory = PlannedMemory::of(&plan, 0);
        assert_eq!(memory.in_use, [100, 130, 170, 140, 140, 140, 190, 150, 100]);
        assert_eq!((memory.fixed_bytes, memory.allocated_bytes), (100, 204));
        assert_eq!(memory.bytes_of, [100, 0, 0, 104]);
        let (peak, step) = memory.peak();
        assert_eq!((peak, step), (190, Some(5)));
        let there: Vec<u64> = memory
            .at(step)
            .iter()
            .filter_map(|life| Some(life.buffer?.id))
            .collect();
        assert_eq!(there, [1, 4, 3]);
        let sum: u64 = memory.at(step).iter().map(|life| life.bytes).sum();
        assert_eq!(sum, peak);
    }

    #[test]
    fn memory_that_is_shared_with_a_value_that_is_over_is_in_use_again() {
        let mut plan = plan();
        plan.traces[0].events = vec![
            event(Allocate, 3, 0),
            event(Free, 3, 0),
            event(Share, 5, 3),
            event(Allocate, 2, 0),
            event(Free, 5, 0),
            event(Free, 2, 0),
        ];
        let memory = PlannedMemory::of(&plan, 0);
        assert_eq!(memory.in_use, [100, 140, 100, 140, 170, 130, 100]);
        let (peak, step) = memory.peak();
        assert_eq!((peak, step), (170, Some(3)));
        let there = memory.at(step);
        let there: Vec<u64> = there.iter().filter_map(|life| Some(life.buffer?.id)).collect();
        assert_eq!(there, [1, 5, 2]);
    }

    #[test]
    fn memory_of_another_kind_is_apart() {
        let plan = plan();
        let other = PlannedMemory::of(&plan, 5);
        assert_eq!((other.allocated_bytes, other.peak()), (0, (0, None)));
    }
}
