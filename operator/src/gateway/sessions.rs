//! Sessions and captures as the watches know them: found by id, listed in pages, with what is to be told of each.
//!
//! The watches keep the indexes. A change costs what it changes: the notice of its session is made once, however many listen, and
//! nobody who listens looks at sessions that did not change.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_api::{SESSION_ID_LABEL, SESSION_LABEL};
use kube::ResourceExt as _;
use kube::runtime::watcher::Event;
use prometheus::IntCounter;
use tokio::sync::{broadcast, watch};

use crate::gateway::messages::{SessionState, state_of};
use crate::gateway::mode::Mode;
use crate::gateway::progress::Snapshot;

/// Changes that wait for whoever listens to several sessions; one who falls behind looks at all of them anew.
const CHANGES: usize = 1024;

/// What the watches know; clones share it.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Shared>);

struct Shared {
    known: RwLock<Known>,
    changes: broadcast::Sender<Arc<Snapshot>>,
    /// Whether the first list of sessions and that of captures is there.
    first: watch::Sender<(bool, bool)>,
    /// Notices that were made.
    notices: IntCounter,
}

#[derive(Default)]
struct Known {
    /// Sessions that have an id, the newest first.
    sessions: BTreeMap<Cursor, Entry>,
    by_id: HashMap<String, Cursor>,
    by_uid: HashMap<String, Cursor>,
    /// Captures by name, of each session.
    captures: HashMap<Owner, BTreeMap<String, Arc<Capture>>>,
    /// The session of each capture, by its own namespace and name.
    owners: HashMap<(String, String), Owner>,
    /// What a new list holds so far.
    listed_sessions: Vec<ProfilingSession>,
    listed_captures: Vec<Capture>,
}

struct Entry {
    session: Arc<ProfilingSession>,
    /// What there is to tell of it, for whoever listens to this one.
    snapshot: watch::Sender<Arc<Snapshot>>,
}

/// The session that a capture is of: namespace, name and id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Owner(String, String, String);

impl Owner {
    fn of(session: &ProfilingSession) -> Self {
        let id = id_of(session).unwrap_or_default().to_owned();
        Self(session.namespace().unwrap_or_default(), session.name_any(), id)
    }

    fn of_capture(capture: &Capture) -> Self {
        let label = |name: &str| capture.labels().get(name).cloned().unwrap_or_default();
        Self(
            capture.namespace().unwrap_or_default(),
            label(SESSION_LABEL),
            label(SESSION_ID_LABEL),
        )
    }
}

/// Which sessions a list holds.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub(crate) namespace: Option<String>,
    pub(crate) status: Option<SessionState>,
    pub(crate) mode: Option<Mode>,
}

/// Where a list goes on: behind a session, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    created: Reverse<i64>,
    id: String,
}

impl Cursor {
    fn of(session: &ProfilingSession) -> Self {
        let created = session.creation_timestamp().map_or(0, |time| time.0.as_second());
        Self {
            created: Reverse(created),
            id: id_of(session).unwrap_or_default().to_owned(),
        }
    }

    /// Reads one that was given out.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (created, id) = text.split_once('-')?;
        let is_given_out = created.bytes().all(|digit| digit.is_ascii_digit())
            && id.len() == 8
            && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        is_given_out.then_some(())?;
        Some(Self {
            created: Reverse(created.parse().ok()?),
            id: id.to_owned(),
        })
    }

    pub(crate) fn text(&self) -> String {
        format!("{}-{}", self.created.0, self.id)
    }
}

/// A part of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) sessions: Vec<Arc<ProfilingSession>>,
    pub(crate) next: Option<Cursor>,
    /// How many the filter lets through in all.
    pub(crate) total: usize,
}

/// The id in paths.
pub(crate) fn id_of(session: &ProfilingSession) -> Option<&str> {
    session.status.as_ref()?.id.as_deref()
}

impl Sessions {
    /// Knows nothing yet; counts the notices that it makes.
    pub(crate) fn new(notices: IntCounter) -> Self {
        Self(Arc::new(Shared {
            known: RwLock::default(),
            changes: broadcast::Sender::new(CHANGES),
            first: watch::Sender::new((false, false)),
            notices,
        }))
    }

    /// Waits for the first list of sessions and of captures.
    pub(crate) async fn first(&self) {
        let mut first = self.0.first.subscribe();
        // The sender lives as long as this.
        drop(first.wait_for(|first| *first == (true, true)).await);
    }

