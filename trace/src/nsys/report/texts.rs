//! Texts of a column in memory, each once.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use flopwatch_model::index;

/// Texts, each once, by number. Number 0 is the empty one.
#[derive(Debug)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// Where each ends in `bytes`.
    ends: Vec<usize>,
    by_text: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Default for Texts {
    fn default() -> Self {
        let mut texts = Self {
            bytes: Vec::new(),
            ends: Vec::new(),
            by_text: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        };
        texts.number(b"");
        texts
    }
}

impl Texts {
    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The text of a number; an empty one where there is none.
    pub(super) fn get(&self, number: u64) -> &[u8] {
        usize::try_from(number).map_or(&[], |number| text(&self.bytes, &self.ends, number))
    }

    /// The number of a text.
    pub(super) fn number(&mut self, new: &[u8]) -> u32 {
        let Self {
            bytes,
            ends,
            by_text,
            hasher,
        } = self;
        let hash = hasher.hash_one(new);
        let known = by_text.find(hash, |number| text(bytes, ends, index(*number)) == new);
        if let Some(number) = known {
            return *number;
        }
        let number = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(new);
        ends.push(bytes.len());
        by_text.insert_unique(hash, number, |number| {
            hasher.hash_one(text(bytes, ends, index(*number)))
        });
        number
    }

    /// Takes the texts of `other` in: its numbers, by what they were.
    pub(super) fn merge(&mut self, other: &Self) -> Vec<u32> {
        let all = 0..other.ends.len();
        all.map(|number| self.number(text(&other.bytes, &other.ends, number)))
            .collect()
    }
}

fn text<'b>(bytes: &'b [u8], ends: &[usize], number: usize) -> &'b [u8] {
    let begin = number.checked_sub(1).and_then(|before| ends.get(before));
    let end = ends.get(number).copied().unwrap_or(0);
    bytes.get(begin.copied().unwrap_or(0)..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Numbers;
    use super::*;

    #[test]
    fn texts_have_one_number_each_and_keep_it_when_they_are_merged() {
        let mut first = Texts::default();
        assert_eq!(
            [&b"a"[..], b"b", b"", b"a"].map(|text| first.number(text)),
            [1, 2, 0, 1]
        );
        let mut second = Texts::default();
        assert_eq!([&b"c"[..], b"a"].map(|text| second.number(text)), [1, 2]);
        let numbers = first.merge(&second);
        assert_eq!(numbers, [0, 3, 1]);
        let mut column = Numbers::default();
        for number in [0, 1, 2] {
            column.push(number);
        }
        column.renumber(&numbers);
        let texts: Vec<&[u8]> = (0..3).map(|row| first.get(column.get(row))).collect();
        assert_eq!(texts, [&b""[..], b"c", b"a"]);
        assert_eq!(first.get(99), b"");
    }
}
