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

use flopwatch_http::{Verb, bearer};
use serde::Deserialize;
use socketioxide::extract::{Extension, SocketRef, TryData};
use socketioxide::handler::ConnectHandler as _;
use socketioxide::layer::SocketIoLayer;
use socketioxide::{SendError, SocketError, SocketIo};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, interval, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::gateway::access::SessionAccess;
use crate::gateway::problem::Problem;
use crate::gateway::progress::{COALESCE, LIFE, Notice, Snapshot, Subscriptions};
use crate::gateway::seat::Seat;
use crate::gateway::sessions::Sessions;
use crate::gateway::token::Token;

/// Longest message of a client: a token, and little else.
const MOST_BYTES: usize = 16 << 10;
/// Messages that wait for a client that reads slowly.
const MOST_WAITING: usize = 64;
/// Longest time from a connection to what is shown for it.
const SHOWN: Duration = Duration::from_secs(10);
/// Pause before what a client had no room for is told again.
const ROOM: Duration = Duration::from_secs(1);
/// Time between two looks at whether a client is still there: of one that went in the moment in which it was let in, nothing else tells.
const LOOK: Duration = Duration::from_secs(5);
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
    /// What `auth` asks for and whose it is, if its token allows it.
    async fn of(access: &SessionAccess, auth: &Auth) -> Result<(Self, Arc<str>), Problem> {
        if auth.token.is_empty() {
            return Err(Problem::Unauthenticated);
        }
        let token = Token(auth.token.clone());
        if let Some(id) = &auth.session_id {
            let (user, _) = access.session_as(&token, id).await?;
            return Ok((Self::One(id.clone()), user));
        }
        let namespace = auth.namespace.as_deref().unwrap_or_default();
        if namespace.len() > LONGEST_NAMESPACE {
            return Err(Problem::BadRequest("namespace is longer than names are".to_owned()));
        }
        let user = access.allow(&token, Verb::List, namespace, None, false).await?;
        let scope = if namespace.is_empty() {
            Self::All
        } else {
            Self::Namespace(namespace.to_owned())
        };
        Ok((scope, user))
    }

    /// Where what is meant stands now.
    fn snapshots(&self, sessions: &Sessions) -> Vec<Arc<Snapshot>> {
        match self {
            Self::All => sessions.snapshots(None),
            Self::Namespace(namespace) => sessions.snapshots(Some(namespace)),
            Self::One(id) => {
                let watched = sessions.watch(id);
                watched
                    .map(|watched| Arc::clone(&watched.borrow()))
                    .into_iter()
                    .collect()
            }
        }
    }

    fn means(&self, snapshot: &Snapshot) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => snapshot.namespace == *namespace,
            Self::One(id) => snapshot.id == *id,
        }
    }
}

/// A client that was let in.
#[derive(Clone)]
struct Admitted {
    auth: Arc<Auth>,
    scope: Scope,
}

/// Why a client is not let in, as its `connect_error` says it.
struct Refused(Problem);

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.in_one_line())
    }
}

async fn admit(subscriptions: &Subscriptions, auth: Auth, seat: Option<&Seat>) -> Result<Admitted, Refused> {
    let (scope, user) = Scope::of(&subscriptions.access, &auth).await.map_err(Refused)?;
    // Every handshake was given one.
    let seat = seat.ok_or(Refused(Problem::Busy))?;
    seat.change(&subscriptions.listeners, &user).map_err(Refused)?;
    Ok(Admitted {
        auth: Arc::new(auth),
        scope,
    })
}

/// Serves clients at `/socket.io/`, beside what it is laid over.
pub(super) fn layer(subscriptions: &Subscriptions) -> SocketIoLayer {
    let (layer, io) = SocketIo::builder()
        .connect_timeout(SHOWN)
        .max_buffer_size(MOST_WAITING)
        .max_payload(u64::try_from(MOST_BYTES).unwrap_or(u64::MAX))
        .ws_max_message_size(MOST_BYTES)
        .ws_max_frame_size(MOST_BYTES)
        .build_layer();
    let gate = {
        let subscriptions = subscriptions.clone();
        move |socket: SocketRef, TryData(auth): TryData<Auth>| {
            let subscriptions = subscriptions.clone();
            async move {
                // Whoever shows nothing that can be read shows no token.
                let mut auth = auth.unwrap_or_default();
                if auth.token.is_empty() {
                    bearer(&socket.req_parts().headers)
                        .unwrap_or_default()
                        .clone_into(&mut auth.token);
                }
                let seat = socket.req_parts().extensions.get::<Seat>();
                let admitted = admit(&subscriptions, auth, seat).await?;
                drop(socket.extensions.insert(admitted));
                Ok::<(), Refused>(())
            }
        }
    };
    let access = subscriptions.access.clone();
    let listen = move |socket: SocketRef, io: SocketIo, Extension(admitted): Extension<Admitted>| {
        let access = access.clone();
        async move { keep_telling(&access, &io, socket, admitted).await }
    };
    io.ns("/", listen.with(gate));
    layer
}

