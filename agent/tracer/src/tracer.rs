//! The process's tracer: begun once, when CUDA begins.

use core::ffi::CStr;

use flopwatch_injected::fork::Epoch;
use flopwatch_injected::once::Once;
use flopwatch_injected::{Path, loader};

use crate::file::TraceFile;
use crate::slot::Slot;

/// Names the folder with our copies of libcupti.
const OWN: &CStr = c"FLOPWATCH_CUDA_CUPTI";

/// A process's tracer.
pub(crate) struct Tracer {
    /// The mapped file.
    pub(crate) file: TraceFile,
    /// The process's slot in it.
    pub(crate) slot: Slot,
    /// The folder with our copies of libcupti; empty for none. The environment is read once: the
    /// program may change it while our thread would read it.
    pub(crate) own: Path,
    epoch: Epoch,
    begun: u32,
}

impl Tracer {
    /// Whether this is the process that began, and no child of it: a child has neither the thread
    /// nor the slot.
    pub(crate) fn is_here(&self) -> bool {
        self.epoch.now() == self.begun
    }
}

static TRACER: Once<Tracer> = Once::new();

/// The tracer of this process, where there is one; none in a child of `fork`.
#[inline]
pub(crate) fn get() -> Option<&'static Tracer> {
    TRACER.get().filter(|tracer| tracer.is_here())
}

/// Begins, unless that was done.
pub(crate) fn begin() -> Option<&'static Tracer> {
    TRACER.begin(|| {
        let file = TraceFile::open()?;
        let epoch = Epoch::new()?;
        let (begun, _) = epoch.begin();
        let own = loader::variable(OWN).and_then(|folder| Path::of(&[folder.to_bytes()]));
        Some(Tracer {
            file,
            slot: Slot::take(file)?,
            own: own.unwrap_or(Path::EMPTY),
            epoch,
            begun,
        })
    })
}
