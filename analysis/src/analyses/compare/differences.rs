//! What differs, by kernel, range, copy, part of the GPUs' time, and memory.

use std::collections::BTreeMap;

use flopwatch_measures::counterpart::{Counterpart, MatchedBy, NameTally, Parts, Presence, Tally, Units, counterparts};
use flopwatch_measures::kernel_class::WorkClass;
use flopwatch_measures::moved_bytes::MovedBytes;
use flopwatch_model::{Category, approximate, ratio};
use flopwatch_report::page::TimelineLocation;
use schemars::JsonSchema;
use serde::Serialize;

use super::side::{Entry, Side};

/// Bytes of a megabyte in `peak_mb`.
const BYTES_PER_MEGABYTE: f64 = 1e6;

/// A kernel, whole graph, range or operator in both captures. Times are per iteration or capture,
/// as the result's `unit` says, in whole ns.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimeDifference {
    /// Its name; the short name of a kernel of which a side has several variants.
    pub name: String,
    /// Its category, such as `cuda_kernel` or `nvtx_range`.
    pub category: String,
    /// What it is for, of a kernel or a whole graph.
    pub class: Option<WorkClass>,
    /// Which captures it is in.
    pub presence: Presence,
    /// By what the two sides were matched.
    pub matched_by: MatchedBy,
    /// Time in ns before.
    pub before_ns: u64,
    /// Time in ns after.
    pub after_ns: u64,
    /// `after_ns` less `before_ns`.
    pub difference_ns: i64,
    /// The part of the difference in ns that comes from more or fewer calls: their change times the
    /// mean length before, rounded once.
    pub count_part_ns: i64,
    /// The rest, in ns: calls after times the change of the mean length. Both parts add up to the
    /// difference.
    pub duration_part_ns: i64,
    /// Calls before, in all that is compared.
    pub before_calls: u64,
    /// Calls after, in all that is compared.
    pub after_calls: u64,
    /// Mean length of a call in ns before; null without any.
    pub before_mean_ns: Option<f64>,
    /// Mean length of a call in ns after; null without any.
    pub after_mean_ns: Option<f64>,
    /// The longest call before.
    pub before_place: Option<TimelineLocation>,
    /// The longest call after.
    pub after_place: Option<TimelineLocation>,
}

/// Copies of one direction, or memsets. Times and bytes are per iteration or capture, as the
/// result's `unit` says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CopyDifference {
    /// Its category, such as `cuda_memcpy_h2d`.
    pub category: String,
    /// Time in ns before.
    pub before_ns: u64,
    /// Time in ns after.
    pub after_ns: u64,
    /// `after_ns` less `before_ns`.
    pub difference_ns: i64,
    /// Bytes before; null where a copy does not say them.
    pub before_bytes: Option<u64>,
    /// Bytes after; null where a copy does not say them.
    pub after_bytes: Option<u64>,
    /// `after_bytes` less `before_bytes`; null where one of them is.
    pub difference_bytes: Option<i64>,
    /// How many before, in all that is compared.
    pub before_calls: u64,
    /// How many after, in all that is compared.
    pub after_calls: u64,
}

/// A part of the GPUs' time, of all devices together, per iteration or capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GpuTimeDifference {
    /// `compute`, `exposed_communication`, `exposed_memory` or `idle`, which add up to `window`.
    pub part: String,
    /// Time in ns before.
    pub before_ns: u64,
    /// Time in ns after.
    pub after_ns: u64,
    /// `after_ns` less `before_ns`.
    pub difference_ns: i64,
}

/// Peak of memory in use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MemoryDifference {
    /// The highest peak of a GPU after less that before, in megabytes (10^6 bytes); null where a
    /// side recorded none.
    pub peak_mb: Option<f64>,
    /// Per GPU.
    pub rows: Vec<PeakMemory>,
}

/// Peak of memory of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeakMemory {
    /// The GPU, as its series or its allocator calls it.
    pub device: String,
    /// Peak in bytes before; null where none was recorded.
    pub before_peak_bytes: Option<u64>,
    /// Peak in bytes after; null where none was recorded.
    pub after_peak_bytes: Option<u64>,
}

pub(super) fn kernels(before: &Side<'_>, after: &Side<'_>, units: Units) -> Vec<TimeDifference> {
    let matched = [Category::CudaKernel, Category::CudaGraph].map(|category| {
        let entries = [&before.kernels(category)[..], &after.kernels(category)];
        matched(category, [before, after], entries, units)
    });
    let mut all: Vec<TimeDifference> = matched.into_iter().flatten().collect();
    sort(&mut all);
    all
}

pub(super) fn ranges(before: &Side<'_>, after: &Side<'_>, units: Units) -> Vec<TimeDifference> {
    let categories = [Category::NvtxRange, Category::Annotation, Category::CpuOp];
    let matched = categories.map(|category| {
        let entries = [&before.ranges(category)[..], &after.ranges(category)];
        matched(category, [before, after], entries, units)
    });
    let mut all: Vec<TimeDifference> = matched.into_iter().flatten().collect();
    sort(&mut all);
    all
}

