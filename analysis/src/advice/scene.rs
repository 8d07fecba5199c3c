//! Captures for tests of rules: one process, a line per event, times in microseconds as start and
//! length.

use std::collections::BTreeMap;

use flopwatch_analysis_testing::{EventHandle, Trace};
use flopwatch_model::{Category, ColumnId, Device, RowId, Timeline, Track};

const US: u64 = 1000;

/// A capture that is being made. GPU work is of device 0 and stream 7, calls are of thread 1,
/// unless said otherwise.
#[derive(Default)]
pub(crate) struct Scene {
    trace: Trace,
    streams: BTreeMap<(u32, u64), RowId>,
    threads: BTreeMap<(u64, Track), RowId>,
    operations: Option<RowId>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn build(self) -> Timeline {
        self.trace.build()
    }

    pub(crate) fn device(&mut self, capability: (u32, u32), multiprocessors: u32) -> &mut Self {
        self.trace.device(Device {
            compute_capability: Some(capability),
            multiprocessors: Some(multiprocessors),
            memory_bytes: Some(80_000_000_000),
            ..Device::default()
        });
        self
    }

    /// Work on any stream of any device.
    pub(crate) fn work_on(
        &mut self,
        stream: (u32, u64),
        category: Category,
        name: &str,
        (start, length): (u64, u64),
    ) -> EventHandle {
        let trace = &mut self.trace;
        let row = *self
            .streams
            .entry(stream)
            .or_insert_with(|| trace.stream(1, stream.0, stream.1));
        trace.event(category, row, name, start * US, (start + length) * US)
    }

    pub(crate) fn kernel(&mut self, name: &str, time: (u64, u64)) -> EventHandle {
        self.work_on((0, 7), Category::CudaKernel, name, time)
    }

    pub(crate) fn kernel_on(&mut self, stream: (u32, u64), name: &str, time: (u64, u64)) -> EventHandle {
        self.work_on(stream, Category::CudaKernel, name, time)
    }

    /// A kernel, and the call that launched it.
    pub(crate) fn launch(&mut self, call: (u64, u64), name: &str, kernel: (u64, u64)) -> EventHandle {
        let call = self.call("cudaLaunchKernel", call);
        let kernel = self.kernel(name, kernel);
        self.trace.launched_by(kernel, call);
        kernel
    }

    /// An operation of a compiled program on an accelerator without streams.
    pub(crate) fn device_operation(&mut self, name: &str, (start, length): (u64, u64)) -> EventHandle {
        let trace = &mut self.trace;
        let row = *self
            .operations
            .get_or_insert_with(|| trace.device_line("/device:TPU:0 XLA Ops"));
        trace.event(Category::DeviceOp, row, name, start * US, (start + length) * US)
    }

    /// A copy or set on stream 7 of so many bytes, and the call that asked for it.
    pub(crate) fn copy(
        &mut self,
        category: Category,
        name: &str,
        call: (u64, u64),
        copy: (u64, u64),
        bytes: u64,
    ) -> EventHandle {
        let call = self.call(name, call);
        let copy = self.work_on((0, 7), category, category.name(), copy);
        self.trace.launched_by(copy, call);
        self.trace.number(copy, ColumnId::Bytes, bytes);
        copy
    }

    /// Memory of GPU 0 that the driver gives out, or with bytes below 0 takes back, at `t_ns`.
    /// What the driver gave out, or took back below 0.
    pub(crate) fn allocation(&mut self, t_ns: u64, bytes: i64) -> &mut Self {
        self.trace.driver_allocation(1, 0, t_ns, bytes);
        self
    }

    pub(crate) fn call(&mut self, name: &str, time: (u64, u64)) -> EventHandle {
        self.on_thread(1, Track::CudaApi, Category::CudaApi, name, time)
    }

    pub(crate) fn range(&mut self, name: &str, time: (u64, u64)) -> EventHandle {
        self.on_thread(1, Track::Nvtx, Category::NvtxRange, name, time)
    }

    pub(crate) fn operator(&mut self, name: &str, time: (u64, u64)) -> EventHandle {
        self.on_thread(1, Track::CpuOp, Category::CpuOp, name, time)
    }

    pub(crate) fn step(&mut self, number: u64, time: (u64, u64)) -> EventHandle {
        let name = format!("ProfilerStep#{number}");
        let step = self.on_thread(1, Track::Annotation, Category::Step, &name, time);
        self.trace.number(step, ColumnId::StepNumber, number);
        step
    }

    pub(crate) fn on_thread(
        &mut self,
        thread: u64,
        track: Track,
        category: Category,
        name: &str,
        (start, length): (u64, u64),
    ) -> EventHandle {
        let known = self.threads.get(&(thread, track)).copied();
        let row = known.unwrap_or_else(|| self.trace.thread(1, thread, track));
        self.threads.insert((thread, track), row);
        self.trace.event(category, row, name, start * US, (start + length) * US)
    }

    pub(crate) fn number(&mut self, of: EventHandle, column: ColumnId, value: u64) -> &mut Self {
        self.trace.number(of, column, value);
        self
    }

    pub(crate) fn text(&mut self, of: EventHandle, column: ColumnId, value: &str) -> &mut Self {
        self.trace.text(of, column, value);
        self
    }
}
