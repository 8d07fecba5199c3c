//! Clients of the gateway that hear of every session, by Socket.IO over WebSockets.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use flopwatch_system_tests::cluster::{Cluster, TestNamespace};
use flopwatch_system_tests::fetch::{ArtifactClient, account_token_in, gateway};
use futures::{SinkExt as _, StreamExt as _};
use kube::Client;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use tokio_util::sync::CancellationToken;

/// Listeners of one user; the gateway takes 64 of each, and one that comes again may find its
/// earlier place not free yet.
const OF_A_USER: usize = 43;
/// Longest wait for one message.
const MESSAGE_TIMEOUT: Duration = Duration::from_mins(1);
/// Pause before a listener that was cut off comes again.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);

/// Packets of Engine.IO.
const PING: &str = "2";
const PONG: &str = "3";

/// What all of them heard.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Listeners that are let in now.
    pub(crate) present: AtomicUsize,
    /// Notices of sessions.
    pub(crate) notices: AtomicU64,
    /// Why the last one that was not let in was not.
    pub(crate) refused: Mutex<String>,
}

/// Where the gateway is, and whom it trusts.
#[derive(Clone)]
pub(crate) struct Gateway {
    address: SocketAddr,
    name: String,
    tls: TlsConnector,
}

impl Gateway {
    pub(crate) async fn find(client: &Client) -> Result<Self> {
        let trusted = ArtifactClient::of_gateway(client).await?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(trusted.authority())?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let url = gateway(client).await?;
        let authority = url.strip_prefix("https://").and_then(|rest| rest.split('/').next());
        Ok(Self {
            address: authority.context("a URL with an authority")?.parse()?,
            name: trusted.name().to_owned(),
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Connects, and waits until it is let in.
    async fn connect(&self, token: &str) -> Result<WebSocketStream<TlsStream<TcpStream>>> {
        let mut socket = self.ask(token).await?;
        loop {
            let answer = text(&mut socket).await?;
            // The first ping may come before the answer.
            if answer == PING {
                socket.send(Message::text(PONG)).await?;
                continue;
            }
            ensure!(answer.starts_with("40"), "not let in: {answer}");
            return Ok(socket);
        }
    }

    /// Connects and asks to be let in.
    pub(crate) async fn ask(&self, token: &str) -> Result<WebSocketStream<TlsStream<TcpStream>>> {
        let stream = TcpStream::connect(self.address).await?;
        let stream = self
            .tls
            .connect(ServerName::try_from(self.name.clone())?, stream)
            .await?;
        let url = format!("wss://{}/socket.io/?EIO=4&transport=websocket", self.name);
        let (mut socket, _) = client_async(url, stream).await?;
        let open = text(&mut socket).await?;
        ensure!(open.starts_with('0'), "not opened: {open}");
        let auth = format!("40{}", serde_json::json!({ "token": token }));
        socket.send(Message::text(auth)).await?;
        Ok(socket)
    }
}

/// The next text of the server.
async fn text(socket: &mut WebSocketStream<TlsStream<TcpStream>>) -> Result<String> {
    loop {
        let message = timeout(MESSAGE_TIMEOUT, socket.next()).await?;
        match message.context("the gateway closed the connection")?? {
            Message::Text(text) => return Ok(text.as_str().to_owned()),
            Message::Close(_) => bail!("the gateway closed the connection"),
            _ => {}
        }
    }
}

/// Tokens of users who may list all sessions, enough for so many listeners, each with the namespace
/// of its account: those of one namespace have the places of one user.
pub(crate) async fn tokens(cluster: &Cluster, listeners: usize) -> Result<Vec<(TestNamespace, String)>> {
    let mut tokens = Vec::new();
    for number in 0..listeners.div_ceil(OF_A_USER) {
        let account = format!("fleet-listener-{number}");
        let namespace = cluster.namespace("listener").await?;
        let token = account_token_in(&namespace.name, &account, "flopwatch-viewer", None).await?;
        tokens.push((namespace, token));
    }
    Ok(tokens)
}

/// Listens until told to stop, and comes again when it is cut off.
pub(crate) async fn listen(gateway: Gateway, token: String, heard: Arc<Heard>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        match gateway.connect(&token).await {
            Ok(mut socket) => {
                heard.present.fetch_add(1, Ordering::Relaxed);
                while let Some(Ok(message)) = stop.run_until_cancelled(text(&mut socket)).await {
                    if message.starts_with("42") {
                        heard.notices.fetch_add(1, Ordering::Relaxed);
                    } else if message == PING && socket.send(Message::text(PONG)).await.is_err() {
                        break;
                    }
                }
                heard.present.fetch_sub(1, Ordering::Relaxed);
            }
            Err(error) => *heard.refused.lock().unwrap_or_else(PoisonError::into_inner) = format!("{error:#}"),
        }
        stop.run_until_cancelled(sleep(RECONNECT_INTERVAL)).await;
    }
}
