//! The progress of sessions over Socket.IO: the same notices as the server-sent events, of every
//! session that a client asks for.
//!
//! A client shows its token in `auth`, or like any other request in the header of its first one,
//! and may name a `session_id` or a `namespace` in `auth`; without either it gets the notices of
//! every session, which needs the right to list them all. A client without the right is refused
//! with `connect_error`. Sessions that ended before the client connected are left out, unless one
//! of them is the one that it named.

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
use crate::gateway::connection_permits::ConnectionPermit;
use crate::gateway::problem::Problem;
use crate::gateway::progress::{COALESCE_INTERVAL, Notice, STREAM_LIFETIME, Snapshot, Subscriptions};

use crate::gateway::sessions::Sessions;
use crate::gateway::token::Token;

/// Largest message of a client, which holds a token and little else.
const MAX_MESSAGE_BYTES: usize = 16 << 10;
/// Most messages that are buffered for a client that reads slowly.
const MAX_BUFFERED_MESSAGES: usize = 64;
/// Longest time from a connection to its authentication.
const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before notices that did not fit into a client's buffer are sent again.
const RESEND_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two checks that a client is still connected: nothing else reports one that
/// disconnected in the moment in which it was admitted.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Longest name of a namespace.
const MAX_NAMESPACE_CHARS: usize = 63;

/// What a client shows when it connects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Auth {
    token: String,
    session_id: Option<String>,
    namespace: Option<String>,
}

/// The sessions whose notices a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    All,
    Namespace(String),
    Session(String),
}

impl Scope {
    /// The scope that `auth` asks for and the user name of its token, if the user has the right.
    async fn of(access: &SessionAccess, auth: &Auth) -> Result<(Self, Arc<str>), Problem> {
        if auth.token.is_empty() {
            return Err(Problem::Unauthenticated);
        }
        let token = Token(auth.token.clone());
        if let Some(id) = &auth.session_id {
            let (user, _) = access.session_as(&token, id).await?;
            return Ok((Self::Session(id.clone()), user));
        }
        let namespace = auth.namespace.as_deref().unwrap_or_default();
        if namespace.len() > MAX_NAMESPACE_CHARS {
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

    /// The present state of the sessions in the scope.
    fn snapshots(&self, sessions: &Sessions) -> Vec<Arc<Snapshot>> {
        match self {
            Self::All => sessions.snapshots(None),
            Self::Namespace(namespace) => sessions.snapshots(Some(namespace)),
            Self::Session(id) => {
                let watched = sessions.watch(id);
                watched
                    .map(|watched| Arc::clone(&watched.borrow()))
                    .into_iter()
                    .collect()
            }
        }
    }

    fn includes(&self, snapshot: &Snapshot) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(namespace) => snapshot.namespace == *namespace,
            Self::Session(id) => snapshot.id == *id,
        }
    }
}

/// A client that was admitted.
#[derive(Clone)]
struct Admitted {
    auth: Arc<Auth>,
    scope: Scope,
}

/// Why a client is refused, as its `connect_error` says it.
struct Refused(Problem);

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.in_one_line())
    }
}

async fn admit(
    subscriptions: &Subscriptions,
    auth: Auth,
    permit: Option<&ConnectionPermit>,
) -> Result<Admitted, Refused> {
    let (scope, user) = Scope::of(&subscriptions.access, &auth).await.map_err(Refused)?;
    // Every handshake was given a permit.
    let permit = permit.ok_or(Refused(Problem::Busy))?;
    permit
        .assign_to_user(&subscriptions.listeners, &user)
        .map_err(Refused)?;
    Ok(Admitted {
        auth: Arc::new(auth),
        scope,
    })
}

/// The layer that serves Socket.IO at `/socket.io/` and passes every other request on.
pub(super) fn layer(subscriptions: &Subscriptions) -> SocketIoLayer {
    let (layer, io) = SocketIo::builder()
        .connect_timeout(AUTHENTICATION_TIMEOUT)
        .max_buffer_size(MAX_BUFFERED_MESSAGES)
        .max_payload(u64::try_from(MAX_MESSAGE_BYTES).unwrap_or(u64::MAX))
        .ws_max_message_size(MAX_MESSAGE_BYTES)
        .ws_max_frame_size(MAX_MESSAGE_BYTES)
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
                let permit = socket.req_parts().extensions.get::<ConnectionPermit>();
                let admitted = admit(&subscriptions, auth, permit).await?;
                drop(socket.extensions.insert(admitted));
                Ok::<(), Refused>(())
            }
        }
    };
    let access = subscriptions.access.clone();
    let listen = move |socket: SocketRef, io: SocketIo, Extension(admitted): Extension<Admitted>| {
        let access = access.clone();
        async move { stream_notices(&access, &io, socket, admitted).await }
    };
    io.ns("/", listen.with(gate));
    layer
}

