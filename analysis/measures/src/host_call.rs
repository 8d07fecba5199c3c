//! Calls of the CUDA API that hold up the host, and what they cost: the host's time, and the time
//! in which the GPUs of the process had nothing to do meanwhile.

use std::collections::BTreeMap;

use flopwatch_model::{Category, NameId, Row, RowId, Timeline, index};
use flopwatch_report::NotCaptured;
use flopwatch_report::page::{TableBuilder, TimelineLocation, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::coverage::Coverage;
use crate::interval::{Interval, Intervals};
use crate::work::{GPU_WORK, GpuWork};

/// A call of the CUDA API, or another event of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCall {
    /// When it ran.
    pub time: Interval,
    /// Category of the call.
    pub category: Category,
    /// Index of the call among the events of its category.
    pub at: u32,
    /// Row of the call in the timeline: a thread.
    pub row: RowId,
}

impl HostCall {
    /// The events of `category` that `picks` picks by the place of their name among
    /// [`flopwatch_model::Events::names`].
    pub fn list(timeline: &Timeline, category: Category, picks: impl Fn(usize) -> bool) -> Vec<Self> {
        let Some(events) = timeline.capture.events.get(&category) else {
            return Vec::new();
        };
        let picked: Vec<bool> = (0..events.names.len()).map(picks).collect();
        let named = (0_u32..).zip(events.name.iter().zip(&events.row));
        let of_name = |name: NameId| picked.get(name.index()).copied().unwrap_or(false);
        let list = named.filter(|(_, (name, _))| of_name(**name));
        list.map(|(at, (_, row))| Self {
            time: Interval::of(events, index(at)),
            category,
            at,
            row: *row,
        })
        .collect()
    }

    /// Location of the call in the timeline of the first input.
    pub fn location(&self) -> TimelineLocation {
        TimelineLocation::new(self.time.start, self.time.end, Some(self.row))
    }

    /// Name of the call.
    pub fn name<'a>(&self, timeline: &'a Timeline) -> &'a str {
        let events = timeline.capture.events.get(&self.category);
        events.map_or("", |events| events.name_of(index(self.at)))
    }
}

/// The name of a call without what tells versions of it apart: `cudaMemcpyAsync` of
/// `cudaMemcpyAsync_ptsz_v7000`.
pub fn without_version(name: &str) -> &str {
    let mut bare = name;
    loop {
        let version = bare
            .rsplit_once("_v")
            .filter(|(_, digits)| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        let shorter = version
            .map(|(rest, _)| rest)
            .or_else(|| bare.strip_suffix("_ptsz"))
            .or_else(|| bare.strip_suffix("_ptds"));
        match shorter {
            Some(shorter) => bare = shorter,
            None => return bare,
        }
    }
}

/// A process: capture, machine and process id.
pub type ProcessKey = (u32, u32, u32);

/// The process of a row.
pub fn process_of(row: &Row) -> ProcessKey {
    (row.capture, row.machine, row.process)
}

/// When the GPUs of each process worked for it.
#[derive(Debug, Clone, Default)]
pub struct ProcessGpus {
    busy: BTreeMap<ProcessKey, (Intervals, Coverage)>,
}

impl ProcessGpus {
    /// Of `timeline`. Needs rows and the categories of [`GPU_WORK`].
    pub fn of(timeline: &Timeline) -> Self {
        let mut work: BTreeMap<ProcessKey, Vec<Interval>> = BTreeMap::new();
        for piece in GpuWork::of(timeline).all() {
            if let Some(row) = timeline.row(piece.row) {
                work.entry(process_of(row)).or_default().push(piece.time);
            }
        }
        let busy = work.into_iter().map(|(process, times)| {
            let busy = Intervals::union_of(times);
            let coverage = Coverage::of(&busy);
            (process, (busy, coverage))
        });
        Self { busy: busy.collect() }
    }

    /// Whether any work was recorded.
    pub fn is_empty(&self) -> bool {
        self.busy.is_empty()
    }

    /// What has no figures where no work of a GPU was recorded.
    pub fn not_captured(&self, timeline: &Timeline, what: &str) -> Option<NotCaptured> {
        if !self.is_empty() {
            return None;
        }
        let nothing = "the capture holds no kernel, copy or memset; capture the GPU's work as well";
        let reason = NotCaptured::unless_any(&timeline.capture, GPU_WORK, what);
        reason.or_else(|| Some(NotCaptured::new(what, nothing)))
    }

    /// When a GPU worked for `process`; `None` of a process for which none did.
    pub fn busy(&self, process: ProcessKey) -> Option<&Coverage> {
        self.busy.get(&process).map(|(_, coverage)| coverage)
    }

    /// The part of `time` in which no GPU worked for `process`; `None` of a process for which none
    /// ever did.
    pub fn idle_within(&self, process: ProcessKey, time: &Intervals) -> Option<Intervals> {
        let (busy, _) = self.busy.get(&process)?;
        Some(time.subtract(busy))
    }

    /// How much of `call` no GPU of its process worked in ns; `None` of a process for which none
    /// ever did.
    pub fn idle_ns(&self, timeline: &Timeline, call: &HostCall) -> Option<u64> {
        let process = process_of(timeline.row(call.row)?);
        Some(self.busy(process)?.missing_within(call.time))
    }

    /// What `calls` cost.
    pub fn cost<'a>(&self, timeline: &Timeline, calls: impl IntoIterator<Item = &'a HostCall>) -> CallCost {
        let mut cost = CallCost::default();
        let mut by_process: BTreeMap<ProcessKey, Vec<Interval>> = BTreeMap::new();
        for call in calls {
            cost.calls += 1;
            cost.total_ns += call.time.len();
            cost.longest_ns = cost.longest_ns.max(call.time.len());
            if let Some(row) = timeline.row(call.row) {
                by_process.entry(process_of(row)).or_default().push(call.time);
            }
        }
        for (process, times) in by_process {
            let held = Intervals::union_of(times);
            cost.held_ns += held.len_ns();
            if let Some(idle) = self.idle_within(process, &held) {
                *cost.gpu_idle_ns.get_or_insert(0) += idle.len_ns();
            }
        }
        cost
    }
}

