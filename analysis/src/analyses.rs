//! The analyses, a file each.

mod kernel_changes;
mod kernels_per_stream;

pub use kernel_changes::KernelChanges;
pub use kernels_per_stream::KernelsPerStream;
