//! The directory of agents: the ready endpoints of their Service, with the node of each.

use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, ListParams};

/// The address of an agent, with the node whose certificate it must hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AgentAddress {
    /// Name of the node that the agent runs on.
    pub(crate) node: String,
    /// IP address and port that the agent listens on.
    pub(crate) address: SocketAddr,
}

/// Looks up the agents in the EndpointSlices of their Service.
pub(crate) struct Directory {
    slices: Api<EndpointSlice>,
    service: String,
}

impl Directory {
    /// A directory of the agents behind the Service `service` in `namespace`.
    pub(crate) fn new(client: Client, namespace: &str, service: String) -> Self {
        Self {
            slices: Api::namespaced(client, namespace),
            service,
        }
    }

    /// Lists the agents that are ready now. The error is that of the call of the API server.
    pub(crate) async fn agents(&self) -> kube::Result<Vec<AgentAddress>> {
        let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={}", self.service));
        let slices = self.slices.list(&of_service).await?;
        Ok(slices.items.iter().flat_map(agents_of).collect())
    }
}

fn agents_of(slice: &EndpointSlice) -> Vec<AgentAddress> {
    let ports = slice.ports.as_deref().unwrap_or_default();
    let port = ports.iter().find(|port| port.name.as_deref() == Some("https"));
    let Some(port) = port.and_then(|port| u16::try_from(port.port?).ok()) else {
        return Vec::new();
    };
    let ready = slice.endpoints.iter().filter(|endpoint| {
        let conditions = endpoint.conditions.as_ref();
        conditions.and_then(|conditions| conditions.ready) != Some(false)
    });
    let addresses = ready.filter_map(|endpoint| {
        let address: IpAddr = endpoint.addresses.first()?.parse().ok()?;
        Some(AgentAddress {
            node: endpoint.node_name.clone()?,
            address: SocketAddr::new(address, port),
        })
    });
    addresses.collect()
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Directory")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_test_harness::ApiServer;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn agents_are_those_of_the_service_in_its_namespace() {
        let server = ApiServer::new();
        for (namespace, service) in [("flopwatch", "agents"), ("flopwatch", "others"), ("team", "agents")] {
            server.put(&json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"namespace": namespace, "name": service, "labels": {"kubernetes.io/service-name": service}},
                "addressType": "IPv4", "ports": [{"name": "https", "port": 8443}],
                "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": format!("{namespace}-{service}")}]
            }));
        }
        let directory = Directory::new(server.client("default"), "flopwatch", "agents".to_owned());
        let agents = directory.agents().await.unwrap();
        let nodes: Vec<&str> = agents.iter().map(|agent| agent.node.as_str()).collect();
        assert_eq!(nodes, ["flopwatch-agents"]);
    }

    #[test]
    fn endpoints_that_are_ready_are_agents_of_their_nodes() {
        let slice = json!({
            "addressType": "IPv4", "ports": [{"name": "other", "port": 1}, {"name": "https", "port": 8443}],
            "endpoints": [
                {"addresses": ["10.0.0.1"], "nodeName": "a", "conditions": {"ready": true}},
                {"addresses": ["10.0.0.2"], "nodeName": "b", "conditions": {"ready": false}},
                {"addresses": ["10.0.0.3"], "conditions": {}},
                {"addresses": ["10.0.0.4"], "nodeName": "d"}
            ]
        });
        let mut slice: EndpointSlice = serde_json::from_value(slice).unwrap();
        let found: Vec<String> = agents_of(&slice)
            .iter()
            .map(|one| format!("{} {}", one.node, one.address))
            .collect();
        assert_eq!(found, ["a 10.0.0.1:8443", "d 10.0.0.4:8443"]);
        slice.ports = None;
        assert!(agents_of(&slice).is_empty());
    }
}
