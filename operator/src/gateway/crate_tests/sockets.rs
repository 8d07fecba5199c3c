//! Progress by Socket.IO: as bytes on a socket, and with the real client of the field.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rig::{LISTENERS, Rig, VISITORS};

/// A client that polls, of bare requests.
struct Poller<'a> {
    rig: &'a Rig,
    sid: String,
}

impl<'a> Poller<'a> {
    /// Opens a connection and shows `auth`.
    async fn connect(rig: &'a Rig, auth: &Value) -> Self {
        let mut poller = Self {
            rig,
            sid: String::new(),
        };
        let opened = poller.ask("GET", "").await;
        let opened: Value = serde_json::from_str(opened.strip_prefix('0').unwrap()).unwrap();
        poller.sid = format!("&sid={}", opened["sid"].as_str().unwrap());
        assert_eq!(poller.ask("POST", &format!("40{auth}")).await, "ok");
        poller
    }

    async fn ask(&self, method: &str, body: &str) -> String {
        let request = format!(
            "{method} /socket.io/?EIO=4&transport=polling{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: text/plain;charset=UTF-8\r\nContent-Length: {}\r\n\r\n{body}",
            self.sid,
            body.len()
        );
        let answer = self.rig.send(request.as_bytes()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        String::from_utf8(answer.body).unwrap()
    }

    /// The next packets that say something.
    async fn poll(&self) -> Vec<String> {
        loop {
            let packets = self.ask("GET", "").await;
            // A ping is the server's own.
            let text = packets.split('\x1e').filter(|packet| *packet != "2");
            let text: Vec<String> = text.map(str::to_owned).collect();
            if !text.is_empty() {
                return text;
            }
        }
    }

    /// Packets until one of an event of that name, which is the last.
    async fn until(&self, event: &str) -> Vec<String> {
        let mut heard: Vec<String> = Vec::new();
        while !heard
            .last()
            .is_some_and(|packet| packet.starts_with(&format!("42[\"{event}\"")))
        {
            heard.extend(self.poll().await);
            assert!(heard.len() < 20, "{heard:?}");
        }
        heard
    }
}

#[tokio::test]
async fn a_client_hears_of_the_sessions_that_it_may_list() {
    let rig = Rig::new().await;
    rig.session("team", "train", "0badcafe", 0, "Unknown");
    rig.session("other", "train", "00000001", 0, "Unknown");
    let client = Poller::connect(&rig, &json!({"token": "reader", "namespace": "team"})).await;
    let heard = client.until("profiling_progress").await;
    assert!(heard[0].starts_with("40{\"sid\""), "{heard:?}");
    let expected = [
        r#"42["profiling_started",{"session_id":"0badcafe","solver":"cg","mesh":null,"mode":"nsys"}]"#,
        r#"42["profiling_progress",{"session_id":"0badcafe","status":"pending","stage":"Done","percent":100,"message":""}]"#,
    ];
    assert_eq!(heard[1..], expected);
    rig.session("team", "train", "0badcafe", 0, "True");
    assert_eq!(
        client.until("profiling_complete").await,
        [r#"42["profiling_complete",{"session_id":"0badcafe","status":"completed"}]"#]
    );
}

#[tokio::test]
async fn whoever_may_not_hear_is_told_why_and_hears_nothing() {
    let rig = Rig::new().await;
    for (auth, reason) in [
        (json!({}), "Unauthenticated"),
        (json!("reader"), "Unauthenticated"),
        (json!({"token": 7}), "Unauthenticated"),
        (json!({"token": "nobody"}), "Unauthenticated"),
        (
            json!({"token": rig.cluster.token_of_gateway("flopwatch-agent/node")}),
            "Unauthenticated",
        ),
        (json!({"token": "reader"}), "Forbidden"),
        (json!({"token": "reader", "namespace": "other"}), "Forbidden"),
        (json!({"token": "stranger", "session_id": "0badcafe"}), "Forbidden"),
        (json!({"token": "admin", "session_id": "00000009"}), "NotFound"),
        (json!({"token": "reader", "namespace": "a".repeat(64)}), "BadRequest"),
    ] {
        let client = Poller::connect(&rig, &auth).await;
        let heard = client.poll().await;
        let refusal: Value = serde_json::from_str(heard[0].strip_prefix("44").unwrap()).unwrap();
        let message = refusal["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{reason}: ")), "{auth}: {heard:?}");
        assert_eq!(heard.len(), 1, "{auth}: {heard:?}");
    }
}

