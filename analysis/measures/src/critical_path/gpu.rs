//! The GPU's part of the graph: streams, launches and waits.

use std::collections::BTreeMap;

use flopwatch_model::{Category, RowId, Timeline, index};

use super::graph::{Edge, Graph, begin, end};
use super::host::Host;
use super::waits::{AwaitedWork, HostWait, Queues, Waits};
use super::{Item, PathPart, PathWindow};
use crate::interval::Interval;
use crate::work::{GpuWork, Work};

/// One work of the window.
struct WindowWork {
    work: Work,
    item: u32,
    /// Item of the call that launched the work; `None` where the window has none.
    call: Option<u32>,
}

/// What was found beside the graph.
pub(super) struct GpuCautions {
    /// Work that has no recorded launch.
    pub(super) unlaunched: u64,
    /// Work whose stream waited for another one's by an event of which the capture does not say
    /// whose it is.
    pub(super) guessed_waits: u64,
}

/// Adds the work of the window.
pub(super) fn add(
    timeline: &Timeline,
    work: &GpuWork,
    window: PathWindow,
    host: &Host,
    graph: &mut Graph,
) -> GpuCautions {
    let placed = place_work(timeline, work, window, host, graph);
    let streams = Streams::new(timeline, window, placed, host, graph);
    let guessed_waits = streams.add(graph);
    streams.add_host_waits(timeline, host, graph);
    let unlaunched = streams
        .placed
        .iter()
        .filter(|of| of.work.launch(timeline).is_none())
        .count();
    GpuCautions {
        unlaunched: u64::try_from(unlaunched).unwrap_or(u64::MAX),
        guessed_waits,
    }
}

fn place_work(
    timeline: &Timeline,
    work: &GpuWork,
    window: PathWindow,
    host: &Host,
    graph: &mut Graph,
) -> Vec<WindowWork> {
    let mut placed = Vec::new();
    for work in work.all() {
        let Some(row) = timeline.row(work.row) else { continue };
        if (row.capture, row.machine, row.process) != window.process {
            continue;
        }
        let call = work.launch(timeline).and_then(|call| host.call(call));
        let runs = work.time.start < window.time.end && work.time.end > window.time.start;
        // Work that is launched behind the window is another iteration's.
        let launched_later = call.is_none()
            && work.launch(timeline).is_some_and(|call| {
                let api = timeline.capture.events.get(&Category::CudaApi);
                api.and_then(|api| api.start_ns.get(call))
                    .is_some_and(|start| *start >= window.time.end)
            });
        let time = Interval::new(work.time.start.max(window.time.start), work.time.end);
        if time.is_empty() || launched_later || (call.is_none() && !runs) {
            continue;
        }
        let item = graph.add(Item {
            category: work.category,
            at: work.at,
            row: work.row,
            time,
            thread: 0,
            begin_place: 0,
            end_place: 0,
            is_gpu: true,
        });
        placed.push(WindowWork {
            work: *work,
            item,
            call,
        });
    }
    placed
}

/// The work of the window, and in which order it could run.
struct Streams {
    placed: Vec<WindowWork>,
    /// Places of the work of each row by start.
    by_row: BTreeMap<RowId, Vec<u32>>,
    /// Ends and places of all work by end.
    ends: Vec<(u64, u32)>,
    /// Ends and places of the work of each row by end.
    row_ends: BTreeMap<RowId, Vec<(u64, u32)>>,
    waits: Waits,
    queues: Queues,
}

/// What a piece of work waited for by events.
#[derive(Default)]
struct EventWait {
    source: Option<u32>,
    is_guess: bool,
}

impl Streams {
    fn new(timeline: &Timeline, window: PathWindow, placed: Vec<WindowWork>, host: &Host, graph: &Graph) -> Self {
        let mut by_row: BTreeMap<RowId, Vec<u32>> = BTreeMap::new();
        for (at, of) in (0_u32..).zip(&placed) {
            by_row.entry(of.work.row).or_default().push(at);
        }
        let ends = (0_u32..).zip(&placed).map(|(at, of)| (graph.time(end(of.item)), at));
        let mut ends: Vec<(u64, u32)> = ends.collect();
        ends.sort_unstable();
        let mut row_ends: BTreeMap<RowId, Vec<(u64, u32)>> = BTreeMap::new();
        for (time, at) in &ends {
            if let Some(of) = placed.get(index(*at)) {
                row_ends.entry(of.work.row).or_default().push((*time, *at));
            }
        }
        let pieces = (0_u32..).zip(&placed).map(|(at, of)| {
            let events = of.work.events(timeline);
            let correlation = events.and_then(|events| events.correlation.get(index(of.work.at)));
            let correlation = correlation.copied().unwrap_or(0);
            (of.work.row, correlation, graph.time(end(of.item)), at)
        });
        let queues = Queues::of(pieces);
        Self {
            by_row,
            ends,
            row_ends,
            waits: Waits::of(timeline, window, host, graph),
            queues,
            placed,
        }
    }

