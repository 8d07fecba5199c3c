//! A gateway over TLS that answers as it is told to: whole, in part, broken off, or wrong.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What a request is answered with.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// What is asked for, ranges included.
    Serve,
    /// As much of it, and then the end of the connection.
    BreakAfter(usize),
    /// All of it, whatever range was asked for.
    Whole,
    /// Bytes of the right number that were not published.
    Wrong,
    /// An answer with problem details.
    Problem(u16, &'static str),
}

/// A gateway on loopback.
pub(crate) struct FakeGateway {
    port: u16,
    folder: tempfile::TempDir,
    steps: Arc<Mutex<VecDeque<Step>>>,
    heads: Arc<Mutex<Vec<String>>>,
    content: Arc<Mutex<Vec<u8>>>,
}

impl FakeGateway {
    /// One that serves `content` at every path.
    pub(crate) async fn start(content: Vec<u8>) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec![
            "localhost".to_owned(),
            "flopwatch-gateway.flopwatch-system.svc".to_owned(),
        ])
        .unwrap();
        std::fs::write(folder.path().join("ca.crt"), made.cert.pem()).unwrap();
        let certificate = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).unwrap();
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key);
        let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let steps = Arc::new(Mutex::new(VecDeque::new()));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let content = Arc::new(Mutex::new(content));
        let (todo, seen, served) = (Arc::clone(&steps), Arc::clone(&heads), Arc::clone(&content));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let head = String::from_utf8(head).unwrap();
                let step = todo.lock().unwrap().pop_front().unwrap_or(Step::Serve);
                let answer = answer(&head, &step, &served.lock().unwrap());
                seen.lock().unwrap().push(head);
                // A client that has gone is its own affair.
                drop(stream.write_all(&answer).await);
                drop(stream.shutdown().await);
            }
        });
        Self {
            port,
            folder,
            steps,
            heads,
            content,
        }
    }

    /// Serves something else from now on.
    pub(crate) fn change(&self, content: Vec<u8>) {
        *self.content.lock().unwrap() = content;
    }

    /// What the next requests are answered with; later ones are served.
    pub(crate) fn then(&self, steps: impl IntoIterator<Item = Step>) {
        self.steps.lock().unwrap().extend(steps);
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Its certificate, which is its own authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// Options of the program that lead here.
    pub(crate) fn options(&self) -> String {
        format!("--gateway {} --gateway-ca {}", self.url(), self.authority().display())
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn answer(head: &str, step: &Step, content: &[u8]) -> Vec<u8> {
    let range = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("range: bytes=")
            .map(str::to_owned)
    });
    let (from, to) = range
        .as_deref()
        .and_then(|range| range.split_once('-'))
        .unwrap_or_default();
    let from: usize = from.parse().unwrap_or_default();
    let end = to
        .parse()
        .map_or(content.len(), |last: usize| content.len().min(last + 1));
    let tag = crate::fetching::digest(content);
    // A part of something else is not wanted.
    let part_of_other = head.to_ascii_lowercase().lines().any(|line| {
        line.strip_prefix("if-range: ")
            .is_some_and(|wanted| wanted.trim_matches('"') != tag)
    });
    let is_part = !part_of_other && (from > 0 || !to.is_empty());
    let (status, from, body) = match step {
        Step::Problem(status, reason) => {
            let body = format!("{{\"reason\":\"{reason}\",\"detail\":\"it is {reason} here\"}}");
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
            return (head + &body).into_bytes();
        }
        Step::Wrong => (200, 0, content.iter().map(|byte| byte ^ 1).collect()),
        Step::Serve | Step::BreakAfter(_) if is_part => (206, from, content[from..end].to_vec()),
        Step::Whole | Step::Serve | Step::BreakAfter(_) => (200, 0, content.to_vec()),
    };
    let part = if status == 206 {
        let last = (from + body.len()).saturating_sub(1);
        format!("content-range: bytes {from}-{last}/{}\r\n", content.len())
    } else {
        String::new()
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\n{part}etag: \"{tag}\"\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut answer = head.into_bytes();
    let sent = match step {
        Step::BreakAfter(count) => &body[..(*count).min(body.len())],
        _ => &body,
    };
    answer.extend_from_slice(sent);
    answer
}
