//! What a call's time was made of: its own work on the host, the CUDA API, waiting, and the GPU
//! work that it launched.

use std::collections::{BTreeMap, HashMap};

use flopwatch_measures::api_call::ApiCall;
use flopwatch_measures::coverage::Coverage;
use flopwatch_measures::enclosing::{LaunchInterval, LaunchedWork, Threads};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::moved_bytes::MovedBytes;
use flopwatch_measures::work::{GPU_WORK, GpuWork};
use flopwatch_model::{Category, RowId, Timeline, index};

use super::calls::{Call, leaves_the_device};

/// The parts of one call, or of all calls of an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub gpu_ns: u64,
    pub transfer_ns: u64,
    pub cpu_ns: u64,
    pub overhead_ns: u64,
    pub wait_ns: u64,
    /// Kernels, memsets and copies within a device.
    pub pieces: u64,
    pub transfers: u64,
    pub transferred_bytes: MovedBytes,
}

impl Parts {
    pub(super) fn add(&mut self, other: &Self) {
        let fields = [
            (&mut self.gpu_ns, other.gpu_ns),
            (&mut self.transfer_ns, other.transfer_ns),
            (&mut self.cpu_ns, other.cpu_ns),
            (&mut self.overhead_ns, other.overhead_ns),
            (&mut self.wait_ns, other.wait_ns),
            (&mut self.pieces, other.pieces),
            (&mut self.transfers, other.transfers),
        ];
        for (sum, part) in fields {
            *sum = sum.saturating_add(part);
        }
        self.transferred_bytes.add(other.transferred_bytes.known());
    }
}

/// The time of the CUDA API on one thread.
#[derive(Debug, Default)]
struct ApiTime {
    calls: Coverage,
    waits: Coverage,
}

/// All that calls are split by.
#[derive(Debug)]
pub(super) struct Splitter {
    gpu: LaunchedWork,
    transfers: LaunchedWork,
    /// Bytes of each piece of work that is a transfer and says them.
    bytes: Vec<Option<u64>>,
    api: Vec<ApiTime>,
    /// Whether GPU work was recorded together with the calls that launched it.
    pub has_gpu: bool,
    /// Whether calls of the CUDA API were recorded.
    pub has_api: bool,
}

impl Splitter {
    pub(super) fn of(timeline: &Timeline, threads: &Threads, work: &GpuWork) -> Self {
        let captured = &timeline.capture.captured;
        let has_api = captured.contains(&Category::CudaApi);
        let has_work = GPU_WORK.iter().any(|category| captured.contains(category));
        let of_those = |wanted: bool| {
            LaunchedWork::of_those(timeline, threads, work, |work| {
                leaves_the_device(work.category) == wanted
            })
        };
        let ((transfers, gpu), api) = rayon::join(
            || (of_those(true), of_those(false)),
            || api_time(timeline, threads, work),
        );
        let matched = gpu.matched() + transfers.matched();
        let bytes = |at: usize| {
            let work = work.all().get(at)?;
            leaves_the_device(work.category).then(|| work.bytes(timeline)).flatten()
        };
        let bytes = if transfers.matched() > 0 {
            (0..work.all().len()).map(bytes).collect()
        } else {
            Vec::new()
        };
        Self {
            gpu,
            transfers,
            bytes,
            api,
            has_gpu: has_api && has_work && (matched > 0 || work.all().is_empty()),
            has_api,
        }
    }

    /// Work whose call is known, but for transfers.
    pub(super) fn gpu(&self) -> &LaunchedWork {
        &self.gpu
    }

    /// Copies whose call is known and that leave a device's memory.
    pub(super) fn transfers(&self) -> &LaunchedWork {
        &self.transfers
    }

