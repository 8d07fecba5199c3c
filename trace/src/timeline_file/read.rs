//! Reads a timeline file back and checks it: it may come from anywhere.

use std::path::Path;

use flopwatch_model::{Needs, Totals};
use hdf5::Group;
use hdf5::types::VarLenUnicode;

use super::events::text_list;
use super::{NONE_U32, NONE_U64, SCHEMA_VERSION, access};
use crate::ReadLimits;
use crate::hdf5_io::{Number, StorageLayout, StringBudget, Table, TableError, TableLimits};
use crate::in_file::InFile;
use flopwatch_model::{
    CallStacks, Capture, Category, CheckError, Column, ColumnId, CounterSeries, Events, Loss, LossReason, Losses,
    NameDetail, NameId, Row, RowId, Timeline, Track, Values, Width, index,
};

/// Why a file cannot be read as a timeline.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The file is not there, is no HDF5 file, or a structure of it is damaged.
    #[error("{0}: truncated, damaged or not a timeline file")]
    Damaged(String),
    /// Written by a newer version with another layout.
    #[error("has layout {0}, this version reads up to {SCHEMA_VERSION}; use the version that wrote it")]
    Newer(u32),
    /// A dataset is damaged, forged or too large.
    #[error(transparent)]
    Table(#[from] TableError),
    /// What the file says contradicts itself.
    #[error("{0}")]
    Inconsistent(String),
    /// Its events contradict themselves.
    #[error(transparent)]
    Check(#[from] CheckError),
}

/// A [`Failure`] with the path of the timeline file.
pub type OpenError = InFile<Failure>;

impl From<hdf5::Error> for Failure {
    fn from(error: hdf5::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Whether the HDF5 file at `path` has what makes it a timeline file; one that cannot be opened is
/// none.
pub fn is_one(path: &Path) -> bool {
    access::open(path).is_ok_and(|file| hard_group(&file, "meta").is_ok_and(|meta| meta.attr("schema_version").is_ok()))
}

/// Those of `names` that are groups of the timeline file at `path` with something in them. Nothing
/// of what they hold is read.
pub fn filled_groups(path: &Path, names: &[&'static str]) -> Result<Vec<&'static str>, OpenError> {
    let open = || -> Result<Vec<&'static str>, Failure> {
        let raw = std::fs::File::open(path).map_err(|error| Failure::Damaged(error.to_string()))?;
        crate::hdf5_io::check_strings(&raw).map_err(Failure::Damaged)?;
        let file = access::open(path)?;
        let mut filled = Vec::new();
        for name in names {
            if optional_group(&file, name)?.is_some_and(|group| !group.is_empty()) {
                filled.push(*name);
            }
        }
        Ok(filled)
    };
    open().map_err(OpenError::at(path))
}

/// Reads and checks the timeline file at `path`.
pub fn read(path: &Path, limits: &ReadLimits) -> Result<Timeline, OpenError> {
    let Part { mut timeline, .. } = read_for(path, limits, &Needs::EVERYTHING)?;
    let rows = u32::try_from(timeline.capture.rows.len()).unwrap_or(u32::MAX);
    // What can be made of the events is not taken on trust.
    for (category, events) in &timeline.capture.events {
        let (lod, figures) = crate::transform::derive(events, rows);
        timeline.lod.insert(*category, lod);
        timeline.figures.insert(*category, figures);
    }
    Ok(timeline)
}

/// What was read of a timeline file.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The parts that were asked for, without levels of detail and figures.
    pub timeline: Timeline,
    /// How much the file holds in all.
    pub totals: Totals,
}

/// Reads and checks what `needs` asks for of the timeline file at `path`: datasets of other columns
/// and categories are not read. Events of a timeline file are sorted, laned and joined; nothing is
/// transformed.
pub fn read_for(path: &Path, limits: &ReadLimits, needs: &Needs) -> Result<Part, OpenError> {
    open(path, limits, needs).map_err(OpenError::at(path))
}

fn open(path: &Path, limits: &ReadLimits, needs: &Needs) -> Result<Part, Failure> {
    let raw = std::fs::File::open(path).map_err(|error| Failure::Damaged(error.to_string()))?;
    crate::hdf5_io::check_strings(&raw).map_err(Failure::Damaged)?;
    let file = access::open(path)?;
    let mut reader = Reader {
        limits,
        needs,
        strings: StringBudget::new(limits.max_string_bytes),
        events: 0,
        totals: Totals::default(),
    };
    let meta = hard_group(&file, "meta")?;
    let version: u32 = meta.attr("schema_version")?.read_scalar()?;
    if version > SCHEMA_VERSION {
        return Err(Failure::Newer(version));
    }
    let rows = if needs.rows {
        reader.rows(&hard_group(&file, "rows")?)?
    } else {
        Vec::new()
    };
    let mut capture = Capture {
        source: from_json(&attribute_text(&meta, "source")?)?,
        session_start_utc_ns: meta
            .attr("session_start_utc_ns")
            .and_then(|start| start.read_scalar())
            .ok(),
        duration_ns: meta.attr("total_duration_ns")?.read_scalar()?,
        losses: from_json::<Vec<Loss>>(&attribute_text(&meta, "drops")?)?
            .into_iter()
            .collect::<Losses>(),
        redactions: meta.attr("redactions")?.read_scalar()?,
        devices: reader.devices(&hard_group(&meta, "devices")?)?,
        counters: reader.counters(&hard_group(&file, "counters")?)?,
        allocations: match optional_group(&file, "allocations")? {
            Some(allocations) if needs.allocations => reader.allocations(&allocations)?,
            _ => Vec::new(),
        },
        programs: match optional_group(&file, "programs")? {
            Some(programs) if needs.programs => reader.programs(&programs)?,
            _ => Vec::new(),
        },
        profiles: match optional_group(&file, "profiles")? {
            Some(profiles) => reader.profiles(&profiles)?,
            None => Vec::new(),
        },
        stacks: match optional_group(&file, "stacks")? {
            Some(stacks) if needs.stacks => Some(reader.stacks(&stacks)?),
            _ => None,
        },
        call_stacks: match optional_group(&file, "call_stacks")? {
            Some(stacks) if needs.call_stacks => reader.call_stacks(&stacks)?,
            _ => CallStacks::default(),
        },
        rows,
        ..Capture::default()
    };
    let names = hard_group(&file, "names")?;
    for name in reader.strings(&meta, "categories")? {
        let Some(category) = Category::from_name(&name) else {
            capture
                .losses
                .add(LossReason::Unsupported, &format!("category {name}"), 1);
            continue;
        };
        capture.captured.insert(category);
        let events = reader.events(&hard_group(&file, category.name())?, &names, category, &capture.rows)?;
        if !events.is_empty() {
            capture.events.insert(category, events);
        }
    }
    if needs.call_stacks {
        super::call_stacks::check(&capture)?;
    }
    let timeline = Timeline {
        session_id: attribute_text(&meta, "session_id")?,
        capture,
        ..Timeline::default()
    };
    let totals = reader.totals;
    Ok(Part { timeline, totals })
}

pub(super) struct Reader<'a> {
    limits: &'a ReadLimits,
    pub(super) needs: &'a Needs,
    strings: StringBudget,
    /// Events and samples that were read, against the limit.
    events: u64,
    pub(super) totals: Totals,
}

impl Reader<'_> {
    pub(super) fn table(&self, group: &Group, name: &str) -> Result<Table, Failure> {
        let limits = TableLimits {
            rows: self.limits.max_table_rows,
            chunk_bytes: self.limits.max_chunk_bytes,
        };
        let table = Table::open(group, name, StorageLayout::Plain, limits)?;
        table.ok_or_else(|| Failure::Inconsistent(format!("{} has no dataset {name}", group.name())))
    }

    pub(super) fn numbers<T: Number>(
        &self,
        group: &Group,
        name: &str,
        count: Option<usize>,
    ) -> Result<Vec<T>, Failure> {
        let table = self.table(group, name)?;
        match count {
            Some(count) if count != table.rows() => {
                let path = group.name();
                Err(Failure::Inconsistent(format!(
                    "{path}/{name} has {} values, not {count}",
                    table.rows()
                )))
            }
            _ => Ok(table.all()?),
        }
    }

    pub(super) fn strings(&mut self, group: &Group, name: &str) -> Result<Vec<String>, Failure> {
        Ok(self.table(group, name)?.all_strings(&mut self.strings)?)
    }

    /// Counts what is read against the limit of events.
    pub(super) fn within_limit(&mut self, count: usize, what: &str) -> Result<(), Failure> {
        let limit = self.limits.max_events;
        self.events = self.events.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if self.events > limit {
            return Err(Failure::Inconsistent(format!("more than the limit of {limit} {what}")));
        }
        Ok(())
    }

    fn events(&mut self, group: &Group, names: &Group, category: Category, rows: &[Row]) -> Result<Events, Failure> {
        let mut events = Events::new(category);
        let needs = self.needs;
        let count = self.table(group, "start_ns")?.rows();
        let held = u64::try_from(count).unwrap_or(u64::MAX);
        self.totals.events = self.totals.events.saturating_add(held);
        if !needs.categories.contains(&category) {
            return Ok(events);
        }
        self.within_limit(count, "events")?;
        events.start_ns = self.numbers(group, "start_ns", None)?;
        events.duration_ns = self.numbers(group, "duration_ns", Some(count))?;
        if needs.rows {
            events.row = RowId::from_numbers(self.numbers(group, "row", Some(count))?);
        }
        if needs.lanes {
            events.lane = self.numbers(group, "lane", Some(count))?;
        }
        if needs.correlations {
            events.correlation = self.numbers(group, "correlation", Some(count))?;
        }
        events.columns = Vec::new();
        for id in category.columns().iter().filter(|id| needs.columns.contains(id)) {
            let column = self.column(group, names, category, *id, count)?;
            events.columns.push(column);
        }
        for id in category
            .optional_columns()
            .iter()
            .filter(|id| needs.columns.contains(id))
        {
            if crate::hdf5_io::is_hard_link(group, id.name())? {
                let column = self.column(group, names, category, *id, count)?;
                events.columns.push(column);
            }
        }
        if needs.names {
            events.name = NameId::from_numbers(self.numbers(group, "name_idx", Some(count))?);
            events.names = self.strings(names, category.name())?;
            if needs.name_details {
                self.name_details(names, category, &mut events)?;
            }
        }
        if !events.start_ns.is_sorted() {
            return Err(Failure::Inconsistent(format!(
                "{}: not sorted by start",
                category.name()
            )));
        }
        // The lengths of the columns were held against each other as they were read.
        events.check_references(category, rows.len())?;
        Ok(events)
    }

    fn name_details(&mut self, names: &Group, category: Category, events: &mut Events) -> Result<(), Failure> {
        for detail in NameDetail::ALL {
            let of = text_list(category, detail.name());
            if crate::hdf5_io::is_hard_link(names, &of)? {
                let texts = self.strings(names, &of)?;
                events.name_details.insert(detail, texts);
            }
        }
        Ok(())
    }

    fn column(
        &mut self,
        group: &Group,
        names: &Group,
        category: Category,
        id: ColumnId,
        count: usize,
    ) -> Result<Column, Failure> {
        let values = match id.width() {
            Width::U32 => Values::U32(self.numbers(group, id.name(), Some(count))?),
            Width::U64 => Values::U64(self.numbers(group, id.name(), Some(count))?),
        };
        let mut texts = Vec::new();
        if let (true, Values::U32(values)) = (id.is_text(), &values) {
            let of = text_list(category, id.name());
            let wrong = |what: &str| Err(Failure::Inconsistent(format!("names/{of}: {what}")));
            texts = self.strings(names, &of)?;
            if texts.first().is_none_or(|first| !first.is_empty()) {
                return wrong("the first text is not empty");
            }
            if !texts.is_sorted_by(|a, b| a < b) {
                return wrong("not sorted, each text once");
            }
            if values.iter().any(|value| index(*value) >= texts.len()) {
                return wrong("an event refers to a text that is not there");
            }
        }
        Ok(Column { id, values, texts })
    }

    fn rows(&mut self, group: &Group) -> Result<Vec<Row>, Failure> {
        let labels = self.strings(group, "label")?;
        let count = Some(labels.len());
        if labels.len() > index(self.limits.max_rows) {
            return Err(Failure::Inconsistent(format!(
                "more than the limit of {} rows",
                self.limits.max_rows
            )));
        }
        let tracks = self.strings(group, "track")?;
        let capture: Vec<u32> = self.numbers(group, "capture", count)?;
        let machine: Vec<u32> = self.numbers(group, "machine", count)?;
        let process: Vec<u32> = self.numbers(group, "process", count)?;
        let device: Vec<u32> = self.numbers(group, "device", count)?;
        let context: Vec<u64> = self.numbers(group, "context", count)?;
        let stream: Vec<u64> = self.numbers(group, "stream", count)?;
        let thread: Vec<u64> = self.numbers(group, "thread", count)?;
        if tracks.len() != labels.len() {
            return Err(Failure::Inconsistent("rows: not one track per row".to_owned()));
        }
        let who = capture.into_iter().zip(machine).zip(process);
        let ids = device.into_iter().zip(context).zip(stream).zip(thread);
        let rows = labels.into_iter().zip(tracks).zip(who).zip(ids);
        rows.map(
            |(((label, track), ((capture, machine), process)), (((device, context), stream), thread))| {
                let track = Track::from_name(&track)
                    .ok_or_else(|| Failure::Inconsistent("rows: a track of an unknown kind".to_owned()))?;
                Ok(Row {
                    capture,
                    machine,
                    process,
                    track,
                    device: (device != NONE_U32).then_some(device),
                    context: (context != NONE_U64).then_some(context),
                    stream: (stream != NONE_U64).then_some(stream),
                    thread: (thread != NONE_U64).then_some(thread),
                    label,
                })
            },
        )
        .collect()
    }

    fn counters(&mut self, counters: &Group) -> Result<Vec<CounterSeries>, Failure> {
        let mut all = Vec::new();
        for source in counters.member_names()? {
            let of_source = hard_group(counters, &source)?;
            for device in of_source.member_names()? {
                let of_device = hard_group(&of_source, &device)?;
                for metric in of_device.member_names()? {
                    let metric_group = hard_group(&of_device, &metric)?;
                    let held = u64::try_from(self.table(&metric_group, "t_ns")?.rows()).unwrap_or(u64::MAX);
                    self.totals.samples = self.totals.samples.saturating_add(held);
                    if !self.needs.counters {
                        continue;
                    }
                    let t_ns: Vec<u64> = self.numbers(&metric_group, "t_ns", None)?;
                    self.events = self.events.saturating_add(held);
                    if self.events > self.limits.max_events {
                        return Err(Failure::Inconsistent(
                            "more samples than the limit of events".to_owned(),
                        ));
                    }
                    let series = CounterSeries {
                        source: source.clone(),
                        device: device.clone(),
                        unit: attribute_text(&metric_group, "unit")?,
                        value: self.numbers(&metric_group, "value", Some(t_ns.len()))?,
                        metric,
                        t_ns,
                    };
                    all.push(series);
                }
            }
        }
        Ok(all)
    }
}

/// A group that is written only where it holds something.
pub(super) fn optional_group(parent: &Group, name: &str) -> Result<Option<Group>, Failure> {
    if parent.link_exists(name) {
        hard_group(parent, name).map(Some)
    } else {
        Ok(None)
    }
}

/// A group that lies in this file: a forged link must not lead to another one.
pub(super) fn hard_group(parent: &Group, name: &str) -> Result<Group, Failure> {
    if crate::hdf5_io::is_hard_link(parent, name)? {
        Ok(parent.group(name)?)
    } else {
        Err(Failure::Inconsistent(format!("{} has no group {name}", parent.name())))
    }
}

fn attribute_text(group: &Group, name: &str) -> Result<String, Failure> {
    let value: VarLenUnicode = group.attr(name)?.read_scalar()?;
    // Not `as_str`: the type promises UTF-8, a foreign file does not.
    Ok(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

pub(super) fn from_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::Inconsistent(format!("meta: {error}")))
}
