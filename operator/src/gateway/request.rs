//! Makes a ProfilingSession of a request over HTTP. What a session may say is checked by the API
//! server, which knows the schema.

use std::collections::BTreeMap;

use flopwatch_api::REQUEST_ANNOTATION_PREFIX;
use flopwatch_api::selector::LabelSelector;
use flopwatch_api::session::{ProfilingSession, ProfilingSessionSpec, TargetSpec};

use crate::gateway::messages::{RunRequest, RunTarget};
use crate::gateway::options::set;

/// Most further fields of a request.
const MAX_FIELDS: usize = 16;
/// Longest value of one, in bytes.
const MAX_VALUE_CHARS: usize = 1024;
/// Longest name of one, as annotations have it.
const MAX_NAME_CHARS: usize = 63;

/// Why a request makes no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The target names no pods, or names them twice.
    #[error(
        "target needs exactly one of pod (one pod, by name), selector (pods, by label), template (a pod to make) and replica_of (a pod to \
         copy); a namespace can have a default in a ConfigMap flopwatch-run"
    )]
    Target,
    /// The namespace is no name.
    #[error("target.namespace must be the name of a namespace")]
    Namespace,
    /// No namespace is named, and the cluster has none for such requests.
    #[error(
        "target.namespace is missing, and the cluster's administrator chose no namespace for requests without one (gateway.run.namespace \
         of the chart)"
    )]
    NoNamespace,
    /// There are too many further fields.
    #[error("at most {MAX_FIELDS} further fields are kept")]
    Fields,
    /// A further field cannot be kept.
    #[error(
        "the field {0:?} cannot be kept: names have letters, digits, `-`, `_` and `.` (at most {MAX_NAME_CHARS}), values at most {MAX_VALUE_CHARS} bytes"
    )]
    Field(String),
}

/// Whether a namespace can have that name. It stands in paths of the API server.
pub(crate) fn is_namespace(name: &str) -> bool {
    let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let ends_well = !name.starts_with('-') && !name.ends_with('-');
    (1..=63).contains(&name.len()) && ends_well && name.chars().all(is_label)
}

/// The namespace that a request is about: its own, or `usual` where it names none.
pub(crate) fn namespace_of(request: &RunRequest, usual: Option<&str>) -> Result<String, RequestError> {
    let namespace = request.target.namespace.as_deref().or(usual);
    let namespace = namespace.ok_or(RequestError::NoNamespace)?;
    if is_namespace(namespace) {
        Ok(namespace.to_owned())
    } else {
        Err(RequestError::Namespace)
    }
}

impl RunRequest {
    /// Whether it says which pods it is about.
    pub(crate) fn names_pods(&self) -> bool {
        let RunTarget {
            pod,
            selector,
            template,
            replica_of,
            ..
        } = &self.target;
        pod.is_some() || selector.is_some() || template.is_some() || replica_of.is_some()
    }
}

/// The session that a request asks for, without a name of its own.
pub(crate) fn session_of(request: RunRequest) -> Result<ProfilingSession, RequestError> {
    let RunRequest {
        mode,
        target,
        options,
        further,
    } = request;
    let RunTarget {
        namespace: _,
        pod,
        selector,
        template,
        replica_of,
        max_pods,
        containers,
    } = target;
    let annotations = annotations(further)?;
    let mut asked = TargetSpec {
        container_names: containers,
        ..TargetSpec::default()
    };
    match (pod, selector, template, replica_of) {
        (Some(pod), None, None, None) => asked.pod_name = Some(pod),
        (None, Some(labels), None, None) if !labels.is_empty() => {
            asked.pod_selector = Some(LabelSelector {
                match_labels: Some(labels),
                ..LabelSelector::default()
            });
        }
        (None, None, Some(mut template), None) => {
            let metadata = template.metadata.get_or_insert_default();
            metadata.annotations.extend(annotations.clone());
            asked.pod_template = Some(template);
        }
        (None, None, None, Some(original)) => asked.replica_of = Some(original),
        _ => return Err(RequestError::Target),
    }
    set(&mut asked.max_pods, max_pods);
    let mut spec = ProfilingSessionSpec::of(asked);
    spec.profiler.type_ = mode.0;
    options.set_on(&mut spec);
    let mut session = ProfilingSession::new("", spec);
    session.metadata.name = None;
    session.metadata.generate_name = Some("run-".to_owned());
    session.metadata.annotations = Some(annotations);
    Ok(session)
}

