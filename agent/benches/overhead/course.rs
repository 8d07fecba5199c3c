//! The course of one window: the time before it, the profiler's start, the window, the profiler's
//! end, and the time after it.

use std::time::{Duration, Instant};

use flopwatch_agent::node::heartbeats::{BASELINE_DURATION, Heartbeats};
use flopwatch_agent::overhead::{MAX_POLL_INTERVAL, Opened, Watch};
use flopwatch_api::overhead::{CaptureOverhead, OverheadAction, OverheadSpec};
use flopwatch_nvml::utc_ns;
use serde_json::{Value, json};

use crate::ends::Ends;
use crate::paced::Paced;
use crate::wait_until;

/// Time that a profiler takes to start and to stop.
const RAMP_DURATION: Duration = Duration::from_millis(500);
/// What is counted after a window, in seconds.
const AFTER: i32 = 10;

/// What happens to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Case {
    /// Its steps take so many basis points longer while a profiler is there.
    Harm(i32),
    /// No profiler harms it: its load changes.
    Drift(Drift),
}

/// How a load changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Drift {
    /// Steps become longer by a fifth over the whole course, evenly.
    SlowerAllTheTime,
    /// Steps become shorter by a fifth over the whole course, evenly.
    FasterAllTheTime,
    /// In the middle of the window steps become longer by a fifth, and stay so.
    SlowerWithin,
    /// As the window opens steps become longer by a tenth, and stay so.
    SlowerFromTheWindowOn,
}

impl Drift {
    pub(crate) const ALL: [Self; 4] = [
        Self::SlowerAllTheTime,
        Self::FasterAllTheTime,
        Self::SlowerWithin,
        Self::SlowerFromTheWindowOn,
    ];

    /// Basis points by which steps are longer once that part of a course has passed, of which the
    /// window has these.
    fn slowdown(self, passed: f64, window: (f64, f64)) -> f64 {
        match self {
            Self::SlowerAllTheTime => 2000.0 * passed,
            Self::FasterAllTheTime => -2000.0 * passed,
            Self::SlowerWithin if passed > f64::midpoint(window.0, window.1) => 2000.0,
            Self::SlowerFromTheWindowOn if passed > window.0 => 1000.0,
            Self::SlowerWithin | Self::SlowerFromTheWindowOn => 0.0,
        }
    }
}

/// A window as it was judged, and as it was.
pub(crate) struct Seen {
    pub(crate) case: Case,
    pub(crate) told: CaptureOverhead,
    /// Basis points by which steps took longer in it than around it, by the program's own count.
    pub(crate) own: f64,
    /// Time from the beginning of the harm until the window was to be ended.
    pub(crate) ended: Option<Duration>,
}

impl Seen {
    pub(crate) fn line(&self) -> Value {
        json!({
            "case": format!("{:?}", self.case), "own": self.own.round(), "told": self.told,
            "ended_ms": self.ended.map(|time| time.as_millis()),
        })
    }
}

/// One program's window.
pub(crate) struct Course<'a> {
    heartbeats: &'a Heartbeats,
    target: &'a Paced,
    window: Duration,
    begin: Instant,
}

impl<'a> Course<'a> {
    pub(crate) fn new(heartbeats: &'a Heartbeats, target: &'a Paced, window: Duration) -> Self {
        let begin = Instant::now();
        Self {
            heartbeats,
            target,
            window,
            begin,
        }
    }

    /// Watches the window twice: as an agent that ends it, and as one that only says what it cost.
    pub(crate) fn run(&self, case: Case) -> Seen {
        self.pass(case, BASELINE_DURATION);
        let attach_ns = utc_ns();
        let harmed = Instant::now();
        if let Case::Harm(basis_points) = case {
            self.target.slow_down(basis_points);
        }
        self.pass(case, RAMP_DURATION);
        let opened = Opened {
            attach_ns,
            open_ns: utc_ns(),
        };
        let (mut ending, mut telling) = [OverheadAction::Stop, OverheadAction::Report]
            .map(|action| self.watch(action, opened))
            .into();
        let closes = Instant::now() + self.window;
        let mut ended = None;
        while Instant::now() < closes {
            for watch in [&mut ending, &mut telling] {
                self.heartbeats.follow(&self.target.id, watch);
            }
            if ended.is_none() && ending.inspect().is_some() {
                ended = Some(harmed.elapsed());
            }
            self.pass(
                case,
                MAX_POLL_INTERVAL.min(closes.saturating_duration_since(Instant::now())),
            );
        }
        let close_ns = utc_ns();
        telling.close(close_ns);
        if let Case::Harm(_) = case {
            self.target.slow_down(0);
        }
        self.pass(case, RAMP_DURATION);
        let detached_ns = utc_ns();
        telling.detached(detached_ns);
        while utc_ns() < telling.until_ns() {
            self.heartbeats.follow(&self.target.id, &mut telling);
            self.pass(case, MAX_POLL_INTERVAL);
        }
        self.heartbeats.follow(&self.target.id, &mut telling);
        // So that the step under way has ended.
        self.pass(case, RAMP_DURATION);
        self.target.slow_down(0);
        let before_ns = attach_ns - u64::try_from(BASELINE_DURATION.as_nanos()).unwrap();
        let around = [(before_ns, attach_ns), (detached_ns, telling.until_ns())];
        Seen {
            case,
            told: telling.judge(),
            own: own(&Ends::read(&self.target.steps), around, (opened.open_ns, close_ns)),
            ended,
        }
    }

    fn watch(&self, action: OverheadAction, opened: Opened) -> Watch {
        let spec = OverheadSpec {
            action,
            after_seconds: AFTER,
            ..OverheadSpec::default()
        };
        self.heartbeats.watch(&self.target.id, &spec, opened).unwrap()
    }

    /// Lets time pass, in which a load changes.
    fn pass(&self, case: Case, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if let Case::Drift(drift) = case {
                let opens = BASELINE_DURATION + RAMP_DURATION;
                let whole = opens + self.window + RAMP_DURATION + Duration::from_secs(u64::try_from(AFTER).unwrap());
                let part = |time: Duration| time.as_secs_f64() / whole.as_secs_f64();
                let window = (part(opens), part(opens + self.window));
                let slowdown = drift.slowdown(part(self.begin.elapsed()), window);
                self.target.slow_down(crate::figures::whole(slowdown));
            }
            wait_until(until.min(Instant::now() + MAX_POLL_INTERVAL));
        }
    }
}

/// Basis points by which steps took longer within a time than around it, in the median of seconds:
/// one in which the machine halted the program counts as one, however long that took.
fn own(ends: &Ends, around: [(u64, u64); 2], during: (u64, u64)) -> f64 {
    let usual = median(around.into_iter().flat_map(|time| ends.rates(time)).collect());
    let now = median(ends.rates(during));
    (usual / now - 1.0) * 10_000.0
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    let middle = rates.len() / 2;
    f64::midpoint(rates[middle], rates[(rates.len() - 1) / 2])
}
