//! What a file says about itself, its processes, threads and GPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use super::peaks::{SOURCE, peak_flops};
use super::tables::Table;
use super::{Failure, GlobalId, Reader, event_tables};
use crate::times;
use flopwatch_model::{Category, Device, MigInstance, Row, Track};

const STRINGS: &str = "StringIds";

/// What wrote an export that does not say so.
const TOOL: &str = "NVIDIA Nsight Systems";

/// What a file without versions and events lacks.
const UNTOLD: &str = "META_DATA_EXPORT, nor any of events";

/// What the profiler was asked to record, as `META_DATA_CAPTURE` spells it, and the categories that
/// come of it on the CPU.
const EVENT_TYPES: [(&str, &[Category]); 3] = [
    ("Cuda", &[Category::CudaApi]),
    ("NvtxEvents", &[Category::NvtxRange]),
    ("OSRuntime", &[Category::OsRuntime]),
];

/// Characters of a device's UUID that are kept; `MIG-` and a UUID are 40.
const MAX_UUID_CHARACTERS: usize = 64;

const GPU_SIDE: [Category; 8] = [
    Category::CudaKernel,
    Category::CudaMemcpyH2d,
    Category::CudaMemcpyD2h,
    Category::CudaMemcpyD2d,
    Category::CudaMemcpyP2p,
    Category::CudaMemcpyOther,
    Category::CudaMemset,
    Category::CudaSync,
];

