//! What a process is told to record, as text of Kineto's own configuration.

use std::fmt::Write as _;
use std::time::Duration;

use flopwatch_api::profiler::KinetoOptions;
use serde::{Deserialize, Serialize};

/// How often a process asks.
pub(super) const ASK_INTERVAL: Duration = Duration::from_secs(5);
/// How long the library takes at most until it looks at what it was told.
const LIBRARY_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// What the library does before it keeps events: on a GPU the first events of CUPTI are slow.
const WARMUP_SECONDS: u64 = 1;
/// For what the library and a busy machine take beside.
const START_MARGIN: Duration = Duration::from_secs(1);

/// Begin of the traces' names; the start of their window and the PID that a process has in its
/// container follow.
const TRACE: &str = "trace";
/// Extension of the traces' names.
const ENDING: &str = ".json";

/// Time from the beginning of a collection to the start of its window: every process has asked by
/// then, and warmed up. A start that is too near is refused by the library as in the past.
pub(super) const LEAD_TIME: Duration = Duration::from_secs(
    ASK_INTERVAL.as_secs() + LIBRARY_POLL_INTERVAL.as_secs() + WARMUP_SECONDS + START_MARGIN.as_secs(),
);
/// Time before the start of the window from which on a process that asks would be too late.
pub(super) const MIN_LEAD_TIME: Duration = Duration::from_secs(LIBRARY_POLL_INTERVAL.as_secs() + WARMUP_SECONDS);

/// What the processes of a container are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Request {
    /// What is recorded beside operators.
    pub(super) options: KinetoOptions,
    /// Start of the window in ms since the Unix epoch.
    pub(super) start_ms: u64,
    /// Length of the window, in ms.
    pub(super) length_ms: u64,
}

impl Request {
    /// The configuration, with the traces in that folder of the container.
    pub(super) fn configuration(&self, folder: &str) -> String {
        let Self {
            options,
            start_ms,
            length_ms,
        } = self;
        let mut text = format!("ACTIVITIES_LOG_FILE={folder}/{TRACE}-{start_ms}{ENDING}\n");
        // Writing to a string does not fail.
        let mut line = |key: &str, value: &dyn std::fmt::Display| writeln!(text, "{key}={value}").unwrap_or_default();
        if let Some(iterations) = options.iterations {
            line("PROFILE_START_ITERATION", &0);
            line("PROFILE_START_ITERATION_ROUNDUP", &1);
            line("ACTIVITIES_WARMUP_ITERATIONS", &1);
            line("ACTIVITIES_ITERATIONS", &iterations);
        } else {
            line("PROFILE_START_TIME", start_ms);
            line("ACTIVITIES_WARMUP_PERIOD_SECS", &WARMUP_SECONDS);
            line("ACTIVITIES_DURATION_MSECS", length_ms);
        }
        for (key, wanted) in [
            ("PROFILE_WITH_STACK", options.stacks),
            ("PROFILE_REPORT_INPUT_SHAPES", options.shapes),
            ("PROFILE_PROFILE_MEMORY", options.memory),
            ("PROFILE_WITH_FLOPS", options.flops),
            ("PROFILE_WITH_MODULES", options.modules),
        ] {
            if wanted {
                line(key, &true);
            }
        }
        text
    }

    /// Name of the trace of a process with that PID in its container, once it is whole. That of
    /// another window of the same capture, which an agent asked for that was killed, has another.
    pub(super) fn trace_name(&self, inner_pid: i32) -> String {
        format!("{TRACE}-{}_{inner_pid}{ENDING}", self.start_ms)
    }

    /// Name of the trace of such a process while it is being written.
    pub(super) fn partial_name(&self, inner_pid: i32) -> String {
        format!("{}.tmp", self.trace_name(inner_pid))
    }

