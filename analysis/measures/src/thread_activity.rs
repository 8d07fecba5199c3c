//! What each thread was recorded to do at any time, as far as waits of GPUs have their causes
//! there.

use flopwatch_model::{Category, Timeline, index};
use schemars::JsonSchema;
use serde::Serialize;

use crate::api_call::ApiCall;
use crate::enclosing::Threads;
use crate::interval::Interval;
use crate::os_call::OsCall;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostActivity {
    /// A call that waits for the GPU.
    Synchronize,
    /// A call that gives out, takes back, maps or registers memory.
    Allocate,
    /// A call that loads code for the GPU.
    LoadModule,
    /// A call that copies or sets memory.
    Copy,
    /// A call that launches a kernel or graph.
    Launch,
    /// Any other call of the CUDA API.
    OtherCall,
    /// The profiler's own work.
    Profiler,
    /// A call of the operating system that waits for another thread, a lock or time to pass.
    OsWait,
    /// Any other call of the operating system.
    OsCall,
    /// Nothing of these was recorded: the program's own code, or a thread that does not run.
    NothingRecorded,
    /// The launching call has returned and its work has not begun.
    LaunchLatency,
}

impl HostActivity {
    /// For people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Synchronize => "synchronisation",
            Self::Allocate => "allocation",
            Self::LoadModule => "loading of modules",
            Self::Copy => "copy or memset call",
            Self::Launch => "launch call",
            Self::OtherCall => "other CUDA call",
            Self::Profiler => "profiler",
            Self::OsWait => "waiting call of the operating system",
            Self::OsCall => "other call of the operating system",
            Self::NothingRecorded => "nothing recorded",
            Self::LaunchLatency => "launch latency",
        }
    }

    /// What a call of the CUDA API does.
    const fn of_call(call: ApiCall) -> Self {
        match call {
            ApiCall::Synchronize => Self::Synchronize,
            ApiCall::Allocate => Self::Allocate,
            ApiCall::Module => Self::LoadModule,
            ApiCall::Copy | ApiCall::Set => Self::Copy,
            ApiCall::Launch => Self::Launch,
            ApiCall::Other => Self::OtherCall,
        }
    }

    /// What a call of the operating system does.
    const fn of_os_call(call: OsCall) -> Self {
        if call.waits() { Self::OsWait } else { Self::OsCall }
    }
}

/// A piece of a thread's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// When it did, in ns since the session's start.
    pub time: Interval,
    /// What the thread did.
    pub activity: HostActivity,
    /// Category of the event that says so.
    pub category: Category,
    /// The event's place in its category.
    pub at: u32,
}

/// The activities of all threads. Of calls inside calls the outer one counts; calls of the CUDA API
/// come before those of the operating system that they make, and the profiler's own work before
/// both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadActivities {
    /// Per thread, sorted and without overlap.
    threads: Vec<Vec<Segment>>,
}

/// What [`ThreadActivities::of`] reads; all of it may be missing.
pub const ACTIVITY: &[Category] = &[Category::CudaApi, Category::OsRuntime, Category::Overhead];

impl ThreadActivities {
    /// Of `timeline`, of which [`ACTIVITY`], names and rows were read.
    pub fn of(timeline: &Timeline, threads: &Threads) -> Self {
        let mut found = vec![Vec::new(); index(threads.count())];
        for category in [Category::Overhead, Category::CudaApi, Category::OsRuntime] {
            for (thread, below) in found.iter_mut().zip(outermost(timeline, threads, category)) {
                *thread = laid_under(std::mem::take(thread), &below);
            }
        }
        Self { threads: found }
    }

    /// What `thread` did in `window`, cut to it, in the order of time. Time between the pieces is
    /// [`HostActivity::NothingRecorded`].
    pub fn within(&self, thread: u32, window: Interval) -> impl Iterator<Item = Segment> {
        let all = self.threads.get(index(thread)).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|segment| segment.time.end <= window.start);
        let inside = all
            .iter()
            .skip(first)
            .take_while(move |segment| segment.time.start < window.end);
        inside.map(move |segment| Segment {
            time: segment.time.intersect(window),
            ..*segment
        })
    }
}

