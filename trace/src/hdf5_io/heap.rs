//! Strings of variable length: a row refers to an object of a collection in the file's global heap.
//!
//! The layout is that of the HDF5 file format specification, III.E. Only what is asked for is copied, and every bound is checked:
//! the library itself may loop for ever on a damaged collection.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::chunks::ChunkError;

/// Bytes of a collection's header, and of an object's.
const HEADER: usize = 16;
/// Collections at hand; rows that follow each other refer to the same few.
const CACHED: usize = 64;
/// Bytes of one collection: the library makes them of 4 KiB unless a string needs more.
const LARGEST: u64 = 64 << 20;
/// Bytes that are read for each byte of the file, before the references must be a forger's.
const READS_PER_BYTE: u64 = 8;

/// What a row stores in place of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) length: u32,
    pub(super) address: u64,
    pub(super) object: u32,
}

/// The global heap of a file.
#[derive(Debug)]
pub(super) struct Heap {
    file: File,
    left: u64,
    cached: HashMap<u64, Collection>,
}

#[derive(Debug)]
struct Collection {
    bytes: Vec<u8>,
    /// Where each object is, by its number.
    objects: Vec<Range<usize>>,
}

impl Heap {
    pub(super) fn new(file: File) -> Result<Self, ChunkError> {
        let bytes = file.metadata()?.len();
        Ok(Self {
            file,
            left: bytes.saturating_mul(READS_PER_BYTE),
            cached: HashMap::new(),
        })
    }

    /// The bytes of a string, up to its first NUL.
    pub(super) fn get(&mut self, reference: Reference) -> Result<&[u8], ChunkError> {
        if reference.length == 0 || reference.address == 0 {
            return Ok(&[]);
        }
        if !self.cached.contains_key(&reference.address) {
            if self.cached.len() >= CACHED {
                self.cached.clear();
            }
            let collection = self.read(reference.address)?;
            self.cached.insert(reference.address, collection);
        }
        let missing = || damaged("a string is not where its row says");
        let collection = self.cached.get(&reference.address).ok_or_else(missing)?;
        let object = usize::try_from(reference.object).ok();
        let object = object
            .and_then(|object| collection.objects.get(object))
            .ok_or_else(missing)?;
        let bytes = collection.bytes.get(object.clone()).ok_or_else(missing)?;
        let length = usize::try_from(reference.length).unwrap_or(usize::MAX);
        let bytes = bytes.get(..length).ok_or_else(missing)?;
        Ok(bytes.split(|byte| *byte == 0).next().unwrap_or(bytes))
    }

    fn read(&mut self, address: u64) -> Result<Collection, ChunkError> {
        let mut header = [0; HEADER];
        self.file.read_exact_at(&mut header, address)?;
        if !header.starts_with(b"GCOL\x01") {
            return Err(damaged("a string's row leads to no string heap"));
        }
        let size = number(&header, 8, 8);
        let left = self.left.checked_sub(size).filter(|_| size <= LARGEST);
        self.left = left.ok_or_else(|| damaged("a string heap is larger than the file allows"))?;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0).max(HEADER)];
        self.file.read_exact_at(&mut bytes, address)?;
        let mut objects = Vec::new();
        let mut at = HEADER;
        while let Some(object) = bytes.get(at..at + HEADER) {
            let index = usize::try_from(number(object, 0, 2)).unwrap_or(0);
            let size = usize::try_from(number(object, 8, 8)).unwrap_or(usize::MAX);
            // Object 0 is the free space behind the others.
            if index == 0 {
                break;
            }
            let from = at + HEADER;
            let Some(to) = from.checked_add(size).filter(|to| *to <= bytes.len()) else {
                return Err(damaged("a string reaches beyond its heap"));
            };
            if objects.len() <= index {
                objects.resize(index + 1, 0..0);
            }
            if let Some(slot) = objects.get_mut(index) {
                *slot = from..to;
            }
            at = to.next_multiple_of(8);
        }
        Ok(Collection { bytes, objects })
    }
}

fn damaged(what: &str) -> ChunkError {
    ChunkError::Damaged(what.to_owned())
}

/// A little-endian number of `size` bytes at `at`.
pub(super) fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let bytes = bytes.get(at..at + size).unwrap_or_default();
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| (number << 8) | u64::from(*byte))
}
