//! Instructions:
//! `ROOT %dot.2 = f32[2,2]{1,0} dot(%x, %y), lhs_contracting_dims={1}, metadata={op_name="dot"}`.

use super::attributes::{convolution, inside, names, number, numbers, text, window};
use super::cursor::{Cursor, is_of_name};
use super::shape;
use crate::hlo::budget::Budget;
use crate::hlo::{Instruction, ReadError};

/// An instruction with the names that it has instead of numbers.
pub(super) struct ParsedInstruction<'a> {
    pub(super) name: &'a str,
    pub(super) is_root: bool,
    pub(super) operands: Vec<&'a str>,
    pub(super) called: Vec<&'a str>,
    pub(super) instruction: Instruction,
}

impl<'a> ParsedInstruction<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>, budget: &mut Budget) -> Result<Self, ReadError> {
        budget.one::<Self>()?;
        let is_root = cursor.takes("ROOT ");
        let name = cursor.name();
        cursor.wants("=", "an instruction has no name, or no value")?;
        let shape = shape::read(cursor, budget)?;
        let opcode = cursor.word();
        if name.is_empty() || opcode.is_empty() {
            return Err(cursor.fails("an instruction has no name, or does nothing"));
        }
        budget.take(name.len() + opcode.len())?;
        let mut found = Self {
            name,
            is_root,
            operands: Vec::new(),
            called: Vec::new(),
            instruction: Instruction {
                name: name.to_owned(),
                opcode: opcode.to_owned(),
                shape,
                ..Instruction::default()
            },
        };
        found.operands(cursor, budget)?;
        while cursor.takes(",") {
            let (key, value) = cursor.attribute()?;
            found.take(key, value, budget)?;
        }
        Ok(found)
    }

    /// `(%x, f32[2] %y)`: operands may have their shapes. A parameter has its number there, and a
    /// constant its value.
    fn operands(&mut self, cursor: &mut Cursor<'a>, budget: &mut Budget) -> Result<(), ReadError> {
        cursor.wants("(", "an instruction has no operands")?;
        match self.instruction.opcode.as_str() {
            "parameter" => self.instruction.parameter = number(cursor.raw(b")")),
            "constant" => drop(cursor.raw(b")")),
            _ => {
                while !cursor.takes(")") {
                    let operand = cursor.raw(b",)").trim();
                    let parts = operand.bytes().rposition(|byte| !is_of_name(byte));
                    let name = parts.map_or(operand, |at| operand.get(at + 1..).unwrap_or_default());
                    budget.one::<&str>()?;
                    budget.one::<u64>()?;
                    self.operands.push(name);
                    if !cursor.takes(",") {
                        return cursor.wants(")", "the operands of an instruction have no end");
                    }
                }
                return Ok(());
            }
        }
        cursor.wants(")", "the operands of an instruction have no end")
    }

    fn take(&mut self, key: &str, value: &'a str, budget: &mut Budget) -> Result<(), ReadError> {
        let of = &mut self.instruction;
        match key {
            "calls"
            | "to_apply"
            | "condition"
            | "branch_computations"
            | "true_computation"
            | "false_computation"
            | "called_computations"
            | "select"
            | "scatter" => self.called.extend(names(value, budget)?),
            // A loop's body stands first in messages.
            "body" => {
                self.called.splice(0..0, names(value, budget)?);
            }
            "kind" if of.opcode == "fusion" => of.fusion_kind = text(value, budget)?,
            "index" => of.tuple_index = number(value),
            "dimensions" | "iota_dimension" => of.dimensions = numbers(value, budget)?,
            "lhs_contracting_dims" => of.contracting = numbers(value, budget)?,
            "window" => of.window = window(value, budget)?,
            "dim_labels" => of.convolution = convolution(value, budget)?,
            "feature_group_count" => of.feature_groups = number(value),
            "batch_group_count" => of.batch_groups = number(value),
            "fft_length" => of.fft_length = numbers(value, budget)?,
            "custom_call_target" => of.custom_call_target = text(value, budget)?,
            "backend_config" => of.backend_config = text(value, budget)?,
            "metadata" => self.metadata(inside(value), budget)?,
            _ => {}
        }
        Ok(())
    }

    fn metadata(&mut self, value: &'a str, budget: &mut Budget) -> Result<(), ReadError> {
        let mut pairs = Cursor::new(value);
        while let Some((key, value)) = pairs.pair() {
            match key {
                "op_name" => self.instruction.op_name = text(value, budget)?,
                "source_file" => self.instruction.source_file = text(value, budget)?,
                "source_line" => self.instruction.source_line = number(value),
                "stack_frame_id" => self.instruction.stack_frame = number(value),
                _ => {}
            }
        }
        Ok(())
    }
}
