//! The calls of the operations of one kind: when, where, of which operation, and how long without
//! the calls inside them.

use std::borrow::Cow;
use std::collections::HashMap;

use flopwatch_measures::enclosing::Threads;
use flopwatch_measures::interval::Interval;
use flopwatch_measures::operation_name::normalised;
use flopwatch_model::{Category, ColumnId, EventLinks, Events, RowId, Timeline, index};

use super::OperationKind;

/// [`ColumnId::RangeStyle`] of a range that nests.
const PUSH_POP: u64 = 0;

/// Calls around a call among which one of the same operation is looked for.
const MAX_OUTER_CALLS: usize = 128;

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub time: Interval,
    pub row: RowId,
    /// The thread that called; `None` of work on a device.
    pub thread: Option<u32>,
    /// Which of [`Calls::operations`].
    pub operation: u32,
    /// Which of [`Calls::names`].
    pub name: u32,
    /// Length without the calls directly inside it.
    pub self_ns: u64,
    /// Whether it runs inside a call of the same operation.
    pub is_recursive: bool,
    /// Whether it is a copy that leaves the device's memory, of a kind that is found on the device.
    pub is_transfer: bool,
}

/// A category of work on devices, with the name of the operation of each event; `None` where it
/// belongs to none.
struct NamedWork {
    category: Category,
    names: Vec<Option<u32>>,
}

/// All calls of a kind, by start.
#[derive(Debug, Default)]
pub(super) struct Calls<'a> {
    /// Names as captured.
    pub names: Vec<Cow<'a, str>>,
    /// The operation of each name.
    pub operation_of: Vec<u32>,
    /// Names of the operations.
    pub operations: Vec<String>,
    /// Every call, by start.
    pub list: Vec<Call>,
}

impl<'a> Calls<'a> {
    /// The calls of `kind`. Their names lose what tells calls apart where `normalise` says so;
    /// those of HLO never do, because `fusion.1` and `fusion.2` are two operations.
    pub(super) fn of(timeline: &'a Timeline, kind: OperationKind, normalise: bool, threads: &Threads) -> Self {
        let mut calls = Self::default();
        if let Some(category) = kind.category() {
            if let Some(events) = timeline.capture.events.get(&category) {
                calls.names = events.names.iter().map(|name| Cow::Borrowed(name.as_str())).collect();
                calls.join(normalise);
                calls.add_ranges(events, threads);
            }
        } else if kind == OperationKind::Hlo {
            let work = calls.add_names_of_hlo(timeline);
            calls.join(false);
            calls.add_work(timeline, &work);
        }
        calls
    }

    /// Fills `operation_of` and `operations`.
    fn join(&mut self, normalise: bool) {
        let mut known: HashMap<Cow<'_, str>, u32> = HashMap::new();
        for name in &self.names {
            let operation = if normalise {
                normalised(name)
            } else {
                Cow::Borrowed(name.as_ref())
            };
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let at = *known.entry(operation).or_insert_with_key(|operation| {
                self.operations.push(operation.to_string());
                next
            });
            self.operation_of.push(at);
        }
    }

    fn add_ranges(&mut self, events: &Events, threads: &Threads) {
        let style = events.column(ColumnId::RangeStyle);
        let nests = |at: usize| style.and_then(|style| style.get(at)).unwrap_or(PUSH_POP) == PUSH_POP;
        let parents = events.parents(nests);
        let inside = time_inside(events, &parents);
        self.list.reserve(events.len());
        for (at, (name, row)) in events.name.iter().zip(&events.row).enumerate() {
            let Some(operation) = self.operation(name.number()) else {
                continue;
            };
            let time = Interval::of(events, at);
            self.list.push(Call {
                time,
                row: *row,
                thread: threads.of_row(*row),
                operation,
                name: name.number(),
                self_ns: time.len().saturating_sub(inside.get(at).copied().unwrap_or(0)),
                is_recursive: self.is_inside_itself(events, &parents, at, operation),
                is_transfer: false,
            });
        }
    }

    fn operation(&self, name: u32) -> Option<u32> {
        self.operation_of.get(index(name)).copied()
    }

