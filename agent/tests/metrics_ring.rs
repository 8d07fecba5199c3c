//! The metrics ring over the rig's NVML library and over cgroups, of files and of the kernel's own.
//!
//! The library reads its state from the file that an environment variable names, so each test with GPUs runs itself again in a
//! process of its own with that variable set.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, in its helpers too, and says on its output what it measured or why it skips"
)]

#[path = "../nvml/tests/sampler/library.rs"]
mod library;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flopwatch_agent::gpus::Gpus;
use flopwatch_agent::metrics_ring::{MetricsRing, Sources};
use flopwatch_agent::transform::EarlierSamples;
use flopwatch_attach::process::Procfs;
use prometheus::{Registry, TextEncoder};
use serde_json::{Value, json};
use tempfile::TempDir;

use library::{LIBRARY, library};

const STATE: &str = "FLOPWATCH_FAKE_NVML";
/// UID of the pod of every container.
const POD: &str = "0a1b2c3d-1111-2222-3333-444455556666";

/// Runs `body` in a process whose NVML has `gpus` GPUs, each with the process of that number.
fn with_gpus(test: &str, gpus: u32, body: fn(&Path)) {
    if std::env::var_os(STATE).is_some() {
        return body(&library());
    }
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    let devices: Vec<Value> = (0..gpus).map(gpu).collect();
    std::fs::write(&state, json!({"version": 1, "devices": devices}).to_string()).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture", "--include-ignored"]);
    let output = again.env(STATE, state).env(LIBRARY, library()).output().unwrap();
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    println!("{said}");
}

/// A GPU that has all that NVML tells.
fn gpu(number: u32) -> Value {
    let sine = |mean: u32| json!({"mean": mean, "amplitude": 10, "period_seconds": 7});
    let gpm = [
        "SM_UTIL",
        "SM_OCCUPANCY",
        "ANY_TENSOR_UTIL",
        "FP64_UTIL",
        "FP32_UTIL",
        "FP16_UTIL",
        "DRAM_BW_UTIL",
    ];
    let rates = [
        "PCIE_RX_PER_SEC",
        "PCIE_TX_PER_SEC",
        "NVLINK_TOTAL_RX_PER_SEC",
        "NVLINK_TOTAL_TX_PER_SEC",
    ];
    let gpm: BTreeMap<_, _> = gpm.into_iter().chain(rates).map(|name| (name, sine(50))).collect();
    json!({
        "uuid": format!("GPU-{number}"), "memory_total_bytes": 85_899_345_920_u64, "memory_used_bytes": 1_073_741_824,
        "utilization_percent": sine(50), "memory_utilization_percent": sine(20), "power_milliwatts": 250_000,
        "sm_clock_mhz": 1980, "memory_clock_mhz": 2619, "temperature_celsius": 55,
        "pcie_receive_kib_per_second": 1000, "pcie_transmit_kib_per_second": 2000, "gpm": gpm,
        "processes": [{"pid": 1000 + number, "memory_used_bytes": 536_870_912, "sm_utilization_percent": 40}],
    })
}

/// The ID of a container, which no other run of these tests has: they share the kernel's cgroups.
fn id(number: u32) -> String {
    format!("{:056x}{number:08x}", std::process::id())
}

/// A machine whose procfs and cgroups are files.
struct Machine(TempDir);

impl Machine {
    /// Process 1000 and N is in container N, as its procfs says.
    fn new(containers: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Self(folder);
        std::fs::create_dir_all(machine.cgroups()).unwrap();
        std::fs::write(machine.cgroups().join("cgroup.controllers"), "cpu io memory\n").unwrap();
        for number in 0..containers {
            let of = machine.procfs().join((1000 + number).to_string());
            std::fs::create_dir_all(&of).unwrap();
            std::fs::write(of.join("cgroup"), format!("0::/kubepods/pod{POD}/{}\n", id(number))).unwrap();
            machine.uses(number, Duration::from_secs(1));
        }
        machine
    }

    fn procfs(&self) -> PathBuf {
        self.0.path().join("proc")
    }

    fn cgroups(&self) -> PathBuf {
        self.0.path().join("cgroup")
    }

    fn folder(&self, container: u32) -> PathBuf {
        self.cgroups().join(format!("kubepods/pod{POD}/{}", id(container)))
    }