    /// What the watch of sessions tells.
    pub(crate) fn session_event(&self, event: Event<ProfilingSession>) {
        let mut known = self.0.write();
        match event {
            Event::Apply(session) => self.0.apply_session(&mut known, session),
            Event::Delete(session) => self.0.remove_session(&mut known, &session.uid().unwrap_or_default()),
            Event::Init => known.listed_sessions.clear(),
            Event::InitApply(session) => known.listed_sessions.push(session),
            Event::InitDone => {
                let listed = std::mem::take(&mut known.listed_sessions);
                let there: HashSet<String> = listed.iter().filter_map(kube::ResourceExt::uid).collect();
                let gone: Vec<String> = known
                    .by_uid
                    .keys()
                    .filter(|uid| !there.contains(*uid))
                    .cloned()
                    .collect();
                for uid in gone {
                    self.0.remove_session(&mut known, &uid);
                }
                for session in listed {
                    self.0.apply_session(&mut known, session);
                }
                drop(known);
                self.0.first.send_modify(|first| first.0 = true);
            }
        }
    }

    /// What the watch of captures tells.
    pub(crate) fn capture_event(&self, event: Event<Capture>) {
        let mut known = self.0.write();
        match event {
            Event::Apply(capture) => {
                let owner = known.put_capture(capture);
                self.0.retell(&mut known, owner);
            }
            Event::Delete(capture) => {
                let owner = known.drop_capture(&place_of(&capture));
                self.0.retell(&mut known, owner);
            }
            Event::Init => known.listed_captures.clear(),
            Event::InitApply(capture) => known.listed_captures.push(capture),
            Event::InitDone => {
                let listed = std::mem::take(&mut known.listed_captures);
                let there: HashSet<(String, String)> = listed.iter().map(place_of).collect();
                let gone: Vec<(String, String)> = known
                    .owners
                    .keys()
                    .filter(|place| !there.contains(*place))
                    .cloned()
                    .collect();
                let mut changed: HashSet<Owner> = gone.iter().filter_map(|place| known.drop_capture(place)).collect();
                for capture in listed {
                    changed.extend(known.put_capture(capture));
                }
                self.0.retell(&mut known, changed);
                drop(known);
                self.0.first.send_modify(|first| first.1 = true);
            }
        }
    }

    /// The session of that id.
    pub(crate) fn by_id(&self, id: &str) -> Option<Arc<ProfilingSession>> {
        let known = self.0.read();
        known.entry(id).map(|entry| Arc::clone(&entry.session))
    }

    /// What is to be told of the session of that id, now and with every change.
    pub(crate) fn watch(&self, id: &str) -> Option<watch::Receiver<Arc<Snapshot>>> {
        let known = self.0.read();
        known.entry(id).map(|entry| entry.snapshot.subscribe())
    }

    /// What is to be told of every session with its next change.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Arc<Snapshot>> {
        self.0.changes.subscribe()
    }

    /// What is to be told now of the sessions of one namespace or all.
    pub(crate) fn snapshots(&self, namespace: Option<&str>) -> Vec<Arc<Snapshot>> {
        let known = self.0.read();
        let snapshots = known
            .sessions
            .values()
            .map(|entry| Arc::clone(&entry.snapshot.borrow()));
        snapshots
            .filter(|snapshot| namespace.is_none_or(|wanted| snapshot.namespace == wanted))
            .collect()
    }

    /// The id that the controller gave to a session, once it did.
    pub(crate) fn id_of_uid(&self, uid: &str) -> Option<String> {
        let known = self.0.read();
        known.by_uid.get(uid).map(|cursor| cursor.id.clone())
    }

    /// The session's captures by name.
    pub(crate) fn captures_of(&self, session: &ProfilingSession) -> Vec<Arc<Capture>> {
        self.0.read().captures_of(&Owner::of(session))
    }

    /// Sessions behind `after`, at most `limit`, the newest first. One that the controller has not taken up has no id and is not
    /// among them.
    pub(crate) fn page(&self, filter: &Filter, after: Option<&Cursor>, limit: usize) -> Page {
        let known = self.0.read();
        let (mut taken, mut total, mut more) = (Vec::new(), 0, false);
        let mut last = None;
        for (cursor, entry) in &known.sessions {
            if !filter.lets_through(&entry.session) {
                continue;
            }
            total += 1;
            if after.is_some_and(|after| cursor <= after) {
                continue;
            }
            if taken.len() < limit {
                taken.push(Arc::clone(&entry.session));
                last = Some(cursor);
            } else {
                more = true;
            }
        }
        Page {
            sessions: taken,
            next: last.filter(|_| more).cloned(),
            total,
        }
    }
}

