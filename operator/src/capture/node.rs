//! Whether a node still has an agent that can run captures.

use std::collections::BTreeMap;
use std::time::Duration;

use flopwatch_api::pod;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};

/// What is seen of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeHealth {
    /// The node is Ready and its agent runs.
    Healthy,
    /// The node is Ready, and its agent's pod is there but not Ready: it starts, is upgraded, or
    /// crashes.
    AgentNotReady,
    /// There is no Node object of that name.
    NodeMissing,
    /// The node's Ready condition is not True.
    NodeNotReady,
    /// No pod of the agent is on the node.
    AgentMissing,
}

impl NodeHealth {
    /// Reads the node and the agent's pods on it.
    pub fn of<'a>(node: Option<&Node>, agents: impl IntoIterator<Item = &'a Pod>) -> Self {
        let Some(node) = node else { return Self::NodeMissing };
        let conditions = node
            .status
            .as_ref()
            .and_then(|status| status.conditions.as_deref())
            .unwrap_or_default();
        if !conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
        {
            return Self::NodeNotReady;
        }
        let mut health = Self::AgentMissing;
        for pod in agents {
            let Some(status) = &pod.status else { continue };
            if pod::has_ended(pod) {
                continue;
            }
            let ready = status.conditions.iter().flatten();
            if ready
                .into_iter()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            {
                return Self::Healthy;
            }
            health = Self::AgentNotReady;
        }
        health
    }

    /// How long this may last before captures of the node are lost; None: for ever.
    pub fn patience(self, node_lost: Duration) -> Option<Duration> {
        match self {
            Self::Healthy => None,
            // An upgrade pulls an image and restarts the agent; captures wait for that.
            Self::AgentNotReady => Some(node_lost.saturating_mul(5)),
            Self::NodeMissing | Self::NodeNotReady | Self::AgentMissing => Some(node_lost),
        }
    }

    /// The condition's message.
    pub fn describe(self, node: &str, since: Duration) -> String {
        let seconds = since.as_secs();
        match self {
            Self::Healthy => format!("node {node} and its agent are there"),
            Self::AgentNotReady => format!("the agent on node {node} has not been ready for {seconds} s"),
            Self::NodeMissing => format!("node {node} has been gone for {seconds} s"),
            Self::NodeNotReady => format!("node {node} has not been ready for {seconds} s"),
            Self::AgentMissing => format!("no agent has run on node {node} for {seconds} s"),
        }
    }
}

/// Since when each node has been in its present state, by this process's own clock and own eyes: it
/// begins anew with every leader, so that no clock but ours and no state but what we saw ourselves
/// declares a node lost.
#[derive(Debug, Default)]
pub struct NodeHistory {
    since: BTreeMap<String, (NodeHealth, Timestamp)>,
}

impl NodeHistory {
    /// Notes what is seen of `node` now and answers for how long captures have had nobody to carry
    /// them out. The clock runs on when one trouble becomes another, unless the node recovered in
    /// between.
    pub fn observe(&mut self, node: &str, health: NodeHealth, now: Timestamp) -> Duration {
        if health == NodeHealth::Healthy {
            self.since.remove(node);
            return Duration::ZERO;
        }
        let entry = self.since.entry(node.to_owned()).or_insert((health, now));
        // An agent that came back, ready or not, gets its own time.
        if health == NodeHealth::AgentNotReady && entry.0 != health {
            entry.1 = now;
        }
        entry.0 = health;
        Duration::try_from(now.duration_since(entry.1)).unwrap_or_default()
    }

    /// Forgets nodes that no capture is on any more.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.since.retain(|node, _| keep(node));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(ready: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": "n1"},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}
        }))
        .unwrap()
    }

    fn agent(phase: &str, ready: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "agent"},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
        }))
        .unwrap()
    }

    #[test]
    fn health_is_read_from_the_node_and_its_agent() {
        let cases = [
            ("no node", None, vec![agent("Running", "True")], NodeHealth::NodeMissing),
            (
                "node down",
                Some(node("Unknown")),
                vec![agent("Running", "True")],
                NodeHealth::NodeNotReady,
            ),
            ("no agent", Some(node("True")), vec![], NodeHealth::AgentMissing),
            (
                "finished agent",
                Some(node("True")),
                vec![agent("Failed", "False")],
                NodeHealth::AgentMissing,
            ),
            (
                "starting agent",
                Some(node("True")),
                vec![agent("Pending", "False")],
                NodeHealth::AgentNotReady,
            ),
            (
                "old and new agent",
                Some(node("True")),
                vec![agent("Running", "True"), agent("Pending", "False")],
                NodeHealth::Healthy,
            ),
        ];
        for (name, node, agents, expected) in cases {
            assert_eq!(NodeHealth::of(node.as_ref(), &agents), expected, "{name}");
        }
    }

    #[test]
    fn trouble_is_timed_from_when_it_was_first_seen_and_forgotten_on_recovery() {
        let mut history = NodeHistory::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(history.observe("n1", NodeHealth::NodeNotReady, at(100)).as_secs(), 0);
        assert_eq!(history.observe("n1", NodeHealth::NodeNotReady, at(140)).as_secs(), 40);
        assert_eq!(history.observe("n1", NodeHealth::NodeMissing, at(170)).as_secs(), 70);
        assert_eq!(history.observe("n1", NodeHealth::AgentNotReady, at(180)).as_secs(), 0);
        assert_eq!(history.observe("n1", NodeHealth::Healthy, at(190)).as_secs(), 0);
        assert_eq!(history.observe("n1", NodeHealth::NodeMissing, at(200)).as_secs(), 0);
    }
}