/// The events of a category per thread, without what lies inside an earlier one.
fn outermost(timeline: &Timeline, threads: &Threads, category: Category) -> Vec<Vec<Segment>> {
    let mut found: Vec<Vec<Segment>> = vec![Vec::new(); index(threads.count())];
    let Some(events) = timeline.capture.events.get(&category) else {
        return found;
    };
    let activity = |name: &String| match category {
        Category::CudaApi => HostActivity::of_call(ApiCall::of(name)),
        Category::Overhead => HostActivity::Profiler,
        _ => HostActivity::of_os_call(OsCall::of(name)),
    };
    let activities: Vec<HostActivity> = events.names.iter().map(activity).collect();
    for (at, (row, name)) in (0_u32..).zip(events.row.iter().zip(&events.name)) {
        let thread = threads.of_row(*row).and_then(|thread| found.get_mut(index(thread)));
        let Some((thread, activity)) = thread.zip(activities.get(name.index()).copied()) else {
            continue;
        };
        let mut time = Interval::of(events, index(at));
        time.start = time.start.max(thread.last().map_or(0, |last| last.time.end));
        if !time.is_empty() {
            thread.push(Segment {
                time,
                activity,
                category,
                at,
            });
        }
    }
    found
}

/// `top`, and of `below` what `top` leaves free, in the order of time.
fn laid_under(top: Vec<Segment>, below: &[Segment]) -> Vec<Segment> {
    if top.is_empty() {
        return below.to_vec();
    }
    let mut all = Vec::with_capacity(top.len() + below.len());
    let mut from = 0;
    for segment in below {
        let mut start = segment.time.start;
        while top.get(from).is_some_and(|over| over.time.end <= start) {
            from += 1;
        }
        let over = top
            .iter()
            .skip(from)
            .take_while(|over| over.time.start < segment.time.end);
        for over in over {
            all.push(Segment {
                time: Interval::new(start, over.time.start),
                ..*segment
            });
            start = start.max(over.time.end);
        }
        all.push(Segment {
            time: Interval::new(start, segment.time.end),
            ..*segment
        });
    }
    all.retain(|segment| !segment.time.is_empty());
    all.extend(top);
    all.sort_by_key(|segment| segment.time.start);
    all
}

#[cfg(test)]
mod tests {
    use flopwatch_analysis_testing::Trace;
    use flopwatch_model::Track;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::interval::Intervals;

    const TRACKS: [(Category, Track); 3] = [
        (Category::Overhead, Track::Overhead),
        (Category::CudaApi, Track::CudaApi),
        (Category::OsRuntime, Track::OsRuntime),
    ];

    #[test]
    fn outer_calls_count_and_calls_of_the_api_come_before_those_of_the_system() {
        let mut trace = Trace::new();
        let rows = TRACKS.map(|(_, track)| trace.thread(1, 1, track));
        trace.event(Category::CudaApi, rows[1], "cudaMalloc", 10, 50);
        trace.event(Category::CudaApi, rows[1], "cuMemAlloc", 15, 40);
        trace.event(Category::OsRuntime, rows[2], "ioctl", 20, 30);
        trace.event(Category::OsRuntime, rows[2], "poll", 45, 90);
        trace.event(Category::Overhead, rows[0], "flush", 30, 35);
        let timeline = trace.build();
        let threads = Threads::of(&timeline);
        let found = ThreadActivities::of(&timeline, &threads);
        let thread = threads.of_row(rows[1]).unwrap();
        let pieces: Vec<(u64, u64, HostActivity)> = found
            .within(thread, Interval::new(0, 80))
            .map(|segment| (segment.time.start, segment.time.end, segment.activity))
            .collect();
        assert_eq!(
            pieces,
            [
                (10, 30, HostActivity::Allocate),
                (30, 35, HostActivity::Profiler),
                (35, 50, HostActivity::Allocate),
                (50, 80, HostActivity::OsWait),
            ]
        );
    }

    proptest! {
        #[test]
        fn pieces_never_overlap_and_cover_what_was_recorded(
            events in vec((0_usize..3, 0_u64..100, 0_u64..30), 0..30), start in 0_u64..100, length in 0_u64..60,
        ) {
            let mut trace = Trace::new();
            let rows = TRACKS.map(|(_, track)| trace.thread(1, 1, track));
            for (kind, start, length) in &events {
                trace.event(TRACKS[*kind].0, rows[*kind], "call", *start, start + length);
            }
            let timeline = trace.build();
            let window = Interval::new(start, start + length);
            let found = ThreadActivities::of(&timeline, &Threads::of(&timeline));
            let pieces: Vec<Interval> = found.within(0, window).map(|segment| segment.time).collect();
            prop_assert!(pieces.windows(2).all(|two| two[0].end <= two[1].start));
            let all: Intervals = events.iter().map(|(_, start, length)| Interval::new(*start, start + length)).collect();
            prop_assert_eq!(pieces.iter().map(|piece| piece.len()).sum::<u64>(), all.clip(window).len_ns());
        }
    }
}
