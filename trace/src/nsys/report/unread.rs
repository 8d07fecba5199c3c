//! What is in a report and not read, by what it is.

use std::collections::BTreeMap;

use flopwatch_model::{LossReason, Losses};

/// A kind of content of a report that is not read, by which it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UnreadContent {
    /// Rows of a table that an export would have and that is not read.
    Table(&'static str),
    /// Work on a device whose message has that number, 0 for none.
    Work(u64),
    /// Calls of a class that is not known.
    Class(u64),
    /// Events whose message has a number that is not known, 0 for none.
    Body(u64),
    /// Entries of a chunk's list that are no events.
    Entry(u64),
    /// Values of counters that are no integers.
    Values,
}

/// How many of what is passed over.
#[derive(Debug, Default)]
pub(super) struct UnreadCounts(BTreeMap<UnreadContent, u64>);

/// Numbers that are told apart; a foreign file chooses them.
const MAX_KINDS: usize = 1 << 10;

impl UnreadCounts {
    pub(super) fn add(&mut self, what: UnreadContent) {
        self.add_many(what, 1);
    }

    fn add_many(&mut self, what: UnreadContent, count: u64) {
        let is_new = self.0.len() >= MAX_KINDS && !self.0.contains_key(&what);
        let what = if is_new { UnreadContent::Body(0) } else { what };
        let known = self.0.entry(what).or_default();
        *known = known.saturating_add(count);
    }

    pub(super) fn append(&mut self, other: Self) {
        for (what, count) in other.0 {
            self.add_many(what, count);
        }
    }

    /// As losses, each with its name.
    pub(super) fn losses(&self) -> Losses {
        let mut losses = Losses::default();
        for (what, count) in &self.0 {
            let what = match what {
                UnreadContent::Table(name) => format!("table {name}"),
                UnreadContent::Work(number) => format!("GPU work of kind {number}"),
                UnreadContent::Class(class) => match class_name(*class) {
                    Some(name) => format!("{name} calls"),
                    None => format!("calls of class {class}"),
                },
                UnreadContent::Body(number) => format!("events of kind {number}"),
                UnreadContent::Entry(number) => format!("entries of kind {number}"),
                UnreadContent::Values => "GPU_METRICS: values that are no integers".to_owned(),
            };
            losses.add(LossReason::Unsupported, &what, *count);
        }
        losses
    }
}

/// What the calls of a class are of.
fn class_name(class: u64) -> Option<&'static str> {
    match class {
        48 => Some("OpenACC"),
        78 => Some("OpenMP"),
        84..=91 => Some("video codec"),
        _ => None,
    }
}
