//! What the service answers, over real sockets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::rig::{Captures, Listening, TIMELINE, exchange, path};
use flopwatch_api::artifact::{Output, artifacts_path};
use flopwatch_artifacts::Access;
use flopwatch_http::{ServeError, Server, ServerLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Request headers, and the status, `Content-Range` and body that answer them.
type Case<'a> = (&'a [(&'a str, &'a str)], u16, &'a str, &'a str);

fn timeline() -> String {
    path("timeline.h5")
}

async fn open() -> (Captures, Listening) {
    let captures = Captures::new().await;
    let listening = Listening::plain(&captures.service(Access::LoopbackOnly));
    (captures, listening)
}

#[tokio::test]
async fn an_artifact_comes_with_everything_a_client_needs_to_check_it() {
    let (captures, listening) = open().await;
    let list = listening.get(&artifacts_path("team", "train"), &[]).await;
    assert_eq!(list.status, 200, "{}", list.text());
    let first = &list.json()["artifacts"][0];
    assert_eq!(first["path"], timeline());
    assert_eq!(first["bytes"], TIMELINE.len());
    let sha256 = first["sha256"].as_str().unwrap().to_owned();

    let answer = listening.get(&timeline(), &[]).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, TIMELINE));
    for (name, value) in [
        ("content-length", "36"),
        ("content-type", "application/x-hdf5"),
        ("content-disposition", "attachment; filename=\"timeline.h5\""),
        ("accept-ranges", "bytes"),
        ("etag", &format!("\"{sha256}\"")),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "private, no-cache"),
        ("content-encoding", ""),
        ("repr-digest", "sha-256=:dOflu50i1tsmv3aUbUD/8+qfA0a4hP0GlJIPzPrRXjM=:"),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let head = listening.ask("HEAD", &timeline(), &[]).await;
    assert_eq!(
        (head.status, head.body.len(), head.header("content-length")),
        (200, 0, "36")
    );
    assert_eq!(head.header("etag"), answer.header("etag"));
    assert_eq!(captures.metric("flopwatch_artifact_sent_bytes_total"), 36);
    assert_eq!(captures.metric(r#"flopwatch_artifact_requests_total{code="2xx"}"#), 3);
}

#[tokio::test]
async fn ranges_and_conditions_select_what_they_say() {
    let (_captures, listening) = open().await;
    let etag = listening.get(&timeline(), &[]).await.header("etag").to_owned();
    let cases: [Case<'_>; 11] = [
        (&[("Range", "bytes=0-3")], 206, "bytes 0-3/36", "0123"),
        (&[("Range", "bytes=30-")], 206, "bytes 30-35/36", "uvwxyz"),
        (&[("Range", "bytes=-2")], 206, "bytes 34-35/36", "yz"),
        (&[("Range", "bytes=0-")], 206, "bytes 0-35/36", TIMELINE),
        (&[("Range", "bytes=34-999")], 206, "bytes 34-35/36", "yz"),
        (&[("Range", "bytes=0-1,4-5")], 200, "", TIMELINE),
        (&[("Range", "pages=1-2")], 200, "", TIMELINE),
        (
            &[("Range", "bytes=0-1"), ("If-Range", &etag)],
            206,
            "bytes 0-1/36",
            "01",
        ),
        (
            &[("Range", "bytes=0-1"), ("If-Range", "\"another\"")],
            200,
            "",
            TIMELINE,
        ),
        (&[("If-None-Match", &etag)], 304, "", ""),
        (&[("If-None-Match", "\"another\"")], 200, "", TIMELINE),
    ];
    for (headers, status, content_range, body) in cases {
        let answer = listening.get(&timeline(), headers).await;
        assert_eq!(
            (answer.status, answer.header("content-range")),
            (status, content_range),
            "{headers:?}"
        );
        assert_eq!(answer.text(), body, "{headers:?}");
        assert_eq!(answer.header("etag"), etag);
        if status == 206 {
            assert_eq!(answer.header("content-length"), body.len().to_string());
        }
    }
    for range in ["bytes=36-", "bytes=100-200", "bytes=-0"] {
        let answer = listening.get(&timeline(), &[("Range", range)]).await;
        assert_eq!(answer.told(), "416 Range", "{range}");
        assert_eq!(answer.header("content-range"), "bytes */36");
    }
}

#[tokio::test]
async fn a_large_artifact_comes_whole_in_pieces() {
    let captures = Captures::new().await;
    let content: Vec<u8> = (0..10_000_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    captures.put("large", "large.bin", Output::Timeline, &content).await;
    let listening = Listening::plain(&captures.service(Access::LoopbackOnly));
    let path = format!("{}/large.bin", artifacts_path("team", "large"));
    let whole = listening.get(&path, &[]).await;
    assert!(whole.body == content, "{} bytes", whole.body.len());
    assert_eq!(whole.header("content-type"), "application/octet-stream");
    let part = listening.get(&path, &[("Range", "bytes=12345678-23456789")]).await;
    assert!(part.body == content[12_345_678..=23_456_789]);
}

#[tokio::test]
async fn a_corrupt_object_is_reported_and_never_served() {
    let (captures, listening) = open().await;
    let object = captures.object("timeline.h5").await;
    let corrupt = "flopwatch_artifact_corrupt_objects_total";
    // Served once, so it was found good and remembered; then a bit flips.
    assert_eq!(listening.get(&timeline(), &[]).await.status, 200);
    tokio::time::sleep(Duration::from_millis(20)).await;
    std::fs::write(&object, TIMELINE.replace('5', "4")).unwrap();
    for (n, range) in [(1, "bytes=0-1"), (2, "bytes=0-")] {
        let answer = listening.get(&timeline(), &[("Range", range)]).await;
        assert_eq!(answer.told(), "500 Corrupt");
        assert!(!answer.text().contains("012"), "{}", answer.text());
        assert_eq!(captures.metric(corrupt), n);
    }
    std::fs::write(&object, "012").unwrap();
    let part = listening.get(&timeline(), &[("Range", "bytes=30-31")]).await;
    assert_eq!(part.reason(), "Corrupt");
    std::fs::remove_file(&object).unwrap();
    assert_eq!(listening.get(&timeline(), &[]).await.reason(), "Corrupt");
    assert_eq!(captures.metric(corrupt), 4);
    // The others are as they were, and publishing again heals.
    assert_eq!(listening.get(&path("summary.json"), &[]).await.status, 200);
    captures
        .put("train", "timeline.h5", Output::Timeline, TIMELINE.as_bytes())
        .await;
    assert_eq!(listening.get(&timeline(), &[]).await.text(), TIMELINE);
}

#[tokio::test]
async fn what_is_published_again_while_it_is_read_is_never_taken_for_corrupt() {
    let (captures, listening) = open().await;
    // So large, and published so often, that the file is replaced while it is checked.
    let content: Vec<u8> = TIMELINE.bytes().cycle().take(3 << 20).collect();
    let file = [captures.file("timeline.h5", Output::Timeline, "", &content)];
    captures.publish("train", &file).await;
    let publishing = futures::future::join_all((0..8).map(|_| async {
        loop {
            captures.publish("train", &file).await;
        }
    }));
    let path = timeline();
    let reading = async {
        for _ in 0..100 {
            let answer = listening.get(&path, &[("Range", "bytes=3-5")]).await;
            assert_eq!((answer.status, answer.text().as_str()), (206, "345"));
        }
    };
    tokio::select! {
        _ = publishing => {}
        () = reading => {}
    }
    assert_eq!(captures.metric("flopwatch_artifact_corrupt_objects_total"), 0);
}

#[tokio::test]
async fn a_corrupt_object_is_found_in_an_empty_artifact_too() {
    let captures = Captures::new().await;
    captures.put("train", "empty", Output::Summary, b"").await;
    let listening = Listening::plain(&captures.service(Access::LoopbackOnly));
    let path = path("empty");
    let answer = listening.get(&path, &[]).await;
    assert_eq!((answer.status, answer.header("content-length")), (200, "0"));
    std::fs::write(captures.object("empty").await, "not empty").unwrap();
    assert_eq!(listening.get(&path, &[]).await.reason(), "Corrupt");
}

#[tokio::test]
async fn paths_lead_nowhere_else() {
    let captures = Captures::new().await;
    std::fs::write(captures.root.path().join("secret.txt"), "classified").unwrap();
    let listening = Listening::plain(&captures.service(Access::LoopbackOnly));
    let base = "/v1/namespaces";
    for path in [
        format!("{base}/../../../etc/passwd"),
        format!("{base}/team/captures/train/artifacts/../../../../secret.txt"),
        format!("{base}/team/captures/train/artifacts/..%2f..%2f..%2f..%2fsecret.txt"),
        format!("{base}/team/captures/train/artifacts/%2e%2e"),
        format!("{base}/%2e%2e/captures/train/artifacts"),
        format!("{base}/team/captures/..%2fteam%2ftrain/artifacts"),
        format!("{base}/team/captures/train%00/artifacts"),
        format!("{base}/team/captures/train/artifacts/%ff%fe"),
        format!("{base}/team/captures/{}/artifacts", "a".repeat(300)),
        format!("{base}//captures/train/artifacts"),
        "//".to_owned(),
        "*".to_owned(),
    ] {
        let answer = listening.get(&path, &[]).await;
        assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
        assert!(!answer.text().contains("classified"), "{path}");
    }
    for (path, reason) in [
        ("team/captures/TRAIN/artifacts", "BadName"),
        ("%ff/captures/train/artifacts", "BadPath"),
    ] {
        let answer = listening.get(&format!("{base}/{path}"), &[]).await;
        assert_eq!(answer.reason(), reason, "{path}");
    }
    assert_eq!(listening.get("/nothing", &[]).await.reason(), "NotFound");
    let post = listening.ask("POST", &timeline(), &[("Content-Length", "0")]).await;
    assert_eq!(
        (post.status, post.reason().as_str(), post.header("allow")),
        (405, "Method", "GET, HEAD")
    );
}

#[tokio::test]
async fn nonsense_on_the_wire_is_refused() {
    let (_captures, listening) = open().await;
    let huge = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(300_000)
    );
    assert!(matches!(listening.send(huge.as_bytes()).await.status, 0 | 431));
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(200));
    assert!(matches!(listening.send(many.as_bytes()).await.status, 0 | 431));
    for bytes in [
        &b"\x16\x03\x01\x00\xa5\x01\x00\x00"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let status = listening.send(bytes).await.status;
        assert!(matches!(status, 0 | 400 | 404 | 421 | 505), "{bytes:?}: {status}");
    }
    assert_eq!(listening.get("/healthz", &[]).await.text(), "ok\n");
}

