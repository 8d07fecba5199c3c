//! What allocators have given out at each time, and the buffers that they gave out.
//!
//! A pool is the memory of one kind of one device that one process is given. What it has given out,
//! its level, is a step function of time: it changes with each allocation and each release, and
//! holds in between.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use flopwatch_model::{Allocation, MemoryKind, Timeline, Track, index};
use schemars::JsonSchema;
use serde::Serialize;

use crate::bins::Bins;

/// Who gives memory out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Allocator {
    /// A framework's allocator, which gives out parts of what it has from the driver: PyTorch's,
    /// XLA's.
    Framework,
    /// The CUDA driver: each allocation is a call of its API.
    Driver,
}

impl Allocator {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Framework => "framework",
            Self::Driver => "CUDA driver",
        }
    }

    /// For people, what it gives out of `memory` to a process: `GPU 0 (framework, process 4711)`;
    /// the process is 0 where the source does not say.
    pub fn pool(self, memory: &str, process: u32) -> String {
        let allocator = self.words();
        match process {
            0 => format!("{memory} ({allocator})"),
            process => format!("{memory} ({allocator}, process {process})"),
        }
    }
}

/// Whose memory a pool is. Pools are in the order of these fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolKey {
    /// Who gives it out.
    pub allocator: Allocator,
    /// Ordinal of the device; `None` of the host's memory.
    pub device: Option<u32>,
    /// Kind of the memory, where the driver gives it out.
    pub kind: Option<MemoryKind>,
    /// Process id; 0 where the source does not say.
    pub process: u32,
}

impl PoolKey {
    /// The pool of an allocation.
    pub fn of(allocation: &Allocation) -> Self {
        Self {
            allocator: if allocation.kind.is_some() {
                Allocator::Driver
            } else {
                Allocator::Framework
            },
            device: allocation.device,
            kind: allocation.kind,
            process: allocation.process,
        }
    }

    /// For people: `GPU 0`, `host`, `GPU 1 managed`, `TPU 2` of an accelerator without streams.
    /// Needs rows.
    pub fn memory(&self, timeline: &Timeline) -> String {
        let owner = self.device.map_or_else(
            || "host".to_owned(),
            |device| {
                let mut rows = timeline.capture.rows.iter();
                let is_accelerator = rows.any(|row| row.device == Some(device) && row.track == Track::Device);
                format!("{} {device}", if is_accelerator { "TPU" } else { "GPU" })
            },
        );
        match self.kind {
            None | Some(MemoryKind::Device) => owner,
            Some(kind) => format!("{owner} {}", kind.name().replace('_', " ")),
        }
    }
}

/// What happened with a buffer in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// It was taken back.
    Recorded,
    /// Its memory was given out again, so that it must have been taken back before: that was not
    /// recorded.
    Unrecorded,
    /// It was still given out when the capture ended.
    Never,
}

impl Release {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Recorded => "taken back",
            Self::Unrecorded => "taken back unseen",
            Self::Never => "never",
        }
    }
}

/// Memory that was given out during the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// The allocation that gave it out, among those of the capture.
    pub allocation: u32,
    /// Bytes.
    pub bytes: u64,
    /// When it was given out, in ns.
    pub given_ns: u64,
    /// When it was taken back in ns: the end of the capture of [`Release::Never`].
    pub taken_ns: u64,
    /// What happened with it in the end.
    pub release: Release,
    /// The first and the last change of the pool between which it was given out: from
    /// `changes[first]` up to, and without, `changes[last]`.
    first: usize,
    last: usize,
    /// Whether a buffer had been at its address before, and had been taken back.
    pub is_address_reused: bool,
}

impl Buffer {
    /// How long it was given out, in ns; of [`Release::Never`] up to the end of the capture.
    pub fn lifetime_ns(&self) -> u64 {
        self.taken_ns.saturating_sub(self.given_ns)
    }
}

/// A change of a pool's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// When, in ns.
    pub t_ns: u64,
    /// Bytes given out from then on.
    pub level_bytes: u64,
    /// Bytes that the allocator has from then on, given out or not; `None` where the source does
    /// not say.
    pub reserved_bytes: Option<u64>,
}

