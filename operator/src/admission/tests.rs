#![expect(
    clippy::needless_pass_by_value,
    reason = "`json!` values read better given than lent"
)]

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use flopwatch_api::REQUESTED_BY_ANNOTATION;
use flopwatch_api::preparation::PREPARE_LABEL;
use flopwatch_api::schedule::TRIGGER_ANNOTATION;
use flopwatch_test_harness::ApiServer;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

fn session(annotations: Value) -> Value {
    json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
        "metadata": {"name": "s", "annotations": annotations}, "spec": {"not": "valid, and not ours to judge"}
    })
}

fn reviewer(server: &ApiServer) -> Arc<Reviewer> {
    let metrics = Metrics::new().unwrap();
    Arc::new(Reviewer {
        client: server.client("default"),
        gateway: gateway_user("flopwatch"),
        prepare: prepare::tests::options(),
        delivering: Delivering::copying(),
        lookup: EntrypointLookup::new(Vec::new(), metrics.clone()),
        metrics,
    })
}

fn review(operation: &str, user: &str, object: Value, old: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "review-1", "kind": {"group": "", "version": "v1", "kind": "X"},
            "resource": {"group": "", "version": "v1", "resource": "xs"},
            "name": "x", "namespace": "team", "operation": operation, "userInfo": {"username": user},
            "object": object, "oldObject": old, "dryRun": false
        }
    })
}

async fn send(path: &str, body: String) -> (StatusCode, String) {
    let server = ApiServer::new();
    let request = Request::post(path).body(Body::from(body)).unwrap();
    let response = router(reviewer(&server)).oneshot(request).await.unwrap();
    assert_eq!(server.calls(), [], "a review calls no API server");
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// The object as the API server would store it.
async fn admit(path: &str, review: Value) -> (Value, Value) {
    let mut object = review["request"]["object"].clone();
    let (status, body) = send(path, review.to_string()).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        json!([answer["response"]["uid"], answer["response"]["allowed"]]),
        json!(["review-1", true])
    );
    if let Some(patch) = answer["response"].get("patch") {
        // JSON's form of bytes; the API server reads it as it reads base64.
        let bytes: Vec<u8> = serde_json::from_value(patch.clone()).unwrap();
        let operations: json_patch::Patch = serde_json::from_slice(&bytes).unwrap();
        json_patch::patch(&mut object, &operations).unwrap();
        assert_eq!(answer["response"]["patchType"], "JSONPatch");
    }
    (object, answer["response"].clone())
}

#[tokio::test]
async fn a_pod_that_says_of_itself_that_it_was_prepared_is_refused() {
    let pod = |annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "labels": {PREPARE_LABEL: "nsys"}, "annotations": annotations},
            "spec": {"containers": [{"name": "main", "image": "i", "command": ["x"]}]}
        })
    };
    let allowed = async |operation: &str, annotations: Value| {
        let body = review(operation, "someone", pod(annotations), Value::Null).to_string();
        let (status, answer) = send("/guard-pods", body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        (answer["response"]["allowed"] == true, answer.to_string())
    };
    for key in [
        "flopwatch.dev/prepared",
        "flopwatch.dev/prepared-version",
        "flopwatch.dev/prepared-room",
    ] {
        let (admitted, answer) = allowed("CREATE", json!({key: "main"})).await;
        assert!(
            !admitted && answer.contains(key) && answer.contains(PREPARE_LABEL),
            "{answer}"
        );
    }
    let (admitted, answer) = allowed("CREATE", json!({"flopwatch.dev/prepare-containers": "main", "a": "b"})).await;
    assert!(admitted, "{answer}");
    let (admitted, answer) = allowed("UPDATE", json!({"flopwatch.dev/prepared": "main"})).await;
    assert!(admitted, "changes are the policy's to refuse: {answer}");
    let (status, _) = send("/guard-pods", "{}".into()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn what_is_no_review_is_a_bad_request_that_says_so() {
    for body in [
        "",
        "{",
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#,
        r#"{"request":{}}"#,
    ] {
        for path in ["/mutate-pods", "/mutate-sessions"] {
            let (status, message) = send(path, body.to_owned()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path} {body}");
            assert!(message.contains("AdmissionReview"), "{message}");
        }
    }
}

#[tokio::test]
async fn an_opted_in_pod_is_prepared_and_an_unprepared_container_is_warned_about() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "train-", "labels": {PREPARE_LABEL: "nsys"}},
        "spec": {"containers": [{"name": "a", "image": "a", "command": ["/a"], "futureField": {"kept": true}}, {"name": "b", "image": "b"}]}
    });
    let (stored, response) = admit("/mutate-pods", review("CREATE", "ada", pod.clone(), Value::Null)).await;
    assert_eq!(
        stored["spec"]["containers"][0]["command"][0],
        "/flopwatch/tools/launcher"
    );
    assert_eq!(
        stored["spec"]["containers"][0]["futureField"]["kept"], true,
        "fields that we do not know stay"
    );
    let warning = response["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("flopwatch: container b is not prepared: the container has no command"),
        "{warning}"
    );

    let (stored, _) = admit("/mutate-pods", review("UPDATE", "ada", pod.clone(), pod.clone())).await;
    assert_eq!(stored, pod, "only a new pod is prepared");
}

