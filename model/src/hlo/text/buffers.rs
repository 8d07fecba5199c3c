//! The plan of a module's memory as text: `allocation 0: size 64, parameter 0, ...:` and the values
//! in each.

use super::attributes::{inside, number, numbers};
use super::cursor::Cursor;
use crate::hlo::budget::Budget;
use crate::hlo::{Allocation, BufferAssignment, Buffers, LogicalBuffer, ReadError};

/// What may stand behind the last allocation: the sum of all.
pub const TOTAL: &str = "Total bytes used:";

/// Reads a plan, which does not say when values begin and end; `None` of one that is cut off: in a
/// line, or whose sum is another.
pub(super) fn read(text: &str, budget: &mut Budget) -> Result<Option<Buffers>, ReadError> {
    let mut found = Buffers::default();
    for line in text.lines() {
        if let Some(total) = line.strip_prefix(TOTAL) {
            let total = total.split_whitespace().next().map_or(0, number);
            let sum = found.allocations.iter().map(|one| one.bytes);
            return Ok((sum.fold(0, u64::saturating_add) == total).then_some(found));
        }
        if let Some(allocation) = line.strip_prefix("allocation ") {
            budget.one::<Allocation>()?;
            found.allocations.push(allocation_of(allocation));
        } else if let Some(value) = line.trim_start().strip_prefix("value: <") {
            budget.one::<LogicalBuffer>()?;
            budget.one::<BufferAssignment>()?;
            let Some((logical, assigned)) = value_of(value, budget)? else {
                continue;
            };
            if let Some(allocation) = found.allocations.last_mut() {
                allocation.assigned.push(assigned);
            }
            found.logical.push(logical);
        }
    }
    Ok((text.ends_with('\n') && !found.allocations.is_empty()).then_some(found))
}

/// `0: size 64, parameter 0, shape |f32[4,4]| at ShapeIndex {}, maybe-live-out:`.
fn allocation_of(line: &str) -> Allocation {
    let (index, rest) = line.split_once(':').unwrap_or((line, ""));
    let mut found = Allocation {
        index: number(index),
        ..Allocation::default()
    };
    let mut parts = Cursor::new(rest);
    loop {
        let part = parts.raw(b",").trim();
        let part = part.strip_suffix(':').unwrap_or(part);
        match part.split_once(' ').unwrap_or((part, "")) {
            ("size", bytes) => found.bytes = number(bytes),
            ("color", color) => found.color = number(color),
            ("parameter", parameter) => {
                found.is_parameter = true;
                found.parameter = number(parameter);
            }
            ("constant", _) => found.is_constant = true,
            ("thread-local", _) => found.is_thread_local = true,
            ("maybe-live-out", _) => found.is_live_out = true,
            _ => {}
        }
        if !parts.takes(",") {
            return found;
        }
    }
}

/// `52 arg_tuple.3{1} (phi) @0> (size=64,offset=0): f32[4,4]{1,0}`.
fn value_of(line: &str, budget: &mut Budget) -> Result<Option<(LogicalBuffer, BufferAssignment)>, ReadError> {
    let parts = line
        .split_once('>')
        .and_then(|(value, location)| Some((value.split_once(' ')?, location)));
    let Some(((id, value), location)) = parts else {
        return Ok(None);
    };
    let (value, color) = value.rsplit_once(" @").unwrap_or((value, ""));
    let value = value.strip_suffix(" (phi)").unwrap_or(value);
    let (name, part) = value
        .find('{')
        .and_then(|at| value.split_at_checked(at))
        .unwrap_or((value, ""));
    budget.take(name.len())?;
    let (mut bytes, mut offset) = (0, 0);
    let mut figures = Cursor::new(location.trim_start().trim_start_matches('('));
    while let Some((key, value)) = figures.pair() {
        match key {
            "size" => bytes = number(value),
            "offset" => offset = number(value),
            _ => {}
        }
    }
    let logical = LogicalBuffer {
        id: number(id),
        bytes,
        instruction: 0,
        instruction_name: name.to_owned(),
        shape_index: numbers(inside(part), budget)?,
        color: number(color),
    };
    let assigned = BufferAssignment {
        buffer: logical.id,
        offset,
        bytes,
    };
    Ok(Some((logical, assigned)))
}
