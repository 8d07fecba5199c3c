//! Numbers of a column in memory, as narrow as they allow.

use std::ops::Range;

use crate::hdf5_io::Number;
use flopwatch_model::index;

/// Numbers of a column, as the 64 bits that a report has them in.
#[derive(Debug)]
pub(super) enum Numbers {
    /// So many zeros, which is what an absent field becomes.
    Zeros(usize),
    /// Each fits 32 bits.
    Narrow(Vec<u32>),
    /// Some do not, such as those below zero.
    Wide(Vec<u64>),
}

impl Default for Numbers {
    fn default() -> Self {
        Self::Zeros(0)
    }
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Self::Zeros(count) => *count,
            Self::Narrow(values) => values.len(),
            Self::Wide(values) => values.len(),
        }
    }

    pub(super) fn push(&mut self, value: u64) {
        match (&mut *self, u32::try_from(value)) {
            (Self::Zeros(count), Ok(0)) => *count += 1,
            (Self::Narrow(values), Ok(value)) => values.push(value),
            (Self::Wide(values), _) => values.push(value),
            (Self::Zeros(_) | Self::Narrow(_), _) => {
                self.widen(value);
                self.push(value);
            }
        }
    }

    /// Makes room for numbers as large as `value`.
    fn widen(&mut self, value: u64) {
        let is_narrow = u32::try_from(value).is_ok();
        *self = match std::mem::take(self) {
            Self::Zeros(count) if is_narrow => Self::Narrow(vec![0; count]),
            Self::Zeros(count) => Self::Wide(vec![0; count]),
            Self::Narrow(values) if !is_narrow => Self::Wide(values.into_iter().map(u64::from).collect()),
            same => same,
        };
    }

    /// Gives back the memory beyond its numbers.
    pub(super) fn shrink(&mut self) {
        match self {
            Self::Zeros(_) => {}
            Self::Narrow(values) => values.shrink_to_fit(),
            Self::Wide(values) => values.shrink_to_fit(),
        }
    }

    /// Adds the numbers of `other` behind its own.
    pub(super) fn append(&mut self, other: Self) {
        if self.len() == 0 {
            *self = other;
            return;
        }
        match &other {
            Self::Zeros(_) => {}
            Self::Narrow(_) => self.widen(1),
            Self::Wide(_) => self.widen(u64::MAX),
        }
        match (self, other) {
            (Self::Zeros(count), other) => *count += other.len(),
            (Self::Narrow(values), Self::Narrow(mut more)) => values.append(&mut more),
            (Self::Narrow(values), other) => values.resize(values.len() + other.len(), 0),
            (Self::Wide(values), Self::Zeros(more)) => values.resize(values.len() + more, 0),
            (Self::Wide(values), Self::Narrow(more)) => values.extend(more.into_iter().map(u64::from)),
            (Self::Wide(values), Self::Wide(mut more)) => values.append(&mut more),
        }
    }

    /// Replaces each number by the one at its place in `numbers`.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        let of = |value: usize| numbers.get(value).copied().unwrap_or(0);
        match self {
            Self::Zeros(count) if of(0) != 0 => *self = Self::Narrow(vec![of(0); *count]),
            Self::Zeros(_) => {}
            Self::Narrow(values) => values.iter_mut().for_each(|value| *value = of(index(*value))),
            Self::Wide(values) => values.iter_mut().for_each(|value| *value = 0),
        }
    }

    /// The bits of the number of a row.
    pub(super) fn get(&self, row: usize) -> u64 {
        match self {
            Self::Zeros(_) => 0,
            Self::Narrow(values) => values.get(row).copied().map_or(0, u64::from),
            Self::Wide(values) => values.get(row).copied().unwrap_or(0),
        }
    }

    /// How many of its numbers are `limit` or more.
    pub(super) fn count_from(&self, limit: u64) -> usize {
        match self {
            Self::Zeros(count) => usize::from(limit == 0) * count,
            Self::Narrow(values) => values.iter().filter(|value| u64::from(**value) >= limit).count(),
            Self::Wide(values) => values.iter().filter(|value| **value >= limit).count(),
        }
    }

    /// Writes the numbers of `rows` to `out`, as signed ones.
    pub(super) fn read<T: Number>(&self, rows: Range<usize>, out: &mut [T]) {
        match self {
            Self::Zeros(_) => out.fill(T::default()),
            Self::Narrow(values) => convert(values.get(rows), out, |value| T::from_signed(i64::from(*value))),
            Self::Wide(values) => convert(values.get(rows), out, |value| T::from_signed(value.cast_signed())),
        }
    }

    /// Writes the bits of `rows` to `out`.
    pub(super) fn read_bits(&self, rows: Range<usize>, out: &mut [u64]) {
        match self {
            Self::Zeros(_) => out.fill(0),
            Self::Narrow(values) => convert(values.get(rows), out, |value| u64::from(*value)),
            Self::Wide(values) => convert(values.get(rows), out, |value| *value),
        }
    }
}

fn convert<V, T>(values: Option<&[V]>, out: &mut [T], convert: impl Fn(&V) -> T) {
    for (out, value) in out.iter_mut().zip(values.unwrap_or_default()) {
        *out = convert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(numbers: &Numbers) -> Vec<u64> {
        (0..numbers.len()).map(|row| numbers.get(row)).collect()
    }

    #[test]
    fn numbers_of_any_width_stay_what_they_are() {
        let pieces = [
            &[0, 0][..],
            &[],
            &[7, 0],
            &[0],
            &[u64::MAX, 1 << 40],
            &[3],
            &[0, 0],
            &[u64::from(u32::MAX)],
        ];
        let mut pushed = Numbers::default();
        let mut appended = Numbers::default();
        let mut expected = Vec::new();
        for piece in pieces {
            let mut part = Numbers::default();
            for value in piece {
                pushed.push(*value);
                part.push(*value);
            }
            appended.append(part);
            expected.extend_from_slice(piece);
            assert_eq!(all(&pushed), expected);
            assert_eq!(all(&appended), expected);
        }
        let mut signed = vec![0_i64; 3];
        pushed.read(4..7, &mut signed);
        assert_eq!(signed, [0, -1, 1 << 40]);
        let mut narrow = vec![0_u32; 3];
        pushed.read(4..7, &mut narrow);
        assert_eq!(narrow, [0, 0, u32::MAX]);
        let mut bits = vec![0; 2];
        pushed.read_bits(5..7, &mut bits);
        assert_eq!(bits, [u64::MAX, 1 << 40]);
        assert_eq!(pushed.count_from(8), 3);
        assert_eq!(Numbers::Zeros(4).count_from(0), 4);
    }
}
