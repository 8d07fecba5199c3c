//! A node whose captures are carried out in this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser as _;
use flopwatch_agent::cli::{Cli, Command};
use flopwatch_agent::metrics::Metrics;
use flopwatch_agent::node::captures::Captures;
use flopwatch_agent::node::clock::ServerClock;
use flopwatch_agent::node::entering::Entering;
use flopwatch_agent::node::fleet_outbox::Fleet;
use flopwatch_agent::node::heartbeats::Heartbeats;
use flopwatch_agent::node::kernels::Kernels;
use flopwatch_agent::node::starts::Starts;
use flopwatch_agent::node::storage::Storage;
use flopwatch_agent::node::sweep::{list_captures, sweep};
use flopwatch_agent::node::{Node, pods};
use flopwatch_agent::nsys_versions::NsysVersions;
use flopwatch_agent::plan::Interrupt;
use flopwatch_agent::profilers::{Limits, Registry as Profilers};
use flopwatch_artifacts::object_store::Bucket;
use flopwatch_artifacts::{ArtifactMetrics, Store, StoreOptions};
use flopwatch_attach::process::Procfs;
use flopwatch_attach::reexec::Reexec;
use flopwatch_pipeline::disk::Floor;
use flopwatch_pipeline::steps::{self, ChildRunner};
use flopwatch_test_harness::{ApiServer, Fault, Verb};
use futures::StreamExt as _;
use prometheus::Registry;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::doubles::Doubles;

/// Longest wait for something that is to happen.
const STATE_TIMEOUT: Duration = Duration::from_mins(1);

