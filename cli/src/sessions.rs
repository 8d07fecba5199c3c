//! Sessions in a table, and what is read out of one.

use flopwatch_api::phase::Phase;
use flopwatch_api::reason::SessionCondition;
use flopwatch_api::session::ProfilingSession;
use flopwatch_report::{Layout, Tone};
use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::print::{Cell, age, table};

/// How a status of a condition reads.
pub fn tone(status: &str) -> Tone {
    match status {
        "True" => Tone::Good,
        "False" => Tone::Bad,
        _ => Tone::Plain,
    }
}

/// Seconds since an object was made.
pub(crate) fn seconds_since(created: Option<Timestamp>, now: Timestamp) -> Option<i64> {
    created.map(|created| now.as_second() - created.as_second())
}

/// Where a session is. One of whose captures not all succeeded has failed.
pub fn phase(session: &ProfilingSession) -> Phase {
    match session.condition(SessionCondition::Succeeded) {
        Some(verdict) if verdict.status == "True" => Phase::Succeeded,
        Some(verdict) if verdict.status == "False" => Phase::Failed {
            reason: verdict.reason.clone(),
            message: verdict.message.clone(),
        },
        _ => match session.condition(SessionCondition::Capturing) {
            Some(capturing) if capturing.status == "True" => Phase::Capturing,
            _ => Phase::Waiting,
        },
    }
}

/// The newest first; those of one second by name.
pub fn sort(sessions: &mut [ProfilingSession]) {
    sessions.sort_by_cached_key(|session| {
        let created = session.creation_timestamp().map(|time| time.0);
        (std::cmp::Reverse(created), session.namespace(), session.name_any())
    });
}

/// How a list is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// With the namespace of each.
    pub namespaces: bool,
    /// With what is known beside.
    pub wide: bool,
}

/// The sessions as a table, in the order given.
pub fn render(sessions: &[ProfilingSession], columns: Columns, now: Timestamp, layout: Layout) -> String {
    let mut header = vec!["NAME", "TARGET", "PROFILER", "SUCCEEDED", "REASON", "CAPTURES", "AGE"];
    if columns.namespaces {
        header.insert(0, "NAMESPACE");
    }
    if columns.wide {
        header.extend(["ID", "REQUESTED BY", "MESSAGE"]);
    }
    let rows: Vec<Vec<Cell>> = sessions.iter().map(|session| row(session, columns, now)).collect();
    table(&header, &rows, layout)
}

fn row(session: &ProfilingSession, columns: Columns, now: Timestamp) -> Vec<Cell> {
    let verdict = session.condition(SessionCondition::Succeeded);
    let status = session.status.clone().unwrap_or_default();
    let counts = status.counts;
    let mut row = Vec::new();
    if columns.namespaces {
        row.push(Cell::from(session.namespace().unwrap_or_default()));
    }
    let succeeded = verdict.map_or("Unknown", |verdict| verdict.status.as_str());
    row.extend([
        Cell::from(session.name_any()),
        Cell::from(target(session)),
        Cell::from(session.spec.profiler.type_.as_str()),
        Cell::toned(succeeded, tone(succeeded)),
        Cell::from(verdict.map_or("", |verdict| verdict.reason.as_str())),
        Cell::from(format!("{}/{}", counts.succeeded, counts.captures)),
        Cell::from(seconds_since(session.creation_timestamp().map(|time| time.0), now).map_or_else(String::new, age)),
    ]);
    if columns.wide {
        row.extend([
            Cell::from(status.id.unwrap_or_default()),
            Cell::from(status.requested_by.unwrap_or_default()),
            Cell::from(verdict.map_or("", |verdict| verdict.message.as_str())),
        ]);
    }
    row
}

