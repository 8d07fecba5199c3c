//! Entry of the launcher.
//!
//! `main` is C's own: Rust's runtime would set SIGPIPE to "ignore" and open missing standard
//! streams, and the workload would inherit both.
#![no_main]

/// The one place that touches raw pointers: C's arguments become owned strings.
#[allow(unsafe_code, reason = "a C entry point receives raw pointers and an unmangled name")]
mod entry {
    use std::ffi::{CStr, CString, c_char, c_int};

    /// Copies a NULL-terminated array of C strings.
    ///
    /// # Safety
    /// `array` is null, or points to readable pointers up to and including a null one, each to a
    /// terminated string.
    unsafe fn strings(mut array: *const *const c_char) -> Vec<CString> {
        let mut out = Vec::new();
        if array.is_null() {
            return out;
        }
        loop {
            // SAFETY: by this function's contract `array` is within the array until the null
            // pointer has been read.
            let entry = unsafe { *array };
            if entry.is_null() {
                return out;
            }
            // SAFETY: by this function's contract each pointer before the null is a terminated
            // string.
            out.push(unsafe { CStr::from_ptr(entry) }.to_owned());
            // SAFETY: the pointer just read was not the terminating null, so the next one is within
            // the array.
            array = unsafe { array.add(1) };
        }
    }

    // SAFETY: `main` is the name that the C runtime calls; the crate defines no other (`no_main`).
    #[unsafe(no_mangle)]
    extern "C" fn main(_argc: c_int, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
        // SAFETY: the C runtime passes the process's own argument and environment arrays, both
        // ending in null.
        let (arguments, environment) = unsafe { (strings(argv), strings(envp)) };
        flopwatch_launcher::arguments::dispatch(&arguments, &environment)
    }
}
