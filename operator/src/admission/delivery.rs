//! How launcher and tools come into a pod: copied by init containers, or, where the whole cluster
//! mounts images, as volumes.
//!
//! A pod whose node cannot mount an image does not start, and one that an API server without them
//! is asked for is not even created. So images are mounted only where both are known: the API
//! server by what it answers to a dry run, the nodes by the versions that they tell. Nothing of it
//! is asked while a pod is reviewed.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use flopwatch_api::pod::asks_for_gpu;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, NodeSelectorTerm, NodeSpec, NodeStatus, NodeSystemInfo, Pod, PodTemplate};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::admission::prepare::Delivery;
use crate::deadline::bounded;
use crate::metrics::Metrics;
use crate::watch::follow;

/// How long what the API server answered is believed, and how soon it is asked again where it did
/// not answer.
const ANSWER_TTL: Duration = Duration::from_mins(10);
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Oldest kubelet that mounts images unless it is told otherwise.
const KUBELET: (u32, u32) = (1, 35);
/// Oldest containerd that mounts a folder of an image; older ones mount all of it in the folder's
/// place, or nothing.
const CONTAINERD: (u32, u32) = (2, 2);

/// What decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DeliveryMode {
    /// Images are mounted where the API server and every node are known to, and copied elsewhere.
    #[default]
    Auto,
    /// Init containers copy.
    Copy,
    /// Images are mounted: whoever says so knows the cluster.
    Mount,
}

/// What is known of the cluster.
pub(crate) struct Delivering {
    mode: DeliveryMode,
    nodes: Store<Node>,
    /// Whether the API server keeps volumes that are images.
    kept: Arc<AtomicBool>,
}

/// What never ends by itself.
type Discovery = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is known of the cluster, and the task that keeps it so. Before that has seen the cluster,
/// pods are copied into.
pub(crate) fn start(
    client: &Client,
    namespace: &str,
    mode: DeliveryMode,
    metrics: &Metrics,
) -> (Delivering, Discovery) {
    let (nodes, writer) = reflector::store::<Node>();
    let kept = Arc::new(AtomicBool::new(false));
    let delivering = Delivering {
        mode,
        nodes,
        kept: Arc::clone(&kept),
    };
    if mode != DeliveryMode::Auto {
        return (delivering, Box::pin(std::future::pending()));
    }
    let (api, config) = (Api::all(client.clone()), watcher::Config::default());
    let mut changes = follow(api, config, prune, writer, metrics.clone());
    let templates = Api::namespaced(client.clone(), namespace);
    let discovery = async move {
        let nodes = async { while changes.next().await.is_some() {} };
        let server = async {
            loop {
                let answer = keeps_images(&templates).await;
                if let Err(error) = &answer {
                    tracing::warn!(%error, "whether the API server keeps volumes of images is not known; tools are copied into pods");
                }
                let keeps = answer.as_ref().is_ok_and(|keeps| *keeps);
                if kept.swap(keeps, Ordering::Relaxed) != keeps {
                    tracing::info!(keeps, "the API server keeps volumes of images");
                }
                tokio::time::sleep(if answer.is_ok() { ANSWER_TTL } else { RETRY_INTERVAL }).await;
            }
        };
        tokio::select! {
            () = nodes => {}
            () = server => {}
        }
    };
    (delivering, Box::pin(discovery))
}

