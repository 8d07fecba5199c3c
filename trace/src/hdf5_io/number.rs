//! Numbers of a table's field, whatever their type there and their type here.

use hdf5::types::{FloatSize, H5Type, TypeDescriptor};

use super::chunks::{Block, Field};

/// Numbers that a stored number can be read as. As in HDF5's own conversions, what does not fit
/// saturates.
pub(crate) trait Number: H5Type + Copy + Default + Send + Sync {
    fn from_unsigned(value: u64) -> Self;
    fn from_signed(value: i64) -> Self;
    /// `None` where a fraction cannot be read as such a number.
    fn from_float(value: f64) -> Option<Self>;
    /// Lowest bytes that any number of this type has room for.
    const CAPACITY_BYTES: usize;
    /// A number of so few bytes that it has room.
    fn from_few(value: u32) -> Self;
    /// A number that is known to have room.
    fn from_many(value: u64) -> Self;
}

impl Number for u32 {
    fn from_unsigned(value: u64) -> Self {
        Self::try_from(value).unwrap_or(Self::MAX)
    }

    fn from_signed(value: i64) -> Self {
        Self::try_from(value.max(0)).unwrap_or(Self::MAX)
    }

    fn from_float(_: f64) -> Option<Self> {
        None
    }

    const CAPACITY_BYTES: usize = 4;

    fn from_few(value: u32) -> Self {
        value
    }

    fn from_many(value: u64) -> Self {
        Self::from_unsigned(value)
    }
}

impl Number for u64 {
    fn from_unsigned(value: u64) -> Self {
        value
    }

    fn from_signed(value: i64) -> Self {
        Self::try_from(value).unwrap_or(0)
    }

    fn from_float(_: f64) -> Option<Self> {
        None
    }

    const CAPACITY_BYTES: usize = 8;

    fn from_few(value: u32) -> Self {
        u64::from(value)
    }

    fn from_many(value: u64) -> Self {
        value
    }
}

impl Number for i64 {
    fn from_unsigned(value: u64) -> Self {
        Self::try_from(value).unwrap_or(Self::MAX)
    }

    fn from_signed(value: i64) -> Self {
        value
    }

    fn from_float(_: f64) -> Option<Self> {
        None
    }

    const CAPACITY_BYTES: usize = 7;

    fn from_few(value: u32) -> Self {
        i64::from(value)
    }

    fn from_many(value: u64) -> Self {
        value.cast_signed()
    }
}

impl Number for f64 {
    fn from_unsigned(value: u64) -> Self {
        flopwatch_model::approximate(u128::from(value))
    }

    fn from_signed(value: i64) -> Self {
        let size = flopwatch_model::approximate(u128::from(value.unsigned_abs()));
        if value < 0 { -size } else { size }
    }

    fn from_float(value: f64) -> Option<Self> {
        Some(value)
    }

    const CAPACITY_BYTES: usize = 0;

    fn from_few(value: u32) -> Self {
        f64::from(value)
    }

    fn from_many(value: u64) -> Self {
        Self::from_unsigned(value)
    }
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unsigned,
    Signed,
    Float,
    /// A string of variable length.
    Text,
    /// What no reader asks for.
    Other,
}

impl Kind {
    pub(super) fn of(stored: &TypeDescriptor) -> Self {
        match stored {
            TypeDescriptor::Integer(_) => Self::Signed,
            TypeDescriptor::Enum(kind) if kind.signed => Self::Signed,
            TypeDescriptor::Unsigned(_) | TypeDescriptor::Boolean | TypeDescriptor::Enum(_) => Self::Unsigned,
            TypeDescriptor::Float(FloatSize::U4 | FloatSize::U8) => Self::Float,
            TypeDescriptor::VarLenAscii | TypeDescriptor::VarLenUnicode => Self::Text,
            _ => Self::Other,
        }
    }
}

/// Reads the field of the first rows of `block` into all of `out`, with `words` for room; `None`
/// where that cannot be.
pub(super) fn read<T: Number>(
    block: &Block,
    field: Field,
    kind: Kind,
    words: &mut Vec<u64>,
    out: &mut [T],
) -> Option<()> {
    if matches!(kind, Kind::Unsigned | Kind::Signed)
        && let Some(planes) = block.planes(field, out.len())
        && merge(&planes, field.size, kind, out).is_some()
    {
        return Some(());
    }
    words.resize(out.len(), 0);
    block.words(field, words);
    convert(words, field.size, kind, out)
}

/// Whether all bytes are `value`. In blocks, as a comparison that may end at any byte is done byte
/// by byte.
fn is_all(plane: &[u8], value: u8) -> bool {
    plane
        .chunks(64)
        .all(|block| block.iter().fold(0, |differing, byte| differing | (byte ^ value)) == 0)
}

