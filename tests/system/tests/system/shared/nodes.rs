//! More than one node: each agent cares for its own, and for nothing else.

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, client_with, eventually, kubectl, run};
use flopwatch_system_tests::fetch::{ArtifactClient, reader_token};
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::pods::{sample, workload};
use flopwatch_system_tests::prometheus::Prometheus;
use flopwatch_system_tests::sessions::condition_of;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

/// A prepared trainer on each node, of the same name as its node.
async fn trainers(namespace: &TestNamespace, nodes: &[String; 2]) -> Result<()> {
    for node in nodes {
        let mut pod = on_node(sample(node), node);
        pod["metadata"]["labels"]["job"] = json!("training");
        namespace.create_pod(pod).await?;
    }
    for node in nodes {
        namespace.grafted(node).await?;
    }
    Ok(())
}

/// The session `both` of a prepared trainer on each node, with the rest of its spec, at its end.
async fn profile_both(namespace: &TestNamespace, nodes: &[String; 2], mut spec: Value) -> Result<ProfilingSession> {
    trainers(namespace, nodes).await?;
    spec["target"] = json!({ "podSelector": { "matchLabels": { "job": "training" } }, "maxPods": 2 });
    spec["profiler"] = json!({ "type": "Nsys" });
    namespace.create_session("both", spec).await?;
    namespace.finished("both").await
}