    /// Its container has used so much processor time.
    fn uses(&self, container: u32, time: Duration) {
        let of = self.folder(container);
        std::fs::create_dir_all(&of).unwrap();
        // Of one length, so that nobody reads half a number.
        std::fs::write(of.join("cpu.stat"), format!("usage_usec {:012}\n", time.as_micros())).unwrap();
        std::fs::write(of.join("memory.current"), "4096\n").unwrap();
        let pressure = format!(
            "some avg10=0.00 avg60=0.00 avg300=0.00 total={:012}\n",
            time.as_micros() / 4
        );
        for file in ["cpu.pressure", "memory.pressure", "io.pressure"] {
            std::fs::write(of.join(file), &pressure).unwrap();
        }
    }
}

/// A ring over those GPUs, procfs and cgroups, whose containers are those of `running`.
fn ring(
    gpus: &Gpus,
    procfs: &Path,
    cgroups: &Path,
    running: impl Fn() -> BTreeSet<String> + Send + 'static,
) -> (MetricsRing, Registry) {
    let registry = Registry::new();
    let sources = Sources {
        length: Duration::from_mins(10),
        gpus,
        procfs: Procfs::new(procfs),
        cgroup_root: cgroups.to_owned(),
        running: Box::new(running),
    };
    (MetricsRing::start(sources, &registry).unwrap(), registry)
}

fn ids(numbers: std::ops::Range<u32>) -> impl Fn() -> BTreeSet<String> + Send + 'static {
    move || numbers.clone().map(id).collect()
}

fn before_now(ring: &MetricsRing, container: u32, length: Duration) -> EarlierSamples {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    ring.before(&id(container), u64::try_from(now.as_nanos()).unwrap(), length)
}

#[track_caller]
fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !check() {
        assert!(Instant::now() < end, "not within 20 s: {what}");
        wait(Duration::from_millis(50));
    }
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime")]
fn wait(time: Duration) {
    std::thread::sleep(time);
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

fn value(registry: &Registry, series: &str) -> f64 {
    let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with(series))
        .unwrap_or_else(|| panic!("{series} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_container_has_its_own_series_and_those_of_its_gpu_among_eight() {
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
            assert_eq!(found.series.len(), 5 + 8 + 11 + 2 + 2, "{found:?}");
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
    let folder = tempfile::tempdir().unwrap();
    let gpus = Gpus::open(Some("/nonexistent".into()), Arc::new(|_| None));
    let (ring, _registry) = ring(&gpus, folder.path(), folder.path(), ids(0..1));
    assert_eq!(before_now(&ring, 0, Duration::from_mins(1)).series, []);
    let before = Instant::now();
    drop(ring);
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
}

/// Cgroups of the kernel's own, with the names that a kubelet gives them.
struct RealCgroups {
    pods: Vec<PathBuf>,
    containers: u32,
}

impl RealCgroups {
    fn make(containers: u32) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: making cgroups needs root");
            return None;
        }
        let roots = ["", "cpuacct", "cpu,cpuacct", "memory"].map(|name| Path::new("/sys/fs/cgroup").join(name));
        let counts = |root: &PathBuf| {
            ["cgroup.controllers", "cpuacct.usage", "memory.usage_in_bytes"]
                .iter()
                .any(|file| root.join(file).exists())
        };
        let name = format!("flopwatch-test-{}", std::process::id());
        let pods: Vec<_> = roots
            .iter()
            .filter(|root| counts(root))
            .map(|root| root.join(&name))
            .collect();
        let made = Self { pods, containers };
        for number in 0..containers {
            for folder in made.folders(number) {
                if let Err(error) = std::fs::create_dir_all(&folder) {
                    println!("skipped: {} cannot be made: {error}", folder.display());
                    return None;
                }
            }
        }
        Some(made)
    }

    fn folders(&self, container: u32) -> impl Iterator<Item = PathBuf> {
        self.pods
            .iter()
            .map(move |pod| pod.join(format!("pod{POD}/{}", id(container))))
    }

    fn enter(&self, container: u32, process: &Child) {
        for folder in self.folders(container) {
            std::fs::write(folder.join("cgroup.procs"), process.id().to_string()).unwrap();
        }
    }
}

impl Drop for RealCgroups {
    fn drop(&mut self) {
        for number in 0..self.containers {
            for folder in self.folders(number) {
                // A process that was killed leaves its cgroup a moment later.
                let end = Instant::now() + Duration::from_secs(5);
                while std::fs::remove_dir(&folder).is_err() && folder.exists() && Instant::now() < end {
                    wait(Duration::from_millis(20));
                }
            }
        }
        for pod in &self.pods {
            std::fs::remove_dir(pod.join(format!("pod{POD}"))).ok();
            std::fs::remove_dir(pod).ok();
        }
    }
}

