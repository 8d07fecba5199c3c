//! The captures of a node in this process: a real store and real children, an API server in memory,
//! and doubles for containers and GPUs.

mod deadline;
mod doubles;
mod ends;
mod fleet;
mod killed;
mod memory;
mod ncu;
mod overhead;
mod prelude;
mod ranges;
mod restart;
mod rig;
mod sample;
mod sample_profiler;
mod side_by_side;
mod space;
mod status;
mod stop;
mod verified;
