//! What to do about a capture next: a pure function of its spec, its status and what the agent
//! observes.
//!
//! The status on the API server is the memory of this machine; a live task takes a capture through
//! its stages. [`plan`] never waits and never acts, so every situation, an agent's restart
//! included, is one row of a table.

use std::time::Duration;

use flopwatch_api::capture::{CaptureSpec, CaptureStatus, Stage};
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::{StartMode, StopMode};
use flopwatch_pipeline::failure::Failure;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// Second tries of one capture.
const SECOND_TRIES: u32 = 1;

/// How long to wait before looking at a queued capture again when nothing else brings it up.
pub const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

/// What the agent sees around one capture.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Observed<'a> {
    /// The moment of planning, by the clock that dated the capture: the API server's.
    pub now: Timestamp,
    /// When the capture was created.
    pub created: Timestamp,
    /// The capture is being deleted.
    pub deleting: bool,
    /// A task of this process runs the capture.
    pub live: bool,
    /// An earlier agent process wrote down that it began the capture, which the status may not say
    /// yet.
    pub begun: bool,
    /// The store holds artifacts of the capture.
    pub stored: bool,
    /// Captures that have their containers now, to record in them.
    pub recording: usize,
    /// Captures that have left theirs and are processed, or wait for it.
    pub recorded: usize,
    /// Most captures that record at once, and most that are processed at once. Both together are
    /// what may wait to be processed at most.
    pub at_once: usize,
    /// Captures of this node that wait for a turn and are older than this one.
    pub ahead: usize,
    /// Another capture that has the container now, carried by this process or left by an earlier
    /// one.
    pub holder: Option<Holder<'a>>,
}

/// Another capture that has the container.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    /// Namespace and name.
    pub name: &'a str,
    /// It has its end, or is thrown away: the container is free in a moment.
    pub is_ending: bool,
}

/// Why a live capture ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interrupt {
    /// End the window and publish what was recorded.
    Keep,
    /// End and throw away: the user said so.
    Discard,
    /// End and throw away: the capture is being deleted.
    Deleted,
    /// End and throw away: the operator gave this node up.
    Lost,
    /// Release it as it is, for the agent that comes next: this one is asked to exit.
    Shutdown,
}

