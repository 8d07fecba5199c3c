//! How a capture goes on that an earlier life of this agent began: a pure function of its spec, of what that agent wrote down,
//! and of what is found.
//!
//! The journal is written before the status, so it is never behind it. What can be had again (a running window, a raw capture
//! in the container or in the spool) is adopted; what was in the dead process's memory alone is begun anew; the rest fails
//! with its reason.

use std::collections::BTreeSet;
use std::time::Duration;

use flopwatch_api::capture::{CaptureSpec, CaptureSummary, Stage};
use flopwatch_api::profiler::{ProfilerType, TraceCategory};
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::nsys::SessionState;
use flopwatch_attach::process::ProcessId;
use serde::{Deserialize, Serialize};

use crate::bound::Bound;
use crate::failure::Failure;
use crate::plan::Interrupt;

/// How often one capture is adopted: a capture that takes its agent down every time must come to an end.
pub const MAX_ADOPTIONS: u32 = 3;

/// What an agent writes down of a capture, for the one that comes after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// How often it was adopted so far.
    pub adoptions: u32,
    /// What it was attached to; none before.
    pub attached: Option<Attached>,
    /// When the window opened, in ns since the Unix epoch; none before the collection ran.
    pub opened_utc_ns: Option<u64>,
    /// What its collection may write; none before it began.
    #[serde(default)]
    pub bound: Option<Bound>,
    /// What it was about to succeed with, beside the files in the store; none before they were made.
    #[serde(default)]
    pub made: Option<Made>,
    /// The failure that it was about to end with.
    pub failed: Option<Ended>,
}

/// What a capture was attached to, fixed until its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The container, as the runtime names it.
    pub container_id: String,
    /// Its first process.
    pub process: ProcessId,
    /// The profiler that was chosen.
    pub profiler: ProfilerType,
    /// Why it is not a deeper one; empty when it is the deepest.
    pub note: String,
    /// Whether the container had mapped libcuda.
    pub uses_cuda: bool,
    /// Categories that its session records.
    pub traced: BTreeSet<TraceCategory>,
    /// Version of the tools in the container; empty where a profiler without tools is used.
    #[serde(default)]
    pub tools: String,
}

/// A success as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// What the files hold.
    pub summary: CaptureSummary,
    /// How it went, for people.
    pub message: String,
}

/// A failure as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Name of the reason.
    pub reason: String,
    /// What happened.
    pub message: String,
}

impl From<&Failure> for Ended {
    fn from(failure: &Failure) -> Self {
        Self {
            reason: failure.reason.as_str().to_owned(),
            message: failure.message.clone(),
        }
    }
}

impl From<&Ended> for Failure {
    /// A reason that this version does not know came from another version of the agent.
    fn from(ended: &Ended) -> Self {
        let reason = CaptureReason::from_name(&ended.reason).unwrap_or(CaptureReason::AgentRestarted);
        Self::new(reason, ended.message.clone())
    }
}

/// What is found of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Now, in ns since the Unix epoch.
    pub now_utc_ns: u64,
    /// The raw capture is in the spool, whole.
    pub raw: bool,
    /// The window's samples are in the spool, whole.
    pub samples: bool,
    /// The store holds its artifacts, whole.
    pub stored: bool,
    /// The container; none when it ended, or another of its name runs.
    pub container: Option<Container>,
    /// Why it is to end before its time.
    pub interrupt: Option<Interrupt>,
}

/// A container whose collection an earlier agent began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// State of its session.
    pub session: SessionState,
    /// The raw capture lies in it.
    pub raw: bool,
}

/// How the capture goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// From the beginning: nothing was recorded, or what was is lost with the memory of the agent that had it.
    Begin,
    /// The window is open: keep it so for the time that is left, then close it.
    Window {
        /// Time left; zero when it should have been closed.
        left: Duration,
    },
    /// The window is closed: take the raw capture out of the container.
    Fetch,
    /// The raw capture is here: make the files of it.
    Produce,
    /// The files are in the store: say so.
    Publish,
    /// Clean up and fail.
    Fail(Failure),
}

