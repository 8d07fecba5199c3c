use flopwatch_api::schedule::Blackout;
use serde_json::{Value, json};

use super::*;
use crate::history::{History, SessionState};
use crate::identity::Identity;
use crate::ledger::{Account, Ledger, Outcome};
use crate::pod::Class;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn spec(members: Value) -> ProfilingScheduleSpec {
    let mut spec = json!({
        "when": { "interval": { "seconds": 900 } }, "select": { "podSelector": { "matchLabels": { "app": "llm" } } },
        "triggers": [{ "alert": { "name": "Slow" }, "cooldownSeconds": 600, "maximumPerDay": 3 }]
    });
    let Value::Object(members) = members else {
        panic!("members")
    };
    spec.as_object_mut().unwrap().extend(members);
    serde_json::from_value(spec).unwrap()
}

fn alert(fingerprint: &str, started: i64) -> Alert {
    let labels = [("alertname", "Slow"), ("namespace", "team"), ("pod", "llm-0")];
    Alert {
        labels: labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        fingerprint: fingerprint.to_owned(),
        started: at(started),
    }
}

fn pod(name: &str) -> Pod {
    Pod {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        started: at(-86_400),
        restarted: None,
        terminating: false,
        node: "node".to_owned(),
        workload: "Deployment/llm".to_owned(),
        class: Class {
            image_digest: "sha256:1".to_owned(),
            hardware: "H100".to_owned(),
        },
    }
}

/// A schedule that remembers what its triggers made.
struct AlertScenario {
    spec: ProfilingScheduleSpec,
    history: History,
    ledger: Ledger,
    over_budget: bool,
}

impl AlertScenario {
    fn new(members: Value) -> Self {
        Self {
            spec: spec(members),
            history: History::default(),
            ledger: Ledger::default(),
            over_budget: false,
        }
    }

    fn with_facts<T>(&self, now: i64, work: impl FnOnce(&Facts<'_>) -> T) -> T {
        let identity = Identity {
            name: "always".to_owned(),
            uid: "uid".to_owned(),
            created: at(-1),
        };
        work(&Facts {
            spec: &self.spec,
            identity: &identity,
            pods: &[],
            history: &self.history,
            ledger: &self.ledger,
            now: at(now),
        })
    }

    fn decide<'a>(&'a self, alert: &'a Alert, pod: AlertedPod<'a>, now: i64) -> Decision<'a> {
        let alerted = Alerted {
            alert,
            trigger: trigger_of(&self.spec, "team", alert).unwrap(),
            pod,
            over_budget: self.over_budget,
        };
        self.with_facts(now, |facts| decide(facts, &alerted).unwrap())
    }

    /// What becomes of the alert of that fingerprint, of the pod of that name.
    fn fire(&mut self, fingerprint: &str, started: i64, of: &str, now: i64) -> Option<TriggerSkip> {
        self.take(&alert(fingerprint, started), &pod(of), now)
    }

    /// What becomes of an alert; a session that is made ends 10 seconds later.
    fn take(&mut self, alert: &Alert, pod: &Pod, now: i64) -> Option<TriggerSkip> {
        let (name, number, pod_uid) = match self.decide(alert, AlertedPod::Running(pod), now) {
            Decision::Skip(skip) => return Some(skip),
            Decision::Make(run) => (run.session_name, run.number, run.pod.uid.clone()),
        };
        self.history.sessions.push(Session {
            name,
            slot: None,
            trigger: Some(Triggered {
                fingerprint: alert.fingerprint.clone(),
                started: alert.started,
                number,
                made: at(now),
            }),
            pod_uid,
            class: None,
            opened: at(now),
            state: SessionState::Succeeded { closed: at(now + 10) },
        });
        None
    }
}

#[test]
fn an_alert_matches_by_name_labels_and_namespace() {
    let spec = spec(json!({ "triggers": [
        { "alert": { "name": "Slow", "matchLabels": { "severity": "page" } } },
        { "alert": { "name": "Slow" }, "target": { "namespaceLabel": "exported_namespace" } }
    ] }));
    let position = |labels: Value| {
        let alert = Alert {
            labels: serde_json::from_value(labels).unwrap(),
            ..alert("f", 0)
        };
        let found = trigger_of(&spec, "team", &alert)?;
        spec.triggers.iter().position(|trigger| trigger == found)
    };
    let page = json!({ "alertname": "Slow", "namespace": "team", "severity": "page" });
    assert_eq!(position(page), Some(0));
    let warning = json!({ "alertname": "Slow", "namespace": "team", "severity": "warning" });
    assert_eq!(position(warning), None);
    let exported = json!({ "alertname": "Slow", "exported_namespace": "team" });
    assert_eq!(position(exported), Some(1));
    let elsewhere = json!({ "alertname": "Slow", "namespace": "other", "severity": "page" });
    assert_eq!(position(elsewhere), None);
    assert_eq!(position(json!({ "alertname": "Fast", "namespace": "team" })), None);
    assert_eq!(position(json!({})), None);
}

