//! The graph of a compiled program: its computations, what its fusions hold, and the instructions
//! around one of them.

mod choice;
mod dot;
mod nodes;
mod page;
mod result;

use std::io::Write;

use flopwatch_model::{Needs, Timeline};
use flopwatch_report::page::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definition::{Analysis, AnalysisError, FileAnalysis, InputCount};
use crate::group::Group;
use crate::input::Inputs;

pub use choice::HloStage;
pub use result::{
    HloComputation, HloEdge, HloEdgeKind, HloFusion, HloGraph, HloGraphComputationKind, HloNode, HloOpcodeCount,
};

/// The graph of a compiled program.
#[derive(Debug)]
pub struct HloGraphAnalysis;

/// The graph as text of Graphviz.
#[derive(Debug)]
pub struct HloDot;

/// Parameters of [`HloGraphAnalysis`], and of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HloGraphParams {
    /// Only programs whose name contains this text; of several the one with most instructions.
    #[schemars(length(max = 1024))]
    pub program: String,
    /// Number of the program in decimal digits, where several have its name; empty for any.
    #[schemars(length(max = 20))]
    pub program_id: String,
    /// Which stage of the program's compilation, where captures hold both.
    pub stage: HloStage,
    /// Name of an instruction: only those that it takes values from and gives values to; empty for
    /// the whole program.
    #[schemars(length(max = 1024))]
    pub around: String,
    /// Steps from that instruction, over operands and users alike.
    #[schemars(range(min = 0, max = 100))]
    pub distance: u32,
    /// Whether instructions inside fusions, loops and other called computations are nodes too.
    pub inside: bool,
    /// Most nodes, and most rows of each table.
    #[schemars(range(min = 1, max = 100_000))]
    pub limit: u32,
}

impl Default for HloGraphParams {
    fn default() -> Self {
        Self {
            program: String::new(),
            program_id: String::new(),
            stage: HloStage::Auto,
            around: String::new(),
            distance: 2,
            inside: false,
            limit: 500,
        }
    }
}

impl Analysis for HloGraphAnalysis {
    const NAME: &'static str = "hlo-graph";
    const VERSION: u32 = 2;
    const ABOUT: &'static str = "Graph of a compiled program (JAX, XLA): computations, fusions with what they hold, opcodes before and after optimisation, and the instructions around one.";
    const TITLE: &'static str = "Graph of a compiled program";
    const GROUP: Group = Group::Programs;
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = Needs::NOTHING.programs();
    type Params = HloGraphParams;
    type Output = HloGraph;

    fn run(inputs: &Inputs<'_>, params: &HloGraphParams) -> Result<HloGraph, AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        Ok(of(&timelines, params))
    }

    fn page(output: &HloGraph) -> Result<Page, AnalysisError> {
        Ok(page::page(output))
    }
}

impl FileAnalysis for HloDot {
    const NAME: &'static str = "hlo-dot";
    const VERSION: u32 = 1;
    const ABOUT: &'static str =
        "The graph of a compiled program (JAX, XLA) as text of Graphviz (DOT), for `dot -Tsvg`.";
    const TITLE: &'static str = "Graph of a compiled program for Graphviz";
    const INPUTS: InputCount = InputCount::Many;
    const NEEDS: Needs = HloGraphAnalysis::NEEDS;
    const MEDIA_TYPE: &'static str = "text/vnd.graphviz; charset=utf-8";
    const FILE_NAME: &'static str = "program.dot";
    const MAY_BE_ABSENT: bool = true;
    type Params = HloGraphParams;

    fn write(inputs: &Inputs<'_>, params: &HloGraphParams, out: &mut dyn Write) -> Result<(), AnalysisError> {
        let timelines: Vec<&Timeline> = inputs.all().iter().map(|input| input.timeline).collect();
        let graph = of(&timelines, params);
        if !graph.nodes.is_empty() {
            out.write_all(dot::text(&graph).as_bytes())?;
        }
        Ok(())
    }
}

/// The graph of a program of captures. Needs programs.
pub fn of(timelines: &[&Timeline], params: &HloGraphParams) -> HloGraph {
    let programs = choice::programs(timelines);
    let mut found = HloGraph {
        programs: programs.entries(),
        ..HloGraph::default()
    };
    let chosen = choice::ProgramChoice::of(&programs, params);
    match chosen {
        Some(chosen) => nodes::fill(&mut found, &chosen, params),
        None => found.not_captured.push(choice::missing(&programs)),
    }
    // A program that cannot be read is said even where another can be.
    let unreadable = programs.not_captured.iter().filter(|_| !programs.list.is_empty());
    found.not_captured.extend(unreadable.cloned());
    found
}

#[cfg(test)]
mod tests;
