//! A table of a report, read as one of an export is.

use std::ops::Range;
use std::sync::Arc;

use super::numbers::Numbers;
use super::rows::Rows;
use super::segments::{Part, SegmentedTable};
use crate::cores;
use crate::hdf5_io::Number;

/// Rows of a piece but for the last one.
const PIECE_ROWS: usize = 1 << 14;

/// A table that is at hand.
#[derive(Debug)]
pub(in crate::nsys) struct Table {
    rows: Arc<SegmentedTable>,
}

/// Some rows of a table.
#[derive(Debug)]
pub(in crate::nsys) struct Piece<'t> {
    all: &'t SegmentedTable,
    rows: Range<usize>,
    /// The column of texts that was asked for last: of each segment that has rows of the piece.
    texts: Vec<Texts<'t>>,
}

/// Texts of a column, from a row of a piece on.
#[derive(Debug)]
struct Texts<'t> {
    /// Row of the piece.
    begin: usize,
    rows: &'t Rows,
    numbers: &'t Numbers,
    /// Row of the segment.
    from: usize,
}

impl Table {
    pub(super) fn new(rows: Arc<SegmentedTable>) -> Self {
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
            .step_by(PIECE_ROWS)
            .map(move |start| start..start.saturating_add(PIECE_ROWS).min(rows))
    }

    /// Rows of each piece but for the last one.
    pub(in crate::nsys) const fn piece_rows() -> usize {
        PIECE_ROWS
    }

    /// The rows of a slab.
    pub(in crate::nsys) fn piece(&self, rows: &Range<usize>) -> Piece<'_> {
        Piece {
            all: &self.rows,
            rows: rows.clone(),
            texts: Vec::new(),
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
                let begin = first.saturating_add(at).saturating_mul(PIECE_ROWS);
                let rows = begin.min(count)..begin.saturating_add(PIECE_ROWS).min(count);
                job(state, &mut self.piece(&rows), item)
            },
        )
    }
}

impl Piece<'_> {
    /// Reads a column over all of `out`, which has a value per row; zeros where there is no such
    /// column.
    pub(in crate::nsys) fn read<T: Number>(&self, column: &str, out: &mut [T]) {
        self.each(column, out, Numbers::read);
    }

    /// The same of ids, which use all 64 bits.
    pub(in crate::nsys) fn read_ids(&self, column: &str, out: &mut [u64]) {
        self.each(column, out, Numbers::read_bits);
    }

    /// Has `read` write the numbers of a column, segment by segment.
    fn each<T: Copy + Default>(&self, column: &str, out: &mut [T], read: impl Fn(&Numbers, Range<usize>, &mut [T])) {
        for Part { rows, within, begin } in self.all.parts(self.rows.clone()) {
            let end = begin.saturating_add(within.len()).min(out.len());
            let Some(out) = out.get_mut(begin..end) else { continue };
            match rows.numbers(column) {
                Some(numbers) => read(numbers, within, out),
                None => out.fill(T::default()),
            }
        }
    }
}

impl<'t> Piece<'t> {
    /// Makes the texts of a column those that [`Piece::text`] gives; empty ones where there is no
    /// such column.
    pub(in crate::nsys) fn texts(&mut self, column: &str) {
        let all: &'t SegmentedTable = self.all;
        let texts = all.parts(self.rows.clone()).filter_map(|Part { rows, within, begin }| {
            Some(Texts {
                begin,
                rows,
                numbers: rows.text_numbers(column)?,
                from: within.start,
            })
        });
        self.texts = texts.collect();
    }

    /// The bytes of the text of a row.
    pub(in crate::nsys) fn text(&self, row: usize) -> &[u8] {
        let Some(texts) = self.texts.iter().rfind(|texts| texts.begin <= row) else {
            return &[];
        };
        let number = texts.numbers.get(texts.from.saturating_add(row - texts.begin));
        texts.rows.text(number)
    }
}
