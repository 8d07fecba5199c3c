//! The gateway's index of sessions and captures, fed by watches of the API server: sessions are
//! found by id, listed in pages, and watched by clients that listen to their progress.
//!
//! A change costs what it changes: the snapshot of its session is made once, however many clients
//! listen, and no listener visits sessions that did not change. The whole index is in memory, about
//! one object for each session and capture of the cluster.

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

/// Most changes that are queued for a listener to several sessions; one that falls behind reads the
/// state of all of them anew.
const MAX_QUEUED_CHANGES: usize = 1024;

/// The index of sessions and captures; clones share it.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Shared>);

struct Shared {
    index: RwLock<SessionIndex>,
    changes: broadcast::Sender<Arc<Snapshot>>,
    /// Whether the first list of sessions and the first list of captures are complete.
    listed: watch::Sender<(bool, bool)>,
    /// Counts the snapshots that were made.
    notices: IntCounter,
}

#[derive(Default)]
struct SessionIndex {
    /// Sessions that have an id, the newest one first.
    sessions: BTreeMap<Cursor, Entry>,
    by_id: HashMap<String, Cursor>,
    by_uid: HashMap<String, Cursor>,
    /// The captures of each session, by name.
    captures: HashMap<Owner, BTreeMap<String, Arc<Capture>>>,
    /// The session of each capture, by the capture's namespace and name.
    owners: HashMap<(String, String), Owner>,
    /// Sessions of a list that is not complete yet.
    listed_sessions: Vec<ProfilingSession>,
    /// Captures of a list that is not complete yet.
    listed_captures: Vec<Capture>,
}

struct Entry {
    session: Arc<ProfilingSession>,
    /// The present state, for clients that listen to this session alone.
    snapshot: watch::Sender<Arc<Snapshot>>,
}

/// The session that a capture belongs to: namespace, name and id.
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

/// The conditions that a session in a list meets; a condition that is None lets every session pass.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// Namespace of the session.
    pub(crate) namespace: Option<String>,
    /// State of the session.
    pub(crate) status: Option<SessionState>,
    /// Profiler of the session.
    pub(crate) mode: Option<Mode>,
}

/// The position of a session in the list of all, ordered from the newest to the oldest. A page of
/// the list ends at a cursor, and the next page begins behind it.
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

    /// Reads a cursor from the text that [`Cursor::text`] wrote; None where no cursor has that
    /// text.
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

    /// The cursor as clients get it: seconds of the creation since 1970, `-`, and the session's id.
    pub(crate) fn text(&self) -> String {
        format!("{}-{}", self.created.0, self.id)
    }
}

/// A page of a list of sessions.
#[derive(Debug)]
pub(crate) struct Page {
    /// The sessions of the page, the newest one first.
    pub(crate) sessions: Vec<Arc<ProfilingSession>>,
    /// The cursor behind which the next page begins; None where this page is the last.
    pub(crate) next: Option<Cursor>,
    /// Number of sessions on all pages.
    pub(crate) total: usize,
}

/// The session's id in URL paths; None before the controller gave it one.
pub(crate) fn id_of(session: &ProfilingSession) -> Option<&str> {
    session.status.as_ref()?.id.as_deref()
}

impl Sessions {
    /// An empty index that counts in `notices` the snapshots that it makes.
    pub(crate) fn new(notices: IntCounter) -> Self {
        Self(Arc::new(Shared {
            index: RwLock::default(),
            changes: broadcast::Sender::new(MAX_QUEUED_CHANGES),
            listed: watch::Sender::new((false, false)),
            notices,
        }))
    }

    /// Waits until the first lists of sessions and of captures are complete.
    pub(crate) async fn wait_until_listed(&self) {
        let mut listed = self.0.listed.subscribe();
        // The sender lives as long as the index.
        drop(listed.wait_for(|listed| *listed == (true, true)).await);
    }

