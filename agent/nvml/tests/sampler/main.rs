//! The sampler against the rig's NVML library, through the real loader.
//!
//! The library reads its state from the file that an environment variable names, so each test runs
//! itself again in a process of its own with that variable set.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

mod gpm;
mod library;
mod observer;
mod rig;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flopwatch_nvml::{
    Attribution, DeviceSelection, Metric, NvmlError, Reason, Sampler, SamplerOptions, SubscribeError,
    SubscriptionRequest,
};
use serde_json::json;

use rig::{eventually, everybody, gpu, in_own_process, own_pid, recorded, scrape, shows, wait};

#[test]
fn a_scrape_shows_devices_and_pods_in_base_units_and_no_pid() {
    in_own_process("a_scrape_shows_devices_and_pods_in_base_units_and_no_pid", |rig| {
        let processes = json!([{"pid": own_pid(), "memory_used_bytes": 200, "sm_utilization_percent": 30}]);
        rig.set(&json!({"version": 1, "devices": [gpu(&processes)]}));
        let (_sampler, registry) = rig.registered();
        let device = r#"{attribution="device",gpu="0",model="Rig GPU",uuid="GPU-1"}"#;
        let container = r#"{attribution="process",container="main",gpu="0",model="Rig GPU",namespace="team",pod="train",uuid="GPU-1"}"#;
        let expected = [
            "flopwatch_nvml_up 1".to_owned(),
            format!("flopwatch_gpu_utilization_ratio{device} 0.4"),
            format!("flopwatch_gpu_memory_utilization_ratio{device} 0.1"),
            format!("flopwatch_gpu_memory_used_bytes{device} 250"),
            format!("flopwatch_gpu_memory_total_bytes{device} 1000"),
            format!("flopwatch_gpu_power_watts{device} 1.5"),
            format!("flopwatch_gpu_sm_clock_hertz{device} 2000000000"),
            format!("flopwatch_gpu_memory_clock_hertz{device} 3000000000"),
            format!("flopwatch_gpu_power_throttle_ratio{device} 1"),
            format!("flopwatch_gpu_thermal_throttle_ratio{device} 0"),
            format!("flopwatch_gpu_hardware_slowdown_ratio{device} 0"),
            format!("flopwatch_gpu_pcie_receive_bytes_per_second{device} 2048"),
            format!("flopwatch_gpu_pcie_transmit_bytes_per_second{device} 3072"),
            format!("flopwatch_gpu_unattributed_processes{device} 0"),
            format!("flopwatch_gpu_process_memory_used_bytes{container} 200"),
            format!("flopwatch_gpu_process_sm_utilization_ratio{container} 0.3"),
            r#"flopwatch_gpu_pod_info{container="main",gpu="0",namespace="team",pod="train",uuid="GPU-1"} 1"#
                .to_owned(),
        ];
        let mut text = String::new();
        eventually("every series", || {
            text = scrape(&registry);
            let lines: BTreeSet<&str> = text.lines().collect();
            expected.iter().all(|line| lines.contains(line.as_str()))
        });
        // The rig's GPU has no thermometer: absent, not 0.
        assert!(!text.contains("flopwatch_gpu_temperature_celsius"), "{text}");
        assert!(
            !text.contains("pid=") && !text.contains(&format!("\"{}\"", own_pid())),
            "{text}"
        );
    });
}

#[test]
fn a_pods_series_go_with_its_process() {
    in_own_process("a_pods_series_go_with_its_process", |rig| {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("fw-gpu-job");
        std::fs::copy("/bin/sleep", &program).unwrap();
        rig.set(&json!({"version": 1, "devices": [gpu(&json!([{"comm": "fw-gpu-job", "memory_used_bytes": 7}]))]}));
        let (_sampler, registry) = rig.registered();
        let series = "flopwatch_gpu_process_memory_used_bytes{";
        shows(&registry, "flopwatch_nvml_up 1", "the first sample");
        assert!(!scrape(&registry).contains(series));

        let mut job = Command::new(&program).arg("60").spawn().unwrap();
        eventually("the pod's series", || scrape(&registry).contains(series));
        job.kill().unwrap();
        job.wait().unwrap();
        eventually("their end", || !scrape(&registry).contains(series));
        assert!(!scrape(&registry).contains("flopwatch_gpu_pod_info{"));
        assert!(scrape(&registry).contains("flopwatch_nvml_up 1"));
    });
}

