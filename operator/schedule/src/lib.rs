//! Which sessions a ProfilingSchedule makes: a pure function of its spec, the pods there are, the sessions it made, what those were
//! measured to cost, and the time.
//!
//! ```text
//! Facts (spec, identity, pods, history, ledger, now) -> Plan: sessions to make, sessions to stop, what was left out and why, when to look again
//! ```
//!
//! * [`plan()`] decides. It holds no state: whoever calls it a second time with the same facts gets the same answer, on whichever node.
//! * [`explain()`] says what it would decide next, and why it leaves pods out.
//! * A [`Slot`] is a stretch of time in which each drawn pod has one window. The name of a session is a hash of schedule, slot and pod, so
//!   that the API server itself refuses to make one twice.
//! * [`History`] is the sessions that the API server has, and until when slots have been decided. What was decided is never decided again,
//!   and what was missed is counted, never caught up.
//! * Pods are drawn by keyed hashes: at random for whoever does not know the schedule's UID, and the same each time.
//!   Each run carries the probability with which it came about, by which sums over captures are divided.
//! * [`Ledger`] is what windows cost, by class of pods. A class that costs too much, or fails, is left alone for a while.
//!
//! * [`decide()`] says whether an alert makes a session. Its name has how many its trigger made before, so that of several who decide at once
//!   one is let through, and the others decide anew.
//!
//! * [`Gathered`] is all of that as the API server's objects tell it: the controller's watches and the plugin's lists alike.
//!
//! Times are instants of jiff, lengths are whole seconds where nothing else is said. The crate does no I/O.

mod blackout;
mod cron;
mod draw;
mod explain;
mod facts;
mod gather;
mod history;
mod identity;
mod index;
mod ledger;
mod missed;
mod name;
mod plan;
mod pod;
mod pool;
mod quota;
mod random;
mod skipped;
mod slot;
mod standing;
mod strata;
mod timing;
mod trigger;
mod window;
mod world;

pub use cron::CronError;
pub use draw::Verdict;
pub use explain::{Explanation, PodVerdict, explain};
pub use facts::Facts;
pub use gather::{Gathered, Objects, hardware, is_of, trigger_of_session};
pub use history::{History, Session, SessionState, Triggered, surplus};
pub use identity::Identity;
pub use ledger::{Account, Ledger, Outcome, Slowdown};
pub use name::{MAX_SESSION_NAME, session_name};
pub use plan::{Plan, Run, plan};
pub use pod::{Class, Pod};
pub use skipped::Skipped;
pub use slot::Slot;
pub use standing::{Standing, budget_status, standing};
pub use timing::TimingError;
pub use trigger::{
    Alert, Alerted, AlertedPod, Decision, TriggerHistory, TriggerSkip, TriggeredRun, decide, is_pod_name, trigger_of,
};
pub use window::{Measured, Window};
pub use world::ScheduleError;
