//! A result as people read it: key figures, tables, charts and sentences, each with a place in the
//! timeline where it has one.
//!
//! An analysis says in `Analysis::page` how its result is read. The terminal, the self-contained
//! HTML file, CSV and the viewer's page all show the same [`Page`], so that a figure is the same
//! wherever it is read.

mod bars_builder;
pub mod category;
pub mod csv;
mod document;
pub mod figure;
mod flame;
pub mod grid;
pub mod html;
pub mod names;
mod printable;
mod roofline;
mod table_builder;
pub mod text;

use flopwatch_model::RowId;
use schemars::JsonSchema;
use serde::Serialize;

pub use bars_builder::BarsBuilder;
pub use document::{Document, Heading, Setting, settings};
pub use flame::shortest_kept;
pub use roofline::{Roof, Roofline, RooflineArrow, RooflinePoint};
pub use table_builder::TableBuilder;

use crate::not_captured::NotCaptured;

/// A page of blocks, in the order in which they are read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageContent")]
pub struct Page {
    /// Heading of the page.
    pub title: String,
    /// What it tells, in a sentence.
    pub about: String,
    /// What it cannot tell of these captures, shown before everything else.
    pub not_captured: Vec<NotCaptured>,
    /// The blocks of the page, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(rename = "PageBlock")]
pub enum Block {
    /// A paragraph.
    Text(Text),
    /// Key figures side by side.
    Tiles(Tiles),
    /// A table.
    Table(Table),
    /// Bars of values per label, stacked or side by side.
    Bars(Bars),
    /// Values over time.
    Lines(Lines),
    /// A flame graph.
    Flame(Flame),
    /// Performance over intensity, below roofs.
    Roofline(Roofline),
}

/// A paragraph.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PageText")]
pub struct Text {
    /// Its heading; may be empty.
    pub title: String,
    /// Plain text.
    pub text: String,
}

/// Key figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageTiles")]
pub struct Tiles {
    /// Each of them.
    pub tiles: Vec<Tile>,
}

/// A key figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageTile")]
pub struct Tile {
    /// What the figure on the tile measures.
    pub label: String,
    /// Value of the tile.
    pub value: Cell,
    /// How the value is shown.
    pub unit: Unit,
    /// How it is defined; may be empty.
    pub about: String,
}

impl Tile {
    /// A name, a count or another value that has no unit.
    pub fn new(label: &str, value: impl Into<Cell>) -> Self {
        Self::figure(label, Unit::None, value)
    }

    /// A figure in a unit.
    pub fn figure(label: &str, unit: Unit, value: impl Into<Cell>) -> Self {
        Self {
            label: label.to_owned(),
            value: value.into(),
            unit,
            about: String::new(),
        }
    }
}

/// How a number is shown. The number itself is exact, in the unit that its name says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "PageUnit")]
pub enum Unit {
    /// A number, as it is.
    #[default]
    None,
    /// Nanoseconds.
    Ns,
    /// A time in ns since the session's start, shown in seconds to the µs.
    Instant,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A count that may be large, such as of floating-point operations: shown with a prefix of a
    /// thousand.
    Count,
    /// Floating-point operations per second.
    FlopPerSecond,
    /// Instructions per second.
    InstructionsPerSecond,
    /// A share from 0 to 1, shown in percent.
    Ratio,
    /// A number of percent.
    Percent,
}

/// A value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "PageCell")]
pub enum Cell {
    /// Not known, or not captured.
    #[default]
    Nothing,
    /// Yes or no.
    Flag(bool),
    /// A whole number. Larger ones than 2^53 are rounded by readers that know doubles alone.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or(Self::Integer(i64::MAX), Self::Integer)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        i64::try_from(value).map_or(Self::Integer(i64::MAX), Self::Integer)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        if value.is_finite() {
            Self::Number(value)
        } else {
            Self::Nothing
        }
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

/// A time and row in a timeline, which the viewer can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Place")]
pub struct TimelineLocation {
    /// Index of the input that the timeline is of, counted from 0 in the order of the request.
    pub input: u32,
    /// Start in ns since the session's start.
    pub start_ns: u64,
    /// End in ns.
    pub end_ns: u64,
    /// The timeline's row, where it is one.
    pub row: Option<RowId>,
}

impl TimelineLocation {
    /// A location in the timeline of the first input.
    pub const fn new(start_ns: u64, end_ns: u64, row: Option<RowId>) -> Self {
        Self {
            input: 0,
            start_ns,
            end_ns,
            row,
        }
    }

