//! Artifacts in an object store that outlives nodes: S3, or a server that speaks like it.
//!
//! ```text
//! <prefix>/<cluster>/captures/<namespace>/<capture>/<uid>/<sha256>        content of an artifact, named by its SHA-256
//! <prefix>/<cluster>/captures/<namespace>/<capture>/<uid>/manifest.json   what belongs to the capture; written last
//! ```
//!
//! Every capture has objects of its own, so that removing one never asks what another needs. The cluster's own part of the
//! path keeps clusters that share a bucket out of each other's way.
//!
//! Nodes' agents [publish](Bucket::publish) and [remove](Bucket::remove), the gateway [reads](Bucket::read), the controller
//! [sweeps](Bucket::sweep). What is read is checked block by block before it is handed on.

mod answer;
mod blocks;
mod bucket;
mod cluster;
mod conditional;
mod credentials;
mod error;
mod location;
mod manifest;

pub use answer::{Answer, Unsatisfiable, answer};
pub use bucket::{Bucket, Content, Contents, Limits, Stored, Swept};
pub use cluster::{ClusterError, cluster_name};
pub use error::BucketError;
pub use location::{Location, LocationError, StoreArguments};
pub use manifest::{
    CaptureId, MANIFEST_VERSION, MAX_ARTIFACTS, MAX_MANIFEST_BYTES, Manifest, ManifestError, check_name, is_sha256,
};
