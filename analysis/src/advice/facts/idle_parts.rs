//! Idle time of GPUs in parts that have one cause each. All rules share them, so that no two claim
//! the same time for different causes.
//!
//! What a recorded call of the launching thread says comes first, then ranges that are named after
//! what the host does, then a wait that the gap began in: without it the host would be ahead by the
//! time that it took. What is left is the host's own time.

use std::collections::BTreeMap;

use flopwatch_measures::api_call::ApiCall;
use flopwatch_measures::gap::{Gap, IdleClass};
use flopwatch_measures::interval::{Interval, Intervals};
use flopwatch_measures::thread_activity::HostActivity;
use flopwatch_model::{RowId, index};

use super::{Call, Calls, Facts, times};
use crate::analyses::idle::{IdleCause, ThreadPiece, causes_of};

/// Cause of a part of idle time before work that the host launched late, or whose launch was not
/// recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdleOwner {
    /// The host waited for the GPU and launched the next work after that.
    Synchronize,
    /// The host waited for a copy that is not asynchronous and launched the next work after that.
    SynchronousCopy,
    /// The host was in another call that copies or sets memory.
    CopyCall,
    /// The host allocated or freed memory.
    Allocate,
    /// The host loaded code for the GPU.
    LoadModule,
    /// The framework compiled.
    Compile,
    /// Garbage was collected.
    CollectGarbage,
    /// Data was loaded.
    LoadData,
    /// The launching thread waited in a call of the operating system.
    OsWait,
    /// Time of the host's own: launch calls, the program's code, whatever was not recorded.
    Launch,
    /// Not known: the launch was not recorded.
    NotRecorded,
}

/// A part of a gap with one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdlePart {
    /// The part of the gap.
    pub(crate) time: Interval,
    /// Cause of the part.
    pub(crate) owner: IdleOwner,
    /// What the launching thread did; `None` where the launch was not recorded.
    activity: Option<HostActivity>,
    /// The gap's place in [`IdleParts::gaps`].
    gap: u32,
}

/// The parts of all gaps that wait for the host, or may.
#[derive(Debug, Default)]
pub(crate) struct IdleParts {
    gaps: Vec<Gap>,
    /// By gap, and within it by time.
    parts: Vec<IdlePart>,
}

impl IdleParts {
    /// Of `gaps`, in which launching threads did what `pieces` say.
    pub(super) fn of(facts: &Facts<'_>, gaps: Vec<Gap>, pieces: &[ThreadPiece]) -> Self {
        let claims = Claims::of(facts);
        let waits = Waits::of(facts);
        let mut parts = Parts(Vec::new());
        for of_gap in pieces.chunk_by(|one, next| one.gap == next.gap) {
            let gap = of_gap.first().and_then(|first| gaps.get(index(first.gap)));
            let mut wait = gap.and_then(|gap| waits.before(facts, gap));
            for piece in of_gap {
                parts.add(&claims, piece, wait.as_mut());
            }
        }
        let not_recorded = (0_u32..).zip(&gaps);
        for (at, gap) in not_recorded.filter(|(_, gap)| gap.class == IdleClass::LaunchNotRecorded) {
            claims.split(gap.time, |owner, time| {
                parts.push(at, None, owner.unwrap_or(IdleOwner::NotRecorded), time);
            });
        }
        let Parts(mut parts) = parts;
        parts.sort_by_key(|part| (part.gap, part.time.start));
        Self { gaps, parts }
    }

    /// All gaps, also those whose work was launched in time, GPU by GPU.
    pub(crate) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The parts with `owner`, by gap and time.
    pub(crate) fn of_owner(&self, owner: IdleOwner) -> impl Iterator<Item = &IdlePart> {
        self.parts.iter().filter(move |part| part.owner == owner)
    }

    /// Total length in ns over all GPUs of the parts with `owner`.
    pub(crate) fn total_ns(&self, owner: IdleOwner) -> u64 {
        self.of_owner(owner).map(|part| part.time.len()).sum()
    }

    /// Length in ns over all GPUs of what the parts with `owner` have in common with `times`.
    pub(crate) fn total_within_ns(&self, owner: IdleOwner, times: &Intervals) -> u64 {
        let inside = self.of_owner(owner).map(|part| times.clip(part.time).len_ns());
        inside.sum()
    }

