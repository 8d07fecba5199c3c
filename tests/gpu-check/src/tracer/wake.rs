//! The word of the tracer's file that the libraries sleep on, mapped as an agent maps it.
#![allow(unsafe_code, reason = "the file is shared memory")]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use anyhow::{Context as _, Result};
use flopwatch_injected::kernel::File;
use flopwatch_injected::memory::Memory;
use flopwatch_tracer_file::header::WANTED_AT;
use rustix::thread::futex;

/// Bytes that are mapped of a file.
const PAGE_BYTES: usize = 4096;
/// More processes than a file has slots.
const ALL: u32 = 1024;

/// The word of a file.
pub(super) struct Word(&'static AtomicU32);

impl Word {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let page = File::open(&name).and_then(|file| file.map(PAGE_BYTES));
        let page = page.with_context(|| format!("{} cannot be mapped", path.display()))?;
        // SAFETY: so many bytes were mapped there, and nothing unmaps them; the file keeps its
        // length.
        let memory = unsafe { Memory::new(page, PAGE_BYTES) };
        let word = memory.half(WANTED_AT).context("the page is too short for its word")?;
        Ok(Self(word))
    }

    /// Wakes everybody who sleeps on it.
    pub(super) fn wake(&self) -> Result<()> {
        futex::wake(self.0, futex::Flags::empty(), ALL)?;
        Ok(())
    }
}
