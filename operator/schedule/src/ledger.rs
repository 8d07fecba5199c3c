//! What windows cost, and how they ended, by class of pods.

use std::collections::{BTreeMap, HashSet};

use flopwatch_api::overhead::OverheadReason;
use jiff::Timestamp;

use crate::pod::{Class, Pod};
use crate::pool::pool;
use crate::window::{Measured, Window};

/// Windows of a class that count: its last ones.
pub(crate) const COUNTED_WINDOWS: usize = 20;
/// Windows of a class that are kept: one more, whose end is when the time of those that count
/// begins.
pub(crate) const KEPT_WINDOWS: usize = COUNTED_WINDOWS + 1;

/// What the windows of a schedule cost. Made anew by whoever asks for a plan, out of the last
/// captures of each class that ended since the schedule's spec was last changed: so a change gives
/// every class another chance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The account of each class that had a window.
    pub classes: BTreeMap<Class, Account>,
}

/// What the windows on pods of one class cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Windows, those that could not be measured included.
    pub windows: i64,
    /// Windows that could not be measured: nothing told how fast the pod was.
    pub blind_windows: i64,
    /// Why the last window that something counted the work in could not be judged; None where each
    /// could.
    pub inconclusive: Option<OverheadReason>,
    /// How much slower pods of the class are in a window; None where no window could be measured.
    pub slowdown: Option<Slowdown>,
    /// Seconds in windows, of all pods of the class.
    pub window_seconds: i64,
    /// Milliseconds in which pods stood still while windows were opened and closed: lost in full,
    /// whatever the slowdown in a window is.
    pub stalled_milliseconds: i64,
    /// Seconds that pods of the class ran in the time that the ledger is about, in windows and
    /// outside of them.
    pub pod_seconds: i64,
    /// How its last windows ended, oldest first. Ten are enough.
    pub outcomes: Vec<Outcome>,
}

/// How much slower pods are while a window is open, in basis points of their speed, with a 95 %
/// interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowdown {
    /// Estimated slowdown, in basis points.
    pub basis_points: i32,
    /// Lower end of the interval.
    pub low: i32,
    /// Upper end of the interval.
    pub high: i32,
}

/// How a window ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When it ended.
    pub at: Timestamp,
    /// Whether it speaks against the class: it exceeded the budget (`OverBudget`), did not record
    /// what it should (`RequiredEventsMissing`), or its profiler was gone (`SessionGone`). A lost
    /// node or a full disk does not.
    pub failed: bool,
}

impl Ledger {
    /// The accounts of the classes that `pods` are of, out of windows that ended after `since`: of
    /// each class the last twenty, and the time from the end of the one before them. Time in
    /// windows and time without them is that of the pods that are there, so that both are of the
    /// same pods over the same time.
    pub fn new<'w>(
        windows: impl IntoIterator<Item = &'w Window>,
        pods: &[Pod],
        since: Timestamp,
        now: Timestamp,
    ) -> Self {
        let mut by_class: BTreeMap<&Class, (Vec<&Window>, Vec<&Pod>)> = BTreeMap::new();
        for pod in pods {
            by_class.entry(&pod.class).or_default().1.push(pod);
        }
        for window in windows.into_iter().filter(|window| window.ended > since) {
            if let Some((windows, _)) = by_class.get_mut(&window.class) {
                windows.push(window);
            }
        }
        let account = |(class, (windows, pods)): (&Class, (Vec<&Window>, Vec<&Pod>))| {
            (class.clone(), Account::new(windows, &pods, since, now))
        };
        Self {
            classes: by_class.into_iter().map(account).collect(),
        }
    }
}

impl Account {
    fn new(mut windows: Vec<&Window>, pods: &[&Pod], since: Timestamp, now: Timestamp) -> Self {
        windows.sort_by(|one, other| (one.ended, &one.pod_uid).cmp(&(other.ended, &other.pod_uid)));
        let earlier = windows.len().saturating_sub(COUNTED_WINDOWS);
        let counted = windows.split_off(earlier);
        let begins = windows.last().map_or(since, |last| last.ended);
        let seconds = |pod: &&Pod| now.duration_since(pod.started.max(begins)).as_secs().max(0);
        let running: HashSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        let opened = || counted.iter().filter(|window| window.seconds > 0);
        let on_running = || opened().filter(|window| running.contains(window.pod_uid.as_str()));
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            windows: number(opened().count()),
            blind_windows: number(opened().filter(|window| window.measured == Measured::Blind).count()),
            inconclusive: counted
                .iter()
                .rev()
                .filter(|window| window.seconds > 0)
                .find_map(|window| window.measured.inconclusive()),
            slowdown: pool(opened().filter_map(|window| window.measured.slowdown())),
            window_seconds: on_running().map(|window| window.seconds).sum(),
            stalled_milliseconds: on_running().map(|window| window.stalled_milliseconds).sum(),
            pod_seconds: pods.iter().map(seconds).sum(),
            outcomes: counted
                .iter()
                .map(|window| Outcome {
                    at: window.ended,
                    failed: window.failed,
                })
                .collect(),
        }
    }

    /// How many of the last ten windows failed; None where there were fewer than ten.
    pub(crate) fn failures_of_last_ten(&self) -> Option<usize> {
        let last = self.outcomes.iter().rev().take(10);
        let failed = last.clone().filter(|outcome| outcome.failed).count();
        (last.count() == 10).then_some(failed)
    }

    /// How many windows failed since the last one that did not, and when the last of them ended.
    pub(crate) fn failures_in_a_row(&self) -> Option<(u32, Timestamp)> {
        let last = self.outcomes.last().filter(|outcome| outcome.failed)?;
        let failed = self.outcomes.iter().rev().take_while(|outcome| outcome.failed).count();
        Some((u32::try_from(failed).unwrap_or(u32::MAX), last.at))
    }
}
