//! How a capture that an earlier agent process began is resumed: a pure function of its spec, of
//! what that agent wrote down, and of what is found.
//!
//! The journal is written before the status, so it is never behind it. What can be had again (a
//! running window, a raw capture in the container or in the spool) is adopted; what was in the dead
//! process's memory alone is begun anew; the rest fails with its reason.

mod journal;
mod stage;

use std::time::Duration;

use flopwatch_api::capture::{CaptureSpec, Stage as StatusStage};
use flopwatch_api::reason::CaptureReason;
use flopwatch_pipeline::failure::Failure;

use crate::plan::Interrupt;
use crate::profilers::Observed;
pub use journal::{Attached, FailureRecord, Journal, ProducedArtifacts, RetryRecord};
pub use stage::{Collection, Stage};

/// How often one capture is adopted: a capture that takes its agent down every time must come to an
/// end.
pub const MAX_ADOPTIONS: u32 = 3;

/// What is found of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Now, in ns since the Unix epoch.
    pub now_utc_ns: u64,
    /// The profiler's raw files are in the spool, whole.
    pub raw: bool,
    /// The store holds its artifacts, whole.
    pub stored: bool,
    /// Where the collection stands by its profiler, which is asked only where the answer matters.
    pub collection: Observed,
    /// Why it is to end before its time.
    pub interrupt: Option<Interrupt>,
}

/// How the capture goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// From the beginning: nothing was recorded, or what was is lost with the memory of the agent
    /// that had it.
    Begin,
    /// The window is open: keep it so for the time that is left, then close it.
    Window {
        /// Time left; zero when it should have been closed.
        left: Duration,
    },
    /// The window is closed: stop the collection and take its raw files.
    Fetch,
    /// The raw files are here: make the files of them.
    Produce,
    /// The files are in the store: say so.
    Publish,
    /// Clean up and fail.
    Fail(Failure),
}

