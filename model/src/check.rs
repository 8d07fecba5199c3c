//! The check of a capture: columns have a value per event, and what refers to something refers to
//! what is there.

use rayon::prelude::*;

use super::{Capture, Category, Column, ColumnId, Events, NameDetail, NameId, RowId, Values, Width, index};

/// Why a capture contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// A column has not one value per event.
    #[error("{}: the column {column} has {values} values for {events} events", .category.name())]
    Length {
        /// Category of the events.
        category: Category,
        /// Name of the column.
        column: &'static str,
        /// How many values the column has.
        values: usize,
        /// How many events there are.
        events: usize,
    },
    /// The category's own columns are not those of [`Category::columns`] and behind them some of
    /// [`Category::optional_columns`], each once.
    #[error("{}: columns of another category", .category.name())]
    Columns {
        /// Category of the events.
        category: Category,
    },
    /// The row of an event is not there.
    #[error("{}: event {at} refers to a row that is not there ({row}, of {rows} rows)", .category.name())]
    Row {
        /// Category of the event.
        category: Category,
        /// Index of the event in its category.
        at: usize,
        /// Row of the event.
        row: RowId,
        /// How many rows there are.
        rows: usize,
    },
    /// The name of an event is not there.
    #[error("{}: event {at} refers to a name that is not there ({name}, of {names} names)", .category.name())]
    Name {
        /// Category of the event.
        category: Category,
        /// Index of the event in its category.
        at: usize,
        /// Name of the event.
        name: NameId,
        /// How many names the category has.
        names: usize,
    },
    /// A text of an event is not there.
    #[error("{}: event {at} refers to a text that is not there, of the column {}", .category.name(), .column.name())]
    Text {
        /// Category of the event.
        category: Category,
        /// Index of the event in its category.
        at: usize,
        /// Column that refers to the text.
        column: ColumnId,
    },
    /// A detail of names is not said once per name.
    #[error("{}: {texts} texts of {} for {names} names", .category.name(), .detail.name())]
    Details {
        /// Category of the names.
        category: Category,
        /// What the texts say of the names.
        detail: NameDetail,
        /// How many texts there are.
        texts: usize,
        /// How many names there are.
        names: usize,
    },
    /// A series has not one time per value.
    #[error("the series {metric} of {device} has {times} times for {values} values")]
    Series {
        /// Device of the series.
        device: String,
        /// Metric of the series.
        metric: String,
        /// How many times it has.
        times: usize,
        /// How many values it has.
        values: usize,
    },
    /// Samples by stack refer to what is not there.
    #[error("samples by stack refer to what is not there")]
    Stacks,
    /// Stacks of calls refer to what is not there, or are too deep.
    #[error("stacks of calls refer to what is not there, or are too deep")]
    CallStacks,
}

impl Capture {
    /// Whether each column has a value per event, and everything that refers to something refers to
    /// what is there. A reader's capture is held against this once, so that what reads it later
    /// need not.
    pub fn check(&self) -> Result<(), CheckError> {
        for (category, events) in &self.events {
            events.check(*category, self.rows.len())?;
        }
        for series in &self.counters {
            let (times, values) = (series.t_ns.len(), series.value.len());
            if times != values {
                return Err(CheckError::Series {
                    device: series.device.clone(),
                    metric: series.metric.clone(),
                    times,
                    values,
                });
            }
        }
        if self.stacks.as_ref().is_some_and(|stacks| !stacks.is_consistent()) {
            return Err(CheckError::Stacks);
        }
        if !self.call_stacks.is_consistent() {
            return Err(CheckError::CallStacks);
        }
        Ok(())
    }
}

impl Events {
    /// The same of the events of `category`, where there are so many `rows`.
    pub fn check(&self, category: Category, rows: usize) -> Result<(), CheckError> {
        self.check_columns(category)?;
        self.check_lengths(category)?;
        self.check_references(category, rows)
    }

