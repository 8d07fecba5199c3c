//! Limits on connections: how many at once, and how long a peer may stall.

use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use prometheus::IntCounter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Lets as many connections in as there are slots, and ends those whose peer takes nothing.
#[derive(Clone, Debug)]
pub struct Limit {
    slots: Arc<Semaphore>,
    stall: Duration,
    refused: IntCounter,
}

impl Limit {
    /// For so many connections at once, each for as long as its peer takes some of what it is sent
    /// within `stall`. Counts those that it refuses.
    pub fn new(connections: usize, stall: Duration, refused: IntCounter) -> Self {
        let slots = Arc::new(Semaphore::new(connections));
        Self { slots, stall, refused }
    }

    /// A limit of so many connections beside those of this one, which shares the count of refusals.
    #[must_use]
    pub fn of_its_own(&self, connections: usize) -> Self {
        Self::new(connections, self.stall, self.refused.clone())
    }
}

impl<S> Accept<TcpStream, S> for Limit {
    type Stream = Connection<TcpStream>;
    type Service = S;
    type Future = Ready<io::Result<(Self::Stream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            self.refused.inc();
            return ready(Err(io::Error::other("as many connections as allowed are open")));
        };
        ready(
            stream
                .set_nodelay(true)
                .map(|()| (Connection::new(stream, slot, self.stall), service)),
        )
    }
}

/// A stream that holds a slot, and fails when its peer takes nothing of what it is sent for too
/// long.
#[derive(Debug)]
pub struct Connection<S> {
    stream: S,
    _slot: OwnedSemaphorePermit,
    stall: Duration,
    stalled: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> Connection<S> {
    fn new(stream: S, slot: OwnedSemaphorePermit, stall: Duration) -> Self {
        Self {
            stream,
            _slot: slot,
            stall,
            stalled: Box::pin(sleep(stall)),
            waits: false,
        }
    }

    /// Starts the clock with the first write that has to wait, and stops it with the next that has
    /// not.
    fn watch<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !self.waits {
            self.waits = true;
            self.stalled.as_mut().reset(Instant::now() + self.stall);
        }
        match self.stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.watch(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        this.watch(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.watch(shut, cx)
    }
}