/// Decides how a capture goes on that was in `stage` by its status.
pub fn adopt(spec: &CaptureSpec, stage: StatusStage, journal: Option<&Journal>, world: &World) -> Adoption {
    if let Some(failure) = world.interrupt.and_then(Interrupt::failure) {
        return Adoption::Fail(failure);
    }
    let restarted = |message: &str| Adoption::Fail(Failure::new(CaptureReason::AgentRestarted, message));
    let Some(journal) = journal else {
        if world.stored {
            return Adoption::Publish;
        }
        return if stage <= StatusStage::Attaching {
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
    let Some(collection) = journal.stage.collection() else {
        return begin(world);
    };
    if world.raw {
        return Adoption::Produce;
    }
    match &world.collection {
        Observed::Collecting => Adoption::Window {
            left: left(spec, collection.opened_utc_ns, world),
        },
        Observed::Done => Adoption::Fetch,
        Observed::Gone(Some(failure)) => Adoption::Fail(failure.clone()),
        Observed::Gone(None) => begin(world),
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

/// What is left of the window. A wall clock that was set back makes it no longer than it was asked
/// to be.
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
    use std::collections::BTreeSet;

    use flopwatch_api::profiler::{ProfilerType, TraceCategory};
    use flopwatch_attach::nsys::SessionState;
    use flopwatch_attach::process::ProcessId;

    use super::*;
    use crate::profilers::State;
    use crate::profilers::nsys::observed;

    fn spec() -> CaptureSpec {
        serde_json::from_value(serde_json::json!({
            "sessionRef": {"name": "s", "id": "0123abcd"}, "nodeName": "n", "podRef": {"name": "p", "uid": "u"},
            "containerName": "main", "durationSeconds": 10, "startDeadlineSeconds": 60, "outputs": ["Timeline"],
        }))
        .unwrap()
    }

    const SECOND: u64 = 1_000_000_000;

    fn state(profiler: ProfilerType) -> State {
        let fields = serde_json::json!({"traced": BTreeSet::from([TraceCategory::Nvtx]), "tools": "2022.4.2.1-d"});
        match profiler {
            ProfilerType::Nsys => State::of(profiler, &fields).unwrap(),
            _ => State::of(profiler, &serde_json::json!({})).unwrap(),
        }
    }

    fn attached(profiler: ProfilerType) -> Attached {
        Attached {
            container_id: "abc".to_owned(),
            process: ProcessId { pid: 7, start_time: 1 },
            profiler: state(profiler),
            note: String::new(),
            uses_cuda: false,
            ring: None,
            kernels: None,
        }
    }

    /// A capture whose window opened at second 100.
    fn journal(profiler: ProfilerType) -> Journal {
        let collection = Collection {
            attached: attached(profiler),
            unprepared: state(profiler),
            opened_utc_ns: 100 * SECOND,
            activity: None,
            over_budget: None,
        };
        Journal {
            stage: Stage::Window(collection),
            ..Journal::default()
        }
    }

    fn world(container: Option<(SessionState, bool)>) -> World {
        World {
            now_utc_ns: 104 * SECOND,
            raw: false,
            stored: false,
            collection: match container {
                Some(found) => observed(Some(&found)),
                None => observed(None),
            },
            interrupt: None,
        }
    }

    /// The container is gone, and the raw files are in the spool.
    fn here() -> World {
        World {
            raw: true,
            ..world(None)
        }
    }

    fn decide(journal: &Journal, world: &World) -> Adoption {
        adopt(&spec(), StatusStage::Collecting, Some(journal), world)
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
        let journal = journal(ProfilerType::Nsys);
        for (what, container) in [
            ("stopped by the supervisor", (SessionState::Idle, true)),
            ("the stop will say why", (SessionState::Idle, false)),
            ("the session ended after its stop", (SessionState::Gone, true)),
            ("in some other state, with a capture", (other, true)),
        ] {
            let adoption = decide(&journal, &world(Some(container)));
            assert_eq!(adoption, Adoption::Fetch, "{what}");
        }
        let here = decide(&journal, &here());
        assert_eq!(here, Adoption::Produce, "whatever became of the container");
        let gone = decide(&journal, &world(Some((SessionState::Gone, false))));
        assert_eq!(reason(&gone), Some(CaptureReason::SessionGone));
        let ended = decide(&journal, &world(None));
        assert_eq!(reason(&ended), Some(CaptureReason::ContainerRestarted));
    }

    #[test]
    fn what_lies_in_the_store_is_published_again_and_neither_made_anew_nor_failed() {
        let stored = World {
            stored: true,
            ..world(None)
        };
        let attached = journal(ProfilerType::Nsys);
        for journal in [Some(&attached), Some(&Journal::default()), None] {
            let adoption = adopt(&spec(), StatusStage::Publishing, journal, &stored);
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
        let gone = World {
            collection: Observed::Gone(None),
            ..world(None)
        };
        assert_eq!(decide(&journal(ProfilerType::Metrics), &gone), Adoption::Begin);
        let here = World { raw: true, ..gone };
        assert_eq!(decide(&journal(ProfilerType::Metrics), &here), Adoption::Produce);
    }

    #[test]
    fn what_had_not_begun_to_record_begins_anew() {
        let unattached = Journal::default();
        let unopened = Journal {
            stage: Stage::Prepare(attached(ProfilerType::Nsys)),
            ..Journal::default()
        };
        for journal in [Some(&unattached), Some(&unopened), None] {
            let adoption = adopt(&spec(), StatusStage::Attaching, journal, &world(None));
            assert_eq!(adoption, Adoption::Begin);
            let kept = World {
                interrupt: Some(Interrupt::Keep),
                ..world(None)
            };
            let adoption = adopt(&spec(), StatusStage::Attaching, journal, &kept);
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
            StatusStage::Collecting,
            StatusStage::Fetching,
            StatusStage::Transforming,
            StatusStage::Publishing,
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
                interrupt: Some(interrupt),
                ..here()
            };
            assert_eq!(reason(&decide(&journal(ProfilerType::Nsys), &seen)), Some(expected));
        }
    }

    #[test]
    fn a_failure_that_was_decided_stays_and_a_capture_that_kills_its_agents_ends() {
        let failure = Failure::new(CaptureReason::ImportFailed, "it crashed");
        let failed = Journal {
            failed: Some(FailureRecord::from(&failure)),
            ..journal(ProfilerType::Nsys)
        };
        assert_eq!(decide(&failed, &here()), Adoption::Fail(failure));
        let again = Journal {
            adoptions: MAX_ADOPTIONS,
            ..journal(ProfilerType::Nsys)
        };
        assert_eq!(reason(&decide(&again, &here())), Some(CaptureReason::AgentRestarted));
    }

    #[test]
    fn a_journal_reads_back() {
        let journal = journal(ProfilerType::Nsys);
        let text = serde_json::to_vec(&journal).unwrap();
        assert_eq!(serde_json::from_slice::<Journal>(&text).unwrap(), journal);
    }
}
