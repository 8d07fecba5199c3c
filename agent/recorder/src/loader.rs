//! What the program's own C library and loader offer, where they do: weak names, so that the
//! library loads without them.
#![allow(unsafe_code, reason = "a name of another library is an address")]

use core::arch::asm;
use core::ffi::{CStr, c_char, c_int, c_void};

const RTLD_NOW: c_int = 2;

/// The address of a weak name, of the type that it has in every C library.
macro_rules! weak {
    ($name:literal) => {{
        let address: *mut c_void;
        // SAFETY: reads this library's own slot for the name, which the loader has filled or left
        // null.
        unsafe {
            asm!(concat!(".weak ", $name), concat!("mov {}, [rip + ", $name, "@GOTPCREL]"), out(reg) address,
                options(nostack, preserves_flags));
        }
        // SAFETY: null becomes none, anything else is the function of that name, whose signature is
        // the one that the caller takes it for.
        unsafe { core::mem::transmute(address) }
    }};
}

/// The value of a variable of the environment.
pub(crate) fn variable(name: &CStr) -> Option<&'static CStr> {
    let get: Option<extern "C" fn(*const c_char) -> *const c_char> = weak!("getenv");
    let value = get?(name.as_ptr());
    // SAFETY: a value is a terminated string; it is read while NVTX initialises itself, which reads
    // the environment in the same way.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// An address in a library that is loaded for good.
pub(crate) fn symbol(library: &CStr, name: &CStr) -> Option<*mut c_void> {
    let open: Option<extern "C" fn(*const c_char, c_int) -> *mut c_void> = weak!("dlopen");
    let find: Option<extern "C" fn(*mut c_void, *const c_char) -> *mut c_void> = weak!("dlsym");
    let (open, find) = (open?, find?);
    let handle = open(library.as_ptr(), RTLD_NOW);
    let found = if handle.is_null() {
        handle
    } else {
        find(handle, name.as_ptr())
    };
    (!found.is_null()).then_some(found)
}

/// `clock_gettime` of the C library, which asks the kernel's page in memory and not the kernel.
pub(crate) fn clock_gettime() -> Option<extern "C" fn(c_int, *mut [i64; 2]) -> c_int> {
    weak!("clock_gettime")
}
