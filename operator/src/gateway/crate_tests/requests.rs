//! What is asked of the gateway on bare sockets; every answer is held against the document.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::rig::{Answer, Ears, Rig};

impl Rig {
    pub(super) async fn get(&self, path: &str, token: &str) -> Answer {
        self.get_with(path, token, &[]).await
    }

    pub(super) async fn get_with(&self, path: &str, token: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, Some(token), headers, "").await
    }

    pub(super) async fn status(&self, path: &str, token: &str) -> u16 {
        self.get(path, token).await.status
    }

    pub(super) async fn json(&self, path: &str, token: &str) -> Value {
        self.get(path, token).await.json()
    }

    pub(super) async fn post(&self, path: &str, token: &str, body: &Value) -> Answer {
        let json = [("Content-Type", "application/json")];
        self.ask("POST", path, Some(token), &json, &body.to_string()).await
    }

    /// Sends a request; the answer must be one that the document has.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.ask_at(self.address, method, path, token, headers, body).await
    }

    /// Sends a request to the gateway at that address; the document must have the answer.
    pub(super) async fn ask_at(
        &self,
        address: SocketAddr,
        method: &str,
        path: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if let Some(token) = token {
            request.extend(["Authorization: Bearer ", token, "\r\n"]);
        }
        for (name, value) in headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.push_str("\r\n");
        request.push_str(body);
        let answer = send(address, request.as_bytes()).await;
        self.check(method, path, &answer);
        answer
    }

    pub(super) async fn send(&self, request: &[u8]) -> Answer {
        send(self.address, request).await
    }

    /// Listens to `team/train`.
    pub(super) async fn listen(&self, heard: &str) -> Ears {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut request =
            "GET /api/profiling/session/0badcafe/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                           Authorization: Bearer reader\r\n"
                .to_owned();
        if !heard.is_empty() {
            request.extend(["Last-Event-ID: ", heard, "\r\n"]);
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        Ears::new(stream)
    }

    /// Holds an answer against the document.
    fn check(&self, method: &str, path: &str, answer: &Answer) {
        let path = path.split('?').next().unwrap();
        let segments: Vec<&str> = path.split('/').collect();
        let paths = self.document["paths"].as_object().unwrap();
        let operation = paths.iter().find_map(|(template, operations)| {
            let parts: Vec<&str> = template.split('/').collect();
            let fits = parts.len() == segments.len()
                && parts
                    .iter()
                    .zip(&segments)
                    .all(|(part, segment)| part == segment || part.starts_with('{'));
            fits.then(|| &operations[method.to_ascii_lowercase()])
                .filter(|operation| operation.is_object())
        });
        let Some(operation) = operation else {
            assert!(matches!(answer.status, 200 | 404 | 405), "{method} {path}: {answer:?}");
            return;
        };
        let documented = &operation["responses"][answer.status.to_string()];
        assert!(
            documented.is_object(),
            "{method} {path} answers {}, undocumented: {answer:?}",
            answer.status
        );
        if answer.status >= 400 && method != "HEAD" && answer.status != 416 {
            assert_eq!(answer.header("content-type"), "application/problem+json", "{answer:?}");
            assert_eq!(answer.json()["status"], answer.status);
        }
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

async fn send(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut bytes)).await;
    read.expect("an answer within 30 s").unwrap();
    Answer::parse(&bytes)
}
