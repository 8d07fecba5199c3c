//! With which reasons a capture may end, by its profiler and by what struck it.

use flopwatch_api::profiler::ProfilerType;

use crate::soak::fault::Fault;

/// Reason of an end that leaves nobody to say one: the session was deleted.
pub(super) const GONE: &str = "Gone";

/// What a target may make of its session by ending: a result that was taken out before is one.
const ENDED: &[&str] = &[
    "Succeeded",
    "TargetNotRunning",
    "ContainerRestarted",
    "CollectionFailed",
    "AttachFailed",
    "NoTargets",
];

/// Reasons with which the capture may end; [`GONE`] where it may be none.
pub(super) const fn reasons(profiler: ProfilerType, fault: Fault) -> &'static [&'static str] {
    match (profiler, fault) {
        (_, Fault::SessionDeleted) => &[GONE],
        // The session's own pod may be created while the API server does not reach admission, and
        // is none then.
        (ProfilerType::Ncu, Fault::ApiServerAway) => &["Succeeded", "PodNotPrepared"],
        (_, Fault::None | Fault::ControllerKilled | Fault::ApiServerAway) => &["Succeeded"],
        // The processes were told the window's length, and end it by themselves.
        (ProfilerType::Kineto, Fault::Keep) => &["Succeeded", "Failed", "Discarded"],
        // A stop may come before a capture was made, or before the window, or leave it too short to
        // hold a range.
        (_, Fault::Keep) => &["Succeeded", "Failed", "Discarded", "RequiredEventsMissing"],
        (_, Fault::Discard) => &["Succeeded", "Discarded"],
        // The helpers that enter the container are the agent's tools too; nobody but Nsight Systems
        // has any there.
        (ProfilerType::Auto | ProfilerType::Nsys, Fault::ToolKilled) => &[
            "Succeeded",
            "AttachFailed",
            "CollectionFailed",
            "ImportFailed",
            "TransformFailed",
        ],
        (_, Fault::ToolKilled) => &["Succeeded", "TransformFailed"],
        (_, Fault::SessionKilled) => &["Succeeded", "SessionGone", "CollectionFailed", "AttachFailed"],
        (_, Fault::EndpointTaken) => &["Succeeded", "OtherProfiler"],
        (_, Fault::TargetEnded | Fault::TargetDeleted) => ENDED,
        (_, Fault::AgentKilled) => &["Succeeded", "AgentRestarted"],
    }
}

/// Reasons with which the capture may end beside those, where a part that all share was struck
/// meanwhile.
pub(super) const fn by_others(profiler: ProfilerType) -> &'static [&'static str] {
    match profiler {
        ProfilerType::Ncu => &["AgentRestarted", "PodNotPrepared"],
        _ => &["AgentRestarted"],
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_api::reason::{CaptureReason, SessionReason};

    use super::*;

    #[test]
    fn every_end_is_a_reason_of_the_api_and_what_nothing_struck_has_one_end() {
        for profiler in ProfilerType::ALL {
            assert_eq!(reasons(profiler, Fault::None).len(), 1, "{profiler:?}");
            for (fault, _) in Fault::ALL {
                for reason in reasons(profiler, fault) {
                    let known =
                        CaptureReason::from_name(reason).is_some() || SessionReason::from_name(reason).is_some();
                    assert!(known || *reason == GONE, "{profiler:?}, {fault:?}: {reason}");
                }
            }
        }
    }

    #[test]
    fn what_is_one_profilers_own_is_no_end_of_another() {
        let cases = [
            (ProfilerType::Nsys, Fault::ToolKilled, "ImportFailed", true),
            (ProfilerType::Kineto, Fault::ToolKilled, "ImportFailed", false),
            (ProfilerType::Jax, Fault::ToolKilled, "TransformFailed", true),
            (ProfilerType::Kineto, Fault::EndpointTaken, "OtherProfiler", true),
            (ProfilerType::Kineto, Fault::AgentKilled, "OtherProfiler", false),
            (ProfilerType::Kineto, Fault::Keep, "RequiredEventsMissing", false),
            (ProfilerType::Nsys, Fault::Keep, "RequiredEventsMissing", true),
            (ProfilerType::Ncu, Fault::None, "PodNotPrepared", false),
            (ProfilerType::Ncu, Fault::ApiServerAway, "PodNotPrepared", true),
            (ProfilerType::Metrics, Fault::SessionDeleted, "Succeeded", false),
        ];
        for (profiler, fault, reason, may) in cases {
            assert_eq!(
                reasons(profiler, fault).contains(&reason),
                may,
                "{profiler:?}, {fault:?}: {reason}"
            );
        }
    }
}
