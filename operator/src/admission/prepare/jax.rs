//! The folder that JAX's compiler writes its programs to, where a pod asks for it.
//!
//! Only in a volume of our own: a program whose `JAX_DUMP_IR_TO` cannot be written ends with an
//! error.

use flopwatch_api::preparation::{JAX_DIR, JAX_DUMPS_ANNOTATION, JAX_VOLUME_PREFIX, PreparationWord, PreparedFor};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::capture_bytes;
use crate::admission::refusal::Refusal;

/// Least limit of ephemeral storage with which a pod gets the folder: what compilers write counts
/// towards it, and the kubelet evicts a pod that uses more.
const MIN_STORAGE_BYTES: u128 = 2 << 30;

/// What a container gets for its dumps.
#[derive(Debug, PartialEq)]
pub(super) enum Dumps {
    /// The volume and its mount, which are to be added.
    Added(Box<[Value; 2]>),
    /// An earlier pass added them.
    AlreadyAdded,
}

/// What a container gets; none where the pod does not ask for dumps.
pub(super) fn dumps(
    pod: &Pod,
    words: &PreparedFor,
    index: usize,
    container: &Container,
) -> Option<Result<Dumps, Refusal>> {
    let asked = pod.annotations().get(JAX_DUMPS_ANNOTATION)?;
    if !words.contains(PreparationWord::Jax) {
        return None;
    }
    match asked.trim() {
        "true" => Some(volume(pod, index, container)),
        "false" => None,
        _ => Some(Err(Refusal::JaxDumps(asked.clone()))),
    }
}

fn volume(pod: &Pod, index: usize, container: &Container) -> Result<Dumps, Refusal> {
    let name = format!("{JAX_VOLUME_PREFIX}{index}");
    let mut mounts = container.volume_mounts.iter().flatten();
    let taken = mounts.find(|mount| {
        let path = mount.mount_path.trim_end_matches('/');
        path == "/flopwatch" || path == JAX_DIR || path.starts_with("/flopwatch/jax/")
    });
    match taken {
        Some(mount) if mount.name == name && mount.mount_path == JAX_DIR => return Ok(Dumps::AlreadyAdded),
        Some(mount) => return Err(Refusal::PathTaken(mount.mount_path.clone())),
        None => {}
    }
    let spec = pod.spec.as_ref();
    let volumes = spec.and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    if volumes.iter().any(|volume| volume.name == name) {
        return Err(Refusal::NameTaken(name));
    }
    if let Some(limit) = spec
        .and_then(capture_bytes::limit)
        .filter(|limit| *limit < MIN_STORAGE_BYTES)
    {
        let needed = MIN_STORAGE_BYTES;
        return Err(Refusal::JaxStorage { limit, needed });
    }
    let volume = json!({"name": name, "emptyDir": {}});
    let mount = json!({"name": name, "mountPath": JAX_DIR});
    Ok(Dumps::Added(Box::new([volume, mount])))
}
