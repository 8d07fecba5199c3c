//! How long a window may be: a function of what a first, short window took and of what there is.
//!
//! The library cannot be told to stop, so that a window that takes too much cannot be ended. Its
//! length is right before it begins, or it does not begin.
//!
//! **What a window takes** ([`pace`]) is told from the events that each process recorded in the
//! first one, and from what the container grew by meanwhile.
//!
//! **What there is**: of memory what the container's limit leaves, a part of what the node has
//! free, and what the agent's flag says ([`memory`]); of the traces the bound on a raw capture.

mod memory;
mod pace;

use std::time::Duration;

use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;

use crate::bound::{Bound, BoundBy};
pub(super) use memory::Memory;
use memory::MemoryBy;
use pace::Pace;
pub(super) use pace::{Probe, SLICE_DURATION, Trace};

/// Length of the first window.
const PROBE_DURATION: Duration = Duration::from_millis(200);
/// Shortest first window that tells anything: the library takes some milliseconds to begin.
const MIN_PROBE_DURATION: Duration = Duration::from_millis(50);
/// Shortest window that is worth one.
const MIN_WINDOW_DURATION: Duration = Duration::from_millis(500);
/// Bytes of memory in a second that a process may take of which nothing is known yet. A loop of
/// small layers took 2.2 GB in 2 s of one core (issue 37); a quicker core may take twice that.
const UNKNOWN_PACE_BYTES: u64 = 2_200_000_000;
/// How many times the memory and the traces are reserved that a window takes at the pace of the
/// first one: a program may do more later on.
const RESERVE_FACTOR: u64 = 2;
/// Most events of a window. The child that reads them has 1.5 GiB by default and takes 40 to 80
/// bytes for each.
const MAX_EVENTS: u64 = 10_000_000;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowRequest {
    /// Length of the window.
    pub(super) length: Duration,
    /// Whether events have more than their names: stacks, shapes and the like.
    pub(super) detailed: bool,
    /// Whether the program's iterations end the window, and no time.
    pub(super) by_iterations: bool,
}

/// What there is for a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means {
    /// Memory for its events.
    pub(super) memory: Memory,
    /// Bytes for its traces.
    pub(super) traces: Bound,
    /// Whether the traces lie in memory.
    pub(super) traces_in_memory: bool,
}

/// How long a window is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Length of the window.
    pub(super) length: Duration,
    /// Why it is shorter than was asked for; none where it is not.
    pub(super) shortened: Option<String>,
}

/// Length of the first window of so many processes, of which nothing is known yet. Fails where
/// there is no memory for any.
pub(super) fn probe_length(memory: Memory, processes: u64) -> Result<Duration, Failure> {
    let pace = UNKNOWN_PACE_BYTES.saturating_mul(processes.max(1));
    let longest = longest(memory.bytes, pace);
    if longest >= MIN_PROBE_DURATION {
        return Ok(longest.min(PROBE_DURATION));
    }
    let limit = Limit::Memory(memory);
    let message = format!(
        "there is no memory to find out what a window would take, which PyTorch cannot be told to end: {} may take {} MiB of memory a \
         second, and {} ms of that must fit into {memory}: {}",
        processes_of(processes.max(1)),
        mebibytes(pace),
        MIN_PROBE_DURATION.as_millis(),
        limit.remedy()
    );
    Err(Failure::new(limit.reason(), message))
}

/// Decides how long a window is after the first one. Fails with the figures where not even a short
/// one fits, and where one that cannot be shortened does not.
pub(super) fn window(asked: WindowRequest, probe: &Probe, means: &Means) -> Result<Window, Failure> {
    let pace = Pace::of(probe, asked.detailed, means.traces_in_memory);
    let reserved = pace.memory_bytes.saturating_mul(RESERVE_FACTOR);
    let (longest, limit) = [
        (
            longest(means.traces.bytes, pace.trace_bytes.saturating_mul(RESERVE_FACTOR)),
            Limit::Traces(means.traces),
        ),
        (longest(MAX_EVENTS, pace.events), Limit::Events),
    ]
    .into_iter()
    .fold(
        (longest(means.memory.bytes, reserved), Limit::Memory(means.memory)),
        |least, other| if other.0 < least.0 { other } else { least },
    );
    if longest >= asked.length {
        return Ok(Window {
            length: asked.length,
            shortened: None,
        });
    }
    let figures = limit.figures(pace, probe.length, means.traces_in_memory);
    let (given, wanted, remedy) = (seconds(longest), seconds(asked.length), limit.remedy());
    let refused = |message: String| -> Result<Window, Failure> { Err(Failure::new(limit.reason(), message)) };
    if longest < MIN_WINDOW_DURATION {
        return refused(format!(
            "not even a window of {} s fits, which PyTorch cannot be told to end: {figures}: {remedy}",
            seconds(MIN_WINDOW_DURATION)
        ));
    }
    if asked.by_iterations {
        return refused(format!(
            "a window by iterations is as long as the program makes it, and {given} s of the {wanted} s of durationSeconds fit: {figures}: \
             {remedy}; or leave spec.profiler.kineto.iterations out, for a window of {given} s"
        ));
    }
    Ok(Window {
        length: longest,
        shortened: Some(format!(
            "{given} s of the {wanted} s that were asked for were recorded, for PyTorch cannot be told to end a window: {figures}"
        )),
    })
}