    /// Applies an event of the watch of sessions.
    pub(crate) fn session_event(&self, event: Event<ProfilingSession>) {
        let mut index = self.0.write();
        match event {
            Event::Apply(session) => self.0.apply_session(&mut index, session),
            Event::Delete(session) => self.0.remove_session(&mut index, &session.uid().unwrap_or_default()),
            Event::Init => index.listed_sessions.clear(),
            Event::InitApply(session) => index.listed_sessions.push(session),
            Event::InitDone => {
                let listed = std::mem::take(&mut index.listed_sessions);
                let there: HashSet<String> = listed.iter().filter_map(kube::ResourceExt::uid).collect();
                let gone: Vec<String> = index
                    .by_uid
                    .keys()
                    .filter(|uid| !there.contains(*uid))
                    .cloned()
                    .collect();
                for uid in gone {
                    self.0.remove_session(&mut index, &uid);
                }
                for session in listed {
                    self.0.apply_session(&mut index, session);
                }
                drop(index);
                self.0.listed.send_modify(|listed| listed.0 = true);
            }
        }
    }

    /// Applies an event of the watch of captures.
    pub(crate) fn capture_event(&self, event: Event<Capture>) {
        let mut index = self.0.write();
        match event {
            Event::Apply(capture) => {
                let owner = index.put_capture(capture);
                self.0.publish_changes(&mut index, owner);
            }
            Event::Delete(capture) => {
                let owner = index.drop_capture(&key_of(&capture));
                self.0.publish_changes(&mut index, owner);
            }
            Event::Init => index.listed_captures.clear(),
            Event::InitApply(capture) => index.listed_captures.push(capture),
            Event::InitDone => {
                let listed = std::mem::take(&mut index.listed_captures);
                let there: HashSet<(String, String)> = listed.iter().map(key_of).collect();
                let gone: Vec<(String, String)> = index
                    .owners
                    .keys()
                    .filter(|key| !there.contains(*key))
                    .cloned()
                    .collect();
                let mut changed: HashSet<Owner> = gone.iter().filter_map(|key| index.drop_capture(key)).collect();
                for capture in listed {
                    changed.extend(index.put_capture(capture));
                }
                self.0.publish_changes(&mut index, changed);
                drop(index);
                self.0.listed.send_modify(|listed| listed.1 = true);
            }
        }
    }

    /// The session with the id `id`.
    pub(crate) fn by_id(&self, id: &str) -> Option<Arc<ProfilingSession>> {
        let index = self.0.read();
        index.entry(id).map(|entry| Arc::clone(&entry.session))
    }

    /// Subscribes to the state of the session with the id `id`: the present one and every change.
    pub(crate) fn watch(&self, id: &str) -> Option<watch::Receiver<Arc<Snapshot>>> {
        let index = self.0.read();
        index.entry(id).map(|entry| entry.snapshot.subscribe())
    }

