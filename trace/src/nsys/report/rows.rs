//! The rows of a table while they are made.

use super::layout::Layout;
use super::numbers::Numbers;
use super::texts::Texts;

/// Rows of a table, column by column.
#[derive(Debug)]
pub(super) struct Rows {
    layout: &'static Layout,
    count: usize,
    numbers: Vec<Numbers>,
    /// Numbers among `texts`, by column.
    text_numbers: Vec<Numbers>,
    texts: Texts,
}

impl Rows {
    pub(super) fn new(layout: &'static Layout) -> Self {
        let none = |columns: usize| (0..columns).map(|_| Numbers::default()).collect();
        Self {
            layout,
            count: 0,
            numbers: none(layout.numbers().count()),
            text_numbers: none(layout.texts.len()),
            texts: Texts::default(),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        self.layout.name
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Bytes of its texts.
    pub(super) fn text_bytes(&self) -> usize {
        self.texts.bytes()
    }

    /// Adds a row: a number for each column of numbers, and likewise of texts.
    pub(super) fn push(&mut self, numbers: &[u64], texts: &[&[u8]]) {
        self.count += 1;
        let values = numbers.iter().copied().chain(std::iter::repeat(0));
        for (column, value) in self.numbers.iter_mut().zip(values) {
            column.push(value);
        }
        let values = texts.iter().copied().chain(std::iter::repeat(&b""[..]));
        for (column, value) in self.text_numbers.iter_mut().zip(values) {
            column.push(u64::from(self.texts.number(value)));
        }
    }

    /// Gives back the memory that its columns have beyond their rows.
    pub(super) fn shrink(&mut self) {
        for column in self.numbers.iter_mut().chain(&mut self.text_numbers) {
            column.shrink();
        }
    }

    /// Adds the rows of `other`, which is of the same table, behind its own.
    pub(super) fn append(&mut self, other: Self) {
        self.count += other.count;
        for (column, more) in self.numbers.iter_mut().zip(other.numbers) {
            column.append(more);
        }
        if self.text_numbers.is_empty() {
            return;
        }
        let numbers = self.texts.merge(&other.texts);
        for (column, mut more) in self.text_numbers.iter_mut().zip(other.text_numbers) {
            more.renumber(&numbers);
            column.append(more);
        }
    }

    /// Replaces each number of a column by the one at its place in `numbers`.
    pub(super) fn renumber(&mut self, column: &str, numbers: &[u32]) {
        let at = self.layout.numbers().position(|known| known == column);
        if let Some(column) = at.and_then(|at| self.numbers.get_mut(at)) {
            column.renumber(numbers);
        }
    }

    /// A column of numbers.
    pub(super) fn numbers(&self, column: &str) -> Option<&Numbers> {
        let at = self.layout.numbers().position(|known| known == column)?;
        self.numbers.get(at)
    }

    /// A column of texts: their numbers.
    pub(super) fn text_numbers(&self, column: &str) -> Option<&Numbers> {
        let at = self.layout.texts.iter().position(|known| *known == column)?;
        self.text_numbers.get(at)
    }

    /// The text of a number that [`text_numbers`](Self::text_numbers) gives.
    pub(super) fn text(&self, number: u64) -> &[u8] {
        self.texts.get(number)
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.numbers(column).is_some() || self.text_numbers(column).is_some()
    }
}
