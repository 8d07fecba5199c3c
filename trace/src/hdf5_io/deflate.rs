//! What HDF5's shuffle and deflate filters make of a chunk, made outside of the library and for
//! columns of numbers.

use std::ops::Range;

use flate2::{Compress, Compression, FlushCompress, Status};
use hashbrown::HashMap;

use super::columns::{Column, constant};

/// Bytes of a plane that are tried first.
const SAMPLE_BYTES: usize = 4096;
/// A plane is stored as it is unless a sample shrinks by a sixth of its size: deflating such bytes
/// takes ten times as long as others.
const LEAST_GAIN: usize = SAMPLE_BYTES / 6;
/// Bytes of a stored block, at most.
const MAX_STORED: usize = 65_535;
/// Values that go through at once: few enough for the innermost cache.
const PIECE_VALUES: usize = 1 << 10;
/// Bytes of the widest values.
const MAX_VALUE_BYTES: usize = 8;

/// Chunks of one value that are kept.
const MAX_CONSTANTS: usize = 256;

/// Deflates chunks, with buffers that it keeps.
pub(super) struct Deflater {
    compressor: Compress,
    planes: Vec<u8>,
    out: Vec<u8>,
    /// Chunks of one value, by that value, its width, how many there are and how many the chunk
    /// holds.
    constants: HashMap<(u64, usize, usize, usize), Vec<u8>>,
}

impl Deflater {
    pub(super) fn new(level: u8) -> Self {
        Self {
            compressor: Compress::new(Compression::new(u32::from(level)), false),
            planes: Vec::new(),
            out: Vec::new(),
            constants: HashMap::new(),
        }
    }

    /// The values of `range`, as a chunk of `chunk` values, shuffled and deflated: a zlib stream.
    pub(super) fn chunk(&mut self, column: &Column<'_>, range: Range<usize>, chunk: usize) -> hdf5::Result<Vec<u8>> {
        let Some(value) = column.values.constant(range.clone()) else {
            return self.deflate(column, range, chunk);
        };
        // A good half of the chunks of a usual capture.
        let key = (value, column.width, range.len(), chunk);
        if let Some(made) = self.constants.get(&key) {
            return Ok(made.clone());
        }
        let made = self.deflate(column, range, chunk)?;
        if self.constants.len() < MAX_CONSTANTS {
            self.constants.insert(key, made.clone());
        }
        Ok(made)
    }

    /// The lowest bytes of times are as good as random: such planes become stored blocks, which
    /// takes no time. The others are deflated, those that lie together as one.
    fn deflate(&mut self, column: &Column<'_>, range: Range<usize>, chunk: usize) -> hdf5::Result<Vec<u8>> {
        let count = range.len();
        self.shuffle(column, range, chunk);
        let random = self.random_planes(count, chunk)?;
        let planes = std::mem::take(&mut self.planes);
        self.compressor.reset();
        // Without compression first, for no dictionary and the quickest level.
        self.out.clear();
        self.out.extend([0x78, 0x01]);
        let mut first = 0;
        for (plane, _) in random.iter().enumerate().filter(|(_, random)| **random) {
            let at = plane * chunk;
            // Nothing behind a full flush refers to what is before it.
            self.append(planes.get(first..at).unwrap_or_default(), FlushCompress::Full)?;
            first = (at + chunk).min(planes.len());
            self.store(planes.get(at..first).unwrap_or_default());
        }
        self.append(planes.get(first..).unwrap_or_default(), FlushCompress::Finish)?;
        self.out.extend(libdeflater::adler32(&planes).to_be_bytes());
        self.planes = planes;
        Ok(self.out.clone())
    }

    /// Appends `bytes` as they are.
    fn store(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(MAX_STORED) {
            let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
            self.out.push(0);
            self.out.extend(length.to_le_bytes());
            self.out.extend((!length).to_le_bytes());
            self.out.extend(block);
        }
    }

    /// Appends what deflate makes of `bytes`.
    fn append(&mut self, bytes: &[u8], flush: FlushCompress) -> hdf5::Result<()> {
        if bytes.is_empty() && flush != FlushCompress::Finish {
            return Ok(());
        }
        let begin = self.compressor.total_in();
        loop {
            let taken = usize::try_from(self.compressor.total_in() - begin).unwrap_or(usize::MAX);
            let rest = bytes.get(taken..).unwrap_or_default();
            self.out.reserve(rest.len() / 4 + SAMPLE_BYTES);
            let status = self.compressor.compress_vec(rest, &mut self.out, flush);
            let status = status.map_err(|error| hdf5::Error::from(error.to_string()))?;
            // Where room is left, all has come out.
            if status == Status::StreamEnd || (flush != FlushCompress::Finish && self.out.len() < self.out.capacity()) {
                return Ok(());
            }
        }
    }

