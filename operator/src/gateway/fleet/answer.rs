//! The sums of a fleet as clients read them.

use flopwatch_fleet::{Estimate, Figures, ObservedSums, Report};
use serde::Serialize;
use utoipa::ToSchema;

use super::question::TopBy;
use super::read::{FleetSums, Unread};

/// What was asked for.
#[derive(Debug)]
pub(super) struct About {
    pub(super) by: TopBy,
    pub(super) namespace: Option<String>,
    pub(super) since: String,
    pub(super) until: String,
    pub(super) drawn_only: bool,
}

/// What a fleet spends most time on, how sure that is, and what is not in it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetTop {
    /// What makes a group.
    by: TopBy,
    /// The namespace whose captures count; absent: those of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// Windows count that began from here on (RFC 3339).
    since: String,
    /// Windows count that began before this (RFC 3339).
    until: String,
    /// Whether only captures count that a schedule drew.
    drawn_only: bool,
    /// Captures that count, those that failed included.
    captures: u64,
    /// Captures that did not succeed.
    failed: u64,
    /// Captures that hold nothing of this kind: it was not recorded, or they failed.
    not_captured: u64,
    /// Captures of the time that no schedule drew. They stand for themselves alone, and are no
    /// sample of the fleet.
    not_drawn: u64,
    /// The share of all windows, each by its weight, that hold this kind. Sums are too low by it.
    /// `null` without captures.
    captured_share: Option<f64>,
    /// Windows that hold this kind, added up over the fleet, in ns.
    window_ns: f64,
    /// Captures that were there more than once, and counted once.
    repeated: u64,
    /// Captures whose rows are not there yet, or were lost before; they count as not captured.
    captures_without_rows: u64,
    /// Files of rows whose capture is not there yet, or was lost before; they do not count.
    rows_without_capture: u64,
    /// Files that could not be read, by reason; they do not count.
    unread: Vec<FleetUnread>,
    /// The largest groups, the largest first.
    groups: Vec<FleetGroup>,
    /// All other groups together.
    others: FleetGroup,
    /// How many the others are.
    other_groups: u64,
    /// Everything together.
    all: FleetGroup,
}

/// Files that could not be read for one reason.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetUnread {
    /// The reason, in a sentence.
    reason: String,
    /// How many.
    files: u64,
    /// One of them.
    example: String,
}

/// Figures of one group.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetGroup {
    /// Name of the kernel or range, or the image; empty of others and all.
    key: String,
    /// Captures that hold it; `null` of the others, which are not told apart.
    captures: Option<u64>,
    /// Its time over the fleet, in ns.
    total_ns: FleetEstimate,
    /// Its calls over the fleet.
    calls: FleetEstimate,
    /// Its time as a share of that of all groups, 0 to 1.
    share: FleetEstimate,
    /// The same of the captures alone, without weights.
    observed: FleetObserved,
    /// How much of `total_ns` may be missing at most, in ns, because there were too many groups to
    /// keep all apart.
    may_miss_ns: f64,
}

/// A figure of the fleet.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetEstimate {
    /// The estimate; `null` of a share of nothing.
    value: Option<f64>,
    /// Lower end of its 95 % interval; `null` of fewer than eight captures.
    low: Option<f64>,
    /// Upper end of it.
    high: Option<f64>,
}

/// Sums of captures as they are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetObserved {
    /// Time in ns.
    total_ns: u64,
    /// Calls.
    calls: u64,
    /// Share of the time, 0 to 1; `null` of nothing.
    share: Option<f64>,
}

impl FleetTop {
    pub(super) fn of(about: About, found: &FleetSums, limit: usize) -> Self {
        let Report {
            captures,
            failed,
            not_captured,
            captured_share,
            repeated,
            rows_without_capture,
            window_ns,
            groups,
            others,
            other_groups,
            all,
        } = found.totals.report(limit);
        let unread = found
            .unread
            .iter()
            .map(|(reason, unread)| FleetUnread::of(reason, unread));
        Self {
            by: about.by,
            namespace: about.namespace,
            since: about.since,
            until: about.until,
            drawn_only: about.drawn_only,
            captures,
            failed,
            not_captured,
            not_drawn: found.not_drawn,
            captured_share,
            window_ns,
            repeated: repeated + found.repeated,
            captures_without_rows: found.captures_without_rows,
            rows_without_capture: rows_without_capture + found.rows_without_capture,
            unread: unread.collect(),
            groups: groups.into_iter().map(FleetGroup::from).collect(),
            others: others.into(),
            other_groups,
            all: all.into(),
        }
    }
}

impl FleetUnread {
    fn of(reason: &str, unread: &Unread) -> Self {
        Self {
            reason: reason.to_owned(),
            files: unread.files,
            example: unread.example.clone(),
        }
    }
}

impl From<Figures> for FleetGroup {
    fn from(figures: Figures) -> Self {
        let Figures {
            key,
            captures,
            total_ns,
            calls,
            share,
            observed,
            may_miss_ns,
        } = figures;
        Self {
            key,
            captures,
            total_ns: total_ns.into(),
            calls: calls.into(),
            share: share.into(),
            observed: observed.into(),
            may_miss_ns,
        }
    }
}

impl From<Estimate> for FleetEstimate {
    fn from(estimate: Estimate) -> Self {
        Self {
            value: estimate.value,
            low: estimate.interval.map(|(low, _)| low),
            high: estimate.interval.map(|(_, high)| high),
        }
    }
}

impl From<ObservedSums> for FleetObserved {
    fn from(observed: ObservedSums) -> Self {
        let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        Self {
            total_ns: whole(observed.total_ns),
            calls: whole(observed.calls),
            share: observed.share,
        }
    }
}
