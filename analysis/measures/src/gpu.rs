//! Which GPU an event belongs to.

use std::collections::BTreeMap;

use flopwatch_model::{RowId, Timeline};
use schemars::JsonSchema;
use serde::Serialize;

use crate::interval::Interval;
use crate::work::GpuWork;

/// A GPU of a timeline. Ordinals are unique within a machine only, and a merged session holds
/// captures of several machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct Gpu {
    /// Which capture of a merged session, 0 where there is one.
    pub capture: u32,
    /// Machine as the profiler numbers it, 0 where it does not.
    pub machine: u32,
    /// Ordinal of the device.
    pub device: u32,
}

impl Gpu {
    /// The GPU that a row belongs to; `None` of a row of the CPU.
    pub fn of_row(timeline: &Timeline, row: RowId) -> Option<Self> {
        let row = timeline.row(row)?;
        Some(Self {
            capture: row.capture,
            machine: row.machine,
            device: row.device?,
        })
    }

    /// For people: `GPU 0`, with the capture and the machine where they are not the first.
    pub fn label(self) -> String {
        let Self {
            capture,
            machine,
            device,
        } = self;
        match (capture, machine) {
            (0, 0) => format!("GPU {device}"),
            (0, machine) => format!("GPU {device} of machine {machine}"),
            (capture, 0) => format!("GPU {device} of capture {capture}"),
            (capture, machine) => format!("GPU {device} of machine {machine}, capture {capture}"),
        }
    }
}

/// A stream of a GPU.
#[allow(
    clippy::struct_field_names,
    reason = "a stream is known by its number, as the profiler calls it"
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
pub struct GpuStream {
    /// The GPU.
    pub gpu: Gpu,
    /// Process that launched its work.
    pub process: u32,
    /// CUDA context; null where the source does not say.
    pub context: Option<u64>,
    /// CUDA stream; null where the source does not say.
    pub stream: Option<u64>,
    /// The timeline's row.
    pub row: RowId,
}

impl GpuStream {
    /// The stream that a row shows; `None` of a row of the CPU.
    pub fn of_row(timeline: &Timeline, row: RowId) -> Option<Self> {
        let gpu = Gpu::of_row(timeline, row)?;
        let of = timeline.row(row)?;
        Some(Self {
            gpu,
            process: of.process,
            context: of.context,
            stream: of.stream,
            row,
        })
    }

    /// For people: `GPU 0, process 4711, stream 7`.
    pub fn label(self) -> String {
        let stream = self
            .stream
            .map_or_else(|| "no stream".to_owned(), |stream| format!("stream {stream}"));
        format!("{}, process {}, {stream}", self.gpu.label(), self.process)
    }
}

impl GpuWork {
    /// The work of each GPU; work on rows without a device is left out. Needs rows.
    pub fn by_gpu(&self, timeline: &Timeline) -> BTreeMap<Gpu, Self> {
        let mut gpus: BTreeMap<Gpu, Vec<_>> = BTreeMap::new();
        for work in self.all() {
            if let Some(gpu) = Gpu::of_row(timeline, work.row) {
                gpus.entry(gpu).or_default().push(*work);
            }
        }
        gpus.into_iter().map(|(gpu, all)| (gpu, Self::sorted(all))).collect()
    }
}

/// Which time of each GPU is analysed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// From the first start to the last end of the GPU's own work, as HolisticTraceAnalysis and
    /// TraceLens have it.
    #[default]
    Gpu,
    /// From the first start to the last end of the work of any GPU, so that a GPU that begins late
    /// or ends early is idle meanwhile.
    AllGpus,
    /// The whole capture.
    Capture,
}

impl Window {
    /// The window of a GPU with work `of_gpu`, of which only what lies between `from_ns` and
    /// `to_ns` is analysed where these are given. `None` where there is no work, or nothing is
    /// left.
    pub fn of(
        self,
        timeline: &Timeline,
        all: &GpuWork,
        of_gpu: &GpuWork,
        from_ns: Option<u64>,
        to_ns: Option<u64>,
    ) -> Option<Interval> {
        let whole = match self {
            Self::Gpu => of_gpu.span()?,
            Self::AllGpus => all.span()?,
            Self::Capture => Interval::new(0, timeline.capture.duration_ns.max(all.span()?.end)),
        };
        let asked = Interval::new(from_ns.unwrap_or(0), to_ns.unwrap_or(u64::MAX));
        Some(whole.intersect(asked)).filter(|window| !window.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;

    use super::*;

    #[test]
    fn devices_of_one_ordinal_on_two_machines_are_two_gpus() {
        let mut trace = Trace::new();
        let first = trace.stream(1, 0, 7);
        let second = trace.stream(1, 0, 7);
        trace.kernel(first, "k", 0, 10);
        trace.kernel(second, "k", 5, 20);
        let mut timeline = trace.build();
        timeline.capture.rows[1].machine = 2;
        let work = GpuWork::of(&timeline);
        let gpus = work.by_gpu(&timeline);
        let labels: Vec<String> = gpus.keys().map(|gpu| gpu.label()).collect();
        assert_eq!(labels, ["GPU 0", "GPU 0 of machine 2"]);
        assert!(gpus.values().all(|work| work.all().len() == 1));
    }

    #[test]
    fn windows_are_the_gpus_own_work_all_work_or_the_capture() {
        let mut trace = Trace::new();
        let (first, second) = (trace.stream(1, 0, 7), trace.stream(1, 1, 7));
        trace.kernel(first, "k", 10, 20);
        trace.kernel(second, "k", 30, 50);
        let mut timeline = trace.build();
        timeline.capture.duration_ns = 100;
        let all = GpuWork::of(&timeline);
        let gpus = all.by_gpu(&timeline);
        let own = &gpus[&Gpu::default()];
        let of = |window: Window, from, to| window.of(&timeline, &all, own, from, to);
        assert_eq!(of(Window::Gpu, None, None), Some(Interval::new(10, 20)));
        assert_eq!(of(Window::AllGpus, None, None), Some(Interval::new(10, 50)));
        assert_eq!(of(Window::Capture, None, None), Some(Interval::new(0, 100)));
        assert_eq!(of(Window::Capture, Some(15), Some(40)), Some(Interval::new(15, 40)));
        assert_eq!(of(Window::Gpu, Some(20), None), None);
    }
}
