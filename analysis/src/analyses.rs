//! The analyses, a file each.

mod collectives;
mod kernel_changes;
mod kernels_per_stream;

pub use collectives::{Collectives, CollectivesParams, CollectivesResult};
pub use kernel_changes::KernelChanges;
pub use kernels_per_stream::KernelsPerStream;
