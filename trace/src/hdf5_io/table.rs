//! A dataset of a foreign file, checked before anything of it is read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use hdf5::datatype::ByteOrder;
use hdf5::types::TypeDescriptor;
use hdf5::{Dataset, Group, LinkType};
use libdeflater::Decompressor;
use rayon::prelude::*;

use super::chunks::{self, Block, ChunkError, Chunks, Field};
use super::heap::{Heap, Reference};
use super::number::{self, Kind, Number};

/// Why a table cannot be read. The caller adds the file's path.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The library refuses the table: the file is truncated or damaged there.
    #[error("table {table}: {reason}; the file is truncated or damaged")]
    Damaged {
        /// Name of the table.
        table: String,
        /// Message of the library.
        reason: String,
    },
    /// The table is not stored as the profiler stores it (a link or storage outside the file, a
    /// shape that is no table), which only a forged file does.
    #[error("table {table} is {what}, which is not read from a foreign file")]
    Forged {
        /// Name of the table.
        table: String,
        /// How it is stored instead.
        what: &'static str,
    },
    /// A column that the table cannot do without is missing.
    #[error("table {table} has no column {column}; this export's schema is not known")]
    MissingColumn {
        /// Name of the table.
        table: String,
        /// Name of the column.
        column: &'static str,
    },
    /// The table is larger than the limits allow.
    #[error("table {table} has {size} {unit}, over the limit of {limit}; raise the limit or capture a shorter window")]
    TooLarge {
        /// Name of the table.
        table: String,
        /// What it has, in `unit`.
        size: u64,
        /// Of what: rows, bytes per row, bytes per chunk.
        unit: &'static str,
        /// Most that is read, in `unit`.
        limit: u64,
    },
    /// The strings need more memory than the limits allow.
    #[error(
        "strings of table {table} need more than the limit of {limit} bytes; raise the limit or capture a shorter window"
    )]
    Strings {
        /// Name of the table.
        table: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// Reading takes longer than the limits allow.
    #[error(
        "table {table} could not be read within the time that the limits allow; the file is damaged or forged, or the limit is too low"
    )]
    Late {
        /// Name of the table.
        table: String,
    },
}

/// Bounds on one table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableLimits {
    /// Number of rows.
    pub(crate) rows: u64,
    /// Bytes of one uncompressed chunk, the least that HDF5 must hold at once.
    pub(crate) chunk_bytes: u64,
}

/// Bytes of strings that may still be kept.
#[derive(Debug)]
pub(crate) struct StringBudget {
    limit: u64,
    left: u64,
}

impl StringBudget {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, left: limit }
    }

    /// Takes what keeping `text` costs.
    pub(crate) fn take(&mut self, table: &str, text: &str) -> Result<(), TableError> {
        let cost = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let error = || TableError::Strings {
            table: table.to_owned(),
            limit: self.limit,
        };
        self.left = self.left.checked_sub(cost).ok_or_else(error)?;
        Ok(())
    }
}

/// How a dataset must be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StorageLayout {
    /// A compound per row, as exports of nsys have.
    Compound,
    /// A plain value per row, as the timeline file has.
    Plain,
}

/// Bytes of the reference that stands for a string of variable length: length, address and object.
const REFERENCE_BYTES: usize = 16;

/// How many bytes more a stored value takes than what the library describes: it speaks of strings
/// in memory, a pointer each.
fn growth(stored: &TypeDescriptor) -> usize {
    match stored {
        TypeDescriptor::VarLenAscii | TypeDescriptor::VarLenUnicode => REFERENCE_BYTES - size_of::<usize>(),
        _ => 0,
    }
}

/// The fields of a row as stored, by name, and the bytes of a row. A plain value is a field without
/// a name.
fn fields(stored: &TypeDescriptor) -> (BTreeMap<String, (Field, Kind)>, usize) {
    let field = |offset, stored: &TypeDescriptor| {
        let size = stored.size() + growth(stored);
        (Field { offset, size }, Kind::of(stored))
    };
    let TypeDescriptor::Compound(compound) = stored else {
        let plain = field(0, stored);
        return ([(String::new(), plain)].into(), plain.0.size);
    };
    let mut members: Vec<_> = compound.fields.iter().collect();
    members.sort_by_key(|member| member.offset);
    let mut fields = BTreeMap::new();
    let mut grown = 0;
    for member in members {
        fields.insert(member.name.clone(), field(member.offset + grown, &member.ty));
        grown += growth(&member.ty);
    }
    (fields, compound.size + grown)
}

