//! What servers of a cluster have: TLS, and other routes on an address of their own.

use std::net::SocketAddr;
use std::path::Path;

use axum::Router;
use axum_server::tls_rustls::RustlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{ServeError, Server, ServerLimits, Service, listen, serve};
use crate::connection::Limit;
use crate::tls::Certificates;

/// Other routes on an address of their own.
#[derive(Debug)]
pub(super) struct SecondListener {
    listener: std::net::TcpListener,
    address: SocketAddr,
    routes: Router,
    limit: Limit,
}

/// Most connections to other routes.
const MAX_SECOND_CONNECTIONS: usize = 32;

impl Server {
    /// Whether `tls.crt` and `tls.key` of `directory` can be served with.
    pub async fn can_serve_with(directory: &Path) -> bool {
        Certificates::load(directory).await.is_ok()
    }

    /// Listens with TLS, with `tls.crt` and `tls.key` of `directory`, which are read again when
    /// they change.
    pub async fn bind_tls(
        service: &impl Service,
        address: SocketAddr,
        directory: &Path,
        limits: ServerLimits,
    ) -> Result<Self, ServeError> {
        let certificates = Certificates::load(directory).await?;
        if service.is_open() && !address.ip().is_loopback() {
            return Err(ServeError::NotLoopback(address));
        }
        let mut server = Self::bind(service, address, limits)?;
        server.certificates = Some(certificates);
        Ok(server)
    }

    /// Serves other routes on an address of their own, with the same certificate; that address is
    /// given back. They bring their own checks.
    pub fn with_second_address(
        mut self,
        address: SocketAddr,
        routes: Router,
    ) -> Result<(Self, SocketAddr), ServeError> {
        let (listener, address) = listen(address)?;
        let limit = self.limit.of_its_own(MAX_SECOND_CONNECTIONS);
        self.second = Some(SecondListener {
            listener,
            address,
            routes,
            limit,
        });
        Ok((self, address))
    }

    pub(super) async fn run_with(
        self,
        certificates: Certificates,
        shutdown: CancellationToken,
    ) -> Result<(), ServeError> {
        let Self {
            listener,
            router,
            limit,
            limits,
            second,
            address,
            ..
        } = self;
        tracing::info!(%address, tls = true, "serving");
        let config = certificates.config();
        let acceptor = |limit: Limit| {
            RustlsAcceptor::new(config.clone())
                .handshake_timeout(limits.handshake)
                .acceptor(limit)
        };
        let reload = certificates.keep_current(shutdown.clone());
        let others = async {
            let Some(second) = second else { return Ok(()) };
            tracing::info!(address = %second.address, "serving beside");
            let acceptor = acceptor(second.limit);
            serve(second.listener, second.routes, acceptor, &limits, shutdown.clone()).await
        };
        let served = serve(listener, router, acceptor(limit), &limits, shutdown.clone());
        let reload = async {
            reload.await;
            Ok(())
        };
        tokio::try_join!(served, others, reload).map(|_ended| ())
    }
}
