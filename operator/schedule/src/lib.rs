//! Decides which sessions a ProfilingSchedule makes: a pure function of its spec, the pods that
//! run, the sessions that it made, the measured overhead of those, and the time.
//!
//! ```text
//! API objects -> Gathered -> Facts
//! Facts         -> plan()    -> Plan: sessions to make and to stop, what was left out, next time
//! Facts         -> explain() -> Explanation: the same for slots to come, pod by pod
//! Facts + alert -> decide()  -> Decision: a session at once, or why none
//! ```
//!
//! # Parts
//!
//! 1. [`Gathered`] reads pods, sessions and captures, whether from the controller's watches or from
//!    the plugin's lists, into the [`Facts`]: spec, [`Identity`], [`Pod`]s, [`History`], [`Ledger`]
//!    and time.
//! 2. A [`Slot`] is a stretch of time in which each drawn pod has one window. Pods are drawn by
//!    hashes that are keyed by the schedule's UID: unpredictable for anyone who does not know it,
//!    and the same each time. Each [`Run`] carries the probability with which its pod is in a
//!    window, by which sums over captures are divided.
//! 3. The [`Ledger`] is the measured overhead of windows by [`Class`] of pods, from the last 20
//!    windows of each. [`eligibility()`] decides from it whether windows may be opened: a class
//!    that exceeds its budget or fails is not profiled for a while.
//! 4. [`plan()`] decides the current slot, [`explain()`] the slots to come, and [`decide()`]
//!    whether an alert makes a session outside of all slots.
//!
//! # Invariants
//!
//! * The crate has no state, does no I/O and reads no clock: the same facts give the same plan, in
//!   whichever process.
//! * A session's name is a hash of schedule, slot and pod, of at most 52 characters
//!   ([`MAX_SESSION_NAME`]): the API server itself refuses to create one twice. The name of an
//!   alert's session has the number of sessions that its trigger made before instead.
//! * A slot that was decided is never decided again. Missed slots are counted, up to 10,000 at a
//!   time, and never caught up.
//! * Times are instants of jiff; lengths are whole seconds where nothing else is said; shares are
//!   basis points, and probabilities are billionths.
//!
//! ```
//! use flopwatch_schedule::Slot;
//!
//! let slot: Slot = "1767225600".parse().unwrap();
//! assert_eq!(slot.start().to_string(), "2026-01-01T00:00:00Z");
//! ```

mod blackout;
mod cron;
mod draw;
mod eligibility;
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
mod strata;
mod timing;
mod trigger;
mod window;
mod world;

pub use cron::CronError;
pub use draw::Verdict;
pub use eligibility::{Eligibility, budget_status, eligibility};
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
pub use timing::TimingError;
pub use trigger::{
    Alert, Alerted, AlertedPod, Decision, TriggerHistory, TriggerSkip, TriggeredRun, decide, is_pod_name, trigger_of,
};
pub use window::{Measured, Window};
pub use world::ScheduleError;
