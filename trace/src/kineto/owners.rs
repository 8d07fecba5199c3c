//! Which process GPU work belongs to: its events name a device where calls name their process.
//!
//! Of a trace of one process nothing has to be decided. Where several processes called a GPU, the
//! names of their processes tell (`[TP01] 1` is a GPU of `[TP01] 4001`), then correlation ids that
//! one of them alone has, then where in the file the work stands, then that no work begins before
//! its call. What nothing tells belongs to none of them, and is counted.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

use super::Failure;
use super::event::Id;
use super::gather::{Gather, OwnId, OwnRow};
use super::part::is_of_gpu;
use flopwatch_model::{Capture, Category, Events, LossReason, count, index};

/// Of an event that belongs to none of the processes that may own it.
const NOBODY: u32 = u32::MAX;

/// What told the owner of an event.
#[derive(Debug, Clone, Copy)]
enum Evidence {
    Names,
    Calls,
    Place,
    Times,
    Gpu,
}

impl Evidence {
    const fn told(self) -> &'static str {
        match self {
            Self::Names => "GPU work given to one of several processes by their names",
            Self::Calls => "GPU work given to one of several processes by correlation ids",
            Self::Place => "GPU work given to one of several processes by the order of the file",
            Self::Times => "GPU work given to one of several processes by when calls began",
            Self::Gpu => "GPU work given to one of several processes by what else its GPU did",
        }
    }
}

/// The calls of a process by correlation id: when the first one begins.
type Calls = HashMap<u32, u64>;

/// Who may own the work of a row.
#[derive(Debug, Clone)]
enum Owner {
    /// One process; whether its name told it.
    Known(OwnId, bool),
    /// One of these, by their numbers among the callers.
    OneOf(Vec<usize>),
}

impl Gather<'_> {
    /// Decides which process each GPU row belongs to. Rows whose events belong to several processes
    /// become several rows.
    pub(super) fn find_owners(&mut self) -> Result<(), Failure> {
        let callers = self.callers();
        let owners = owners(&self.rows, &callers);
        let mut told: BTreeMap<&str, u64> = BTreeMap::new();
        let mut question = Question {
            callers: &callers,
            calls: vec![Calls::new(); callers.len()],
            in_blocks: !self.returned,
            rows: &self.rows,
            owners: &owners,
        };
        let is_open = owners.iter().any(|owner| matches!(owner, Some(Owner::OneOf(_))));
        if is_open {
            question.take_calls(&self.capture);
        }
        let answers = if is_open {
            question.answer(&self.capture, &mut told)
        } else {
            BTreeMap::new()
        };
        count_named(&self.capture, &owners, &mut told);
        for (what, count) in told {
            self.capture.drops.add(LossReason::Inferred, what, count);
        }
        for (row, owner) in self.rows.iter_mut().zip(owners) {
            if let Some(Owner::Known(owner, _)) = owner {
                row.owner = owner;
            }
        }
        let mut divided = Divided::default();
        for (category, answers) in &answers {
            self.divide(*category, answers, &callers, &mut divided)?;
        }
        Ok(())
    }

    /// The processes that called a GPU; where none did, those that have operators.
    fn callers(&self) -> Vec<OwnId> {
        for category in [Category::CudaApi, Category::CpuOp] {
            let Some(events) = self.capture.events.get(&category) else {
                continue;
            };
            let mut has_events = vec![false; self.rows.len()];
            for row in &events.row {
                if let Some(has) = has_events.get_mut(index(*row)) {
                    *has = true;
                }
            }
            let rows = self.rows.iter().zip(has_events).filter(|(_, has)| *has);
            let callers: BTreeSet<&OwnId> = rows.map(|(row, _)| &row.process).collect();
            if !callers.is_empty() {
                return callers.into_iter().cloned().collect();
            }
        }
        Vec::new()
    }

    /// Gives the events of a category rows of their owners.
    fn divide(
        &mut self,
        category: Category,
        answers: &[Option<u32>],
        callers: &[OwnId],
        divided: &mut Divided,
    ) -> Result<(), Failure> {
        let Some(events) = self.capture.events.get_mut(&category) else {
            return Ok(());
        };
        let mut unclear = 0;
        for (row, answer) in events.row.iter_mut().zip(answers) {
            let Some(answer) = *answer else { continue };
            unclear += u64::from(answer == NOBODY);
            if let Some(own) = divided.rows.get(&(*row, answer)) {
                *row = *own;
                continue;
            }
            let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
            let Some(from) = self.rows.get_mut(index(*row)) else {
                continue;
            };
            let owner = match callers.get(index(answer)) {
                Some(owner) => owner.clone(),
                None => nobody(&from.process),
            };
            // The first owner has the row itself, so that none is without events.
            if divided.taken.insert(*row) {
                from.owner = owner;
                divided.rows.insert((*row, answer), *row);
                continue;
            }
            if next >= self.limits.max_rows {
                return Err(Failure::TooMany {
                    what: "streams and threads",
                    limit: u64::from(self.limits.max_rows),
                });
            }
            let more = OwnRow { owner, ..from.clone() };
            self.rows.push(more);
            divided.rows.insert((*row, answer), next);
            *row = next;
        }
        let what = "launches of GPU work that may be of any of several processes";
        self.capture.drops.add(LossReason::Truncated, what, unclear);
        Ok(())
    }
}