#[tokio::test]
async fn clients_that_dawdle_lose_their_connection() {
    let captures = Captures::new().await;
    let content = vec![7; 64_000_000];
    captures.put("large", "large.bin", Output::Timeline, &content).await;
    let limits = ServerLimits {
        connections: 2,
        head: Duration::from_millis(500),
        stall: Duration::from_secs(2),
        ..ServerLimits::default()
    };
    let listening = Listening::plain_within(&captures.service(Access::LoopbackOnly), limits);
    // Sends half a head, then nothing; and nothing at all after a whole request.
    let before = Instant::now();
    for start in ["GET /healthz HTT", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        let answer = listening.send(start.as_bytes()).await;
        assert!(matches!(answer.status, 0 | 200 | 408), "{answer:?}");
    }
    assert!(before.elapsed() < Duration::from_secs(10), "{:?}", before.elapsed());
    // Asks for much and takes nothing: the connection ends and its slot is free again.
    let mut lazy = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        let request = format!(
            "GET {}/large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n",
            artifacts_path("team", "large")
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        lazy.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(listening.get("/healthz", &[]).await.status, 0, "both slots are taken");
    assert!(captures.metric("flopwatch_artifact_refused_connections_total") >= 1);
    let end = Instant::now() + Duration::from_secs(15);
    while listening.get("/healthz", &[]).await.status != 200 {
        assert!(Instant::now() < end, "the slots stay taken");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Either may be the one that lost its slot; the other reads on.
    let mut received = Vec::new();
    for mut stream in lazy {
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes).await);
        received.push(bytes.len());
    }
    assert!(
        received.iter().any(|bytes| *bytes < content.len()),
        "{received:?} bytes"
    );
}

