//! Columns of a fleet table: the type of each in a Parquet file, and how a record's field becomes a
//! cell and a cell a field.

use crate::sketch::Sketch;

/// A column of a table whose records are of type `T`.
pub(crate) struct Column<T> {
    /// The column's name in files, which is that of the record's field.
    pub(crate) name: &'static str,
    /// The column's type in files.
    pub(crate) kind: Kind,
    /// Reads the cell of a record.
    pub(crate) get: Get<T>,
    /// Stores a cell into a record. Returns `false`, and leaves the record as it was, where the
    /// cell is of another type or no valid value of this column.
    pub(crate) set: Set<T>,
}

type Get<T> = Box<dyn Fn(&T) -> Cell>;
type Set<T> = Box<dyn Fn(&mut T, Cell) -> bool>;

impl<T: 'static> Column<T> {
    /// The column of one field of the record; its type in files is that of the field.
    pub(crate) fn new<V: Value>(
        name: &'static str,
        get: for<'a> fn(&'a T) -> &'a V,
        field: for<'a> fn(&'a mut T) -> &'a mut V,
    ) -> Self {
        Self {
            name,
            kind: V::KIND,
            get: Box::new(move |record| get(record).cell()),
            set: Box::new(move |record, cell| match V::from_cell(cell) {
                Some(value) => {
                    *field(record) = value;
                    true
                }
                None => false,
            }),
        }
    }

    /// The same column with the type [`Kind::Instant`]: its integers are nanoseconds since 1970,
    /// UTC.
    pub(crate) fn of_instants(mut self) -> Self {
        self.kind = Kind::Instant;
        self
    }

    /// The column's declaration in the language of Parquet's message types.
    pub(crate) fn schema(&self) -> String {
        let name = self.name;
        match self.kind {
            Kind::Integer(presence) => format!("{} int64 {name};", presence.word()),
            Kind::Instant => format!("required int64 {name} (TIMESTAMP(NANOS,true));"),
            Kind::Flag => format!("required boolean {name};"),
            Kind::Text(presence) => format!("{} binary {name} (UTF8);", presence.word()),
            Kind::Texts => {
                format!("required group {name} (LIST) {{ repeated group list {{ required binary element (UTF8); }} }}")
            }
            Kind::Buckets => format!(
                "optional group {name} (LIST) {{ repeated group list {{ required group element {{ required int64 bucket; \
                 required int64 count; }} }} }}"
            ),
        }
    }
}

/// The type of a column in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A signed 64-bit integer.
    Integer(Presence),
    /// A 64-bit timestamp in nanoseconds since 1970, UTC.
    Instant,
    /// A Boolean.
    Flag,
    /// A UTF-8 string.
    Text(Presence),
    /// A list of UTF-8 strings.
    Texts,
    /// The buckets of a [`Sketch`]: a list of pairs of bucket number and count, or null.
    Buckets,
}

impl Kind {
    /// Number of Parquet leaf columns that the type takes: 2 for buckets, 1 otherwise.
    pub(crate) const fn leaves(self) -> usize {
        match self {
            Self::Buckets => 2,
            _ => 1,
        }
    }
}

/// Whether every record has a value in the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Every record has a value.
    Required,
    /// A record may be without a value (null).
    Optional,
}

impl Presence {
    const fn word(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
        }
    }
}

/// The value of one record in one column, of whichever type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Nothing,
    Integer(i64),
    Flag(bool),
    Text(String),
    Texts(Vec<String>),
    Buckets(Vec<(i64, i64)>),
}

/// A Rust type that a field of a record may have.
pub(crate) trait Value: Sized + 'static {
    /// The type of a column of such fields in a file.
    const KIND: Kind;
    /// The field's value as a cell.
    fn cell(&self) -> Cell;
    /// The field's value from a cell; `None` where the cell is of another type.
    fn from_cell(cell: Cell) -> Option<Self>;
}

impl Value for i64 {
    const KIND: Kind = Kind::Integer(Presence::Required);

    fn cell(&self) -> Cell {
        Cell::Integer(*self)
    }

    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Integer(value) => Some(value),
            _ => None,
        }
    }
}

impl Value for Option<i64> {
    const KIND: Kind = Kind::Integer(Presence::Optional);

    fn cell(&self) -> Cell {
        self.map_or(Cell::Nothing, Cell::Integer)
    }

    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Nothing => Some(None),
            other => i64::from_cell(other).map(Some),
        }
    }
}

impl Value for bool {
    const KIND: Kind = Kind::Flag;

    fn cell(&self) -> Cell {
        Cell::Flag(*self)
    }

    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Flag(value) => Some(value),
            _ => None,
        }
    }
}

impl Value for String {
    const KIND: Kind = Kind::Text(Presence::Required);

    fn cell(&self) -> Cell {
        Cell::Text(self.clone())
    }

    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Text(value) => Some(value),
            _ => None,
        }
    }
}

impl Value for Option<String> {
    const KIND: Kind = Kind::Text(Presence::Optional);

    fn cell(&self) -> Cell {
        self.clone().map_or(Cell::Nothing, Cell::Text)
    }

    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Nothing => Some(None),
            other => String::from_cell(other).map(Some),
        }
    }
}

impl Value for Vec<String> {
    const KIND: Kind = Kind::Texts;

    fn cell(&self) -> Cell {
        Cell::Texts(self.clone())
    }

    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Texts(value) => Some(value),
            _ => None,
        }
    }
}

impl Value for Option<Sketch> {
    const KIND: Kind = Kind::Buckets;

    fn cell(&self) -> Cell {
        let Some(sketch) = self else { return Cell::Nothing };
        let pairs = sketch.buckets();
        let pairs = pairs.map(|(bucket, count)| (i64::from(bucket), i64::try_from(count).unwrap_or(i64::MAX)));
        Cell::Buckets(pairs.collect())
    }

    fn from_cell(cell: Cell) -> Option<Self> {
        match cell {
            Cell::Nothing => Some(None),
            Cell::Buckets(pairs) => {
                let pairs = pairs.into_iter().map(|(bucket, count)| {
                    let bucket = i32::try_from(bucket).ok()?;
                    Some((bucket, u64::try_from(count).ok()?))
                });
                let pairs: Option<Vec<(i32, u64)>> = pairs.collect();
                Sketch::from_buckets(pairs?).map(Some)
            }
            _ => None,
        }
    }
}