/// Waits until `inspect` finds something.
pub(crate) async fn eventually<T>(what: &str, mut inspect: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = inspect() {
            return found;
        }
        assert!(begin.elapsed() < STATE_TIMEOUT, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A node, through all lives of its agent.
pub(crate) struct Rig {
    /// The API server.
    pub(crate) server: ApiServer,
    /// Its one container.
    pub(crate) containers: Doubles,
    /// Bounds of its captures.
    pub(crate) limits: Limits,
    /// What captures are taken with.
    pub(crate) profilers: Profilers,
    /// What its recorders count.
    pub(crate) heartbeats: Heartbeats,
    /// Where rows of the fleet go.
    pub(crate) bucket: Option<Bucket>,
    /// Bytes of them that may wait.
    pub(crate) fleet_bytes: u64,
    folder: TempDir,
}

/// One life of the agent.
pub(crate) struct Life {
    /// What it shares.
    pub(crate) node: Arc<Node>,
    captures: Arc<Captures>,
    stop: CancellationToken,
    give_up: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Rig {
    /// A node with one running pod; `annotations` are the pod's.
    pub(crate) fn new(annotations: &Value) -> Self {
        let server = ApiServer::new();
        server.put(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "team", "uid": "uid-p", "annotations": annotations},
            "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
            "status": {"phase": "Running", "containerStatuses": [{
                "name": "main", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "containerID": "containerd://abc", "state": {"running": {}}
            }]}
        }));
        Self {
            server,
            containers: Doubles::default(),
            limits: Limits {
                captures: 2,
                capture_bytes: 2 << 30,
                window_memory_bytes: 32 << 30,
                floor: Floor::default(),
            },
            profilers: Profilers::default(),
            heartbeats: Heartbeats::new(Duration::ZERO),
            bucket: None,
            fleet_bytes: 1 << 20,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The same with a profiler's session in the container.
    pub(crate) fn prepared(room: Option<&str>) -> Self {
        let mut annotations = json!({"flopwatch.dev/prepared": "main"});
        if let Some(room) = room {
            annotations["flopwatch.dev/prepared-capture-bytes"] = json!(room);
        }
        let rig = Self::new(&annotations);
        rig.containers.inside().nsys = true;
        rig
    }

    /// In the place of the node's procfs, with its tree of cgroups in the folder `cgroup`.
    pub(crate) fn machine(&self) -> &Path {
        self.folder.path()
    }

    /// Folder of captures under way.
    pub(crate) fn spool(&self) -> PathBuf {
        self.folder.path().join("spool")
    }

    /// UID of a capture.
    pub(crate) fn uid(&self, capture: &str) -> String {
        let capture = self.server.get("captures", "team", capture).unwrap();
        capture["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// The file of what is written down of a capture.
    pub(crate) fn journal(&self, capture: &str) -> PathBuf {
        self.spool().join(format!("{}.json", self.uid(capture)))
    }

    /// What lies in the spool.
    pub(crate) fn spooled(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.spool()).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The manifest of a capture.
    pub(crate) fn manifest(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("artifacts/captures/team/{name}.json"))
    }

    /// The summary that a capture published.
    pub(crate) fn summary(&self, name: &str) -> Value {
        serde_json::from_slice(&self.published(name, "summary.json")).unwrap()
    }

    /// The content of an artifact of a capture.
    pub(crate) fn published(&self, name: &str, artifact: &str) -> Vec<u8> {
        let manifest: Value = serde_json::from_slice(&std::fs::read(self.manifest(name)).unwrap()).unwrap();
        let artifacts = manifest["artifacts"].as_array().unwrap();
        let found = artifacts.iter().find(|one| one["name"] == artifact).unwrap();
        let digest = found["sha256"].as_str().unwrap();
        std::fs::read(self.folder.path().join("artifacts/objects").join(digest)).unwrap()
    }

    /// Makes a capture, as the operator does.
    pub(crate) fn ask(&self, name: &str, seconds: u32) -> Value {
        self.server.put(&Self::capture(name, seconds))
    }

    /// The same for a profiler and its options.
    pub(crate) fn ask_for(&self, name: &str, seconds: u32, profiler: &Value) -> Value {
        let mut capture = Self::capture(name, seconds);
        capture["spec"]["profiler"] = profiler.clone();
        self.server.put(&capture)
    }

    /// A capture as the operator makes it.
    pub(crate) fn capture(name: &str, seconds: u32) -> Value {
        json!({
            "apiVersion": "flopwatch.dev/v1alpha1", "kind": "Capture",
            "metadata": {"name": name, "namespace": "team", "finalizers": ["flopwatch.dev/capture"]},
            "spec": {
                "sessionRef": {"name": "s", "id": "0123abcd"}, "nodeName": "n1", "podRef": {"name": "p", "uid": "uid-p"},
                "containerName": "main", "durationSeconds": seconds, "startDeadlineSeconds": 60,
                "transform": {"device": "Cpu"}, "outputs": ["Timeline", "Summary"]
            }
        })
    }

    /// A condition of a capture: status, reason and message.
    pub(crate) fn condition(&self, name: &str, type_: &str) -> Option<(String, String, String)> {
        let capture = self.server.get("captures", "team", name)?;
        let conditions = capture["status"]["conditions"].as_array()?;
        let found = conditions.iter().find(|condition| condition["type"] == type_)?;
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        Some((text("status"), text("reason"), text("message")))
    }

    /// Waits until a capture ended; returns the reason and the message.
    pub(crate) async fn end_of(&self, name: &str) -> (String, String) {
        eventually("the capture to end", || {
            let (status, reason, message) = self.condition(name, "Succeeded")?;
            (status != "Unknown").then_some((reason, message))
        })
        .await
    }

    /// Waits until a capture ended, which must be for that reason; returns the message.
    pub(crate) async fn ends(&self, name: &str, expected: &str) -> String {
        let (reason, message) = self.end_of(name).await;
        assert_eq!(reason, expected, "{name}: {message}");
        message
    }

    /// Changes a field of a capture's spec.
    pub(crate) fn set(&self, name: &str, field: &str, value: Value) {
        self.server
            .edit("captures", "team", name, |capture| capture["spec"][field] = value);
    }

    /// Waits until a capture is in a stage.
    pub(crate) async fn in_stage(&self, name: &str, stage: &str) {
        eventually(stage, || {
            let capture = self.server.get("captures", "team", name)?;
            (capture["status"]["progress"]["stage"] == stage).then_some(())
        })
        .await;
    }

    /// Starts the agent's next life, and a capture in it that collects.
    pub(crate) async fn collecting(&self, name: &str, seconds: u32) -> Life {
        let life = self.live().await;
        self.ask(name, seconds);
        self.in_stage(name, "Collecting").await;
        life
    }

    /// From now on the API server answers every status with that code; waits until a capture's
    /// artifacts are stored.
    pub(crate) async fn stored_but_untold(&self, name: &str, code: u16) {
        self.server
            .fail(usize::MAX, Verb::Patch, "captures/status", Fault::Code(code));
        eventually("the artifacts to be stored", || {
            self.manifest(name).exists().then_some(())
        })
        .await;
    }

    /// Ends a life of the agent, and starts the next.
    pub(crate) async fn after(&self, life: Life) -> Life {
        life.end().await;
        self.live().await
    }

    /// Starts the agent's next life.
    pub(crate) async fn live(&self) -> Life {
        let (stop, give_up) = (CancellationToken::new(), CancellationToken::new());
        let client = self.server.client("team");
        let cgroups = format!("--cgroup-root={}", self.machine().join("cgroup").display());
        let line = [
            "flopwatch-agent",
            "run",
            "--node-name=n1",
            "--advertise-address=127.0.0.1",
            cgroups.as_str(),
        ];
        let Command::Run(options) = Cli::parse_from(line).command else {
            unreachable!("it says run");
        };
        let registry = Registry::new();
        let store_options = StoreOptions {
            free_bytes_floor: 0,
            ..StoreOptions::default()
        };
        let artifact_metrics = ArtifactMetrics::register(&registry).unwrap();
        let artifacts = self.folder.path().join("artifacts");
        let store = Store::open(&artifacts, store_options, artifact_metrics).await.unwrap();
        std::fs::create_dir_all(self.spool()).unwrap();
        let (known, pod_watch) = pods::watch(client.clone(), "n1");
        let own = PathBuf::from(env!("CARGO_BIN_EXE_flopwatch-agent"));
        let procfs = Procfs::new(self.folder.path());
        let metrics = Metrics::register(&registry).unwrap();
        let open_fleet = |bucket: &Bucket| {
            let store = (bucket.clone(), "cluster".to_owned());
            let folder = self.folder.path().join("fleet");
            Fleet::open(&folder, self.fleet_bytes, self.limits.floor, store, &metrics).unwrap()
        };
        let fleet = self.bucket.as_ref().map(open_fleet);
        let node = Arc::new(Node {
            name: "n1".to_owned(),
            client,
            clock: ServerClock::default(),
            pods: known.clone(),
            pods_changed: watch::Sender::new(()),
            store: Arc::new(store),
            metrics,
            limits: self.limits,
            steps: ChildRunner::new(own, None, steps::Limits::default()),
            nsys_versions: Arc::new(NsysVersions::default()),
            spool: self.spool(),
            entering: Entering::new(&options, procfs.clone(), Reexec::default()),
            procfs,
            starts: Starts::default(),
            profilers: self.profilers.clone(),
            metrics_ring: None,
            containers: Arc::new(self.containers.clone()),
            storage: Storage::new(None, &options),
            fleet,
            url: "https://127.0.0.1:8443".to_owned(),
            heartbeats: self.heartbeats.clone(),
            kernels: Kernels::new(false),
            recordings: options.recordings(),
            left_behind: Notify::new(),
            stop: stop.clone(),
            give_up: give_up.clone(),
        });
        let watching = tokio::spawn(pod_watch.for_each(|_| std::future::ready(())));
        known.wait_until_ready().await.unwrap();
        let (captures, control) = Captures::new(Arc::clone(&node));
        let copied = Arc::clone(&node);
        let copying = async move {
            if let Some(fleet) = &copied.fleet {
                fleet.keep_copying(&copied.stop).await;
            }
        };
        let tasks = vec![
            watching,
            tokio::spawn(control),
            tokio::spawn(Arc::clone(&captures).end_gone()),
            tokio::spawn(copying),
        ];
        Life {
            node,
            captures,
            stop,
            give_up,
            tasks,
        }
    }
}

impl Life {
    /// Removes what belongs to no capture, as an agent does once it is ready.
    pub(crate) async fn sweep(&self) {
        let listed = list_captures(&self.node.client, &self.node.name).await.unwrap();
        sweep(&self.node, &self.captures, listed).await;
    }

    /// Ends it as a SIGTERM does whose time is over.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.give_up.cancel();
        self.captures.end_all(Interrupt::Shutdown).await;
        for task in self.tasks {
            task.abort();
            // The next life opens what it holds.
            drop(task.await);
        }
    }
}
