//! The preparation for the flight recorder: variables by which NVTX loads the recorder's library,
//! and a volume in memory for the recorder's file.

use flopwatch_api::preparation::{
    FLOPWATCH_RECORDER_BYTES, FLOPWATCH_RECORDER_DIR, NVTX_INJECTION64_PATH, PreparationWord, PreparedFor,
    RECORDER_BYTES, RECORDER_BYTES_ANNOTATION, RECORDER_BYTES_DEFAULT, RECORDER_DIR, RECORDER_LIBRARY,
    RECORDER_VOLUME_PREFIX,
};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::library::{Added, Library, variable};
use super::memory_volume::{self, MemoryVolume};
use super::{candidates, environment};
use crate::admission::refusal::Refusal;

/// Size that a recorder's file is a multiple of.
const PAGE_BYTES: u64 = 4096;

/// Prepares the `index`-th container of a pod for the recorder; None where the pod does not ask for
/// the recorder, or is prepared for Nsight Compute.
pub(super) fn of(
    pod: &Pod,
    words: &PreparedFor,
    index: usize,
    container: &Container,
) -> Option<Result<Library, Refusal>> {
    let asked = words.contains(PreparationWord::Recorder) && !words.contains(PreparationWord::Ncu);
    asked.then(|| recorder(pod, index, container))
}

fn recorder(pod: &Pod, index: usize, container: &Container) -> Result<Library, Refusal> {
    let volume = MemoryVolume::of(RECORDER_VOLUME_PREFIX, index, RECORDER_DIR);
    if volume.is_there(pod, container)? {
        return Ok(Library::AlreadyAdded);
    }
    if environment::set(container, NVTX_INJECTION64_PATH).is_some() {
        return Err(Refusal::VariableKept {
            name: NVTX_INJECTION64_PATH,
            value: RECORDER_LIBRARY,
        });
    }
    let bytes = memory_volume::bytes(pod, RECORDER_BYTES_ANNOTATION, &RECORDER_BYTES, RECORDER_BYTES_DEFAULT)
        .map_err(Refusal::RecorderBytes)?;
    let bytes = bytes / PAGE_BYTES * PAGE_BYTES;
    if let Some((limit, needed)) = memory_volume::too_small(container, bytes) {
        return Err(Refusal::RecorderMemory { limit, needed });
    }
    // What an earlier review added for another library lies there too: it is looked at last.
    if let Some(refusal) = candidates::refuse_paths(container) {
        return Err(refusal);
    }
    let (volume, mount) = volume.added(bytes);
    Ok(Library::Added(Box::new(Added {
        volume,
        mount,
        variables: vec![
            variable(NVTX_INJECTION64_PATH, RECORDER_LIBRARY),
            variable(FLOPWATCH_RECORDER_DIR, RECORDER_DIR),
            variable(FLOPWATCH_RECORDER_BYTES, &bytes.to_string()),
        ],
        changed: Vec::new(),
    })))
}

#[cfg(test)]
mod tests {
    use flopwatch_api::preparation::{PREPARE_LABEL, PREPARED_FOR_ANNOTATION, UNPREPARED_ANNOTATION};
    use serde_json::{Value, json};

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
