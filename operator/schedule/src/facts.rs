//! The facts that a plan is made from.

use flopwatch_api::schedule::ProfilingScheduleSpec;
use jiff::Timestamp;

use crate::history::History;
use crate::identity::Identity;
use crate::ledger::Ledger;
use crate::pod::Pod;

/// Everything that a schedule's decisions depend on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The schedule's spec.
    pub spec: &'a ProfilingScheduleSpec,
    /// The schedule's name, UID and time of creation.
    pub identity: &'a Identity,
    /// The pods that run and that the schedule's selector matches.
    pub pods: &'a [Pod],
    /// The sessions of the schedule, and until when its slots were decided.
    pub history: &'a History,
    /// The measured overhead of the schedule's windows, by class of pods.
    pub ledger: &'a Ledger,
    /// The time at which is decided.
    pub now: Timestamp,
}
