//! The session that a command line asks for.

use flopwatch_api::artifact::Output;
use flopwatch_api::profiler::{NsysOptions, ProfilerSpec};
use flopwatch_api::session::{
    ProfilingSession, ProfilingSessionSpec, RetentionSpec, StartMode, TargetSpec, TransformSpec,
};

use crate::arguments::ProfileArguments;

/// Longest beginning of a generated name: a session's name has at most 52 characters, and the API server adds five.
const LONGEST_PREFIX: usize = 47;

/// The session; without a name of its own it is named after the pod, and the API server makes the name unique.
pub fn session(arguments: &ProfileArguments, namespace: &str) -> ProfilingSession {
    let outputs = match arguments.outputs.as_slice() {
        [] => vec![Output::Timeline, Output::Summary],
        outputs => without_repeats(outputs),
    };
    let trace = without_repeats(&arguments.trace);
    let spec = ProfilingSessionSpec {
        target: TargetSpec {
            pod_name: Some(arguments.pod.0.clone()),
            container_names: without_repeats(&arguments.containers),
            max_pods: 1,
            ..TargetSpec::default()
        },
        profiler: ProfilerSpec {
            type_: arguments.profiler.into(),
            nsys: (!trace.is_empty()).then_some(NsysOptions { trace }),
        },
        start: StartMode::Now,
        duration_seconds: arguments.duration.0,
        require: without_repeats(&arguments.require),
        start_deadline_seconds: 300,
        metrics: flopwatch_api::session::MetricsSpec::default(),
        transform: TransformSpec::default(),
        outputs,
        retention: RetentionSpec::default(),
        stop: None,
    };
    let mut session = ProfilingSession::new("", spec);
    session.metadata.namespace = Some(namespace.to_owned());
    session.metadata.name.clone_from(&arguments.name);
    if arguments.name.is_none() {
        session.metadata.generate_name = Some(prefix(&arguments.pod.0));
    }
    session
}

fn prefix(pod: &str) -> String {
    // Names of pods are ASCII; those of nothing else reach here.
    let cut: String = pod.chars().take(LONGEST_PREFIX - 1).collect();
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
            Command::Profile(arguments) => serde_json::to_value(session(&arguments, "team")).unwrap(),
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
    fn a_long_name_of_a_pod_leaves_place_for_the_rest() {
        let long = format!("{}-x", "a".repeat(45));
        assert_eq!(prefix(&long), format!("{}-", "a".repeat(45)));
        assert_eq!(prefix("trainer-0.a"), "trainer-0.a-");
        assert!(prefix(&"b".repeat(253)).len() <= LONGEST_PREFIX);
    }
}
