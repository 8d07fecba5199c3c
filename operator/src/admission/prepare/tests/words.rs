//! Labels of several words, and those that need variables alone.

use super::*;

#[test]
fn words_that_need_variables_alone_change_nothing_else() {
    let asked = labelled("kineto", json!([{"name": "main", "image": "train:1"}]));
    let (patched, preparation) = admitted(&asked);
    let mut expected = asked["spec"].clone();
    expected["containers"][0]["env"] = json!([
        {"name": "KINETO_USE_DAEMON", "value": "1"}, {"name": "KINETO_DAEMON_INIT_DELAY_S", "value": "10"}
    ]);
    assert_eq!(patched["spec"], expected);
    assert_eq!((preparation.prepared.len(), preparation.unprepared.len()), (0, 0));
    assert_eq!(
        patched["metadata"]["annotations"],
        json!({PREPARED_FOR_ANNOTATION: "main: kineto", PREPARED_VERSION_ANNOTATION: "0.1.0"})
    );
    assert_eq!(needed_entrypoints(&typed(&asked), &options()), []);
}

#[test]
fn a_pod_with_limited_storage_says_how_much_of_it_captures_of_each_word_that_writes_may_take() {
    let room = |words: &str, limit: Option<&str>, forged: Option<&str>| {
        let mut container = json!({"name": "main", "image": "train:1", "command": ["train"]});
        if let Some(limit) = limit {
            container["resources"] = json!({"limits": {"ephemeral-storage": limit}});
        }
        let mut asked = labelled(words, json!([container]));
        if let Some(forged) = forged {
            asked["metadata"]["annotations"] = json!({CAPTURE_BYTES_ANNOTATION: forged});
        }
        let (patched, preparation) = admitted(&asked);
        assert_eq!(preparation.unprepared, [], "{words}");
        let annotations = &patched["metadata"]["annotations"];
        annotations.get(CAPTURE_BYTES_ANNOTATION).cloned()
    };
    let mebibytes = |count: u64| Some(json!((count << 20).to_string()));
    for words in ["kineto", "jax", "kineto.recorder"] {
        for forged in [None, Some("999999999999")] {
            assert_eq!(room(words, Some("300Mi"), forged), mebibytes(150), "{words}");
        }
        assert_eq!(room(words, None, Some("1")), None, "{words}: nothing limits it");
    }
    // Beside the tools, which take 200 MiB.
    assert_eq!(room("nsys.kineto", Some("300Mi"), None), mebibytes(36));
    // Its file has a volume of its own.
    assert_eq!(room("recorder", Some("300Mi"), None), None);
}

#[test]
fn words_combine_and_one_that_is_refused_leaves_the_others() {
    let (patched, _) = admitted(&labelled("kineto.nsys", json!([gpu_container()])));
    let annotations = &patched["metadata"]["annotations"];
    assert_eq!(annotations[PREPARED_FOR_ANNOTATION], "main: nsys.kineto");
    assert_eq!(annotations[PREPARED_ANNOTATION], "main");
    assert_eq!(patched["spec"]["containers"][0]["env"][0]["name"], "KINETO_USE_DAEMON");

    let without_command = labelled("nsys.kineto", json!([{"name": "main", "image": "train:1"}]));
    let (patched, _) = admitted(&without_command);
    let annotations = &patched["metadata"]["annotations"];
    assert_eq!(annotations[PREPARED_FOR_ANNOTATION], "main: kineto");
    let why = annotations[UNPREPARED_ANNOTATION].as_str().unwrap();
    assert!(why.starts_with("main: the container has no command"), "{why}");
    assert!(annotations.get(PREPARED_ANNOTATION).is_none());
}

#[test]
fn a_variable_that_the_user_set_is_kept_and_told() {
    let mut container = gpu_container();
    container["env"] = json!([{"name": "KINETO_USE_DAEMON", "value": "0"}]);
    let asked = labelled("kineto", json!([container]));
    let (patched, preparation) = admitted(&asked);
    assert_eq!(patched["spec"]["containers"][0], container);
    assert_eq!(preparation.prepared_for, []);
    let why = annotation(&patched, UNPREPARED_ANNOTATION);
    assert!(why.contains("KINETO_USE_DAEMON itself"), "{why}");
}

