//! What the host did during gaps.

use std::collections::BTreeMap;

use flopwatch_measures::enclosing::Threads;
use flopwatch_measures::gap::Gap;
use flopwatch_measures::gpu::Gpu;
use flopwatch_measures::holder::{HolderQuery, innermost, row_on};
use flopwatch_measures::interval::Interval;
use flopwatch_measures::launch::WorkCalls;
use flopwatch_measures::thread_activity::{HostActivity, ThreadActivities};
use flopwatch_measures::work::GpuWork;
use flopwatch_model::{Category, ColumnId, RowId, Timeline, Track, index, ratio};
use schemars::JsonSchema;
use serde::Serialize;

use super::{IdleCause, IdleClass};

/// A gap of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct IdleGap {
    /// Which GPU.
    pub gpu: Gpu,
    /// Start in ns since the session's start.
    pub start_ns: u64,
    /// End in ns.
    pub end_ns: u64,
    /// Length in ns.
    pub idle_ns: u64,
    /// Why it is there.
    pub class: IdleClass,
    /// The work before it.
    pub before: String,
    /// The work that ends it.
    pub after: String,
    /// The timeline's row of the work that ends it.
    pub after_row: RowId,
    /// When the call that launched that work began, in ns; null where it was not recorded.
    pub call_start_ns: Option<u64>,
    /// The timeline's row of that call.
    pub call_row: Option<RowId>,
    /// What the launching thread did in the gap, longest first; these add up to it. Empty where the
    /// call was not recorded.
    pub thread: Vec<GapPart>,
    /// The innermost operator and range of the launching thread in the middle of the gap.
    pub during: Vec<GapHolder>,
    /// The innermost operator and range that made the call.
    pub launched_in: Vec<GapHolder>,
}

/// What a thread did in a part of a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GapPart {
    /// What the thread did.
    pub activity: HostActivity,
    /// The call, where it was one.
    pub name: Option<String>,
    /// For how long in ns.
    pub time_ns: u64,
}

/// An operator or range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GapHolder {
    /// Category of the call in the gap.
    pub category: Category,
    /// Name of the call in the gap.
    pub name: String,
}

const HOLDERS: [(Category, Track); 4] = [
    (Category::CpuOp, Track::CpuOp),
    (Category::NvtxRange, Track::Nvtx),
    (Category::Annotation, Track::Annotation),
    (Category::Step, Track::Annotation),
];

/// What a launching thread did in a piece of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadPiece {
    /// The gap's place among those that were asked about.
    pub(crate) gap: u32,
    /// The piece of the gap.
    pub(crate) time: Interval,
    /// What the thread did meanwhile.
    pub(crate) activity: HostActivity,
}

/// What launching threads did during those of `gaps` in which a GPU waited for the host, in the
/// order of `gaps` and of time. The pieces of a gap make it up.
pub(crate) fn host_wait_pieces(
    timeline: &Timeline,
    all: &GpuWork,
    calls: &WorkCalls,
    gaps: &[Gap],
) -> Vec<ThreadPiece> {
    let host = Host::of(timeline, all, calls);
    let mut pieces = Vec::new();
    let waits = (0_u32..).zip(gaps).filter(|(_, gap)| gap.class == IdleClass::HostWait);
    for (at, gap) in waits {
        host.parts(gap, |activity, _, time| {
            if !time.is_empty() {
                pieces.push(ThreadPiece {
                    gap: at,
                    time,
                    activity,
                });
            }
        });
    }
    pieces
}

/// Lengths in ns by activity as a list, longest first.
pub(crate) fn causes_of(lengths: BTreeMap<HostActivity, u64>) -> Vec<IdleCause> {
    let total: u64 = lengths.values().sum();
    let recorded = lengths.into_iter().filter(|(_, idle_ns)| *idle_ns > 0);
    let mut causes: Vec<IdleCause> = recorded
        .map(|(activity, idle_ns)| IdleCause {
            activity,
            idle_ns,
            host_wait_ratio: ratio(idle_ns, total),
        })
        .collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.idle_ns));
    causes
}

/// What is known of the host.
pub(super) struct Host<'a> {
    timeline: &'a Timeline,
    all: &'a GpuWork,
    calls: &'a WorkCalls,
    threads: Threads,
    activities: ThreadActivities,
}

impl<'a> Host<'a> {
    /// Of `timeline`, whose GPU work `all` was launched by `calls`.
    pub(super) fn of(timeline: &'a Timeline, all: &'a GpuWork, calls: &'a WorkCalls) -> Self {
        let threads = Threads::of(timeline);
        Self {
            timeline,
            all,
            calls,
            activities: ThreadActivities::of(timeline, &threads),
            threads,
        }
    }

    fn call(&self, gap: &Gap) -> Option<(RowId, Interval)> {
        self.calls.get(gap.after)
    }