#[test]
fn a_firing_makes_one_session_however_often_it_is_told() {
    let mut scenario = AlertScenario::new(json!({}));
    let (first, llm) = (alert("a", 0), pod("llm-0"));
    assert_eq!(scenario.take(&first, &llm, 1), None);
    for now in [1, 2, 599, 601, 86_000] {
        let told = scenario.take(&first, &llm, now);
        assert_eq!(told, Some(TriggerSkip::AlreadyMade), "{now}");
    }
    // It was resolved, and fires again.
    assert_eq!(scenario.take(&alert("a", 700), &llm, 701), None);
    assert_eq!(scenario.history.sessions.len(), 2);
}

#[test]
fn a_pod_has_its_cooldown_and_another_pod_its_own() {
    let mut scenario = AlertScenario::new(json!({}));
    assert_eq!(scenario.fire("a", 0, "llm-0", 0), None);
    assert_eq!(scenario.fire("b", 0, "llm-0", 599), Some(TriggerSkip::Cooldown));
    assert_eq!(scenario.fire("c", 0, "llm-1", 599), None);
    assert_eq!(scenario.fire("b", 0, "llm-0", 600), None);
}

#[test]
fn a_trigger_makes_no_more_than_its_limit_in_any_day() {
    let mut scenario = AlertScenario::new(json!({}));
    for number in 0..3 {
        let llm = pod(&format!("llm-{number}"));
        assert_eq!(scenario.take(&alert("a", number), &llm, number), None);
    }
    let limited = scenario.fire("b", 3, "llm-3", 86_399);
    assert_eq!(limited, Some(TriggerSkip::DailyLimit));
    assert_eq!(scenario.fire("b", 3, "llm-3", 86_400), None);
}

#[test]
fn a_history_without_the_last_session_leads_to_the_name_that_it_has() {
    let mut scenario = AlertScenario::new(json!({ "concurrencyPolicy": "Allow" }));
    let name = |decision: Decision<'_>| match decision {
        Decision::Make(run) => run.session_name,
        Decision::Skip(skip) => panic!("{skip:?}"),
    };
    let (one, other) = (pod("llm-0"), pod("llm-1"));
    let of_one = name(scenario.decide(&alert("a", 0), AlertedPod::Running(&one), 0));
    let of_other = name(scenario.decide(&alert("b", 0), AlertedPod::Running(&other), 0));
    assert_eq!(of_one, of_other, "of two who decide at once one is let through");
    assert_eq!(scenario.take(&alert("a", 0), &one, 0), None);
    let second = name(scenario.decide(&alert("b", 0), AlertedPod::Running(&other), 0));
    assert_ne!(second, of_one);
}

#[test]
fn triggers_count_apart() {
    let mut scenario = AlertScenario::new(json!({ "triggers": [
        { "alert": { "name": "Slow", "matchLabels": { "severity": "page" } }, "maximumPerDay": 1 },
        { "alert": { "name": "Slow" }, "maximumPerDay": 1 }
    ] }));
    let mut page = alert("a", 0);
    page.labels.insert("severity".to_owned(), "page".to_owned());
    assert_eq!(scenario.take(&page, &pod("llm-0"), 0), None);
    assert_eq!(scenario.fire("b", 0, "llm-0", 60), None);
    assert_eq!(scenario.fire("c", 0, "llm-1", 60), Some(TriggerSkip::DailyLimit));
    assert_ne!(scenario.history.sessions[0].name, scenario.history.sessions[1].name);
}

