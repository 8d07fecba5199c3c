//! A copy of a pod, for a session that profiles the copy in the original's place: a function of the original's manifest.
//!
//! The copy asks for the same GPUs and runs the same program with the same configuration. It takes nothing of the original's
//! place in the cluster: no Service, controller or disruption budget counts it, nobody is evicted for it, and what outlives the
//! original is mounted so that it can be read alone.

use flopwatch_api::preparation::{JAX_PORT_ANNOTATION, REPLICA_OF_ANNOTATION};
use flopwatch_api::session::{PodTemplate, PodTemplateMetadata};
use flopwatch_api::{SESSION_LABEL, pod};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::core::DynamicObject;
use serde_json::{Map, Value, json};

use crate::admission::prepare::restore;

/// Why a pod is not copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicaError {
    /// There is no pod of that name yet.
    #[error("there is no pod {name} in namespace {namespace}; a session copies pods of its own namespace only")]
    Absent {
        /// Its name.
        name: String,
        /// The session's namespace.
        namespace: String,
    },
    /// It is being deleted.
    #[error("pod {0} is being deleted")]
    Deleted(String),
    /// A session made it.
    #[error("pod {0} was made by a session: copy the pod that it was made of")]
    MadeBySession(String),
    /// It shares something of its node, which a second one of it would take hold of too.
    #[error(
        "pod {name} has {field}: ports or processes of its node are its own, and a copy would meet them; profile it with spec.target.podName"
    )]
    SharesNode {
        /// Its name.
        name: String,
        /// The field of its specification.
        field: &'static str,
    },
    /// It has a resource claim by its name, which the copy would share.
    #[error(
        "pod {0} has a resource claim by name, and a copy would share its device: give the pod a resourceClaimTemplateName"
    )]
    SharedClaim(String),
    /// It has a raw block device, which cannot be kept from writing.
    #[error("container {container} of pod {name} has raw block devices, which a copy could write to")]
    BlockDevice {
        /// Its name.
        name: String,
        /// The container.
        container: String,
    },
    /// It has no specification that could be read.
    #[error("the manifest of pod {0} cannot be read")]
    Unreadable(String),
}

