//! A dataset of a foreign file, checked before anything of it is read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;

use hdf5::datatype::ByteOrder;
use hdf5::types::{FloatSize, H5Type, TypeDescriptor};
use hdf5::{Dataset, Group, LinkType};
use libdeflater::Decompressor;
use rayon::prelude::*;

use super::chunks::{self, Block, ChunkError, Chunks, Field};
use super::heap::{Heap, Reference};

/// Why a table cannot be read. The caller adds the file's path.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The library refuses the table: the file is truncated or damaged there.
    #[error("table {table}: {reason}; the file is truncated or damaged")]
    Damaged {
        /// The table.
        table: String,
        /// What the library says.
        reason: String,
    },
    /// The table is not stored as the profiler stores it (a link or storage outside the file, a shape that is no table), which
    /// only a forged file does.
    #[error("table {table} is {what}, which is not read from a foreign file")]
    Forged {
        /// The table.
        table: String,
        /// How it is stored instead.
        what: &'static str,
    },
    /// A column that the table cannot do without is missing.
    #[error("table {table} has no column {column}; this export's schema is not known")]
    MissingColumn {
        /// The table.
        table: String,
        /// The column.
        column: &'static str,
    },
    /// The table is larger than the limits allow.
    #[error("table {table} has {size} {unit}, over the limit of {limit}; raise the limit or capture a shorter window")]
    TooLarge {
        /// The table.
        table: String,
        /// Its size.
        size: u64,
        /// Of what: rows, bytes per row, bytes per chunk.
        unit: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The strings need more memory than the limits allow.
    #[error(
        "strings of table {table} need more than the limit of {limit} bytes; raise the limit or capture a shorter window"
    )]
    Strings {
        /// The table.
        table: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// Reading takes longer than the limits allow.
    #[error(
        "table {table} could not be read within the time that the limits allow; the file is damaged or forged, or the limit is too low"
    )]
    Late {
        /// The table.
        table: String,
    },
}

/// Bounds on one table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableLimits {
    /// Rows.
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
pub(crate) enum Open {
    /// A compound per row, as exports of nsys have.
    Compound,
    /// A plain value per row, as the timeline file has.
    Plain,
}

/// Numbers that a stored number can be read as. As in HDF5's own conversions, what does not fit saturates.
pub(crate) trait Number: H5Type + Copy + Default + Send + Sync {
    fn from_unsigned(value: u64) -> Self;
    fn from_signed(value: i64) -> Self;
    /// `None` where a fraction cannot be read as such a number.
    fn from_float(value: f64) -> Option<Self>;
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
}

impl Number for f64 {
    fn from_unsigned(value: u64) -> Self {
        crate::summary::approximate(u128::from(value))
    }

    fn from_signed(value: i64) -> Self {
        let size = crate::summary::approximate(u128::from(value.unsigned_abs()));
        if value < 0 { -size } else { size }
    }

    fn from_float(value: f64) -> Option<Self> {
        Some(value)
    }
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Float,
    /// A string of variable length.
    Text,
    /// What no reader asks for.
    Other,
}

