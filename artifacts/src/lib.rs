//! The artifacts of captures: what a [manifest](Manifest) says, a node's [store](Store) with the [HTTP service](ArtifactService) in front of it,
//! and copies in an [object store] that outlives the node.
//!
//! The agent [publishes](Store::publish) the files of a capture once; whoever may read the session fetches them by name.
//!
//! ```text
//! objects/<sha256>                     the content, named by its SHA-256, shared by manifests that hold the same
//! captures/<namespace>/<capture>.json  the manifest: what belongs to the capture; written last, so it names only what is there
//! derived/<namespace>/<capture>.json   results of analyses that were made on demand: kept within bounds, gone with the capture
//! incoming/                            copies under way; emptied at start and by the sweep
//! ```
//!
//! The feature `node` has the store on a node's disk and its service; without it there are manifests and the object store.
//!
//! [object store]: mod@object_store

#[cfg(feature = "node")]
mod access;
#[cfg(feature = "node")]
mod conversion;
#[cfg(feature = "node")]
mod derivation;
#[cfg(feature = "node")]
mod input;
mod manifest;
#[cfg(feature = "node")]
mod metrics;
pub mod object_store;
#[cfg(feature = "node")]
mod problem;
#[cfg(feature = "node")]
mod service;
#[cfg(feature = "node")]
mod store;

pub use manifest::{
    CaptureId, MANIFEST_VERSION, MAX_ARTIFACTS, MAX_MANIFEST_BYTES, Manifest, ManifestError, check_name, is_sha256,
};

#[cfg(feature = "node")]
pub use self::{
    access::Access,
    conversion::{ConversionError, ConversionLimits, Converter, RawCapture},
    metrics::ArtifactMetrics,
    service::ArtifactService,
    store::{EvictionLimits, Listing, Publication, SourceFile, Store, StoreError, StoreOptions, Swept, Usage},
};
