//! The events of one category, a vector per column.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{Category, ColumnId, NameId, RowId, Width};

/// A column that only some categories have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Column that these are the values of.
    pub id: ColumnId,
    /// One value per event.
    pub values: Values,
    /// What the values refer to, where the column [is one of texts](ColumnId::is_text); otherwise
    /// empty. The first text is empty and stands for none. The transform sorts the others and keeps
    /// those that events refer to, each once.
    pub texts: Vec<String>,
}

impl Column {
    fn new(id: ColumnId) -> Self {
        Self {
            id,
            values: Values::new(id.width()),
            texts: if id.is_text() { vec![String::new()] } else { Vec::new() },
        }
    }

    /// Whether no event says anything: all values are [`ColumnId::missing`].
    fn is_unsaid(&self) -> bool {
        match &self.values {
            Values::U32(values) => values.iter().all(|value| u64::from(*value) == self.id.missing()),
            Values::U64(values) => values.iter().all(|value| *value == self.id.missing()),
        }
    }
}

/// Values of a column in the width of its [`ColumnId::width`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// 32 bits each.
    U32(Vec<u32>),
    /// 64 bits each.
    U64(Vec<u64>),
}

impl Values {
    fn new(width: Width) -> Self {
        match width {
            Width::U32 => Self::U32(Vec::new()),
            Width::U64 => Self::U64(Vec::new()),
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `at`, widened.
    pub fn get(&self, at: usize) -> Option<u64> {
        match self {
            Self::U32(values) => values.get(at).copied().map(u64::from),
            Self::U64(values) => values.get(at).copied(),
        }
    }

    /// Cuts to so many values, or appends `value` up to as many.
    pub fn resize(&mut self, count: usize, value: u64) {
        match self {
            Self::U32(values) => values.resize(count, u32::try_from(value).unwrap_or(u32::MAX)),
            Self::U64(values) => values.resize(count, value),
        }
    }

    /// Replaces the value at `at`, where there is one, saturating at the column's width.
    pub fn set(&mut self, at: usize, value: u64) {
        match self {
            Self::U32(values) => {
                if let Some(slot) = values.get_mut(at) {
                    *slot = u32::try_from(value).unwrap_or(u32::MAX);
                }
            }
            Self::U64(values) => {
                if let Some(slot) = values.get_mut(at) {
                    *slot = value;
                }
            }
        }
    }

    /// Appends, saturating at the column's width.
    pub fn push(&mut self, value: u64) {
        match self {
            Self::U32(values) => values.push(u32::try_from(value).unwrap_or(u32::MAX)),
            Self::U64(values) => values.push(value),
        }
    }
}

/// The common columns of one event, for [`Events::push`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Event {
    /// Start in ns relative to the session's start.
    pub start_ns: u64,
    /// Length in ns.
    pub duration_ns: u64,
    /// Row of the event.
    pub row: RowId,
    /// Name of the event.
    pub name: NameId,
    /// Joins launches to GPU work within a process; 0 for none.
    pub correlation: u32,
}

/// Events of one category. All columns have the same length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// Starts in ns relative to the session's start.
    pub start_ns: Vec<u64>,
    /// Lengths in ns.
    pub duration_ns: Vec<u64>,
    /// Rows of the events.
    pub row: Vec<RowId>,
    /// Lanes within the row, assigned by the transform; 0 before.
    pub lane: Vec<u32>,
    /// Names of the events.
    pub name: Vec<NameId>,
    /// Correlation ids, 0 for none.
    pub correlation: Vec<u32>,
    /// The category's own columns: those of [`Category::columns`] in their order, then optional
    /// ones. The transform brings these into the order of [`Category::optional_columns`].
    pub columns: Vec<Column>,
    /// The names that `name` refers to; unique after the transform.
    pub names: Vec<String>,
    /// What is known of names beside themselves, where the source says it: for each of `names` a
    /// text, empty for none.
    pub name_details: BTreeMap<NameDetail, Vec<String>>,
}

/// What is known of a name beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameDetail {
    /// Its short form, without templates and arguments: `gemm` of `void gemm<float>(float*)`.
    Short,
    /// Its symbol in the program: `_Z4gemmIfEvPf` of `void gemm<float>(float*)`. Where several
    /// symbols have one name, one of them.
    Mangled,
    /// The NVTX domain that the name begins with.
    Domain,
}

impl NameDetail {
    /// Every detail, in published order.
    pub const ALL: [Self; 3] = [Self::Short, Self::Mangled, Self::Domain];

    /// Name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short => "short_name",
            Self::Mangled => "mangled_name",
            Self::Domain => "domain",
        }
    }
}

impl Events {
    /// No events of `category`.
    pub fn new(category: Category) -> Self {
        let columns = category.columns();
        Self {
            start_ns: Vec::new(),
            duration_ns: Vec::new(),
            row: Vec::new(),
            lane: Vec::new(),
            name: Vec::new(),
            correlation: Vec::new(),
            columns: columns.iter().map(|id| Column::new(*id)).collect(),
            names: Vec::new(),
            name_details: BTreeMap::new(),
        }
    }

    /// Adds an optional column, with [`ColumnId::missing`] for the events that are already there,
    /// and gives its place in `columns` and so among the own values of [`Events::push`]. A column
    /// that is there stays as it is.
    pub fn add_column(&mut self, id: ColumnId) -> usize {
        if let Some(at) = self.columns.iter().position(|column| column.id == id) {
            return at;
        }
        let mut column = Column::new(id);
        for _ in 0..self.len() {
            column.values.push(id.missing());
        }
        self.columns.push(column);
        self.columns.len() - 1
    }

