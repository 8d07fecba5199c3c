//! The manifest of a copy of a pod, for a session that profiles the copy instead of the original: a
//! pure function of the original's manifest.
//!
//! The copy requests the same GPUs and runs the same program with the same configuration. It does
//! not stand in for the original in the cluster: no Service, controller or disruption budget counts
//! it, no pod is evicted for it, and volumes that outlive the original are mounted read-only. A pod
//! is not copied where a copy could change or block the original: see [`ReplicaError`].

use flopwatch_api::preparation::{JAX_PORT_ANNOTATION, REPLICA_OF_ANNOTATION};
use flopwatch_api::reason::SessionReason;
use flopwatch_api::session::{PodTemplate, PodTemplateMetadata};
use flopwatch_api::{SESSION_LABEL, pod};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Map, Value, json};

use crate::admission::prepare::restore;
use crate::session::claims::{Access, Claims, MAX_CLAIMS};

/// Why a pod is not copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicaError {
    /// The namespace has no pod of that name, or not yet.
    #[error("there is no pod {name} in namespace {namespace}; a session copies pods of its own namespace only")]
    Absent {
        /// Name of the pod.
        name: String,
        /// Namespace of the session.
        namespace: String,
    },
    /// The pod of this name is being deleted.
    #[error("pod {0} is being deleted")]
    Deleted(String),
    /// The pod of this name was created by a session.
    #[error("pod {0} was made by a session: copy the pod that it was made of")]
    MadeBySession(String),
    /// The pod shares ports or processes with its node, which a copy would use too.
    #[error(
        "pod {name} has {field}: ports or processes of its node are its own, and a copy would meet them; profile it with spec.target.podName"
    )]
    SharesNode {
        /// Name of the pod.
        name: String,
        /// The field of the pod's specification, such as `hostNetwork`.
        field: &'static str,
    },
    /// The pod of this name names a resource claim, whose device a copy would share.
    #[error(
        "pod {0} has a resource claim by name, and a copy would share its device: give the pod a resourceClaimTemplateName"
    )]
    SharedClaim(String),
    /// A container of the pod has a raw block device, which cannot be mounted read-only.
    #[error("container {container} of pod {name} has raw block devices, which a copy could write to")]
    BlockDevice {
        /// Name of the pod.
        name: String,
        /// Name of the container.
        container: String,
    },
    /// The pod mounts a claim that only pods of one node may mount at a time.
    #[error(
        "pod {name} mounts claim {claim} ({modes}), which pods of one node may have at a time: while a copy holds it, \
         the pod cannot move to another node; profile it with spec.target.podName"
    )]
    ClaimOfOneNode {
        /// Name of the pod.
        name: String,
        /// Name of the PersistentVolumeClaim.
        claim: String,
        /// Access modes of the claim, joined by commas.
        modes: String,
    },
    /// The pod has a disk that only one node may attach at a time.
    #[error(
        "volume {volume} of pod {name} is a disk that one node may have at a time: while a copy holds it, the pod \
         cannot move to another node; profile it with spec.target.podName"
    )]
    DiskOfOneNode {
        /// Name of the pod.
        name: String,
        /// Name of the volume.
        volume: String,
    },
    /// The pod mounts a claim that the controller may not read.
    #[error(
        "the controller may not read claim {claim} of pod {name}, and a claim of one node cannot be copied: the \
         namespace's administrator binds ClusterRole flopwatch-pod-templates there"
    )]
    ClaimUnread {
        /// Name of the pod.
        name: String,
        /// Name of the PersistentVolumeClaim.
        claim: String,
    },
    /// The pod mounts more claims than the controller reads for one copy, which is 32.
    #[error("pod {name} mounts {claims} claims; a pod with more than {MAX_CLAIMS} is not copied")]
    TooManyClaims {
        /// Name of the pod.
        name: String,
        /// Number of claims that the pod mounts.
        claims: usize,
    },
    /// The specification of the pod of this name cannot be read.
    #[error("the manifest of pod {0} cannot be read")]
    Unreadable(String),
}

impl ReplicaError {
    /// The reason that a session waits with until it tries to copy the pod again; None where trying
    /// again cannot help.
    pub const fn waiting_reason(&self) -> Option<SessionReason> {
        match self {
            Self::Absent { .. } => Some(SessionReason::WaitingForTargets),
            Self::ClaimUnread { .. } => Some(SessionReason::PodsNotAllowed),
            _ => None,
        }
    }
}

