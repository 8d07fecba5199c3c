//! As many sessions as nodes at once, of some captures each: a real API server, the release's
//! controller, gateway and admission, and nodes whose agents have the real status and no machine.
//! Fifty nodes here; a thousand with `cargo xtask bench fleet`.

mod agent;
mod figures;
mod listener;
mod machines;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use figures::{Peaks, Requests};
use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually, run};
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::prometheus::Prometheus;
use flopwatch_system_tests::sessions::condition_of;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use listener::{Gateway, Heard};
use machines::{Machines, each};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The release's values: as many captures at once as there are pods, of nodes that nobody loses.
const VALUES: [&str; 3] = [
    "--set=controller.maxCapturesPerNamespace=0",
    "--set=controller.nodeLostSeconds=120",
    "--set-string=agent.nodeSelector.kubernetes\\.io/os=linux",
];
/// How many nodes.
const NODES: &str = "FLOPWATCH_FLEET_NODES";
/// Fifty in CI.
const SMALL: Size = Size {
    nodes: 50,
    pods_each: 4,
    window: 5,
    come_back: 3,
};
/// Clients that hear of every session.
const LISTENERS: usize = 256;
/// Clients that go as soon as they have shown their tokens.
const GONE_LISTENERS: usize = 200;
/// Longest wait for all sessions to end, and for all captures to be gone.
const RUN_TIMEOUT: Duration = Duration::from_mins(40);
/// Time between two looks.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Most writes to the API server per capture, with those of its session.
const MAX_WRITES_PER_CAPTURE: f64 = 11.0;
/// Longest time from the first session to the end of the last, beyond its window, in seconds.
const MAX_SECONDS_BEYOND_WINDOW: i64 = 60;
/// Most memory of the controller and of the gateway, without pages of their program.
const CONTROLLER_BYTES: u64 = 100_000_000;
const GATEWAY_BYTES: u64 = 256_000_000;
/// Most series that sessions may add, however many: the results of the last 200 captures have 7
/// each, and conversions as many as there are kinds of them.
const MORE_SERIES: u64 = 3000;

/// How large a fleet is.
#[derive(Clone, Copy)]
struct Size {
    /// Nodes, and sessions.
    nodes: usize,
    /// Pods of a node, and of a session.
    pods_each: usize,
    /// Seconds of a window.
    window: u32,
    /// Most lists and watches of captures that an agent may begin when the API server is there
    /// again, its own watch counted.
    come_back: u64,
}

impl Size {
    /// As the bench asks: windows of a minute, so that captures are made while others record.
    fn asked() -> Result<Self> {
        let Ok(nodes) = std::env::var(NODES) else {
            return Ok(SMALL);
        };
        Ok(Self {
            nodes: nodes.parse()?,
            pods_each: 10,
            window: 60,
            // The API server takes minutes to fill its cache. Meanwhile it refuses watches, each
            // agent's twice; the next is too old, and after five minutes every watch is begun anew.
            come_back: 6,
        })
    }

    const fn captures(self) -> usize {
        self.nodes * self.pods_each
    }
}

/// A fleet whose agents work and whose gateway is listened to.
struct Fleet {
    machines: Machines,
    client: Client,
    heard: Arc<Heard>,
    /// Those of the listeners' accounts.
    namespaces: Vec<TestNamespace>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Fleet {
    async fn start(cluster: &Cluster, size: Size) -> Result<Self> {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let client = cluster.client.clone();
        let machines = Machines::create(cluster, size.nodes, size.pods_each).await?;
        tasks.spawn(Machines::live(client.clone(), size.nodes, stop.clone()));
        for number in 0..size.nodes {
            let name = machines::node(number);
            tasks.spawn(agent::run(agent::client(&name).await?, name, stop.clone()));
        }
        let heard = Arc::new(Heard::default());
        let gateway = Gateway::find(&client).await?;
        let (namespaces, tokens): (Vec<_>, Vec<_>) = listener::tokens(cluster, LISTENERS).await?.into_iter().unzip();
        // One that goes in the moment in which it is let in must keep no place.
        for token in tokens.iter().cycle().take(GONE_LISTENERS) {
            drop(gateway.ask(token).await);
        }
        for (number, token) in tokens.iter().cycle().take(LISTENERS).enumerate() {
            let (gateway, token, heard, stop) = (gateway.clone(), token.clone(), Arc::clone(&heard), stop.clone());
            tasks.spawn(listener::listen(gateway, token, heard, stop));
            // The gateway lets so many of one address in at a time that showed no token yet.
            if number % 8 == 7 {
                sleep(Duration::from_millis(100)).await;
            }
        }
        eventually("all listeners to be let in", || async {
            let present = heard.present.load(Ordering::Relaxed);
            ensure!(present == LISTENERS, "{present} are: {:?}", heard.refused.lock());
            Ok(Some(()))
        })
        .await?;
        Ok(Self {
            machines,
            client,
            heard,
            namespaces,
            stop,
            tasks,
        })
    }

    /// Asks for as many sessions as there are nodes.
    async fn ask(&self, seconds: u32) -> Result<()> {
        each(0..self.machines.nodes, |number| async move {
            let session: ProfilingSession = serde_json::from_value(json!({
                "apiVersion": "flopwatch.dev/v1alpha1", "kind": "ProfilingSession",
                "metadata": { "name": machines::session(number) },
                "spec": {
                    "target": { "podSelector": { "matchLabels": { "run": machines::session(number) } }, "maxPods": self.machines.pods_each },
                    "durationSeconds": seconds, "startDeadlineSeconds": RUN_TIMEOUT.as_secs()
                }
            }))?;
            let sessions = Api::<ProfilingSession>::namespaced(self.client.clone(), &machines::namespace_of(number));
            sessions.create(&PostParams::default(), &session).await?;
            Ok(())
        })
        .await
    }

    /// All sessions, or captures, of the fleet.
    async fn list<K>(&self) -> Result<Vec<K>>
    where
        K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let all: Api<K> = Api::all(self.client.clone());
        let mut found = all.list(&ListParams::default()).await?.items;
        found.retain(|one| one.namespace().is_some_and(|name| name.starts_with("fleet-")));
        Ok(found)
    }

