//! The GPU's part of the graph: streams, launches and waits.

use std::collections::BTreeMap;

use flopwatch_model::{Category, Timeline, Track, index};

use super::graph::{Edge, Graph, begin, end};
use super::host::Host;
use super::{Item, PathPart, PathWindow};
use crate::interval::Interval;
use crate::work::{GpuWork, Work};

/// GPU operations of one stream by start: item, and place among all work of the window.
type Streams = BTreeMap<u32, Vec<u32>>;

/// One work of the window.
struct Placed {
    work: Work,
    item: u32,
    /// Item of its launch call, and the call's begin.
    call: Option<u32>,
}

/// Adds the work of the window; gives how much of it has no recorded launch.
pub(super) fn add(timeline: &Timeline, work: &GpuWork, window: PathWindow, host: &Host, graph: &mut Graph) -> u64 {
    let placed = place(timeline, work, window, host, graph);
    let mut streams: Streams = BTreeMap::new();
    for (at, of) in (0_u32..).zip(&placed) {
        streams.entry(of.work.row).or_default().push(at);
    }
    let mut ends: Vec<(u64, u32)> = (0_u32..)
        .zip(&placed)
        .map(|(at, of)| (graph.time(end(of.item)), at))
        .collect();
    ends.sort_unstable();
    let waits = stream_waits(timeline, window, graph, host);
    for list in streams.values() {
        for (before, at) in std::iter::once(None).chain(list.iter().map(Some)).zip(list) {
            stream_edges(&placed, before.copied(), *at, &ends, &waits, graph);
        }
    }
    host_waits(timeline, &placed, &streams, &ends, host, graph);
    let unlaunched = placed.iter().filter(|of| of.work.launch(timeline).is_none()).count();
    u64::try_from(unlaunched).unwrap_or(u64::MAX)
}

fn place(timeline: &Timeline, work: &GpuWork, window: PathWindow, host: &Host, graph: &mut Graph) -> Vec<Placed> {
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
        placed.push(Placed {
            work: *work,
            item,
            call,
        });
    }
    placed
}

/// Begins of calls that make a stream wait for an event, by thread.
fn stream_waits(timeline: &Timeline, window: PathWindow, graph: &Graph, host: &Host) -> BTreeMap<u32, Vec<u64>> {
    let mut waits: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let Some(api) = timeline.capture.events.get(&Category::CudaApi) else {
        return waits;
    };
    let names: Vec<bool> = api.names.iter().map(|name| name.contains("StreamWaitEvent")).collect();
    if !names.contains(&true) {
        return waits;
    }
    let from = api.start_ns.partition_point(|start| *start < window.time.start);
    for (at, name) in api.name.iter().enumerate().skip(from) {
        let item = host.call(at).and_then(|item| graph.items.get(index(item)));
        if let (Some(item), Some(true)) = (item, names.get(index(*name))) {
            waits.entry(item.thread).or_default().push(item.time.start);
        }
    }
    waits
}

/// What the work at `at` of a stream waited for.
fn stream_edges(
    placed: &[Placed],
    before: Option<u32>,
    at: u32,
    ends: &[(u64, u32)],
    waits: &BTreeMap<u32, Vec<u64>>,
    graph: &mut Graph,
) {
    let Some(of) = placed.get(index(at)) else { return };
    let edge = |from, to, part, subject| Edge {
        from,
        to,
        part: Some(part),
        less_ns: 0,
        subject: Some(subject),
        row: of.work.row,
        is_order: false,
    };
    if let Some(before) = before.and_then(|before| placed.get(index(before))) {
        graph.edges.push(Edge {
            part: None,
            is_order: true,
            ..edge(end(before.item), begin(of.item), PathPart::KernelGap, of.item)
        });
    }
    graph.edges.push(edge(
        begin(of.item),
        end(of.item),
        PathPart::of_class(of.work.class),
        of.item,
    ));
    let start = graph.time(begin(of.item));
    let before = before.and_then(|before| placed.get(index(before)));
    let previous_end = before.map(|before| graph.time(end(before.item)));
    let launched = of.call.map(|call| graph.time(begin(call)));
    let source = waited_for(placed, of, before, start, ends, waits, graph);
    let source_end = source.map(|source| graph.time(end(source)));
    if let Some(source) = source
        && source_end > previous_end
    {
        graph
            .edges
            .push(edge(end(source), begin(of.item), PathPart::Sync, of.item));
    }
    let empty = launched.is_some_and(|launched| previous_end.is_none_or(|previous| previous < launched));
    let free = launched.is_some_and(|launched| source_end.is_none_or(|source| source < launched));
    match (of.call, before) {
        (Some(call), _) if empty && free => {
            graph
                .edges
                .push(edge(begin(call), begin(of.item), PathPart::LaunchOverhead, of.item));
        }
        (_, Some(before)) if source_end <= previous_end => {
            graph
                .edges
                .push(edge(end(before.item), begin(of.item), PathPart::KernelGap, of.item));
        }
        _ => {}
    }
}

