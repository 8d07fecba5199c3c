//! The flight recorder: a library for NVTX, variables that name it, and a volume in memory for its file.
//!
//! The container's command stays as it is: NVTX loads the library where the program calls NVTX, and goes on without it where it cannot.

use flopwatch_api::preparation::{
    FLOPWATCH_RECORDER_BYTES, FLOPWATCH_RECORDER_DIR, NVTX_INJECTION64_PATH, PreparationWord, PreparedFor,
    RECORDER_BYTES, RECORDER_BYTES_ANNOTATION, RECORDER_BYTES_DEFAULT, RECORDER_DIR, RECORDER_LIBRARY,
    RECORDER_VOLUME_PREFIX,
};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{candidates, environment};
use crate::admission::quantity;
use crate::admission::refusal::Refusal;

/// Files have whole pages.
const PAGE: u64 = 4096;
/// What the volume holds beside the file.
const BESIDE: u64 = 1 << 20;
/// The file counts towards the container's memory: at most one part of so many of its limit.
const SHARE: u128 = 8;

/// What a container gets for the recorder.
#[derive(Debug, PartialEq)]
pub(super) enum Recorder {
    /// What is to be added to it: the volume and its mount, and the variables.
    Added {
        volume: Value,
        mount: Value,
        variables: Vec<Value>,
    },
    /// An earlier pass added it.
    There,
}

/// What a container gets; none where the pod does not ask for the recorder, or is made for Nsight Compute.
pub(super) fn of(
    pod: &Pod,
    words: &PreparedFor,
    index: usize,
    container: &Container,
) -> Option<Result<Recorder, Refusal>> {
    let asked = words.contains(PreparationWord::Recorder) && !words.contains(PreparationWord::Ncu);
    asked.then(|| recorder(pod, index, container))
}

fn recorder(pod: &Pod, index: usize, container: &Container) -> Result<Recorder, Refusal> {
    let name = format!("{RECORDER_VOLUME_PREFIX}{index}");
    let mut mounts = container.volume_mounts.iter().flatten();
    if mounts.any(|mount| mount.name == name && mount.mount_path == RECORDER_DIR) {
        return Ok(Recorder::There);
    }
    if let Some(refusal) = candidates::refuse_paths(container) {
        return Err(refusal);
    }
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    if volumes.any(|volume| volume.name == name) {
        return Err(Refusal::NameTaken(name));
    }
    if environment::set(container, NVTX_INJECTION64_PATH).is_some() {
        return Err(Refusal::VariableKept {
            name: NVTX_INJECTION64_PATH,
            value: RECORDER_LIBRARY,
        });
    }
    let bytes = bytes(pod)?;
    if let Some(limit) = candidates::limit(container, "memory") {
        let needed = u128::from(bytes).saturating_mul(SHARE);
        if limit < needed {
            return Err(Refusal::RecorderMemory { limit, needed });
        }
    }
    let limit = bytes.saturating_add(BESIDE).to_string();
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    Ok(Recorder::Added {
        volume: json!({"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": limit}}),
        mount: json!({"name": name, "mountPath": RECORDER_DIR}),
        variables: vec![
            variable(NVTX_INJECTION64_PATH, RECORDER_LIBRARY),
            variable(FLOPWATCH_RECORDER_DIR, RECORDER_DIR),
            variable(FLOPWATCH_RECORDER_BYTES, &bytes.to_string()),
        ],
    })
}

/// The file's size, rounded down to whole pages.
fn bytes(pod: &Pod) -> Result<u64, Refusal> {
    let Some(text) = pod.annotations().get(RECORDER_BYTES_ANNOTATION) else {
        return Ok(RECORDER_BYTES_DEFAULT);
    };
    let bytes = quantity::bytes(text.trim()).and_then(|bytes| u64::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| RECORDER_BYTES.contains(bytes));
    bytes
        .map(|bytes| bytes / PAGE * PAGE)
        .ok_or_else(|| Refusal::RecorderBytes(text.clone()))
}
