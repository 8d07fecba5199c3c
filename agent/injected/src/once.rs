//! A value that the process makes once, without a lock.
#![allow(unsafe_code, reason = "one cell is written once")]

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::clock;

/// A value that whoever comes first makes, and that stays.
#[derive(Debug)]
pub struct Once<T> {
    cell: UnsafeCell<MaybeUninit<T>>,
    has_begun: AtomicBool,
    has_ended: AtomicBool,
    ready: AtomicPtr<T>,
}

// SAFETY: the one thread that sets `has_begun` writes the cell before it sets `ready`, and
// everybody else reads it behind that.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    /// One that nobody made yet.
    pub const fn new() -> Self {
        Self {
            cell: UnsafeCell::new(MaybeUninit::uninit()),
            has_begun: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            ready: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The value, where there is one.
    #[inline]
    pub fn get(&'static self) -> Option<&'static T> {
        // SAFETY: null, or the cell after it was written.
        unsafe { self.ready.load(Ordering::Acquire).as_ref() }
    }

    /// Makes the value, unless that was tried. A thread that comes meanwhile waits.
    pub fn begin(&'static self, make: impl FnOnce() -> Option<T>) -> Option<&'static T> {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            clock::wait_until(|| self.has_ended.load(Ordering::Acquire));
        } else {
            if let Some(value) = make() {
                let cell = self.cell.get().cast::<T>();
                // SAFETY: only the thread that has set `has_begun` comes here, and nobody reads
                // before `ready` is set.
                unsafe { cell.write(value) };
                self.ready.store(cell, Ordering::Release);
            }
            self.has_ended.store(true, Ordering::Release);
        }
        self.get()
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_one_that_failed_stays_none() {
        static MADE: Once<u32> = Once::new();
        static FAILED: Once<u32> = Once::new();
        assert_eq!(MADE.get(), None);
        assert_eq!(MADE.begin(|| Some(3)), Some(&3));
        assert_eq!(MADE.begin(|| Some(4)), Some(&3));
        assert_eq!(FAILED.begin(|| None), None);
        assert_eq!(FAILED.begin(|| Some(4)), None);
    }
}