#[tokio::test]
async fn there_is_room_for_so_many_and_a_place_is_given_free() {
    let rig = Rig::new().await;
    rig.session("team", "train", "0badcafe", 0, "Unknown");
    let auth = json!({"token": "reader", "session_id": "0badcafe"});
    let first = Poller::connect(&rig, &auth).await;
    first.until("profiling_progress").await;
    let second = Poller::connect(&rig, &auth).await;
    second.until("profiling_progress").await;
    let third = Poller::connect(&rig, &auth).await;
    assert!(third.poll().await[0].contains("Busy: "));
    // The place is the connection's: who leaves the sessions and stays connected keeps it.
    assert_eq!(first.ask("POST", "41").await, "ok");
    assert_eq!(first.ask("POST", "1").await, "ok");
    for _ in 0..50 {
        let again = Poller::connect(&rig, &auth).await;
        if !again.poll().await[0].contains("Busy: ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no place was given free within 1 s");
}

/// Asks for a connection as a client that polls does, with these header lines; the status and what
/// is said.
async fn handshake(rig: &Rig, headers: &str) -> (u16, String) {
    let request = format!(
        "GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
    );
    let answer = rig.send(request.as_bytes()).await;
    (answer.status, String::from_utf8(answer.body).unwrap())
}

#[tokio::test]
async fn a_handshake_is_counted_before_it_shows_a_token_and_ends_without_one() {
    let rig = Rig::new().await;
    for _ in 0..VISITORS {
        assert_eq!(handshake(&rig, "").await.0, 200);
    }
    for headers in [
        "",
        "Authorization: Bearer nobody\r\n",
        "Authorization: Basic cmVhZGVyOng=\r\n",
    ] {
        let (status, text) = handshake(&rig, headers).await;
        assert_eq!(status, 503, "{headers}");
        assert!(text.contains("\"reason\":\"Busy\""), "{text}");
    }
    // Whoever shows a token at once needs no place of a visitor, and has so many of their own.
    for _ in 0..LISTENERS {
        assert_eq!(handshake(&rig, "Authorization: Bearer reader\r\n").await.0, 200);
    }
    assert_eq!(handshake(&rig, "Authorization: Bearer reader\r\n").await.0, 503);
    // Without a token a connection lasts 10 s.
    let end = Instant::now() + Duration::from_secs(30);
    while handshake(&rig, "").await.0 != 200 {
        assert!(Instant::now() < end, "no place was given free");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The real client, at work.
struct Client {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn line(&mut self) -> String {
        self.lines.next().expect("a line").unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `None`, said aloud, where there is no Node or no client.
fn client(rig: &Rig, token: &str, transport: &str) -> Option<Client> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web");
    let Some(node) = std::env::var_os("FLOPWATCH_NODE") else {
        println!("skipped: FLOPWATCH_NODE names no Node for the client of Socket.IO");
        return None;
    };
    if !web.join("node_modules/socket.io-client").exists() {
        println!("skipped: web/node_modules has no socket.io-client (cargo xtask web)");
        return None;
    }
    let mut child = Command::new(node)
        .arg(web.join("tests/progress.mjs"))
        .args([&format!("http://{}", rig.address), token, transport])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Some(Client { child, lines })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fields_own_client_hears_the_names_and_keys_of_the_design() {
    for transport in ["websocket", "polling"] {
        let rig = Rig::new().await;
        rig.session("team", "train", "0badcafe", 0, "Unknown");
        let Some(mut client) = client(&rig, "admin", transport) else {
            return;
        };
        let mut line = || tokio::task::block_in_place(|| client.line());
        assert_eq!(line(), "connected", "{transport}");
        let event = |line: String| -> Value { serde_json::from_str(&line).unwrap() };
        let started = json!({"session_id": "0badcafe", "solver": "cg", "mesh": null, "mode": "nsys"});
        assert_eq!(event(line()), json!(["profiling_started", started]));
        assert_eq!(event(line())[0], "profiling_progress");
        rig.session("team", "failing", "00000001", 1, "False");
        assert_eq!(event(line())[0], "profiling_started");
        let error = json!({"session_id": "00000001", "error": "Succeeded: well"});
        assert_eq!(event(line()), json!(["profiling_error", error]));
        rig.session("team", "train", "0badcafe", 0, "True");
        let complete = json!({"session_id": "0badcafe", "status": "completed"});
        assert_eq!(event(line()), json!(["profiling_complete", complete]));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fields_own_client_is_told_why_it_is_refused() {
    let rig = Rig::new().await;
    let Some(mut client) = client(&rig, "stranger", "websocket") else {
        return;
    };
    let line = tokio::task::block_in_place(|| client.line());
    assert!(line.starts_with("refused: Forbidden: "), "{line}");
}