impl Interrupt {
    /// The failure that a capture ends with when it is interrupted so; none for
    /// [`Interrupt::Keep`].
    pub fn failure(self) -> Option<Failure> {
        let (reason, message) = match self {
            Self::Keep => return None,
            Self::Discard => (CaptureReason::Discarded, "the session was stopped with stop: Discard"),
            Self::Deleted => (CaptureReason::Discarded, "the capture was deleted while it ran"),
            Self::Lost => (
                CaptureReason::NodeLost,
                "the operator gave the node up while the capture ran",
            ),
            Self::Shutdown => (
                CaptureReason::AgentRestarted,
                "the agent of the node was stopped while the capture ran",
            ),
        };
        Some(Failure::new(reason, message))
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureAction {
    /// Nothing: it is at work, or it ended.
    Nothing,
    /// Tell the live task to end.
    Interrupt(Interrupt),
    /// End the capture without having begun.
    Refuse(Failure),
    /// Let it wait for its turn.
    Wait {
        /// What the capture waits for, in a sentence for people.
        message: String,
        /// When to look again at the latest.
        recheck: Duration,
    },
    /// Start the task that runs it.
    Start,
    /// An earlier agent process began it: resume it, or end it, as [`crate::adoption`] decides.
    Adopt,
    /// It is being deleted: delete its artifacts, end it if it has not ended, report that nothing
    /// is left.
    Release,
}

/// Why a capture is to end before its time, as its spec and status say it.
pub fn interrupt(spec: &CaptureSpec, status: &CaptureStatus, deleting: bool) -> Option<Interrupt> {
    match (deleting, status.lost().is_some(), spec.stop) {
        (true, _, _) => Some(Interrupt::Deleted),
        (false, true, _) => Some(Interrupt::Lost),
        (false, false, Some(StopMode::Discard)) => Some(Interrupt::Discard),
        (false, false, Some(StopMode::Keep)) => Some(Interrupt::Keep),
        (false, false, None) => None,
    }
}

/// Decides the next step.
pub fn plan(spec: &CaptureSpec, status: &CaptureStatus, observed: &Observed<'_>) -> CaptureAction {
    let ended = status.is_decided();
    let begun = observed.begun || was_started(status);

    if observed.live {
        // The task knows its own end; repeating an interrupt is harmless.
        return interrupt(spec, status, observed.deleting).map_or(CaptureAction::Nothing, CaptureAction::Interrupt);
    }
    if observed.deleting {
        let clean = ended && status.artifacts.is_empty() && !observed.stored;
        return match (clean, begun && !ended) {
            (true, _) => CaptureAction::Nothing,
            // Its collection may still run in the container; its task ends it with a decided status
            // and comes by here again.
            (false, true) => CaptureAction::Adopt,
            (false, false) => CaptureAction::Release,
        };
    }
    if ended {
        return CaptureAction::Nothing;
    }
    if begun {
        return CaptureAction::Adopt;
    }
    if status.lost().is_some() {
        return CaptureAction::Refuse(Failure::new(
            CaptureReason::NodeLost,
            "the operator gave the node up before the capture began",
        ));
    }
    if let Some(stop) = spec.stop {
        let message = format!(
            "the session was stopped with stop: {} before the capture began",
            stop.as_str()
        );
        return CaptureAction::Refuse(Failure::new(CaptureReason::Discarded, message));
    }
    if let Some(holder) = observed.holder.filter(|holder| !holder.is_ending) {
        let holder = holder.name;
        let message = format!(
            "capture {holder} has container {} of pod {}: wait until it ended, or stop its session",
            spec.container_name, spec.pod_ref.name
        );
        return CaptureAction::Refuse(Failure::new(CaptureReason::ContainerBusy, message));
    }
    let deadline = SignedDuration::from_secs(i64::from(spec.start_deadline_seconds));
    let waited = observed.now.duration_since(observed.created);
    let awaited = awaited(spec, observed);
    if waited > deadline {
        let message = format!(
            "the capture's turn on node {} did not come within startDeadlineSeconds ({} s); {} at a time are carried out there{}",
            spec.node_name,
            spec.start_deadline_seconds,
            observed.at_once,
            awaited.map(|awaited| format!(": {awaited}")).unwrap_or_default()
        );
        return CaptureAction::Refuse(Failure::new(CaptureReason::DeadlineExceeded, message));
    }
    let Some(message) = awaited else {
        return CaptureAction::Start;
    };
    let left = Duration::try_from(deadline.saturating_sub(waited)).unwrap_or_default();
    CaptureAction::Wait {
        message,
        // One second past the deadline, so that the next look sees it passed.
        recheck: RECHECK_INTERVAL.min(left.saturating_add(Duration::from_secs(1))),
    }
}

/// What a capture waits for that could start else, for people. Whoever records needs room for what
/// was recorded: so many captures as record and as are processed at once may be under way together.
fn awaited(spec: &CaptureSpec, observed: &Observed<'_>) -> Option<String> {
    let Observed {
        recording,
        recorded,
        at_once,
        ahead,
        ..
    } = *observed;
    if let Some(Holder { name, .. }) = observed.holder {
        return Some(format!("capture {name} leaves container {}", spec.container_name));
    }
    let node = &spec.node_name;
    if recording.saturating_add(ahead) >= at_once {
        return Some(format!(
            "{recording} of {at_once} captures run on node {node}, {ahead} wait before this one"
        ));
    }
    (recording.saturating_add(recorded).saturating_add(ahead) >= at_once.saturating_mul(2)).then(|| {
        format!(
            "{recorded} captures that were recorded on node {node} are processed or wait for it, {ahead} wait before this one"
        )
    })
}

/// Whether an agent went beyond the queue with it.
pub fn was_started(status: &CaptureStatus) -> bool {
    status
        .progress
        .as_ref()
        .is_some_and(|progress| progress.stage > Stage::Queued)
}

/// Whether the capture waits for a turn: not ended, not started, not being deleted.
pub fn is_waiting(status: &CaptureStatus, deleting: bool) -> bool {
    !deleting && !status.is_decided() && !was_started(status)
}

/// What the window of a collection sees when it looks at itself.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Time since collection began.
    pub elapsed: Duration,
    /// Length that was asked for.
    pub length: Duration,
    /// Whether the container that the capture is pinned to still runs under its ID.
    pub pinned: bool,
    /// Whether the container runs once, in a pod that its session made.
    pub once: bool,
    /// Whether the program has ended whose end ends the window.
    pub ended: bool,
    /// The strongest interrupt so far.
    pub interrupt: Option<Interrupt>,
}

/// How a window goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowStep {
    /// Stay open for at most this long before looking again.
    Stay(Duration),
    /// Close, and keep what was recorded.
    Close,
    /// Close, and throw it away.
    Abort(Failure),
}

/// Decides how an open window goes on; `tick` is the longest time between two looks.
pub fn window(seen: Window, tick: Duration) -> WindowStep {
    if let Some(failure) = seen.interrupt.and_then(Interrupt::failure) {
        return WindowStep::Abort(failure);
    }
    if seen.ended {
        return WindowStep::Close;
    }
    if !seen.pinned && seen.once {
        let message = format!(
            "the container was ended as a whole {:.1} s into the window, and what was recorded with it: a deletion, an \
             eviction or a lack of memory; the pod's events say which",
            seen.elapsed.as_secs_f64(),
        );
        return WindowStep::Abort(Failure::new(CaptureReason::TargetNotRunning, message));
    }
    if !seen.pinned {
        let message = format!(
            "the container restarted {:.1} s into the window of {} s",
            seen.elapsed.as_secs_f64(),
            seen.length.as_secs()
        );
        return WindowStep::Abort(Failure::new(CaptureReason::ContainerRestarted, message));
    }
    if seen.interrupt == Some(Interrupt::Keep) || seen.elapsed >= seen.length {
        return WindowStep::Close;
    }
    WindowStep::Stay(tick.min(seen.length.saturating_sub(seen.elapsed)))
}

/// Whether a collection is tried once more that failed with `reason` after `tries` second ones.
/// Nobody has ended the capture, and its program is still there to be recorded: not one whose first
/// instruction was asked for.
pub fn tries_again(spec: &CaptureSpec, tries: u32, interrupt: Option<Interrupt>, reason: CaptureReason) -> bool {
    let missed = matches!(reason, CaptureReason::EventsMissed | CaptureReason::CaptureTruncated);
    let goes_on = spec.start == StartMode::Now && !spec.ends_with_program && interrupt.is_none();
    missed && goes_on && tries < SECOND_TRIES
}

#[cfg(test)]
mod tests;
