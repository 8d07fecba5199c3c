//! Shapes of values: `f32[128,256]`, or a tuple of shapes.

use std::fmt;

use super::ReadError;
use super::budget::Budget;
use crate::wire::Message;

/// Levels of tuples in tuples.
pub(super) const MAX_TUPLE_DEPTH: usize = 32;

/// Type of a value's elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementType(u64);

/// What a type's elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elements {
    Float,
    Complex,
    Other,
}

/// `PrimitiveType`: number, name, bits of an element in memory, what it is. Values of less than a
/// byte take one, unless their layout packs them.
const TYPES: &[(u64, &str, u64, Elements)] = &[
    (1, "pred", 8, Elements::Other),
    (2, "s8", 8, Elements::Other),
    (3, "s16", 16, Elements::Other),
    (4, "s32", 32, Elements::Other),
    (5, "s64", 64, Elements::Other),
    (6, "u8", 8, Elements::Other),
    (7, "u16", 16, Elements::Other),
    (8, "u32", 32, Elements::Other),
    (9, "u64", 64, Elements::Other),
    (10, "f16", 16, Elements::Float),
    (11, "f32", 32, Elements::Float),
    (12, "f64", 64, Elements::Float),
    (13, "tuple", 0, Elements::Other),
    (14, "opaque", 0, Elements::Other),
    (15, "c64", 64, Elements::Complex),
    (16, "bf16", 16, Elements::Float),
    (17, "token", 0, Elements::Other),
    (18, "c128", 128, Elements::Complex),
    (19, "f8e5m2", 8, Elements::Float),
    (20, "f8e4m3fn", 8, Elements::Float),
    (21, "s4", 8, Elements::Other),
    (22, "u4", 8, Elements::Other),
    (23, "f8e4m3b11fnuz", 8, Elements::Float),
    (24, "f8e5m2fnuz", 8, Elements::Float),
    (25, "f8e4m3fnuz", 8, Elements::Float),
    (26, "s2", 8, Elements::Other),
    (27, "u2", 8, Elements::Other),
    (28, "f8e4m3", 8, Elements::Float),
    (29, "f8e3m4", 8, Elements::Float),
    (30, "s1", 8, Elements::Other),
    (31, "u1", 8, Elements::Other),
    (32, "f4e2m1fn", 8, Elements::Float),
    (33, "f8e8m0fnu", 8, Elements::Float),
    (34, "buffer", 0, Elements::Other),
];

impl ElementType {
    /// Type of tuples.
    pub const TUPLE: Self = Self(13);

    /// The type of that name, e.g. `bf16`.
    pub fn named(name: &str) -> Option<Self> {
        TYPES.iter().find(|known| known.1 == name).map(|known| Self(known.0))
    }

    fn known(self) -> Option<&'static (u64, &'static str, u64, Elements)> {
        TYPES.iter().find(|known| known.0 == self.0)
    }

    /// Its name, as HLO texts have it.
    pub fn name(self) -> &'static str {
        self.known().map_or("invalid", |known| known.1)
    }

    /// Bits of an element in memory; 0 of what is no array.
    pub fn bits(self) -> u64 {
        self.known().map_or(0, |known| known.2)
    }

    /// Whether elements are floating-point numbers, complex ones included.
    pub fn is_float(self) -> bool {
        self.known().is_some_and(|known| known.3 != Elements::Other)
    }
}

/// Shape of a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Type of its elements.
    pub element: ElementType,
    /// Length of each dimension, the largest that it may be where that is not fixed.
    pub dimensions: Vec<u64>,
    /// The shapes of a tuple.
    pub tuple: Vec<Self>,
    /// Bits of an element where the layout packs elements; 0 where it does not.
    pub packed_bits: u64,
    /// Memory in which it is, as the compiler numbers them; 0 is the ordinary one.
    pub memory_space: u64,
}

impl Shape {
    /// An array of that shape.
    pub fn array(element: ElementType, dimensions: &[u64]) -> Self {
        Self {
            element,
            dimensions: dimensions.to_vec(),
            ..Self::default()
        }
    }

    /// `ShapeProto`: type 2, dimensions 3, shapes of a tuple 4, layout 5 (packed bits 7, memory
    /// space 8).
    pub(super) fn read(message: Message<'_>, budget: &mut Budget) -> Result<Self, ReadError> {
        Self::nested(message, budget, 0)
    }

