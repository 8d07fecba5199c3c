//! A day of a schedule, compressed: windows on both nodes for minutes, and nothing that grows. A
//! minute here; as long as wanted with `cargo xtask soak --schedule-minutes`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Capture;
use flopwatch_api::phase::Phase;
use flopwatch_api::schedule::{ProfilingSchedule, SCHEDULE_LABEL, SkipReason};
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::cluster::{Cluster, Group, TestNamespace, eventually};
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::pods::sample;
use flopwatch_system_tests::prometheus::Prometheus;
use flopwatch_system_tests::workload::counts;
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

/// Names how many minutes it takes.
const MINUTES: &str = "FLOPWATCH_SCHEDULE_MINUTES";
/// From so many minutes on, what grows is held to bounds: before, the schedule's history is not
/// full.
const LONG_RUN_MINUTES: u64 = 20;
/// Time between two slots of the schedule whose windows are counted, in seconds.
const SLOT_SECONDS: u64 = 60;
/// Time between two slots of the compressed day, in seconds: those of 24 minutes are a day of
/// windows each ten minutes.
const SHORT_SLOT_SECONDS: u64 = 10;
/// Sessions that are kept which succeeded. Those that failed all are.
const SUCCESSES_KEPT: usize = 5;
/// Most sessions of a schedule: those by which a class of pods is judged, and those that wait or
/// run on a busy machine.
const MAX_SESSIONS: usize = 21 + 16;
/// Time between two looks at what might grow.
const POLL_INTERVAL: Duration = Duration::from_secs(15);
/// A size may be so much more in the last quarter than in the second: what allocators keep, and
/// windows under way.
const MAX_GROWTH_RATIO: f64 = 1.10;
/// A workload that is profiled may be so much slower than the one beside it.
const MAX_SLOWDOWN_RATIO: f64 = 0.01;

/// What might grow, at one time.
type Sizes = BTreeMap<&'static str, f64>;

/// Two pods on each node, one of them beside the schedules.
struct Ground {
    namespace: TestNamespace,
    prometheus: Prometheus,
    agents: Vec<Running>,
    controller: Running,
}

impl Ground {
    async fn new(cluster: &Cluster, nodes: &[String; 2]) -> Result<Self> {
        let namespace = cluster.namespace("schedule-day").await?;
        for (number, node) in nodes.iter().enumerate() {
            for app in ["minute", "day", "control"] {
                let mut pod = on_node(sample(app), node);
                pod["metadata"]["name"] = json!(format!("{app}-{number}"));
                namespace.create_pod(pod).await?;
            }
        }
        for app in ["minute", "day", "control"] {
            for number in 0..nodes.len() {
                namespace.launch_state(&format!("{app}-{number}")).await?;
            }
        }
        Ok(Self {
            prometheus: Prometheus::start(&cluster.client).await?,
            agents: Running::agents(&cluster.client).await?,
            controller: Running::controller(&cluster.client).await?,
            namespace,
        })
    }

    async fn schedule(&self, app: &str, seconds: u64, window: u64) -> Result<()> {
        let spec = json!({
            "when": { "interval": { "seconds": seconds } }, "jitterSeconds": 0, "concurrencyPolicy": "Allow",
            "select": {
                "podSelector": { "matchLabels": { "app": app } }, "perRun": { "percent": 100 }, "minPodAgeSeconds": 0
            },
            "session": { "profiler": { "type": "Nsys" }, "durationSeconds": window, "require": ["nvtx_range"] },
            "budget": { "amortizedBasisPoints": 10_000 },
            "history": { "succeeded": SUCCESSES_KEPT, "failed": 1000 }
        });
        self.namespace.create_schedule(app, spec).await.map(drop)
    }

    async fn suspend(&self, schedule: &str) -> Result<()> {
        let suspend = Patch::Merge(json!({ "spec": { "suspend": true } }));
        let schedules = self.namespace.api::<ProfilingSchedule>();
        schedules.patch(schedule, &PatchParams::default(), &suspend).await?;
        Ok(())
    }

    async fn captures(&self, schedule: &str) -> Result<Vec<Capture>> {
        Ok(self.namespace.api().list(&of(schedule)).await?.items)
    }

    async fn sizes(&self) -> Result<Sizes> {
        let sessions: Vec<ProfilingSession> = self.namespace.api().list(&of("day")).await?.items;
        let mut sizes = BTreeMap::from([
            ("sessions", float(sessions.len())),
            ("captures", float(self.captures("day").await?.len())),
            ("controller bytes", bytes(&self.controller)?),
        ]);
        let names = [["agent 0 bytes", "agent 0 files"], ["agent 1 bytes", "agent 1 files"]];
        for (agent, [memory, files]) in self.agents.iter().zip(names) {
            sizes.insert(memory, bytes(agent)?);
            sizes.insert(files, float(count_files(&agent.path("/var/lib/flopwatch"))));
        }
        let series = self.prometheus.query("count({__name__=~\"flopwatch_.+\"})").await?;
        if let Some(series) = series.first() {
            sizes.insert("series", series.value.1.parse()?);
        }
        Ok(sizes)
    }

    /// Ranges that a pod's workload ended in each second between two times.
    async fn pace(&self, pod: &str, from_ns: u64, until_ns: u64) -> Result<f64> {
        let log = self.namespace.logs(pod).await?;
        let counts = counts(&log).into_values().next().context("no counts")?;
        let mut inside = counts
            .iter()
            .filter(|count| (from_ns..=until_ns).contains(&count.unix_ns));
        let first = inside.next().context("no count")?;
        let last = inside.next_back().context("one count")?;
        let seconds = Duration::from_nanos(last.unix_ns - first.unix_ns).as_secs_f64();
        Ok(f64::from(u32::try_from(last.ranges - first.ranges)?) / seconds)
    }
}

