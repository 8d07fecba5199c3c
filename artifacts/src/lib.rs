//! The artifacts of captures: a node's [store](Store), the [HTTP service](ArtifactService) in front
//! of it, and copies in an [object store] that outlives the node.
//!
//! # Parts, in the order of an artifact's way
//!
//! 1. The agent [publishes](Store::publish) the files of a capture once, under one [`Manifest`]: it
//!    names the capture, its session, and each artifact with its size and SHA-256.
//! 2. [`Store::copy_to`] uploads them to the [object store], where there is one.
//! 3. [`ArtifactService`] serves them over HTTP to callers who may read the session, and has
//!    results of analyses made on demand by a [`Converter`]; the store keeps those for a day.
//! 4. [`Store::evict_captures`] and the sweeps remove captures that are too old, too large or gone.
//!
//! # The store on disk
//!
//! ```text
//! objects/<sha256>                     the content, named by its SHA-256, shared by manifests that hold the same
//! captures/<namespace>/<capture>.json  the manifest: what belongs to the capture; written last, so it names only what is there
//! derived/<namespace>/<capture>.json   results of analyses that were made on demand: kept within bounds, gone with the capture
//! incoming/                            copies under way; emptied at start and by the sweep
//! ```
//!
//! # Invariants and limits
//!
//! * A manifest is written last and replaced at once: a reader sees all of a capture or nothing.
//! * Content is checked before it is served: an object of the store as a whole, once for each
//!   version of its file, and an object of the object store block by block (1 MiB).
//! * No copy in the object store is trusted by itself. The SHA-256 of its manifest is in the status
//!   of its capture, which the capture's own node alone can write.
//! * A capture has at most 16 artifacts ([`MAX_ARTIFACTS`]), a manifest at most 1 MiB. By default
//!   derived results take at most 4 GiB and publications leave 1 GiB of the disk free.
//! * One process has a store open at a time.
//!
//! The feature `node` has the store on a node's disk and its service; without it there are
//! manifests and the object store.
//!
//! ```
//! use flopwatch_artifacts::{Manifest, ManifestError};
//!
//! let error = Manifest::parse(br#"{"version": 7}"#, "team", "train").unwrap_err();
//! assert!(matches!(error, ManifestError::Version { found: 7 }));
//! ```
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
