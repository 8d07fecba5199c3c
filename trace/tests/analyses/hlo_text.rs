//! Compiled programs as text beside the same programs as messages: dumps that the JAX of this
//! machine writes both ways, and the texts that XProf (PyPI) makes of the programs in profiles,
//! with and without shapes of parameters and `%` in front of names.

use std::collections::BTreeMap;
use std::path::Path;

use flopwatch_model::Timeline;
use flopwatch_model::hlo::{self, Instruction, Module};
use serde_json::{Value, json};

use crate::captures::{analyze, timeline_at};
use crate::jax::{PROGRAMS, fresh};
use crate::nsys;
use crate::xprof::xprof;

/// An instruction without numbers: with the names of what it takes and calls, and the lines that it
/// comes from.
#[derive(Debug, PartialEq)]
struct Plain {
    instruction: Instruction,
    operands: Vec<String>,
    called: Vec<String>,
    lines: Vec<String>,
}

fn plain(module: &Module, of: &Instruction) -> Plain {
    let operands = of
        .operands
        .iter()
        .map(|id| module.instruction(*id).unwrap().name.clone());
    let called = of.called.iter().map(|id| module.computation(*id).unwrap().name.clone());
    let lines = module.frames.stack(of.stack_frame);
    let lines = lines.map(|frame| format!("{} {}:{}", frame.function, frame.file, frame.line));
    Plain {
        operands: operands.collect(),
        called: called.collect(),
        lines: lines.collect(),
        instruction: Instruction {
            id: 0,
            operands: Vec::new(),
            called: Vec::new(),
            stack_frame: 0,
            // One group need not be said.
            feature_groups: of.feature_groups.max(1),
            batch_groups: of.batch_groups.max(1),
            ..of.clone()
        },
    }
}

/// The computations by their names, each with its root and its instructions in their order.
fn computations(module: &Module) -> BTreeMap<&str, (&str, bool, Vec<Plain>)> {
    let computations = module.computations.iter().map(|of| {
        let root = module.instruction(of.root).unwrap().name.as_str();
        let instructions = of.instructions.iter().map(|one| plain(module, one));
        (of.name.as_str(), (root, of.is_fusion, instructions.collect()))
    });
    computations.collect()
}

/// Whether both modules are the same, but for their numbers; without what XProf's texts leave out,
/// where `lines` is not wanted.
fn equal(name: &str, text: &Module, message: &Module, lines: bool) {
    let head = |module: &Module| {
        let entry = module.entry_computation().unwrap().name.clone();
        (module.name.clone(), module.is_scheduled, entry)
    };
    assert_eq!(head(text), head(message), "{name}");
    let (mut text, mut message) = (computations(text), computations(message));
    if !lines {
        let all = text.values_mut().chain(message.values_mut());
        for plain in all.flat_map(|(.., instructions)| instructions) {
            plain.lines.clear();
            plain.instruction.op_name.clear();
            plain.instruction.source_file.clear();
            plain.instruction.source_line = 0;
            // XProf writes it anew, without what is empty in it.
            plain.instruction.backend_config.clear();
        }
    }
    assert!(
        text.keys().eq(message.keys()),
        "{name}: {:?}, {:?}",
        text.keys(),
        message.keys()
    );
    for ((computation, text), message) in text.iter().zip(message.values()) {
        assert_eq!(
            (text.0, text.1, text.2.len()),
            (message.0, message.1, message.2.len()),
            "{name}: {computation}"
        );
        for (text, message) in text.2.iter().zip(&message.2) {
            assert_eq!(text, message, "{name}: {computation}");
        }
    }
}

fn module(timeline: &Timeline) -> Module {
    timeline.capture.programs[0].module().unwrap()
}

/// The same in all that has no number of the program in it.
fn without_number(mut result: Value) -> Value {
    fn clear(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("program_id");
                fields.values_mut().for_each(clear);
            }
            Value::Array(items) => items.iter_mut().for_each(clear),
            _ => {}
        }
    }
    clear(&mut result);
    result
}

#[test]
fn a_dump_as_text_is_the_program_that_its_message_is() {
    let Some(fresh) = fresh() else { return };
    for program in PROGRAMS {
        for stage in ["before_optimizations", "after_optimizations"] {
            let text = timeline_at(&fresh.dump(program, &format!("{stage}.txt")));
            let message = timeline_at(&fresh.dump(program, &format!("{stage}.hlo.pb")));
            let name = format!("{program} {stage}");
            equal(&name, &module(&text), &module(&message), true);
            let whole = json!({"inside": true, "limit": 100_000});
            for (analysis, parameters) in [
                ("hlo-operations", &Value::Null),
                ("hlo-cost", &Value::Null),
                ("hlo-graph", &whole),
            ] {
                let result = |of| without_number(analyze(analysis, parameters, &[of]));
                assert_eq!(result(&text), result(&message), "{analysis} of {name}");
            }
            memory_is_equal(&name, &text, &message);
        }
    }
}

/// Sizes of allocations are those of the plan in its message. When values begin and end is in the
/// message alone.
fn memory_is_equal(name: &str, text: &Timeline, message: &Timeline) {
    let of = |timeline| analyze("hlo-memory", &json!({"limit": 100_000}), &[timeline]);
    let (text, message) = (of(text), of(message));
    for figure in [
        "allocated_bytes",
        "parameters_bytes",
        "outputs_bytes",
        "constants_bytes",
        "temporaries_bytes",
    ] {
        assert_eq!(text[figure], message[figure], "{figure} of {name}");
    }
    let largest = |of: &Value| {
        let values = of["buffers"].as_array().unwrap().iter();
        let mut values: Vec<String> = values
            .filter(|value| value["kind"] != "temporary")
            .map(|value| {
                format!(
                    "{} {} {} {}",
                    value["allocation"], value["instruction"], value["shape"], value["bytes"]
                )
            })
            .collect();
        values.sort();
        values
    };
    assert_eq!(largest(&text), largest(&message), "{name}");
    let has_temporaries = text["temporaries_bytes"].as_u64().unwrap() > 0;
    let says_so = text["not_captured"].to_string().contains("lifetimes of temporaries");
    assert_eq!(says_so, has_temporaries, "{name}: {}", text["not_captured"]);
}

/// The texts that XProf makes of a profile's programs; how many they are.
fn texts_are_equal(profile: &Path) -> Option<usize> {
    let said = xprof(profile)?;
    let timeline = timeline_at(profile);
    for (name, texts) in said["modules"].as_object().unwrap() {
        let programs = &timeline.capture.programs;
        let program = programs.iter().find(|one| format!("{}({})", one.name, one.id) == *name);
        let message = program.unwrap_or_else(|| panic!("no {name}")).module().unwrap();
        for form in ["long", "short"] {
            let text = hlo::read(texts[form].as_str().unwrap().as_bytes()).unwrap();
            equal(name, &text, &message, false);
        }
    }
    Some(said["modules"].as_object().unwrap().len())
}

#[test]
fn texts_of_gpus_accelerators_and_processors_are_the_programs_of_their_profiles() {
    for name in [
        "tracelens-jax/jax_conv_minimal_08.xplane.pb",
        "xprof/tpu_inference_2.xplane.pb",
    ] {
        if let Some(path) = nsys::corpus(name) {
            assert!(texts_are_equal(&path).is_none_or(|programs| programs >= 4), "{name}");
        }
    }
    let Some(fresh) = fresh() else { return };
    assert!(texts_are_equal(&fresh.profile()).is_none_or(|programs| programs >= 8));
}
