//! Listens: with TLS for the cluster, without it on loopback.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use axum_server::tls_rustls::RustlsAcceptor;
use hyper_util::rt::TokioTimer;
use prometheus::IntCounter;
use tokio_util::sync::CancellationToken;

use crate::connection::Limit;
use crate::tls;

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
        /// What the operating system said.
        source: io::Error,
    },
    /// Certificate or key cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// `tls.crt` or `tls.key`.
        path: PathBuf,
        /// What the operating system said.
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
    tls: Option<tls::Certificates>,
    beside: Option<Beside>,
}

/// Other routes on an address of their own.
#[derive(Debug)]
struct Beside {
    listener: std::net::TcpListener,
    address: SocketAddr,
    routes: Router,
    limit: Limit,
}

/// Most connections to other routes.
const BESIDE: usize = 32;

impl Server {
    /// Whether `tls.crt` and `tls.key` of `directory` can be served with.
    pub async fn can_serve_with(directory: &Path) -> bool {
        tls::Certificates::load(directory).await.is_ok()
    }

    /// Listens with TLS, with `tls.crt` and `tls.key` of `directory`, which are read again when they change.
    pub async fn bind_tls(
        service: &impl Service,
        address: SocketAddr,
        directory: &Path,
        limits: ServerLimits,
    ) -> Result<Self, ServeError> {
        let tls = tls::Certificates::load(directory).await?;
        Self::bind(service, address, limits, Some(tls))
    }

    /// Listens without TLS, on loopback alone.
    pub fn bind_plain_loopback(
        service: &impl Service,
        address: SocketAddr,
        limits: ServerLimits,
    ) -> Result<Self, ServeError> {
        Self::bind(service, address, limits, None)
    }

    fn bind(
        service: &impl Service,
        address: SocketAddr,
        limits: ServerLimits,
        tls: Option<tls::Certificates>,
    ) -> Result<Self, ServeError> {
        if (tls.is_none() || service.is_open()) && !address.ip().is_loopback() {
            return Err(ServeError::NotLoopback(address));
        }
        let (listener, address) = listen(address)?;
        let limit = Limit::new(limits.connections, limits.stall, service.refused_connections());
        Ok(Self {
            listener,
            address,
            router: service.router(),
            limit,
            limits,
            tls,
            beside: None,
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

    /// Serves other routes on an address of their own, with the same certificate; that address is given back. They bring their own checks.
    pub fn beside(mut self, address: SocketAddr, routes: Router) -> Result<(Self, SocketAddr), ServeError> {
        let (listener, address) = listen(address)?;
        let limit = self.limit.of_its_own(BESIDE);
        self.beside = Some(Beside {
            listener,
            address,
            routes,
            limit,
        });
        Ok((self, address))
    }

    /// Answers until `shutdown`, then lets what is under way finish within the limit.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ServeError> {
        let Self {
            listener,
            router,
            limit,
            limits,
            tls,
            address,
            beside,
        } = self;
        tracing::info!(%address, tls = tls.is_some(), "serving");
        match tls {
            Some(certificates) => {
                let config = certificates.config();
                let acceptor = |limit: Limit| {
                    RustlsAcceptor::new(config.clone())
                        .handshake_timeout(limits.handshake)
                        .acceptor(limit)
                };
                let reload = certificates.keep_current(shutdown.clone());
                let others = async {
                    let Some(beside) = beside else { return Ok(()) };
                    tracing::info!(address = %beside.address, "serving beside");
                    let acceptor = acceptor(beside.limit);
                    serve(beside.listener, beside.routes, acceptor, &limits, shutdown.clone()).await
                };
                let served = serve(listener, router, acceptor(limit), &limits, shutdown.clone());
                let reload = async {
                    reload.await;
                    Ok(())
                };
                tokio::try_join!(served, others, reload).map(|_ended| ())
            }
            None => serve(listener, router, limit, &limits, shutdown).await,
        }
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
