//! The stored chunks of a dataset, read and inflated outside of the library.
//!
//! The library does one thing at a time, under one lock, and makes whole rows even where one column
//! is asked for. Where a chunk lies is its to say; reading it, inflating it and picking columns out
//! of it is plain work that every core can do.

use std::fs::File;
use std::os::unix::fs::FileExt;

use hdf5::file::Sizeof;
use hdf5::filters::Filter;
use hdf5::{Dataset, Group};
use libdeflater::Decompressor;

/// Chunks of one dataset: exports have one per 4,096 rows.
const MAX_CHUNKS: usize = 1 << 22;

/// Why the chunks cannot be read: the caller knows the table.
#[derive(Debug)]
pub(super) enum ChunkError {
    /// The file is damaged there.
    Damaged(String),
    /// Stored in a way that the writers of these files do not use.
    Forged(&'static str),
}

impl From<hdf5::Error> for ChunkError {
    fn from(error: hdf5::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl From<std::io::Error> for ChunkError {
    fn from(error: std::io::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// The file that a group is of, for reading beside the library.
pub(super) fn raw_file(group: &Group) -> Result<File, ChunkError> {
    let file = group.file()?;
    let created = file.create_plist()?;
    let sizes = created.get_sizes()?;
    if created.userblock() != 0 || sizes.sizeof_addr != Sizeof::Bytes8 || sizes.sizeof_size != Sizeof::Bytes8 {
        return Err(ChunkError::Forged("in a file of an unusual layout"));
    }
    Ok(File::open(group.filename())?)
}

#[derive(Debug, Clone, Copy)]
struct StoredChunk {
    address: u64,
    bytes: u64,
    mask: u32,
}

/// Where the chunks are and how they are stored.
#[derive(Debug)]
pub(super) struct Chunks {
    file: File,
    /// Rows of a chunk; the last one is stored whole too.
    rows: usize,
    row_bytes: usize,
    /// The filters in the order of writing: shuffle, deflate.
    filters: Vec<Filter>,
    /// A chunk that was never written holds zeros.
    locations: Vec<Option<StoredChunk>>,
}

/// A chunk as it was before it was deflated.
#[derive(Debug, Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    rows: usize,
    row_bytes: usize,
    shuffled: bool,
}

impl Chunks {
    /// Those of `dataset`, which has `count` rows in chunks of `rows`, each row of `row_bytes`.
    pub(super) fn new(
        dataset: &Dataset,
        file: File,
        count: usize,
        rows: usize,
        row_bytes: usize,
    ) -> Result<Self, ChunkError> {
        let filters = dataset.filters();
        if !matches!(
            filters[..],
            [] | [Filter::Shuffle | Filter::Deflate(_)] | [Filter::Shuffle, Filter::Deflate(_)]
        ) {
            return Err(ChunkError::Forged("compressed in a way that is not read"));
        }
        let number = count.div_ceil(rows.max(1));
        if number > MAX_CHUNKS {
            return Err(ChunkError::Forged("stored in too many chunks"));
        }
        let mut locations = vec![None; number];
        dataset.chunks_visit(|chunk| {
            let at = chunk.offset.first().and_then(|row| usize::try_from(*row).ok());
            if let Some(slot) = at.and_then(|row| locations.get_mut(row / rows.max(1))) {
                *slot = Some(StoredChunk {
                    address: chunk.addr,
                    bytes: chunk.size,
                    mask: chunk.filter_mask,
                });
            }
            0
        })?;
        Ok(Self {
            file,
            rows,
            row_bytes,
            filters,
            locations,
        })
    }

    /// The file, once more.
    pub(super) fn file(&self) -> Result<File, ChunkError> {
        Ok(self.file.try_clone()?)
    }

    /// Reads and inflates chunk `at` into `block`, with `scratch` for what is stored.
    pub(super) fn read(
        &self,
        at: usize,
        inflater: &mut Decompressor,
        scratch: &mut Vec<u8>,
        block: &mut Block,
    ) -> Result<(), ChunkError> {
        let whole = self.rows.saturating_mul(self.row_bytes);
        block.rows = self.rows;
        block.row_bytes = self.row_bytes;
        block.shuffled = false;
        block.bytes.resize(whole, 0);
        let Some(chunk) = self.locations.get(at).copied().flatten() else {
            block.bytes.fill(0);
            return Ok(());
        };
        let mut deflated = false;
        for (bit, filter) in self.filters.iter().enumerate() {
            // A writer leaves a filter out where it gains nothing.
            let used = chunk.mask & (1 << bit) == 0;
            match filter {
                Filter::Shuffle => block.shuffled = used && self.row_bytes > 1,
                _ => deflated = used,
            }
        }
        let stored = usize::try_from(chunk.bytes).unwrap_or(usize::MAX);
        // What deflate makes of incompressible bytes is hardly larger than they are.
        let max = whole.saturating_add(whole / 64).saturating_add(1024);
        if stored > max || (!deflated && stored != whole) {
            return Err(ChunkError::Damaged(format!(
                "a chunk of {stored} bytes stands for {whole}"
            )));
        }
        if !deflated {
            return Ok(self.file.read_exact_at(&mut block.bytes, chunk.address)?);
        }
        scratch.resize(stored, 0);
        self.file.read_exact_at(scratch, chunk.address)?;
        match inflater.zlib_decompress(scratch, &mut block.bytes) {
            Ok(length) if length == whole => Ok(()),
            Ok(length) => Err(ChunkError::Damaged(format!("a chunk of {whole} bytes holds {length}"))),
            Err(error) => Err(ChunkError::Damaged(format!("a chunk cannot be inflated: {error}"))),
        }
    }
}

/// Where a number of `size` bytes lies in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) offset: usize,
    pub(super) size: usize,
}

impl Block {
    /// The bytes of a field's first `rows` numbers apart from each other, the lowest ones first,
    /// and empty lists where it has no more; `None` where they do not lie so.
    pub(super) fn planes(&self, field: Field, rows: usize) -> Option<[&[u8]; 8]> {
        if !self.shuffled || !matches!(field.size, 1 | 2 | 4 | 8) {
            return None;
        }
        let mut planes = [[].as_slice(); 8];
        for (byte, plane) in planes.iter_mut().enumerate().take(field.size) {
            let from = (field.offset + byte) * self.rows;
            *plane = self.bytes.get(from..from + rows)?;
        }
        Some(planes)
    }

    #[cfg(test)]
    pub(super) fn shuffled(bytes: Vec<u8>, rows: usize, row_bytes: usize) -> Self {
        Self {
            bytes,
            rows,
            row_bytes,
            shuffled: true,
        }
    }

    /// Writes the field's bytes, as a little-endian number, over the elements of `out`, from the
    /// first row of the chunk on.
    pub(super) fn words(&self, field: Field, out: &mut [u64]) {
        let mut empty = true;
        for byte in 0..field.size.min(8) {
            let at = field.offset + byte;
            let shift = byte * 8;
            if self.shuffled {
                let plane = self.bytes.get(at * self.rows..).unwrap_or_default();
                let plane = plane.get(..out.len()).unwrap_or(plane);
                // The upper bytes of most columns are nothing but zeros.
                if plane.iter().all(|byte| *byte == 0) {
                    continue;
                }
                if empty && plane.len() == out.len() {
                    for (word, byte) in out.iter_mut().zip(plane) {
                        *word = u64::from(*byte) << shift;
                    }
                    empty = false;
                    continue;
                }
                clear(&mut empty, out);
                for (word, byte) in out.iter_mut().zip(plane) {
                    *word |= u64::from(*byte) << shift;
                }
            } else {
                clear(&mut empty, out);
                let bytes = self.bytes.get(at..).unwrap_or_default();
                for (word, byte) in out.iter_mut().zip(bytes.iter().step_by(self.row_bytes.max(1))) {
                    *word |= u64::from(*byte) << shift;
                }
            }
        }
        clear(&mut empty, out);
    }
}

/// Zeros where nothing was written yet.
fn clear(empty: &mut bool, out: &mut [u64]) {
    if std::mem::take(empty) {
        out.fill(0);
    }
}
