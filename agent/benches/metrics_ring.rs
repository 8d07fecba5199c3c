//! What the metrics ring costs with eight GPUs: `cargo xtask bench metrics-ring`.
//!
//! Arguments: seconds, containers. Prints a line of JSON: shares of a core without and with the
//! ring by thread, and the longest gap of each source beside that of a thread which only sleeps:
//! what is above that is the ring's own.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    reason = "a measurement fails by panicking and prints; the tests use more of what they share with it"
)]

#[path = "../tests/alone/metrics_ring/cgroups.rs"]
mod cgroups;
#[path = "../tests/alone/metrics_ring/machine.rs"]
mod machine;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flopwatch_agent::metrics_ring::MetricsRing;
use flopwatch_pipeline::gpus::Gpus;
use serde_json::json;

use cgroups::RealCgroups;
use machine::{Machine, STATE, before_now, ids, ring, state, value, wait};

/// The rig's NVML library.
const LIBRARY: &str = "FLOPWATCH_FAKE_NVML_LIBRARY";
const GPUS: u32 = 8;
/// Time between two rounds of the ring.
const ROUND_INTERVAL: Duration = Duration::from_millis(100);
/// Longest time without the ring.
const MAX_BASELINE_DURATION: Duration = Duration::from_mins(5);
/// The ring holds ten minutes: it is read before it forgets.
const READ_INTERVAL: Duration = Duration::from_mins(2);
/// Threads that sample.
const THREADS: [&str; 4] = ["flopwatch-nvml", "flopwatch-pcie", "metrics-ring", "ring-upkeep"];

/// Processor time of the threads that sample.
fn spent() -> BTreeMap<&'static str, Duration> {
    let mut found: BTreeMap<&'static str, Duration> = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let of = task.unwrap().path();
        let read = |file: &str| std::fs::read_to_string(of.join(file)).unwrap_or_default();
        let name = read("comm");
        let Some(name) = THREADS.into_iter().find(|known| *known == name.trim()) else {
            continue;
        };
        let schedstat = read("schedstat");
        let nanoseconds = schedstat.split(' ').next().and_then(|ns| ns.parse().ok());
        *found.entry(name).or_default() += Duration::from_nanos(nanoseconds.unwrap_or(0));
    }
    found
}

/// Percent of a core that each thread takes while `wait` waits.
fn shares(wait: impl FnOnce()) -> BTreeMap<&'static str, f64> {
    let (begin, before) = (Instant::now(), spent());
    wait();
    let share = |(name, now): (&'static str, Duration)| {
        let spent = now.saturating_sub(before.get(name).copied().unwrap_or_default());
        (name, 100.0 * spent.as_secs_f64() / begin.elapsed().as_secs_f64())
    };
    spent().into_iter().map(share).collect()
}

/// Pauses between two rounds.
#[derive(Default)]
struct Gaps {
    /// In ns, by source.
    longest: BTreeMap<String, u64>,
    /// Pauses above twice a round.
    above: u64,
}

impl Gaps {
    /// Looks at the ring until that long from now.
    fn watch(&mut self, ring: &MetricsRing, containers: u32, time: Duration) {
        let end = Instant::now() + time;
        // One more second: a pause at the seam of two looks belongs to both.
        let beyond = Duration::from_secs(1);
        while let left @ 1.. = end.saturating_duration_since(Instant::now()).as_nanos() {
            let pause = READ_INTERVAL.min(Duration::from_nanos_u128(left));
            wait(pause);
            for container in 0..containers {
                self.inspect(ring, container, pause + beyond);
            }
        }
    }

    fn inspect(&mut self, ring: &MetricsRing, container: u32, length: Duration) {
        let found = before_now(ring, container, length);
        assert_eq!(
            found.series.iter().any(|series| series.source == "nvml"),
            container < GPUS
        );
        for series in &found.series {
            if !["power", "cpu_usage"].contains(&series.metric.as_str()) {
                continue;
            }
            let gaps = series.t_utc_ns.windows(2).map(|pair| pair[1] - pair[0]);
            let longest = self.longest.entry(series.source.clone()).or_default();
            for gap in gaps {
                *longest = gap.max(*longest);
                self.above += u64::from(u128::from(gap) > 2 * ROUND_INTERVAL.as_nanos());
            }
        }
    }
}

/// The longest pause between two wakes of a thread that only sleeps, on the same grid, until
/// `ended`.
fn sleeper(ended: &AtomicBool) -> Duration {
    let (mut next, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
    while !ended.load(Ordering::Relaxed) {
        next += ROUND_INTERVAL;
        wait(next.saturating_duration_since(Instant::now()));
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    longest
}

fn main() {
    // Cargo adds an argument of its own.
    let given: Vec<u32> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    let [seconds, containers] = given[..] else {
        panic!("arguments: SECONDS CONTAINERS");
    };
    // NVML's state is read from the file that the environment names as the program starts.
    if std::env::var_os(STATE).is_none() {
        let folder = tempfile::tempdir().unwrap().keep();
        let mut again = Command::new(std::env::current_exe().unwrap());
        let again = again.args(std::env::args_os().skip(1)).env(STATE, state(&folder, GPUS));
        panic!("{}", again.exec());
    }
    let library = std::env::var_os(LIBRARY).unwrap();
    let _cgroups = RealCgroups::make(containers).unwrap();
    let machine = Machine::new(containers);
    let gpus = Gpus::open(Some(library.into()), Arc::new(|_| None));
    wait(Duration::from_secs(2));
    let time = Duration::from_secs(seconds.into());
    let without = shares(|| wait((time / 3).min(MAX_BASELINE_DURATION)));
    let (ring, registry) = ring(
        &gpus,
        &machine.procfs(),
        Path::new("/sys/fs/cgroup"),
        ids(0..containers),
    );
    wait(Duration::from_secs(2));
    let (mut gaps, ended) = (Gaps::default(), AtomicBool::new(false));
    let (with, slept) = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| sleeper(&ended));
        let with = shares(|| gaps.watch(&ring, containers, time));
        ended.store(true, Ordering::Relaxed);
        (with, sleeper.join().unwrap())
    });
    let rounds = |source: &str| {
        let of = |part: &str| {
            let name = format!("flopwatch_metrics_ring_round_processor_seconds_{part}{{source=\"{source}\"}}");
            value(&registry, &name)
        };
        json!({"rounds": of("count"), "microseconds": 1e6 * of("sum") / of("count"),
            "bytes": value(&registry, &format!("flopwatch_metrics_ring_bytes{{source=\"{source}\"}}"))})
    };
    let missed: BTreeMap<_, _> = ["nvml", "cgroup"]
        .map(|source| {
            let name = format!("flopwatch_metrics_ring_missed_samples_total{{source=\"{source}\"}}");
            (source, value(&registry, &name))
        })
        .into();
    let line = json!({
        "without": without, "with": with, "nvml": rounds("nvml"), "cgroup": rounds("cgroup"),
        "longest_gap_ms": gaps.longest.iter().map(|(source, ns)| (source, ns / 1_000_000)).collect::<BTreeMap<_, _>>(),
        "gaps_above_two_rounds": gaps.above, "missed_samples": missed, "sleeper_gap_ms": slept.as_millis(),
    });
    println!("{line}");
}