#[test]
fn a_partition_has_its_own_memory_and_processes() {
    in_own_process("a_partition_has_its_own_memory_and_processes", |rig| {
        let mut whole = gpu(&json!([]));
        whole["partitions"] = json!([{
            "uuid": "MIG-1", "name": "Rig GPU MIG 1g", "memory_total_bytes": 100, "memory_used_bytes": 60,
            "processes": [{"pid": own_pid(), "memory_used_bytes": 50}],
        }]);
        rig.set(&json!({"version": 1, "devices": [whole]}));
        let (sampler, registry) = rig.registered();
        let partition = r#"{attribution="partition",gpu="0",model="Rig GPU MIG 1g",uuid="MIG-1"}"#;
        eventually("the partition's memory", || {
            scrape(&registry).contains(&format!("flopwatch_gpu_memory_used_bytes{partition} 60"))
        });
        let text = scrape(&registry);
        assert!(
            !text.contains(&format!("flopwatch_gpu_power_watts{partition}")),
            "{text}"
        );
        let held = text
            .lines()
            .find(|line| line.starts_with("flopwatch_gpu_process_memory_used_bytes"))
            .unwrap();
        assert!(held.contains(r#"uuid="MIG-1""#) && held.ends_with(" 50"), "{held}");
        let states = sampler.states();
        let partition = states.iter().find(|state| state.device.uuid == "MIG-1").unwrap();
        assert!(
            partition.parent.is_some() && partition.processes == [own_pid()],
            "{partition:?}"
        );
        assert_eq!(partition.memory_free, Some(40));
        assert!(
            states
                .iter()
                .any(|state| state.parent.is_none() && state.processes.is_empty()),
            "{states:?}"
        );
    });
}

#[test]
fn a_recording_has_series_at_its_interval_and_names_what_is_unsupported() {
    in_own_process(
        "a_recording_has_series_at_its_interval_and_names_what_is_unsupported",
        |rig| {
            let processes = json!([
                {"pid": own_pid(), "memory_used_bytes": 200, "sm_utilization_percent": 30},
                {"pid": 1, "memory_used_bytes": 999, "sm_utilization_percent": 70},
            ]);
            let mut busy = gpu(&processes);
            busy["utilization_percent"] = json!({"mean": 50, "amplitude": 50, "period_seconds": 0.4});
            let mut idle = gpu(&json!([]));
            idle["uuid"] = json!("GPU-2");
            rig.set(&json!({"version": 1, "devices": [busy, idle]}));
            let sampler = rig.sampler();
            let own = own_pid();
            let target: flopwatch_nvml::Target = Arc::new(move |pid| pid == own);
            let recording = sampler
                .subscribe(SubscriptionRequest::new(Duration::from_millis(10), target))
                .unwrap();
            let started = Instant::now();
            wait(1500);
            let recording = recording.stop();
            // A busy machine may sleep longer than it was asked to.
            let tenths = usize::try_from(started.elapsed().as_millis() / 100).unwrap();

            assert!(
                recording.series.iter().all(|series| series.device.uuid == "GPU-1"),
                "only the target's GPU"
            );
            let points = |metric| {
                let mut of_metric = recording.series.iter().filter(|series| series.metric == metric);
                let series = of_metric.next().unwrap_or_else(|| panic!("{metric} in {recording:?}"));
                assert!(of_metric.next().is_none(), "{metric} once");
                (series.attribution, series.points.clone())
            };
            let (attribution, utilization) = points(Metric::Utilization);
            assert_eq!(attribution, Attribution::Device);
            // 150 at best; a busy machine may miss some, and says so.
            assert!(
                utilization.len() > 30,
                "{} points, {} missed",
                utilization.len(),
                recording.missed
            );
            assert!(
                utilization.windows(2).all(|pair| pair[0].0 < pair[1].0),
                "in the order of time"
            );
            assert!(
                utilization.iter().any(|(_, ratio)| *ratio > 0.8) && utilization.iter().any(|(_, ratio)| *ratio < 0.2)
            );
            let (attribution, memory) = points(Metric::ProcessMemoryUsed);
            assert_eq!(attribution, Attribution::Process);
            assert!(
                memory.iter().all(|(_, bytes)| (*bytes - 200.0).abs() < f64::EPSILON),
                "the stranger is left out"
            );
            let (_, share) = points(Metric::ProcessSmUtilization);
            // The driver has a sample each 100 ms, however often it is asked.
            assert!((5..=tenths + 2).contains(&share.len()), "{} in {tenths}", share.len());
            assert!(points(Metric::PcieReceive).1.len() <= tenths / 10 + 2);
            let unsupported: Vec<_> = recording
                .unsupported
                .iter()
                .map(|(device, metric)| (device.uuid.as_str(), *metric))
                .collect();
            // The rig's GPU has no GPM either.
            let (gpm, other): (Vec<_>, Vec<_>) = unsupported.into_iter().partition(|(_, metric)| metric.is_gpm());
            assert_eq!((gpm.len(), other), (11, vec![("GPU-1", Metric::Temperature)]));
            assert_eq!(recording.dropped, 0);
            assert!(recording.errors.is_empty(), "{:?}", recording.errors);
        },
    );
}

#[test]
fn a_lost_gpu_ends_its_series_and_comes_back() {
    in_own_process("a_lost_gpu_ends_its_series_and_comes_back", |rig| {
        let well = json!({"version": 1, "devices": [gpu(&json!([{"pid": own_pid(), "memory_used_bytes": 1}]))]});
        rig.set(&well);
        let (sampler, registry) = rig.registered();
        let request = SubscriptionRequest {
            devices: DeviceSelection::All,
            ..SubscriptionRequest::new(Duration::from_millis(50), Arc::new(|_| false))
        };
        let recording = sampler.subscribe(request).unwrap();
        recorded(&sampler);

        let mut ill = well.clone();
        ill["errors"] = json!({"nvmlDeviceGetPowerUsage": "GPU_IS_LOST"});
        rig.set(&ill);
        eventually("the end of the series", || {
            let text = scrape(&registry);
            text.contains("flopwatch_nvml_up 0") && !text.contains("flopwatch_gpu_")
        });
        rig.set(&well);
        shows(&registry, "flopwatch_gpu_power_watts", "the series again");
        let text = scrape(&registry);
        let value = |series: &str| -> u64 {
            let line = text.lines().find(|line| line.starts_with(series)).unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        assert!(value("flopwatch_nvml_reopens_total") >= 1, "{text}");
        assert!(
            value(r#"flopwatch_nvml_errors_total{reason="gpu_lost"}"#) >= 1,
            "{text}"
        );
        recorded(&sampler);
        let recording = recording.stop();
        assert!(recording.errors[&Reason::GpuLost] >= 1);
        let power = recording
            .series
            .iter()
            .find(|series| series.metric == Metric::Power)
            .unwrap();
        let gap = power.points.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap();
        assert!(
            gap > 500_000_000,
            "recorded before and after, with the gap between: {gap} ns"
        );
    });
}

#[test]
fn a_gpu_that_is_gone_leaves_the_others() {
    in_own_process("a_gpu_that_is_gone_leaves_the_others", |rig| {
        let mut second = gpu(&json!([]));
        second["uuid"] = json!("GPU-2");
        let both = json!({"version": 1, "devices": [gpu(&json!([])), second]});
        rig.set(&both);
        let (_sampler, registry) = rig.registered();
        shows(&registry, "GPU-2", "both");
        rig.set(&json!({"version": 1, "devices": [gpu(&json!([]))]}));
        eventually("one", || {
            let text = scrape(&registry);
            text.contains("GPU-1") && !text.contains("GPU-2") && text.contains("flopwatch_nvml_up 1")
        });
    });
}

#[test]
fn a_machine_without_nvml_hears_why() {
    in_own_process("a_machine_without_nvml_hears_why", |rig| {
        let absent = SamplerOptions {
            library: Some(Path::new("/nonexistent/libnvidia-ml.so.1").into()),
            ..SamplerOptions::new(everybody("train"))
        };
        let error = Sampler::open(absent).unwrap_err();
        assert!(matches!(error, NvmlError::Absent { .. }), "{error}");
        assert!(error.to_string().contains("/nonexistent/libnvidia-ml.so.1"), "{error}");

        // The library is there, its state file is not.
        let error = Sampler::open(rig.options(Duration::from_secs(1))).unwrap_err();
        assert!(
            matches!(
                error,
                NvmlError::Start {
                    reason: Reason::DriverNotLoaded,
                    ..
                }
            ),
            "{error}"
        );
        rig.set(&json!({"version": 2, "devices": []}));
        let error = Sampler::open(rig.options(Duration::from_secs(1))).unwrap_err();
        assert!(
            matches!(
                error,
                NvmlError::Start {
                    reason: Reason::VersionMismatch,
                    ..
                }
            ),
            "{error}"
        );

        // A driver without a GPU is a driver.
        rig.set(&json!({"version": 1, "devices": []}));
        let (_sampler, registry) = rig.registered();
        shows(&registry, "flopwatch_nvml_up 1", "up");
    });
}

#[test]
fn a_request_out_of_bounds_is_refused_and_the_end_is_quick() {
    in_own_process("a_request_out_of_bounds_is_refused_and_the_end_is_quick", |rig| {
        rig.set(&json!({"version": 1, "devices": [gpu(&json!([]))]}));
        let sampler = Sampler::open(rig.options(Duration::from_secs(10))).unwrap();
        for interval in [Duration::from_millis(9), Duration::from_secs(11)] {
            let refused = sampler
                .subscribe(SubscriptionRequest::new(interval, Arc::new(|_| true)))
                .unwrap_err();
            assert_eq!(refused, SubscribeError::Interval(interval));
        }
        let mut held = Vec::new();
        let request = || SubscriptionRequest::new(Duration::from_secs(1), Arc::new(|_| true));
        for _ in 0..64 {
            held.push(sampler.subscribe(request()).unwrap());
        }
        assert_eq!(sampler.subscribe(request()).unwrap_err(), SubscribeError::TooMany(64));
        held.clear();
        sampler.subscribe(request()).unwrap();
        let before = Instant::now();
        drop(sampler);
        // An interval is 10 s long.
        assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    });
}
