//! A machine with GPUs of the rig's NVML library and containers whose procfs and cgroups are files,
//! and a ring over it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flopwatch_agent::metrics_ring::{MetricsRing, Sources};
use flopwatch_attach::process::Procfs;
use flopwatch_nvml::utc_ns;
use flopwatch_pipeline::gpus::Gpus;
use flopwatch_pipeline::transform::EarlierSamples;
use prometheus::{Registry, TextEncoder};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Names the file of NVML's state.
pub(crate) const STATE: &str = "FLOPWATCH_FAKE_NVML";
/// UID of the pod of every container.
pub(crate) const POD: &str = "0a1b2c3d-1111-2222-3333-444455556666";

/// The file that NVML's state is read from where it has `gpus` GPUs, each with the process of that
/// number.
pub(crate) fn state(folder: &Path, gpus: u32) -> PathBuf {
    let file = folder.join("state.json");
    let devices: Vec<Value> = (0..gpus).map(gpu).collect();
    std::fs::write(&file, json!({"version": 1, "devices": devices}).to_string()).unwrap();
    file
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
        "sm_clock_mhz": 1980, "memory_clock_mhz": 2619, "temperature_celsius": 55, "throttle_reasons": 4,
        "pcie_receive_kib_per_second": 1000, "pcie_transmit_kib_per_second": 2000, "gpm": gpm,
        "processes": [{"pid": 1000 + number, "memory_used_bytes": 536_870_912, "sm_utilization_percent": 40}],
    })
}

/// The ID of a container, which no other run of these tests has: they share the kernel's cgroups.
pub(crate) fn id(number: u32) -> String {
    format!("{:056x}{number:08x}", std::process::id())
}

/// A machine whose procfs and cgroups are files.
pub(crate) struct Machine(TempDir);

impl Machine {
    /// Process 1000 and N is in container N, as its procfs says.
    pub(crate) fn new(containers: u32) -> Self {
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

    pub(crate) fn procfs(&self) -> PathBuf {
        self.0.path().join("proc")
    }

    pub(crate) fn cgroups(&self) -> PathBuf {
        self.0.path().join("cgroup")
    }

    fn folder(&self, container: u32) -> PathBuf {
        self.cgroups().join(format!("kubepods/pod{POD}/{}", id(container)))
    }

    /// Its container has used so much processor time.
    pub(crate) fn uses(&self, container: u32, time: Duration) {
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
pub(crate) fn ring(
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

pub(crate) fn ids(numbers: std::ops::Range<u32>) -> impl Fn() -> BTreeSet<String> + Send + 'static {
    move || numbers.clone().map(id).collect()
}

pub(crate) fn before_now(ring: &MetricsRing, container: u32, length: Duration) -> EarlierSamples {
    ring.before(&id(container), utc_ns(), length)
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime")]
pub(crate) fn wait(time: Duration) {
    std::thread::sleep(time);
}

pub(crate) fn value(registry: &Registry, series: &str) -> f64 {
    let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with(series))
        .unwrap_or_else(|| panic!("{series} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
