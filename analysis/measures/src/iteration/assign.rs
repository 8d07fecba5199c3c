//! Which iteration each piece of GPU work belongs to.

use std::collections::BTreeMap;

use flopwatch_model::{Category, RowId, Timeline, index};

use super::Iterations;
use super::ranges::process;
use crate::work::{GpuWork, Work};

/// The iteration of each piece of GPU work, and how it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignment {
    /// For each of [`GpuWork::all`] the place in [`Iterations::list`], or [`Assignment::NONE`].
    pub iteration: Vec<u32>,
    /// Work that the thread of the loop launched during the iteration.
    pub by_thread: u64,
    /// Work that another thread of the process launched during the iteration, e.g. the one that
    /// runs PyTorch's backward pass.
    pub by_process: u64,
    /// Work without a recorded launch, or of iterations that are GPU time, that started during the
    /// iteration.
    pub by_time: u64,
    /// Work of no iteration.
    pub outside: u64,
}

impl Assignment {
    /// Stands for no iteration.
    pub const NONE: u32 = u32::MAX;

    /// The work of each iteration, by start.
    pub fn by_iteration(&self, work: &GpuWork, iterations: usize) -> Vec<Vec<Work>> {
        let mut lists = vec![Vec::new(); iterations];
        for (work, iteration) in work.all().iter().zip(&self.iteration) {
            if let Some(list) = lists.get_mut(index(*iteration)) {
                list.push(*work);
            }
        }
        lists
    }
}

/// The iterations of one row.
struct Loop {
    row: RowId,
    thread: Option<u64>,
    device: Option<u32>,
    /// Their places in the list: from here, and how many.
    first: usize,
    count: usize,
}

impl Iterations {
    /// Finds the iteration of each piece of `work`.
    ///
    /// Work belongs to the iteration during which its launch call began: of the loop of the calling
    /// thread, else of the only loop of the process, else of the process's loop whose thread
    /// launches to the same device. Work without a recorded launch is taken by the time of its
    /// start in the same way. Of iterations that are time of devices work belongs by its start to
    /// the loop of its process and device.
    pub fn assign(&self, timeline: &Timeline, work: &GpuWork) -> Assignment {
        let mut loops: BTreeMap<_, Vec<Loop>> = BTreeMap::new();
        let mut first = 0;
        for list in self.loops() {
            let row = list.first().map(|iteration| iteration.row);
            if let Some((row, process)) = row.and_then(|row| Some((row, process(timeline, row)?))) {
                let described = timeline.row(row);
                loops.entry(process).or_default().push(Loop {
                    row,
                    thread: described.and_then(|row| row.thread),
                    device: described.and_then(|row| row.device),
                    first,
                    count: list.len(),
                });
            }
            first += list.len();
        }
        let devices = if loops.values().any(|loops| loops.len() > 1) {
            devices_of(timeline, work, &loops)
        } else {
            BTreeMap::new()
        };
        let mut assignment = Assignment::default();
        for work in work.all() {
            let found = loops
                .iter()
                .next()
                .and_then(|_| self.find_iteration(timeline, *work, &loops, &devices));
            let (iteration_number, counter) = match found {
                Some((iteration_number, How::Thread)) => (iteration_number, &mut assignment.by_thread),
                Some((iteration_number, How::Process)) => (iteration_number, &mut assignment.by_process),
                Some((iteration_number, How::Time)) => (iteration_number, &mut assignment.by_time),
                None => (Assignment::NONE, &mut assignment.outside),
            };
            *counter += 1;
            assignment.iteration.push(iteration_number);
        }
        assignment
    }

    fn find_iteration(
        &self,
        timeline: &Timeline,
        work: Work,
        loops: &BTreeMap<(u32, u32, u32), Vec<Loop>>,
        devices: &BTreeMap<RowId, BTreeMap<u32, u64>>,
    ) -> Option<(u32, How)> {
        let loops = loops.get(&process(timeline, work.row)?)?;
        let device = timeline.row(work.row)?.device;
        if self.is_device_time() {
            let of = loops.iter().find(|of| of.device == device)?;
            return Some((self.at(of, work.time.start)?, How::Time));
        }
        let call = launch(timeline, work);
        let thread = call.and_then(|(_, row)| timeline.row(row)?.thread);
        let own = call.and_then(|_| loops.iter().find(|of| of.thread == thread));
        if let (Some((start, _)), Some(own)) = (call, own) {
            return Some((self.at(own, start)?, How::Thread));
        }
        let other = match loops.as_slice() {
            [only] => only,
            several => {
                let launches = |of: &&Loop| device.and_then(|device| devices.get(&of.row)?.get(&device)).copied();
                several
                    .iter()
                    .filter(|of| launches(of).is_some())
                    .max_by_key(launches)?
            }
        };
        match call {
            Some((start, _)) => Some((self.at(other, start)?, How::Process)),
            None => Some((self.at(other, work.time.start)?, How::Time)),
        }
    }

    /// The iteration of a loop that holds `time`.
    fn at(&self, of: &Loop, time: u64) -> Option<u32> {
        let list = self.list.get(of.first..of.first + of.count)?;
        let iteration_number = list
            .partition_point(|iteration| iteration.time.start <= time)
            .checked_sub(1)?;
        let holds = list
            .get(iteration_number)
            .is_some_and(|iteration| time < iteration.time.end);
        holds.then(|| u32::try_from(of.first + iteration_number).ok()).flatten()
    }
}

/// How much work each loop's own thread launched to each device.
fn devices_of(
    timeline: &Timeline,
    work: &GpuWork,
    loops: &BTreeMap<(u32, u32, u32), Vec<Loop>>,
) -> BTreeMap<RowId, BTreeMap<u32, u64>> {
    let mut found: BTreeMap<RowId, BTreeMap<u32, u64>> = BTreeMap::new();
    for work in work.all() {
        let thread = launch(timeline, *work).and_then(|(_, row)| timeline.row(row)?.thread);
        let device = timeline.row(work.row).and_then(|row| row.device);
        let loops = process(timeline, work.row).and_then(|process| loops.get(&process));
        let own = loops.and_then(|loops| loops.iter().find(|of| of.thread == thread && thread.is_some()));
        if let (Some(own), Some(device)) = (own, device) {
            *found.entry(own.row).or_default().entry(device).or_default() += 1;
        }
    }
    found
}

enum How {
    Thread,
    Process,
    Time,
}

/// Start and row of the call that launched `work`.
fn launch(timeline: &Timeline, work: Work) -> Option<(u64, RowId)> {
    let api = timeline.capture.events.get(&Category::CudaApi)?;
    let call = work.launch(timeline)?;
    Some((*api.start_ns.get(call)?, *api.row.get(call)?))
}
