//! Results that are shown as a table: told by their type's schema, so that nobody describes the
//! columns again.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::not_captured::NotCaptured;
use crate::page::{self, Block, Cell, Page, Unit};

/// Property of a result that holds the rows of its table.
const ROWS: &str = "rows";

/// Property of a result that says what has no figures: a list of [`NotCaptured`].
const NOT_CAPTURED: &str = "not_captured";

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
    pub fn of(schema: &Schema) -> Option<Self> {
        let definitions = schema.get("$defs");
        let rows = schema.get("properties")?.get(ROWS)?;
        let row = resolved(rows.get("items")?, definitions);
        let column = |(name, property): (&str, &Value)| {
            Some(Column {
                name: name.to_owned(),
                cells: cells(property, definitions)?,
                about: about(property).to_owned(),
            })
        };
        let columns: Option<Vec<Column>> = fields(row)?.into_iter().map(column).collect();
        Some(Self { columns: columns? })
    }

    /// The rows of a result of this table as cells, in the order of the columns; an empty text is
    /// nothing.
    pub fn cells(&self, result: &Value) -> Vec<Vec<String>> {
        let rows = result.get(ROWS).and_then(Value::as_array);
        let row = |row: &Value| self.columns.iter().map(|column| text(row.get(&column.name))).collect();
        rows.into_iter().flatten().map(row).collect()
    }
}

/// The fields of an object of that schema, in the order of the type. JSON objects have no order of
/// their own: a field's place is that among the required ones, which keep the type's.
fn fields(schema: &Value) -> Option<Vec<(&str, &Value)>> {
    let properties = schema.get("properties")?.as_object()?;
    let order = schema.get("required").and_then(Value::as_array);
    let position = |name: &str| {
        let order = order?.iter();
        order.map(Value::as_str).position(|known| known == Some(name))
    };
    let mut fields: Vec<(&str, &Value)> = properties
        .iter()
        .map(|(name, property)| (name.as_str(), property))
        .collect();
    fields.sort_by_key(|(name, _)| position(name).unwrap_or(usize::MAX));
    Some(fields)
}

fn about(property: &Value) -> &str {
    property.get("description").and_then(Value::as_str).unwrap_or_default()
}

/// The page of a result that has no words of its own: its table, or its figures and lists.
pub fn page_of(title: &str, about: &str, schema: &Schema, result: &Value) -> Page {
    let mut page = Page::new(title, about);
    let missing = result.get(NOT_CAPTURED).map(Vec::<NotCaptured>::deserialize);
    page.not_captured = missing.and_then(Result::ok).unwrap_or_default();
    let Some(tabular) = Tabular::of(schema) else {
        blocks(&mut page, schema, result);
        return page;
    };
    let mut table = page::Table {
        columns: tabular
            .columns
            .iter()
            .map(|column| head(&column.name, &column.about))
            .collect(),
        ..page::Table::default()
    };
    let rows = result.get(ROWS).and_then(Value::as_array);
    for row in rows.into_iter().flatten() {
        table.push(tabular.columns.iter().map(|column| cell(row.get(&column.name))));
    }
    page.table(table);
    page
}

/// The figures of a result as tiles, its lists as tables, and what is neither as JSON. What is null
/// was not captured, as its words say.
fn blocks(page: &mut Page, schema: &Schema, result: &Value) {
    let definitions = schema.get("$defs");
    let mut own = fields(schema.as_value()).unwrap_or_default();
    own.retain(|(name, _)| *name != NOT_CAPTURED);
    let mut tiles = Vec::new();
    let mut rest = Vec::new();
    for (name, property) in own {
        let head = head(name, about(property));
        let value = result.get(name).unwrap_or(&Value::Null);
        match (cells(property, definitions), value) {
            (_, Value::Null) => page.not_captured.push(NotCaptured::new(&head.title, about(property))),
            (Some(_), value) => tiles.push(page::Tile {
                label: head.title,
                value: cell(Some(value)),
                unit: head.unit,
                about: String::new(),
            }),
            (None, Value::Array(list)) if list.iter().all(Value::is_object) => {
                let items = property.get("items").map(|items| resolved(items, definitions));
                rest.push(Block::Table(table_of(&head.title, items, list)));
            }
            (None, Value::Array(list)) => {
                let lines: Vec<String> = list.iter().map(|line| text(Some(line))).collect();
                rest.push(Block::Text(page::Text {
                    title: head.title,
                    text: lines.join("\n"),
                }));
            }
            (None, value) => rest.push(Block::Text(page::Text {
                title: head.title,
                text: serde_json::to_string_pretty(value).unwrap_or_default(),
            })),
        }
    }
    if !tiles.is_empty() {
        page.blocks.push(Block::Tiles(page::Tiles { tiles }));
    }
    page.blocks.extend(rest);
}