    fn is_inside_itself(&self, events: &Events, parents: &EventLinks, at: usize, operation: u32) -> bool {
        let mut around = parents.get(at);
        for _ in 0..MAX_OUTER_CALLS {
            let Some(outer) = around else { return false };
            let name = events.name.get(outer.index());
            if name.is_some_and(|name| self.operation(name.number()) == Some(operation)) {
                return true;
            }
            around = parents.get(outer.index());
        }
        false
    }

    /// Interns the names of the operations of compiled programs: the operation, and behind it the
    /// program where there are several. Gives the categories that hold any, with a name per event.
    fn add_names_of_hlo(&mut self, timeline: &Timeline) -> Vec<NamedWork> {
        let categories = timeline.capture.events.iter();
        let devices = categories.filter(|(category, _)| category.is_gpu_work() || **category == Category::DeviceOp);
        let devices: Vec<(&Category, &Events)> = devices.collect();
        let mut programs: Vec<&str> = Vec::new();
        for (_, events) in &devices {
            let texts = events.columns.iter().find(|column| column.id == ColumnId::HloModule);
            let texts = texts.map_or(&[][..], |column| &column.texts);
            programs.extend(texts.iter().map(String::as_str).filter(|text| !text.is_empty()));
        }
        programs.sort_unstable();
        programs.dedup();
        let several = programs.len() > 1;
        let mut known: HashMap<(String, String), u32> = HashMap::new();
        let mut found = Vec::new();
        for (category, events) in devices {
            let mut names = Vec::with_capacity(events.len());
            // Work of one operation often follows itself.
            let mut last: Option<(Option<&str>, Option<&str>, u32)> = None;
            for at in 0..events.len() {
                let own = (*category == Category::DeviceOp).then(|| events.name_of(at));
                let operation = events.text(ColumnId::HloOp, at).or(own);
                let program = events.text(ColumnId::HloModule, at).filter(|_| several);
                if let Some((last_operation, last_program, name)) = last
                    && (last_operation, last_program) == (operation, program)
                {
                    names.push(Some(name));
                    continue;
                }
                let name = operation.map(|operation| {
                    let key = (operation.to_owned(), program.unwrap_or_default().to_owned());
                    let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
                    *known.entry(key).or_insert_with_key(|(operation, program)| {
                        self.names.push(Cow::Owned(if program.is_empty() {
                            operation.clone()
                        } else {
                            format!("{operation} of {program}")
                        }));
                        next
                    })
                });
                last = name.map(|name| (operation, program, name));
                names.push(name);
            }
            found.push(NamedWork {
                category: *category,
                names,
            });
        }
        found
    }

    fn add_work(&mut self, timeline: &Timeline, work: &[NamedWork]) {
        for NamedWork { category, names } in work {
            let Some(events) = timeline.capture.events.get(category) else {
                continue;
            };
            let parents = events.parents(|_| *category == Category::DeviceOp);
            let inside = time_inside(events, &parents);
            for (at, (name, row)) in names.iter().zip(&events.row).enumerate() {
                let Some((name, operation)) = name.and_then(|name| Some((name, self.operation(name)?))) else {
                    continue;
                };
                let time = Interval::of(events, at);
                self.list.push(Call {
                    time,
                    row: *row,
                    thread: None,
                    operation,
                    name,
                    self_ns: time.len().saturating_sub(inside.get(at).copied().unwrap_or(0)),
                    is_recursive: false,
                    is_transfer: leaves_the_device(*category),
                });
            }
        }
        self.list.sort_by_key(|call| call.time.start);
    }
}

/// Whether GPU work of `category` moves data out of a device's memory or into it. Copies within a
/// device are work like a kernel.
pub(super) fn leaves_the_device(category: Category) -> bool {
    Category::MEMCPY.contains(&category) && category != Category::CudaMemcpyD2d
}

/// For each event the time that those directly inside it take; what two of them share counts once.
fn time_inside(events: &Events, parents: &EventLinks) -> Vec<u64> {
    let mut inside = vec![0_u64; parents.len()];
    let mut until = vec![0_u64; parents.len()];
    for (at, parent) in parents.iter().enumerate() {
        let Some(parent) = parent else { continue };
        let time = Interval::of(events, at);
        let slots = inside.get_mut(parent.index()).zip(until.get_mut(parent.index()));
        if let Some((inside, until)) = slots {
            *inside += time.end.saturating_sub(time.start.max(*until));
            *until = time.end.max(*until);
        }
    }
    inside
}
