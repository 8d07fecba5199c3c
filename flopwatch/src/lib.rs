//! Flopwatch's program for one machine, `flopwatch`: what its commands are made of. It knows no
//! cluster.
//!
//! | module | holds |
//! |---|---|
//! | [`cli`], [`arguments`], [`commands`] | the command line, and what each command does |
//! | [`record`] | `record`: a command of this machine, profiled; [`manifest`] is the request that it reads |
//! | [`source`] | `convert`, `summary`, `export`: any file that is read, through sandboxed children |
//! | [`analyze`], [`compare`], [`diagnose`] | the commands of the catalogue of analyses |
//! | [`compat`] | the commands of an earlier suite, by their names there |
//! | [`serve`] | a result and the viewer on loopback; [`upload`] takes what is dropped onto it |
//!
//! What runs in the children, and how raw files become published ones, is [`flopwatch_pipeline`],
//! which nodes run too.

pub mod analyze;
pub mod arguments;
pub mod cli;
pub mod commands;
pub mod compare;
pub mod compat;
pub mod diagnose;
pub mod manifest;
mod progress;
pub mod record;
pub mod serve;
pub mod source;
pub mod upload;
