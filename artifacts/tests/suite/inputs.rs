//! Timelines of other nodes' captures that the gateway hands over, over real HTTP: each way in
//! which they could be had or forged.

use crate::converting::{Converting, no_raw_capture};
use crate::rig::{Answer, Captures, Listening, TIMELINE, api_server, options, sessions};
use flopwatch_api::artifact::analysis_path;
use flopwatch_artifacts::{Access, ConversionLimits, StoreOptions};
use flopwatch_http::ReviewerOptions;
use flopwatch_test_harness::Right;
use tokio::sync::Semaphore;

const CONTENT: &str = "the timeline of another node";
/// Its SHA-256.
const SHA256: &str = "920376c57f1a6564771d64c8767db4820c50f5c3a36ec200d752231964ff9dc9";

struct Rig {
    captures: Captures,
    listening: Listening,
}

impl Rig {
    async fn new() -> Self {
        let small = StoreOptions {
            derived_bytes: 200,
            ..options()
        };
        let captures = Captures::new().await.within("small", small).await;
        let api = api_server(
            &["gateway", "reader"],
            &[
                ("gateway", Right::resource("get", "flopwatch.dev", "profilingsessions")),
                ("gateway", Right::path("put", "/v1/inputs")),
                ("reader", sessions()),
            ],
        );
        let access = captures.kubernetes(&api, ReviewerOptions::default());
        // What it makes is the timelines one behind the other.
        let rig = Converting::new(
            captures,
            Semaphore::MAX_PERMITS,
            |_request, texts| Ok(texts.join("+")),
            no_raw_capture,
        );
        let listening = rig.listen(access, ConversionLimits::default());
        Self {
            captures: rig.captures,
            listening,
        }
    }

    /// Hands a content over as `user`, as the capture `far/away` of that UID and of the session
    /// `far/session`.
    async fn put(&self, user: &str, uid: &str, bytes: usize, sha256: &str, content: &str) -> Answer {
        let request = format!(
            "PUT /v1/inputs/far/away/{uid}?session=session&session_id=01234567&bytes={bytes}&sha256={sha256} HTTP/1.1\r\n\
             Connection: close\r\nHost: localhost\r\nAuthorization: Bearer {user}\r\nContent-Length: {}\r\n\r\n{content}",
            content.len()
        );
        self.listening.send(request.as_bytes()).await
    }

    async fn compare(&self, user: &str, uid: &str) -> Answer {
        let path = analysis_path("team", "train", "kernel-changes");
        let path = format!("{path}?with=far/away/{uid}");
        self.listening.get_as(user, &path).await
    }

    fn inputs(&self, result: &str) -> u64 {
        let series = format!("flopwatch_artifact_inputs_total{{result=\"{result}\"}}");
        self.captures.metric(&series)
    }

    /// Files that are there while nothing is under way.
    fn left(&self) -> usize {
        let incoming = self.captures.root.path().join("small/incoming");
        std::fs::read_dir(incoming).map_or(0, Iterator::count)
    }
}

#[tokio::test]
async fn a_capture_that_is_handed_over_is_compared_by_those_alone_who_may_read_its_session() {
    let rig = Rig::new().await;
    let missing = rig.compare("gateway", "uid").await;
    assert_eq!(missing.told(), "409 MissingInputs");
    assert_eq!(missing.json()["missing"], serde_json::json!(["uid"]));
    let put = rig.put("gateway", "uid", CONTENT.len(), SHA256, CONTENT).await;
    assert_eq!(put.status, 201, "{}", put.text());
    assert_eq!((rig.inputs("taken"), rig.left()), (1, 0), "no path leads to it");
    let answer = rig.compare("gateway", "uid").await;
    assert_eq!((answer.status, answer.text()), (200, format!("{TIMELINE}+{CONTENT}")));
    // Who may read the first session alone hears the same of a capture that is there and of one
    // that is not.
    for uid in ["uid", "another"] {
        let answer = rig.compare("reader", uid).await;
        assert_eq!(answer.told(), "403 Forbidden", "{uid}");
    }
    let another = rig.compare("gateway", "another").await.status;
    assert_eq!(another, 409, "another capture of that name");
}

#[tokio::test]
async fn what_is_not_what_it_is_called_is_not_taken() {
    let rig = Rig::new().await;
    let length = CONTENT.len();
    let other = "0".repeat(64);
    for (bytes, sha256, content, status, reason) in [
        (length, other.as_str(), CONTENT, 422, "Mismatch"),
        (length, SHA256, "the timeline of another nodE", 422, "Mismatch"),
        (length - 1, SHA256, CONTENT, 422, "Mismatch"),
        (length + 1, SHA256, CONTENT, 422, "Mismatch"),
        (201, SHA256, CONTENT, 413, "TooLarge"),
        (length, "x", CONTENT, 400, "BadQuery"),
    ] {
        let answer = rig.put("gateway", "uid", bytes, sha256, content).await;
        assert_eq!(answer.told(), format!("{status} {reason}"), "{}", answer.text());
        assert_eq!(rig.compare("gateway", "uid").await.status, 409);
    }
    assert_eq!((rig.inputs("taken"), rig.inputs("refused"), rig.left()), (0, 6, 0));
}

#[tokio::test]
async fn what_all_may_take_holds_for_several() {
    let rig = Rig::new().await;
    for at in 0..7 {
        let uid = format!("uid-{at}");
        let answer = rig.put("gateway", &uid, CONTENT.len(), SHA256, CONTENT).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let answer = rig.put("gateway", "uid-7", CONTENT.len(), SHA256, CONTENT).await;
    assert_eq!(answer.told(), "413 TooLarge");
}

#[tokio::test]
async fn nobody_but_who_has_the_right_hands_anything_over() {
    let rig = Rig::new().await;
    for (user, status) in [("reader", 403), ("nobody", 401)] {
        let answer = rig.put(user, "uid", CONTENT.len(), SHA256, CONTENT).await;
        assert_eq!(answer.status, status, "{user}");
    }
    let open = Listening::plain(&rig.captures.service(Access::LoopbackOnly));
    let request = "PUT /v1/inputs/far/away/uid?session=s&session_id=i&bytes=0&sha256=x HTTP/1.1\r\nConnection: close\r\n\
                   Host: localhost\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(open.send(request.as_bytes()).await.status, 405);
    assert_eq!(rig.inputs("taken"), 0);
}

#[tokio::test]
async fn what_breaks_off_is_not_taken_and_the_reason_says_so() {
    let rig = Rig::new().await;
    let request = format!(
        "PUT /v1/inputs/far/away/uid?session=session&session_id=01234567&bytes={}&sha256={SHA256} HTTP/1.1\r\n\
         Connection: close\r\nHost: localhost\r\nAuthorization: Bearer gateway\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nthe\r\nno length\r\n",
        CONTENT.len()
    );
    let answer = rig.listening.send(request.as_bytes()).await;
    assert_eq!(answer.told(), "400 Broken", "{}", answer.text());
    assert_eq!((rig.inputs("taken"), rig.inputs("refused"), rig.left()), (0, 1, 0));
    assert_eq!(rig.compare("gateway", "uid").await.status, 409);
}
