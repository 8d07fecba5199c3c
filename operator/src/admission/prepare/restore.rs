//! Undoes the preparation in a pod's specification, for copies of prepared pods.

use flopwatch_api::preparation::{
    CUDA_INJECTION64_PATH, CUDA_LIBRARY, CUDA_VOLUME_PREFIX, CUPTI_DIR, FLOPWATCH_CUDA_BYTES, FLOPWATCH_CUDA_CUPTI,
    FLOPWATCH_CUDA_DIR, FLOPWATCH_CUDA_NEXT, FLOPWATCH_RECORDER_BYTES, FLOPWATCH_RECORDER_DIR, LAUNCHER,
    LAUNCHER_INIT_CONTAINER, NVTX_INJECTION64_PATH, PROFILER_VOLUME, RECORDER_LIBRARY, RECORDER_VOLUME_PREFIX,
    RUN_VOLUME_PREFIX, TMP_VOLUME_PREFIX, TOOLS_INIT_CONTAINER, TOOLS_VOLUME,
};
use serde_json::{Map, Value};

/// Removes from a pod's `spec` what [`prepare`](super::prepare) added: init containers, volumes,
/// mounts, the launcher before each command, the flight recorder and the CUDA tracer. A command
/// that was looked up in an image's entrypoint stays, and so do other variables: the program runs
/// the same with them. A pod that has neither the launcher's init container nor the launcher's
/// image as a volume was not prepared, and is left as it is.
pub fn restore(spec: &mut Map<String, Value>) {
    let is_launcher = |container: &Map<String, Value>| name(container) == LAUNCHER_INIT_CONTAINER;
    let is_image = |volume: &Map<String, Value>| name(volume) == TOOLS_VOLUME && volume.contains_key("image");
    if !items(spec, "initContainers").any(is_launcher) && !items(spec, "volumes").any(is_image) {
        return;
    }
    retain(spec, "initContainers", |container| {
        !matches!(name(container), LAUNCHER_INIT_CONTAINER | TOOLS_INIT_CONTAINER)
    });
    retain(spec, "volumes", |volume| !is_ours(name(volume)));
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
        retain(container, "volumeMounts", |mount| !is_ours(name(mount)));
        remove_recorder(container);
        remove_tracer(container);
        if let Some(command) = container.get_mut("command").and_then(Value::as_array_mut)
            && command.first().and_then(Value::as_str) == Some(LAUNCHER)
            && let Some(end) = command.iter().position(|word| word.as_str() == Some("--"))
        {
            command.drain(..=end);
        }
    }
}

fn items<'a>(of: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Map<String, Value>> {
    let items = of.get(key).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_object)
}

/// Removes the flight recorder's variables from a container that has them.
fn remove_recorder(container: &mut Map<String, Value>) {
    let variables = container.get("env").and_then(Value::as_array);
    let is_recorder =
        |variable: &Value| variable["name"] == NVTX_INJECTION64_PATH && variable["value"] == RECORDER_LIBRARY;
    if variables.is_some_and(|variables| variables.iter().any(is_recorder)) {
        retain(container, "env", |variable| {
            ![NVTX_INJECTION64_PATH, FLOPWATCH_RECORDER_DIR, FLOPWATCH_RECORDER_BYTES].contains(&name(variable))
        });
    }
}

/// Removes the CUDA tracer's variables from a container that has them. A library that the tracer's
/// calls first is the container's own, and is named by CUDA's variable again.
fn remove_tracer(container: &mut Map<String, Value>) {
    let variables = container.get("env").and_then(Value::as_array).into_iter().flatten();
    let named = |wanted: &'static str| {
        let mut of_name = variables.clone().filter(move |variable| variable["name"] == wanted);
        of_name.next_back().and_then(|variable| variable["value"].as_str())
    };
    if named(CUDA_INJECTION64_PATH) != Some(CUDA_LIBRARY) {
        return;
    }
    let own = named(FLOPWATCH_CUDA_NEXT).map(str::to_owned);
    retain(container, "env", |variable| match name(variable) {
        CUDA_INJECTION64_PATH => own.is_some(),
        FLOPWATCH_CUDA_CUPTI => variable.get("value").and_then(Value::as_str) != Some(CUPTI_DIR),
        name => ![FLOPWATCH_CUDA_DIR, FLOPWATCH_CUDA_BYTES, FLOPWATCH_CUDA_NEXT].contains(&name),
    });
    let variables = container.get_mut("env").and_then(Value::as_array_mut);
    let mut variables = variables.into_iter().flatten();
    if let Some(own) = own
        && let Some(variable) = variables.find(|variable| variable["value"] == CUDA_LIBRARY)
    {
        variable["value"] = Value::String(own);
    }
}

