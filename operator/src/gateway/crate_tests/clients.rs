//! Clients as users write them, in Python, against the gateway: one that knows the earlier service
//! alone, directly and through `kubectl flopwatch proxy`; the example of the documentation; and
//! readers of every form.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use clap::Parser as _;
use flopwatch_artifacts::ConversionLimits;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;

use super::engine::Engine;
use super::rig::Rig;

/// Longest run of a client.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);

/// A Python with the libraries that clients need, or a printed reason to skip.
pub(super) fn python() -> Option<OsString> {
    let python = std::env::var_os("FLOPWATCH_PYTHON");
    if python.is_none() {
        println!("skipped: FLOPWATCH_PYTHON names no Python with clients' libraries (cargo xtask setup makes one)");
    }
    python
}

/// A place in the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The gateway with a timeline in it, which the trace engine makes forms of, and a namespace that
/// says what it profiles.
async fn rig() -> Rig {
    let timeline = std::fs::read(repository("web/tests/data/synthetic.h5")).unwrap();
    let rig = Rig::converting(&timeline, Engine::converter, ConversionLimits::default()).await;
    rig.cluster.server.put(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "team", "name": "flopwatch-run"},
        "data": {"request.yaml": "target: {pod: train}\noptions: {duration_seconds: 5}\n"}
    }));
    rig
}

async fn finished(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    tokio::time::timeout(ANSWER_TIMEOUT, output)
        .await
        .expect("an end within the deadline")
        .unwrap()
}

/// Standard output of a command, which must have succeeded.
fn printed(output: &Output) -> String {
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}{complaints}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What the client of the earlier service printed.
async fn earlier(python: &OsString, rig: &Rig, arguments: &[&str]) -> String {
    let mut client = Command::new(python);
    client
        .arg(repository("operator/tests/clients/earlier.py"))
        .args(arguments);
    let (output, ()) = tokio::join!(finished(&mut client), rig.carry_out_the_first());
    printed(&output)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_earlier_service_works_unchanged() {
    let Some(python) = python() else { return };
    let rig = rig().await;
    let url = format!("http://{}", rig.address);
    assert_eq!(
        earlier(&python, &rig, &[&url, "admin"]).await,
        "7000 events, by websocket\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_works_without_a_token_through_the_plugins_proxy() {
    let Some(python) = python() else { return };
    let rig = rig().await;
    let folder = tempfile::tempdir().unwrap();
    let gateway = rig.over_tls().await;
    let kubeconfig = folder.path().join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", rig.api_server)}}],
        "users": [{"name": "u", "user": {"token": "admin"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "team"}}]
    });
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let words = [
        "kubectl-flopwatch".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        "proxy".to_owned(),
        format!("--gateway=https://localhost:{}", gateway.port()),
        format!("--gateway-ca={}", rig.agent.folder.path().join("ca.crt").display()),
    ];
    let cli = flopwatch_cli::arguments::Cli::try_parse_from(words).unwrap();
    let flopwatch_cli::arguments::Command::Proxy(arguments) = &cli.command else {
        panic!("not what was asked for");
    };
    let cluster = flopwatch_cli::cluster::Cluster::connect(&cli.connection).await.unwrap();
    let gateway = flopwatch_cli::gateway::Gateway::find(&cluster, &arguments.gateway)
        .await
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let proxy = tokio::spawn(flopwatch_cli::proxy::serve(gateway, listener));
    assert_eq!(earlier(&python, &rig, &[&url]).await, "7000 events, by websocket\n");
    proxy.abort();
}

/// Blocks of a document's fences of that kind.
fn blocks<'a>(document: &'a str, kind: &str) -> Vec<&'a str> {
    let pieces: Vec<&str> = document.split("```").collect();
    let fenced = pieces.iter().skip(1).step_by(2);
    fenced
        .filter_map(|piece| piece.strip_prefix(kind)?.strip_prefix('\n'))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_the_documentation_prints_what_it_says() {
    let Some(python) = python() else { return };
    let rig = rig().await;
    let document = std::fs::read_to_string(repository("docs/python.md")).unwrap();
    // The package's own tests run what comes before.
    let (_, document) = document.split_once("## Results over HTTP").unwrap();
    let ([example], [expected]) = (&blocks(document, "python")[..], &blocks(document, "text")[..]) else {
        panic!("docs/python.md has one example of HTTP and what it prints");
    };
    let folder = tempfile::tempdir().unwrap();
    let mut client = Command::new(python);
    client
        .args(["-c", example])
        .current_dir(folder.path())
        .env("FLOPWATCH_GATEWAY", format!("http://{}", rig.address))
        .env("FLOPWATCH_TOKEN", "reader")
        .env("FLOPWATCH_SESSION", "0badcafe");
    assert_eq!(printed(&finished(&mut client).await), *expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_that_is_fetched_holds_the_same_events() {
    let Some(python) = python() else { return };
    let rig = rig().await;
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for name in [
        "timeline.h5",
        "timeline.csv",
        "timeline.json.gz",
        "timeline.parquet",
        "timeline.pftrace",
    ] {
        let path = format!("/api/profiling/session/0badcafe/artifacts/{name}");
        let mut answer = rig.get(&path, "reader").await;
        let until = Instant::now() + ANSWER_TIMEOUT;
        while answer.status == 503 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(50)).await;
            answer = rig.get(&path, "reader").await;
        }
        assert_eq!(answer.status, 200, "{name}");
        let (name, content) = match name.strip_suffix(".gz") {
            Some(name) => (name, unpacked(&answer.body)),
            None => (name, answer.body),
        };
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        files.push(file);
    }
    let mut reader = Command::new(python);
    reader
        .arg(repository("trace/tests/suite/independent/exports.py"))
        .args(&files);
    let sums: Value = serde_json::from_str(&printed(&finished(&mut reader).await)).unwrap();
    let events = sums["timeline"]
        .as_object()
        .unwrap()
        .values()
        .map(|of| of[0].as_u64().unwrap());
    assert_eq!(events.sum::<u64>(), 7000);
    for format in ["table", "chrome", "parquet", "perfetto"] {
        assert_eq!(sums[format], sums["timeline"], "{format}");
    }
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut content).unwrap();
    content
}