/// Tells a client what is new until it goes, or may not hear it any more.
async fn keep_telling(access: &SessionAccess, io: &SocketIo, socket: SocketRef, admitted: Admitted) {
    let left = CancellationToken::new();
    socket.on_disconnect({
        let left = left.clone();
        move || {
            left.cancel();
            std::future::ready(())
        }
    });
    // Before the look: a change after it is not missed.
    let mut changes = access.sessions.changes();
    let mut told = Told::default();
    told.look(&admitted.scope, &access.sessions);
    let mut review = Instant::now() + LIFE;
    let mut looks = interval(LOOK);
    while socket.connected() && !left.is_cancelled() {
        let emit = |notice: &Notice| match socket.emit(notice.name(), notice) {
            Err(SendError::Socket(SocketError::InternalChannelFull)) => Err(Full),
            // Gone; or a notice that is no JSON, which there is not.
            Ok(()) | Err(_) => Ok(()),
        };
        let has_room = told.tell(emit).is_ok();
        tokio::select! {
            () = left.cancelled() => return,
            _ = looks.tick() => {
                if io.get_socket(socket.id).is_none() {
                    return;
                }
            }
            () = sleep_until(review) => {
                review = Instant::now() + LIFE;
                match Scope::of(access, &admitted.auth).await {
                    // Who cannot be asked about now is asked about again; that the one session is gone is told.
                    Ok(_) | Err(Problem::ApiServer | Problem::NotFound(_)) => {}
                    Err(_) => {
                        drop(socket.disconnect());
                        return;
                    }
                }
            }
            () = sleep(ROOM), if !has_room => {}
            next = changes.recv(), if has_room => {
                if !told.take(next, &admitted.scope, &access.sessions) {
                    return;
                }
                sleep(COALESCE).await;
                loop {
                    let next = match changes.try_recv() {
                        Ok(snapshot) => Ok(snapshot),
                        Err(TryRecvError::Lagged(missed)) => Err(RecvError::Lagged(missed)),
                        // What else there is comes with the next look.
                        Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                    };
                    told.take(next, &admitted.scope, &access.sessions);
                }
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

/// What a client was told, and what it is to be told.
#[derive(Debug, Default)]
struct Told {
    heard: BTreeMap<String, Heard>,
    /// The last word on each session of which there is news.
    due: BTreeMap<String, Arc<Snapshot>>,
    /// Whether what was there when it came was looked at.
    begun: bool,
}

impl Told {
    /// Looks at everything that is meant: when a client comes, and when more changed than it was told of.
    fn look(&mut self, scope: &Scope, sessions: &Sessions) {
        let there = scope.snapshots(sessions);
        for id in there.iter().map(|snapshot| &snapshot.id) {
            self.due.remove(id);
        }
        // What is due of others is that they are gone.
        self.due.retain(|_, snapshot| snapshot.is_gone);
        let ids: BTreeSet<&str> = there.iter().map(|snapshot| snapshot.id.as_str()).collect();
        let missing: Vec<String> = self
            .heard
            .keys()
            .filter(|id| !ids.contains(id.as_str()))
            .cloned()
            .collect();
        for id in missing {
            self.due
                .entry(id.clone())
                .or_insert_with(|| Arc::new(Snapshot::lost(&id)));
        }
        for snapshot in &there {
            if !self.begun && snapshot.now.is_last() && !matches!(scope, Scope::One(_)) {
                self.heard.insert(snapshot.id.clone(), Heard::Over);
            } else {
                self.hear(Arc::clone(snapshot));
            }
        }
        self.begun = true;
    }

    /// Takes a change in; false where none will come any more.
    fn take(&mut self, changed: Result<Arc<Snapshot>, RecvError>, scope: &Scope, sessions: &Sessions) -> bool {
        match changed {
            Ok(snapshot) if scope.means(&snapshot) => self.hear(snapshot),
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => self.look(scope, sessions),
            Err(RecvError::Closed) => return false,
        }
        true
    }

    fn hear(&mut self, snapshot: Arc<Snapshot>) {
        let known = self.heard.get(&snapshot.id);
        let is_news = match known {
            Some(Heard::At(digest)) => *digest != snapshot.digest,
            // Nothing but that it is gone, which makes room.
            Some(Heard::Over) => snapshot.is_gone,
            None => !snapshot.is_gone,
        };
        if is_news {
            self.due.insert(snapshot.id.clone(), snapshot);
        } else {
            // It went back to what is known already.
            self.due.remove(&snapshot.id);
        }
    }

    /// Tells what is due. What there was no room for stays so.
    fn tell(&mut self, mut emit: impl FnMut(&Notice) -> Result<(), Full>) -> Result<(), Full> {
        while let Some((id, snapshot)) = self.due.first_key_value() {
            let id = id.clone();
            let known = self.heard.get(&id);
            if known != Some(&Heard::Over) {
                if known.is_none() {
                    emit(&snapshot.started)?;
                    self.heard.insert(id.clone(), Heard::At(String::new()));
                }
                emit(&snapshot.now)?;
            }
            let heard = if snapshot.now.is_last() {
                Heard::Over
            } else {
                Heard::At(snapshot.digest.clone())
            };
            if snapshot.is_gone {
                self.heard.remove(&id);
            } else {
                self.heard.insert(id.clone(), heard);
            }
            self.due.remove(&id);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flopwatch_api::session::ProfilingSession;
    use kube::runtime::watcher::Event;
    use prometheus::IntCounter;
    use serde_json::{Value, json};
    use tokio::sync::broadcast;

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
        changes: broadcast::Receiver<Arc<Snapshot>>,
    }

    impl World {
        fn new(sessions: &[(&str, &str)]) -> Self {
            let sessions_known = Sessions::new(IntCounter::new("notices", "notices").unwrap());
            let world = Self {
                changes: sessions_known.changes(),
                sessions: sessions_known,
            };
            for (id, succeeded) in sessions {
                world.stands(id, succeeded);
            }
            world
        }

        fn stands(&self, id: &str, succeeded: &str) {
            self.sessions.session_event(Event::Apply(session(id, succeeded)));
        }

        /// What is told, as name and session, until `room` is filled.
        fn told(&mut self, told: &mut Told, scope: &Scope, room: usize) -> Vec<(&'static str, String)> {
            if !told.begun {
                self.changes = self.sessions.changes();
                told.look(scope, &self.sessions);
            }
            while let Ok(changed) = self.changes.try_recv() {
                told.take(Ok(changed), scope, &self.sessions);
            }
            let mut heard = Vec::new();
            drop(told.tell(|notice| {
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

    fn in_one_line(name: &'static str, id: &str) -> (&'static str, String) {
        (name, id.to_owned())
    }

    #[test]
    fn what_ended_before_a_client_came_is_told_only_of_the_one_it_named() {
        let mut world = World::new(&[("00000001", "True"), ("00000002", "Unknown")]);
        let live = [
            in_one_line("profiling_started", "00000002"),
            in_one_line("profiling_progress", "00000002"),
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
            in_one_line("profiling_started", "00000001"),
            in_one_line("profiling_complete", "00000001"),
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
            in_one_line("profiling_complete", "00000002"),
            in_one_line("profiling_error", "00000001"),
            in_one_line("profiling_progress", "00000003"),
            in_one_line("profiling_started", "00000002"),
            in_one_line("profiling_started", "00000003"),
        ];
        let mut heard = world.told(&mut told, &scope, 9);
        heard.sort();
        assert_eq!(heard, expected);
        for id in ["00000001", "00000003"] {
            world.sessions.session_event(Event::Delete(session(id, "Unknown")));
        }
        assert_eq!(
            world.told(&mut told, &scope, 9),
            [in_one_line("profiling_error", "00000003")]
        );
        assert!(world.told(&mut told, &scope, 9).is_empty());
    }

    #[test]
    fn what_a_client_has_no_room_for_is_told_later() {
        let mut world = World::new(&[("00000001", "Unknown")]);
        let (mut told, scope) = (Told::default(), Scope::All);
        assert!(world.told(&mut told, &scope, 0).is_empty());
        assert_eq!(
            world.told(&mut told, &scope, 1),
            [in_one_line("profiling_started", "00000001")]
        );
        world.stands("00000001", "True");
        assert_eq!(
            world.told(&mut told, &scope, 1),
            [in_one_line("profiling_complete", "00000001")]
        );
    }

    #[test]
    fn whoever_falls_behind_looks_again_and_misses_no_end() {
        let mut world = World::new(&[("00000001", "Unknown"), ("00000002", "Unknown")]);
        let (mut told, scope) = (Told::default(), Scope::All);
        assert_eq!(world.told(&mut told, &scope, 9).len(), 4);
        // What changed meanwhile was not heard.
        world.stands("00000001", "True");
        world
            .sessions
            .session_event(Event::Delete(session("00000002", "Unknown")));
        world.stands("00000003", "Unknown");
        world.changes = world.sessions.changes();
        assert!(told.take(Err(RecvError::Lagged(3)), &scope, &world.sessions));
        let expected = [
            in_one_line("profiling_complete", "00000001"),
            in_one_line("profiling_error", "00000002"),
            in_one_line("profiling_started", "00000003"),
            in_one_line("profiling_progress", "00000003"),
        ];
        assert_eq!(world.told(&mut told, &scope, 9), expected);
        assert!(world.told(&mut told, &scope, 9).is_empty());
    }
}
