//! Compiled programs of our own making, whole and damaged.

use std::path::Path;

use flopwatch_model::hlo::{self, HeapEventKind, ReadError};
use flopwatch_trace::{Format, ReadLimits, detect, read};

use crate::message::{Message, new};

fn shape(element: u64, dimensions: &[u8]) -> Message {
    new().number(2, element).bytes(3, dimensions)
}

fn instruction(name: &str, opcode: &str, id: u64, shape: &Message) -> Message {
    new().text(1, name).text(2, opcode).message(3, shape).number(35, id)
}

/// `y = x · x` of a 2 × 2 matrix in a fusion, with a plan of its memory.
pub(crate) fn program(name: &str) -> Message {
    let matrix = shape(11, &[2, 2]);
    let dot = instruction("dot.2", "dot", 2, &matrix)
        .bytes(36, &[1, 1])
        .message(30, &new().bytes(1, &[1]).bytes(2, &[0]))
        .message(7, &new().text(2, "jit(f)/dot_general").number(15, 1));
    let inside = new()
        .text(1, "fused")
        .message(2, &instruction("p.1", "parameter", 1, &matrix))
        .message(2, &dot)
        .number(5, 1)
        .number(6, 2);
    let fusion = instruction("fusion.4", "fusion", 4, &matrix)
        .text(11, "kLoop")
        .bytes(36, &[3])
        .bytes(38, &[1]);
    let main = new()
        .text(1, "main")
        .message(2, &instruction("x.3", "parameter", 3, &matrix))
        .message(2, &fusion)
        .number(5, 2)
        .number(6, 4);
    let frames = new()
        .text(1, "model.py")
        .text(2, "f")
        .message(3, &new().number(1, 1).number(2, 1).number(3, 12))
        .message(4, &new().number(1, 1));
    let module = new()
        .text(1, name)
        .text(2, "main")
        .message(3, &inside)
        .message(3, &main)
        .number(5, 77)
        .number(6, 2)
        .message(7, &new().message(1, &new().number(1, 2)))
        .message(17, &frames);
    let buffer = new().number(1, 9).number(2, 16).message(3, &new().number(4, 4));
    let allocation = new()
        .number(1, 0)
        .number(2, 16)
        .number(7, 1)
        .message(9, &new().number(1, 9).number(3, 16));
    let event = |kind| new().number(1, kind).number(2, 9).text(4, "fusion.4");
    let trace = new().message(1, &event(0)).message(1, &event(1));
    let plan = new().message(1, &buffer).message(3, &allocation).message(4, &trace);
    new().message(1, &module).message(3, &plan)
}

fn written(bytes: &[u8], look: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("module_0001.jit_f.before_optimizations.txt");
    std::fs::write(&path, bytes).unwrap();
    look(&path);
}

#[test]
fn a_program_is_read_with_its_instructions_lines_and_memory() {
    written(&program("jit_f").0, |path| {
        assert_eq!(detect(path).unwrap(), Some(Format::Hlo));
        let capture = read(path, &ReadLimits::default()).unwrap();
        let [program] = &capture.programs[..] else {
            panic!("one program")
        };
        assert_eq!((program.name.as_str(), program.id), ("jit_f", 77));
        let module = program.module().unwrap();
        assert!(module.is_scheduled);
        let entry = module.entry_computation().unwrap();
        assert_eq!((entry.name.as_str(), entry.instructions.len()), ("main", 2));
        let fusion = module.instruction(4).unwrap();
        assert_eq!(fusion.fusion_kind, "kLoop");
        assert_eq!(fusion.shape.to_string(), "f32[2,2]");
        let inside = module.computation(fusion.called[0]).unwrap();
        let dot = module.instruction(inside.root).unwrap();
        assert_eq!((dot.opcode.as_str(), &dot.contracting[..]), ("dot", &[1][..]));
        assert_eq!(dot.op_name, "jit(f)/dot_general");
        let lines = module.frames.stack(dot.stack_frame);
        let lines: Vec<_> = lines.map(|frame| (frame.file, frame.function, frame.line)).collect();
        assert_eq!(lines, [("model.py", "f", 12)]);
        let buffers = module.buffers.unwrap();
        assert_eq!(buffers.logical[0].bytes, 16);
        assert_eq!(buffers.allocations[0].assigned[0].buffer, 9);
        let kinds: Vec<_> = buffers.traces[0].events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [HeapEventKind::Allocate, HeapEventKind::Free]);
    });
}

