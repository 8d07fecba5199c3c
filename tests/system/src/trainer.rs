//! A prepared sample workload under attack: what must be so before, and what must be so again after
//! every fault.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use flopwatch_api::capture::{Capture, Stage};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::cluster::{STATE_TIMEOUT, TestNamespace, eventually};
use crate::frameworks::{JAX_PORT, frameworks};
use crate::gate::Gate;
use crate::node::{self, Process, StoppedProcess};
use crate::nodes::on_node;
use crate::parts::{Running, SPOOL};
use crate::pod_state::PodState;
use crate::pods::{restarting, sample};
use crate::remains;
use crate::sessions::{capture_condition, condition_of, spec, with};

/// The raw capture, which the agent itself puts into the capture's folder.
const RAW: &str = "capture.qdstrm";
/// Where the profiler's session writes, from the container's root.
const OUT: &str = "flopwatch/run/out";

/// A prepared pod that runs the sample workload, and how it was when it had started.
pub struct Trainer {
    client: Client,
    /// Name of the pod.
    pub name: String,
    /// The pod as it was when it ran.
    pub pod: Pod,
    /// PID 1 of its container.
    pub process: Process,
    before: PodState,
    /// The profiler's session beside it.
    session: Vec<Process>,
    /// Whether its container has the folder in which the profiler's session writes.
    has_run_folder: bool,
}

/// How a capture ended.
#[derive(Clone, Debug)]
pub struct End {
    /// UID of the capture.
    pub uid: String,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// Whether its session did.
    pub session_succeeded: bool,
    /// Reason of its condition `Succeeded`.
    pub reason: String,
    /// In a sentence.
    pub message: String,
    /// Artifacts that it published.
    pub artifacts: usize,
}

impl Trainer {
    /// Starts it, on the node that tests do not lose, and waits until it is grafted and counts.
    ///
    /// # Errors
    /// When it does not start, or starts plainly.
    pub async fn start(namespace: &TestNamespace, name: &str) -> Result<Self> {
        namespace.create_kept(sample(name)).await?;
        Self::started(namespace, name).await
    }

    /// Starts it on the node `node`, and waits until it is grafted and counts.
    ///
    /// # Errors
    /// When it does not start, or starts plainly.
    pub async fn start_on(namespace: &TestNamespace, name: &str, node: &str) -> Result<Self> {
        namespace.create_pod(on_node(sample(name), node)).await?;
        Self::started(namespace, name).await
    }

    /// The same with real PyTorch and JAX, prepared for all profilers that they can do, and started
    /// anew when it ends.
    ///
    /// # Errors
    /// When it does not start, or starts plainly.
    pub async fn start_frameworks(namespace: &TestNamespace, name: &str) -> Result<Self> {
        let pod = restarting(frameworks(name, "nsys.kineto.jax", 1)?);
        namespace.allow_host_folders().await?;
        namespace.create_kept(pod).await?;
        Self::started(namespace, name).await
    }

    /// The next life of its container, once it counts. It starts plainly where the one before it
    /// ended early.
    ///
    /// # Errors
    /// When the container is not started again.
    pub async fn restarted(&self, namespace: &TestNamespace) -> Result<Self> {
        eventually("another container to run", || async {
            let pod = namespace.running(&self.name).await?;
            Ok((node::container_id(&pod)? != node::container_id(&self.pod)?).then_some(()))
        })
        .await?;
        Self::counting(namespace, &self.name).await
    }

    /// Waits until a pod that was created is grafted and counts.
    ///
    /// # Errors
    /// When it does not start, or starts plainly.
    pub async fn started(namespace: &TestNamespace, name: &str) -> Result<Self> {
        namespace.grafted(name).await?;
        Self::counting(namespace, name).await
    }

    /// Waits until a pod that was created counts, however it was started.
    ///
    /// # Errors
    /// When it does not count in time.
    pub async fn counting(namespace: &TestNamespace, name: &str) -> Result<Self> {
        namespace.says(name, "ranges=").await?;
        let pod = namespace.running(name).await?;
        let process = node::first_process(&pod)?;
        Ok(Self {
            client: namespace.client.clone(),
            name: name.to_owned(),
            process,
            before: PodState::of(namespace, name).await?,
            session: node::sessions_of(&pod)?,
            has_run_folder: process.root().join(OUT).is_dir(),
            pod,
        })
    }

