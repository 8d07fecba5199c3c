//! What a trace says about itself, and the capture that comes of it all.

use std::collections::BTreeMap;

use super::Failure;
use super::decimal::decimal;
use super::gather::{Gather, OwnId, OwnRow};
use super::part::BIAS;
use crate::model::{Capture, Category, Device, LossReason, Row, Track, index};

/// What the profiler was asked to record: members that are 1 where it was.
const OPTIONS: [&str; 5] = [
    "record_shapes",
    "profile_memory",
    "with_stack",
    "with_flops",
    "with_modules",
];

/// Bytes of `deviceProperties` beyond which it is no list of GPUs.
const LONGEST_PROPERTIES: usize = 1 << 20;

/// Times at or behind this, in ns, count from the Unix epoch: it is 2001, and no machine runs for 31 years.
const ABSOLUTE: i64 = 1_000_000_000_000_000_000;

const GPU_WORK: [Category; 7] = [
    Category::CudaKernel,
    Category::CudaMemcpyH2d,
    Category::CudaMemcpyD2h,
    Category::CudaMemcpyD2d,
    Category::CudaMemcpyP2p,
    Category::CudaMemcpyOther,
    Category::CudaMemset,
];

impl Gather<'_> {
    /// Takes a member beside the events, where it is one that matters.
    pub(super) fn member(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"schemaVersion" => {
                let version = decimal(value, 0);
                self.capture.source.schema_version = version.map_or_else(String::new, |version| version.to_string());
            }
            b"baseTimeNanoseconds" => self.base = decimal(value, 0),
            b"deviceProperties" | b"computeProperties" => self.devices(value),
            _ => {
                let option = OPTIONS.into_iter().find(|option| option.as_bytes() == key);
                if let Some(option) = option.filter(|_| value == b"1") {
                    self.capture.source.capture_options.push(option.to_owned());
                }
            }
        }
    }

    fn devices(&mut self, value: &[u8]) {
        let small = value.len() <= LONGEST_PROPERTIES;
        let list = small.then(|| serde_json::from_slice::<Vec<serde_json::Value>>(value).ok());
        let Some(list) = list.flatten() else {
            self.lose(LossReason::Skipped, "deviceProperties");
            return;
        };
        self.capture.devices.clear();
        for properties in list {
            let number = |names: &[&str]| names.iter().find_map(|name| properties.get(name)?.as_u64());
            let small = |names: &[&str]| number(names).and_then(|number| u32::try_from(number).ok());
            let Some(id) = small(&["id"]) else { continue };
            let name = properties.get("name").and_then(serde_json::Value::as_str);
            let name: String = name.unwrap_or_default().chars().take(256).collect();
            let capability = small(&["computeMajor", "major"]).zip(small(&["computeMinor", "minor"]));
            let device = Device {
                id,
                name: self.publishable(&name),
                compute_capability: capability,
                multiprocessors: small(&["numSms", "multiProcessorCount"]),
                memory_bytes: number(&["totalGlobalMem"]),
                peak_bandwidth: None,
                peak_flops: BTreeMap::new(),
                figures_from: "deviceProperties".to_owned(),
            };
            self.capture.devices.push(device);
        }
    }

    /// Makes the capture of what was gathered.
    pub(super) fn finish(&mut self) -> Result<Capture, Failure> {
        self.close()?;
        self.append(|_| None);
        let from_kineto = !self.capture.source.schema_version.is_empty() || !self.capture.devices.is_empty();
        let tool = if from_kineto { "PyTorch Kineto" } else { "Chrome trace" };
        tool.clone_into(&mut self.capture.source.tool);
        self.capture.source.capture_options.sort();
        self.capture.source.capture_options.dedup();
        self.fill_memory_kinds();
        for (category, events) in &mut self.capture.events {
            events.drop_unsaid_columns(*category);
        }
        self.label_rows();
        self.decide_captured();
        let used: Vec<u32> = self.rows.iter().filter_map(|row| row.device).collect();
        self.capture.devices.retain(|device| used.contains(&device.id));
        self.rebase();
        Ok(std::mem::take(&mut self.capture))
    }

    /// Turns the kept starts into times from the first event or sample on, which becomes the session's start.
    fn rebase(&mut self) {
        let starts = self
            .capture
            .events
            .values()
            .flat_map(|events| events.start_ns.iter().copied());
        let first = starts.min().map(|biased| (biased ^ BIAS).cast_signed());
        let series = std::mem::take(&mut self.series);
        let of_allocator = || {
            let times = self.capture.allocations.iter().map(|of| of.t_ns);
            times.min().map(|biased| (biased ^ BIAS).cast_signed())
        };
        let origin = first.into_iter().chain(series.first()).min().or_else(of_allocator);
        let Some(origin) = origin else {
            return;
        };
        let biased = origin.cast_unsigned() ^ BIAS;
        for events in self.capture.events.values_mut() {
            for start in &mut events.start_ns {
                *start = start.saturating_sub(biased);
            }
        }
        for allocation in &mut self.capture.allocations {
            allocation.t_ns = allocation.t_ns.saturating_sub(biased);
        }
        self.capture.counters = series.since(origin);
        let utc = match self.base {
            Some(base) => base.checked_add(origin),
            None => Some(origin).filter(|origin| *origin >= ABSOLUTE),
        };
        self.capture.session_start_utc_ns = utc.and_then(|utc| u64::try_from(utc).ok());
        let ends = self
            .capture
            .events
            .values()
            .flat_map(|events| (0..events.len()).map(|at| events.end_ns(at)));
        let samples = self
            .capture
            .counters
            .iter()
            .filter_map(|series| series.t_ns.last().copied());
        self.capture.duration_ns = ends.chain(samples).max().unwrap_or(0);
    }

    /// CUPTI delivers all GPU work or none: where there is some, the missing kinds are empty.
    fn decide_captured(&mut self) {
        let held: Vec<Category> = self.capture.events.keys().copied().collect();
        if held.iter().any(|category| category.is_gpu_work()) {
            self.capture.captured.extend(GPU_WORK);
            self.capture.captured.insert(Category::CudaApi);
        }
        if self
            .capture
            .source
            .capture_options
            .iter()
            .any(|option| option == "with_stack")
        {
            self.capture.captured.insert(Category::PythonFunction);
        }
        self.capture.captured.extend(held);
    }

    /// The process that made the most CUDA calls, or else has the most operators.
    fn busiest_process(&self) -> OwnId {
        for category in [Category::CudaApi, Category::CpuOp] {
            let mut counts: BTreeMap<&OwnId, u64> = BTreeMap::new();
            let Some(events) = self.capture.events.get(&category) else {
                continue;
            };
            let mut by_row = vec![0_u64; self.rows.len()];
            for row in &events.row {
                if let Some(count) = by_row.get_mut(index(*row)) {
                    *count += 1;
                }
            }
            for (row, count) in self.rows.iter().zip(by_row).filter(|(_, count)| *count > 0) {
                *counts.entry(&row.process).or_default() += count;
            }
            if let Some((process, _)) = counts.into_iter().max_by_key(|(_, count)| *count) {
                return process.clone();
            }
        }
        OwnId::None
    }

    fn label_rows(&mut self) {
        let owner = self.busiest_process();
        let keys = std::mem::take(&mut self.rows);
        for key in &keys {
            let of_gpu = matches!(key.track, Track::GpuStream | Track::CudaSync | Track::GpuAnnotation);
            let process = if of_gpu { &owner } else { &key.process };
            let label = self.label(key, process, of_gpu);
            let label = self.publishable(&label);
            let number = |id: &OwnId| match id {
                OwnId::Number(number) => u64::try_from(*number).ok(),
                OwnId::None | OwnId::Text(_) => None,
            };
            self.capture.rows.push(Row {
                capture: 0,
                machine: 0,
                process: number(process)
                    .and_then(|process| u32::try_from(process).ok())
                    .unwrap_or(0),
                track: key.track,
                device: key.device,
                context: key.context,
                stream: key.stream,
                thread: number(&key.thread),
                label,
            });
        }
        self.rows = keys;
    }

    fn label(&self, key: &OwnRow, process: &OwnId, of_gpu: bool) -> String {
        let text = |raw: &Vec<u8>| super::json::unescape(raw);
        let program = self.processes.get(process).map_or("process", String::as_str);
        let process_label = match process {
            OwnId::Number(number) => format!("{program} ({number})"),
            OwnId::Text(raw) => text(raw),
            OwnId::None => "process".to_owned(),
        };
        if of_gpu {
            let device = key.device.map_or_else(|| "?".to_owned(), |device| device.to_string());
            let stream = key
                .stream
                .map_or_else(|| "any stream".to_owned(), |stream| format!("stream {stream}"));
            return format!("{process_label} GPU {device} {stream}");
        }
        let thread = match &key.thread {
            OwnId::Number(number) => format!("thread {number}"),
            OwnId::Text(raw) => text(raw),
            OwnId::None => return process_label,
        };
        match self.threads.get(&(key.process.clone(), key.thread.clone())) {
            // Kineto's own names of threads, `thread 24610 (python)`, say nothing more.
            Some(name) if !name.starts_with("thread ") => format!("{process_label} {thread} {name}"),
            _ => format!("{process_label} {thread}"),
        }
    }
}
