//! What HDF5's shuffle and deflate filters make of a chunk, made outside of the library and for columns of numbers.

use std::ops::Range;

use hashbrown::HashMap;
use libdeflater::{CompressionLvl, Compressor};

use super::columns::Column;

/// Bytes of a plane that are tried first.
const SAMPLE: usize = 4096;
/// Planes are stored as they are unless a sample shrinks by a sixteenth of its size.
const LEAST_GAIN: usize = SAMPLE / 16;
/// Bytes of a stored block, at most.
const MOST_STORED: usize = 65_535;
/// Values that go through at once: few enough for the innermost cache.
const PIECE: usize = 1 << 10;

/// Chunks of one value that are kept.
const MOST_CONSTANTS: usize = 256;

/// Deflates chunks, with buffers that it keeps.
pub(super) struct Deflater {
    compressor: Compressor,
    planes: Vec<u8>,
    out: Vec<u8>,
    /// Chunks of one value, by that value, its width, how many there are and how many the chunk holds.
    constants: HashMap<(u64, usize, usize, usize), Vec<u8>>,
}

impl Deflater {
    pub(super) fn new(level: u8) -> hdf5::Result<Self> {
        let compression = CompressionLvl::new(i32::from(level));
        let compression = compression.map_err(|error| hdf5::Error::from(format!("level of compression: {error:?}")))?;
        Ok(Self {
            compressor: Compressor::new(compression),
            planes: Vec::new(),
            out: Vec::new(),
            constants: HashMap::new(),
        })
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
        if self.constants.len() < MOST_CONSTANTS {
            self.constants.insert(key, made.clone());
        }
        Ok(made)
    }

    /// The lowest bytes of times are as good as random. These planes, which come first, become stored blocks, which takes no time; the
    /// others are deflated.
    fn deflate(&mut self, column: &Column<'_>, range: Range<usize>, chunk: usize) -> hdf5::Result<Vec<u8>> {
        let count = range.len();
        self.shuffle(column, range, chunk);
        let stored = self.random_planes(column.width, count, chunk)?;
        let split = stored * chunk;
        // Without compression first, for no dictionary and the quickest level.
        self.out.clear();
        self.out.extend([0x78, 0x01]);
        for block in self.planes.get(..split).unwrap_or_default().chunks(MOST_STORED) {
            let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
            self.out.push(0);
            self.out.extend(length.to_le_bytes());
            self.out.extend((!length).to_le_bytes());
            self.out.extend(block);
        }
        let rest = self.planes.get(split..).unwrap_or_default();
        let from = self.out.len();
        self.out
            .resize(from + self.compressor.deflate_compress_bound(rest.len()), 0);
        let out = self.out.get_mut(from..).unwrap_or_default();
        let length = self.compressor.deflate_compress(rest, out);
        let length = length.map_err(|error| hdf5::Error::from(error.to_string()))?;
        self.out.truncate(from + length);
        self.out.extend(libdeflater::adler32(&self.planes).to_be_bytes());
        Ok(self.out.clone())
    }

    /// Fills `planes`: the lowest byte of each value, then the second lowest, and so on.
    fn shuffle(&mut self, column: &Column<'_>, range: Range<usize>, chunk: usize) {
        self.planes.clear();
        self.planes.resize(column.width * chunk, 0);
        let mut values = [0_u64; PIECE];
        for first in range.clone().step_by(PIECE) {
            let count = PIECE.min(range.end - first);
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

    /// How many of the first planes do not shrink, by a sample of each. The others have at least one among them.
    fn random_planes(&mut self, width: usize, count: usize, chunk: usize) -> hdf5::Result<usize> {
        if count < 2 * SAMPLE {
            return Ok(0);
        }
        let from = (count - SAMPLE) / 2;
        self.out.resize(self.compressor.deflate_compress_bound(SAMPLE), 0);
        for plane in 0..width.saturating_sub(1) {
            let sample = self.planes.get(plane * chunk + from..).unwrap_or_default();
            let sample = sample.get(..SAMPLE).unwrap_or(sample);
            let length = self.compressor.deflate_compress(sample, &mut self.out);
            let length = length.map_err(|error| hdf5::Error::from(error.to_string()))?;
            if length + LEAST_GAIN < SAMPLE {
                return Ok(plane);
            }
        }
        Ok(width.saturating_sub(1))
    }
}
