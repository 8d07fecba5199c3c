use super::*;
use crate::hlo::{Frame, Instruction, InstructionLocation};

/// `y = tanh(x · x)` in a fusion, in a loop of five turns; with what texts of several versions
/// have.
const MODULE: &str = r#"HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[2,2]{1,0:T(8,128)S(5)})->f32[2,2]{1,0}}

FileNames
1 "model \"1\".py"

FunctionNames
1 "f"
2 "<module>"

FileLocations
1 {file_name_id=1 function_name_id=2 line=30 end_line=30 column=4 end_column=9}
2 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=11 end_column=16}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%fused (p.0: f32[2,2]) -> f32[2,2] {
  %p.0 = f32[2,2]{1,0} parameter(0)
  %dot.1 = f32[2,2]{1,0} dot(%p.0, f32[2,2]{1,0} %p.0), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_type="dot" op_name="jit(f)/dot, a" stack_frame_id=2}
  ROOT %tanh.2 = f32[2,2]{1,0} tanh(%dot.1)
}

body {
  t.3 = (s32[], f32[2,2]{1,0}) parameter(0)
  constant.4 = s32[] constant(-1)
  large.5 = f32[2,2] constant({ { 1, 2 }, { 3, nan } }), metadata={op_name="table" source_file="model.py" source_line=3}
  i.6 = s32[] get-tuple-element((s32[], /*index=1*/f32[2,2]{1,0}) t.3), index=0
  x.7 = f32[2,2]{1,0} get-tuple-element(t.3), index=1
  fusion.8 = f32[2,2]{1,0} fusion(x.7), kind=kLoop, calls=fused
  ROOT tuple.9 = (s32[], f32[2,2]{1,0}) tuple(i.6, /*index=1*/fusion.8)
}

%condition (t.10: (s32[], f32[2,2])) -> pred[] {
  %t.10 = (s32[], f32[2,2]{1,0}) parameter(0)
  ROOT %c.11 = pred[] constant(true)
}, execution_thread="main"

ENTRY %main (x.12: f32[2,2]) -> f32[2,2] {
  %x.12 = f32[2,2]{1,0:T(8,128)S(5)} parameter(0), sharding={devices=[1,1,2]<=[2] last_tile_dim_replicate}
  %zero.13 = s32[] constant(0)
  %tuple.14 = (s32[], f32[2,2]{1,0}) tuple(%zero.13, %x.12)
  %while.15 = (s32[], f32[2,2]{1,0}) while(%tuple.14), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"5"},"a":["}",")\""]}
  %packed.16 = s4[5]{0:E(4)} custom-call(), custom_call_target="f\303\274r", window={size=3x2 stride=2x1 pad=0_1x-1_0 rhs_dilate=1x2}, dim_labels=b01f_01io->bf01, feature_group_count=2
  ROOT %y.17 = f32[2,2]{1,0} get-tuple-element(%while.15), index=1
}
"#;

const ASSIGNMENT: &str = "
BufferAssignment:
allocation 0: size 16, color 5, parameter 0, shape |f32[2,2]| at ShapeIndex {}, maybe-live-out:
 value: <7 x.12 @5> (size=16,offset=0): f32[2,2]{1,0}
allocation 1: size 96, output shape is |(s32[], f32[2,2])|, preallocated-temp:
 value: <8 while.15{1} (phi) @0> (size=16,offset=64): f32[2,2]{1,0}

Total bytes used: 112 (112B)
";

fn named<'a>(module: &'a Module, name: &str) -> &'a Instruction {
    let mut all = module.instructions();
    all.find(|(_, one)| one.name == name)
        .unwrap_or_else(|| panic!("{name}"))
        .1
}

#[test]
fn a_module_is_read_with_its_computations_operands_and_attributes() {
    let module = read(MODULE).unwrap();
    assert_eq!(
        (module.name.as_str(), module.is_scheduled, module.id),
        ("jit_f", true, 0)
    );
    let names: Vec<&str> = module.computations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["fused", "body", "condition", "main"]);
    assert_eq!(module.entry_computation().unwrap().name, "main");
    assert!(module.computations[0].is_fusion && !module.computations[1].is_fusion);
    let dot = named(&module, "dot.1");
    assert_eq!((&dot.operands[..], &dot.contracting[..]), (&[1, 1][..], &[1][..]));
    assert_eq!(dot.op_name, "jit(f)/dot, a");
    let root = module.instruction(module.computations[0].root).unwrap();
    assert_eq!(
        (root.name.as_str(), root.shape.to_string().as_str()),
        ("tanh.2", "f32[2,2]")
    );
    let repeated = named(&module, "while.15");
    let called: Vec<&str> = repeated
        .called
        .iter()
        .map(|id| module.computation(*id).unwrap().name.as_str())
        .collect();
    assert_eq!(called, ["body", "condition"]);
    assert_eq!(
        repeated.backend_config,
        r#"{"known_trip_count":{"n":"5"},"a":["}",")\""]}"#
    );
    let part = named(&module, "i.6");
    assert_eq!(
        module.location(part.operands[0]),
        Some(InstructionLocation { computation: 1, at: 0 })
    );
    assert_eq!(
        (
            named(&module, "x.7").tuple_index,
            named(&module, "fusion.8").fusion_kind.as_str()
        ),
        (1, "kLoop")
    );
    let table = named(&module, "large.5");
    assert_eq!((table.source_file.as_str(), table.source_line), ("model.py", 3));
}