/// What calls cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallCost {
    /// Calls.
    pub calls: u64,
    /// Sum of their lengths in ns.
    pub total_ns: u64,
    /// The longest in ns.
    pub longest_ns: u64,
    /// Time in ns in which at least one of them ran: calls inside each other or on several threads
    /// of a process count once.
    pub held_ns: u64,
    /// The part of `held_ns` in which no GPU worked for the process; null where no GPU ever did in
    /// the capture.
    pub gpu_idle_ns: Option<u64>,
}

impl CallCost {
    /// Adds the columns of each row's cost.
    pub fn columns<T: Copy>(table: TableBuilder<T>, cost: impl Fn(T) -> Self) -> TableBuilder<T> {
        table
            .column("Calls", |row| cost(row).calls)
            .figure("Total", Unit::Ns, |row| cost(row).total_ns)
            .figure("Max", Unit::Ns, |row| cost(row).longest_ns)
            .figure("Held", Unit::Ns, |row| cost(row).held_ns)
            .figure("GPU idle meanwhile", Unit::Ns, |row| cost(row).gpu_idle_ns)
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;

    use super::*;

    #[test]
    fn versions_and_default_streams_are_no_part_of_a_calls_name() {
        for (name, bare) in [
            ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync"),
            ("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"),
            ("cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD"),
            ("cudaStreamGetCaptureInfo_v2_v11030", "cudaStreamGetCaptureInfo"),
            ("cuLaunchKernel", "cuLaunchKernel"),
            ("cu_verify", "cu_verify"),
        ] {
            assert_eq!(without_version(name), bare);
        }
    }

    #[test]
    fn calls_that_overlap_hold_their_process_once_and_another_process_has_gpus_of_its_own() {
        let mut trace = Trace::new();
        let (stream, other) = (trace.stream(1, 0, 7), trace.stream(2, 0, 7));
        let threads = [trace.thread(1, 1, Track::CudaApi), trace.thread(1, 2, Track::CudaApi)];
        trace.kernel(stream, "gemm", 10, 20);
        trace.kernel(other, "gemm", 0, 100);
        trace.call(threads[0], "cudaDeviceSynchronize", 5, 30);
        trace.call(threads[1], "cudaDeviceSynchronize", 15, 40);
        let timeline = trace.build();
        let calls = HostCall::list(&timeline, Category::CudaApi, |_| true);
        let cost = ProcessGpus::of(&timeline).cost(&timeline, &calls);
        // Held from 5 to 40; the process's own kernel runs for 10 of these 35 ns.
        let expected = CallCost {
            calls: 2,
            total_ns: 50,
            longest_ns: 25,
            held_ns: 35,
            gpu_idle_ns: Some(25),
        };
        assert_eq!(cost, expected);
    }
}
