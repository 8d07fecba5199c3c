//! From a session's creation to its picture, stage by stage, with Nsight Systems and with the CUDA
//! tracer by turns, and how soon pods are ready that are prepared for them.
//! `cargo xtask bench stages` runs it for more rounds.

mod figures;
mod ready;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use flopwatch_api::capture::Stage;
use flopwatch_api::session::ProfilingSession;
use flopwatch_system_tests::chart;
use flopwatch_system_tests::cluster::{Group, TestNamespace, eventually_each};
use flopwatch_system_tests::fetch::ArtifactClient;
use flopwatch_system_tests::nodes::on_node;
use flopwatch_system_tests::parts::Running;
use flopwatch_system_tests::pods::workload;
use flopwatch_system_tests::sessions::{condition_of, of_main, spec, with};
use flopwatch_system_tests::simulated_gpu::{Program, told};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, LogParams};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use figures::{Beside, Figures, seconds};

/// How many rounds, one after the other.
const ROUNDS: &str = "FLOPWATCH_STAGES_ROUNDS";
/// Seconds of a window.
const WINDOW_SECONDS: u32 = 5;
/// Time between two looks at an object.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// What the viewer asks for at first.
const FIRST: &str = "bytes=0-196607";
/// Kernels a second that the program of the simulated GPU launches while its session is there, and
/// for how long at a time.
const LAUNCHES_PER_SECOND: u32 = 10_000;
const LAUNCHES_DURATION: Duration = Duration::from_millis(500);

/// One test of these at a time: each would measure the work of the other.
static ALONE: Mutex<()> = Mutex::const_new(());

/// What is told of each session, in this order.
const STEPS: [&str; 7] = [
    "until the agent has it",
    "until it records",
    "the window",
    "stop and fetch",
    "import and transform",
    "publish, until the session says so",
    "first bytes of the timeline",
];

/// What several steps take together: the first of them, the one behind the last, and what they may
/// take with the CUDA tracer at the median, in ms.
const SPANS: [(&str, usize, usize, u64); 2] = [
    ("from its creation to recording", 0, 2, 400),
    ("from the window's end to the first bytes", 3, 7, 300),
];

/// Unix times in ms: when a session was created, and when each of its steps was over.
type Times = [u64; STEPS.len() + 1];

#[tokio::test(flavor = "multi_thread")]
async fn every_stage_of_a_session_is_told_in_its_order() -> Result<()> {
    let Some(namespace) = TestNamespace::begin(Group::Shared, "stages").await? else {
        return Ok(());
    };
    let _alone = ALONE.lock().await;
    namespace.launch(workload("nsys", true, &[])).await?;
    let pod = namespace.running("nsys").await?;
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let node = node.context("the pod is on no node")?;
    namespace.create_pod(on_node(told("cuda", "cuda"), node)).await?;
    let mut program = Program::begun(&namespace, "cuda").await?;
    let user = User {
        agent: Running::agent_of(&namespace.client, &pod).await?.pod,
        token: namespace.reader().await?,
        client: ArtifactClient::new(&namespace.client).await?,
        namespace: &namespace,
    };
    let mut all: [Vec<Times>; 2] = Default::default();
    for round in 0..rounds()? {
        let nsys = spec("nsys", WINDOW_SECONDS, "Nsys");
        let nsys = with(nsys, json!({ "require": ["nvtx_range"] }));
        all[0].push(user.session(&format!("nsys-{round}"), nsys).await?);
        let name = format!("cuda-{round}");
        let ended = CancellationToken::new();
        let profiled = async {
            let _ended = ended.clone().drop_guard();
            user.session(&name, of_main("cuda", WINDOW_SECONDS, "Cuda")).await
        };
        let (times, recorded) = tokio::join!(profiled, launches(&mut program, &ended));
        all[1].push(times?);
        ensure!(recorded? > 0, "{name}: the program says that nobody recorded it");
    }
    tell(&all);
    namespace.delete().await
}

/// Has the program launch kernels until its session has ended, and gives how many records were
/// written of them.
async fn launches(program: &mut Program, ended: &CancellationToken) -> Result<u64> {
    let mut recorded: u64 = 0;
    while !ended.is_cancelled() {
        recorded += program.paced(LAUNCHES_PER_SECOND, LAUNCHES_DURATION).await?;
    }
    Ok(recorded)
}

/// Whoever has a session made, waits for its end and opens its timeline.
struct User<'a> {
    namespace: &'a TestNamespace,
    /// The agent of the node.
    agent: Pod,
    client: ArtifactClient,
    token: String,
}

