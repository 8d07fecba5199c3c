//! Tests of the crate as its users see it: from a file to a timeline, a file of our own, a summary.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and says on its output why it skips; helpers are outside of #[test] functions"
)]

mod columns;
mod corpus;
mod cuda;
mod damage;
mod export;
mod exports;
mod file;
mod formats;
mod fuzz;
mod h5py;
mod hlo;
mod independent;
mod kineto;
mod lod;
mod message;
mod ncu_code;
mod ncu_csv;
mod ncu_report;
mod ncu_reports;
mod nsys;
mod parity;
mod parts;
mod planted;
mod pprof;
mod properties;
mod random;
mod reader;
mod recorder;
mod sample;
mod secrets;
mod sqlite;
mod summary;
mod tiles;
mod xplane;