    /// Asks for a session with Nsight Systems on it and returns its capture as soon as the window
    /// is open, and the capture's folder on the node. The window is longer than any test: whoever
    /// is ready says [`TestNamespace::stop`].
    ///
    /// # Errors
    /// When the window is not opened in time.
    pub async fn open_window(&self, namespace: &TestNamespace, session: &str) -> Result<(Capture, PathBuf)> {
        self.open_window_of(namespace, session, "Nsys", 280).await
    }

    /// Opens a window as [`Self::open_window`] does, with `profiler`, for `seconds` seconds.
    ///
    /// # Errors
    /// When the window is not opened in time.
    pub async fn open_window_of(
        &self,
        namespace: &TestNamespace,
        session: &str,
        profiler: &str,
        seconds: u32,
    ) -> Result<(Capture, PathBuf)> {
        let more = json!({ "profiler": { "type": profiler } });
        self.profile_with(namespace, session, seconds, more).await?;
        let capture = namespace.in_stage(session, Stage::Collecting).await?;
        let uid = capture.uid().context("a capture without a UID")?;
        Ok((capture, self.agent().await?.path(SPOOL).join(uid)))
    }

    /// Opens a window, ends it with its data kept, and holds who opens `file` of the capture's
    /// folder next: the agent itself, or a tool of it.
    ///
    /// # Errors
    /// When the window is not opened in time or the kernel has no such gates.
    pub async fn gate_before(
        &self,
        namespace: &TestNamespace,
        session: &str,
        file: &str,
        by_itself: bool,
    ) -> Result<Gate> {
        let agent = self.agent().await?.process;
        let (_, spool) = self.open_window(namespace, session).await?;
        let before = |folder: &Path, file: &str, by_itself: bool| {
            // The importer opens its report to write it, and that is the import still.
            let passes_importer = file != RAW;
            Gate::before(folder, file, move |opener| {
                (opener == agent) == by_itself && !(passes_importer && opener.runs("QdstrmImporter"))
            })
        };
        // The importer, the first tool, reads the raw capture.
        let mut first = before(&spool, RAW, file == RAW && by_itself)?;
        namespace.stop(session, "Keep").await?;
        if file == RAW {
            return Ok(first);
        }
        // What tools make lies in a folder of theirs, which is there as soon as the first of them
        // starts. While that one is held, none of them can have made the file.
        first.reached().await?;
        before(&spool.join("work"), file, by_itself)
    }

    /// Holds the importer, the first tool, of the session `struck` as [`Self::gate_before`] does.
    ///
    /// # Errors
    /// Those of [`Self::gate_before`].
    pub async fn gate_before_import(&self, namespace: &TestNamespace) -> Result<Gate> {
        self.gate_before(namespace, "struck", RAW, false).await
    }

    /// Waits for the tool that ends the collection and holds it there: it is what writes the
    /// capture.
    ///
    /// # Errors
    /// When none is seen in time.
    pub async fn hold_stop(&self) -> Result<StoppedProcess> {
        let begin = Instant::now();
        // It lives for less than the pause of other waits.
        loop {
            let found = node::sessions_of(&self.pod)?
                .into_iter()
                .find(|process| process.runs("nsys") && process.words().get(1).is_some_and(|word| word == "stop"));
            if let Some(found) = found {
                return StoppedProcess::hold(found);
            }
            ensure!(begin.elapsed() < STATE_TIMEOUT, "no stop was seen");
            tokio::task::yield_now().await;
        }
    }