    fn check_columns(&self, category: Category) -> Result<(), CheckError> {
        let (always, optional) = (category.columns(), category.optional_columns());
        let ids: Vec<ColumnId> = self.columns.iter().map(|column| column.id).collect();
        let is_once = |(at, id): (usize, &ColumnId)| !ids.iter().skip(at.saturating_add(1)).any(|other| other == id);
        let is_width = |column: &Column| matches!(column.values, Values::U64(_)) == (column.id.width() == Width::U64);
        let is_own = ids
            .split_at_checked(always.len())
            .is_some_and(|(first, more)| first == always && more.iter().all(|id| optional.contains(id)));
        if is_own && ids.iter().enumerate().all(is_once) && self.columns.iter().all(is_width) {
            Ok(())
        } else {
            Err(CheckError::Columns { category })
        }
    }

    fn check_lengths(&self, category: Category) -> Result<(), CheckError> {
        let events = self.len();
        let shared = [
            ("duration_ns", self.duration_ns.len()),
            ("row", self.row.len()),
            ("lane", self.lane.len()),
            ("name", self.name.len()),
            ("correlation", self.correlation.len()),
        ];
        let own = self.columns.iter();
        let mut lengths = shared
            .into_iter()
            .chain(own.map(|column| (column.id.name(), column.values.len())));
        match lengths.find(|(_, values)| *values != events) {
            None => Ok(()),
            Some((column, values)) => Err(CheckError::Length {
                category,
                column,
                values,
                events,
            }),
        }
    }

    /// Whether the rows, the names and the texts that events refer to are there, of events of which
    /// some columns may not have been read.
    pub fn check_references(&self, category: Category, rows: usize) -> Result<(), CheckError> {
        let names = self.names.len();
        if let Some((at, row)) = first_beyond(RowId::numbers(&self.row), rows) {
            let row = RowId::new(row);
            return Err(CheckError::Row {
                category,
                at,
                row,
                rows,
            });
        }
        if let Some((at, name)) = first_beyond(NameId::numbers(&self.name), names) {
            let name = NameId::new(name);
            return Err(CheckError::Name {
                category,
                at,
                name,
                names,
            });
        }
        for (detail, texts) in &self.name_details {
            let (detail, texts) = (*detail, texts.len());
            if texts != names {
                return Err(CheckError::Details {
                    category,
                    detail,
                    texts,
                    names,
                });
            }
        }
        for column in self.columns.iter().filter(|column| column.id.is_text()) {
            if let Values::U32(values) = &column.values
                && let Some((at, _)) = first_beyond(values, column.texts.len())
            {
                let column = column.id;
                return Err(CheckError::Text { category, at, column });
            }
        }
        Ok(())
    }
}

/// Numbers of a piece, which a core looks at alone.
const PIECE_NUMBERS: usize = 1 << 16;