/// The pods of a session, as a user would name them.
pub fn target(session: &ProfilingSession) -> String {
    let target = &session.spec.target;
    if let Some(name) = &target.pod_name {
        return format!("pod/{name}");
    }
    if let Some(selector) = &target.pod_selector {
        let labels = selector.match_labels.iter().flatten();
        let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
        return match labels.as_slice() {
            [] => "pods by expressions".to_owned(),
            labels => labels.join(","),
        };
    }
    let made = session.status.as_ref().and_then(|status| status.pod_name.as_deref());
    made.map_or_else(|| "a pod of its own".to_owned(), |name| format!("pod/{name}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// When what tests look at was made.
    pub(crate) const CREATED: &str = "2026-01-01T00:00:00Z";

    /// A condition that came with it.
    pub(crate) fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": CREATED
        })
    }

    /// A session of pod `trainer` with this status.
    pub(crate) fn session(name: &str, created: &str, status: &Value) -> ProfilingSession {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "team", "uid": format!("uid-{name}"), "creationTimestamp": created},
            "spec": {"target": {"podName": "trainer"}},
            "status": status
        }))
        .unwrap()
    }

    /// A status whose Succeeded condition reads so.
    pub(crate) fn verdict(status: &str, reason: &str, message: &str) -> Value {
        json!({
            "id": "0badcafe", "requestedBy": "ada",
            "counts": {"captures": 1, "succeeded": i32::from(status == "True")},
            "conditions": [condition("Succeeded", status, reason, message)]
        })
    }

    #[test]
    fn a_list_reads_as_kubectl_would_write_it() {
        let failed = verdict("False", "Failed", "no\u{1b}[2Jpods");
        let mut sessions = [
            session("old", CREATED, &verdict("True", "Succeeded", "")),
            session("new", "2026-01-01T00:09:30Z", &failed),
            session("now", "2026-01-01T00:10:00Z", &json!(null)),
        ];
        sort(&mut sessions);
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let shown = render(&sessions, Columns::default(), now, Layout::default());
        assert_eq!(
            shown,
            "NAME   TARGET        PROFILER   SUCCEEDED   REASON      CAPTURES   AGE\n\
             now    pod/trainer   Auto       Unknown     <none>      0/0        0s\n\
             new    pod/trainer   Auto       False       Failed      0/1        30s\n\
             old    pod/trainer   Auto       True        Succeeded   1/1        10m\n"
        );
        let all = Columns {
            namespaces: true,
            wide: true,
        };
        let shown = render(&sessions[1..2], all, now, Layout::default());
        assert_eq!(
            shown,
            "NAMESPACE   NAME   TARGET        PROFILER   SUCCEEDED   REASON   CAPTURES   AGE   ID         REQUESTED BY   MESSAGE\n\
             team        new    pod/trainer   Auto       False       Failed   0/1        30s   0badcafe   ada            no [2Jpods\n"
        );
    }

    #[test]
    fn a_session_waits_captures_and_ends() {
        let of = |status: Value| phase(&session("s", CREATED, &status)).as_str();
        assert_eq!(of(json!(null)), "waiting");
        assert_eq!(of(verdict("True", "Succeeded", "")), "succeeded");
        assert_eq!(of(verdict("False", "PartiallySucceeded", "")), "failed");
        let mut capturing = verdict("True", "Capturing", "");
        capturing["conditions"][0]["type"] = json!("Capturing");
        assert_eq!(of(capturing), "capturing");
    }

    #[test]
    fn targets_are_named_as_they_were_asked_for() {
        let of = |target: Value, status: Value| -> String {
            let session = json!({"metadata": {"name": "s"}, "spec": {"target": target}, "status": status});
            super::target(&serde_json::from_value(session).unwrap())
        };
        let selector = json!({"podSelector": {"matchLabels": {"app": "train", "rank": "0"}}});
        assert_eq!(of(selector, json!(null)), "app=train,rank=0");
        let template = json!({"podTemplate": {"spec": {"containers": []}}});
        assert_eq!(of(template.clone(), json!(null)), "a pod of its own");
        assert_eq!(of(template, json!({"podName": "start-x"})), "pod/start-x");
    }
}
