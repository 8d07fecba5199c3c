//! What a thread keeps for itself: which segment it writes to. 32 bytes, zero in a new thread, gone
//! with it without anybody being called.
#![allow(unsafe_code, reason = "memory of a thread is found by its register")]

use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::ptr::NonNull;

use crate::memory::Page;

// A descriptor leaves it to the loader where the memory is; it needs no space of those that
// libraries are short of.
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".p2align 3",
    ".globl flopwatch_recorder_thread",
    ".hidden flopwatch_recorder_thread",
    ".type flopwatch_recorder_thread, @object",
    ".size flopwatch_recorder_thread, 32",
    "flopwatch_recorder_thread:",
    ".zero 32",
    ".popsection"
);

/// A thread's own memory; all zero is a valid one.
#[repr(C)]
pub(crate) struct Thread {
    /// The segment that it writes to.
    pub(crate) page: Cell<Option<NonNull<Page>>>,
    /// Which claim of that segment is its own.
    pub(crate) claim: Cell<u32>,
    /// In which process it is: children of `fork` inherit this memory.
    pub(crate) epoch: Cell<u32>,
    /// Number of the thread within the file, from 1.
    pub(crate) serial: Cell<u64>,
    /// The set of functions, counted from 1, that the profiler's library fills in this thread; 0
    /// for none.
    pub(crate) fills: Cell<u32>,
    /// Whether it is in the profiler's library, which may be this one again.
    pub(crate) is_calling_on: Cell<bool>,
}

impl Thread {
    /// Gives the calling thread's own memory to `use_it`.
    #[inline]
    pub(crate) fn with<T>(use_it: impl FnOnce(&Self) -> T) -> T {
        let address: *const Self;
        // SAFETY: this is how the loader is asked for a thread's own memory; whatever its function
        // changes counts as changed.
        unsafe {
            asm!(
                "leaq flopwatch_recorder_thread@tlsdesc(%rip), %rax",
                "call *flopwatch_recorder_thread@tlscall(%rax)",
                "addq %fs:0, %rax",
                out("rax") address,
                clobber_abi("C"),
                options(att_syntax)
            );
        }
        // SAFETY: the memory is this thread's for as long as it runs, aligned and large enough; a
        // signal's handler may change it in between, as cells may be.
        use_it(unsafe { &*address })
    }
}
