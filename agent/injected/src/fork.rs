//! Which process this is: `fork` leaves a child everything but the number that says so, so no lock
//! and no call is needed to notice.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::kernel;

/// The number of the process that this one began as, then that of each child in turn. A child
/// counts on from its parent's.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Tells processes apart.
#[derive(Debug, Clone, Copy)]
pub struct Epoch(&'static AtomicU32);

impl Epoch {
    /// Begins with this process; `None` where the kernel is older than Linux 4.14.
    pub fn new() -> Option<Self> {
        kernel::wiped_in_children().map(Self)
    }

    /// The number of this process; 0 in a child that has not [begun](Self::begin).
    #[inline]
    pub fn now(self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// The number of this process, and whether it has just begun.
    pub fn begin(self) -> (u32, bool) {
        let known = self.now();
        if known != 0 {
            return (known, false);
        }
        let next = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        match self.0.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => (next, true),
            Err(other) => (other, false),
        }
    }
}
