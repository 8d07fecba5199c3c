//! The pods that a schedule can profile.

use jiff::Timestamp;

/// A running pod that the schedule's selector matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// When it started to run.
    pub started: Timestamp,
    /// When one of its containers last started again after it had ended; None where none did.
    pub restarted: Option<Timestamp>,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Node that it runs on.
    pub node: String,
    /// The workload that owns it, such as `Deployment/llm`; its own name where nothing does.
    pub workload: String,
    /// The class that its costs are accounted to.
    pub class: Class,
}

/// Pods that profiling is taken to cost the same: those of an image on a kind of hardware.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class {
    /// Digest of the image, `sha256:...`.
    pub image_digest: String,
    /// Model of the GPU, or type of the node.
    pub hardware: String,
}
