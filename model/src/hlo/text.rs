//! A module out of its text, as XLA writes it with `--xla_dump_to`:
//! `HloModule jit_f, is_scheduled=true, ...` and computations behind it.
//!
//! The text has no numbers of computations and instructions: they are numbered in its order,
//! from 1. Behind the module there may be the text of its plan of memory (`BufferAssignment:`),
//! which XLA writes into a file of its own.

mod attributes;
mod buffers;
mod cursor;
mod frames;
mod instruction;
mod shape;

use std::collections::HashMap;

use super::budget::Budget;
use super::{Computation, Module, ReadError, order};
use cursor::Cursor;
use instruction::ParsedInstruction;

pub use buffers::TOTAL as PLAN_TOTAL;

/// What such a text begins with.
pub const TEXT: &[u8] = b"HloModule ";

/// What the plan of memory begins with. Behind it may stand the sum of its allocations,
/// `Total bytes used: 64`, which tells that it is whole.
pub const PLAN: &str = "BufferAssignment:";

/// Reads a module.
pub(super) fn read(text: &str) -> Result<Module, ReadError> {
    let mut budget = Budget::new();
    let (text, plan) = split(text);
    let mut reader = Reader {
        cursor: Cursor::new(text),
        budget: &mut budget,
        module: Module::default(),
        calls: Vec::new(),
        entry: 0,
        instructions: 0,
    };
    reader.header()?;
    while !reader.cursor.is_at_end() {
        reader.computation()?;
    }
    let mut module = reader.finish()?;
    module.buffers = plan.map(|plan| buffers::read(plan, &mut budget)).transpose()?.flatten();
    Ok(module)
}

/// The module, and the plan of its memory behind it.
fn split(text: &str) -> (&str, Option<&str>) {
    let line = text.match_indices(PLAN).find(|(at, _)| {
        let before = text.get(..*at);
        before.is_some_and(|before| before.is_empty() || before.ends_with('\n'))
    });
    let parts = line.and_then(|(at, _)| text.split_at_checked(at));
    parts.map_or((text, None), |(module, plan)| (module, Some(plan)))
}

struct Reader<'a, 'b> {
    cursor: Cursor<'a>,
    budget: &'b mut Budget,
    module: Module,
    /// Names of the computations that instructions call: place of the computation, of the
    /// instruction in it, and the names.
    calls: Vec<(usize, usize, Vec<&'a str>)>,
    /// Number of the computation that runs; 0 for none.
    entry: u64,
    /// Instructions so far.
    instructions: u64,
}

impl<'a> Reader<'a, '_> {
    /// `HloModule jit_f, is_scheduled=true, ...`, and the tables of lines of source behind it.
    fn header(&mut self) -> Result<(), ReadError> {
        self.cursor
            .wants("HloModule", "the text does not begin with HloModule")?;
        let name = self.cursor.raw(b",\n").trim();
        if name.is_empty() {
            return Err(self.cursor.fails("the module has no name"));
        }
        self.budget.take(name.len())?;
        name.clone_into(&mut self.module.name);
        while self.cursor.takes(",") {
            let (key, value) = self.cursor.attribute()?;
            if key == "is_scheduled" {
                self.module.is_scheduled = value == "true";
            }
        }
        self.module.frames = frames::read(&mut self.cursor, self.budget)?;
        Ok(())
    }

    /// `%f (x: f32[2]) -> f32[2] { ... }`, the one that runs behind `ENTRY`; parameters and result
    /// may be left out.
    fn computation(&mut self) -> Result<(), ReadError> {
        let is_entry = self.cursor.takes("ENTRY ");
        let name = self.cursor.name();
        if name.is_empty() {
            return Err(self.cursor.fails("a computation has no name"));
        }
        if self.cursor.takes("(") {
            self.cursor.raw(b")");
            self.cursor.wants(")", "the parameters of a computation have no end")?;
            self.cursor.wants("->", "a computation has no result")?;
            shape::read(&mut self.cursor, self.budget)?;
        }
        self.attributes()?;
        self.cursor.wants("{", "a computation has no instructions")?;
        self.budget.one::<Computation>()?;
        self.budget.take(name.len())?;
        let position = self.module.computations.len();
        let mut computation = Computation {
            name: name.to_owned(),
            id: u64::try_from(position).unwrap_or(u64::MAX).saturating_add(1),
            ..Computation::default()
        };
        let mut ids: HashMap<&'a str, u64> = HashMap::new();
        let mut operands: Vec<Vec<&'a str>> = Vec::new();
        while !self.cursor.takes("}") {
            let mut written = ParsedInstruction::read(&mut self.cursor, self.budget)?;
            self.instructions += 1;
            written.instruction.id = self.instructions;
            // What finds an instruction by its number and its name.
            self.budget.take(64 + 64)?;
            if ids.insert(written.name, self.instructions).is_some() {
                return Err(self.cursor.fails("two instructions of a computation have one name"));
            }
            if written.is_root {
                computation.root = self.instructions;
            }
            if !written.called.is_empty() {
                self.calls
                    .push((position, computation.instructions.len(), written.called));
            }
            operands.push(written.operands);
            computation.instructions.push(written.instruction);
        }
        if computation.root == 0 {
            // Without a mark it is the last one.
            computation.root = computation.instructions.last().map_or(0, |last| last.id);
        }
        for (instruction, names) in computation.instructions.iter_mut().zip(operands) {
            let numbers = names.into_iter().map(|name| ids.get(name).copied());
            let numbers: Option<Vec<u64>> = numbers.collect();
            instruction.operands = numbers.ok_or_else(|| {
                self.cursor
                    .fails("an instruction takes the value of one that is not there")
            })?;
        }
        self.attributes()?;
        if is_entry {
            self.entry = computation.id;
        }
        self.module.computations.push(computation);
        Ok(())
    }

    /// What follows a computation, e.g. the thread that runs it.
    fn attributes(&mut self) -> Result<(), ReadError> {
        while self.cursor.takes(",") {
            self.cursor.attribute()?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Module, ReadError> {
        if self.entry == 0 {
            return Err(self.cursor.fails("no computation is marked ENTRY"));
        }
        let mut ids = HashMap::new();
        for computation in &self.module.computations {
            if ids.insert(computation.name.clone(), computation.id).is_some() {
                return Err(self.cursor.fails("two computations have one name"));
            }
        }
        let mut fused = Vec::new();
        for (computation, at, names) in std::mem::take(&mut self.calls) {
            let called: Option<Vec<u64>> = names.into_iter().map(|name| ids.get(name).copied()).collect();
            let called = called.ok_or_else(|| {
                self.cursor
                    .fails("an instruction calls a computation that is not there")
            })?;
            let of = self.module.computations.get_mut(computation);
            if let Some(instruction) = of.and_then(|of| of.instructions.get_mut(at)) {
                if instruction.opcode == "fusion" {
                    fused.extend_from_slice(&called);
                }
                instruction.called = called;
            }
        }
        for id in fused {
            let position = usize::try_from(id).unwrap_or(usize::MAX).saturating_sub(1);
            if let Some(computation) = self.module.computations.get_mut(position) {
                computation.is_fusion = true;
            }
        }
        self.module.computations = order::callees_first(self.module.computations, self.entry);
        self.module.index(self.entry);
        Ok(self.module)
    }
}

#[cfg(test)]
mod tests;
