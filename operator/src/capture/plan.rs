//! What to do about one capture: a function of the capture and of what is seen of its node.

use std::time::Duration;

use flopwatch_api::CAPTURE_FINALIZER;
use flopwatch_api::capture::{Capture, CaptureStatus};

use crate::capture::node::NodeHealth;

/// A capture that is being deleted waits for an agent that is there for this many times the
/// patience with a lost node: longer than for any agent that is not.
const DELETION_PATIENCE: u32 = 10;
/// Artifacts that the Event names.
const MAX_ARTIFACTS_NAMED: usize = 8;

/// What is seen of the capture's node.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The node and its agent.
    pub health: NodeHealth,
    /// For how long they have been so.
    pub since: Duration,
    /// How long a node may be gone.
    pub node_lost: Duration,
    /// For how long the capture has been seen being deleted.
    pub deleting: Duration,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturePlan {
    /// Set the condition `Lost` with this message.
    pub declare_lost: Option<String>,
    /// Take the finalizer off.
    pub release: bool,
    /// What is left of the capture, where its agent was there and did not remove it in time; said
    /// in an Event.
    pub left: Option<String>,
    /// Look again after this long even if nothing changes.
    pub again: Option<Duration>,
}

/// Plans one step.
pub fn plan(capture: &Capture, surroundings: Surroundings) -> CapturePlan {
    let deleting = capture.metadata.deletion_timestamp.is_some();
    let held = capture
        .metadata
        .finalizers
        .iter()
        .flatten()
        .any(|finalizer| finalizer == CAPTURE_FINALIZER);
    let status = capture.status.as_ref();
    let agent_ended = capture.is_decided();
    let already_lost = status.is_some_and(|status| status.lost().is_some());
    let patience = surroundings.health.patience(surroundings.node_lost);
    let gone = patience.is_some_and(|patience| surroundings.since >= patience);
    let remaining = patience.map(|patience| patience.saturating_sub(surroundings.since) + Duration::from_secs(1));

    if deleting {
        if !held {
            return CapturePlan::default();
        }
        let may_release = agent_ended && status.is_none_or(|status| status.artifacts.is_empty());
        if may_release || gone || already_lost {
            return CapturePlan {
                release: true,
                ..CapturePlan::default()
            };
        }
        let bound = surroundings.node_lost.saturating_mul(DELETION_PATIENCE);
        if surroundings.deleting >= bound {
            return CapturePlan {
                release: true,
                left: Some(left(capture, agent_ended, surroundings.deleting)),
                ..CapturePlan::default()
            };
        }
        let overdue = bound.saturating_sub(surroundings.deleting) + Duration::from_secs(1);
        return CapturePlan {
            again: Some(remaining.map_or(overdue, |remaining| remaining.min(overdue))),
            ..CapturePlan::default()
        };
    }
    if agent_ended || already_lost {
        return CapturePlan::default();
    }
    if gone {
        let message = surroundings
            .health
            .describe(&capture.spec.node_name, surroundings.since);
        return CapturePlan {
            declare_lost: Some(message),
            ..CapturePlan::default()
        };
    }
    CapturePlan {
        again: remaining,
        ..CapturePlan::default()
    }
}

