//! A capture's status as the agent owns it: a value that is changed here and written elsewhere.
//!
//! Conditions follow `SetStatusCondition` (the time changes only with the status). The `Lost`
//! condition belongs to the operator and is left out of everything that the agent applies.

use flopwatch_api::artifact::Artifact;
use flopwatch_api::capability::Capability;
use flopwatch_api::capture::{CaptureGpu, CaptureStatus, CaptureSummary, LiveFigures, Progress, Stage};
use flopwatch_api::overhead::{CaptureOverhead, CaptureProcessorTime};
use flopwatch_api::profiler::ProfilerType;
use flopwatch_api::reason::{CaptureCondition, CaptureReason};
use flopwatch_pipeline::failure::Failure;
use k8s_controller::conditions::{self, ConditionStatus, DesiredCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// Longest message that the schema of a condition allows, in bytes.
const MAX_MESSAGE: usize = 4096;
/// Longest message that the schema of `progress` and `capabilities` allows, in bytes.
const MAX_SHORT_MESSAGE: usize = 1024;

/// The conditions that become True one after the other as a capture goes on, and the reason each
/// then has.
const MILESTONES: [(CaptureCondition, CaptureReason); 6] = [
    (CaptureCondition::Accepted, CaptureReason::Accepted),
    (CaptureCondition::Attached, CaptureReason::Attached),
    (CaptureCondition::Captured, CaptureReason::Captured),
    (CaptureCondition::Transformed, CaptureReason::Transformed),
    (CaptureCondition::Published, CaptureReason::Published),
    (CaptureCondition::Succeeded, CaptureReason::Succeeded),
];

/// How many milestones are behind a capture that is in this stage.
const fn milestones_behind(stage: Stage) -> usize {
    match stage {
        Stage::Queued => 0,
        Stage::Attaching => 1,
        Stage::Collecting | Stage::Fetching => 2,
        Stage::Transforming => 3,
        Stage::Publishing => 4,
        Stage::Done => 6,
    }
}

/// Share of the whole that is done when a stage begins, in percent.
pub const fn percent_at(stage: Stage) -> i32 {
    match stage {
        Stage::Queued => 0,
        Stage::Attaching => 5,
        Stage::Collecting => 10,
        Stage::Fetching => 70,
        Stage::Transforming => 75,
        Stage::Publishing => 95,
        Stage::Done => 100,
    }
}

/// The status of one capture, with the generation of the spec that it is determined from.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    status: CaptureStatus,
    generation: Option<i64>,
}

impl Draft {
    /// Goes on from what the API server holds; foreign conditions are left out.
    pub fn new(observed: Option<&CaptureStatus>, generation: Option<i64>) -> Self {
        let mut status = observed.cloned().unwrap_or_default();
        status
            .conditions
            .retain(|condition| condition.type_ != CaptureCondition::Lost.as_str());
        Self { status, generation }
    }

    /// The status to apply.
    pub const fn status(&self) -> &CaptureStatus {
        &self.status
    }

    /// The stage that was reached.
    pub fn stage(&self) -> Stage {
        self.status
            .progress
            .as_ref()
            .map_or(Stage::Queued, |progress| progress.stage)
    }

    /// Waits for a turn.
    pub fn queue(&mut self, message: &str) {
        self.progress(Stage::Queued, percent_at(Stage::Queued), message);
        for (condition, _) in MILESTONES {
            let (reason, message) = match condition {
                CaptureCondition::Accepted => (CaptureReason::WaitingForTurn, message),
                _ => (CaptureReason::Pending, ""),
            };
            self.set(condition, ConditionStatus::Unknown, reason, message);
        }
    }

    /// Enters a stage: the milestones before it become True, the next one is at work.
    pub fn enter(&mut self, stage: Stage, message: &str) {
        self.progress(stage, percent_at(stage), message);
        let behind = milestones_behind(stage);
        for (index, (condition, reached)) in MILESTONES.into_iter().enumerate() {
            if index < behind {
                self.set(condition, ConditionStatus::True, reached, "");
            } else {
                let at_work = index == behind || condition == CaptureCondition::Succeeded;
                let reason = if at_work {
                    CaptureReason::Progressing
                } else {
                    CaptureReason::Pending
                };
                self.set(condition, ConditionStatus::Unknown, reason, "");
            }
        }
    }

