//! One request to a profiler service, on a thread of its own: it is answered when the window has
//! ended.

use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use flopwatch_pipeline::disk::{Short, Space};
use flopwatch_pipeline::failure::chain;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::message;
use super::service::{SOCKET_TIMEOUT, TERMINATE, runtime};
use crate::grpc::{CallError, Channel};

/// Records for a while, and answers with what was recorded.
const PROFILE: &str = "/tensorflow.ProfilerService/Profile";
/// How long a service may take from the end of its window to the end of its answer: a full one has
/// some 300 MB.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(3);
/// How long a service is waited for before it is told to end: its window may have begun just now,
/// or be about to end.
const TERMINATION_DELAY: Duration = Duration::from_millis(300);
/// Bytes between two looks at the free disk space.
const BYTES_BETWEEN_CHECKS: usize = 16 << 20;
/// How often somebody who waits looks whether to go on.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Why a request brought nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExchangeError {
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The service did not answer in time.
    #[error("the profiler service did not answer within {} s of the window's end", ANSWER_TIMEOUT.as_secs())]
    Late,
    /// The answer would take disk space that must stay free.
    #[error(transparent)]
    NoSpace(#[from] Short),
    /// The request was ended before its answer came, because its capture was called off.
    #[error("the request was called off")]
    CalledOff,
    /// No thread or runtime could be had, or the thread ended early.
    #[error("no thread could be had for the request")]
    NoThread,
}

/// What the thread is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    /// Let the window go on.
    Stay,
    /// End the window now, and keep what was recorded.
    End,
    /// End the request.
    CallOff,
}

/// What is sent, and where the answer goes.
#[derive(Debug)]
pub(super) struct Errand {
    /// The connection to the service.
    pub(super) stream: TcpStream,
    /// Bytes of the call's message.
    pub(super) request: Vec<u8>,
    /// Name of the session, to end it early.
    pub(super) session: String,
    /// Length of the window.
    pub(super) length: Duration,
    /// File for the answer.
    pub(super) answer: PathBuf,
    /// Most bytes of it.
    pub(super) limit: u64,
    /// Free space that it leaves.
    pub(super) space: Space,
}

/// A request that is under way. Dropped, it is called off, and its connection ends: the service
/// then records no longer.
#[derive(Debug)]
pub(super) struct Exchange {
    orders: watch::Sender<Order>,
    ended: Receiver<Result<(), ExchangeError>>,
    outcome: Option<Result<(), ExchangeError>>,
}

impl Exchange {
    /// Sends the request.
    pub(super) fn begin(errand: Errand) -> Result<Self, ExchangeError> {
        let (orders, await_order) = watch::channel(Order::Stay);
        let (tell, ended) = sync_channel(1);
        std::thread::Builder::new()
            .name("flopwatch-jax".into())
            .spawn(move || {
                let outcome = runtime()
                    .map_err(|_none| ExchangeError::NoThread)
                    .and_then(|runtime| runtime.block_on(converse(errand, await_order)));
                // Nobody listens any more where it was dropped.
                tell.send(outcome).ok();
            })
            .map_err(|_none| ExchangeError::NoThread)?;
        Ok(Self {
            orders,
            ended,
            outcome: None,
        })
    }

    /// The failure with which it has ended; none while it is under way and where it was answered.
    pub(super) fn failure(&mut self) -> Option<&ExchangeError> {
        if self.outcome.is_none() {
            self.outcome = match self.ended.try_recv() {
                Ok(outcome) => Some(outcome),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(ExchangeError::NoThread)),
            };
        }
        self.outcome.as_ref()?.as_ref().err()
    }

    /// Ends the window and waits for the answer, while `goes_on` says so.
    pub(super) fn finish(mut self, goes_on: &dyn Fn() -> bool) -> Result<(), ExchangeError> {
        if let Some(outcome) = self.outcome.take() {
            return outcome;
        }
        self.orders.send(Order::End).ok();
        let deadline = Instant::now() + ANSWER_TIMEOUT + SOCKET_TIMEOUT;
        loop {
            match self.ended.recv_timeout(POLL_INTERVAL) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => return Err(ExchangeError::NoThread),
                Err(RecvTimeoutError::Timeout) if !goes_on() => return Err(ExchangeError::CalledOff),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => return Err(ExchangeError::Late),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.orders.send(Order::CallOff).ok();
    }
}

/// Sends the request and takes the answer, within bounds.
async fn converse(errand: Errand, orders: watch::Receiver<Order>) -> Result<(), ExchangeError> {
    let mut file = File::create(&errand.answer).map_err(CallError::Sink)?;
    let channel = timeout(SOCKET_TIMEOUT, Channel::of_tcp(errand.stream))
        .await
        .map_err(|_late| ExchangeError::Late)??;
    let (mut unlooked, mut short) = (BYTES_BETWEEN_CHECKS, None);
    let keep = |part: &[u8]| {
        // Asking the file system for every part would cost more than the part.
        unlooked = unlooked.saturating_add(part.len());
        if unlooked >= BYTES_BETWEEN_CHECKS {
            unlooked = 0;
            short = errand.space.above().err();
        }
        if short.is_some() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        file.write_all(part)
    };
    let begun = Instant::now();
    let answered = channel.call(PROFILE, &errand.request, errand.limit, keep);
    let told_to_end = async {
        await_order(orders.clone(), Order::End).await;
        // A window that is ended for what it takes is ended at once, but not before its service can
        // know of it.
        let recorded = begun.elapsed();
        let is_about_to_end = errand.length.saturating_sub(recorded) <= TERMINATION_DELAY;
        let wait = if is_about_to_end {
            TERMINATION_DELAY
        } else {
            TERMINATION_DELAY.saturating_sub(recorded)
        };
        sleep(wait).await;
        let session = message::terminate(&errand.session).into_bytes();
        let ended = channel.call(TERMINATE, &session, u64::from(u16::MAX), |_| Ok(()));
        match timeout(SOCKET_TIMEOUT, ended).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(error = %chain(&error), "the service records until its window ends"),
            Err(late) => debug!(%late, "the service records until its window ends"),
        }
        sleep(ANSWER_TIMEOUT).await;
    };
    let outcome = tokio::select! {
        answered = answered => answered.map_err(ExchangeError::from),
        () = told_to_end => Err(ExchangeError::Late),
        () = await_order(orders.clone(), Order::CallOff) => Err(ExchangeError::CalledOff),
        () = sleep(errand.length + ANSWER_TIMEOUT) => Err(ExchangeError::Late),
    };
    short.map_or(outcome, |short| Err(short.into()))
}

/// Resolves when the thread was told that, or more.
async fn await_order(mut orders: watch::Receiver<Order>, order: Order) {
    // Nobody is left to tell anything: the request is of no use.
    orders.wait_for(|await_order| *await_order >= order).await.ok();
}
