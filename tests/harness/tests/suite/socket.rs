//! What a client on a socket sees of the server.

use std::time::Duration;

use flopwatch_test_harness::{ApiServer, Identity, Right};
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// A client that shows this token, or none.
async fn client(server: &ApiServer, token: Option<&str>) -> Client {
    let mut config = Config::new(format!("http://{}", server.listen().await).parse().unwrap());
    config.auth_info = serde_json::from_value(json!({"token": token})).unwrap();
    Client::try_from(config).unwrap()
}

/// A client of `ada`, who may do everything.
async fn client_of_ada(server: &ApiServer) -> Client {
    server.add_token("of-ada", Identity::new("ada"));
    server.allow("ada", Right::resource("*", "*", "*"));
    client(server, Some("of-ada")).await
}

fn object(kind: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "team"}})
}

fn status(error: kube::Error) -> (u16, String, String) {
    match error {
        kube::Error::Api(status) => {
            let group = status.details.as_ref().map(|details| details.group.clone());
            (status.code, status.message.clone(), group.unwrap_or_default())
        }
        other => unreachable!("{other}"),
    }
}

#[tokio::test]
async fn what_happens_is_told_to_a_client_that_watches_by_address() {
    let server = ApiServer::new();
    let api: Api<ConfigMap> = Api::namespaced(client_of_ada(&server).await, "team");
    let listed = api.list(&ListParams::default()).await.unwrap();
    let version = listed.metadata.resource_version.unwrap();
    let events = api.watch(&WatchParams::default(), &version).await.unwrap();
    let mut events = std::pin::pin!(events);
    server.put(&object("ConfigMap"));
    let event = timeout(Duration::from_secs(5), events.try_next()).await;
    assert!(matches!(event, Ok(Ok(Some(WatchEvent::Added(_))))), "{event:?}");
}

#[tokio::test]
async fn who_shows_no_token_is_nobody_or_anonymous() {
    let server = ApiServer::new();
    server.put(&object("ConfigMap"));
    let api: Api<ConfigMap> = Api::namespaced(client(&server, None).await, "team");
    assert_eq!(status(api.get("a").await.unwrap_err()).0, 401);
    server.admit_anonymous();
    assert_eq!(status(api.get("a").await.unwrap_err()).0, 403);
    server.allow("system:anonymous", Right::resource("get", "", "configmaps"));
    api.get("a").await.unwrap();
}

#[tokio::test]
async fn a_group_that_was_removed_is_a_path_that_is_not_there() {
    let server = ApiServer::new();
    let client = client_of_ada(&server).await;
    let resource = kube::api::ApiResource::erase::<k8s_openapi::api::apps::v1::Deployment>(&());
    let api: Api<kube::api::DynamicObject> = Api::namespaced_with(client.clone(), "team", &resource);
    let missing = (404, "deployments.apps \"a\" not found".to_owned(), "apps".to_owned());
    assert_eq!(status(api.get("a").await.unwrap_err()), missing);
    server.remove_group("apps");
    let absent = (404, "404 page not found".to_owned(), String::new());
    assert_eq!(status(api.get("a").await.unwrap_err()), absent);
    assert_eq!(status(api.list(&ListParams::default()).await.unwrap_err()), absent);
    let pods: Api<Pod> = Api::namespaced(client, "team");
    assert!(pods.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_port_forward_leads_to_a_port_of_this_machine() {
    let server = ApiServer::new();
    server.put(&object("Pod"));
    let pods: Api<Pod> = Api::namespaced(client_of_ada(&server).await, "team");
    pods.portforward("a", &[80]).await.err().expect("it leads nowhere yet");

    let pod = TcpListener::bind("127.0.0.1:0").await.unwrap();
    server.forward_to(pod.local_addr().unwrap().port());
    let mut forward = pods.portforward("a", &[80]).await.unwrap();
    let mut stream = forward.take_stream(80).unwrap();
    let (mut connection, _) = pod.accept().await.unwrap();
    stream.write_all(b"there").await.unwrap();
    let mut heard = [0; 5];
    connection.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"there");
    connection.write_all(b"back").await.unwrap();
    drop(connection);
    let mut heard = Vec::new();
    timeout(Duration::from_secs(5), stream.read_to_end(&mut heard))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(heard, b"back");
}
