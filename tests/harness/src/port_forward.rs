//! Port-forwards over WebSockets, as the kubelet speaks them.

use std::collections::BTreeMap;

use axum::body::Body;
use futures::{SinkExt as _, StreamExt as _};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

use crate::server::ApiServer;
use crate::state::refused;

/// Channel of a forward's bytes; the one after it is for errors.
const DATA_CHANNEL: u8 = 0;

impl ApiServer {
    /// Lets port-forwards to any port of any pod lead to that port of this machine. They work by
    /// [`ApiServer::listen`] alone.
    pub fn forward_to(&self, port: u16) {
        self.state().forwards_to = Some(port);
    }

    /// Answers a request to forward one port of a pod.
    pub(crate) fn forward(&self, parts: Parts, query: &BTreeMap<String, String>) -> Response<Body> {
        let asked = query.get("ports").and_then(|ports| ports.parse().ok());
        let (Some(asked), Some(to)) = (asked, self.state().forwards_to) else {
            return self.answered(refused(400, "nothing listens there"));
        };
        let accept = derive_accept_key(parts.headers[SEC_WEBSOCKET_KEY].as_bytes());
        let upgrade = hyper::upgrade::on(Request::from_parts(parts, ()));
        tokio::spawn(forward(upgrade, asked, to));
        Response::builder()
            .status(StatusCode::SWITCHING_PROTOCOLS)
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_ACCEPT, accept)
            .header(SEC_WEBSOCKET_PROTOCOL, "v4.channel.k8s.io")
            .body(Body::empty())
            .unwrap()
    }
}

/// Carries bytes between a client and the port `to` of this machine. Each message begins with the
/// number of its channel, and each channel with the port.
async fn forward(upgrade: OnUpgrade, asked: u16, to: u16) {
    let stream = TokioIo::new(upgrade.await.unwrap());
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    let [low, high] = asked.to_le_bytes();
    for channel in [DATA_CHANNEL, DATA_CHANNEL + 1] {
        socket.send(Message::binary(vec![channel, low, high])).await.unwrap();
    }
    let mut pod = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
    let mut piece = vec![0; 16 << 10];
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Binary(bytes))) if bytes.first() == Some(&DATA_CHANNEL) => {
                    if pod.write_all(&bytes[1..]).await.is_err() {
                        break;
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
            read = pod.read(&mut piece) => match read {
                Ok(count) if count > 0 => {
                    let mut message = vec![DATA_CHANNEL];
                    message.extend_from_slice(&piece[..count]);
                    if socket.send(Message::binary(message)).await.is_err() {
                        break;
                    }
                }
                _ => break,
            },
        }
    }
    // A client that has gone is its own affair.
    drop(socket.close(None).await);
}
