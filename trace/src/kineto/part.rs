//! The events of one piece of a trace, in columns; names and rows by numbers of the piece's own.

use std::collections::BTreeMap;

use super::columns::{Columns, Numbered};
use super::event::{Event, Further, Guides, Id};
use super::json::{Cursor, Stop};
use crate::model::{self, Category, ColumnId, Events, LossReason, Losses, Track};

/// Starts are kept with this added until the smallest one is known.
pub(super) const BIAS: u64 = 1 << 63;

/// What tells a row from another, before processes have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RowKey<'a> {
    pub(super) track: Track,
    /// `None` for GPU work: its `pid` is a device.
    pub(super) process: Id<'a>,
    pub(super) thread: Id<'a>,
    pub(super) device: Option<u32>,
    pub(super) context: Option<u64>,
    pub(super) stream: Option<u64>,
}

/// Half of a range that was written as a `B` and an `E` event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge<'a> {
    pub(super) begins: bool,
    pub(super) event: Event<'a>,
}

/// A sample of a counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample<'a> {
    pub(super) at: i64,
    pub(super) event: Event<'a>,
}

/// What a piece holds.
#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub(super) columns: BTreeMap<Category, Columns<'a>>,
    pub(super) rows: Numbered<RowKey<'a>>,
    pub(super) edges: Vec<Edge<'a>>,
    pub(super) samples: Vec<Sample<'a>>,
    /// Names of processes, and of threads.
    pub(super) descriptions: Vec<Event<'a>>,
    pub(super) drops: Losses,
    /// Whether a bracket that comes next closes the list of events: behind damage it may be one of an event's own.
    pub(super) trusted: bool,
    /// What the event at hand says beside its arguments.
    further: Further<'a>,
    guides: Guides,
}

/// Why reading of a piece ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The next event begins where another piece does, or behind it.
    Reached,
    /// The list of events was closed; what follows is behind its bracket.
    Closed,
    /// The text ends inside an event, or between two.
    More,
}

/// Bytes of an unfinished event up to which a repair waits for the rest of it.
const REPAIR: usize = 1 << 20;

impl<'a> Part<'a> {
    /// No events yet.
    pub(super) fn new(trusted: bool) -> Self {
        Self {
            trusted,
            ..Self::default()
        }
    }

    /// Reads the events that begin in `from..until`, from text that goes on behind that. Gives where it ended and why.
    pub(super) fn read(&mut self, text: &'a [u8], from: usize, until: usize, is_whole: bool) -> (usize, End) {
        let mut cursor = Cursor::new(text, from);
        let mut event = Event::default();
        loop {
            let Ok(byte) = cursor.token() else {
                return (cursor.at(), End::More);
            };
            let begin = cursor.at();
            match byte {
                b',' => cursor.step(),
                b']' if self.trusted => return (begin + 1, End::Closed),
                _ if begin >= until => return (begin, End::Reached),
                b'{' => match super::event::event(&mut cursor, &mut event, &mut self.further, &mut self.guides) {
                    Ok(()) => {
                        self.trusted |= event.phase != 0;
                        self.add(&event);
                    }
                    Err(Stop::More) if !is_whole => return (begin, End::More),
                    Err(stop) => match self.repair(text, begin, stop, is_whole) {
                        Ok(after) => cursor = Cursor::new(text, after),
                        Err(Some(from)) => {
                            self.trusted = false;
                            cursor = Cursor::new(text, from);
                        }
                        Err(None) => return (begin, End::More),
                    },
                },
                _ => {
                    if self.trusted {
                        self.drops.add(LossReason::Skipped, "text between events", 1);
                    }
                    self.trusted = false;
                    cursor = Cursor::new(text, next_event(text, begin + 1));
                }
            }
        }
    }

    /// Reads a damaged event again as one whose quotes were not escaped. `Ok`: what follows it; `Err`: where the next event
    /// may begin, or nothing where more text decides.
    fn repair(&mut self, text: &'a [u8], begin: usize, stop: Stop, is_whole: bool) -> Result<usize, Option<usize>> {
        if let Stop::Bad(bad) = stop {
            let mut cursor = Cursor::repairing(text, begin);
            let mut event = Event::default();
            match super::event::event(&mut cursor, &mut event, &mut self.further, &mut self.guides) {
                Ok(()) if event.phase != 0 => {
                    self.drops
                        .add(LossReason::Truncated, "events whose quotes were not escaped", 1);
                    self.add(&event);
                    return Ok(cursor.at());
                }
                Err(Stop::More) if !is_whole && text.len() - begin < REPAIR => return Err(None),
                _ => {}
            }
            self.drops.add(LossReason::Skipped, "damaged events", 1);
            return Err(Some(next_event(text, bad.max(begin + 1))));
        }
        self.drops
            .add(LossReason::Skipped, "events cut off at the end of the file", 1);
        Err(Some(text.len()))
    }

