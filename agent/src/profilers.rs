//! The profilers: one folder or file each, with its `mod` and its line in `all` here.
//!
//! A capture drives whichever was chosen for its container as [`AnyProfiler`], which [`Journaled`]
//! makes of every [`Profiler`]. What a profiler keeps of a collection is a type of its own. It
//! stands in the journal as [`State`], so that the agent that comes after this one can ask the same
//! profiler where the collection stands.

mod any;
pub mod containers;
pub mod cuda;
pub mod facts;
pub mod findings;
pub mod gpu_facts;
pub mod jax;
pub mod kineto;
pub mod metrics;
pub mod ncu;
pub mod nsys;
mod profiler;
mod progress;
pub mod recorder;
pub mod registry;
mod site;
pub mod state;

use std::sync::Arc;

pub use any::{AnyProfiler, Journaled};
pub use flopwatch_pipeline::products::Recipe;
pub use profiler::{Observed, Profiler, RawFiles, Remains, STOP_TIMEOUT, Shortened};
pub use progress::Progress;
pub use registry::Registry;
pub use site::{Limits, Site};
pub use state::State;

/// Every profiler of this version, the deepest first: a new one is a line here.
fn all(ncu: ncu::Ncu, cuda: cuda::Cuda) -> Vec<Arc<AnyProfiler>> {
    // `Auto` asks for a window, which the flight recorder has none of, and for events, of which
    // Nsight Compute has none: it takes these where nothing else is open.
    vec![
        Arc::new(Journaled(nsys::Nsys)),
        Arc::new(Journaled(cuda)),
        Arc::new(Journaled(kineto::Kineto::default())),
        Arc::new(Journaled(jax::Jax::default())),
        Arc::new(Journaled(metrics::Metrics)),
        Arc::new(Journaled(recorder::Recorder::default())),
        Arc::new(Journaled(ncu)),
    ]
}