/// Which rows the events of a row went to.
#[derive(Debug, Default)]
struct Divided {
    /// By the row and the owner.
    rows: HashMap<(u32, u32), u32>,
    /// Rows that have an owner.
    taken: HashSet<u32>,
}

/// What is to be decided, and what there is to decide it by.
struct Question<'a> {
    callers: &'a [OwnId],
    calls: Vec<Calls>,
    /// Whether each process's calls and operators stand together in the file.
    in_blocks: bool,
    rows: &'a [OwnRow],
    owners: &'a [Option<Owner>],
}

impl Question<'_> {
    fn take_calls(&mut self, capture: &Capture) {
        let Some(events) = capture.events.get(&Category::CudaApi) else {
            return;
        };
        let caller = |row: &OwnRow| self.callers.binary_search(&row.process).ok();
        let of_rows: Vec<Option<usize>> = self.rows.iter().map(caller).collect();
        for ((row, correlation), start) in events.row.iter().zip(&events.correlation).zip(&events.start_ns) {
            let caller = of_rows.get(index(*row)).copied().flatten();
            if *correlation != 0
                && let Some(calls) = caller.and_then(|caller| self.calls.get_mut(caller))
            {
                let first = calls.entry(*correlation).or_insert(*start);
                *first = (*first).min(*start);
            }
        }
    }

    /// Whose each event is that one of several processes may own, by its number among the callers;
    /// [`None`] of all others.
    fn answer(&self, capture: &Capture, told: &mut BTreeMap<&str, u64>) -> BTreeMap<Category, Vec<Option<u32>>> {
        let mut answers = BTreeMap::new();
        let mut of_gpu: BTreeMap<(&OwnId, Option<u32>), BTreeSet<u32>> = BTreeMap::new();
        for (category, events) in &capture.events {
            let mut found = vec![None; events.len()];
            for (at, found) in found.iter_mut().enumerate() {
                let Some((row, candidates)) = self.open_row(events, at) else {
                    continue;
                };
                let one = match self.one(events, at, row, candidates) {
                    Told::One(caller, evidence) => {
                        *told.entry(evidence.told()).or_default() += 1;
                        u32::try_from(caller).unwrap_or(NOBODY)
                    }
                    Told::Several => NOBODY,
                    Told::Nothing => {
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
                    *told.entry(Evidence::Gpu.told()).or_default() += 1;
                }
            }
        }
        answers
    }

    /// The row of an event, and who may own it, where that is not decided.
    fn open_row(&self, events: &Events, at: usize) -> Option<(&OwnRow, &[usize])> {
        let row = index(*events.row.get(at)?);
        match self.owners.get(row)?.as_ref()? {
            Owner::OneOf(candidates) => Some((self.rows.get(row)?, candidates.as_slice())),
            Owner::Known(..) => None,
        }
    }

    /// Which of `candidates` an event is of.
    fn one(&self, events: &Events, at: usize, row: &OwnRow, candidates: &[usize]) -> Told {
        let correlation = events.correlation.get(at).copied().unwrap_or(0);
        let start = events.start_ns.get(at).copied().unwrap_or(0);
        let call = |caller: usize| self.calls.get(caller)?.get(&correlation).copied();
        let calling: Vec<usize> = candidates.iter().copied().filter(|one| call(*one).is_some()).collect();
        if let [one] = calling[..] {
            return Told::One(one, Evidence::Calls);
        }
        let possible = if calling.is_empty() {
            candidates
        } else {
            calling.as_slice()
        };
        let behind = self.callers.binary_search(&row.behind).ok();
        if let Some(behind) = behind.filter(|behind| self.in_blocks && possible.contains(behind)) {
            return Told::One(behind, Evidence::Place);
        }
        let began = |one: &&usize| call(**one).is_some_and(|call| call <= start);
        let before: Vec<usize> = calling.iter().filter(began).copied().collect();
        match before[..] {
            [one] => Told::One(one, Evidence::Times),
            _ if calling.is_empty() => Told::Nothing,
            _ => Told::Several,
        }
    }
}

