//! The library of `kubectl flopwatch`: creates profiling sessions, follows them, fetches and opens
//! their artifacts, and examines why a pod cannot be profiled. The Python package uses it too.
//!
//! # Parts, in the order of a session's way
//!
//! 1. [`arguments`] parses the command line, [`complete`] completes it in a shell, and [`run`] runs
//!    its subcommand.
//! 2. [`request`] builds the session that the arguments describe; [`ask`] makes the calls of the
//!    API server through [`cluster`], which reads the kubeconfig and explains refusals.
//! 3. [`follow`] watches a session until it ends; [`sessions`] and [`describe`] render it;
//!    [`schedule`] renders schedules; [`doctor`] examines a pod.
//! 4. [`gateway`] connects to the gateway by a port-forward or an address; [`fetch`] downloads
//!    artifacts, [`analysis`], [`compare`] and [`top`] request results, [`open`] shows a timeline
//!    in a browser, and [`proxy`] serves the gateway on loopback.
//! 5. [`mcp`] serves sessions and results to clients of the Model Context Protocol.
//!
//! # Invariants and limits
//!
//! * Rendering is a pure function of objects and results. Text of the cluster reaches a terminal
//!   without control characters ([`print`](mod@print)).
//! * A call of the API server ends within 30 s; a connection to the gateway is open within 20 s,
//!   and its answer begins within 1 min.
//! * The caller's token is shown to a server only after it proved, by its certificate, to be the
//!   gateway.
//! * A file gets its name only once its SHA-256 is right; an interrupted transfer continues where
//!   it ended. Results of analyses are read up to 64 MiB.
//! * Every failure is an [`Error`](error::Error), which has the exit code.

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
mod live;
pub mod mcp;
pub mod open;
pub mod print;
pub mod proxy;
pub mod request;
pub mod run;
pub mod schedule;
pub mod sessions;
pub mod top;
