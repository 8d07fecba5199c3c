//! The catalogue as TypeScript, for the viewer: a type per result, the entries with their parameters and columns, the summary's tables.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::catalogue::CATALOGUE;
use crate::definition::{Definition, InputCount, ResultType};
use crate::group::Group;
use crate::page::Document;
use crate::parameters::Properties;
use crate::summary::TABLES;

const HEAD: &str = "\
// Written by `cargo xtask codegen` from the catalogue of analyses; a test fails when it drifts.
";

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub enum TypescriptError {
    /// Two results have types of one name that differ: rename one.
    #[error("two types are called {0}")]
    Clash(String),
    /// A schema is of a kind that is not translated.
    #[error("the type of {place} cannot be told in TypeScript: {schema}")]
    Untold {
        /// Where it is.
        place: String,
        /// What it is.
        schema: String,
    },
    /// The entries cannot be written as JSON.
    #[error("the catalogue cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

/// An entry as the viewer has it: its name, and what it needs to ask for the result and to show it.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    about: &'static str,
    group: Group,
    inputs: InputCount,
    /// What a file of the result is called.
    file_name: String,
    /// Whether it has a page; others are files for other programs.
    page: bool,
    /// Schema of each parameter by its name, without references.
    parameters: Value,
}

#[derive(Serialize)]
struct GroupEntry {
    name: &'static str,
    title: &'static str,
}

#[derive(Serialize)]
struct SummaryTable {
    field: &'static str,
    title: &'static str,
    categories: Vec<&'static str>,
}

/// The module that `web/src/generated/catalogue.ts` holds.
pub fn typescript() -> Result<String, TypescriptError> {
    let mut types = BTreeMap::new();
    let mut results = String::new();
    for definition in CATALOGUE {
        if let ResultType::Json { schema } = definition.result {
            let schema = schema();
            let name = collect(&mut types, schema.as_value(), definition.name)?;
            let line = format!("  readonly \"{}\": {name};\n", definition.name);
            results.push_str(&line);
        }
    }
    collect(&mut types, &Document::json_schema(), "page")?;
    let mut text = HEAD.to_owned();
    for (name, schema) in &types {
        text.push_str(&declaration(name, schema)?);
    }
    text.push_str("\n/** The type of each analysis's result. */\nexport interface Results {\n");
    text.push_str(&results);
    text.push_str("}\n");
    let entries: Vec<Entry> = CATALOGUE.iter().map(|definition| entry(definition)).collect();
    let tables = TABLES.map(|table| SummaryTable {
        field: table.field,
        title: table.title,
        categories: table.categories.iter().map(|category| category.name()).collect(),
    });
    let groups = Group::ALL.map(|group| GroupEntry {
        name: group.name(),
        title: group.title(),
    });
    let constants = [
        (
            "ANALYSES",
            "Every analysis, in published order.",
            serde_json::to_string_pretty(&entries)?,
        ),
        (
            "GROUPS",
            "What analyses are about, in the order of lists.",
            serde_json::to_string_pretty(&groups)?,
        ),
        (
            "SUMMARY_TABLES",
            "The tables of a summary, in published order.",
            serde_json::to_string_pretty(&tables)?,
        ),
    ];
    for (name, about, value) in constants {
        let line = format!("\n/** {about} */\nexport const {name} = {value} as const;\n");
        text.push_str(&line);
    }
    Ok(text)
}

fn entry(definition: &Definition) -> Entry {
    Entry {
        name: definition.name,
        about: definition.about,
        group: definition.group,
        inputs: definition.inputs,
        file_name: definition.file_name(),
        page: matches!(definition.result, ResultType::Json { .. }),
        parameters: Value::Object(parameters(definition)),
    }
}

/// The schema of each parameter, in place of a reference what it refers to.
fn parameters(definition: &Definition) -> Map<String, Value> {
    let schema = (definition.parameters)();
    let properties = Properties::of(&schema);
    let names = properties.names().into_iter();
    names
        .filter_map(|name| Some((name.clone(), properties.find(&name)?.schema().clone())))
        .collect()
}

