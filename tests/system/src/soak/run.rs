//! A whole run: workloads beside each other, each going from cycle to cycle.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Capture;
use kube::api::ListParams;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::cluster::{Cluster, TestNamespace, eventually};
use crate::fetch::raw_reader_token;
use crate::node::Process;
use crate::parts::{Running, SPOOL};
use crate::soak::both::Counted;
use crate::soak::cycle::{Lane, Shared};
use crate::soak::ground::Ground;
use crate::soak::inspection::{Inspection, Output, inspect};
use crate::soak::launches::READER;
use crate::soak::ledger::Ledger;
use crate::soak::plan::{Draw, Plan};
use crate::soak::report::Report;

/// Name of the pod that nobody profiles.
const CONTROL: &str = "control";

/// As many captures as a namespace may have at once in the release under test.
const LANES_PER_NAMESPACE: usize = 3;

/// How a run is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cycles in all, those of earlier parts of the run included.
    pub cycles: u64,
    /// Workloads at a time, one at least of each program that the profilers want.
    pub workloads: usize,
    /// Draws the profilers and the faults.
    pub seed: u64,
    /// How it draws them.
    pub draw: Draw,
    /// Where ledger and report are written.
    pub folder: PathBuf,
    /// Take up the run in that folder.
    pub resume: bool,
}

/// Runs it and writes its report.
///
/// # Errors
/// When the run itself cannot go on; a harmed workload is a finding of the report.
pub async fn run(cluster: &Cluster, options: &Options, progress: fn(&str)) -> Result<Report> {
    let begin = Instant::now();
    let ledger = Ledger::open(
        &options.folder,
        options.resume,
        options.seed,
        options.workloads,
        options.draw.only(),
    )?;
    let seed = ledger.seed;
    progress(&format!(
        "soak: {} cycles on {} workloads, seed {seed}, {} done before",
        options.cycles,
        options.workloads,
        ledger.records.len()
    ));
    let mut open: BTreeMap<Ground, Vec<Plan>> = BTreeMap::new();
    let plans = (0..options.cycles).filter(|cycle| !ledger.records.contains_key(cycle));
    for plan in plans.map(|cycle| Plan::of(seed, cycle, &options.draw)) {
        open.entry(plan.ground).or_default().push(plan);
    }
    let grounds: Vec<Ground> = open.keys().copied().collect();
    ensure!(
        options.workloads >= grounds.len(),
        "there are {} programs: each wants a workload",
        grounds.len()
    );
    let counts = Ground::lanes(&grounds, options.workloads);
    let (ledger, shared) = (Arc::new(Mutex::new(ledger)), Arc::new(Shared::default()));
    let mut lanes = JoinSet::new();
    let mut yards = Vec::new();
    for ((ground, open), count) in open.into_iter().zip(counts) {
        let yard = Yard::open(cluster, ground, count).await?;
        let (open, next) = (Arc::new(open), Arc::new(AtomicUsize::new(0)));
        for (index, namespace) in (0..count).zip(yard.namespaces.iter().cycle()) {
            let lane = Lane {
                namespace: Arc::clone(namespace),
                shared: Arc::clone(&shared),
                ground,
                index,
                trainer: None,
                generation: 0,
                outputs: Vec::new(),
                ring: None,
                counted: Counted::default(),
                miscounted: Vec::new(),
            };
            let (open, next, ledger) = (Arc::clone(&open), Arc::clone(&next), Arc::clone(&ledger));
            let cluster = cluster.clone();
            lanes.spawn(async move { Box::pin(travel(lane, &cluster, &open, &next, &ledger, begin, progress)).await });
        }
        yards.push(yard);
    }
    let (mut outputs, mut harmed, mut counted, mut miscounted) =
        (Vec::new(), Vec::new(), Counted::default(), Vec::new());
    while let Some(travelled) = lanes.join_next().await {
        let (lane, finding) = travelled??;
        outputs.extend(lane.outputs);
        counted.add(lane.counted);
        miscounted.extend(lane.miscounted);
        harmed.extend(finding);
    }
    let mut controls = Vec::new();
    for yard in &yards {
        controls.push(yard.control().await?);
    }
    let mut inspection = inspect(&outputs, &controls);
    inspection.harmed.extend(harmed);
    (inspection.counted, inspection.miscounted) = (counted, miscounted);
    let namespaces: Vec<_> = yards.into_iter().flat_map(|yard| yard.namespaces).collect();
    if let Err(error) = nothing_stays(cluster, &namespaces).await {
        inspection.orphans.push(format!("{error:#}"));
    }
    finish(options, &*ledger.lock().await, inspection, begin, namespaces).await
}