    /// How far the stage is, without entering another; `share` of 0 to 1 of the way to the next
    /// stage.
    pub fn advance(&mut self, share: (u128, u128), message: &str) {
        let stage = self.stage();
        let next = match stage {
            Stage::Queued => Stage::Attaching,
            Stage::Attaching => Stage::Collecting,
            Stage::Collecting => Stage::Fetching,
            Stage::Fetching => Stage::Transforming,
            Stage::Transforming => Stage::Publishing,
            Stage::Publishing | Stage::Done => Stage::Done,
        };
        let (from, to) = (percent_at(stage), percent_at(next));
        let (done, whole) = (share.0.min(share.1), share.1.max(1));
        let width = u128::try_from(to - from).unwrap_or_default();
        let step = i32::try_from(width * done / whole).unwrap_or_default();
        self.progress(stage, from + step, message);
    }

    /// What the open window has recorded so far. It stands until progress is told anew.
    pub fn live(&mut self, figures: Option<LiveFigures>) {
        if let Some(progress) = &mut self.status.progress {
            progress.live = figures;
        }
    }

    /// What the probe found.
    pub fn capabilities(&mut self, capabilities: Vec<Capability>) {
        self.status.capabilities = capabilities
            .into_iter()
            .map(|mut capability| {
                truncate(&mut capability.remedy, MAX_SHORT_MESSAGE);
                capability
            })
            .collect();
    }

    /// Which GPUs the container has, and how.
    pub fn gpus(&mut self, gpus: Vec<CaptureGpu>) {
        self.status.gpus = gpus;
    }

    /// Which profiler was chosen, on which container.
    pub fn attach_to(&mut self, profiler: ProfilerType, container_id: &str) {
        self.status.profiler = Some(profiler);
        self.status.container_id = Some(container_id.to_owned());
    }

    /// What the window cost its target.
    pub fn overhead(&mut self, mut overhead: CaptureOverhead) {
        truncate(&mut overhead.message, MAX_SHORT_MESSAGE);
        self.status.overhead = Some(overhead);
    }

    /// What the capture took of the node's processors.
    pub fn processor_time(&mut self, time: CaptureProcessorTime) {
        self.status.processor_time = Some(time).filter(|time| !time.is_unknown());
    }

    /// The window opened now.
    pub fn window_opened(&mut self, now: Timestamp) {
        self.status.start_time = Some(whole_second(now));
    }

    /// Ends with success.
    pub fn succeed(
        &mut self,
        artifacts: Vec<Artifact>,
        summary: Option<CaptureSummary>,
        url: Option<String>,
        message: &str,
        now: Timestamp,
    ) {
        self.enter(Stage::Done, message);
        let (status, reason) = (ConditionStatus::True, CaptureReason::Succeeded);
        self.set(CaptureCondition::Succeeded, status, reason, message);
        self.status.artifacts = artifacts;
        self.status.summary = summary;
        self.status.url = url;
        self.status.completion_time = Some(whole_second(now));
    }

    /// Ends without success: the milestone that was at work and the summary become False. What was
    /// captured beside the missing events may be shown.
    pub fn fail(&mut self, failure: &Failure, summary: Option<CaptureSummary>, now: Timestamp) {
        let behind = milestones_behind(self.stage());
        for (index, (condition, reached)) in MILESTONES.into_iter().enumerate() {
            if condition == CaptureCondition::Succeeded || index == behind {
                self.set(condition, ConditionStatus::False, failure.reason, &failure.message);
            } else if index < behind {
                self.set(condition, ConditionStatus::True, reached, "");
            } else {
                self.set(condition, ConditionStatus::Unknown, CaptureReason::Pending, "");
            }
        }
        self.progress(Stage::Done, percent_at(Stage::Done), &failure.message);
        self.status.artifacts.clear();
        self.status.url = None;
        self.status.summary = summary;
        self.status.completion_time = Some(whole_second(now));
    }

    /// Nothing is left of it.
    pub fn release(&mut self) {
        self.status.artifacts.clear();
        self.status.url = None;
        self.status.store_url = None;
        self.status.store_sha256 = None;
    }

    /// The artifacts are on the node though the capture failed.
    pub fn keep(&mut self, artifacts: Vec<Artifact>, url: Option<String>) {
        let (status, reason) = (ConditionStatus::True, CaptureReason::Published);
        self.set(CaptureCondition::Published, status, reason, "");
        self.status.artifacts = artifacts;
        self.status.url = url;
    }

    /// The artifacts are served at another address.
    pub fn serve_at(&mut self, url: String) {
        self.status.url = Some(url);
    }

    /// Replicas of the artifacts are to be in the object store, and are not yet.
    pub fn storing(&mut self) {
        let (status, reason) = (ConditionStatus::Unknown, CaptureReason::Progressing);
        self.set(CaptureCondition::Stored, status, reason, "");
    }