/// Fields of a pod's specification that place it in the cluster, or that count on its being the
/// only one.
const PLACEMENT_FIELDS: [&str; 13] = [
    "nodeName",
    "hostname",
    "subdomain",
    "setHostnameAsFQDN",
    "ephemeralContainers",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "topologySpreadConstraints",
    "schedulingGates",
    "readinessGates",
    "restartPolicy",
    "activeDeadlineSeconds",
];
/// Fields of a container by which others reach it, or by which the kubelet ends it when it is slow.
const PORT_AND_PROBE_FIELDS: [&str; 5] = ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];
/// Affinities to other pods, by labels of theirs.
const POD_AFFINITIES: [&str; 2] = ["podAffinity", "podAntiAffinity"];
/// Fields of a pod's specification by which it uses its node's own network or processes.
const HOST_NAMESPACE_FIELDS: [&str; 3] = ["hostNetwork", "hostPID", "hostIPC"];
/// Kinds of volumes that belong to the pod alone, or that pods cannot write to.
const POD_OWNED_VOLUME_KINDS: [&str; 8] = [
    "emptyDir",
    "configMap",
    "secret",
    "projected",
    "downwardAPI",
    "ephemeral",
    "image",
    "gitRepo",
];
/// Kinds of volumes that are disks, which one node may attach at a time.
const DISK_VOLUME_KINDS: [&str; 5] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cinder",
    "gcePersistentDisk",
    "vsphereVolume",
];
/// Prefix of the volumes with the token of the pod's service account, which admission adds to every
/// pod.
const TOKEN_VOLUME_PREFIX: &str = "kube-api-access-";
/// Fields of a pod's specification that list its containers, in the order in which they start.
const CONTAINER_LISTS: [&str; 2] = ["initContainers", "containers"];

/// Names of the PersistentVolumeClaims that a pod mounts, in the order of its volumes.
pub fn claims_of(source: &DynamicObject) -> Vec<String> {
    let spec = source.data.get("spec").and_then(Value::as_object);
    let volumes = spec.into_iter().flat_map(|spec| list(spec, "volumes"));
    let claims = volumes.filter_map(|volume| volume.get("persistentVolumeClaim")?.get("claimName")?.as_str());
    claims.map(str::to_owned).collect()
}

/// The template of a copy of `source`, the pod `name` of `namespace` as the API server has it now.
/// `claims` are the access modes of the claims that the pod mounts, by name.
pub fn of(
    name: &str,
    namespace: &str,
    source: Option<&DynamicObject>,
    claims: &Claims,
) -> Result<PodTemplate, ReplicaError> {
    let source = source.ok_or_else(|| ReplicaError::Absent {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
    })?;
    if source.metadata.deletion_timestamp.is_some() {
        return Err(ReplicaError::Deleted(name.to_owned()));
    }
    if source.labels().contains_key(SESSION_LABEL) {
        return Err(ReplicaError::MadeBySession(name.to_owned()));
    }
    let unreadable = || ReplicaError::Unreadable(name.to_owned());
    let typed: Pod = source.clone().try_parse().map_err(|_error| unreadable())?;
    let mut spec = source
        .data
        .get("spec")
        .and_then(Value::as_object)
        .cloned()
        .ok_or_else(unreadable)?;
    refuse_shared_state(name, &spec)?;
    refuse_exclusive_volumes(name, &spec, &claims_of(source), claims)?;
    restore::restore(&mut spec);
    for field in PLACEMENT_FIELDS {
        spec.remove(field);
    }
    if let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) {
        affinity.retain(|key, _| !POD_AFFINITIES.contains(&key.as_str()));
    }
    let (tokens, outliving) = classify(&spec);
    remove_named(&mut spec, "volumes", |name| tokens.iter().any(|token| token == name));
    for container in containers(&mut spec) {
        for field in PORT_AND_PROBE_FIELDS {
            container.remove(field);
        }
        remove_named(container, "volumeMounts", |name| {
            tokens.iter().any(|token| token == name)
        });
        read_only(container, &outliving);
    }
    let uid = source.uid().unwrap_or_default();
    let mut annotations = PodTemplateMetadata::default().annotations;
    annotations.insert(REPLICA_OF_ANNOTATION.to_owned(), format!("{name}/{uid}"));
    if let Some(port) = pod::annotation(&typed, JAX_PORT_ANNOTATION) {
        annotations.insert(JAX_PORT_ANNOTATION.to_owned(), port.to_owned());
    }
    let metadata = PodTemplateMetadata {
        annotations,
        ..PodTemplateMetadata::default()
    };
    Ok(PodTemplate {
        metadata: Some(metadata),
        spec,
    })
}

