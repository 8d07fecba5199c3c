//! What times an event may have: one rule for all readers.
//!
//! A profiler may say of an event that it began in 1970 or lasts for 236 years. Such an event alone
//! would make the capture's length, its idle time and its shares, so it is left out and counted.
//! What is possible is judged by the session's bounds, where the source states them, and otherwise
//! by the neighbors: the largest group of events of which none begins more than a day behind the
//! one before.
//!
//! - **Work of a GPU** is recorded from its begin to its end: it lies within the bounds.
//! - **Everything else** may have begun long before: a range around the whole program, a function
//!   that ran when the capture began. It ends within the bounds, and is no longer than a year.
//! - **On one stream** work runs in its order. What ends behind work that began later on its stream
//!   is cut where that began. Nodes of graphs are left alone: branches of a graph may run side by
//!   side.
//!
//! Both sides have room: clocks of CPU and GPU differ by milliseconds, a wait may be the last thing
//! in a capture, and a session may hold hours in which nothing happens.

mod bounds;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;

use bounds::{Bounds, NS_PER_SECOND};
use flopwatch_model::{Capture, Category, Events, Loss, LossReason, count};

/// Leaves out the events of `capture` whose times cannot be, cuts those that run on, and counts
/// both. Gives the categories that lost all their events: nothing is known of them, so that they
/// were not captured.
///
/// Starts are on any scale that keeps their order; `zero` is the zero of the source's clock on it,
/// and `stated` is when the session ran, where the source says that. Rows must be there.
pub(crate) fn remove_impossible_times(
    capture: &mut Capture,
    zero: u64,
    stated: Option<Range<u64>>,
) -> BTreeSet<Category> {
    let mut emptied = BTreeSet::new();
    if has_untimed(&capture.events, zero) {
        leave_out(capture, &mut emptied, |category, start, length| {
            (category.is_gpu_work() && (start, length) == (zero, 0)).then_some(Loss::UNTIMED)
        });
    }
    if let Some(bounds) = Bounds::of(&capture.events, stated) {
        leave_out(capture, &mut emptied, |category, start, length| {
            bounds.fault(category.is_gpu_work(), start, length)
        });
    }
    streams::cut(capture);
    emptied
}

/// When samples and what allocators did may have been: as others than GPU work, around the events
/// that are there. `None` without events.
pub(crate) fn possible_times(capture: &Capture) -> Option<RangeInclusive<u64>> {
    bounds::around(&capture.events)
}

/// Counts samples, or whatever else has times, that lie outside of [`possible_times`].
pub(crate) fn count_loss(capture: &mut Capture, what: &str, lost: usize) {
    let what = format!("{what}: {}", Loss::AWAY);
    capture.losses.add(LossReason::Skipped, &what, count(lost));
}

type ByCategory = BTreeMap<Category, Events>;

/// Times at or behind this, in ns, count from the Unix epoch: it is 2001, and no machine runs for
/// 31 years.
pub(crate) const MIN_UNIX_NS: i64 = 1_000_000_000_000_000_000;

/// The end of the last event.
pub(crate) fn last_end(events: &ByCategory) -> Option<u64> {
    events.values().filter_map(Events::last_end_ns).max()
}

/// The end of the last event or sample; 0 without any.
pub(crate) fn last_moment(capture: &Capture) -> u64 {
    let samples = capture.counters.iter().filter_map(|series| series.t_ns.last().copied());
    samples.chain(last_end(&capture.events)).max().unwrap_or(0)
}

/// Whether there is GPU work of begin 0 and length 0, and everything else begins at least a second
/// later.
fn has_untimed(events: &ByCategory, zero: u64) -> bool {
    let later = zero.saturating_add(NS_PER_SECOND);
    let mut found = false;
    for (category, events) in events {
        let times = events.start_ns.iter().zip(&events.duration_ns);
        let early = times.filter(|(start, _)| **start < later);
        for (start, length) in early {
            if !category.is_gpu_work() || (*start, *length) != (zero, 0) {
                return false;
            }
            found = true;
        }
    }
    found
}

/// Leaves out the events in which `fault` finds one.
fn leave_out(
    capture: &mut Capture,
    emptied: &mut BTreeSet<Category>,
    fault: impl Fn(Category, u64, u64) -> Option<&'static str> + Sync,
) {
    for (category, events) in &mut capture.events {
        let times = events.start_ns.par_iter().zip(&events.duration_ns);
        let faults: Vec<Option<&str>> = times
            .with_min_len(1 << 14)
            .map(|(start, length)| fault(*category, *start, *length))
            .collect();
        if faults.iter().all(Option::is_none) {
            continue;
        }
        for kind in [Loss::AWAY, Loss::TOO_LONG, Loss::UNTIMED] {
            let of_kind = faults.iter().filter(|fault| **fault == Some(kind)).count();
            let what = format!("{}: {kind}", category.name());
            capture.losses.add(LossReason::Skipped, &what, count(of_kind));
        }
        let keep: Vec<bool> = faults.iter().map(Option::is_none).collect();
        events.retain(&keep);
        if events.is_empty() {
            emptied.insert(*category);
        }
    }
    capture.events.retain(|_, events| !events.is_empty());
}

#[cfg(test)]
mod tests;
