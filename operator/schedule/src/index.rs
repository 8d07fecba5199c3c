//! The windows of a schedule, by pod and by slot.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use crate::history::{DAY_SECONDS, Session};
use crate::slot::{Slot, seconds_later};

/// The windows of a schedule, by pod and by slot.
#[derive(Debug, Default)]
pub(crate) struct Index<'a> {
    by_pod: HashMap<&'a str, Vec<Window<'a>>>,
    by_slot: HashMap<Slot, HashSet<&'a str>>,
    window_seconds: i64,
}

/// A window that was opened or, where no session has it yet, will be.
#[derive(Clone, Copy, Debug)]
struct Window<'a> {
    session: Option<&'a Session>,
    slot: Option<Slot>,
    opened: Timestamp,
    closes: Timestamp,
}

impl<'a> Index<'a> {
    /// `window_seconds` is how long a window is taken to be open that has not closed.
    pub(crate) fn new(sessions: &'a [Session], window_seconds: i64) -> Self {
        let mut index = Self {
            window_seconds,
            ..Self::default()
        };
        for session in sessions {
            index.by_pod.entry(&session.pod_uid).or_default().push(Window {
                session: Some(session),
                slot: session.slot,
                opened: session.opened,
                closes: session.closes(window_seconds),
            });
            if let Some(slot) = session.slot {
                index.by_slot.entry(slot).or_default().insert(&session.pod_uid);
            }
        }
        index
    }

    /// Takes account of a window to come, so that later slots are drawn as they will be when it has
    /// been. Its slot is drawn already.
    pub(crate) fn foresee(&mut self, pod_uid: &'a str, slot: Slot, opens: Timestamp) {
        self.by_pod.entry(pod_uid).or_default().push(Window {
            session: None,
            slot: Some(slot),
            opened: opens,
            closes: seconds_later(opens, self.window_seconds),
        });
    }

    /// Whether the pod has its session of that slot.
    pub(crate) fn has(&self, slot: Slot, pod_uid: &str) -> bool {
        self.by_slot.get(&slot).is_some_and(|pods| pods.contains(pod_uid))
    }

    /// How many pods have their session of that slot.
    pub(crate) fn in_slot(&self, slot: Slot) -> i64 {
        let pods = self.by_slot.get(&slot).map_or(0, HashSet::len);
        i64::try_from(pods).unwrap_or(i64::MAX)
    }

    /// Whether the pod was captured.
    pub(crate) fn captured(&self, pod_uid: &str) -> bool {
        let mut sessions = self.of(pod_uid).filter_map(|window| window.session);
        sessions.any(Session::has_succeeded)
    }

    /// Names of the pod's sessions that have not ended, but for that of the slot.
    pub(crate) fn active(&self, pod_uid: &str, slot: Option<Slot>) -> Vec<&'a str> {
        let sessions = self.others(pod_uid, slot).filter_map(|window| window.session);
        let active = sessions.filter(|session| session.is_active());
        active.map(|session| session.name.as_str()).collect()
    }

    /// Whether a window of the pod is open at `at`, but for that of the slot, if each closes when
    /// it should.
    pub(crate) fn is_open(&self, pod_uid: &str, slot: Slot, at: Timestamp) -> bool {
        let mut others = self.others(pod_uid, Some(slot));
        others.any(|window| window.opened <= at && window.closes > at)
    }

    /// When the pod has rested from its windows before `at`; None where it had none.
    pub(crate) fn rested(&self, pod_uid: &str, slot: Slot, at: Timestamp, rest_seconds: i64) -> Option<Timestamp> {
        let earlier = self.others(pod_uid, Some(slot)).filter(|window| window.opened < at);
        let closed = earlier.map(|window| window.closes).max();
        closed.map(|closed| seconds_later(closed, rest_seconds))
    }

    /// Seconds of the pod in windows in the 24 hours before `at`, each window's rounded up.
    pub(crate) fn seconds_of_day(&self, pod_uid: &str, slot: Option<Slot>, at: Timestamp) -> i64 {
        let since = seconds_later(at, -DAY_SECONDS);
        let of_day = self.others(pod_uid, slot);
        let of_day = of_day.filter(|window| window.opened > since && window.opened < at);
        of_day.map(Window::seconds).sum()
    }

    fn of(&self, pod_uid: &str) -> impl Iterator<Item = Window<'a>> {
        self.by_pod.get(pod_uid).into_iter().flatten().copied()
    }

    fn others(&self, pod_uid: &str, slot: Option<Slot>) -> impl Iterator<Item = Window<'a>> {
        self.of(pod_uid)
            .filter(move |window| slot.is_none() || window.slot != slot)
    }
}

impl Window<'_> {
    fn seconds(self) -> i64 {
        let open = self.closes.duration_since(self.opened);
        (open.as_secs() + i64::from(open.subsec_nanos() > 0)).max(0)
    }
}