    /// The gaps that hold parts with `owner`.
    pub(crate) fn gaps_of(&self, owner: IdleOwner) -> Vec<Gap> {
        let mut gaps: Vec<u32> = self.of_owner(owner).map(|part| part.gap).collect();
        gaps.dedup();
        gaps.into_iter()
            .filter_map(|gap| self.gaps.get(index(gap)).copied())
            .collect()
    }

    /// What launching threads did in all gaps of host wait, longest first; sums over all GPUs.
    pub(crate) fn activities(&self) -> Vec<IdleCause> {
        activities_of(self.parts.iter())
    }

    /// What launching threads did in the parts with `owner`, longest first.
    pub(crate) fn activities_of_owner(&self, owner: IdleOwner) -> Vec<IdleCause> {
        activities_of(self.of_owner(owner))
    }
}

fn activities_of<'p>(parts: impl Iterator<Item = &'p IdlePart>) -> Vec<IdleCause> {
    let mut lengths: BTreeMap<HostActivity, u64> = BTreeMap::new();
    for part in parts {
        if let Some(activity) = part.activity {
            *lengths.entry(activity).or_default() += part.time.len();
        }
    }
    causes_of(lengths)
}

/// The parts that were found so far.
struct Parts(Vec<IdlePart>);

impl Parts {
    fn push(&mut self, gap: u32, activity: Option<HostActivity>, owner: IdleOwner, time: Interval) {
        if !time.is_empty() {
            self.0.push(IdlePart {
                time,
                owner,
                activity,
                gap,
            });
        }
    }

    /// Adds the parts of a piece of a gap, which began in `wait`.
    fn add(&mut self, claims: &Claims, piece: &ThreadPiece, mut wait: Option<&mut Wait>) {
        let activity = Some(piece.activity);
        let of_wait = wait.as_ref().map(|wait| wait.owner);
        let told = match piece.activity {
            HostActivity::Synchronize => Some(IdleOwner::Synchronize),
            HostActivity::Copy if of_wait == Some(IdleOwner::SynchronousCopy) => of_wait,
            HostActivity::Copy => Some(IdleOwner::CopyCall),
            HostActivity::Allocate => Some(IdleOwner::Allocate),
            HostActivity::LoadModule => Some(IdleOwner::LoadModule),
            _ => None,
        };
        if let Some(owner) = told {
            self.push(piece.gap, activity, owner, piece.time);
            if let Some(wait) = wait.filter(|wait| wait.owner == owner) {
                wait.take(piece.time.len());
            }
            return;
        }
        let mut unclaimed = Vec::new();
        if may_be_claimed(piece.activity) {
            claims.split(piece.time, |owner, time| match owner {
                Some(owner) => self.push(piece.gap, activity, owner, time),
                None => unclaimed.push(time),
            });
        } else {
            unclaimed.push(piece.time);
        }
        if piece.activity == HostActivity::OsWait {
            for time in unclaimed {
                self.push(piece.gap, activity, IdleOwner::OsWait, time);
            }
            return;
        }
        for time in unclaimed {
            let mut until = time.start;
            if let Some(wait) = wait.as_deref_mut() {
                until += wait.take(time.len());
                self.push(piece.gap, activity, wait.owner, Interval::new(time.start, until));
            }
            self.push(piece.gap, activity, IdleOwner::Launch, Interval::new(until, time.end));
        }
    }
}

/// Whether ranges that are named after what the host does tell more of such time than the thread's
/// recorded calls.
const fn may_be_claimed(activity: HostActivity) -> bool {
    matches!(
        activity,
        HostActivity::NothingRecorded | HostActivity::OsWait | HostActivity::OsCall | HostActivity::Profiler
    )
}

/// Times in which something is known to run on any thread, the most certain first.
struct Claims(Vec<(IdleOwner, Intervals)>);

impl Claims {
    fn of(facts: &Facts<'_>) -> Self {
        let ranges = &facts.host_ranges;
        Self(vec![
            (IdleOwner::LoadModule, times(&facts.module_loads)),
            (IdleOwner::Allocate, Calls::times(facts.allocations())),
            (IdleOwner::Compile, times(&ranges.compiling)),
            (IdleOwner::CollectGarbage, times(&ranges.garbage)),
            (IdleOwner::LoadData, times(&ranges.loading)),
        ])
    }