/// What a window comes to the end of first.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Memory(Memory),
    Traces(Bound),
    Events,
}

impl Limit {
    const fn reason(self) -> CaptureReason {
        match self {
            Self::Memory(_) => CaptureReason::OverBudget,
            Self::Traces(Bound { by: BoundBy::Disk, .. }) => CaptureReason::DiskSpace,
            Self::Traces(_) | Self::Events => CaptureReason::CaptureTooLarge,
        }
    }

    fn figures(self, pace: Pace, probe: Duration, traces_in_memory: bool) -> String {
        let seen = format!(
            "by a first window of {} ms, {} would record {} events a second",
            probe.as_millis(),
            processes_of(pace.processes),
            pace.events
        );
        match self {
            Self::Memory(memory) => {
                let traces = if traces_in_memory { " and the traces" } else { "" };
                format!(
                    "{seen}, which at {} KiB each{traces} take {} MiB of memory, and {RESERVE_FACTOR} times that must fit into {memory}",
                    pace.event_bytes >> 10,
                    mebibytes(pace.memory_bytes)
                )
            }
            Self::Traces(bound) => {
                let whose = match bound.by {
                    BoundBy::Agent => "the agent's limit (--max-capture-bytes) allows",
                    BoundBy::Pod => "the pod's ephemeral-storage limit (with more it could be evicted) leaves",
                    BoundBy::Disk => "the disk of their folder leaves",
                };
                format!(
                    "{seen} and write {} KiB of traces, and {RESERVE_FACTOR} times that must fit into what {whose}, {} MiB",
                    pace.trace_bytes >> 10,
                    mebibytes(bound.bytes)
                )
            }
            Self::Events => format!("{seen}, of which a window may hold {MAX_EVENTS}"),
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::Memory(Memory {
                by: MemoryBy::Container(_),
                ..
            }) => "raise the container's memory limit, or ask for less (stacks, shapes)",
            Self::Memory(Memory {
                by: MemoryBy::Node(_), ..
            }) => "free some memory on the node, or ask for less (stacks, shapes)",
            Self::Memory(Memory {
                by: MemoryBy::Agent, ..
            })
            | Self::Traces(Bound { by: BoundBy::Agent, .. }) => "raise it, or ask for less (stacks, shapes)",
            Self::Traces(Bound { by: BoundBy::Pod, .. }) => {
                "raise that limit of its containers and create the pod anew, or ask for less (stacks, shapes)"
            }
            Self::Traces(Bound { by: BoundBy::Disk, .. }) => {
                "free some space there, set TMPDIR of the program to a larger volume, or ask for less (stacks, shapes)"
            }
            Self::Events => "profile a pod of fewer processes, or ask for less (stacks)",
        }
    }
}

fn processes_of(count: u64) -> String {
    if count == 1 {
        "1 process".to_owned()
    } else {
        format!("{count} processes")
    }
}

/// The longest time in which no more than `most` come at so many in a second, in whole ms.
fn longest(most: u64, in_a_second: u64) -> Duration {
    let ms = (u128::from(most) * 1000).checked_div(u128::from(in_a_second));
    Duration::from_millis(ms.map_or(u64::MAX, |ms| u64::try_from(ms).unwrap_or(u64::MAX)))
}

const fn mebibytes(bytes: u64) -> u64 {
    bytes >> 20
}

/// A length in seconds, for people: cut, so that nobody asks for more than fits.
fn seconds(length: Duration) -> String {
    let tenths = length.as_millis() / 100;
    if tenths.is_multiple_of(10) {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests;
