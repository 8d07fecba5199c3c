//! What the program's own C library and loader offer, where they do: weak names, so that the
//! library loads without them.
#![allow(unsafe_code, reason = "a name of another library is an address")]

use core::arch::asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

const RTLD_NOW: c_int = 2;
const RTLD_NOLOAD: c_int = 4;

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
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    let get: Option<extern "C" fn(*const c_char) -> *const c_char> = weak!("getenv");
    let value = get?(name.as_ptr());
    // SAFETY: a value is a terminated string; it is read while NVTX or CUDA initialises itself,
    // which reads the environment in the same way.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// A library that the program has loaded, or that was loaded for good.
#[derive(Debug, Clone, Copy)]
pub struct Library(*mut c_void);

impl Library {
    /// Loads a library for good.
    pub fn open(path: &CStr) -> Option<Self> {
        Self::open_with(path, RTLD_NOW)
    }

    /// A library that the program has loaded.
    pub fn loaded(path: &CStr) -> Option<Self> {
        Self::open_with(path, RTLD_NOW | RTLD_NOLOAD)
    }

    /// Everything that the program's own names are looked up in.
    pub const fn program() -> Self {
        Self(ptr::null_mut())
    }

    fn open_with(path: &CStr, flags: c_int) -> Option<Self> {
        let open: Option<extern "C" fn(*const c_char, c_int) -> *mut c_void> = weak!("dlopen");
        let handle = open?(path.as_ptr(), flags);
        (!handle.is_null()).then_some(Self(handle))
    }

    /// The address of a name.
    pub fn find(self, name: &CStr) -> Option<*mut c_void> {
        let find: Option<extern "C" fn(*mut c_void, *const c_char) -> *mut c_void> = weak!("dlsym");
        let found = find?(self.0, name.as_ptr());
        (!found.is_null()).then_some(found)
    }
}

/// An address in a library that is loaded for good.
pub fn symbol(library: &CStr, name: &CStr) -> Option<*mut c_void> {
    Library::open(library)?.find(name)
}

/// A thread's first function.
pub type Entry = extern "C" fn(*mut c_void) -> *mut c_void;

/// Starts a thread of the program's C library with a stack of so many bytes, which nobody waits
/// for; false where that fails.
pub fn start_thread(entry: Entry, stack_bytes: usize) -> bool {
    // Before glibc 2.34 threads are a library of their own.
    let find = |name: &CStr| {
        let apart = || Library::loaded(c"libpthread.so.0")?.find(name);
        Library::program().find(name).or_else(apart)
    };
    let mut attributes = Attributes([0; ATTRIBUTE_WORDS]);
    let prepared = find(c"pthread_attr_init")
        .zip(find(c"pthread_attr_setstacksize"))
        .zip(find(c"pthread_attr_setdetachstate"));
    let Some((((init, stack), detach), create)) = prepared.zip(find(c"pthread_create")) else {
        return false;
    };
    // SAFETY: functions of these names have these signatures in every C library for Linux.
    let (init, stack, detach, create) = unsafe {
        (
            core::mem::transmute::<*mut c_void, extern "C" fn(*mut Attributes) -> c_int>(init),
            core::mem::transmute::<*mut c_void, extern "C" fn(*mut Attributes, usize) -> c_int>(stack),
            core::mem::transmute::<*mut c_void, extern "C" fn(*mut Attributes, c_int) -> c_int>(detach),
            core::mem::transmute::<*mut c_void, Create>(create),
        )
    };
    let own = &raw mut attributes;
    let mut thread = 0;
    init(own) == 0
        && stack(own, stack_bytes) == 0
        && detach(own, DETACHED) == 0
        && create(&raw mut thread, own, entry, ptr::null_mut()) == 0
}

type Create = extern "C" fn(*mut usize, *const Attributes, Entry, *mut c_void) -> c_int;

/// How a thread is started: 56 bytes in glibc and musl, and more than enough here.
#[repr(C, align(16))]
struct Attributes([u64; ATTRIBUTE_WORDS]);

const ATTRIBUTE_WORDS: usize = 16;
const DETACHED: c_int = 1;

/// `clock_gettime` of the C library, which asks the kernel's page in memory and not the kernel.
pub fn clock_gettime() -> Option<extern "C" fn(c_int, *mut [i64; 2]) -> c_int> {
    weak!("clock_gettime")
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::clock;

    static RUNS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn run(given: *mut c_void) -> *mut c_void {
        RUNS.fetch_add(1, Ordering::Release);
        given
    }

    #[test]
    fn a_thread_runs_what_it_is_given() {
        assert!(start_thread(run, 64 << 10));
        clock::wait_until(|| RUNS.load(Ordering::Acquire) == 1);
        assert_eq!(RUNS.load(Ordering::Acquire), 1);
    }

    #[test]
    fn names_are_found_where_they_are() {
        assert!(Library::program().find(c"getenv").is_some());
        assert!(Library::loaded(c"libc.so.6").is_some_and(|library| library.find(c"no such name").is_none()));
        assert!(Library::loaded(c"libflopwatch-nowhere.so").is_none());
        assert!(symbol(c"libflopwatch-nowhere.so", c"getenv").is_none());
    }
}