/// A list of objects: the fields of their type first, then those that only some have. A row with a
/// start leads there.
fn table_of(title: &str, schema: Option<&Value>, list: &[Value]) -> page::Table {
    let own = schema.and_then(fields).unwrap_or_default();
    let mut columns: Vec<page::TableColumn> = own.iter().map(|(name, property)| head(name, about(property))).collect();
    let mut further: Vec<&str> = list
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|row| row.keys().map(String::as_str))
        .filter(|name| own.iter().all(|(known, _)| known != name))
        .collect();
    further.sort_unstable();
    further.dedup();
    columns.extend(further.into_iter().map(|name| head(name, "")));
    let mut table = page::Table {
        title: title.to_owned(),
        ..page::Table::default()
    };
    for row in list {
        let cells: Vec<Cell> = columns.iter().map(|column| cell(row.get(&column.name))).collect();
        match location(row) {
            Some(location) => table.push_at(location, cells),
            None => table.push(cells),
        }
    }
    table.columns = columns;
    table.without_unknown();
    table
}

fn location(row: &Value) -> Option<page::TimelineLocation> {
    let ns = |name: &str| row.get(name).and_then(Value::as_u64);
    let start_ns = ns("start_ns")?;
    let end_ns = ns("end_ns").or_else(|| start_ns.checked_add(ns("duration_ns")?))?;
    Some(page::TimelineLocation::new(start_ns, end_ns, None))
}

/// The head of a column: its name without the unit, which is the name's ending.
fn head(name: &str, about: &str) -> page::TableColumn {
    let units = [
        ("_pct", Unit::Percent),
        ("_ns", Unit::Ns),
        ("_bytes_per_second", Unit::BytesPerSecond),
        ("_bytes", Unit::Bytes),
        ("_flop_per_second", Unit::FlopPerSecond),
        ("_ratio", Unit::Ratio),
        ("_percent", Unit::Percent),
    ];
    let found = units
        .into_iter()
        .find_map(|(ending, unit)| Some((name.strip_suffix(ending)?, unit)));
    let (words, unit) = match found {
        Some((words @ ("start" | "end"), Unit::Ns)) => (words, Unit::Instant),
        found => found.unwrap_or((name, Unit::None)),
    };
    // Names that others chose have units that no page has.
    let words = match words.strip_suffix("_us").map(|words| (words, "µs")) {
        Some((words, unit)) => format!("{words} ({unit})"),
        None => words.to_owned(),
    };
    let mut title = words.replace('_', " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    page::TableColumn {
        title,
        name: name.to_owned(),
        unit,
        decimals: None,
        about: about.to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, JsonSchema)]
    struct Report {
        window_ns: u64,
        /// Share of the window.
        busy_time_pct: Option<f64>,
        total_time_us: f64,
        calls: Vec<Call>,
        hints: Vec<String>,
        /// Names of ranges.
        ranges: Option<Vec<String>>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Call {
        name: &'static str,
        start_ns: u64,
        duration_ns: u64,
        stream: Option<u32>,
    }

    #[test]
    fn a_result_that_is_no_table_has_its_figures_as_tiles_and_its_lists_as_tables() {
        let report = Report {
            window_ns: 5,
            busy_time_pct: None,
            total_time_us: 1.5,
            calls: vec![Call {
                name: "gemm",
                start_ns: 10,
                duration_ns: 4,
                stream: None,
            }],
            hints: vec!["one".to_owned(), "two".to_owned()],
            ranges: None,
        };
        let page = page_of(
            "A report",
            "about",
            &schemars::schema_for!(Report),
            &serde_json::to_value(&report).unwrap(),
        );
        let missing: Vec<_> = page
            .not_captured
            .iter()
            .map(|one| (one.what.as_str(), one.reason.as_str()))
            .collect();
        // What may be null comes last.
        let expected = [("Busy time", "Share of the window."), ("Ranges", "Names of ranges.")];
        assert_eq!(missing, expected);
        let [Block::Tiles(tiles), Block::Table(table), Block::Text(hints)] = page.blocks.as_slice() else {
            panic!("{:?}", page.blocks)
        };
        let shown: Vec<_> = tiles
            .tiles
            .iter()
            .map(|tile| (tile.label.as_str(), &tile.value, tile.unit))
            .collect();
        assert_eq!(
            shown,
            [
                ("Window", &Cell::Integer(5), Unit::Ns),
                ("Total time (µs)", &Cell::Number(1.5), Unit::None),
            ]
        );
        // The stream is not known of any call, so it has no column; a row with a start leads there.
        let heads: Vec<_> = table
            .columns
            .iter()
            .map(|column| (column.title.as_str(), column.unit))
            .collect();
        assert_eq!(
            heads,
            [("Name", Unit::None), ("Start", Unit::Instant), ("Duration", Unit::Ns)]
        );
        let row = table.rows.first().unwrap();
        assert_eq!(row.cells, [Cell::from("gemm"), Cell::Integer(10), Cell::Integer(4)]);
        assert_eq!(
            row.place.map(|location| (location.start_ns, location.end_ns)),
            Some((10, 14))
        );
        assert_eq!((hints.title.as_str(), hints.text.as_str()), ("Hints", "one\ntwo"));
    }
}