/// What a trace says of whose an event is.
enum Told {
    /// It is this caller's.
    One(usize, Evidence),
    /// Several have a call that it may be of.
    Several,
    /// None has a call of it.
    Nothing,
}

/// What the name of a process begins with, before its number; empty where there is nothing.
pub(super) fn group(process: &OwnId) -> &[u8] {
    match process.borrow() {
        Id::Text(text) => {
            let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            text.get(..text.len() - digits).unwrap_or_default()
        }
        Id::None | Id::Number(_) => &[],
    }
}

/// Of work that belongs to none of the processes that are known: what the source calls a process
/// there, unless it is the number of a device.
fn nobody(process: &OwnId) -> OwnId {
    match process {
        OwnId::Text(_) => process.clone(),
        OwnId::None | OwnId::Number(_) => OwnId::None,
    }
}

/// Who may own the work of each row; [`None`] of rows that are no GPU's.
fn owners(rows: &[OwnRow], callers: &[OwnId]) -> Vec<Option<Owner>> {
    let of_callers: BTreeSet<&[u8]> = callers.iter().map(group).filter(|group| !group.is_empty()).collect();
    // Names are told apart by how they begin only where processes and GPUs begin alike at all.
    let of_gpus = || {
        rows.iter()
            .filter(|row| is_of_gpu(row.track))
            .map(|row| group(&row.process))
    };
    let in_groups = of_gpus().any(|group| of_callers.contains(group));
    let owner = |row: &OwnRow| {
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
                let owner = callers.get(one).cloned().unwrap_or(OwnId::None);
                Owner::Known(owner, callers.len() > 1)
            }
            _ => Owner::OneOf(candidates),
        })
    };
    rows.iter().map(owner).collect()
}

/// Counts the work whose owner names told.
fn count_named(capture: &Capture, owners: &[Option<Owner>], told: &mut BTreeMap<&str, u64>) {
    if !owners.iter().any(|owner| matches!(owner, Some(Owner::Known(_, true)))) {
        return;
    }
    let is_named = |row: &&u32| matches!(owners.get(index(**row)), Some(Some(Owner::Known(_, true))));
    let events = capture.events.values();
    let named: usize = events.map(|events| events.row.iter().filter(is_named).count()).sum();
    *told.entry(Evidence::Names.told()).or_default() += count(named);
}