    /// Fills `planes`: the lowest byte of each value, then the second lowest, and so on.
    fn shuffle(&mut self, column: &Column<'_>, range: Range<usize>, chunk: usize) {
        self.planes.clear();
        self.planes.resize(column.width * chunk, 0);
        let mut values = [0_u64; PIECE_VALUES];
        for first in range.clone().step_by(PIECE_VALUES) {
            let count = PIECE_VALUES.min(range.end - first);
            let values = values.get_mut(..count).unwrap_or_default();
            column.values.copy(first..first + count, values);
            let used = values.iter().fold(0, |used, value| used | value);
            let at = first - range.start;
            for (byte, plane) in self.planes.chunks_mut(chunk.max(1)).enumerate() {
                let shift = byte * 8;
                if used >> shift == 0 {
                    // Zeros are there already.
                    break;
                }
                for (slot, value) in plane.iter_mut().skip(at).zip(&*values) {
                    [*slot, ..] = (value >> shift).to_le_bytes();
                }
            }
        }
    }

    /// Which planes hardly shrink, by a sample of each.
    fn random_planes(&mut self, count: usize, chunk: usize) -> hdf5::Result<[bool; MAX_VALUE_BYTES]> {
        let mut random = [false; MAX_VALUE_BYTES];
        if count < 2 * SAMPLE_BYTES {
            return Ok(random);
        }
        let from = (count - SAMPLE_BYTES) / 2;
        let planes = std::mem::take(&mut self.planes);
        for (random, plane) in random.iter_mut().zip(planes.chunks(chunk.max(1))) {
            let sample = plane.get(from..from + SAMPLE_BYTES).unwrap_or(plane);
            if constant(sample).is_none() {
                self.compressor.reset();
                self.out.clear();
                self.append(sample, FlushCompress::Finish)?;
                *random = self.out.len() + LEAST_GAIN > sample.len();
            }
        }
        self.planes = planes;
        Ok(random)
    }
}

#[cfg(test)]
mod tests {
    use libdeflater::Decompressor;

    use super::*;
    use crate::hdf5_io::columns::Values;

    /// Values as the chunk holds them, and the bytes that it takes.
    fn through(values: Vec<u64>, width: usize, chunk: usize) -> (Vec<u64>, usize) {
        let range = 0..values.len();
        let column = Column {
            name: String::new(),
            width,
            values: Values::U64(values.into()),
        };
        let stored = Deflater::new(2).chunk(&column, range, chunk).unwrap();
        let mut planes = vec![0; width * chunk];
        let inflated = Decompressor::new().zlib_decompress(&stored, &mut planes).unwrap();
        assert_eq!(inflated, planes.len());
        let value = |at: usize| {
            (0..width)
                .rev()
                .fold(0, |value, byte| value << 8 | u64::from(planes[byte * chunk + at]))
        };
        ((0..chunk).map(value).collect(), stored.len())
    }

    #[test]
    fn what_is_as_good_as_random_is_stored_and_comes_out_as_it_was() {
        let random = |bits: u32| {
            let mut state = 1_u64;
            move |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> (64 - bits)
            }
        };
        // More than one stored block holds, fewer than are sampled, and a chunk that is not full.
        for (count, chunk) in [(70_000, 70_000), (100, 100), (9000, 65_536)] {
            for (bits, width) in [(8, 1), (8, 8), (24, 4), (64, 8)] {
                let mut values: Vec<u64> = (0..count).map(random(bits)).collect();
                let (out, stored) = through(values.clone(), width, chunk);
                values.resize(chunk, 0);
                assert!(out == values, "{count} {bits} {width}");
                let bytes = width * chunk;
                assert!(stored < bytes + bytes / 64 + 1024, "{count} {bits} {width}: {stored}");
            }
        }
    }

    #[test]
    fn a_chunk_of_one_value_is_small_and_comes_out_as_it_was() {
        for value in [0, 1, u64::MAX] {
            let (out, stored) = through(vec![value; 65_536], 8, 65_536);
            assert!(out.iter().all(|of| *of == value));
            assert!(stored < 2048, "{stored}");
            let (out, _) = through(vec![value; 10], 8, 16);
            assert_eq!(out, [vec![value; 10], vec![0; 6]].concat());
        }
    }
}