/// How it is known what was given out before the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Before {
    /// The allocator says how much it has given out in all.
    Totals,
    /// Not at all, but for what was taken back during the capture without having been given out
    /// during it: there may have been more.
    AtLeast,
}

/// The most that a pool had given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// Bytes.
    pub bytes: u64,
    /// When it was first reached, in ns; 0 where that was before the capture.
    pub t_ns: u64,
    /// The change with which; `None` where it was before the first.
    change: Option<usize>,
}

/// The memory of one kind of one device that one process is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Allocator, device, kind of memory and process that the pool is of.
    pub key: PoolKey,
    /// Each change of its level, in order.
    pub changes: Vec<Change>,
    /// The buffers in the order in which they were given out; empty where the source says no
    /// addresses.
    pub buffers: Vec<Buffer>,
    /// Bytes that were given out before the capture.
    pub before_bytes: u64,
    /// How that is known.
    pub before: Before,
    /// Times that memory was given out.
    pub allocations: u64,
    /// Bytes that were given out, all together.
    pub allocated_bytes: u64,
    /// Times that memory was taken back.
    pub releases: u64,
    /// Releases of memory that was given out before the capture, or without being recorded; 0 where
    /// the source says no addresses.
    pub unmatched_releases: u64,
    /// Bytes of [`Self::unmatched_releases`], as far as the source says them.
    pub unmatched_bytes: u64,
    /// Releases of another size than was given out.
    pub mismatched_releases: u64,
    /// Changes whose total is not the one before and the change: something between them was not
    /// recorded.
    pub gaps: u64,
}

impl Pool {
    /// The pools of `timeline`. Needs its allocations.
    pub fn all(timeline: &Timeline) -> Vec<Self> {
        let mut builders: BTreeMap<PoolKey, PoolBuilder> = BTreeMap::new();
        for (at, allocation) in (0_u32..).zip(&timeline.capture.allocations) {
            builders.entry(PoolKey::of(allocation)).or_default().add(at, allocation);
        }
        let end_ns = timeline.capture.duration_ns;
        let pools = builders.into_iter().map(|(key, builder)| builder.finish(key, end_ns));
        pools.collect()
    }

    /// Whether the source says which buffer a release takes back.
    pub fn has_addresses(&self) -> bool {
        !self.buffers.is_empty() || self.unmatched_releases > 0
    }

    /// The most that was given out, and when first.
    pub fn peak(&self) -> Peak {
        let mut peak = Peak {
            bytes: self.before_bytes,
            t_ns: 0,
            change: None,
        };
        for (at, change) in self.changes.iter().enumerate() {
            if change.level_bytes > peak.bytes {
                peak = Peak {
                    bytes: change.level_bytes,
                    t_ns: change.t_ns,
                    change: Some(at),
                };
            }
        }
        peak
    }

    /// The buffers that were given out at the peak: those that were given out during the capture.
    pub fn alive_at(&self, peak: Peak) -> impl Iterator<Item = &Buffer> {
        let is_alive = move |buffer: &&Buffer| peak.change.is_some_and(|at| buffer.first <= at && at < buffer.last);
        self.buffers.iter().filter(is_alive)
    }

    /// The most that the allocator had, and when first; `None` where the source does not say it.
    pub fn most_reserved(&self) -> Option<(u64, u64)> {
        let levels = self
            .changes
            .iter()
            .filter_map(|change| Some((change.reserved_bytes?, change.t_ns)));
        levels.reduce(|max, next| if next.0 > max.0 { next } else { max })
    }

    /// The most that the allocator had and had not given out, and when first; `None` where the
    /// source does not say it.
    pub fn most_unused(&self) -> Option<(u64, u64)> {
        let unused = |change: &Change| Some((change.reserved_bytes?.saturating_sub(change.level_bytes), change.t_ns));
        let levels = self.changes.iter().filter_map(unused);
        levels.reduce(|max, next| if next.0 > max.0 { next } else { max })
    }

    /// What the allocator had and had not given out at the peak; `None` where the source does not
    /// say it.
    pub fn unused_at(&self, peak: Peak) -> Option<u64> {
        let change = self.changes.get(peak.change?)?;
        Some(change.reserved_bytes?.saturating_sub(change.level_bytes))
    }