#[tokio::test]
async fn a_session_says_who_created_it_whatever_its_creator_and_others_write() {
    let forged = session(json!({REQUESTED_BY_ANNOTATION: "root"}));
    let (stored, _) = admit("/mutate-sessions", review("CREATE", "ada", forged.clone(), Value::Null)).await;
    assert_eq!(stored["metadata"]["annotations"][REQUESTED_BY_ANNOTATION], "ada");
    let (updated, _) = admit("/mutate-sessions", review("UPDATE", "bob", forged, stored)).await;
    assert_eq!(updated["metadata"]["annotations"][REQUESTED_BY_ANNOTATION], "ada");
}

#[tokio::test]
async fn the_session_of_an_alert_says_who_told_of_it_and_nobody_but_the_gateway_says_so() {
    let gateway = "system:serviceaccount:flopwatch:flopwatch-gateway";
    let trigger = "Slow/0badcafe0badcafe";
    let of_alert = session(json!({REQUESTED_BY_ANNOTATION: "alertmanager", TRIGGER_ANNOTATION: trigger}));
    for (user, annotations, expected) in [
        (gateway, of_alert.clone(), "alertmanager"),
        ("ada", of_alert, "ada"),
        (gateway, session(json!({REQUESTED_BY_ANNOTATION: "root"})), gateway),
        (gateway, session(json!({TRIGGER_ANNOTATION: trigger})), gateway),
    ] {
        let (stored, _) = admit("/mutate-sessions", review("CREATE", user, annotations, Value::Null)).await;
        assert_eq!(
            stored["metadata"]["annotations"][REQUESTED_BY_ANNOTATION], expected,
            "{user}"
        );
    }
}

mod crate_tests {
    use k8s_openapi::ByteString;
    use k8s_openapi::api::core::v1::Secret;
    use rustls::pki_types::ServerName;
    use rustls::pki_types::pem::PemObject as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::certificates::{Decision, Leaf, Material, Names, carry_out};

    fn material(current: &Material, decision: &Decision) -> Material {
        let names = Names {
            webhook: vec!["admission.test".to_owned()],
            ..Names::default()
        };
        carry_out(decision, current, &names, jiff::Timestamp::now()).unwrap()
    }

    fn config(leaf: &Leaf) -> Arc<rustls::ServerConfig> {
        let (config, expiry) = served(leaf);
        assert!(expiry > 1.7e9);
        config
    }

    /// What the leaf is served with, and when it ends.
    fn served(leaf: &Leaf) -> (Arc<rustls::ServerConfig>, f64) {
        let data = leaf.to_secret().into_iter();
        let secret = Secret {
            data: Some(data.map(|(key, value)| (key, ByteString(value))).collect()),
            ..Secret::default()
        };
        let (config, expiry) = crate::serve::server_config(&secret).unwrap();
        (Arc::new(config), expiry)
    }

    #[test]
    fn the_end_of_a_certificate_beyond_2038_is_told() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let (names, now) = (Names::default(), jiff::Timestamp::from_second(2_500_000_000).unwrap());
        let decision = crate::certificates::decide(&Material::default(), &names, now);
        let made = carry_out(&decision, &Material::default(), &names, now).unwrap();
        let (_, expiry) = served(made.controller.as_ref().unwrap());
        assert!(expiry > 2.5e9, "{expiry}");
    }

    /// Asks over TLS as the API server does and answers with the certificate that was shown.
    async fn shown(address: SocketAddr, leaf: &Leaf) -> Option<Vec<u8>> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in rustls::pki_types::CertificateDer::pem_slice_iter(leaf.bundle.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let config = rustls::ClientConfig::builder().with_root_certificates(roots);
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config.with_no_client_auth()));
        let stream = tokio::net::TcpStream::connect(address).await.ok()?;
        let name = ServerName::try_from("admission.test").unwrap();
        let mut stream = connector.connect(name, stream).await.ok()?;
        let request = b"POST /mutate-pods HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.ok();
        let answer = String::from_utf8_lossy(&bytes);
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        stream.get_ref().1.peer_certificates().map(|chain| chain[0].to_vec())
    }

    #[tokio::test]
    async fn readiness_waits_for_a_certificate_and_a_new_one_is_served_without_a_restart() {
        drop(rustls::crypto::ring::default_provider().install_default());
        let decision = |all: bool| Decision {
            authority: all,
            webhook: true,
            gateway: false,
            controller: all,
        };
        let first = material(&Material::default(), &decision(true));
        let second = material(&first, &decision(false));
        let (first, second) = (first.webhook.unwrap(), second.webhook.unwrap());
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let (sender, receiver) = watch::channel(None);
        let (readiness, stop) = (Readiness::default(), CancellationToken::new());
        let server = tokio::spawn(serve(
            address,
            router(reviewer(&ApiServer::new())),
            receiver,
            Limit::new(8, Duration::from_secs(30), Metrics::new().unwrap().refused_connections),
            readiness.clone(),
            stop.clone(),
        ));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!readiness.get());

        sender.send_replace(Some(config(&first)));
        let before = wait(async || shown(address, &first).await).await;
        assert!(readiness.get());
        sender.send_replace(Some(config(&second)));
        let after = wait(async || shown(address, &second).await.filter(|now| *now != before)).await;
        assert_ne!(before, after);

        stop.cancel();
        server.await.unwrap().unwrap();
        assert!(!readiness.get());
    }

    async fn wait<T>(look: impl AsyncFn() -> Option<T>) -> T {
        for _ in 0..200 {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("nothing within four seconds");
    }
}
