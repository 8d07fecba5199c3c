//! Who may read an artifact.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Group, TestNamespace, client_with, eventually, kubectl};
use flopwatch_system_tests::fetch::{ArtifactClient, reader_token, stranger_token, token};
use flopwatch_system_tests::pods::sample;
use flopwatch_system_tests::sessions::{spec, with};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

#[tokio::test]
async fn artifacts_are_read_only_by_those_who_may_get_the_session() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "access").await? else {
        return Ok(());
    };
    namespace.launch(sample("trainer")).await?;
    let with_raw = json!({ "outputs": ["Timeline", "Summary", "Raw"] });
    let asked = with(spec("trainer", 1, "Nsys"), with_raw);
    namespace.create_session("mine", asked).await?;
    namespace.finished("mine").await?;
    let status = namespace.only_capture("mine").await?.status.context("no status")?;
    let url = status.url.context("no URL")?;
    let raw = status.artifacts.iter().find(|one| one.sensitive);
    let raw = raw.context("no raw artifact")?;
    let summary = format!("{url}/summary.json");
    let raw = format!("{url}/{}", raw.name);
    let absent = format!("{}/summary.json", url.replace(&namespace.name, "kube-system"));

    let client = ArtifactClient::new(&namespace.client).await?;
    let viewer = reader_token(&namespace, "viewer", "flopwatch-viewer").await?;
    let stranger = stranger_token(&namespace, "stranger").await?;
    let cases = [
        ("without a token", &summary, None, 401),
        ("with a token that is none", &summary, Some("nonsense"), 401),
        ("as a stranger", &summary, Some(stranger.as_str()), 403),
        (
            "as a stranger, where there is nothing",
            &absent,
            Some(stranger.as_str()),
            403,
        ),
        ("as a viewer", &summary, Some(viewer.as_str()), 200),
        ("as a viewer, the raw report", &raw, Some(viewer.as_str()), 403),
    ];
    for (name, url, token, expected) in cases {
        let answer = client.request(url, token, &[]).await?;
        ensure!(
            answer.status == expected,
            "{name}: {} instead of {expected}",
            answer.status
        );
        if expected == 403 {
            let text = String::from_utf8_lossy(&answer.body);
            ensure!(!text.contains("mine"), "{name}: the refusal names the session: {text}");
        }
    }
    namespace.bind("raw", "flopwatch-raw-reader", "viewer").await?;
    // That a right is missing is remembered for a second.
    eventually("the raw report to be read with its own right", || async {
        let answer = client.request(&raw, Some(&viewer), &[]).await?;
        ensure!([200, 403].contains(&answer.status), "{}", answer.status);
        Ok((answer.status == 200).then_some(()))
    })
    .await?;

    serves_as_a_file_server_should(&client, &url, &viewer).await?;
    namespace.delete().await
}

/// Ranges, validators, and no way out of the artifact's folder.
async fn serves_as_a_file_server_should(client: &ArtifactClient, url: &str, viewer: &str) -> Result<()> {
    let summary = format!("{url}/summary.json");
    let whole = client.request(&summary, Some(viewer), &[]).await?;
    ensure!(whole.header("accept-ranges") == Some("bytes"), "{:?}", whole.headers);
    let part = client.request(&summary, Some(viewer), &["--range", "2-9"]).await?;
    ensure!(
        part.status == 206 && part.body.as_slice() == whole.body.get(2..10).context("too short")?,
        "{part:?}"
    );
    let etag = whole.header("etag").context("no ETag")?.to_owned();
    let same = client
        .request(&summary, Some(viewer), &["--header", &format!("If-None-Match: {etag}")])
        .await?;
    ensure!(same.status == 304 && same.body.is_empty(), "{same:?}");
    let outside = client
        .request(&summary, Some(viewer), &["--range", "999999999-"])
        .await?;
    ensure!(outside.status == 416, "{outside:?}");
    let traversal = client
        .request(&format!("{url}/../../../../../etc/passwd"), Some(viewer), &[])
        .await?;
    ensure!([400, 403, 404].contains(&traversal.status), "{traversal:?}");
    Ok(())
}

#[tokio::test]
async fn an_agent_may_write_only_captures_of_its_own_node() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "nodes").await? else {
        return Ok(());
    };
    let capture = json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture", "metadata": { "name": "elsewhere" },
        "spec": {
            "sessionRef": { "name": "none", "id": "00000000" }, "nodeName": "another-node",
            "podRef": { "name": "none", "uid": "none" }, "containerName": "main", "durationSeconds": 1,
            "startDeadlineSeconds": 1, "outputs": ["Summary"]
        }
    });
    namespace.create_untyped(&capture).await?;
    // A token as the kubelet mounts it: bound to the agent's pod, and so to its node.
    let agents = ["-l", "app.kubernetes.io/component=agent"];
    let name = ["-o", "jsonpath={.items[0].metadata.name}"];
    let pod = kubectl(chart::NAMESPACE, &[&["get", "pods"][..], &agents, &name].concat()).await?;
    let of_pod = ["--bound-object-kind=Pod", &format!("--bound-object-name={pod}")];
    let create = ["create", "token", "flopwatch-agent"];
    let bound = kubectl(chart::NAMESPACE, &[&create[..], &of_pod].concat()).await?;
    let unbound = token(chart::NAMESPACE, "flopwatch-agent").await?;
    for (name, token, sentence) in [
        (
            "bound to its own node",
            bound.trim(),
            "may not write a capture of node another-node",
        ),
        ("not bound to a node", unbound.as_str(), "not bound to a node"),
    ] {
        let client = client_with(token).await?;
        let captures: Api<Capture> = Api::namespaced(client, &namespace.name);
        let stolen = Patch::Merge(json!({ "status": { "containerId": "stolen" } }));
        let refusal = captures
            .patch_status("elsewhere", &PatchParams::default(), &stolen)
            .await;
        let refusal = refusal.expect_err(name).to_string();
        ensure!(refusal.contains(sentence), "{name}: {refusal}");
    }
    namespace.delete().await
}
