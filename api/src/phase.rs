//! Where a capture or a session is, read from the conditions of its status. Operator, agent,
//! gateway and plugin ask here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use strum::IntoStaticStr;

use crate::capture::{Capture, CaptureStatus};
use crate::reason::{CaptureCondition, CaptureReason, ScheduleCondition, SessionCondition};
use crate::schedule::ProfilingScheduleStatus;
use crate::session::{ProfilingSession, ProfilingSessionStatus};

/// Where a capture is.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Phase {
    /// Its window has not begun.
    Waiting,
    /// Its window has begun, and the capture has not ended.
    Capturing,
    /// It ended with what was asked for.
    Succeeded,
    /// It ended without.
    Failed {
        /// Reason of the condition that says so.
        reason: String,
        /// Message of that condition.
        message: String,
    },
}

impl Phase {
    /// Every value of [`Phase::as_str`].
    pub const NAMES: [&'static str; 4] = ["waiting", "capturing", "succeeded", "failed"];

    /// Reads the conditions. `Succeeded` goes before `Lost`: what was published before the node went counts.
    pub fn of(capture: &Capture) -> Self {
        let Some(status) = &capture.status else {
            return Self::Waiting;
        };
        match status.condition(CaptureCondition::Succeeded) {
            Some(verdict) if verdict.status == "True" => return Self::Succeeded,
            Some(verdict) if verdict.status == "False" => {
                return Self::Failed {
                    reason: verdict.reason.clone(),
                    message: verdict.message.clone(),
                };
            }
            _ => {}
        }
        if let Some(lost) = status.lost() {
            return Self::Failed {
                reason: CaptureReason::NodeLost.as_str().to_owned(),
                message: lost.message.clone(),
            };
        }
        if status.start_time.is_some() {
            Self::Capturing
        } else {
            Self::Waiting
        }
    }

    /// Whether nothing more comes of the capture: its agent decided it, or its node is gone.
    pub const fn has_ended(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed { .. })
    }

    /// Label value for metrics.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

impl CaptureStatus {
    /// The condition of that type.
    pub fn condition(&self, wanted: CaptureCondition) -> Option<&Condition> {
        find(&self.conditions, wanted.as_str())
    }

    /// Whether the agent ended the capture: `Succeeded` is True or False. A capture whose node is gone may never be decided;
    /// [`Phase::has_ended`] knows of both.
    pub fn is_decided(&self) -> bool {
        self.condition(CaptureCondition::Succeeded).is_some_and(is_decided)
    }

    /// Whether the agent ended the capture with success.
    pub fn has_succeeded(&self) -> bool {
        self.condition(CaptureCondition::Succeeded)
            .is_some_and(|verdict| verdict.status == "True")
    }

    /// The condition `Lost`, when it is True: the node is gone.
    pub fn lost(&self) -> Option<&Condition> {
        self.condition(CaptureCondition::Lost)
            .filter(|condition| condition.status == "True")
    }
}

impl Capture {
    /// The condition of that type.
    pub fn condition(&self, wanted: CaptureCondition) -> Option<&Condition> {
        self.status.as_ref()?.condition(wanted)
    }

    /// Whether the agent ended the capture; see [`CaptureStatus::is_decided`].
    pub fn is_decided(&self) -> bool {
        self.status.as_ref().is_some_and(CaptureStatus::is_decided)
    }
}

impl ProfilingSessionStatus {
    /// The condition of that type.
    pub fn condition(&self, wanted: SessionCondition) -> Option<&Condition> {
        find(&self.conditions, wanted.as_str())
    }
}

impl ProfilingSession {
    /// The condition of that type.
    pub fn condition(&self, wanted: SessionCondition) -> Option<&Condition> {
        self.status.as_ref()?.condition(wanted)
    }
}

impl ProfilingScheduleStatus {
    /// The condition of that type.
    pub fn condition(&self, wanted: ScheduleCondition) -> Option<&Condition> {
        find(&self.conditions, wanted.as_str())
    }
}

fn find<'a>(conditions: &'a [Condition], wanted: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == wanted)
}

fn is_decided(verdict: &Condition) -> bool {
    verdict.status != "Unknown"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn capture(conditions: &[(&str, &str)], started: bool) -> Capture {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status)| {
                json!({"type": type_, "status": status, "reason": "Why", "message": format!("about {type_}"),
                       "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        let mut status = json!({"conditions": conditions});
        if started {
            status["startTime"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(json!({
            "metadata": {"name": "c"},
            "spec": {"sessionRef": {"name": "s", "id": "00000001"}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
                     "containerName": "main", "durationSeconds": 1, "startDeadlineSeconds": 1, "outputs": ["Timeline"]},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_capture_has_ended_when_it_was_decided_or_its_node_is_gone() {
        type Conditions = &'static [(&'static str, &'static str)];
        let rows: [(Conditions, bool, &str, bool); 6] = [
            (&[], false, "waiting", false),
            (&[("Succeeded", "Unknown"), ("Lost", "False")], true, "capturing", false),
            (&[("Succeeded", "True")], true, "succeeded", true),
            (&[("Succeeded", "False")], false, "failed", true),
            (&[("Succeeded", "Unknown"), ("Lost", "True")], true, "failed", false),
            (&[("Lost", "True"), ("Succeeded", "True")], true, "succeeded", true),
        ];
        for (conditions, started, phase, decided) in rows {
            let capture = capture(conditions, started);
            let found = Phase::of(&capture);
            assert_eq!(
                (found.as_str(), capture.is_decided()),
                (phase, decided),
                "{conditions:?}"
            );
            assert_eq!(found.has_ended(), matches!(phase, "succeeded" | "failed"));
        }
        let lost = capture(&[("Lost", "True")], true);
        let expected = Phase::Failed {
            reason: "NodeLost".to_owned(),
            message: "about Lost".to_owned(),
        };
        assert_eq!(Phase::of(&lost), expected);
    }
}
