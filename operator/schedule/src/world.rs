//! What a plan is made of, looked up once.

use std::collections::BTreeMap;

use flopwatch_api::schedule::ProfilingScheduleSpec;
use thiserror::Error;

use crate::blackout::Blackouts;
use crate::cron::CronError;
use crate::facts::Facts;
use crate::identity::Identity;
use crate::ledger::Account;
use crate::pod::Pod;
use crate::random::Draws;
use crate::strata::Key;
use crate::timing::{Timing, TimingError};

/// Why a schedule cannot be followed. Its condition `Ready` says so.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ScheduleError {
    /// There are no slots.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// The selector cannot be followed.
    #[error("spec.select.podSelector: {0}")]
    Selector(String),
    /// A blackout cannot be followed.
    #[error("spec.blackouts: {0}")]
    Blackout(#[source] CronError),
}

/// What a plan is made of.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) spec: &'a ProfilingScheduleSpec,
    pub(crate) identity: &'a Identity,
    pub(crate) draws: Draws,
    pub(crate) timing: Timing,
    pub(crate) blackouts: Blackouts,
    /// One for each pod, in the order of their UIDs.
    pub(crate) targets: Vec<Target<'a>>,
}

/// A pod, with what does not change from slot to slot.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) pod: &'a Pod,
    /// What decides its own time in slots of equal length.
    pub(crate) phase: u64,
    pub(crate) key: Key<'a>,
    /// The account of its class.
    pub(crate) account: Option<&'a Account>,
}

impl<'a> World<'a> {
    pub(crate) fn new(facts: &Facts<'a>) -> Result<Self, ScheduleError> {
        let Facts {
            spec,
            identity,
            pods,
            ledger,
            ..
        } = *facts;
        let draws = Draws::of(&identity.uid);
        let by_uid: BTreeMap<&str, &Pod> = pods.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
        let target = |pod: &'a Pod| Target {
            pod,
            phase: draws.phase(&pod.uid),
            key: Key::of(pod, &spec.select.stratify_by),
            account: ledger.classes.get(&pod.class),
        };
        Ok(Self {
            spec,
            identity,
            timing: Timing::new(&spec.when, spec.jitter_seconds)?,
            blackouts: Blackouts::new(&spec.blackouts).map_err(ScheduleError::Blackout)?,
            targets: by_uid.into_values().map(target).collect(),
            draws,
        })
    }

    /// Length of a window, in seconds.
    pub(crate) fn window_seconds(&self) -> i64 {
        i64::from(self.spec.session.duration_seconds)
    }
}