/// Puts numbers together from their bytes, which lie apart, the lowest ones first; `None` where not
/// all have room or are as they look.
fn merge<T: Number>(planes: &[&[u8]; 8], size: usize, kind: Kind, out: &mut [T]) -> Option<()> {
    // Upper bytes of most columns are nothing but zeros.
    let above = planes.iter().rev().take_while(|plane| is_all(plane, 0));
    let used = planes.len() - above.count();
    let top = planes.get(used.saturating_sub(1))?;
    if used > T::CAPACITY_BYTES || (kind == Kind::Signed && used == size && top.iter().any(|byte| *byte >= 0x80)) {
        return None;
    }
    let [b0, b1, b2, b3, b4, b5, b6, b7] = planes;
    // Columns of one value are the next in number.
    let first = planes.map(|plane| plane.first().copied().unwrap_or_default());
    let differs = |(plane, value): (&&[u8], u8)| !is_all(plane, value);
    if !planes.iter().zip(first).take(used).any(differs) {
        out.fill(T::from_many(u64::from_le_bytes(first)));
        return Some(());
    }
    let word = |(((b0, b1), b2), b3): (((&u8, &u8), &u8), &u8)| u32::from_le_bytes([*b0, *b1, *b2, *b3]);
    let low = b0.iter().zip(*b1).zip(*b2).zip(*b3).map(word);
    let wide = |low: u32, high: u32| T::from_many(u64::from(low) | (u64::from(high) << 32));
    match used {
        0 | 1 => {
            for (out, byte) in out.iter_mut().zip(*b0) {
                *out = T::from_few(u32::from(*byte));
            }
        }
        2 => {
            for (out, (b0, b1)) in out.iter_mut().zip(b0.iter().zip(*b1)) {
                *out = T::from_few(u32::from(u16::from_le_bytes([*b0, *b1])));
            }
        }
        3 | 4 => {
            for (out, low) in out.iter_mut().zip(low) {
                *out = T::from_few(low);
            }
        }
        5 | 6 => {
            for (out, (low, (b4, b5))) in out.iter_mut().zip(low.zip(b4.iter().zip(*b5))) {
                *out = wide(low, u32::from(u16::from_le_bytes([*b4, *b5])));
            }
        }
        _ => {
            let high = b4.iter().zip(*b5).zip(*b6).zip(*b7).map(word);
            for (out, (low, high)) in out.iter_mut().zip(low.zip(high)) {
                *out = wide(low, high);
            }
        }
    }
    Some(())
}

/// Reads little-endian words of `size` bytes; `None` where that cannot be.
fn convert<T: Number>(words: &[u64], size: usize, kind: Kind, out: &mut [T]) -> Option<()> {
    let spare = u32::try_from(64_usize.checked_sub(size * 8)?).ok()?;
    for (out, word) in out.iter_mut().zip(words) {
        *out = match kind {
            Kind::Unsigned => T::from_unsigned(*word),
            Kind::Signed if spare < 64 => T::from_signed((word << spare).cast_signed() >> spare),
            Kind::Float if size == 8 => T::from_float(f64::from_bits(*word))?,
            Kind::Float => T::from_float(f64::from(f32::from_bits(u32::try_from(*word).ok()?)))?,
            _ => return None,
        };
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of `size` bytes as the shuffle filter lays them.
    fn block(values: &[u64], size: usize) -> Block {
        let plane = |byte: usize| values.iter().map(move |value| value.to_le_bytes()[byte]);
        Block::shuffled((0..size).flat_map(plane).collect(), values.len(), size)
    }

    fn as_read<T: Number>(values: &[u64], size: usize, kind: Kind) -> Vec<T> {
        let mut out = vec![T::default(); values.len()];
        let field = Field { offset: 0, size };
        read(&block(values, size), field, kind, &mut Vec::new(), &mut out).unwrap();
        out
    }

    #[test]
    fn numbers_of_any_length_come_together_again() {
        for size in [1, 2, 4, 8] {
            for bytes in 0..=size {
                let max = u64::MAX
                    .checked_shr(64 - 8 * u32::try_from(bytes).unwrap())
                    .unwrap_or(0);
                for values in [
                    vec![max; 70],
                    (0..200).map(|at| (at * 0x0101_0101_0101_0101) & max).collect(),
                ] {
                    assert_eq!(as_read::<u64>(&values, size, Kind::Unsigned), values, "{size} {bytes}");
                    let narrow = values.iter().map(|value| u32::try_from(*value).unwrap_or(u32::MAX));
                    assert!(as_read::<u32>(&values, size, Kind::Unsigned).into_iter().eq(narrow));
                    let signed = values.iter().map(|value| i64::try_from(*value).unwrap_or(i64::MAX));
                    assert!(as_read::<i64>(&values, size, Kind::Unsigned).into_iter().eq(signed));
                }
            }
        }
    }

    #[test]
    fn signs_are_kept_and_what_has_no_room_saturates() {
        let values = [5_u64, 0xFFFF_FFFF, 0x8000_0000, 0x7FFF_FFFF];
        assert_eq!(
            as_read::<i64>(&values, 4, Kind::Signed),
            [5, -1, -0x8000_0000, 0x7FFF_FFFF]
        );
        assert_eq!(as_read::<u32>(&values, 4, Kind::Signed), [5, 0, 0, 0x7FFF_FFFF]);
        assert_eq!(as_read::<i64>(&[u64::MAX, 1], 8, Kind::Unsigned), [i64::MAX, 1]);
        assert_eq!(as_read::<u32>(&[1 << 40, 1], 8, Kind::Unsigned), [u32::MAX, 1]);
    }
}
