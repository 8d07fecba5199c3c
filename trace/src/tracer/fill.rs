//! From records to a capture.

use std::collections::BTreeMap;
use std::ops::Range;

use hashbrown::HashMap;

use super::external::External;
use super::names::{Key, Names, Program, program};
use super::places::{MAX_DEVICES, Place, Places};
use super::{Failure, columns, why_not};
use crate::cupti::COPY_KINDS;
use crate::limits::ReadLimits;
use crate::times;
use flopwatch_model::{Capture, Category, Event, Events, LossReason};
use flopwatch_tracer_file::process::{Count, Phase};
use flopwatch_tracer_file::record::Record;
use flopwatch_tracer_file::wanted::Kinds;
use flopwatch_tracer_file::{Losses, Name, Origin, VERSION};

/// What is filled of a category when a kind was recorded.
const CATEGORIES: [(Kinds, &[Category]); 8] = [
    (Kinds::KERNELS, &[Category::CudaKernel]),
    (Kinds::COPIES, &Category::MEMCPY),
    (Kinds::SETS, &[Category::CudaMemset]),
    (Kinds::SYNCS, &[Category::CudaSync]),
    (Kinds::RUNTIME, &[Category::CudaApi]),
    (Kinds::DRIVER, &[Category::CudaApi]),
    (Kinds::GRAPHS, &[Category::CudaGraph]),
    (Kinds::OVERHEAD, &[Category::Overhead]),
];

/// The capture so far. Starts are ns since the Unix epoch until the end.
pub(super) struct Fill {
    limits: ReadLimits,
    capture: Capture,
    events: BTreeMap<Category, Events>,
    names: Names,
    places: Places,
    external: External,
    /// How far a program's clock of CUPTI is behind real time.
    distances: HashMap<Program, u64>,
    count: u64,
    failure: Option<Failure>,
    clockless: u64,
}

/// Where an event is, and when on CUPTI's clock.
#[derive(Clone, Copy)]
struct Found {
    category: Category,
    name: Key,
    place: Place,
    times: (u64, u64),
    correlation: u32,
}

impl Fill {
    pub(super) fn new(limits: ReadLimits) -> Self {
        let mut capture = Capture::default();
        "Flopwatch CUDA tracer".clone_into(&mut capture.source.tool);
        capture.source.schema_version = VERSION.to_string();
        Self {
            limits,
            capture,
            events: BTreeMap::new(),
            names: Names::default(),
            places: Places::default(),
            external: External::default(),
            distances: HashMap::new(),
            count: 0,
            failure: None,
            clockless: 0,
        }
    }

