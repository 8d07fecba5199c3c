//! What the capture says of waits for events: which call recorded the event, and what was launched
//! to its stream before.

use std::collections::BTreeMap;

use flopwatch_model::{Category, ColumnId, Row, RowId, Timeline, Track, index};

use super::PathWindow;
use super::graph::Graph;
use super::host::Host;

/// The record of an event: it is done when all that was launched to the stream before it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventRecord {
    stream: Recorder,
    /// Of the call that recorded it.
    correlation: u32,
}

/// The stream in which an event was recorded.
#[derive(Debug, Clone, Copy)]
enum Recorder {
    /// The one of that row of the timeline.
    Row(RowId),
    /// One that has no work in the capture.
    Idle,
}

/// A call that makes a stream wait for an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamWait {
    /// When the call began.
    pub(super) time: u64,
    /// The thread that called.
    pub(super) thread: u32,
    /// The row of the stream that waits; `None` where the capture does not say it.
    pub(super) stream: Option<RowId>,
    /// What it waits for; `None` where the capture does not say it.
    pub(super) recorded: Option<EventRecord>,
}

/// What a synchronisation of the capture is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stream,
    Event,
    StreamWait,
    Other,
}

impl Kind {
    /// By the names that Kineto and Nsight Systems have for it.
    fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let kinds = [
            ("stream wait", Self::StreamWait),
            ("stream sync", Self::Stream),
            ("event sync", Self::Event),
        ];
        let found = kinds.into_iter().find(|(part, _)| name.contains(part));
        found.map_or(Self::Other, |(_, kind)| kind)
    }
}

/// A synchronisation of the capture.
#[derive(Debug, Clone, Copy)]
struct Synchronisation {
    kind: Kind,
    stream: Option<RowId>,
    recorded: Option<EventRecord>,
}

/// What a call of the host waited for.
#[derive(Debug, Clone, Copy)]
pub(super) enum HostWait {
    /// All work of the stream of that row.
    Stream(RowId),
    /// An event.
    Event(EventRecord),
    /// The capture does not say it.
    Unsaid,
}

/// The waits of a process.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// By the correlation of their calls.
    synced: BTreeMap<u32, Synchronisation>,
    /// By time.
    of_streams: Vec<StreamWait>,
}

impl Waits {
    /// Of the window's process, as far as their calls are in `graph`.
    pub(super) fn of(timeline: &Timeline, window: PathWindow, host: &Host, graph: &Graph) -> Self {
        let synced = synced(timeline, window);
        let mut of_streams = Vec::new();
        if let Some(api) = timeline.capture.events.get(&Category::CudaApi) {
            let is_wait: Vec<bool> = api.names.iter().map(|name| name.contains("StreamWaitEvent")).collect();
            let from = api.start_ns.partition_point(|start| *start < window.time.start);
            let calls = api.name.iter().zip(&api.correlation).enumerate().skip(from);
            for (at, (name, correlation)) in calls {
                if is_wait.get(name.index()) != Some(&true) {
                    continue;
                }
                let Some(item) = host.call(at).and_then(|item| graph.items.get(index(item))) else {
                    continue;
                };
                let synchronisation = synced.get(correlation).filter(|of| of.kind == Kind::StreamWait);
                of_streams.push(StreamWait {
                    time: item.time.start,
                    thread: item.thread,
                    stream: synchronisation.and_then(|synchronisation| synchronisation.stream),
                    recorded: synchronisation.and_then(|synchronisation| synchronisation.recorded),
                });
            }
        }
        Self { synced, of_streams }
    }

    /// The waits of streams whose calls began in `from..=until`.
    pub(super) fn of_streams(&self, from: u64, until: u64) -> &[StreamWait] {
        let first = self.of_streams.partition_point(|wait| wait.time < from);
        let behind = self.of_streams.partition_point(|wait| wait.time <= until);
        self.of_streams.get(first..behind).unwrap_or_default()
    }

    /// What the call of that correlation waited for.
    pub(super) fn of_host(&self, correlation: u32) -> HostWait {
        let synchronisation = self.synced.get(&correlation).copied();
        match synchronisation {
            Some(Synchronisation {
                kind: Kind::Stream,
                stream: Some(stream),
                ..
            }) => HostWait::Stream(stream),
            Some(Synchronisation {
                kind: Kind::Event,
                recorded: Some(recorded),
                ..
            }) => HostWait::Event(recorded),
            _ => HostWait::Unsaid,
        }
    }
}