#[test]
fn what_a_schedule_does_not_do_an_alert_does_not_do_either() {
    let (now, llm) = (alert("a", 0), pod("llm-0"));
    let suspended = AlertScenario::new(json!({ "suspend": true }));
    assert_eq!(
        suspended.decide(&now, AlertedPod::Running(&llm), 0),
        Decision::Skip(TriggerSkip::Suspended)
    );
    let plain = AlertScenario::new(json!({}));
    for (pod, expected) in [
        (AlertedPod::Absent, TriggerSkip::NoSuchPod),
        (AlertedPod::NotSelected, TriggerSkip::NotSelected),
        (AlertedPod::WithoutContainer, TriggerSkip::NoContainer),
    ] {
        assert_eq!(plain.decide(&now, pod, 0), Decision::Skip(expected));
    }
    let over = AlertScenario {
        over_budget: true,
        ..AlertScenario::new(json!({}))
    };
    assert_eq!(
        over.decide(&now, AlertedPod::Running(&llm), 0),
        Decision::Skip(TriggerSkip::OverBudget)
    );
    let mut failed = AlertScenario::new(json!({}));
    let account = Account {
        outcomes: vec![Outcome {
            at: at(-60),
            failed: true,
        }],
        ..Account::default()
    };
    failed.ledger.classes.insert(llm.class.clone(), account);
    assert_eq!(
        failed.decide(&now, AlertedPod::Running(&llm), 0),
        Decision::Skip(TriggerSkip::BackedOff)
    );
}

#[test]
fn a_blackout_holds_unless_the_trigger_ignores_it() {
    let mut scenario = AlertScenario::new(json!({}));
    scenario.spec.blackouts = vec![Blackout {
        cron: "* * * * *".to_owned(),
        time_zone: "Etc/UTC".to_owned(),
        duration_seconds: 60,
    }];
    assert_eq!(scenario.fire("a", 0, "llm-0", 0), Some(TriggerSkip::Blackout));
    scenario.spec.triggers[0].ignore_blackouts = true;
    assert_eq!(scenario.fire("a", 0, "llm-0", 0), None);
}

#[test]
fn a_window_that_is_open_and_a_day_that_is_spent_are_enough() {
    let mut scenario = AlertScenario::new(json!({ "budget": { "captureSecondsPerPodPerDay": 15 } }));
    scenario.spec.triggers[0].cooldown_seconds = 0;
    assert_eq!(scenario.fire("a", 0, "llm-0", 0), None);
    assert_eq!(scenario.fire("b", 0, "llm-0", 60), Some(TriggerSkip::PodDailyLimit));
    scenario.history.sessions[0].state = SessionState::Active;
    assert_eq!(scenario.fire("b", 0, "llm-0", 60), Some(TriggerSkip::StillRunning));
}

#[test]
fn what_a_trigger_counts_is_kept() {
    let mut scenario =
        AlertScenario::new(json!({ "history": { "succeeded": 0, "failed": 0 }, "startingDeadlineSeconds": 1 }));
    assert_eq!(scenario.fire("a", 0, "llm-0", 0), None);
    let surplus = |now: i64| scenario.with_facts(now, crate::surplus).len();
    assert_eq!((surplus(86_409), surplus(86_410)), (0, 1));
}

#[test]
fn what_is_no_name_of_a_pod_is_known() {
    for name in ["llm-0", "a.b", "0"] {
        assert!(is_pod_name(name), "{name}");
    }
    for name in ["", "../secrets", "a/b", "-a", "a.", "A", "a?b", &"a".repeat(254)] {
        assert!(!is_pod_name(name), "{name}");
    }
}

#[test]
fn a_trigger_tells_what_it_made_and_nothing_of_another() {
    let mut scenario = AlertScenario::new(json!({ "triggers": [
        { "alert": { "name": "Slow" }, "cooldownSeconds": 600, "maximumPerDay": 3 }, { "alert": { "name": "Hot" } }
    ] }));
    let llm = pod("llm-0");
    assert_eq!(scenario.take(&alert("a", 0), &llm, 1), None);
    assert_eq!(scenario.take(&alert("b", 0), &llm, 1000), None);
    let told = |now| -> Vec<(String, usize, Option<Timestamp>)> {
        let histories = scenario.with_facts(now, histories);
        let told = histories.into_iter();
        told.map(|one| (one.trigger.alert.name, one.of_day, one.last)).collect()
    };
    let (slow, hot) = ("Slow".to_owned(), ("Hot".to_owned(), 0, None));
    assert_eq!(told(2000), [(slow.clone(), 2, Some(at(1000))), hot.clone()]);
    assert_eq!(told(86_500), [(slow, 1, Some(at(1000))), hot]);
}
