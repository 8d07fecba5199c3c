//! The process's recorder: begun once, by whichever copy of NVTX comes first.
#![allow(unsafe_code, reason = "one cell is written once")]

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use flopwatch_ring::header::Count;

use crate::fork::Epoch;
use crate::memory::Memory;
use crate::{clock, file};

/// A process's recorder.
pub(crate) struct Recorder {
    /// The ring, mapped from its file.
    pub(crate) memory: Memory,
    /// Which process this is.
    pub(crate) epoch: Epoch,
    /// Whether time is counted in ticks of the processor's counter.
    pub(crate) ticks_are_tsc: bool,
}

struct Cell(UnsafeCell<MaybeUninit<Recorder>>);

// SAFETY: the one thread that sets `BEGUN` writes the cell before it sets `READY`, and everybody
// else reads it behind that.
unsafe impl Sync for Cell {}

static CELL: Cell = Cell(UnsafeCell::new(MaybeUninit::uninit()));
static BEGUN: AtomicBool = AtomicBool::new(false);
static ENDED: AtomicBool = AtomicBool::new(false);
static READY: AtomicPtr<Recorder> = AtomicPtr::new(ptr::null_mut());

/// The recorder, where there is one.
#[inline]
pub(crate) fn get() -> Option<&'static Recorder> {
    // SAFETY: null, or the cell after it was written.
    unsafe { READY.load(Ordering::Acquire).as_ref() }
}

/// Begins to record, unless that was done. A thread that comes meanwhile waits.
pub(crate) fn begin() -> Option<&'static Recorder> {
    if BEGUN.swap(true, Ordering::Relaxed) {
        clock::wait_until(|| ENDED.load(Ordering::Acquire));
    } else {
        begin_once();
        ENDED.store(true, Ordering::Release);
    }
    get()
}

fn begin_once() -> Option<()> {
    let memory = file::open()?;
    let recorder = Recorder {
        memory,
        epoch: Epoch::new()?,
        ticks_are_tsc: memory.ticks_are_tsc(),
    };
    recorder.epoch.begin();
    memory.count(Count::Processes);
    let cell = CELL.0.get().cast::<Recorder>();
    // SAFETY: only the thread that has set `BEGUN` comes here, and nobody reads before `READY` is
    // set.
    unsafe { cell.write(recorder) };
    READY.store(cell, Ordering::Release);
    Some(())
}
