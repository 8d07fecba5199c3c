//! `kubectl flopwatch`: asks for profiles of pods, follows the sessions, fetches and opens what they recorded, and says of a pod
//! what keeps it from being profiled.
//!
//! What is printed is a function of objects of the cluster; the modules that ask the cluster for them stand around that.

pub mod analysis;
pub mod arguments;
pub mod ask;
pub mod cluster;
pub mod compare;
pub mod complete;
pub mod describe;
pub mod doctor;
pub mod error;
pub mod fetch;
pub mod follow;
pub mod gateway;
mod listing;
pub mod open;
pub mod print;
pub mod proxy;
pub mod request;
pub mod run;
pub mod schedule;
pub mod sessions;
pub mod top;