    fn add(&mut self, event: &Event<'a>) {
        match event.phase {
            b'X' => self.complete(event),
            b'B' => self.edge(true, event),
            b'E' => self.edge(false, event),
            b'C' => self.sample(event, "counters without a time"),
            b'M' => self.descriptions.push(*event),
            b'i' | b'I' if event.arguments.of_allocator() => self.sample(event, "instant events without a time"),
            b'i' | b'I' | b'R' => self.drops.add(LossReason::Unsupported, "instant events", 1),
            // The flows from a call to its kernel and from a forward operator to its backward one repeat what the columns
            // correlation and sequence say.
            b's' | b't' | b'f' if matches!(event.category, b"ac2g" | b"async" | b"async_cpu_to_gpu" | b"fwdbwd") => {}
            b's' | b't' | b'f' => self.drops.add(LossReason::Unsupported, "flows", 1),
            b'b' | b'n' | b'e' | b'S' | b'T' | b'p' | b'F' => {
                self.drops.add(LossReason::Unsupported, "asynchronous events", 1);
            }
            0 => self.drops.add(LossReason::Skipped, "events without a phase", 1),
            _ => self.drops.add(LossReason::Unsupported, "events of unknown phase", 1),
        }
    }

    fn edge(&mut self, begins: bool, event: &Event<'a>) {
        if event.start.is_none() {
            self.drops.add(LossReason::Skipped, "events without a time", 1);
        } else {
            self.edges.push(Edge { begins, event: *event });
        }
    }

    fn sample(&mut self, event: &Event<'a>, otherwise: &str) {
        match event.start {
            Some(at) => self.samples.push(Sample { at, event: *event }),
            None => self.drops.add(LossReason::Skipped, otherwise, 1),
        }
    }

    /// Adds an event that has a start and a duration.
    pub(super) fn complete(&mut self, event: &Event<'a>) {
        let Some(start) = event.start else {
            self.drops.add(LossReason::Skipped, "events without a time", 1);
            return;
        };
        let Ok(duration_ns) = u64::try_from(event.duration.unwrap_or(0)) else {
            self.drops
                .add(LossReason::Skipped, "events that end before they start", 1);
            return;
        };
        let category = category(event);
        let columns = self.columns.entry(category).or_insert_with(|| Columns::new(category));
        let key = row_key(category, event);
        let row = match &columns.last_row {
            Some((last, row)) if *last == key => *row,
            _ => self.rows.number(key),
        };
        columns.last_row = Some((key, row));
        let name = columns.names.number(event.name);
        let correlation = event.arguments.correlation.and_then(|id| u32::try_from(id).ok());
        let common = model::Event {
            start_ns: start.cast_unsigned() ^ BIAS,
            duration_ns,
            row,
            name,
            correlation: correlation.unwrap_or(0),
        };
        push(&mut columns.events, common, category, event);
        if !self.further.is_empty() {
            columns.say(category, &self.further);
        }
    }
}

/// No events yet, with the columns that most events fill.
pub(super) fn no_events(category: Category) -> Events {
    let mut events = Events::new(category);
    for id in optional_columns(category) {
        events.add_column(*id);
    }
    events
}

/// The optional columns that most events fill, in this order, behind those that the category always has. What few events have comes
/// as [`Further`].
fn optional_columns(category: Category) -> &'static [ColumnId] {
    match category {
        Category::CpuOp => &[ColumnId::ForwardThread],
        Category::CudaApi | Category::Annotation => &[ColumnId::ExternalId],
        category if category.is_gpu_work() => &[ColumnId::ExternalId, ColumnId::GraphNode],
        _ => &[],
    }
}

fn positive(value: Option<i64>) -> u64 {
    value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
}

/// Appends the event with its category's own values in the order of [`Category::columns`] and [`optional_columns`].
fn push(events: &mut Events, common: model::Event, category: Category, event: &Event<'_>) {
    let arguments = &event.arguments;
    let external = positive(arguments.external_id);
    let no_launch = ColumnId::Launch.missing();
    match category {
        Category::CudaKernel => {
            let [grid_x, grid_y, grid_z] = arguments.grid.map(|size| positive(Some(size)));
            let [block_x, block_y, block_z] = arguments.block.map(|size| positive(Some(size)));
            let own = [
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                positive(arguments.registers),
                // Kineto gives the sum of both kinds of shared memory only.
                0,
                positive(arguments.shared),
                no_launch,
                external,
                positive(arguments.graph_node),
            ];
            events.push(common, &own);
        }
        Category::CpuOp => {
            let sequence = arguments.sequence.and_then(|number| u64::try_from(number).ok());
            let sequence = sequence.unwrap_or(ColumnId::NO_SEQUENCE);
            events.push(common, &[external, sequence, positive(arguments.forward_thread)]);
        }
        Category::CudaApi | Category::Annotation => events.push(common, &[external]),
        Category::PythonFunction => {
            events.push(
                common,
                &[positive(arguments.python_id), positive(arguments.python_parent)],
            );
        }
        Category::Step => {
            let number = Id::Text(event.name).trailing_number().unwrap_or(0);
            events.push(common, &[number]);
        }
        category if category.is_gpu_work() => {
            let node = positive(arguments.graph_node);
            events.push(common, &[positive(arguments.bytes), no_launch, external, node]);
        }
        _ => events.push(common, &[]),
    }
}

