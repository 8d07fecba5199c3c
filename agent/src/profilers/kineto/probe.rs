//! The first window, of a fraction of a second: what each process of a container records in it, and
//! what that takes of the container's memory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::bounded::Gate;
use flopwatch_attach::process::{ProcessId, Procfs, Scheduled};
use flopwatch_attach::rootfs::RootfsError;
use flopwatch_model::count;
use flopwatch_pipeline::failure::Failure;

use super::Collection;
use super::budget::{Probe, Trace};
use super::collection::{Waiting, await_traces};
use super::pack::outgrown;
use super::recorders::Recorders;
use super::room::Room;
use super::tally::Tally;
use super::trace_directory::TraceDirectory;
use crate::profilers::Site;

/// How long the processes may take to write the traces of the first window, from its end on.
const WRITING_TIMEOUT: Duration = Duration::from_secs(30);
/// The shortest time over which it is told how much of it processes waited for a processor.
const MIN_PIECE_DURATION: Duration = Duration::from_millis(100);
/// How long who asks is heard after the first window's start: until the next one begins.
pub(super) const ASKER_TTL: Duration = Duration::from_mins(2);

/// What is known after the first window.
#[derive(Debug)]
pub(super) struct FirstWindow {
    /// What was recorded.
    pub(super) probe: Probe,
    /// The processes that asked what to record. Of any other nothing is known.
    pub(super) asked: BTreeSet<ProcessId>,
}

/// How many processes of the container may record: those that have PyTorch.
pub(super) fn processes(gate: &Gate, site: &Site, collection: &Collection) -> Result<u64, Failure> {
    let (containers, id) = (Arc::clone(&site.containers), site.container_id.clone());
    TraceDirectory::of(gate, site, collection, CaptureReason::AttachFailed).inspect(move |_folder| {
        let procfs = containers.procfs();
        let with_torch = containers
            .processes(&id)
            .into_iter()
            .filter(|process| procfs.mapped(*process).is_ok_and(|mapped| mapped.torch));
        Ok(count(with_torch.count()))
    })
}

/// Waits for the traces of a first window that has begun, and counts what is in them. `processors`
/// were looked at since before the window: on a machine that is too busy to begin with this at once
/// they tell how much of it the processes got.
pub(super) fn read(
    gate: &Gate,
    recorders: &Recorders,
    site: &Site,
    first: &Collection,
    room: &Room,
    mut processors: Processors,
) -> Result<FirstWindow, Failure> {
    processors.inspect();
    let place = TraceDirectory::of(gate, site, first, CaptureReason::CollectionFailed);
    let before = room.held_bytes();
    let mut most = before;
    let written = await_traces(
        &place,
        Some(recorders),
        site,
        first,
        Waiting {
            limit: WRITING_TIMEOUT,
            goes_on: &|| true,
            inspect: &mut || {
                most = most.max(room.held_bytes());
                processors.inspect();
            },
        },
    )?;
    let length = Duration::from_millis(first.request.length_ms);
    if written.is_late {
        let message = format!(
            "a process had not written its trace of a first window of {} ms within {} s: its machine is too busy, or the process is; ask \
             for less (stacks, shapes)",
            length.as_millis(),
            WRITING_TIMEOUT.as_secs()
        );
        return Err(Failure::new(CaptureReason::CollectionFailed, message));
    }
    let mut traces = Vec::new();
    for name in written.whole {
        traces.push(tally(&place, name, room)?);
        most = most.max(room.held_bytes());
    }
    let asked = recorders.asked();
    let online = processors.online;
    let scheduled = processors.most_waited();
    let grown_bytes = before.zip(most).map(|(before, most)| most.saturating_sub(before));
    Ok(FirstWindow {
        probe: Probe {
            length,
            unknown: count(asked.len().saturating_sub(traces.len())),
            traces,
            grown_bytes,
            scheduled,
            processors: online,
        },
        asked,
    })
}

/// How the processes of a container come to run, from before the first window on.
///
/// They may wait for a processor in the window alone and run freely before it and while they write
/// its trace, so the piece of this time counts in which they waited most.
#[derive(Debug)]
pub(super) struct Processors {
    procfs: Procfs,
    processes: Vec<ProcessId>,
    /// Those of the machine; none where their number is not known.
    online: Option<u32>,
    began: Instant,
    first: Scheduled,
    /// Where the piece began.
    piece: (Instant, Scheduled),
    /// The piece with the largest share of waiting.
    worst: Option<Scheduled>,
}

