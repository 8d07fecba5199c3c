//! The metrics ring over the rig's NVML library and over cgroups, of files and of the kernel's own.
//!
//! The library reads its state from the file that an environment variable names, so each test with
//! GPUs runs itself again in a process of its own with that variable set.

mod cgroups;
#[path = "../../nvml/tests/sampler/library.rs"]
mod library;
mod machine;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_pipeline::gpus::Gpus;
use flopwatch_pipeline::transform::EarlierSamples;

use cgroups::RealCgroups;
use library::{LIBRARY, library};
use machine::{Machine, STATE, before_now, ids, ring, state, value, wait};

use crate::ONE_AT_A_TIME;

/// Runs `body` in a process whose NVML has `gpus` GPUs, each with the process of that number.
fn with_gpus(test: &str, gpus: u32, body: fn(&Path)) {
    if std::env::var_os(STATE).is_some() {
        return body(&library());
    }
    let folder = tempfile::tempdir().unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", &format!("metrics_ring::{test}"), "--nocapture"]);
    let again = again.env(STATE, state(folder.path(), gpus)).env(LIBRARY, library());
    let output = again.output().unwrap();
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    println!("{said}");
}

#[track_caller]
fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !check() {
        assert!(Instant::now() < end, "not within 20 s: {what}");
        wait(Duration::from_millis(50));
    }
}

fn points<'a>(found: &'a EarlierSamples, device: &str, metric: &str) -> &'a [f64] {
    let mut of = found
        .series
        .iter()
        .filter(|series| series.device == device && series.metric == metric);
    let first = of.next().map(|series| series.value.as_slice()).unwrap_or_default();
    assert!(of.next().is_none(), "{device} {metric} once");
    first
}

#[test]
fn a_container_has_its_own_series_and_those_of_its_gpu_among_eight() {
    let _turn = ONE_AT_A_TIME.blocking_lock();
    with_gpus(
        "a_container_has_its_own_series_and_those_of_its_gpu_among_eight",
        8,
        |library| {
            let machine = Machine::new(9);
            let gpus = Gpus::open(Some(library.to_owned()), Arc::new(|_| None));
            let (ring, registry) = ring(&gpus, &machine.procfs(), &machine.cgroups(), ids(0..9));
            let of = |container| before_now(&ring, container, Duration::from_mins(1));
            eventually("all series of container 3", || {
                let found = of(3);
                points(&found, "container", "cpu_pressure").len() > 1
                    && points(&found, "GPU-3", "pcie_receive").len() > 1
            });
            let found = of(3);
            let devices: BTreeSet<&str> = found.series.iter().map(|series| series.device.as_str()).collect();
            assert_eq!(devices, BTreeSet::from(["GPU-3", "container"]));
            assert_eq!(found.series.len(), 5 + 11 + 11 + 2 + 2, "{found:?}");
            let times = &found.series[0].t_utc_ns;
            assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
            assert!(
                points(&found, "GPU-3", "power")
                    .iter()
                    .all(|watts| (*watts - 250.0).abs() < 0.001)
            );
            assert!(
                points(&found, "GPU-3", "process_memory_used")
                    .iter()
                    .all(|bytes| (*bytes - 536_870_912.0).abs() < 1.0)
            );
            let rounds = points(&found, "GPU-3", "power").len();
            assert!(
                points(&found, "GPU-3", "sm_activity").len() <= rounds * 3 / 4 + 2,
                "not each round"
            );
            assert!(
                points(&found, "GPU-3", "temperature").len() <= rounds / 4 + 2,
                "each fifth round"
            );

            let without = of(8);
            assert!(!without.series.is_empty() && without.series.iter().all(|series| series.source == "cgroup"));
            assert_eq!(of(77).series, []);
            for source in ["nvml", "cgroup"] {
                assert!(
                    value(
                        &registry,
                        &format!("flopwatch_metrics_ring_bytes{{source=\"{source}\"}}")
                    ) > 1000.0
                );
            }
            assert!(value(&registry, "flopwatch_metrics_ring_left_out_total{kind=\"device\"}") < 1.0);
        },
    );
}

