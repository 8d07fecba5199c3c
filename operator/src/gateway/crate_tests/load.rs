//! Many clients, slow clients and hostile ones.

use std::time::{Duration, Instant};

use flopwatch_http::Limit;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::PATHS;
use super::rig::{AGENT_NAME, Answer, Rig, timeline_content};
use crate::metrics::Metrics;

/// Requests of the test of load, and how many of them are under way at once.
const REQUESTS: usize = 10_000;
const AT_ONCE: usize = 64;
/// Most memory that the whole process may gain by them: clients, gateway, agent and the tests
/// beside.
const MAX_MEMORY: u64 = 256 << 20;
const TIMELINE: &str = "/api/profiling/timeline/0badcafe.h5";

/// Memory of this process in use, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Status and length of the next answer of a connection that stays open.
async fn next_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>, is_head: bool) -> (u16, usize) {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let answer = Answer::parse(&buffer[..end + 4]);
            let length: usize = answer.header("content-length").parse().unwrap();
            let whole = end + 4 + if is_head { 0 } else { length };
            if buffer.len() >= whole {
                buffer.drain(..whole);
                return (answer.status, length);
            }
        }
        let read = tokio::time::timeout(Duration::from_mins(1), stream.read_buf(buffer)).await;
        let read = read.expect("an answer within a minute").unwrap();
        assert!(read > 0, "the connection ended");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout, reason = "the figures are what docs/performance.md says")]
async fn ten_thousand_requests_at_64_in_flight_are_answered_in_bounded_memory() {
    let rig = Rig::new().await;
    let range = "Range: bytes=4096-69631\r\n";
    let kinds = [
        ("GET", "/api/profiling/sessions?namespace=team", "", 200),
        ("GET", "/api/profiling/session/0badcafe", "", 200),
        ("GET", TIMELINE, range, 206),
        ("HEAD", TIMELINE, "", 200),
        ("GET", "/api/profiling/session/0badcafe/artifacts/summary.json", "", 200),
    ];
    // What is made once is no growth.
    for (method, path, _, _) in kinds {
        assert_eq!(rig.ask(method, path, Some("reader"), &[], "").await.status, 200);
    }
    let (before, began, address) = (resident(), Instant::now(), rig.address);
    let clients: Vec<_> = (0..AT_ONCE)
        .map(|client| {
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let (mut buffer, mut most, mut longest) = (Vec::new(), 0, Duration::ZERO);
                for request in (client..REQUESTS).step_by(AT_ONCE) {
                    let (method, path, header, expected) = kinds[request % kinds.len()];
                    let head = format!(
                        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer reader\r\n{header}\r\n"
                    );
                    let asked = Instant::now();
                    stream.write_all(head.as_bytes()).await.unwrap();
                    let (status, length) = next_answer(&mut stream, &mut buffer, method == "HEAD").await;
                    assert_eq!(status, expected, "{method} {path}");
                    assert!(expected != 206 || length == 65_536, "{length} bytes of a range");
                    longest = longest.max(asked.elapsed());
                    most = most.max(resident());
                }
                (most, longest)
            })
        })
        .collect();
    let (mut most, mut longest) = (before, Duration::ZERO);
    for client in clients {
        let (memory, time) = client.await.unwrap();
        (most, longest) = (most.max(memory), longest.max(time));
    }
    let (taken, gained) = (began.elapsed(), most - before);
    println!(
        "{REQUESTS} requests, {AT_ONCE} at once: {:.1} s, longest answer {} ms, memory {} MB before, {} MB more at most",
        taken.as_secs_f64(),
        longest.as_millis(),
        before >> 20,
        gained >> 20
    );
    assert!(gained < MAX_MEMORY, "{gained} bytes more than before");
}

/// A client of the gateway's own TLS.
async fn connect(rig: &Rig, address: std::net::SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let pem = std::fs::read(rig.agent.folder.path().join("ca.crt")).unwrap();
    roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots);
    let connector = TlsConnector::from(std::sync::Arc::new(config.with_no_client_auth()));
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(AGENT_NAME).unwrap();
    connector.connect(name, stream).await
}

async fn status_of(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Option<u16> {
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut bytes = Vec::new();
    // A peer that closes without a word of TLS is one that closes.
    let read = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut bytes)).await;
    drop(read.ok()?);
    (!bytes.is_empty()).then(|| Answer::parse(&bytes).status)
}

#[tokio::test]
async fn a_reader_that_takes_nothing_loses_its_place_to_others() {
    let timeline = vec![7; 64 << 20];
    let rig = Rig::with(&timeline, None).await;
    let refused = Metrics::new().unwrap().refused_connections;
    let limit = Limit::new(2, Duration::from_secs(1), refused.clone());
    let address = rig.over_tls_within(limit).await;
    let request = format!("GET {TIMELINE} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer reader\r\n\r\n");
    let mut lazy = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(&rig, address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        lazy.push(stream);
    }
    let modes = "GET /api/profiling/modes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!(connect(&rig, address).await.is_err(), "both places are taken");
    assert_eq!(refused.get(), 1);
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok(stream) = connect(&rig, address).await {
            assert_eq!(status_of(stream, modes).await, Some(200));
            break;
        }
        assert!(Instant::now() < end, "the places stay taken");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Either may be the one that lost its place; the other reads on.
    let mut received = Vec::new();
    for mut stream in lazy {
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes).await);
        received.push(bytes.len());
    }
    assert!(
        received.iter().any(|bytes| *bytes < timeline.len()),
        "{received:?} bytes"
    );
}