fn dumping(wish: &str, spec: Value) -> Value {
    let mut pod = pod(json!({JAX_DUMPS_ANNOTATION: wish}), spec);
    pod["metadata"]["labels"][PREPARE_LABEL] = json!("jax");
    pod
}

#[test]
fn a_pod_that_asks_for_dumps_of_jax_gets_a_folder_for_them_and_its_flags_are_appended_to() {
    let plain = json!({"name": "side", "image": "b"});
    let own = json!({
        "name": "main", "image": "train:1", "env": [{"name": "XLA_FLAGS", "value": "--xla_a=1"}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}]
    });
    let volumes = json!([{"name": "data", "emptyDir": {}}]);
    let asked = dumping("true", json!({"containers": [own, plain], "volumes": volumes}));
    let (patched, preparation) = admitted(&asked);
    assert_eq!(preparation.unprepared, []);
    let spec = &patched["spec"];
    let names = column(&spec["volumes"], "name");
    assert_eq!(names, ["data", "flopwatch-jax-0", "flopwatch-jax-1"]);
    let flags = "--xla_dump_to=/flopwatch/jax --xla_dump_hlo_as_text --xla_dump_max_hlo_modules=512";
    for (container, mounts, env) in [
        (
            &spec["containers"][0],
            json!([{"name": "data", "mountPath": "/data"}, {"name": "flopwatch-jax-0", "mountPath": "/flopwatch/jax"}]),
            json!([
                {"name": "XLA_FLAGS", "value": format!("--xla_a=1 {flags}")},
                {"name": "JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "value": "-1"},
                {"name": "JAX_DUMP_IR_TO", "value": "/flopwatch/jax"}
            ]),
        ),
        (
            &spec["containers"][1],
            json!([{"name": "flopwatch-jax-1", "mountPath": "/flopwatch/jax"}]),
            json!([
                {"name": "JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "value": "-1"},
                {"name": "XLA_FLAGS", "value": flags},
                {"name": "JAX_DUMP_IR_TO", "value": "/flopwatch/jax"}
            ]),
        ),
    ] {
        assert_eq!((&container["volumeMounts"], &container["env"]), (&mounts, &env));
    }
}

#[test]
fn a_copy_of_a_pod_with_a_folder_for_dumps_is_prepared_for_nsight_systems() {
    let asked = dumping("true", json!({"containers": [gpu_container()]}));
    let (mut copy, _) = admitted(&asked);
    copy["metadata"] = json!({"name": "copy", "labels": {PREPARE_LABEL: "nsys"}});
    let (patched, preparation) = admitted(&copy);
    assert_eq!(preparation.prepared, ["main"]);
    assert_eq!(preparation.unprepared, []);
    let paths = column(&patched["spec"]["containers"][0]["volumeMounts"], "mountPath");
    assert_eq!(paths, ["/flopwatch/jax", "/flopwatch/tools", "/flopwatch/run"]);
}

#[test]
fn dumps_of_jax_that_cannot_be_had_leave_the_pod_as_it_was_and_say_why() {
    let small = json!({"limits": {"ephemeral-storage": "1Gi"}});
    let mounts = json!([{"name": "mine", "mountPath": "/flopwatch/jax"}]);
    for (wish, container, volumes, says) in [
        ("yes", json!({}), json!([]), "write true or false"),
        ("true", json!({"resources": small}), json!([]), "too small for dumps"),
        (
            "true",
            json!({"volumeMounts": mounts}),
            json!([]),
            "/flopwatch must be free",
        ),
        (
            "true",
            json!({}),
            json!([{"name": "flopwatch-jax-0", "emptyDir": {}}]),
            "named flopwatch-jax-0",
        ),
    ] {
        let mut container = container;
        container["name"] = json!("main");
        let asked = dumping(wish, json!({"containers": [container], "volumes": volumes}));
        let (patched, _) = admitted(&asked);
        assert_eq!(patched["spec"]["volumes"], volumes);
        let env = json!([{"name": "JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "value": "-1"}]);
        assert_eq!(patched["spec"]["containers"][0]["env"], env, "{wish}");
        let why = annotation(&patched, UNPREPARED_ANNOTATION);
        assert!(why.contains(says), "{why}");
    }
    let (patched, _) = admitted(&dumping("false", json!({"containers": [gpu_container()]})));
    assert!(patched["spec"].get("volumes").is_none());
}

fn recorded(words: &str, container: Value, annotations: Value) -> Value {
    let mut pod = labelled(words, json!([container]));
    pod["metadata"]["annotations"] = annotations;
    pod
}

#[test]
fn a_pod_that_asks_for_the_recorder_gets_its_library_variables_and_a_volume_in_memory_and_keeps_its_command() {
    let container = json!({"name": "main", "image": "train:1"});
    let size = json!({RECORDER_BYTES_ANNOTATION: "1Mi"});
    let (patched, preparation) = admitted(&recorded("recorder", container, size));
    assert_eq!(
        (preparation.unprepared.len(), preparation.prepared.len()),
        (0, 0),
        "{preparation:?}"
    );
    let spec = &patched["spec"];
    assert_eq!(
        spec["volumes"],
        json!([
            {"name": "flopwatch-recorder-0", "emptyDir": {"medium": "Memory", "sizeLimit": (2 << 20).to_string()}},
            {"name": "flopwatch-tools", "emptyDir": {}}
        ])
    );
    let init = spec["initContainers"].as_array().unwrap();
    assert_eq!((init.len(), &init[0]["name"]), (1, &json!("flopwatch-launcher")));
    let main = &spec["containers"][0];
    assert!(main.get("command").is_none(), "{main}");
    assert_eq!(
        main["volumeMounts"],
        json!([
            {"name": "flopwatch-recorder-0", "mountPath": "/flopwatch/recorder"},
            {"name": "flopwatch-tools", "mountPath": "/flopwatch/tools", "readOnly": true}
        ])
    );
    assert_eq!(
        main["env"],
        json!([
            {"name": "NVTX_INJECTION64_PATH", "value": "/flopwatch/tools/libflopwatch-recorder.so"},
            {"name": "FLOPWATCH_RECORDER_DIR", "value": "/flopwatch/recorder"},
            {"name": "FLOPWATCH_RECORDER_BYTES", "value": (1 << 20).to_string()}
        ])
    );
    assert_eq!(annotation(&patched, PREPARED_FOR_ANNOTATION), "main: recorder");
}

#[test]
fn the_recorder_goes_beside_the_tools_of_a_profiler() {
    let (patched, _) = admitted(&recorded("recorder.nsys", gpu_container(), json!({})));
    let spec = &patched["spec"];
    let init = column(&spec["initContainers"], "name");
    assert_eq!(init, ["flopwatch-launcher", "flopwatch-tools"]);
    let volumes = column(&spec["volumes"], "name");
    for name in ["flopwatch-tools", "flopwatch-recorder-0"] {
        let of_it = volumes.iter().filter(|volume| **volume == name).count();
        assert_eq!(of_it, 1, "{name}: {volumes:?}");
    }
    assert_eq!(annotation(&patched, PREPARED_FOR_ANNOTATION), "main: nsys.recorder");
}

#[test]
fn what_the_recorder_cannot_go_into_is_told_and_left_as_it_is() {
    let plain = json!({"name": "main", "image": "train:1"});
    let mut own_library = plain.clone();
    own_library["env"] = json!([{"name": "NVTX_INJECTION64_PATH", "value": "/own.so"}]);
    let mut small = plain.clone();
    small["resources"] = json!({"limits": {"memory": "32Mi"}});
    let mut taken = plain.clone();
    taken["volumeMounts"] = json!([{"name": "data", "mountPath": "/flopwatch/recorder"}]);
    let none = json!({});
    for (container, annotations, why) in [
        (own_library, &none, "NVTX_INJECTION64_PATH itself"),
        (small, &none, "at least 67108864 are asked"),
        (taken, &none, "/flopwatch/recorder"),
        (
            plain.clone(),
            &json!({RECORDER_BYTES_ANNOTATION: "1Gi"}),
            "from 256Ki to 256Mi",
        ),
        (
            plain,
            &json!({RECORDER_BYTES_ANNOTATION: "much"}),
            "from 256Ki to 256Mi",
        ),
    ] {
        let asked = recorded("recorder", container.clone(), annotations.clone());
        let (patched, preparation) = admitted(&asked);
        assert_eq!(patched["spec"]["containers"][0], container);
        assert!(preparation.prepared_for.is_empty(), "{why}");
        let told = annotation(&patched, UNPREPARED_ANNOTATION);
        assert!(told.contains(why), "{told}");
    }
}
