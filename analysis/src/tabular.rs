//! Results that are shown as a table: told by their type's schema, so that nobody describes the columns again.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::not_captured::NotCaptured;
use crate::page::{self, Cell, Page, Unit};

/// Property of a result that holds the rows of its table.
const ROWS: &str = "rows";

/// How cells of a column are shown and sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellType {
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// Text.
    Text,
}

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Name of the field; a unit is its ending: `_ns`, `_bytes`, `_ratio`.
    pub name: String,
    /// How its cells are shown and sorted.
    pub cells: CellType,
    /// What it says, for people.
    pub about: String,
}

/// The table of a result: its list `rows`, whose elements are plain fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tabular {
    /// The columns in the order of the type's fields.
    pub columns: Vec<Column>,
}

impl Tabular {
    /// The table of a result of that schema; `None` of a result that is no table.
    pub(crate) fn of(schema: &Schema) -> Option<Self> {
        let definitions = schema.get("$defs");
        let rows = schema.get("properties")?.get(ROWS)?;
        let row = resolved(rows.get("items")?, definitions);
        let properties = row.get("properties")?.as_object()?;
        // JSON objects have no order of their own: a column's place is that among the required fields, which keep the type's.
        let order = row.get("required").and_then(Value::as_array);
        let place = |name: &str| {
            let order = order?.iter();
            order.map(Value::as_str).position(|known| known == Some(name))
        };
        let mut columns = Vec::new();
        for (name, property) in properties {
            let column = Column {
                name: name.clone(),
                cells: cells(property, definitions)?,
                about: property
                    .get("description")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
            };
            columns.push((place(name).unwrap_or(usize::MAX), column));
        }
        columns.sort_by_key(|(place, _)| *place);
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        Some(Self { columns })
    }

    /// The rows of a result of this table as cells, in the order of the columns; an empty text is nothing.
    pub fn cells(&self, result: &Value) -> Vec<Vec<String>> {
        let rows = result.get(ROWS).and_then(Value::as_array);
        let row = |row: &Value| self.columns.iter().map(|column| text(row.get(&column.name))).collect();
        rows.into_iter().flatten().map(row).collect()
    }
}

/// The page of a result that has no words of its own: its table, with not captured said where `captured` is false; or its JSON.
pub(crate) fn page_of(name: &str, about: &str, schema: &Schema, result: &Value) -> Page {
    let mut title = name.replace('-', " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let mut page = Page::new(&title, about);
    if result.get("captured") == Some(&Value::Bool(false)) {
        let reason = "the profiler did not record such events, which says nothing about whether they happened";
        page.not_captured.push(NotCaptured::new(name, reason));
    }
    let Some(tabular) = Tabular::of(schema) else {
        page.text("", serde_json::to_string_pretty(result).unwrap_or_default());
        return page;
    };
    let mut table = page::Table {
        columns: tabular.columns.iter().map(head).collect(),
        ..page::Table::default()
    };
    let rows = result.get(ROWS).and_then(Value::as_array);
    for row in rows.into_iter().flatten() {
        table.push(tabular.columns.iter().map(|column| cell(row.get(&column.name))));
    }
    page.table(table);
    page
}

/// The head of a column: its name without the unit, which is the name's ending.
fn head(column: &Column) -> page::TableColumn {
    let units = [
        ("_ns", Unit::Ns),
        ("_bytes_per_second", Unit::BytesPerSecond),
        ("_bytes", Unit::Bytes),
        ("_flop_per_second", Unit::FlopPerSecond),
        ("_ratio", Unit::Ratio),
        ("_percent", Unit::Percent),
    ];
    let found = units
        .into_iter()
        .find_map(|(ending, unit)| Some((column.name.strip_suffix(ending)?, unit)));
    let (name, unit) = found.unwrap_or((&column.name, Unit::None));
    let mut title = name.replace('_', " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    page::TableColumn {
        title,
        name: column.name.clone(),
        unit,
        decimals: None,
        about: column.about.clone(),
    }
}

fn cell(value: Option<&Value>) -> Cell {
    match value {
        None | Some(Value::Null) => Cell::Nothing,
        Some(Value::Bool(flag)) => Cell::Flag(*flag),
        Some(Value::String(text)) => Cell::Text(text.clone()),
        Some(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cell::Integer(whole),
            (None, Some(number)) => Cell::Number(number),
            (None, None) => Cell::Nothing,
        },
        Some(other) => Cell::Text(other.to_string()),
    }
}

fn text(cell: Option<&Value>) -> String {
    match cell {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn resolved<'a>(schema: &'a Value, definitions: Option<&'a Value>) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str);
    let target = target.and_then(|target| definitions?.get(target.strip_prefix("#/$defs/")?));
    target.unwrap_or(schema)
}

/// `None` of a field that is no plain one.
fn cells(schema: &Value, definitions: Option<&Value>) -> Option<CellType> {
    let schema = resolved(schema, definitions);
    if schema.get("enum").is_some() || schema.get("oneOf").is_some() {
        return Some(CellType::Text);
    }
    let kinds: Vec<&str> = match schema.get("type")? {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    match kinds.into_iter().find(|kind| *kind != "null")? {
        "integer" => Some(CellType::Integer),
        "number" => Some(CellType::Number),
        "boolean" => Some(CellType::Boolean),
        "string" => Some(CellType::Text),
        _ => None,
    }
}
