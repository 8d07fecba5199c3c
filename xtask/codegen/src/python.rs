//! The catalogue as a Python stub: a class per result, the parameters of each analysis, and what
//! calls of `analyze` give. The words of profilers stand there too.

mod calls;
mod text;

use std::collections::BTreeSet;

use flopwatch_analysis::Definition;
use flopwatch_analysis::catalogue::CATALOGUE;
use flopwatch_api::profiler::ProfilerType;
use serde_json::Value;

use self::calls::{CALLS, protocol};
use self::text::{WIDTH, comment, docstring, width};
use crate::types::{Declaration, Field, Type, Types, TypesError, declaration};

const HEAD: &str = "\
# Written by `cargo xtask codegen` from the catalogue of analyses and the table of profilers; a test fails when it drifts.
from collections.abc import Coroutine, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, overload

from typing_extensions import NotRequired, Unpack

from .capture import Capture, Result
";

/// The alias of the words of profilers.
const PROFILER: &str = "Profiler";

/// What a class of the package's own `Result` has: fields of these names are found by
/// `Result.to_dict` alone, or are the same.
const OWN: [&str; 5] = ["analysis", "keys", "table", "to_dict", "verdict"];

/// Names that cannot be a field's in a class: Python's keywords, and types that are named behind
/// it.
const RESERVED: [&str; 18] = [
    "as", "bool", "class", "def", "del", "dict", "float", "for", "from", "global", "if", "import", "in", "int", "is",
    "list", "str", "with",
];

/// The stub that `python/flopwatch/_catalogue.pyi` holds.
pub fn python() -> Result<String, TypesError> {
    let mut types = Types::default();
    let mut classes = String::new();
    let mut names = BTreeSet::from([PROFILER.to_owned()]);
    let mut entries = Vec::new();
    for definition in CATALOGUE {
        let Some(written) = definition.written_schema() else {
            continue;
        };
        let (written, parameters) = (written.to_value(), definition.parameter_schema().to_value());
        types.add_definitions(&written)?;
        types.add_definitions(&parameters)?;
        let of = pascal(definition.name);
        let entry = Entry {
            definition,
            result: format!("{of}Result"),
            parameters: parameters.get("properties").map(|_some| format!("{of}Parameters")),
        };
        if let Some(name) = &entry.parameters {
            classes.push_str(&parameters_of(definition, name, &parameters)?);
            names.insert(name.clone());
        }
        classes.push_str(&result_of(definition, &entry.result, &written)?);
        names.insert(entry.result.clone());
        entries.push(entry);
    }
    let mut text = HEAD.to_owned();
    text.push_str(&profilers()?);
    for (name, declaration) in types.declarations()? {
        if names.contains(name) {
            return Err(TypesError::Clash(name.to_owned()));
        }
        text.push_str(&declared(name, &declaration)?);
    }
    text.push_str(&classes);
    for call in &CALLS {
        text.push_str(&protocol(call, &entries));
    }
    Ok(text)
}

/// The words of the profilers, which options of sessions have.
fn profilers() -> Result<String, TypesError> {
    let words = ProfilerType::WORDS.map(Value::from).to_vec();
    let about = comment(Some("A profiler, by its word in requests."), "");
    Ok(format!("\n{about}{}", alias(PROFILER, &Type::Words(words))?))
}

/// An analysis with a result in JSON, and the names of its types.
struct Entry {
    definition: &'static Definition,
    result: String,
    parameters: Option<String>,
}

/// `cuda_gpu_sum` as `CudaGpuSum`.
fn pascal(name: &str) -> String {
    let mut made = String::new();
    for word in name.split(['-', '_']) {
        let mut letters = word.chars();
        made.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        made.push_str(letters.as_str());
    }
    made
}

fn parameters_of(definition: &Definition, name: &str, schema: &Value) -> Result<String, TypesError> {
    let mut fields = fields_of(name, schema)?;
    for field in &mut fields {
        // None of them must be given, as the class says.
        field.is_required = true;
        let default = schema.pointer(&format!("/properties/{}/default", field.name));
        if let (Some(about), Some(default)) = (&mut field.about, default.and_then(literal)) {
            let words = format!(" By default `{default}`.");
            about.push_str(&words);
        }
    }
    let about = format!("Parameters of `{}`.", definition.name);
    class(name, "TypedDict, total=False", Some(&about), &fields)
}

/// A plain value as Python has it; `None` of one that says nothing.
fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(true) => Some("True".to_owned()),
        Value::Bool(false) => Some("False".to_owned()),
        value => Some(value.to_string()),
    }
}

fn result_of(definition: &Definition, name: &str, schema: &Value) -> Result<String, TypesError> {
    let mut fields = fields_of(name, schema)?;
    fields.retain(|field| !OWN.contains(&field.name.as_str()));
    // Whoever asks for an attribute that is not there gets an error at run time; there is no type
    // for that.
    for field in &mut fields {
        field.is_required = true;
    }
    class(name, "Result", Some(definition.about), &fields)
}