    /// Records that the object store holds the artifacts, and the SHA-256 of the manifest there, by
    /// which readers know them.
    pub fn stored(&mut self, url: String, sha256: String) {
        let (status, reason) = (ConditionStatus::True, CaptureReason::Stored);
        self.set(CaptureCondition::Stored, status, reason, "");
        self.status.store_url = Some(url);
        self.status.store_sha256 = Some(sha256);
    }

    /// The object store did not take them.
    pub fn not_stored(&mut self, failure: &Failure) {
        let status = ConditionStatus::False;
        self.set(CaptureCondition::Stored, status, failure.reason, &failure.message);
    }

    /// The node removed the artifacts to keep within its limits. Without replicas elsewhere they
    /// are lost, and it says so.
    pub fn evict(&mut self, message: &str) {
        self.status.url = None;
        // Without the digest of their manifest nobody believes them.
        if self.status.store_sha256.is_none() {
            self.status.artifacts.clear();
            let status = ConditionStatus::False;
            self.set(CaptureCondition::Published, status, CaptureReason::Evicted, message);
        }
    }

    fn progress(&mut self, stage: Stage, percent: i32, message: &str) {
        let mut message = message.to_owned();
        truncate(&mut message, MAX_SHORT_MESSAGE);
        self.status.progress = Some(Progress {
            stage,
            percent,
            message,
            live: None,
        });
        self.status.observed_generation = self.generation;
    }

    fn set(&mut self, type_: CaptureCondition, status: ConditionStatus, reason: CaptureReason, message: &str) {
        let mut message = message.to_owned();
        truncate(&mut message, MAX_MESSAGE);
        let desired = DesiredCondition::new(type_.as_str(), status, reason.as_str(), message);
        // The writer compares whole statuses, so the change that this reports is not needed.
        let _changed = conditions::set(
            &mut self.status.conditions,
            desired.observed_generation(self.generation),
        );
    }
}