fn of(schedule: &str) -> ListParams {
    ListParams::default().labels(&format!("{SCHEDULE_LABEL}={schedule}"))
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn bytes(part: &Running) -> Result<f64> {
    // In KiB, so that it fits.
    Ok(f64::from(u32::try_from(part.process.own_bytes()? >> 10)?) * 1024.0)
}

fn count_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => count_files(&entry.path()),
            _ => 1,
        })
        .sum()
}

fn now_ns() -> Result<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?)
}

/// Windows that ended, those of sessions that are gone too.
#[derive(Default)]
struct Windows {
    succeeded: BTreeSet<String>,
    failed: BTreeSet<String>,
}

impl Windows {
    fn add(&mut self, captures: &[Capture]) {
        for capture in captures {
            let name = capture.name_any();
            match Phase::of(capture) {
                Phase::Succeeded => self.succeeded.insert(name),
                Phase::Failed { reason, message } => self.failed.insert(format!("{name}: {reason}: {message}")),
                _ => false,
            };
        }
    }
}

/// The middle of what one size was in a quarter of the looks.
fn middle(looks: &[Sizes], quarter: usize, name: &str) -> f64 {
    let length = looks.len() / 4;
    let part = looks.iter().skip(length * quarter).take(length);
    let mut values: Vec<f64> = part.filter_map(|sizes| sizes.get(name).copied()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Each size in the quarters of the looks, and whether it grew from the second to the last.
fn growth(looks: &[Sizes]) -> Vec<(String, bool)> {
    let names = looks.last().into_iter().flat_map(BTreeMap::keys);
    names
        .map(|name| {
            let (before, after) = (middle(looks, 1, name), middle(looks, 3, name));
            let grew = after > before.mul_add(MAX_GROWTH_RATIO, if name.ends_with("bytes") { 0.0 } else { 4.0 });
            (
                format!("{name}: {:?}", [0, 1, 2, 3].map(|quarter| middle(looks, quarter, name))),
                grew,
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_of_windows_leaves_nothing_that_grows_and_no_workload_slower() -> Result<()> {
    let Some(cluster) = Cluster::connect_first(Group::Shared).await? else {
        return Ok(());
    };
    let Some((cluster, nodes)) = cluster.two_nodes().await? else {
        return Ok(());
    };
    let minutes: u64 = std::env::var(MINUTES).map_or(Ok(1), |text| text.parse())?;
    let ground = Ground::new(&cluster, &nodes).await?;
    ground.schedule("minute", SLOT_SECONDS, 5).await?;
    ground.schedule("day", SHORT_SLOT_SECONDS, 2).await?;
    eventually("the first window", || async {
        Ok((!ground.captures("minute").await?.is_empty()).then_some(()))
    })
    .await?;
    let (begin, from_ns) = (Instant::now(), now_ns()?);
    let end = begin + Duration::from_secs(minutes * 60);
    let mut windows = Windows::default();
    let mut looks = Vec::new();
    while Instant::now() < end {
        sleep_until(end.min(Instant::now() + POLL_INTERVAL)).await;
        looks.push(ground.sizes().await?);
        windows.add(&ground.captures("minute").await?);
    }
    let until_ns = now_ns()?;
    for schedule in ["minute", "day"] {
        ground.suspend(schedule).await?;
    }
    eventually("the windows under way to end", || async {
        let captures = ground.captures("minute").await?;
        let ended = captures.iter().all(|capture| Phase::of(capture).has_ended());
        Ok(ended.then_some(()))
    })
    .await?;
    windows.add(&ground.captures("minute").await?);
    let expected = usize::try_from(minutes)? * nodes.len();
    let Windows { succeeded, failed } = windows;
    let count = succeeded.len();
    println!("{count} of {expected} windows each {SLOT_SECONDS} s succeeded, failed: {failed:?}");
    ensure!(failed.is_empty(), "{failed:?}");
    // The first slot and the last may lie outside.
    ensure!(count + nodes.len() >= expected, "{count} of {expected}");
    for schedule in ["minute", "day"] {
        let status = ground.namespace.api::<ProfilingSchedule>().get(schedule).await?.status;
        let skipped = status.context("no status")?.skipped;
        println!("{schedule}: skipped {skipped:?}");
        let missed = skipped.iter().find(|skipped| skipped.reason == SkipReason::Missed);
        ensure!(missed.is_none(), "{schedule}: {missed:?}");
    }
    let mut slow = Vec::new();
    for number in 0..nodes.len() {
        let control = ground.pace(&format!("control-{number}"), from_ns, until_ns).await?;
        for app in ["minute", "day"] {
            let pace = ground.pace(&format!("{app}-{number}"), from_ns, until_ns).await? / control;
            println!("{app}-{number}: {pace:.4} of the pace of the pod beside it");
            if pace < 1.0 - MAX_SLOWDOWN_RATIO {
                slow.push((app, number, pace));
            }
        }
    }
    let growth = growth(&looks);
    println!("{growth:#?}");
    if minutes >= LONG_RUN_MINUTES {
        ensure!(slow.iter().all(|(app, ..)| *app != "minute"), "{slow:?}");
        ensure!(growth.iter().all(|(_, grew)| !grew), "{growth:#?}");
    }
    let left = looks.last().and_then(|sizes| sizes.get("sessions").copied());
    ensure!(
        left.is_some_and(|left| left <= float(MAX_SESSIONS)),
        "{left:?} sessions"
    );
    ground.namespace.delete().await
}
