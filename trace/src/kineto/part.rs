//! The events of one piece of a trace, in columns; names and rows by numbers of the piece's own.

use std::collections::BTreeMap;

use super::columns::Columns;
use super::event::{Event, ExtraColumns, ExtraValue, Id, KeyPredictors};
use super::interner::Interner;
use super::json::{Cursor, Stop};
use crate::copy_direction;
use flopwatch_model::{Category, ColumnId, Events, Loss, LossReason, Losses, NameId, RowId, Track};

/// Starts are kept with this added until the smallest one is known.
pub(super) const TIME_BIAS: u64 = 1 << 63;

/// What tells a row from another, before processes have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RowKey<'a> {
    pub(super) track: Track,
    /// As the events name it: of GPU work most often a device.
    pub(super) process: Id<'a>,
    pub(super) thread: Id<'a>,
    /// As arguments say it.
    pub(super) device: Option<u32>,
    pub(super) context: Option<u64>,
    pub(super) stream: Option<u64>,
    /// Of GPU work: whose call or operator was the last before it in the piece.
    pub(super) behind: Id<'a>,
}

/// Half of a range that was written as a `B` and an `E` event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge<'a> {
    pub(super) process: Id<'a>,
    pub(super) thread: Id<'a>,
    pub(super) name: &'a [u8],
    pub(super) at: i64,
    /// Of a begin: the category of the event that it became, whose length is still to come, and its
    /// place there in the piece.
    pub(super) begun: Option<(Category, usize)>,
}

/// An end of an arrow from a call to the work that it launched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow<'a> {
    pub(super) process: Id<'a>,
    pub(super) thread: Id<'a>,
    pub(super) at: i64,
    pub(super) id: i64,
    pub(super) begins: bool,
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
    pub(super) rows: Interner<RowKey<'a>>,
    pub(super) edges: Vec<Edge<'a>>,
    /// Arrows from calls to their work, as long as none of the work says its call itself.
    pub(super) flows: Vec<Flow<'a>>,
    /// Whether GPU work says which call launched it.
    pub(super) correlated: bool,
    /// Processes of calls and operators, in the order in which their first one stands.
    pub(super) visited: Interner<Id<'a>>,
    /// The process of the last call or operator.
    pub(super) last: Id<'a>,
    /// Whether calls or operators of a process stand before and behind those of another one.
    pub(super) returned: bool,
    pub(super) samples: Vec<Sample<'a>>,
    /// Names of processes, and of threads.
    pub(super) descriptions: Vec<Event<'a>>,
    pub(super) losses: Losses,
    /// Whether a bracket that comes next closes the list of events: behind damage it may be one of
    /// an event's own.
    pub(super) trusted: bool,
    /// What the event at hand says beside its arguments.
    extra: ExtraColumns<'a>,
    predictors: KeyPredictors,
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
const MAX_REPAIR_BYTES: usize = 1 << 20;

impl<'a> Part<'a> {
    /// No events yet.
    pub(super) fn new(trusted: bool) -> Self {
        Self {
            trusted,
            ..Self::default()
        }
    }

