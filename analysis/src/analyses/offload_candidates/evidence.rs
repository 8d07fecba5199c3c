//! What bounds each kernel, from the best that the captures have: counters, the compiler's count,
//! shapes, the kind of kernel.

use std::collections::{BTreeMap, HashMap};

use flopwatch_measures::enclosing::{LaunchedWork, Threads};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::kernel_figures::Figures;
use flopwatch_measures::kernel_name::short;
use flopwatch_measures::operator_flops::{FlopFormula, input_bytes};
use flopwatch_measures::range_tree::innermost;
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, ColumnId, Events, KernelProfile, NameId, Timeline, approximate, index, whole};
use flopwatch_report::page::TimelineLocation;
use flopwatch_summary::duration_ns;

use super::{BoundBasis, OffloadBound};

/// Share of its peak from which on memory or compute bounds a kernel; below it ncu's rules speak of
/// latency.
const MIN_BOUND_SHARE: f64 = 0.6;

/// What names of kernels hold that do a few operations per byte: PyTorch's, Inductor's, XLA's and
/// CUB's.
const FEW_OPERATIONS: &[&str] = &[
    "elementwise",
    "triton_poi",
    "triton_red",
    "triton_per",
    "reduce_kernel",
    "softmax",
    "layer_norm",
    "layernorm",
    "rms_norm",
    "rmsnorm",
    "batch_norm",
    "bn_fw",
    "bn_bw",
    "group_norm",
    "catarray",
    "index",
    "gather",
    "scatter",
    "embedding",
    "transpose",
    "permute",
    "copy",
    "fill",
    "dropout",
    "adam",
    "multi_tensor_apply",
    "gemv",
    "cub::device",
    "devicereduce",
    "devicescan",
    "radixsort",
    "loop_",
    "input_reduce",
    "wrapped_",
    "nchwtonhwc",
    "nhwctonchw",
    "im2col",
    "col2im",
    "pool",
    "upsample",
    "splitkreduce",
];

/// How operations of XLA begin that move data, or wait for it to be moved, and compute nothing.
const TRANSFERS: &[&str] = &[
    "copy-start",
    "copy-done",
    "async-",
    "slice-start",
    "slice-done",
    "send",
    "recv",
    "infeed",
    "outfeed",
];

/// What is known of a kernel.
#[derive(Debug, Clone)]
pub(super) struct KernelEvidence {
    pub(super) kernel: String,
    pub(super) bound: OffloadBound,
    pub(super) basis: BoundBasis,
    pub(super) launches: u64,
    pub(super) total_ns: u64,
    /// Launches whose bytes are known, and their time.
    pub(super) known_launches: u64,
    pub(super) known_ns: u64,
    /// Bytes and operations of those.
    pub(super) bytes: Option<u64>,
    pub(super) flops: Option<u64>,
    pub(super) working_set: Option<u64>,
    pub(super) bandwidth_ratio: Option<f64>,
    pub(super) longest: Option<TimelineLocation>,
    longest_ns: u64,
}

impl KernelEvidence {
    fn new(kernel: &str) -> Self {
        Self {
            kernel: kernel.to_owned(),
            bound: OffloadBound::Unknown,
            basis: BoundBasis::None,
            launches: 0,
            total_ns: 0,
            known_launches: 0,
            known_ns: 0,
            bytes: None,
            flops: None,
            working_set: None,
            bandwidth_ratio: None,
            longest: None,
            longest_ns: 0,
        }
    }

    fn launched(&mut self, ns: u64, location: Option<TimelineLocation>) {
        self.launches += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        if location.is_some() && (self.longest.is_none() || ns > self.longest_ns) {
            self.longest = location;
            self.longest_ns = ns;
        }
    }

    fn moved(&mut self, ns: u64, bytes: u64, flops: Option<u64>) {
        self.known_launches += 1;
        self.known_ns = self.known_ns.saturating_add(ns);
        self.bytes = Some(self.bytes.unwrap_or(0).saturating_add(bytes));
        self.working_set = self.working_set.max(Some(bytes));
        if let Some(flops) = flops {
            self.flops = Some(self.flops.unwrap_or(0).saturating_add(flops));
        }
    }

    /// By operations and bytes against the balance of the device.
    fn classify_by_ridge(&mut self, ridge: Option<f64>, basis: BoundBasis) {
        let (Some(bytes), Some(flops), Some(ridge)) = (self.bytes.filter(|bytes| *bytes > 0), self.flops, ridge) else {
            return;
        };
        let intensity = approximate(flops.into()) / approximate(bytes.into());
        self.bound = if intensity <= ridge {
            OffloadBound::Memory
        } else {
            OffloadBound::Compute
        };
        self.basis = basis;
    }
}

/// All kernels.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    found: Vec<KernelEvidence>,
    pub(super) has_counters: bool,
    pub(super) has_bytes: bool,
}

impl Evidence {
    pub(super) fn kernels(&self) -> &[KernelEvidence] {
        &self.found
    }

