//! Turns planes into columns.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::Failure;
use super::counters::Series;
use super::details::{number, numbers};
use super::modules;
use super::plane::{Kind, Plane, Stat};
use super::program::{ProgramColumns, is_column};
use crate::copy_direction;
use crate::limits::ReadLimits;
use crate::redact;
use crate::times;
use crate::wire::{Damage, Message};
use flopwatch_model::{Capture, Category, ColumnId, Device, Event, Events, LossReason, NameId, Row, RowId, Track};

/// Starts are kept with this added until the smallest one is known.
const TIME_BIAS: u64 = 1 << 63;

/// What a plane is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// A device with streams.
    Gpu(u32),
    /// A device without.
    Accelerator(u32),
    Host,
    /// The host's plane of one profiler of its own.
    Only(Category, Track),
    Unknown,
}

impl Owner {
    fn of(name: &str) -> Self {
        let device = || {
            let digits = name.rsplit(':').next().unwrap_or_default();
            digits.split(' ').next().unwrap_or_default().parse().unwrap_or(0)
        };
        match name {
            _ if name.starts_with("/device:GPU:") => Self::Gpu(device()),
            _ if name.starts_with("/device:") => Self::Accelerator(device()),
            "/host:python-tracer" => Self::Only(Category::PythonFunction, Track::Python),
            "/host:NVTX-CUPTI" => Self::Only(Category::NvtxRange, Track::Nvtx),
            _ if name.starts_with("/host:") => Self::Host,
            _ => Self::Unknown,
        }
    }
}

/// `XLine`: id 1, name 2, start in ns 3, events 4, name to show 11.
#[derive(Debug, Default)]
struct Line<'a> {
    id: u64,
    name: String,
    start_ns: i64,
    events: Vec<Message<'a>>,
}

impl<'a> Line<'a> {
    fn read(message: Message<'a>) -> Result<Self, Damage> {
        let mut line = Self::default();
        let mut name: &[u8] = &[];
        let mut shown: &[u8] = &[];
        for field in message.fields() {
            let (field, value) = field?;
            match field {
                1 => line.id = value.number().unwrap_or(0),
                2 => name = value.bytes().unwrap_or_default(),
                3 => line.start_ns = value.number().unwrap_or(0).cast_signed(),
                4 => line.events.extend(value.message()),
                11 => shown = value.bytes().unwrap_or_default(),
                _ => {}
            }
        }
        line.name = String::from_utf8_lossy(if shown.is_empty() { name } else { shown }).into_owned();
        Ok(line)
    }

    /// The stream of `Stream #17(Kernel)`.
    fn stream(&self) -> Option<u64> {
        let number = self.name.strip_prefix("Stream #")?;
        let digits = number.split(|letter: char| !letter.is_ascii_digit()).next()?;
        Some(digits.parse().unwrap_or(self.id))
    }
}

/// `XEvent`: kind 1, start in ps from that of the line 2 or occurrences 5, length in ps 3,
/// statistics 4.
#[derive(Debug, Default)]
struct EventFields {
    kind: u64,
    offset_ps: i64,
    duration_ps: i64,
    aggregated: bool,
    correlation: u64,
    step: Option<u64>,
    kernel: Option<Vec<u8>>,
    copy: Option<Vec<u8>>,
    memset: Option<Vec<u8>>,
    reply: ProgramColumns,
}

