//! The session that a command line asks for.

mod manifest;

use flopwatch_api::profiler::{GpuMetrics, NsysOptions, ProfilerSpec, ProfilerType};
use flopwatch_api::session::{ProfilingSession, ProfilingSessionSpec, StartMode, TargetSpec};

use crate::arguments::{ProfileArguments, Start};

pub use manifest::{Manifest, Template};

/// Longest beginning of a generated name: a session's name has at most 52 characters, and the API
/// server adds five.
const MAX_PREFIX_CHARS: usize = 47;

/// How sessions of templates without a name are called.
const TEMPLATE_PREFIX: &str = "run";

/// The session; without a name of its own it is named after the pod, and the API server makes the
/// name unique.
pub fn session(arguments: &ProfileArguments, template: Option<Template>, namespace: &str) -> ProfilingSession {
    let nsys = NsysOptions {
        trace: without_repeats(&arguments.trace),
        cuda_graph_trace: arguments.cuda_graph_trace,
        capture_range: arguments.capture_range.clone(),
        gpu_metrics: arguments
            .gpu_metrics
            .map(|frequency_hertz| GpuMetrics { frequency_hertz }),
    };
    // The others start no program: Nsight Compute's window begins with its own.
    let starts = matches!(arguments.profiler, ProfilerType::Auto | ProfilerType::Nsys);
    let usual = if starts && (template.is_some() || arguments.replica) {
        Start::ContainerStart
    } else {
        Start::Now
    };
    let start = match arguments.start.unwrap_or(usual) {
        Start::Now => StartMode::Now,
        Start::ContainerStart => StartMode::ContainerStart,
    };
    let pod = arguments.pod.as_ref().map(|pod| pod.0.clone());
    let (of_template, pod_template) =
        template.map_or((None, None), |template| (template.name, Some(template.template)));
    let named_after = pod
        .clone()
        .or(of_template)
        .unwrap_or_else(|| TEMPLATE_PREFIX.to_owned());
    let (pod_name, replica_of) = if arguments.replica { (None, pod) } else { (pod, None) };
    let defaults = ProfilingSessionSpec::of(TargetSpec {
        pod_name,
        replica_of,
        pod_template,
        container_names: without_repeats(&arguments.containers),
        ..TargetSpec::default()
    });
    let spec = ProfilingSessionSpec {
        profiler: ProfilerSpec {
            type_: arguments.profiler,
            nsys: Some(nsys).filter(|options| *options != NsysOptions::default()),
            ncu: arguments.ncu.options(),
            ..ProfilerSpec::default()
        },
        start,
        duration_seconds: arguments.duration.0,
        require: without_repeats(&arguments.require),
        outputs: match arguments.outputs.as_slice() {
            [] => defaults.outputs.clone(),
            outputs => without_repeats(outputs),
        },
        ..defaults
    };
    let mut session = ProfilingSession::new("", spec);
    session.metadata.namespace = Some(namespace.to_owned());
    session.metadata.name.clone_from(&arguments.name);
    if arguments.name.is_none() {
        session.metadata.generate_name = Some(prefix(&named_after));
    }
    session
}

fn prefix(pod: &str) -> String {
    // Names of pods are ASCII; those of nothing else reach here.
    let cut: String = pod.chars().take(MAX_PREFIX_CHARS - 1).collect();
    format!("{}-", cut.trim_end_matches(['-', '.']))
}