    /// Removes the columns of which `category` does not always have one, and in which no event says
    /// anything.
    pub fn drop_unsaid_columns(&mut self, category: Category) {
        let always = category.columns();
        self.columns
            .retain(|column| always.contains(&column.id) || !column.is_unsaid());
    }

    /// How many events.
    pub fn len(&self) -> usize {
        self.start_ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start_ns.is_empty()
    }

    /// How many events, as files and summaries count.
    pub fn count(&self) -> u64 {
        u64::try_from(self.len()).unwrap_or(u64::MAX)
    }

    /// Makes room for exactly so many more events, as far as there is memory: without it, appending
    /// does.
    pub fn reserve(&mut self, additional: usize) {
        for column in [&mut self.start_ns, &mut self.duration_ns] {
            drop(column.try_reserve_exact(additional));
        }
        for column in [&mut self.lane, &mut self.correlation] {
            drop(column.try_reserve_exact(additional));
        }
        drop(self.row.try_reserve_exact(additional));
        drop(self.name.try_reserve_exact(additional));
        for column in &mut self.columns {
            drop(match &mut column.values {
                Values::U32(values) => values.try_reserve_exact(additional),
                Values::U64(values) => values.try_reserve_exact(additional),
            });
        }
    }

    /// Keeps the events whose place in `keep` says so, and those behind its end.
    pub fn retain(&mut self, keep: &[bool]) {
        fn of<T>(values: &mut Vec<T>, keep: &[bool]) {
            let mut keep = keep.iter();
            values.retain(|_| keep.next().copied().unwrap_or(true));
        }
        of(&mut self.start_ns, keep);
        of(&mut self.duration_ns, keep);
        of(&mut self.row, keep);
        of(&mut self.lane, keep);
        of(&mut self.name, keep);
        of(&mut self.correlation, keep);
        for column in &mut self.columns {
            match &mut column.values {
                Values::U32(values) => of(values, keep),
                Values::U64(values) => of(values, keep),
            }
        }
    }

    /// Appends an event; `own` are the values of `columns` in their order, those behind its end
    /// become [`ColumnId::missing`].
    pub fn push(&mut self, event: Event, own: &[u64]) {
        self.start_ns.push(event.start_ns);
        self.duration_ns.push(event.duration_ns);
        self.row.push(event.row);
        self.lane.push(0);
        self.name.push(event.name);
        self.correlation.push(event.correlation);
        for (at, column) in self.columns.iter_mut().enumerate() {
            column.values.push(own.get(at).copied().unwrap_or(column.id.missing()));
        }
    }

    /// A column of the category by its id.
    pub fn column(&self, id: ColumnId) -> Option<&Values> {
        self.columns
            .iter()
            .find(|column| column.id == id)
            .map(|column| &column.values)
    }

    /// What the event at `at` says in a column of numbers; `None` where there is no such column, or
    /// where the event does not say it and 0 would be an ordinary value.
    pub fn number(&self, id: ColumnId, at: usize) -> Option<u64> {
        let value = self.column(id)?.get(at)?;
        (id.missing() == 0 || value != id.missing()).then_some(value)
    }

    /// A column of the category by its id, for the caller to fill.
    pub fn column_mut(&mut self, id: ColumnId) -> Option<&mut Values> {
        self.columns
            .iter_mut()
            .find(|column| column.id == id)
            .map(|column| &mut column.values)
    }

    /// What the event at `at` says in a column of texts; `None` where there is no such column, or
    /// the event says nothing.
    pub fn text(&self, id: ColumnId, at: usize) -> Option<&str> {
        let column = self.columns.iter().find(|column| column.id == id)?;
        let slot = usize::try_from(column.values.get(at)?).ok()?;
        let text = column.texts.get(slot)?;
        (!text.is_empty()).then_some(text)
    }

    /// Name of the event at `at`.
    pub fn name_of(&self, at: usize) -> &str {
        self.name
            .get(at)
            .and_then(|name| self.names.get(name.index()))
            .map_or("", String::as_str)
    }

    /// One more than the highest index of a row of the events; 0 without events.
    pub fn rows_end(&self) -> usize {
        self.row.iter().max().map_or(0, |last| last.index().saturating_add(1))
    }

    /// The end of the last event in ns; none without events.
    pub fn last_end_ns(&self) -> Option<u64> {
        let times = self.start_ns.par_iter().with_min_len(1 << 14);
        let ends = times.zip(&self.duration_ns);
        ends.map(|(start, duration)| start.saturating_add(*duration)).max()
    }

    /// A detail of the name of the event at `at`; `None` where the source does not say it.
    pub fn name_detail(&self, detail: NameDetail, at: usize) -> Option<&str> {
        let name = self.name.get(at)?;
        let text = self.name_details.get(&detail)?.get(name.index())?;
        (!text.is_empty()).then_some(text)
    }

    /// End of the event at `at` in ns.
    pub fn end_ns(&self, at: usize) -> u64 {
        let start = self.start_ns.get(at).copied().unwrap_or(0);
        start.saturating_add(self.duration_ns.get(at).copied().unwrap_or(0))
    }
}

/// A length as results have it.
pub fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A stored index as a position. Every supported target has at least 32 bits of address space.
pub fn index(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}