impl EventFields {
    fn read<'a>(message: Message<'a>, plane: &Plane<'a>) -> Result<Self, Damage> {
        let mut found = Self::default();
        for field in message.fields() {
            let (field, value) = field?;
            match field {
                1 => {
                    found.kind = value.number().unwrap_or(0);
                    // What all events of the kind say comes before what this one says.
                    for stat in plane.kind(found.kind).into_iter().flat_map(Kind::stats) {
                        if let Some((name, value)) = plane.stat(stat?, is_column)? {
                            found.reply.take(name, value);
                        }
                    }
                }
                2 => found.offset_ps = value.number().unwrap_or(0).cast_signed(),
                3 => found.duration_ps = value.number().unwrap_or(0).cast_signed(),
                4 => {
                    if let Some(stat) = value.message() {
                        found.stat(stat, plane)?;
                    }
                }
                5 => found.aggregated = true,
                _ => {}
            }
        }
        Ok(found)
    }

    fn stat<'a>(&mut self, message: Message<'a>, plane: &Plane<'a>) -> Result<(), Damage> {
        let wanted = |name: &[u8]| {
            matches!(
                name,
                b"correlation_id" | b"step_num" | b"kernel_details" | b"memcpy_details" | b"memset_details"
            ) || is_column(name)
        };
        match plane.stat(message, wanted)? {
            Some((b"correlation_id", value)) => self.correlation = value.integer().unwrap_or(0),
            Some((b"step_num", value)) => self.step = value.integer(),
            Some((b"kernel_details", Stat::Text(text))) => self.kernel = Some(text),
            Some((b"memcpy_details", Stat::Text(text))) => self.copy = Some(text),
            Some((b"memset_details", Stat::Text(text))) => self.memset = Some(text),
            Some((name, value)) => self.reply.take(name, value),
            None => {}
        }
        Ok(())
    }

    /// Start and length in ns, cut so that what ends where another begins still does.
    fn span(&self, line: &Line<'_>) -> Option<(i64, u64)> {
        let start = i128::from(line.start_ns) * 1000 + i128::from(self.offset_ps);
        let end = start + i128::from(u64::try_from(self.duration_ps).ok()?);
        let (start, end) = (start.div_euclid(1000), end.div_euclid(1000));
        Some((i64::try_from(start).ok()?, u64::try_from(end - start).ok()?))
    }
}

/// The capture so far.
pub(super) struct Fill<'a> {
    pub(super) limits: &'a ReadLimits,
    pub(super) capture: Capture,
    pub(super) series: Series,
    texts: BTreeMap<(Category, ColumnId), HashMap<Vec<u8>, u32>>,
    rows: HashMap<Row, RowId>,
    names: BTreeMap<Category, HashMap<Vec<u8>, NameId>>,
    events: u64,
    string_bytes: u64,
    profile_start: Option<u64>,
}

impl<'a> Fill<'a> {
    pub(super) fn new(limits: &'a ReadLimits) -> Self {
        let mut capture = Capture::default();
        "XLA profiler".clone_into(&mut capture.source.tool);
        Self {
            limits,
            capture,
            series: Series::default(),
            texts: BTreeMap::new(),
            rows: HashMap::new(),
            names: BTreeMap::new(),
            events: 0,
            string_bytes: 0,
            profile_start: None,
        }
    }

    /// Counts a message that says that something went wrong; its text may name anything.
    pub(super) fn message_of_the_profiler(&mut self, what: &str) {
        self.capture.losses.add(LossReason::Dropped, what, 1);
    }

    /// Adds the events of a plane.
    pub(super) fn plane(&mut self, plane: &Plane<'_>) -> Result<(), Failure> {
        let name = String::from_utf8_lossy(plane.name).into_owned();
        let owner = Owner::of(&name);
        if let Owner::Gpu(id) | Owner::Accelerator(id) = owner {
            self.device(id, plane)?;
        }
        for stat in &plane.stats {
            if let Some((_, value)) = plane.stat(*stat, |name| name == b"profile_start_time")? {
                self.profile_start = value.integer().filter(|start| *start > 0);
            }
        }
        if plane.name == modules::PLANE {
            self.modules(plane)?;
        }
        for line in &plane.lines {
            self.line(plane, owner, &name, &Line::read(*line)?)?;
        }
        Ok(())
    }

    fn line(&mut self, plane: &Plane<'_>, owner: Owner, plane_name: &str, line: &Line<'_>) -> Result<(), Failure> {
        for message in &line.events {
            let found = EventFields::read(*message, plane)?;
            if found.aggregated {
                self.capture.losses.add(LossReason::Unsupported, "aggregated events", 1);
                continue;
            }
            let Some((start, duration_ns)) = found.span(line) else {
                self.capture
                    .losses
                    .add(LossReason::Skipped, "events that end before they start", 1);
                continue;
            };
            self.events += 1;
            if self.events > self.limits.max_events {
                return Err(too_many("events", self.limits.max_events));
            }
            let kind = plane.kind(found.kind);
            let unnamed = format!("event {}", found.kind).into_bytes();
            let name = kind.map_or(unnamed.as_slice(), |kind| kind.name);
            if line.name == "_counters_" {
                self.samples(owner, name, start.cast_unsigned() ^ TIME_BIAS, (*message, plane))?;
                continue;
            }
            if matches!(owner, Owner::Host) {
                self.allocation(name, (start.cast_unsigned() ^ TIME_BIAS, line.id), (*message, plane))?;
            }
            let (category, track) = classify(owner, line, &found, name);
            let row = self.row(owner, track, plane_name, line)?;
            let name = self.name(category, name)?;
            let event = Event {
                start_ns: start.cast_unsigned() ^ TIME_BIAS,
                duration_ns,
                row,
                name,
                correlation: u32::try_from(found.correlation).unwrap_or(0),
            };
            self.push(category, event, found)?;
        }
        Ok(())
    }

