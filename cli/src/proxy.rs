//! Serves the gateway on loopback for clients that know no tokens: each request goes on with the
//! caller's own.
//!
//! Whoever reaches the port acts as the caller. So it listens on 127.0.0.1 alone, answers under the
//! names of this machine alone (a page that rebinds its own name to 127.0.0.1 gets nothing), and
//! refuses pages of other origins. Socket.IO passes too: the gateway takes the token of the first
//! request for one that its client shows itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::IntoResponse as _;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::arguments::ProxyArguments;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::follow::interrupted;
use crate::gateway::Gateway;
use crate::print::say;

/// Headers of a request that are for this program, or that the gateway gets from it.
const OWN_HEADERS: [HeaderName; 5] = [HOST, CONNECTION, TRANSFER_ENCODING, UPGRADE, AUTHORIZATION];

/// Headers with which a WebSocket begins.
const WEBSOCKET_HEADERS: [(HeaderName, HeaderValue); 2] = [
    (CONNECTION, HeaderValue::from_static("upgrade")),
    (UPGRADE, HeaderValue::from_static("websocket")),
];

struct Proxy {
    gateway: Gateway,
    address: SocketAddr,
}

/// Runs `proxy`: serves the gateway on loopback until Ctrl-C.
pub async fn run(cluster: &Cluster, arguments: &ProxyArguments) -> Result<(), Error> {
    let gateway = Gateway::find(cluster, &arguments.gateway).await?;
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let listener = TcpListener::bind(wanted).await.map_err(|error| Error::Listen {
        address: wanted,
        source: error,
    })?;
    let address = listener.local_addr()?;
    say(&format!(
        "Serving the gateway until Ctrl-C, as you, to whoever uses this machine:\n  http://{address}/api/profiling/sessions?namespace={}\n",
        cluster.namespace
    ))?;
    serve(gateway, listener).await
}

/// Serves the gateway at a listener on loopback until Ctrl-C.
pub async fn serve(gateway: Gateway, listener: TcpListener) -> Result<(), Error> {
    let address = listener.local_addr()?;
    let router = Router::new()
        .fallback(pass)
        .with_state(Arc::new(Proxy { gateway, address }));
    axum::serve(listener, router)
        .with_graceful_shutdown(interrupted())
        .await?;
    Ok(())
}

async fn pass(State(proxy): State<Arc<Proxy>>, mut request: Request) -> Response<Body> {
    if let Some(refusal) = refusal(request.headers(), proxy.address, request.uri()) {
        return problem(StatusCode::FORBIDDEN, "Forbidden", refusal);
    }
    let socket = asks_for_socket(request.headers()).then(|| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut onward = http::Request::new(body);
    *onward.method_mut() = parts.method;
    match path.parse() {
        Ok(uri) => *onward.uri_mut() = uri,
        Err(_) => return problem(StatusCode::BAD_REQUEST, "BadRequest", "the path is no path"),
    }
    *onward.headers_mut() = parts.headers;
    for name in OWN_HEADERS {
        onward.headers_mut().remove(name);
    }
    if socket.is_some() {
        onward.headers_mut().extend(WEBSOCKET_HEADERS);
    }
    match proxy.gateway.send(onward).await {
        Ok(mut answer) => {
            if let (Some(socket), StatusCode::SWITCHING_PROTOCOLS) = (socket, answer.status()) {
                tokio::spawn(join(socket, hyper::upgrade::on(&mut answer)));
                return answer.map(Body::new);
            }
            let mut answer = answer.map(Body::new);
            answer.headers_mut().remove(CONNECTION);
            answer.headers_mut().remove(TRANSFER_ENCODING);
            answer
        }
        Err(error) => problem(StatusCode::BAD_GATEWAY, "Gateway", &error.to_string()),
    }
}

/// Whether a request begins a WebSocket.
fn asks_for_socket(headers: &HeaderMap) -> bool {
    headers
        .get(UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Passes on what both sides of a WebSocket say, until one of them ends.
async fn join(client: OnUpgrade, gateway: OnUpgrade) {
    let (Ok(client), Ok(gateway)) = tokio::join!(client, gateway) else {
        return;
    };
    drop(tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut TokioIo::new(gateway)).await);
}

/// Why a request does not go on.
fn refusal(headers: &HeaderMap, address: SocketAddr, uri: &Uri) -> Option<&'static str> {
    let port = address.port();
    let ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if !text(HOST).is_some_and(|host| ours.iter().any(|own| own == host)) {
        return Some("this program answers requests for 127.0.0.1 and localhost alone");
    }
    let own_page = |origin: &str| {
        ours.iter()
            .any(|own| origin.strip_prefix("http://") == Some(own.as_str()))
    };
    if text(ORIGIN).is_some_and(|origin| !own_page(origin)) {
        return Some("pages of other origins may not act in your name");
    }
    let is_served = ["/api/", "/socket.io/"].iter().any(|base| uri.path().starts_with(base));
    (!is_served).then_some("what is served here is under /api/, where /api/openapi.json lists it, and /socket.io/")
}

fn problem(status: StatusCode, reason: &str, detail: &str) -> Response<Body> {
    let body = serde_json::json!({
        "type": "about:blank", "status": status.as_u16(), "reason": reason, "detail": detail,
        "title": status.canonical_reason().unwrap_or("Error")
    });
    let content_type = [(CONTENT_TYPE, "application/problem+json")];
    (status, content_type, body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_of_this_machine_go_on() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
        let rows = [
            ("127.0.0.1:8080", None, "/api/x", true),
            ("localhost:8080", Some("http://localhost:8080"), "/api/x", true),
            ("evil.example:8080", None, "/api/x", false),
            ("127.0.0.1:80", None, "/api/x", false),
            ("localhost:8080", Some("http://evil.example"), "/api/x", false),
            ("localhost:8080", Some("null"), "/api/x", false),
            ("localhost:8080", None, "/socket.io/?EIO=4", true),
            ("evil.example:8080", None, "/socket.io/", false),
            ("localhost:8080", None, "/", false),
        ];
        for (host, origin, path, passes) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            let refused = refusal(&headers, address, &path.parse().unwrap());
            assert_eq!(refused.is_none(), passes, "{host} {origin:?} {path}: {refused:?}");
        }
        assert!(
            refusal(&HeaderMap::new(), address, &"/api/x".parse().unwrap()).is_some(),
            "no host at all"
        );
    }
}
