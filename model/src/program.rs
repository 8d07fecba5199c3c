//! Compiled programs (HLO modules) that a capture brings along, to which the work on a device
//! belongs.

use crate::hlo;

/// A compiled program (HLO module), as the compiler hands it to the profiler.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// The module's name, e.g. `jit_train_step`.
    pub name: String,
    /// The program's number, to which values of the column
    /// [`ColumnId::ProgramId`](super::ColumnId::ProgramId) refer.
    pub id: u64,
    /// The module itself: an `xla.HloProto` message, or HLO text.
    pub proto: Vec<u8>,
}

impl Program {
    /// Parses [`Self::proto`]. Fails where the bytes are neither a message nor a text of a module,
    /// or where the module would take more than 512 MiB.
    pub fn module(&self) -> Result<hlo::Module, hlo::ReadError> {
        hlo::read(&self.proto)
    }
}
