//! The word that the libraries sleep on, mapped as an agent maps it.
#![allow(unsafe_code, reason = "the file is shared memory")]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use flopwatch_injected::kernel::File;
use flopwatch_injected::memory::Memory;
use flopwatch_tracer_file::header::WANTED_AT;
use rustix::thread::futex;

/// Bytes that are mapped of a file.
const PAGE_BYTES: usize = 4096;

/// The word of a file.
pub(crate) struct Word(&'static AtomicU32);

impl Word {
    pub(crate) fn of(path: &Path) -> Self {
        let path = CString::new(path.as_os_str().as_bytes()).unwrap();
        let page = File::open(&path).unwrap().map(PAGE_BYTES).unwrap();
        // SAFETY: so many bytes were mapped there, and nothing unmaps them; the file keeps its
        // length.
        let memory = unsafe { Memory::new(page, PAGE_BYTES) };
        Self(memory.half(WANTED_AT).unwrap())
    }

    /// Wakes everybody who sleeps on it.
    pub(crate) fn wake(&self) {
        futex::wake(self.0, futex::Flags::empty(), 256).unwrap();
    }
}
