//! The endpoints of a node: one per network namespace, shared by the captures whose containers are
//! in it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::message::{self, Message};
use super::socket::{Datagram, EndpointError, Socket, io};
use crate::process::{ProcessError, ProcessId, Procfs};

/// Longest wait for a datagram: after that the endpoint looks whether it is still wanted.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(100);
/// Datagrams that an endpoint reads in a slice of time, 500 in a second: a process asks every 5 s,
/// so that a thousand of them take less. The kernel queues ten, so that nobody's waits for more
/// than a few slices, whatever others send.
const A_SLICE: u32 = 10;
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A process waits 90 ms for an answer. One that comes later stays in its socket and is read as the
/// answer to its next request, and so on: from then on it is told what was asked for before. A
/// request that has waited for so long is therefore not answered.
const MAX_ANSWER_DELAY: Duration = Duration::from_millis(60);

/// The processes that an endpoint answers for one capture.
pub trait Audience: Send + Sync {
    /// Whether the process with that PID is one of them.
    fn includes(&self, pid: i32) -> bool;

    /// What a process is told that asks for what to record; none where it is to do nothing. It has
    /// 90 ms, less what the way takes.
    fn configuration(&self, process: ProcessId) -> Option<String>;

    /// Takes note that the process is sent the answer.
    fn answered(&self, process: ProcessId);
}

/// Datagrams by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that had an answer.
    pub answered: u64,
    /// Datagrams that no client sends, or that are too long.
    pub malformed: u64,
    /// Datagrams of processes of no capture.
    pub foreign: u64,
    /// Datagrams of processes that are told nothing.
    pub idle: u64,
    /// Datagrams whose answer nobody would have waited for any more.
    pub late: u64,
    /// Slices of time in which no more were read.
    pub throttled: u64,
}

#[derive(Debug, Default)]
struct Tally {
    answered: AtomicU64,
    malformed: AtomicU64,
    foreign: AtomicU64,
    idle: AtomicU64,
    late: AtomicU64,
    throttled: AtomicU64,
}

impl Tally {
    fn counts(&self) -> Counts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts {
            answered: of(&self.answered),
            malformed: of(&self.malformed),
            foreign: of(&self.foreign),
            idle: of(&self.idle),
            late: of(&self.late),
            throttled: of(&self.throttled),
        }
    }
}

/// A network namespace, as the kernel tells them apart.
type Namespace = (u64, u64);

/// The endpoints that are bound. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    bound: Arc<Mutex<BTreeMap<Namespace, Endpoint>>>,
}

impl Endpoints {
    /// Has the processes of an audience answered in the network namespace of `process`, for at most
    /// `limit`. It ends when what is returned is dropped.
    pub fn join(
        &self,
        procfs: &Procfs,
        process: ProcessId,
        audience: &Arc<dyn Audience>,
        limit: Duration,
    ) -> Result<Membership, EndpointError> {
        let namespace = namespace(procfs, process)?;
        let mut bound = lock(&self.bound);
        let until = Instant::now() + limit;
        let there = bound.get(&namespace).map(|endpoint| Arc::clone(&endpoint.shared));
        let admitted = there.and_then(|shared| Some((shared.admit(until, audience)?, shared)));
        let (id, shared) = if let Some(admitted) = admitted {
            admitted
        } else {
            // One that ended by itself gives its name back first.
            drop(bound.remove(&namespace));
            let endpoint = Endpoint::bind(procfs, process)?;
            let shared = Arc::clone(&endpoint.shared);
            let admitted = shared.admit(until, audience);
            bound.insert(namespace, endpoint);
            let ended = || io("read the socket")(std::io::ErrorKind::BrokenPipe.into());
            (admitted.ok_or_else(ended)?, shared)
        };
        Ok(Membership {
            endpoints: self.clone(),
            namespace,
            shared,
            id,
        })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        lock(&self.bound).len()
    }
}

/// The namespace's device and inode.
fn namespace(procfs: &Procfs, process: ProcessId) -> Result<Namespace, EndpointError> {
    let path = procfs.folder(process.pid).join("ns/net");
    let found = rustix::fs::stat(&path).map_err(|error| io("look at the pod's network namespace")(error.into()))?;
    if procfs.identify(process.pid)? != process {
        return Err(ProcessError::Gone { pid: process.pid }.into());
    }
    Ok((found.st_dev, found.st_ino))
}

