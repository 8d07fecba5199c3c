//! Attributes GPU work to processes: events of GPU work name a device, and only calls name their
//! process.
//!
//! A trace of one process needs no decision. Where several processes called a GPU, an owner is
//! found by the names of processes (`[TP01] 1` is a GPU of `[TP01] 4001`), then by correlation ids
//! that only one of them has, then by the position of the work in the file, then by the rule that
//! no work begins before its call. Work without an owner is counted as a loss.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

use super::Failure;
use super::event::Id;
use super::gather::{Gather, OwnedId, OwnedRow, next_row};
use super::part::is_of_gpu;
use flopwatch_model::{Capture, Category, Events, LossReason, RowId, count, index};

/// Owner of an event that none of the candidate processes owns.
const NOBODY: u32 = u32::MAX;

/// The evidence by which the owner of an event was found.
#[derive(Debug, Clone, Copy)]
enum Evidence {
    Names,
    Calls,
    FileOrder,
    Times,
    Gpu,
}

impl Evidence {
    const fn description(self) -> &'static str {
        match self {
            Self::Names => "GPU work given to one of several processes by their names",
            Self::Calls => "GPU work given to one of several processes by correlation ids",
            Self::FileOrder => "GPU work given to one of several processes by the order of the file",
            Self::Times => "GPU work given to one of several processes by when calls began",
            Self::Gpu => "GPU work given to one of several processes by what else its GPU did",
        }
    }
}

/// Start in ns of the first call of a process, by correlation id.
type Calls = HashMap<u32, u64>;

/// The candidates for the owner of a row's work.
#[derive(Debug, Clone)]
enum Owner {
    /// One process, and whether it was found by its name.
    Known(OwnedId, bool),
    /// One of several processes, by their indices among the callers.
    OneOf(Vec<usize>),
}

impl Gather<'_> {
    /// Decides which process each GPU row belongs to. Rows whose events belong to several processes
    /// become several rows.
    pub(super) fn find_owners(&mut self) -> Result<(), Failure> {
        let callers = self.callers();
        let owners = owners(&self.rows, &callers);
        let mut evidence_counts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut search = OwnerSearch {
            callers: &callers,
            calls: vec![Calls::new(); callers.len()],
            in_blocks: !self.returned,
            rows: &self.rows,
            owners: &owners,
        };
        let is_open = owners.iter().any(|owner| matches!(owner, Some(Owner::OneOf(_))));
        if is_open {
            search.take_calls(&self.capture);
        }
        let answers = if is_open {
            search.find_owners(&self.capture, &mut evidence_counts)
        } else {
            BTreeMap::new()
        };
        count_named(&self.capture, &owners, &mut evidence_counts);
        for (what, count) in evidence_counts {
            self.capture.losses.add(LossReason::Inferred, what, count);
        }
        for (row, owner) in self.rows.iter_mut().zip(owners) {
            if let Some(Owner::Known(owner, _)) = owner {
                row.owner = owner;
            }
        }
        let mut splits = RowSplits::default();
        for (category, answers) in &answers {
            self.split_rows(*category, answers, &callers, &mut splits)?;
        }
        Ok(())
    }

    /// The processes that called a GPU; where none did, those that have operators.
    fn callers(&self) -> Vec<OwnedId> {
        for category in [Category::CudaApi, Category::CpuOp] {
            let Some(events) = self.capture.events.get(&category) else {
                continue;
            };
            let mut has_events = vec![false; self.rows.len()];
            for row in &events.row {
                if let Some(has) = has_events.get_mut(row.index()) {
                    *has = true;
                }
            }
            let rows = self.rows.iter().zip(has_events).filter(|(_, has)| *has);
            let callers: BTreeSet<&OwnedId> = rows.map(|(row, _)| &row.process).collect();
            if !callers.is_empty() {
                return callers.into_iter().cloned().collect();
            }
        }
        Vec::new()
    }

    /// Moves the events of a category to rows of their owners. `answers` has the caller's index per
    /// event, [`NOBODY`] or `None`.
    fn split_rows(
        &mut self,
        category: Category,
        answers: &[Option<u32>],
        callers: &[OwnedId],
        splits: &mut RowSplits,
    ) -> Result<(), Failure> {
        let Some(events) = self.capture.events.get_mut(&category) else {
            return Ok(());
        };
        let mut unclear = 0;
        for (row, answer) in events.row.iter_mut().zip(answers) {
            let Some(answer) = *answer else { continue };
            unclear += u64::from(answer == NOBODY);
            if let Some(own) = splits.rows.get(&(*row, answer)) {
                *row = *own;
                continue;
            }
            let rows = self.rows.len();
            let Some(from) = self.rows.get_mut(row.index()) else {
                continue;
            };
            let owner = match callers.get(index(answer)) {
                Some(owner) => owner.clone(),
                None => nobody(&from.process),
            };
            // The first owner has the row itself, so that none is without events.
            if splits.owned_rows.insert(*row) {
                from.owner = owner;
                splits.rows.insert((*row, answer), *row);
                continue;
            }
            let next = next_row(rows, self.limits)?;
            let more = OwnedRow { owner, ..from.clone() };
            self.rows.push(more);
            splits.rows.insert((*row, answer), next);
            *row = next;
        }
        let what = "launches of GPU work that may be of any of several processes";
        self.capture.losses.add(LossReason::Truncated, what, unclear);
        Ok(())
    }
}

