//! Schedules in words.

use std::fmt::Write as _;

use flopwatch_api::overhead::OverheadReason;
use flopwatch_api::reason::ScheduleCondition;
use flopwatch_api::schedule::{BudgetState, ProfilingSchedule, ProfilingScheduleStatus, SkipReason};
use flopwatch_report::{Layout, Tone};
use flopwatch_schedule::{Explanation, TriggerHistory, Verdict};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::print::{Cell, age, line, table};
use crate::schedule::Outlook;
use crate::sessions::{Columns, seconds_since, tone};

/// Most pods that are told of one by one.
const MAX_PODS: usize = 200;

/// The schedules as a table, in the order given.
pub(super) fn list(schedules: &[ProfilingSchedule], columns: Columns, now: Timestamp, layout: Layout) -> String {
    let mut header = vec![
        "NAME", "WHEN", "SUSPEND", "NEXT", "LAST", "ACTIVE", "OVERHEAD", "READY", "AGE",
    ];
    if columns.namespaces {
        header.insert(0, "NAMESPACE");
    }
    if columns.wide {
        header.extend(["REASON", "MESSAGE"]);
    }
    let rows: Vec<Vec<Cell>> = schedules.iter().map(|schedule| row(schedule, columns, now)).collect();
    table(&header, &rows, layout)
}

fn row(schedule: &ProfilingSchedule, columns: Columns, now: Timestamp) -> Vec<Cell> {
    let status = schedule.status.clone().unwrap_or_default();
    let ready = status.condition(ScheduleCondition::Ready);
    let next = status.next_time.as_ref().map(|next| until(next.0, now));
    let last = status
        .last_time
        .as_ref()
        .map(|last| age(now.as_second() - last.0.as_second()));
    let mut row = Vec::new();
    if columns.namespaces {
        row.push(Cell::from(schedule.namespace().unwrap_or_default()));
    }
    let is_ready = ready.map_or("Unknown", |ready| ready.status.as_str());
    let overhead = status.budget.as_ref().map(|budget| budget.state);
    row.extend([
        Cell::from(schedule.name_any()),
        Cell::from(when(schedule)),
        Cell::from(schedule.spec.suspend.to_string()),
        Cell::from(next.unwrap_or_default()),
        Cell::from(last.unwrap_or_default()),
        Cell::from(status.active_count.to_string()),
        Cell::toned(
            overhead.map_or("", BudgetState::as_str),
            overhead.map_or(Tone::Plain, of_state),
        ),
        Cell::toned(is_ready, tone(is_ready)),
        Cell::from(seconds_since(schedule.creation_timestamp().map(|time| time.0), now).map_or_else(String::new, age)),
    ]);
    if columns.wide {
        row.extend([
            Cell::from(ready.map_or("", |ready| ready.reason.as_str())),
            Cell::from(ready.map_or("", |ready| ready.message.as_str())),
        ]);
    }
    row
}

const fn of_state(state: BudgetState) -> Tone {
    match state {
        BudgetState::Within => Tone::Good,
        BudgetState::Exceeded => Tone::Bad,
        BudgetState::Inconclusive | BudgetState::Blind => Tone::Note,
        BudgetState::Learning => Tone::Plain,
    }
}

fn when(schedule: &ProfilingSchedule) -> String {
    let when = &schedule.spec.when;
    match (&when.interval, &when.cron) {
        (Some(interval), _) => format!("every {} s", interval.seconds),
        (None, Some(cron)) => format!("{} {}", cron.expression, cron.time_zone),
        (None, None) => String::new(),
    }
}

