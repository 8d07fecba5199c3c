//! What derived artifacts are made of.

use flopwatch_api::artifact::{Artifact, Output, TIMELINE};

use crate::conversion::ConversionError;
use crate::manifest::{CaptureId, Manifest};
use crate::store::Source;

/// The timeline of a capture, and where it is read.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) manifest: Manifest,
    pub(crate) source: Source,
    pub(crate) timeline: Artifact,
}

impl Input {
    /// Of a capture that was found, and that the caller may read.
    pub(crate) fn of(manifest: Manifest, source: Source) -> Result<Self, ConversionError> {
        let timeline = manifest.artifact(TIMELINE).ok_or(ConversionError::NoTimeline)?.clone();
        Ok(Self {
            manifest,
            source,
            timeline,
        })
    }

    pub(crate) fn capture(&self) -> &CaptureId {
        &self.manifest.capture
    }
}

/// The captures of one derived artifact, in the order that matters to its analysis: there is a first, to which the artifact belongs.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pub(crate) first: Input,
    pub(crate) others: Vec<Input>,
}

impl Inputs {
    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Input> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// SHA-256 of each timeline, in order.
    pub(crate) fn digests(&self) -> Vec<String> {
        self.iter().map(|input| input.timeline.sha256.clone()).collect()
    }

    /// Captures whose content is not at hand.
    pub(crate) fn missing(&self) -> Vec<CaptureId> {
        let gone = self
            .iter()
            .filter(|input| matches!(input.source, Source::Received(None)));
        gone.map(|input| input.capture().clone()).collect()
    }

    /// Whether what is made of them needs the right to raw captures.
    pub(crate) fn are_sensitive(&self) -> bool {
        self.iter()
            .any(|input| input.timeline.sensitive || input.timeline.type_ == Output::Raw)
    }

    /// Whether the first is a capture of another node.
    pub(crate) fn are_of_another_node(&self) -> bool {
        !matches!(self.first.source, Source::Node)
    }
}