/// What a table's rows are and where they lie: for every core to look at.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) rows: usize,
    pub(super) chunk_rows: usize,
    pub(super) columns: BTreeMap<String, (Field, Kind)>,
    /// `None` for a small dataset of our own that is stored in one piece.
    pub(super) chunks: Option<Chunks>,
}

impl Shape {
    pub(super) fn forged(&self, what: &'static str) -> TableError {
        TableError::Forged {
            table: self.name.clone(),
            what,
        }
    }

    pub(super) fn too_many_strings(&self, limit: usize) -> TableError {
        TableError::Strings {
            table: self.name.clone(),
            limit: wide(limit),
        }
    }

    pub(super) fn failed(&self, error: ChunkError) -> TableError {
        failed(&self.name, error)
    }

    pub(super) fn chunks(&self) -> Result<&Chunks, TableError> {
        let chunks = self.chunks.as_ref();
        chunks.ok_or_else(|| self.forged("not stored in chunks"))
    }

    /// Reads a column of the rows that `blocks` hold over all of `out`; zeros where the schema
    /// lacks it.
    pub(super) fn read<T: Number>(
        &self,
        blocks: &[Block],
        column: &str,
        words: &mut Vec<u64>,
        out: &mut [T],
    ) -> Result<(), TableError> {
        let Some((field, kind)) = self.columns.get(column).copied() else {
            out.fill(T::default());
            return Ok(());
        };
        for (block, out) in blocks.iter().zip(out.chunks_mut(self.chunk_rows)) {
            let read = number::read(block, field, kind, words, out);
            read.ok_or_else(|| self.forged("holding numbers of an unusual type"))?;
        }
        Ok(())
    }

    /// The same of a column of strings: where each is.
    pub(super) fn references(
        &self,
        blocks: &[Block],
        (field, kind): (Field, Kind),
        rows: usize,
        words: &mut [Vec<u64>; 3],
        all: &mut Vec<Reference>,
    ) -> Result<(), TableError> {
        if kind != Kind::Text || field.size != REFERENCE_BYTES {
            return Err(self.forged("holding text of an unusual type"));
        }
        let part = |offset, size| Field {
            offset: field.offset + offset,
            size,
        };
        all.clear();
        for block in blocks {
            let rows = (rows - all.len()).min(self.chunk_rows);
            for (words, part) in words.iter_mut().zip([part(0, 4), part(4, 8), part(12, 4)]) {
                words.resize(rows, 0);
                block.words(part, words);
            }
            let [lengths, addresses, objects] = &*words;
            let parts = lengths.iter().zip(addresses).zip(objects);
            all.extend(parts.map(|((length, address), object)| Reference {
                length: u32::try_from(*length).unwrap_or(u32::MAX),
                address: *address,
                object: u32::try_from(*object).unwrap_or(u32::MAX),
            }));
        }
        Ok(())
    }

    /// The heap that the table's strings are in.
    pub(super) fn heap(&self) -> Result<Heap, TableError> {
        let file = self.chunks()?.file().map_err(|error| self.failed(error))?;
        Heap::new(file).map_err(|error| self.failed(error))
    }
}

/// Chunks of the slab that was asked for last.
#[derive(Debug, Default)]
struct ReadState {
    slab: Range<usize>,
    blocks: Vec<Block>,
    /// Of the column that is picked out of a chunk.
    words: Vec<u64>,
    heap: Option<Heap>,
}

/// An open table.
#[derive(Debug)]
pub(crate) struct Table {
    shape: Shape,
    dataset: Dataset,
    slab: usize,
    reading: RefCell<ReadState>,
}

/// Rows read at once, at the least: few enough that a column of them stays in the processor's
/// cache.
const SLAB_ROWS: usize = 1 << 14;
/// Chunks of a slab for each thread that inflates them.
const SLAB_CHUNKS: usize = 2;
/// Bytes of the chunks of a slab, where one chunk has fewer.
const SLAB_BYTES: usize = 16 << 20;
/// Memory that the strings of one slab may take.
const SLAB_STRING_BYTES: usize = 64 << 20;

