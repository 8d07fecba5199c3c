//! Times of groups: the rows of every summary by time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flopwatch_model::{Events, Figures, figures_by_key, index, listed};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{Page, Table};
use flopwatch_summary::Statistics;
use schemars::JsonSchema;
use serde::Serialize;

use super::dimensions;
use super::rounding::{percent, tenths};
use crate::cut::cut;

/// A summary by time, the largest total first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysTimes {
    /// What the capture lacks.
    pub not_captured: Vec<NotCaptured>,
    /// Total time in ns of all rows, those left out too.
    pub total_ns: u64,
    /// The rows.
    pub rows: Vec<NsysTimesRow>,
    /// Rows that were left out behind these.
    pub left_out: u64,
}

/// The times of one group.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NsysTimesRow {
    /// Share of `total_ns`, from 0 to 1: of the time of what is listed, not of the window.
    pub share_ratio: f64,
    /// Sum in ns.
    pub total_ns: u64,
    /// Events of the group.
    pub instances: u64,
    /// Arithmetic mean in ns.
    pub avg_ns: f64,
    /// The middle one in ns, or the mean of the two middle ones.
    pub med_ns: f64,
    /// The shortest in ns.
    pub min_ns: u64,
    /// The longest in ns.
    pub max_ns: u64,
    /// Sample standard deviation in ns; 0 of a single one.
    pub stddev_ns: f64,
    /// `CUDA_API`, `CUDA_KERNEL` or `MEMORY_OPER` in tables that mix them; otherwise null.
    pub category: Option<&'static str>,
    /// `PushPop` or `StartEnd` of NVTX ranges, in tables that tell them apart; otherwise null.
    pub style: Option<&'static str>,
    /// Thread blocks in x, y and z, in a table by shape; otherwise null.
    pub grid: Option<[u32; 3]>,
    /// Threads per block in x, y and z, in a table by shape; otherwise null.
    pub block: Option<[u32; 3]>,
    /// Name of the kernel, function, operation or range.
    pub name: String,
}

/// Grid and block of a launch.
pub(super) type Shape = [[u32; 3]; 2];

/// What the rows of a table differ in.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) category: Option<&'static str>,
    pub(super) style: Option<&'static str>,
    pub(super) shape: Option<Shape>,
}

impl<'a> Group<'a> {
    pub(super) fn named(name: &'a str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            ..Self::default()
        }
    }

    pub(super) fn in_category(self, category: Option<&'static str>) -> Self {
        Self { category, ..self }
    }
}

/// Values by group.
#[derive(Debug, Default)]
pub(super) struct Grouping<'a> {
    groups: BTreeMap<Group<'a>, u32>,
    keys: Vec<u32>,
    values: Vec<u64>,
}

impl<'a> Grouping<'a> {
    /// The number of a group.
    pub(super) fn key(&mut self, group: Group<'a>) -> u32 {
        let next = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        *self.groups.entry(group).or_insert(next)
    }

    /// Adds a value to a group.
    pub(super) fn add(&mut self, key: u32, value: u64) {
        self.keys.push(key);
        self.values.push(value);
    }

    /// Adds a value of each event that `value` has one of, to the group of the event's name.
    pub(super) fn add_events(
        &mut self,
        events: &'a Events,
        group: impl Fn(&'a str) -> Group<'a>,
        value: impl Fn(usize) -> Option<u64>,
    ) {
        let keys: Vec<u32> = events.names.iter().map(|name| self.key(group(name))).collect();
        for (at, name) in events.name.iter().enumerate() {
            if let (Some(key), Some(value)) = (keys.get(name.index()), value(at)) {
                self.add(*key, value);
            }
        }
    }

    /// The figures of each group that has values.
    pub(super) fn figures(self) -> Vec<(Group<'a>, Statistics)> {
        let groups = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        let figures = figures_by_key(groups, &self.keys, listed(&self.values));
        let of = |key: u32| figures.get(index(key)).copied().unwrap_or_else(Figures::default);
        let figures = |(group, key)| Some((group, Statistics::from_figures(&of(key))?));
        self.groups.into_iter().filter_map(figures).collect()
    }
}

impl NsysTimes {
    /// The `limit` rows with the largest totals. Of equal totals the one with fewer instances comes
    /// first, then the names decide.
    pub(super) fn of(grouping: Grouping<'_>, limit: u32, not_captured: Vec<NotCaptured>) -> Self {
        let mut groups = grouping.figures();
        let total: u128 = groups.iter().map(|(_, figures)| u128::from(figures.total)).sum();
        groups.sort_by(|(a, x), (b, y)| {
            let order = y.total.cmp(&x.total).then(x.calls.cmp(&y.calls));
            order.then_with(|| a.cmp(b))
        });
        let left_out = cut(&mut groups, limit);
        Self {
            not_captured,
            total_ns: u64::try_from(total).unwrap_or(u64::MAX),
            rows: groups
                .into_iter()
                .map(|(group, figures)| row(group, &figures, total))
                .collect(),
            left_out,
        }
    }

    /// The page: `instances` is the head of the number of values, `labels` are the columns behind
    /// the figures.
    pub(super) fn page(&self, name: &str, about: &str, instances: &'static str, labels: &[Label]) -> Page {
        let mut table = Table::of("", &self.rows)
            .left_out(self.left_out)
            .number("Time (%)", 1, |row| percent(row.total_ns, u128::from(self.total_ns)))
            .column("Total Time (ns)", |row| row.total_ns)
            .column(instances, |row| row.instances)
            .number("Avg (ns)", 1, |row| tenths(row.avg_ns))
            .number("Med (ns)", 1, |row| tenths(row.med_ns))
            .column("Min (ns)", |row| row.min_ns)
            .column("Max (ns)", |row| row.max_ns)
            .number("StdDev (ns)", 1, |row| tenths(row.stddev_ns));
        for label in labels {
            table = match *label {
                Label::Category => table.column("Category", |row| row.category),
                Label::Style => table.column("Style", |row| row.style),
                Label::Shape => table
                    .column("GridXYZ", |row| row.grid.map(dimensions))
                    .column("BlockXYZ", |row| row.block.map(dimensions)),
                Label::Name(head) => table.column(head, |row| row.name.as_str()),
            };
        }
        Page::of_table(name, about, &self.not_captured, table)
    }
}

/// A column that says what a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Category,
    Style,
    Shape,
    /// The name, under this head.
    Name(&'static str),
}

fn row(group: Group<'_>, figures: &Statistics, total: u128) -> NsysTimesRow {
    let [grid, block] = group.shape.map_or([None; 2], |[grid, block]| [Some(grid), Some(block)]);
    NsysTimesRow {
        share_ratio: flopwatch_model::ratio(figures.total, total).unwrap_or(0.0),
        total_ns: figures.total,
        instances: figures.calls,
        avg_ns: figures.avg,
        med_ns: figures.median,
        min_ns: figures.min,
        max_ns: figures.max,
        stddev_ns: figures.stddev,
        category: group.category,
        style: group.style,
        grid,
        block,
        name: group.name.into_owned(),
    }
}
