//! The inputs of derived artifacts: timelines and raw captures, with where they are read.

use flopwatch_api::artifact::{Artifact, Output, TIMELINE, timeline_source};

use crate::manifest::{CaptureId, Manifest};
use crate::store::Source;

/// One artifact of a capture, with where it is read.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) manifest: Manifest,
    pub(crate) artifact: Artifact,
    /// Where the capture's artifacts are read.
    source: Source,
    /// Whether the artifact was made of the capture here, wherever the capture is.
    is_made: bool,
}

impl Input {
    /// The timeline of a capture that the caller may read, or the raw capture that one can be made
    /// of; None where the capture has neither.
    pub(crate) fn of(manifest: Manifest, source: Source) -> Option<Self> {
        let artifact = timeline_source(&manifest.artifacts)?.clone();
        Some(Self {
            manifest,
            artifact,
            source,
            is_made: false,
        })
    }

    /// The input with the timeline that was made of its raw capture.
    pub(crate) fn with_timeline(self, timeline: Artifact) -> Self {
        Self {
            artifact: timeline,
            is_made: true,
            ..self
        }
    }

    pub(crate) fn is_timeline(&self) -> bool {
        self.artifact.name == TIMELINE
    }

    pub(crate) const fn is_made(&self) -> bool {
        self.is_made
    }

    /// Whether the capture is one of this node.
    pub(crate) const fn is_of_this_node(&self) -> bool {
        matches!(self.source, Source::Node)
    }

    /// Where the artifact is read.
    pub(crate) const fn source(&self) -> &Source {
        if self.is_made { &Source::Node } else { &self.source }
    }

    pub(crate) const fn capture(&self) -> &CaptureId {
        &self.manifest.capture
    }
}

/// The captures of one derived artifact, in the order that matters to its analysis: there is a
/// first, to which the artifact belongs.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pub(crate) first: Input,
    pub(crate) others: Vec<Input>,
}

impl Inputs {
    /// All inputs, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Input> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// SHA-256 of each artifact, in order.
    pub(crate) fn digests(&self) -> Vec<String> {
        self.iter().map(|input| input.artifact.sha256.clone()).collect()
    }

    /// Captures whose content is not at hand.
    pub(crate) fn missing(&self) -> Vec<CaptureId> {
        let gone = self
            .iter()
            .filter(|input| matches!(input.source(), Source::Received(None)));
        gone.map(|input| input.capture().clone()).collect()
    }

    /// Whether what is made of them needs the right to raw captures.
    pub(crate) fn are_sensitive(&self) -> bool {
        self.iter()
            .any(|input| input.artifact.sensitive || input.artifact.type_ == Output::Raw)
    }

    /// Whether the first is a capture of another node.
    pub(crate) fn are_of_another_node(&self) -> bool {
        !self.first.is_of_this_node()
    }
}

impl From<Input> for Inputs {
    fn from(first: Input) -> Self {
        let others = Vec::new();
        Self { first, others }
    }
}
