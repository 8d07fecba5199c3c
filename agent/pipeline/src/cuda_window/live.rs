//! What a window has recorded so far, for others than the thread that drains it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use flopwatch_trace::tracer::Tally;

use super::{CudaWindow, Error};

/// Time between two tallies of a window that is open.
const TALLY_INTERVAL: Duration = Duration::from_secs(1);

/// The latest tally of a window. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LiveTally(Arc<Mutex<Option<Tally>>>);

impl LiveTally {
    /// The latest tally; none within the first second of the window.
    pub fn latest(&self) -> Option<Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, tally: Tally) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tally);
    }
}

impl CudaWindow {
    /// What the window has recorded so far, made anew each second while it runs.
    pub fn live(&self) -> LiveTally {
        self.live.clone()
    }

    /// Makes the tally anew where it is time to: the last one was made at `tallied`.
    pub(super) fn tally(&mut self, tallied: &mut Instant) -> Result<(), Error> {
        if tallied.elapsed() >= TALLY_INTERVAL {
            *tallied = Instant::now();
            self.live.set(self.drain.tally()?);
        }
        Ok(())
    }
}
