//! A table of a report, read as one of an export is.

use std::ops::Range;
use std::sync::Arc;

use super::numbers::Numbers;
use super::rows::Rows;
use crate::cores;
use crate::hdf5_io::Number;

/// Rows of a piece but for the last one.
const PIECE: usize = 1 << 14;

/// A table that is at hand.
#[derive(Debug)]
pub(in crate::nsys) struct Table {
    rows: Arc<Rows>,
}

/// Some rows of a table.
#[derive(Debug)]
pub(in crate::nsys) struct Piece<'t> {
    all: &'t Rows,
    rows: Range<usize>,
    /// The column of texts that was asked for last.
    texts: Option<&'t Numbers>,
}

impl Table {
    pub(super) fn new(rows: Arc<Rows>) -> Self {
        Self { rows }
    }

    pub(in crate::nsys) fn name(&self) -> &str {
        self.rows.name()
    }

    /// How many rows.
    pub(in crate::nsys) fn rows(&self) -> usize {
        self.rows.len()
    }

    pub(in crate::nsys) fn has(&self, column: &str) -> bool {
        self.rows.has(column)
    }

    /// The rows in pieces of bounded size.
    pub(in crate::nsys) fn slabs(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.rows();
        (0..rows)
            .step_by(PIECE)
            .map(move |start| start..start.saturating_add(PIECE).min(rows))
    }

    /// Rows of each piece but for the last one.
    pub(in crate::nsys) const fn piece_rows() -> usize {
        PIECE
    }

    /// The rows of a slab.
    pub(in crate::nsys) fn piece(&self, rows: &Range<usize>) -> Piece<'_> {
        Piece {
            all: &self.rows,
            rows: rows.clone(),
            texts: None,
        }
    }

    /// Strings of a column, of a slab; empty ones where there is no such column.
    pub(in crate::nsys) fn strings(&self, column: &str, rows: &Range<usize>) -> Vec<String> {
        let mut piece = self.piece(rows);
        piece.texts(column);
        let text = |row| String::from_utf8_lossy(piece.text(row)).into_owned();
        (0..rows.len()).map(text).collect()
    }

    /// Does `job` with each piece and its item, from piece `first` on, on every core; `state` is
    /// made once per core. Gives what it made of each piece in their order, or the first error.
    pub(in crate::nsys) fn for_each_piece<S: Send, I: Send, R: Send, E: Send>(
        &self,
        first: usize,
        items: Vec<I>,
        state: impl Fn(usize) -> S + Sync,
        job: impl Fn(&mut S, &mut Piece<'_>, I) -> Result<R, E> + Sync,
    ) -> Result<(Vec<S>, Vec<R>), E> {
        let count = self.rows();
        cores::for_each(
            items,
            state,
            || (),
            |state, (), at, item| {
                let begin = first.saturating_add(at).saturating_mul(PIECE);
                let rows = begin.min(count)..begin.saturating_add(PIECE).min(count);
                job(state, &mut self.piece(&rows), item)
            },
        )
    }
}

impl Piece<'_> {
    /// Reads a column over all of `out`, which has a value per row; zeros where there is no such
    /// column.
    pub(in crate::nsys) fn read<T: Number>(&self, column: &str, out: &mut [T]) {
        match self.all.numbers(column) {
            Some(numbers) => numbers.read(self.rows.clone(), out),
            None => out.fill(T::default()),
        }
    }

    /// The same of ids, which use all 64 bits.
    pub(in crate::nsys) fn read_ids(&self, column: &str, out: &mut [u64]) {
        match self.all.numbers(column) {
            Some(numbers) => numbers.read_bits(self.rows.clone(), out),
            None => out.fill(0),
        }
    }

    /// Makes the texts of a column those that [`Piece::text`] gives; empty ones where there is no
    /// such column.
    pub(in crate::nsys) fn texts(&mut self, column: &str) {
        self.texts = self.all.text_numbers(column);
    }

    /// The bytes of the text of a row.
    pub(in crate::nsys) fn text(&self, row: usize) -> &[u8] {
        let number = self
            .texts
            .map(|numbers| numbers.get(self.rows.start.saturating_add(row)));
        number.map_or(&[], |number| self.all.text(number))
    }
}