    fn push(&mut self, category: Category, event: Event, mut found: EventFields) -> Result<(), Failure> {
        let events = self.capture.events.entry(category);
        let events = events.or_insert_with(|| Events::new(category));
        match category {
            Category::CudaKernel => {
                let text = found.kernel.as_deref().unwrap_or_default();
                let [grid_x, grid_y, grid_z] = numbers(text, "grid").unwrap_or_default();
                let [block_x, block_y, block_z] = numbers(text, "block").unwrap_or_default();
                let own = [
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    number(text, &["regs", "registers_per_thread"]),
                    number(text, &["static_shared", "static_shared_memory_usage", "group_mem"]),
                    number(text, &["dynamic_shared", "dynamic_shared_memory_usage"]),
                ];
                events.push(event, &own);
            }
            Category::Step => events.push(event, &[found.step.unwrap_or(0)]),
            Category::CudaGraph => events.push(event, &[]),
            category if category.is_gpu_work() => {
                let text = found.copy.as_deref().or(found.memset.as_deref()).unwrap_or_default();
                events.push(event, &[size(text)]);
            }
            _ => events.push(event, &[]),
        }
        for text in [&found.kernel, &found.copy, &found.memset].into_iter().flatten() {
            found.reply.take_details(text);
        }
        for (id, stat) in found.reply.of(category) {
            self.set_column(category, id, stat)?;
        }
        Ok(())
    }

    /// Notes what the last event says in a column that few events have.
    fn set_column(&mut self, category: Category, id: ColumnId, stat: &Stat) -> Result<(), Failure> {
        let value = match stat {
            Stat::Text(text) if id.is_text() => u64::from(self.text(category, id, text)?),
            Stat::Integer(value) if !id.is_text() => *value,
            Stat::Integer(_) | Stat::Double(_) | Stat::Text(_) => return Ok(()),
        };
        if let Some(events) = self.capture.events.get_mut(&category) {
            let last = events.len().saturating_sub(1);
            let slot = events.add_column(id);
            if let Some(column) = events.columns.get_mut(slot) {
                column.values.set(last, value);
            }
        }
        Ok(())
    }

    /// The number of a text in its column.
    fn text(&mut self, category: Category, id: ColumnId, raw: &[u8]) -> Result<u32, Failure> {
        if raw.is_empty() {
            return Ok(0);
        }
        if let Some(number) = self.texts.entry((category, id)).or_default().get(raw) {
            return Ok(*number);
        }
        self.take(raw.len())?;
        let text = self.publishable(raw);
        let events = self.capture.events.entry(category);
        let events = events.or_insert_with(|| Events::new(category));
        let slot = events.add_column(id);
        let Some(column) = events.columns.get_mut(slot) else {
            return Ok(0);
        };
        let number = u32::try_from(column.texts.len()).unwrap_or(u32::MAX);
        column.texts.push(text);
        self.texts
            .entry((category, id))
            .or_default()
            .insert(raw.to_vec(), number);
        Ok(number)
    }

    fn row(&mut self, owner: Owner, track: Track, plane: &str, line: &Line<'_>) -> Result<RowId, Failure> {
        let stream = line.stream();
        let (device, label) = match owner {
            Owner::Gpu(device) => (Some(device), format!("GPU {device} {}", line.name)),
            Owner::Accelerator(device) => (Some(device), format!("{plane} {}", line.name)),
            Owner::Host => (None, line.name.clone()),
            Owner::Only(..) | Owner::Unknown => (None, format!("{plane} {}", line.name)),
        };
        let row = Row {
            capture: 0,
            machine: 0,
            process: 0,
            track,
            device,
            context: None,
            stream: stream.filter(|_| track == Track::GpuStream),
            thread: Some(line.id).filter(|_| device.is_none()),
            label,
        };
        if let Some(known) = self.rows.get(&row) {
            return Ok(*known);
        }
        let limit = self.limits.max_rows;
        let next = RowId::from_index(self.rows.len()).filter(|row| row.number() < limit);
        let next = next.ok_or_else(|| too_many("streams and threads", u64::from(limit)))?;
        self.take(row.label.len())?;
        let label = self.publishable(row.label.as_bytes());
        self.capture.rows.push(Row { label, ..row.clone() });
        self.rows.insert(row, next);
        Ok(next)
    }

