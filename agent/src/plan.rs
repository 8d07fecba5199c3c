//! What to do about a capture next: a pure function of its spec, its status and what the agent observes.
//!
//! The status on the API server is the memory of this machine; a live task takes a capture through its
//! stages. [`plan`] never waits and never acts, so every situation, an agent's restart included, is one row of a table.

use std::time::Duration;

use flopwatch_api::capture::{CaptureSpec, CaptureStatus, Stage};
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StopMode;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::failure::Failure;

/// How long to wait before looking at a queued capture again when nothing else brings it up.
pub const RECHECK: Duration = Duration::from_secs(5);

/// What the agent sees around one capture.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// The moment of planning, by the clock that dated the capture: the API server's.
    pub now: Timestamp,
    /// When the capture was created.
    pub created: Timestamp,
    /// The capture is being deleted.
    pub deleting: bool,
    /// A task of this process runs the capture.
    pub live: bool,
    /// The store holds artifacts of the capture.
    pub stored: bool,
    /// Captures that have their containers now, to record in them.
    pub recording: usize,
    /// Captures that have left theirs and are processed, or wait for it.
    pub recorded: usize,
    /// Most captures that record at once, and most that are processed at once. Both together are what may wait to be processed at most.
    pub at_once: usize,
    /// Captures of this node that wait for a turn and are older than this one.
    pub ahead: usize,
    /// Another capture that has the container now, carried by this process or left by an earlier one.
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
    /// The failure that a capture ends with when it is interrupted so; none for [`Interrupt::Keep`].
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
pub enum Step {
    /// Nothing: it is at work, or it ended.
    Nothing,
    /// Tell the live task to end.
    Interrupt(Interrupt),
    /// End the capture without having begun.
    Refuse(Failure),
    /// Let it wait for its turn.
    Wait {
        /// What it waits for, for people.
        message: String,
        /// When to look again at the latest.
        recheck: Duration,
    },
    /// Start the task that runs it.
    Start,
    /// An earlier agent process began it: resume it, or end it, as [`crate::adoption`] decides.
    Adopt,
    /// It is being deleted: delete its artifacts, end it if it has not ended, report that nothing is left.
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
pub fn plan(spec: &CaptureSpec, status: &CaptureStatus, observed: &Observed<'_>) -> Step {
    let ended = status.is_decided();

    if observed.live {
        // The task knows its own end; repeating an interrupt is harmless.
        return interrupt(spec, status, observed.deleting).map_or(Step::Nothing, Step::Interrupt);
    }
    if observed.deleting {
        let clean = ended && status.artifacts.is_empty() && !observed.stored;
        return match (clean, was_started(status) && !ended) {
            (true, _) => Step::Nothing,
            // Its collection may still run in the container; its task ends it with a decided status and comes by here again.
            (false, true) => Step::Adopt,
            (false, false) => Step::Release,
        };
    }
    if ended {
        return Step::Nothing;
    }
    if was_started(status) {
        return Step::Adopt;
    }
    if status.lost().is_some() {
        return Step::Refuse(Failure::new(
            CaptureReason::NodeLost,
            "the operator gave the node up before the capture began",
        ));
    }
    if let Some(stop) = spec.stop {
        let message = format!(
            "the session was stopped with stop: {} before the capture began",
            stop.as_str()
        );
        return Step::Refuse(Failure::new(CaptureReason::Discarded, message));
    }
    if let Some(holder) = observed.holder.filter(|holder| !holder.is_ending) {
        let holder = holder.name;
        let message = format!(
            "capture {holder} has container {} of pod {}: wait until it ended, or stop its session",
            spec.container_name, spec.pod_ref.name
        );
        return Step::Refuse(Failure::new(CaptureReason::ContainerBusy, message));
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
        return Step::Refuse(Failure::new(CaptureReason::DeadlineExceeded, message));
    }
    let Some(message) = awaited else { return Step::Start };
    let left = Duration::try_from(deadline.saturating_sub(waited)).unwrap_or_default();
    Step::Wait {
        message,
        // One second past the deadline, so that the next look sees it passed.
        recheck: RECHECK.min(left.saturating_add(Duration::from_secs(1))),
    }
}

/// What a capture waits for that could start else, for people. Whoever records needs room for what was recorded: so many captures as record and as
/// are processed at once may be under way together.
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

#[cfg(test)]
mod tests {
    use flopwatch_api::capture::Progress;
    use flopwatch_api::reason::CaptureCondition;
    use k8s_controller::conditions::{self, ConditionStatus, DesiredCondition};

    use super::*;

    fn spec() -> CaptureSpec {
        serde_json::from_value(serde_json::json!({
            "sessionRef": {"name": "s", "id": "0123abcd"}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
            "containerName": "main", "durationSeconds": 5, "startDeadlineSeconds": 60, "outputs": ["Timeline"],
        }))
        .unwrap()
    }

