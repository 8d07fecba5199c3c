//! The analyses, a file each.

mod collectives;
pub mod compare;
mod kernel_changes;
mod kernels_per_stream;

pub use collectives::{Collectives, CollectivesParams, CollectivesResult};
pub use compare::Compare;
pub use kernel_changes::KernelChanges;
pub use kernels_per_stream::KernelsPerStream;
