//! An object store for artifacts, from helm's values to bytes that outlive the node's own copy.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::session::ProfilingSession;
use flopwatch_bucket_rig::{ACCESS_KEY, BUCKET, S3Server, SECRET_KEY};
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually, run};
use flopwatch_system_tests::fetch::{ArtifactClient, gateway, reader_token};
use flopwatch_system_tests::node::{first_process, listen_beside};
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::pods::{sample, workload};
use flopwatch_system_tests::sessions::{capture_condition, spec, with};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::MutexGuard;

use super::{RELEASE, fleet};

const SECRET: &str = "rig-store";

#[tokio::test]
async fn artifacts_have_copies_that_serve_when_the_node_has_none() -> Result<()> {
    let Some(cluster) = Cluster::connect(Group::StoreAndNode).await? else {
        return Ok(());
    };
    let changes = RELEASE.lock().await;
    let namespace = cluster.namespace("store").await?;
    let outcome = stored(&cluster, &namespace, changes).await;
    let _changes = RELEASE.lock().await;
    // Whatever happened: who comes next finds the release as it was.
    let installed = chart::install().await;
    let removed = run("kubectl", &["-n", chart::NAMESPACE, "delete", "secret", SECRET]).await;
    outcome?;
    installed?;
    removed?;
    namespace.delete().await
}

/// A server of S3 in the network of a pod, which every part of the cluster reaches.
async fn server(namespace: &TestNamespace) -> Result<(S3Server, String)> {
    namespace.create_kept(workload("bucket", false, &["--quiet"])).await?;
    let pod = namespace.running("bucket").await?;
    let status = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
    let address = SocketAddr::new(status.context("a pod without an address")?.parse()?, 9000);
    let listener = TcpListener::from_std(listen_beside(first_process(&pod)?, address)?)?;
    Ok((S3Server::over(listener), format!("http://{address}")))
}

/// Gives the release the store, as an administrator would.
async fn install_with(endpoint: &str) -> Result<()> {
    let literals = [
        format!("--from-literal=AWS_ACCESS_KEY_ID={ACCESS_KEY}"),
        format!("--from-literal=AWS_SECRET_ACCESS_KEY={SECRET_KEY}"),
    ];
    let create = ["-n", chart::NAMESPACE, "create", "secret", "generic", SECRET];
    let literals = literals.iter().map(String::as_str);
    run("kubectl", &create.into_iter().chain(literals).collect::<Vec<_>>()).await?;
    let values = [
        format!("store.url=s3://{BUCKET}/rig"),
        format!("store.endpoint={endpoint}"),
        format!("store.secretName={SECRET}"),
    ];
    let options: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
    chart::upgrade(&chart::folder(), &options).await
}

/// The spec of a session whose artifacts are kept there.
pub(super) fn kept(storage: &str) -> Value {
    let retention = json!({ "retention": { "storage": storage } });
    with(spec("trainer", 1, "Nsys"), retention)
}

/// Waits until the copies of a session's capture are complete, or are said not to be.
async fn copies(namespace: &TestNamespace, session: &str, status: &str) -> Result<()> {
    eventually(&format!("Stored of {session} to be {status}"), || async {
        let capture = namespace.only_capture(session).await?;
        let stored = capture_condition(&capture, "Stored").with_context(|| format!("{:?}", capture.status))?;
        ensure!(stored.status == status, "{stored:?}");
        let status_of = capture.status.as_ref();
        let named = status_of.is_some_and(|status| status.store_url.is_some() && status.store_sha256.is_some());
        ensure!(named == (status == "True"), "{:?}", capture.status);
        Ok(Some(()))
    })
    .await
}

async fn stored(cluster: &Cluster, namespace: &TestNamespace, changes: MutexGuard<'_, ()>) -> Result<()> {
    let (server, endpoint) = server(namespace).await?;
    install_with(&endpoint).await?;
    drop(changes);
    namespace.create_kept(sample("trainer")).await?;
    namespace.grafted("trainer").await?;

    namespace.create_session("durable", kept("Durable")).await?;
    namespace.succeeded("durable").await?;
    copies(namespace, "durable", "True").await?;
    ensure!(!server.objects().is_empty(), "the bucket is empty");

    // While the store fails, a capture is served from its node all the same.
    server.fail_after(0);
    namespace.create_session("copied", kept("Replicated")).await?;
    namespace.succeeded("copied").await?;
    copies(namespace, "copied", "False").await?;
    server.recover();
    copies(namespace, "copied", "True").await?;

    let user = reader_token(namespace, "user", "flopwatch-user").await?;
    survives_its_node(cluster, namespace, &user, &server).await?;
    fleet::are_kept_and_told(namespace, &server, &user).await?;

    for session in ["durable", "copied"] {
        namespace.delete_session(session).await?;
    }
    eventually("the bucket to be empty", || async {
        let keys = server.objects().into_iter().map(|(key, _)| key);
        let (rows, others): (Vec<_>, Vec<_>) = keys.partition(|key| key.contains("/fleet/"));
        // A test that failed before left its captures, which are copied too.
        let own = format!("/captures/{}/", namespace.name);
        let left: Vec<_> = others.iter().filter(|key| key.contains(&own)).collect();
        ensure!(left.is_empty(), "{left:?}");
        ensure!(!rows.is_empty(), "rows of the fleet outlive their sessions");
        Ok(Some(()))
    })
    .await
}

/// What the gateway serves stays the same when the node has lost its copy. Forms of copies need the
/// names of agents, and the local cluster has no DNS: crate tests have them.
async fn survives_its_node(cluster: &Cluster, namespace: &TestNamespace, user: &str, server: &S3Server) -> Result<()> {
    let session = namespace.api::<ProfilingSession>().get("durable").await?;
    let id = session.status.and_then(|status| status.id);
    let id = id.context("a session without an id")?;
    let gateway = gateway(&cluster.client).await?;
    let client = ArtifactClient::of_gateway(&cluster.client).await?;
    let timeline = format!("{gateway}/timeline/{id}.h5");
    let fetch = async |arguments: &[&str]| client.request(&timeline, Some(user), arguments).await;
    let first = fetch(&[]).await?;
    ensure!(first.status == 200 && first.body.starts_with(b"\x89HDF"), "{first:?}");

    let trainer = namespace.api::<Pod>().get("trainer").await?;
    let agent = Running::agent_of(&cluster.client, &trainer).await?;
    let capture = namespace.only_capture("durable").await?;
    let manifest = agent.manifest(&capture);
    std::fs::remove_file(&manifest).with_context(|| manifest.display().to_string())?;
    let uid = capture.metadata.uid.context("a capture without a UID")?;

    // Whoever has a node's credential writes a manifest that holds together in the place of the
    // capture's own.
    let stored = server.object(&format!("/{uid}/manifest.json"));
    let own = std::fs::read(&stored)?;
    std::fs::write(&stored, [own.as_slice(), b" "].concat())?;
    let forged = fetch(&[]).await?;
    ensure!(forged.status == 502, "{forged:?}");
    std::fs::write(&stored, &own)?;

    let again = fetch(&[]).await?;
    ensure!(again.status == 200 && again.body == first.body, "{:?}", again.headers);
    ensure!(again.header("etag") == first.header("etag"), "{:?}", again.headers);
    let part = fetch(&["--range", "8-99"]).await?;
    ensure!(
        part.status == 206 && first.body.get(8..100) == Some(&part.body[..]),
        "{part:?}"
    );
    Ok(())
}