    /// Bytes given out when the capture ended.
    pub fn end_bytes(&self) -> u64 {
        self.changes
            .last()
            .map_or(self.before_bytes, |change| change.level_bytes)
    }
}

/// A pool while its changes are read.
#[derive(Debug, Default)]
struct PoolBuilder {
    /// Time, signed change and total of each change, and what the allocator has.
    changes: Vec<(u64, i128, Option<u64>, Option<u64>)>,
    buffers: Vec<Buffer>,
    /// Which buffer is at an address, as far as one is.
    open: HashMap<u64, usize>,
    /// Addresses where a buffer was and is no more.
    spare: HashSet<u64>,
    has_addresses: bool,
    allocations: u64,
    allocated_bytes: u64,
    releases: u64,
    unmatched_releases: u64,
    unmatched_bytes: u64,
    mismatched_releases: u64,
}

impl PoolBuilder {
    fn add(&mut self, at: u32, allocation: &Allocation) {
        let size = allocation.bytes.unsigned_abs();
        let changed = if allocation.bytes > 0 {
            self.allocations += 1;
            self.allocated_bytes = self.allocated_bytes.saturating_add(size);
            i128::from(size) - self.give(at, size, allocation)
        } else {
            self.releases += 1;
            -self.take(size, allocation)
        };
        // PyTorch's allocator of the host's memory reserves nothing and says 0.
        let is_known = |reserved: &u64| *reserved > 0 || allocation.device.is_some();
        let reserved = allocation.reserved.filter(is_known);
        self.changes
            .push((allocation.t_ns, changed, allocation.allocated, reserved));
    }

    /// Bytes of the buffer that must have been taken back before.
    fn give(&mut self, at: u32, bytes: u64, allocation: &Allocation) -> i128 {
        if allocation.address == 0 {
            return 0;
        }
        self.has_addresses = true;
        let first = self.changes.len();
        let was = self.open.insert(allocation.address, self.buffers.len());
        let is_spare = self.spare.remove(&allocation.address);
        self.buffers.push(Buffer {
            allocation: at,
            bytes,
            given_ns: allocation.t_ns,
            taken_ns: allocation.t_ns,
            release: Release::Never,
            first,
            last: usize::MAX,
            is_address_reused: is_spare,
        });
        let lost = was.and_then(|was| self.buffers.get_mut(was));
        lost.map_or(0, |lost| {
            lost.release = Release::Unrecorded;
            lost.taken_ns = allocation.t_ns;
            lost.last = first;
            lost.bytes.into()
        })
    }

    /// Bytes that are taken back.
    fn take(&mut self, size: u64, allocation: &Allocation) -> i128 {
        if allocation.address == 0 {
            return size.into();
        }
        self.has_addresses = true;
        let last = self.changes.len();
        let was = self.open.remove(&allocation.address);
        self.spare.insert(allocation.address);
        let Some(buffer) = was.and_then(|was| self.buffers.get_mut(was)) else {
            self.unmatched_releases += 1;
            self.unmatched_bytes = self.unmatched_bytes.saturating_add(size);
            return size.into();
        };
        buffer.release = Release::Recorded;
        buffer.taken_ns = allocation.t_ns;
        buffer.last = last;
        self.mismatched_releases += u64::from(size != 0 && size != buffer.bytes);
        buffer.bytes.into()
    }

    fn finish(mut self, key: PoolKey, end_ns: u64) -> Pool {
        let first_total = self
            .changes
            .iter()
            .enumerate()
            .find_map(|(at, change)| Some((at, change.2?)));
        let (before, before_bytes) = if let Some((at, total)) = first_total {
            let since = self.changes.iter().take(at + 1).map(|change| change.1).sum::<i128>();
            (Before::Totals, positive(i128::from(total) - since))
        } else if self.has_addresses {
            (Before::AtLeast, self.unmatched_bytes)
        } else {
            let mut level = 0_i128;
            let levels = self.changes.iter().map(|change| {
                level += change.1;
                level
            });
            (Before::AtLeast, positive(-levels.min().unwrap_or(0)))
        };
        let (mut level, mut gaps) = (i128::from(before_bytes), 0);
        let changes = self.changes.iter().map(|(t_ns, changed, total, reserved)| {
            let expected = level + changed;
            level = total.map_or(expected, i128::from);
            gaps += u64::from(level != expected);
            Change {
                t_ns: *t_ns,
                level_bytes: positive(level),
                reserved_bytes: *reserved,
            }
        });
        let changes: Vec<Change> = changes.collect();
        for buffer in &mut self.buffers {
            if buffer.release == Release::Never {
                buffer.taken_ns = end_ns.max(buffer.given_ns);
            }
        }
        Pool {
            key,
            changes,
            buffers: self.buffers,
            before_bytes,
            before,
            allocations: self.allocations,
            allocated_bytes: self.allocated_bytes,
            releases: self.releases,
            unmatched_releases: self.unmatched_releases,
            unmatched_bytes: self.unmatched_bytes,
            mismatched_releases: self.mismatched_releases,
            gaps,
        }
    }
}