#[test]
fn layouts_windows_labels_and_escapes_are_read() {
    let module = read(MODULE).unwrap();
    assert_eq!(named(&module, "x.12").shape.memory_space, 5);
    let packed = named(&module, "packed.16");
    assert_eq!((packed.shape.packed_bits, packed.shape.bytes()), (4, 3));
    assert_eq!(packed.custom_call_target, "für");
    let window: Vec<(u64, u64, i64, u64)> = packed
        .window
        .iter()
        .map(|one| (one.size, one.stride, one.padding_low, one.window_dilation))
        .collect();
    assert_eq!(window, [(3, 2, 0, 1), (2, 1, -1, 2)]);
    let labels = packed.convolution.as_ref().unwrap();
    assert_eq!((labels.input_feature, &labels.input_spatial[..]), (3, &[1, 2][..]));
    assert_eq!((labels.output_feature, &labels.output_spatial[..]), (1, &[2, 3][..]));
    assert_eq!(&labels.kernel_spatial[..], [0, 1]);
    assert_eq!(packed.feature_groups, 2);
}

#[test]
fn lines_of_source_are_found_through_the_tables() {
    let module = read(MODULE).unwrap();
    let stack: Vec<Frame<'_>> = module.frames.stack(named(&module, "dot.1").stack_frame).collect();
    let line = |function, line| Frame {
        file: "model \"1\".py",
        function,
        line,
    };
    assert_eq!(stack, [line("f", 12), line("<module>", 30)]);
}

#[test]
fn a_plan_of_memory_behind_the_module_is_read() {
    let module = read(&format!("{MODULE}{ASSIGNMENT}")).unwrap();
    let plan = module.buffers.unwrap();
    let allocations: Vec<(u64, u64, bool, bool)> = plan
        .allocations
        .iter()
        .map(|one| (one.bytes, one.color, one.is_parameter, one.is_live_out))
        .collect();
    assert_eq!(allocations, [(16, 5, true, true), (96, 0, false, false)]);
    let value = &plan.logical[1];
    assert_eq!(
        (value.id, value.instruction_name.as_str(), &value.shape_index[..]),
        (8, "while.15", &[1][..])
    );
    assert_eq!(plan.allocations[1].assigned[0].offset, 64);
    assert!(plan.traces.is_empty());
}

#[test]
fn a_text_that_is_cut_off_anywhere_is_no_module_or_has_no_plan() {
    let whole = format!("{MODULE}{ASSIGNMENT}");
    let module = MODULE.trim_end().len();
    for end in 0..whole.len() {
        let cut = &whole[..end];
        match read(cut) {
            // A plan that is cut between two lines looks whole where its sum is not there.
            Ok(read) => {
                let looks_whole = cut.ends_with('\n') && cut.contains("\nallocation") || cut.contains("used: 112");
                assert!(end >= module && read.buffers.is_some() == looks_whole, "cut at {end}");
            }
            Err(ReadError::Text { line, .. }) => {
                let lines = cut.matches('\n').count() + 1;
                assert!(line <= lines && (end < module || end > module + 1), "cut at {end}");
            }
            Err(error) => panic!("cut at {end}: {error}"),
        }
    }
    let another = whole.replace("used: 112", "used: 113");
    assert!(read(&another).unwrap().buffers.is_none());
}

#[test]
fn what_is_no_module_is_refused_with_its_line() {
    let wrong = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(wrong("HloModule "), "line 1: the module has no name");
    assert_eq!(
        wrong("HloModule m\n\nf {\n  a = s32[] add(b)\n}\n"),
        "line 5: an instruction takes the value of one that is not there"
    );
    assert_eq!(
        wrong("HloModule m\n\nf {\n  a = q9[] iota()\n}\n"),
        "line 4: a shape has elements of an unknown type"
    );
    assert_eq!(
        wrong("HloModule m\n\nf {\n  a = s32[] call(), to_apply=g\n}\n"),
        "line 6: no computation is marked ENTRY"
    );
    let deep = format!("HloModule m\n\nENTRY f {{ a = {}s32[]", "(".repeat(40));
    assert!(matches!(read(&deep), Err(ReadError::TooDeep { .. })));
    let twice = "HloModule m\n\nENTRY f {\n  a = s32[] iota()\n  a = s32[] iota()\n}\n";
    assert!(wrong(twice).contains("one name"));
}

#[test]
fn a_circle_of_calls_ends() {
    let text = "HloModule m\n\nf { a = s32[] call(), to_apply=g }\n\nENTRY g { b = s32[] call(), to_apply=f }\n";
    let module = read(text).unwrap();
    assert_eq!(module.computations.len(), 2);
}
