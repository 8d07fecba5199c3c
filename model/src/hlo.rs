//! Compiled programs of XLA (HLO modules): what an `xla.HloProto` message, or a module's text,
//! holds of computations, instructions and their buffers.
//!
//! Field numbers are those of XLA's published `hlo.proto` and `xla_data.proto`. Unknown fields are
//! stepped over, so that messages of older and newer versions are read. A message is untrusted:
//! what is made of it is bounded, and no reference in it is believed.

mod budget;
mod buffers;
mod frames;
mod instruction;
mod order;
mod read;
mod shape;
mod text;

pub use buffers::{Allocation, BufferAssignment, Buffers, HeapEvent, HeapEventKind, HeapTrace, LogicalBuffer};
pub use frames::{Frame, Frames};
pub use instruction::{Convolution, Instruction, WindowDimension};
pub use read::{begins_like_a_program, read};
pub use shape::{ElementType, Shape};
pub use text::{PLAN, PLAN_TOTAL, TEXT};

use std::collections::HashMap;

use crate::wire::Damage;

/// Why a message is no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The message, or one inside it, is cut off or damaged.
    #[error("damaged at byte {offset}")]
    Damaged {
        /// Where, in bytes from its beginning.
        offset: usize,
    },
    /// A text is cut off, or is none of a module.
    #[error("line {line}: {what}")]
    Text {
        /// Which line, counted from 1.
        line: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// The message holds no module.
    #[error("is no xla.HloProto message: it holds no module")]
    NoModule,
    /// The message describes more than what a program may hold.
    #[error("describes more than {limit} bytes of instructions and buffers")]
    TooLarge {
        /// Limit that was passed.
        limit: usize,
    },
    /// Shapes are nested deeper than any program's.
    #[error("nests shapes deeper than {limit} levels")]
    TooDeep {
        /// Limit that was passed.
        limit: usize,
    },
}

impl From<Damage> for ReadError {
    fn from(damage: Damage) -> Self {
        Self::Damaged { offset: damage.0 }
    }
}

/// A module: computations of instructions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Module {
    /// Name of the module, e.g. `jit_train_step`.
    pub name: String,
    /// Number of the module; 0 of a text, which has none.
    pub id: u64,
    /// Place of the computation that runs, in `computations`; `None` where the message names none
    /// that is there.
    pub entry: Option<usize>,
    /// Computations of the module, those that are called before their callers.
    pub computations: Vec<Computation>,
    /// Whether the instructions are in the order in which they run, as they are after optimisation.
    pub is_scheduled: bool,
    /// Lines of source that instructions come from.
    pub frames: Frames,
    /// Where values are in memory; `None` where the message does not say.
    pub buffers: Option<Buffers>,
    computation_of: HashMap<u64, usize>,
    instruction_of: HashMap<u64, InstructionLocation>,
}

/// A computation: a function of instructions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Computation {
    /// Name of the computation.
    pub name: String,
    /// Number of the computation.
    pub id: u64,
    /// Number of the instruction whose value it gives.
    pub root: u64,
    /// Whether it is the inside of a fusion.
    pub is_fusion: bool,
    /// Its instructions: operands before those that use them, and in the order in which they run
    /// where the module is scheduled.
    pub instructions: Vec<Instruction>,
}

/// The location of an instruction in a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstructionLocation {
    /// Index of the computation in [`Module::computations`].
    pub computation: usize,
    /// Index of the instruction in [`Computation::instructions`].
    pub at: usize,
}

impl Module {
    /// A module of `computations`, of which `entry` is the number of the one that runs.
    pub fn new(name: &str, computations: Vec<Computation>, entry: u64) -> Self {
        let mut module = Self {
            name: name.to_owned(),
            computations,
            ..Self::default()
        };
        module.index(entry);
        module
    }

    /// The computation that runs.
    pub fn entry_computation(&self) -> Option<&Computation> {
        self.computations.get(self.entry?)
    }

    /// Place of the computation of that number.
    pub fn computation_number(&self, id: u64) -> Option<usize> {
        self.computation_of.get(&id).copied()
    }

    /// The computation of that number.
    pub fn computation(&self, id: u64) -> Option<&Computation> {
        self.computations.get(self.computation_number(id)?)
    }

    /// The location of the instruction with this number.
    pub fn location(&self, id: u64) -> Option<InstructionLocation> {
        self.instruction_of.get(&id).copied()
    }

    /// The instruction at a location; `None` where the module has none there.
    pub fn at(&self, location: InstructionLocation) -> Option<&Instruction> {
        self.computations
            .get(location.computation)?
            .instructions
            .get(location.at)
    }

    /// The instruction of that number.
    pub fn instruction(&self, id: u64) -> Option<&Instruction> {
        self.at(self.location(id)?)
    }

    /// Every instruction with its location, computation by computation.
    pub fn instructions(&self) -> impl Iterator<Item = (InstructionLocation, &Instruction)> {
        let computations = self.computations.iter().enumerate();
        computations.flat_map(|(computation, of)| {
            let instructions = of.instructions.iter().enumerate();
            instructions.map(move |(at, instruction)| (InstructionLocation { computation, at }, instruction))
        })
    }

    /// Finds computations and instructions by their numbers from now on. Of two of one number the
    /// first counts.
    fn index(&mut self, entry: u64) {
        for (number, computation) in self.computations.iter().enumerate() {
            self.computation_of.entry(computation.id).or_insert(number);
            for (at, instruction) in computation.instructions.iter().enumerate() {
                let location = InstructionLocation {
                    computation: number,
                    at,
                };
                self.instruction_of.entry(instruction.id).or_insert(location);
            }
        }
        self.entry = self.computation_number(entry);
    }
}
