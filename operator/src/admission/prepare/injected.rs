//! The volumes, mounts and init containers that a prepared pod gets. There are init containers only
//! where images are copied rather than mounted ([`Delivery`]).

use std::collections::BTreeMap;

use flopwatch_api::preparation::{
    CUPTI_FOLDER, LAUNCHER, LAUNCHER_INIT_CONTAINER, PROFILER_VOLUME, RUN_DIR, RUN_VOLUME_PREFIX, TMP_VOLUME_PREFIX,
    TOOLS_DIR, TOOLS_IN_IMAGE, TOOLS_INIT_CONTAINER, TOOLS_VOLUME,
};
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Map, Value, json};

use crate::admission::prepare::candidates::roomiest;
use crate::admission::prepare::{Delivery, PrepareOptions};

/// User ID of the init containers when the pod names none; any user can write into an emptyDir.
const NOBODY: i64 = 65532;
/// Path of the launcher in its own image.
const LAUNCHER_IN_IMAGE: &str = "/usr/local/bin/flopwatch-launcher";
/// Resources that init containers request as a container of the pod does; devices such as GPUs are
/// not among them.
const SHARED_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// The volumes of a prepared pod: the launcher's, the tools' where they are mounted, and for each
/// container its run folder, and a `/tmp` where its root cannot be written.
pub(super) fn volumes(containers: &[(usize, &Container)], options: &PrepareOptions) -> Vec<Value> {
    let mut volumes = vec![tools_volume(options)];
    if options.delivery == Delivery::Mount {
        volumes.push(image_volume(PROFILER_VOLUME, &options.tools_image, options));
    }
    for (index, container) in containers {
        let limit = options
            .run_size_limit
            .as_ref()
            .map_or_else(|| json!({}), |limit| json!({"sizeLimit": limit}));
        volumes.push(json!({"name": format!("{RUN_VOLUME_PREFIX}{index}"), "emptyDir": limit}));
        if needs_tmp(container) {
            volumes.push(json!({"name": format!("{TMP_VOLUME_PREFIX}{index}"), "emptyDir": {}}));
        }
    }
    volumes
}

/// The mounts of a prepared container, the `index`-th of its pod, into the volumes of [`volumes`].
pub(super) fn mounts(index: usize, container: &Container, options: &PrepareOptions) -> Vec<Value> {
    let mut mounts = vec![tools_mount(options)];
    if options.delivery == Delivery::Mount {
        let folder = options.tools_path.trim_start_matches('/');
        let name = folder.rsplit('/').next().unwrap_or_default();
        let at = format!("{TOOLS_DIR}/{name}");
        mounts.push(json!({"name": PROFILER_VOLUME, "mountPath": at, "subPath": folder, "readOnly": true}));
    }
    mounts.push(json!({"name": format!("{RUN_VOLUME_PREFIX}{index}"), "mountPath": RUN_DIR}));
    if needs_tmp(container) {
        mounts.push(json!({"name": format!("{TMP_VOLUME_PREFIX}{index}"), "mountPath": "/tmp"}));
    }
    mounts
}

/// Whether a container's root cannot be written and nothing is mounted at `/tmp`.
fn needs_tmp(container: &Container) -> bool {
    let read_only = container
        .security_context
        .as_ref()
        .is_some_and(|context| context.read_only_root_filesystem == Some(true));
    let mut mounts = container.volume_mounts.iter().flatten();
    read_only && !mounts.any(|mount| mount.mount_path.trim_end_matches('/') == "/tmp")
}

/// The volume that holds the launcher, and the tools too where they are copied.
pub(super) fn tools_volume(options: &PrepareOptions) -> Value {
    match options.delivery {
        Delivery::Copy => json!({"name": TOOLS_VOLUME, "emptyDir": {}}),
        Delivery::Mount => image_volume(TOOLS_VOLUME, &options.launcher_image, options),
    }
}

fn image_volume(name: &str, reference: &str, options: &PrepareOptions) -> Value {
    let mut image = json!({"reference": reference});
    if let Some(policy) = &options.image_pull_policy {
        image["pullPolicy"] = json!(policy);
    }
    json!({"name": name, "image": image})
}

/// The mount of [`tools_volume`] in one of the pod's own containers.
pub(super) fn tools_mount(options: &PrepareOptions) -> Value {
    match options.delivery {
        Delivery::Copy => json!({"name": TOOLS_VOLUME, "mountPath": TOOLS_DIR, "readOnly": true}),
        Delivery::Mount => {
            json!({"name": TOOLS_VOLUME, "mountPath": TOOLS_DIR, "subPath": TOOLS_IN_IMAGE, "readOnly": true})
        }
    }
}