impl Reader<'_> {
    /// Checks that nsys wrote the file, and takes its versions. Exports of 2021 and before name
    /// none: they are told by the tables of events.
    pub(super) fn read_source(&mut self) -> Result<(), Failure> {
        if self.table(STRINGS)?.is_none() {
            return Err(Failure::NotAnExport(STRINGS));
        }
        // 2022 and older, then newer.
        let meta = match self.table("EXPORT_META_DATA")? {
            None => self.table("META_DATA_EXPORT")?,
            found => found,
        };
        if let Some(meta) = meta {
            self.read_versions(&meta)?;
        } else if self.holds_events() {
            TOOL.clone_into(&mut self.capture.source.tool);
        } else {
            return Err(Failure::NotAnExport(UNTOLD));
        }
        if let Some(table) = self.table("TARGET_INFO_SESSION_START_TIME")? {
            for slab in table.slabs().take(1) {
                let utc: Vec<u64> = table.optional("utcEpochNs", &slab)?;
                self.capture.session_start_utc_ns = utc.first().copied().filter(|utc| *utc > 0);
            }
        }
        Ok(())
    }

    fn holds_events(&self) -> bool {
        let names = self.tables.names();
        event_tables().any(|table| names.iter().any(|name| name == table))
    }

    fn read_versions(&mut self, meta: &Table) -> Result<(), Failure> {
        for slab in meta.slabs() {
            for (name, value) in meta
                .strings("name", &slab)?
                .into_iter()
                .zip(meta.strings("value", &slab)?)
            {
                let field = match name.as_str() {
                    "EXPORT_PRODUCT_NAME" => &mut self.capture.source.tool,
                    "EXPORT_PRODUCT_VERSION" => &mut self.capture.source.tool_version,
                    "EXPORT_SCHEMA_VERSION" => &mut self.capture.source.schema_version,
                    _ => continue,
                };
                *field = value.chars().filter(|c| !c.is_control()).take(64).collect();
            }
        }
        Ok(())
    }

    /// The window's length in ns, where the file says it.
    pub(super) fn window(&self) -> Result<Option<u64>, Failure> {
        let mut window = 0;
        if let Some(table) = self.table("ANALYSIS_DETAILS")? {
            for slab in table.slabs() {
                let durations: Vec<u64> = table.optional("duration", &slab)?;
                window = durations.into_iter().fold(window, u64::max);
            }
        }
        Ok(Some(window).filter(|window| *window > 0))
    }

    /// The window's length, and which categories were recorded, where the file says it.
    pub(super) fn read_window(&mut self) -> Result<(), Failure> {
        let window = self.window()?.unwrap_or(0);
        // `duration_ns` holds by how much the start was moved back.
        let last = times::last_end(&self.capture.events).unwrap_or(0);
        self.capture.duration_ns = window.saturating_add(self.capture.duration_ns).max(last);
        self.read_capture_options()?;
        self.decide_captured();
        Ok(())
    }

    /// Only words of a closed set are taken from this table: it also holds the command line and the
    /// environment.
    fn read_capture_options(&mut self) -> Result<(), Failure> {
        let Some(table) = self.table("META_DATA_CAPTURE")? else {
            return Ok(());
        };
        let mut options = BTreeSet::new();
        for slab in table.slabs() {
            for (name, value) in table
                .strings("name", &slab)?
                .into_iter()
                .zip(table.strings("value", &slab)?)
            {
                if name == "CAPTURE_EVENT_TYPE" {
                    options.extend(EVENT_TYPES.iter().map(|(word, _)| *word).filter(|word| *word == value));
                } else if name.ends_with("CUDA_GRAPH_TRACE_OPTIONS:MODE") {
                    let modes = ["CudaGraphTrace=Graph", "CudaGraphTrace=Node"];
                    options.extend(modes.into_iter().filter(|mode| mode.ends_with(&format!("={value}"))));
                }
            }
        }
        self.capture.source.capture_options = options.into_iter().map(str::to_owned).collect();
        Ok(())
    }

    /// A lazy export leaves out empty tables; where the options say that something was recorded,
    /// none of it is zero.
    fn decide_captured(&mut self) {
        for (word, categories) in EVENT_TYPES {
            if self.capture.source.capture_options.iter().any(|option| option == word) {
                self.capture.captured.extend(categories.iter().copied());
            }
        }
        // CUPTI delivers all GPU work or none: where one table is there, the missing ones are
        // empty. Calls without any work mean that it did not come, whatever was asked for;
        // synchronisations come even where graphs hide the kernels.
        let activity = GPU_SIDE
            .iter()
            .any(|side| side.is_gpu_work() && self.capture.captured.contains(side));
        let asked = self
            .capture
            .source
            .capture_options
            .iter()
            .any(|option| option == "Cuda");
        let calls = self.capture.events.contains_key(&Category::CudaApi);
        // Whole graphs hide what their nodes are.
        let has_graphs = self.capture.captured.contains(&Category::CudaGraph);
        if (activity || (asked && !calls)) && !has_graphs {
            self.capture.captured.extend(GPU_SIDE);
        }
    }

    /// Gives every row its label, from the names of its process and thread.
    pub(super) fn label_rows(&mut self) -> Result<(), Failure> {
        let processes = self.process_names()?;
        let threads = self.thread_names()?;
        let rows = std::mem::take(&mut self.capture.rows);
        self.capture.rows = rows
            .into_iter()
            .map(|row| {
                let label = label(&row, &processes, &threads);
                Row {
                    label: self.publishable(&label),
                    ..row
                }
            })
            .collect();
        Ok(())
    }

    fn process_names(&mut self) -> Result<HashMap<(u32, u32), String>, Failure> {
        let used: HashSet<(u32, u32)> = self.capture.rows.iter().map(|row| (row.machine, row.process)).collect();
        let mut names = HashMap::new();
        let Some(table) = self.table("PROCESSES")? else {
            return Ok(names);
        };
        for slab in table.slabs() {
            let ids: Vec<u64> = table.optional_ids("globalPid", &slab)?;
            for (id, name) in ids.into_iter().map(GlobalId).zip(table.strings("name", &slab)?) {
                let key = (id.machine(), id.process());
                if used.contains(&key) {
                    // A process may set its title to its whole command line: the program's name
                    // alone is published.
                    let program = name.split_whitespace().next().unwrap_or("");
                    let program = program.rsplit('/').next().unwrap_or("");
                    self.strings.take("PROCESSES", program)?;
                    names.insert(key, program.to_owned());
                }
            }
        }
        Ok(names)
    }

    fn thread_names(&mut self) -> Result<HashMap<(u32, u32, u64), String>, Failure> {
        let used = self
            .capture
            .rows
            .iter()
            .filter_map(|row| Some((row.machine, row.process, row.thread?)));
        let used: HashSet<(u32, u32, u64)> = used.collect();
        let Some(table) = self.table("ThreadNames")? else {
            return Ok(HashMap::new());
        };
        let mut ids = HashMap::new();
        for slab in table.slabs() {
            let threads: Vec<u64> = table.optional_ids("globalTid", &slab)?;
            let names: Vec<u64> = table.optional("nameId", &slab)?;
            for (thread, name) in threads.into_iter().map(GlobalId).zip(names) {
                let key = (thread.machine(), thread.process(), u64::from(thread.thread()));
                if used.contains(&key) {
                    // Several names of one thread: the smallest id, so that the order of rows does
                    // not matter.
                    let id = ids.entry(key).or_insert(name);
                    *id = name.min(*id);
                }
            }
        }
        let strings = self.strings_of(&ids.values().copied().collect())?;
        Ok(ids
            .into_iter()
            .filter_map(|(key, id)| Some((key, strings.get(&id)?.clone())))
            .collect())
    }

    /// The GPUs that events ran on. Others of the machine are none of the reader's business.
    pub(super) fn read_devices(&mut self) -> Result<(), Failure> {
        let used: BTreeSet<u32> = self.capture.rows.iter().filter_map(|row| row.device).collect();
        let mut devices: Vec<Device> = Vec::new();
        let table_name = "TARGET_INFO_GPU";
        if let Some(table) = self.table(table_name)? {
            for slab in table.slabs() {
                let ids: Vec<u32> = table.optional("id", &slab)?;
                let names = table.strings("name", &slab)?;
                let major: Vec<u32> = table.optional("computeMajor", &slab)?;
                let minor: Vec<u32> = table.optional("computeMinor", &slab)?;
                let multiprocessors: Vec<u32> = table.optional("smCount", &slab)?;
                let memory: Vec<u64> = table.optional("totalMemory", &slab)?;
                let bandwidth: Vec<u64> = table.optional("memoryBandwidth", &slab)?;
                let clocks: Vec<u64> = table.optional("clockRate", &slab)?;
                let mut instances = self.instances(&table, &slab, &names)?.into_iter();
                let figures = major
                    .into_iter()
                    .zip(minor)
                    .zip(multiprocessors)
                    .zip(memory)
                    .zip(bandwidth)
                    .zip(clocks);
                for ((id, name), (((((major, minor), multiprocessors), memory), bandwidth), clock)) in
                    ids.into_iter().zip(names).zip(figures)
                {
                    let mig = instances.next().flatten();
                    if !used.contains(&id) || devices.iter().any(|device| device.id == id) {
                        continue;
                    }
                    self.strings.take(table_name, &name)?;
                    // Whether the figures of an instance are its own or its GPU's is not known.
                    let is_whole = mig.is_none();
                    let peak_flops = if is_whole {
                        peak_flops((major, minor), multiprocessors, clock)
                    } else {
                        BTreeMap::new()
                    };
                    let figures_from = if peak_flops.is_empty() {
                        table_name.to_owned()
                    } else {
                        format!("{table_name}; {SOURCE}")
                    };
                    devices.push(Device {
                        id,
                        name: self.publishable(&name),
                        compute_capability: (major > 0).then_some((major, minor)),
                        multiprocessors: (multiprocessors > 0).then_some(multiprocessors),
                        memory_bytes: (memory > 0).then_some(memory),
                        peak_bandwidth: (bandwidth > 0 && is_whole).then_some(bandwidth),
                        peak_flops,
                        figures_from,
                        mig,
                    });
                }
            }
        }
        let unknown = used
            .into_iter()
            .filter(|id| devices.iter().all(|device| device.id != *id));
        let unknown: Vec<Device> = unknown
            .map(|id| Device {
                id,
                ..Device::default()
            })
            .collect();
        devices.extend(unknown);
        devices.sort_by_key(|device| device.id);
        self.capture.devices = devices;
        Ok(())
    }

    /// Which MIG instances the GPUs of a slab are, whose names are `names`. A report says it by
    /// numbers, an export by the names alone.
    fn instances(
        &mut self,
        table: &Table,
        slab: &Range<usize>,
        names: &[String],
    ) -> Result<Vec<Option<MigInstance>>, Failure> {
        let gpu: Vec<u64> = table.optional("migGpuInstance", slab)?;
        let compute: Vec<u64> = table.optional("migComputeInstance", slab)?;
        let numbers = gpu.into_iter().zip(compute);
        let numbers = numbers.map(|(gpu, compute)| (instance_number(gpu), instance_number(compute)));
        let mut instances: Vec<Option<MigInstance>> = numbers
            .zip(names)
            .map(|((gpu_instance, compute_instance), name)| {
                let is_known = gpu_instance.is_some() || compute_instance.is_some();
                (is_known || MigInstance::is_named_by(name)).then(|| MigInstance {
                    gpu_instance,
                    compute_instance,
                    uuid: String::new(),
                })
            })
            .collect();
        if instances.iter().all(Option::is_none) {
            return Ok(instances);
        }
        for (instance, uuid) in instances.iter_mut().zip(table.strings("uuid", slab)?) {
            if let Some(instance) = instance {
                let uuid: String = uuid.chars().take(MAX_UUID_CHARACTERS).collect();
                instance.uuid = self.publishable(&uuid);
            }
        }
        Ok(instances)
    }
}

/// The number of an instance, of one more than it is; `None` of 0, and of what NVML says where
/// there is none.
fn instance_number(one_more: u64) -> Option<u32> {
    let number = u32::try_from(one_more.checked_sub(1)?).ok();
    number.filter(|number| *number != u32::MAX)
}

fn label(row: &Row, processes: &HashMap<(u32, u32), String>, threads: &HashMap<(u32, u32, u64), String>) -> String {
    let program = processes
        .get(&(row.machine, row.process))
        .map_or("process", String::as_str);
    let process = format!("{program} ({})", row.process);
    match (row.track, row.device, row.thread) {
        (Track::GpuStream | Track::CudaSync, Some(device), _) => {
            let stream = row
                .stream
                .map_or_else(|| "any stream".to_owned(), |stream| format!("stream {stream}"));
            format!("{process} GPU {device} {stream}")
        }
        (_, _, Some(thread)) => {
            let name = threads
                .get(&(row.machine, row.process, thread))
                .map_or("thread", String::as_str);
            format!("{process} {name} ({thread})")
        }
        _ => process,
    }
}
