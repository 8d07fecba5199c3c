//! A table of figures per name.

use std::collections::BTreeMap;

use flopwatch_model::{Category, ColumnId, Events, Figures, NameId, Timeline, figures_by_key, listed, ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::statistics::Statistics;

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
    /// Whether the source recorded this at all. `false` means "not captured", which is not the same
    /// as no rows.
    pub captured: bool,
    /// Unit of the figures.
    pub unit: Measure,
    /// One row per name.
    pub rows: Vec<TableRow>,
    /// Events whose value the source does not say, such as copies of unknown size: they are in no
    /// row.
    #[serde(default)]
    pub unknown: u64,
}

/// Figures of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableRow {
    /// What the row is about: a kernel, an API function, a range, as the table says.
    pub name: String,
    /// How an NVTX range was made, `PushPop` or `StartEnd`; elsewhere absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    /// `total` as a share of the table's sum, 0 to 1; not of the window.
    pub share_of_table: f64,
    /// How many values there are, their sum and their spread.
    #[serde(flatten)]
    pub statistics: Statistics,
}

/// A row's style and name.
type Key<'a> = (Option<&'static str>, &'a str);

impl Table {
    /// The events of `categories` together, by style (where there is one) and name.
    pub(super) fn of(timeline: &Timeline, categories: &[Category], measure: Measure) -> Self {
        let capture = &timeline.capture;
        let mut groups: BTreeMap<Key<'_>, Vec<(Category, Figures)>> = BTreeMap::new();
        let mut unknown = 0;
        for category in categories {
            unknown += count_unknown(timeline, *category, measure);
            for (key, figures) in of_category(timeline, *category, measure) {
                groups.entry(key).or_default().push((*category, figures));
            }
        }
        let rows = groups.into_iter().filter_map(|(key, parts)| {
            let figures = if let [(_, figures)] = parts.as_slice() {
                *figures
            } else {
                // Medians cannot be added: a name that several categories share is computed from
                // its events.
                let parts = parts.iter().filter_map(|(category, _)| capture.events.get(category));
                let mut values: Vec<u64> = parts.flat_map(|events| values_of(events, key.1, measure)).collect();
                Figures::of(&mut values)
            };
            Some((key, Statistics::from_figures(&figures)?))
        });
        let captured = categories.iter().any(|category| capture.captured.contains(category));
        Self {
            unknown,
            ..Self::new(captured, measure, rows)
        }
    }

    /// Whether it has no events, of known value or not.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.unknown == 0
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
            row.share_of_table = ratio(total, sum).unwrap_or(0.0);
        }
        // As nsys orders: the largest total, then the smallest count, then the name.
        rows.sort_by(|a, b| {
            let (x, y) = (&a.statistics, &b.statistics);
            y.total
                .cmp(&x.total)
                .then(x.calls.cmp(&y.calls))
                .then_with(|| (&a.name, &a.style).cmp(&(&b.name, &b.style)))
        });
        Self {
            captured,
            unit,
            rows,
            unknown: 0,
        }
    }
}

/// What the figures of an event are of; `None` where the source does not say it.
fn value(events: &Events, at: usize, measure: Measure) -> Option<u64> {
    match measure {
        Measure::Duration => events.duration_ns.get(at).copied(),
        Measure::Bytes => events.number(ColumnId::Bytes, at),
    }
}

/// Events of a category whose value the source does not say.
fn count_unknown(timeline: &Timeline, category: Category, measure: Measure) -> u64 {
    let events = timeline.capture.events.get(&category);
    let Some(events) = events.filter(|_| measure == Measure::Bytes) else {
        return 0;
    };
    let unknown = (0..events.len()).filter(|at| value(events, *at, measure).is_none());
    u64::try_from(unknown.count()).unwrap_or(u64::MAX)
}

/// The values of the events of that name. No category with styles shares names with another.
fn values_of<'a>(events: &'a Events, name: &str, measure: Measure) -> impl Iterator<Item = u64> + use<'a> {
    let named = events.names.iter().position(|known| known == name);
    let named = named.and_then(NameId::from_index);
    let at = events
        .name
        .iter()
        .enumerate()
        .filter(move |(_, of)| Some(**of) == named);
    at.filter_map(move |(at, _)| value(events, at, measure))
}

/// The figures of one category by style and name.
fn of_category(timeline: &Timeline, category: Category, measure: Measure) -> Vec<(Key<'_>, Figures)> {
    let Some(events) = timeline.capture.events.get(&category) else {
        return Vec::new();
    };
    let names = events.names.iter().map(String::as_str);
    if let Some(styles) = events.column(ColumnId::RangeStyle) {
        let style_of = |at: usize| u32::from(styles.get(at).unwrap_or(0) != 0);
        let pairs = events.name.iter().enumerate();
        let keys: Vec<u32> = pairs
            .map(|(at, name)| name.number().saturating_mul(2) + style_of(at))
            .collect();
        let count = u32::try_from(events.names.len() * 2).unwrap_or(u32::MAX);
        let figures = figures_by_key(count, &keys, |at| value(events, at, measure).unwrap_or(0));
        let keys = names.flat_map(|name| [(Some("PushPop"), name), (Some("StartEnd"), name)]);
        return keys.zip(figures).collect();
    }
    let known = timeline.figures.get(&category);
    let known = known.filter(|known| measure == Measure::Duration && known.len() == events.names.len());
    let count = u32::try_from(events.names.len()).unwrap_or(u32::MAX);
    let figures = known.cloned().unwrap_or_else(|| {
        if count_unknown(timeline, category, measure) == 0 {
            return figures_by_key(count, &events.name, |at| value(events, at, measure).unwrap_or(0));
        }
        let measured = events.name.iter().enumerate();
        let measured = measured.filter_map(|(at, name)| Some((*name, value(events, at, measure)?)));
        let (keys, values): (Vec<NameId>, Vec<u64>) = measured.unzip();
        figures_by_key(count, &keys, listed(&values))
    });
    names.map(|name| (None, name)).zip(figures).collect()
}
