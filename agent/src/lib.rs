//! Flopwatch's node agent and recorder: what the commands for one machine are made of, and, with the feature `node`, what captures of a
//! Kubernetes node need beside it. The former uses nothing of the latter.
//!
//! | for one machine | holds |
//! |---|---|
//! | [`cli`], [`commands`] | the command line, and what each command does |
//! | [`pipeline`], [`steps`], [`workplace`], [`folder`] | from raw files to published ones: what is run, and the sandboxed children that do it |
//! | [`verify`], [`signs`], [`status_summary`] | whether a capture holds what was asked for, and its summary in a few lines: functions of data |
//! | [`transform`] | captures and samples into the published files; runs in a child process |
//! | [`source`], [`analysis`] | `convert`, `analyze`, `export` and `summary`: any file that is read, through the same children |
//! | [`derived`] | results of analyses of published timelines on demand, through the same children |
//! | [`upload`] | files that are dropped onto the viewer, through the same children |
//! | [`record`], [`nsys_options`] | `record`: the same on one machine, without a cluster |
//! | [`artifact_file`] | files as artifacts: name, output and media type of each |
//! | [`manifest`] | the request that `record` reads |
//! | [`gpus`] | samples of NVML |
//! | [`fleet`] | captures as rows of the fleet; who writes and takes them is the node's |
//!
//! | for a node | holds |
//! |---|---|
//! | `plan`, `adoption`, `choice`, `bound`, `attribution`, `status` | what to do and what to say: functions of data |
//! | `profilers`, `toolbox` | the profilers, one folder or file each, and the tools that they need |
//! | `overhead`, `counters` | what a window costs its target, by a counter of the target's own work |
//! | `metrics_ring` | samples of the time before a window |
//! | `node` | `run`: the captures and pods of one node |
//! | `metrics`, `observability` | what it tells about itself |

// For one machine.
pub mod analysis;
pub mod analyze;
pub mod artifact_file;
pub mod child;
pub mod cli;
pub mod commands;
pub mod compare;
pub mod derived;
pub mod diagnose;
pub mod disassembly;
pub mod disk;
pub mod failure;
pub mod fleet;
pub mod folder;
pub mod gpus;
pub mod manifest;
pub mod nsys_options;
pub mod pipeline;
mod progress;
pub mod record;
pub mod reentry;
pub mod reports;
pub(crate) mod sentence;
pub mod serve;
pub mod signs;
pub mod source;
pub mod status_summary;
pub mod steps;
pub mod tools;
pub mod transform;
pub mod upload;
pub mod verify;
pub mod workplace;

// For a node.
#[cfg(feature = "node")]
pub mod adoption;
#[cfg(feature = "node")]
pub mod attribution;
#[cfg(feature = "node")]
pub mod bound;
#[cfg(feature = "node")]
pub mod choice;
#[cfg(feature = "node")]
pub mod counters;
#[cfg(feature = "node")]
pub(crate) mod grpc;
#[cfg(feature = "node")]
pub mod metrics;
#[cfg(feature = "node")]
pub mod metrics_ring;
#[cfg(feature = "node")]
pub mod node;
#[cfg(feature = "node")]
pub mod observability;
#[cfg(feature = "node")]
pub mod overhead;
#[cfg(feature = "node")]
pub mod plan;
#[cfg(feature = "node")]
pub mod profilers;
#[cfg(feature = "node")]
pub mod status;
#[cfg(feature = "node")]
pub mod toolbox;
