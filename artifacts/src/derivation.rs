//! The kinds of derived artifacts, which are made of captures on demand.

use flopwatch_analysis::Request;
use flopwatch_api::artifact::{TIMELINE, TIMELINE_TYPE};

/// Raised whenever the same raw capture may give another timeline: those that were kept are then
/// made anew.
const TIMELINE_VERSION: u32 = 1;

/// A kind of derived artifact.
#[derive(Clone, Debug)]
pub(crate) enum Derivation {
    /// The timeline file of one raw capture.
    Timeline,
    /// The result of an analysis of timelines.
    Analysis(Request),
}

impl Derivation {
    /// Names it within a store, beside the digests of what it is made of. No analysis is called as
    /// a file is.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Timeline => format!("{TIMELINE}@{TIMELINE_VERSION}"),
            Self::Analysis(request) => request.key().to_owned(),
        }
    }

    /// File name of the result.
    pub(crate) fn file_name(&self) -> String {
        match self {
            Self::Timeline => TIMELINE.to_owned(),
            Self::Analysis(request) => request.file_name(),
        }
    }

    /// Media type of the result.
    pub(crate) fn media_type(&self) -> &'static str {
        match self {
            Self::Timeline => TIMELINE_TYPE,
            Self::Analysis(request) => request.media_type(),
        }
    }

    /// Which series counts it: those of an analysis in another format count with it.
    pub(crate) fn form(&self) -> String {
        match self {
            Self::Timeline => TIMELINE.to_owned(),
            Self::Analysis(request) => request.definition().file_name(),
        }
    }

    /// Whether a result of so many bytes says that the capture holds nothing of the kind.
    pub(crate) const fn is_absent(&self, bytes: i64) -> bool {
        match self {
            Self::Timeline => false,
            Self::Analysis(request) => request.definition().is_absent(bytes),
        }
    }
}
