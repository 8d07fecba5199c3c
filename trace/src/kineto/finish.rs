//! What a trace says about itself, and the capture that comes of it all.

use std::collections::{BTreeMap, BTreeSet};

use super::Failure;
use super::decimal::decimal;
use super::gather::{Gather, OwnedId};
use super::part::{TIME_BIAS, is_of_gpu};
use crate::times;
use flopwatch_model::{Capture, Category, Device, LossReason};

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
            b"otherData" => self.about(value),
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
            self.count_loss(LossReason::Skipped, "deviceProperties");
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
                mig: None,
            };
            self.capture.devices.push(device);
        }
    }

    /// Makes the capture of what was gathered.
    pub(super) fn finish(&mut self) -> Result<Capture, Failure> {
        self.append(|_| None);
        self.close_ranges();
        self.pair_launches();
        let about = self.writer_metadata.as_mut().map(|own| std::mem::take(&mut own.about));
        if about.is_none() {
            self.find_owners()?;
            let from_kineto = !self.capture.source.schema_version.is_empty() || !self.capture.devices.is_empty();
            let tool = if from_kineto { "PyTorch Kineto" } else { "Chrome trace" };
            tool.clone_into(&mut self.capture.source.tool);
            self.capture.source.capture_options.sort();
            self.capture.source.capture_options.dedup();
            self.fill_memory_kinds();
        }
        for (category, events) in &mut self.capture.events {
            events.drop_unsaid_columns(*category);
        }
        self.label_rows();
        if let Some(about) = about {
            // What it holds was judged when it was read first.
            self.restore(about);
            self.rebase(Some(0), |_| true);
        } else {
            let emptied = self.remove_impossible_times();
            self.decide_captured();
            self.capture.captured.retain(|category| !emptied.contains(category));
            let gpus = self.gpus();
            let used: Vec<u32> = self.capture.rows.iter().filter_map(|row| row.device).collect();
            self.capture.devices.retain(|device| used.contains(&device.id));
            self.rebase(None, |number| gpus.contains(&number));
        }
        Ok(std::mem::take(&mut self.capture))
    }

    /// The numbers of processes that are GPUs: those of GPU work, and of GPUs that the trace lists,
    /// without those of programs.
    fn gpus(&self) -> BTreeSet<i64> {
        let numbers = |of_gpu: bool| {
            let rows = self.rows.iter().filter(move |row| is_of_gpu(row.track) == of_gpu);
            rows.filter_map(|row| match row.process {
                OwnedId::Number(number) => Some(number),
                OwnedId::None | OwnedId::Text(_) => None,
            })
        };
        let programs: BTreeSet<i64> = numbers(false).collect();
        let listed = self.capture.devices.iter().map(|device| i64::from(device.id));
        let listed = listed.filter(|number| !programs.contains(number));
        listed.chain(numbers(true)).collect()
    }

    /// Leaves out what has times that cannot be; gives the categories that lost all their events.
    fn remove_impossible_times(&mut self) -> BTreeSet<Category> {
        let emptied = times::remove_impossible_times(&mut self.capture, TIME_BIAS, None);
        if let Some(possible_times) = times::possible_times(&self.capture) {
            let samples = self
                .series
                .retain(|at| possible_times.contains(&(at.cast_unsigned() ^ TIME_BIAS)));
            times::count_loss(&mut self.capture, "samples", samples);
            let before = self.capture.allocations.len();
            self.capture.allocations.retain(|of| possible_times.contains(&of.t_ns));
            let allocations = before - self.capture.allocations.len();
            times::count_loss(&mut self.capture, "allocations", allocations);
        }
        emptied
    }

    /// Turns the kept starts into times from the session's start on, which is `zero`, or else the
    /// first event or sample. `is_gpu` is as [`super::series::Series::since`] has it.
    fn rebase(&mut self, zero: Option<i64>, is_gpu: impl Fn(i64) -> bool) {
        let starts = self
            .capture
            .events
            .values()
            .flat_map(|events| events.start_ns.iter().copied());
        let first = starts.min().map(|biased| (biased ^ TIME_BIAS).cast_signed());
        let series = std::mem::take(&mut self.series);
        let of_allocator = || {
            let times = self.capture.allocations.iter().map(|of| of.t_ns);
            times.min().map(|biased| (biased ^ TIME_BIAS).cast_signed())
        };
        let first = || first.into_iter().chain(series.first()).min().or_else(of_allocator);
        let origin = zero.or_else(first);
        let Some(origin) = origin else {
            return;
        };
        let biased = origin.cast_unsigned() ^ TIME_BIAS;
        for events in self.capture.events.values_mut() {
            for start in &mut events.start_ns {
                *start = start.saturating_sub(biased);
            }
        }
        for allocation in &mut self.capture.allocations {
            allocation.t_ns = allocation.t_ns.saturating_sub(biased);
        }
        self.capture.counters = series.since(origin, is_gpu);
        let utc = match self.base {
            Some(base) => base.checked_add(origin),
            None => Some(origin).filter(|origin| *origin >= times::MIN_UNIX_NS),
        };
        self.capture.session_start_utc_ns = utc.and_then(|utc| u64::try_from(utc).ok());
        let last = times::last_moment(&self.capture);
        self.capture.duration_ns = self.capture.duration_ns.max(last);
    }

    /// CUPTI delivers all GPU work or none: where there is some, the missing kinds are empty.
    fn decide_captured(&mut self) {
        let held: Vec<Category> = self.capture.events.keys().copied().collect();
        if held.iter().any(|category| category.is_gpu_work()) {
            self.capture.captured.extend(GPU_WORK);
            self.capture.captured.insert(Category::CudaApi);
        }
        let mut options = self.capture.source.capture_options.iter();
        if options.any(|option| option == "with_stack") {
            self.capture.captured.insert(Category::PythonFunction);
        }
        self.capture.captured.extend(held);
    }
}