    /// Asks for a session with Nsight Systems on it.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn profile(&self, namespace: &TestNamespace, session: &str, seconds: u32) -> Result<()> {
        self.profile_with(namespace, session, seconds, json!({})).await
    }

    /// Asks for a session with Nsight Systems on it, with more fields in the spec.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn profile_with(
        &self,
        namespace: &TestNamespace,
        session: &str,
        seconds: u32,
        more: Value,
    ) -> Result<()> {
        let spec = with(spec(&self.name, seconds, "Nsys"), more);
        namespace.create_session(session, spec).await.map(drop)
    }

    /// A file or folder as the container sees it.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.process.root().join(inside.trim_start_matches('/'))
    }

    /// The agent of its node.
    ///
    /// # Errors
    /// When there is none.
    pub async fn agent(&self) -> Result<Running> {
        Running::agent_of(&self.client, &self.pod).await
    }

    /// The workload runs on as it was: PID, container, output and pace, no child of ours.
    ///
    /// # Errors
    /// When it was harmed.
    pub async fn is_unharmed(&self, namespace: &TestNamespace) -> Result<()> {
        ensure!(self.process.is_alive(), "PID 1 ended");
        self.before.goes_on(namespace).await
    }

    /// Nothing of a capture stays: no collection, no control command, no file in the container, no
    /// endpoint or connection in its network, no file on the node, no tool of the agent at work.
    ///
    /// # Errors
    /// When something stays.
    pub async fn nothing_stays_of(&self, capture: &str) -> Result<()> {
        let agent = self.agent().await?;
        eventually("nothing to stay of the capture", || async {
            if self.has_run_folder {
                let left = std::fs::read_dir(self.path(OUT))?.flatten();
                let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
                ensure!(left.is_empty(), "in the container: {left:?}");
            }
            ensure!(
                !self.path("/flopwatch/run/collecting").exists(),
                "a collection is still guarded"
            );
            let folders = remains::folders(self.process)?;
            ensure!(folders.is_empty(), "in the container's /tmp: {folders:?}");
            ensure!(
                !remains::has_endpoint(self.process)?,
                "the endpoint for PyTorch is still bound"
            );
            let connections = remains::connections(self.process, JAX_PORT)?;
            ensure!(connections == 0, "{connections} connections to the service of JAX");
            let spool = agent.path(SPOOL).join(capture);
            ensure!(!spool.exists(), "{} stays", spool.display());
            let at_work: Vec<_> = agent.children()?.into_iter().map(Process::words).collect();
            let of_capture = at_work.iter().flatten().any(|word| word.contains(capture));
            ensure!(!of_capture, "the agent's tools: {at_work:?}");
            Ok(Some(()))
        })
        .await
    }

    /// The profiler's session is the one that was there at the start, and nothing runs beside it.
    ///
    /// # Errors
    /// When it is another, or has company.
    pub async fn session_is_as_it_was(&self) -> Result<()> {
        eventually("the profiler's session to be as it was", || async {
            let now = node::sessions_of(&self.pod)?;
            let words: Vec<_> = now.iter().map(|process| process.words()).collect();
            ensure!(now == self.session, "{:?} became {now:?}: {words:?}", self.session);
            Ok(Some(()))
        })
        .await
    }

    /// All of it, after a fault that the session outlives; and the next session succeeds.
    ///
    /// # Errors
    /// When the fault left a mark.
    pub async fn recovers(&self, namespace: &TestNamespace, end: &End) -> Result<()> {
        self.has_no_mark_of(namespace, end).await?;
        self.succeeds(namespace, "afterwards", "Nsys").await
    }

    /// Nothing of a capture that has ended is left, and the workload goes on.
    ///
    /// # Errors
    /// When the capture left a mark.
    pub async fn has_no_mark_of(&self, namespace: &TestNamespace, end: &End) -> Result<()> {
        self.nothing_stays_of(&end.uid).await?;
        self.session_is_as_it_was().await?;
        self.is_unharmed(namespace).await
    }

    /// A session with that profiler succeeds and leaves no mark.
    ///
    /// # Errors
    /// When it fails or leaves one.
    pub async fn succeeds(&self, namespace: &TestNamespace, session: &str, profiler: &str) -> Result<()> {
        let more = json!({ "profiler": { "type": profiler } });
        self.profile_with(namespace, session, 1, more).await?;
        let end = namespace.success_of(session).await?;
        self.has_no_mark_of(namespace, &end).await
    }

    /// All of it, after a fault that the session may not outlive. It ends itself some time after
    /// the fault, if it does: the next session tells.
    ///
    /// # Errors
    /// When the fault left a mark on anything else.
    pub async fn goes_on_with_or_without_its_session(&self, namespace: &TestNamespace, end: &End) -> Result<()> {
        self.nothing_stays_of(&end.uid).await?;
        self.profile(namespace, "next", 1).await?;
        let next = namespace.end_of("next").await?;
        if next.succeeded {
            return self.recovers(namespace, &next).await;
        }
        ensure!(
            ["SessionGone", "AttachFailed", "CollectionFailed"].contains(&next.reason.as_str()),
            "{next:?}"
        );
        self.outlives_its_session(namespace, &next)
            .await
            .with_context(|| format!("the next session: {next:?}"))
    }

    /// All of it, after a fault that the session does not outlive: nothing of it stays, the
    /// workload goes on, and the next session says what to do.
    ///
    /// # Errors
    /// When the fault left a mark on anything else.
    pub async fn outlives_its_session(&self, namespace: &TestNamespace, end: &End) -> Result<()> {
        self.nothing_stays_of(&end.uid).await?;
        eventually("the session's supervisor to end with it", || async {
            let left = node::sessions_of(&self.pod)?;
            ensure!(left.is_empty(), "{left:?}");
            Ok(Some(()))
        })
        .await?;
        self.is_unharmed(namespace).await?;
        self.profile(namespace, "afterwards", 1).await?;
        namespace
            .fails_with("afterwards", "SessionGone", &["Restart the pod"])
            .await?;
        self.is_unharmed(namespace).await
    }
}

