//! Columns of unsigned numbers, shuffled and deflated by every core and stored chunk by chunk.

use std::ops::Range;

use hdf5::{Dataset, Group};
use libdeflater::{CompressionLvl, Compressor};
use rayon::prelude::*;

use super::write_chunk::write_chunk;

/// Bytes of the values that are deflated before they are stored.
const BATCH_BYTES: usize = 32 << 20;

/// Gives the values of a range.
pub(crate) type Values<'a> = Box<dyn Fn(Range<usize>, &mut Vec<u64>) + Sync + 'a>;

/// A column that is about to be stored.
pub(crate) struct Column<'a> {
    /// Name of the dataset.
    pub(crate) name: String,
    /// Bytes of a value: 1, 2, 4 or 8.
    pub(crate) width: usize,
    /// The values; each fits its width.
    pub(crate) values: Values<'a>,
}

/// Where a chunk of a column came to lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Bytes there.
    pub(crate) bytes: u64,
}

/// Stores `columns` of `count` values each, in chunks of `chunk` values; gives where the chunks of each column lie.
///
/// As HDF5 has it, a chunk is always stored whole: behind the last value come zeros.
pub(crate) fn write(
    group: &Group,
    columns: &[Column<'_>],
    count: usize,
    chunk: usize,
    level: u8,
) -> hdf5::Result<Vec<Vec<Stored>>> {
    let compression = CompressionLvl::new(i32::from(level));
    let compression = compression.map_err(|error| hdf5::Error::from(format!("level of compression: {error:?}")))?;
    let mut tasks: Vec<(usize, Range<usize>)> = Vec::new();
    let mut datasets = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        datasets.push(create(group, column, count, chunk, level)?);
        let firsts = (0..count).step_by(chunk.max(1));
        tasks.extend(firsts.map(|first| (at, first..first.saturating_add(chunk).min(count))));
    }
    for batch in tasks.chunks((BATCH_BYTES / chunk.saturating_mul(8).max(1)).max(1)) {
        let deflated: Vec<hdf5::Result<Vec<u8>>> = batch
            .par_iter()
            .map_init(
                || (Compressor::new(compression), Scratch::default()),
                |(compressor, scratch), (at, range)| match columns.get(*at) {
                    Some(column) => scratch.deflate(compressor, column, range.clone(), chunk),
                    None => Ok(Vec::new()),
                },
            )
            .collect();
        for ((at, range), bytes) in batch.iter().zip(deflated) {
            if let Some(dataset) = datasets.get(*at) {
                write_chunk(dataset, range.start, &bytes?)?;
            }
        }
    }
    datasets.iter().map(|dataset| places(dataset, count, chunk)).collect()
}

/// The least width that holds `most` and has at least `bytes` bytes.
pub(crate) fn width(most: u64, bytes: usize) -> usize {
    let needed = [
        (1, u64::from(u8::MAX)),
        (2, u64::from(u16::MAX)),
        (4, u64::from(u32::MAX)),
    ];
    let fitting = needed
        .into_iter()
        .find(|(width, limit)| *width >= bytes && most <= *limit);
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

fn places(dataset: &Dataset, count: usize, chunk: usize) -> hdf5::Result<Vec<Stored>> {
    let mut places = vec![Stored::default(); count.div_ceil(chunk.max(1))];
    if !places.is_empty() {
        dataset.chunks_visit(|found| {
            let first = found.offset.first().and_then(|first| usize::try_from(*first).ok());
            if let Some(place) = first.and_then(|first| places.get_mut(first / chunk.max(1))) {
                *place = Stored {
                    offset: found.addr,
                    bytes: found.size,
                };
            }
            0
        })?;
    }
    Ok(places)
}

#[derive(Default)]
struct Scratch {
    values: Vec<u64>,
    shuffled: Vec<u8>,
    deflated: Vec<u8>,
}

impl Scratch {
    /// The chunk of `range` as HDF5's shuffle and deflate filters make it.
    fn deflate(
        &mut self,
        compressor: &mut Compressor,
        column: &Column<'_>,
        range: Range<usize>,
        chunk: usize,
    ) -> hdf5::Result<Vec<u8>> {
        self.values.clear();
        (column.values)(range, &mut self.values);
        self.values.resize(chunk, 0);
        self.shuffled.clear();
        for byte in 0..column.width {
            let shift = byte * 8;
            let plane = self.values.iter().map(|value| {
                let [byte, ..] = (value >> shift).to_le_bytes();
                byte
            });
            self.shuffled.extend(plane);
        }
        let bound = compressor.zlib_compress_bound(self.shuffled.len());
        if self.deflated.len() < bound {
            self.deflated.resize(bound, 0);
        }
        let length = compressor.zlib_compress(&self.shuffled, &mut self.deflated);
        let length = length.map_err(|error| hdf5::Error::from(error.to_string()))?;
        Ok(self.deflated.get(..length).unwrap_or_default().to_vec())
    }
}
