use axum::http::StatusCode;
use flopwatch_artifacts::{ArtifactMetrics, Store, StoreOptions};
use prometheus::Registry;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// The routes on a port of loopback, over a store of its own.
struct Rig {
    address: std::net::SocketAddr,
    folder: TempDir,
}

impl Rig {
    async fn new(limits: UploadLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let incoming = folder.path().join("incoming-files");
        std::fs::create_dir(&incoming).unwrap();
        let metrics = ArtifactMetrics::register(&Registry::new()).unwrap();
        let options = StoreOptions {
            free_bytes_floor: 0,
            ..StoreOptions::default()
        };
        let store = Store::open(&folder.path().join("store"), options, metrics)
            .await
            .unwrap();
        let captures = Arc::new(Captures::new(Arc::new(store)));
        let reading = SourceArguments {
            quiet: true,
            ..SourceArguments::default()
        };
        let uploads = Uploads::new(Arc::clone(&captures), incoming, reading, limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = captures.router().merge(uploads.router());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, folder }
    }

    async fn send(&self, head: &str, body: &[u8]) -> (StatusCode, Value) {
        let (status, text) = self.answer(head, body).await;
        (status, serde_json::from_str(&text).unwrap())
    }

    async fn answer(&self, head: &str, body: &[u8]) -> (StatusCode, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!("{head}Connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let text = String::from_utf8(answer).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// A file is refused with this status and reason.
    async fn refuses(&self, (headers, length, body): (&str, usize, &[u8]), status: StatusCode, reason: &str) {
        let (found, message) = self.post(headers, length, body).await;
        assert_eq!((found, &message["reason"]), (status, &Value::from(reason)), "{headers}");
    }

    async fn post(&self, headers: &str, length: usize, body: &[u8]) -> (StatusCode, Value) {
        let host = if headers.contains("Host:") {
            ""
        } else {
            "Host: localhost\r\n"
        };
        let head = format!("POST /v1/dropped?name=a.json HTTP/1.1\r\n{host}{headers}Content-Length: {length}\r\n");
        self.send(&head, body).await
    }

    fn left(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("incoming-files"))
            .unwrap()
            .count()
    }
}

const BYTES: &str = "Content-Type: application/octet-stream\r\n";

#[tokio::test]
async fn what_is_taken_is_told() {
    let rig = Rig::new(UploadLimits::default()).await;
    let (status, message) = rig.send("GET /v1/dropped HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"").await;
    assert_eq!(
        (status, &message["most_bytes"]),
        (StatusCode::OK, &Value::from(8_u64 << 30))
    );
}

#[tokio::test]
async fn the_list_of_captures_is_for_this_machine_s_own_pages_alone() {
    let rig = Rig::new(UploadLimits::default()).await;
    let (status, list) = rig.send("GET /v1/captures HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"").await;
    assert_eq!((status, &list["captures"]), (StatusCode::OK, &serde_json::json!([])));
    for headers in [
        "Host: evil.example\r\n",
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
    ] {
        let (status, message) = rig.send(&format!("GET /v1/captures HTTP/1.1\r\n{headers}"), b"").await;
        let refused = (StatusCode::FORBIDDEN, &Value::from("Foreign"));
        assert_eq!((status, &message["reason"]), refused, "{headers}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_cannot_have_a_file_taken() {
    let rig = Rig::new(UploadLimits::default()).await;
    for headers in [
        "Host: evil.example\r\nContent-Type: application/octet-stream\r\n",
        "Sec-Fetch-Site: cross-site\r\nContent-Type: application/octet-stream\r\n",
        "Sec-Fetch-Site: same-site\r\nContent-Type: application/octet-stream\r\n",
    ] {
        rig.refuses((headers, 2, b"{}"), StatusCode::FORBIDDEN, "Foreign").await;
    }
    // What a page may send anywhere without being asked.
    let (status, _) = rig.post("Content-Type: text/plain\r\n", 2, b"{}").await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn a_file_that_is_too_large_or_stalls_leaves_nothing_behind() {
    let limits = UploadLimits {
        bytes: 4,
        stall: Duration::from_millis(50),
        ..UploadLimits::default()
    };
    let rig = Rig::new(limits).await;
    let too_large = StatusCode::PAYLOAD_TOO_LARGE;
    rig.refuses((BYTES, 5, b""), too_large, "TooLarge").await;
    let chunked = format!("POST /v1/dropped HTTP/1.1\r\nHost: localhost\r\n{BYTES}Transfer-Encoding: chunked\r\n");
    let (status, _) = rig.send(&chunked, b"5\r\n12345\r\n0\r\n\r\n").await;
    assert_eq!(status, too_large);
    let stalled = StatusCode::REQUEST_TIMEOUT;
    rig.refuses((BYTES, 4, b"12"), stalled, "Stalled").await;
    assert_eq!(rig.left(), 0);
}

#[tokio::test]
async fn a_second_file_waits_for_the_first_and_one_whose_sender_left_is_released() {
    let rig = Rig::new(UploadLimits::default()).await;
    let mut first = TcpStream::connect(rig.address).await.unwrap();
    let head = format!("POST /v1/dropped HTTP/1.1\r\nHost: localhost\r\n{BYTES}Content-Length: 100\r\n\r\n{{");
    first.write_all(head.as_bytes()).await.unwrap();
    while rig.left() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let busy = StatusCode::SERVICE_UNAVAILABLE;
    rig.refuses((BYTES, 2, b"{}"), busy, "Busy").await;
    drop(first);
    while rig.left() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_profile_of_operations_is_answered_with_its_dashboard_and_nothing_of_it_stays() {
    let rig = Rig::new(UploadLimits::default()).await;
    let profile = br#"[{"operation": "load", "duration_ms": 2.5}, {"operation": "load", "duration_ms": 1.5}]"#;
    let (status, document) = rig.post(BYTES, profile.len(), profile).await;
    assert_eq!(status, StatusCode::OK, "{document}");
    assert_eq!(document["analysis"], "operations");
    let length = profile.len();
    for (format, part) in [("html", "<!doctype html>"), ("csv", "load"), ("json", "\"calls\": 2")] {
        let head = format!(
            "POST /v1/dropped?format={format} HTTP/1.1\r\nHost: localhost\r\n{BYTES}Content-Length: {length}\r\n"
        );
        let (status, text) = rig.answer(&head, profile).await;
        assert_eq!(status, StatusCode::OK);
        let (compact, part) = (text.to_lowercase().replace(' ', ""), part.replace(' ', ""));
        assert!(compact.contains(&part), "{format}: {text}");
    }
    let wrong = br#"[{"operation": "load", "duration_ms": -1}]"#;
    let (status, message) = rig.post(BYTES, wrong.len(), wrong).await;
    let detail = message["detail"].as_str().unwrap();
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(detail.contains("a.json") && detail.contains("duration_ms"), "{detail}");
    assert!(!detail.contains("incoming-files"), "{detail}");
    let head = format!("POST /v1/dropped?format=html HTTP/1.1\r\nHost: localhost\r\n{BYTES}Content-Length: 2\r\n");
    let (status, message) = rig.send(&head, b"{}").await;
    assert_eq!(
        (status, &message["reason"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &Value::from("NoProfile"))
    );
    assert_eq!(rig.left(), 0);
}
