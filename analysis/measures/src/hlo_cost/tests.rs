//! Programs whose work can be counted by hand.

use flopwatch_model::hlo::{Computation, Convolution, ElementType, Shape, WindowDimension};

use super::*;

fn array(element: &str, dimensions: &[u64]) -> Shape {
    Shape::array(ElementType::named(element).unwrap(), dimensions)
}

fn instruction(id: u64, opcode: &str, shape: Shape, operands: &[u64]) -> Instruction {
    Instruction {
        name: format!("{opcode}.{id}"),
        opcode: opcode.to_owned(),
        shape,
        id,
        operands: operands.to_vec(),
        ..Instruction::default()
    }
}

/// A program of these computations, which are numbered from 1; the last one is its entry.
fn module<const N: usize>(computations: [Vec<Instruction>; N]) -> Module {
    let computation = |(id, instructions): (u64, Vec<Instruction>)| Computation {
        name: format!("computation.{id}"),
        id,
        root: instructions.last().unwrap().id,
        is_fusion: false,
        instructions,
    };
    let computations: Vec<Computation> = (1..).zip(computations).map(computation).collect();
    let entry = computations.last().unwrap().id;
    Module::new("m", computations, entry)
}

/// An instruction that calls these computations.
fn calls(called: &[u64], of: Instruction) -> Instruction {
    Instruction {
        called: called.to_vec(),
        ..of
    }
}

fn cost_of(module: &Module) -> HloCost {
    HloCosts::of(module, Loops::AsTheyRun).module
}

#[test]
fn a_product_is_two_operations_per_element_and_element_summed_over() {
    let dot = Instruction {
        contracting: vec![1],
        ..instruction(3, "dot", array("f32", &[2, 4]), &[1, 2])
    };
    let main = vec![
        instruction(1, "parameter", array("f32", &[2, 3]), &[]),
        instruction(2, "parameter", array("f32", &[3, 4]), &[]),
        dot,
        instruction(4, "tanh", array("f32", &[2, 4]), &[3]),
        instruction(5, "compare", array("pred", &[2, 4]), &[4, 3]),
    ];
    let cost = cost_of(&module([main]));
    assert_eq!(cost.flops, 2 * 2 * 3 * 4 + 8);
    assert_eq!((cost.transcendentals, cost.integer_operations, cost.unknown), (8, 0, 0));
    // 24 + 48 read and 32 written, 32 + 32, and 64 read with 8 written.
    assert_eq!(cost.bytes, (24 + 48 + 32) + 64 + 72);
}

#[test]
fn a_loop_counts_as_often_as_it_runs_and_once_for_xla() {
    let body = vec![
        instruction(1, "parameter", array("f32", &[10]), &[]),
        instruction(2, "add", array("f32", &[10]), &[1, 1]),
    ];
    let condition = vec![instruction(3, "constant", array("pred", &[]), &[])];
    let turn = Instruction {
        called: vec![1, 2],
        backend_config: r#"{"known_trip_count":{"n":"7"}}"#.to_owned(),
        ..instruction(5, "while", array("f32", &[10]), &[4])
    };
    let main = vec![instruction(4, "parameter", array("f32", &[10]), &[]), turn];
    let module = module([body, condition, main]);
    assert_eq!(cost_of(&module).flops, 70);
    assert_eq!(cost_of(&module).bytes, 7 * 120);
    assert_eq!(HloCosts::of(&module, Loops::Once).module.flops, 10);
}

#[test]
fn xla_counts_the_pointers_of_tuples_and_not_what_they_point_to() {
    let pair = Shape {
        element: ElementType::TUPLE,
        tuple: vec![array("f32", &[10]), array("s32", &[10])],
        ..Shape::default()
    };
    let body = vec![
        instruction(1, "parameter", pair.clone(), &[]),
        instruction(2, "get-tuple-element", array("f32", &[10]), &[1]),
        instruction(3, "add", array("f32", &[10]), &[2, 2]),
        instruction(4, "tuple", pair.clone(), &[3, 3]),
    ];
    let turn = calls(&[1], instruction(6, "while", pair.clone(), &[5]));
    let main = vec![
        instruction(5, "tuple", pair.clone(), &[]),
        turn,
        instruction(7, "opt-barrier", pair.clone(), &[6]),
        instruction(8, "sort", pair.clone(), &[2, 2]),
        instruction(9, "custom-call", pair, &[7]),
    ];
    let module = module([body, main]);
    // The body once: an addition of 120 bytes and a table of 16. Then a table, one that is read and
    // written, two arrays of 40 sorted into two, and a function that is not known.
    assert_eq!(cost_analysis_bytes(&module), (120 + 16) + 16 + 32 + (80 + 80) - 1);
    assert_eq!(
        HloCosts::of(&module, Loops::Once).module.bytes,
        120 + 160 + 160,
        "our own count has arrays and no tables"
    );
}