/// The namespaces of a ground's lanes, with a pod in the first of them that nobody profiles.
struct Yard {
    ground: Ground,
    namespaces: Vec<Arc<TestNamespace>>,
}

impl Yard {
    async fn open(cluster: &Cluster, ground: Ground, lanes: usize) -> Result<Self> {
        let mut namespaces = Vec::new();
        for _ in 0..lanes.div_ceil(LANES_PER_NAMESPACE).max(1) {
            let namespace = cluster.namespace(ground.namespace()).await?;
            match ground {
                Ground::Sample => namespace.allow_pod_templates().await?,
                Ground::Frameworks => namespace.allow_host_folders().await?,
                Ground::SimulatedGpu => drop(raw_reader_token(&namespace, READER).await?),
            }
            namespaces.push(Arc::new(namespace));
        }
        let yard = Self { ground, namespaces };
        let first = yard.first()?;
        first.create_pod(ground.pod(CONTROL, false, 0)?).await?;
        first.running(CONTROL).await?;
        Ok(yard)
    }

    fn first(&self) -> Result<&TestNamespace> {
        self.namespaces.first().map(AsRef::as_ref).context("no namespace")
    }

    /// What the pod said that nobody profiled.
    async fn control(&self) -> Result<Output> {
        let log = self.first()?.logs(CONTROL).await?;
        Ok(Output::of(self.ground, CONTROL, &log))
    }
}

/// One workload goes from cycle to cycle until none is left.
async fn travel(
    mut lane: Lane,
    cluster: &Cluster,
    open: &[Plan],
    next: &AtomicUsize,
    ledger: &Mutex<Ledger>,
    begin: Instant,
    progress: fn(&str),
) -> Result<(Lane, Option<String>)> {
    while let Some(plan) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
        let record = Box::pin(lane.cycle(cluster, *plan)).await;
        let mut ledger = ledger.lock().await;
        ledger.write(record.clone())?;
        let found = |what: fn(&crate::soak::Record) -> bool| ledger.records.values().filter(|one| what(one)).count();
        progress(&format!(
            "soak: {} done after {:.0} s, harmed {}, orphans {}, surprises {}; cycle {} ({}, {:?}) ended with {} in {:.1} s{}",
            ledger.records.len(),
            begin.elapsed().as_secs_f64(),
            found(|one| one.harm.is_some()),
            found(|one| one.orphan.is_some()),
            found(|one| one.surprise.is_some()),
            record.cycle,
            record.profiler.as_str(),
            record.fault,
            record.reason,
            record.seconds,
            record.findings()
        ));
    }
    let finding = match lane.finish().await {
        Ok(finding) => finding,
        Err(error) => Some(format!("{} was not seen to its end: {error:#}", lane.name())),
    };
    Ok((lane, finding))
}

/// With all sessions deleted there is no capture, no spool file, no tool and no artifact.
async fn nothing_stays(cluster: &Cluster, namespaces: &[Arc<TestNamespace>]) -> Result<()> {
    eventually("nothing to stay of the run", || async {
        for namespace in namespaces {
            let captures = namespace.api::<Capture>().list(&ListParams::default()).await?;
            ensure!(captures.items.is_empty(), "{} captures stay", captures.items.len());
        }
        for agent in Running::agents(&cluster.client).await? {
            let spool = std::fs::read_dir(agent.path(SPOOL))?.count();
            ensure!(spool == 0, "{spool} spool folders stay");
            let tools: Vec<_> = agent.children()?.into_iter().map(Process::words).collect();
            ensure!(tools.is_empty(), "{tools:?} stay");
        }
        Ok(Some(()))
    })
    .await
}

async fn finish(
    options: &Options,
    ledger: &Ledger,
    inspection: Inspection,
    begin: Instant,
    namespaces: Vec<Arc<TestNamespace>>,
) -> Result<Report> {
    let report = Report::of(
        ledger.seed,
        options.workloads,
        begin.elapsed().as_secs_f64(),
        ledger.records.values(),
        inspection,
    );
    report.write(&options.folder)?;
    for namespace in namespaces {
        Arc::into_inner(namespace)
            .context("a lane still runs")?
            .delete()
            .await?;
    }
    Ok(report)
}