    /// Reads the events that begin in `from..until`, from text that goes on behind that. Gives
    /// where it ended and why.
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
                b'{' => match super::event::event(&mut cursor, &mut event, &mut self.extra, &mut self.predictors) {
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
                        self.losses.add(LossReason::Skipped, "text between events", 1);
                    }
                    self.trusted = false;
                    cursor = Cursor::new(text, next_event(text, begin + 1));
                }
            }
        }
    }

    /// Reads a damaged event again as one whose quotes were not escaped. `Ok`: what follows it;
    /// `Err`: where the next event may begin, or nothing where more text decides.
    fn repair(&mut self, text: &'a [u8], begin: usize, stop: Stop, is_whole: bool) -> Result<usize, Option<usize>> {
        if let Stop::Bad(bad) = stop {
            let mut cursor = Cursor::repairing(text, begin);
            let mut event = Event::default();
            match super::event::event(&mut cursor, &mut event, &mut self.extra, &mut self.predictors) {
                Ok(()) if event.phase != 0 => {
                    self.losses
                        .add(LossReason::Truncated, "events whose quotes were not escaped", 1);
                    self.add(&event);
                    return Ok(cursor.at());
                }
                Err(Stop::More) if !is_whole && text.len() - begin < MAX_REPAIR_BYTES => return Err(None),
                _ => {}
            }
            self.losses.add(LossReason::Skipped, "damaged events", 1);
            return Err(Some(next_event(text, bad.max(begin + 1))));
        }
        self.losses
            .add(LossReason::Skipped, "events cut off at the end of the file", 1);
        Err(Some(text.len()))
    }

    fn add(&mut self, event: &Event<'a>) {
        match event.phase {
            b'X' => {
                self.complete(event);
            }
            b'B' => self.edge(true, event),
            b'E' => self.edge(false, event),
            b'C' => self.sample(event, "counters without a time"),
            b'M' => self.descriptions.push(*event),
            b'i' | b'I' if event.arguments.of_allocator() => self.sample(event, "instant events without a time"),
            b'i' | b'I' | b'R' => self.losses.add(LossReason::Unsupported, "instant events", 1),
            b's' | b't' | b'f' if matches!(event.category, b"ac2g" | b"async" | b"async_cpu_to_gpu") => {
                self.flow(event);
            }
            // The flows from a forward operator to its backward one repeat what the column sequence
            // says.
            b's' | b't' | b'f' if event.category == b"fwdbwd" => {}
            b's' | b't' | b'f' => self.losses.add(LossReason::Unsupported, "flows", 1),
            b'b' | b'n' | b'e' | b'S' | b'T' | b'p' | b'F' => {
                self.losses.add(LossReason::Unsupported, "asynchronous events", 1);
            }
            0 => self.losses.add(LossReason::Skipped, "events without a phase", 1),
            _ => self.losses.add(LossReason::Unsupported, "events of unknown phase", 1),
        }
    }

    fn edge(&mut self, begins: bool, event: &Event<'a>) {
        let begun = if begins {
            // Its end tells its length.
            let begun = self.complete(&Event {
                duration: None,
                has_no_length: false,
                ..*event
            });
            if begun.is_none() {
                return;
            }
            begun
        } else {
            None
        };
        match event.start {
            Some(at) => self.edges.push(Edge {
                process: event.process,
                thread: event.thread,
                name: event.name,
                at,
                begun,
            }),
            None => self.losses.add(LossReason::Skipped, "events without a time", 1),
        }
    }

    /// Keeps an end of an arrow; most traces repeat by them what their column correlation says.
    fn flow(&mut self, event: &Event<'a>) {
        if self.correlated || event.phase == b't' {
            return;
        }
        if let (Some(at), Some(id)) = (event.start, event.flow) {
            self.flows.push(Flow {
                process: event.process,
                thread: event.thread,
                at,
                id,
                begins: event.phase == b's',
            });
        }
    }

    /// Notes whose call or operator this is.
    fn visit(&mut self, process: Id<'a>) {
        if process != self.last {
            let (_, is_new) = self.visited.take(process);
            self.returned |= !is_new;
            self.last = process;
        }
    }

    fn sample(&mut self, event: &Event<'a>, otherwise: &str) {
        match event.start {
            Some(at) => self.samples.push(Sample { at, event: *event }),
            None => self.losses.add(LossReason::Skipped, otherwise, 1),
        }
    }

    /// Adds an event that has a start and a duration; gives its category and its place there.
    fn complete(&mut self, event: &Event<'a>) -> Option<(Category, usize)> {
        let Some(start) = event.start else {
            self.losses.add(LossReason::Skipped, "events without a time", 1);
            return None;
        };
        if event.has_no_length {
            self.losses
                .add(LossReason::Skipped, &format!("events: {}", Loss::NO_LENGTH), 1);
            return None;
        }
        let Ok(duration_ns) = u64::try_from(event.duration.unwrap_or(0)) else {
            self.losses
                .add(LossReason::Skipped, "events that end before they start", 1);
            return None;
        };
        let category = category(event);
        if matches!(category, Category::CudaApi | Category::CpuOp) {
            self.visit(event.process);
        }
        let columns = self.columns.entry(category).or_insert_with(|| Columns::new(category));
        let key = row_key(category, event, self.last);
        let row = match &columns.last_row {
            Some((last, row)) if *last == key => *row,
            _ => self.rows.number(key),
        };
        columns.last_row = Some((key, row));
        let name = columns.names.number(event.name);
        let correlation = match event.arguments.correlation.map(u32::try_from) {
            Some(Ok(id)) => id,
            Some(Err(_)) | None => 0,
        };
        if event.arguments.correlation.is_some_and(|id| id > i64::from(u32::MAX)) {
            self.losses
                .add(LossReason::Truncated, "correlation ids of more than 32 bits", 1);
        }
        self.correlated |= correlation != 0 && category.is_gpu_work();
        let common = flopwatch_model::Event {
            start_ns: start.cast_unsigned() ^ TIME_BIAS,
            duration_ns,
            row: RowId::new(row),
            name: NameId::new(name),
            correlation,
        };
        push(&mut columns.events, common, category, event);
        // What copies are about is one of several things that an operation on a device may say.
        let bytes = event.arguments.bytes.and_then(|bytes| u64::try_from(bytes).ok());
        if let Some(bytes) = bytes
            && category.optional_columns().contains(&ColumnId::Bytes)
        {
            self.extra.push((ColumnId::Bytes, ExtraValue::Number(bytes)));
        }
        if !self.extra.is_empty() {
            columns.set_columns(category, &self.extra);
        }
        Some((category, columns.events.len().saturating_sub(1)))
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

/// The optional columns that most events fill, in this order, behind those that the category always
/// has. What few events have comes as [`ExtraColumns`].
fn optional_columns(category: Category) -> &'static [ColumnId] {
    match category {
        Category::CpuOp => &[ColumnId::ForwardThread],
        Category::CudaApi | Category::Annotation | Category::CudaGraph => &[ColumnId::ExternalId],
        category if category.is_gpu_work() => &[ColumnId::ExternalId, ColumnId::GraphNode],
        _ => &[],
    }
}

