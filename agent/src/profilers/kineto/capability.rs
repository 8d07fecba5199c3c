//! Whether a container's programs take requests of Kineto.

use flopwatch_api::capability::Capability;
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::sentence::names;

use crate::profilers::facts::{Facts, closed, open};

/// Set in programs that take requests of Kineto's daemon.
pub(super) const KINETO_USE_DAEMON: &str = "KINETO_USE_DAEMON";
/// Set in programs that take them through a file of a daemon.
pub(super) const KINETO_IPC_SOCKET_DIR: &str = "KINETO_IPC_SOCKET_DIR";

/// Decides from what the probe found.
pub(super) fn decide(facts: &Facts) -> Capability {
    let closed = |reason, found: &str, remedy| closed(ProfilerType::Kineto, reason, found, remedy);
    let torch = if facts.mapped.torch {
        "PyTorch is mapped"
    } else {
        "PyTorch is not mapped"
    };
    // Its value is not shown: whether it is set is all that counts.
    if !facts.variables.contains_key(KINETO_USE_DAEMON) {
        return closed(
            CaptureReason::NotPrepared,
            &format!("{torch}, and the program was started without {KINETO_USE_DAEMON}."),
            "Label the pod flopwatch.dev/prepare=kineto and create it anew.",
        );
    }
    if facts.variables.contains_key(KINETO_IPC_SOCKET_DIR) {
        return closed(
            CaptureReason::OtherProfiler,
            &format!("{KINETO_IPC_SOCKET_DIR} is set, so the program takes requests of a dynolog daemon alone."),
            "Remove the variable and create the pod anew.",
        );
    }
    if !facts.mapped.torch {
        return closed(
            CaptureReason::ProfilerUnavailable,
            &format!("{KINETO_USE_DAEMON} is set, and no process has PyTorch mapped."),
            "Wait until the program has imported torch, or choose another profiler for a program without it.",
        );
    }
    // On the CPU there is no CUPTI to share.
    if facts.mapped.cuda && !facts.mapped.profilers.is_empty() {
        let found = names(facts.mapped.profilers.iter().map(String::as_str));
        return closed(
            CaptureReason::OtherProfiler,
            &format!("The program has {found} mapped, and one profiler alone can have CUPTI."),
            "Prepare the pod for Kineto alone (label flopwatch.dev/prepare=kineto), or choose Nsys.",
        );
    }
    open(ProfilerType::Kineto)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_what_was_seen_and_its_remedy() {
        let mut facts = Facts::default();
        let check = |facts: &Facts, reason: &str, words: [&str; 2]| {
            let capability = decide(facts);
            assert_eq!(capability.reason, reason);
            assert_eq!(capability.available, reason == "Available");
            assert!(
                words.iter().all(|word| capability.remedy.contains(word)),
                "{capability:?}"
            );
        };
        check(&facts, "NotPrepared", ["PyTorch is not mapped", "prepare=kineto"]);
        facts.mapped.torch = true;
        check(&facts, "NotPrepared", ["PyTorch is mapped", "prepare=kineto"]);
        facts.variables.insert(KINETO_USE_DAEMON.into(), "0".into());
        check(&facts, "Available", ["", ""]);
        facts.mapped.profilers.insert("libToolsInjection64.so".into());
        check(&facts, "Available", ["", ""]);
        facts.mapped.cuda = true;
        check(&facts, "OtherProfiler", ["libToolsInjection64.so", "choose Nsys"]);
        facts.mapped.torch = false;
        check(
            &facts,
            "ProfilerUnavailable",
            ["no process has PyTorch", "imported torch"],
        );
        facts.variables.insert(KINETO_IPC_SOCKET_DIR.into(), "/run".into());
        check(&facts, "OtherProfiler", ["KINETO_IPC_SOCKET_DIR", "Remove"]);
    }
}
