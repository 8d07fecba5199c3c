//! Columns of unsigned numbers, shuffled and deflated by every core ahead of the thread that stores
//! them chunk by chunk.

use std::borrow::Cow;
use std::ops::Range;

use hdf5::{Dataset, Group};

use super::ahead::ReadAhead;
use super::deflate::Deflater;
use super::write_chunk::write_chunk;

/// The numbers of a column.
pub(crate) enum Values<'a> {
    /// Numbers of 32 bits.
    U32(Cow<'a, [u32]>),
    /// Numbers of 64 bits.
    U64(Cow<'a, [u64]>),
    /// Indices of 32 bits into numbers of 64 bits.
    Keyed(&'a [u32], Cow<'a, [u64]>),
}

impl Values<'_> {
    /// Appends the values of a range, which lie in `out` from its begin.
    pub(super) fn copy(&self, range: Range<usize>, out: &mut [u64]) {
        match self {
            Self::U32(values) => fill(out, values.get(range), |value| u64::from(*value)),
            Self::U64(values) => fill(out, values.get(range), |value| *value),
            Self::Keyed(keys, values) => fill(out, keys.get(range), |key| {
                let at = usize::try_from(*key).ok();
                at.and_then(|at| values.get(at)).copied().unwrap_or(0)
            }),
        }
    }
}

impl Values<'_> {
    /// The one value that all of a range have.
    pub(super) fn constant(&self, range: Range<usize>) -> Option<u64> {
        match self {
            Self::U32(values) => constant(values.get(range)?).map(u64::from),
            Self::U64(values) => constant(values.get(range)?),
            Self::Keyed(keys, values) => {
                let key = usize::try_from(constant(keys.get(range)?)?).ok()?;
                values.get(key).copied()
            }
        }
    }
}

/// The one value that all are.
pub(super) fn constant<T: Copy + PartialEq>(values: &[T]) -> Option<T> {
    let first = *values.first()?;
    // In blocks, as a comparison that may end anywhere looks at one value at a time.
    let others = |block: &[T]| block.iter().filter(|value| **value != first).count();
    let same = values.chunks(64).all(|block| others(block) == 0);
    same.then_some(first)
}

fn fill<T>(out: &mut [u64], values: Option<&[T]>, wide: impl Fn(&T) -> u64) {
    for (out, value) in out.iter_mut().zip(values.unwrap_or_default()) {
        *out = wide(value);
    }
}

/// A column that is about to be stored.
pub(crate) struct Column<'a> {
    /// Name of the dataset.
    pub(crate) name: String,
    /// Bytes of a value: 1, 2, 4 or 8.
    pub(crate) width: usize,
    /// The values; each fits its width.
    pub(crate) values: Values<'a>,
}

/// Columns of one length, stored in chunks of one size.
pub(crate) struct Columns<'a> {
    /// Columns in the order in which they are written.
    pub(crate) list: Vec<Column<'a>>,
    /// Values of each column.
    pub(crate) count: usize,
    /// Values of a chunk.
    pub(crate) chunk: usize,
}

impl Columns<'_> {
    fn chunks(&self) -> usize {
        self.count.div_ceil(self.chunk.max(1))
    }
}

/// A chunk to deflate: of which columns, which of them, and its values.
type Chunk = (usize, usize, Range<usize>);

