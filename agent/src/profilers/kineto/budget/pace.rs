//! What the processes of a container do in a second of a window, by what they did in the first one.
//!
//! Each event takes of memory what the container grew by, at least a floor: memory that an earlier
//! window left behind in a process is used again and shows no growth.

use std::time::Duration;

use flopwatch_attach::process::Scheduled;
use flopwatch_model::count;

/// Fewest bytes of memory that an event takes. The loop that took 2.2 GB in 2 s (issue 37) went
/// through 60,000 layers a second, with some ten operators each: 1.8 KiB for each event if
/// recording slowed it by nothing. It does, by about half.
const EVENT_BYTES: u64 = 4 << 10;
/// The same with stacks, shapes and the like. With these, 60 s took 22.2 GB (issue 37), which is
/// all that the node had: they would have taken more.
const DETAILED_EVENT_BYTES: u64 = 8 << 10;
/// Most bytes of memory that an event is taken for: what a container grows by beyond that is the
/// program's own.
const MAX_EVENT_BYTES: u64 = 64 << 10;
/// Bytes of memory that the library takes in a process beside the events of its first window.
const ONCE_BYTES: u64 = 64 << 20;
/// Fewest events in a second that a process is taken for: it may have been idle in the first
/// window.
///
/// This is a floor and no bound. A process that is idle in the first window and busy in the second
/// one records up to some hundred times as many, as the loop of issue 37 did. Nothing ends that:
/// no watch over memory runs in a window that cannot be ended (`node/capture/memory.rs`). A floor
/// that holds such a loop would leave every idle server without a window. SECURITY.md has the gap
/// under "What remains".
const LEAST_EVENTS: u64 = 1_000;
/// Fewest bytes of traces in a second that a process is taken for: of so many events, with 400
/// bytes each.
const LEAST_TRACE_BYTES: u64 = LEAST_EVENTS * 400;

/// How many times as quick a process is taken for at the most than it was, where it waited for a
/// processor.
const MAX_DISTURBED: u32 = 16;

/// The time over which a process is seen at its busiest, in a slice of a processor's time.
pub(in crate::profilers::kineto) const SLICE_DURATION: Duration = Duration::from_millis(10);

/// What one process wrote of the first window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::profilers::kineto) struct Trace {
    /// Number of events of the traces.
    pub(in crate::profilers::kineto) events: u64,
    /// Size of the traces, in bytes.
    pub(in crate::profilers::kineto) bytes: u64,
    /// Time from the begin of its first event to that of its last.
    pub(in crate::profilers::kineto) span: Duration,
    /// Its events in the [`SLICE_DURATION`] in which most began.
    pub(in crate::profilers::kineto) busiest: u64,
}

/// The first window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::profilers::kineto) struct Probe {
    /// Length of the probe.
    pub(in crate::profilers::kineto) length: Duration,
    /// What each process wrote.
    pub(in crate::profilers::kineto) traces: Vec<Trace>,
    /// Processes that will be told too, and of which there is no trace.
    pub(in crate::profilers::kineto) unknown: u64,
    /// Bytes by which the container's memory grew; none where nobody counts them.
    pub(in crate::profilers::kineto) grown_bytes: Option<u64>,
    /// What the processes did with their time, from the first window until their traces were there.
    pub(in crate::profilers::kineto) scheduled: Scheduled,
    /// Processors of the machine; none where their number is not known.
    pub(in crate::profilers::kineto) processors: Option<u32>,
}

/// What processes do in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// How many they are.
    pub(super) processes: u64,
    /// Events that they record.
    pub(super) events: u64,
    /// Bytes of memory that one of these takes.
    pub(super) event_bytes: u64,
    /// Bytes of memory that they take together.
    pub(super) memory_bytes: u64,
    /// Bytes of traces that they write.
    pub(super) trace_bytes: u64,
}

