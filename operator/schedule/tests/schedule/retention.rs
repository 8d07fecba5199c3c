//! Which ended sessions are given up.

use flopwatch_schedule::{Class, History, Ledger, Session, SessionState, Slot, surplus};
use jiff::Timestamp;
use serde_json::json;

use crate::fleet::{after, class, noon, pods, spec, with_facts};

/// A session whose window was that many seconds before noon.
fn ended(number: i64, ago: i64, succeeded: bool) -> Session {
    let opened = after(noon(), -ago);
    let closed = after(opened, 10);
    Session {
        name: format!("s{number}"),
        slot: Some(Slot::starting(opened)),
        trigger: None,
        pod_uid: "pod".to_owned(),
        class: None,
        opened,
        state: if succeeded {
            SessionState::Succeeded { closed }
        } else {
            SessionState::Failed { closed }
        },
    }
}

fn given_up(change: serde_json::Value, sessions: Vec<Session>, planned_until: Timestamp) -> Vec<String> {
    let history = History {
        planned_until: Some(planned_until),
        sessions,
    };
    with_facts(&Ledger::default(), &spec(change), &pods(1), &history, noon(), surplus)
}

#[test]
fn the_newest_are_kept_of_each_kind() {
    let sessions = (0..10)
        .map(|number| ended(number, 100_000 * (number + 1), number % 2 == 0))
        .collect();
    let names = given_up(json!({ "history": { "succeeded": 3, "failed": 1 } }), sessions, noon());
    assert_eq!(names, ["s9", "s8", "s7", "s6", "s5", "s3"]);
}

#[test]
fn what_could_change_a_plan_is_kept() {
    let none = json!({ "succeeded": 0, "failed": 0 });
    let open = Session {
        state: SessionState::Active,
        ..ended(0, 500_000, true)
    };
    let current = ended(1, 900, true);
    let old = ended(2, 5_000, true);
    let sessions = vec![open, current, old];
    assert_eq!(given_up(json!({ "history": none }), sessions.clone(), noon()), ["s2"]);
    let undecided = given_up(json!({ "history": none }), sessions.clone(), after(noon(), -5_000));
    assert!(undecided.is_empty(), "its slot is decided again");
    let rests = json!({ "history": none, "select": { "restSeconds": 7200 } });
    assert!(given_up(rests, sessions.clone(), noon()).is_empty());
    let counted = json!({ "history": none, "budget": { "captureSecondsPerPodPerDay": 100 } });
    assert!(given_up(counted, sessions, noon()).is_empty());
}

#[test]
fn the_last_windows_of_a_class_that_pods_run_of_are_kept_for_its_ledger() {
    let of = |class: &Class| -> Vec<Session> {
        let session = |number| Session {
            class: Some(class.clone()),
            ..ended(number, 100_000 * (number + 1), number % 2 == 0)
        };
        (0..30).map(session).collect()
    };
    let none = json!({ "history": { "succeeded": 0, "failed": 0 } });
    let names = given_up(none.clone(), of(&class()), noon());
    assert_eq!(names.len(), 9, "twenty that count, and the one before them");
    assert_eq!(names.first().map(String::as_str), Some("s29"));
    let gone = Class {
        hardware: "A100".to_owned(),
        ..class()
    };
    assert_eq!(given_up(none, of(&gone), noon()).len(), 30);
}