/// Sends a client the notices of its scope, until it disconnects or loses the right.
async fn stream_notices(access: &SessionAccess, io: &SocketIo, socket: SocketRef, admitted: Admitted) {
    let disconnected = CancellationToken::new();
    socket.on_disconnect({
        let disconnected = disconnected.clone();
        move || {
            disconnected.cancel();
            std::future::ready(())
        }
    });
    // Subscribed before the first refresh, so that no change after it is missed.
    let mut changes = access.sessions.changes();
    let mut queue = NoticeQueue::default();
    queue.refresh(&admitted.scope, &access.sessions);
    let mut review = Instant::now() + STREAM_LIFETIME;
    let mut ping = interval(PING_INTERVAL);
    while socket.connected() && !disconnected.is_cancelled() {
        let emit = |notice: &Notice| match socket.emit(notice.name(), notice) {
            Err(SendError::Socket(SocketError::InternalChannelFull)) => Err(ClientBufferFull),
            // Gone; or a notice that is no JSON, which there is not.
            Ok(()) | Err(_) => Ok(()),
        };
        let has_room = queue.send_due(emit).is_ok();
        tokio::select! {
            () = disconnected.cancelled() => return,
            _ = ping.tick() => {
                if io.get_socket(socket.id).is_none() {
                    return;
                }
            }
            () = sleep_until(review) => {
                review = Instant::now() + STREAM_LIFETIME;
                match Scope::of(access, &admitted.auth).await {
                    // Who cannot be asked about now is asked about again; that the one session is
                    // gone is told.
                    Ok(_) | Err(Problem::ApiServer | Problem::NotFound(_)) => {}
                    Err(_) => {
                        drop(socket.disconnect());
                        return;
                    }
                }
            }
            () = sleep(RESEND_INTERVAL), if !has_room => {}
            next = changes.recv(), if has_room => {
                if !queue.apply_change(next, &admitted.scope, &access.sessions) {
                    return;
                }
                sleep(COALESCE_INTERVAL).await;
                loop {
                    let next = match changes.try_recv() {
                        Ok(snapshot) => Ok(snapshot),
                        Err(TryRecvError::Lagged(missed)) => Err(RecvError::Lagged(missed)),
                        // Later changes are taken with the next one.
                        Err(TryRecvError::Empty | TryRecvError::Closed) => break,
                    };
                    queue.apply_change(next, &admitted.scope, &access.sessions);
                }
            }
        }
    }
}

/// The client's buffer has no room for another notice now.
#[derive(Debug, PartialEq, Eq)]
struct ClientBufferFull;

/// The state of a session that a client was sent last.
#[derive(Debug, PartialEq, Eq)]
enum LastSent {
    /// The digest of a state that others may follow.
    State(String),
    /// The last state of the session.
    Final,
}

/// The notices that a client was sent, and those that are due.
#[derive(Debug, Default)]
struct NoticeQueue {
    /// The last notice of each session that was sent, by session id.
    sent: BTreeMap<String, LastSent>,
    /// The state of each session that is to be sent, by session id.
    due: BTreeMap<String, Arc<Snapshot>>,
    /// Whether the sessions that there were when the client connected are in the queue.
    initialized: bool,
}

