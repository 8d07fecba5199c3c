//! The strings of a column of a slab, in one piece of memory.

/// Strings as the file has them, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// Where each ends in `bytes`.
    ends: Vec<usize>,
}

impl Texts {
    /// None yet, with place for the ends of so many.
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(rows),
        }
    }

    pub(super) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string of a row; an empty one where there is no such row.
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        let begin = row.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(row).copied().unwrap_or(0);
        self.bytes.get(begin.copied().unwrap_or(0)..end).unwrap_or_default()
    }
}