    /// A location in the timeline of the first input, from a start and for a length of time.
    pub const fn lasting(start_ns: u64, duration_ns: u64, row: Option<RowId>) -> Self {
        Self::new(start_ns, start_ns.saturating_add(duration_ns), row)
    }

    /// The same location in the timeline of another input.
    #[must_use]
    pub const fn of_input(self, input: u32) -> Self {
        Self { input, ..self }
    }
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageTable")]
pub struct Table {
    /// Its heading; may be empty.
    pub title: String,
    /// What it tells; may be empty.
    pub about: String,
    /// Columns of the table.
    pub columns: Vec<TableColumn>,
    /// Its rows, each with as many cells as there are columns.
    pub rows: Vec<TableRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
    /// Whether it is closed until its reader opens it: what explains a page and is no result of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folded: bool,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PageColumn")]
pub struct TableColumn {
    /// Its head, as people read it and as CSV has it.
    pub title: String,
    /// What programs know it by, as the head of its CSV; where it is empty that is the title with
    /// the unit.
    pub name: String,
    /// How its numbers are shown.
    pub unit: Unit,
    /// Digits behind the point of its [`Cell::Number`]s in CSV, and on screen and paper where the
    /// unit does not scale them; null is as many as there are in CSV, and as the unit needs
    /// elsewhere. A number that lies in the middle between two is rounded before it becomes a cell,
    /// as the table defines.
    pub decimals: Option<u8>,
    /// What it says; may be empty.
    pub about: String,
}

impl TableColumn {
    /// The head where numbers are shown with their unit: the title without a unit of its own.
    pub(crate) fn heading(&self) -> &str {
        match self.unit {
            Unit::Ns | Unit::Instant => self.title.trim_end_matches(" (ns)"),
            Unit::Percent => self.title.trim_end_matches(" (%)"),
            _ => &self.title,
        }
    }

    /// A cell of it as people read it.
    pub(crate) fn shown(&self, cell: &Cell) -> String {
        match (cell, self.unit, self.decimals) {
            (Cell::Number(value), Unit::None, Some(digits)) => format!("{value:.*}", usize::from(digits)),
            (Cell::Number(value), Unit::Percent, Some(digits)) => format!("{value:.*} %", usize::from(digits)),
            (cell, unit, _) => figure::shown(cell, unit),
        }
    }
}

/// A row of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageRow")]
pub struct TableRow {
    /// Cells of the row.
    pub cells: Vec<Cell>,
    /// Where it is in the timeline.
    pub place: Option<TimelineLocation>,
}

impl Table {
    /// A table without rows, for one whose columns are known only when it is made; [`Table::of`]
    /// makes one of a list. Columns are `(head, unit)`.
    pub fn new(title: &str, columns: &[(&str, Unit)]) -> Self {
        let columns = columns.iter().map(|(title, unit)| TableColumn {
            title: (*title).to_owned(),
            unit: *unit,
            ..TableColumn::default()
        });
        Self {
            title: title.to_owned(),
            columns: columns.collect(),
            ..Self::default()
        }
    }

    /// Leaves out the columns of which no row knows anything. A table without rows keeps all.
    pub fn without_unknown(&mut self) {
        let known = |at: usize| {
            let cell = |row: &TableRow| row.cells.get(at).is_some_and(|cell| *cell != Cell::Nothing);
            self.rows.is_empty() || self.rows.iter().any(cell)
        };
        let kept: Vec<bool> = (0..self.columns.len()).map(known).collect();
        let is_kept = |at: usize| kept.get(at).copied().unwrap_or(true);
        let mut columns = 0..;
        self.columns.retain(|_| columns.next().is_none_or(is_kept));
        for row in &mut self.rows {
            let mut cells = 0..;
            row.cells.retain(|_| cells.next().is_none_or(is_kept));
        }
    }

    /// Adds a row.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(TableRow {
            cells: cells.into_iter().collect(),
            place: None,
        });
    }

    /// Adds a row that is at a place.
    pub fn push_at(&mut self, location: TimelineLocation, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(TableRow {
            cells: cells.into_iter().collect(),
            place: Some(location),
        });
    }
}

/// Bars: a value per label and series.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageBars")]
pub struct Bars {
    /// Heading of the chart.
    pub title: String,
    /// How values are shown.
    pub unit: Unit,
    /// Whether the values of a label add up to a whole; otherwise they stand side by side.
    pub stacked: bool,
    /// What each bar is, in order.
    pub labels: Vec<String>,
    /// The series, each with a value per label.
    pub series: Vec<Series>,
}