/// Deflates the chunks of columns on every core while `store` runs, which is to store all of them
/// in their order.
pub(crate) fn ahead<'a, R: Send>(
    all: &[Columns<'a>],
    level: u8,
    store: impl FnOnce(&mut Store<'_, 'a>) -> R + Send,
) -> R {
    let mut chunks: Vec<Chunk> = Vec::new();
    for (set, columns) in all.iter().enumerate() {
        for column in 0..columns.list.len() {
            let firsts = (0..columns.count).step_by(columns.chunk.max(1));
            let ranges = firsts.map(|first| first..(first + columns.chunk).min(columns.count));
            chunks.extend(ranges.map(|range| (set, column, range)));
        }
    }
    let deflate = |deflater: &mut Deflater, (set, column, range): &Chunk| {
        let columns = all.get(*set);
        match columns.and_then(|columns| Some((columns.chunk, columns.list.get(*column)?))) {
            Some((chunk, column)) => deflater.chunk(column, range.clone(), chunk),
            None => Ok(Vec::new()),
        }
    };
    ReadAhead::run(
        &chunks,
        || Deflater::new(level),
        deflate,
        |deflated| {
            store(&mut Store {
                all,
                level,
                next: 0,
                deflated,
            })
        },
    )
}

/// Stores columns in the order in which they were given.
pub(crate) struct Store<'s, 'a> {
    all: &'s [Columns<'a>],
    level: u8,
    next: usize,
    /// Gives the next chunk.
    deflated: &'s mut dyn FnMut() -> Option<hdf5::Result<Vec<u8>>>,
}

/// Where a chunk of a column came to lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChunkLocation {
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Bytes that it takes in the file.
    pub(crate) bytes: u64,
}

impl<'s, 'a> Store<'s, 'a> {
    /// Stores the next columns in `group`; gives them, and where the chunks of each lie.
    ///
    /// As HDF5 has it, a chunk is always stored whole: behind the last value come zeros.
    pub(crate) fn next(&mut self, group: &Group) -> hdf5::Result<(&'s Columns<'a>, Vec<Vec<ChunkLocation>>)> {
        let columns = self.all.get(self.next);
        let columns = columns.ok_or_else(|| hdf5::Error::from("no more columns"))?;
        self.next += 1;
        let mut all = Vec::with_capacity(columns.list.len());
        for column in &columns.list {
            let dataset = create(group, column, columns.count, columns.chunk, self.level)?;
            for chunk in 0..columns.chunks() {
                let made = (self.deflated)().unwrap_or_else(|| Err("no more chunks".into()));
                write_chunk(&dataset, chunk * columns.chunk, &made?)?;
            }
            all.push(locations(&dataset, columns)?);
        }
        Ok((columns, all))
    }
}

/// The least width that holds `max` and has at least `bytes` bytes.
pub(crate) fn width(max: u64, bytes: usize) -> usize {
    let needed = [
        (1, u64::from(u8::MAX)),
        (2, u64::from(u16::MAX)),
        (4, u64::from(u32::MAX)),
    ];
    let fitting = needed
        .into_iter()
        .find(|(width, limit)| *width >= bytes && max <= *limit);
    fitting.map_or(8, |(width, _)| width)
}

fn create(group: &Group, column: &Column<'_>, count: usize, chunk: usize, level: u8) -> hdf5::Result<Dataset> {
    let mut builder = group.new_dataset_builder().obj_track_times(false);
    if count > 0 {
        builder = builder.chunk(chunk).shuffle().deflate(level);
    }
    let name = column.name.as_str();
    match column.width {
        1 => builder.empty::<u8>().shape(count).create(name),
        2 => builder.empty::<u16>().shape(count).create(name),
        4 => builder.empty::<u32>().shape(count).create(name),
        _ => builder.empty::<u64>().shape(count).create(name),
    }
}

fn locations(dataset: &Dataset, columns: &Columns<'_>) -> hdf5::Result<Vec<ChunkLocation>> {
    let mut locations = vec![ChunkLocation::default(); columns.chunks()];
    if !locations.is_empty() {
        dataset.chunks_visit(|found| {
            let first = found.offset.first().and_then(|first| usize::try_from(*first).ok());
            if let Some(location) = first.and_then(|first| locations.get_mut(first / columns.chunk.max(1))) {
                *location = ChunkLocation {
                    offset: found.addr,
                    bytes: found.size,
                };
            }
            0
        })?;
    }
    Ok(locations)
}