    /// Subscribes to the changes of every session from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Arc<Snapshot>> {
        self.0.changes.subscribe()
    }

    /// The present state of every session, of one namespace or of all.
    pub(crate) fn snapshots(&self, namespace: Option<&str>) -> Vec<Arc<Snapshot>> {
        let index = self.0.read();
        let snapshots = index
            .sessions
            .values()
            .map(|entry| Arc::clone(&entry.snapshot.borrow()));
        snapshots
            .filter(|snapshot| namespace.is_none_or(|wanted| snapshot.namespace == wanted))
            .collect()
    }

    /// The id of the session with the UID `uid`; None before the controller gave it one.
    pub(crate) fn id_of_uid(&self, uid: &str) -> Option<String> {
        let index = self.0.read();
        index.by_uid.get(uid).map(|cursor| cursor.id.clone())
    }

    /// The session's captures, in the order of their names.
    pub(crate) fn captures_of(&self, session: &ProfilingSession) -> Vec<Arc<Capture>> {
        self.0.read().captures_of(&Owner::of(session))
    }

    /// At most `limit` sessions that match `filter`, from the newest on or from behind `after`. A
    /// session that the controller has not given an id is not among them.
    pub(crate) fn page(&self, filter: &Filter, after: Option<&Cursor>, limit: usize) -> Page {
        let index = self.0.read();
        let (mut taken, mut total, mut more) = (Vec::new(), 0, false);
        let mut last = None;
        for (cursor, entry) in &index.sessions {
            if !filter.matches(&entry.session) {
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
    fn read(&self) -> RwLockReadGuard<'_, SessionIndex> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, SessionIndex> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply_session(&self, index: &mut SessionIndex, session: ProfilingSession) {
        let uid = session.uid().unwrap_or_default();
        let cursor = Cursor::of(&session);
        if index.by_uid.get(&uid).is_some_and(|before| *before != cursor) {
            self.remove_session(index, &uid);
        }
        // Not taken up yet.
        if id_of(&session).is_none() {
            return;
        }
        let owner = Owner::of(&session);
        let session = Arc::new(session);
        if let Some(entry) = index.sessions.get_mut(&cursor) {
            entry.session = session;
            self.publish_changes(index, [owner]);
            return;
        }
        let snapshot = self.make_snapshot(&session, &index.captures_of(&owner));
        let entry = Entry {
            session,
            snapshot: watch::Sender::new(Arc::clone(&snapshot)),
        };
        index.by_id.insert(cursor.id.clone(), cursor.clone());
        index.by_uid.insert(uid, cursor.clone());
        index.sessions.insert(cursor, entry);
        // Nobody may be there to hear it.
        drop(self.changes.send(snapshot));
    }

    fn remove_session(&self, index: &mut SessionIndex, uid: &str) {
        let Some(cursor) = index.by_uid.remove(uid) else { return };
        index.by_id.remove(&cursor.id);
        if let Some(entry) = index.sessions.remove(&cursor) {
            let gone = Arc::new(Snapshot::deleted(&entry.snapshot.borrow()));
            self.notices.inc();
            entry.snapshot.send_replace(Arc::clone(&gone));
            drop(self.changes.send(gone));
        }
    }

    /// Sends the state of these sessions to their listeners, where it is another than before.
    fn publish_changes(&self, index: &mut SessionIndex, owners: impl IntoIterator<Item = Owner>) {
        for owner in owners {
            let Some(entry) = index.entry(&owner.2).filter(|entry| Owner::of(&entry.session) == owner) else {
                continue;
            };
            let snapshot = self.make_snapshot(&entry.session, &index.captures_of(&owner));
            if entry.snapshot.borrow().digest != snapshot.digest {
                entry.snapshot.send_replace(Arc::clone(&snapshot));
                drop(self.changes.send(snapshot));
            }
        }
    }

    fn make_snapshot(&self, session: &ProfilingSession, captures: &[Arc<Capture>]) -> Arc<Snapshot> {
        self.notices.inc();
        Arc::new(Snapshot::of(session, captures))
    }
}

impl SessionIndex {
    fn entry(&self, id: &str) -> Option<&Entry> {
        self.sessions.get(self.by_id.get(id)?)
    }

    fn captures_of(&self, owner: &Owner) -> Vec<Arc<Capture>> {
        let captures = self.captures.get(owner);
        captures
            .map(|captures| captures.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Adds a capture or changes it, and gives the sessions whose captures changed.
    fn put_capture(&mut self, capture: Capture) -> Vec<Owner> {
        let (key, owner) = (key_of(&capture), Owner::of_capture(&capture));
        let mut changed = Vec::new();
        if self.owners.get(&key).is_some_and(|before| *before != owner) {
            changed.extend(self.drop_capture(&key));
        }
        let captures = self.captures.entry(owner.clone()).or_default();
        captures.insert(key.1.clone(), Arc::new(capture));
        self.owners.insert(key, owner.clone());
        changed.push(owner);
        changed
    }

    /// Removes a capture, and gives the session that it belonged to.
    fn drop_capture(&mut self, key: &(String, String)) -> Option<Owner> {
        let owner = self.owners.remove(key)?;
        if let Some(captures) = self.captures.get_mut(&owner) {
            captures.remove(&key.1);
            if captures.is_empty() {
                self.captures.remove(&owner);
            }
        }
        Some(owner)
    }
}

fn key_of(capture: &Capture) -> (String, String) {
    (capture.namespace().unwrap_or_default(), capture.name_any())
}

impl Filter {
    fn matches(&self, session: &ProfilingSession) -> bool {
        let namespace = self.namespace.is_none() || self.namespace == session.namespace();
        let status = self.status.is_none_or(|status| status == state_of(session));
        let mode = self.mode.is_none_or(|mode| Mode::of(session) == mode);
        namespace && status && mode
    }
}
