//! A table's rows in pieces, each of which one core inflates and picks the columns out of: what is
//! inflated never leaves its cache.

use libdeflater::Decompressor;

use super::chunks::Block;
use super::heap::{Heap, Reference};
use super::number::Number;
use super::table::{Shape, Table, TableError};
use crate::cores;

/// Rows of a piece, at the least: a chunk of an export has as many.
const MIN_PIECE_ROWS: usize = 4096;

/// Bytes that the strings of one piece may have together.
const PIECE_STRING_BYTES: usize = 64 << 20;

/// A piece of a table's rows, with what a core keeps from piece to piece.
pub(crate) struct Piece<'a> {
    shape: &'a Shape,
    rows: usize,
    inflater: Decompressor,
    stored: Vec<u8>,
    blocks: Vec<Block>,
    words: Vec<u64>,
    heap: Option<Heap>,
    references: Vec<Reference>,
    /// Of references that are picked out of a chunk.
    parts: [Vec<u64>; 3],
    /// Bytes of strings of this piece that may still be looked at: all rows may refer to one that
    /// is huge.
    strings_left: usize,
}

impl<'a> Piece<'a> {
    fn new(shape: &'a Shape) -> Self {
        Self {
            shape,
            rows: 0,
            inflater: Decompressor::new(),
            stored: Vec::new(),
            blocks: Vec::new(),
            words: Vec::new(),
            heap: None,
            references: Vec::new(),
            parts: Default::default(),
            strings_left: 0,
        }
    }

    /// Brings the rows of piece `at`, of so many chunks, to hand.
    fn load(&mut self, at: usize, chunks: usize) -> Result<(), TableError> {
        let first = at * chunks;
        let left = self.shape.rows.saturating_sub(first * self.shape.chunk_rows);
        self.rows = left.min(chunks.saturating_mul(self.shape.chunk_rows));
        self.strings_left = PIECE_STRING_BYTES;
        let number = self.rows.div_ceil(self.shape.chunk_rows);
        self.blocks.resize_with(number, Block::default);
        let stored = self.shape.chunks()?;
        for (chunk, block) in (first..).zip(&mut self.blocks) {
            let read = stored.read(chunk, &mut self.inflater, &mut self.stored, block);
            read.map_err(|error| self.shape.failed(error))?;
        }
        Ok(())
    }

    /// Reads a column over all of `out`, which has a value per row; zeros where the schema lacks
    /// it.
    pub(crate) fn read<T: Number>(&mut self, column: &str, out: &mut [T]) -> Result<(), TableError> {
        self.shape.read(&self.blocks, column, &mut self.words, out)
    }

    /// Makes the strings of a column those that [`Piece::text`] gives; empty ones where the schema
    /// lacks it.
    pub(crate) fn texts(&mut self, column: &str) -> Result<(), TableError> {
        let Self { blocks, references, .. } = self;
        references.clear();
        match self.shape.columns.get(column) {
            None => Ok(()),
            Some(column) => self
                .shape
                .references(blocks, *column, self.rows, &mut self.parts, references),
        }
    }

    /// The bytes of the string of a row.
    pub(crate) fn text(&mut self, row: usize) -> Result<&[u8], TableError> {
        let Some(reference) = self.references.get(row) else {
            return Ok(&[]);
        };
        let heap = match &mut self.heap {
            Some(heap) => heap,
            none => none.insert(self.shape.heap()?),
        };
        let bytes = heap.get(*reference).map_err(|error| self.shape.failed(error))?;
        let left = self.strings_left.checked_sub(bytes.len());
        self.strings_left = left.ok_or_else(|| self.shape.too_many_strings(PIECE_STRING_BYTES))?;
        Ok(bytes)
    }
}

impl Table {
    /// Rows of the pieces that [`Table::for_each_piece`] gives, but for the last one.
    pub(crate) fn piece_rows(&self) -> usize {
        self.chunks_of_piece().saturating_mul(self.shape().chunk_rows)
    }

    fn chunks_of_piece(&self) -> usize {
        MIN_PIECE_ROWS.div_ceil(self.shape().chunk_rows)
    }

    /// Does `job` with each piece and its item, from piece `first` on, on every core; `state` is
    /// made once per core. Gives what it made of each piece in their order, or the first error.
    pub(crate) fn for_each_piece<S, I: Send, R: Send, E: Send + From<TableError>>(
        &self,
        first: usize,
        items: Vec<I>,
        state: impl Fn(usize) -> S + Sync,
        job: impl Fn(&mut S, &mut Piece<'_>, I) -> Result<R, E> + Sync,
    ) -> Result<(Vec<S>, Vec<R>), E>
    where
        S: Send,
    {
        let chunks = self.chunks_of_piece();
        let shape = self.shape();
        cores::for_each(
            items,
            state,
            || Piece::new(shape),
            |state, piece, at, item| {
                piece.load(first + at, chunks)?;
                job(state, piece, item)
            },
        )
    }
}
