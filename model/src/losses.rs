//! What did not make it from the source into the events unchanged. Never silent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Category;

/// Why something of the source is missing or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossReason {
    /// The profiler itself says that it lost it.
    Dropped,
    /// Kept, but cut: e.g. a range that was still open when the capture ended gets the end of the
    /// capture.
    Truncated,
    /// Left out because it makes no sense, e.g. an end before its start.
    Skipped,
    /// Left out because this version does not show its kind, e.g. NVTX marks or the rows of a table
    /// it does not read.
    Unsupported,
    /// Nothing is missing: a part of the source holds nothing, e.g. the trace of a process that did
    /// nothing in the window.
    Idle,
    /// Nothing is missing: the source does not say it, and the reader decided it by what else it
    /// says, e.g. which of several processes launched GPU work.
    Inferred,
}

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Loss {
    /// What became of them, of a closed set.
    pub reason: LossReason,
    /// What, e.g. a table's name or `NVTX marks`.
    pub what: String,
    /// How many of these were lost.
    pub count: u64,
}

impl Loss {
    /// Of a file that ends before its list of events does.
    pub const EVENTS_CUT: &str = "list of events: the file ends before it does";
    /// Of a file that ends behind its events, before what belongs to it does.
    pub const END_CUT: &str = "members behind the events: the file ends before they do";
    /// What a file that ends before its end is said to lack, with [`LossReason::Truncated`].
    pub const CUT: [&str; 2] = [Self::EVENTS_CUT, Self::END_CUT];
    /// Of processes that were recorded and did nothing, with [`LossReason::Idle`].
    pub const IDLE_PROCESSES: &str = "processes without events";

    /// Of events that begin, or had ended, where nothing else of the capture is; behind their
    /// category.
    pub const AWAY: &str = "times away from all others";
    /// Of events that end long after everything else; behind their category.
    pub const TOO_LONG: &str = "lengths that reach out of the capture";
    /// Of GPU work whose begin and length are both 0 on the source's clock, which is what CUPTI
    /// says of work that it could not time; behind its category.
    pub const UNTIMED: &str = "no times";
    /// Of events whose length is no number of ns.
    pub const NO_LENGTH: &str = "lengths that are no times";
    /// Of GPU work that ends behind work that began later on its stream, with
    /// [`LossReason::Truncated`]: it is cut where that began; behind its category.
    pub const RUNS_ON: &str = "ends behind later work of its stream";

    /// Whether it is of events whose times cannot be: what the source says of them is wrong.
    pub fn is_of_impossible_times(&self) -> bool {
        let kinds = [
            Self::AWAY,
            Self::TOO_LONG,
            Self::UNTIMED,
            Self::NO_LENGTH,
            Self::RUNS_ON,
        ];
        kinds.iter().any(|kind| self.what.ends_with(kind))
    }

    /// The category that names the events whose times cannot be.
    pub fn impossible_times_of(&self) -> Option<Category> {
        let (category, _) = self.what.split_once(": ")?;
        self.is_of_impossible_times()
            .then(|| Category::from_name(category))
            .flatten()
    }

    /// Whether anything is missing or changed: not where a part of the source holds nothing, and
    /// not where the reader decided what it does not say.
    pub fn is_of_something(&self) -> bool {
        !matches!(self.reason, LossReason::Idle | LossReason::Inferred)
    }

    /// Whether the file that was read ends before its end: how much is missing cannot be told.
    pub fn is_of_a_cut_file(&self) -> bool {
        self.reason == LossReason::Truncated && Self::CUT.contains(&self.what.as_str())
    }
}

/// Maximum of distinct entries; a foreign file chooses the names of its tables.
const MAX_ENTRIES: usize = 256;

/// Counts by reason and thing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<(LossReason, String), u64>);

impl Losses {
    /// Adds `count` of `what`; nothing when the count is zero. The list has a bound, behind which
    /// things become `others`.
    pub fn add(&mut self, reason: LossReason, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        let key = (reason, what.to_owned());
        let key = if self.0.len() >= MAX_ENTRIES && !self.0.contains_key(&key) {
            (reason, "others".to_owned())
        } else {
            key
        };
        let entry = self.0.entry(key).or_default();
        *entry = entry.saturating_add(count);
    }

    /// The list, by reason and thing.
    pub fn list(&self) -> Vec<Loss> {
        self.0
            .iter()
            .map(|((reason, what), count)| Loss {
                reason: *reason,
                what: what.clone(),
                count: *count,
            })
            .collect()
    }
}

impl FromIterator<Loss> for Losses {
    fn from_iter<I: IntoIterator<Item = Loss>>(list: I) -> Self {
        let mut losses = Self::default();
        for drop in list {
            losses.add(drop.reason, &drop.what, drop.count);
        }
        losses
    }
}