impl Table {
    /// Opens the dataset `name` of `group`; `None` when there is none.
    pub(crate) fn open(
        group: &Group,
        name: &str,
        kind: StorageLayout,
        limits: TableLimits,
    ) -> Result<Option<Self>, TableError> {
        let damaged = |error: hdf5::Error| TableError::Damaged {
            table: name.to_owned(),
            reason: error.to_string(),
        };
        let forged = |what| TableError::Forged {
            table: name.to_owned(),
            what,
        };
        let too_large = |size, unit, limit| TableError::TooLarge {
            table: name.to_owned(),
            size,
            unit,
            limit,
        };
        match link_type(group, name).map_err(damaged)? {
            None => return Ok(None),
            Some(LinkType::Hard) => {}
            Some(_) => return Err(forged("a link to somewhere else")),
        }
        let dataset = group.dataset(name).map_err(damaged)?;
        let storage = dataset.create_plist().map_err(damaged)?;
        if !storage.get_external().map_err(damaged)?.is_empty() {
            return Err(forged("stored in another file"));
        }
        let shape = dataset.get_shape().map_err(damaged)?;
        let [rows] = shape[..] else {
            return Err(forged("not a list of rows"));
        };
        let count = wide(rows);
        if count > limits.rows {
            return Err(too_large(count, "rows", limits.rows));
        }
        let chunk = match storage.get_layout().map_err(damaged)? {
            hdf5::dataset::Layout::Chunked => storage.get_chunk().map_err(damaged)?,
            // An empty or tiny dataset of our own is stored without chunks.
            hdf5::dataset::Layout::Contiguous | hdf5::dataset::Layout::Compact if kind == StorageLayout::Plain => None,
            _ => return Err(forged("not stored in chunks")),
        };
        let stored = dataset.dtype().map_err(damaged)?;
        if !matches!(stored.byte_order(), ByteOrder::LittleEndian | ByteOrder::None) {
            return Err(forged("in an unusual byte order"));
        }
        let described = stored.to_descriptor().map_err(damaged)?;
        if kind == StorageLayout::Compound && !matches!(described, TypeDescriptor::Compound(_)) {
            return Err(forged("not a table of columns"));
        }
        let (columns, row_bytes) = fields(&described);
        let chunk_rows = chunk.and_then(|dims| dims.first().copied());
        let chunk_bytes = wide(chunk_rows.unwrap_or(1)).saturating_mul(wide(row_bytes));
        if chunk_bytes > limits.chunk_bytes {
            return Err(too_large(chunk_bytes, "bytes per chunk", limits.chunk_bytes));
        }
        let failed = |error| failed(name, error);
        let chunks = match chunk_rows {
            Some(chunk_rows) if rows > 0 => {
                let file = chunks::raw_file(group).map_err(failed)?;
                Some(Chunks::new(&dataset, file, rows, chunk_rows, row_bytes).map_err(failed)?)
            }
            _ => None,
        };
        let chunk_rows = chunk_rows.unwrap_or(SLAB_ROWS).max(1);
        let busy = chunk_rows.saturating_mul(SLAB_CHUNKS.saturating_mul(rayon::current_num_threads()));
        let fitting = SLAB_ROWS.max(busy).min(SLAB_BYTES / row_bytes.max(1));
        Ok(Some(Self {
            shape: Shape {
                name: name.to_owned(),
                rows,
                chunk_rows,
                columns,
                chunks,
            },
            dataset,
            slab: (fitting / chunk_rows).max(1) * chunk_rows,
            reading: RefCell::default(),
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.shape.name
    }

    /// How many rows.
    pub(crate) fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Whether there is such a column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.shape.columns.contains_key(column)
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The rows in pieces of bounded size, which are whole chunks.
    pub(crate) fn slabs(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (rows, slab) = (self.shape.rows, self.slab);
        (0..rows)
            .step_by(slab)
            .map(move |start| start..start.saturating_add(slab).min(rows))
    }

    /// Numbers of a column that must be there, of a slab.
    pub(crate) fn required<T: Number>(&self, column: &'static str, slab: &Range<usize>) -> Result<Vec<T>, TableError> {
        if !self.has(column) {
            return Err(TableError::MissingColumn {
                table: self.shape.name.clone(),
                column,
            });
        }
        self.optional(column, slab)
    }

    /// Numbers of a column that some schemas lack; zeros then.
    pub(crate) fn optional<T: Number>(&self, column: &str, slab: &Range<usize>) -> Result<Vec<T>, TableError> {
        let mut out = vec![T::default(); slab.len()];
        self.read(column, slab, &mut out)?;
        Ok(out)
    }

    /// All numbers of a plain dataset.
    pub(crate) fn all<T: Number>(&self) -> Result<Vec<T>, TableError> {
        if self.shape.chunks.is_none() {
            let read = self.dataset.read_raw::<T>();
            return read.map_err(|error| self.shape.failed(error.into()));
        }
        let mut all = vec![T::default(); self.shape.rows];
        for (slab, out) in self.slabs().zip(all.chunks_mut(self.slab)) {
            self.read("", &slab, out)?;
        }
        Ok(all)
    }

    /// Strings of a column, of a slab; empty ones where the schema lacks it.
    pub(crate) fn strings(&self, column: &str, slab: &Range<usize>) -> Result<Vec<String>, TableError> {
        match self.shape.columns.get(column) {
            None => Ok(vec![String::new(); slab.len()]),
            Some(column) => self.text(*column, slab),
        }
    }

    /// All strings of a plain dataset, within `budget`.
    pub(crate) fn all_strings(&self, budget: &mut StringBudget) -> Result<Vec<String>, TableError> {
        let Some(plain) = self.shape.columns.get("") else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for slab in self.slabs() {
            for text in self.text(*plain, &slab)? {
                budget.take(&self.shape.name, &text)?;
                all.push(text);
            }
        }
        Ok(all)
    }

    /// Brings the chunks of `slab` to hand, inflated by every core.
    fn load(&self, reading: &mut ReadState, slab: &Range<usize>) -> Result<(), TableError> {
        if reading.slab == *slab && !reading.blocks.is_empty() {
            return Ok(());
        }
        let chunks = self.shape.chunks()?;
        let first = slab.start / self.shape.chunk_rows;
        let number = slab.len().div_ceil(self.shape.chunk_rows);
        reading.slab = slab.clone();
        reading.blocks.resize_with(number, Block::default);
        let inflater = || (Decompressor::new(), Vec::new());
        let read = reading
            .blocks
            .par_iter_mut()
            .enumerate()
            .try_for_each_init(inflater, |(inflater, scratch), (at, block)| {
                chunks.read(first + at, inflater, scratch, block)
            });
        read.map_err(|error| {
            reading.slab = 0..0;
            self.shape.failed(error)
        })
    }

    fn read<T: Number>(&self, column: &str, slab: &Range<usize>, out: &mut [T]) -> Result<(), TableError> {
        if slab.is_empty() || !self.has(column) {
            return Ok(());
        }
        let mut reading = self.reading.borrow_mut();
        self.load(&mut reading, slab)?;
        // One column of a slab is too little work to wake other cores for.
        let ReadState { blocks, words, .. } = &mut *reading;
        self.shape.read(blocks, column, words, out)
    }

    fn text(&self, column: (Field, Kind), slab: &Range<usize>) -> Result<Vec<String>, TableError> {
        if slab.is_empty() {
            return Ok(Vec::new());
        }
        let mut reading = self.reading.borrow_mut();
        self.load(&mut reading, slab)?;
        let ReadState { blocks, heap, .. } = &mut *reading;
        let heap = match heap {
            Some(heap) => heap,
            None => heap.insert(self.shape.heap()?),
        };
        let mut left = SLAB_STRING_BYTES;
        let mut texts = Vec::with_capacity(slab.len());
        let (mut words, mut references) = Default::default();
        self.shape
            .references(blocks, column, slab.len(), &mut words, &mut references)?;
        for reference in references {
            let bytes = heap.get(reference).map_err(|error| self.shape.failed(error))?;
            // What an empty string takes counts too, so that a flood of them has a bound.
            let cost = bytes.len().saturating_add(size_of::<String>());
            left = left
                .checked_sub(cost)
                .ok_or_else(|| self.shape.too_many_strings(SLAB_STRING_BYTES))?;
            texts.push(String::from_utf8_lossy(bytes).into_owned());
        }
        Ok(texts)
    }
}

fn failed(table: &str, error: ChunkError) -> TableError {
    let table = table.to_owned();
    match error {
        ChunkError::Damaged(reason) => TableError::Damaged { table, reason },
        ChunkError::Forged(what) => TableError::Forged { table, what },
    }
}

pub(super) fn link_type(group: &Group, name: &str) -> hdf5::Result<Option<LinkType>> {
    let mut found = None;
    group.iter_visit_default(|link, info| {
        if link == name {
            found = Some(info.link_type);
        }
        Ok(())
    })?;
    Ok(found)
}

fn wide(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}
