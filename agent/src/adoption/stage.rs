//! The stages of a capture. The journal holds the one that a capture is in, written before the
//! stage begins.

use flopwatch_pipeline::activity::ActivityEvidence;
use serde::{Deserialize, Serialize};

use super::journal::{Attached, ProducedArtifacts};
use crate::profilers::State;

/// A stage of a capture, with what it needs.
///
/// A stage that waits (for an instant, for another capture) is one more variant, with what it waits
/// for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// The container is found and probed, and a profiler is picked for it.
    Attach {
        /// What an earlier collection of the capture was attached to, which may still be at work.
        earlier: Option<Attached>,
    },
    /// What is left of a collection that missed what it was to record is removed.
    Again(Attached),
    /// The target is measured, and the profiler finds out what it needs to know for its start.
    Prepare(Attached),
    /// The collection is started.
    Start {
        /// Container that the collection is attached to, with the state that the profiler prepared.
        attached: Attached,
        /// The profiler's state before that.
        unprepared: State,
        /// Whether a start of it failed already.
        again: bool,
    },
    /// The collection runs until its window is over.
    Window(Collection),
    /// The collection is stopped, and its raw files are taken into the capture's folder.
    Fetch(Collection),
    /// The files to publish are made of what was recorded: the container is left to others.
    Produce(Collection),
    /// The files are stored on the node, and replicated where they are to be.
    Publish {
        /// What was recorded; none where the record of it is lost.
        collection: Option<Collection>,
        /// What the capture is to succeed with; none where the record of it is lost.
        made: Option<Box<ProducedArtifacts>>,
    },
}

/// A collection that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collection {
    /// Container that the collection is attached to, with the state that its profiler prepared.
    pub attached: Attached,
    /// The profiler's state before that, with which a further collection begins.
    pub unprepared: State,
    /// When its window opened, in ns since the Unix epoch.
    pub opened_utc_ns: u64,
    /// What was seen beside it; none before its window closed.
    pub activity: Option<ActivityEvidence>,
    /// Why its window was ended, where it cost too much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<String>,
}

impl Default for Stage {
    /// The first stage.
    fn default() -> Self {
        Self::Attach { earlier: None }
    }
}

impl Stage {
    /// What the capture is attached to; none before.
    pub fn attached(&self) -> Option<&Attached> {
        match self {
            Self::Attach { .. } => None,
            Self::Again(attached) | Self::Prepare(attached) | Self::Start { attached, .. } => Some(attached),
            Self::Window(_) | Self::Fetch(_) | Self::Produce(_) | Self::Publish { .. } => {
                self.collection().map(|collection| &collection.attached)
            }
        }
    }

    /// The collection that was started; none before.
    pub const fn collection(&self) -> Option<&Collection> {
        match self {
            Self::Attach { .. } | Self::Again(_) | Self::Prepare(_) | Self::Start { .. } => None,
            Self::Window(collection) | Self::Fetch(collection) | Self::Produce(collection) => Some(collection),
            Self::Publish { collection, .. } => collection.as_ref(),
        }
    }

    /// What a collection that may still be at work is attached to; none where there is none.
    pub fn left_behind(&self) -> Option<&Attached> {
        match self {
            Self::Attach { earlier } => earlier.as_ref(),
            _ => self.attached(),
        }
    }

    /// What a further collection is attached to; none before there was one.
    pub fn reattached(&self) -> Option<Attached> {
        let mut attached = self.attached()?.clone();
        if let Some(unprepared) = self.unprepared() {
            attached.profiler.clone_from(unprepared);
        }
        Some(attached)
    }

    fn unprepared(&self) -> Option<&State> {
        match self {
            Self::Start { unprepared, .. } => Some(unprepared),
            _ => self.collection().map(|collection| &collection.unprepared),
        }
    }

    /// Whether all that was recorded lies in the capture's folder: the container is left to others.
    pub const fn has_recorded(&self) -> bool {
        matches!(
            self,
            Self::Produce(_)
                | Self::Publish {
                    collection: Some(_),
                    ..
                }
        )
    }

    /// What the capture is to succeed with; none before its files were made.
    pub fn made(&self) -> Option<&ProducedArtifacts> {
        match self {
            Self::Publish { made, .. } => made.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_api::profiler::ProfilerType;
    use flopwatch_attach::process::ProcessId;

    use super::*;

    fn attached(operator: &str) -> Attached {
        Attached {
            container_id: "abc".to_owned(),
            process: ProcessId { pid: 7, start_time: 1 },
            profiler: state(operator),
            note: String::new(),
            uses_cuda: false,
            ring: None,
            kernels: None,
        }
    }

    fn state(operator: &str) -> State {
        State::of(ProfilerType::Kineto, &serde_json::json!({"operator": operator})).unwrap()
    }

    fn collection() -> Collection {
        Collection {
            attached: attached("prepared"),
            unprepared: state("asked for"),
            opened_utc_ns: 100,
            activity: None,
            over_budget: None,
        }
    }

    #[test]
    fn a_further_collection_begins_with_what_was_asked_for_and_not_with_what_was_prepared() {
        let start = Stage::Start {
            attached: attached("prepared"),
            unprepared: state("asked for"),
            again: false,
        };
        for stage in [start, Stage::Window(collection()), Stage::Produce(collection())] {
            assert_eq!(stage.reattached(), Some(attached("asked for")), "{stage:?}");
            assert_eq!(stage.left_behind(), Some(&attached("prepared")), "{stage:?}");
        }
        assert_eq!(Stage::default().reattached(), None);
    }

    #[test]
    fn the_container_is_left_to_others_once_all_that_was_recorded_is_on_the_node() {
        let publish = |collection| Stage::Publish { collection, made: None };
        for (stage, has_recorded) in [
            (Stage::default(), false),
            (Stage::Prepare(attached("asked for")), false),
            (Stage::Window(collection()), false),
            (Stage::Fetch(collection()), false),
            (Stage::Produce(collection()), true),
            (publish(Some(collection())), true),
            (publish(None), false),
        ] {
            assert_eq!(stage.has_recorded(), has_recorded, "{stage:?}");
        }
    }

    #[test]
    fn a_capture_that_begins_anew_knows_what_it_was_attached_to() {
        let earlier = Some(attached("prepared"));
        let stage = Stage::Attach {
            earlier: earlier.clone(),
        };
        assert_eq!((stage.left_behind().cloned(), stage.attached()), (earlier, None));
    }
}