    /// The parts of `time` with their owners, and those that have none.
    fn split(&self, time: Interval, mut add: impl FnMut(Option<IdleOwner>, Interval)) {
        let mut rest = vec![time];
        for (owner, times) in &self.0 {
            let mut left = Vec::new();
            for piece in rest {
                let inside = times.clip(piece);
                if inside.is_empty() {
                    left.push(piece);
                    continue;
                }
                for time in inside.as_slice() {
                    add(Some(*owner), *time);
                }
                left.extend(inside.gaps(piece).as_slice());
            }
            rest = left;
        }
        for time in rest {
            add(None, time);
        }
    }
}

/// A wait of the host that a gap began in.
struct Wait {
    owner: IdleOwner,
    /// What of its length is in no part of the gap yet, in ns: without it the host would be ahead
    /// by its length and no more.
    left_ns: u64,
}

impl Wait {
    /// Takes up to `length` ns of what is left.
    fn take(&mut self, length: u64) -> u64 {
        let taken = length.min(self.left_ns);
        self.left_ns -= taken;
        taken
    }
}

const WAITS: [IdleOwner; 2] = [IdleOwner::Synchronize, IdleOwner::SynchronousCopy];

/// A process of a machine of a capture.
type ProcessKey = (u32, u32, u32);

/// When the host waited, for each of [`WAITS`].
#[derive(Default)]
struct Waits {
    by_row: BTreeMap<RowId, [Intervals; 2]>,
    by_process: BTreeMap<ProcessKey, [Intervals; 2]>,
}

impl Waits {
    fn of(facts: &Facts<'_>) -> Self {
        let mut by_row: BTreeMap<RowId, [Vec<Interval>; 2]> = BTreeMap::new();
        let mut add = |call: Call<'_>, kind: usize| {
            if let Some(times) = by_row.entry(call.row).or_default().get_mut(kind) {
                times.push(call.time);
            }
        };
        for call in facts.calls.of_kind(ApiCall::Synchronize) {
            add(call, 0);
        }
        for call in facts.work.all().iter().filter_map(|work| facts.synchronous_copy(work)) {
            add(call, 1);
        }
        let mut by_process: BTreeMap<ProcessKey, [Vec<Interval>; 2]> = BTreeMap::new();
        for (row, kinds) in &by_row {
            let Some(key) = process_of(facts, *row) else { continue };
            for (all, times) in by_process.entry(key).or_default().iter_mut().zip(kinds) {
                all.extend(times);
            }
        }
        let union = |kinds: [Vec<Interval>; 2]| kinds.map(|times| times.into_iter().collect::<Intervals>());
        Self {
            by_row: by_row.into_iter().map(|(row, kinds)| (row, union(kinds))).collect(),
            by_process: by_process.into_iter().map(|(key, kinds)| (key, union(kinds))).collect(),
        }
    }

    /// The wait in which `gap` began, or as it returned, where the work behind the gap was launched
    /// after it: on the launching thread, else in its process. Work that was launched before the
    /// wait returned would not be there earlier without it.
    fn before(&self, facts: &Facts<'_>, gap: &Gap) -> Option<Wait> {
        let (row, call) = facts.work_calls.get(gap.after)?;
        let find = |kinds: &[Intervals; 2]| {
            WAITS.iter().zip(kinds).find_map(|(owner, waits)| {
                let waits = waits.as_slice();
                let behind = waits.partition_point(|wait| wait.start <= gap.time.start);
                let wait = waits.get(behind.checked_sub(1)?)?;
                (gap.time.start <= wait.end && wait.end <= call.start).then(|| Wait {
                    owner: *owner,
                    left_ns: wait.len(),
                })
            })
        };
        let of_process = || self.by_process.get(&process_of(facts, row)?).and_then(find);
        self.by_row.get(&row).and_then(find).or_else(of_process)
    }
}

fn process_of(facts: &Facts<'_>, row: RowId) -> Option<ProcessKey> {
    let row = facts.timeline.row(row)?;
    Some((row.capture, row.machine, row.process))
}

#[cfg(test)]
mod tests;
