//! The library of `flopwatch`, the program for one machine: it records, converts, analyses and
//! serves captures without a cluster.
//!
//! # Parts, in the order of a capture's way
//!
//! | module | contents |
//! |---|---|
//! | [`cli`], [`arguments`], [`commands`] | the command line, and the function of each command |
//! | [`record`] | `record`: profiles a command of this machine, or a program that runs; [`manifest`] reads its request |
//! | [`source`] | `convert`, `summary`, `export`: read a file of any supported format |
//! | [`analyze`], [`compare`], [`diagnose`] | run analyses of the catalogue |
//! | [`compat`] | the commands of an earlier suite, under their names there |
//! | [`serve`] | serves captures and the viewer on loopback; [`upload`] receives files that are dropped onto the viewer |
//! | `mcp` | serves captures to clients of the Model Context Protocol on standard streams; the feature `mcp` |
//! | [`captures`], [`conversion`] | what a service holds, and how a file becomes part of it |
//! | [`browser`] | `open`: shows the viewer in the user's browser |
//!
//! The steps that turn raw files into published ones are in [`flopwatch_pipeline`], which agents of
//! nodes use too.
//!
//! # Invariants and limits
//!
//! * Captures are untrusted files: sandboxed child processes read them, each with a deadline, and
//!   this process opens only what a child wrote. The exceptions are the first bytes of a file,
//!   which tell its format, and profiles of operations, which are bounded JSON.
//! * `record` never kills the profiled command; it keeps its standard streams and signals.
//! * An existing output file is replaced only with `--force`, and an output appears as a whole or
//!   not at all.
//! * `serve` listens on loopback alone and answers only requests for this machine's names. A
//!   service has at most 64 captures of its command line. An upload has at most 8 GiB; one is
//!   converted at a time, and the timelines of the last eight are kept.
//! * `mcp` reads only files below what its command line names, writes none, and keeps standard
//!   output for the protocol.
//! * A result of an analysis has at most 1 GiB, 16 MiB of `mcp`.

pub mod analyze;
pub mod arguments;
pub mod browser;
pub mod captures;
pub mod cli;
pub mod commands;
pub mod compare;
pub mod compat;
pub mod conversion;
mod cut;
pub mod diagnose;
mod guard;
pub mod manifest;
#[cfg(feature = "mcp")]
pub mod mcp;
mod progress;
pub mod record;
pub mod serve;
pub mod source;
pub mod upload;