/// What a schedule will do, for people.
pub(super) fn outlook(outlook: &Outlook, now: Timestamp, layout: Layout) -> String {
    let schedule = &outlook.schedule;
    let status = schedule.status.clone().unwrap_or_default();
    let mut text = format!("Schedule {}\n", line(&schedule.name_any()));
    put(&mut text, "when", &when(schedule));
    if let Some(ready) = status.condition(ScheduleCondition::Ready) {
        let verdict = layout.paint(tone(&ready.status), &line(&ready.status));
        put(
            &mut text,
            "ready",
            &format!("{verdict} {}: {}", line(&ready.reason), line(&ready.message)),
        );
    }
    if let Some(overhead) = overhead(schedule, &status) {
        put(&mut text, "overhead", &overhead);
    }
    put(&mut text, "active", &status.active_count.to_string());
    if outlook.without_container > 0 {
        let pods = format!(
            "{} match and have no container that asks for a GPU or was prepared",
            outlook.without_container
        );
        put(&mut text, "other pods", &pods);
    }
    if let Some(unread) = &outlook.unread {
        put(&mut text, "note", &layout.paint(Tone::Note, unread));
    }
    match &outlook.explanation {
        Ok(explanation) => explained(&mut text, explanation, now, layout),
        Err(error) => {
            let error = layout.paint(Tone::Bad, &line(&error.to_string()));
            add(&mut text, format_args!("\nIt makes no sessions: {error}\n"));
        }
    }
    let skipped: Vec<Vec<Cell>> = status
        .skipped
        .iter()
        .map(|one| {
            vec![
                Cell::from(one.reason.as_str()),
                Cell::from(one.count.to_string()),
                Cell::from(why(one.reason)),
            ]
        })
        .collect();
    if !skipped.is_empty() {
        text.push_str("\nLeft out since it was created\n");
        text.push_str(&table(&["REASON", "WINDOWS", "WHY"], &skipped, layout));
    }
    text
}

fn overhead(schedule: &ProfilingSchedule, status: &ProfilingScheduleStatus) -> Option<String> {
    let budget = status.budget.as_ref()?;
    let allowed = percent(schedule.spec.budget.amortized_basis_points);
    let measured = match (budget.amortized_basis_points, budget.low, budget.high) {
        (Some(lost), Some(low), Some(high)) => {
            format!(": {} ({} to {})", percent(lost), percent(low), percent(high))
        }
        _ => String::new(),
    };
    let why = budget.reason.map(|reason| format!(": {}", unjudged(reason)));
    Some(format!(
        "{}{measured} of {allowed}, {} windows{}",
        budget.state.as_str(),
        budget.windows,
        why.unwrap_or_default()
    ))
}

/// Why windows could not be judged, and what helps.
const fn unjudged(reason: OverheadReason) -> &'static str {
    match reason {
        OverheadReason::NoSignal => {
            "nothing counts the pods' work (NoSignal): prepare them with the word recorder, or name budget.signal"
        }
        OverheadReason::TooFewBins => {
            "each is too short for the pace of the work (TooFewBins): raise session.durationSeconds"
        }
        OverheadReason::TooSeldom => {
            "what is counted comes too seldom to show a pace (TooSeldom): mark shorter steps with NVTX, or name budget.signal"
        }
        OverheadReason::LoadChanged => "the load changed by itself around them (LoadChanged): the next ones may tell",
        OverheadReason::UpperEndWithin
        | OverheadReason::LowerEndAbove
        | OverheadReason::Stopped
        | OverheadReason::BudgetWithinInterval => "they have no figures; describe their captures for the reason",
    }
}

fn explained(text: &mut String, explanation: &Explanation, now: Timestamp, layout: Layout) {
    let title = if explanation.suspended {
        "Next runs, were it not suspended"
    } else {
        "Next runs"
    };
    let runs: Vec<Vec<Cell>> = explanation
        .runs
        .iter()
        .map(|run| {
            vec![
                Cell::from(format!("{:.0}", run.opens)),
                Cell::from(until(run.opens, now)),
                Cell::from(run.pod_name.as_str()),
                Cell::from(probability(run.probability_per_billion)),
                Cell::from(run.session_name.as_str()),
            ]
        })
        .collect();
    if runs.is_empty() {
        add(text, format_args!("\n{title}: none\n"));
    } else {
        add(text, format_args!("\n{title}\n"));
        text.push_str(&table(&["AT", "IN", "POD", "PROBABILITY", "SESSION"], &runs, layout));
    }
    triggers(text, &explanation.triggers, now, layout);
    let pods: Vec<Vec<Cell>> = explanation
        .pods
        .iter()
        .take(MAX_PODS)
        .map(|pod| {
            let (verdict, tone, why) = verdict(pod.verdict);
            vec![
                Cell::from(pod.pod_name.as_str()),
                Cell::from(format!("{:.0}", pod.opens)),
                Cell::toned(verdict, tone),
                Cell::from(why),
            ]
        })
        .collect();
    if pods.is_empty() {
        text.push_str("\nPods: none runs that it can profile\n");
        return;
    }
    text.push_str("\nPods, at their next time\n");
    text.push_str(&table(&["POD", "AT", "VERDICT", "WHY"], &pods, layout));
    if explanation.pods.len() > MAX_PODS {
        add(
            text,
            format_args!("and {} more: -o json has all\n", explanation.pods.len() - MAX_PODS),
        );
    }
}