/// The init containers of a prepared pod, in their order: the launcher's and the tools'; none where
/// images are mounted. `parts` are the parts of the tools that are copied, or all; `with_cupti` has
/// the launcher's copy libcupti too.
pub(super) fn init_containers(
    pod: &Pod,
    containers: &[(usize, &Container)],
    options: &PrepareOptions,
    parts: Option<&str>,
    with_cupti: bool,
) -> Vec<Value> {
    if options.delivery == Delivery::Mount {
        return Vec::new();
    }
    // The tools image may hold nothing that could copy: the launcher does it.
    let copy = match parts {
        Some(parts) => json!([LAUNCHER, "copy", "--for", parts, options.tools_path, TOOLS_DIR]),
        None => json!([LAUNCHER, "copy", options.tools_path, TOOLS_DIR]),
    };
    let tools = (TOOLS_INIT_CONTAINER, options.tools_image.as_str(), copy);
    let tools = init_container(tools, pod, containers, options);
    let launcher = launcher(pod, containers, options, with_cupti);
    launcher.into_iter().chain([tools]).collect()
}

/// The first init container, which copies the launcher and its libraries into the volume, and the
/// libcupti of the node's driver where `with_cupti` says so; None where images are mounted.
pub(super) fn launcher(
    pod: &Pod,
    containers: &[(usize, &Container)],
    options: &PrepareOptions,
    with_cupti: bool,
) -> Option<Value> {
    if options.delivery == Delivery::Mount {
        return None;
    }
    let install = if with_cupti {
        let cupti = format!("/{TOOLS_IN_IMAGE}/{CUPTI_FOLDER}");
        json!([LAUNCHER_IN_IMAGE, "install", "--cupti", cupti, TOOLS_DIR])
    } else {
        json!([LAUNCHER_IN_IMAGE, "install", TOOLS_DIR])
    };
    let launcher = (LAUNCHER_INIT_CONTAINER, options.launcher_image.as_str(), install);
    Some(init_container(launcher, pod, containers, options))
}

fn init_container(
    (name, image, command): (&str, &str, Value),
    pod: &Pod,
    containers: &[(usize, &Container)],
    options: &PrepareOptions,
) -> Value {
    let containers: Vec<&Container> = containers.iter().map(|(_, container)| *container).collect();
    let mut container = json!({
        "name": name,
        "image": image,
        "command": command,
        "volumeMounts": [{"name": TOOLS_VOLUME, "mountPath": TOOLS_DIR}],
        // Whatever the pod's own context says, these pass Pod Security "restricted".
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "runAsUser": user(pod, &containers),
            "seccompProfile": {"type": "RuntimeDefault"}
        }
    });
    if let Value::Object(fields) = &mut container {
        if let Some(policy) = &options.image_pull_policy {
            fields.insert("imagePullPolicy".to_owned(), json!(policy));
        }
        if let Some(resources) = resources(&containers) {
            fields.insert("resources".to_owned(), resources);
        }
    }
    container
}

/// The user ID of the init containers: the first other than 0 that a container or the pod runs as,
/// which cluster policies that allot ranges of users admit, or [`NOBODY`].
fn user(pod: &Pod, containers: &[&Container]) -> i64 {
    let of_container = containers
        .iter()
        .filter_map(|container| container.security_context.as_ref()?.run_as_user);
    let of_pod = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.as_ref()?.run_as_user);
    of_container.chain(of_pod).find(|user| *user != 0).unwrap_or(NOBODY)
}

/// Requests and limits of the roomiest prepared container. Whatever rules there are for a container
/// of this pod (LimitRange, quotas that want every container to ask), a copy of one that was
/// admitted meets them; it is Guaranteed exactly if the pod is; and as init containers run before
/// the others, the pod's own requests do not grow.
fn resources(containers: &[&Container]) -> Option<Value> {
    let resources = roomiest(containers)?.resources.as_ref()?;
    let shared = |list: Option<&BTreeMap<String, Quantity>>| -> Option<Value> {
        let shared: Map<String, Value> = list?
            .iter()
            .filter(|(name, _)| SHARED_RESOURCES.contains(&name.as_str()))
            .map(|(name, quantity)| (name.clone(), json!(quantity)))
            .collect();
        (!shared.is_empty()).then_some(Value::Object(shared))
    };
    let mut copy = Map::new();
    for (name, list) in [
        ("requests", shared(resources.requests.as_ref())),
        ("limits", shared(resources.limits.as_ref())),
    ] {
        if let Some(list) = list {
            copy.insert(name.to_owned(), list);
        }
    }
    (!copy.is_empty()).then_some(Value::Object(copy))
}