#[tokio::test]
async fn a_writer_that_never_ends_its_body_is_told_so_and_others_are_served() {
    let rig = Rig::new().await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        let head = "POST /api/profiling/run HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{";
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    assert_eq!(rig.status("/api/profiling/session/0badcafe", "reader").await, 200);
    let mut bytes = vec![0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(25), slow.remove(0).read(&mut bytes)).await;
    let read = read.expect("an answer to half a request").unwrap();
    assert_eq!(Answer::parse(&bytes[..read]).status, 400);
}

#[tokio::test]
async fn ranges_of_every_kind_give_bytes_or_a_reason() {
    let rig = Rig::new().await;
    let length = timeline_content().len();
    let many = (0..2000).map(|at| format!("{at}-{at}")).collect::<Vec<_>>().join(",");
    for (range, expected) in [
        ("bytes=0-0".to_owned(), &[206][..]),
        (format!("bytes=-{}", usize::MAX), &[200, 206]),
        ("bytes=-0".to_owned(), &[416]),
        (format!("bytes={length}-"), &[416]),
        ("bytes=5-4".to_owned(), &[200, 416]),
        ("bytes=0-1e30".to_owned(), &[200, 416]),
        ("bytes=99999999999999999999999-".to_owned(), &[200, 416]),
        ("bytes=0-0,0-0,0-0".to_owned(), &[200, 416]),
        (format!("bytes={many}"), &[200, 416, 431]),
        ("lines=1-2".to_owned(), &[200, 416]),
        ("bytes=\u{fc}".to_owned(), &[200, 400, 416]),
        (String::new(), &[200, 416]),
    ] {
        let request = format!(
            "GET {TIMELINE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer reader\r\nRange: {range}\r\n\r\n"
        );
        let answer = rig.send(request.as_bytes()).await;
        assert!(expected.contains(&answer.status), "{range:.60}: {}", answer.status);
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_sessions() {
    let rig = Rig::new().await;
    let ways = [
        "..",
        "../../../etc/passwd",
        "..%2f..%2f..%2fetc%2fpasswd",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "%252e%252e%252fetc%252fpasswd",
        "..\\..\\etc\\passwd",
        "..%5c..%5cetc%5cpasswd",
        "%00",
        "summary.json%00.h5",
        "%ff%fe",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "a%0d%0aX-Injected:%20yes",
    ];
    for way in ways {
        for path in [
            format!("/api/profiling/session/{way}"),
            format!("/api/profiling/session/{way}/artifacts"),
            format!("/api/profiling/session/0badcafe/artifacts/{way}"),
            format!("/api/profiling/timeline/{way}"),
            format!("/api/profiling/timeline/{way}.h5"),
            format!("/api/profiling/timeline/{way}/status"),
            format!("/api/profiling/kernels/{way}"),
            format!("/api/profiling/sessions?namespace={way}"),
            format!("/api/profiling/session/0badcafe?capture={way}"),
            format!("/{way}"),
        ] {
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer admin\r\n\r\n"
            );
            let answer = rig.send(request.as_bytes()).await;
            assert!(answer.status < 500, "{path}: {}", answer.status);
            assert_eq!(answer.header("x-injected"), "", "{path}");
            let message = String::from_utf8_lossy(&answer.body);
            assert!(!message.contains("root:"), "{path}");
            assert!(
                answer.status >= 300 || path.contains('?') || message.contains("flopwatch"),
                "{path}: {} {message:.200}",
                answer.status
            );
        }
    }
}

#[tokio::test]
async fn headers_without_measure_are_refused_and_leave_the_gateway_well() {
    let rig = Rig::new().await;
    let long = "x".repeat(1 << 20);
    let many = "X-One-More: y\r\n".repeat(5000);
    for (what, headers) in [
        ("a long token", format!("Authorization: Bearer {long}\r\n")),
        ("a long cookie", format!("Cookie: __Host-flopwatch={long}\r\n")),
        ("many headers", many),
        (
            "two tokens",
            "Authorization: Bearer reader\r\nAuthorization: Bearer admin\r\n".to_owned(),
        ),
        ("no name", ": x\r\n".to_owned()),
        ("a length that is none", "Content-Length: -1\r\n".to_owned()),
        ("two lengths", "Content-Length: 1\r\nContent-Length: 2\r\n".to_owned()),
    ] {
        let request = format!(
            "GET /api/profiling/session/0badcafe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        );
        let mut stream = TcpStream::connect(rig.address).await.unwrap();
        // The gateway may hang up before it has read all of that.
        drop(stream.write_all(request.as_bytes()).await);
        let mut bytes = Vec::new();
        drop(tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut bytes)).await);
        if !bytes.is_empty() {
            let status = Answer::parse(&bytes).status;
            assert!((400..500).contains(&status), "{what}: {status}");
        }
        assert_eq!(rig.status(PATHS[0], "reader").await, 200, "after {what}");
    }
}
