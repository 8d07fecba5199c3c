//! Where sessions stand, told by Socket.IO: the same notices as the server-sent events, of every session that a client asks for.
//!
//! A client shows its token in `auth`, or like any other request in the header of its first one, and may name a `session_id` or a
//! `namespace` in `auth`; without either it hears of every session,
//! which needs the right to list them all. Whoever may not is refused with `connect_error`. What ended before a client came is not
//! told, unless it is the one that was named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use flopwatch_access::Verb;
use flopwatch_api::session::ProfilingSession;
use serde::Deserialize;
use socketioxide::extract::{Extension, SocketRef, TryData};
use socketioxide::handler::ConnectHandler as _;
use socketioxide::layer::SocketIoLayer;
use socketioxide::{SendError, SocketError, SocketIo};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::gateway::messages::{SessionState, state_of};
use crate::gateway::problem::Problem;
use crate::gateway::progress::{COALESCE, LIFE, Notice, digest, gone, present, started};
use crate::gateway::routes::Gateway;
use crate::gateway::sessions::{Sessions, id_of};
use crate::gateway::token::{Token, of_header};

/// Longest message of a client: a token, and little else.
const MOST_BYTES: usize = 16 << 10;
/// Messages that wait for a client that reads slowly.
const MOST_WAITING: usize = 64;
/// Longest time from a connection to what is shown for it.
const SHOWN: Duration = Duration::from_secs(10);
/// Pause before what a client had no room for is told again.
const ROOM: Duration = Duration::from_secs(1);
/// Longest name of a namespace.
const LONGEST_NAMESPACE: usize = 63;

/// What a client shows when it connects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Auth {
    token: String,
    session_id: Option<String>,
    namespace: Option<String>,
}

/// Which sessions a client hears of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Namespace(String),
    One(String),
}

impl Scope {
    /// What `auth` asks for, if its token allows it.
    async fn of(gateway: &Gateway, auth: &Auth) -> Result<Self, Problem> {
        if auth.token.is_empty() {
            return Err(Problem::Unauthenticated);
        }
        let token = Token(auth.token.clone());
        if let Some(id) = &auth.session_id {
            gateway.session(&token, id).await?;
            return Ok(Self::One(id.clone()));
        }
        let namespace = auth.namespace.as_deref().unwrap_or_default();
        if namespace.len() > LONGEST_NAMESPACE {
            return Err(Problem::BadRequest("namespace is longer than names are".to_owned()));
        }
        gateway.allow(&token, Verb::List, namespace, None, false).await?;
        Ok(if namespace.is_empty() {
            Self::All
        } else {
            Self::Namespace(namespace.to_owned())
        })
    }

    fn sessions(&self, sessions: &Sessions) -> Vec<Arc<ProfilingSession>> {
        match self {
            Self::All => sessions.of(None),
            Self::Namespace(namespace) => sessions.of(Some(namespace)),
            Self::One(id) => sessions.by_id(id).into_iter().collect(),
        }
    }
}

/// A client that was let in, with its place among those who may listen at once.
#[derive(Clone)]
struct Admitted {
    auth: Arc<Auth>,
    scope: Scope,
    _place: Arc<OwnedSemaphorePermit>,
}

/// Why a client is not let in, as its `connect_error` says it.
struct Refused(Problem);

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.said())
    }
}

async fn admit(gateway: &Gateway, auth: Auth) -> Result<Admitted, Refused> {
    let scope = Scope::of(gateway, &auth).await.map_err(Refused)?;
    let place = Arc::clone(&gateway.listeners).try_acquire_owned();
    Ok(Admitted {
        auth: Arc::new(auth),
        scope,
        _place: Arc::new(place.map_err(|_full| Refused(Problem::Busy))?),
    })
}

