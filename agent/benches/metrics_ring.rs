//! What the metrics ring costs with eight GPUs: `cargo xtask bench metrics-ring`.
//!
//! Arguments: seconds, containers. Prints a line of JSON: shares of a core without and with the ring by thread, and the longest gap.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    dead_code,
    reason = "a measurement fails by panicking and prints; the tests use more of what they share with it"
)]

#[path = "../tests/metrics_ring/cgroups.rs"]
mod cgroups;
#[path = "../tests/metrics_ring/machine.rs"]
mod machine;

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_agent::gpus::Gpus;
use serde_json::json;

use cgroups::RealCgroups;
use machine::{Machine, STATE, before_now, ids, ring, state, value, wait};

/// The rig's NVML library.
const LIBRARY: &str = "FLOPWATCH_FAKE_NVML_LIBRARY";
const GPUS: u32 = 8;
/// Threads that sample.
const THREADS: [&str; 3] = ["flopwatch-nvml", "flopwatch-pcie", "metrics-ring"];

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

/// Percent of a core that each thread takes in that time.
fn shares(time: Duration) -> BTreeMap<&'static str, f64> {
    let (begin, before) = (Instant::now(), spent());
    wait(time);
    let share = |(name, now): (&'static str, Duration)| {
        let spent = now.saturating_sub(before.get(name).copied().unwrap_or_default());
        (name, 100.0 * spent.as_secs_f64() / begin.elapsed().as_secs_f64())
    };
    spent().into_iter().map(share).collect()
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
    let without = shares(time / 3);
    let (ring, registry) = ring(
        &gpus,
        &machine.procfs(),
        Path::new("/sys/fs/cgroup"),
        ids(0..containers),
    );
    wait(Duration::from_secs(2));
    let begin = Instant::now();
    let with = shares(time);
    let (mut longest, mut missed) = (0, 0);
    for container in 0..containers {
        let found = before_now(&ring, container, begin.elapsed());
        assert_eq!(
            found.series.iter().any(|series| series.source == "nvml"),
            container < GPUS
        );
        longest = longest.max(found.longest_gap_ns);
        missed += found.missed;
    }
    let rounds = |source: &str| {
        let of = |part: &str| {
            let name = format!("flopwatch_metrics_ring_round_processor_seconds_{part}{{source=\"{source}\"}}");
            value(&registry, &name)
        };
        json!({"rounds": of("count"), "microseconds": 1e6 * of("sum") / of("count"),
            "bytes": value(&registry, &format!("flopwatch_metrics_ring_bytes{{source=\"{source}\"}}"))})
    };
    let line = json!({
        "without": without, "with": with, "nvml": rounds("nvml"), "cgroup": rounds("cgroup"),
        "longest_gap_ms": longest / 1_000_000, "missed_rounds": missed,
    });
    println!("{line}");
}
