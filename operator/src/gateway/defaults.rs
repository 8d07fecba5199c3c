//! What a namespace profiles when a request does not say: the ConfigMap `flopwatch-run`, which
//! whoever runs the namespace writes.
//!
//! A client of an earlier service sends a mode and texts for its program, and knows neither pods
//! nor namespaces. The ConfigMap is read with the caller's own token, and the session is made with
//! it, so that a default gives nobody a right.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use serde::Deserialize;

use crate::gateway::api_server::{ApiServer, call_api_server};
use crate::gateway::messages::{RunRequest, RunTarget};
use crate::gateway::options::RunOptions;
use crate::gateway::problem::Problem;
use crate::gateway::token::Token;

/// Name of the ConfigMap with a namespace's defaults.
const CONFIG_MAP_NAME: &str = "flopwatch-run";
/// Key of the text in the ConfigMap.
const CONFIG_MAP_KEY: &str = "request.yaml";
/// Longest text that is read, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Why a default cannot be used.
#[derive(Debug, thiserror::Error)]
enum DefaultError {
    /// The ConfigMap has no such key.
    #[error("the ConfigMap {CONFIG_MAP_NAME} of this namespace has no key {CONFIG_MAP_KEY}")]
    NoKey,
    /// The text is longer than any request.
    #[error("{CONFIG_MAP_KEY} of the ConfigMap {CONFIG_MAP_NAME} is longer than {MAX_TEXT_BYTES} bytes")]
    Long,
    /// The text is no target with options.
    #[error("{CONFIG_MAP_KEY} of the ConfigMap {CONFIG_MAP_NAME} cannot be read: {0}")]
    Text(String),
    /// The target is none either.
    #[error(
        "{CONFIG_MAP_KEY} of the ConfigMap {CONFIG_MAP_NAME} names no pods: give target one of pod, selector and template"
    )]
    NoPods,
}

/// A request's parts, as the ConfigMap has them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    target: RunTarget,
    #[serde(default)]
    options: RunOptions,
}

impl ApiServer {
    /// The request with the namespace's default for its target, and for options that it does not
    /// give.
    pub(super) async fn with_defaults(
        &self,
        token: &Token,
        namespace: &str,
        request: RunRequest,
    ) -> Result<RunRequest, Problem> {
        let api: Api<ConfigMap> = Api::namespaced(self.client(&token.0)?, namespace);
        let Some(map) = call_api_server(api.get_opt(CONFIG_MAP_NAME)).await? else {
            // The request alone makes no session; its refusal says what to do.
            return Ok(request);
        };
        let text = map.data.unwrap_or_default().remove(CONFIG_MAP_KEY);
        let completed = text
            .ok_or(DefaultError::NoKey)
            .and_then(|text| complete(request, &text));
        completed.map_err(|error| Problem::BadRequest(error.to_string()))
    }
}

fn complete(request: RunRequest, text: &str) -> Result<RunRequest, DefaultError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(DefaultError::Long);
    }
    let defaults: Defaults = serde_saphyr::from_str(text).map_err(|error| DefaultError::Text(error.to_string()))?;
    let completed = RunRequest {
        target: RunTarget {
            // Of the namespace whose ConfigMap it is, whatever it says.
            namespace: request.target.namespace,
            max_pods: request.target.max_pods.or(defaults.target.max_pods),
            containers: if request.target.containers.is_empty() {
                defaults.target.containers
            } else {
                request.target.containers
            },
            ..defaults.target
        },
        options: request.options.or(defaults.options),
        ..request
    };
    if completed.names_pods() {
        Ok(completed)
    } else {
        Err(DefaultError::NoPods)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::gateway::request::session_of;

    fn made(request: Value, text: &str) -> Result<Value, String> {
        let request = serde_json::from_value(request).map_err(|error| error.to_string())?;
        let request = complete(request, text).map_err(|error| error.to_string())?;
        let session = session_of(request).map_err(|error| error.to_string())?;
        serde_json::to_value(session).map_err(|error| error.to_string())
    }

    const TEXT: &str = "
target:
  template:
    spec:
      containers: [{name: main, image: bench}]
options: {start: ContainerStart, duration_seconds: 60}
";

    #[test]
    fn a_mode_and_texts_alone_run_the_namespaces_benchmark() {
        let request = json!({"mode": "nsys", "solver": "cg", "mesh_file": "wing.msh"});
        let session = made(request, TEXT).unwrap();
        let spec = &session["spec"];
        assert_eq!(
            (&spec["start"], &spec["durationSeconds"]),
            (&json!("ContainerStart"), &json!(60))
        );
        let annotations = &spec["target"]["podTemplate"]["metadata"]["annotations"];
        assert_eq!(annotations["request.flopwatch.dev/mesh_file"], "wing.msh");
    }

    #[test]
    fn what_a_request_says_wins() {
        let request = json!({"mode": "nsys", "options": {"duration_seconds": 5}, "target": {"containers": ["side"]}});
        let session = made(request, TEXT).unwrap();
        assert_eq!(session["spec"]["durationSeconds"], 5);
        assert_eq!(session["spec"]["target"]["containerNames"], json!(["side"]));
    }

    #[test]
    fn a_default_that_is_none_says_why() {
        for (text, expected) in [
            ("target: {}", "names no pods"),
            ("targets: {}", "targets"),
            ("target: [", "cannot be read"),
        ] {
            let error = made(json!({"mode": "auto"}), text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let long = "#".repeat(MAX_TEXT_BYTES + 1);
        assert!(made(json!({"mode": "auto"}), &long).unwrap_err().contains("longer"));
    }
}
