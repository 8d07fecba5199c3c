//! Tests of the crate as its users see it: from a file to a timeline, a file of our own, a summary.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and says on its output why it skips; helpers are outside of #[test] functions"
)]

mod archive;
mod capture;
mod cases;
mod columns;
mod corpus;
mod cuda;
mod damage;
mod event_waits;
mod export;
mod exports;
mod file;
mod formats;
mod fuzz;
mod graphs;
mod h5py;
mod hlo;
mod independent;
mod kineto;
mod limits;
mod lod;
mod message;
mod ncu_code;
mod ncu_csv;
mod ncu_report;
mod ncu_reports;
mod nsys;
mod nsys_report;
mod oracle;
mod parity;
mod parts;
mod planted;
mod pprof;
mod processes;
mod program;
mod properties;
mod random;
mod reader;
mod recorder;
mod round_trip;
mod sample;
mod secrets;
mod sqlite;
mod summary;
mod ties;
mod tiles;
mod xplane;