fn triggers(text: &mut String, triggers: &[TriggerHistory], now: Timestamp, layout: Layout) {
    if triggers.is_empty() {
        return;
    }
    let rows: Vec<Vec<Cell>> = triggers
        .iter()
        .map(|one| {
            let TriggerHistory { trigger, of_day, last } = one;
            let labels = trigger.alert.match_labels.iter();
            let labels: Vec<String> = labels.map(|(label, value)| format!("{label}={value}")).collect();
            let last = last.map(|last| age(now.as_second() - last.as_second()));
            vec![
                Cell::from(line(&trigger.alert.name)),
                Cell::from(line(&labels.join(","))),
                Cell::from(format!("{of_day} of {}", trigger.maximum_per_day)),
                Cell::from(last.unwrap_or_default()),
                Cell::from(age(trigger.cooldown_seconds.into())),
            ]
        })
        .collect();
    text.push_str("\nAlerts that make a session\n");
    text.push_str(&table(
        &["ALERT", "LABELS", "IN 24H", "LAST", "COOLDOWN"],
        &rows,
        layout,
    ));
}

fn verdict(verdict: Verdict) -> (&'static str, Tone, &'static str) {
    match verdict {
        Verdict::Made => ("Made", Tone::Good, "its session was made"),
        Verdict::Drawn { .. } => ("Drawn", Tone::Good, "it is profiled"),
        Verdict::NotDrawn => ("NotDrawn", Tone::Plain, "others of its stratum were drawn"),
        Verdict::Skipped(reason) => (reason.as_str(), Tone::Note, why(reason)),
    }
}

/// Why a pod is left out, and what changes it.
const fn why(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Missed => "nobody made the session in time (startingDeadlineSeconds): was the controller running?",
        SkipReason::Blackout => "the window would be open in one of blackouts",
        SkipReason::TooYoung => "the pod is younger than select.minPodAgeSeconds",
        SkipReason::Terminating => "the pod is being deleted",
        SkipReason::Restarting => "a container restarted within select.minPodAgeSeconds",
        SkipReason::Resting => "it was profiled within select.restSeconds",
        SkipReason::DailyLimit => "it was, or would be, in windows for budget.captureSecondsPerPodPerDay in 24 hours",
        SkipReason::StillRunning => "an earlier session still profiles it (concurrencyPolicy: Forbid)",
        SkipReason::BackedOff => "a window on a pod of its image and hardware failed or exceeded the budget (backoff)",
        SkipReason::ClassSuspended => {
            "more than two of the last ten windows on its image and hardware failed: change the schedule to try again"
        }
        SkipReason::OverBudget => "pods of its image and hardware lose more than budget.amortizedBasisPoints",
        SkipReason::RateHalved => "whether its image loses too much is not known yet: every second slot is left out",
        SkipReason::NoSensor => "nothing tells how fast it is, and budget.unknown is Refuse: name budget.signal",
    }
}

/// What a schedule will do, for programs.
pub(super) fn data(outlook: &Outlook) -> Value {
    let mut data = json!({
        "schedule": outlook.schedule.name_any(),
        "namespace": outlook.schedule.namespace(),
        "podsWithoutContainer": outlook.without_container,
        "note": outlook.unread,
    });
    let reported = match &outlook.explanation {
        Err(error) => json!({"error": error.to_string()}),
        Ok(explanation) => json!({
            "suspended": explanation.suspended,
            "runs": explanation.runs.iter().map(|run| json!({
                "session": run.session_name, "slot": run.slot.seconds(), "pod": run.pod_name, "podUid": run.pod_uid,
                "opens": run.opens.to_string(), "deadline": run.deadline.to_string(),
                "probabilityPerBillion": run.probability_per_billion,
            })).collect::<Vec<Value>>(),
            "pods": explanation.pods.iter().map(|pod| json!({
                "pod": pod.pod_name, "podUid": pod.pod_uid, "slot": pod.slot.seconds(), "opens": pod.opens.to_string(),
                "verdict": verdict(pod.verdict).0, "why": verdict(pod.verdict).2,
            })).collect::<Vec<Value>>(),
            "triggers": explanation.triggers.iter().map(|one| json!({
                "alert": one.trigger.alert, "sessionsOfDay": one.of_day, "maximumPerDay": one.trigger.maximum_per_day,
                "cooldownSeconds": one.trigger.cooldown_seconds, "last": one.last.map(|last| last.to_string()),
            })).collect::<Vec<Value>>(),
        }),
    };
    if let (Some(data), Value::Object(reported)) = (data.as_object_mut(), reported) {
        data.extend(reported);
    }
    data
}