/// Serves clients at `/socket.io/`, beside what it is laid over.
pub(super) fn layer(gateway: &Arc<Gateway>) -> SocketIoLayer {
    let (layer, io) = SocketIo::builder()
        .connect_timeout(SHOWN)
        .max_buffer_size(MOST_WAITING)
        .max_payload(u64::try_from(MOST_BYTES).unwrap_or(u64::MAX))
        .ws_max_message_size(MOST_BYTES)
        .ws_max_frame_size(MOST_BYTES)
        .build_layer();
    let gate = {
        let gateway = Arc::clone(gateway);
        move |socket: SocketRef, TryData(auth): TryData<Auth>| {
            let gateway = Arc::clone(&gateway);
            async move {
                // Whoever shows nothing that can be read shows no token.
                let mut auth = auth.unwrap_or_default();
                if auth.token.is_empty() {
                    auth.token = of_header(&socket.req_parts().headers).unwrap_or_default();
                }
                let admitted = admit(&gateway, auth).await?;
                drop(socket.extensions.insert(admitted));
                Ok::<(), Refused>(())
            }
        }
    };
    let gateway = Arc::clone(gateway);
    let listen = move |socket: SocketRef, Extension(admitted): Extension<Admitted>| {
        let gateway = Arc::clone(&gateway);
        async move { keep_telling(&gateway, socket, admitted).await }
    };
    io.ns("/", listen.with(gate));
    layer
}

/// Tells a client what is new until it goes, or may not hear it any more.
async fn keep_telling(gateway: &Gateway, socket: SocketRef, admitted: Admitted) {
    let left = CancellationToken::new();
    socket.on_disconnect({
        let left = left.clone();
        move || {
            left.cancel();
            std::future::ready(())
        }
    });
    let mut news = gateway.news.clone();
    let mut told = Told::default();
    let mut review = Instant::now() + LIFE;
    while socket.connected() && !left.is_cancelled() {
        // Before the look: a change after it is not missed.
        drop(news.borrow_and_update());
        let emit = |notice: &Notice| match socket.emit(notice.name(), notice) {
            Err(SendError::Socket(SocketError::InternalChannelFull)) => Err(Full),
            // Gone; or a notice that is no JSON, which there is not.
            Ok(()) | Err(_) => Ok(()),
        };
        let has_room = told.tell(&admitted.scope, &gateway.sessions, emit).is_ok();
        tokio::select! {
            () = left.cancelled() => return,
            () = sleep_until(review) => {
                review = Instant::now() + LIFE;
                match Scope::of(gateway, &admitted.auth).await {
                    // Who cannot be asked about now is asked about again; that the one session is gone is told.
                    Ok(_) | Err(Problem::ApiServer | Problem::NotFound(_)) => {}
                    Err(_) => {
                        drop(socket.disconnect());
                        return;
                    }
                }
            }
            () = sleep(ROOM), if !has_room => {}
            changed = news.changed(), if has_room => {
                if changed.is_err() {
                    return;
                }
                sleep(COALESCE).await;
            }
        }
    }
}

/// A client has no room for more now.
#[derive(Debug, PartialEq, Eq)]
struct Full;

/// What a client knows of a session.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// Where it stood.
    At(String),
    /// All there will be.
    Over,
}

/// What a client was told.
#[derive(Debug, Default)]
struct Told {
    heard: BTreeMap<String, Heard>,
    /// Whether it was told what was there when it came.
    begun: bool,
}

impl Told {
    /// Tells what is new. What there was no room for is new the next time, too.
    fn tell(
        &mut self,
        scope: &Scope,
        sessions: &Sessions,
        mut emit: impl FnMut(&Notice) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let there = scope.sessions(sessions);
        for session in &there {
            let Some(id) = id_of(session) else { continue };
            let known = self.heard.get(id);
            let has_ended = matches!(state_of(session), SessionState::Completed | SessionState::Failed);
            let before = known.is_none() && !self.begun && has_ended && !matches!(scope, Scope::One(_));
            if before {
                self.heard.insert(id.to_owned(), Heard::Over);
                continue;
            }
            if known == Some(&Heard::Over) {
                continue;
            }
            let notice = present(session, &sessions.captures_of(session));
            let now = Heard::At(digest(&notice).unwrap_or_default());
            if known == Some(&now) {
                continue;
            }
            if known.is_none() {
                emit(&started(session))?;
                self.heard.insert(id.to_owned(), Heard::At(String::new()));
            }
            emit(&notice)?;
            let now = if notice.is_last() { Heard::Over } else { now };
            self.heard.insert(id.to_owned(), now);
        }
        let there: BTreeSet<&str> = there.iter().filter_map(|session| id_of(session)).collect();
        let missing: Vec<String> = self
            .heard
            .keys()
            .filter(|id| !there.contains(id.as_str()))
            .cloned()
            .collect();
        for id in missing {
            if matches!(self.heard.get(&id), Some(Heard::At(_))) {
                emit(&gone(&id))?;
            }
            self.heard.remove(&id);
        }
        self.begun = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::{self, store::Writer};
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};