/// The work of another stream that this one waited for, by an event: sources rarely say which event a call names, so that it is the last
/// work of another stream that ended before this one began, where the launching thread made a stream wait since it launched the previous
/// work of the stream.
fn waited_for(
    placed: &[Placed],
    of: &Placed,
    before: Option<&Placed>,
    start: u64,
    ends: &[(u64, u32)],
    waits: &BTreeMap<u32, Vec<u64>>,
    graph: &Graph,
) -> Option<u32> {
    let call = graph.items.get(index(of.call?))?;
    let since = before
        .and_then(|before| before.call)
        .map_or(0, |call| graph.time(begin(call)));
    let waits = waits.get(&call.thread)?;
    let wait = waits.partition_point(|wait| *wait < since);
    if waits.get(wait).is_none_or(|wait| *wait > call.time.start) {
        return None;
    }
    let until = ends.partition_point(|(end, _)| *end <= start);
    let candidates = ends.get(..until)?.iter().rev().take(16);
    let others = candidates.filter_map(|(_, at)| placed.get(index(*at)));
    others
        .into_iter()
        .find(|other| other.work.row != of.work.row)
        .map(|other| other.item)
}

/// Calls that wait for the GPU: from the last work that ended during the call, of the stream where the source says which, to the call's end.
fn host_waits(
    timeline: &Timeline,
    placed: &[Placed],
    streams: &Streams,
    ends: &[(u64, u32)],
    host: &Host,
    graph: &mut Graph,
) {
    let synced = synced_streams(timeline);
    let api = timeline.capture.events.get(&Category::CudaApi);
    let mut launches: BTreeMap<u32, u32> = BTreeMap::new();
    for of in placed {
        if let Some(call) = of.call {
            launches.insert(call, of.item);
        }
    }
    for (item, edge) in &host.waits {
        let Some(call) = graph.items.get(index(*item)).copied() else {
            continue;
        };
        let name = api.map_or("", |api| api.name_of(index(call.at)));
        let ended_inside = |source: u32, graph: &Graph| {
            let end = graph.time(end(source));
            call.time.start < end && end <= call.time.end
        };
        let source = if name.contains("Memcpy") {
            launches.get(item).copied()
        } else {
            let key = api
                .and_then(|api| api.correlation.get(index(call.at)))
                .copied()
                .unwrap_or(0);
            let process = timeline
                .row(call.row)
                .map(|row| (row.capture, row.machine, row.process));
            let stream = process
                .and_then(|process| synced.get(&(process, key)))
                .and_then(|row| streams.get(row));
            let last = if let Some(list) = stream {
                let time = |at: &u32| placed.get(index(*at)).map_or(0, |of| graph.time(end(of.item)));
                let until = list.partition_point(|at| time(at) <= call.time.end);
                until.checked_sub(1).and_then(|last| list.get(last)).copied()
            } else {
                let until = ends.partition_point(|(end, _)| *end <= call.time.end);
                until.checked_sub(1).and_then(|last| ends.get(last)).map(|(_, at)| *at)
            };
            last.and_then(|at| placed.get(index(at))).map(|of| of.item)
        };
        let Some(source) = source.filter(|source| ended_inside(*source, graph)) else {
            continue;
        };
        if let Some(waiting) = graph.edges.get_mut(index(*edge)) {
            waiting.part = None;
        }
        graph.edges.push(Edge {
            from: end(source),
            to: end(*item),
            part: Some(PathPart::Sync),
            less_ns: 0,
            subject: Some(*item),
            row: call.row,
            is_order: false,
        });
    }
}

type ProcessId = (u32, u32, u32);

/// The GPU row of the stream that a call waited for, by process and correlation, of synchronisations of one stream.
fn synced_streams(timeline: &Timeline) -> BTreeMap<(ProcessId, u32), u32> {
    let mut found = BTreeMap::new();
    let Some(syncs) = timeline.capture.events.get(&Category::CudaSync) else {
        return found;
    };
    let rows = (0_u32..).zip(&timeline.capture.rows);
    let gpu = rows.filter(|(_, row)| row.track == Track::GpuStream);
    let streams: BTreeMap<_, u32> = gpu
        .map(|(at, row)| ((row.capture, row.machine, row.process, row.device, row.stream), at))
        .collect();
    let is_stream: Vec<bool> = syncs
        .names
        .iter()
        .map(|name| name.to_ascii_lowercase().contains("stream sync"))
        .collect();
    for ((row, name), correlation) in syncs.row.iter().zip(&syncs.name).zip(&syncs.correlation) {
        let Some(row) = timeline.row(*row) else { continue };
        let stream = streams.get(&(row.capture, row.machine, row.process, row.device, row.stream));
        if let (Some(stream), Some(true)) = (stream, is_stream.get(index(*name))) {
            found.insert(((row.capture, row.machine, row.process), *correlation), *stream);
        }
    }
    found
}