impl ReplicaError {
    /// Whether trying again may help.
    pub const fn may_help(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}

/// Fields of a pod's specification that place it in the cluster, or that count on its being the only one.
const PLACE: [&str; 13] = [
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
/// Fields of a container that others reach it by, or that end it when it is slow.
const REACHED_BY: [&str; 5] = ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];
/// Affinities to other pods, by labels of theirs.
const POD_AFFINITIES: [&str; 2] = ["podAffinity", "podAntiAffinity"];
/// What a copy would share with its original.
const OF_NODE: [&str; 3] = ["hostNetwork", "hostPID", "hostIPC"];
/// Volumes that are the pod's own, or that nobody writes to.
const OWN_VOLUMES: [&str; 8] = [
    "emptyDir",
    "configMap",
    "secret",
    "projected",
    "downwardAPI",
    "ephemeral",
    "image",
    "gitRepo",
];
/// Prefix of the volumes with the token of the pod's service account, which admission adds to every pod.
const TOKEN_VOLUME_PREFIX: &str = "kube-api-access-";
/// Lists of containers that run, in their order.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// The copy of `source`, the pod `name` of `namespace` as the API server has it now.
pub fn of(name: &str, namespace: &str, source: Option<&DynamicObject>) -> Result<PodTemplate, ReplicaError> {
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
    refuse(name, &spec)?;
    restore::restore(&mut spec);
    for field in PLACE {
        spec.remove(field);
    }
    if let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) {
        affinity.retain(|key, _| !POD_AFFINITIES.contains(&key.as_str()));
    }
    let (tokens, outliving) = classify(&spec);
    remove_named(&mut spec, "volumes", |name| tokens.iter().any(|token| token == name));
    for container in containers(&mut spec) {
        for field in REACHED_BY {
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

/// What cannot be copied without taking something of the original's.
fn refuse(name: &str, spec: &Map<String, Value>) -> Result<(), ReplicaError> {
    let name = || name.to_owned();
    if let Some(field) = OF_NODE.into_iter().find(|field| spec.get(*field) == Some(&json!(true))) {
        return Err(ReplicaError::SharesNode { name: name(), field });
    }
    let mut claims = list(spec, "resourceClaims");
    if claims.any(|claim| claim.contains_key("resourceClaimName")) {
        return Err(ReplicaError::SharedClaim(name()));
    }
    for container in CONTAINERS.iter().flat_map(|key| list(spec, key)) {
        if list(container, "volumeDevices").next().is_some() {
            return Err(ReplicaError::BlockDevice {
                name: name(),
                container: text(container, "name").to_owned(),
            });
        }
    }
    Ok(())
}

/// Names of the volumes with the account's token, and of those that outlive the pod.
fn classify(spec: &Map<String, Value>) -> (Vec<String>, Vec<String>) {
    let (mut tokens, mut outliving) = (Vec::new(), Vec::new());
    for volume in list(spec, "volumes") {
        let name = text(volume, "name");
        let is_own = OWN_VOLUMES.iter().any(|kind| volume.contains_key(*kind));
        if name.starts_with(TOKEN_VOLUME_PREFIX) && volume.contains_key("projected") {
            tokens.push(name.to_owned());
        } else if !is_own {
            outliving.push(name.to_owned());
        }
    }
    (tokens, outliving)
}

/// Lets a container read the volumes of those names and no more.
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
        .filter(|(key, _)| CONTAINERS.contains(&key.as_str()))
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

/// Takes the items with such names out of a list, and the list where none is left.
fn remove_named(of: &mut Map<String, Value>, key: &str, goes: impl Fn(&str) -> bool) {
    restore::retain(of, key, |item| !goes(text(item, "name")));
}

#[cfg(test)]
mod tests {
    use flopwatch_api::preparation::{PREPARE_LABEL, PREPARED_ANNOTATION};

    use super::*;

    fn source(metadata: &Value, spec: &Value) -> DynamicObject {
        let mut full = json!({"name": "train", "namespace": "team", "uid": "u-1"});
        json_patch::merge(&mut full, metadata);
        serde_json::from_value(json!({"metadata": full, "spec": spec, "status": {"phase": "Running"}})).unwrap()
    }

    fn copied(metadata: &Value, spec: &Value) -> Result<Value, ReplicaError> {
        of("train", "team", Some(&source(metadata, spec))).map(|copy| json!(copy))
    }

    #[test]
    fn a_copy_runs_the_same_and_takes_nothing_of_the_originals_place() {
        let spec = json!({
            "nodeName": "n1", "hostname": "train-0", "subdomain": "train", "priority": 1000, "priorityClassName": "high",
            "preemptionPolicy": "PreemptLowerPriority", "restartPolicy": "Always", "serviceAccountName": "trainer",
            "nodeSelector": {"gpu": "h100"}, "tolerations": [{"key": "gpu"}], "fieldOfTomorrow": 1,
            "topologySpreadConstraints": [{"maxSkew": 1}],
            "affinity": {"nodeAffinity": {"a": 1}, "podAntiAffinity": {"b": 2}},
            "containers": [{
                "name": "main", "image": "train:1", "command": ["python", "train.py"], "env": [{"name": "A", "value": "1"}],
                "resources": {"limits": {"nvidia.com/gpu": "2"}}, "ports": [{"containerPort": 80, "hostPort": 80}],
                "livenessProbe": {"tcpSocket": {"port": 80}}, "readinessProbe": {}, "startupProbe": {}, "lifecycle": {"preStop": {}}
            }]
        });
        let labels = json!({"labels": {"app": "train"}, "annotations": {"a": "b", "flopwatch.dev/jax-port": "9012"}});
        let copy = copied(&labels, &spec).unwrap();
        assert_eq!(
            copy,
            json!({
                "metadata": {"annotations": {
                    "flopwatch.dev/replica-of": "train/u-1", "flopwatch.dev/jax-port": "9012"
                }},
                "spec": {
                    "serviceAccountName": "trainer", "nodeSelector": {"gpu": "h100"}, "tolerations": [{"key": "gpu"}],
                    "fieldOfTomorrow": 1, "affinity": {"nodeAffinity": {"a": 1}},
                    "containers": [{
                        "name": "main", "image": "train:1", "command": ["python", "train.py"],
                        "env": [{"name": "A", "value": "1"}], "resources": {"limits": {"nvidia.com/gpu": "2"}}
                    }]
                }
            })
        );
    }

    #[test]
    fn what_outlives_the_original_can_be_read_and_the_accounts_token_is_given_anew() {
        let mount = |name: &str| json!({"name": name, "mountPath": format!("/{name}")});
        let mut shared = mount("checkpoints");
        shared["mountPropagation"] = json!("Bidirectional");
        let token = "kube-api-access-x7k2p";
        let spec = json!({
            "volumes": [
                {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "data", "hostPath": {"path": "/data"}},
                {"name": "lustre", "csi": {"driver": "lustre"}},
                {"name": "scratch", "emptyDir": {}},
                {"name": "work", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": token, "projected": {"sources": []}}
            ],
            "initContainers": [{"name": "fetch", "volumeMounts": [mount("data")]}],
            "containers": [{
                "name": "main",
                "volumeMounts": [shared, mount("lustre"), mount("scratch"), mount("work"), mount(token)]
            }]
        });
        let copy = copied(&json!({}), &spec).unwrap();
        let mounts = &copy["spec"]["containers"][0]["volumeMounts"];
        let of = |name: &str| mounts.as_array().unwrap().iter().find(|mount| mount["name"] == name);
        for name in ["checkpoints", "lustre"] {
            assert_eq!(of(name).unwrap()["readOnly"], true, "{name}");
        }
        for name in ["scratch", "work"] {
            assert_eq!(of(name).unwrap().get("readOnly"), None, "{name}");
        }
        assert_eq!(of("checkpoints").unwrap().get("mountPropagation"), None);
        assert_eq!(of(token), None);
        assert_eq!(copy["spec"]["initContainers"][0]["volumeMounts"][0]["readOnly"], true);
        assert_eq!(
            copy["spec"]["volumes"].as_array().unwrap().len(),
            5,
            "all but the token"
        );
    }

    #[test]
    fn a_prepared_pod_is_copied_as_it_was_before_its_preparation() {
        let metadata = json!({"labels": {PREPARE_LABEL: "nsys"}, "annotations": {PREPARED_ANNOTATION: "main"}});
        let spec = json!({
            "volumes": [{"name": "flopwatch-tools", "emptyDir": {}}, {"name": "flopwatch-run-0", "emptyDir": {}}],
            "initContainers": [{"name": "flopwatch-launcher"}, {"name": "flopwatch-tools"}],
            "containers": [{
                "name": "main", "command": ["/flopwatch/tools/launcher", "run", "--", "python", "train.py"],
                "volumeMounts": [{"name": "flopwatch-tools", "mountPath": "/flopwatch/tools"}]
            }]
        });
        let copy = copied(&metadata, &spec).unwrap();
        assert_eq!(
            copy["spec"],
            json!({"containers": [{"name": "main", "command": ["python", "train.py"]}]})
        );
        assert_eq!(copy["metadata"].get("labels"), None);
    }

    #[test]
    fn a_pod_whose_copy_would_meet_it_is_refused_and_only_an_absent_one_is_waited_for() {
        let main = json!([{"name": "main"}]);
        let block = json!([{"name": "main", "volumeDevices": [{"name": "d", "devicePath": "/dev/d"}]}]);
        let claim = json!([{"name": "gpu", "resourceClaimName": "shared"}]);
        let templated = json!([{"name": "gpu", "resourceClaimTemplateName": "own"}]);
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        let rows = [
            (
                json!({}),
                json!({"containers": main, "hostNetwork": true}),
                "hostNetwork",
            ),
            (json!({}), json!({"containers": main, "hostPID": true}), "hostPID"),
            (json!({}), json!({"containers": main, "hostIPC": true}), "hostIPC"),
            (
                json!({}),
                json!({"containers": main, "resourceClaims": claim}),
                "resourceClaimTemplateName",
            ),
            (json!({}), json!({"containers": block}), "block devices"),
            (
                json!({"labels": {SESSION_LABEL: "first"}}),
                json!({"containers": main}),
                "made by a session",
            ),
            (deleted, json!({"containers": main}), "being deleted"),
            (json!({}), json!({"containers": 7}), "cannot be read"),
        ];
        for (metadata, spec, words) in rows {
            let error = copied(&metadata, &spec).unwrap_err();
            assert!(error.to_string().contains(words) && !error.may_help(), "{error}");
        }
        let absent = of("train", "team", None).unwrap_err();
        assert!(absent.may_help() && absent.to_string().contains("no pod train in namespace team"));
        copied(
            &json!({}),
            &json!({"containers": main, "hostNetwork": false, "resourceClaims": templated}),
        )
        .unwrap();
    }
}