/// Keeps those items of the list `key` of an object for which `keep` is true, and removes the list
/// where none is left.
pub fn retain(of: &mut Map<String, Value>, key: &str, keep: impl Fn(&Map<String, Value>) -> bool) {
    let Some(items) = of.get_mut(key).and_then(Value::as_array_mut) else {
        return;
    };
    items.retain(|item| item.as_object().is_none_or(&keep));
    if items.is_empty() {
        of.remove(key);
    }
}

fn name(of: &Map<String, Value>) -> &str {
    of.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn is_ours(volume: &str) -> bool {
    let numbered = |prefix: &str| {
        let number = volume.strip_prefix(prefix).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    };
    matches!(volume, TOOLS_VOLUME | PROFILER_VOLUME)
        || [
            RUN_VOLUME_PREFIX,
            TMP_VOLUME_PREFIX,
            RECORDER_VOLUME_PREFIX,
            CUDA_VOLUME_PREFIX,
        ]
        .into_iter()
        .any(numbered)
}

#[cfg(test)]
mod tests {
    use flopwatch_api::preparation::PREPARE_LABEL;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::admission::prepare::tests::options;
    use crate::admission::prepare::{Delivery, Entrypoints, prepare};

    fn restored(mut pod: Value) -> Value {
        let spec = pod["spec"].as_object_mut().unwrap();
        restore(spec);
        pod["spec"].take()
    }

    #[test]
    fn a_pod_that_was_prepared_is_restored_to_what_it_was() {
        let bare = json!({"containers": [
            {"name": "main", "image": "a", "command": ["python", "--", "train.py"], "args": ["--fast"]},
            {"name": "side", "image": "b", "command": ["sleep", "9"], "securityContext": {"readOnlyRootFilesystem": true}}
        ]});
        let own = json!({
            "volumes": [{"name": "data", "emptyDir": {}}],
            "initContainers": [{"name": "fetch", "image": "c", "command": ["fetch"]}],
            "containers": [{
                "name": "main", "image": "a", "command": ["run"],
                "env": [{"name": "CUDA_INJECTION64_PATH", "value": "/opt/own.so"}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}]
            }]
        });
        let words = ["nsys", "recorder", "nsys.recorder", "cuda", "nsys.cuda"];
        let deliveries = [Delivery::Copy, Delivery::Mount];
        for ((spec, words), delivery) in words
            .iter()
            .flat_map(|words| [(bare.clone(), words), (own.clone(), words)])
            .flat_map(|row| deliveries.map(|delivery| (row.clone(), delivery)))
        {
            let pod = json!({"metadata": {"name": "p", "labels": {PREPARE_LABEL: words}}, "spec": spec});
            let typed: Pod = serde_json::from_value(pod.clone()).unwrap();
            let preparation = prepare(&typed, &options().delivered(delivery), &Entrypoints::new());
            let mut prepared = pod.clone();
            json_patch::patch(&mut prepared, &preparation.operations).unwrap();
            assert_ne!(prepared["spec"], pod["spec"]);
            assert_eq!(restored(prepared), pod["spec"]);
        }
    }

    #[test]
    fn a_pod_that_was_never_prepared_stays_as_it_is() {
        let ours = json!(["/flopwatch/tools/launcher", "run", "--", "a"]);
        let pod = json!({"spec": {
            "containers": [{"name": "main", "command": ours}], "volumes": [{"name": "flopwatch-tools", "emptyDir": {}}]
        }});
        assert_eq!(restored(pod.clone()), pod["spec"]);
        assert_eq!(
            restored(json!({"spec": {"containers": "none"}})),
            json!({"containers": "none"})
        );
    }
}
