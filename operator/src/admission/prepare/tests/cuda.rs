//! Pods that ask for the CUDA tracer.

use flopwatch_api::preparation::{CUDA_BYTES_ANNOTATION, RECORDER_KERNELS_PERCENT_ANNOTATION};

use super::*;

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    let mut items = list.as_array().into_iter().flatten();
    items.find(|item| item["name"] == name)
}

fn variable(container: &Value, name: &str) -> Option<String> {
    let found = named(&container["env"], name)?;
    found["value"].as_str().map(str::to_owned)
}

/// What the pod says that it was prepared for, and why not.
fn said(patched: &Value) -> (Option<&str>, &str) {
    let annotation = |key: &str| patched["metadata"]["annotations"][key].as_str();
    (
        annotation(PREPARED_FOR_ANNOTATION),
        annotation(UNPREPARED_ANNOTATION).unwrap_or_default(),
    )
}

#[test]
fn a_pod_that_asks_for_the_tracer_gets_variables_and_volumes_and_keeps_its_command() {
    let asked = labelled("cuda", json!([{"name": "main", "image": "train:1"}]));
    let (patched, preparation) = admitted(&asked);
    assert_eq!((preparation.unprepared.len(), preparation.prepared.len()), (0, 0));
    assert_eq!(said(&patched).0, Some("main: recorder.cuda"));
    let spec = &patched["spec"];
    let memory = |bytes: u64| json!({"medium": "Memory", "sizeLimit": bytes.to_string()});
    assert_eq!(
        spec["volumes"],
        json!([
            {"name": "flopwatch-recorder-0", "emptyDir": memory(9 << 20)},
            {"name": "flopwatch-cuda-0", "emptyDir": memory(65 << 20)},
            {"name": "flopwatch-tools", "emptyDir": {}}
        ])
    );
    let init = spec["initContainers"].as_array().unwrap();
    assert_eq!(init.len(), 1);
    assert_eq!(
        init[0]["command"],
        json!([
            "/usr/local/bin/flopwatch-launcher",
            "install",
            "--cupti",
            "/usr/lib/flopwatch/tools/cupti",
            "/flopwatch/tools"
        ])
    );
    let main = &spec["containers"][0];
    assert!(main.get("command").is_none() && main.get("args").is_none(), "{main}");
    assert_eq!(
        main["volumeMounts"],
        json!([
            {"name": "flopwatch-recorder-0", "mountPath": "/flopwatch/recorder"},
            {"name": "flopwatch-cuda-0", "mountPath": "/flopwatch/cuda"},
            {"name": "flopwatch-tools", "mountPath": "/flopwatch/tools", "readOnly": true}
        ])
    );
    assert_eq!(
        main["env"],
        json!([
            {"name": "NVTX_INJECTION64_PATH", "value": "/flopwatch/tools/libflopwatch-recorder.so"},
            {"name": "FLOPWATCH_RECORDER_DIR", "value": "/flopwatch/recorder"},
            {"name": "FLOPWATCH_RECORDER_BYTES", "value": (8 << 20).to_string()},
            {"name": "CUDA_INJECTION64_PATH", "value": "/flopwatch/tools/libflopwatch_cuda.so"},
            {"name": "FLOPWATCH_CUDA_DIR", "value": "/flopwatch/cuda"},
            {"name": "FLOPWATCH_CUDA_BYTES", "value": (64 << 20).to_string()},
            {"name": "FLOPWATCH_CUDA_CUPTI", "value": "/flopwatch/tools/cupti"}
        ])
    );
}

#[test]
fn a_pod_that_asks_for_kernels_all_the_time_gets_what_the_tracer_gets_and_says_so() {
    let container = || json!([{"name": "main", "image": "train:1"}]);
    let (traced, _) = admitted(&labelled("cuda", container()));
    for words in ["cuda.recorder-kernels", "recorder-kernels"] {
        let (patched, _) = admitted(&labelled(words, container()));
        assert_eq!(said(&patched), (Some("main: recorder.cuda.recorder-kernels"), ""));
        assert_eq!(patched["spec"], traced["spec"], "{words}");
    }
    let own = json!({"name": "CUDA_INJECTION64_PATH", "value": "/opt/libparcagpu.so"});
    let refused = labelled(
        "cuda.recorder-kernels",
        json!([{"name": "main", "image": "train:1", "env": [own]}]),
    );
    let (patched, _) = admitted(&refused);
    assert_eq!(
        said(&patched).0,
        Some("main: recorder"),
        "without the tracer there is none"
    );
}