    fn observed() -> Observed<'static> {
        Observed {
            now: Timestamp::from_second(1_000_010).unwrap(),
            created: Timestamp::from_second(1_000_000).unwrap(),
            deleting: false,
            live: false,
            stored: false,
            recording: 0,
            recorded: 0,
            at_once: 2,
            ahead: 0,
            holder: None,
        }
    }

    fn at(stage: Stage) -> CaptureStatus {
        CaptureStatus {
            progress: Some(Progress {
                stage,
                percent: 0,
                message: String::new(),
            }),
            ..CaptureStatus::default()
        }
    }

    fn with(mut status: CaptureStatus, type_: CaptureCondition, value: ConditionStatus) -> CaptureStatus {
        assert!(
            conditions::set(
                &mut status.conditions,
                DesiredCondition::new(type_.as_str(), value, "Some", "")
            )
            .is_changed()
        );
        status
    }

    fn reason(step: &Step) -> Option<CaptureReason> {
        match step {
            Step::Refuse(failure) => Some(failure.reason),
            _ => None,
        }
    }

    #[test]
    fn a_new_capture_starts_when_a_turn_is_free() {
        assert_eq!(plan(&spec(), &CaptureStatus::default(), &observed()), Step::Start);
        assert_eq!(plan(&spec(), &at(Stage::Queued), &observed()), Step::Start);
    }

    #[test]
    fn what_is_processed_takes_no_turn_to_record() {
        let seen = Observed {
            recording: 1,
            recorded: 2,
            ..observed()
        };
        assert_eq!(plan(&spec(), &CaptureStatus::default(), &seen), Step::Start);
    }

    #[test]
    fn a_capture_that_found_no_room_in_time_says_what_there_was_no_room_for() {
        let seen = Observed {
            now: Timestamp::from_second(1_000_061).unwrap(),
            recorded: 4,
            ..observed()
        };
        let step = plan(&spec(), &at(Stage::Queued), &seen);
        assert_eq!(reason(&step), Some(CaptureReason::DeadlineExceeded));
        assert!(
            matches!(&step, Step::Refuse(failure) if failure.message.contains("4 captures that were recorded")),
            "{step:?}"
        );
    }

    #[test]
    fn a_capture_waits_while_the_node_is_full_or_older_ones_wait() {
        for (recording, recorded, ahead) in [(2, 0, 0), (1, 0, 1), (0, 0, 2), (1, 3, 0), (0, 4, 0), (0, 3, 1)] {
            let seen = Observed {
                recording,
                recorded,
                ahead,
                ..observed()
            };
            assert!(
                matches!(plan(&spec(), &at(Stage::Queued), &seen), Step::Wait { recheck, .. } if recheck <= RECHECK)
            );
        }
    }

    #[test]
    fn a_capture_that_waited_past_its_deadline_is_refused() {
        let seen = Observed {
            now: Timestamp::from_second(1_000_061).unwrap(),
            recording: 2,
            ..observed()
        };
        let step = plan(&spec(), &at(Stage::Queued), &seen);
        assert_eq!(reason(&step), Some(CaptureReason::DeadlineExceeded));
    }

    #[test]
    fn a_second_capture_of_a_container_is_refused_at_once_and_names_the_first() {
        let seen = Observed {
            holder: Some(Holder {
                name: "first",
                is_ending: false,
            }),
            recording: 2,
            ..observed()
        };
        let step = plan(&spec(), &CaptureStatus::default(), &seen);
        assert_eq!(reason(&step), Some(CaptureReason::ContainerBusy));
        assert!(matches!(step, Step::Refuse(failure) if failure.message.contains("first")));
    }

    #[test]
    fn a_capture_waits_for_one_that_is_about_to_leave_its_container() {
        let holder = Holder {
            name: "first",
            is_ending: true,
        };
        let seen = Observed {
            holder: Some(holder),
            recording: 1,
            ..observed()
        };
        let step = plan(&spec(), &CaptureStatus::default(), &seen);
        assert!(matches!(step, Step::Wait { message, .. } if message.contains("first")));
    }

    #[test]
    fn a_live_capture_is_left_alone_until_someone_ends_it() {
        let live = Observed {
            live: true,
            ..observed()
        };
        let status = at(Stage::Collecting);
        assert_eq!(plan(&spec(), &status, &live), Step::Nothing);
        for (stop, interrupt) in [
            (StopMode::Keep, Interrupt::Keep),
            (StopMode::Discard, Interrupt::Discard),
        ] {
            let spec = CaptureSpec {
                stop: Some(stop),
                ..spec()
            };
            assert_eq!(plan(&spec, &status, &live), Step::Interrupt(interrupt));
        }
        let deleted = Observed {
            deleting: true,
            ..live.clone()
        };
        assert_eq!(plan(&spec(), &status, &deleted), Step::Interrupt(Interrupt::Deleted));
        let lost = with(status, CaptureCondition::Lost, ConditionStatus::True);
        assert_eq!(plan(&spec(), &lost, &live), Step::Interrupt(Interrupt::Lost));
    }