impl NoticeQueue {
    /// Queues the present state of every session in the scope: when a client connects, and when it
    /// missed changes.
    fn refresh(&mut self, scope: &Scope, sessions: &Sessions) {
        let there = scope.snapshots(sessions);
        for id in there.iter().map(|snapshot| &snapshot.id) {
            self.due.remove(id);
        }
        // Of the other sessions only the notice of their deletion stays due.
        self.due.retain(|_, snapshot| snapshot.is_gone);
        let ids: BTreeSet<&str> = there.iter().map(|snapshot| snapshot.id.as_str()).collect();
        let missing: Vec<String> = self
            .sent
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
            if !self.initialized && snapshot.now.is_last() && !matches!(scope, Scope::Session(_)) {
                self.sent.insert(snapshot.id.clone(), LastSent::Final);
            } else {
                self.enqueue(Arc::clone(snapshot));
            }
        }
        self.initialized = true;
    }

    /// Queues a change; false where no further change will come.
    fn apply_change(&mut self, changed: Result<Arc<Snapshot>, RecvError>, scope: &Scope, sessions: &Sessions) -> bool {
        match changed {
            Ok(snapshot) if scope.includes(&snapshot) => self.enqueue(snapshot),
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => self.refresh(scope, sessions),
            Err(RecvError::Closed) => return false,
        }
        true
    }

    fn enqueue(&mut self, snapshot: Arc<Snapshot>) {
        let known = self.sent.get(&snapshot.id);
        let is_new = match known {
            Some(LastSent::State(digest)) => *digest != snapshot.digest,
            // Nothing but its deletion, which removes its entry.
            Some(LastSent::Final) => snapshot.is_gone,
            None => !snapshot.is_gone,
        };
        if is_new {
            self.due.insert(snapshot.id.clone(), snapshot);
        } else {
            // The session went back to the state that was sent last.
            self.due.remove(&snapshot.id);
        }
    }

    /// Sends the notices that are due. Those that do not fit into the client's buffer stay due.
    fn send_due(
        &mut self,
        mut emit: impl FnMut(&Notice) -> Result<(), ClientBufferFull>,
    ) -> Result<(), ClientBufferFull> {
        while let Some((id, snapshot)) = self.due.first_key_value() {
            let id = id.clone();
            let known = self.sent.get(&id);
            if known != Some(&LastSent::Final) {
                if known.is_none() {
                    emit(&snapshot.started)?;
                    self.sent.insert(id.clone(), LastSent::State(String::new()));
                }
                emit(&snapshot.now)?;
            }
            let sent = if snapshot.now.is_last() {
                LastSent::Final
            } else {
                LastSent::State(snapshot.digest.clone())
            };
            if snapshot.is_gone {
                self.sent.remove(&id);
            } else {
                self.sent.insert(id.clone(), sent);
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
                world.set_state(id, succeeded);
            }
            world
        }

        fn set_state(&self, id: &str, succeeded: &str) {
            self.sessions.session_event(Event::Apply(session(id, succeeded)));
        }

        /// The notices that are sent, as name and session, until `room` is filled.
        fn notices(&mut self, queue: &mut NoticeQueue, scope: &Scope, room: usize) -> Vec<(&'static str, String)> {
            if !queue.initialized {
                self.changes = self.sessions.changes();
                queue.refresh(scope, &self.sessions);
            }
            while let Ok(changed) = self.changes.try_recv() {
                queue.apply_change(Ok(changed), scope, &self.sessions);
            }
            let mut sent = Vec::new();
            drop(queue.send_due(|notice| {
                if sent.len() == room {
                    return Err(ClientBufferFull);
                }
                let value: Value = serde_json::to_value(notice).unwrap();
                sent.push((notice.name(), value["session_id"].as_str().unwrap().to_owned()));
                Ok(())
            }));
            sent
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
            let mut queue = NoticeQueue::default();
            assert_eq!(world.notices(&mut queue, &scope, 9), live);
            assert!(world.notices(&mut queue, &scope, 9).is_empty());
        }
        let elsewhere = Scope::Namespace("other".to_owned());
        assert!(world.notices(&mut NoticeQueue::default(), &elsewhere, 9).is_empty());
        let named = Scope::Session("00000001".to_owned());
        let ended = [
            in_one_line("profiling_started", "00000001"),
            in_one_line("profiling_complete", "00000001"),
        ];
        assert_eq!(world.notices(&mut NoticeQueue::default(), &named, 9), ended);
    }

    #[test]
    fn what_begins_ends_or_is_deleted_meanwhile_is_told_once() {
        let mut world = World::new(&[("00000001", "Unknown")]);
        let (mut queue, scope) = (NoticeQueue::default(), Scope::All);
        assert_eq!(world.notices(&mut queue, &scope, 9).len(), 2);
        world.set_state("00000001", "False");
        world.set_state("00000002", "True");
        world.set_state("00000003", "Unknown");
        let expected = [
            in_one_line("profiling_complete", "00000002"),
            in_one_line("profiling_error", "00000001"),
            in_one_line("profiling_progress", "00000003"),
            in_one_line("profiling_started", "00000002"),
            in_one_line("profiling_started", "00000003"),
        ];
        let mut sent = world.notices(&mut queue, &scope, 9);
        sent.sort();
        assert_eq!(sent, expected);
        for id in ["00000001", "00000003"] {
            world.sessions.session_event(Event::Delete(session(id, "Unknown")));
        }
        assert_eq!(
            world.notices(&mut queue, &scope, 9),
            [in_one_line("profiling_error", "00000003")]
        );
        assert!(world.notices(&mut queue, &scope, 9).is_empty());
    }

    #[test]
    fn what_a_client_has_no_room_for_is_told_later() {
        let mut world = World::new(&[("00000001", "Unknown")]);
        let (mut queue, scope) = (NoticeQueue::default(), Scope::All);
        assert!(world.notices(&mut queue, &scope, 0).is_empty());
        assert_eq!(
            world.notices(&mut queue, &scope, 1),
            [in_one_line("profiling_started", "00000001")]
        );
        world.set_state("00000001", "True");
        assert_eq!(
            world.notices(&mut queue, &scope, 1),
            [in_one_line("profiling_complete", "00000001")]
        );
    }

    #[test]
    fn whoever_falls_behind_looks_again_and_misses_no_end() {
        let mut world = World::new(&[("00000001", "Unknown"), ("00000002", "Unknown")]);
        let (mut queue, scope) = (NoticeQueue::default(), Scope::All);
        assert_eq!(world.notices(&mut queue, &scope, 9).len(), 4);
        // What changed meanwhile was not heard.
        world.set_state("00000001", "True");
        world
            .sessions
            .session_event(Event::Delete(session("00000002", "Unknown")));
        world.set_state("00000003", "Unknown");
        world.changes = world.sessions.changes();
        assert!(queue.apply_change(Err(RecvError::Lagged(3)), &scope, &world.sessions));
        let expected = [
            in_one_line("profiling_complete", "00000001"),
            in_one_line("profiling_error", "00000002"),
            in_one_line("profiling_started", "00000003"),
            in_one_line("profiling_progress", "00000003"),
        ];
        assert_eq!(world.notices(&mut queue, &scope, 9), expected);
        assert!(world.notices(&mut queue, &scope, 9).is_empty());
    }
}