#[test]
fn a_share_of_the_time_that_is_none_leaves_kernels_out_and_is_told() {
    for (share, prepared) in [
        ("10", "main: recorder.cuda.recorder-kernels"),
        ("0", "main: recorder.cuda"),
    ] {
        let mut asked = labelled("recorder-kernels", json!([{"name": "main", "image": "train:1"}]));
        asked["metadata"]["annotations"] = json!({RECORDER_KERNELS_PERCENT_ANNOTATION: share});
        let (patched, _) = admitted(&asked);
        let (found, told) = said(&patched);
        assert_eq!(found, Some(prepared));
        assert_eq!(told.contains("a whole number from 1 to 100"), share == "0", "{told}");
    }
}

#[test]
fn where_images_are_mounted_the_tracer_comes_with_one_of_them_and_no_init_container() {
    let asked = labelled("cuda", json!([gpu_container()]));
    let mounting = options().delivered(Delivery::Mount);
    let (patched, _) = stored(&asked, &mounting, &Entrypoints::new());
    let spec = &patched["spec"];
    assert!(spec.get("initContainers").is_none(), "{spec}");
    let volumes = spec["volumes"].as_array().unwrap();
    let images: Vec<&Value> = volumes.iter().filter(|volume| volume.get("image").is_some()).collect();
    assert_eq!(images.len(), 1);
    assert_eq!(images[0]["image"]["reference"], options().launcher_image);
    let mount = named(&spec["containers"][0]["volumeMounts"], "flopwatch-tools").unwrap();
    assert_eq!(mount["subPath"], "usr/lib/flopwatch/tools");
    assert_eq!(
        spec["containers"][0]["command"],
        asked["spec"]["containers"][0]["command"]
    );
}

#[test]
fn a_library_of_the_containers_own_is_called_before_the_tracers() {
    let env = json!([
        {"name": "CUDA_INJECTION64_PATH", "value": "/opt/own.so"},
        {"name": "FLOPWATCH_CUDA_CUPTI", "value": "/opt/cupti"}
    ]);
    let asked = labelled("cuda", json!([{"name": "main", "image": "train:1", "env": env}]));
    let (patched, _) = admitted(&asked);
    let main = &patched["spec"]["containers"][0];
    for (name, value) in [
        ("CUDA_INJECTION64_PATH", "/flopwatch/tools/libflopwatch_cuda.so"),
        ("FLOPWATCH_CUDA_NEXT", "/opt/own.so"),
        ("FLOPWATCH_CUDA_CUPTI", "/opt/cupti"),
    ] {
        assert_eq!(variable(main, name).as_deref(), Some(value));
        let all = main["env"].as_array().unwrap().iter();
        assert_eq!(all.filter(|variable| variable["name"] == name).count(), 1, "{name}");
    }
    assert_eq!(said(&patched), (Some("main: recorder.cuda"), ""));
}

