//! Nodes and pods as the API server has them, with no machine behind.

use anyhow::{Context as _, Result, ensure};
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, eventually};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Calls at once.
const MAX_CONCURRENT_CALLS: usize = 32;
/// What all of it is labelled with, and nodes are tainted with.
const MARK: &str = "flopwatch.test/simulated";
/// Sessions of a namespace.
const SESSIONS_EACH: usize = 10;
/// Time between two words of a node that it is alive: as the kubelet. The local cluster gives one
/// up after 15 s.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// As many sessions as nodes; each session's pods are on nodes of their own.
pub(crate) struct Machines {
    pub(crate) client: Client,
    pub(crate) nodes: usize,
    /// Pods of a node, and of a session.
    pub(crate) pods_each: usize,
}

/// A node's name.
pub(crate) fn node(number: usize) -> String {
    format!("simulated-{number:05}")
}

/// The namespace of a session.
pub(crate) fn namespace_of(session: usize) -> String {
    format!("fleet-{:03}", session / SESSIONS_EACH)
}

/// The name of a session, which is a label of its pods too.
pub(crate) fn session(number: usize) -> String {
    format!("run-{number:05}")
}

impl Machines {
    /// Makes the nodes, an agent's pod on each, and as many more pods as are to run on each.
    pub(crate) async fn create(cluster: &Cluster, nodes: usize, pods_each: usize) -> Result<Self> {
        let machines = Self {
            client: cluster.client.clone(),
            nodes,
            pods_each,
        };
        // Nobody may take the agents' pods over: the DaemonSet would end those of nodes that it is
        // not for.
        let owner: ConfigMap = machines
            .namespaced(chart::NAMESPACE)
            .create(
                &PostParams::default(),
                &object(json!({ "metadata": { "name": "simulated-agents", "labels": { MARK: "true" } } }))?,
            )
            .await?;
        let owner = owner.uid().context("an object without UID")?;
        each(0..nodes, |number| machines.add_node(number)).await?;
        each(0..nodes, |number| machines.add_agent(number, &owner)).await?;
        each(0..nodes.div_ceil(SESSIONS_EACH), |number| {
            machines.add_namespace(number * SESSIONS_EACH)
        })
        .await?;
        each(0..nodes * pods_each, |number| machines.add_pod(number)).await?;
        Ok(machines)
    }

    fn namespaced<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn add_node(&self, number: usize) -> Result<()> {
        let name = node(number);
        let nodes: Api<Node> = Api::all(self.client.clone());
        create(
            &nodes,
            json!({
                "metadata": { "name": name, "labels": { MARK: "true", "kubernetes.io/os": "simulated" } },
                "spec": { "taints": [{ "key": MARK, "effect": "NoSchedule" }] }
            }),
        )
        .await?;
        alive(&leases(&self.client), &name).await?;
        ready(&nodes, number).await
    }

