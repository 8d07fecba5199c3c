//! What the window costs its target: who counts the target's work, the watches while the window is
//! open, and the verdict beside the results.

use std::sync::Arc;
use std::time::Duration;

use flopwatch_api::capture::Stage as StatusStage;
use flopwatch_api::overhead::{
    CaptureOverhead, CaptureProcessorTime, OverheadReason, OverheadSignal, OverheadSpec, SignalSource,
};
use flopwatch_api::reason::CaptureReason;
use flopwatch_api::session::StartMode;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::failure::Failure;
use tokio::time::{Instant, sleep};
use tracing::info;

use super::context::Context;
use super::memory::{self, MemoryWatch};
use super::produced::Produced;
use super::scrape::Scraper;
use crate::adoption::{Attached, Collection};
use crate::node::Node;
use crate::node::container_leases::CaptureLease;
use crate::node::heartbeats::BASELINE_DURATION;
use crate::overhead::{Choice, MAX_POLL_INTERVAL, Opened, Watch, calls, hint, length_for, unwatched};

const NOBODY_COUNTS: &str = "nothing counts the target's work: let its pod be prepared with flopwatch.dev/prepare: recorder, or name a counter \
                             of it in spec.overhead.signal.prometheus";

/// What is measured of the target beside its capture.
#[derive(Debug, Default)]
pub(super) struct Overhead {
    pace: Pace,
    /// None while no window is open, and where it is not to be ended for memory.
    pub(super) memory: Option<MemoryWatch>,
    pub(super) profiler_time: ProfilerTime,
}

impl Overhead {
    /// The window is over.
    pub(super) fn on_closed(&mut self, at_ns: u64) {
        self.pace.closed(at_ns);
    }
}

/// How fast the target is.
#[derive(Debug, Default)]
enum Pace {
    /// There is no window, or it has not opened.
    #[default]
    Unwatched,
    /// A counter is read before the window.
    Read(Scraper),
    /// Nothing shows it.
    Blind(Blind),
    /// A signal of the target's speed is read.
    Watched {
        watch: Box<Watch>,
        /// Reads the counter; none where the recorder counts.
        scraper: Option<Scraper>,
    },
}

/// A window of which nothing shows how fast the target is.
#[derive(Clone, Debug)]
struct Blind {
    reason: OverheadReason,
    why: String,
    /// None where there is no time before it.
    opened: Option<Opened>,
    closed_ns: u64,
}

/// Processor time of the profiler's own processes in the container, as it was before they began to
/// collect and once they were gone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProfilerTime {
    pub(super) before: Option<Duration>,
    pub(super) after: Option<Duration>,
}