    fn name(&mut self, category: Category, raw: &[u8]) -> Result<NameId, Failure> {
        if let Some(name) = self.names.entry(category).or_default().get(raw) {
            return Ok(*name);
        }
        self.take(raw.len())?;
        let text = self.publishable(raw);
        let events = self
            .capture
            .events
            .entry(category)
            .or_insert_with(|| Events::new(category));
        let next = NameId::from_index(events.names.len());
        let next = next.ok_or_else(|| too_many("names", u64::from(u32::MAX)))?;
        events.names.push(text);
        self.names.entry(category).or_default().insert(raw.to_vec(), next);
        Ok(next)
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Failure> {
        self.string_bytes = self
            .string_bytes
            .saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.string_bytes > self.limits.max_string_bytes {
            return Err(too_many("bytes of strings", self.limits.max_string_bytes));
        }
        Ok(())
    }

    /// A text as it may be published: secrets replaced and counted, without NUL, which files cannot
    /// hold.
    pub(super) fn publishable(&mut self, raw: &[u8]) -> String {
        let text = String::from_utf8_lossy(raw);
        let (clean, count) = redact::redact(&text);
        self.capture.redactions = self.capture.redactions.saturating_add(count);
        clean.replace('\0', "\u{fffd}")
    }

    /// Takes what a plane says of its device.
    fn device(&mut self, id: u32, plane: &Plane<'_>) -> Result<(), Failure> {
        let limit = u64::from(self.limits.max_rows);
        if u64::try_from(self.capture.devices.len()).unwrap_or(u64::MAX) >= limit {
            return Err(too_many("devices", limit));
        }
        let mut device = Device {
            id,
            figures_from: "XPlane".to_owned(),
            ..Device::default()
        };
        let (mut major, mut minor) = (None, None);
        for stat in &plane.stats {
            let Some((name, value)) = plane.stat(*stat, |_| true)? else {
                continue;
            };
            let small = value.integer().and_then(|value| u32::try_from(value).ok());
            match (name, &value) {
                (b"device_type_string", Stat::Text(text)) => {
                    let text = text.get(..text.len().min(256)).unwrap_or_default();
                    device.name = self.publishable(text);
                }
                (b"core_count", _) => device.multiprocessors = small,
                (b"memory_size", _) => device.memory_bytes = value.integer(),
                (b"memory_bandwidth", _) => device.peak_bandwidth = value.integer().filter(|bandwidth| *bandwidth > 0),
                (b"peak_hbm_bw_gigabytes_per_second", Stat::Double(giga)) => device.peak_bandwidth = whole(giga * 1e9),
                (b"peak_teraflops_per_second", Stat::Double(tera)) => {
                    let peak = whole(tera * 1e12).map(|peak| ("any".to_owned(), peak));
                    device.peak_flops.extend(peak);
                }
                (b"compute_cap_major", _) => major = small,
                (b"compute_cap_minor", _) => minor = small,
                _ => {}
            }
        }
        device.compute_capability = major.zip(minor);
        self.capture.devices.push(device);
        Ok(())
    }

    /// The capture, its times counted from the first event on.
    pub(super) fn finish(mut self) -> Capture {
        // A category without events is none of those that were captured.
        times::remove_impossible_times(&mut self.capture, TIME_BIAS, None);
        if let Some(possible_times) = times::possible_times(&self.capture) {
            let samples = self.series.retain(|at| possible_times.contains(&at));
            times::count_loss(&mut self.capture, "samples", samples);
            let before = self.capture.allocations.len();
            self.capture.allocations.retain(|of| possible_times.contains(&of.t_ns));
            let allocations = before - self.capture.allocations.len();
            times::count_loss(&mut self.capture, "allocations", allocations);
        }
        let starts = self
            .capture
            .events
            .values()
            .flat_map(|events| events.start_ns.iter().copied());
        let series = std::mem::take(&mut self.series);
        let first = starts.chain(series.first()).min().unwrap_or(TIME_BIAS);
        self.capture.counters = series.since(first);
        for (category, events) in &mut self.capture.events {
            for start in &mut events.start_ns {
                *start = start.saturating_sub(first);
            }
            events.drop_unsaid_columns(*category);
        }
        for allocation in &mut self.capture.allocations {
            allocation.t_ns = allocation.t_ns.saturating_sub(first);
        }
        let origin = (first ^ TIME_BIAS).cast_signed();
        let since_epoch = u64::try_from(origin).ok().filter(|_| origin >= times::MIN_UNIX_NS);
        let since_start = || self.profile_start.and_then(|start| start.checked_add_signed(origin));
        self.capture.session_start_utc_ns = since_epoch.or_else(since_start);
        self.capture.duration_ns = times::last_moment(&self.capture);
        self.capture.captured = self.capture.events.keys().copied().collect();
        let used: Vec<u32> = self.capture.rows.iter().filter_map(|row| row.device).collect();
        self.capture.devices.retain(|device| used.contains(&device.id));
        self.capture
    }
}

/// A figure as a whole number; `None` for 0, and for what is none.
fn whole(value: f64) -> Option<u64> {
    let whole: u64 = format!("{value:.0}").parse().ok()?;
    (whole > 0).then_some(whole)
}

pub(super) fn too_many(what: &'static str, limit: u64) -> Failure {
    Failure::TooMany { what, limit }
}

/// What an event is, and the track it is shown on.
fn classify(owner: Owner, line: &Line<'_>, found: &EventFields, name: &[u8]) -> (Category, Track) {
    match owner {
        Owner::Gpu(_) if line.stream().is_some() => (gpu_work(line, found, name), Track::GpuStream),
        Owner::Accelerator(_) if matches!(line.name.as_str(), "XLA Ops" | "Async XLA Ops") => {
            (Category::DeviceOp, Track::Device)
        }
        Owner::Gpu(_) | Owner::Accelerator(_) => (Category::Derived, Track::Derived),
        Owner::Host if found.correlation != 0 => (Category::CudaApi, Track::CudaApi),
        Owner::Host if name.starts_with(b"$") => (Category::PythonFunction, Track::Python),
        Owner::Host if found.step.is_some() => (Category::Step, Track::Annotation),
        Owner::Host => (Category::Annotation, Track::Annotation),
        Owner::Only(category, track) => (category, track),
        Owner::Unknown => (Category::Other, Track::Other),
    }
}

/// Bytes that were moved or set, as [`ColumnId::Bytes`] has them, of the details of a copy or
/// memset.
fn size(details: &[u8]) -> u64 {
    let found = ["size", "num_bytes"]
        .into_iter()
        .find_map(|name| numbers(details, name));
    found.map_or(ColumnId::NO_SIZE, |[size, ..]| size)
}

fn gpu_work(line: &Line<'_>, found: &EventFields, name: &[u8]) -> Category {
    let copy = found.copy.is_some() || name.starts_with(b"Memcpy");
    if found.kernel.is_some() {
        Category::CudaKernel
    } else if name.starts_with(b"CudaGraphExec:") {
        Category::CudaGraph
    } else if found.memset.is_some() || name.starts_with(b"Memset") {
        Category::CudaMemset
    } else if copy {
        // `Stream #20(MemcpyH2D)`: what a line has most of.
        let of_line = || {
            let (_, kinds) = line.name.split_once('(')?;
            copy_direction::category(kinds.split(',').next()?.as_bytes())
        };
        let direction = copy_direction::category(name).or_else(of_line);
        direction.unwrap_or(Category::CudaMemcpyOther)
    } else {
        Category::CudaKernel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_a_stream_is_what_its_name_tells_where_it_has_no_details() {
        let line = |name: &str| Line {
            name: name.to_owned(),
            ..Line::default()
        };
        for (of, name, expected) in [
            ("Stream #20", "CudaGraphExec:3", Category::CudaGraph),
            ("Stream #20", "MemcpyD2H", Category::CudaMemcpyD2h),
            ("Stream #20(MemcpyP2P,Memset)", "Memcpy", Category::CudaMemcpyP2p),
            ("Stream #20(Compute,MemcpyP2P)", "Memcpy", Category::CudaMemcpyOther),
            ("Stream #20", "Memset", Category::CudaMemset),
            ("Stream #20", "fusion_1", Category::CudaKernel),
        ] {
            let found = gpu_work(&line(of), &EventFields::default(), name.as_bytes());
            assert_eq!(found, expected, "{of}: {name}");
        }
    }
}