    /// Waits until all sessions ended.
    async fn ended(&self) -> Result<Vec<ProfilingSession>> {
        let begin = Instant::now();
        loop {
            // An API server that is away is asked again.
            if let Ok(sessions) = self.list::<ProfilingSession>().await
                && sessions.iter().all(|session| end_of(session).is_some())
            {
                return Ok(sessions);
            }
            ensure!(
                begin.elapsed() < RUN_TIMEOUT,
                "sessions have not ended after {RUN_TIMEOUT:?}"
            );
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn delete_sessions(&self) -> Result<()> {
        each(0..self.machines.nodes, |number| async move {
            let sessions = Api::<ProfilingSession>::namespaced(self.client.clone(), &machines::namespace_of(number));
            sessions
                .delete(&machines::session(number), &DeleteParams::default())
                .await?;
            Ok(())
        })
        .await?;
        let begin = Instant::now();
        while !self.list::<Capture>().await?.is_empty() {
            ensure!(
                begin.elapsed() < RUN_TIMEOUT,
                "captures are not gone after {RUN_TIMEOUT:?}"
            );
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn end(self) -> Result<()> {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        for namespace in self.namespaces {
            namespace.delete().await?;
        }
        Ok(())
    }
}

/// When the session said how it ended, and whether it succeeded.
fn end_of(session: &ProfilingSession) -> Option<(Timestamp, bool)> {
    let succeeded = condition_of(session, "Succeeded")?;
    (succeeded.status != "Unknown").then(|| (succeeded.last_transition_time.0, succeeded.status == "True"))
}

/// All sessions and all captures succeeded, none twice and none is missing.
fn check(size: Size, sessions: &[ProfilingSession], captures: &[Capture]) -> Result<()> {
    ensure!(
        sessions.len() == size.nodes,
        "{} of {} sessions",
        sessions.len(),
        size.nodes
    );
    let failed = sessions
        .iter()
        .find(|session| end_of(session).is_none_or(|(_, succeeded)| !succeeded));
    ensure!(
        failed.is_none(),
        "{:?}",
        failed.and_then(|session| session.status.as_ref())
    );
    ensure!(captures.len() == size.captures(), "{} captures", captures.len());
    let failed = captures.iter().find(|capture| Phase::of(capture) != Phase::Succeeded);
    ensure!(
        failed.is_none(),
        "{:?}",
        failed.and_then(|capture| capture.status.as_ref())
    );
    Ok(())
}

/// Seconds from the first session to the end of the last, and from a session to its last capture at
/// most.
fn times(sessions: &[ProfilingSession], captures: &[Capture]) -> Result<(i64, i64)> {
    let created = |meta: &ObjectMeta| meta.creation_timestamp.as_ref().map(|time| time.0.as_second());
    let first = sessions.iter().filter_map(|session| created(&session.metadata)).min();
    let last = sessions
        .iter()
        .filter_map(end_of)
        .map(|(time, _)| time.as_second())
        .max();
    let mut made = 0;
    for session in sessions {
        let own = captures.iter().filter(|capture| {
            capture.namespace() == session.namespace() && capture.spec.session_ref.name == session.name_any()
        });
        let latest = own.filter_map(|capture| created(&capture.metadata)).max();
        made = made.max(latest.context("no captures")? - created(&session.metadata).context("no time")?);
    }
    Ok((last.context("no end")? - first.context("no begin")?, made))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_profiled_at_once_within_its_budgets_and_through_an_api_server_and_a_leader_that_end() -> Result<()>
{
    // The release cannot be installed while nodes are there on which its agents never run.
    let Some(cluster) = Cluster::connect_after(Group::Scale, Machines::delete, &VALUES).await? else {
        return Ok(());
    };
    let outcome = Box::pin(measure(&cluster, Size::asked()?)).await;
    // Whatever came of it: the next tests have no use for its nodes.
    let deleted = Machines::delete(&cluster.client).await;
    outcome.and(deleted)
}

#[expect(clippy::print_stdout, reason = "the figures are what the bench says")]
async fn measure(cluster: &Cluster, size: Size) -> Result<()> {
    let Size { nodes, window, .. } = size;
    // It has read all parts once the fleet is there.
    let prometheus = Prometheus::start(&cluster.client).await?;
    let fleet = Fleet::start(cluster, size).await?;
    let (controller, gateway) = (
        Running::controller(&cluster.client).await?,
        Running::gateway(&cluster.client).await?,
    );
    let count = size.captures();

    let (series, before) = (
        figures::series(&prometheus).await?,
        Requests::read(&cluster.client).await?,
    );
    let peaks = Peaks::watch(&[&controller, &gateway]);
    fleet.ask(window).await?;
    let sessions = fleet.ended().await?;
    let since = Requests::read(&cluster.client).await?.since(&before);
    let captures = fleet.list::<Capture>().await?;
    check(size, &sessions, &captures)?;
    let (took, made) = times(&sessions, &captures)?;
    // The sessions themselves are written by who asks for them.
    let asked = u64::try_from(nodes)?;
    let (of_captures, of_sessions) = (since.writes("captures"), since.writes("profilingsessions") - asked);
    let each =
        |writes: u64| Ok::<_, anyhow::Error>(f64::from(u32::try_from(writes)?) / f64::from(u32::try_from(count)?));
    let (own, with_session) = (each(of_captures)?, each(of_captures + of_sessions)?);
    let told = each(since.writes("events"))?;
    let (own_most, most) = (
        peaks.bytes(),
        [controller.process.peak_bytes()?, gateway.process.peak_bytes()?],
    );
    let more = figures::series(&prometheus).await?.saturating_sub(series);
    let notices = fleet.heard.notices.load(Ordering::Relaxed);
    println!("{nodes} sessions, {count} captures on {nodes} nodes, a window of {window} s, {LISTENERS} listeners");
    let beyond = took - i64::from(window);
    println!("all ended {beyond} s beyond their window; a session had its captures after {made} s at most");
    println!("writes per capture: {own:.1}, with its session's {with_session:.1}");
    println!("Events per capture: {told:.1}");
    println!("most memory of controller and gateway: {own_most:?} bytes of their own, {most:?} with their programs");
    println!("series: {series} before, {more} more; notices heard: {notices}");

    fleet.delete_sessions().await?;
    fleet.ask(window).await?;
    sleep(Duration::from_secs(u64::from(window) / 2)).await;
    let (killed, restarted) = tokio::join!(controller.killed(&cluster.client), restart_api());
    let controller = killed?;
    let next = Peaks::watch(&[&controller]);
    restarted?;
    let sessions = fleet.ended().await?;
    check(size, &sessions, &fleet.list::<Capture>().await?)?;
    let after = Requests::read(&cluster.client).await?;
    let came_back = after.of(&["LIST", "WATCH"], "captures");
    println!(
        "after the API server's restart: {came_back} lists and watches of captures by {nodes} agents, {} writes per capture",
        each(after.writes("captures"))?
    );
    let next = next.bytes();
    println!("most memory of the controller that came next: {next:?} bytes of its own");
    fleet.delete_sessions().await?;
    fleet.end().await?;

    ensure!(beyond <= MAX_SECONDS_BEYOND_WINDOW, "{beyond} s beyond the window");
    ensure!(
        with_session <= MAX_WRITES_PER_CAPTURE,
        "{with_session:.1} writes per capture"
    );
    let limits = own_most
        .iter()
        .chain(&next)
        .zip([CONTROLLER_BYTES, GATEWAY_BYTES, CONTROLLER_BYTES]);
    ensure!(
        limits.clone().all(|(bytes, most)| *bytes <= most),
        "{:?}",
        limits.collect::<Vec<_>>()
    );
    ensure!(more <= MORE_SERIES, "{more} more series");
    ensure!(each(after.writes("captures"))? <= MAX_WRITES_PER_CAPTURE, "{after:?}");
    // The operator's parts watch them too, and the controller lists those of a session before it
    // makes some and before it ends.
    ensure!(
        came_back <= size.come_back * (asked + 8) + 2 * asked,
        "{came_back} lists and watches"
    );
    Ok(())
}

/// Ends the API server and starts it anew.
async fn restart_api() -> Result<()> {
    let recipes =
        std::env::var("FLOPWATCH_XTASK").context("FLOPWATCH_XTASK names the recipes: cargo xtask cluster env")?;
    run(&recipes, &["cluster", "restart-api"]).await.map(drop)
}
