//! Artifacts come whole and as they were published, or not at all.

use std::path::{Path, PathBuf};

use flopwatch_test_harness::Right;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::cluster::{Cluster, everything, of_ada};
use crate::gateway::{FakeGateway, Step};
use crate::{Ran, run};

/// Large enough for several reads.
pub(crate) fn content() -> Vec<u8> {
    (0..200_000_u32).flat_map(u32::to_le_bytes).collect()
}

pub(crate) fn digest(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

/// A session of `team` that succeeded.
pub(crate) fn session(name: &str, id: &str) -> Value {
    json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {"target": {"podName": "trainer"}},
        "status": {"id": id, "counts": {"captures": 1, "succeeded": 1}}
    })
}

pub(crate) fn capture(name: &str, status: &Value) -> Value {
    json!({
        "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
        "metadata": {"name": name, "namespace": "team", "labels": {"flopwatch.dev/session": "first"}},
        "spec": {
            "sessionRef": {"name": "first", "id": "0badcafe"}, "nodeName": "n1",
            "podRef": {"name": "trainer", "uid": "uid"}, "containerName": "main",
            "durationSeconds": 5, "startDeadlineSeconds": 300, "outputs": ["Timeline"]
        },
        "status": status
    })
}

/// A cluster with one session that published a timeline, and a gateway that serves it.
struct Rig {
    cluster: Cluster,
    gateway: FakeGateway,
}

impl Rig {
    async fn new() -> Self {
        let cluster = Cluster::start().await;
        let content = content();
        cluster.api.put(&session("first", "0badcafe"));
        let status = json!({"artifacts": [{
            "name": "timeline.h5", "type": "Timeline", "bytes": content.len(), "sha256": digest(&content),
            "mediaType": "application/x-hdf5"
        }]});
        cluster.api.put(&capture("first-1", &status));
        Self {
            cluster,
            gateway: FakeGateway::start(content).await,
        }
    }

    async fn fetch(&self, words: &str) -> Ran {
        let options = self.gateway.options();
        self.cluster.run(&format!("fetch first {options} {words}")).await
    }

    /// The place of a file in the folder of the program.
    fn at(&self, name: &str) -> PathBuf {
        self.cluster.folder.path().join(name)
    }

    fn file(&self) -> Option<Vec<u8>> {
        std::fs::read(self.at("first/timeline.h5")).ok()
    }

    /// Files of the folder that hold something unfinished.
    fn unfinished(&self) -> usize {
        let entries = std::fs::read_dir(self.at("first")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| Path::new(name).extension().is_some_and(|end| end == "part"))
            .count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_is_fetched_with_the_callers_token_and_not_twice() {
    let rig = Rig::new().await;
    let ran = rig.fetch("").await;
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "first/timeline.h5 (781.25 KiB)\n"),
        "{ran:?}"
    );
    assert_eq!(rig.file(), Some(content()));
    let heads = rig.gateway.heads();
    let path = "GET /api/profiling/session/0badcafe/artifacts/timeline.h5?capture=first-1 HTTP/1.1\r\n";
    assert!(heads[0].starts_with(path), "{heads:?}");
    assert!(heads[0].contains("authorization: Bearer of-ada\r\n"), "{heads:?}");