/// Refuses a pod whose copy would use ports, processes, devices or disks of the original.
fn refuse_shared_state(name: &str, spec: &Map<String, Value>) -> Result<(), ReplicaError> {
    let name = || name.to_owned();
    if let Some(field) = HOST_NAMESPACE_FIELDS
        .into_iter()
        .find(|field| spec.get(*field) == Some(&json!(true)))
    {
        return Err(ReplicaError::SharesNode { name: name(), field });
    }
    let mut claims = list(spec, "resourceClaims");
    if claims.any(|claim| claim.contains_key("resourceClaimName")) {
        return Err(ReplicaError::SharedClaim(name()));
    }
    for container in CONTAINER_LISTS.iter().flat_map(|key| list(spec, key)) {
        if list(container, "volumeDevices").next().is_some() {
            return Err(ReplicaError::BlockDevice {
                name: name(),
                container: text(container, "name").to_owned(),
            });
        }
    }
    Ok(())
}

/// Refuses a pod with volumes that a copy would keep from being attached to another node.
fn refuse_exclusive_volumes(
    name: &str,
    spec: &Map<String, Value>,
    mounted: &[String],
    claims: &Claims,
) -> Result<(), ReplicaError> {
    let name = || name.to_owned();
    let is_disk = |volume: &&Map<String, Value>| DISK_VOLUME_KINDS.iter().any(|kind| volume.contains_key(*kind));
    if let Some(volume) = list(spec, "volumes").find(is_disk) {
        let volume = text(volume, "name").to_owned();
        return Err(ReplicaError::DiskOfOneNode { name: name(), volume });
    }
    if mounted.len() > MAX_CLAIMS {
        let claims = mounted.len();
        return Err(ReplicaError::TooManyClaims { name: name(), claims });
    }
    for claim in mounted {
        let (name, claim) = (name(), claim.clone());
        match claims.get(&claim) {
            Some(Access::OneNode { modes }) => {
                let modes = modes.clone();
                return Err(ReplicaError::ClaimOfOneNode { name, claim, modes });
            }
            Some(Access::Unread) => return Err(ReplicaError::ClaimUnread { name, claim }),
            Some(Access::ManyNodes) | None => {}
        }
    }
    Ok(())
}

/// Names of the volumes with the service account's token, and of the volumes that outlive the pod.
fn classify(spec: &Map<String, Value>) -> (Vec<String>, Vec<String>) {
    let (mut tokens, mut outliving) = (Vec::new(), Vec::new());
    for volume in list(spec, "volumes") {
        let name = text(volume, "name");
        let is_own = POD_OWNED_VOLUME_KINDS.iter().any(|kind| volume.contains_key(*kind));
        if name.starts_with(TOKEN_VOLUME_PREFIX) && volume.contains_key("projected") {
            tokens.push(name.to_owned());
        } else if !is_own {
            outliving.push(name.to_owned());
        }
    }
    (tokens, outliving)
}

/// Makes a container's mounts of the named volumes read-only.
fn read_only(container: &mut Map<String, Value>, volumes: &[String]) {
    let mounts = container.get_mut("volumeMounts").and_then(Value::as_array_mut);
    for mount in mounts.into_iter().flatten().filter_map(Value::as_object_mut) {
        if volumes.iter().any(|name| name == text(mount, "name")) {
            mount.insert("readOnly".to_owned(), json!(true));
            // A mount that is made within it would reach the node.
            mount.remove("mountPropagation");
        }
    }
}

fn containers(spec: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let lists = spec
        .iter_mut()
        .filter(|(key, _)| CONTAINER_LISTS.contains(&key.as_str()))
        .filter_map(|(_, list)| list.as_array_mut());
    lists.flatten().filter_map(Value::as_object_mut)
}

fn list<'a>(of: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Map<String, Value>> {
    let items = of.get(key).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_object)
}

fn text<'a>(of: &'a Map<String, Value>, key: &str) -> &'a str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Removes the items of a list for whose name `matches` is true, and the list where none is left.
fn remove_named(of: &mut Map<String, Value>, key: &str, matches: impl Fn(&str) -> bool) {
    restore::retain(of, key, |item| !matches(text(item, "name")));
}

#[cfg(test)]
mod tests;