    use super::*;

    fn session(id: &str, succeeded: &str) -> ProfilingSession {
        let session = json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
            "metadata": {"namespace": "team", "name": id, "uid": id},
            "spec": {"target": {"podName": "p"}},
            "status": {"id": id, "conditions": [{
                "type": "Succeeded", "status": succeeded, "reason": "Why", "message": "because",
                "lastTransitionTime": "2026-01-01T00:00:00Z"
            }]}
        });
        serde_json::from_value(session).unwrap()
    }

    struct World {
        sessions: Sessions,
        writer: Writer<ProfilingSession>,
    }

    impl World {
        fn new(sessions: &[(&str, &str)]) -> Self {
            let (store, writer) = reflector::store();
            let sessions_known = Sessions::new(store, reflector::store().0);
            let mut world = Self {
                sessions: sessions_known,
                writer,
            };
            for (id, succeeded) in sessions {
                world.stands(id, succeeded);
            }
            world
        }

        fn stands(&mut self, id: &str, succeeded: &str) {
            self.writer.apply_watcher_event(&Event::Apply(session(id, succeeded)));
        }

        /// What is told, as name and session, until `room` is filled.
        fn told(&self, told: &mut Told, scope: &Scope, room: usize) -> Vec<(&'static str, String)> {
            let mut heard = Vec::new();
            drop(told.tell(scope, &self.sessions, |notice| {
                if heard.len() == room {
                    return Err(Full);
                }
                let value: Value = serde_json::to_value(notice).unwrap();
                heard.push((notice.name(), value["session_id"].as_str().unwrap().to_owned()));
                Ok(())
            }));
            heard
        }
    }

    fn said(name: &'static str, id: &str) -> (&'static str, String) {
        (name, id.to_owned())
    }

    #[test]
    fn what_ended_before_a_client_came_is_told_only_of_the_one_it_named() {
        let world = World::new(&[("00000001", "True"), ("00000002", "Unknown")]);
        let live = [
            said("profiling_started", "00000002"),
            said("profiling_progress", "00000002"),
        ];
        for scope in [Scope::All, Scope::Namespace("team".to_owned())] {
            let mut told = Told::default();
            assert_eq!(world.told(&mut told, &scope, 9), live);
            assert!(world.told(&mut told, &scope, 9).is_empty());
        }
        let elsewhere = Scope::Namespace("other".to_owned());
        assert!(world.told(&mut Told::default(), &elsewhere, 9).is_empty());
        let named = Scope::One("00000001".to_owned());
        let ended = [
            said("profiling_started", "00000001"),
            said("profiling_complete", "00000001"),
        ];
        assert_eq!(world.told(&mut Told::default(), &named, 9), ended);
    }

    #[test]
    fn what_begins_ends_or_is_deleted_meanwhile_is_told_once() {
        let mut world = World::new(&[("00000001", "Unknown")]);
        let (mut told, scope) = (Told::default(), Scope::All);
        assert_eq!(world.told(&mut told, &scope, 9).len(), 2);
        world.stands("00000001", "False");
        world.stands("00000002", "True");
        world.stands("00000003", "Unknown");
        let expected = [
            said("profiling_complete", "00000002"),
            said("profiling_error", "00000001"),
            said("profiling_progress", "00000003"),
            said("profiling_started", "00000002"),
            said("profiling_started", "00000003"),
        ];
        let mut heard = world.told(&mut told, &scope, 9);
        heard.sort();
        assert_eq!(heard, expected);
        for id in ["00000001", "00000003"] {
            world.writer.apply_watcher_event(&Event::Delete(session(id, "Unknown")));
        }
        assert_eq!(world.told(&mut told, &scope, 9), [said("profiling_error", "00000003")]);
        assert!(world.told(&mut told, &scope, 9).is_empty());
    }

    #[test]
    fn what_a_client_has_no_room_for_is_told_later() {
        let mut world = World::new(&[("00000001", "Unknown")]);
        let (mut told, scope) = (Told::default(), Scope::All);
        assert!(world.told(&mut told, &scope, 0).is_empty());
        assert_eq!(
            world.told(&mut told, &scope, 1),
            [said("profiling_started", "00000001")]
        );
        world.stands("00000001", "True");
        assert_eq!(
            world.told(&mut told, &scope, 1),
            [said("profiling_complete", "00000001")]
        );
    }
}