    #[test]
    fn a_capture_that_an_earlier_agent_began_is_adopted_in_every_stage_but_the_queue() {
        for stage in [
            Stage::Attaching,
            Stage::Collecting,
            Stage::Fetching,
            Stage::Transforming,
            Stage::Publishing,
        ] {
            assert_eq!(plan(&spec(), &at(stage), &observed()), Step::Adopt, "{stage:?}");
            let deleted = Observed {
                deleting: true,
                ..observed()
            };
            assert_eq!(plan(&spec(), &at(stage), &deleted), Step::Adopt, "{stage:?}");
        }
    }

    #[test]
    fn a_capture_that_ended_stays_as_it_is() {
        for value in [ConditionStatus::True, ConditionStatus::False] {
            let status = with(at(Stage::Done), CaptureCondition::Succeeded, value);
            assert_eq!(plan(&spec(), &status, &observed()), Step::Nothing);
        }
    }

    #[test]
    fn a_deleted_capture_is_released_until_nothing_of_it_is_left() {
        let deleted = Observed {
            deleting: true,
            ..observed()
        };
        assert_eq!(plan(&spec(), &CaptureStatus::default(), &deleted), Step::Release);
        let ended = with(at(Stage::Done), CaptureCondition::Succeeded, ConditionStatus::False);
        assert_eq!(plan(&spec(), &ended, &deleted), Step::Nothing);
        assert_eq!(
            plan(
                &spec(),
                &ended,
                &Observed {
                    stored: true,
                    ..deleted
                }
            ),
            Step::Release
        );
    }

    #[test]
    fn a_capture_that_was_stopped_or_lost_before_it_began_ends_at_once() {
        let spec_stopped = CaptureSpec {
            stop: Some(StopMode::Keep),
            ..spec()
        };
        let step = plan(&spec_stopped, &at(Stage::Queued), &observed());
        assert_eq!(reason(&step), Some(CaptureReason::Discarded));
        let lost = with(at(Stage::Queued), CaptureCondition::Lost, ConditionStatus::True);
        assert_eq!(
            reason(&plan(&spec(), &lost, &observed())),
            Some(CaptureReason::NodeLost)
        );
    }

    #[test]
    fn a_window_closes_at_its_length_or_when_the_user_keeps_it_and_aborts_otherwise() {
        let length = Duration::from_secs(5);
        let tick = Duration::from_secs(1);
        let open = Window {
            elapsed: Duration::from_millis(4_500),
            length,
            pinned: true,
            once: false,
            ended: false,
            interrupt: None,
        };
        assert_eq!(window(open, tick), WindowStep::Stay(Duration::from_millis(500)));
        assert_eq!(
            window(
                Window {
                    elapsed: Duration::ZERO,
                    ..open
                },
                tick
            ),
            WindowStep::Stay(tick)
        );
        assert_eq!(
            window(
                Window {
                    elapsed: length,
                    ..open
                },
                tick
            ),
            WindowStep::Close
        );
        assert_eq!(
            window(
                Window {
                    interrupt: Some(Interrupt::Keep),
                    ..open
                },
                tick
            ),
            WindowStep::Close
        );
        for pinned in [true, false] {
            let ended = Window {
                pinned,
                once: true,
                ended: true,
                ..open
            };
            assert_eq!(
                window(ended, tick),
                WindowStep::Close,
                "the program's end ends its window"
            );
        }
        for (seen, reason) in [
            (Window { pinned: false, ..open }, CaptureReason::ContainerRestarted),
            (
                Window {
                    pinned: false,
                    once: true,
                    ..open
                },
                CaptureReason::TargetNotRunning,
            ),
            (
                Window {
                    interrupt: Some(Interrupt::Discard),
                    ..open
                },
                CaptureReason::Discarded,
            ),
            (
                Window {
                    interrupt: Some(Interrupt::Deleted),
                    ..open
                },
                CaptureReason::Discarded,
            ),
            (
                Window {
                    interrupt: Some(Interrupt::Lost),
                    ..open
                },
                CaptureReason::NodeLost,
            ),
            (
                Window {
                    interrupt: Some(Interrupt::Shutdown),
                    ..open
                },
                CaptureReason::AgentRestarted,
            ),
        ] {
            assert!(matches!(window(seen, tick), WindowStep::Abort(failure) if failure.reason == reason));
        }
    }
}