    /// Adds the edges of all work; gives how many waits were guessed.
    fn add(&self, graph: &mut Graph) -> u64 {
        let mut guessed = 0;
        for list in self.by_row.values() {
            // The work before, and that of all before which ends last.
            let (mut before, mut latest): (Option<&WindowWork>, Option<&WindowWork>) = (None, None);
            for of in list.iter().filter_map(|at| self.placed.get(index(*at))) {
                guessed += u64::from(self.add_work(before, latest, of, graph));
                before = Some(of);
                let ends = |of: &WindowWork| graph.time(end(of.item));
                if latest.is_none_or(|latest| ends(latest) < ends(of)) {
                    latest = Some(of);
                }
            }
        }
        guessed
    }

    /// Adds a piece of work and what it waited for; gives whether that is a guess.
    fn add_work(
        &self,
        before: Option<&WindowWork>,
        latest: Option<&WindowWork>,
        of: &WindowWork,
        graph: &mut Graph,
    ) -> bool {
        let edge = |from, to, part| Edge {
            from,
            to,
            part: Some(part),
            less_ns: 0,
            subject: Some(of.item),
            row: of.work.row,
        };
        let class = PathPart::of_class(of.work.class);
        graph.edges.push(edge(begin(of.item), end(of.item), class));
        let waited = self.waited_for(of, before, graph);
        let source = waited.source.and_then(|at| self.placed.get(index(at)));
        for first in [latest, source].into_iter().flatten() {
            follow(first, of, graph);
        }
        let start = graph.time(begin(of.item));
        let ended = |first: Option<&WindowWork>| first.map(|first| graph.time(end(first.item)));
        let (latest_end, source_end) = (ended(latest), ended(source));
        // Whether all that it waited for had ended when its call began: then the call alone held it
        // up.
        let call = of.call.map(begin).filter(|call| {
            let launched = graph.time(*call);
            latest_end.is_none_or(|time| time < launched) && source_end.is_none_or(|time| time < launched)
        });
        let held_by = |first: Option<&WindowWork>, part| {
            let first = first.filter(|first| graph.time(end(first.item)) <= start)?;
            Some(edge(end(first.item), begin(of.item), part))
        };
        let held = match call {
            Some(call) => Some(edge(call, begin(of.item), PathPart::LaunchOverhead)),
            None if source_end > latest_end => held_by(source, PathPart::Sync),
            None => held_by(latest, PathPart::KernelGap),
        };
        graph.edges.extend(held);
        waited.is_guess
    }

    /// The work of another stream that this one waited for by an event: what was launched to the
    /// event's stream before its record, where the capture says that. Where it says nothing of a
    /// wait since the previous work of the stream was launched, it is guessed: the last work of
    /// another stream that ended before this one began.
    fn waited_for(&self, of: &WindowWork, before: Option<&WindowWork>, graph: &Graph) -> EventWait {
        let Some(call) = of.call.and_then(|call| graph.items.get(index(call))) else {
            return EventWait::default();
        };
        let since = before
            .and_then(|before| before.call)
            .map_or(0, |call| graph.time(begin(call)));
        let ended = |at: &u32| self.placed.get(index(*at)).map(|of| graph.time(end(of.item)));
        let (mut source, mut is_unsaid) = (None, false);
        for wait in self.waits.of_streams(since, call.time.start) {
            let is_own = wait
                .stream
                .map_or(wait.thread == call.thread, |stream| stream == of.work.row);
            if !is_own {
                continue;
            }
            match wait.recorded.map(|recorded| self.queues.awaited(recorded)) {
                Some(AwaitedWork::Work(at)) if source.is_none_or(|last| ended(&last) < ended(&at)) => source = Some(at),
                Some(AwaitedWork::Work(_) | AwaitedWork::Nothing) => {}
                Some(AwaitedWork::Unknown) | None => is_unsaid = true,
            }
        }
        if source.is_some() || !is_unsaid {
            return EventWait {
                source,
                is_guess: false,
            };
        }
        let start = graph.time(begin(of.item));
        let until = self.ends.partition_point(|(end, _)| *end <= start);
        let mut candidates = self.ends.iter().take(until).rev().take(16);
        let is_other = |at: &u32| {
            let other = self.placed.get(index(*at));
            other.is_some_and(|other| other.work.row != of.work.row)
        };
        let source = candidates.find(|(_, at)| is_other(at)).map(|(_, at)| *at);
        EventWait {
            source,
            is_guess: source.is_some(),
        }
    }

