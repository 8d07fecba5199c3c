//! The processor's part of the graph: the nested operators and calls of each thread.

use std::collections::BTreeMap;

use flopwatch_model::{Category, Timeline, index};

use super::graph::{Edge, Graph, Node, begin, end};
use super::{Item, PathPart, PathWindow};
use crate::interval::Interval;
use crate::work::GpuWork;

/// What the GPU's part needs to know of the processor's.
pub(super) struct Host {
    /// For each event of `cuda_api` its item, or [`Host::NONE`].
    pub(super) calls: Vec<u32>,
    /// For each item of a call that waits for the GPU the edge from its begin to its end.
    pub(super) waits: Vec<(u32, u32)>,
}

impl Host {
    const NONE: u32 = u32::MAX;

    /// The item of a call.
    pub(super) fn call(&self, at: usize) -> Option<u32> {
        self.calls.get(at).copied().filter(|item| *item != Self::NONE)
    }
}

/// Whether a call of that name may wait for the GPU.
pub(super) fn may_wait(name: &str) -> bool {
    let copies = name.starts_with("cudaMemcpy") || name.starts_with("cuMemcpy") || name.starts_with("cudaFree");
    name.contains("Synchronize") || copies || name.starts_with("hipMemcpy")
}

/// A thread's events, sorted, the outer ones first.
struct Thread {
    number: u32,
    id: Option<u64>,
    items: Vec<u32>,
    /// Items that no other encloses, and the edge from the one before, or [`Host::NONE`].
    outer: Vec<(u32, u32)>,
}

pub(super) fn add(timeline: &Timeline, work: &GpuWork, window: PathWindow, graph: &mut Graph) -> Host {
    let calls = timeline
        .capture
        .events
        .get(&Category::CudaApi)
        .map_or(0, flopwatch_model::Events::len);
    let mut host = Host {
        calls: vec![Host::NONE; calls],
        waits: Vec::new(),
    };
    let mut threads = threads(timeline, window, graph, &mut host);
    let waiting: Vec<bool> = timeline
        .capture
        .events
        .get(&Category::CudaApi)
        .map(|api| api.names.iter().map(|name| may_wait(name)).collect())
        .unwrap_or_default();
    for thread in &mut threads {
        chain(timeline, thread, &waiting, graph, &mut host);
    }
    let control = match window.thread {
        Some(thread) => threads.iter().position(|of| of.id == Some(thread)),
        None => None,
    };
    let control = control.or_else(|| launching(timeline, work, &threads, &host, graph));
    if let Some(control) = control {
        pass_control(&threads, control, graph);
    }
    host
}

fn threads(timeline: &Timeline, window: PathWindow, graph: &mut Graph, host: &mut Host) -> Vec<Thread> {
    let mut found: BTreeMap<Option<u64>, Vec<Item>> = BTreeMap::new();
    // For each row its thread, where it is one of the process.
    let rows: Vec<Option<Option<u64>>> = timeline
        .capture
        .rows
        .iter()
        .map(|row| ((row.capture, row.machine, row.process) == window.process).then_some(row.thread))
        .collect();
    for category in [Category::CpuOp, Category::CudaApi] {
        let Some(events) = timeline.capture.events.get(&category) else {
            continue;
        };
        let from = events.start_ns.partition_point(|start| *start < window.time.start);
        let to = events.start_ns.partition_point(|start| *start < window.time.end);
        for at in from..to {
            let Some(row) = events.row.get(at).copied() else {
                continue;
            };
            let time = Interval::of(events, at);
            // In traces of whole microseconds short calls have no length, and launch work all the
            // same.
            if let (Some(Some(thread)), Ok(at)) = (rows.get(row.index()), u32::try_from(at)) {
                found.entry(*thread).or_default().push(Item {
                    category,
                    at,
                    row,
                    time,
                    thread: 0,
                    begin_place: 0,
                    end_place: 0,
                    is_gpu: false,
                });
            }
        }
    }
    let mut threads = Vec::new();
    for (number, (id, mut items)) in (0_u32..).zip(found) {
        items.sort_by_key(|item| (item.time.start, std::cmp::Reverse(item.time.end), item.category));
        let mut thread = Thread {
            number,
            id,
            items: Vec::with_capacity(items.len()),
            outer: Vec::new(),
        };
        for item in items {
            let (category, at) = (item.category, item.at);
            let item_number = graph.add(item);
            thread.items.push(item_number);
            if category == Category::CudaApi
                && let Some(slot) = host.calls.get_mut(index(at))
            {
                *slot = item_number;
            }
        }
        threads.push(thread);
    }
    threads
}

