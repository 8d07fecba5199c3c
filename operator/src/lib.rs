//! The operator of Flopwatch: admission webhooks, controllers and the HTTP gateway, each a process
//! of its own, chosen by a subcommand ([`args`]).
//!
//! # Parts, in the order of a session's way
//!
//! 1. [`admission`] prepares pods that opted in for profiling, before the API server creates them,
//!    and records the requester of a session. [`preparation_failure`] finds prepared pods that the
//!    preparation keeps from starting, and publishes Events on them.
//! 2. [`schedule`] creates the sessions of ProfilingSchedules, as the crate `flopwatch_schedule`
//!    plans them.
//! 3. [`session`] chooses the pods and containers of a session, creates one capture for each, and
//!    sums their results up in the session's status.
//! 4. [`capture`] declares captures lost whose node is gone, and removes the finalizers of deleted
//!    ones whose agent cannot. The capture itself is the work of the node's agent.
//! 5. [`gateway`] serves sessions, their progress and their artifacts over HTTP.
//!
//! [`controller`] runs 2 to 4 under a lease, with [`certificates`] and the sweep of the object
//! store; [`release`] releases every capture before an uninstallation; [`crds`] prints the custom
//! resource definitions; [`probes`] and [`metrics`] belong to every process.
//!
//! # Invariants and limits
//!
//! * Decisions are pure functions (`plan`, `select`, `decide`, `prepare`); the modules named
//!   `reconcile`, `publish` and `calls` carry them out.
//! * A decision that cannot be undone rests on objects that were just read from the API server, not
//!   on a watch's cache, which may be behind.
//! * Every call of the API server ends within 10 s ([`deadline`]); a failed pass is repeated after
//!   1 s to 4 min, with up to half of that added at random.
//! * Watches cache every schedule, session and capture of the cluster, and its pods and nodes
//!   pruned to what is read of them.
//! * The gateway reads with its own rights only after it reviewed the caller's, and writes with the
//!   caller's own token. It parses no artifact.

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