/// A capture's part of an endpoint.
pub struct Membership {
    endpoints: Endpoints,
    namespace: Namespace,
    shared: Arc<Shared>,
    id: u64,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Membership {
    /// What became of the endpoint's datagrams, those of other captures included.
    pub fn counts(&self) -> Counts {
        self.shared.tally.counts()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut bound = lock(&self.endpoints.bound);
        let left = {
            let mut audiences = lock(&self.shared.audiences);
            audiences.remove(&self.id);
            audiences.len()
        };
        let is_own = |endpoint: &Endpoint| Arc::ptr_eq(&endpoint.shared, &self.shared);
        if left == 0 && bound.get(&self.namespace).is_some_and(is_own) {
            // Ends its thread, so that the name is free when this returns.
            bound.remove(&self.namespace);
        }
    }
}

/// Those who are answered, by a number: until when, and who.
type Audiences = BTreeMap<u64, (Instant, Arc<dyn Audience>)>;

#[derive(Default)]
struct Shared {
    ids: AtomicU64,
    audiences: Mutex<Audiences>,
    tally: Tally,
    /// Set once and for all, with `audiences` locked.
    closing: AtomicBool,
}

impl Shared {
    /// Takes an audience in; none where the endpoint ends.
    fn admit(&self, until: Instant, audience: &Arc<dyn Audience>) -> Option<u64> {
        let mut audiences = lock(&self.audiences);
        if self.closing.load(Ordering::Relaxed) {
            return None;
        }
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        audiences.insert(id, (until, Arc::clone(audience)));
        Some(id)
    }

    fn close(&self) {
        let _audiences = lock(&self.audiences);
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Whether the endpoint goes on: it ends when it is told to, and when the time of all is over.
    fn goes_on(&self) -> bool {
        let audiences = lock(&self.audiences);
        let now = Instant::now();
        if !audiences.is_empty() && audiences.values().all(|(until, _)| *until <= now) {
            self.closing.store(true, Ordering::Relaxed);
        }
        !self.closing.load(Ordering::Relaxed)
    }
}

struct Endpoint {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("tally", &self.shared.tally)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    fn bind(procfs: &Procfs, process: ProcessId) -> Result<Self, EndpointError> {
        let socket = Socket::bind(procfs, process)?;
        let shared = Arc::new(Shared::default());
        let (own, procfs) = (Arc::clone(&shared), procfs.clone());
        let thread = std::thread::Builder::new()
            .name("flopwatch-kineto".into())
            .spawn(move || serve(&socket, &own, &procfs))
            .map_err(io("start a thread for the endpoint"))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            // What it panicked of is in the log.
            thread.join().ok();
        }
    }
}

fn serve(socket: &Socket, shared: &Shared, procfs: &Procfs) {
    let mut slice = Instant::now();
    let mut read = 0;
    while shared.goes_on() {
        if slice.elapsed() >= POLL_INTERVAL {
            (slice, read) = (Instant::now(), 0);
        }
        if read >= A_SLICE {
            shared.tally.throttled.fetch_add(1, Ordering::Relaxed);
            rest(POLL_INTERVAL.saturating_sub(slice.elapsed()));
            continue;
        }
        match socket.receive(RECEIVE_TIMEOUT) {
            Ok(None) => {}
            Ok(Some(datagram)) => {
                read += 1;
                take(socket, shared, procfs, &datagram);
            }
            Err(error) => {
                tracing::warn!(%error, "the endpoint for Kineto cannot be read");
                return shared.close();
            }
        }
    }
}

/// Lets the rest of a slice pass; the kernel holds up whoever sends more.
#[expect(clippy::disallowed_methods, reason = "the thread is the endpoint's own")]
fn rest(left: Duration) {
    std::thread::sleep(left);
}

fn take(socket: &Socket, shared: &Shared, procfs: &Procfs, datagram: &Datagram) {
    let count = |count: &AtomicU64| {
        count.fetch_add(1, Ordering::Relaxed);
    };
    let Some(message) = datagram.bytes.as_deref().and_then(message::parse) else {
        return count(&shared.tally.malformed);
    };
    let sender = datagram.sender.and_then(|pid| procfs.identify(pid).ok());
    let audience = sender.and_then(|sender| {
        let now = Instant::now();
        let audiences = lock(&shared.audiences);
        let current = audiences.values().filter(|(until, _)| *until > now);
        let mut including = current.filter(|(_, audience)| audience.includes(sender.pid));
        including.next().map(|(_, audience)| Arc::clone(audience))
    });
    let (Some(sender), Some(audience), Some(from)) = (sender, audience, &datagram.from) else {
        return count(&shared.tally.foreign);
    };
    let read = Instant::now();
    if datagram.waited > MAX_ANSWER_DELAY {
        return count(&shared.tally.late);
    }
    let answer = match message {
        // Nothing depends on its answer: the library asks as well where nobody was there to
        // register with. An answer that it does not wait for would be taken for that of its first
        // request.
        Message::Registration => None,
        // A process that records asks for nothing, and reads no answer: it would take it for that
        // of its next request. Nor does one wait for long that is told nothing.
        Message::Request { activities } => {
            let configuration = activities.then(|| audience.configuration(sender)).flatten();
            configuration.map(|configuration| message::configured(&configuration))
        }
    };
    let Some(answer) = answer else {
        return count(&shared.tally.idle);
    };
    if datagram.waited.saturating_add(read.elapsed()) > MAX_ANSWER_DELAY {
        return count(&shared.tally.late);
    }
    // Before the process hears of it: whoever counts then counts this one too.
    count(&shared.tally.answered);
    audience.answered(sender);
    if let Err(error) = socket.answer(from, &answer) {
        tracing::debug!(pid = sender.pid, %error, "a process that asked is not there for the answer");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change of what it holds is one insertion or removal.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