/// The edges along one thread: from each begin or end to the next.
fn chain(timeline: &Timeline, thread: &mut Thread, waiting: &[bool], graph: &mut Graph, host: &mut Host) {
    let api = timeline.capture.events.get(&Category::CudaApi);
    let mut open: Vec<u32> = Vec::new();
    let mut last: Option<Node> = None;
    let mut item_number = 0_u32;
    let mut visit = |node: Node, open: &[u32], graph: &mut Graph, host: &mut Host, outer: &mut Vec<(u32, u32)>| {
        let item = node / 2;
        let mut edge_place = Host::NONE;
        let Some(placed) = graph.items.get_mut(index(item)) else {
            return;
        };
        placed.thread = thread.number;
        *(if node.is_multiple_of(2) {
            &mut placed.begin_place
        } else {
            &mut placed.end_place
        }) = item_number;
        let row = placed.row;
        item_number += 1;
        let subject = open.last().copied();
        if let Some(last) = last {
            edge_place = u32::try_from(graph.edges.len()).unwrap_or(u32::MAX);
            graph.edges.push(Edge {
                from: last,
                to: node,
                part: subject.map(|_| PathPart::Cpu),
                less_ns: 0,
                subject,
                row,
            });
            if last == begin(item)
                && node == end(item)
                && let Some(call) = graph
                    .items
                    .get(index(item))
                    .filter(|call| call.category == Category::CudaApi)
                && let Some(name) = api.and_then(|api| api.name.get(index(call.at)))
                && waiting.get(name.index()) == Some(&true)
            {
                host.waits.push((item, edge_place));
            }
        }
        if subject.is_none() {
            outer.push((item, edge_place));
        }
        last = Some(node);
    };
    let mut outer = Vec::new();
    for item in std::mem::take(&mut thread.items) {
        let start = graph.time(begin(item));
        while let Some(inner) = open.last().copied().filter(|inner| graph.time(end(*inner)) <= start) {
            visit(end(inner), &open, graph, host, &mut outer);
            open.pop();
        }
        // An event that ends behind the one around it is cut: times of one thread nest.
        let around = open.last().map(|around| graph.time(end(*around)));
        if let (Some(around), Some(cut)) = (around, graph.items.get_mut(index(item))) {
            cut.time.end = cut.time.end.min(around);
        }
        visit(begin(item), &open, graph, host, &mut outer);
        open.push(item);
        thread.items.push(item);
    }
    while let Some(inner) = open.last().copied() {
        visit(end(inner), &open, graph, host, &mut outer);
        open.pop();
    }
    thread.outer = outer;
}

/// The thread that launched the most work.
fn launching(timeline: &Timeline, work: &GpuWork, threads: &[Thread], host: &Host, graph: &Graph) -> Option<usize> {
    let mut counts = vec![0_u64; threads.len()];
    for work in work.all() {
        let call = work.launch(timeline).and_then(|call| host.call(call));
        let thread = call
            .and_then(|call| graph.items.get(index(call)))
            .map(|item| item.thread);
        if let Some(count) = thread.and_then(|thread| counts.get_mut(index(thread))) {
            *count += 1;
        }
    }
    let max = counts
        .into_iter()
        .enumerate()
        .max_by_key(|(at, count)| (*count, std::cmp::Reverse(*at)))?;
    Some(max.0)
}

/// Weighs the gaps of the thread of control: the program's own code, or another thread that works
/// meanwhile.
fn pass_control(threads: &[Thread], control: usize, graph: &mut Graph) {
    let Some(main) = threads.get(control) else { return };
    for (next, edge) in &main.outer {
        let Some(gap) = graph.edges.get(index(*edge)).copied() else {
            continue;
        };
        let time = Interval::new(graph.time(gap.from), graph.time(begin(*next)));
        let mut covered = 0;
        for other in threads.iter().filter(|other| other.number != main.number) {
            let from = other
                .outer
                .partition_point(|(item, _)| graph.time(begin(*item)) < time.start);
            let within = other
                .outer
                .iter()
                .skip(from)
                .take_while(|(item, _)| graph.time(end(*item)) <= time.end);
            let within: Vec<(u32, u32)> = within.copied().collect();
            let (Some((first, _)), Some((last, _))) = (within.first(), within.last()) else {
                continue;
            };
            let row = graph.items.get(index(*first)).map_or(gap.row, |item| item.row);
            covered = covered.max(graph.time(end(*last)).saturating_sub(graph.time(begin(*first))));
            for (from, to, row) in [(gap.from, begin(*first), gap.row), (end(*last), gap.to, row)] {
                graph.edges.push(Edge {
                    from,
                    to,
                    row,
                    part: Some(PathPart::Cpu),
                    less_ns: 0,
                    subject: None,
                });
            }
            for (_, between) in within.iter().skip(1) {
                if let Some(edge) = graph.edges.get_mut(index(*between)) {
                    edge.part = Some(PathPart::Cpu);
                }
            }
        }
        if let Some(edge) = graph.edges.get_mut(index(*edge)) {
            edge.part = Some(PathPart::Cpu);
            edge.less_ns = covered;
        }
    }
}