fn positive(value: Option<i64>) -> u64 {
    value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
}

/// Bytes that were moved or set, as [`ColumnId::Bytes`] has them.
fn size(value: Option<i64>) -> u64 {
    value
        .and_then(|value| u64::try_from(value).ok())
        .unwrap_or(ColumnId::NO_SIZE)
}

/// Appends the event with its category's own values in the order of [`Category::columns`] and
/// [`optional_columns`].
fn push(events: &mut Events, common: flopwatch_model::Event, category: Category, event: &Event<'_>) {
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
        Category::CudaGraph => events.push(common, &[no_launch, external]),
        Category::CudaMigration => events.push(common, &[size(arguments.bytes)]),
        category if category.is_gpu_work() => {
            let node = positive(arguments.graph_node);
            events.push(common, &[size(arguments.bytes), no_launch, external, node]);
        }
        _ => events.push(common, &[]),
    }
}

/// The kinds of activity as Kineto names them, as it did in 2021, and as converters of nsys reports
/// do.
fn category(event: &Event<'_>) -> Category {
    match event.category {
        // What Meta's accelerator runs is its kernels.
        b"kernel" | b"Kernel" | b"cuda" | b"mtia_ccp_events" => Category::CudaKernel,
        b"gpu_memcpy" | b"Memcpy" => copy_direction::category(event.name).unwrap_or(Category::CudaMemcpyOther),
        b"gpu_memset" | b"Memset" => Category::CudaMemset,
        b"cuda_runtime" | b"cuda_driver" | b"Runtime" => Category::CudaApi,
        b"cpu_op" | b"Operator" | b"user_annotation" if event.name.starts_with(b"ProfilerStep#") => Category::Step,
        b"cpu_op" | b"Operator" => Category::CpuOp,
        b"user_annotation" => Category::Annotation,
        b"gpu_user_annotation" | b"nvtx-kernel" => Category::GpuAnnotation,
        b"nvtx" => Category::NvtxRange,
        b"python_function" => Category::PythonFunction,
        b"overhead" => Category::Overhead,
        b"hpu_op" => Category::DeviceOp,
        // Our own exports say the timeline's own names.
        own => std::str::from_utf8(own)
            .ok()
            .and_then(Category::from_name)
            .unwrap_or_else(|| of_any_accelerator(own)),
    }
}

/// By how Kineto names kinds of every accelerator: `xpu_runtime`, `mtia_runtime`,
/// `privateuse1_driver`, `xpu_sync`.
fn of_any_accelerator(kind: &[u8]) -> Category {
    let kind = kind.rsplit(|byte| *byte == b'_').next().unwrap_or_default();
    match kind {
        b"runtime" | b"driver" => Category::CudaApi,
        b"sync" => Category::CudaSync,
        _ => Category::Other,
    }
}

/// Whether a row is of a GPU: its events name a device where others name a process.
pub(super) fn is_of_gpu(track: Track) -> bool {
    matches!(track, Track::GpuStream | Track::CudaSync | Track::GpuAnnotation)
}

/// Where an event is shown, and of GPU work behind whose call or operator it stands.
fn row_key<'a>(category: Category, event: &Event<'a>, behind: Id<'a>) -> RowKey<'a> {
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
        category if category.is_gpu_work() || category == Category::CudaMigration => Track::GpuStream,
        _ => Track::Other,
    };
    let mut key = RowKey {
        track,
        process: event.process,
        thread: event.thread,
        device: None,
        context: None,
        stream: None,
        behind: Id::None,
    };
    if is_of_gpu(track) {
        let arguments = &event.arguments;
        key.device = arguments.device.and_then(|device| u32::try_from(device).ok());
        key.context = arguments.context.and_then(|context| u64::try_from(context).ok());
        // A wait for a whole context names stream -1, also as an unsigned number; a stream of HIP
        // is named by its address.
        key.stream = match arguments.stream {
            Some(stream) => u64::try_from(stream)
                .ok()
                .filter(|stream| *stream != u64::from(u32::MAX)),
            None => event.thread.trailing_number(),
        };
        key.behind = behind;
    }
    key
}

/// Where an event may begin at or behind `from`: a brace behind a comma or bracket, with a member
/// that events have. Where there is none, close to the end, so that one which has only just begun
/// is found when more text comes.
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