#[tokio::test]
async fn an_open_service_is_for_this_machine_alone() {
    let captures = Captures::new().await;
    let service = captures.service(Access::LoopbackOnly);
    for address in ["0.0.0.0:0", "[::]:0"] {
        let error =
            Server::bind_plain_loopback(&service, address.parse().unwrap(), ServerLimits::default()).unwrap_err();
        assert!(matches!(error, ServeError::NotLoopback(_)), "{error}");
    }
    let directory = certificate();
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let tls = Server::bind_tls(&service, everywhere, directory.path(), ServerLimits::default()).await;
    assert!(matches!(tls.unwrap_err(), ServeError::NotLoopback(_)));
    let listening = Listening::plain(&service);
    for host in ["rebound.example", "rebound.example:80", "127.0.0.1.rebound.example"] {
        let answer = listening.get(&timeline(), &[("Host", host)]).await;
        assert_eq!(answer.told(), "421 ForeignHost", "{host}");
    }
    let address = listening.address.to_string();
    for host in [address.as_str(), "localhost", "[::1]:80"] {
        let answer = listening.get(&timeline(), &[("Host", host)]).await;
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[tokio::test]
async fn shutdown_lets_an_answer_finish() {
    let captures = Captures::new().await;
    let content = vec![7; 30_000_000];
    captures.put("large", "large.bin", Output::Timeline, &content).await;
    let listening = Listening::plain(&captures.service(Access::LoopbackOnly));
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    let request = format!(
        "GET {}/large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n",
        artifacts_path("team", "large")
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 1];
    stream.read_exact(&mut first).await.unwrap();
    listening.shutdown.cancel();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() > content.len());
    let refused = TcpStream::connect(listening.address).await;
    assert!(refused.is_err(), "it no longer listens");
}

fn certificate() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.path().join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(directory.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    directory
}

#[tokio::test]
async fn tls_serves_the_certificate_of_its_directory() {
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

    let captures = Captures::new().await;
    let service = captures.service(Access::LoopbackOnly);
    let directory = certificate();
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::bind_tls(&service, address, directory.path(), ServerLimits::default())
        .await
        .unwrap();
    let listening = Listening::run(server);

    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(directory.path().join("tls.crt")).unwrap())
        .unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let plain = TcpStream::connect(listening.address).await.unwrap();
    let mut stream = connector
        .connect(ServerName::try_from("localhost").unwrap(), plain)
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        timeline()
    );
    assert_eq!(exchange(&mut stream, request.as_bytes()).await.text(), TIMELINE);
    assert!(
        listening.get("/healthz", &[]).await.status != 200,
        "plain HTTP is not spoken"
    );

    let empty = tempfile::tempdir().unwrap();
    let absent = Server::bind_tls(&service, address, empty.path(), ServerLimits::default()).await;
    assert!(matches!(absent.unwrap_err(), ServeError::Read { .. }));
}