    /// The last work of `ends` that ended up to `time`.
    fn last_ended(ends: &[(u64, u32)], time: u64) -> Option<u32> {
        let until = ends.partition_point(|(end, _)| *end <= time);
        let (_, at) = ends.get(until.checked_sub(1)?)?;
        Some(*at)
    }

    /// What a call of the host waited for. Where the capture does not say it, that is the last work
    /// that ended during the call.
    fn awaited_by(&self, correlation: u32, until: u64) -> Option<u32> {
        match self.waits.of_host(correlation) {
            HostWait::Stream(row) => Self::last_ended(self.row_ends.get(&row)?, until),
            HostWait::Event(recorded) => match self.queues.awaited(recorded) {
                AwaitedWork::Work(at) => Some(at),
                AwaitedWork::Nothing => None,
                AwaitedWork::Unknown => Self::last_ended(&self.ends, until),
            },
            HostWait::Unsaid => Self::last_ended(&self.ends, until),
        }
    }

    /// Adds the waits of calls: from the work that a call waited for to the call's end.
    fn add_host_waits(&self, timeline: &Timeline, host: &Host, graph: &mut Graph) {
        let api = timeline.capture.events.get(&Category::CudaApi);
        let mut launches: BTreeMap<u32, u32> = BTreeMap::new();
        for (at, of) in (0_u32..).zip(&self.placed) {
            if let Some(call) = of.call {
                launches.insert(call, at);
            }
        }
        for (item, edge) in &host.waits {
            let Some(call) = graph.items.get(index(*item)).copied() else {
                continue;
            };
            let name = api.map_or("", |api| api.name_of(index(call.at)));
            let source = if name.contains("Memcpy") {
                launches.get(item).copied()
            } else {
                let correlation = api.and_then(|api| api.correlation.get(index(call.at)));
                self.awaited_by(correlation.copied().unwrap_or(0), call.time.end)
            };
            let source = source
                .and_then(|at| self.placed.get(index(at)))
                .map(|of| end(of.item))
                .filter(|source| {
                    let time = graph.time(*source);
                    call.time.start < time && time <= call.time.end
                });
            let Some(source) = source else { continue };
            if let Some(waiting) = graph.edges.get_mut(index(*edge)) {
                waiting.part = None;
            }
            graph.edges.push(Edge {
                from: source,
                to: end(*item),
                part: Some(PathPart::Sync),
                less_ns: 0,
                subject: Some(*item),
                row: call.row,
            });
        }
    }
}

/// Adds that `then` comes behind `first`. Where `then` began before `first` had ended (graphs,
/// programmatic dependent launches, times that are rounded), the way goes through `first` up to
/// where `then` began, or through all of `first` and what `then` has left.
fn follow(first: &WindowWork, then: &WindowWork, graph: &mut Graph) {
    let time = |of: &WindowWork| Interval::new(graph.time(begin(of.item)), graph.time(end(of.item)));
    let (before, behind) = (time(first), time(then));
    let edge = |from, to, of: Option<&WindowWork>| Edge {
        from,
        to,
        part: of.map(|of| PathPart::of_class(of.work.class)),
        less_ns: 0,
        subject: of.map(|of| of.item),
        row: then.work.row,
    };
    if before.end <= behind.start {
        graph.edges.push(edge(end(first.item), begin(then.item), None));
        return;
    }
    if before.start <= behind.start {
        graph.edges.push(edge(begin(first.item), begin(then.item), Some(first)));
        if before.end < behind.end {
            graph.edges.push(edge(end(first.item), end(then.item), Some(then)));
        }
    }
}
