//! Sessions and captures as the watches know them: found by id, listed in pages.

use std::cmp::Reverse;
use std::sync::Arc;

use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_api::{SESSION_ID_LABEL, SESSION_LABEL};
use kube::ResourceExt as _;
use kube::runtime::reflector::Store;

use crate::gateway::messages::{Mode, SessionState, state_of};

/// What the watches know.
#[derive(Clone)]
pub(crate) struct Sessions {
    sessions: Store<ProfilingSession>,
    captures: Store<Capture>,
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
    pub(crate) fn new(sessions: Store<ProfilingSession>, captures: Store<Capture>) -> Self {
        Self { sessions, captures }
    }

    /// The session of that id.
    pub(crate) fn by_id(&self, id: &str) -> Option<Arc<ProfilingSession>> {
        self.sessions.find(|session| id_of(session) == Some(id))
    }

    /// Sessions that have an id, of one namespace or all.
    pub(crate) fn of(&self, namespace: Option<&str>) -> Vec<Arc<ProfilingSession>> {
        self.sessions.state_filter(|session| {
            id_of(session).is_some() && namespace.is_none_or(|wanted| session.namespace().as_deref() == Some(wanted))
        })
    }

    /// The id that the controller gave to a session, once it did.
    pub(crate) fn id_of_uid(&self, uid: &str) -> Option<String> {
        let session = self
            .sessions
            .find(|session| session.metadata.uid.as_deref() == Some(uid))?;
        id_of(&session).map(str::to_owned)
    }

    /// The session's captures by name.
    pub(crate) fn captures_of(&self, session: &ProfilingSession) -> Vec<Arc<Capture>> {
        let name = session.name_any();
        let mut captures: Vec<Arc<Capture>> = self
            .captures
            .state()
            .into_iter()
            .filter(|capture| {
                let labels = capture.labels();
                capture.namespace() == session.namespace()
                    && labels.get(SESSION_LABEL) == Some(&name)
                    && labels.get(SESSION_ID_LABEL).map(String::as_str) == id_of(session)
            })
            .collect();
        captures.sort_by_key(|capture| capture.name_any());
        captures
    }

    /// Sessions behind `after`, at most `limit`, the newest first. One that the controller has not taken up has no id and is not
    /// among them.
    pub(crate) fn page(&self, filter: &Filter, after: Option<&Cursor>, limit: usize) -> Page {
        let mut all: Vec<(Cursor, Arc<ProfilingSession>)> = self
            .sessions
            .state()
            .into_iter()
            .filter(|session| id_of(session).is_some() && filter.lets_through(session))
            .map(|session| (Cursor::of(&session), session))
            .collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        let total = all.len();
        let mut rest = all
            .into_iter()
            .skip_while(|(cursor, _)| after.is_some_and(|after| cursor <= after));
        let taken: Vec<(Cursor, Arc<ProfilingSession>)> = rest.by_ref().take(limit).collect();
        let more = rest.next().is_some();
        let next = taken.last().filter(|_| more).map(|(cursor, _)| cursor.clone());
        Page {
            sessions: taken.into_iter().map(|(_, session)| session).collect(),
            next,
            total,
        }
    }
}

impl Filter {
    fn lets_through(&self, session: &ProfilingSession) -> bool {
        let namespace = self.namespace.is_none() || self.namespace == session.namespace();
        let status = self.status.is_none_or(|status| status == state_of(session));
        let mode = self.mode.is_none_or(|mode| Mode::of(session) == Some(mode));
        namespace && status && mode
    }
}