/// Decides how a capture goes on that was in `stage` by its status.
pub fn adopt(spec: &CaptureSpec, stage: Stage, journal: Option<&Journal>, world: &World) -> Adoption {
    if let Some(failure) = world.interrupt.and_then(Interrupt::failure) {
        return Adoption::Fail(failure);
    }
    let restarted = |message: &str| Adoption::Fail(Failure::new(CaptureReason::AgentRestarted, message));
    let Some(journal) = journal else {
        if world.stored {
            return Adoption::Publish;
        }
        return if stage <= Stage::Attaching {
            begin(world)
        } else {
            restarted("the agent of the node restarted, and its record of the capture is lost; create the session anew")
        };
    };
    if let Some(ended) = &journal.failed {
        return Adoption::Fail(ended.into());
    }
    if journal.adoptions >= MAX_ADOPTIONS {
        return restarted(&format!(
            "the agent of the node restarted {} times in the middle of this capture; look into its log before the session is \
             created anew",
            journal.adoptions.saturating_add(1)
        ));
    }
    // They were verified before they were stored.
    if world.stored {
        return Adoption::Publish;
    }
    let (Some(attached), Some(opened)) = (&journal.attached, journal.opened_utc_ns) else {
        return begin(world);
    };
    if attached.profiler != ProfilerType::Nsys {
        return if world.samples { Adoption::Produce } else { begin(world) };
    }
    if world.raw {
        return Adoption::Produce;
    }
    let Some(container) = &world.container else {
        let message = "the container ended while the agent of the node was away, and the capture with it";
        return Adoption::Fail(Failure::new(CaptureReason::ContainerRestarted, message));
    };
    match container.session {
        SessionState::Collecting => Adoption::Window {
            left: left(spec, opened, world),
        },
        // Where the keeper ended the collection by itself, the stop says so.
        SessionState::Idle => Adoption::Fetch,
        SessionState::Gone | SessionState::Ending | SessionState::Other(_) if container.raw => Adoption::Fetch,
        SessionState::Gone | SessionState::Ending | SessionState::Other(_) => {
            let message = "the profiler's session ended while the agent of the node was away; it comes back when the container \
                           restarts";
            Adoption::Fail(Failure::new(CaptureReason::SessionGone, message))
        }
    }
}

/// Nothing that was recorded is left to keep.
fn begin(world: &World) -> Adoption {
    match world.interrupt {
        Some(Interrupt::Keep) => {
            let message =
                "the session was stopped with stop: Keep, and the agent of the node restarted before it could record";
            Adoption::Fail(Failure::new(CaptureReason::Discarded, message))
        }
        _ => Adoption::Begin,
    }
}