/// Values that belong together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageSeries")]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// Its values; null is not known.
    pub values: Vec<Option<f64>>,
}

/// Values over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "PageLines")]
pub struct Lines {
    /// Heading of the chart.
    pub title: String,
    /// How values are shown.
    pub unit: Unit,
    /// Times in ns since the session's start, rising.
    pub times_ns: Vec<u64>,
    /// The series, each with a value per time, which holds up to the next.
    pub series: Vec<Series>,
}

/// A flame graph: frames inside frames, each as wide as its value. Its frames are lists of equal
/// length, a frame behind those around it, and beside each other the largest first; the first frame
/// is all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PageFlame")]
pub struct Flame {
    /// Heading of the flame graph.
    pub title: String,
    /// How values are shown.
    pub unit: Unit,
    /// Kinds of frames, each with a colour.
    pub kinds: Vec<String>,
    /// Names of frames.
    pub names: Vec<String>,
    /// The kind of each name.
    pub name_kind: Vec<u32>,
    /// The name of each frame.
    pub name: Vec<u32>,
    /// How many frames are around each.
    pub depth: Vec<u32>,
    /// The value of each, with the frames inside it. Of a difference it is what both captures have
    /// together.
    pub value: Vec<u64>,
    /// The value of each without the frames inside it.
    pub own: Vec<u64>,
    /// Of a difference, what the first capture has of each value; otherwise empty.
    pub before: Vec<u64>,
    /// When each first began, in ns since the session's start; empty where no frame is at a place.
    pub start_ns: Vec<u64>,
    /// When that ended; what ends where it begins is at no place.
    pub end_ns: Vec<u64>,
    /// Frames that are too small to be here: their frame shows a gap.
    pub left_out: u64,
}

impl Page {
    /// Whether something was not captured and no table has a row: sentences say so then, and empty
    /// tables and bars of nothing are not drawn.
    pub(crate) fn lacks_all(&self) -> bool {
        let has_rows = |block: &Block| matches!(block, Block::Table(table) if !table.rows.is_empty());
        !self.not_captured.is_empty() && !self.blocks.iter().any(has_rows)
    }

    /// A page without blocks.
    pub fn new(title: &str, about: &str) -> Self {
        Self {
            title: title.to_owned(),
            about: about.to_owned(),
            ..Self::default()
        }
    }

    /// A page without blocks, of a result that says what was not captured.
    pub fn of(title: &str, about: &str, not_captured: &[NotCaptured]) -> Self {
        Self {
            not_captured: not_captured.to_vec(),
            ..Self::new(title, about)
        }
    }

    /// A page of one table, of a result that says what was not captured.
    pub fn of_table(title: &str, about: &str, not_captured: &[NotCaptured], table: impl Into<Table>) -> Self {
        let mut page = Self::of(title, about, not_captured);
        page.table(table);
        page
    }

    /// Adds a paragraph.
    pub fn text(&mut self, title: &str, text: impl Into<String>) {
        self.blocks.push(Block::Text(Text {
            title: title.to_owned(),
            text: text.into(),
        }));
    }

    /// Adds key figures.
    pub fn tiles(&mut self, tiles: impl IntoIterator<Item = Tile>) {
        let tiles = tiles.into_iter().collect();
        self.blocks.push(Block::Tiles(Tiles { tiles }));
    }

    /// Adds a table.
    pub fn table(&mut self, table: impl Into<Table>) {
        self.blocks.push(Block::Table(table.into()));
    }

    /// Adds a table that has rows; one without any is left out.
    pub fn table_unless_empty(&mut self, table: impl Into<Table>) {
        let table = table.into();
        if !table.rows.is_empty() {
            self.table(table);
        }
    }

    /// Adds bars.
    pub fn bars(&mut self, bars: impl Into<Bars>) {
        self.blocks.push(Block::Bars(bars.into()));
    }

    /// Adds a flame graph.
    pub fn flame(&mut self, flame: Flame) {
        self.blocks.push(Block::Flame(flame));
    }

    /// Adds a roofline chart.
    pub fn roofline(&mut self, chart: Roofline) {
        self.blocks.push(Block::Roofline(chart));
    }

    /// Adds values over time.
    pub fn lines(&mut self, lines: Lines) {
        self.blocks.push(Block::Lines(lines));
    }
}