/// The rows into which rows of several owners were split.
#[derive(Debug, Default)]
struct RowSplits {
    /// The new row by the old row and the owner.
    rows: HashMap<(RowId, u32), RowId>,
    /// Old rows that stayed with their first owner.
    owned_rows: HashSet<RowId>,
}

/// The rows whose owner is open, and the evidence to decide by.
struct OwnerSearch<'a> {
    callers: &'a [OwnedId],
    calls: Vec<Calls>,
    /// Whether each process's calls and operators are in one block of the file.
    in_blocks: bool,
    rows: &'a [OwnedRow],
    owners: &'a [Option<Owner>],
}

impl OwnerSearch<'_> {
    fn take_calls(&mut self, capture: &Capture) {
        let Some(events) = capture.events.get(&Category::CudaApi) else {
            return;
        };
        let caller = |row: &OwnedRow| self.callers.binary_search(&row.process).ok();
        let of_rows: Vec<Option<usize>> = self.rows.iter().map(caller).collect();
        for ((row, correlation), start) in events.row.iter().zip(&events.correlation).zip(&events.start_ns) {
            let caller = of_rows.get(row.index()).copied().flatten();
            if *correlation != 0
                && let Some(calls) = caller.and_then(|caller| self.calls.get_mut(caller))
            {
                let first = calls.entry(*correlation).or_insert(*start);
                *first = (*first).min(*start);
            }
        }
    }

    /// Owner of each event that one of several processes may own, as the caller's index or
    /// [`NOBODY`]; [`None`] for all other events. Counts each piece of evidence in
    /// `evidence_counts`.
    fn find_owners(
        &self,
        capture: &Capture,
        evidence_counts: &mut BTreeMap<&str, u64>,
    ) -> BTreeMap<Category, Vec<Option<u32>>> {
        let mut answers = BTreeMap::new();
        let mut of_gpu: BTreeMap<(&OwnedId, Option<u32>), BTreeSet<u32>> = BTreeMap::new();
        for (category, events) in &capture.events {
            let mut found = vec![None; events.len()];
            for (at, found) in found.iter_mut().enumerate() {
                let Some((row, candidates)) = self.open_row(events, at) else {
                    continue;
                };
                let one = match self.match_owner(events, at, row, candidates) {
                    OwnerMatch::One(caller, evidence) => {
                        *evidence_counts.entry(evidence.description()).or_default() += 1;
                        u32::try_from(caller).unwrap_or(NOBODY)
                    }
                    OwnerMatch::Several => NOBODY,
                    OwnerMatch::Nothing => {
                        *found = Some(NOBODY);
                        continue;
                    }
                };
                *found = Some(one);
                of_gpu.entry((&row.process, row.device)).or_default().insert(one);
            }
            if found.iter().any(Option::is_some) {
                answers.insert(*category, found);
            }
        }
        // Where all work of a GPU that has a call is of one process, so is what has none.
        for (category, found) in &mut answers {
            let Some(events) = capture.events.get(category) else {
                continue;
            };
            for (at, found) in found
                .iter_mut()
                .enumerate()
                .filter(|(_, found)| **found == Some(NOBODY))
            {
                let Some((row, candidates)) = self.open_row(events, at) else {
                    continue;
                };
                let known = of_gpu.get(&(&row.process, row.device)).filter(|known| known.len() == 1);
                let one = known.and_then(BTreeSet::first).copied();
                if let Some(one) = one.filter(|one| candidates.contains(&index(*one))) {
                    *found = Some(one);
                    *evidence_counts.entry(Evidence::Gpu.description()).or_default() += 1;
                }
            }
        }
        answers
    }

    /// The row of an event and the candidates for its owner; `None` where the owner is known.
    fn open_row(&self, events: &Events, at: usize) -> Option<(&OwnedRow, &[usize])> {
        let row = events.row.get(at)?.index();
        match self.owners.get(row)?.as_ref()? {
            Owner::OneOf(candidates) => Some((self.rows.get(row)?, candidates.as_slice())),
            Owner::Known(..) => None,
        }
    }

    /// The one of `candidates` that owns an event, and the evidence.
    fn match_owner(&self, events: &Events, at: usize, row: &OwnedRow, candidates: &[usize]) -> OwnerMatch {
        let Some((correlation, start)) = events.correlation.get(at).zip(events.start_ns.get(at)) else {
            return OwnerMatch::Nothing;
        };
        let call = |caller: usize| self.calls.get(caller)?.get(correlation).copied();
        let calling: Vec<usize> = candidates.iter().copied().filter(|one| call(*one).is_some()).collect();
        if let [one] = calling[..] {
            return OwnerMatch::One(one, Evidence::Calls);
        }
        let possible = if calling.is_empty() {
            candidates
        } else {
            calling.as_slice()
        };
        let behind = self.callers.binary_search(&row.behind).ok();
        if let Some(behind) = behind.filter(|behind| self.in_blocks && possible.contains(behind)) {
            return OwnerMatch::One(behind, Evidence::FileOrder);
        }
        let began = |one: &&usize| call(**one).is_some_and(|call| call <= *start);
        let before: Vec<usize> = calling.iter().filter(began).copied().collect();
        match before[..] {
            [one] => OwnerMatch::One(one, Evidence::Times),
            _ if calling.is_empty() => OwnerMatch::Nothing,
            _ => OwnerMatch::Several,
        }
    }
}