impl Pace {
    /// By the first window, with events that have more than their names where they are `detailed`.
    pub(super) fn of(probe: &Probe, detailed: bool, traces_in_memory: bool) -> Self {
        let written = probe.traces.iter().map(|trace| trace.events);
        let written = written.fold(0, u64::saturating_add);
        let once = ONCE_BYTES.saturating_mul(count(probe.traces.len()));
        let grown = probe.grown_bytes.unwrap_or_default().saturating_sub(once);
        let least = if detailed { DETAILED_EVENT_BYTES } else { EVENT_BYTES };
        let event_bytes = grown.checked_div(written).unwrap_or_default();
        let event_bytes = event_bytes.clamp(least, MAX_EVENT_BYTES);

        let each = probe.traces.iter().map(|trace| trace.pace(probe.length));
        let (events, bytes): (Vec<u64>, Vec<u64>) = each.unzip();
        let recorded = of_all(&events, probe.unknown, LEAST_EVENTS);
        let busiest: Vec<u64> = probe.traces.iter().map(|trace| trace.at_its_busiest()).collect();
        // No more of them are at their busiest than there are processors.
        let all_at_once = probe.processors.map_or(u64::MAX, |processors| {
            let most = busiest.iter().copied().max().unwrap_or(LEAST_EVENTS);
            most.saturating_mul(u64::from(processors))
        });
        let busiest = of_all(&busiest, probe.unknown, LEAST_EVENTS).min(all_at_once);
        let events = undisturbed(recorded, busiest, probe.scheduled);
        // Each event is as long in a trace, however many there are.
        let bytes = u128::from(of_all(&bytes, probe.unknown, LEAST_TRACE_BYTES));
        let trace_bytes = (bytes * u128::from(events)).checked_div(u128::from(recorded));
        let trace_bytes = trace_bytes.map_or(u64::MAX, |bytes| u64::try_from(bytes).unwrap_or(u64::MAX));
        let in_memory = if traces_in_memory { trace_bytes } else { 0 };
        Self {
            processes: count(probe.traces.len()).saturating_add(probe.unknown),
            events,
            event_bytes,
            memory_bytes: events.saturating_mul(event_bytes).saturating_add(in_memory),
            trace_bytes,
        }
    }
}

impl Trace {
    /// Events in a second of nothing but its busiest moment.
    fn at_its_busiest(self) -> u64 {
        let moments = 1_000_000_000_u128
            .checked_div(SLICE_DURATION.as_nanos())
            .unwrap_or_default();
        let moments = u64::try_from(moments).unwrap_or(u64::MAX);
        self.busiest.saturating_mul(moments)
    }

    /// Events and bytes in a second. A busy machine may have begun late with the first window, or
    /// ended it late; by how much is bounded, because a program may work in bursts.
    fn pace(self, probe: Duration) -> (u64, u64) {
        let time = self.span.clamp(probe / 2, probe.saturating_mul(2));
        let in_a_second = |count: u64| {
            let exact = u128::from(count) * 1_000_000_000 / time.as_nanos().max(1);
            u64::try_from(exact).unwrap_or(u64::MAX)
        };
        (
            in_a_second(self.events).max(LEAST_EVENTS),
            in_a_second(self.bytes).max(LEAST_TRACE_BYTES),
        )
    }
}

/// A pace as it may become when nobody else wants the processors: in the first window the processes
/// may have waited for them for most of the time. In that time they would have done what they did
/// while they ran, and no less than in their busiest moment: a few milliseconds of running, most of
/// which the library takes to begin, tell too little.
fn undisturbed(pace: u64, busiest: u64, scheduled: Scheduled) -> u64 {
    let Scheduled { ran, waited } = scheduled;
    let wanted = ran.saturating_add(waited);
    let scaled = |pace: u64, by: Duration, of: Duration| {
        let exact = (u128::from(pace) * by.as_nanos()).checked_div(of.as_nanos())?;
        Some(u64::try_from(exact).unwrap_or(u64::MAX))
    };
    let by_time = scaled(pace, wanted.min(ran.saturating_mul(MAX_DISTURBED)), ran).unwrap_or(pace);
    let by_moment = scaled(busiest, waited, wanted).map_or(pace, |more| pace.saturating_add(more));
    by_time.max(by_moment)
}

/// The sum of what those do of whom something is known, and of others, of whom each does as much as
/// who does most.
fn of_all(known: &[u64], unknown: u64, least: u64) -> u64 {
    let most = known.iter().copied().max().unwrap_or(least);
    let others = most.saturating_mul(unknown);
    known.iter().copied().fold(others, u64::saturating_add)
}
