//! Against a registry on loopback that speaks what a look-up needs of the distribution API.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use flopwatch_test_harness::ApiServer;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::*;

const CONFIG: &str = r#"{"architecture":"amd64","os":"linux","config":{"Entrypoint":["/bin/tini","--"],"Cmd":["train.sh"]},"rootfs":{"type":"layers","diff_ids":[]}}"#;

#[derive(Clone, Default)]
struct Registry {
    requests: Arc<AtomicUsize>,
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

fn manifest() -> Vec<u8> {
    let config = json!({"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(CONFIG.as_bytes()), "size": CONFIG.len()});
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    serde_json::to_vec(&json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": []})).unwrap()
}

fn index() -> Vec<u8> {
    let manifest = manifest();
    let entry = |arch: &str, digest: String| {
        json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": manifest.len(),
            "platform": {"architecture": arch, "os": "linux"}
        })
    };
    let manifests = [entry("arm64", digest(b"other")), entry("amd64", digest(&manifest))];
    serde_json::to_vec(
        &json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}),
    )
    .unwrap()
}

/// `slow` never answers, `private` wants credentials, `multi` is an index, `app` an image.
async fn manifests(
    State(registry): State<Registry>,
    Path((name, _)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    registry.requests.fetch_add(1, Ordering::SeqCst);
    let reference_is_index = name == "multi";
    match name.as_str() {
        "slow" => {
            tokio::time::sleep(Duration::from_secs(30)).await;
            StatusCode::OK.into_response()
        }
        "private" if !allowed(&headers) => {
            let body = json!({"errors": [{"code": "UNAUTHORIZED", "message": "no"}]}).to_string();
            (
                StatusCode::UNAUTHORIZED,
                [(header::WWW_AUTHENTICATE, "Basic realm=\"test\"")],
                body,
            )
                .into_response()
        }
        "app" | "private" => (
            [(header::CONTENT_TYPE, "application/vnd.oci.image.manifest.v1+json")],
            manifest(),
        )
            .into_response(),
        _ if reference_is_index => (
            [(header::CONTENT_TYPE, "application/vnd.oci.image.index.v1+json")],
            index(),
        )
            .into_response(),
        _ => {
            let body = json!({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "no such image"}]}).to_string();
            (StatusCode::NOT_FOUND, body).into_response()
        }
    }
}

async fn manifest_of_index(
    state: State<Registry>,
    Path((name, reference)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    if name == "multi" && reference == digest(&manifest()) {
        return (
            [(header::CONTENT_TYPE, "application/vnd.oci.image.manifest.v1+json")],
            manifest(),
        )
            .into_response();
    }
    manifests(state, Path((name, reference)), headers).await
}

fn allowed(headers: &HeaderMap) -> bool {
    let expected = format!(
        "Basic {}",
        base64::engine::general_purpose::STANDARD.encode("ada:secret")
    );
    headers
        .get(header::AUTHORIZATION)
        .is_some_and(|value| value.as_bytes() == expected.as_bytes())
}

async fn registry() -> (String, Registry) {
    drop(rustls::crypto::ring::default_provider().install_default());
    let registry = Registry::default();
    let router = Router::new()
        .route(
            "/v2/",
            get(|| async {
                (
                    StatusCode::UNAUTHORIZED,
                    [(header::WWW_AUTHENTICATE, "Basic realm=\"test\"")],
                )
            }),
        )
        .route("/v2/{name}/manifests/{reference}", get(manifest_of_index))
        .route("/v2/{name}/blobs/{digest}", get(|| async { CONFIG }))
        .with_state(registry.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (host, registry)
}

fn lookup(host: &str) -> EntrypointLookup {
    EntrypointLookup::new(vec![host.to_owned()], Metrics::new().unwrap())
}

fn pull_secret(host: &str) -> Secret {
    let config = json!({"auths": {host: {"username": "ada", "password": "secret"}}}).to_string();
    serde_json::from_value(json!({
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64::engine::general_purpose::STANDARD.encode(config)}
    }))
    .unwrap()
}

#[tokio::test]
async fn an_image_says_what_it_runs_and_is_asked_once() {
    let (host, registry) = registry().await;
    let lookup = lookup(&host);
    let expected = ImageCommand {
        entrypoint: vec!["/bin/tini".into(), "--".into()],
        cmd: vec!["train.sh".into()],
    };
    for image in ["app:1", "multi:1", "app:1"] {
        assert_eq!(
            lookup.of_image(&format!("{host}/{image}"), &[]).await.as_ref(),
            Ok(&expected),
            "{image}"
        );
    }
    assert_eq!(
        registry.requests.load(Ordering::SeqCst),
        2,
        "the second app:1 came from what was kept"
    );
}

#[tokio::test]
async fn a_private_image_needs_the_pull_secret_every_time() {
    let (host, _registry) = registry().await;
    let lookup = lookup(&host);
    let image = format!("{host}/private:1");
    assert_eq!(lookup.of_image(&image, &[]).await, Err(LookupError::Denied));
    assert!(lookup.of_image(&image, &[pull_secret(&host)]).await.is_ok());
    assert_eq!(
        lookup.of_image(&image, &[]).await,
        Err(LookupError::Denied),
        "what was kept is not for others"
    );
}

#[tokio::test]
async fn what_cannot_be_known_is_named() {
    let (host, _registry) = registry().await;
    let lookup = lookup(&host);
    assert_eq!(
        lookup.of_image(&format!("{host}/nothing:1"), &[]).await,
        Err(LookupError::Missing)
    );
    assert_eq!(lookup.of_image("NOT AN IMAGE", &[]).await, Err(LookupError::Name));
    // A port of loopback that nobody listens on.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    assert_eq!(
        EntrypointLookup::new(vec![closed.clone()], Metrics::new().unwrap())
            .of_image(&format!("{closed}/app:1"), &[])
            .await,
        Err(LookupError::Registry)
    );
}

#[tokio::test]
async fn a_registry_that_hangs_is_given_up_within_the_deadline() {
    let (host, _registry) = registry().await;
    let client = ApiServer::new().client("default");
    let started = Instant::now();
    let needed = vec![
        ("slow".to_owned(), format!("{host}/slow:1")),
        ("quick".to_owned(), format!("{host}/app:1")),
    ];
    let mut lookup = lookup(&host);
    lookup.deadline = Duration::from_secs(8);
    let found = lookup.of_pod(&client, "team", &Pod::default(), needed).await;
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(found["slow"], Err(LookupError::Deadline));
    assert!(found["quick"].is_ok());
}

#[test]
fn an_image_without_a_configuration_runs_nothing() {
    assert_eq!(parse(br#"{"config":null}"#), Ok(ImageCommand::default()));
    assert_eq!(parse(br#"{"config":{"Entrypoint":null}}"#), Ok(ImageCommand::default()));
    assert_eq!(parse(b"<html>"), Err(LookupError::Registry));
}
