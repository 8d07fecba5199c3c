//! How much of a pod's ephemeral storage its captures may take.
//!
//! The kubelet evicts a pod that uses more than the limits of its containers together: the tools,
//! the run folders, the containers' own layers, their logs and the pod's other emptyDirs all count.
//! What the workload will use cannot be known, so half of what the tools leave stays its own.

use k8s_openapi::api::core::v1::{Container, PodSpec};

use super::PrepareOptions;
use super::candidates;
use crate::admission::quantity;

/// Least that stays the workload's: logs and a little of its own.
const WORKLOAD_BYTES: u128 = 64 << 20;
/// Least room that makes a capture worth preparing for.
const MIN_CAPTURE_BYTES: u128 = 32 << 20;
/// What the run folder holds beside a capture: control files and the session's log.
const CONTROL_BYTES: u128 = 4 << 20;

/// The limit that the kubelet holds the pod to; none where no container has one.
pub(super) fn limit(spec: &PodSpec) -> Option<u128> {
    // One without a limit adds nothing, and does not lift those of the others.
    let sidecars = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|container| is_sidecar(container));
    spec.containers
        .iter()
        .chain(sidecars)
        .filter_map(|container| candidates::limit(container, "ephemeral-storage"))
        .reduce(u128::saturating_add)
}

/// Smallest limit with which so many bytes are copied into a pod.
pub(super) fn needed(copied_bytes: u64) -> u128 {
    u128::from(copied_bytes) + WORKLOAD_BYTES + MIN_CAPTURE_BYTES
}

/// Bytes that captures of each of `writing` containers may take; none where nothing limits them.
/// `tools` are those that are put into the pod, with run folders beside them; none where there are
/// none, and captures lie where the container's own files do.
pub(super) fn of_each(spec: &PodSpec, writing: usize, tools: Option<&PrepareOptions>) -> Option<u128> {
    let of_pod = limit(spec).map(|limit| {
        let tools_bytes = tools.map_or(0, |options| options.tools_bytes);
        let rest = limit.saturating_sub(tools_bytes.into());
        let shares = u128::try_from(writing.max(1)).unwrap_or(u128::MAX);
        rest.saturating_sub(WORKLOAD_BYTES.max(rest / 2)) / shares
    });
    let of_volume = tools
        .and_then(|options| options.run_size_limit.as_deref())
        .and_then(quantity::bytes)
        .map(|limit| limit.saturating_sub(CONTROL_BYTES));
    of_pod.into_iter().chain(of_volume).min()
}

/// An init container that goes on beside the others.
fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::prepare::tests::options;

    const MEBIBYTE: u128 = 1 << 20;

    fn room(limits: &[Option<&str>], prepared: usize, run_size_limit: Option<&str>) -> Option<u128> {
        let container = |limit: Option<&str>| -> Value {
            json!({"name": "c", "resources": {"limits": limit.map(|limit| json!({"ephemeral-storage": limit}))}})
        };
        let containers: Vec<Value> = limits.iter().copied().map(container).collect();
        let spec: PodSpec = serde_json::from_value(json!({"containers": containers})).unwrap();
        let options = PrepareOptions {
            run_size_limit: run_size_limit.map(str::to_owned),
            ..options()
        };
        let found = of_each(&spec, prepared, Some(&options));
        found.map(|bytes| bytes / MEBIBYTE)
    }

    #[test]
    fn where_no_tools_come_into_the_pod_captures_get_half_of_the_limit() {
        let limits = json!({"limits": {"ephemeral-storage": "300Mi"}});
        let spec: PodSpec =
            serde_json::from_value(json!({"containers": [{"name": "c", "resources": limits}]})).unwrap();
        let room = |writing| of_each(&spec, writing, None).map(|bytes| bytes / MEBIBYTE);
        assert_eq!((room(1), room(2)), (Some(150), Some(75)));
        assert_eq!(of_each(&PodSpec::default(), 1, None), None);
    }

    #[test]
    fn captures_get_half_of_what_the_tools_leave_of_the_limit_and_the_workload_keeps_64_mebibytes() {
        // The tools take 200 MiB.
        for (what, limits, prepared, size_limit, expected) in [
            ("no limit", &[None][..], 1, None, None),
            ("a small one", &[Some("300Mi")], 1, None, Some(36)),
            ("a large one", &[Some("2248Mi")], 1, None, Some(1024)),
            (
                "two of which one has none",
                &[Some("2248Mi"), None],
                1,
                None,
                Some(1024),
            ),
            (
                "limits of two together",
                &[Some("1Gi"), Some("1224Mi")],
                1,
                None,
                Some(1024),
            ),
            ("two prepared", &[Some("1Gi"), Some("1224Mi")], 2, None, Some(512)),
            ("less than the tools", &[Some("100Mi")], 1, None, Some(0)),
            ("a limit of the volume alone", &[None], 1, Some("104Mi"), Some(100)),
            (
                "a smaller one of the volume",
                &[Some("2248Mi")],
                1,
                Some("104Mi"),
                Some(100),
            ),
            ("a larger one of the volume", &[Some("300Mi")], 1, Some("1Gi"), Some(36)),
        ] {
            assert_eq!(room(limits, prepared, size_limit), expected, "{what}");
        }
    }

    #[test]
    fn a_sidecar_adds_its_limit_and_another_init_container_does_not() {
        let limited = |policy: Option<&str>| {
            let limits = json!({"limits": {"ephemeral-storage": "1Gi"}});
            let spec: PodSpec = serde_json::from_value(json!({
                "initContainers": [{"name": "i", "restartPolicy": policy, "resources": limits}],
                "containers": [{"name": "c", "resources": limits}]
            }))
            .unwrap();
            limit(&spec).map(|bytes| bytes / MEBIBYTE)
        };
        assert_eq!(limited(Some("Always")), Some(2048));
        assert_eq!(limited(None), Some(1024));
    }
}
