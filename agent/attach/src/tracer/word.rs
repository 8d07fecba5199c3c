//! The word of the file that programs sleep on: the kernel knows it by the page that it lies in.
#![allow(unsafe_code, reason = "a page of the file is mapped, for the kernel alone")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;

/// Bytes that are mapped.
const PAGE_BYTES: usize = 4096;
/// Most threads that are woken: as many as there are processes in a file.
const SLEEPERS: u32 = 256;

/// A word of 32 bits in the first page of a file.
#[derive(Debug)]
pub(super) struct Word {
    page: NonNull<c_void>,
    at: usize,
}

// SAFETY: the mapping belongs to the process and not to a thread, and only atomics refer to it.
unsafe impl Send for Word {}

impl Word {
    /// The word at a multiple of four below [`PAGE_BYTES`].
    pub(super) fn of(file: &File, at: usize) -> io::Result<Self> {
        if !at.is_multiple_of(4) || at >= PAGE_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel picks a place where nothing is, so that nothing of this process is
        // replaced.
        let page = unsafe { mmap(std::ptr::null_mut(), PAGE_BYTES, access, MapFlags::SHARED, file, 0) }?;
        let page = NonNull::new(page).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self { page, at })
    }

    /// Wakes everybody who sleeps on it. Who is not woken looks by itself after a moment.
    pub(super) fn wake(&self) {
        // SAFETY: the word lies in the page, aligned, for as long as this is there. Nobody here
        // reads or writes it: the kernel takes its address, and says so where another has cut the
        // file.
        let word = unsafe { self.page.byte_add(self.at).cast::<AtomicU32>().as_ref() };
        if let Err(error) = futex::wake(word, futex::Flags::empty(), SLEEPERS) {
            tracing::debug!(%error, "the programs of a tracer's file are not woken");
        }
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        // SAFETY: so many bytes were mapped there, and nothing refers to them any more.
        let gone = unsafe { munmap(self.page.as_ptr(), PAGE_BYTES) };
        if let Err(error) = gone {
            tracing::debug!(%error, "a page of a tracer's file stays mapped");
        }
    }
}
