//! A node's token in other hands: Events in the name of others.

use anyhow::{Result, bail, ensure};
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, client_with, dry_run};
use flopwatch_system_tests::fetch::token;
use k8s_openapi::api::events::v1::Event;
use kube::api::Api;
use serde_json::json;

/// What an Event says of who tells it, and of what.
#[derive(Clone, Copy)]
struct Told<'a> {
    controller: &'a str,
    node: &'a str,
    reason: &'a str,
    kind: &'a str,
}

impl Told<'_> {
    fn event(&self, namespace: &str) -> Result<Event> {
        Ok(serde_json::from_value(json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "told", "namespace": namespace },
            "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Record", "type": "Normal", "note": "said",
            "reason": self.reason, "reportingController": self.controller, "reportingInstance": self.node,
            "regarding": { "apiVersion": "v1", "kind": self.kind, "name": "trainer", "namespace": namespace }
        }))?)
    }
}

#[tokio::test]
async fn an_agents_token_tells_one_kind_of_event_and_in_the_name_of_its_own_node() -> Result<()> {
    let Some((cluster, [own, other])) = Cluster::with_two_nodes(Group::Hostile).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("told").await?;
    let bound = client_with(&cluster.agent_token(&own).await?).await?;
    let unbound = client_with(&token(chart::NAMESPACE, "flopwatch-agent").await?).await?;
    let honest = Told {
        controller: "flopwatch-agent",
        node: &own,
        reason: "RecordingKept",
        kind: "Pod",
    };
    let elsewhere = Told { node: &other, ..honest };
    let controller = "flopwatch.dev/controller";
    let as_controller = Told { controller, ..honest };
    let (reason, kind) = ("OOMKilling", "Service");
    let (of_memory, of_service) = (Told { reason, ..honest }, Told { kind, ..honest });
    let alone = Some("in the name of flopwatch-agent there alone");
    let about = Some("the Event RecordingKept about a pod");
    let rows = [
        (&bound, honest, None),
        (&bound, elsewhere, alone),
        (&bound, as_controller, alone),
        (&bound, of_memory, about),
        (&bound, of_service, about),
        (&unbound, honest, Some("not bound to a node")),
    ];
    for (client, told, refusal) in rows {
        let events: Api<Event> = Api::namespaced(client.clone(), &namespace.name);
        let event = told.event(&namespace.name)?;
        match (events.create(&dry_run(), &event).await, refusal) {
            (Ok(_), None) => {}
            (Ok(_), Some(refusal)) => bail!("told, and not refused as {refusal}: {event:?}"),
            (Err(error), None) => bail!("the agent's own Event is refused: {error}"),
            (Err(error), Some(refusal)) => ensure!(error.to_string().contains(refusal), "{error}"),
        }
    }
    namespace.delete().await
}