    let ran = rig.fetch("").await;
    assert_eq!(ran.out, "first/timeline.h5 (781.25 KiB, unchanged)\n", "{ran:?}");
    assert_eq!(rig.gateway.heads().len(), 1, "nothing was asked for again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_off_goes_on_from_there() {
    let rig = Rig::new().await;
    rig.gateway.then([
        Step::BreakAfter(300_000),
        Step::Problem(503, "Busy"),
        Step::BreakAfter(100_000),
    ]);
    let ran = rig.fetch("").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(rig.file(), Some(content()));
    let heads = rig.gateway.heads();
    let asked: Vec<&str> = heads
        .iter()
        .filter_map(|head| head.lines().find(|line| line.starts_with("range: ")))
        .collect();
    assert_eq!(
        asked,
        ["range: bytes=300000-", "range: bytes=300000-", "range: bytes=400000-"]
    );
    let tag = format!("if-range: \"{}\"", digest(&content()));
    assert!(heads[3].contains(&tag), "{heads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_sends_all_of_it_again_is_heard_from_the_beginning() {
    let rig = Rig::new().await;
    rig.gateway.then([Step::BreakAfter(300_000), Step::Whole]);
    let ran = rig.fetch("").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(rig.file(), Some(content()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_published_is_not_kept() {
    let rig = Rig::new().await;
    rig.gateway.then([Step::Wrong]);
    let ran = rig.fetch("").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("is not what was published"), "{ran:?}");
    assert_eq!((rig.file(), rig.unfinished()), (None, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_never_gets_through_says_how_far_it_came_and_the_next_goes_on() {
    let rig = Rig::new().await;
    rig.gateway.then([Step::BreakAfter(300_000)]);
    rig.gateway.then(std::iter::repeat_n(Step::Problem(502, "Agent"), 5));
    let ran = rig.fetch("").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("broke off at 300000 of 800000 bytes"), "{ran:?}");
    assert!(ran.err.contains("it is Agent here"), "{ran:?}");
    assert_eq!((rig.file(), rig.unfinished()), (None, 1));
    let ran = rig.fetch("").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((rig.file(), rig.unfinished()), (Some(content()), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_users_own_is_replaced_by_force_alone() {
    let rig = Rig::new().await;
    std::fs::create_dir(rig.at("first")).unwrap();
    std::fs::write(rig.at("first/timeline.h5"), "mine").unwrap();
    let ran = rig.fetch("").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("--force"), "{ran:?}");
    assert_eq!(rig.file().as_deref(), Some(b"mine".as_slice()));
    assert_eq!(rig.fetch("--force").await.code, 0);
    assert_eq!(rig.file(), Some(content()));
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_the_gateway_are_told_at_once() {
    let rig = Rig::new().await;
    for (status, reason) in [
        (401, "Unauthenticated"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (409, "NotReady"),
    ] {
        rig.gateway.then([Step::Problem(status, reason)]);
        let before = rig.gateway.heads().len();
        let ran = rig.fetch("").await;
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains(&format!("it is {reason} here")), "{ran:?}");
        assert_eq!(rig.gateway.heads().len(), before + 1, "{reason} is not tried again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_is_shown_to_whoever_is_not_the_gateway() {
    let rig = Rig::new().await;
    let other = FakeGateway::start(Vec::new()).await;
    let (url, authority) = (rig.gateway.url(), other.authority());
    let started = std::time::Instant::now();
    let words = format!("fetch first --gateway {url} --gateway-ca {}", authority.display());
    let ran = rig.cluster.run(&words).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("certificate"), "{ran:?} after {:?}", started.elapsed());
    assert!(rig.gateway.heads().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_without_a_token_says_how_to_get_one() {
    let rig = Rig::new().await;
    rig.cluster.api.admit_anonymous();
    rig.cluster.api.allow("system:anonymous", everything());
    let kubeconfig = rig.cluster.kubeconfig(&json!({}));
    let fetch = format!("fetch first {}", rig.gateway.options());
    let fetched = async |words: &str| run(&kubeconfig, rig.cluster.folder.path(), words, |_line| {}).await;
    let ran = fetched(&fetch).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("kubectl create token"), "{ran:?}");
    let ran = fetched(&format!("{fetch} --token given")).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(rig.gateway.heads()[0].contains("Bearer given\r\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_in_the_cluster_the_other_ways_are_named() {
    let rig = Rig::new().await;
    let ran = rig.cluster.run("fetch first").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("--gateway-ca"), "{ran:?}");
    let authority = rig.gateway.authority();
    let words = format!("fetch first --gateway-ca {}", authority.display());
    let ran = rig.cluster.run(&words).await;
    assert!(ran.err.contains("--flopwatch-namespace"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_tokens_go_through_the_proxy() {
    let rig = Rig::new().await;
    let mut proxy = tokio::process::Command::new(env!("CARGO_BIN_EXE_kubectl-flopwatch"))
        .args(format!("proxy --port 0 {}", rig.gateway.options()).split(' '))
        .env_clear()
        .env("KUBECONFIG", rig.cluster.kubeconfig(&of_ada()))
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(proxy.stdout.take().unwrap()).lines();
    let mut url = String::new();
    while !url.contains("http://") {
        url = lines.next_line().await.unwrap().expect("it says where it serves");
    }
    let address = url.trim().strip_prefix("http://").unwrap();
    let address = address.split('/').next().unwrap();
    let get = async |host: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET /api/profiling/timeline/0badcafe.h5 HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer forged\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        answer
    };
    let answer = get(address).await;
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{:?}",
        String::from_utf8_lossy(&answer[..100])
    );
    assert!(answer.ends_with(&content()));
    assert!(
        rig.gateway.heads()[0].contains("authorization: Bearer of-ada\r\n"),
        "{:?}",
        rig.gateway.heads()
    );
    assert!(get("evil.example").await.starts_with(b"HTTP/1.1 403"));
    assert_eq!(
        rig.gateway.heads().len(),
        1,
        "what is refused does not reach the gateway"
    );
    proxy.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_the_way_is_a_port_forward_checked_by_the_clusters_own_authority() {
    let rig = Rig::new().await;
    let gateway = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "gateway-a", "namespace": "flopwatch-system",
            "labels": {"app.kubernetes.io/name": "flopwatch", "app.kubernetes.io/component": "gateway"}
        },
        "spec": {"containers": [{"name": "gateway", "ports": [{"name": "https", "containerPort": 8443}]}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}
    });
    rig.cluster.api.put(&gateway);
    let authority = std::fs::read_to_string(rig.gateway.authority()).unwrap();
    rig.cluster.api.put(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "flopwatch-gateway-ca", "namespace": "flopwatch-system"}, "data": {"ca.crt": authority}
    }));
    let readable = ["pods", "configmaps"].map(|resource| Right::resource("*", "", resource));
    let ours = Right::resource("*", "flopwatch.dev", "*");
    rig.cluster.allow_only(readable.into_iter().chain([ours]));
    let ran = rig.cluster.run("fetch first").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err.contains("forward ports") && ran.err.contains("flopwatch-gateway-caller"),
        "{ran:?}"
    );

    let forward = Right::resource("get", "", "pods/portforward").in_namespace("flopwatch-system");
    rig.cluster.api.allow("ada", forward);
    rig.cluster.api.forward_to(rig.gateway.port());
    rig.gateway.then([Step::BreakAfter(300_000)]);
    let ran = rig.cluster.run("fetch first").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(rig.file(), Some(content()));
    assert_eq!(rig.gateway.heads().len(), 2, "a forward for each attempt");
}