/// How long until then: `now` where it has come.
fn until(at: Timestamp, now: Timestamp) -> String {
    match at.as_second() - now.as_second() {
        ..=0 => "now".to_owned(),
        seconds => age(seconds),
    }
}

/// Basis points as a percentage.
fn percent(basis_points: i32) -> String {
    format!("{:.2} %", f64::from(basis_points) / 100.0)
}

fn probability(per_billion: i32) -> String {
    format!("{:.4} %", f64::from(per_billion) / 1e7)
}

fn put(text: &mut String, name: &str, value: &str) {
    add(text, format_args!("  {name:<12}{value}\n"));
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _written = text.write_fmt(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(status: &Value) -> ProfilingSchedule {
        serde_json::from_value(json!({
            "metadata": {"name": "always", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"when": {"interval": {"seconds": 900}}, "select": {"podSelector": {}}},
            "status": status
        }))
        .unwrap()
    }

    #[test]
    fn a_list_says_when_each_is_next_and_what_it_costs() {
        let status = json!({
            "nextTime": "2026-01-01T00:15:00Z", "lastTime": "2026-01-01T00:05:00Z", "activeCount": 2,
            "budget": {"state": "Within", "amortizedBasisPoints": 12, "low": 5, "high": 20, "windows": 40},
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "Scheduled", "message": "3 pods can be profiled",
                "lastTransitionTime": "2026-01-01T00:00:00Z"
            }]
        });
        let schedules = [schedule(&status), schedule(&json!(null))];
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(
            list(&schedules, Columns::default(), now, Layout::default()),
            "NAME     WHEN          SUSPEND   NEXT     LAST     ACTIVE   OVERHEAD   READY     AGE\n\
             always   every 900 s   false     5m       5m       2        Within     True      10m\n\
             always   every 900 s   false     <none>   <none>   0        <none>     Unknown   10m\n"
        );
        let reported = overhead(&schedules[0], schedules[0].status.as_ref().unwrap());
        assert_eq!(
            reported.unwrap(),
            "Within: 0.12 % (0.05 % to 0.20 %) of 1.00 %, 40 windows"
        );
    }

    #[test]
    fn windows_that_could_not_be_judged_say_why_and_what_helps() {
        let budget = json!({"budget": {"state": "Inconclusive", "windows": 20, "reason": "TooFewBins"}});
        let schedule = schedule(&budget);
        assert_eq!(
            overhead(&schedule, schedule.status.as_ref().unwrap()).unwrap(),
            "Inconclusive of 1.00 %, 20 windows: each is too short for the pace of the work (TooFewBins): raise \
             session.durationSeconds"
        );
    }

    #[test]
    fn triggers_are_told_with_what_they_did() {
        let trigger = json!({"alert": {"name": "Slow", "matchLabels": {"severity": "page"}}, "cooldownSeconds": 600});
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let history = TriggerHistory {
            trigger: serde_json::from_value(trigger).unwrap(),
            of_day: 2,
            last: Some("2026-01-01T00:05:00Z".parse().unwrap()),
        };
        let mut text = String::new();
        triggers(&mut text, &[], now, Layout::default());
        assert_eq!(text, "");
        triggers(&mut text, &[history], now, Layout::default());
        assert_eq!(
            text,
            "\nAlerts that make a session\n\
             ALERT   LABELS          IN 24H    LAST   COOLDOWN\n\
             Slow    severity=page   2 of 10   5m     10m\n"
        );
    }

    #[test]
    fn every_reason_has_its_why() {
        for reason in SkipReason::ALL.iter().copied() {
            assert!(why(reason).len() > 20, "{reason:?}");
        }
    }
}