/// Whether the API server keeps a volume that is an image: one that does not know them, or is told
/// not to, drops it. A template runs nothing, and a dry run stores none.
async fn keeps_images(templates: &Api<PodTemplate>) -> Result<bool, crate::deadline::CallError> {
    let template = json!({
        "metadata": {"generateName": "flopwatch-images-"},
        "template": {"spec": {
            "containers": [{"name": "probe", "image": "probe", "volumeMounts": [{"name": "probe", "mountPath": "/probe", "subPath": "probe"}]}],
            "volumes": [{"name": "probe", "image": {"reference": "probe"}}]
        }}
    });
    let Ok(template) = serde_json::from_value(template) else {
        return Ok(false);
    };
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match bounded("asking for a volume of an image", templates.create(&dry, &template)).await {
        Ok(answer) => {
            let spec = answer.template.and_then(|template| template.spec);
            let mut volumes = spec.and_then(|spec| spec.volumes).into_iter().flatten();
            Ok(volumes.any(|volume| volume.image.is_some()))
        }
        // What is left of the volume once its image was dropped is none.
        Err(error) if error.refusal().is_some_and(|(code, _)| code == 422) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Delivering {
    /// Without a cluster: everything is copied.
    #[cfg(test)]
    pub(crate) fn copying() -> Self {
        Self {
            mode: DeliveryMode::Copy,
            nodes: reflector::store().0,
            kept: Arc::default(),
        }
    }

    /// How launcher and tools come into that pod.
    pub(crate) fn to(&self, pod: &Pod) -> Delivery {
        let mounts = match self.mode {
            DeliveryMode::Copy => false,
            DeliveryMode::Mount => true,
            DeliveryMode::Auto => {
                let nodes = self.nodes.state();
                let all = nodes.iter().all(|node| mounts_folders(node));
                self.kept.load(Ordering::Relaxed) && all && nodes_take(&nodes, pod)
            }
        };
        if mounts && is_plain(pod) {
            Delivery::Mount
        } else {
            Delivery::Copy
        }
    }
}

/// Whether the pod's containers are like the node's others: agents do not trust what one with users
/// of its own shows as mounted, and a sandbox of another kind may mount images otherwise.
fn is_plain(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| {
        let class = spec.runtime_class_name.as_deref().unwrap_or_default();
        spec.host_users != Some(false) && (class.is_empty() || class.starts_with("nvidia"))
    })
}

/// Whether the pod may run on a node that is there: where none is, one will be made for it, and
/// nobody knows with what.
fn nodes_take(nodes: &[Arc<Node>], pod: &Pod) -> bool {
    let Some(spec) = pod.spec.as_ref() else {
        return false;
    };
    let gpu = spec.containers.iter().any(asks_for_gpu);
    let selector = spec.node_selector.iter().flatten();
    let selector: Vec<(&String, &String)> = selector.collect();
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let terms = required.map(|required| &required.node_selector_terms);
    nodes.iter().any(|node| {
        let labels = node.labels();
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let mut resources = allocatable.into_iter().flat_map(|all| all.keys());
        selector.iter().all(|(key, value)| labels.get(*key) == Some(*value))
            && terms.is_none_or(|terms| terms.iter().any(|term| fulfils(labels, term)))
            && (!gpu || resources.any(|name| name.starts_with("nvidia.com/")))
    })
}

/// Whether labels are as a term of a node selector wants them. What compares numbers counts as not
/// fulfilled, which has tools copied.
fn fulfils(labels: &BTreeMap<String, String>, term: &NodeSelectorTerm) -> bool {
    term.match_expressions.iter().flatten().all(|wanted| {
        let value = labels.get(&wanted.key);
        let among = || value.is_some_and(|value| wanted.values.iter().flatten().any(|one| one == value));
        match wanted.operator.as_str() {
            "In" => among(),
            "NotIn" => !among(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    })
}

/// Whether a node mounts folders of images, by what it says of itself. Nodes of Windows get no
/// prepared pod.
fn mounts_folders(node: &Node) -> bool {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    info.is_some_and(|info| {
        info.operating_system == "windows"
            || version(&info.kubelet_version, "v").is_some_and(|kubelet| kubelet >= KUBELET)
                && version(&info.container_runtime_version, "containerd://")
                    .or_else(|| version(&info.container_runtime_version, "containerd://v"))
                    .is_some_and(|containerd| containerd >= CONTAINERD)
    })
}

/// The first two numbers of a version behind that prefix.
fn version(text: &str, prefix: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix(prefix)?.split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?;
    let end = minor.find(|letter: char| !letter.is_ascii_digit());
    let minor = end.map_or(Some(minor), |end| minor.get(..end))?;
    Some((major, minor.parse().ok()?))
}

/// What is read of a node.
fn prune(node: Node) -> Node {
    let status = node.status.unwrap_or_default();
    Node {
        metadata: ObjectMeta {
            name: node.metadata.name,
            labels: node.metadata.labels,
            resource_version: node.metadata.resource_version,
            ..ObjectMeta::default()
        },
        spec: None::<NodeSpec>,
        status: Some(NodeStatus {
            allocatable: status.allocatable,
            node_info: status.node_info.map(|info| NodeSystemInfo {
                kubelet_version: info.kubelet_version,
                container_runtime_version: info.container_runtime_version,
                operating_system: info.operating_system,
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }),
    }
}

#[cfg(test)]
mod tests;
