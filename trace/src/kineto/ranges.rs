//! Ranges that were written as a begin and an end, in any order: the format asks for none.

use std::collections::BTreeMap;

use super::Failure;
use super::gather::Gather;
use super::part::Edge;
use flopwatch_model::{Category, LossReason, count};

/// Half of a range, by numbers that hold for the whole trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnedEdge {
    thread: u32,
    at: i64,
    /// [`None`] of an end that says no name.
    name: Option<u32>,
    /// Of a begin: the category of the event that it became, and its place there.
    begun: Option<(Category, usize)>,
}

/// A range whose end was not found yet.
#[derive(Debug, Clone, Copy)]
struct OpenRange {
    name: Option<u32>,
    at: i64,
    event: (Category, usize),
}

/// How many ranges around the innermost one an end may belong to: those of a thread nest but for a
/// few.
const MAX_OPEN_RANGES: usize = 64;

impl Gather<'_> {
    /// Keeps the edges of a part, before whose events there were so many of each category.
    pub(super) fn take_edges(&mut self, edges: &[Edge<'_>], before: &BTreeMap<Category, usize>) -> Result<(), Failure> {
        for edge in edges {
            let thread = self.mark(edge.process, edge.thread)?;
            let name = if edge.name.is_empty() {
                None
            } else {
                let (number, is_new) = self.edge_names.take(edge.name.to_vec());
                if is_new {
                    self.take(edge.name.len())?;
                }
                Some(number)
            };
            let begun = edge.begun.map(|(category, at)| {
                let first = before.get(&category).copied().unwrap_or(0);
                (category, first.saturating_add(at))
            });
            self.edges.push(OwnedEdge {
                thread,
                at: edge.at,
                name,
                begun,
            });
        }
        // Begins are events already.
        let limit = self.limits.max_events;
        if count(self.edges.len()) > limit.saturating_mul(2) {
            return Err(Failure::TooMany {
                what: "begins and ends of ranges",
                limit: limit.saturating_mul(2),
            });
        }
        Ok(())
    }

    /// Gives ranges their lengths, once all events are appended. On each thread, in the order of
    /// time, an end belongs to the last begin of its name that has none, or to the last begin where
    /// it says no name that is known; what has none ends with the last begin or end of the file.
    pub(super) fn close_ranges(&mut self) {
        let mut edges = std::mem::take(&mut self.edges);
        // What happens at one time stays in the order of the text.
        edges.sort_by_key(|edge| (edge.thread, edge.at));
        let last = edges.iter().map(|edge| edge.at).max().unwrap_or(0);
        let (mut endless, mut beginless): (u64, u64) = (0, 0);
        let mut open: Vec<OpenRange> = Vec::new();
        for thread in edges.chunk_by(|a, b| a.thread == b.thread) {
            for edge in thread {
                if let Some(event) = edge.begun {
                    let OwnedEdge { name, at, .. } = *edge;
                    open.push(OpenRange { name, at, event });
                    continue;
                }
                let mut around = open.iter().rev().take(MAX_OPEN_RANGES);
                let named = edge.name.and_then(|name| around.position(|of| of.name == Some(name)));
                let Some(at) = open.len().checked_sub(1 + named.unwrap_or(0)) else {
                    beginless += 1;
                    continue;
                };
                let begun = open.remove(at);
                self.end_range(begun, edge.at);
            }
            for begun in open.drain(..) {
                endless += 1;
                self.end_range(begun, last);
            }
        }
        let losses = [
            (LossReason::Truncated, "ranges that had not ended", endless),
            (LossReason::Skipped, "ends of ranges that did not begin", beginless),
        ];
        for (reason, what, count) in losses {
            self.capture.losses.add(reason, what, count);
        }
    }

    fn end_range(&mut self, begun: OpenRange, end: i64) {
        let (category, at) = begun.event;
        let events = self.capture.events.get_mut(&category);
        if let Some(duration) = events.and_then(|events| events.duration_ns.get_mut(at)) {
            *duration = end.abs_diff(begun.at);
        }
    }
}