fn without_repeats<T: Clone + PartialEq>(items: &[T]) -> Vec<T> {
    let mut kept: Vec<T> = Vec::with_capacity(items.len());
    for item in items {
        if !kept.contains(item) {
            kept.push(item.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::arguments::{Cli, Command};

    fn asked(words: &str) -> Value {
        let words = ["kubectl-flopwatch", "profile"].into_iter().chain(words.split(' '));
        match Cli::try_parse_from(words).unwrap().command {
            Command::Profile(arguments) => serde_json::to_value(session(&arguments, None, "team")).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pod_alone_is_profiled_with_the_defaults_of_the_api() {
        let asked = asked("pod/trainer");
        assert_eq!(
            asked["metadata"],
            json!({"namespace": "team", "generateName": "trainer-"})
        );
        let spec: ProfilingSessionSpec = serde_json::from_value(json!({"target": {"podName": "trainer"}})).unwrap();
        assert_eq!(asked["spec"], serde_json::to_value(spec).unwrap());
    }

    #[test]
    fn what_is_recent_is_a_session_of_the_flight_recorder() {
        let words = [
            "kubectl-flopwatch",
            "recent",
            "pod/trainer",
            "--seconds",
            "7",
            "-c",
            "main",
        ];
        let Command::Recent(arguments) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command");
        };
        let arguments: ProfileArguments = arguments.into();
        assert!(arguments.wait && !arguments.open);
        let asked = serde_json::to_value(session(&arguments, None, "team")).unwrap();
        let spec = &asked["spec"];
        assert_eq!(
            (&spec["profiler"], &spec["durationSeconds"]),
            (&json!({"type": "Recorder"}), &json!(7))
        );
        assert_eq!(
            spec["target"],
            json!({"podName": "trainer", "containerNames": ["main"], "maxPods": 1})
        );
    }

    #[test]
    fn options_of_nsight_systems_reach_the_spec() {
        let asked = asked("trainer --cuda-graph-trace node --capture-range nvtx:step,x4 --gpu-metrics");
        let nsys = json!({
            "cudaGraphTrace": "Node",
            "captureRange": {"trigger": "Nvtx", "name": "step", "count": 4},
            "gpuMetrics": {"frequencyHertz": 10_000}
        });
        assert_eq!(asked["spec"]["profiler"], json!({"type": "Auto", "nsys": nsys}));
    }

    #[test]
    fn what_is_asked_for_reaches_the_spec() {
        let asked = asked(
            "trainer -c main -c side -c main --duration 2m --profiler nsys --trace osrt,cuda,osrt --require cuda_kernel --outputs raw --name mine",
        );
        let spec = &asked["spec"];
        assert_eq!(asked["metadata"]["name"], "mine");
        assert_eq!(spec["target"]["containerNames"], json!(["main", "side"]));
        assert_eq!(spec["durationSeconds"], 120);
        assert_eq!(
            spec["profiler"],
            json!({"type": "Nsys", "nsys": {"trace": ["osrt", "cuda"]}})
        );
        assert_eq!(spec["require"], json!(["cuda_kernel"]));
        assert_eq!(spec["outputs"], json!(["Raw"]));
    }

    #[test]
    fn a_template_is_run_from_its_first_instruction() {
        let words = ["kubectl-flopwatch", "profile", "--template", "bench.yaml"];
        let Command::Profile(arguments) = Cli::try_parse_from(words).unwrap().command else {
            panic!("not what was asked for");
        };
        let text =
            "kind: Pod\nmetadata: {name: bench, labels: {app: bench}}\nspec: {containers: [{name: main, image: b}]}\n";
        let made = session(&arguments, Some(Template::parse(text).unwrap()), "team");
        let made = serde_json::to_value(made).unwrap();
        assert_eq!(made["metadata"]["generateName"], "bench-");
        assert_eq!(made["spec"]["start"], "ContainerStart");
        let template = &made["spec"]["target"]["podTemplate"];
        assert_eq!(template["metadata"]["labels"]["app"], "bench");
        assert_eq!(template["spec"]["containers"][0]["image"], "b");
        assert!(made["spec"]["target"].get("podName").is_none());
        assert!(Template::parse("kind: Job\nspec: {}\n").unwrap_err().contains("Job"));
        assert!(Cli::try_parse_from(["kubectl-flopwatch", "profile"]).is_err());
        assert!(Cli::try_parse_from(["kubectl-flopwatch", "profile", "p", "--template", "f"]).is_err());
    }

    #[test]
    fn a_copy_of_a_pod_is_asked_for_by_its_original() {
        let counters = asked("trainer --replica --profiler ncu");
        assert_eq!(counters["spec"]["target"]["replicaOf"], "trainer");
        assert_eq!(counters["spec"]["target"].get("podName"), None);
        assert_eq!(counters["spec"]["start"], "Now");
        assert_eq!(counters["metadata"]["generateName"], "trainer-");
        assert_eq!(asked("trainer --replica")["spec"]["start"], "ContainerStart");
        assert!(Cli::try_parse_from(["kubectl-flopwatch", "profile", "--replica", "--template", "f"]).is_err());
    }

    #[test]
    fn nsight_computes_options_reach_the_spec_and_its_window_begins_with_the_program() {
        let line =
            "kubectl-flopwatch profile --template f --profiler ncu --ncu-set roofline --kernel gemm --launches 3";
        let Command::Profile(arguments) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
            panic!("not what was asked for");
        };
        let text = "kind: Pod\nmetadata: {name: bench}\nspec: {containers: [{name: main, image: b}]}\n";
        let made = session(&arguments, Some(Template::parse(text).unwrap()), "team");
        let spec = serde_json::to_value(made).unwrap()["spec"].take();
        assert_eq!(spec["start"], "Now");
        let ncu = &spec["profiler"]["ncu"];
        assert_eq!(
            (&ncu["set"], &ncu["kernelRegex"], &ncu["launchCount"]),
            (&json!("Roofline"), &json!("gemm"), &json!(3))
        );
        let refused = |more: &str| Cli::try_parse_from(format!("{line} {more}").split(' ')).is_err();
        assert!(refused("--top-kernels-of first"), "one filter of kernels");
        let none = asked("trainer --profiler ncu");
        assert_eq!(none["spec"]["profiler"], json!({"type": "Ncu"}));
    }

    #[test]
    fn a_long_name_of_a_pod_leaves_place_for_the_rest() {
        let long = format!("{}-x", "a".repeat(45));
        assert_eq!(prefix(&long), format!("{}-", "a".repeat(45)));
        assert_eq!(prefix("trainer-0.a"), "trainer-0.a-");
        assert!(prefix(&"b".repeat(253)).len() <= MAX_PREFIX_CHARS);
    }
}