    /// Fails where something was beyond its limit.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn count_nonsense(&mut self, count: u64) {
        self.lost(LossReason::Skipped, "CUDA records that make no sense", count);
    }

    /// Takes how many processes found no slot.
    pub(super) fn leave_out(&mut self, processes: u64) {
        let what = "CUDA of programs beyond the 256 that the file has room for, since it was made";
        self.lost(LossReason::Dropped, what, processes);
    }

    fn lost(&mut self, reason: LossReason, what: &str, count: u64) {
        self.capture.losses.add(reason, what, count);
    }

    /// Takes a record.
    pub(super) fn add(&mut self, origin: &Origin, record: &Record) {
        // What describes something takes as much memory as an event does, and counts as one.
        if record.times().is_none() && !self.has_room() {
            return;
        }
        let of = program(origin);
        let process = origin.pid;
        let stream = |places: &Places, device: u32, context: u32, stream: u32| {
            Place::Stream(process, places.device(of, device), context, stream)
        };
        let found = |category, name, place, correlation| Found {
            category,
            name,
            place,
            times: record.times().unwrap_or_default(),
            correlation,
        };
        match record {
            Record::Kernel(kernel) => {
                let run = &kernel.run;
                let place = stream(&self.places, run.device, run.context, run.stream);
                let found = found(Category::CudaKernel, Key::File(run.name), place, run.correlation);
                self.push(origin, found, &columns::kernel(kernel));
            }
            Record::Copy(copy) => {
                let (category, name) = kind_of_copy(copy.kind);
                let place = stream(&self.places, copy.device, copy.context, copy.stream);
                let found = found(category, Key::Fixed(name), place, copy.correlation);
                self.push(origin, found, &columns::copy(category, copy));
            }
            Record::Peer(peer) => {
                let (category, name) = kind_of_copy(peer.kind);
                let place = stream(&self.places, peer.device, peer.context, peer.stream);
                let found = found(category, Key::Fixed(name), place, peer.correlation);
                self.push(origin, found, &columns::peer(category, peer));
            }
            Record::Set(set) => {
                let place = stream(&self.places, set.device, set.context, set.stream);
                let name = Key::Fixed("[CUDA memset]");
                let found = found(Category::CudaMemset, name, place, set.correlation);
                self.push(origin, found, &columns::set(set));
            }
            Record::Graph(graph) => {
                let place = stream(&self.places, graph.device, graph.context, graph.stream);
                let found = found(Category::CudaGraph, Key::Graph(graph.graph), place, graph.correlation);
                self.push(origin, found, &columns::graph(graph.graph));
            }
            Record::Sync(wait) => {
                let place = Place::Waits(process, wait.context, wait.stream);
                let found = found(Category::CudaSync, Key::Sync(wait.kind), place, wait.correlation);
                self.push(origin, found, &[]);
            }
            Record::Call(call) => {
                let name = Key::Call(of, call.domain, call.function);
                let place = Place::Calls(process, call.thread);
                let found = found(Category::CudaApi, name, place, call.correlation);
                self.push(origin, found, &[u64::from(call.status)]);
            }
            Record::Overhead(overhead) => {
                let name = Key::Overhead(overhead.kind);
                let found = found(Category::Overhead, name, Place::Overhead(process), overhead.correlation);
                self.push(origin, found, &[]);
            }
            Record::Context(context) => {
                let device = self.places.device(of, context.device);
                self.places.note_context(process, context.context, device);
            }
            Record::Device(device) => {
                if !self.places.note_device(of, device) {
                    self.lost(LossReason::Skipped, &format!("CUDA devices beyond {MAX_DEVICES}"), 1);
                }
            }
            Record::CallName(name) => self.names.note(of, name.domain, name.function, name.name),
            Record::Partition(partition) => self.places.note_partition(of, partition),
            Record::Stream(stream) => self.places.note_stream(process, stream),
            Record::Correlation(correlation) => self.external.note(process, correlation),
        }
    }

    /// Whether there may be one more event; fails from then on where there may not.
    fn has_room(&mut self) -> bool {
        if self.failure.is_some() {
            return false;
        }
        self.count = self.count.saturating_add(1);
        let limit = self.limits.max_events;
        if self.count > limit {
            self.failure = Some(Failure::TooMany { what: "events", limit });
        }
        self.failure.is_none()
    }

    fn push(&mut self, origin: &Origin, found: Found, own: &[u64]) {
        if self.failure.is_some() {
            return;
        }
        let (begin, end) = found.times;
        let Some(start_ns) = self.real_time(origin, begin) else {
            self.clockless = self.clockless.saturating_add(1);
            return;
        };
        if !self.has_room() {
            return;
        }
        let most = self.limits.max_rows;
        let (row, name) = (
            self.places.row(found.place, most),
            self.names.id(found.category, found.name),
        );
        let (Some(row), Some(name)) = (row, name) else {
            let (what, limit) = if row.is_none() {
                ("rows", most)
            } else {
                ("names", u32::MAX)
            };
            let limit = u64::from(limit);
            self.failure = Some(Failure::TooMany { what, limit });
            return;
        };
        let event = Event {
            start_ns,
            duration_ns: end.saturating_sub(begin),
            row,
            name,
            correlation: found.correlation,
        };
        let category = found.category;
        let events = self.events.entry(category).or_insert_with(|| columns::of(category));
        events.push(event, own);
    }

    /// A time of CUPTI's clock as one since the Unix epoch; `None` for a program that never said
    /// how they stand.
    fn real_time(&mut self, origin: &Origin, cupti_ns: u64) -> Option<u64> {
        let moment = origin.moment;
        let known = self.distances.get(&program(origin)).copied();
        let distance = match known {
            Some(known) => known,
            None if moment.cupti_ns == 0 => return None,
            None => {
                let distance = moment.realtime_ns.wrapping_sub(moment.cupti_ns);
                self.distances.insert(program(origin), distance);
                distance
            }
        };
        Some(cupti_ns.wrapping_add(distance))
    }

    /// Takes what a process lost, and what it recorded. One `of_several` is told by its number.
    /// Where the file's windows are over, one that still records ended within its window.
    pub(super) fn lose(&mut self, losses: &Losses, of_several: bool, is_over: bool) {
        use LossReason::{Dropped, Skipped, Truncated, Unsupported};
        let overwritten = losses.overwritten;
        let process = &losses.process;
        let place = if of_several {
            format!(" (process {})", process.pid)
        } else {
            String::new()
        };
        let mut lost = |reason, text: &str, count| self.lost(reason, &format!("{text}{place}"), count);
        lost(Dropped, "CUDA records that the file no longer holds", overwritten);
        for what in Count::ALL {
            let (reason, text) = match what {
                Count::Records | Count::Windows | Count::BytesDiscarded => continue,
                Count::Dropped => (Dropped, "CUDA records that CUPTI dropped"),
                Count::BuffersDiscarded => (Dropped, "buffers of CUDA records beyond the pool"),
                Count::BuffersOpen => (Dropped, "buffers of CUDA records that CUPTI kept at a window's end"),
                Count::BuffersForeign => (Skipped, "buffers of CUDA records of another profiler"),
                Count::RecordsUnknown => (Unsupported, "CUDA records of other kinds"),
                Count::RecordsTimeless => (Skipped, "CUDA records without a time"),
                Count::RecordsMalformed => (Skipped, "CUDA records that are not whole"),
                Count::RecordsUnplaced => (Dropped, "CUDA records that found no segment"),
                Count::NamesUnplaced => (Truncated, "names of CUDA kernels that found no place"),
                Count::NamesUnread => (Truncated, "names of CUDA kernels that were gone"),
            };
            lost(reason, text, process.count(what));
        }
        let has_ended = is_over
            && matches!(
                process.phase,
                Phase::Opening | Phase::Recording | Phase::Ending | Phase::Replaced
            );
        lost(
            Dropped,
            "buffers of CUDA records that CUPTI still had when their program ended",
            if has_ended { process.held } else { 0 },
        );
        if let Some(why) = why_not(process) {
            lost(
                Unsupported,
                &format!("CUDA of a program that was not recorded: {why}"),
                1,
            );
        }
        if process.count(Count::Windows) > 0 || overwritten > 0 || !self.events.is_empty() {
            let recorded = CATEGORIES.iter().filter(|(kind, _)| process.kinds.has(*kind));
            let categories = recorded.flat_map(|(_, categories)| categories.iter().copied());
            self.capture.captured.extend(categories);
        }
    }

    /// The capture.
    pub(super) fn finish(
        mut self,
        window: Option<Range<u64>>,
        mut read: impl FnMut(u32, &mut dyn FnMut(Option<Name<'_>>)) -> Result<(), Failure>,
    ) -> Result<Capture, Failure> {
        let limit = self.limits.max_string_bytes;
        let mut names = HashMap::new();
        for (device, number) in self.places.names() {
            names.insert(device, self.names.text(number, limit, &mut read)?);
        }
        for (category, events) in &mut self.events {
            self.names.fill(*category, events, limit, &mut read)?;
            let places = &self.places;
            self.external.fill(*category, events, |events, at| {
                events.row.get(at).map_or(0, |row| places.process(*row))
            });
            events.drop_unsaid_columns(*category);
        }
        self.capture.redactions = self.names.redactions;
        let cut = self.names.cut;
        self.lost(LossReason::Truncated, "names of CUDA kernels that are longer", cut);
        let clockless = self.clockless;
        self.lost(
            LossReason::Skipped,
            "CUDA records of a process without a clock",
            clockless,
        );
        let mut capture = self.capture;
        capture.events = self.events;
        (capture.rows, capture.devices) = self.places.finish(&names);
        let emptied = times::remove_impossible_times(&mut capture, 0, None);
        capture.captured.retain(|category| !emptied.contains(category));
        match window {
            Some(window) => cut_to(&mut capture, &window),
            None => begin_with_the_first(&mut capture),
        }
        capture.events.retain(|_, events| !events.is_empty());
        let declared = std::mem::take(&mut capture.captured);
        capture.captured.extend(capture.events.keys().copied());
        capture.declare_captured(declared);
        Ok(capture)
    }
}

/// Category and name of a copy of a kind.
pub(super) fn kind_of_copy(kind: u8) -> (Category, &'static str) {
    let known = COPY_KINDS.get(usize::from(kind));
    known
        .copied()
        .unwrap_or((Category::CudaMemcpyOther, "[CUDA memcpy Unknown]"))
}

/// Counts all starts from the first one on.
fn begin_with_the_first(capture: &mut Capture) {
    let starts = capture.events.values().flat_map(|events| events.start_ns.iter());
    let first = starts.copied().min();
    capture.session_start_utc_ns = first;
    rebase(capture, first.unwrap_or(0));
    capture.duration_ns = times::last_end(&capture.events).unwrap_or(0);
}

fn rebase(capture: &mut Capture, zero: u64) {
    for start in capture.events.values_mut().flat_map(|events| &mut events.start_ns) {
        *start = start.saturating_sub(zero);
    }
}

/// Leaves what ran in the window.
fn cut_to(capture: &mut Capture, window: &Range<u64>) {
    let mut cut = 0;
    for events in capture.events.values_mut() {
        let is_in: Vec<bool> = (0..events.len())
            .map(|at| {
                let begins_before = events.start_ns.get(at).is_some_and(|start| *start < window.end);
                begins_before && events.end_ns(at) >= window.start
            })
            .collect();
        events.retain(&is_in);
        for (start, duration) in events.start_ns.iter_mut().zip(&mut events.duration_ns) {
            let end = start.saturating_add(*duration);
            cut += u64::from(*start < window.start || end > window.end);
            *start = (*start).max(window.start);
            *duration = end.min(window.end).saturating_sub(*start);
        }
    }
    let what = "CUDA events that go beyond the window";
    capture.losses.add(LossReason::Truncated, what, cut);
    capture.session_start_utc_ns = Some(window.start);
    capture.duration_ns = window.end.saturating_sub(window.start);
    rebase(capture, window.start);
}

#[cfg(test)]
mod tests {
    use flopwatch_tracer_file::Moment;
    use flopwatch_tracer_file::record::{CallName, Context, Correlation, Device, Partition, Stream};

    use super::*;

    #[test]
    fn what_describes_something_counts_as_an_event() {
        let origin = Origin {
            slot: 0,
            serial: 1,
            pid: 7,
            moment: Moment::default(),
        };
        for record in [
            Record::Device(Device::default()),
            Record::Partition(Partition::default()),
            Record::Context(Context::default()),
            Record::Stream(Stream::default()),
            Record::CallName(CallName::default()),
            Record::Correlation(Correlation::default()),
        ] {
            let limits = ReadLimits {
                max_events: 2,
                ..ReadLimits::default()
            };
            let mut fill = Fill::new(limits);
            fill.add(&origin, &record);
            fill.add(&origin, &record);
            assert!(fill.check().is_ok(), "{record:?}");
            fill.add(&origin, &record);
            let too_many = matches!(
                fill.check(),
                Err(Failure::TooMany {
                    what: "events",
                    limit: 2
                })
            );
            assert!(too_many, "{record:?}");
        }
    }
}