/// What is left of the window. A wall clock that was set back makes it no longer than it was asked to be.
fn left(spec: &CaptureSpec, opened_utc_ns: u64, world: &World) -> Duration {
    if world.interrupt == Some(Interrupt::Keep) {
        return Duration::ZERO;
    }
    let length = Duration::from_secs(u64::try_from(spec.duration_seconds).unwrap_or(1));
    let elapsed = Duration::from_nanos(world.now_utc_ns.saturating_sub(opened_utc_ns));
    length.saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> CaptureSpec {
        serde_json::from_value(serde_json::json!({
            "sessionRef": {"name": "s", "id": "0123abcd"}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
            "containerName": "main", "durationSeconds": 10, "startDeadlineSeconds": 60, "outputs": ["Timeline"],
        }))
        .unwrap()
    }

    const SECOND: u64 = 1_000_000_000;

    /// A capture whose window opened at second 100.
    fn journal(profiler: ProfilerType) -> Journal {
        Journal {
            attached: Some(Attached {
                container_id: "abc".to_owned(),
                process: ProcessId { pid: 7, start_time: 1 },
                profiler,
                note: String::new(),
                uses_cuda: false,
                traced: BTreeSet::from([TraceCategory::Nvtx]),
                tools: "2022.4.2.1-d".to_owned(),
            }),
            opened_utc_ns: Some(100 * SECOND),
            ..Journal::default()
        }
    }

    fn world(container: Option<(SessionState, bool)>) -> World {
        World {
            now_utc_ns: 104 * SECOND,
            raw: false,
            samples: false,
            stored: false,
            container: container.map(|(session, raw)| Container { session, raw }),
            interrupt: None,
        }
    }

    fn decide(journal: &Journal, world: &World) -> Adoption {
        adopt(&spec(), Stage::Collecting, Some(journal), world)
    }

    fn reason(adoption: &Adoption) -> Option<CaptureReason> {
        match adoption {
            Adoption::Fail(failure) => Some(failure.reason),
            _ => None,
        }
    }

    #[test]
    fn an_open_window_is_kept_open_for_the_time_that_is_left() {
        let running = world(Some((SessionState::Collecting, false)));
        let left = |now_utc_ns: u64, interrupt| {
            let seen = World {
                now_utc_ns,
                interrupt,
                ..running.clone()
            };
            decide(&journal(ProfilerType::Nsys), &seen)
        };
        let window = |seconds| Adoption::Window {
            left: Duration::from_secs(seconds),
        };
        assert_eq!(left(104 * SECOND, None), window(6));
        assert_eq!(left(111 * SECOND, None), window(0), "it should have been closed");
        assert_eq!(left(50 * SECOND, None), window(10), "the clock was set back");
        assert_eq!(left(104 * SECOND, Some(Interrupt::Keep)), window(0));
    }

    #[test]
    fn what_the_container_and_the_spool_hold_decides_what_is_left_to_do() {
        let other = SessionState::Other("Stop".to_owned());
        let rows = [
            (
                "stopped by the keeper",
                Some((SessionState::Idle, true)),
                Adoption::Fetch,
            ),
            (
                "the stop will say why",
                Some((SessionState::Idle, false)),
                Adoption::Fetch,
            ),
            (
                "the session ended after its stop",
                Some((SessionState::Gone, true)),
                Adoption::Fetch,
            ),
            (
                "in some other state, with a capture",
                Some((other, true)),
                Adoption::Fetch,
            ),
        ];
        for (what, container, adoption) in rows {
            assert_eq!(
                decide(&journal(ProfilerType::Nsys), &world(container)),
                adoption,
                "{what}"
            );
        }
        let here = World {
            raw: true,
            ..world(None)
        };
        assert_eq!(
            decide(&journal(ProfilerType::Nsys), &here),
            Adoption::Produce,
            "whatever became of the container"
        );
        let gone = decide(&journal(ProfilerType::Nsys), &world(Some((SessionState::Gone, false))));
        assert_eq!(reason(&gone), Some(CaptureReason::SessionGone));
        let ended = decide(&journal(ProfilerType::Nsys), &world(None));
        assert_eq!(reason(&ended), Some(CaptureReason::ContainerRestarted));
    }

    #[test]
    fn m1_what_lies_in_the_store_is_published_again_and_neither_made_anew_nor_failed() {
        let stored = World {
            stored: true,
            ..world(None)
        };
        let attached = journal(ProfilerType::Nsys);
        for journal in [Some(&attached), Some(&Journal::default()), None] {
            let adoption = adopt(&spec(), Stage::Publishing, journal, &stored);
            assert_eq!(adoption, Adoption::Publish, "{journal:?}");
        }
        let discarded = World {
            interrupt: Some(Interrupt::Discard),
            ..stored.clone()
        };
        assert_eq!(reason(&decide(&attached, &discarded)), Some(CaptureReason::Discarded));
        let again = Journal {
            adoptions: MAX_ADOPTIONS,
            ..attached
        };
        assert_eq!(reason(&decide(&again, &stored)), Some(CaptureReason::AgentRestarted));
    }

    #[test]
    fn samples_that_were_in_memory_alone_are_taken_anew() {
        assert_eq!(decide(&journal(ProfilerType::Metrics), &world(None)), Adoption::Begin);
        let here = World {
            samples: true,
            ..world(None)
        };
        assert_eq!(decide(&journal(ProfilerType::Metrics), &here), Adoption::Produce);
    }

    #[test]
    fn what_had_not_begun_to_record_begins_anew() {
        let unattached = Journal::default();
        let unopened = Journal {
            opened_utc_ns: None,
            ..journal(ProfilerType::Nsys)
        };
        for journal in [Some(&unattached), Some(&unopened), None] {
            assert_eq!(adopt(&spec(), Stage::Attaching, journal, &world(None)), Adoption::Begin);
            let kept = World {
                interrupt: Some(Interrupt::Keep),
                ..world(None)
            };
            let adoption = adopt(&spec(), Stage::Attaching, journal, &kept);
            assert_eq!(
                reason(&adoption),
                Some(CaptureReason::Discarded),
                "there is nothing to keep"
            );
        }
    }

    #[test]
    fn without_a_record_a_capture_that_went_on_fails() {
        for stage in [
            Stage::Collecting,
            Stage::Fetching,
            Stage::Transforming,
            Stage::Publishing,
        ] {
            let adoption = adopt(&spec(), stage, None, &world(None));
            assert_eq!(reason(&adoption), Some(CaptureReason::AgentRestarted), "{stage:?}");
        }
    }

    #[test]
    fn whoever_ended_it_is_obeyed_whatever_could_be_adopted() {
        for (interrupt, expected) in [
            (Interrupt::Discard, CaptureReason::Discarded),
            (Interrupt::Deleted, CaptureReason::Discarded),
            (Interrupt::Lost, CaptureReason::NodeLost),
        ] {
            let seen = World {
                raw: true,
                interrupt: Some(interrupt),
                ..world(None)
            };
            assert_eq!(reason(&decide(&journal(ProfilerType::Nsys), &seen)), Some(expected));
        }
    }

    #[test]
    fn a_failure_that_was_decided_stays_and_a_capture_that_kills_its_agents_ends() {
        let failure = Failure::new(CaptureReason::ImportFailed, "it crashed");
        let failed = Journal {
            failed: Some(Ended::from(&failure)),
            ..journal(ProfilerType::Nsys)
        };
        let seen = World {
            raw: true,
            ..world(None)
        };
        assert_eq!(decide(&failed, &seen), Adoption::Fail(failure));
        let again = Journal {
            adoptions: MAX_ADOPTIONS,
            ..journal(ProfilerType::Nsys)
        };
        assert_eq!(reason(&decide(&again, &seen)), Some(CaptureReason::AgentRestarted));
    }

    #[test]
    fn a_journal_reads_back() {
        let journal = journal(ProfilerType::Nsys);
        let text = serde_json::to_vec(&journal).unwrap();
        assert_eq!(serde_json::from_slice::<Journal>(&text).unwrap(), journal);
    }
}
