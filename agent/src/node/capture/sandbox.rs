//! What is said of a container of which the node shows no process, for its programs have a kernel
//! of their own.

use flopwatch_api::pod;
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;
use k8s_openapi::api::core::v1::Pod;

/// `failure` of a look at a container of a pod; that its sandbox hides it, where that is why
/// nothing of it was found.
pub(super) fn explain(failure: Failure, pod: &Pod) -> Failure {
    let hides = failure.reason == CaptureReason::TargetNotRunning;
    match pod::sandbox(pod).filter(|_| hides) {
        None => failure,
        Some(class) => Failure::new(
            CaptureReason::ProfilerUnavailable,
            format!(
                "the pod's runtime class is {class}, whose programs run behind a kernel of their own, and \
                 the node shows no process of the container; take the node's usual runtime, or one whose \
                 name begins with nvidia"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_that_a_sandbox_hides_has_not_ended() {
        let of = |class: &str, reason| {
            let pod = json!({"spec": {"containers": [], "runtimeClassName": class}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            explain(Failure::new(reason, "no process"), &pod)
        };
        for class in ["gvisor", "kata-qemu"] {
            let failure = of(class, CaptureReason::TargetNotRunning);
            assert_eq!(failure.reason, CaptureReason::ProfilerUnavailable);
            let says = |part: &str| failure.message.contains(part);
            assert!(says(class) && says("usual runtime"), "{failure}");
        }
        let ended = of("nvidia", CaptureReason::TargetNotRunning);
        assert_eq!(ended.reason, CaptureReason::TargetNotRunning);
        let other = of("gvisor", CaptureReason::AttachFailed);
        assert_eq!(other.message, "no process");
    }
}