/// Times on the API server have whole seconds; a finer one would differ from what is read back.
fn whole_second(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// Shortens a text to at most so many bytes at a character's edge.
fn truncate(text: &mut String, max: usize) {
    if text.len() > max {
        let end = text.floor_char_boundary(max.saturating_sub(3));
        text.truncate(end);
        text.push_str("...");
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_api::capture::CategoryCount;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

    use super::*;

    fn words(draft: &Draft) -> Vec<String> {
        draft
            .status()
            .conditions
            .iter()
            .map(|c| format!("{}={}/{}", c.type_, c.status, c.reason))
            .collect()
    }

    fn fail(draft: &mut Draft, reason: CaptureReason, message: &str) {
        draft.fail(&Failure::new(reason, message), None, Timestamp::now());
    }

    #[test]
    fn every_condition_is_there_from_the_first_moment() {
        let mut draft = Draft::new(None, Some(1));
        draft.queue("2 of 2 captures run");
        assert_eq!(
            words(&draft),
            [
                "Accepted=Unknown/WaitingForTurn",
                "Attached=Unknown/Pending",
                "Captured=Unknown/Pending",
                "Transformed=Unknown/Pending",
                "Published=Unknown/Pending",
                "Succeeded=Unknown/Pending",
            ]
        );
        assert_eq!(draft.status().observed_generation, Some(1));
    }

    #[test]
    fn a_stage_makes_the_milestones_before_it_true() {
        let mut draft = Draft::new(None, Some(1));
        draft.enter(Stage::Transforming, "");
        assert_eq!(
            words(&draft),
            [
                "Accepted=True/Accepted",
                "Attached=True/Attached",
                "Captured=True/Captured",
                "Transformed=Unknown/Progressing",
                "Published=Unknown/Pending",
                "Succeeded=Unknown/Progressing",
            ]
        );
    }

    #[test]
    fn a_failure_marks_the_milestone_at_work_and_the_summary() {
        let mut draft = Draft::new(None, Some(1));
        draft.enter(Stage::Collecting, "");
        fail(&mut draft, CaptureReason::ContainerRestarted, "it restarted");
        assert_eq!(
            words(&draft),
            [
                "Accepted=True/Accepted",
                "Attached=True/Attached",
                "Captured=False/ContainerRestarted",
                "Transformed=Unknown/Pending",
                "Published=Unknown/Pending",
                "Succeeded=False/ContainerRestarted",
            ]
        );
        assert_eq!(draft.stage(), Stage::Done);
        assert!(draft.status().completion_time.is_some());
    }

    #[test]
    fn a_refused_capture_was_never_accepted() {
        let mut draft = Draft::new(None, Some(1));
        fail(&mut draft, CaptureReason::ContainerBusy, "busy");
        assert!(words(&draft).contains(&"Accepted=False/ContainerBusy".to_owned()));
    }

    #[test]
    fn the_operators_condition_is_never_applied_by_the_agent() {
        let lost = Condition {
            type_: "Lost".to_owned(),
            status: "True".to_owned(),
            reason: "NodeLost".to_owned(),
            message: String::new(),
            last_transition_time: Time(Timestamp::now()),
            observed_generation: None,
        };
        let observed = CaptureStatus {
            conditions: vec![lost],
            ..CaptureStatus::default()
        };
        assert!(Draft::new(Some(&observed), Some(1)).status().conditions.is_empty());
    }

    #[test]
    fn a_draft_that_says_the_same_again_is_equal() {
        let mut draft = Draft::new(None, Some(1));
        draft.enter(Stage::Attaching, "probing");
        let before = draft.clone();
        draft.enter(Stage::Attaching, "probing");
        assert_eq!(draft, before);
    }

    #[test]
    fn progress_stays_within_its_stage() {
        let mut draft = Draft::new(None, Some(1));
        draft.enter(Stage::Collecting, "");
        for (share, percent) in [((0, 10), 10), ((5, 10), 40), ((10, 10), 70), ((20, 10), 70)] {
            draft.advance(share, "");
            assert_eq!(draft.status().progress.as_ref().unwrap().percent, percent);
        }
    }

    #[test]
    fn what_a_window_recorded_so_far_is_told_while_it_is_open_and_no_longer() {
        let figures = LiveFigures {
            categories: vec![CategoryCount {
                category: "cuda_kernel".to_owned(),
                events: 7,
            }],
            latest_kernels: Vec::new(),
        };
        let live = |draft: &Draft| draft.status().progress.as_ref().unwrap().live.clone();
        let mut draft = Draft::new(None, Some(1));
        draft.enter(Stage::Collecting, "");
        assert_eq!(live(&draft), None);
        draft.advance((1, 10), "recording");
        draft.live(Some(figures.clone()));
        assert_eq!(live(&draft), Some(figures));
        draft.enter(Stage::Fetching, "ending the window");
        assert_eq!(live(&draft), None);
    }

    #[test]
    fn what_a_store_refused_stays_on_the_node_and_what_left_both_says_so() {
        let artifact = Artifact {
            name: "timeline.h5".to_owned(),
            type_: flopwatch_api::artifact::Output::Timeline,
            bytes: 1,
            sha256: "0".repeat(64),
            media_type: String::new(),
            sensitive: false,
        };
        let (now, refused) = (Timestamp::now(), CaptureReason::ObjectStoreRefused);
        let failure = Failure::new(refused, "no bucket");
        let mut draft = Draft::new(None, Some(1));
        draft.enter(Stage::Publishing, "");
        draft.storing();
        draft.fail(&failure, None, now);
        draft.not_stored(&failure);
        draft.keep(vec![artifact], Some("https://10.0.0.1:8443/x".to_owned()));
        let told = words(&draft);
        for expected in [
            "Published=True/Published",
            "Stored=False/ObjectStoreRefused",
            "Succeeded=False/ObjectStoreRefused",
        ] {
            assert!(told.contains(&expected.to_owned()), "{told:?}");
        }
        assert_eq!(draft.status().artifacts.len(), 1);

        let mut copied = draft.clone();
        copied.stored("s3://b/x".to_owned(), "0a".repeat(32));
        copied.evict("full");
        assert_eq!((copied.status().artifacts.len(), &copied.status().url), (1, &None));
        assert!(words(&copied).contains(&"Stored=True/Stored".to_owned()));
        draft.evict("full");
        assert!(draft.status().artifacts.is_empty());
        assert!(words(&draft).contains(&"Published=False/Evicted".to_owned()));
        copied.release();
        assert_eq!(
            (copied.status().artifacts.len(), &copied.status().store_url),
            (0, &None)
        );
        assert_eq!(copied.status().store_sha256, None);
    }

    #[test]
    fn long_messages_are_cut_at_a_characters_edge() {
        let mut draft = Draft::new(None, Some(1));
        fail(&mut draft, CaptureReason::AttachFailed, &"é".repeat(4000));
        let condition = draft
            .status()
            .conditions
            .iter()
            .find(|c| c.type_ == "Succeeded")
            .unwrap();
        assert!(condition.message.len() <= MAX_MESSAGE && condition.message.ends_with("..."));
        assert!(draft.status().progress.as_ref().unwrap().message.len() <= MAX_SHORT_MESSAGE);
    }
}