    /// Of the first timeline. Counters are of any of them.
    pub(super) fn of(timelines: &[&Timeline], ridge: Option<f64>) -> Self {
        let Some(timeline) = timelines.first() else {
            return Self::default();
        };
        let profiles: Vec<&KernelProfile> = timelines
            .iter()
            .flat_map(|timeline| &timeline.capture.profiles)
            .collect();
        let counters = Counters::of(&profiles);
        let mut found = of_kernels(timeline, ridge);
        if found.is_empty() {
            found = of_device_operations(timeline, ridge);
        }
        if found.is_empty() {
            found = of_profiles(&timeline.capture.profiles);
        }
        for kernel in &mut found {
            counters.add_measurements(kernel);
            if kernel.basis == BoundBasis::None && kernel.flops.is_none() {
                let name = kernel.kernel.to_ascii_lowercase();
                if FEW_OPERATIONS.iter().any(|word| name.contains(word)) {
                    (kernel.bound, kernel.basis) = (OffloadBound::Memory, BoundBasis::Kind);
                }
            }
        }
        Self {
            has_counters: found.iter().any(|kernel| kernel.basis == BoundBasis::Counters),
            has_bytes: found.iter().any(|kernel| kernel.bytes.is_some()),
            found,
        }
    }
}

/// Kernels of CUDA, with the bytes of the operators that launched them. An operator that launched
/// several says nothing of each.
fn of_kernels(timeline: &Timeline, ridge: Option<f64>) -> Vec<KernelEvidence> {
    let Some(kernels) = timeline.capture.events.get(&Category::CudaKernel) else {
        return Vec::new();
    };
    let computes: Vec<bool> = kernels
        .names
        .iter()
        .map(|name| WorkClass::of(Category::CudaKernel, name) == Some(WorkClass::Compute))
        .collect();
    let mut found: BTreeMap<NameId, KernelEvidence> = BTreeMap::new();
    let known = operands(timeline);
    for (at, (name, length)) in kernels.name.iter().zip(&kernels.duration_ns).enumerate() {
        if !computes.get(name.index()).copied().unwrap_or(false) {
            continue;
        }
        let kernel = found
            .entry(*name)
            .or_insert_with(|| KernelEvidence::new(kernels.name_of(at)));
        let time = Interval::of(kernels, at);
        let location = TimelineLocation::new(time.start, time.end, kernels.row.get(at).copied());
        kernel.launched(*length, Some(location));
        if let Some((bytes, flops)) = known.get(&at) {
            kernel.moved(*length, *bytes, *flops);
        }
    }
    let mut found: Vec<KernelEvidence> = found.into_values().collect();
    for kernel in &mut found {
        kernel.classify_by_ridge(ridge, BoundBasis::Shapes);
    }
    found
}

/// Bytes and operations of kernels by their place, from the innermost operators with shapes that
/// launched one kernel each.
fn operands(timeline: &Timeline) -> HashMap<usize, (u64, Option<u64>)> {
    let Some(operators) = timeline.capture.events.get(&Category::CpuOp) else {
        return HashMap::new();
    };
    let (Some(shapes), Some(types)) = (
        operators.column(ColumnId::InputShapes),
        operators.column(ColumnId::InputTypes),
    ) else {
        return HashMap::new();
    };
    let formulas: Vec<Option<FlopFormula>> = operators.names.iter().map(|name| FlopFormula::of(name)).collect();
    let threads = Threads::of(timeline);
    let work = GpuWork::of(timeline);
    let launched = LaunchedWork::of_those(timeline, &threads, &work, |work| work.category == Category::CudaKernel);
    let launched_by = |at: usize| {
        let thread = operators.row.get(at).and_then(|row| threads.of_row(*row));
        thread.map_or(&[][..], |thread| launched.inside(thread, Interval::of(operators, at)))
    };
    let mut worked_out = HashMap::new();
    let mut found = HashMap::new();
    for at in innermost(operators, |at| !launched_by(at).is_empty()) {
        let [one] = launched_by(at) else { continue };
        let Some(name) = operators.name.get(at) else { continue };
        let key = (*name, shapes.get(at), types.get(at));
        let known = worked_out.entry(key).or_insert_with(|| {
            let formula = formulas.get(name.index()).copied().flatten();
            moved(operators, at, formula)
        });
        let kernel = work.all().get(index(one.work)).map(|piece| index(piece.at));
        if let (Some(kernel), Some(known)) = (kernel, *known) {
            found.insert(kernel, known);
        }
    }
    found
}

/// Bytes of the inputs of a call, of a product with its result, and its operations.
fn moved(operators: &Events, at: usize, formula: Option<FlopFormula>) -> Option<(u64, Option<u64>)> {
    let shapes = operators.text(ColumnId::InputShapes, at)?;
    let types = operators.text(ColumnId::InputTypes, at)?;
    let inputs = input_bytes(shapes, types)?;
    let Some(formula) = formula else {
        return Some((inputs, None));
    };
    let size = match formula.element_type(types)? {
        "fp64" => 8,
        "fp32" => 4,
        "fp16" | "bf16" => 2,
        _ => 1,
    };
    let result = formula.matrix_product(shapes).and_then(|product| {
        let elements = product.batch.checked_mul(product.m)?.checked_mul(product.n)?;
        elements.checked_mul(size)
    });
    Some((inputs.saturating_add(result.unwrap_or(0)), formula.flops(shapes)))
}