/// The synchronisations of the window's process by the correlation of their calls.
fn synced(timeline: &Timeline, window: PathWindow) -> BTreeMap<u32, Synchronisation> {
    let mut found = BTreeMap::new();
    let Some(syncs) = timeline.capture.events.get(&Category::CudaSync) else {
        return found;
    };
    let streams = Streams::of(timeline, window);
    let kinds: Vec<Kind> = syncs.names.iter().map(|name| Kind::of(name)).collect();
    let events = syncs.row.iter().zip(&syncs.name).zip(&syncs.correlation);
    for (at, ((row, name), correlation)) in events.enumerate() {
        let row = timeline.row(*row).filter(|row| process_of(row) == window.process);
        let (Some(row), Some(kind), true) = (row, kinds.get(name.index()), *correlation != 0) else {
            continue;
        };
        let record = syncs.number(ColumnId::WaitOnRecord, at).unwrap_or(0);
        let recorded = syncs.number(ColumnId::WaitOnStream, at).and_then(|stream| {
            let correlation = u32::try_from(record).ok().filter(|record| *record != 0)?;
            let stream = streams.recorder(row, stream)?;
            Some(EventRecord { stream, correlation })
        });
        let synced = Synchronisation {
            kind: *kind,
            stream: row.stream.and_then(|stream| streams.same(row, stream)),
            recorded,
        };
        found.insert(*correlation, synced);
    }
    found
}

fn process_of(row: &Row) -> (u32, u32, u32) {
    (row.capture, row.machine, row.process)
}

/// Device, context and row of a stream.
type StreamLocation = (Option<u32>, Option<u64>, RowId);

/// The streams of a process by their number.
struct Streams(BTreeMap<u64, Vec<StreamLocation>>);

impl Streams {
    fn of(timeline: &Timeline, window: PathWindow) -> Self {
        let mut streams: BTreeMap<u64, Vec<_>> = BTreeMap::new();
        for (id, row) in RowId::all().zip(&timeline.capture.rows) {
            if let Some(stream) = row.stream
                && row.track == Track::GpuStream
                && process_of(row) == window.process
            {
                let of_number = streams.entry(stream).or_default();
                of_number.push((row.device, row.context, id));
            }
        }
        Self(streams)
    }

    fn numbered(&self, stream: u64) -> &[StreamLocation] {
        self.0.get(&stream).map_or(&[], Vec::as_slice)
    }

    /// The stream of that number in the context of `row`.
    fn same(&self, row: &Row, stream: u64) -> Option<RowId> {
        let mut of_number = self.numbered(stream).iter();
        let found = of_number.find(|(device, context, _)| (*device, *context) == (row.device, row.context));
        found.map(|(_, _, id)| *id)
    }

    /// The stream of that number in the context of `row`, else the only one of the process; `None`
    /// where several other contexts have one.
    fn recorder(&self, row: &Row, stream: u64) -> Option<Recorder> {
        match (self.same(row, stream), self.numbered(stream)) {
            (Some(same), _) => Some(Recorder::Row(same)),
            (None, []) => Some(Recorder::Idle),
            (None, [(_, _, only)]) => Some(Recorder::Row(*only)),
            (None, _) => None,
        }
    }
}

/// What an event stood for when it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwaitedWork {
    /// Work of the window, by its place.
    Work(u32),
    /// Nothing: no work of the window was launched to its stream before.
    Nothing,
    /// The capture does not say which work of the stream was launched before.
    Unknown,
}

/// The work of the window by stream and correlation, which rises from launch to launch of a
/// process.
#[derive(Debug, Default)]
pub(super) struct Queues(BTreeMap<RowId, Queue>);

/// The work of a stream.
#[derive(Debug, Default)]
struct Queue {
    /// Correlation, end and place of each piece, by correlation; behind [`Queue::settle`] end and
    /// place are those of the piece that ends last of all up to it.
    launched: Vec<(u32, u64, u32)>,
    /// Whether work of the stream has no correlation.
    is_partial: bool,
}

impl Queue {
    fn settle(&mut self) {
        self.launched.sort_unstable();
        let mut last = (0, 0);
        for (_, end, item) in &mut self.launched {
            last = last.max((*end, *item));
            (*end, *item) = last;
        }
    }
}

impl Queues {
    /// Of pieces of work: row, correlation, end and place.
    pub(super) fn of(pieces: impl Iterator<Item = (RowId, u32, u64, u32)>) -> Self {
        let mut queues: BTreeMap<RowId, Queue> = BTreeMap::new();
        for (row, correlation, end, item) in pieces {
            let queue = queues.entry(row).or_default();
            if correlation == 0 {
                queue.is_partial = true;
            } else {
                queue.launched.push((correlation, end, item));
            }
        }
        queues.values_mut().for_each(Queue::settle);
        Self(queues)
    }

    /// What `recorded` stood for.
    pub(super) fn awaited(&self, recorded: EventRecord) -> AwaitedWork {
        let queue = match recorded.stream {
            Recorder::Row(row) => self.0.get(&row),
            Recorder::Idle => None,
        };
        let Some(queue) = queue else {
            return AwaitedWork::Nothing;
        };
        let before = queue
            .launched
            .partition_point(|(correlation, ..)| *correlation < recorded.correlation);
        match before.checked_sub(1).and_then(|last| queue.launched.get(last)) {
            Some((_, _, item)) => AwaitedWork::Work(*item),
            None if queue.is_partial => AwaitedWork::Unknown,
            None => AwaitedWork::Nothing,
        }
    }
}