/// The first number that is not below `end`, and where it is.
fn first_beyond(numbers: &[u32], end: usize) -> Option<(usize, u32)> {
    // The highest number of a piece is found several numbers at a time, the first beyond is not.
    let pieces = numbers.par_chunks(PIECE_NUMBERS);
    let highest = pieces.map(|piece| piece.iter().copied().fold(0, u32::max)).max()?;
    if index(highest) < end {
        return None;
    }
    let at = numbers.iter().position(|number| index(*number) >= end)?;
    Some((at, *numbers.get(at)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallStack, CounterSeries, Event, Row, StackProfile, Track};

    /// Three ranges of two names on two rows.
    fn capture() -> Capture {
        let row = |process| Row {
            thread: Some(1),
            ..Row::of(process, Track::Nvtx)
        };
        let mut events = Events::new(Category::NvtxRange);
        events.names = ["a", "b"].map(str::to_owned).to_vec();
        let at = events.add_column(ColumnId::RangeCategory);
        events.columns[at].texts.push("io".to_owned());
        for (row, name, text) in [(0, 1, 0), (1, 0, 1), (1, 1, 0)] {
            let event = Event {
                row: RowId::new(row),
                name: NameId::new(name),
                ..Event::default()
            };
            events.push(event, &[0, 0, text]);
        }
        Capture {
            events: [(Category::NvtxRange, events)].into(),
            rows: vec![row(1), row(2)],
            ..Capture::default()
        }
    }

    type Change = fn(&mut Events);

    /// What is wrong with the capture after `change` of its ranges.
    fn wrong(change: impl Fn(&mut Events)) -> String {
        let mut capture = capture();
        change(capture.events.get_mut(&Category::NvtxRange).unwrap());
        capture.check().unwrap_err().to_string()
    }

    #[test]
    fn a_capture_that_refers_to_what_it_holds_is_right() {
        assert_eq!(capture().check(), Ok(()));
        assert_eq!(Capture::default().check(), Ok(()));
    }

    #[test]
    fn an_event_on_a_row_that_is_not_there_is_said_with_its_category_and_place() {
        let said = wrong(|events| events.row[1] = RowId::new(2));
        let expected = "nvtx_range: event 1 refers to a row that is not there (2, of 2 rows)";
        assert_eq!(said, expected);
    }

    #[test]
    fn a_name_or_a_text_that_is_not_there_is_said_with_the_event() {
        let said = wrong(|events| events.name[2] = NameId::new(7));
        let expected = "nvtx_range: event 2 refers to a name that is not there (7, of 2 names)";
        assert_eq!(said, expected);
        let said = wrong(|events| events.column_mut(ColumnId::RangeCategory).unwrap().set(0, 2));
        let expected = "nvtx_range: event 0 refers to a text that is not there, of the column range_category";
        assert_eq!(said, expected);
    }

    #[test]
    fn the_first_of_many_events_is_said() {
        let mut capture = capture();
        let events = capture.events.get_mut(&Category::NvtxRange).unwrap();
        let event = Event::default();
        for _ in 0..200_000 {
            events.push(event, &[]);
        }
        for at in [199_000, 70_000, 150_000] {
            events.row[at] = RowId::new(9);
        }
        let row = RowId::new(9);
        let expected = CheckError::Row {
            category: Category::NvtxRange,
            at: 70_000,
            row,
            rows: 2,
        };
        assert_eq!(capture.check(), Err(expected));
    }

    #[test]
    fn columns_have_a_value_per_event() {
        let shorter: [(&str, Change); 6] = [
            ("duration_ns", |events| events.duration_ns.truncate(2)),
            ("row", |events| events.row.truncate(2)),
            ("lane", |events| events.lane.truncate(2)),
            ("name", |events| events.name.truncate(2)),
            ("correlation", |events| events.correlation.truncate(2)),
            ("color", |events| events.columns[0].values.resize(2, 0)),
        ];
        for (column, change) in shorter {
            let expected = format!("nvtx_range: the column {column} has 2 values for 3 events");
            assert_eq!(wrong(change), expected);
        }
    }

    #[test]
    fn columns_are_those_of_the_category_and_each_is_there_once() {
        let expected = "nvtx_range: columns of another category";
        assert_eq!(wrong(|events| drop(events.columns.remove(0))), expected);
        assert_eq!(wrong(|events| events.columns.swap(0, 1)), expected);
        assert_eq!(wrong(|events| events.columns.push(events.columns[2].clone())), expected);
        assert_eq!(wrong(|events| events.columns[2].id = ColumnId::Flops), expected);
        assert_eq!(
            wrong(|events| events.columns[2].values = Values::U64(vec![0; 3])),
            expected
        );
    }

    #[test]
    fn details_are_said_once_per_name() {
        let said = wrong(|events| {
            events.name_details.insert(NameDetail::Domain, vec![String::new()]);
        });
        assert_eq!(said, "nvtx_range: 1 texts of domain for 2 names");
    }

    #[test]
    fn series_and_stacks_are_checked_too() {
        let mut series = capture();
        series.counters.push(CounterSeries {
            device: "gpu0".to_owned(),
            metric: "power".to_owned(),
            t_ns: vec![1],
            ..CounterSeries::default()
        });
        let said = series.check().unwrap_err().to_string();
        assert_eq!(said, "the series power of gpu0 has 1 times for 0 values");
        let mut stacks = capture();
        stacks.stacks = Some(StackProfile {
            default_kind: Some(4),
            ..StackProfile::default()
        });
        assert_eq!(stacks.check(), Err(CheckError::Stacks));
        let mut calls = capture();
        calls.call_stacks.stacks.push(CallStack { caller: 0, frame: 3 });
        assert_eq!(calls.check(), Err(CheckError::CallStacks));
    }
}