    fn nested(message: Message<'_>, budget: &mut Budget, depth: usize) -> Result<Self, ReadError> {
        if depth >= MAX_TUPLE_DEPTH {
            return Err(ReadError::TooDeep { limit: MAX_TUPLE_DEPTH });
        }
        let mut shape = Self::default();
        for field in message.fields() {
            let (number, value) = field?;
            match (number, value.message()) {
                (2, _) => shape.element = ElementType(value.number().unwrap_or(0)),
                (3, _) => budget.numbers(value, &mut shape.dimensions)?,
                (4, Some(part)) => {
                    budget.one::<Self>()?;
                    shape.tuple.push(Self::nested(part, budget, depth + 1)?);
                }
                (5, Some(layout)) => {
                    for field in layout.fields() {
                        match field? {
                            (7, value) => shape.packed_bits = value.number().unwrap_or(0),
                            (8, value) => shape.memory_space = value.number().unwrap_or(0),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(shape)
    }

    /// Whether it is a tuple.
    pub fn is_tuple(&self) -> bool {
        self.element == ElementType::TUPLE
    }

    /// Elements of an array; 1 of a scalar, 0 of what is no array.
    pub fn elements(&self) -> u64 {
        if self.element.bits() == 0 {
            return 0;
        }
        self.dimensions
            .iter()
            .fold(1, |product: u64, length| product.saturating_mul(*length))
    }

    /// Bytes of its elements, of all arrays of a tuple together. Padding of tiled layouts and
    /// tables of a tuple's pointers are not among them.
    pub fn bytes(&self) -> u64 {
        if self.is_tuple() {
            let parts = self.tuple.iter().map(Self::bytes);
            return parts.fold(0, u64::saturating_add);
        }
        let bits = if self.packed_bits == 0 {
            self.element.bits()
        } else {
            self.packed_bits
        };
        self.elements().saturating_mul(bits).div_ceil(8)
    }

    /// The first array in it, itself where it is one.
    pub fn first_array(&self) -> Option<&Self> {
        let mut shape = self;
        while shape.is_tuple() {
            shape = shape.tuple.first()?;
        }
        Some(shape)
    }

    /// The part of a tuple that `index` names, level by level; itself for an empty one.
    pub fn part(&self, index: &[u64]) -> Option<&Self> {
        index
            .iter()
            .try_fold(self, |shape, at| shape.tuple.get(usize::try_from(*at).ok()?))
    }
}

/// `f32[128,256]` or `(f32[2], s32[])`, a tuple of many shapes cut.
impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_SHOWN_ELEMENTS: usize = 8;
        if self.is_tuple() {
            out.write_str("(")?;
            for (at, part) in self.tuple.iter().take(MAX_SHOWN_ELEMENTS).enumerate() {
                let comma = if at == 0 { "" } else { ", " };
                write!(out, "{comma}{part}")?;
            }
            if self.tuple.len() > MAX_SHOWN_ELEMENTS {
                write!(out, ", and {} more", self.tuple.len() - MAX_SHOWN_ELEMENTS)?;
            }
            return out.write_str(")");
        }
        if self.element.bits() == 0 {
            return out.write_str(self.element.name());
        }
        let dimensions: Vec<String> = self.dimensions.iter().map(u64::to_string).collect();
        write!(out, "{}[{}]", self.element.name(), dimensions.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(element: &str, dimensions: &[u64]) -> Shape {
        Shape::array(ElementType::named(element).unwrap(), dimensions)
    }

    #[test]
    fn shapes_have_elements_bytes_and_a_text() {
        let matrix = array("bf16", &[3, 5]);
        assert_eq!((matrix.elements(), matrix.bytes()), (15, 30));
        assert_eq!(matrix.to_string(), "bf16[3,5]");
        let scalar = array("s32", &[]);
        let tuple = Shape {
            element: ElementType::TUPLE,
            tuple: vec![matrix.clone(), scalar.clone()],
            ..Shape::default()
        };
        assert_eq!((tuple.elements(), tuple.bytes()), (0, 34));
        assert_eq!(tuple.to_string(), "(bf16[3,5], s32[])");
        assert_eq!(tuple.part(&[1]), Some(&scalar));
        assert_eq!(tuple.part(&[2]), None);
        let packed = Shape {
            packed_bits: 4,
            ..array("s4", &[5])
        };
        assert_eq!((array("s4", &[5]).bytes(), packed.bytes()), (5, 3));
        assert_eq!(array("f32", &[u64::MAX, 9]).bytes(), u64::MAX.div_ceil(8));
    }
}