impl User<'_> {
    /// Has a session made, and says when each step of it was over.
    async fn session(&self, name: &str, spec: Value) -> Result<Times> {
        let asked = now_ms()?;
        self.namespace.create_session(name, spec).await?;
        let told = self.ended(name).await?;
        let capture = self.namespace.only_capture(name).await?;
        let status = capture.status.as_ref().context("no status")?;
        let url = status.url.as_ref().context("no URL")?;
        let timeline = format!("{url}/timeline.h5");
        let range = ["--header", &format!("Range: {FIRST}")];
        let answer = self.client.request(&timeline, Some(&self.token), &range).await?;
        ensure!(answer.status == 206, "{}", answer.status);
        let seen = now_ms()?;
        let stages = self.stages(&capture.name_any()).await?;
        let at = |stage: Stage| {
            let time = stages.get(&stage).copied();
            time.with_context(|| format!("no stage {stage:?}: {stages:?}"))
        };
        let times = [
            asked,
            at(Stage::Attaching)?,
            at(Stage::Collecting)?,
            at(Stage::Fetching)?,
            at(Stage::Transforming)?,
            at(Stage::Publishing)?,
            told,
            seen,
        ];
        ensure!(times.is_sorted(), "{name}: not in order: {times:?}");
        Ok(times)
    }

    /// When the session said that it succeeded, in Unix ms.
    async fn ended(&self, name: &str) -> Result<u64> {
        let session = eventually_each(POLL_INTERVAL, &format!("session {name} to end"), || async {
            let session = self.namespace.api::<ProfilingSession>().get(name).await?;
            let is_decided = condition_of(&session, "Succeeded").is_some_and(|one| one.status != "Unknown");
            Ok(is_decided.then_some(session))
        })
        .await?;
        let time = now_ms();
        let succeeded = condition_of(&session, "Succeeded").is_some_and(|one| one.status == "True");
        ensure!(succeeded, "{:#?}", session.status);
        time
    }

    /// When the agent entered each stage of a capture, in Unix ms, as its log tells.
    async fn stages(&self, capture: &str) -> Result<BTreeMap<Stage, u64>> {
        let pods: Api<Pod> = Api::namespaced(self.namespace.client.clone(), chart::NAMESPACE);
        let parameters = LogParams {
            since_seconds: Some(60),
            ..LogParams::default()
        };
        let log = pods.logs(&self.agent.name_any(), &parameters).await?;
        let mut stages = BTreeMap::new();
        for line in log.lines().filter(|line| line.contains(capture)) {
            let stage = line.split_once("stage=\"").and_then(|(_, rest)| rest.split_once('"'));
            let known = |name: &str| serde_json::from_value::<Stage>(json!(name)).ok();
            if let (Some(stage), Some((time, _))) = (stage.and_then(|(name, _)| known(name)), line.split_once(' ')) {
                let time: Timestamp = time.parse()?;
                stages.entry(stage).or_insert(u64::try_from(time.as_millisecond())?);
            }
        }
        Ok(stages)
    }
}

fn rounds() -> Result<usize> {
    Ok(std::env::var(ROUNDS).map_or(Ok(1), |text| text.parse())?)
}

fn now_ms() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(now.as_millis())?)
}

/// A table of seconds: each step, and some of them together, with both profilers.
#[expect(clippy::print_stdout, reason = "the recipe shows the table")]
fn tell(all: &[Vec<Times>; 2]) {
    println!("stages: least, median, most in seconds with nsys; with cuda; medians of cuda by nsys");
    let single = STEPS.iter().enumerate().map(|(at, what)| (*what, at, at + 1));
    let spans = SPANS.iter().map(|(what, first, behind, _)| (*what, *first, *behind));
    for (what, first, behind) in single.chain(spans) {
        let [nsys, cuda] = all.each_ref().map(|times| took(times, first, behind));
        println!("stages: {what}: {nsys}; {cuda}; {}", Beside(&cuda, &nsys));
    }
    for (what, first, behind, budget) in SPANS {
        let median = took(&all[1], first, behind).median;
        let judged = if median <= budget { "met" } else { "missed" };
        let (median, budget) = (seconds(median), seconds(budget));
        println!("stages: {what} with cuda: {median} (budget {budget}): {judged}");
    }
}

/// What the steps from one to the one before another took together.
fn took(all: &[Times], first: usize, behind: usize) -> Figures {
    let took = all.iter().map(|times| times[behind].saturating_sub(times[first]));
    Figures::of(took.collect())
}
