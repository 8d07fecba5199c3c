#![expect(
    clippy::needless_pass_by_value,
    reason = "`json!` values read better given than lent"
)]

use flopwatch_api::preparation::{
    HOLD_ANNOTATION, JAX_DUMPS_ANNOTATION, LAUNCHER, NCU_OPTIONS_ANNOTATION, RECORDER_BYTES_ANNOTATION,
};
use proptest::prelude::*;

use super::*;

mod cuda;
mod words;

pub(in crate::admission) fn options() -> PrepareOptions {
    PrepareOptions {
        launcher_image: "ghcr.io/flopwatch/agent:0.1.0".into(),
        tools_image: "ghcr.io/flopwatch/nsys:0.1.0".into(),
        tools_path: "/opt/nsys/target-linux-x64".into(),
        ncu: None,
        image_pull_policy: Some("IfNotPresent".into()),
        version: "0.1.0".into(),
        tools_bytes: 200 << 20,
        run_size_limit: None,
        min_memory_bytes: 64 << 20,
        entrypoints: EntrypointMode::Off,
        delivery: Delivery::Copy,
    }
}

fn pod(annotations: Value, spec: Value) -> Value {
    let mut metadata = json!({"name": "p", "namespace": "team", "labels": {PREPARE_LABEL: "nsys"}});
    if annotations != Value::Null {
        metadata["annotations"] = annotations;
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// A pod of those containers alone.
fn running(containers: Value) -> Value {
    pod(Value::Null, json!({"containers": containers}))
}

/// A pod with that label and those containers.
fn labelled(words: &str, containers: Value) -> Value {
    let mut pod = running(containers);
    pod["metadata"]["labels"][PREPARE_LABEL] = json!(words);
    pod
}

fn typed(pod: &Value) -> Pod {
    serde_json::from_value(pod.clone()).unwrap()
}

/// The pod as the API server would store it, and what was decided.
fn stored(pod: &Value, options: &PrepareOptions, entrypoints: &Entrypoints) -> (Value, Preparation) {
    let preparation = prepare(&typed(pod), options, entrypoints);
    let mut patched = pod.clone();
    json_patch::patch(&mut patched, &preparation.operations).unwrap();
    let again = prepare(&typed(&patched), options, entrypoints);
    assert_eq!(again.operations, [], "preparing twice changes nothing");
    (patched, preparation)
}

/// The same with [`options`] and without entrypoints.
fn admitted(pod: &Value) -> (Value, Preparation) {
    stored(pod, &options(), &Entrypoints::new())
}

/// That member of each object of a list.
fn column<'a>(list: &'a Value, member: &str) -> Vec<&'a Value> {
    let objects = list.as_array().into_iter().flatten();
    objects.map(|object| &object[member]).collect()
}