fn fields_of(name: &str, schema: &Value) -> Result<Vec<Field>, TypesError> {
    match declaration(name, schema)?.is {
        Type::Object(fields) => Ok(fields),
        _ => Err(untold(name)),
    }
}

fn declared(name: &str, declaration: &Declaration) -> Result<String, TypesError> {
    let about = declaration.about.as_deref();
    let Type::Object(fields) = &declaration.is else {
        return Ok(format!("\n{}{}", comment(about, ""), alias(name, &declaration.is)?));
    };
    if fields.iter().any(|field| RESERVED.contains(&field.name.as_str())) {
        return functional(name, about, fields);
    }
    class(name, "TypedDict", about, fields)
}

fn alias(name: &str, is: &Type) -> Result<String, TypesError> {
    let line = format!("{name}: TypeAlias = {}\n", told(name, is)?);
    if width(&line) <= WIDTH {
        return Ok(line);
    }
    let mut words = Vec::new();
    gather(is, &mut words);
    let words = words.into_iter().filter_map(|part| match part {
        Type::Words(words) => Some(words),
        _ => None,
    });
    let words: Vec<String> = words.flatten().map(|word| format!("    {word},\n")).collect();
    Ok(format!("{name}: TypeAlias = Literal[\n{}]\n", words.concat()))
}

/// A class, whose fields are annotated.
fn class(name: &str, of: &str, about: Option<&str>, fields: &[Field]) -> Result<String, TypesError> {
    let mut text = format!("\nclass {name}({of}):\n");
    text.push_str(&docstring(about));
    if about.is_some() && !fields.is_empty() {
        text.push('\n');
    }
    for field in fields {
        if RESERVED.contains(&field.name.as_str()) {
            return Err(untold(&format!("{name}.{}", field.name)));
        }
        let line = format!("    {}: {}\n", field.name, told_field(name, field)?);
        text.push_str(&line);
        text.push_str(&docstring(field.about.as_deref()));
    }
    Ok(text)
}

/// A dictionary with keys that are no names.
fn functional(name: &str, about: Option<&str>, fields: &[Field]) -> Result<String, TypesError> {
    let mut text = format!("\n{}{name} = TypedDict(\n    \"{name}\",\n    {{\n", comment(about, ""));
    for field in fields {
        text.push_str(&comment(field.about.as_deref(), "        "));
        let line = format!("        \"{}\": {},\n", field.name, told_field(name, field)?);
        text.push_str(&line);
    }
    text.push_str("    },\n)\n");
    Ok(text)
}

fn told_field(place: &str, field: &Field) -> Result<String, TypesError> {
    let is = told(&format!("{place}.{}", field.name), &field.is)?;
    Ok(if field.is_required {
        is
    } else {
        format!("NotRequired[{is}]")
    })
}

fn told(place: &str, is: &Type) -> Result<String, TypesError> {
    let mut parts = Vec::new();
    gather(is, &mut parts);
    // To Python's types an integer is a number.
    if parts.contains(&&Type::Number) {
        parts.retain(|part| **part != Type::Integer);
    }
    let words: Vec<String> = parts
        .iter()
        .filter_map(|part| match part {
            Type::Words(words) => Some(words.iter().map(Value::to_string)),
            _ => None,
        })
        .flatten()
        .collect();
    let mut told_parts = Vec::new();
    if !words.is_empty() {
        told_parts.push(format!("Literal[{}]", words.join(", ")));
    }
    let is_nothing = parts.contains(&&Type::Nothing);
    for part in parts {
        let told = match part {
            Type::Integer => "int".to_owned(),
            Type::Number => "float".to_owned(),
            Type::Text => "str".to_owned(),
            Type::Flag => "bool".to_owned(),
            Type::Named(name) => name.clone(),
            Type::List(items) => format!("list[{}]", told(place, items)?),
            Type::Map(values) => format!("dict[str, {}]", told(place, values)?),
            Type::Nothing | Type::Words(_) | Type::OneOf(_) => continue,
            Type::Open(fields, further) => {
                // No class has fields beside those that it names.
                let mut values: Vec<Type> = fields.iter().map(|field| field.is.clone()).collect();
                values.push((**further).clone());
                format!("dict[str, {}]", told(place, &Type::OneOf(values))?)
            }
            Type::Object(_) | Type::Extended(..) => return Err(untold(place)),
        };
        if !told_parts.contains(&told) {
            told_parts.push(told);
        }
    }
    if is_nothing {
        told_parts.push("None".to_owned());
    }
    Ok(told_parts.join(" | "))
}

/// The choices of a type, and of those of its choices that have some.
fn gather<'a>(is: &'a Type, into: &mut Vec<&'a Type>) {
    match is {
        Type::OneOf(choices) => choices.iter().for_each(|choice| gather(choice, into)),
        is => into.push(is),
    }
}

fn untold(place: &str) -> TypesError {
    TypesError::Untold {
        place: place.to_owned(),
        schema: "an object without a name, or a field whose name is a word of Python".to_owned(),
    }
}