/// The outcome of the search for an event's owner.
enum OwnerMatch {
    /// One caller owns the event.
    One(usize, Evidence),
    /// Several callers have a call with the event's correlation id.
    Several,
    /// No caller has a call with the event's correlation id.
    Nothing,
}

/// The prefix of a process's name before its trailing number; empty where there is none.
pub(super) fn group(process: &OwnedId) -> &[u8] {
    match process.borrow() {
        Id::Text(text) => {
            let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            text.get(..text.len() - digits).unwrap_or_default()
        }
        Id::None | Id::Number(_) => &[],
    }
}

/// The process of work that no known process owns: the text that the source has in place of a
/// process, unless it is the number of a device.
fn nobody(process: &OwnedId) -> OwnedId {
    match process {
        OwnedId::Text(_) => process.clone(),
        OwnedId::None | OwnedId::Number(_) => OwnedId::None,
    }
}

/// The candidates for the owner of each row's work; [`None`] for rows of no GPU.
fn owners(rows: &[OwnedRow], callers: &[OwnedId]) -> Vec<Option<Owner>> {
    let of_callers: BTreeSet<&[u8]> = callers.iter().map(group).filter(|group| !group.is_empty()).collect();
    // Names are told apart by how they begin only where processes and GPUs begin alike at all.
    let of_gpus = || {
        rows.iter()
            .filter(|row| is_of_gpu(row.track))
            .map(|row| group(&row.process))
    };
    let in_groups = of_gpus().any(|group| of_callers.contains(group));
    let owner = |row: &OwnedRow| {
        if !is_of_gpu(row.track) {
            return None;
        }
        if callers.binary_search(&row.process).is_ok() {
            return Some(Owner::Known(row.process.clone(), false));
        }
        let named = group(&row.process);
        let by_name = in_groups && !named.is_empty();
        let candidates = callers.iter().enumerate();
        let candidates = candidates.filter(|(_, caller)| !by_name || group(caller) == named);
        let candidates: Vec<usize> = candidates.map(|(at, _)| at).collect();
        Some(match candidates[..] {
            [] => Owner::Known(nobody(&row.process), false),
            [one] => {
                let owner = callers.get(one).cloned().unwrap_or(OwnedId::None);
                Owner::Known(owner, callers.len() > 1)
            }
            _ => Owner::OneOf(candidates),
        })
    };
    rows.iter().map(owner).collect()
}

/// Counts the work whose owner was found by names.
fn count_named(capture: &Capture, owners: &[Option<Owner>], evidence_counts: &mut BTreeMap<&str, u64>) {
    if !owners.iter().any(|owner| matches!(owner, Some(Owner::Known(_, true)))) {
        return;
    }
    let is_named = |row: &&RowId| matches!(owners.get(row.index()), Some(Some(Owner::Known(_, true))));
    let events = capture.events.values();
    let named: usize = events.map(|events| events.row.iter().filter(is_named).count()).sum();
    *evidence_counts.entry(Evidence::Names.description()).or_default() += count(named);
}