impl Shared {
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply_session(&self, known: &mut Known, session: ProfilingSession) {
        let uid = session.uid().unwrap_or_default();
        let cursor = Cursor::of(&session);
        if known.by_uid.get(&uid).is_some_and(|before| *before != cursor) {
            self.remove_session(known, &uid);
        }
        // Not taken up yet.
        if id_of(&session).is_none() {
            return;
        }
        let owner = Owner::of(&session);
        let session = Arc::new(session);
        if let Some(entry) = known.sessions.get_mut(&cursor) {
            entry.session = session;
            self.retell(known, [owner]);
            return;
        }
        let snapshot = self.stand(&session, &known.captures_of(&owner));
        let entry = Entry {
            session,
            snapshot: watch::Sender::new(Arc::clone(&snapshot)),
        };
        known.by_id.insert(cursor.id.clone(), cursor.clone());
        known.by_uid.insert(uid, cursor.clone());
        known.sessions.insert(cursor, entry);
        // Nobody may be there to hear it.
        drop(self.changes.send(snapshot));
    }

    fn remove_session(&self, known: &mut Known, uid: &str) {
        let Some(cursor) = known.by_uid.remove(uid) else { return };
        known.by_id.remove(&cursor.id);
        if let Some(entry) = known.sessions.remove(&cursor) {
            let gone = Arc::new(Snapshot::gone(&entry.snapshot.borrow()));
            self.notices.inc();
            entry.snapshot.send_replace(Arc::clone(&gone));
            drop(self.changes.send(gone));
        }
    }

    /// Tells those who listen to these sessions where they stand, unless that is what they know.
    fn retell(&self, known: &mut Known, owners: impl IntoIterator<Item = Owner>) {
        for owner in owners {
            let Some(entry) = known.entry(&owner.2).filter(|entry| Owner::of(&entry.session) == owner) else {
                continue;
            };
            let snapshot = self.stand(&entry.session, &known.captures_of(&owner));
            if entry.snapshot.borrow().digest != snapshot.digest {
                entry.snapshot.send_replace(Arc::clone(&snapshot));
                drop(self.changes.send(snapshot));
            }
        }
    }

    fn stand(&self, session: &ProfilingSession, captures: &[Arc<Capture>]) -> Arc<Snapshot> {
        self.notices.inc();
        Arc::new(Snapshot::of(session, captures))
    }
}

impl Known {
    fn entry(&self, id: &str) -> Option<&Entry> {
        self.sessions.get(self.by_id.get(id)?)
    }

    fn captures_of(&self, owner: &Owner) -> Vec<Arc<Capture>> {
        let captures = self.captures.get(owner);
        captures
            .map(|captures| captures.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Adds a capture or changes it; the sessions whose captures are others now.
    fn put_capture(&mut self, capture: Capture) -> Vec<Owner> {
        let (place, owner) = (place_of(&capture), Owner::of_capture(&capture));
        let mut changed = Vec::new();
        if self.owners.get(&place).is_some_and(|before| *before != owner) {
            changed.extend(self.drop_capture(&place));
        }
        let captures = self.captures.entry(owner.clone()).or_default();
        captures.insert(place.1.clone(), Arc::new(capture));
        self.owners.insert(place, owner.clone());
        changed.push(owner);
        changed
    }

    /// The session whose captures are others now.
    fn drop_capture(&mut self, place: &(String, String)) -> Option<Owner> {
        let owner = self.owners.remove(place)?;
        if let Some(captures) = self.captures.get_mut(&owner) {
            captures.remove(&place.1);
            if captures.is_empty() {
                self.captures.remove(&owner);
            }
        }
        Some(owner)
    }
}

fn place_of(capture: &Capture) -> (String, String) {
    (capture.namespace().unwrap_or_default(), capture.name_any())
}

impl Filter {
    fn lets_through(&self, session: &ProfilingSession) -> bool {
        let namespace = self.namespace.is_none() || self.namespace == session.namespace();
        let status = self.status.is_none_or(|status| status == state_of(session));
        let mode = self.mode.is_none_or(|mode| Mode::of(session) == mode);
        namespace && status && mode
    }
}