/// A program that works until it is dropped: 20 s of processor time at most, where its test is killed.
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
    let Some(cgroups) = RealCgroups::make(2) else { return };
    let work = ["-c", "ulimit -t 20; while :; do :; done"];
    let busy = Busy(Command::new("sh").args(work).spawn().unwrap());
    cgroups.enter(0, &busy.0);
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

/// Processor time that threads of this process have had, by name.
fn threads() -> BTreeMap<String, Duration> {
    let mut found: BTreeMap<String, Duration> = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let of = task.unwrap().path();
        let read = |file: &str| std::fs::read_to_string(of.join(file)).unwrap_or_default();
        let spent = read("schedstat")
            .split(' ')
            .next()
            .and_then(|ns| ns.parse().ok())
            .unwrap_or(0);
        *found.entry(read("comm").trim().to_owned()).or_default() += Duration::from_nanos(spent);
    }
    found
}

/// A number that whoever measures may give.
fn number(variable: &str, otherwise: u32) -> u32 {
    let given = std::env::var(variable).ok().and_then(|text| text.parse().ok());
    given.unwrap_or(otherwise)
}

/// How long is measured.
fn measured() -> Duration {
    Duration::from_secs(number("FLOPWATCH_RING_SECONDS", 60).into())
}

/// Prints the shares of a core over a time, and the longest of gaps.
fn report(what: &str, time: Duration, before: &BTreeMap<String, Duration>) {
    let now = threads();
    let mut all = 0.0;
    for name in ["flopwatch-nvml", "flopwatch-pcie", "metrics-ring"] {
        let spent = now
            .get(name)
            .copied()
            .unwrap_or_default()
            .saturating_sub(before.get(name).copied().unwrap_or_default());
        let share = 100.0 * spent.as_secs_f64() / time.as_secs_f64();
        all += share;
        println!("measured: {what}: {name} {share:.3} % of a core");
    }
    println!("measured: {what}: together {all:.3} % of a core");
}

/// Prints what the ring costs; build what it measures with optimisation (docs/recorder.md).
#[test]
#[ignore = "a measurement of a minute and more, run by hand"]
fn what_the_ring_costs_with_eight_gpus() {
    with_gpus("what_the_ring_costs_with_eight_gpus", 8, |library| {
        let containers = number("FLOPWATCH_RING_CONTAINERS", 30);
        let Some(_cgroups) = RealCgroups::make(containers) else {
            return;
        };
        let machine = Machine::new(containers);
        let gpus = Gpus::open(Some(library.to_owned()), Arc::new(|_| None));
        wait(Duration::from_secs(2));
        let (begin, before) = (Instant::now(), threads());
        wait(measured() / 3);
        report("without the ring", begin.elapsed(), &before);
        let (ring, registry) = ring(
            &gpus,
            &machine.procfs(),
            Path::new("/sys/fs/cgroup"),
            ids(0..containers),
        );
        wait(Duration::from_secs(2));
        let (begin, before) = (Instant::now(), threads());
        wait(measured());
        report("with the ring", begin.elapsed(), &before);
        let mut longest = 0;
        let mut missed = 0;
        for container in 0..containers {
            let found = before_now(&ring, container, begin.elapsed());
            assert_eq!(found.series.iter().any(|series| series.source == "nvml"), container < 8);
            longest = longest.max(found.longest_gap_ns);
            missed += found.missed;
        }
        println!(
            "measured: longest gap {} ms, {missed} rounds missed over all containers",
            longest / 1_000_000
        );
        for series in ["bytes{source=\"nvml\"}", "bytes{source=\"cgroup\"}"] {
            println!(
                "measured: {series} {}",
                value(&registry, &format!("flopwatch_metrics_ring_{series}"))
            );
        }
        for source in ["nvml", "cgroup"] {
            let of = |part: &str| {
                let name = format!("flopwatch_metrics_ring_round_processor_seconds_{part}{{source=\"{source}\"}}");
                value(&registry, &name)
            };
            println!(
                "measured: {source}: {:.0} rounds of {:.0} µs",
                of("count"),
                1e6 * of("sum") / of("count")
            );
        }
    });
}
