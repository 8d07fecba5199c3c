//! Content-addressed store of a node's captures and the HTTP service in front of it.
//!
//! The agent [publishes](Store::publish) the files of a capture once; whoever may read the session fetches them by name.
//!
//! ```text
//! objects/<sha256>                     the content, named by its SHA-256, shared by manifests that hold the same
//! captures/<namespace>/<capture>.json  the manifest: what belongs to the capture; written last, so it names only what is there
//! derived/<namespace>/<capture>.json   forms that were made of it on demand: kept within bounds, gone with the capture
//! incoming/                            copies under way; emptied at start and by the sweep
//! ```
//!
//! A [bucket](flopwatch_bucket) may hold copies that outlive the node; forms are made of those too.

mod access;
mod conversion;
mod metrics;
mod problem;
mod server;
mod service;
mod store;

pub use access::{Access, Reviewer, ReviewerOptions, for_readers_of_paths};
pub use conversion::{ConversionError, ConversionLimits, Converter};
pub use flopwatch_bucket::{CaptureId, MAX_ARTIFACTS, Manifest, ManifestError};
pub use metrics::ArtifactMetrics;
pub use server::{ServeError, Server, ServerLimits};
pub use service::{ArtifactService, artifacts_path, is_for_this_machine};
pub use store::{Listing, Publication, RoomLimits, SourceFile, Store, StoreError, StoreOptions, Swept, Usage};
