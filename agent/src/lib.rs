//! Flopwatch's node agent, `flopwatch-agent`: what `run`, the captures of one Kubernetes node, is
//! made of.
//!
//! | module | holds |
//! |---|---|
//! | [`cli`], [`commands`] | the command line, and what each command does |
//! | [`plan`], [`adoption`], [`choice`], [`bound`], [`status`] | what to do and what to say: functions of data |
//! | [`profilers`], [`nsys_versions`] | the profilers, one folder or file each, and the tools that they need |
//! | [`overhead`], [`counters`] | what a window costs its target, by a counter of the target's own work |
//! | [`fleet_rows`] | captures as rows of the fleet; [`node::fleet_outbox`] takes and keeps them |
//! | [`metrics_ring`] | samples of the time before a window |
//! | [`node`] | `run`: the captures and pods of one node |
//! | [`metrics`], [`observability`] | what it tells about itself |
//!
//! How raw files become published ones is [`flopwatch_pipeline`], which the program for one machine
//! runs too.

pub mod adoption;
pub mod bound;
pub mod choice;
pub mod cli;
pub mod commands;
pub mod counters;
pub mod fleet_rows;
pub(crate) mod grpc;
pub mod metrics;
pub mod metrics_ring;
pub mod node;
pub mod nsys_versions;
pub mod observability;
pub mod overhead;
pub mod plan;
pub mod profilers;
pub mod status;
