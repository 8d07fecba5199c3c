//! The compiled programs of a capture, read, and found by what events say of them.

use std::collections::HashMap;

use flopwatch_model::Timeline;
use flopwatch_model::hlo::{Instruction, InstructionLocation, Module};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::Table;
use schemars::JsonSchema;
use serde::Serialize;

use crate::hlo_cost::{HloCosts, Loops};

/// A compiled program.
#[derive(Debug, Clone)]
pub struct HloProgram {
    /// Name of the program.
    pub name: String,
    /// Number of the program, as events have it.
    pub id: u64,
    /// The program's HLO module.
    pub module: Module,
    /// Work of its instructions, loops as often as they run.
    pub costs: HloCosts,
    locations: HashMap<String, InstructionLocation>,
}

impl HloProgram {
    /// A program of that name and number.
    pub fn new(name: String, id: u64, module: Module) -> Self {
        let mut locations = HashMap::new();
        for (location, instruction) in module.instructions() {
            locations.entry(instruction.name.clone()).or_insert(location);
        }
        Self {
            name,
            id,
            costs: HloCosts::of(&module, Loops::AsTheyRun),
            locations,
            module,
        }
    }

    /// Place of the instruction of that name.
    pub fn location(&self, name: &str) -> Option<InstructionLocation> {
        self.locations.get(name).copied()
    }

    /// Line of source that an instruction comes from, `file:line`; of a fusion without one that of
    /// its root. `None` where the program does not say.
    pub fn source(&self, of: &Instruction) -> Option<String> {
        let own = source_of(&self.module, of);
        own.or_else(|| {
            let inside = of.called.first().filter(|_| of.opcode == "fusion");
            let inside = self.module.computation(*inside?)?;
            source_of(&self.module, self.module.instruction(inside.root)?)
        })
    }
}

/// `file:line` of an instruction: the innermost line of its stack, or the line that it names.
pub fn source_of(module: &Module, of: &Instruction) -> Option<String> {
    let frame = module.frames.stack(of.stack_frame).next();
    let (file, line) = frame.map_or((of.source_file.as_str(), of.source_line), |frame| {
        (frame.file, frame.line)
    });
    (!file.is_empty()).then(|| format!("{file}:{line}"))
}

/// The programs of a capture.
#[derive(Debug, Clone, Default)]
pub struct HloPrograms {
    /// Programs that can be read.
    pub list: Vec<HloProgram>,
    /// Why other programs cannot be read.
    pub not_captured: Vec<NotCaptured>,
    by_id: HashMap<u64, usize>,
    by_name: HashMap<String, usize>,
}

impl HloPrograms {
    /// Of a capture. Needs programs.
    pub fn of(timeline: &Timeline) -> Self {
        let mut found = Self::default();
        for program in &timeline.capture.programs {
            match program.module() {
                Ok(module) => {
                    let number = found.list.len();
                    // Events may say which program by its number, its name or both.
                    found.by_id.entry(program.id).or_insert(number);
                    found.by_name.entry(program.name.clone()).or_insert(number);
                    found
                        .list
                        .push(HloProgram::new(program.name.clone(), program.id, module));
                }
                Err(error) => {
                    let what = format!("the program {}", program.name);
                    found.not_captured.push(NotCaptured::new(what, error.to_string()));
                }
            }
        }
        if timeline.capture.programs.is_empty() {
            let reason = "the capture holds no compiled programs; profile JAX with `enable_hlo_proto`, or give dumps of XLA \
                          (`XLA_FLAGS=--xla_dump_to=DIR --xla_dump_hlo_as_proto`)";
            found.not_captured.push(NotCaptured::new("what programs hold", reason));
        }
        found
    }

    /// The programs, for lists to choose from.
    pub fn entries(&self) -> Vec<HloProgramEntry> {
        self.list.iter().map(HloProgramEntry::of).collect()
    }

    /// The program whose name contains `name` and that has that number, in decimal digits, where it
    /// is not empty; of several the one with the largest `size`, and of these the first.
    pub fn choose(&self, name: &str, id: &str, size: impl Fn(&HloProgram) -> u64) -> Option<&HloProgram> {
        let is_meant =
            |program: &&HloProgram| program.name.contains(name) && (id.is_empty() || program.id.to_string() == id);
        let meant = self.list.iter().filter(is_meant);
        meant.reduce(|most, program| if size(program) > size(most) { program } else { most })
    }

    /// The program that an event belongs to: by its number, else by its name.
    pub fn find(&self, id: u64, name: &str) -> Option<&HloProgram> {
        let by_id = self.by_id.get(&id).filter(|_| id != 0);
        self.list.get(*by_id.or_else(|| self.by_name.get(name))?)
    }
}

/// A program to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HloProgramEntry {
    /// Name of the program.
    pub program: String,
    /// Its number, in decimal digits: it may be larger than a double holds.
    pub program_id: String,
    /// Whether it is one after optimisation, whose instructions are in the order in which they run.
    pub is_optimised: bool,
    /// Its computations, those inside fusions included.
    pub computations: u64,
    /// Number of instructions of the program.
    pub instructions: u64,
}

impl HloProgramEntry {
    /// Of a program.
    pub fn of(program: &HloProgram) -> Self {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        Self {
            program: program.name.clone(),
            program_id: program.id.to_string(),
            is_optimised: program.module.is_scheduled,
            computations: count(program.module.computations.len()),
            instructions: count(program.module.instructions().count()),
        }
    }
}

/// Programs as people read them.
pub fn table(programs: &[HloProgramEntry]) -> Table {
    Table::of("Programs of the capture", programs)
        .about("The parameters `program` and `program_id` choose one.")
        .column("Program", |program| program.program.as_str())
        .column("Number", |program| program.program_id.as_str())
        .column("Optimised", |program| program.is_optimised)
        .column("Computations", |program| program.computations)
        .column("Instructions", |program| program.instructions)
        .build()
}