impl ProfilerTime {
    fn spent(self) -> Option<Duration> {
        // One that is gone with its cgroup, and came again, has less than before.
        self.after?.checked_sub(self.before?)
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl Pace {
    fn watched(watch: Watch, scraper: Option<Scraper>) -> Self {
        info!(
            source = watch.signal.source.as_str(),
            name = watch.signal.name,
            bin_ns = watch.bin_ns(),
            "watches how fast the target is"
        );
        let watch = Box::new(watch);
        Self::Watched { watch, scraper }
    }

    fn blind(reason: OverheadReason, why: String, opened: Option<Opened>) -> Self {
        Self::Blind(Blind {
            reason,
            why,
            opened,
            closed_ns: 0,
        })
    }

    fn closed(&mut self, at_ns: u64) {
        match self {
            Self::Watched { watch, .. } => watch.close(at_ns),
            Self::Blind(blind) => blind.closed_ns = at_ns,
            Self::Unwatched | Self::Read(_) => {}
        }
    }

    fn detached(&mut self, at_ns: u64) {
        if let Self::Watched { watch, .. } = self {
            watch.detached(at_ns);
        }
    }

    /// Takes in what was counted since the last time.
    fn follow(&mut self, node: &Node, container_id: &str) {
        let Self::Watched { watch, scraper } = self else {
            return;
        };
        match scraper {
            Some(scraper) => watch.take(scraper.since(watch.since_ns())),
            None => node.heartbeats.follow(container_id, watch),
        }
    }
}

/// Looks at the memory of the target before the profiler attaches, and reads the counter that
/// the session names for some time.
pub(super) async fn count_before(cx: &mut Context<'_>, attached: &Attached) -> Result<(), Failure> {
    memory::watch(cx, attached).await;
    memory::check(cx, attached)?;
    let signal = cx.capture.spec.overhead.signal.as_ref();
    let Some(signal) = signal.and_then(|signal| signal.prometheus.clone()) else {
        return Ok(());
    };
    // Its program is held until the window is open, and publishes nothing yet.
    if cx.capture.spec.start == StartMode::ContainerStart {
        return Ok(());
    }
    if cx
        .profiler(attached)?
        .looks_back(&attached.profiler, utc_ns())?
        .is_some()
    {
        return Ok(());
    }
    let time = Duration::from_secs(u64::try_from(signal.baseline_seconds).unwrap_or(0));
    let message = format!("reading {} for {} s", signal.counter, time.as_secs());
    let procfs = cx.node.containers.procfs();
    cx.overhead.pace = Pace::Read(Scraper::start(procfs, attached.container_id.clone(), signal));
    let until = Instant::now() + time;
    cx.enter(StatusStage::Attaching, &message);
    while let Some(left) = until
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
    {
        sleep(MAX_POLL_INTERVAL.min(left)).await;
        cx.interrupted()?;
    }
    Ok(())
}

/// Watches how fast the target is from now on, since the window has opened.
pub(super) fn on_opened(cx: &mut Context<'_>, attached: &Attached, opened: Opened) {
    let spec = &cx.capture.spec;
    if spec.start == StartMode::ContainerStart {
        let why = "the window begins with the program: there is nothing before it to compare with";
        cx.overhead.pace = Pace::blind(OverheadReason::NoSignal, why.to_owned(), None);
        return;
    }
    if let Pace::Read(scraper) = std::mem::take(&mut cx.overhead.pace) {
        cx.overhead.pace = follow_counter(&cx.capture.spec.overhead, scraper, opened);
        return;
    }
    let watched = cx.node.heartbeats.watch(&attached.container_id, &spec.overhead, opened);
    cx.overhead.pace = match watched {
        Ok(watch) => Pace::watched(watch, None),
        Err(_) if attached.ring.is_none() => {
            Pace::blind(OverheadReason::NoSignal, NOBODY_COUNTS.to_owned(), Some(opened))
        }
        Err(why) => Pace::blind(why.reason(), why.to_string(), Some(opened)),
    };
}

/// Goes on with a counter that was read before the window.
fn follow_counter(spec: &OverheadSpec, scraper: Scraper, opened: Opened) -> Pace {
    let mut samples = scraper.since(0);
    samples.retain(|sample| sample.at_ns <= opened.attach_ns);
    let signal = spec.signal.as_ref();
    let name = signal.and_then(|signal| signal.prometheus.as_ref());
    let name = name.map(|signal| signal.counter.clone()).unwrap_or_default();
    let Some(length_ns) = length_for(&samples) else {
        let (reason, why) = match scraper.failure() {
            Some(why) => (OverheadReason::NoSignal, why),
            None if calls(&samples) == 0 => (OverheadReason::NoSignal, "it did not move before the window".to_owned()),
            None => (
                OverheadReason::TooSeldom,
                "it moved too seldom before the window".to_owned(),
            ),
        };
        return Pace::blind(reason, format!("the counter {name}: {why}"), Some(opened));
    };
    let source = SignalSource::Prometheus;
    let choice = Choice { samples, length_ns };
    let watch = Watch::open(OverheadSignal { source, name }, choice, spec, opened);
    Pace::watched(watch, Some(scraper))
}

/// Whether the window costs more than it may, and is to be ended for that.
pub(super) fn exceeds_budget(cx: &mut Context<'_>, collection: &mut Collection) -> bool {
    let slowed = slowed(cx, &collection.attached);
    let Some(why) = slowed.or_else(|| cx.overhead.memory.as_ref().and_then(MemoryWatch::found)) else {
        return false;
    };
    info!(why, "the window is ended");
    collection.over_budget = Some(why);
    true
}

/// Why the window is to be ended, by how fast the target is.
fn slowed(cx: &mut Context<'_>, attached: &Attached) -> Option<String> {
    cx.overhead.pace.follow(cx.node, &attached.container_id);
    let Pace::Watched { watch, .. } = &mut cx.overhead.pace else {
        return None;
    };
    watch.inspect()?;
    Some(watch.judge().message)
}

/// Says what the capture cost, in the status and in the summary that is published.
pub(super) fn add_cost_to_summary(
    cx: &mut Context<'_>,
    produced: &mut Produced,
    told: Option<CaptureOverhead>,
) -> Result<(), Failure> {
    let time = CaptureProcessorTime {
        profiler_milliseconds: cx.overhead.profiler_time.spent().map(milliseconds),
        processing_milliseconds: produced.processor_time.map(milliseconds),
    };
    produced.add_cost_to_summary(told.as_ref(), time, &cx.spool)?;
    cx.draft.processor_time(time);
    if let Some(told) = told {
        cx.node.metrics.overhead(told.verdict);
        cx.draft.overhead(told);
    }
    Ok(())
}

/// Measures what the profiler's own processes took, now that they have left the container.
pub(super) async fn on_detached(cx: &mut Context<'_>, attached: &Attached) -> Result<(), Failure> {
    cx.overhead.pace.detached(utc_ns());
    cx.overhead.profiler_time.after = profiler_time(cx, attached).await?;
    Ok(())
}

/// Processor time that the profiler's own processes in the container have used so far.
pub(super) async fn profiler_time(cx: &Context<'_>, attached: &Attached) -> Result<Option<Duration>, Failure> {
    cx.ask(attached, CaptureReason::CollectionFailed, |profiler, site, _| {
        Ok(profiler.processor_time(site))
    })
    .await
}

/// What is counted from the window's end on, apart from the rest of the capture.
pub(super) fn counting(cx: &mut Context<'_>, attached: &Attached) -> Counting {
    cx.overhead.memory = None;
    Counting {
        node: Arc::clone(cx.node),
        container_id: attached.container_id.clone(),
        pace: std::mem::take(&mut cx.overhead.pace),
        is_lost: cx.journal.adoptions > 0,
    }
}

/// The count of the target's work for some time after the window.
pub(super) struct Counting {
    node: Arc<Node>,
    container_id: String,
    pace: Pace,
    /// Whether there was a window of which an earlier agent had the count.
    is_lost: bool,
}

impl Counting {
    /// What the window cost, once the time after it has passed and the container is left; none
    /// where there was no window, or when `aborted` resolves first.
    pub(super) async fn until_left(
        mut self,
        lease: CaptureLease,
        aborted: impl Future<Output = ()> + Send,
    ) -> Option<CaptureOverhead> {
        let told = tokio::select! {
            told = self.verdict() => told,
            () = aborted => return None,
        };
        lease.release();
        told
    }

    /// What the period of the container's series says, where nobody counted.
    async fn hint(&self, seen: &Blind) -> Option<String> {
        let (opened, closed_ns) = (seen.opened?, seen.closed_ns);
        let (node, id) = (Arc::clone(&self.node), self.container_id.clone());
        let found = tokio::task::spawn_blocking(move || {
            let ring = node.metrics_ring.as_ref()?;
            let window = Duration::from_nanos(closed_ns.saturating_sub(opened.open_ns));
            let before = ring.before(&id, opened.attach_ns, BASELINE_DURATION);
            let during = ring.before(&id, closed_ns, window);
            hint(&before.series, &during.series)
        });
        found.await.ok().flatten()
    }

    async fn verdict(&mut self) -> Option<CaptureOverhead> {
        loop {
            self.pace.follow(&self.node, &self.container_id);
            let watch = match &self.pace {
                Pace::Unwatched if self.is_lost => {
                    let why = "the node's agent restarted, and what it had counted is lost";
                    return Some(unwatched(OverheadReason::NoSignal, why.to_owned()));
                }
                Pace::Unwatched | Pace::Read(_) => return None,
                Pace::Blind(seen) => {
                    let hint = self.hint(seen).await;
                    let message = hint.map_or_else(|| seen.why.clone(), |hint| format!("{}. {hint}", seen.why));
                    return Some(unwatched(seen.reason, message));
                }
                Pace::Watched { watch, .. } => watch,
            };
            let left = Duration::from_nanos(watch.until_ns().saturating_sub(utc_ns()));
            if left.is_zero() {
                return Some(watch.judge());
            }
            sleep(MAX_POLL_INTERVAL.min(left)).await;
        }
    }
}