    /// Whether a whole trace of the window has that name.
    pub(super) fn is_trace(&self, name: &str) -> bool {
        let pid = name.strip_prefix(TRACE).and_then(|rest| rest.strip_prefix('-'));
        let pid = pid.and_then(|rest| rest.strip_prefix(&self.start_ms.to_string()));
        let pid = pid.and_then(|rest| rest.strip_prefix('_')?.strip_suffix(ENDING));
        pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Whether that is the name of a trace of the window that is being written.
    pub(super) fn is_partial(&self, name: &str) -> bool {
        name.strip_suffix(".tmp").is_some_and(|name| self.is_trace(name))
    }
}

/// The folder below which a program's temporary files go: what its variable says where that is a
/// plain path, else `/tmp`. The library refuses any other place.
pub(crate) fn temporary_folder(tmpdir: Option<&str>) -> &str {
    let is_plain = |path: &&str| {
        let parts = || path.split('/').skip(1);
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
        path.starts_with('/') && path.len() <= 1024 && path.bytes().all(letters) && parts().all(|part| part != "..")
    };
    tmpdir
        .map(|path| path.trim_end_matches('/'))
        .filter(is_plain)
        .unwrap_or("/tmp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_by_time_and_one_by_iterations_are_told_in_the_librarys_words() {
        let mut request = Request {
            options: KinetoOptions::default(),
            start_ms: 1_000,
            length_ms: 2_000,
        };
        assert_eq!(
            request.configuration("/tmp/x"),
            "ACTIVITIES_LOG_FILE=/tmp/x/trace-1000.json\nPROFILE_START_TIME=1000\nACTIVITIES_WARMUP_PERIOD_SECS=1\n\
             ACTIVITIES_DURATION_MSECS=2000\n"
        );
        request.options = KinetoOptions {
            stacks: true,
            shapes: true,
            memory: true,
            flops: true,
            modules: true,
            iterations: Some(3),
        };
        assert_eq!(
            request.configuration("/tmp/x"),
            "ACTIVITIES_LOG_FILE=/tmp/x/trace-1000.json\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\n\
             ACTIVITIES_WARMUP_ITERATIONS=1\nACTIVITIES_ITERATIONS=3\nPROFILE_WITH_STACK=true\n\
             PROFILE_REPORT_INPUT_SHAPES=true\nPROFILE_PROFILE_MEMORY=true\nPROFILE_WITH_FLOPS=true\nPROFILE_WITH_MODULES=true\n"
        );
    }

    #[test]
    fn a_folder_that_could_say_more_than_a_path_is_not_taken() {
        for (tmpdir, folder) in [
            (None, "/tmp"),
            (Some("/scratch/job-1/"), "/scratch/job-1"),
            (Some("relative"), "/tmp"),
            (Some("/a/../b"), "/tmp"),
            (Some("/a\nPROFILE_WITH_STACK=true"), "/tmp"),
            (Some(""), "/tmp"),
        ] {
            assert_eq!(temporary_folder(tmpdir), folder, "{tmpdir:?}");
        }
    }

    #[test]
    fn whole_traces_of_the_window_and_those_being_written_are_told_by_their_names() {
        let window = |start_ms| Request {
            options: KinetoOptions::default(),
            start_ms,
            length_ms: 2_000,
        };
        let request = window(1_000);
        assert_eq!(request.trace_name(7), "trace-1000_7.json");
        assert!(request.is_trace("trace-1000_7.json") && !request.is_partial("trace-1000_7.json"));
        assert!(request.is_partial(&request.partial_name(7)) && !request.is_trace("trace-1000_7.json.tmp"));
        for other in [
            window(999).trace_name(7).as_str(),
            "trace-1000_.json",
            "trace-1000_../7.json",
            "trace-1000_7.json.gz",
            "x-1000_7.json",
            "trace-1000_7",
            "trace-10000_7.json",
        ] {
            assert!(!request.is_trace(other) && !request.is_partial(other), "{other}");
        }
    }
}
