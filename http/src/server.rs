//! Listens: with TLS for the cluster, without it on loopback.

#[cfg(feature = "cluster")]
mod cluster;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use hyper_util::rt::TokioTimer;
use prometheus::IntCounter;
use tokio_util::sync::CancellationToken;

use crate::connection::Limit;

/// What a [`Server`] answers with.
pub trait Service {
    /// The routes, with everything that guards them.
    fn router(&self) -> Router;

    /// Whether it lets in whoever reaches it. Such a service is served on loopback alone.
    fn is_open(&self) -> bool;

    /// Counts the connections that are refused because as many as allowed are open.
    fn refused_connections(&self) -> IntCounter;
}

/// Bounds on what clients may hold.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// Open connections; each serves one request at a time. One more is closed at once.
    pub connections: usize,
    /// Longest wait for a request's head, also on a connection that idles.
    pub head: Duration,
    /// Longest TLS handshake.
    pub handshake: Duration,
    /// Longest time in which a client that is sent something takes none of it.
    pub stall: Duration,
    /// How long a shutdown waits for answers that are under way.
    pub drain: Duration,
}

impl Default for ServerLimits {
    /// 256 connections, 15 s for a head, 10 s for a handshake, 60 s of stall, 10 s to drain.
    fn default() -> Self {
        Self {
            connections: 256,
            head: Duration::from_secs(15),
            handshake: Duration::from_secs(10),
            stall: Duration::from_mins(1),
            drain: Duration::from_secs(10),
        }
    }
}

/// Why the service cannot listen, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is not of this machine alone.
    #[error(
        "{0} can be reached from elsewhere: without TLS and access reviews the service listens on 127.0.0.1 or [::1] alone"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address that could not be bound.
        address: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Certificate or key cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// `tls.crt` or `tls.key`.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Certificate and key cannot be used.
    #[error("tls.crt and tls.key in {directory} cannot be used: {reason}")]
    Certificate {
        /// Directory that holds certificate and key.
        directory: PathBuf,
        /// What is wrong with the pair.
        reason: String,
    },
    /// Serving ended with an error.
    #[error("serving ended: {0}")]
    Serve(#[source] io::Error),
}

/// A service that listens; [`run`](Self::run) answers.
#[derive(Debug)]
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    router: Router,
    limit: Limit,
    limits: ServerLimits,
    #[cfg(feature = "cluster")]
    certificates: Option<crate::tls::Certificates>,
    #[cfg(feature = "cluster")]
    second: Option<cluster::SecondListener>,
}

impl Server {
    /// Listens without TLS, on loopback alone.
    pub fn bind_plain_loopback(
        service: &impl Service,
        address: SocketAddr,
        limits: ServerLimits,
    ) -> Result<Self, ServeError> {
        if !address.ip().is_loopback() {
            return Err(ServeError::NotLoopback(address));
        }
        Self::bind(service, address, limits)
    }

    fn bind(service: &impl Service, address: SocketAddr, limits: ServerLimits) -> Result<Self, ServeError> {
        let (listener, address) = listen(address)?;
        let limit = Limit::new(limits.connections, limits.stall, service.refused_connections());
        Ok(Self {
            listener,
            address,
            router: service.router(),
            limit,
            limits,
            #[cfg(feature = "cluster")]
            certificates: None,
            #[cfg(feature = "cluster")]
            second: None,
        })
    }

    /// The address, with the port that was chosen for port 0.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Adds routes beside the service's own, such as a viewer's. They bring their own checks.
    #[must_use]
    pub fn merge(mut self, routes: Router) -> Self {
        self.router = self.router.merge(routes);
        self
    }

    /// Answers until `shutdown`, then lets what is under way finish within the limit.
    #[cfg_attr(not(feature = "cluster"), expect(unused_mut, reason = "certificates are taken out"))]
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), ServeError> {
        #[cfg(feature = "cluster")]
        if let Some(certificates) = self.certificates.take() {
            return self.run_with(certificates, shutdown).await;
        }
        tracing::info!(address = %self.address, tls = false, "serving");
        serve(self.listener, self.router, self.limit, &self.limits, shutdown).await
    }
}

fn listen(address: SocketAddr) -> Result<(std::net::TcpListener, SocketAddr), ServeError> {
    let listen = || {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    listen().map_err(|source| ServeError::Listen { address, source })
}

async fn serve<A>(
    listener: std::net::TcpListener,
    router: Router,
    acceptor: A,
    limits: &ServerLimits,
    shutdown: CancellationToken,
) -> Result<(), ServeError>
where
    A: Accept<tokio::net::TcpStream, Router> + Clone + Send + Sync + 'static,
    A::Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send,
    A::Service: axum_server::service::SendService<axum::http::Request<hyper::body::Incoming>> + Send,
    A::Future: Send,
{
    let handle = Handle::new();
    // `acceptor` first: it forgets the choice of HTTP/1.1.
    let server = axum_server::from_tcp(listener).map_err(ServeError::Serve)?;
    let mut server = server.acceptor(acceptor).handle(handle.clone()).http1_only();
    server
        .http_builder()
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(64)
        .max_buf_size(64 * 1024);
    let stop = async {
        shutdown.cancelled().await;
        handle.graceful_shutdown(Some(limits.drain));
    };
    // Ends when the connections have, so it needs no waiting for `stop`.
    let serving = server.serve(router.into_make_service());
    tokio::pin!(serving, stop);
    tokio::select! {
        ended = &mut serving => ended,
        () = &mut stop => serving.await,
    }
    .map_err(ServeError::Serve)
}
