//! From a profiler's raw files to the published ones, in sandboxed children of the calling program:
//! what `flopwatch-agent` does on a node and `flopwatch` on any machine. It knows no cluster.
//!
//! | module | holds |
//! |---|---|
//! | [`products`] | what is run, one child after the other, and what comes of it |
//! | [`steps`], [`sandbox_dir`], [`folder`], [`disk`] | a child, its bounds, folder and disk space |
//! | [`children`], [`reentry`] | what a program starts itself as: hidden subcommands |
//! | [`transform`], [`analysis`], [`disassembly`] | the work that is done in a child |
//! | [`fleet_rows`] | rows of the fleet, where the program has a writer of them |
//! | [`verify`], [`activity`], [`status_summary`] | whether a capture holds what was asked for |
//! | [`cuda_window`] | a window of the CUDA tracer: ordered, drained while it runs, ended |
//! | [`derived`], [`artifact_file`] | results that are made on demand, and their media types |
//! | [`tools`], [`nsys_options`], [`gpus`], [`child`] | what the machine has: Nsight Systems, GPUs |
//! | [`failure`], [`sentence`] | why something failed, in words |

pub mod activity;
mod ahead;
pub mod analysis;
pub mod artifact_file;
pub mod child;
mod child_spec;
pub mod children;
pub mod cuda_window;
pub mod derived;
pub mod disassembly;
pub mod disk;
pub mod failure;
pub mod fleet_rows;
pub mod folder;
pub mod gpus;
pub mod nsys_options;
pub mod products;
pub mod reentry;
pub mod sandbox_dir;
pub mod sentence;
pub mod status_summary;
pub mod steps;
pub mod tools;
pub mod transform;
pub mod verify;