#[test]
fn a_program_that_is_cut_off_anywhere_is_no_program_or_says_where() {
    let whole = program("jit_f").0;
    let mut whole_without_plan = 0;
    for end in 0..whole.len() {
        match hlo::read(&whole[..end]) {
            // The module is whole, and its plan is not there yet.
            Ok(module) => {
                assert!(module.buffers.is_none(), "cut at {end}");
                whole_without_plan += 1;
            }
            Err(ReadError::Damaged { offset }) => assert!(offset <= end, "cut at {end}"),
            Err(error) => assert!(end == 0 && error == ReadError::NoModule, "cut at {end}: {error}"),
        }
    }
    assert_eq!(whole_without_plan, 1);
}

/// A module as text, in which parameters are named as is given.
pub(crate) fn text(parameter: &str, op_name: &str) -> String {
    format!(
        "HloModule jit_f, is_scheduled=true, entry_computation_layout={{(f32[2,2]{{1,0}})->f32[2,2]{{1,0}}}}\n\n\
         %fused (p.1: f32[2,2]) -> f32[2,2] {{\n  %p.1 = f32[2,2]{{1,0}} parameter(0)\n  \
         ROOT %dot.2 = f32[2,2]{{1,0}} dot(%p.1, %p.1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, \
         metadata={{op_name=\"{op_name}\" source_file=\"model.py\" source_line=12}}\n}}\n\n\
         ENTRY %main ({parameter}: f32[2,2]) -> f32[2,2] {{\n  %{parameter} = f32[2,2]{{1,0}} parameter(0)\n  \
         ROOT %fusion.4 = f32[2,2]{{1,0}} fusion(%{parameter}), kind=kLoop, calls=%fused, backend_config={{\"api_token\":\"none\"}}\n}}\n"
    )
}

/// Its plan of memory.
pub(crate) const PLAN: &str = "BufferAssignment:\nallocation 0: size 16, maybe-live-out:\n value: <9 fusion.4 @0> (size=16,offset=0): \
                               f32[2,2]{1,0}\n\nTotal bytes used: 16 (16B)\n";

#[test]
fn a_text_is_read_with_the_plan_of_its_memory_that_lies_beside_it() {
    written(text("x.3", "jit(f)/dot_general").as_bytes(), |path| {
        assert_eq!(detect(path).unwrap(), Some(Format::Hlo));
        let read_module = || {
            read(path, &ReadLimits::default()).unwrap().programs[0]
                .module()
                .unwrap()
        };
        let module = read_module();
        assert_eq!((module.name.as_str(), module.is_scheduled), ("jit_f", true));
        assert!(module.buffers.is_none());
        let beside = path.with_file_name("module_0001.jit_f.before_optimizations-buffer-assignment.txt");
        std::fs::write(&beside, PLAN).unwrap();
        assert_eq!(read_module().buffers.unwrap().allocations[0].bytes, 16);
        // What is no plan is left alone.
        std::fs::write(beside, "HloModule jit_g").unwrap();
        assert_eq!(read_module(), module);
    });
}

#[test]
fn secrets_in_a_text_are_replaced_and_names_stay() {
    let secret = "jit(f)/AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG";
    written(text("token", secret).as_bytes(), |path| {
        let capture = read(path, &ReadLimits::default()).unwrap();
        assert_eq!(capture.redactions, 2);
        let program = &capture.programs[0];
        let kept = String::from_utf8(program.proto.clone()).unwrap();
        assert!(
            !kept.contains("wJalr") && !kept.contains("\"none\"") && kept.contains("%token"),
            "{kept}"
        );
        let module = program.module().unwrap();
        let dot = module.instructions().find(|(_, one)| one.opcode == "dot").unwrap().1;
        assert_eq!(dot.op_name, "jit(f)/AWS_SECRET_ACCESS_KEY=[redacted]");
    });
}

#[test]
fn a_text_that_is_cut_off_says_in_which_line() {
    let whole = text("x.3", "dot");
    written(&whole.as_bytes()[..whole.len() - 10], |path| {
        let error = read(path, &ReadLimits::default()).unwrap_err().to_string();
        assert!(error.contains("line 10"), "{error}");
    });
}

#[test]
fn a_program_with_a_secret_is_refused() {
    let name = "jit_AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    written(&program(name).0, |path| {
        let error = read(path, &ReadLimits::default()).unwrap_err().to_string();
        assert!(error.contains("secret") && !error.contains("wJalr"), "{error}");
    });
}

#[test]
fn shapes_in_shapes_without_end_are_refused() {
    let mut nested = shape(11, &[1]);
    for _ in 0..40 {
        nested = new().number(2, 13).message(4, &nested);
    }
    let main = new().message(2, &instruction("t", "tuple", 1, &nested)).number(5, 1);
    let module = new().text(1, "m").text(2, "main").message(3, &main);
    let error = hlo::read(&new().message(1, &module).0).unwrap_err();
    assert!(matches!(error, ReadError::TooDeep { .. }), "{error}");
}