/// Adds a root schema and its definitions to `types`; gives the root's name.
fn collect(types: &mut BTreeMap<String, Value>, root: &Value, analysis: &str) -> Result<String, TypescriptError> {
    let name = root.get("title").and_then(Value::as_str).unwrap_or(analysis).to_owned();
    let mut own = root.clone();
    let mut found = Vec::new();
    if let Value::Object(own) = &mut own {
        for key in ["$schema", "title"] {
            own.remove(key);
        }
        if let Some(Value::Object(definitions)) = own.remove("$defs") {
            found.extend(definitions);
        }
    }
    found.push((name.clone(), own));
    for (name, schema) in found {
        if types.get(&name).is_some_and(|known| *known != schema) {
            return Err(TypescriptError::Clash(name));
        }
        types.insert(name, schema);
    }
    Ok(name)
}

fn comment(schema: &Value, indent: &str) -> String {
    let about = schema.get("description").and_then(Value::as_str);
    let line = |about: &str| {
        let about = about.replace("*/", "* /");
        let words: Vec<&str> = about.split_whitespace().collect();
        format!("{indent}/** {} */\n", words.join(" "))
    };
    about.map(line).unwrap_or_default()
}

fn declaration(name: &str, schema: &Value) -> Result<String, TypescriptError> {
    let comment = comment(schema, "");
    if schema.get("properties").is_some() {
        return Ok(format!(
            "\n{comment}export interface {name} {}\n",
            object(name, schema, "")?
        ));
    }
    Ok(format!(
        "\n{comment}export type {name} = {};\n",
        type_of(name, schema, "")?
    ))
}

fn object(place: &str, schema: &Value, indent: &str) -> Result<String, TypescriptError> {
    let inner = format!("{indent}  ");
    let mut text = "{\n".to_owned();
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let known = required.is_some_and(|known| known.iter().any(|known| known == name));
        let mark = if known { "" } else { "?" };
        let place = format!("{place}.{name}");
        text.push_str(&comment(property, &inner));
        let told = type_of(&place, property, &inner)?;
        let line = format!("{inner}readonly {name}{mark}: {told};\n");
        text.push_str(&line);
    }
    text.push_str(indent);
    text.push('}');
    Ok(text)
}

fn type_of(place: &str, schema: &Value, indent: &str) -> Result<String, TypescriptError> {
    let untold = || TypescriptError::Untold {
        place: place.to_owned(),
        schema: schema.to_string(),
    };
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target.trim_start_matches("#/$defs/");
        // A member of a tagged union: the type, and the tag beside it.
        return if schema.get("properties").is_some() {
            Ok(format!("{target} & {}", object(place, schema, indent)?))
        } else {
            Ok(target.to_owned())
        };
    }
    if let Some(Value::Array(words)) = schema.get("enum") {
        let words: Vec<String> = words.iter().map(Value::to_string).collect();
        return Ok(words.join(" | "));
    }
    if let Some(word) = schema.get("const") {
        return Ok(word.to_string());
    }
    for of in ["oneOf", "anyOf"] {
        if let Some(Value::Array(choices)) = schema.get(of) {
            let choices = choices.iter().map(|choice| type_of(place, choice, indent));
            return Ok(choices.collect::<Result<Vec<_>, _>>()?.join(" | "));
        }
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Err(untold()),
    };
    let mut told = Vec::new();
    for kind in kinds {
        told.push(match kind {
            "integer" | "number" => "number".to_owned(),
            "string" | "boolean" | "null" => kind.to_owned(),
            "array" => {
                let items = schema.get("items").ok_or_else(untold)?;
                let items = type_of(place, items, indent)?;
                if items.contains('|') {
                    format!("readonly ({items})[]")
                } else {
                    format!("readonly {items}[]")
                }
            }
            "object" if schema.get("properties").is_some() => object(place, schema, indent)?,
            "object" => {
                let values = schema.get("additionalProperties").filter(|values| values.is_object());
                let values = type_of(place, values.ok_or_else(untold)?, indent)?;
                format!("Readonly<Record<string, {values}>>")
            }
            _ => return Err(untold()),
        });
    }
    Ok(told.join(" | "))
}