#[test]
fn the_rate_of_a_containers_processor_time_is_its_cores() {
    let _turn = ONE_AT_A_TIME.blocking_lock();
    let machine = Machine::new(1);
    let gpus = Gpus::open(Some("/nonexistent".into()), Arc::new(|_| None));
    let (ring, _registry) = ring(&gpus, &machine.procfs(), &machine.cgroups(), ids(0..1));
    let began = Instant::now();
    let found = || before_now(&ring, 0, Duration::from_mins(1));
    // Two processors, whenever it is looked at.
    eventually("two seconds of samples", || {
        machine.uses(0, Duration::from_secs(1) + began.elapsed() * 2);
        points(&found(), "container", "cpu_pressure").len() > 1
    });
    let found = found();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap());
    let cores = mean(points(&found, "container", "cpu_usage"));
    assert!((1.0..3.0).contains(&cores), "{cores}");
    let waited = mean(points(&found, "container", "cpu_pressure"));
    assert!((0.2..1.0).contains(&waited), "{waited}");
    assert!(
        points(&found, "container", "memory_used")
            .iter()
            .all(|bytes| (*bytes - 4096.0).abs() < 1.0)
    );
}

#[test]
fn a_container_that_ended_keeps_its_series_and_one_that_starts_gets_some() {
    let _turn = ONE_AT_A_TIME.blocking_lock();
    let machine = Machine::new(1);
    let gpus = Gpus::open(Some("/nonexistent".into()), Arc::new(|_| None));
    let started = Instant::now();
    let second = move || {
        if started.elapsed() > Duration::from_secs(1) {
            1..2
        } else {
            0..1
        }
    };
    let (ring, _registry) = ring(&gpus, &machine.procfs(), &machine.cgroups(), move || ids(second())());
    machine.uses(1, Duration::from_secs(1));
    let rounds = |container| {
        let found = before_now(&ring, container, Duration::from_mins(1));
        points(&found, "container", "cpu_usage").len()
    };
    eventually("the first one's series", || rounds(0) > 3);
    eventually("the second one's series", || rounds(1) > 3);
    let held = rounds(0);
    wait(Duration::from_millis(300));
    assert_eq!(rounds(0), held, "it is not read any more");
}

#[test]
fn a_machine_without_gpus_and_cgroups_has_an_empty_ring_that_ends_at_once() {
    let _turn = ONE_AT_A_TIME.blocking_lock();
    let folder = tempfile::tempdir().unwrap();
    let gpus = Gpus::open(Some("/nonexistent".into()), Arc::new(|_| None));
    let (ring, _registry) = ring(&gpus, folder.path(), folder.path(), ids(0..1));
    assert_eq!(before_now(&ring, 0, Duration::from_mins(1)).series, []);
    let before = Instant::now();
    drop(ring);
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
}

/// A program that works until it is dropped: 20 s of processor time at most, where its test is
/// killed.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait().map(drop)) {
            println!("the program ended by itself: {error}");
        }
    }
}

#[test]
fn the_kernels_own_counters_show_a_busy_container() {
    let _turn = ONE_AT_A_TIME.blocking_lock();
    let Some(cgroups) = RealCgroups::make(2) else { return };
    let work = ["-c", "ulimit -t 20; while :; do :; done"];
    let busy = Busy(Command::new("sh").args(work).spawn().unwrap());
    cgroups.enter(0, busy.0.id());
    let gpus = Gpus::open(Some("/nonexistent".into()), Arc::new(|_| None));
    let (ring, _registry) = ring(&gpus, Path::new("/proc"), Path::new("/sys/fs/cgroup"), ids(0..2));
    let cores = |container| {
        let found = before_now(&ring, container, Duration::from_mins(1));
        points(&found, "container", "cpu_usage").to_vec()
    };
    eventually("work of one container", || cores(0).iter().any(|cores| *cores > 0.01));
    assert!(cores(0).iter().all(|cores| *cores < 2.0), "one thread: {:?}", cores(0));
    assert!(
        cores(1).iter().all(|cores| *cores < 0.001),
        "an empty one: {:?}",
        cores(1)
    );
}