fn annotations(further: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, RequestError> {
    if further.len() > MAX_FIELDS {
        return Err(RequestError::Fields);
    }
    let kept = further.into_iter().map(|(name, value)| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let fits = name.len() <= MAX_NAME_CHARS
            && value.len() <= MAX_VALUE_CHARS
            && ends(name.chars().next())
            && ends(name.chars().last())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if fits {
            Ok((format!("{REQUEST_ANNOTATION_PREFIX}{name}"), value))
        } else {
            Err(RequestError::Field(name))
        }
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn made(request: Value) -> Result<Value, String> {
        let request: RunRequest = serde_json::from_value(request).map_err(|error| error.to_string())?;
        let namespace = namespace_of(&request, None).map_err(|error| error.to_string())?;
        let session = session_of(request).map_err(|error| error.to_string())?;
        let mut session = serde_json::to_value(session).map_err(|error| error.to_string())?;
        session["namespace"] = json!(namespace);
        Ok(session)
    }

    #[test]
    fn a_request_of_the_least_takes_every_default_of_a_session() {
        let session = made(json!({"mode": "auto", "target": {"namespace": "team", "pod": "train"}})).unwrap();
        let plain: ProfilingSessionSpec = serde_json::from_value(json!({"target": {"podName": "train"}})).unwrap();
        assert_eq!(session["spec"], serde_json::to_value(plain).unwrap());
        assert_eq!(session["namespace"], "team");
        assert_eq!(session["metadata"], json!({"generateName": "run-", "annotations": {}}));
    }

    #[test]
    fn options_and_further_fields_are_kept() {
        let session = made(json!({
            "mode": "nsys", "solver": "cg", "mesh_file": "wing.msh",
            "target": {"namespace": "team", "selector": {"app": "train"}, "max_pods": 3, "containers": ["main"]},
            "options": {"duration_seconds": 20, "outputs": ["Timeline"], "require": ["nvtx_range"], "ttl_seconds_after_finished": 60},
        }))
        .unwrap();
        let spec = &session["spec"];
        assert_eq!(spec["profiler"]["type"], "Nsys");
        assert_eq!(spec["target"]["podSelector"], json!({"matchLabels": {"app": "train"}}));
        assert_eq!(
            (&spec["target"]["maxPods"], &spec["durationSeconds"]),
            (&json!(3), &json!(20))
        );
        assert_eq!(spec["retention"]["ttlSecondsAfterFinished"], 60);
        assert_eq!(
            session["metadata"]["annotations"],
            json!({"request.flopwatch.dev/solver": "cg", "request.flopwatch.dev/mesh_file": "wing.msh"})
        );
    }

    #[test]
    fn a_template_is_given_the_further_fields_for_its_program() {
        let session = made(json!({
            "mode": "nsys", "solver": "cg",
            "target": {"namespace": "team", "template": {"spec": {"containers": [{"name": "main", "image": "bench"}]}}},
            "options": {"start": "ContainerStart"},
        }))
        .unwrap();
        assert_eq!(session["spec"]["start"], "ContainerStart");
        let template = &session["spec"]["target"]["podTemplate"];
        assert_eq!(template["spec"]["containers"][0]["image"], "bench");
        assert_eq!(
            template["metadata"]["annotations"]["request.flopwatch.dev/solver"],
            "cg"
        );
    }

    #[test]
    fn a_copy_of_a_pod_is_asked_for_by_its_name() {
        let target = json!({"namespace": "team", "replica_of": "train"});
        let session = made(json!({"mode": "ncu", "target": target})).unwrap();
        assert_eq!(session["spec"]["target"]["replicaOf"], "train");
        let both = json!({"namespace": "team", "pod": "a", "replica_of": "train"});
        assert!(
            made(json!({"mode": "ncu", "target": both}))
                .unwrap_err()
                .contains("exactly one of")
        );
    }

    #[test]
    fn a_request_without_a_namespace_is_about_the_usual_one() {
        let request: RunRequest = serde_json::from_value(json!({"mode": "nsys", "solver": "cg"})).unwrap();
        assert!(!request.names_pods());
        assert_eq!(namespace_of(&request, Some("bench")).unwrap(), "bench");
        let error = namespace_of(&request, None).unwrap_err().to_string();
        assert!(error.contains("gateway.run.namespace"), "{error}");
    }

    #[test]
    fn what_makes_no_session_says_why() {
        let target = json!({"namespace": "team", "pod": "train"});
        let many: BTreeMap<String, String> = (0..17).map(|at| (format!("f{at}"), String::new())).collect();
        let mut too_many = json!(many);
        too_many["mode"] = json!("auto");
        too_many["target"] = target.clone();
        let cases = [
            (
                json!({"mode": "auto", "target": {"namespace": "team"}}),
                "exactly one of",
            ),
            (
                json!({"mode": "auto", "target": {"namespace": "team", "pod": "a", "selector": {"a": "b"}}}),
                "exactly one of",
            ),
            (
                json!({"mode": "auto", "target": {"namespace": "team", "selector": {}}}),
                "exactly one of",
            ),
            (
                json!({"mode": "auto", "target": {"namespace": "../x", "pod": "a"}}),
                "target.namespace",
            ),
            (json!({"mode": "gdb", "target": target}), "gdb"),
            (json!({"mode": "auto", "target": target, "a/b": "c"}), "a/b"),
            (json!({"mode": "auto", "target": target, "solver": 7}), "string"),
            (
                json!({"mode": "auto", "target": target, "options": {"seconds": 7}}),
                "seconds",
            ),
            (too_many, "16"),
        ];
        for (request, expected) in cases {
            let message = made(request).unwrap_err();
            assert!(message.contains(expected), "{expected}: {message}");
        }
    }
}