#[tokio::test]
async fn a_session_has_a_capture_on_each_node_and_each_agent_serves_its_own() -> Result<()> {
    let Some((cluster, nodes)) = Cluster::with_two_nodes(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("spread").await?;
    let session = profile_both(&namespace, &nodes, json!({ "durationSeconds": 2 })).await?;
    let succeeded = condition_of(&session, "Succeeded").context("no condition")?;
    ensure!(succeeded.status == "True", "{succeeded:?}");
    let captures = namespace.captures("both").await?;
    let token = reader_token(&namespace, "reader", "flopwatch-viewer").await?;
    let client = ArtifactClient::new(&cluster.client).await?;
    let mut served = Vec::new();
    for node in &nodes {
        let capture = captures.iter().find(|one| one.spec.node_name == *node);
        let capture = capture.with_context(|| format!("no capture on {node}"))?;
        let pod = &capture.spec.pod_ref;
        ensure!(pod.name == *node, "{pod:?} is on {node}");
        let url = capture.status.as_ref().and_then(|status| status.url.clone());
        let url = url.context("no URL")?;
        let address = agent_address(&cluster, node).await?;
        ensure!(
            url.contains(&format!("//{address}:")),
            "{url} is not on {node}, {address}"
        );
        let answer = client
            .request(&format!("{url}/summary.json"), Some(&token), &[])
            .await?;
        ensure!(answer.status == 200, "{url}: {}", answer.status);
        served.push((address, url));
    }
    let [(first, _), (second, url)] = served.as_slice() else {
        anyhow::bail!("{served:?}")
    };
    let astray = format!("{}/summary.json", url.replace(second, first));
    let answer = client.request(&astray, Some(&token), &[]).await?;
    ensure!(answer.status == 404, "another node's agent answers {}", answer.status);
    namespace.delete().await
}

async fn agent_address(cluster: &Cluster, node: &str) -> Result<String> {
    let status = cluster.agent_on(node).await?.status;
    status
        .and_then(|status| status.pod_ip)
        .context("the agent has no address")
}

/// A token of the gateway's account, as the gateway asks for one.
async fn gateway_token(audience: &str) -> Result<String> {
    let audience = format!("--audience={audience}");
    let made = ["create", "token", "flopwatch-gateway", &audience, "--duration=10m"];
    Ok(kubectl(chart::NAMESPACE, &made).await?.trim().to_owned())
}

#[tokio::test]
async fn what_the_gateway_shows_one_nodes_agent_opens_nothing_at_another() -> Result<()> {
    let Some((cluster, nodes)) = Cluster::with_two_nodes(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("replay").await?;
    let with_raw = json!({ "durationSeconds": 1, "outputs": ["Timeline", "Summary", "Raw"] });
    profile_both(&namespace, &nodes, with_raw).await?;
    let client = ArtifactClient::new(&cluster.client).await?;
    let mut raw = Vec::new();
    for capture in namespace.captures("both").await? {
        let status = capture.status.context("no status")?;
        let sensitive = status.artifacts.iter().find(|one| one.sensitive);
        let sensitive = sensitive.context("no raw artifact")?;
        let url = format!("{}/{}", status.url.context("no URL")?, sensitive.name);
        raw.push((capture.spec.node_name, url));
    }
    ensure!(raw.len() == 2, "{raw:?}");
    for (own, _) in &raw {
        let shown = gateway_token(&format!("flopwatch-agent/{own}")).await?;
        for (node, url) in &raw {
            let expected = if node == own { 200 } else { 401 };
            let answer = client.request(url, Some(&shown), &[]).await?;
            ensure!(answer.status == expected, "{own}'s token at {node}: {}", answer.status);
        }
    }
    // One for all agents, as the gateway had before, is good for none.
    let for_all = gateway_token("flopwatch-agent").await?;
    for (node, url) in &raw {
        let answer = client.request(url, Some(&for_all), &[]).await?;
        let status = answer.status;
        ensure!(status == 401, "a token for all agents at {node}: {status}");
    }
    namespace.delete().await
}

#[tokio::test]
async fn each_nodes_agent_has_the_name_of_its_own_node_and_of_no_other() -> Result<()> {
    let Some((cluster, nodes)) = Cluster::with_two_nodes(Group::Shared).await? else {
        return Ok(());
    };
    let key = "jsonpath={.data.ca\\.crt}";
    let map = ["get", "configmap", "flopwatch-gateway-ca", "-o", key];
    let authority = kubectl(chart::NAMESPACE, &map).await?;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), authority)?;
    let file = file.path().to_str().context("a path that is not UTF-8")?;
    for node in &nodes {
        let address = agent_address(&cluster, node).await?;
        let of_name = async |of: &str| {
            let name = format!("{of}.flopwatch-agent.{}.svc", chart::NAMESPACE);
            let (resolve, url) = (format!("{name}:8443:{address}"), format!("https://{name}:8443/healthz"));
            let bounds = ["--silent", "--show-error", "--fail", "--max-time", "20"];
            run(
                "curl",
                &[&bounds[..], &["--cacert", file, "--resolve", &resolve, &url]].concat(),
            )
            .await
        };
        for of in &nodes {
            if of == node {
                let what = format!("the agent of {node} to have a certificate");
                eventually(&what, || async { Ok(of_name(of).await.ok()) }).await?;
            } else {
                let refused = of_name(of).await;
                ensure!(refused.is_err(), "the agent of {node} has the name of {of}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_agents_own_token_writes_no_capture_of_the_other_node() -> Result<()> {
    let Some((cluster, nodes)) = Cluster::with_two_nodes(Group::Shared).await? else {
        return Ok(());
    };
    let [own, other] = &nodes;
    let namespace = cluster.namespace("tokens").await?;
    namespace.run(on_node(workload("trainer", false, &[]), other)).await?;
    namespace.profile_main("victim", "trainer", 1, "Metrics").await?;
    namespace.finished("victim").await?;
    let capture = namespace.only_capture("victim").await?;
    ensure!(capture.spec.node_name == *other, "{:?}", capture.spec);
    let name = capture.name_any();

    let captures = async |token: String| -> Result<Api<Capture>> {
        Ok(Api::namespaced(client_with(&token).await?, &namespace.name))
    };
    let stolen = Patch::Merge(json!({ "status": { "containerId": "stolen" } }));
    let thief = captures(cluster.agent_token(own).await?).await?;
    let written = thief.patch_status(&name, &PatchParams::default(), &stolen).await;
    let refusal = written.err().context("the other node's capture was written")?;
    let refusal = refusal.to_string();
    let sentence = format!("this agent runs on node {own} and may not write a capture of node {other}");
    ensure!(refusal.contains(&sentence), "{refusal}");
    let refusal = thief.delete(&name, &kube::api::DeleteParams::default()).await;
    ensure!(refusal.is_err(), "the other node's capture was deleted");

    let owner = captures(cluster.agent_token(other).await?).await?;
    let dry = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let written = owner.patch_status(&name, &dry, &stolen).await;
    written.context("the capture's own agent is refused")?;
    namespace.delete().await
}

#[tokio::test]
async fn a_pods_series_come_from_the_agent_of_its_node_alone() -> Result<()> {
    let Some((cluster, nodes)) = Cluster::with_two_nodes(Group::Shared).await? else {
        return Ok(());
    };
    let namespace = cluster.namespace("series").await?;
    for node in &nodes {
        namespace.create_pod(on_node(workload(node, false, &[]), node)).await?;
    }
    for node in &nodes {
        namespace.running(node).await?;
        cluster.agent_on(node).await?;
    }
    let prometheus = Prometheus::start(&cluster.client).await?;
    for node in &nodes {
        prometheus
            .eventually(&format!("flopwatch_gpu_utilization_ratio{{node=\"{node}\"}}"))
            .await?;
        let query = format!(
            "flopwatch_gpu_process_memory_used_bytes{{namespace=\"{}\",pod=\"{node}\"}}",
            namespace.name
        );
        let series = prometheus.eventually(&query).await?;
        let from: Vec<_> = series.iter().filter_map(|one| one.metric.get("node")).collect();
        ensure!(from == [node], "{node}'s pod is counted on {from:?}");
    }
    // A process that the agent sees and cannot name would be another node's.
    for node in &nodes {
        let unknown = format!("flopwatch_gpu_unattributed_processes{{node=\"{node}\"}} > 0");
        eventually(&format!("only processes of {node} to be seen there"), || async {
            Ok(prometheus.query(&unknown).await?.is_empty().then_some(()))
        })
        .await?;
    }
    namespace.delete().await
}
