//! Session controller, admission and gateway of Flopwatch.
//!
//! * [`controller`] runs the controllers under a lease: [`session`] chooses targets and sums captures up, [`capture`]
//!   gives up captures whose node is gone and takes finalizers off, [`certificates`] are made and rotated.
//! * [`admission`] prepares pods that opted in and writes down who asked for a session.
//! * [`gateway`] serves sessions and their artifacts over HTTP to those who may.
//! * [`preparation_failure`] finds prepared pods that the preparation keeps from starting, and says so on them.
//! * [`release`] releases every capture before all of this is uninstalled.
//!
//! What to do is decided by pure functions (`plan`, `select`, `decide`, `prepare`); the modules named `reconcile`,
//! `publish` and `server` carry it out.

pub mod admission;
pub mod args;
pub mod capture;
pub mod certificates;
pub mod controller;
pub mod crds;
pub mod deadline;
pub mod gateway;
mod lru;
pub mod metrics;
pub mod preparation_failure;
pub mod probes;
pub mod release;
pub mod schedule;
mod serve;
pub mod session;
pub mod watch;
