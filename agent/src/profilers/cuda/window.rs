//! A window that this agent drains: on a thread of its own, until it is told to end.

use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use flopwatch_api::capture::LiveFigures;
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::tracer;
use flopwatch_pipeline::cuda_window::{self, CudaWindow, LiveTally, Recorded};
use flopwatch_pipeline::failure::{Failure, chain};
use flopwatch_pipeline::status_summary::live_figures;
use flopwatch_tracer_file::wanted::{Mode, Wanted};

use crate::profilers::Observed;

/// What the thread comes to.
type Ended = Result<Recorded, cuda_window::Error>;

/// A window under way. Where it is dropped the thread drains on: an agent that exits leaves the
/// window to the one that comes next.
#[derive(Debug)]
pub(super) struct Running {
    stop: SyncSender<()>,
    live: LiveTally,
    thread: Option<JoinHandle<Ended>>,
    ended: Option<Result<Recorded, Failure>>,
    /// When it was ordered, in ns since the Unix epoch.
    pub(super) ordered_utc_ns: u64,
}

impl Running {
    /// Drains a window from now on that was ordered at a time.
    pub(super) fn begin(window: CudaWindow, ordered_utc_ns: u64) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let live = window.live();
        // The channel stays whole until somebody says that the window is to end.
        let connected = stop.clone();
        let thread = Builder::new().name("flopwatch-cuda".to_owned()).spawn(move || {
            let ended = window.run(&stopped);
            drop(connected);
            ended
        })?;
        Ok(Self {
            stop,
            live,
            thread: Some(thread),
            ended: None,
            ordered_utc_ns,
        })
    }

    /// What the window has recorded so far; none within its first second.
    pub(super) fn live(&self) -> Option<LiveFigures> {
        self.live.latest().map(|tally| live_figures(&tally))
    }

    /// What a window came to that has ended before it was told to; none while it is open.
    pub(super) fn look(&mut self) -> Option<&Result<Recorded, Failure>> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.join();
        }
        self.ended.as_ref()
    }

    /// Ends the window in all programs, and gives what it came to.
    pub(super) fn end(mut self) -> Result<Recorded, Failure> {
        // A thread that has ended by itself listens no more.
        self.stop.try_send(()).ok();
        self.join();
        self.ended.unwrap_or_else(|| Err(lost()))
    }

    fn join(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let ended = thread
            .join()
            .map_or_else(|_panic| Err(lost()), |ended| ended.map_err(|error| failed(&error)));
        self.ended = Some(ended);
    }
}

/// Whether a window has ended of which more will not come.
pub(super) fn has_ended_early(ended: &Result<Recorded, Failure>) -> bool {
    ended.as_ref().is_ok_and(|recorded| recorded.early.is_some())
}

/// Why a window failed, as a capture says it.
pub(super) fn failed(error: &cuda_window::Error) -> Failure {
    Failure::new(reason(error), chain(error))
}

const fn reason(error: &cuda_window::Error) -> CaptureReason {
    match error {
        cuda_window::Error::File(tracer::Error::Busy(_)) => CaptureReason::ContainerBusy,
        cuda_window::Error::File(_) => CaptureReason::AttachFailed,
        cuda_window::Error::Raw { .. } => CaptureReason::StoreFailed,
        cuda_window::Error::Drain(_) => CaptureReason::CollectionFailed,
        cuda_window::Error::Nobody => CaptureReason::ProfilerUnavailable,
    }
}

fn lost() -> Failure {
    let message = "the thread that drains the CUDA tracer's file was lost";
    Failure::new(CaptureReason::CollectionFailed, message)
}

/// Where a window stands that was ordered by a number, by what is wanted now.
pub(super) fn stands(wanted: Option<Wanted>, generation: u32, now_utc_ns: u64) -> Observed {
    let Some(wanted) = wanted else {
        return Observed::Gone(None);
    };
    match wanted.mode {
        Mode::Window if wanted.generation == generation && now_utc_ns < wanted.deadline_ns => Observed::Collecting,
        Mode::Window if wanted.generation == generation => Observed::Done,
        // Its agent ended it, and did not come so far as to keep what it had drained.
        Mode::Off if wanted.generation == generation.wrapping_add(1).max(1) => Observed::Done,
        // Another has ordered a window since, or kernels are recorded all the time again.
        Mode::Window | Mode::Continuous | Mode::Off => Observed::Gone(None),
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_tracer_file::wanted::{GraphLevel, Kinds};

    use super::*;

    #[test]
    fn a_window_goes_on_until_its_deadline_and_is_no_more_after_the_order_of_another() {
        let wanted = |generation, mode| {
            Some(Wanted {
                generation,
                mode,
                kinds: Kinds::ALL,
                graphs: GraphLevel::Whole,
                start_at_ns: 0,
                deadline_ns: 100,
            })
        };
        let rows = [
            (wanted(7, Mode::Window), 99, Observed::Collecting),
            (wanted(7, Mode::Window), 100, Observed::Done),
            (wanted(8, Mode::Off), 50, Observed::Done),
            (wanted(8, Mode::Window), 50, Observed::Gone(None)),
            (wanted(9, Mode::Off), 50, Observed::Gone(None)),
            (wanted(6, Mode::Off), 50, Observed::Gone(None)),
            (wanted(9, Mode::Continuous), 50, Observed::Gone(None)),
            (None, 50, Observed::Gone(None)),
        ];
        for (wanted, now, expected) in rows {
            assert_eq!(stands(wanted, 7, now), expected, "{wanted:?} at {now}");
        }
    }
}
