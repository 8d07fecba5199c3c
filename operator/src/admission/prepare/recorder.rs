//! The preparation for the flight recorder: variables by which NVTX loads the recorder's library,
//! and a volume in memory for the recorder's file.
//!
//! The container's command stays as it is: NVTX loads the library where the program calls NVTX, and
//! goes on without it where it cannot.

use flopwatch_api::preparation::{
    FLOPWATCH_RECORDER_BYTES, FLOPWATCH_RECORDER_DIR, NVTX_INJECTION64_PATH, PreparationWord, PreparedFor,
    RECORDER_BYTES, RECORDER_BYTES_ANNOTATION, RECORDER_BYTES_DEFAULT, RECORDER_DIR, RECORDER_LIBRARY,
    RECORDER_VOLUME_PREFIX,
};
use k8s_openapi::api::core::v1::{Container, Pod, Volume};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{candidates, environment};
use crate::admission::quantity;
use crate::admission::refusal::Refusal;

/// Size that a recorder's file is a multiple of.
const PAGE_BYTES: u64 = 4096;
/// Room in the volume beside the file.
const VOLUME_OVERHEAD_BYTES: u64 = 1 << 20;
/// Medium of the recorder's volume.
const MEMORY: &str = "Memory";
/// Bytes that a container's memory limit has at least for each byte of the recorder's file, which
/// counts towards that limit.
const MIN_LIMIT_BYTES_PER_RECORDER_BYTE: u128 = 8;

/// The result of preparing a container for the recorder.
#[derive(Debug, PartialEq)]
pub(super) enum Recorder {
    /// The container gets a volume, its mount, and variables.
    Added {
        /// The volume in memory, as JSON of the pod's specification.
        volume: Value,
        /// The mount of the volume, as JSON of the container.
        mount: Value,
        /// The variables, as JSON of the container.
        variables: Vec<Value>,
    },
    /// An earlier review added them.
    AlreadyAdded,
}

/// Prepares the `index`-th container of a pod for the recorder; None where the pod does not ask for
/// the recorder, or is prepared for Nsight Compute.
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
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let volume = volumes.find(|volume| volume.name == name);
    let mut mounts = container.volume_mounts.iter().flatten();
    let is_mounted = mounts.any(|mount| mount.name == name && mount.mount_path == RECORDER_DIR);
    match volume {
        // The file is read from outside: nobody but the kernel may answer for it.
        Some(volume) if is_mounted && is_in_memory(volume) => return check_already_added(container),
        Some(_) => return Err(Refusal::NameTaken(name)),
        None => {}
    }
    if let Some(refusal) = candidates::refuse_paths(container) {
        return Err(refusal);
    }
    if environment::set(container, NVTX_INJECTION64_PATH).is_some() {
        return Err(Refusal::VariableKept {
            name: NVTX_INJECTION64_PATH,
            value: RECORDER_LIBRARY,
        });
    }
    let bytes = bytes(pod)?;
    if let Some(limit) = candidates::limit(container, "memory") {
        let needed = u128::from(bytes).saturating_mul(MIN_LIMIT_BYTES_PER_RECORDER_BYTE);
        if limit < needed {
            return Err(Refusal::RecorderMemory { limit, needed });
        }
    }
    let limit = bytes.saturating_add(VOLUME_OVERHEAD_BYTES).to_string();
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    Ok(Recorder::Added {
        volume: json!({"name": name, "emptyDir": {"medium": MEMORY, "sizeLimit": limit}}),
        mount: json!({"name": name, "mountPath": RECORDER_DIR}),
        variables: vec![
            variable(NVTX_INJECTION64_PATH, RECORDER_LIBRARY),
            variable(FLOPWATCH_RECORDER_DIR, RECORDER_DIR),
            variable(FLOPWATCH_RECORDER_BYTES, &bytes.to_string()),
        ],
    })
}

/// Refuses a container in which something else is mounted in the recorder's folder or around it.
fn check_already_added(container: &Container) -> Result<Recorder, Refusal> {
    let mut paths = container.volume_mounts.iter().flatten().map(|mount| &mount.mount_path);
    let taken = paths.find(|path| {
        let path = path.trim_end_matches('/');
        let below = path.strip_prefix(RECORDER_DIR);
        path == "/flopwatch" || below.is_some_and(|below| below.starts_with('/'))
    });
    taken.map_or(Ok(Recorder::AlreadyAdded), |path| Err(Refusal::PathTaken(path.clone())))
}

