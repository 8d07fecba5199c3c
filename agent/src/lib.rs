//! Flopwatch's node agent and recorder.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`], [`choice`], [`bound`], [`attribution`], [`signs`], [`verify`], [`status`], [`status_summary`] | what to do and what to say: functions of data |
//! | [`profilers`] | the profilers, one folder or file each |
//! | [`overhead`] | what a window costs its target, by a counter of the target's own work |
//! | [`pipeline`], [`steps`], [`workplace`] | from raw files to published ones: what is run, and the sandboxed children that do it |
//! | [`transform`] | exports and samples into the published files; runs in a child process |
//! | [`fleet`] | captures as rows of the fleet: who they are, and what of a child's rows is taken |
//! | [`node`] | `run`: the captures and pods of one node |
//! | [`source`], [`analysis`] | `convert`, `analyze`, `export` and `summary`: any file that is read, through the same children |
//! | [`derived`] | results of analyses of published timelines on demand, through the same children |
//! | [`upload`] | files that are dropped onto the viewer, through the same children |
//! | [`record`] | `record`: the same on one machine, without a cluster |
//! | [`manifest`] | the request that `record` reads |
//! | [`metrics`], [`observability`] | what it tells about itself |

pub mod adoption;
pub mod analysis;
pub mod analyze;
pub mod attribution;
pub mod bound;
pub mod child;
pub mod choice;
pub mod cli;
pub mod commands;
pub mod compare;
pub mod counters;
pub mod derived;
pub mod diagnose;
pub mod disassembly;
pub mod disk;
pub mod failure;
pub mod fleet;
pub mod gpus;
pub(crate) mod grpc;
pub mod manifest;
pub mod metrics;
pub mod metrics_ring;
pub mod node;
pub mod observability;
pub mod overhead;
pub mod pipeline;
pub mod plan;
pub mod profilers;
mod progress;
pub mod record;
pub mod reentry;
pub mod reports;
pub mod serve;
pub mod signs;
pub mod source;
pub mod status;
pub mod status_summary;
pub mod steps;
pub mod toolbox;
pub mod tools;
pub mod transform;
pub mod upload;
pub mod verify;
pub mod workplace;
