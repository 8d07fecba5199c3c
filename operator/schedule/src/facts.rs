//! What a plan is made of.

use flopwatch_api::schedule::ProfilingScheduleSpec;
use jiff::Timestamp;

use crate::history::History;
use crate::identity::Identity;
use crate::ledger::Ledger;
use crate::pod::Pod;

/// All that decides what a schedule does.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// What is asked for.
    pub spec: &'a ProfilingScheduleSpec,
    /// Which schedule it is.
    pub identity: &'a Identity,
    /// The pods that run and that its selector matches.
    pub pods: &'a [Pod],
    /// What it did so far.
    pub history: &'a History,
    /// What that cost.
    pub ledger: &'a Ledger,
    /// The time.
    pub now: Timestamp,
}
