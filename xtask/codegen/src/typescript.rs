//! The catalogue as TypeScript, for the viewer: its entries with their parameters, the types of
//! what the viewer reads, the summary's tables, the signs of a file that was cut.
//!
//! The viewer reads the pages of results, and [`RESULTS`] as they are. The types of other results,
//! which nothing of it imports, are not written.

use flopwatch_analysis::catalogue::CATALOGUE;
use flopwatch_analysis::{Definition, Group, InputCount, ResultType, Subject};
use flopwatch_model::{Category, Loss};
use flopwatch_report::page::Document;
use flopwatch_summary::{NAME, TABLES};
use serde::Serialize;
use serde_json::Value;

use crate::types::{Declaration, Field, Type, Types, TypesError};

const HEAD: &str = "\
// Written by `cargo xtask codegen` from the catalogue of analyses; a test fails when it drifts.
";

/// Results that the viewer reads as they are.
const RESULTS: [&str; 4] = [NAME, "advice", "gpu-time", "iterations"];

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub enum TypescriptError {
    /// A type of a result.
    #[error(transparent)]
    Types(#[from] TypesError),
    /// The entries cannot be written as JSON.
    #[error("the catalogue cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

/// An entry as the viewer has it: its name, and what it needs to ask for the result and to show it.
#[derive(Serialize)]
struct Entry {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    group: Group,
    subject: EntrySubject,
    inputs: InputCount,
    /// What a file of the result is called.
    file_name: String,
    /// Whether it has a page; others are files for other programs.
    page: bool,
    /// Schema of each parameter by its name, without references.
    parameters: Value,
}

/// What a capture has to hold one of, so that the analysis has something to tell of it.
#[derive(Serialize)]
struct EntrySubject {
    /// Names of categories; null are all.
    categories: Option<Vec<&'static str>>,
    /// Names of parts beside the events.
    parts: Vec<&'static str>,
    /// The same for people.
    words: String,
}

#[derive(Serialize)]
struct GroupEntry {
    name: &'static str,
    question: &'static str,
}

#[derive(Serialize)]
struct SummaryTable {
    field: &'static str,
    title: &'static str,
    categories: Vec<&'static str>,
}

/// The module that `web/src/generated/catalogue.ts` holds.
pub fn typescript() -> Result<String, TypescriptError> {
    let mut types = Types::default();
    for definition in CATALOGUE.iter().filter(|definition| RESULTS.contains(&definition.name)) {
        if let Some(schema) = definition.result_schema() {
            types.add(schema.as_value(), definition.name)?;
        }
    }
    types.add(&Document::json_schema(), "page")?;
    let mut text = HEAD.to_owned();
    for (name, declaration) in types.declarations()? {
        text.push_str(&declared(name, &declaration));
    }
    let entries: Vec<Entry> = CATALOGUE.iter().map(|definition| entry(definition)).collect();
    let tables = TABLES.map(|table| SummaryTable {
        field: table.field,
        title: table.title,
        categories: table.categories.iter().map(|category| category.name()).collect(),
    });
    let groups = Group::ALL.iter().map(|group| GroupEntry {
        name: group.name(),
        question: group.question(),
    });
    let constants = [
        (
            "ANALYSES",
            "Every analysis, in published order.",
            serde_json::to_string_pretty(&entries)?,
        ),
        (
            "GROUPS",
            "The questions that analyses answer, in the order of lists.",
            serde_json::to_string_pretty(&groups.collect::<Vec<_>>())?,
        ),
        (
            "SUMMARY_TABLES",
            "The tables of a summary, in published order.",
            serde_json::to_string_pretty(&tables)?,
        ),
        (
            "CUT",
            "What a file that ends before its end is said to lack.",
            serde_json::to_string_pretty(&Loss::CUT)?,
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
        title: definition.title,
        about: definition.about,
        group: definition.group,
        subject: EntrySubject::of(definition),
        inputs: definition.inputs,
        file_name: definition.file_name(),
        page: matches!(definition.result, ResultType::Json { .. }),
        parameters: Value::Object(definition.parameter_schemas()),
    }
}

impl EntrySubject {
    fn of(definition: &Definition) -> Self {
        let subject = Subject::of(definition);
        let names = |categories: &Vec<Category>| categories.iter().map(|category| category.name()).collect();
        Self {
            categories: subject.categories.as_ref().map(names),
            parts: subject.parts.iter().map(|part| part.name()).collect(),
            words: subject.words(),
        }
    }
}

fn comment(about: Option<&str>, indent: &str) -> String {
    let line = |about: &str| format!("{indent}/** {} */\n", about.replace("*/", "* /"));
    about.map(line).unwrap_or_default()
}

fn declared(name: &str, declaration: &Declaration) -> String {
    let comment = comment(declaration.about.as_deref(), "");
    match &declaration.is {
        Type::Object(fields) | Type::Open(fields, _) => {
            format!("\n{comment}export interface {name} {}\n", object(fields, ""))
        }
        is => format!("\n{comment}export type {name} = {};\n", told(is, "")),
    }
}

fn object(fields: &[Field], indent: &str) -> String {
    let inner = format!("{indent}  ");
    let mut text = "{\n".to_owned();
    for field in fields {
        let mark = if field.is_required { "" } else { "?" };
        text.push_str(&comment(field.about.as_deref(), &inner));
        let line = format!("{inner}readonly {}{mark}: {};\n", field.name, told(&field.is, &inner));
        text.push_str(&line);
    }
    text.push_str(indent);
    text.push('}');
    text
}

fn told(is: &Type, indent: &str) -> String {
    match is {
        Type::Integer | Type::Number => "number".to_owned(),
        Type::Text => "string".to_owned(),
        Type::Flag => "boolean".to_owned(),
        Type::Nothing => "null".to_owned(),
        Type::Words(words) => {
            let words: Vec<String> = words.iter().map(Value::to_string).collect();
            words.join(" | ")
        }
        Type::Named(name) => name.clone(),
        Type::List(items) => {
            let items = told(items, indent);
            if items.contains('|') {
                format!("readonly ({items})[]")
            } else {
                format!("readonly {items}[]")
            }
        }
        Type::Map(values) => format!("Readonly<Record<string, {}>>", told(values, indent)),
        Type::Object(fields) | Type::Open(fields, _) => object(fields, indent),
        Type::Extended(name, fields) => format!("{name} & {}", object(fields, indent)),
        Type::OneOf(choices) => {
            let choices: Vec<String> = choices.iter().map(|choice| told(choice, indent)).collect();
            choices.join(" | ")
        }
    }
}
