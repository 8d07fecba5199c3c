//! A process of its own for each test, with the library and the file that it reads.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flopwatch_nvml::{ContainerIdentity, Resolver, Sampler, SamplerOptions, SubscriptionRequest};
use prometheus::{Registry, TextEncoder};
use serde_json::{Value, json};

use crate::library::{LIBRARY, library};

const STATE: &str = "FLOPWATCH_FAKE_NVML";

/// A test's own process: its library and the file that it may write.
pub(crate) struct Rig {
    library: PathBuf,
    state: PathBuf,
}

impl Rig {
    pub(crate) fn set(&self, state: &Value) {
        // A rename, so that the library never reads half a file.
        let staged = self.state.with_extension("next");
        std::fs::write(&staged, state.to_string()).unwrap();
        std::fs::rename(staged, &self.state).unwrap();
    }

    pub(crate) fn options(&self, interval: Duration) -> SamplerOptions {
        SamplerOptions {
            library: Some(self.library.clone()),
            interval,
            resolver: everybody("train"),
        }
    }

    pub(crate) fn sampler(&self) -> Sampler {
        Sampler::open(self.options(Duration::from_millis(50))).unwrap()
    }

    /// The same, and where its series are.
    pub(crate) fn registered(&self) -> (Sampler, Registry) {
        let sampler = self.sampler();
        let registry = registered(&sampler);
        (sampler, registry)
    }
}

/// Runs `body` in a process whose environment names a state file.
pub(crate) fn in_own_process(test: &str, body: fn(&Rig)) {
    if let Some(state) = std::env::var_os(STATE) {
        return body(&Rig {
            library: library(),
            state: state.into(),
        });
    }
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(STATE, directory.path().join("state.json"))
        .env(LIBRARY, library())
        .output()
        .unwrap();
    let reply = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{reply}");
    assert!(reply.contains("1 passed"), "the test did not run again: {reply}");
}

pub(crate) fn everybody(pod: &'static str) -> Resolver {
    Arc::new(move |_| {
        Some(ContainerIdentity {
            namespace: "team".into(),
            pod: pod.into(),
            container: "main".into(),
        })
    })
}

pub(crate) fn gpu(processes: &Value) -> Value {
    json!({
        "uuid": "GPU-1", "name": "Rig GPU",
        "memory_total_bytes": 1000, "memory_used_bytes": 250,
        "utilization_percent": 40, "memory_utilization_percent": 10,
        "power_milliwatts": 1500, "sm_clock_mhz": 2000, "memory_clock_mhz": 3000,
        // SwPowerCap and GpuIdle.
        "throttle_reasons": 5,
        "pcie_receive_kib_per_second": 2, "pcie_transmit_kib_per_second": 3,
        "processes": processes,
    })
}

pub(crate) fn own_pid() -> u32 {
    std::process::id()
}

pub(crate) fn scrape(registry: &Registry) -> String {
    TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
}

pub(crate) fn registered(sampler: &Sampler) -> Registry {
    let registry = Registry::new();
    registry.register(Box::new(sampler.collector().unwrap())).unwrap();
    registry
}

/// Waits until a scrape has that in it.
#[track_caller]
pub(crate) fn shows(registry: &Registry, text: &str, what: &str) {
    eventually(what, || scrape(registry).contains(text));
}

#[track_caller]
pub(crate) fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(15);
    while !check() {
        assert!(Instant::now() < end, "not within 15 s: {what}");
        wait(20);
    }
}

/// Returns when a new recording has been given a reading, and with it every older one that was due.
pub(crate) fn recorded(sampler: &Sampler) {
    let asked = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&asked);
    let target: flopwatch_nvml::Target = Arc::new(move |_| {
        seen.store(true, Ordering::Relaxed);
        true
    });
    let recording = sampler
        .subscribe(SubscriptionRequest::new(Duration::from_millis(50), target))
        .unwrap();
    eventually("a reading of a process", || asked.load(Ordering::Relaxed));
    drop(recording);
}

#[expect(clippy::disallowed_methods, reason = "there is no runtime")]
pub(crate) fn wait(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}
