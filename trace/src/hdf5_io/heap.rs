//! Strings of variable length: a row refers to an object of a collection in the file's global heap.
//!
//! The layout is that of the HDF5 file format specification, III.E. Only what is asked for is
//! copied, and every bound is checked: the library itself may loop for ever on a damaged
//! collection.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use hashbrown::HashMap;

use super::chunks::ChunkError;

/// With which a collection begins.
const SIGNATURE: &[u8] = b"GCOL\x01";
/// Bytes of a collection's header, and of an object's.
const HEADER_BYTES: usize = 16;
/// Bytes of a collection that holds no long string.
const MIN_COLLECTION_BYTES: usize = 4096;
/// Collections at hand; rows that follow each other refer to the same few.
const MAX_CACHED_COLLECTIONS: usize = 64;
const MAX_CACHED_BYTES: usize = 64 << 20;
/// Bytes of one collection: the library makes them of 4 KiB unless a string needs more.
const MAX_COLLECTION_BYTES: u64 = 64 << 20;
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
    cached_bytes: usize,
    /// Collections that are no longer needed, for their memory.
    spare: Vec<Collection>,
}

#[derive(Debug, Default)]
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
            cached_bytes: 0,
            spare: Vec::new(),
        })
    }

    /// The bytes of a string, up to its first NUL.
    pub(super) fn get(&mut self, reference: Reference) -> Result<&[u8], ChunkError> {
        if reference.length == 0 || reference.address == 0 {
            return Ok(&[]);
        }
        if !self.cached.contains_key(&reference.address) {
            if self.cached.len() >= MAX_CACHED_COLLECTIONS || self.cached_bytes >= MAX_CACHED_BYTES {
                let usual = |collection: &Collection| collection.bytes.capacity() <= MIN_COLLECTION_BYTES;
                let gone = self.cached.drain().map(|(_, collection)| collection);
                self.spare.extend(gone.filter(usual));
                self.cached_bytes = 0;
            }
            let mut collection = self.spare.pop().unwrap_or_default();
            self.read(reference.address, &mut collection)?;
            self.cached_bytes = self.cached_bytes.saturating_add(collection.bytes.len());
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

    fn read(&mut self, address: u64, collection: &mut Collection) -> Result<(), ChunkError> {
        let Collection { bytes, objects } = collection;
        objects.clear();
        // Most collections are of the usual size, so that one read is enough.
        bytes.resize(MIN_COLLECTION_BYTES, 0);
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self
                .file
                .read_at(rest, address.saturating_add(u64::try_from(filled).unwrap_or(0)))?
            {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        if !bytes.starts_with(SIGNATURE) || filled < HEADER_BYTES {
            return Err(damaged("a string's row leads to no string heap"));
        }
        let size = number(bytes, 8, 8);
        let left = self.left.checked_sub(size).filter(|_| size <= MAX_COLLECTION_BYTES);
        self.left = left.ok_or_else(|| damaged("a string heap is larger than the file allows"))?;
        bytes.resize(usize::try_from(size).unwrap_or(0).max(HEADER_BYTES), 0);
        if let Some(rest) = bytes.get_mut(filled..) {
            self.file
                .read_exact_at(rest, address.saturating_add(u64::try_from(filled).unwrap_or(0)))?;
        }
        let mut at = HEADER_BYTES;
        while let Some(object) = bytes.get(at..at + HEADER_BYTES) {
            let index = usize::try_from(number(object, 0, 2)).unwrap_or(0);
            let size = usize::try_from(number(object, 8, 8)).unwrap_or(usize::MAX);
            // Object 0 is the free space behind the others.
            if index == 0 {
                break;
            }
            let from = at + HEADER_BYTES;
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
        Ok(())
    }
}

/// Bytes of a file that are looked through at once.
const PIECE_BYTES: usize = 1 << 20;

/// Refuses a file with a collection that the library would never be done with: it steps over free
/// space by its size, also where that is nothing. Asked before the library itself follows a string,
/// as it does for those of attributes.
pub(crate) fn check(file: &File) -> Result<(), ChunkError> {
    let mut window = Vec::with_capacity(PIECE_BYTES + HEADER_BYTES);
    let mut start = 0_u64;
    loop {
        let kept = window.len();
        window.resize(kept + PIECE_BYTES, 0);
        let offset = start.saturating_add(u64::try_from(kept).unwrap_or(u64::MAX));
        let read = file.read_at(window.get_mut(kept..).unwrap_or_default(), offset)?;
        window.truncate(kept + read);
        for at in memchr::memmem::find_iter(&window, SIGNATURE) {
            check_collection(file, start.saturating_add(u64::try_from(at).unwrap_or(u64::MAX)))?;
        }
        if read == 0 {
            return Ok(());
        }
        // A signature may be cut in two.
        let done = window.len().saturating_sub(SIGNATURE.len() - 1);
        start = start.saturating_add(u64::try_from(done).unwrap_or(u64::MAX));
        window.drain(..done);
    }
}

/// Whether walking a collection's objects comes to an end.
fn check_collection(file: &File, address: u64) -> Result<(), ChunkError> {
    let size = {
        let mut header = [0; HEADER_BYTES];
        if file.read_at(&mut header, address)? < HEADER_BYTES {
            return Ok(());
        }
        number(&header, 8, 8)
    };
    let step = u64::try_from(HEADER_BYTES).unwrap_or(0);
    let end = address.saturating_add(size).min(file.metadata()?.len());
    let mut at = address.saturating_add(step);
    let mut bytes = vec![0; MIN_COLLECTION_BYTES];
    let mut from = at;
    let mut filled = 0;
    while at.saturating_add(step) <= end {
        let offset = usize::try_from(at - from).unwrap_or(usize::MAX);
        if offset.saturating_add(HEADER_BYTES) > filled {
            from = at;
            filled = file.read_at(&mut bytes, at)?;
            if filled < HEADER_BYTES {
                return Ok(());
            }
            continue;
        }
        let object = bytes.get(offset..).unwrap_or_default();
        let length = number(object, 8, 8);
        let next = if number(object, 0, 2) == 0 {
            length
        } else {
            length.checked_next_multiple_of(8).unwrap_or(0).saturating_add(step)
        };
        if next == 0 {
            return Err(damaged("a string heap has free space of no size"));
        }
        at = at.saturating_add(next);
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A collection of one object of five bytes, with free space of `free` bytes behind it,
    /// `before` other bytes.
    fn file(before: usize, free: u64) -> File {
        let mut bytes = vec![7; before];
        bytes.extend(b"GCOL\x01\0\0\0");
        bytes.extend(96_u64.to_le_bytes());
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(b"hello\0\0\0");
        bytes.extend([0; 8]);
        bytes.extend(free.to_le_bytes());
        bytes.resize(before + 96, 0);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        file
    }

    #[test]
    fn free_space_of_no_size_is_found_wherever_its_heap_lies() {
        for before in [0, 100, PIECE_BYTES - 2, PIECE_BYTES, 2 * PIECE_BYTES - 4] {
            assert!(check(&file(before, 56)).is_ok(), "{before}");
            assert!(
                matches!(check(&file(before, 0)), Err(ChunkError::Damaged(_))),
                "{before}"
            );
        }
    }
}