/// Whether a volume is an `emptyDir` in memory.
fn is_in_memory(volume: &Volume) -> bool {
    let folder = volume.empty_dir.as_ref();
    folder.is_some_and(|folder| folder.medium.as_deref() == Some(MEMORY))
}

/// The size of the recorder's file that the pod asks for, rounded down to whole pages.
fn bytes(pod: &Pod) -> Result<u64, Refusal> {
    let Some(text) = pod.annotations().get(RECORDER_BYTES_ANNOTATION) else {
        return Ok(RECORDER_BYTES_DEFAULT);
    };
    let bytes = quantity::bytes(text.trim()).and_then(|bytes| u64::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| RECORDER_BYTES.contains(bytes));
    bytes
        .map(|bytes| bytes / PAGE_BYTES * PAGE_BYTES)
        .ok_or_else(|| Refusal::RecorderBytes(text.clone()))
}

#[cfg(test)]
mod tests {
    use flopwatch_api::preparation::{PREPARE_LABEL, PREPARED_FOR_ANNOTATION, UNPREPARED_ANNOTATION};

    use super::*;
    use crate::admission::prepare::tests::options;
    use crate::admission::prepare::{Entrypoints, prepare};

    /// A pod that asks for the recorder and has this volume and these mounts already.
    fn asked(volume: &Value, mounts: &[(&str, &str)]) -> Value {
        let mounts: Vec<Value> = mounts
            .iter()
            .map(|(name, path)| json!({"name": name, "mountPath": path}))
            .collect();
        json!({
            "metadata": {"name": "p", "namespace": "team", "labels": {PREPARE_LABEL: "recorder"}},
            "spec": {
                "volumes": [volume, {"name": "mine", "emptyDir": {}}],
                "containers": [{"name": "main", "image": "train:1", "volumeMounts": mounts}]
            }
        })
    }

    /// The pod's annotations: what it is prepared for, and why it is not.
    fn annotations(pod: &Value) -> (Option<String>, Option<String>) {
        let preparation = prepare(
            &serde_json::from_value(pod.clone()).unwrap(),
            &options(),
            &Entrypoints::new(),
        );
        let mut patched = pod.clone();
        json_patch::patch(&mut patched, &preparation.operations).unwrap();
        let annotation = |key: &str| Some(patched["metadata"]["annotations"][key].as_str()?.to_owned());
        let annotations = (annotation(PREPARED_FOR_ANNOTATION), annotation(UNPREPARED_ANNOTATION));
        if annotations.0.is_none() {
            assert_eq!(patched["spec"], pod["spec"], "it stays as it was");
        }
        annotations
    }

    const OURS: (&str, &str) = ("flopwatch-recorder-0", "/flopwatch/recorder");

    #[test]
    fn a_volume_of_the_recorders_name_that_is_not_in_memory_is_not_taken_for_ours() {
        let server = json!({"server": "files.example.com", "path": "/"});
        for source in [
            json!({"nfs": server}),
            json!({"csi": {"driver": "fuse.example.com"}}),
            json!({"hostPath": {"path": "/home"}}),
            json!({"persistentVolumeClaim": {"claimName": "data"}}),
            json!({"emptyDir": {}}),
            json!({"emptyDir": {"medium": "HugePages"}}),
        ] {
            let mut volume = source.clone();
            volume["name"] = json!(OURS.0);
            let (prepared, why) = annotations(&asked(&volume, &[OURS]));
            assert_eq!(prepared, None, "{source}");
            let refusal = Refusal::NameTaken(OURS.0.to_owned());
            assert_eq!(why, Some(format!("main: {refusal}")), "{source}");
        }
    }

    #[test]
    fn what_is_mounted_in_the_recorders_folder_or_around_it_is_told() {
        let ours = json!({"name": OURS.0, "emptyDir": {"medium": "Memory", "sizeLimit": "9Mi"}});
        for path in [
            "/flopwatch/recorder/recorder.ring",
            "/flopwatch/recorder/x/",
            "/flopwatch",
            "/flopwatch/",
        ] {
            let (prepared, why) = annotations(&asked(&ours, &[OURS, ("mine", path)]));
            assert_eq!(prepared, None, "{path}");
            let refusal = Refusal::PathTaken(path.to_owned());
            assert_eq!(why, Some(format!("main: {refusal}")));
        }
        let elsewhere = annotations(&asked(&ours, &[OURS, ("mine", "/flopwatch/recorder-of-mine")]));
        assert_eq!(elsewhere, (Some("main: recorder".to_owned()), None), "it is there");
        let unmounted = annotations(&asked(&ours, &[]));
        assert_eq!(unmounted.0, None, "the name is taken");
    }
}
