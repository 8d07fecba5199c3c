//! What an agent writes down of a capture, for the agent that comes after it.

use std::path::PathBuf;

use flopwatch_api::capture::CaptureSummary;
use flopwatch_api::reason::CaptureReason;
use flopwatch_attach::process::ProcessId;
use flopwatch_fleet::CaptureRow;
use flopwatch_pipeline::failure::Failure;
use serde::{Deserialize, Serialize};

use super::stage::Stage;
use crate::profilers::State;

/// What an agent writes down of a capture, for the one that comes after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// How often it was adopted so far.
    pub adoptions: u32,
    /// The stage that it is in.
    pub stage: Stage,
    /// Collections before this one that missed what they were to record, and why the last of them
    /// failed.
    pub missed: Option<RetryRecord>,
    /// The failure that it was about to end with.
    pub failed: Option<FailureRecord>,
    /// Its row of the fleet, as far as it is known; none where there is no fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Box<CaptureRow>>,
}

impl Journal {
    /// Whether an agent that comes after has something to go on with: a stage behind the first one,
    /// or a failure. That of a capture which is refused holds its row of the fleet alone.
    pub fn has_begun(&self) -> bool {
        self.failed.is_some() || self.stage != Stage::default()
    }
}

/// What a capture was attached to, fixed until its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The container, as the runtime names it.
    pub container_id: String,
    /// First process of the container.
    pub process: ProcessId,
    /// The profiler that was chosen, and what it keeps of its collection.
    pub profiler: State,
    /// Why it is not a deeper one; empty when it is the deepest.
    pub note: String,
    /// Whether the container had mapped libcuda.
    pub uses_cuda: bool,
    /// Where its programs' flight recorder keeps its file; none where they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<PathBuf>,
    /// Where its programs keep the file of the CUDA tracer, whose kernels are recorded all the
    /// time; none where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<PathBuf>,
}

/// Collections that missed what they were to record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryRecord {
    /// How many there were.
    pub tries: u32,
    /// Name of the reason of the last.
    pub reason: String,
}

/// A success as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducedArtifacts {
    /// What the files hold.
    pub summary: CaptureSummary,
    /// How it went, for people.
    pub message: String,
}

/// A failure as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRecord {
    /// Name of the reason.
    pub reason: String,
    /// What happened.
    pub message: String,
}

impl From<&Failure> for FailureRecord {
    fn from(failure: &Failure) -> Self {
        Self {
            reason: failure.reason.as_str().to_owned(),
            message: failure.message.clone(),
        }
    }
}

impl From<&FailureRecord> for Failure {
    /// A reason that this version does not know came from another version of the agent.
    fn from(ended: &FailureRecord) -> Self {
        let reason = CaptureReason::from_name(&ended.reason).unwrap_or(CaptureReason::AgentRestarted);
        Self::new(reason, ended.message.clone())
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_api::profiler::ProfilerType;
    use flopwatch_pipeline::activity::ActivityEvidence;

    use super::*;
    use crate::adoption::Collection;

    #[test]
    fn a_capture_whose_row_alone_is_written_down_has_not_begun() {
        assert!(!Journal::default().has_begun());
        let failed = Journal {
            failed: Some(FailureRecord {
                reason: "AttachFailed".to_owned(),
                message: String::new(),
            }),
            ..Journal::default()
        };
        let recorded = Journal {
            stage: Stage::Publish {
                collection: None,
                made: None,
            },
            ..Journal::default()
        };
        assert!(failed.has_begun() && recorded.has_begun());
    }

    #[test]
    fn what_one_profiler_keeps_lies_under_its_name() {
        let bare = State::of(ProfilerType::Metrics, &serde_json::json!({})).unwrap();
        let collection = Collection {
            attached: Attached {
                container_id: "abc".to_owned(),
                process: ProcessId { pid: 7, start_time: 1 },
                profiler: bare.clone(),
                note: String::new(),
                uses_cuda: false,
                ring: Some("/flopwatch/recorder/recorder.ring".into()),
                kernels: Some("/flopwatch/cuda/cuda.trace".into()),
            },
            unprepared: bare,
            opened_utc_ns: 100,
            activity: Some(ActivityEvidence {
                gpu_percent: Some(40),
                ..ActivityEvidence::default()
            }),
            over_budget: None,
        };
        let journal = Journal {
            stage: Stage::Fetch(collection),
            missed: Some(RetryRecord {
                tries: 1,
                reason: "EventsMissed".to_owned(),
            }),
            ..Journal::default()
        };
        let text = serde_json::to_value(&journal).unwrap();
        let profiler = &text["stage"]["Fetch"]["attached"]["profiler"];
        assert_eq!(*profiler, serde_json::json!({"type": "Metrics"}));
        assert_eq!(serde_json::from_value::<Journal>(text).unwrap(), journal);
    }
}