fn positive(bytes: i128) -> u64 {
    u64::try_from(bytes.max(0)).unwrap_or(u64::MAX)
}

/// What a pool held during each part of a window: the highest level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PoolPoint {
    /// Start of the part in ns.
    pub t_ns: u64,
    /// The most bytes that were given out during it.
    pub allocated_bytes: u64,
    /// The most bytes that the allocator had, given out or not; null where the source does not say
    /// it.
    pub reserved_bytes: Option<u64>,
}

impl Pool {
    /// The highest level in each of `bins`, whose times rise.
    pub fn over(&self, bins: Bins) -> Vec<PoolPoint> {
        highest(self.before_bytes, &self.changes, bins)
    }
}

/// The highest level in each of `bins` of what begins with `before_bytes` and has those `changes`.
pub fn highest(before_bytes: u64, changes: &[Change], bins: Bins) -> Vec<PoolPoint> {
    let mut points: Vec<PoolPoint> = Vec::with_capacity(bins.count);
    let (mut level, mut reserved) = (before_bytes, None);
    let mut next = changes.iter().peekable();
    for bin in 0..bins.count {
        let time = bins.time(bin);
        let is_last = bin + 1 == bins.count;
        let mut point = PoolPoint {
            t_ns: time.start,
            allocated_bytes: level,
            reserved_bytes: reserved,
        };
        let mut is_first = true;
        while let Some(change) = next.next_if(|change| change.t_ns < time.end || is_last) {
            // What held before is not in the part at whose begin it changes; what was before the
            // capture is in the first.
            if is_first && bin > 0 && change.t_ns <= time.start {
                (point.allocated_bytes, point.reserved_bytes) = (0, None);
            }
            is_first = false;
            (level, reserved) = (change.level_bytes, change.reserved_bytes.or(reserved));
            point.allocated_bytes = point.allocated_bytes.max(level);
            point.reserved_bytes = point.reserved_bytes.max(reserved);
        }
        points.push(point);
    }
    points
}

/// What several pools have given out together: what was before, and each change of the sum.
pub fn merge_changes(pools: &[&Pool]) -> (u64, Vec<Change>) {
    let mut order: Vec<(u64, usize, usize)> = Vec::new();
    for (number, pool) in pools.iter().enumerate() {
        order.extend(
            pool.changes
                .iter()
                .enumerate()
                .map(|(at, change)| (change.t_ns, number, at)),
        );
    }
    order.sort_unstable();
    let mut levels: Vec<u64> = pools.iter().map(|pool| pool.before_bytes).collect();
    let before = levels.iter().copied().fold(0, u64::saturating_add);
    let mut sum = u128::from(before);
    let changes = order.into_iter().filter_map(|(t_ns, number, at)| {
        let now = pools.get(number)?.changes.get(at)?.level_bytes;
        let level = levels.get_mut(number)?;
        sum = (sum + u128::from(now)).saturating_sub((*level).into());
        *level = now;
        Some(Change {
            t_ns,
            level_bytes: u64::try_from(sum).unwrap_or(u64::MAX),
            reserved_bytes: None,
        })
    });
    (before, changes.collect())
}

/// The allocation that gave a buffer out.
pub fn allocation<'a>(timeline: &'a Timeline, buffer: &Buffer) -> Option<&'a Allocation> {
    timeline.capture.allocations.get(index(buffer.allocation))
}
