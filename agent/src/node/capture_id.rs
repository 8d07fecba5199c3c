//! How the store names a capture.

use flopwatch_artifacts::CaptureId;
use kube::ResourceExt;

/// The name of a capture in the store.
pub(super) fn capture_id(capture: &impl ResourceExt) -> CaptureId {
    CaptureId {
        namespace: capture.namespace().unwrap_or_default(),
        name: capture.name_any(),
        uid: capture.uid().unwrap_or_default(),
    }
}