#[test]
fn another_profiler_of_the_containers_own_is_kept_and_told_and_the_recorder_goes_beside_it() {
    let from = json!({"configMapKeyRef": {"name": "a", "key": "b"}});
    for (own, why) in [
        (
            json!({"name": "CUDA_INJECTION64_PATH", "value": "/opt/nsys/libToolsInjection64.so"}),
            "a profiler that has CUPTI all the time",
        ),
        (
            json!({"name": "CUDA_INJECTION64_PATH", "valueFrom": from}),
            "the container sets CUDA_INJECTION64_PATH itself",
        ),
    ] {
        let asked = labelled("cuda", json!([{"name": "main", "image": "train:1", "env": [own]}]));
        let (patched, _) = admitted(&asked);
        let main = &patched["spec"]["containers"][0];
        assert_eq!(named(&main["env"], "CUDA_INJECTION64_PATH"), Some(&own));
        assert_eq!(variable(main, "FLOPWATCH_CUDA_DIR"), None);
        let (prepared, told) = said(&patched);
        assert_eq!(prepared, Some("main: recorder"));
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn nsight_systems_goes_before_the_tracer_in_the_containers_that_it_gets_into() {
    let bare = json!({"name": "side", "image": "train:1"});
    let asked = labelled(
        "cuda.nsys",
        json!([{"name": "main", "image": "train:1", "command": ["train"]}, bare]),
    );
    let (patched, preparation) = admitted(&asked);
    assert_eq!(preparation.prepared, ["main"]);
    let spec = &patched["spec"];
    assert_eq!(variable(&spec["containers"][0], "CUDA_INJECTION64_PATH"), None);
    let injected = variable(&spec["containers"][1], "CUDA_INJECTION64_PATH");
    assert_eq!(injected.as_deref(), Some("/flopwatch/tools/libflopwatch_cuda.so"));
    let (prepared, told) = said(&patched);
    assert_eq!(prepared, Some("main: nsys.recorder\nside: recorder.cuda"));
    assert!(
        told.contains("main: label flopwatch.dev/prepare names nsys and cuda"),
        "{told}"
    );
    let launcher = named(&spec["initContainers"], "flopwatch-launcher").unwrap();
    assert_eq!(launcher["command"][2], "--cupti");

    let alone = labelled("cuda.nsys", json!([gpu_container()]));
    let (patched, _) = admitted(&alone);
    let launcher = named(&patched["spec"]["initContainers"], "flopwatch-launcher").unwrap();
    assert_eq!(launcher["command"][2], "/flopwatch/tools", "nobody needs a libcupti");
}

#[test]
fn what_the_tracer_cannot_go_into_is_told_with_what_helps() {
    let with = |change: Value| {
        let mut container = json!({"name": "main", "image": "train:1"});
        json_patch::merge(&mut container, &change);
        labelled("cuda", json!([container]))
    };
    let mut sandboxed = with(json!({}));
    sandboxed["spec"]["runtimeClassName"] = json!("kata-qemu");
    let mut sized = with(json!({}));
    sized["metadata"]["annotations"] = json!({CUDA_BYTES_ANNOTATION: "4Gi"});
    for (asked, why) in [
        (sandboxed, "the pod's runtime class is kata-qemu"),
        (sized, "write a size from 1Mi to 1Gi"),
        (
            with(json!({"resources": {"limits": {"memory": "256Mi"}}})),
            "at least 536870912 are asked",
        ),
        (
            with(json!({"resources": {"limits": {"ephemeral-storage": "100Mi"}}})),
            "ephemeral-storage limit of 104857600 bytes is too small",
        ),
        (
            with(json!({"volumeMounts": [{"name": "data", "mountPath": "/flopwatch/cuda"}]})),
            "/flopwatch must be free",
        ),
    ] {
        let (patched, _) = admitted(&asked);
        let (prepared, told) = said(&patched);
        assert!(!prepared.unwrap_or_default().contains("cuda"), "{why}: {prepared:?}");
        assert!(told.contains(why), "{told}");
        let main = &patched["spec"]["containers"][0];
        assert_eq!(variable(main, "CUDA_INJECTION64_PATH"), None, "{why}");
    }
}

#[test]
fn a_pod_in_a_sandbox_that_asks_for_the_tracer_stays_as_it_was() {
    let mut asked = labelled("cuda", json!([gpu_container()]));
    asked["spec"]["runtimeClassName"] = json!("gvisor");
    assert!(unprepared(&asked).contains("a kernel of its own"));
}

#[test]
fn a_smaller_file_fits_a_smaller_container_and_is_a_power_of_two() {
    let container = json!({"name": "main", "image": "train:1", "resources": {"limits": {"memory": "256Mi"}}});
    let mut asked = labelled("cuda", json!([container]));
    asked["metadata"]["annotations"] = json!({CUDA_BYTES_ANNOTATION: "5Mi"});
    let (patched, _) = admitted(&asked);
    let main = &patched["spec"]["containers"][0];
    let bytes = variable(main, "FLOPWATCH_CUDA_BYTES");
    assert_eq!(bytes, Some((8 << 20).to_string()));
    assert_eq!(said(&patched).1, "");
}
