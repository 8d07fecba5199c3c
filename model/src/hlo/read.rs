//! A module out of its message.

use std::collections::HashMap;

use super::budget::Budget;
use super::{Buffers, Computation, Frames, Instruction, Module, ReadError, order, text};
use crate::wire::Message;

/// Reads a module: its text, or an `xla.HloProto` with the module 1 and the plan of its memory 3.
pub fn read(bytes: &[u8]) -> Result<Module, ReadError> {
    if bytes.starts_with(text::TEXT) {
        return text::read(&String::from_utf8_lossy(bytes));
    }
    let mut budget = Budget::new();
    let mut module = None;
    let mut buffers = None;
    for field in (Message { bytes, offset: 0 }).fields() {
        let (number, value) = field?;
        match (number, value.message()) {
            (1, Some(message)) => module = Some(Module::read(message, &mut budget)?),
            (3, Some(message)) => buffers = Some(Buffers::read(message, &mut budget)?),
            _ => {}
        }
    }
    let mut module = module.ok_or(ReadError::NoModule)?;
    module.buffers = buffers;
    Ok(module)
}

/// Whether `bytes`, of which there may be more, begin as such a message does: with a module that
/// has a name, the name of its entry, and computations.
pub fn begins_like_a_program(bytes: &[u8]) -> bool {
    let Some((&[0x0a], rest)) = bytes.split_first_chunk::<1>() else {
        return false;
    };
    // The module itself may be longer than what is there.
    let length = rest.iter().take(10).take_while(|byte| **byte >= 0x80).count() + 1;
    let inside = rest.get(length..).unwrap_or_default();
    let mut fields = (Message {
        bytes: inside,
        offset: 0,
    })
    .fields();
    let mut text = |wanted| match fields.next() {
        Some(Ok((number, value))) if number == wanted => {
            value.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
        }
        _ => None,
    };
    let name = text(1).is_some_and(|name| !name.is_empty() && !name.starts_with('/'));
    let entry = text(2).is_some_and(|name| !name.is_empty() && !name.starts_with('/'));
    // The key of a computation, whose message may be cut off.
    name && entry
        && inside
            .get(inside_of(inside)..)
            .and_then(<[u8]>::first)
            .is_none_or(|key| *key == 0x1a)
}

/// Bytes of the first two fields.
fn inside_of(bytes: &[u8]) -> usize {
    let mut fields = (Message { bytes, offset: 0 }).fields();
    let mut end = 0;
    for _ in 0..2 {
        if let Some(Ok((_, value))) = fields.next()
            && let Some(message) = value.message()
        {
            end = message.offset + message.bytes.len();
        }
    }
    end
}

impl Module {
    /// `HloModuleProto`: name 1, computations 3, id 5, number of the entry 6, schedule 7, stack
    /// frames 17.
    fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        let mut module = Self::default();
        let mut entry = 0;
        let mut schedule = HashMap::new();
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (1, _) => module.name = budget.text(value)?,
                (3, Some(message)) => module.computations.push(Computation::read(message, budget)?),
                (5, _) => module.id = value.number().unwrap_or(0),
                (6, _) => entry = value.number().unwrap_or(0),
                (7, Some(message)) => {
                    module.is_scheduled = !message.bytes.is_empty();
                    read_schedule(message, budget, &mut schedule)?;
                }
                (17, Some(message)) => module.frames = Frames::read(message, budget)?,
                _ => {}
            }
        }
        for computation in &mut module.computations {
            if let Some(sequence) = schedule.get(&computation.id) {
                let positions: HashMap<u64, usize> = sequence.iter().copied().zip(0..).collect();
                let position = |of: &Instruction| positions.get(&of.id).copied().unwrap_or(usize::MAX);
                computation.instructions.sort_by_key(position);
            }
        }
        // What finds an instruction by its number.
        let instructions = module
            .computations
            .iter()
            .map(|computation| computation.instructions.len());
        let instructions: usize = instructions.sum();
        budget.take(instructions.saturating_mul(64))?;
        module.computations = order::callees_first(module.computations, entry);
        module.index(entry);
        Ok(module)
    }
}

/// `HloScheduleProto`: sequences 1, a map (key 1, value 2) of computations to the numbers 1 of
/// their instructions.
fn read_schedule(
    message: Message<'_>,
    budget: &mut Budget,
    schedule: &mut HashMap<u64, Vec<u64>>,
) -> Result<(), ReadError> {
    for field in message.fields() {
        let (1, value) = field? else { continue };
        let (mut computation, mut sequence) = (0, Vec::new());
        for field in value.message().into_iter().flat_map(Message::fields) {
            match field? {
                (1, value) => computation = value.number().unwrap_or(0),
                (2, value) => {
                    for field in value.message().into_iter().flat_map(Message::fields) {
                        if let (1, value) = field? {
                            // What finds an instruction's place by its number.
                            budget.take(32)?;
                            budget.numbers(value, &mut sequence)?;
                        }
                    }
                }
                _ => {}
            }
        }
        schedule.insert(computation, sequence);
    }
    Ok(())
}

impl Computation {
    /// `HloComputationProto`: name 1, instructions 2, id 5, number of the root 6, whether it is in
    /// a fusion 7.
    fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        budget.one::<Self>()?;
        let mut found = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (1, _) => found.name = budget.text(value)?,
                (2, Some(message)) => found.instructions.push(Instruction::read(message, budget)?),
                (5, _) => found.id = value.number().unwrap_or(0),
                (6, _) => found.root = value.number().unwrap_or(0),
                (7, _) => found.is_fusion = value.number().is_some_and(|is| is != 0),
                _ => {}
            }
        }
        Ok(found)
    }
}
