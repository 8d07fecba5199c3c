//! Rows and names as one core numbers them while it reads its pieces of a table. Which core reads
//! what is chance, so that the numbers that count are given once all are done, in the order of the
//! table.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::cpu::DomainKey;
use super::names::{NameKey, Text};
use crate::hdf5_io::{StringBudget, TableError};
use flopwatch_model::index;

/// What tells a row of the timeline apart within one table: process, device, context and stream, or
/// a thread.
pub(super) type RowWords = [u64; 4];

/// What a core has numbered, and in which piece it met each first.
#[derive(Debug)]
pub(super) struct FirstSeen<K>(pub(super) Vec<(usize, K)>);

impl<K> Default for FirstSeen<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K> FirstSeen<K> {
    fn next(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// Rows that were met last are found without hashing: events of a few streams follow each other.
const RECENT_ROWS: usize = 64;

/// The rows that a core met.
#[derive(Debug)]
pub(super) struct RowNumbers {
    recent: Vec<(RowWords, u32)>,
    known: HashMap<RowWords, u32>,
    pub(super) first_seen: FirstSeen<RowWords>,
}

impl Default for RowNumbers {
    fn default() -> Self {
        Self {
            recent: vec![([0; 4], u32::MAX); RECENT_ROWS],
            known: HashMap::new(),
            first_seen: FirstSeen::default(),
        }
    }
}

impl RowNumbers {
    /// The number of `row`, met in `piece`; `None` where there would be more than `max`.
    pub(super) fn number(&mut self, piece: usize, row: RowWords, max: u32) -> Option<u32> {
        let [a, b, c, d] = row;
        // Any odd numbers, so that words that differ in few bits part.
        let mixed = a.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ b.wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
            ^ c.wrapping_mul(0x1656_67B1_9E37_79F9)
            ^ d.wrapping_mul(0x27D4_EB2F_1656_67C5);
        let position = usize::try_from(mixed >> (u64::BITS - RECENT_ROWS.ilog2())).unwrap_or_default();
        if let Some((recent, number)) = self.recent.get(position)
            && *recent == row
            && *number != u32::MAX
        {
            return Some(*number);
        }
        let next = self.first_seen.next();
        let number = match self.known.get(&row) {
            Some(number) => *number,
            None if next >= max => return None,
            None => {
                self.known.insert(row, next);
                self.first_seen.0.push((piece, row));
                next
            }
        };
        if let Some(slot) = self.recent.get_mut(position) {
            *slot = (row, number);
        }
        Some(number)
    }
}

/// Ids of strings below this have a table of their own: exports number strings from 0 on.
const MAX_DENSE_ID: usize = 1 << 22;

/// The names of one category that a core met.
#[derive(Debug, Default)]
pub(super) struct NameNumbers {
    known: HashMap<NameKey, u32>,
    /// By id of `StringIds`, one more than the number; 0 for none.
    by_id: Vec<u32>,
    /// Numbers of texts, by what is in `first_seen`.
    by_text: HashTable<u32>,
    hasher: DefaultHashBuilder,
    pub(super) first_seen: FirstSeen<NameIds>,
}

/// A name, and the ids of its details: of its short form and of its symbol, 0 for none.
#[derive(Debug)]
pub(super) struct NameIds {
    pub(super) key: NameKey,
    pub(super) details: [u64; 2],
}

impl NameNumbers {
    /// The number of a plain id of `StringIds`.
    pub(super) fn of_id(&mut self, piece: usize, id: u64) -> u32 {
        let position = usize::try_from(id).ok().filter(|position| *position < MAX_DENSE_ID);
        let Some(position) = position else {
            return self.of_key(piece, Text::Id(id).into());
        };
        if let Some(number) = self.by_id.get(position).and_then(|one_more| one_more.checked_sub(1)) {
            return number;
        }
        let number = self.add(piece, Text::Id(id).into());
        if self.by_id.len() <= position {
            self.by_id.resize(position + 1, 0);
        }
        if let Some(slot) = self.by_id.get_mut(position) {
            *slot = number.saturating_add(1);
        }
        number
    }

    /// The number of `key`.
    pub(super) fn of_key(&mut self, piece: usize, key: NameKey) -> u32 {
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        let number = self.add(piece, key.clone());
        self.known.insert(key, number);
        number
    }

    /// The number of a text with its domain, which is copied only when it is new.
    pub(super) fn of_text(
        &mut self,
        piece: usize,
        domain: DomainKey,
        bytes: &[u8],
        table: &str,
        budget: &mut StringBudget,
    ) -> Result<u32, TableError> {
        let Ok(text) = str::from_utf8(bytes) else {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let domain = Some(domain);
            budget.take(table, &text)?;
            let text = Text::Inline(text);
            return Ok(self.of_key(piece, NameKey { text, domain }));
        };
        let first_seen = &self.first_seen.0;
        let same = |number: &u32| {
            let named = first_seen.get(index(*number)).map(|(_, named)| named);
            named.is_some_and(|NameIds { key, .. }| {
                matches!(&key.text, Text::Inline(known) if known == text) && key.domain == Some(domain)
            })
        };
        let hasher = &self.hasher;
        let hash = hasher.hash_one((domain, text));
        if let Some(number) = self.by_text.find(hash, same) {
            return Ok(*number);
        }
        budget.take(table, text)?;
        let again = |number: &u32| match first_seen.get(index(*number)) {
            Some((_, NameIds { key, .. })) => match (&key.text, key.domain) {
                (Text::Inline(text), Some(domain)) => hasher.hash_one((domain, text.as_str())),
                _ => 0,
            },
            None => 0,
        };
        let number = self.first_seen.next();
        self.by_text.insert_unique(hash, number, again);
        let text = Text::Inline(text.to_owned());
        let domain = Some(domain);
        Ok(self.add(piece, NameKey { text, domain }))
    }

    fn add(&mut self, piece: usize, key: NameKey) -> u32 {
        let number = self.first_seen.next();
        let details = [0; 2];
        self.first_seen.0.push((piece, NameIds { key, details }));
        number
    }

    /// How many names there are.
    pub(super) fn count(&self) -> u32 {
        self.first_seen.next()
    }

    /// Gives the details of the name `number`.
    pub(super) fn describe(&mut self, number: u32, details: [u64; 2]) {
        if let Some((_, named)) = self.first_seen.0.get_mut(index(number)) {
            named.details = details;
        }
    }
}

/// The numbers that count, of what the cores met, in the order of the table; `number` gives the one
/// of a key. Per core, by its own number.
pub(super) fn settle<K, E>(
    first_seen: impl Iterator<Item = FirstSeen<K>>,
    mut number: impl FnMut(K) -> Result<u32, E>,
) -> Result<Vec<Vec<u32>>, E> {
    let mut settled = Vec::new();
    let mut all = Vec::new();
    for (core, first_seen) in first_seen.enumerate() {
        settled.push(vec![0; first_seen.0.len()]);
        all.extend(
            first_seen
                .0
                .into_iter()
                .enumerate()
                .map(|(own, (piece, key))| (piece, own, core, key)),
        );
    }
    // No two cores read one piece.
    all.sort_by_key(|(piece, own, ..)| (*piece, *own));
    for (_, own, core, key) in all {
        let number = number(key)?;
        if let Some(slot) = settled.get_mut(core).and_then(|of_core| of_core.get_mut(own)) {
            *slot = number;
        }
    }
    Ok(settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_in_the_order_of_the_table_whichever_core_read_what() {
        // The first core read the pieces 0 and 3, the second one 1 and 2.
        let first_seen = [
            FirstSeen(vec![(0, "a"), (0, "b"), (3, "d")]),
            FirstSeen(vec![(1, "c"), (1, "b"), (2, "d")]),
        ];
        let mut known: Vec<&str> = Vec::new();
        let settled = settle(first_seen.into_iter(), |key| {
            let at = known.iter().position(|known| *known == key).unwrap_or_else(|| {
                known.push(key);
                known.len() - 1
            });
            u32::try_from(at)
        });
        assert_eq!(settled, Ok(vec![vec![0, 1, 3], vec![2, 1, 3]]));
    }

    #[test]
    fn a_text_has_one_number_per_domain_and_is_counted_once() {
        let mut names = NameNumbers::default();
        let mut budget = StringBudget::new(10);
        let mut number = |domain, text: &[u8]| names.of_text(0, (1, 2, domain), text, "T", &mut budget);
        assert_eq!(number(0, b"step").unwrap(), 0);
        assert_eq!(number(0, b"step").unwrap(), 0);
        assert_eq!(number(1, b"step").unwrap(), 1);
        assert!(number(0, b"longer").is_err());
        assert_eq!(number(1, b"step").unwrap(), 1);
    }

    #[test]
    fn rows_that_share_a_place_among_the_recent_ones_stay_apart() {
        let mut rows = RowNumbers::default();
        for _ in 0..2 {
            for row in 0..1000_u64 {
                let expected = u32::try_from(row).ok();
                assert_eq!(rows.number(0, [row, 0, 0, row], u32::MAX), expected);
            }
        }
        assert_eq!(rows.number(0, [0, 7, 0, 0], 1000), None);
    }
}
