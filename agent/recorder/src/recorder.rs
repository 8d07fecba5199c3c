//! The process's recorder: begun once, by whichever copy of NVTX comes first.

use flopwatch_injected::fork::Epoch;
use flopwatch_injected::once::Once;
use flopwatch_ring::header::Count;

use crate::file;
use crate::memory::Memory;

/// A process's recorder.
pub(crate) struct Recorder {
    /// The ring, mapped from its file.
    pub(crate) memory: Memory,
    /// Which process this is.
    pub(crate) epoch: Epoch,
    /// Whether time is counted in ticks of the processor's counter.
    pub(crate) ticks_are_tsc: bool,
}

static RECORDER: Once<Recorder> = Once::new();

/// The recorder, where there is one.
#[inline]
pub(crate) fn get() -> Option<&'static Recorder> {
    RECORDER.get()
}

/// Begins to record, unless that was done. A thread that comes meanwhile waits.
pub(crate) fn begin() -> Option<&'static Recorder> {
    RECORDER.begin(|| {
        let memory = file::open()?;
        let recorder = Recorder {
            memory,
            epoch: Epoch::new()?,
            ticks_are_tsc: memory.ticks_are_tsc(),
        };
        recorder.epoch.begin();
        memory.count(Count::Processes);
        Some(recorder)
    })
}