/// The kinds of activity as Kineto names them, as it did in 2021, and as converters of nsys reports do.
fn category(event: &Event<'_>) -> Category {
    match event.category {
        b"kernel" | b"Kernel" | b"cuda" => Category::CudaKernel,
        b"gpu_memcpy" | b"Memcpy" => copy_kind(event.name),
        b"gpu_memset" | b"Memset" => Category::CudaMemset,
        b"cuda_runtime" | b"cuda_driver" | b"Runtime" | b"cuda_api" => Category::CudaApi,
        b"cuda_sync" => Category::CudaSync,
        b"cpu_op" | b"Operator" | b"user_annotation" if event.name.starts_with(b"ProfilerStep#") => Category::Step,
        b"cpu_op" | b"Operator" => Category::CpuOp,
        b"user_annotation" => Category::Annotation,
        b"gpu_user_annotation" | b"nvtx-kernel" => Category::GpuAnnotation,
        b"nvtx" => Category::NvtxRange,
        b"python_function" => Category::PythonFunction,
        b"overhead" => Category::Overhead,
        b"hpu_op" | b"mtia_ccp_events" => Category::DeviceOp,
        // Our own exports say the timeline's own names.
        own => std::str::from_utf8(own)
            .ok()
            .and_then(Category::from_name)
            .unwrap_or(Category::Other),
    }
}

/// `Memcpy HtoD (Pageable -> Device)`.
fn copy_kind(name: &[u8]) -> Category {
    match name.strip_prefix(b"Memcpy ").and_then(|kind| kind.get(..4)) {
        Some(b"HtoD") => Category::CudaMemcpyH2d,
        Some(b"DtoH") => Category::CudaMemcpyD2h,
        Some(b"DtoD") => Category::CudaMemcpyD2d,
        Some(b"PtoP") => Category::CudaMemcpyP2p,
        _ => Category::CudaMemcpyOther,
    }
}

/// Where an event is shown.
fn row_key<'a>(category: Category, event: &Event<'a>) -> RowKey<'a> {
    let track = match category {
        Category::CudaSync => Track::CudaSync,
        Category::CudaApi => Track::CudaApi,
        Category::NvtxRange => Track::Nvtx,
        Category::CpuOp => Track::CpuOp,
        Category::Annotation | Category::Step => Track::Annotation,
        Category::PythonFunction => Track::Python,
        Category::Overhead => Track::Overhead,
        Category::DeviceOp => Track::Device,
        Category::GpuAnnotation => Track::GpuAnnotation,
        category if category.is_gpu_work() => Track::GpuStream,
        _ => Track::Other,
    };
    if matches!(track, Track::GpuStream | Track::CudaSync | Track::GpuAnnotation) {
        let arguments = &event.arguments;
        let device = arguments.device.and_then(|device| u32::try_from(device).ok());
        let named = || {
            event
                .process
                .trailing_number()
                .and_then(|number| u32::try_from(number).ok())
        };
        // A wait for a whole context names stream -1, also as an unsigned number.
        let stream = match arguments.stream {
            Some(stream) => u64::try_from(stream)
                .ok()
                .filter(|stream| *stream < u64::from(u32::MAX)),
            None => event.thread.trailing_number(),
        };
        RowKey {
            track,
            process: Id::None,
            thread: Id::None,
            device: device.or_else(named),
            context: arguments.context.and_then(|context| u64::try_from(context).ok()),
            stream,
        }
    } else {
        RowKey {
            track,
            process: event.process,
            thread: event.thread,
            device: None,
            context: None,
            stream: None,
        }
    }
}

/// Where an event may begin at or behind `from`: a brace behind a comma or bracket, with a member that events have. Where there
/// is none, close to the end, so that one which has only just begun is found when more text comes.
pub(super) fn next_event(text: &[u8], from: usize) -> usize {
    const MEMBERS: [&[u8]; 9] = [
        b"\"ph\"",
        b"\"cat\"",
        b"\"name\"",
        b"\"ts\"",
        b"\"pid\"",
        b"\"tid\"",
        b"\"id\"",
        b"\"dur\"",
        b"\"args\"",
    ];
    let rest = text.get(from..).unwrap_or_default();
    for brace in memchr::memchr_iter(b'{', rest) {
        let before = rest.get(..brace).unwrap_or_default().trim_ascii_end().last().copied();
        // The byte before `from` was looked at already.
        if !matches!(before, Some(b',' | b'[')) {
            continue;
        }
        let member = rest.get(brace + 1..).unwrap_or_default().trim_ascii_start();
        if MEMBERS.iter().any(|known| member.starts_with(known)) {
            return from + brace;
        }
    }
    let tail = text.len().saturating_sub(64);
    tail.max(from).min(text.len())
}