impl Kind {
    fn of(stored: &TypeDescriptor) -> Self {
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

/// Bytes of the reference that stands for a string of variable length: length, address and object.
const REFERENCE: usize = 16;

/// How many bytes more a stored value takes than what the library describes: it speaks of strings in memory, a pointer each.
fn growth(stored: &TypeDescriptor) -> usize {
    match stored {
        TypeDescriptor::VarLenAscii | TypeDescriptor::VarLenUnicode => REFERENCE - size_of::<usize>(),
        _ => 0,
    }
}

/// The fields of a row as stored, by name, and the bytes of a row. A plain value is a field without a name.
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

/// Chunks of the slab that was asked for last.
#[derive(Debug, Default)]
struct Reading {
    slab: Range<usize>,
    blocks: Vec<Block>,
    /// Of the column that is picked out of a chunk.
    words: Vec<u64>,
    heap: Option<Heap>,
}

/// An open table.
#[derive(Debug)]
pub(crate) struct Table {
    name: String,
    dataset: Dataset,
    rows: usize,
    slab: usize,
    chunk_rows: usize,
    columns: BTreeMap<String, (Field, Kind)>,
    /// `None` for a small dataset of our own that is stored in one piece.
    chunks: Option<Chunks>,
    reading: RefCell<Reading>,
}

/// Rows read at once, at the least: few enough that a column of them stays in the processor's cache.
const SLAB: usize = 1 << 14;
/// Chunks of a slab for each thread that inflates them.
const SLAB_CHUNKS: usize = 2;
/// Bytes of the chunks of a slab, where one chunk has fewer.
const SLAB_BYTES: usize = 16 << 20;
/// Memory that the strings of one slab may take.
const SLAB_STRING_BYTES: usize = 64 << 20;

impl Table {
    /// Opens the dataset `name` of `group`; `None` when there is none.
    pub(crate) fn open(group: &Group, name: &str, kind: Open, limits: TableLimits) -> Result<Option<Self>, TableError> {
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
            hdf5::dataset::Layout::Contiguous | hdf5::dataset::Layout::Compact if kind == Open::Plain => None,
            _ => return Err(forged("not stored in chunks")),
        };
        let stored = dataset.dtype().map_err(damaged)?;
        if !matches!(stored.byte_order(), ByteOrder::LittleEndian | ByteOrder::None) {
            return Err(forged("in an unusual byte order"));
        }
        let described = stored.to_descriptor().map_err(damaged)?;
        if kind == Open::Compound && !matches!(described, TypeDescriptor::Compound(_)) {
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
        let chunk_rows = chunk_rows.unwrap_or(SLAB).max(1);
        let busy = chunk_rows.saturating_mul(SLAB_CHUNKS.saturating_mul(rayon::current_num_threads()));
        let fitting = SLAB.max(busy).min(SLAB_BYTES / row_bytes.max(1));
        Ok(Some(Self {
            name: name.to_owned(),
            dataset,
            rows,
            slab: (fitting / chunk_rows).max(1) * chunk_rows,
            chunk_rows,
            columns,
            chunks,
            reading: RefCell::default(),
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How many rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether there is such a column.
    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    /// The rows in pieces of bounded size, which are whole chunks.
    pub(crate) fn slabs(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (rows, slab) = (self.rows, self.slab);
        (0..rows)
            .step_by(slab)
            .map(move |start| start..start.saturating_add(slab).min(rows))
    }

    /// Numbers of a column that must be there, of a slab.
    pub(crate) fn required<T: Number>(&self, column: &'static str, slab: &Range<usize>) -> Result<Vec<T>, TableError> {
        if !self.has(column) {
            return Err(TableError::MissingColumn {
                table: self.name.clone(),
                column,
            });
        }
        self.numbers(column, slab)
    }

    /// Numbers of a column that some schemas lack; zeros then.
    pub(crate) fn optional<T: Number>(&self, column: &str, slab: &Range<usize>) -> Result<Vec<T>, TableError> {
        if !self.has(column) {
            return Ok(vec![T::default(); slab.len()]);
        }
        self.numbers(column, slab)
    }

    /// All numbers of a plain dataset.
    pub(crate) fn all<T: Number>(&self) -> Result<Vec<T>, TableError> {
        if self.chunks.is_none() {
            let read = self.dataset.read_raw::<T>();
            return read.map_err(|error| failed(&self.name, error.into()));
        }
        let mut all = Vec::new();
        for slab in self.slabs() {
            all.append(&mut self.numbers("", &slab)?);
        }
        Ok(all)
    }

    /// Strings of a column, of a slab; empty ones where the schema lacks it.
    pub(crate) fn strings(&self, column: &str, slab: &Range<usize>) -> Result<Vec<String>, TableError> {
        match self.columns.get(column) {
            None => Ok(vec![String::new(); slab.len()]),
            Some(column) => self.text(*column, slab),
        }
    }

    /// All strings of a plain dataset, within `budget`.
    pub(crate) fn all_strings(&self, budget: &mut StringBudget) -> Result<Vec<String>, TableError> {
        let Some(plain) = self.columns.get("") else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for slab in self.slabs() {
            for text in self.text(*plain, &slab)? {
                budget.take(&self.name, &text)?;
                all.push(text);
            }
        }
        Ok(all)
    }

    fn forged(&self, what: &'static str) -> TableError {
        TableError::Forged {
            table: self.name.clone(),
            what,
        }
    }

    fn raw_file(&self) -> Result<File, ChunkError> {
        let chunks = self.chunks.as_ref().ok_or(ChunkError::Forged("not stored in chunks"))?;
        chunks.file()
    }

    /// Brings the chunks of `slab` to hand, inflated by every core.
    fn load(&self, reading: &mut Reading, slab: &Range<usize>) -> Result<(), TableError> {
        if reading.slab == *slab && !reading.blocks.is_empty() {
            return Ok(());
        }
        let chunks = self.chunks.as_ref();
        let chunks = chunks.ok_or_else(|| self.forged("not stored in chunks"))?;
        let first = slab.start / self.chunk_rows;
        let number = slab.len().div_ceil(self.chunk_rows);
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
            failed(&self.name, error)
        })
    }

    fn numbers<T: Number>(&self, column: &str, slab: &Range<usize>) -> Result<Vec<T>, TableError> {
        let Some((field, kind)) = self.columns.get(column).copied() else {
            return Ok(vec![T::default(); slab.len()]);
        };
        if slab.is_empty() {
            return Ok(Vec::new());
        }
        let mut reading = self.reading.borrow_mut();
        self.load(&mut reading, slab)?;
        // One column of a slab is too little work to wake other cores for.
        let Reading { blocks, words, .. } = &mut *reading;
        let mut out = Vec::with_capacity(slab.len());
        for block in blocks {
            words.resize((slab.len() - out.len()).min(self.chunk_rows), 0);
            block.words(field, words);
            let numbers = convert(words, field.size, kind, &mut out);
            numbers.ok_or_else(|| self.forged("holding numbers of an unusual type"))?;
        }
        Ok(out)
    }

    fn text(&self, (field, kind): (Field, Kind), slab: &Range<usize>) -> Result<Vec<String>, TableError> {
        if kind != Kind::Text || field.size != REFERENCE {
            return Err(self.forged("holding text of an unusual type"));
        }
        if slab.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |error| failed(&self.name, error);
        let mut reading = self.reading.borrow_mut();
        self.load(&mut reading, slab)?;
        let Reading { blocks, heap, .. } = &mut *reading;
        let heap = match heap {
            Some(heap) => heap,
            None => heap.insert(Heap::new(self.raw_file().map_err(failed)?).map_err(failed)?),
        };
        let part = |offset, size| Field {
            offset: field.offset + offset,
            size,
        };
        let mut words = [const { Vec::new() }; 2];
        let [lengths, addresses] = &mut words;
        let mut objects = Vec::new();
        let mut left = SLAB_STRING_BYTES;
        let mut texts = Vec::with_capacity(slab.len());
        for block in blocks {
            let rows = (slab.len() - texts.len()).min(self.chunk_rows);
            for (words, field) in [
                (&mut *lengths, part(0, 4)),
                (&mut *addresses, part(4, 8)),
                (&mut objects, part(12, 4)),
            ] {
                words.resize(rows, 0);
                block.words(field, words);
            }
            for ((length, address), object) in lengths.iter().zip(addresses.iter()).zip(&objects) {
                let reference = Reference {
                    length: u32::try_from(*length).unwrap_or(u32::MAX),
                    address: *address,
                    object: u32::try_from(*object).unwrap_or(u32::MAX),
                };
                let bytes = heap.get(reference).map_err(failed)?;
                // What an empty string takes counts too, so that a flood of them has a bound.
                let cost = bytes.len().saturating_add(size_of::<String>());
                left = left.checked_sub(cost).ok_or_else(|| TableError::Strings {
                    table: self.name.clone(),
                    limit: wide(SLAB_STRING_BYTES),
                })?;
                texts.push(String::from_utf8_lossy(bytes).into_owned());
            }
        }
        Ok(texts)
    }
}

/// Appends the numbers of little-endian words of `size` bytes; `None` where that cannot be.
fn convert<T: Number>(words: &[u64], size: usize, kind: Kind, out: &mut Vec<T>) -> Option<()> {
    let spare = u32::try_from(64_usize.checked_sub(size * 8)?).ok()?;
    match kind {
        Kind::Unsigned => out.extend(words.iter().map(|word| T::from_unsigned(*word))),
        Kind::Signed if spare < 64 => {
            let signed = |word: &u64| T::from_signed((word << spare).cast_signed() >> spare);
            out.extend(words.iter().map(signed));
        }
        Kind::Float if size == 8 => {
            for word in words {
                out.push(T::from_float(f64::from_bits(*word))?);
            }
        }
        Kind::Float => {
            for word in words {
                out.push(T::from_float(f64::from(f32::from_bits(u32::try_from(*word).ok()?)))?);
            }
        }
        _ => return None,
    }
    Some(())
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
