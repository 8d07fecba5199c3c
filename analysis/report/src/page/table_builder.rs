//! A table of a list: the head, the unit and the cells of a column are said in one place.

use super::{Cell, Table, TableColumn, TableRow, TimelineLocation, Unit};

/// A [`Table`] in the making: a row per item of a list, and the columns that were added so far.
///
/// ```
/// use flopwatch_report::page::{Cell, Table, Unit};
///
/// let kernels = [("gemm", 1_500_u64), ("add", 20)];
/// let table = Table::of("Kernels", kernels)
///     .column("Kernel", |(name, _)| name)
///     .figure("Time", Unit::Ns, |(_, ns)| ns)
///     .build();
/// assert_eq!(table.rows[1].cells, [Cell::from("add"), Cell::Integer(20)]);
/// ```
#[derive(Debug)]
#[must_use]
pub struct TableBuilder<T> {
    table: Table,
    /// What each row is of.
    items: Vec<T>,
}

impl Table {
    /// Begins a table with a row per item, to which columns are added.
    pub fn of<T: Copy>(title: &str, items: impl IntoIterator<Item = T>) -> TableBuilder<T> {
        let items: Vec<T> = items.into_iter().collect();
        let table = Self {
            title: title.to_owned(),
            rows: vec![TableRow::default(); items.len()],
            ..Self::default()
        };
        TableBuilder { table, items }
    }
}

impl<T: Copy> TableBuilder<T> {
    /// Adds a column of names, counts and other values that have no unit.
    pub fn column<C: Into<Cell>>(self, title: &str, cell: impl Fn(T) -> C) -> Self {
        self.figure(title, Unit::None, cell)
    }

    /// Adds a column of figures in a unit.
    pub fn figure<C: Into<Cell>>(self, title: &str, unit: Unit, cell: impl Fn(T) -> C) -> Self {
        let title = title.to_owned();
        let head = TableColumn {
            title,
            unit,
            ..TableColumn::default()
        };
        self.with(head, cell)
    }

    /// Adds a column of numbers that are shown with so many digits behind the point.
    pub fn number<C: Into<Cell>>(self, title: &str, decimals: u8, cell: impl Fn(T) -> C) -> Self {
        let (title, decimals) = (title.to_owned(), Some(decimals));
        let head = TableColumn {
            title,
            decimals,
            ..TableColumn::default()
        };
        self.with(head, cell)
    }

    /// Adds a column under a head.
    pub fn with<C: Into<Cell>>(mut self, head: TableColumn, cell: impl Fn(T) -> C) -> Self {
        self.table.columns.push(head);
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.cells.push(cell(*item).into());
        }
        self
    }

    /// Says what the table tells.
    pub fn about(mut self, text: impl Into<String>) -> Self {
        self.table.about = text.into();
        self
    }

    /// Says how many rows were left out behind these.
    pub fn left_out(mut self, rows: u64) -> Self {
        self.table.left_out = rows;
        self
    }

    /// Has the table closed at first, where a page can be opened further.
    pub fn folded(mut self) -> Self {
        self.table.folded = true;
        self
    }

    /// Says where each row is in the timeline.
    pub fn at<P: Into<Option<TimelineLocation>>>(mut self, place: impl Fn(T) -> P) -> Self {
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.place = place(*item).into();
        }
        self
    }

    /// Leaves out the columns of which no row knows anything, as [`Table::without_unknown`].
    pub fn without_unknown(mut self) -> Self {
        self.table.without_unknown();
        self
    }

    /// The table.
    pub fn build(self) -> Table {
        self.table
    }
}

impl<T> From<TableBuilder<T>> for Table {
    fn from(builder: TableBuilder<T>) -> Self {
        builder.table
    }
}
