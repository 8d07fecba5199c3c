//! The library, loaded: its functions by their types.

#![allow(
    unsafe_code,
    reason = "the kernels are C functions in a library that is loaded at run time; this module gives them their types"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::{Library, Symbol};

use crate::{CudaError, Inventory};

pub(super) type Ptr = *mut c_void;
pub(super) type In = *const c_void;
pub(super) type Each1 = unsafe extern "C" fn(Ptr, u32, Ptr) -> c_int;
pub(super) type Each2 = unsafe extern "C" fn(In, Ptr, u32, Ptr) -> c_int;
pub(super) type Each3 = unsafe extern "C" fn(In, In, Ptr, u32, Ptr) -> c_int;
pub(super) type Each4 = unsafe extern "C" fn(In, In, In, Ptr, u32, Ptr) -> c_int;
pub(super) type Each5 = unsafe extern "C" fn(In, In, In, In, Ptr, u32, Ptr) -> c_int;
pub(super) type Keys = unsafe extern "C" fn(In, In, Ptr, c_int, u32, Ptr) -> c_int;
pub(super) type Sort = unsafe extern "C" fn(Ptr, usize, In, Ptr, In, Ptr, c_int, c_int, u32, Ptr) -> c_int;
pub(super) type Select = unsafe extern "C" fn(Ptr, usize, In, Ptr, Ptr, u32, Ptr) -> c_int;
pub(super) type Reach = unsafe extern "C" fn(Ptr, usize, In, In, Ptr, u32, Ptr) -> c_int;
pub(super) type Scan = unsafe extern "C" fn(Ptr, usize, In, Ptr, u32, Ptr) -> c_int;

/// The loaded library.
#[derive(Debug)]
pub struct Kernels {
    path: PathBuf,
    version: String,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    scratch: unsafe extern "C" fn(u32, *mut usize) -> c_int,
    pub(super) sequence: Each1,
    pub(super) keys_u32: Keys,
    pub(super) keys_u64: Keys,
    pub(super) sort: Sort,
    pub(super) gather_u32: Each3,
    pub(super) gather_u64: Each3,
    pub(super) scatter: Each3,
    pub(super) select: Select,
    pub(super) ends: Each3,
    pub(super) reach: Reach,
    pub(super) largest: Scan,
    pub(super) smallest: Scan,
    pub(super) sum: Scan,
    pub(super) overlaps: Each4,
    pub(super) covered: Each5,
    pub(super) heads: Each2,
    pub(super) differing: Each3,
    pub(super) above: unsafe extern "C" fn(In, u8, Ptr, u32, Ptr) -> c_int,
    pub(super) histogram: Scan,
    pub(super) number: Scan,
    pub(super) best: unsafe extern "C" fn(In, In, In, In, Ptr, u32, u32, Ptr) -> c_int,
    pub(super) digit: unsafe extern "C" fn(In, u32, c_int, Ptr, u32, Ptr) -> c_int,
    /// Last, so that it outlives the functions above.
    _library: Library,
}

impl Kernels {
    /// Loads the library at `path` when it was built from this program's own sources.
    pub fn load(path: &Path) -> Result<Self, CudaError> {
        // What the file says of itself is read before any of its code runs.
        let inventory = Inventory::read(path)?;
        let bad = |reason: String| CudaError::BadKernels {
            path: path.to_owned(),
            reason,
        };
        inventory.check().map_err(bad)?;
        // SAFETY: the file carries the version of this program's own kernels, checked above; its
        // initialisers are those of the C++ and CUDA runtimes linked into it, which may run at any
        // time and on any thread.
        let library = unsafe { Library::new(path) }.map_err(|error| bad(error.to_string()))?;
        // SAFETY: the types are those that `device/kernels.h` declares; the version checked above
        // covers that header. The copied function pointers live no longer than `_library`, which is
        // dropped after them.
        unsafe {
            let version: unsafe extern "C" fn() -> *const c_char = symbol(&library, path, c"flopwatch_version")?;
            Ok(Self {
                path: path.to_owned(),
                // A string constant of the library.
                version: CStr::from_ptr(version()).to_string_lossy().into_owned(),
                error: symbol(&library, path, c"flopwatch_error")?,
                scratch: symbol(&library, path, c"flopwatch_scratch")?,
                sequence: symbol(&library, path, c"flopwatch_sequence")?,
                keys_u32: symbol(&library, path, c"flopwatch_keys_u32")?,
                keys_u64: symbol(&library, path, c"flopwatch_keys_u64")?,
                sort: symbol(&library, path, c"flopwatch_sort")?,
                gather_u32: symbol(&library, path, c"flopwatch_gather_u32")?,
                gather_u64: symbol(&library, path, c"flopwatch_gather_u64")?,
                scatter: symbol(&library, path, c"flopwatch_scatter")?,
                select: symbol(&library, path, c"flopwatch_select")?,
                ends: symbol(&library, path, c"flopwatch_ends")?,
                reach: symbol(&library, path, c"flopwatch_reach")?,
                largest: symbol(&library, path, c"flopwatch_largest")?,
                smallest: symbol(&library, path, c"flopwatch_smallest")?,
                sum: symbol(&library, path, c"flopwatch_sum")?,
                overlaps: symbol(&library, path, c"flopwatch_overlaps")?,
                covered: symbol(&library, path, c"flopwatch_covered")?,
                heads: symbol(&library, path, c"flopwatch_heads")?,
                differing: symbol(&library, path, c"flopwatch_differing")?,
                above: symbol(&library, path, c"flopwatch_above")?,
                histogram: symbol(&library, path, c"flopwatch_histogram")?,
                number: symbol(&library, path, c"flopwatch_number")?,
                best: symbol(&library, path, c"flopwatch_best")?,
                digit: symbol(&library, path, c"flopwatch_digit")?,
                _library: library,
            })
        }
    }

    /// What the library says it is: interface, hash of its sources, what built it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Path that the library was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Scratch in bytes that is enough for every call on `count` values.
    pub(crate) fn scratch_bytes(&self, count: u32) -> Result<usize, CudaError> {
        let mut bytes = 0;
        // SAFETY: writes one size to the address of a local.
        let status = unsafe { (self.scratch)(count, &raw mut bytes) };
        self.check("scratch", status)?;
        Ok(bytes.max(1))
    }

    /// The error that a call's status stands for.
    pub(super) fn check(&self, call: &'static str, status: c_int) -> Result<(), CudaError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: takes any number, gives a string constant.
        let reason = unsafe { CStr::from_ptr((self.error)(status)) };
        let reason = reason.to_string_lossy().into_owned();
        Err(CudaError::Kernel { call, reason })
    }
}

/// # Safety
/// `T` is the type of the function that the library has under that name.
unsafe fn symbol<T: Copy>(library: &Library, path: &Path, name: &CStr) -> Result<T, CudaError> {
    // SAFETY: the caller's.
    let symbol: Result<Symbol<'_, T>, _> = unsafe { library.get(name.to_bytes_with_nul()) };
    symbol.map(|symbol| *symbol).map_err(|error| CudaError::BadKernels {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}
