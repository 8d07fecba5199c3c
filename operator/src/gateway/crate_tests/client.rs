//! A client of bare sockets: what comes back, whole and as it comes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// A client that listens.
pub(super) struct Ears {
    stream: TcpStream,
    text: String,
}

impl Ears {
    /// Listens on a connection whose request was sent.
    pub(super) const fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            text: String::new(),
        }
    }

    /// Everything that was heard once `end` is in it, or the stream's end where `end` is empty.
    pub(super) async fn until(&mut self, end: &str) -> &str {
        let mut piece = [0; 4096];
        while end.is_empty() || !self.text.contains(end) {
            let read = tokio::time::timeout(Duration::from_secs(30), self.stream.read(&mut piece)).await;
            match read.expect("something within 30 s").unwrap() {
                0 => break,
                read => self.text.push_str(std::str::from_utf8(&piece[..read]).unwrap()),
            }
        }
        &self.text
    }

    /// The ids of what was heard.
    pub(super) fn ids(&self) -> Vec<String> {
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("id: "));
        lines.map(|id| id.trim().to_owned()).collect()
    }
}

/// That member of each object of a list.
pub(super) fn column<'a>(list: &'a Value, member: &str) -> Vec<&'a Value> {
    list.as_array().unwrap().iter().map(|object| &object[member]).collect()
}

/// An answer of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in lines.map(|line| line.split_once(": ").unwrap()) {
            let all = headers.entry(name.to_ascii_lowercase()).or_default();
            let comma = if all.is_empty() { "" } else { ", " };
            all.extend([comma, value]);
        }
        Self {
            status,
            headers,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap().to_owned()
    }

    /// Status and reason of a refusal: `404 NotFound`.
    pub(super) fn told(&self) -> String {
        format!("{} {}", self.status, self.reason())
    }

    /// What a refusal says, or nothing.
    pub(super) fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap_or_default().to_owned()
    }
}
