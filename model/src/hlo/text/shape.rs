//! Shapes: `f32[2,3]{1,0:T(8,128)S(5)}`, or a tuple of shapes.

use super::cursor::Cursor;
use crate::hlo::budget::Budget;
use crate::hlo::shape::MAX_TUPLE_DEPTH;
use crate::hlo::{ElementType, ReadError, Shape};

pub(super) fn read(cursor: &mut Cursor<'_>, budget: &mut Budget) -> Result<Shape, ReadError> {
    nested(cursor, budget, 0)
}

fn nested(cursor: &mut Cursor<'_>, budget: &mut Budget, depth: usize) -> Result<Shape, ReadError> {
    if depth >= MAX_TUPLE_DEPTH {
        return Err(ReadError::TooDeep { limit: MAX_TUPLE_DEPTH });
    }
    let mut shape = Shape::default();
    if cursor.takes("(") {
        shape.element = ElementType::TUPLE;
        while !cursor.takes(")") {
            budget.one::<Shape>()?;
            shape.tuple.push(nested(cursor, budget, depth + 1)?);
            if !cursor.takes(",") {
                cursor.wants(")", "a tuple of shapes has no end")?;
                break;
            }
        }
        return Ok(shape);
    }
    let word = cursor.word();
    // Memory that is handed on: `b(f32[2])`.
    if word == "b" && cursor.takes("(") {
        nested(cursor, budget, depth + 1)?;
        cursor.wants(")", "a shape has no end")?;
        shape.element = ElementType::named("buffer").unwrap_or_default();
        return Ok(shape);
    }
    shape.element = ElementType::named(word).ok_or_else(|| cursor.fails("a shape has elements of an unknown type"))?;
    cursor.wants("[", "a shape has no dimensions")?;
    for length in cursor
        .raw(b"]")
        .split(',')
        .map(str::trim)
        .filter(|length| !length.is_empty())
    {
        budget.one::<u64>()?;
        // The largest length that it may have; of one without a bound nothing is known.
        let length = length.strip_prefix("<=").unwrap_or(length);
        shape.dimensions.push(length.parse().unwrap_or(0));
    }
    cursor.wants("]", "the dimensions of a shape have no end")?;
    // A blank in front of a brace: it is that of a computation.
    if cursor.next() == Some(b'{') {
        cursor.wants("{", "a layout has no begin")?;
        layout(cursor.raw(b"}"), &mut shape);
        cursor.wants("}", "a layout has no end")?;
    }
    Ok(shape)
}

/// `1,0:T(8,128)(2,1)E(4)S(5)`: what is not the order of dimensions has a letter.
fn layout(text: &str, shape: &mut Shape) {
    let mut rest = text.split_once(':').map_or("", |(_, rest)| rest);
    while let Some((letter, behind)) = rest.split_once('(') {
        let mut inner = Cursor::new(behind);
        let value = inner.raw(b")");
        match letter.chars().last() {
            Some('E') => shape.packed_bits = value.parse().unwrap_or(0),
            Some('S') => shape.memory_space = value.parse().unwrap_or(0),
            _ => {}
        }
        rest = behind.get(value.len().saturating_add(1)..).unwrap_or_default();
    }
}
