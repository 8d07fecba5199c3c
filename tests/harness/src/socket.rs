//! The server on a socket, for clients that are programs of their own.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::Body;
use http::Request;
use tokio::net::TcpListener;

use crate::server::ApiServer;

impl ApiServer {
    /// Serves on loopback too, in plain HTTP, until the runtime ends; returns where. Who shows no
    /// token there is nobody, or anonymous ([`ApiServer::admit_anonymous`]).
    pub async fn listen(&self) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = self.clone();
        let router = Router::new().fallback(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.serve(request).await }
        });
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        address
    }
}