    /// The parts of `call`. Of a call on the device it is its own time alone.
    pub(super) fn parts(&self, call: &Call) -> Parts {
        let Some(thread) = call.thread else {
            let length = call.time.len();
            let (gpu_ns, transfer_ns) = if call.is_transfer { (0, length) } else { (length, 0) };
            return Parts {
                gpu_ns,
                transfer_ns,
                pieces: u64::from(!call.is_transfer),
                transfers: u64::from(call.is_transfer),
                transferred_bytes: if call.is_transfer {
                    MovedBytes::UNKNOWN
                } else {
                    MovedBytes::default()
                },
                ..Parts::default()
            };
        };
        let mut parts = Parts::default();
        let time = call.time;
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        parts.pieces = count(self.gpu.inside(thread, time).len());
        if parts.pieces > 0 {
            parts.gpu_ns = self.gpu.busy_ns(thread, time);
        }
        let transfers = self.transfers.inside(thread, time);
        if !transfers.is_empty() {
            parts.transfers = count(transfers.len());
            parts.transfer_ns = self.transfers.busy_ns(thread, time);
            let bytes = |launched: &LaunchInterval| self.bytes.get(index(launched.work)).copied().flatten();
            parts.transferred_bytes = transfers.iter().map(bytes).collect();
        }
        let api = self.api.get(index(thread));
        let (in_calls, waited) = api.map_or((0, 0), |api| {
            let in_calls = api.calls.within(time);
            let waited = if in_calls > 0 { api.waits.within(time) } else { 0 };
            (in_calls, waited)
        });
        parts.cpu_ns = time.len().saturating_sub(in_calls);
        parts.wait_ns = waited;
        parts.overhead_ns = in_calls.saturating_sub(waited);
        parts
    }
}

/// Per thread when it was inside calls of the CUDA API, and when it waited there: in a call that
/// may wait while work of its process ran.
fn api_time(timeline: &Timeline, threads: &Threads, work: &GpuWork) -> Vec<ApiTime> {
    let mut calls: Vec<Vec<Interval>> = vec![Vec::new(); index(threads.count())];
    let mut waiting = calls.clone();
    let mut process_of: HashMap<usize, (u32, u32, u32)> = HashMap::new();
    let Some(events) = timeline.capture.events.get(&Category::CudaApi) else {
        return Vec::new();
    };
    let waits: Vec<bool> = events.names.iter().map(|name| ApiCall::of(name).may_wait()).collect();
    for (at, (row, name)) in events.row.iter().zip(&events.name).enumerate() {
        let Some(thread) = threads.of_row(*row).map(index) else {
            continue;
        };
        let time = Interval::of(events, at);
        if let Some(calls) = calls.get_mut(thread) {
            calls.push(time);
        }
        if waits.get(name.index()).copied().unwrap_or(false)
            && let Some(waiting) = waiting.get_mut(thread)
        {
            waiting.push(time);
        }
        process_of.entry(thread).or_insert_with(|| process(timeline, *row));
    }
    let mut busy: BTreeMap<(u32, u32, u32), Vec<Interval>> = BTreeMap::new();
    for (row, work) in work.by_row() {
        let times = work.all().iter().map(|work| work.time);
        busy.entry(process(timeline, row)).or_default().extend(times);
    }
    let busy: BTreeMap<_, Intervals> = busy
        .into_iter()
        .map(|(process, times)| (process, Intervals::union_of(times)))
        .collect();
    let both = calls.into_iter().zip(waiting).enumerate();
    let of_thread = |(thread, (calls, waiting)): (usize, (Vec<Interval>, Vec<Interval>))| {
        let busy = process_of.get(&thread).and_then(|process| busy.get(process));
        let waits = busy.map(|busy| Intervals::union_of(waiting).intersect(busy));
        ApiTime {
            calls: Coverage::of(&Intervals::union_of(calls)),
            waits: Coverage::of(&waits.unwrap_or_default()),
        }
    };
    both.map(of_thread).collect()
}

fn process(timeline: &Timeline, row: RowId) -> (u32, u32, u32) {
    let row = timeline.row(row);
    row.map_or((0, 0, 0), |row| (row.capture, row.machine, row.process))
}
