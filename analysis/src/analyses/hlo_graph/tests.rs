//! A program whose graph can be drawn by hand.

use flopwatch_measures::hlo_program::HloProgram;
use flopwatch_model::hlo::{Computation, ElementType, Instruction, Module, Shape};

use super::*;

fn instruction(id: u64, opcode: &str, operands: &[u64], called: &[u64]) -> Instruction {
    Instruction {
        name: format!("{opcode}.{id}"),
        opcode: opcode.to_owned(),
        shape: Shape::array(ElementType::named("f32").unwrap(), &[10]),
        id,
        operands: operands.to_vec(),
        called: called.to_vec(),
        ..Instruction::default()
    }
}

fn computation(id: u64, name: &str, instructions: Vec<Instruction>) -> Computation {
    Computation {
        name: name.to_owned(),
        id,
        root: instructions.last().unwrap().id,
        is_fusion: false,
        instructions,
    }
}

/// `tanh(p * p) + p` in a fusion, then negated twice.
fn program() -> HloProgram {
    let inside = computation(
        1,
        "fused",
        vec![
            instruction(1, "parameter", &[], &[]),
            instruction(2, "multiply", &[1, 1], &[]),
            instruction(3, "tanh", &[2], &[]),
            instruction(4, "add", &[3, 1], &[]),
        ],
    );
    let main = computation(
        2,
        "main",
        vec![
            instruction(5, "parameter", &[], &[]),
            instruction(6, "fusion", &[5], &[1]),
            instruction(7, "negate", &[6], &[]),
            instruction(8, "negate", &[7], &[]),
        ],
    );
    HloProgram::new("jit_f".to_owned(), 3, Module::new("jit_f", vec![inside, main], 2))
}

fn graph(params: &HloGraphParams) -> HloGraph {
    let program = program();
    let chosen = choice::ProgramChoice {
        shown: &program,
        before: None,
        after: Some(&program),
    };
    let mut found = HloGraph::default();
    nodes::fill(&mut found, &chosen, params);
    found
}

#[test]
fn a_fusion_says_what_it_holds_and_what_traffic_it_saves() {
    let found = graph(&HloGraphParams::default());
    let [fusion] = &found.fusions[..] else {
        panic!("one fusion")
    };
    assert_eq!(
        (fusion.instructions, fusion.holds.as_str()),
        (3, "add 1, multiply 1, tanh 1")
    );
    // One by one: 40 + 40 read and 40 written, 40 and 40, 80 and 40; together 40 and 40.
    assert_eq!((fusion.bytes, fusion.saved_bytes), (80, 120 + 80 + 120 - 80));
    let depths: Vec<_> = found
        .computations
        .iter()
        .map(|one| (one.name.as_str(), one.kind, one.depth))
        .collect();
    assert_eq!(
        depths,
        [
            ("main", HloGraphComputationKind::Entry, Some(0)),
            ("fused", HloGraphComputationKind::Fusion, Some(1)),
        ]
    );
    let parameters = found.opcodes.iter().find(|count| count.opcode == "parameter").unwrap();
    assert_eq!(
        (parameters.before, parameters.after, parameters.in_fusions),
        (None, Some(2), Some(1))
    );
}

#[test]
fn the_graph_around_an_instruction_ends_at_the_distance() {
    let around = |inside| HloGraphParams {
        around: "fusion.6".to_owned(),
        distance: 1,
        inside,
        ..HloGraphParams::default()
    };
    let names = |graph: &HloGraph| -> Vec<String> { graph.nodes.iter().map(|node| node.name.clone()).collect() };
    let found = graph(&around(false));
    assert_eq!(names(&found), ["parameter.5", "fusion.6", "negate.7"]);
    let edges: Vec<(u32, u32)> = found.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    assert_eq!(edges, [(0, 1), (1, 2)]);
    let dot = dot::text(&found);
    assert!(
        dot.contains("n0 -> n1;") && dot.contains(r#"label="fusion.6\nfusion f32[10]""#),
        "{dot}"
    );
    let with_inside = graph(&around(true));
    assert_eq!(names(&with_inside), ["add.4", "parameter.5", "fusion.6", "negate.7"]);
    assert!(with_inside.edges.iter().any(|edge| edge.kind == HloEdgeKind::Called));
}

#[test]
fn an_instruction_that_is_not_there_is_said() {
    let found = graph(&HloGraphParams {
        around: "nothing".to_owned(),
        ..HloGraphParams::default()
    });
    assert!(found.nodes.is_empty() && found.not_captured[0].what == "nothing");
}

#[test]
fn a_capture_without_programs_says_so() {
    let timeline = Timeline::default();
    let found = of(&[&timeline], &HloGraphParams::default());
    assert!(found.program.is_empty() && found.not_captured.len() == 1);
}
