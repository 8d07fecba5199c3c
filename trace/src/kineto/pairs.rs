//! Launches of traces whose GPU work has no correlation ids, as PyTorch wrote them on ROCm for
//! years: the file's arrows pair calls and work, and so does `External id` where a single call has
//! it.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::Failure;
use super::gather::{Gather, OwnedId, OwnedRow};
use super::interner::Interner;
use super::part::{Flow, TIME_BIAS};
use flopwatch_model::{Category, ColumnId, Events, LossReason, RowId};

/// An end of an arrow, by numbers that hold for the whole trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnFlow {
    thread: u32,
    at: i64,
    id: i64,
    begins: bool,
}

/// What joins a call and its work, and who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Arrow(i64),
    External(u64),
}

/// The arrows that begin, or end, at a time of a thread; [`None`] where several do.
type Ends = HashMap<(u32, i64), Option<i64>>;

impl Gather<'_> {
    /// Keeps the arrows of a part as long as no GPU work says its call itself.
    pub(super) fn take_flows(&mut self, correlated: bool, flows: &[Flow<'_>]) -> Result<(), Failure> {
        self.correlated |= correlated;
        if self.correlated {
            self.flows = Vec::new();
            return Ok(());
        }
        self.count(flopwatch_model::count(flows.len()))?;
        for flow in flows {
            let thread = self.mark(flow.process, flow.thread)?;
            self.flows.push(OwnFlow {
                thread,
                at: flow.at,
                id: flow.id,
                begins: flow.begins,
            });
        }
        Ok(())
    }

    /// Gives calls and GPU work correlation ids, where no GPU work has one.
    pub(super) fn pair_launches(&mut self) {
        if self.correlated || self.writer_metadata.is_some() {
            return;
        }
        let [begins, ends] = [true, false].map(|begins| {
            let mut found = Ends::new();
            for flow in self.flows.iter().filter(|flow| flow.begins == begins) {
                match found.entry((flow.thread, flow.at)) {
                    Entry::Occupied(mut known) if *known.get() != Some(flow.id) => {
                        known.insert(None);
                    }
                    Entry::Occupied(_) => {}
                    Entry::Vacant(free) => {
                        free.insert(Some(flow.id));
                    }
                }
            }
            found
        });
        let threads = threads(&self.rows, &self.marked);
        let Some(calls) = self.capture.events.get_mut(&Category::CudaApi) else {
            return;
        };
        let launching = launching(calls, &self.rows, &threads, &begins);
        let (mut by_arrow, mut by_external): (u64, u64) = (0, 0);
        for (category, events) in &mut self.capture.events {
            if !category.is_gpu_work() {
                continue;
            }
            for at in 0..events.len() {
                let Some((key, id)) = keys(events, at, &threads, &ends)
                    .into_iter()
                    .flatten()
                    .find_map(|key| Some((key, (*launching.get(&key)?)?)))
                else {
                    continue;
                };
                if let Some(correlation) = events.correlation.get_mut(at) {
                    *correlation = id;
                }
                match key {
                    Key::Arrow(_) => by_arrow += 1,
                    Key::External(_) => by_external += 1,
                }
            }
        }
        for (what, count) in [
            ("launches found by arrows, without correlation ids", by_arrow),
            ("launches found by External id, without correlation ids", by_external),
        ] {
            self.capture.losses.add(LossReason::Inferred, what, count);
        }
    }
}

/// The number of each row's thread, where an arrow is at it.
fn threads(rows: &[OwnedRow], marked: &Interner<(OwnedId, OwnedId)>) -> Vec<Option<u32>> {
    let thread = |row: &OwnedRow| marked.get(&(row.process.clone(), row.thread.clone()));
    rows.iter().map(thread).collect()
}

/// What may join an event to its call or work, the surest first.
fn keys(events: &Events, at: usize, threads: &[Option<u32>], arrows: &Ends) -> [Option<Key>; 2] {
    let start = events.start_ns.get(at);
    let start = start.map(|start| (start ^ TIME_BIAS).cast_signed());
    let row = events.row.get(at);
    let thread = row.and_then(|row| threads.get(row.index()).copied().flatten());
    let arrow = thread.zip(start).and_then(|end| *arrows.get(&end)?);
    let external = events.column(ColumnId::ExternalId).and_then(|ids| ids.get(at));
    [arrow.map(Key::Arrow), external.filter(|id| *id != 0).map(Key::External)]
}

/// The correlation ids of calls, by what joins them to work; those that have none get what joins
/// them. What several calls of one process share joins nothing, and neither does what calls of
/// several processes know by different ids ([`None`]).
fn launching(
    calls: &mut Events,
    rows: &[OwnedRow],
    threads: &[Option<u32>],
    arrows: &Ends,
) -> HashMap<Key, Option<u32>> {
    let of_call: Vec<[Option<Key>; 2]> = (0..calls.len()).map(|at| keys(calls, at, threads, arrows)).collect();
    let nobody = OwnedId::None;
    let of_row = |row: &RowId| rows.get(row.index()).map_or(&nobody, |row| &row.process);
    let mut counts: BTreeMap<(Key, &OwnedId), u64> = BTreeMap::new();
    for (row, keys) in calls.row.iter().zip(&of_call) {
        for key in keys.iter().flatten() {
            *counts.entry((*key, of_row(row))).or_default() += 1;
        }
    }
    let mut found: HashMap<Key, Option<u32>> = HashMap::new();
    for ((row, correlation), keys) in calls.row.iter().zip(&mut calls.correlation).zip(&of_call) {
        let process = of_row(row);
        let joins = |key: &&Key| {
            // One number must not stand for an arrow and for another call's `External id`.
            let is_of_arrow = match key {
                Key::Arrow(_) => false,
                Key::External(id) => {
                    let arrow = i64::try_from(*id).map(Key::Arrow);
                    arrow.is_ok_and(|arrow| !keys.contains(&Some(arrow)) && counts.contains_key(&(arrow, process)))
                }
            };
            !is_of_arrow && counts.get(&(**key, process)) == Some(&1)
        };
        let joining: Vec<Key> = keys.iter().flatten().filter(joins).copied().collect();
        if *correlation == 0 {
            *correlation = joining.first().and_then(|key| key.number()).unwrap_or(0);
        }
        let id = *correlation;
        for key in joining.into_iter().filter(|_| id != 0) {
            found
                .entry(key)
                .and_modify(|known| *known = known.filter(|known| *known == id))
                .or_insert(Some(id));
        }
    }
    found
}

impl Key {
    /// The number that says it, as a correlation id.
    fn number(self) -> Option<u32> {
        match self {
            Self::Arrow(id) => u32::try_from(id).ok(),
            Self::External(id) => u32::try_from(id).ok(),
        }
    }
}