/// What an agent that is there did not remove.
fn left(capture: &Capture, agent_ended: bool, deleting: Duration) -> String {
    let (node, seconds) = (&capture.spec.node_name, deleting.as_secs());
    let empty = CaptureStatus::default();
    let artifacts = &capture.status.as_ref().unwrap_or(&empty).artifacts;
    let what = if artifacts.is_empty() {
        "what it recorded".to_owned()
    } else {
        let bytes = artifacts.iter().fold(0_i64, |sum, one| sum.saturating_add(one.bytes));
        let named: Vec<&str> = artifacts
            .iter()
            .take(MAX_ARTIFACTS_NAMED)
            .map(|one| one.name.as_str())
            .collect();
        let more = if artifacts.len() > MAX_ARTIFACTS_NAMED {
            ", ..."
        } else {
            ""
        };
        format!(
            "{} artifacts of {bytes} bytes ({}{more})",
            artifacts.len(),
            named.join(", ")
        )
    };
    let why = if agent_ended {
        "has not removed"
    } else {
        "has neither ended the capture nor removed"
    };
    format!(
        "the capture was released after {seconds} s of being deleted: the agent on node {node} is there and {why} {what}; its sweep \
         removes them when it can, its log says why it cannot"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn capture(deleting: bool, status: &Value) -> Capture {
        let mut value = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
            "metadata": {"name": "s-1", "namespace": "team", "finalizers": [CAPTURE_FINALIZER]},
            "spec": {
                "sessionRef": {"name": "s", "id": "00000001"}, "nodeName": "n1", "podRef": {"name": "p", "uid": "u"},
                "containerName": "c", "durationSeconds": 10, "startDeadlineSeconds": 60, "outputs": ["Summary"]
            },
            "status": status
        });
        if deleting {
            value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(value).unwrap()
    }

    fn condition(type_: &str, status: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn surroundings(health: NodeHealth, since: u64) -> Surroundings {
        Surroundings {
            health,
            since: Duration::from_secs(since),
            node_lost: Duration::from_mins(1),
            deleting: Duration::ZERO,
        }
    }

    #[test]
    fn the_finalizer_goes_only_when_nothing_is_left_to_hold() {
        let artifact = json!([{"name": "a", "type": "Summary", "bytes": 1, "sha256": "0", "mediaType": "x"}]);
        let running = json!({});
        let ended = json!({"conditions": [condition("Succeeded", "False")]});
        let kept = json!({"conditions": [condition("Succeeded", "True")], "artifacts": artifact});
        let lost = json!({"conditions": [condition("Lost", "True")]});
        let cases = [
            ("not deleted", false, &ended, NodeHealth::Healthy, 0, false),
            ("at work", true, &running, NodeHealth::Healthy, 0, false),
            ("ended, no artifacts", true, &ended, NodeHealth::Healthy, 0, true),
            ("artifacts not yet removed", true, &kept, NodeHealth::Healthy, 0, false),
            (
                "artifacts on a node that is gone",
                true,
                &kept,
                NodeHealth::NodeMissing,
                61,
                true,
            ),
            (
                "node gone a moment ago",
                true,
                &running,
                NodeHealth::NodeMissing,
                10,
                false,
            ),
            ("node gone", true, &running, NodeHealth::NodeNotReady, 60, true),
            ("agent uninstalled", true, &kept, NodeHealth::AgentMissing, 60, true),
            (
                "agent being upgraded",
                true,
                &running,
                NodeHealth::AgentNotReady,
                61,
                false,
            ),
            (
                "agent crashing for ever",
                true,
                &running,
                NodeHealth::AgentNotReady,
                300,
                true,
            ),
            ("lost earlier, node back", true, &lost, NodeHealth::Healthy, 0, true),
        ];
        for (name, deleting, status, health, since, expected) in cases {
            let plan = plan(&capture(deleting, status), surroundings(health, since));
            assert_eq!(plan.release, expected, "{name}");
            assert_eq!(plan.declare_lost, None, "{name}");
            assert_eq!(plan.left, None, "{name}");
            let waits = deleting && !expected;
            assert_eq!(
                plan.again.is_some(),
                waits,
                "{name}: looks again exactly while the clock runs"
            );
        }
    }

    #[test]
    fn a_deletion_ends_though_the_agent_is_there_and_cannot_delete() {
        let artifact =
            |name: &str| json!({"name": name, "type": "Summary", "bytes": 21, "sha256": "0", "mediaType": "x"});
        let kept = json!({"conditions": [condition("Succeeded", "True")], "artifacts": [artifact("a"), artifact("b")]});
        let deleting = |seconds: u64, health: NodeHealth| Surroundings {
            deleting: Duration::from_secs(seconds),
            ..surroundings(health, 0)
        };
        let early = plan(&capture(true, &kept), deleting(599, NodeHealth::Healthy));
        assert_eq!((early.release, early.again), (false, Some(Duration::from_secs(2))));
        let late = plan(&capture(true, &kept), deleting(600, NodeHealth::Healthy));
        assert!(late.release && late.again.is_none());
        let left = late.left.unwrap();
        for part in ["node n1", "600 s", "2 artifacts of 42 bytes (a, b)", "has not removed"] {
            assert!(left.contains(part), "{left}");
        }
        let stuck = plan(&capture(true, &json!({})), deleting(600, NodeHealth::Healthy))
            .left
            .unwrap();
        assert!(
            stuck.contains("neither ended the capture nor removed what it recorded"),
            "{stuck}"
        );
        let missing = plan(&capture(true, &kept), deleting(10, NodeHealth::NodeMissing));
        assert_eq!(
            missing.again,
            Some(Duration::from_secs(61)),
            "the earlier of two clocks"
        );
        let alive = plan(&capture(false, &json!({})), deleting(9999, NodeHealth::Healthy));
        assert_eq!(alive, CapturePlan::default(), "only a deletion has this end");
    }

    #[test]
    fn a_capture_at_work_is_lost_once_and_only_after_the_grace_period() {
        let running = json!({"conditions": [condition("Succeeded", "Unknown")]});
        let early = plan(&capture(false, &running), surroundings(NodeHealth::NodeNotReady, 59));
        assert_eq!((early.declare_lost, early.again), (None, Some(Duration::from_secs(2))));
        let late = plan(&capture(false, &running), surroundings(NodeHealth::NodeNotReady, 60));
        assert_eq!(
            late.declare_lost.as_deref(),
            Some("node n1 has not been ready for 60 s")
        );
        for over in [
            json!({"conditions": [condition("Lost", "True")]}),
            json!({"conditions": [condition("Succeeded", "True")]}),
        ] {
            let plan = plan(&capture(false, &over), surroundings(NodeHealth::NodeMissing, 1000));
            assert_eq!(plan, CapturePlan::default());
        }
    }
}