    /// What the launching thread did in a gap, piece by piece in the order of time, with the event
    /// that says so. Behind the end of the launching call, whatever the thread does is no cause:
    /// that is the latency of the launch.
    fn parts(&self, gap: &Gap, mut add: impl FnMut(HostActivity, Option<(Category, u32)>, Interval)) {
        let Some((row, call)) = self.call(gap) else {
            return;
        };
        let returned = call.end.clamp(gap.time.start, gap.time.end);
        let before_return = Interval::new(gap.time.start, returned);
        let mut until = before_return.start;
        if let Some(thread) = self.threads.of_row(row) {
            for segment in self.activities.within(thread, before_return) {
                add(
                    HostActivity::NothingRecorded,
                    None,
                    Interval::new(until, segment.time.start),
                );
                add(segment.activity, Some((segment.category, segment.at)), segment.time);
                until = segment.time.end;
            }
        }
        add(HostActivity::NothingRecorded, None, Interval::new(until, returned));
        add(HostActivity::LaunchLatency, None, Interval::new(returned, gap.time.end));
    }

    /// What launching threads did during the gaps of host wait, longest first.
    pub(super) fn causes<'g>(&self, gaps: impl IntoIterator<Item = &'g Gap>) -> Vec<IdleCause> {
        let mut found: BTreeMap<HostActivity, u64> = BTreeMap::new();
        for gap in gaps.into_iter().filter(|gap| gap.class == IdleClass::HostWait) {
            self.parts(gap, |activity, _, time| {
                *found.entry(activity).or_default() += time.len();
            });
        }
        causes_of(found)
    }

    /// The gaps with all that is known of them.
    pub(super) fn idle_gaps(&self, gaps: &[(Gpu, Gap)]) -> Vec<IdleGap> {
        let middle = |gap: &Gap| {
            let at = u64::midpoint(gap.time.start, gap.time.end);
            Interval::new(at, at)
        };
        let during = self.holders(gaps, |gap, _| middle(gap));
        let launched_in = self.holders(gaps, |_, call| call);
        let name = |at: Option<u32>| {
            let work = at.and_then(|at| self.all.all().get(index(at)));
            work.map_or("", |work| work.name(self.timeline)).to_owned()
        };
        let idle_gaps = gaps.iter().zip(during.into_iter().zip(launched_in));
        idle_gaps
            .filter_map(|((gpu, gap), (during, launched_in))| {
                let after = self.all.all().get(index(gap.after))?;
                Some(IdleGap {
                    gpu: *gpu,
                    start_ns: gap.time.start,
                    end_ns: gap.time.end,
                    idle_ns: gap.time.len(),
                    class: gap.class,
                    before: name(gap.before),
                    after: after.name(self.timeline).to_owned(),
                    after_row: after.row,
                    call_start_ns: self.call(gap).map(|(_, call)| call.start),
                    call_row: self.call(gap).map(|(row, _)| row),
                    thread: self.thread(gap),
                    during,
                    launched_in,
                })
            })
            .collect()
    }

    fn thread(&self, gap: &Gap) -> Vec<GapPart> {
        let mut found: BTreeMap<(HostActivity, Option<&str>), u64> = BTreeMap::new();
        self.parts(gap, |activity, event, time| {
            let name = event.and_then(|(category, at)| {
                let events = self.timeline.capture.events.get(&category)?;
                Some(events.name_of(index(at)))
            });
            *found.entry((activity, name)).or_default() += time.len();
        });
        let mut parts: Vec<GapPart> = found
            .into_iter()
            .filter(|(_, time_ns)| *time_ns > 0)
            .map(|((activity, name), time_ns)| GapPart {
                activity,
                name: name.map(str::to_owned),
                time_ns,
            })
            .collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.time_ns));
        parts
    }

    /// The innermost operator and ranges that hold, on the launching thread, the time that `asked`
    /// tells of each gap and its call.
    fn holders(&self, gaps: &[(Gpu, Gap)], asked: impl Fn(&Gap, Interval) -> Interval) -> Vec<Vec<GapHolder>> {
        let mut found: Vec<Vec<GapHolder>> = vec![Vec::new(); gaps.len()];
        for (category, track) in HOLDERS {
            let Some(events) = self.timeline.capture.events.get(&category) else {
                continue;
            };
            let rows = row_on(self.timeline, track);
            let question = |(at, (_, gap)): (usize, &(Gpu, Gap))| {
                let (row, call) = self.call(gap)?;
                let row = rows.get(row.index()).copied().flatten()?;
                let time = asked(gap, call);
                Some((at, HolderQuery { time, row }))
            };
            let mut queries: Vec<(usize, HolderQuery)> = gaps.iter().enumerate().filter_map(question).collect();
            queries.sort_by_key(|(_, question)| question.time.start);
            let (gap_numbers, queries): (Vec<usize>, Vec<HolderQuery>) = queries.into_iter().unzip();
            let style = events.column(ColumnId::RangeStyle);
            let nests = |at: usize| style.and_then(|style| style.get(at)).unwrap_or(0) == 0;
            let around = innermost(events, nests, &queries);
            for (gap_number, holder) in gap_numbers.into_iter().zip(around.iter()) {
                if let Some((holders, holder)) = found.get_mut(gap_number).zip(holder) {
                    let name = events.name_of(holder.index()).to_owned();
                    holders.push(GapHolder { category, name });
                }
            }
        }
        found
    }
}