#[test]
fn xla_reads_all_of_what_a_gather_in_a_fusion_takes_from() {
    let inside = vec![
        instruction(1, "parameter", array("f32", &[32, 64]), &[]),
        Instruction {
            parameter: 1,
            ..instruction(2, "parameter", array("s32", &[5, 1]), &[])
        },
        instruction(3, "gather", array("f32", &[5, 64]), &[1, 2]),
        instruction(4, "convert", array("bf16", &[5, 64]), &[3]),
    ];
    let fusion = calls(&[1], instruction(7, "fusion", array("bf16", &[5, 64]), &[5, 6]));
    let main = vec![
        instruction(5, "parameter", array("f32", &[32, 64]), &[]),
        instruction(6, "parameter", array("s32", &[5, 1]), &[]),
        fusion,
    ];
    let module = module([inside, main]);
    assert_eq!(cost_analysis_bytes(&module), 8192 + 20 + 640);
    assert_eq!(cost_of(&module).bytes, 1280 + 20 + 640);
}

#[test]
fn a_fusion_reads_what_its_slices_take_and_writes_its_value() {
    let inside = vec![
        instruction(1, "parameter", array("f32", &[100]), &[]),
        instruction(2, "slice", array("f32", &[10]), &[1]),
        instruction(3, "multiply", array("f32", &[10]), &[2, 2]),
        instruction(4, "add", array("f32", &[10]), &[3, 2]),
    ];
    let fusion = calls(&[1], instruction(6, "fusion", array("f32", &[10]), &[5]));
    let main = vec![instruction(5, "parameter", array("f32", &[100]), &[]), fusion];
    let cost = cost_of(&module([inside, main]));
    assert_eq!((cost.flops, cost.bytes), (20, 80));
}

#[test]
fn an_update_in_place_moves_the_updated_part() {
    let inside = vec![
        instruction(1, "parameter", array("f32", &[100]), &[]),
        Instruction {
            parameter: 1,
            ..instruction(2, "parameter", array("f32", &[10]), &[])
        },
        instruction(3, "constant", array("s32", &[]), &[]),
        instruction(4, "dynamic-update-slice", array("f32", &[100]), &[1, 2, 3]),
    ];
    let fusion = calls(&[1], instruction(7, "fusion", array("f32", &[100]), &[5, 6]));
    let main = vec![
        instruction(5, "parameter", array("f32", &[100]), &[]),
        instruction(6, "parameter", array("f32", &[10]), &[]),
        fusion,
    ];
    assert_eq!(cost_of(&module([inside, main])).bytes, 80);
}

#[test]
fn a_convolution_counts_positions_on_the_input_alone() {
    // One feature each, a window of 3 over 4 elements, padded by one on each side: 2 + 3 + 3 + 2
    // pairs.
    let convolution = Instruction {
        window: vec![WindowDimension {
            size: 3,
            stride: 1,
            padding_low: 1,
            window_dilation: 1,
            base_dilation: 1,
        }],
        convolution: Some(Box::new(Convolution {
            input_batch: 0,
            input_feature: 1,
            input_spatial: vec![2],
            kernel_spatial: vec![2],
            output_feature: 1,
            output_spatial: vec![2],
        })),
        ..instruction(3, "convolution", array("f32", &[1, 1, 4]), &[1, 2])
    };
    let main = vec![
        instruction(1, "parameter", array("f32", &[1, 1, 4]), &[]),
        instruction(2, "parameter", array("f32", &[1, 1, 3]), &[]),
        convolution.clone(),
    ];
    assert_eq!(cost_of(&module([main.clone()])).flops, 2 * 10);
    let mut library = main;
    library[2] = Instruction {
        opcode: "custom-call".to_owned(),
        custom_call_target: "__cudnn$convForward".to_owned(),
        ..convolution
    };
    assert_eq!(cost_of(&module([library])).flops, 2 * 10);
}

#[test]
fn a_product_of_a_library_is_known_and_another_function_is_not() {
    let call = |target: &str| {
        let call = Instruction {
            custom_call_target: target.to_owned(),
            backend_config: r#"{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}"#
                .to_owned(),
            ..instruction(3, "custom-call", array("bf16", &[2, 4]), &[1, 2])
        };
        let main = vec![
            instruction(1, "parameter", array("bf16", &[2, 3]), &[]),
            instruction(2, "parameter", array("bf16", &[3, 4]), &[]),
            call,
        ];
        cost_of(&module([main]))
    };
    assert_eq!((call("__cublas$gemm").flops, call("__cublas$gemm").unknown), (48, 0));
    assert_eq!((call("my_kernel").flops, call("my_kernel").unknown), (0, 1));
}

#[test]
fn a_computation_that_calls_itself_ends() {
    let call = calls(&[1], instruction(2, "call", array("f32", &[1]), &[1]));
    let main = vec![instruction(1, "add", array("f32", &[1]), &[]), call];
    assert_eq!(cost_of(&module([main])).flops, 1);
}