impl TestNamespace {
    /// Waits until a session has ended and its only capture too, and says how.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn end_of(&self, session: &str) -> Result<End> {
        let finished = self.finished(session).await?;
        let capture = match self.only_capture(session).await {
            Ok(capture) => capture,
            Err(error) => bail!("{error:#}; the session: {:?}", finished.status),
        };
        let session = condition_of(&finished, "Succeeded").context("no condition")?;
        let end = capture_condition(&capture, "Succeeded").context("no condition")?;
        let artifacts = capture.status.as_ref().map_or(0, |status| status.artifacts.len());
        Ok(End {
            uid: capture.uid().context("no UID")?,
            succeeded: end.status == "True",
            session_succeeded: session.status == "True",
            reason: end.reason.clone(),
            message: end.message.clone(),
            artifacts,
        })
    }

    /// Waits for the end of a session's only capture, which must have succeeded and published
    /// something.
    ///
    /// # Errors
    /// When it does not.
    pub async fn success_of(&self, session: &str) -> Result<End> {
        let end = self.end_of(session).await?;
        ensure!(end.succeeded && end.artifacts > 0, "session {session}: {end:?}");
        Ok(end)
    }

    /// Waits for the end of a session's only capture, which must have one of these reasons, say
    /// this, and have published nothing.
    ///
    /// # Errors
    /// When it ends otherwise.
    pub async fn nothing_of(&self, session: &str, reasons: &[&str], says: &str) -> Result<End> {
        let end = self.end_of(session).await?;
        ensure!(
            reasons.contains(&end.reason.as_str()) && end.message.contains(says) && end.artifacts == 0,
            "session {session}: {end:?}"
        );
        Ok(end)
    }

    /// Waits until a session and its only capture have failed, the capture with that reason and all
    /// of these words.
    ///
    /// # Errors
    /// When they end otherwise.
    pub async fn fails_with(&self, session: &str, reason: &str, says: &[&str]) -> Result<End> {
        let end = self.end_of(session).await?;
        let is_said = says.iter().all(|words| end.message.contains(words));
        ensure!(
            !end.succeeded && !end.session_succeeded && end.reason == reason && is_said,
            "session {session}: {end:?}"
        );
        Ok(end)
    }

    /// Waits until the only capture of a session is in a stage, and returns it.
    ///
    /// # Errors
    /// When it is not in time, or has passed it.
    pub async fn in_stage(&self, session: &str, stage: Stage) -> Result<Capture> {
        eventually(&format!("session {session} to be {}", stage.as_str()), || async {
            let capture = self.only_capture(session).await?;
            let progress = capture.status.as_ref().and_then(|status| status.progress.as_ref());
            Ok((progress.map(|progress| progress.stage) == Some(stage)).then_some(capture))
        })
        .await
    }
}
