//! A table of figures per name.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::statistics::{Statistics, approximate};
use crate::model::{Category, ColumnId, Events, Timeline, index};

/// What the figures of a table measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Measure {
    /// Durations in ns.
    #[default]
    #[serde(rename = "ns")]
    Duration,
    /// Sizes in bytes.
    #[serde(rename = "bytes")]
    Bytes,
}

impl Measure {
    /// The unit as files spell it.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Duration => "ns",
            Self::Bytes => "bytes",
        }
    }
}

/// A table, the largest total first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Whether the source recorded this at all. `false` means "not captured", which is not the same as no rows.
    pub captured: bool,
    /// Unit of the figures.
    pub unit: Measure,
    /// One row per name.
    pub rows: Vec<TableRow>,
}

/// Figures of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableRow {
    /// The name.
    pub name: String,
    /// How an NVTX range was made, `PushPop` or `StartEnd`; elsewhere absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    /// `total` as a share of the table's sum, 0 to 1; not of the window.
    pub share_of_table: f64,
    /// The figures.
    #[serde(flatten)]
    pub statistics: Statistics,
}

/// A row's style and name.
type Key<'a> = (Option<&'static str>, &'a str);

impl Table {
    /// The events of `categories` together, by style (where there is one) and name.
    pub(super) fn of(timeline: &Timeline, categories: &[Category], measure: Measure) -> Self {
        let capture = &timeline.capture;
        let mut groups: BTreeMap<Key<'_>, Vec<u64>> = BTreeMap::new();
        for events in categories.iter().filter_map(|category| capture.events.get(category)) {
            for (key, mut values) in grouped(events, measure) {
                groups.entry(key).or_default().append(&mut values);
            }
        }
        let rows = groups
            .into_iter()
            .filter_map(|(key, values)| Some((key, Statistics::of(values)?)));
        let captured = categories.iter().any(|category| capture.captured.contains(category));
        Self::new(captured, measure, rows)
    }

    /// Sorts `rows` and gives each its share.
    pub(super) fn new<'a>(captured: bool, unit: Measure, rows: impl Iterator<Item = (Key<'a>, Statistics)>) -> Self {
        let mut rows: Vec<TableRow> = rows
            .map(|((style, name), statistics)| TableRow {
                name: name.to_owned(),
                style: style.map(str::to_owned),
                share_of_table: 0.0,
                statistics,
            })
            .collect();
        let sum: u128 = rows.iter().map(|row| u128::from(row.statistics.total)).sum();
        for row in &mut rows {
            let total = u128::from(row.statistics.total);
            row.share_of_table = approximate(total) / approximate(sum.max(1));
        }
        // As nsys orders: the largest total, then the smallest count, then the name.
        rows.sort_by(|a, b| {
            let (x, y) = (&a.statistics, &b.statistics);
            y.total
                .cmp(&x.total)
                .then(x.calls.cmp(&y.calls))
                .then_with(|| (&a.name, &a.style).cmp(&(&b.name, &b.style)))
        });
        Self { captured, unit, rows }
    }
}

/// The values of one category by style and name: each event is looked at twice and moved once.
fn grouped(events: &Events, measure: Measure) -> Vec<(Key<'_>, Vec<u64>)> {
    let styles = events.column(ColumnId::RangeStyle);
    let bytes = events.column(ColumnId::Bytes);
    let style_of = |at: usize| {
        styles
            .and_then(|styles| styles.get(at))
            .map_or(0, |style| usize::from(style != 0))
    };
    let key = |at: usize, name: u32| index(name) * 2 + style_of(at);
    let mut counts = vec![0_usize; events.names.len() * 2];
    for (at, name) in events.name.iter().enumerate() {
        if let Some(count) = counts.get_mut(key(at, *name)) {
            *count += 1;
        }
    }
    let mut values: Vec<Vec<u64>> = counts.into_iter().map(Vec::with_capacity).collect();
    for (at, (name, duration)) in events.name.iter().zip(&events.duration_ns).enumerate() {
        let value = match measure {
            Measure::Duration => *duration,
            Measure::Bytes => bytes.and_then(|bytes| bytes.get(at)).unwrap_or(0),
        };
        if let Some(values) = values.get_mut(key(at, *name)) {
            values.push(value);
        }
    }
    let label = |style: usize| styles.map(|_| if style == 0 { "PushPop" } else { "StartEnd" });
    let keys = events
        .names
        .iter()
        .flat_map(|name| [0, 1].map(|style| (label(style), name.as_str())));
    keys.zip(values).filter(|(_, values)| !values.is_empty()).collect()
}
