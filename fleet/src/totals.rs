//! Sums over the captures of a fleet: what they would be over all pods and all of the time, out of
//! the windows that were drawn.
//!
//! A capture that was drawn with probability `p` stands for `1/p` windows (Horvitz and Thompson).
//! How far off the sums may be is found by drawing the captures anew, with replacement: each of
//! 1,000 resamples takes every capture so many times as a Poisson number of mean 1 says, which is
//! what drawing as many as there are comes to, and needs no second look at the captures (Chamandy
//! et al., 2012).

mod group;
mod report;
mod resample;

use std::collections::{BTreeMap, BTreeSet};

use flopwatch_model::approximate;

use crate::capture::{CERTAIN_PER_BILLION, CaptureRow, Trigger};
use crate::name::OTHER_NAMES;
use crate::row::Row;
use group::{Part, Sums};
use resample::Resamples;

pub use report::{Estimate, Figures, ObservedSums, Report};

/// What makes a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// The name: of a kernel or a range.
    Name,
    /// The image, as pods name it.
    Image,
    /// The node that the pod ran on.
    Node,
}

impl GroupBy {
    fn key(self, row: &Row) -> &str {
        match self {
            Self::Name => &row.name,
            Self::Image => &row.image,
            Self::Node => &row.node,
        }
    }
}

/// What is added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// What makes a group.
    pub group_by: GroupBy,
    /// Categories whose rows count. Ranges and operators nest, so that their sum holds the time of
    /// the inner ones more than once.
    pub categories: BTreeSet<String>,
    /// Windows count that began from here on, in ns since 1970.
    pub from_ns: i64,
    /// Windows count that began before this, in ns since 1970.
    pub until_ns: i64,
    /// Whether only captures count that a schedule drew. Those that people and alerts asked for
    /// stand for themselves alone, and are no sample of anything.
    pub drawn_only: bool,
}

impl Query {
    fn takes(&self, capture: &CaptureRow) -> bool {
        let drawn = !self.drawn_only || capture.trigger == Trigger::Schedule.as_str();
        drawn && (self.from_ns..self.until_ns).contains(&capture.window_start)
    }
}

/// What sums may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Groups that are kept apart, the largest ones. At most twice as many are held at a time, of
    /// 16 bytes a resample each.
    pub groups: usize,
    /// Resamples that intervals are made of.
    pub resamples: usize,
    /// What resamples are drawn with: the same captures have the same intervals.
    pub seed: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            groups: 512,
            resamples: 1_000,
            seed: 0x0066_6c65_6574,
        }
    }
}

/// Sums that grow file by file, within [`Bounds`].
#[derive(Debug, Clone)]
pub struct Totals {
    query: Query,
    bounds: Bounds,
    groups: BTreeMap<String, Sums>,
    /// What was let go of to keep within the bounds, and names that had no row of their own.
    others: Sums,
    /// How many groups were let go of; one that came back counts again.
    let_go: u64,
    /// The most that any group had that was let go of: as much may be missing in one that came
    /// later.
    largest_let_go: f64,
    all: Sums,
    counts: Counts,
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    captures: u64,
    failed: u64,
    not_captured: u64,
    repeated: u64,
    rows_without_capture: u64,
    /// Sums of 1/p: of all captures, and of those that captured the category.
    weight: f64,
    weight_captured: f64,
    /// Windows of those that did, each times 1/p.
    window_ns: f64,
}

impl Totals {
    /// Nothing yet.
    pub fn new(query: Query, bounds: Bounds) -> Self {
        Self {
            query,
            bounds,
            groups: BTreeMap::new(),
            others: Sums::new(bounds.resamples),
            let_go: 0,
            largest_let_go: 0.0,
            all: Sums::new(bounds.resamples),
            counts: Counts::default(),
        }
    }

    /// Adds captures with all of their rows, in any order. A capture is to be added once; one that
    /// is there twice in a call counts once.
    pub fn add(&mut self, captures: &[CaptureRow], rows: &[Row]) {
        let mut known: BTreeMap<&str, &CaptureRow> = BTreeMap::new();
        for capture in captures {
            if known.insert(&capture.capture_uid, capture).is_some() {
                self.counts.repeated += 1;
            }
        }
        let mut parts: BTreeMap<&str, BTreeMap<&str, Part>> = BTreeMap::new();
        for row in rows {
            if !known.contains_key(row.capture_uid.as_str()) {
                self.counts.rows_without_capture += 1;
            } else if self.query.categories.contains(&row.category) {
                let key = self.query.group_by.key(row);
                parts
                    .entry(&row.capture_uid)
                    .or_default()
                    .entry(key)
                    .or_default()
                    .add(row);
            }
        }
        for (uid, capture) in known {
            if self.query.takes(capture) {
                self.add_capture(capture, parts.remove(uid).unwrap_or_default());
            }
        }
    }

    fn add_capture(&mut self, capture: &CaptureRow, parts: BTreeMap<&str, Part>) {
        let weight = approximate(u128::from(CERTAIN_PER_BILLION.unsigned_abs()))
            / approximate(u128::from(capture.probability_per_billion.max(1).unsigned_abs()));
        let counts = &mut self.counts;
        counts.captures += 1;
        counts.failed += u64::from(!capture.succeeded);
        counts.weight += weight;
        if !capture
            .categories
            .iter()
            .any(|category| self.query.categories.contains(category))
        {
            counts.not_captured += 1;
            return;
        }
        counts.weight_captured += weight;
        counts.window_ns += weight * approximate(u128::from(capture.window_ns.unsigned_abs()));
        let resamples = Resamples::of(&capture.capture_uid, self.bounds.seed, self.bounds.resamples);
        let mut all = Part::default();
        for (key, part) in parts {
            all.merge(part);
            if self.query.group_by == GroupBy::Name && key == OTHER_NAMES {
                self.others.add(part, weight, &resamples);
                continue;
            }
            if !self.groups.contains_key(key) {
                let mut sums = Sums::new(self.bounds.resamples);
                sums.may_miss_ns = self.largest_let_go;
                self.groups.insert(key.to_owned(), sums);
            }
            if let Some(sums) = self.groups.get_mut(key) {
                sums.add(part, weight, &resamples);
            }
            self.keep_within();
        }
        self.all.add(all, weight, &resamples);
    }

    /// Lets the smallest groups go once there are twice as many as are kept.
    fn keep_within(&mut self) {
        if self.groups.len() < self.bounds.groups.max(1).saturating_mul(2) {
            return;
        }
        let mut sizes: Vec<(f64, String)> = self
            .groups
            .iter()
            .map(|(key, sums)| (sums.most_ns(), key.clone()))
            .collect();
        sizes.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        for (most_ns, key) in sizes.into_iter().skip(self.bounds.groups.max(1)) {
            if let Some(sums) = self.groups.remove(&key) {
                self.others.merge(&sums);
                self.let_go += 1;
                self.largest_let_go = self.largest_let_go.max(most_ns);
            }
        }
    }

    /// The `top` largest groups, and all others in one.
    pub fn report(&self, top: usize) -> Report {
        report::report(self, top)
    }
}
