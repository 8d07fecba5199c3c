//! Tests of the crate as its users see it: from a file to a timeline, a file of our own, a summary.

mod corpus;
mod damage;
mod export;
mod file;
mod nsys;
mod parity;
mod properties;
mod reader;
mod secrets;