/// An annotation of the pod; empty where it has none of that name.
fn annotation<'a>(pod: &'a Value, key: &str) -> &'a str {
    pod["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

fn unprepared(pod: &Value) -> String {
    let (patched, preparation) = admitted(pod);
    assert_eq!(
        patched["spec"], pod["spec"],
        "a pod that is not prepared stays as it was"
    );
    assert!(preparation.prepared.is_empty());
    annotation(&patched, UNPREPARED_ANNOTATION).to_owned()
}

fn plain_container() -> Value {
    json!({"name": "main", "image": "train:1", "command": ["python", "train.py"], "args": ["--fast"]})
}

fn gpu_container() -> Value {
    let mut container = plain_container();
    container["resources"] = json!({"limits": {"nvidia.com/gpu": "1"}});
    container
}

/// The same with these limits too.
fn gpu_container_within(limits: &Value) -> Value {
    let mut container = gpu_container();
    json_patch::merge(&mut container["resources"]["limits"], limits);
    container
}

#[test]
fn a_plain_pod() {
    let pod = running(json!([plain_container()]));
    insta::assert_yaml_snapshot!("plain", admitted(&pod).0);
}

#[test]
fn a_pod_whose_tools_are_mounted_gets_no_init_container() {
    let pod = running(json!([plain_container()]));
    let mounting = options().delivered(Delivery::Mount);
    insta::assert_yaml_snapshot!("mounted", stored(&pod, &mounting, &Entrypoints::new()).0);
    let copied = admitted(&pod).0;
    let again = prepare(&typed(&copied), &mounting, &Entrypoints::new());
    assert_eq!(again.operations, [], "what was copied into is not mounted over");
}

#[test]
fn a_sessions_own_pod_stays_for_its_capture_and_another_does_not() {
    let spec = json!({"containers": [gpu_container()]});
    for (annotations, first) in [
        (json!({HOLD_ANNOTATION: "true"}), "hold"),
        (json!({HOLD_ANNOTATION: "false"}), "run"),
        (Value::Null, "run"),
    ] {
        let (patched, _) = admitted(&pod(annotations, spec.clone()));
        let command: Vec<String> = serde_json::from_value(patched["spec"]["containers"][0]["command"].clone()).unwrap();
        assert_eq!((command[0].as_str(), command[1].as_str()), (LAUNCHER, first));
        assert_eq!(command[command.len() - 3..], ["--", "python", "train.py"]);
        assert_eq!(patched["spec"]["containers"][0]["args"], json!(["--fast"]));
    }
}

#[test]
fn nsight_compute_starts_the_program_of_a_sessions_pod_and_of_no_other() {
    let options = PrepareOptions {
        ncu: Some(NcuTools {
            image: "ncu:1".into(),
            path: "/opt/ncu".into(),
            bytes: 400 << 20,
        }),
        ..options()
    };
    let pod = |label: &str, annotations: Value, limit: Option<&str>| {
        let limits = limit.map_or(json!({}), |limit| json!({"ephemeral-storage": limit}));
        let mut pod = pod(annotations, json!({"containers": [gpu_container_within(&limits)]}));
        pod["metadata"]["labels"][PREPARE_LABEL] = json!(label);
        pod
    };
    let chosen = json!({HOLD_ANNOTATION: "true", NCU_OPTIONS_ANNOTATION: r#"{"launchCount": 3}"#});
    let own = pod("ncu.kineto", chosen.clone(), None);
    let (patched, preparation) = stored(&own, &options, &Entrypoints::new());
    assert_eq!(preparation.prepared, ["main"]);
    let command: Vec<String> = serde_json::from_value(patched["spec"]["containers"][0]["command"].clone()).unwrap();
    assert_eq!(command[..3], [LAUNCHER, "profile", "--"]);
    let ncu = "/ncu/target/linux-desktop-glibc_2_11_3-x64/ncu";
    assert!(command[3].ends_with(ncu), "{command:?}");
    let count = ["--launch-count", "3"];
    assert!(command.windows(2).any(|words| words == count), "{command:?}");
    assert_eq!(command[command.len() - 2..], ["python", "train.py"]);
    let tools = &patched["spec"]["initContainers"][1];
    assert_eq!(
        json!([tools["image"], tools["command"][2]]),
        json!(["ncu:1", "/opt/ncu"])
    );
    assert_eq!(annotation(&patched, PREPARED_FOR_ANNOTATION), "main: ncu.kineto");

    let held = json!({HOLD_ANNOTATION: "true"});
    let malformed = json!({HOLD_ANNOTATION: "true", NCU_OPTIONS_ANNOTATION: r#"{"set": "All"}"#});
    let without = PrepareOptions {
        ncu: None,
        ..options.clone()
    };
    for (what, label, annotations, limit, options, words) in [
        (
            "a pod of a user's",
            "ncu",
            Value::Null,
            None,
            &options,
            "spec.target.podTemplate",
        ),
        ("no image", "ncu", held.clone(), None, &without, "images.ncu"),
        (
            "two profilers",
            "ncu.nsys",
            held.clone(),
            None,
            &options,
            "leave one out",
        ),
        (
            "malformed options",
            "ncu",
            malformed,
            None,
            &options,
            "unknown variant `All`",
        ),
        (
            "no room for it",
            "ncu",
            held,
            Some("400Mi"),
            &options,
            "ephemeral-storage",
        ),
    ] {
        let pod = pod(label, annotations, limit);
        let (patched, _) = stored(&pod, options, &Entrypoints::new());
        assert_eq!(patched["spec"]["containers"], pod["spec"]["containers"], "{what}");
        let why = annotation(&patched, UNPREPARED_ANNOTATION);
        assert!(why.contains(words), "{what}: {why}");
    }
}

#[test]
fn a_restricted_pod_with_a_read_only_root() {
    let context = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true,
        "seccompProfile": {"type": "RuntimeDefault"}
    });
    let pod = pod(
        Value::Null,
        json!({
            "securityContext": {"runAsNonRoot": true, "runAsUser": 1234, "fsGroup": 1234},
            "initContainers": [{"name": "sidecar", "image": "proxy:1", "restartPolicy": "Always"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [{
                "name": "main", "image": "train:1", "command": ["/train"], "securityContext": context,
                "volumeMounts": [{"name": "data", "mountPath": "/data"}]
            }]
        }),
    );
    insta::assert_yaml_snapshot!("restricted", admitted(&pod).0);
}

#[test]
fn a_read_only_root_with_a_tmp_of_its_own_gets_no_second_one() {
    let pod = pod(
        Value::Null,
        json!({
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "containers": [{
                "name": "main", "image": "train:1", "command": ["/train"], "securityContext": {"readOnlyRootFilesystem": true},
                "volumeMounts": [{"name": "scratch", "mountPath": "/tmp/"}]
            }]
        }),
    );
    let (patched, _) = admitted(&pod);
    let volumes = column(&patched["spec"]["volumes"], "name");
    assert_eq!(volumes, ["scratch", "flopwatch-tools", "flopwatch-run-0"]);
}

#[test]
fn a_guaranteed_pod_stays_guaranteed_and_asks_for_no_more() {
    let guaranteed = json!({"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}});
    let pod = running(json!([
        {"name": "main", "image": "train:1", "command": ["/train"], "resources": guaranteed},
        {"name": "log", "image": "log:1", "resources": {"requests": {"cpu": "1", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "32Mi"}}}
    ]));
    insta::assert_yaml_snapshot!("guaranteed", admitted(&pod).0);
}

#[test]
fn two_containers_of_which_one_has_the_gpu() {
    let pod = running(json!([{"name": "log", "image": "log:1", "command": ["/log"]}, gpu_container()]));
    insta::assert_yaml_snapshot!("two_containers", admitted(&pod).0);
}

#[test]
fn a_container_without_a_command_is_left_alone_and_the_pod_says_so() {
    let pod = running(json!([{"name": "main", "image": "train:1", "args": ["--fast"]}]));
    insta::assert_yaml_snapshot!("no_command", admitted(&pod).0);
}

#[test]
fn a_prepared_pod_stays_as_it_is() {
    let pod = running(json!([gpu_container()]));
    let (prepared, _) = admitted(&pod);
    let changed = PrepareOptions {
        tools_image: "other:2".into(),
        version: "0.2.0".into(),
        ..options()
    };
    let again = prepare(&typed(&prepared), &changed, &Entrypoints::new());
    assert_eq!(again, Preparation::default());
}

#[test]
fn a_looked_up_entrypoint_keeps_the_arguments_in_their_order() {
    let options = PrepareOptions {
        entrypoints: EntrypointMode::All,
        ..options()
    };
    let image = |entrypoint: &[&str], cmd: &[&str]| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        ImageCommand {
            entrypoint: words(entrypoint),
            cmd: words(cmd),
        }
    };
    let cases = [
        (
            "image alone",
            image(&["/tini", "--"], &["a", "$(B) $HOME"]),
            json!(null),
            json!(["/tini", "--"]),
            json!(["a", "$$(B) $$HOME"]),
        ),
        (
            "own arguments replace the image's",
            image(&["/tini"], &["a"]),
            json!(["x", "$(B)"]),
            json!(["/tini"]),
            json!(["x", "$(B)"]),
        ),
        (
            "no entrypoint",
            image(&[], &["python3"]),
            json!(null),
            json!([]),
            json!(["python3"]),
        ),
        (
            "no CMD",
            image(&["/app"], &[]),
            json!(null),
            json!(["/app"]),
            json!(null),
        ),
    ];
    for (name, found, args, command, expected_args) in cases {
        let mut container = json!({"name": "main", "image": "train:1"});
        if args != Value::Null {
            container["args"] = args;
        }
        let pod = running(json!([container]));
        assert_eq!(
            needed_entrypoints(&typed(&pod), &options),
            [("main".to_owned(), "train:1".to_owned())]
        );
        let (patched, _) = stored(&pod, &options, &Entrypoints::from([("main".to_owned(), Ok(found))]));
        let container = &patched["spec"]["containers"][0];
        let mut wrapped = vec![json!(LAUNCHER), json!("run"), json!("--")];
        wrapped.extend(command.as_array().unwrap().clone());
        assert_eq!(container["command"], Value::Array(wrapped), "{name}");
        assert_eq!(container["args"], expected_args, "{name}");
    }
    let empty = running(json!([{"name": "main", "image": "train:1"}]));
    let nothing = Entrypoints::from([("main".to_owned(), Ok(image(&[], &[])))]);
    let (_, preparation) = stored(&empty, &options, &nothing);
    assert_eq!(preparation.unprepared, [("main".to_owned(), Refusal::EmptyEntrypoint)]);
}

#[test]
fn only_pinned_images_are_looked_up_in_that_mode() {
    let options = PrepareOptions {
        entrypoints: EntrypointMode::Pinned,
        ..options()
    };
    let pod = running(json!([
        {"name": "digest", "image": "train@sha256:00"}, {"name": "always", "image": "train", "imagePullPolicy": "Always"},
        {"name": "tag", "image": "train:1", "imagePullPolicy": "IfNotPresent"}, {"name": "own", "image": "x:1", "command": ["/x"]}
    ]));
    let needed = needed_entrypoints(&typed(&pod), &options).into_iter();
    let names: Vec<_> = needed.map(|(name, _)| name).collect();
    assert_eq!(names, ["digest", "always"]);
    let (_, preparation) = stored(&pod, &options, &Entrypoints::new());
    assert!(preparation.unprepared.contains(&("tag".to_owned(), Refusal::NotPinned)));
    assert_eq!(preparation.prepared, ["own"]);
}

#[test]
fn what_cannot_be_prepared_says_why_and_what_to_do() {
    let spec = |extra: Value| {
        let mut spec = json!({"containers": [gpu_container()]});
        json_patch::merge(&mut spec, &extra);
        spec
    };
    let with = |extra: Value| pod(Value::Null, spec(extra));
    let limited = |limits: Value| running(json!([gpu_container_within(&limits)]));
    let mounted = |path: &str| {
        let mut container = gpu_container();
        container["volumeMounts"] = json!([{"name": "v", "mountPath": path}]);
        running(json!([container]))
    };
    let named = |names: &str| {
        let setup = json!({"initContainers": [{"name": "setup"}]});
        pod(json!({"flopwatch.dev/prepare-containers": names}), spec(setup))
    };
    let annotated = |key: &str, value: &str| pod(json!({key: value}), spec(json!({})));
    let tools = json!([{"name": "flopwatch-tools", "emptyDir": {}}]);
    let refusals = [
        ("another profiler", labelled("perf", json!([gpu_container()]))),
        ("windows", with(json!({"os": {"name": "windows"}}))),
        ("arm", with(json!({"nodeSelector": {"kubernetes.io/arch": "arm64"}}))),
        ("host pid", with(json!({"hostPID": true}))),
        ("unknown category", annotated("flopwatch.dev/nsys-trace", "cuda,vulkan")),
        ("no category", annotated("flopwatch.dev/nsys-trace", " ,")),
        ("graph mode", annotated("flopwatch.dev/nsys-cuda-graph-trace", "nodes")),
        ("range", annotated("flopwatch.dev/nsys-nvtx-capture", "st\nep")),
        ("no such container", named("missing")),
        ("init container", named("setup")),
        ("volume name", with(json!({"volumes": tools}))),
        ("mount", mounted("/flopwatch/run")),
        ("storage", limited(json!({"ephemeral-storage": "200Mi"}))),
        ("memory", limited(json!({"memory": "32Mi"}))),
    ];
    let message: BTreeMap<&str, String> = refusals.iter().map(|(name, pod)| (*name, unprepared(pod))).collect();
    insta::assert_yaml_snapshot!("refusals", message);
}

#[test]
fn a_pod_with_limited_storage_says_how_much_of_it_a_capture_may_take() {
    let room = |limits: Value, forged: &str| {
        let spec = json!({"containers": [gpu_container_within(&limits)]});
        let pod = pod(json!({CAPTURE_BYTES_ANNOTATION: forged}), spec);
        let (patched, preparation) = admitted(&pod);
        assert_eq!(preparation.prepared, ["main"]);
        let annotations = &patched["metadata"]["annotations"];
        annotations.get(CAPTURE_BYTES_ANNOTATION).cloned()
    };
    let limited = json!({"ephemeral-storage": "300Mi"});
    assert_eq!(room(limited, "999999999999"), Some(json!((36 << 20).to_string())));
    let unlimited = room(json!({}), "1");
    assert_eq!(unlimited, None, "nothing limits it, whatever the pod said before");
}

#[test]
fn a_pod_that_only_copied_the_annotation_loses_it() {
    let pod = pod(
        json!({PREPARED_ANNOTATION: "main", PREPARED_VERSION_ANNOTATION: "0.1.0"}),
        json!({"containers": [{"name": "main", "image": "train:1"}]}),
    );
    let (patched, _) = admitted(&pod);
    assert!(patched["metadata"]["annotations"].get(PREPARED_ANNOTATION).is_none());
}

#[test]
fn a_pod_that_did_not_ask_is_not_touched() {
    let mut pod = pod(
        json!({PREPARED_ANNOTATION: "x"}),
        json!({"containers": [gpu_container()]}),
    );
    pod["metadata"]["labels"] = json!({"app": "x"});
    assert_eq!(admitted(&pod).1, Preparation::default());
}

/// Requests and limits of the whole pod, and its class, as the scheduler and kubelet reckon them.
fn effective(pod: &Value) -> (BTreeMap<String, u128>, BTreeMap<String, u128>, &'static str) {
    let spec = typed(pod).spec.unwrap();
    let amount = |container: &Container, limits: bool| -> BTreeMap<String, u128> {
        let resources = container.resources.clone().unwrap_or_default();
        let list = if limits {
            resources.limits
        } else {
            resources.requests.or(resources.limits)
        };
        list.unwrap_or_default()
            .into_iter()
            .filter_map(|(name, quantity)| Some((name, milli(&quantity.0)?)))
            .collect()
    };
    let total = |limits: bool| {
        let mut sum: BTreeMap<String, u128> = BTreeMap::new();
        for container in &spec.containers {
            for (name, value) in amount(container, limits) {
                *sum.entry(name).or_default() += value;
            }
        }
        for container in spec.init_containers.iter().flatten() {
            for (name, value) in amount(container, limits) {
                let most = sum.entry(name).or_default();
                *most = (*most).max(value);
            }
        }
        sum
    };
    let all = || spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let shares = |container: &Container, limits: bool| -> Vec<(String, u128)> {
        amount(container, limits)
            .into_iter()
            .filter(|(name, _)| name == "cpu" || name == "memory")
            .collect()
    };
    let class = if all()
        .all(|container| shares(container, true).len() == 2 && shares(container, true) == shares(container, false))
    {
        "Guaranteed"
    } else if all().all(|container| shares(container, true).is_empty() && shares(container, false).is_empty()) {
        "BestEffort"
    } else {
        "Burstable"
    };
    (total(false), total(true), class)
}

fn milli(quantity: &str) -> Option<u128> {
    let value = crate::admission::quantity::bytes(quantity.strip_suffix('m').unwrap_or(quantity))?;
    Some(if quantity.ends_with('m') { value } else { value * 1000 })
}

fn any_container() -> impl Strategy<Value = Value> {
    let resources = prop_oneof![
        Just(json!({})),
        Just(json!({"limits": {"nvidia.com/gpu": "1"}})),
        (1..64_u32, 1..64_u32).prop_map(|(cpu, memory)| {
            let list = json!({"cpu": format!("{cpu}"), "memory": format!("{memory}Gi")});
            json!({"requests": list, "limits": list})
        }),
        (1..999_u32, 1..64_u32).prop_map(|(cpu, memory)| json!({"requests": {"cpu": format!("{cpu}m")}, "limits": {"memory": format!("{memory}Gi"), "ephemeral-storage": "2Gi"}})),
    ];
    (any::<bool>(), any::<bool>(), resources).prop_map(|(command, read_only, resources)| {
        let mut container =
            json!({"image": "x:1", "resources": resources, "securityContext": {"readOnlyRootFilesystem": read_only}});
        if command {
            container["command"] = json!(["/x"]);
        }
        container
    })
}

proptest! {
    #[test]
    fn any_pod_keeps_its_class_and_its_requests_and_is_prepared_once(
        containers in prop::collection::vec(any_container(), 1..5),
        sidecar in any::<bool>(),
        volumes in prop::option::of(Just(json!([{"name": "v", "emptyDir": {}}]))),
    ) {
        let containers: Vec<Value> = containers.into_iter().enumerate().map(|(index, mut container)| {
            container["name"] = json!(format!("c{index}"));
            container
        }).collect();
        let mut spec = json!({"containers": containers});
        if let Some(volumes) = volumes {
            spec["volumes"] = volumes;
        }
        if sidecar {
            spec["initContainers"] = json!([{"name": "s", "image": "s", "restartPolicy": "Always"}]);
        }
        let pod = pod(Value::Null, spec);
        let (patched, preparation) = admitted(&pod);
        prop_assert_eq!(effective(&pod), effective(&patched));
        prop_assert_eq!(preparation.prepared.is_empty(), patched["spec"] == pod["spec"]);
    }
}