/// Operations of an accelerator, with the compiler's count.
fn of_device_operations(timeline: &Timeline, ridge: Option<f64>) -> Vec<KernelEvidence> {
    let Some(operations) = timeline.capture.events.get(&Category::DeviceOp) else {
        return Vec::new();
    };
    let computes: Vec<bool> = operations
        .names
        .iter()
        .map(|name| {
            let moves = TRANSFERS.iter().any(|word| name.starts_with(word));
            !moves && WorkClass::of(Category::CudaKernel, name) == Some(WorkClass::Compute)
        })
        .collect();
    let mut found: BTreeMap<NameId, KernelEvidence> = BTreeMap::new();
    for at in innermost(operations, |_| true) {
        let Some(name) = operations.name.get(at) else { continue };
        if !computes.get(name.index()).copied().unwrap_or(false) {
            continue;
        }
        let kernel = found
            .entry(*name)
            .or_insert_with(|| KernelEvidence::new(operations.name_of(at)));
        let time = Interval::of(operations, at);
        let location = TimelineLocation::new(time.start, time.end, operations.row.get(at).copied());
        kernel.launched(time.len(), Some(location));
        let column_value = |id: ColumnId| operations.number(id, at).filter(|value| *value > 0);
        if let Some(bytes) = column_value(ColumnId::Bytes) {
            // The compiler counts no operation of what moves data only.
            kernel.moved(time.len(), bytes, Some(column_value(ColumnId::Flops).unwrap_or(0)));
        }
    }
    let mut found: Vec<KernelEvidence> = found.into_values().collect();
    for kernel in &mut found {
        kernel.classify_by_ridge(ridge, BoundBasis::Compiler);
    }
    found
}

/// Launches that were measured, where there is no timeline.
fn of_profiles(profiles: &[KernelProfile]) -> Vec<KernelEvidence> {
    let mut found: BTreeMap<&str, KernelEvidence> = BTreeMap::new();
    for profile in profiles {
        let Some(ns) = duration_ns(profile) else { continue };
        let kernel = found
            .entry(&profile.name)
            .or_insert_with(|| KernelEvidence::new(&profile.name));
        kernel.launched(ns, None);
    }
    found.into_values().collect()
}

/// Counters by kernel: by its whole name, else by its short one where one kernel has it.
struct Counters<'a> {
    by_name: BTreeMap<&'a str, Vec<Figures>>,
    whole_name: HashMap<&'a str, Option<&'a str>>,
}

impl<'a> Counters<'a> {
    fn of(profiles: &[&'a KernelProfile]) -> Self {
        let mut by_name: BTreeMap<&str, Vec<Figures>> = BTreeMap::new();
        for profile in profiles {
            let figures = Figures::of(&profile.metrics);
            by_name.entry(&profile.name).or_default().push(figures);
        }
        let mut whole_name: HashMap<&str, Option<&str>> = HashMap::new();
        for name in by_name.keys() {
            let known = whole_name.entry(short(name)).or_insert(Some(name));
            if *known != Some(name) {
                *known = None;
            }
        }
        Self { by_name, whole_name }
    }

    /// Tells what was measured of `kernel`: means of its launches.
    fn add_measurements(&self, kernel: &mut KernelEvidence) {
        let by_short = || {
            let name = self.whole_name.get(short(&kernel.kernel)).copied().flatten()?;
            self.by_name.get(name)
        };
        let Some(launches) = self.by_name.get(kernel.kernel.as_str()).or_else(by_short) else {
            return;
        };
        let mean = |of: fn(&Figures) -> Option<f64>| {
            let known: Vec<f64> = launches.iter().filter_map(of).collect();
            let count = u32::try_from(known.len()).unwrap_or(u32::MAX);
            (count > 0).then(|| known.iter().sum::<f64>() / f64::from(count))
        };
        let (memory, compute) = (mean(|of| of.bandwidth_share), mean(|of| of.compute_share));
        let (Some(memory), Some(compute)) = (memory, compute) else {
            return;
        };
        kernel.basis = BoundBasis::Counters;
        kernel.bound = if memory.max(compute) < MIN_BOUND_SHARE {
            OffloadBound::Latency
        } else if memory >= compute {
            OffloadBound::Memory
        } else {
            OffloadBound::Compute
        };
        kernel.bandwidth_ratio = Some(memory);
        // Measured traffic goes before what shapes say.
        if let (Some(rate), Some(ns)) = (mean(|of| of.bandwidth_bytes_per_second), mean(|of| of.duration_ns)) {
            kernel.known_launches = 1;
            kernel.known_ns = whole(ns);
            kernel.bytes = Some(whole(rate * ns / 1e9));
            kernel.flops = mean(|of| of.flop_per_second).map(|rate| whole(rate * ns / 1e9));
        }
    }
}