impl Processors {
    /// Counts from now on.
    pub(super) fn of(site: &Site) -> Self {
        let procfs = site.containers.procfs();
        let processes = site.containers.processes(&site.container_id);
        let (began, first) = (Instant::now(), scheduled(&procfs, &processes));
        Self {
            online: procfs.processors(),
            procfs,
            processes,
            began,
            first,
            piece: (began, first),
            worst: None,
        }
    }

    /// Ends the piece, where it is long enough and the processes wanted a processor in half of it.
    fn inspect(&mut self) {
        let (began, before) = self.piece;
        let length = began.elapsed();
        if length < MIN_PIECE_DURATION {
            return;
        }
        let now = scheduled(&self.procfs, &self.processes);
        let piece = possible(since(before, now), length, self.online);
        if piece.ran.saturating_add(piece.waited) < length / 2 {
            return;
        }
        self.piece = (Instant::now(), now);
        // Of several threads all the time counts.
        let share = |of: Scheduled| (of.waited.as_nanos(), of.ran.saturating_add(of.waited).as_nanos());
        let ((waited, all), worst) = (share(piece), self.worst.map(share));
        if worst.is_none_or(|(before, whole)| waited.saturating_mul(whole) > before.saturating_mul(all)) {
            self.worst = Some(piece);
        }
    }

    /// What they did in the piece in which they waited most; else, where they did little, in all.
    fn most_waited(mut self) -> Scheduled {
        self.inspect();
        let all = || {
            let all = since(self.first, scheduled(&self.procfs, &self.processes));
            possible(all, self.began.elapsed(), self.online)
        };
        self.worst.unwrap_or_else(all)
    }
}

/// What the processes have done with their time until now. Of those that are gone nothing is known.
fn scheduled(procfs: &Procfs, processes: &[ProcessId]) -> Scheduled {
    let times = processes.iter().filter_map(|process| procfs.scheduled(*process).ok());
    times.fold(Scheduled::default(), |sum, times| Scheduled {
        ran: sum.ran.saturating_add(times.ran),
        waited: sum.waited.saturating_add(times.waited),
    })
}

fn since(before: Scheduled, now: Scheduled) -> Scheduled {
    Scheduled {
        ran: now.ran.saturating_sub(before.ran),
        waited: now.waited.saturating_sub(before.waited),
    }
}

/// What they might have run for at the most: all of the machine's processors for the whole of
/// `length`. Eight processes wait for two processors even where nobody else wants these.
fn possible(scheduled: Scheduled, length: Duration, processors: Option<u32>) -> Scheduled {
    let Scheduled { ran, waited } = scheduled;
    let left = processors.map(|processors| length.saturating_mul(processors).saturating_sub(ran));
    Scheduled {
        ran,
        waited: left.map_or(waited, |left| waited.min(left)),
    }
}

fn tally(place: &TraceDirectory<'_>, name: String, room: &Room) -> Result<Trace, Failure> {
    let limit = room.traces.bytes;
    let found = place.inspect(move |folder| {
        let mut tally = Tally::default();
        match folder.copy_out(&name, &mut tally, limit, |_| true) {
            Err(RootfsError::TooLarge { .. }) => Ok(None),
            copied => copied.map(|_bytes| Some(tally.trace())),
        }
    })?;
    found.ok_or_else(|| outgrown(room.traces))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_taken_to_wait_for_no_more_processors_than_there_are() {
        let second = Duration::from_secs(1);
        let of = |ran: u32, waited: u32| Scheduled {
            ran: second * ran,
            waited: second * waited,
        };
        // Eight of two processors, and of two that others had half of.
        assert_eq!(possible(of(2, 6), second, Some(2)), of(2, 0));
        assert_eq!(possible(of(1, 7), second, Some(2)), of(1, 1));
        // One that waited for all that it wanted.
        assert_eq!(possible(of(1, 1), 2 * second, Some(2)), of(1, 1));
        assert_eq!(possible(of(2, 6), second, None), of(2, 6));
        // Clocks are not read at one time.
        assert_eq!(possible(of(3, 1), second, Some(2)), of(3, 0));
    }
}