fn sort(all: &mut [TimeDifference]) {
    all.sort_by(|a, b| {
        let size = |one: &TimeDifference| one.difference_ns.unsigned_abs();
        let time = |one: &TimeDifference| one.before_ns.max(one.after_ns);
        size(b)
            .cmp(&size(a))
            .then(time(b).cmp(&time(a)))
            .then_with(|| a.name.cmp(&b.name))
    });
}

/// The entries of both sides, matched.
fn matched(
    category: Category,
    [before, after]: [&Side<'_>; 2],
    [old, new]: [&[Entry<'_>]; 2],
    units: Units,
) -> Vec<TimeDifference> {
    let old: Vec<NameTally<'_>> = old.iter().map(|entry| before.named(entry)).collect();
    let new: Vec<NameTally<'_>> = new.iter().map(|entry| after.named(entry)).collect();
    let found = counterparts(&old, &new);
    found.iter().map(|one| difference(category, one, units)).collect()
}

fn difference(category: Category, one: &Counterpart<'_>, units: Units) -> TimeDifference {
    let parts = Parts::of(one.before, one.after, units);
    let mean = |tally: Tally| ratio(tally.total_ns, tally.count);
    TimeDifference {
        name: one.name.to_owned(),
        category: category.name().to_owned(),
        class: WorkClass::of(category, one.name),
        presence: one.presence(),
        matched_by: one.matched_by,
        before_ns: parts.before_ns,
        after_ns: parts.after_ns,
        difference_ns: parts.difference_ns,
        count_part_ns: parts.count_ns,
        duration_part_ns: parts.duration_ns,
        before_calls: one.before.count,
        after_calls: one.after.count,
        before_mean_ns: mean(one.before),
        after_mean_ns: mean(one.after),
        before_place: one.longest_before,
        after_place: one.longest_after,
    }
}

/// A total per unit on both sides, in whole numbers.
fn per_unit(before: u128, after: u128, units: Units) -> Parts {
    let tally = |total_ns| Tally { count: 1, total_ns };
    Parts::of(tally(before), tally(after), units)
}

pub(super) fn copies(before: &Side<'_>, after: &Side<'_>, units: Units) -> Vec<CopyDifference> {
    let (old, new) = (before.copies(), after.copies());
    let categories = Category::ALL
        .iter()
        .copied()
        .filter(|category| old.contains_key(category) || new.contains_key(category));
    let differences = categories.map(|category| {
        let of = |side: &BTreeMap<Category, (Tally, MovedBytes)>| side.get(&category).copied().unwrap_or_default();
        let ((old, old_bytes), (new, new_bytes)) = (of(&old), of(&new));
        let (old_bytes, new_bytes) = (old_bytes.known(), new_bytes.known());
        let time = Parts::of(old, new, units);
        let bytes = per_unit(old_bytes.unwrap_or(0).into(), new_bytes.unwrap_or(0).into(), units);
        CopyDifference {
            category: category.name().to_owned(),
            before_ns: time.before_ns,
            after_ns: time.after_ns,
            difference_ns: time.difference_ns,
            before_bytes: old_bytes.map(|_| bytes.before_ns),
            after_bytes: new_bytes.map(|_| bytes.after_ns),
            difference_bytes: old_bytes.zip(new_bytes).map(|_| bytes.difference_ns),
            before_calls: old.count,
            after_calls: new.count,
        }
    });
    differences.collect()
}

pub(super) fn gpu_time(before: &Side<'_>, after: &Side<'_>, units: Units) -> Vec<GpuTimeDifference> {
    let (old, new) = (before.gpu_time(), after.gpu_time());
    if old.window_ns == 0 && new.window_ns == 0 {
        return Vec::new();
    }
    let parts = [
        ("compute", old.compute_ns, new.compute_ns),
        (
            "exposed_communication",
            old.exposed_communication_ns,
            new.exposed_communication_ns,
        ),
        ("exposed_memory", old.exposed_memory_ns, new.exposed_memory_ns),
        ("idle", old.idle_ns, new.idle_ns),
        ("window", old.window_ns, new.window_ns),
    ];
    let differences = parts.map(|(part, old, new)| {
        let time = per_unit(old.into(), new.into(), units);
        GpuTimeDifference {
            part: part.to_owned(),
            before_ns: time.before_ns,
            after_ns: time.after_ns,
            difference_ns: time.difference_ns,
        }
    });
    differences.into()
}

pub(super) fn memory(before: &Side<'_>, after: &Side<'_>) -> MemoryDifference {
    let (old, new) = (before.peaks(), after.peaks());
    let highest = |peaks: &BTreeMap<String, u64>| peaks.values().copied().max();
    let mut devices: Vec<&String> = old.keys().chain(new.keys()).collect();
    devices.sort();
    devices.dedup();
    let both = highest(&old).zip(highest(&new));
    MemoryDifference {
        peak_mb: both.map(|(old, new)| (approximate(new.into()) - approximate(old.into())) / BYTES_PER_MEGABYTE),
        rows: devices
            .into_iter()
            .map(|device| PeakMemory {
                device: device.clone(),
                before_peak_bytes: old.get(device).copied(),
                after_peak_bytes: new.get(device).copied(),
            })
            .collect(),
    }
}