    async fn add_agent(&self, number: usize, owner: &str) -> Result<()> {
        let labels = json!({
            "app.kubernetes.io/name": "flopwatch", "app.kubernetes.io/instance": "flopwatch",
            "app.kubernetes.io/component": "agent", MARK: "true"
        });
        let owner = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "simulated-agents", "uid": owner, "controller": true
        }]);
        let name = format!("agent-of-{}", node(number));
        let metadata = json!({ "name": name, "labels": labels, "ownerReferences": owner });
        self.run_pod(chart::NAMESPACE, metadata, number).await
    }

    async fn add_namespace(&self, session: usize) -> Result<()> {
        let name = namespace_of(session);
        create(
            &Api::<Namespace>::all(self.client.clone()),
            json!({ "metadata": { "name": name, "labels": { MARK: "true" } } }),
        )
        .await?;
        let accounts = self.namespaced::<ServiceAccount>(&name);
        eventually(&format!("the default service account of {name}"), || async {
            Ok(accounts.get_opt("default").await?)
        })
        .await
        .map(drop)
    }

    /// The pods of a session are on neighbours, so that those of a node are of different sessions.
    async fn add_pod(&self, number: usize) -> Result<()> {
        let (run, place) = (number / self.pods_each, number % self.pods_each);
        let metadata = json!({
            "name": format!("{}-{place}", session(run)), "labels": { "run": session(run), MARK: "true" }
        });
        self.run_pod(&namespace_of(run), metadata, (run + place) % self.nodes)
            .await
    }

    async fn run_pod(&self, namespace: &str, metadata: Value, node_number: usize) -> Result<()> {
        let pods = self.namespaced::<Pod>(namespace);
        let image = "localhost/simulated:dev";
        let pod = json!({
            "metadata": metadata,
            "spec": {
                "nodeName": node(node_number), "automountServiceAccountToken": false,
                "tolerations": [{ "operator": "Exists" }],
                "containers": [{ "name": "main", "image": image, "command": ["python", "train.py"],
                    "resources": { "limits": { "nvidia.com/gpu": "1" } }
                }]
            }
        });
        let made = create(&pods, pod).await?;
        let now = Timestamp::now();
        let status = json!({ "status": {
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now }],
            "containerStatuses": [{
                "name": "main", "image": image, "imageID": "", "ready": true, "restartCount": 0,
                "containerID": format!("containerd://{}", made.uid().unwrap_or_default()),
                "state": { "running": { "startedAt": now } }
            }]
        } });
        pods.patch_status(&made.name_any(), &PatchParams::default(), &Patch::Merge(&status))
            .await?;
        Ok(())
    }

    /// Says that the nodes are alive, until told to stop; and that they are ready, where that was
    /// not heard for a while.
    pub(crate) async fn live(client: Client, nodes: usize, stop: CancellationToken) {
        let (leases, all) = (leases(&client), Api::<Node>::all(client));
        let unheard = AtomicBool::new(false);
        let mut last = Instant::now();
        loop {
            // The cluster has taken a node for lost that was late, too.
            let again =
                unheard.swap(false, Ordering::Relaxed) || last.elapsed() > HEARTBEAT_INTERVAL + HEARTBEAT_INTERVAL / 4;
            last = Instant::now();
            let renew = |number: usize| {
                let (leases, all, unheard, name) = (&leases, &all, &unheard, node(number));
                async move {
                    let renewed = alive(leases, &name).await.is_ok();
                    if !renewed || again && ready(all, number).await.is_err() {
                        unheard.store(true, Ordering::Relaxed);
                    }
                }
            };
            stream::iter(0..nodes)
                .for_each_concurrent(MAX_CONCURRENT_CALLS, renew)
                .await;
            if stop
                .run_until_cancelled(tokio::time::sleep(HEARTBEAT_INTERVAL))
                .await
                .is_none()
            {
                return;
            }
        }
    }

    /// Removes all of it, and what a run that was cut off left. Safe to run twice.
    pub(crate) async fn delete(client: &Client) -> Result<()> {
        let marked = ListParams::default().labels(MARK);
        let now = DeleteParams::default().grace_period(0);
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let found = namespaces.list_metadata(&marked).await?;
        let names = found
            .iter()
            .map(kube::ResourceExt::name_any)
            .chain([chart::NAMESPACE.to_owned()]);
        for name in names {
            // No kubelet would end them.
            Api::<Pod>::namespaced(client.clone(), &name)
                .delete_collection(&now, &marked)
                .await?;
        }
        for namespace in &found.items {
            namespaces
                .delete(&namespace.name_any(), &DeleteParams::default())
                .await?;
        }
        let nodes: Api<Node> = Api::all(client.clone());
        nodes.delete_collection(&now, &marked).await?;
        leases(client).delete_collection(&now, &marked).await?;
        Api::<ConfigMap>::namespaced(client.clone(), chart::NAMESPACE)
            .delete_collection(&now, &marked)
            .await?;
        let begin = Instant::now();
        while !namespaces.list_metadata(&marked).await?.items.is_empty() {
            ensure!(
                begin.elapsed() < super::RUN_TIMEOUT,
                "simulated namespaces are not gone after {:?}",
                super::RUN_TIMEOUT
            );
            tokio::time::sleep(super::POLL_INTERVAL).await;
        }
        Ok(())
    }
}

fn leases(client: &Client) -> Api<Lease> {
    Api::namespaced(client.clone(), "kube-node-lease")
}

/// Says that a node is alive, as its kubelet does.
async fn alive(leases: &Api<Lease>, node: &str) -> Result<()> {
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(node.to_owned()),
            labels: Some([(MARK.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(node.to_owned()),
            lease_duration_seconds: Some(40),
            // The API server takes microseconds and nothing finer.
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    };
    let params = PatchParams::apply("simulated").force();
    leases.patch(node, &params, &Patch::Apply(lease)).await?;
    Ok(())
}

/// Says that a node is ready, as its kubelet does.
async fn ready(nodes: &Api<Node>, number: usize) -> Result<()> {
    let now = Timestamp::now();
    let status = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
        "lastHeartbeatTime": now, "lastTransitionTime": now
    }] } });
    nodes
        .patch_status(&node(number), &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    Ok(())
}

fn object<K: DeserializeOwned>(value: Value) -> Result<K> {
    Ok(serde_json::from_value(value)?)
}

async fn create<K>(api: &Api<K>, value: Value) -> Result<K>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    Ok(api.create(&PostParams::default(), &object(value)?).await?)
}

/// Does it for each number, some at a time.
pub(crate) async fn each<F, Fut>(numbers: std::ops::Range<usize>, act: F) -> Result<()>
where
    F: Fn(usize) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let calls = stream::iter(numbers.map(Ok::<_, anyhow::Error>));
    calls.try_for_each_concurrent(MAX_CONCURRENT_CALLS, act).await
}
