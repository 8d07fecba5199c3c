//! The one place that calls HDF5's C API: reads a range of a dataset, or of one member of its compound type, into memory.
//!
//! The safe crate reads whole rows of types known at compile time and gives the library a free hand with string memory; a
//! foreign file needs members by name and a limit on what its strings may take.
#![allow(
    unsafe_code,
    reason = "H5Dread has no safe form for a member chosen at run time; each block has its proof"
)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;

use hdf5::types::{CompoundField, CompoundType, H5Type, TypeDescriptor};
use hdf5::{Dataset, Dataspace, Datatype, PropertyList};

/// Numbers that HDF5 can convert a stored number to.
pub(crate) trait Number: H5Type + Copy + Default {}

impl Number for u32 {}
impl Number for u64 {}
impl Number for i64 {}
impl Number for f64 {}

/// Why a read gave nothing.
#[derive(Debug)]
pub(super) enum RawError {
    /// HDF5 said no.
    Hdf5(hdf5::Error),
    /// The strings of the range need more than the budget.
    Budget,
}

impl From<hdf5::Error> for RawError {
    fn from(error: hdf5::Error) -> Self {
        Self::Hdf5(error)
    }
}

/// The type to read into: the value itself, or a compound that holds nothing but that member.
fn memory_type(member: Option<&str>, value: TypeDescriptor) -> hdf5::Result<Datatype> {
    let Some(name) = member else {
        return Datatype::from_descriptor(&value);
    };
    let size = value.size();
    let fields = vec![CompoundField::new(name, value, 0, 0)];
    Datatype::from_descriptor(&TypeDescriptor::Compound(CompoundType { fields, size }))
}

/// The dataspaces of a read of `rows`: which elements of the file, and a buffer of as many.
fn spaces(dataset: &Dataset, rows: &Range<usize>) -> hdf5::Result<(Dataspace, Dataspace)> {
    Ok((dataset.space()?.select(rows.clone())?, Dataspace::try_new(rows.len())?))
}

/// Numbers of `rows`, converted to `T`; values that do not fit saturate.
pub(super) fn read_numbers<T: Number>(
    dataset: &Dataset,
    member: Option<&str>,
    rows: &Range<usize>,
) -> Result<Vec<T>, RawError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let memory = memory_type(member, T::type_descriptor())?;
    let (file_space, memory_space) = spaces(dataset, rows)?;
    let mut buffer = vec![T::default(); rows.len()];
    // SAFETY: `memory` describes exactly one `T` per element and `memory_space` has `rows.len()` elements, the length of
    // `buffer`, so the library writes within it. The buffer is initialised and every bit pattern of a `Number` is valid. All
    // ids are alive until the end of the block, and the library's lock is held by `sync`.
    let status = hdf5::sync::sync(|| unsafe {
        hdf5_sys::h5d::H5Dread(
            dataset.id(),
            memory.id(),
            memory_space.id(),
            file_space.id(),
            hdf5_sys::h5p::H5P_DEFAULT,
            buffer.as_mut_ptr().cast(),
        )
    });
    if status < 0 {
        Err(last_error().into())
    } else {
        Ok(buffer)
    }
}

/// Memory of the strings of one read, all freed together.
struct Arena {
    blocks: BTreeMap<usize, *mut [u8]>,
    left: usize,
    exceeded: bool,
}

impl Arena {
    fn allocate(&mut self, size: usize) -> *mut c_void {
        // The map's entry counts too, so that a flood of empty strings has a bound.
        let cost = size.saturating_add(64);
        let Some(left) = self.left.checked_sub(cost) else {
            self.exceeded = true;
            return std::ptr::null_mut();
        };
        self.left = left;
        let block = Box::into_raw(vec![0_u8; size.max(1)].into_boxed_slice());
        let address: *mut u8 = block.cast();
        self.blocks.insert(address.addr(), block);
        address.cast()
    }

    fn string_at(&self, address: *const c_void) -> Option<String> {
        if address.is_null() {
            return Some(String::new());
        }
        let block: *mut [u8] = *self.blocks.get(&address.addr())?;
        // SAFETY: the map holds only blocks that `allocate` made and that live until `drop`; nothing writes to them after the
        // read that filled them has returned.
        let bytes: &[u8] = unsafe { &*block };
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or(bytes);
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for block in std::mem::take(&mut self.blocks).into_values() {
            // SAFETY: each block came from `Box::into_raw` in `allocate` and is freed only here, once.
            drop(unsafe { Box::from_raw(block) });
        }
    }
}

extern "C" fn arena_allocate(size: usize, arena: *mut c_void) -> *mut c_void {
    let arena: *mut Arena = arena.cast();
    // SAFETY: `read_strings` passes its own `Arena`, which outlives the read, and touches it only after the read; HDF5 calls
    // back on the reading thread alone.
    unsafe { arena.as_mut() }.map_or(std::ptr::null_mut(), |arena| arena.allocate(size))
}

extern "C" fn arena_free(_block: *mut c_void, _arena: *mut c_void) {}

/// Strings of `rows`, which need at most `budget` bytes of memory. Bytes that are not UTF-8 become U+FFFD.
///
/// `kind` is the stored type: a string of variable length, ASCII or UTF-8.
pub(super) fn read_strings(
    dataset: &Dataset,
    member: Option<&str>,
    kind: TypeDescriptor,
    rows: &Range<usize>,
    budget: usize,
) -> Result<Vec<String>, RawError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let memory = memory_type(member, kind)?;
    let (file_space, memory_space) = spaces(dataset, rows)?;
    let mut arena = Arena {
        blocks: BTreeMap::new(),
        left: budget,
        exceeded: false,
    };
    let mut buffer: Vec<*mut c_void> = vec![std::ptr::null_mut(); rows.len()];
    let transfer = hdf5::sync::sync(|| {
        // SAFETY: creates a property list of a class that the library defines; a negative id is refused by `from_id`.
        let list: PropertyList = unsafe { hdf5::from_id(hdf5_sys::h5p::H5Pcreate(*hdf5::globals::H5P_DATASET_XFER)) }?;
        Ok::<_, hdf5::Error>(list)
    })?;
    let info: *mut Arena = &raw mut arena;
    // SAFETY: `memory` describes one pointer per element (a string of variable length) and `memory_space` has as many
    // elements as `buffer`, which is initialised. The library gets its memory from `arena_allocate` with `info`, a pointer to
    // `arena`, which is not touched through any other path before the read has returned. The ids are alive, the lock is held.
    let status = hdf5::sync::sync(|| unsafe {
        let set = hdf5_sys::h5p::H5Pset_vlen_mem_manager(
            transfer.id(),
            Some(arena_allocate),
            info.cast(),
            Some(arena_free),
            std::ptr::null_mut(),
        );
        if set < 0 {
            return set;
        }
        hdf5_sys::h5d::H5Dread(
            dataset.id(),
            memory.id(),
            memory_space.id(),
            file_space.id(),
            transfer.id(),
            buffer.as_mut_ptr().cast(),
        )
    });
    if arena.exceeded {
        return Err(RawError::Budget);
    }
    if status < 0 {
        return Err(last_error().into());
    }
    buffer
        .iter()
        .map(|address| arena.string_at(*address))
        .collect::<Option<Vec<String>>>()
        .ok_or_else(|| hdf5::Error::from("a string outside the memory that was given for it").into())
}

/// What the library's error stack says.
fn last_error() -> hdf5::Error {
    match hdf5::Error::query() {
        Ok(error) | Err(error) => error,
    }
}
