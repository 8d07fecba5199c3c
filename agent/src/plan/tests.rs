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
        begun: false,
        stored: false,
        recording: 0,
        recorded: 0,
        at_once: 2,
        ahead: 0,
        holder: None,
    }
}

fn deleted() -> Observed<'static> {
    Observed {
        deleting: true,
        ..observed()
    }
}

/// What is planned for a capture without a status.
fn of_new(seen: &Observed<'_>) -> CaptureAction {
    plan(&spec(), &CaptureStatus::default(), seen)
}

fn at(stage: Stage) -> CaptureStatus {
    CaptureStatus {
        progress: Some(Progress {
            stage,
            percent: 0,
            message: String::new(),
            live: None,
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

fn reason(step: &CaptureAction) -> Option<CaptureReason> {
    match step {
        CaptureAction::Refuse(failure) => Some(failure.reason),
        _ => None,
    }
}

#[test]
fn a_new_capture_starts_when_a_turn_is_free() {
    assert_eq!(of_new(&observed()), CaptureAction::Start);
    assert_eq!(plan(&spec(), &at(Stage::Queued), &observed()), CaptureAction::Start);
}

#[test]
fn a_capture_that_an_earlier_agent_began_is_adopted_though_its_status_does_not_say_so() {
    let seen = Observed {
        begun: true,
        recording: 9,
        ..observed()
    };
    for status in [CaptureStatus::default(), at(Stage::Queued)] {
        assert_eq!(plan(&spec(), &status, &seen), CaptureAction::Adopt);
        let deleting = Observed {
            deleting: true,
            ..seen.clone()
        };
        assert_eq!(plan(&spec(), &status, &deleting), CaptureAction::Adopt);
    }
}

#[test]
fn what_is_processed_takes_no_turn_to_record() {
    let seen = Observed {
        recording: 1,
        recorded: 2,
        ..observed()
    };
    assert_eq!(of_new(&seen), CaptureAction::Start);
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
        matches!(&step, CaptureAction::Refuse(failure) if failure.message.contains("4 captures that were recorded")),
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
            matches!(plan(&spec(), &at(Stage::Queued), &seen), CaptureAction::Wait { recheck, .. } if recheck <= RECHECK_INTERVAL)
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
    let step = of_new(&seen);
    assert_eq!(reason(&step), Some(CaptureReason::ContainerBusy));
    assert!(matches!(step, CaptureAction::Refuse(failure) if failure.message.contains("first")));
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
    let step = of_new(&seen);
    assert!(matches!(step, CaptureAction::Wait { message, .. } if message.contains("first")));
}

#[test]
fn a_live_capture_is_left_alone_until_someone_ends_it() {
    let live = Observed {
        live: true,
        ..observed()
    };
    let status = at(Stage::Collecting);
    assert_eq!(plan(&spec(), &status, &live), CaptureAction::Nothing);
    for (stop, interrupt) in [
        (StopMode::Keep, Interrupt::Keep),
        (StopMode::Discard, Interrupt::Discard),
    ] {
        let spec = CaptureSpec {
            stop: Some(stop),
            ..spec()
        };
        assert_eq!(plan(&spec, &status, &live), CaptureAction::Interrupt(interrupt));
    }
    let deleted = Observed {
        deleting: true,
        ..live.clone()
    };
    let step = plan(&spec(), &status, &deleted);
    assert_eq!(step, CaptureAction::Interrupt(Interrupt::Deleted));
    let lost = with(status, CaptureCondition::Lost, ConditionStatus::True);
    assert_eq!(plan(&spec(), &lost, &live), CaptureAction::Interrupt(Interrupt::Lost));
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
        let step = plan(&spec(), &at(stage), &observed());
        assert_eq!(step, CaptureAction::Adopt, "{stage:?}");
        let step = plan(&spec(), &at(stage), &deleted());
        assert_eq!(step, CaptureAction::Adopt, "{stage:?}");
    }
}

#[test]
fn a_capture_that_ended_stays_as_it_is() {
    for value in [ConditionStatus::True, ConditionStatus::False] {
        let status = with(at(Stage::Done), CaptureCondition::Succeeded, value);
        assert_eq!(plan(&spec(), &status, &observed()), CaptureAction::Nothing);
    }
}

#[test]
fn a_deleted_capture_is_released_until_nothing_of_it_is_left() {
    assert_eq!(of_new(&deleted()), CaptureAction::Release);
    let ended = with(at(Stage::Done), CaptureCondition::Succeeded, ConditionStatus::False);
    assert_eq!(plan(&spec(), &ended, &deleted()), CaptureAction::Nothing);
    let stored = Observed {
        stored: true,
        ..deleted()
    };
    assert_eq!(plan(&spec(), &ended, &stored), CaptureAction::Release);
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
    let step = plan(&spec(), &lost, &observed());
    assert_eq!(reason(&step), Some(CaptureReason::NodeLost));
}

#[test]
fn a_window_closes_at_its_length_or_when_the_user_keeps_it_and_aborts_otherwise() {
    type Change = fn(&mut Window);
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
    let changed = |change: Change| {
        let mut seen = open;
        change(&mut seen);
        window(seen, tick)
    };
    assert_eq!(window(open, tick), WindowStep::Stay(Duration::from_millis(500)));
    assert_eq!(changed(|seen| seen.elapsed = Duration::ZERO), WindowStep::Stay(tick));
    assert_eq!(changed(|seen| seen.elapsed = seen.length), WindowStep::Close);
    let kept = changed(|seen| seen.interrupt = Some(Interrupt::Keep));
    assert_eq!(kept, WindowStep::Close);
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
    let cases: [(Change, CaptureReason); 2] = [
        (|seen| seen.pinned = false, CaptureReason::ContainerRestarted),
        (
            |seen| (seen.pinned, seen.once) = (false, true),
            CaptureReason::TargetNotRunning,
        ),
    ];
    let aborts = |step: WindowStep, reason: CaptureReason| {
        assert!(
            matches!(&step, WindowStep::Abort(failure) if failure.reason == reason),
            "{step:?}"
        );
    };
    for (change, reason) in cases {
        aborts(changed(change), reason);
    }
    for (interrupt, reason) in [
        (Interrupt::Discard, CaptureReason::Discarded),
        (Interrupt::Deleted, CaptureReason::Discarded),
        (Interrupt::Lost, CaptureReason::NodeLost),
        (Interrupt::Shutdown, CaptureReason::AgentRestarted),
    ] {
        let interrupt = Some(interrupt);
        aborts(window(Window { interrupt, ..open }, tick), reason);
    }
}

#[test]
fn a_collection_that_missed_something_is_tried_once_more_while_its_program_is_there() {
    use CaptureReason::{CaptureTruncated, EventsMissed, ImportFailed, RequiredEventsMissing};
    let spec = spec();
    for (reason, again) in [
        (EventsMissed, true),
        (CaptureTruncated, true),
        (RequiredEventsMissing, false),
        (ImportFailed, false),
    ] {
        assert_eq!(tries_again(&spec, 0, None, reason), again, "{reason}");
        assert!(!tries_again(&spec, 1, None, reason), "{reason}");
        assert!(!tries_again(&spec, 0, Some(Interrupt::Keep), reason), "{reason}");
    }
    let once = CaptureSpec {
        ends_with_program: true,
        ..spec.clone()
    };
    let from_start = CaptureSpec {
        start: StartMode::ContainerStart,
        ..spec
    };
    assert!(!tries_again(&once, 0, None, EventsMissed) && !tries_again(&from_start, 0, None, EventsMissed));
}
