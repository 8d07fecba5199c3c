//! Compiled programs that work on a device belongs to.

use crate::hlo;

/// A compiled program (HLO module), as the compiler hands it to the profiler.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// Its name, e.g. `jit_train_step`.
    pub name: String,
    /// Its number, to which [`ColumnId::ProgramId`](super::ColumnId::ProgramId) refers.
    pub id: u64,
    /// An `xla.HloProto` message, or the text of a module.
    pub proto: Vec<u8>,
}

impl Program {
    /// The module in its message or text.
    pub fn module(&self) -> Result<hlo::Module, hlo::ReadError> {
        hlo::read(&self.proto)
    }
}
