//! GPU Performance Monitoring: what two samples give, and what is there without.

use std::sync::Arc;
use std::time::Duration;

use flopwatch_nvml::{
    Attribution, DeviceSelection, Metric, Reason, Recording, Sampler, Subscription, SubscriptionRequest,
};
use serde_json::{Value, json};

use crate::rig::{eventually, gpu, in_own_process, own_pid, recorded, registered, scrape, shows, wait};

const GPM: [&str; 11] = [
    "SM_UTIL",
    "SM_OCCUPANCY",
    "ANY_TENSOR_UTIL",
    "DRAM_BW_UTIL",
    "FP64_UTIL",
    "FP32_UTIL",
    "FP16_UTIL",
    "PCIE_TX_PER_SEC",
    "PCIE_RX_PER_SEC",
    "NVLINK_TOTAL_RX_PER_SEC",
    "NVLINK_TOTAL_TX_PER_SEC",
];

/// A GPU that counts `gpm`, with a process of the target on it.
fn hopper(gpm: &Value) -> Value {
    let mut gpu = gpu(&json!([{"pid": own_pid(), "memory_used_bytes": 1}]));
    gpu["gpm"] = gpm.clone();
    gpu
}

fn record(sampler: &Sampler, milliseconds: u64) -> Subscription {
    let request = SubscriptionRequest {
        devices: DeviceSelection::All,
        ..SubscriptionRequest::new(Duration::from_millis(milliseconds), Arc::new(|_| true))
    };
    sampler.subscribe(request).unwrap()
}

fn points(recording: &Recording, uuid: &str, metric: Metric) -> Vec<(u64, f64)> {
    let of_metric = |series: &&flopwatch_nvml::Series| series.metric == metric && series.device.uuid == uuid;
    recording
        .series
        .iter()
        .find(of_metric)
        .map(|series| series.points.clone())
        .unwrap_or_default()
}

fn errors(text: &str, reason: &str) -> u64 {
    let series = format!("flopwatch_nvml_errors_total{{reason=\"{reason}\"}}");
    let line = text.lines().find(|line| line.starts_with(&series)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn two_samples_give_every_metric_in_base_units() {
    in_own_process("gpm::two_samples_give_every_metric_in_base_units", |rig| {
        let gpm: serde_json::Map<String, Value> = GPM
            .into_iter()
            .zip(1_u32..)
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        rig.set(&json!({"version": 1, "devices": [hopper(&Value::Object(gpm))]}));
        let (_sampler, registry) = rig.registered();
        let device = r#"{attribution="device",gpu="0",model="Rig GPU",uuid="GPU-1"}"#;
        let expected = [
            format!("flopwatch_gpu_sm_activity_ratio{device} 0.01"),
            format!("flopwatch_gpu_sm_occupancy_ratio{device} 0.02"),
            format!("flopwatch_gpu_tensor_activity_ratio{device} 0.03"),
            format!("flopwatch_gpu_dram_bandwidth_utilization_ratio{device} 0.04"),
            format!("flopwatch_gpu_fp64_activity_ratio{device} 0.05"),
            format!("flopwatch_gpu_fp32_activity_ratio{device} 0.06"),
            format!("flopwatch_gpu_fp16_activity_ratio{device} 0.07"),
            format!("flopwatch_gpu_pcie_transmit_mean_bytes_per_second{device} 8388608"),
            format!("flopwatch_gpu_pcie_receive_mean_bytes_per_second{device} 9437184"),
            format!("flopwatch_gpu_nvlink_receive_mean_bytes_per_second{device} 10485760"),
            format!("flopwatch_gpu_nvlink_transmit_mean_bytes_per_second{device} 11534336"),
        ];
        eventually("every series", || {
            let text = scrape(&registry);
            expected.iter().all(|line| text.lines().any(|found| found == line))
        });
    });
}

#[test]
fn the_first_sample_gives_nothing_and_the_second_the_time_between() {
    in_own_process(
        "gpm::the_first_sample_gives_nothing_and_the_second_the_time_between",
        |rig| {
            rig.set(&json!({"version": 1, "devices": [hopper(&json!({"SM_UTIL": 20}))]}));
            // The next sample for /metrics is 10 s away.
            let sampler = Sampler::open(rig.options(Duration::from_secs(10))).unwrap();
            let registry = registered(&sampler);
            shows(&registry, "flopwatch_gpu_power_watts", "the first sample");
            assert!(!scrape(&registry).contains("sm_activity"));
            rig.set(&json!({"version": 1, "devices": [hopper(&json!({"SM_UTIL": 60}))]}));
            wait(150);
            let recording = record(&sampler, 10_000);
            recorded(&sampler);
            let recording = recording.stop();
            let found = points(&recording, "GPU-1", Metric::SmActivity);
            let [(_, value)] = found[..] else { panic!("{found:?}") };
            // The rig's mean of both samples; either alone would be 0.2 or 0.6.
            assert!((value - 0.4).abs() < 1e-9, "{value}");
        },
    );
}

#[test]
fn a_quick_recording_takes_every_nth_sample_and_frees_each() {
    in_own_process("gpm::a_quick_recording_takes_every_nth_sample_and_frees_each", |rig| {
        // One sample is held while the next is taken: a third would be a leak.
        rig.set(&json!({"version": 1, "gpm_samples": 2, "devices": [hopper(&json!({"SM_UTIL": 50}))]}));
        let (sampler, registry) = rig.registered();
        let recording = record(&sampler, 10);
        wait(1500);
        let recording = recording.stop();
        let activity = points(&recording, "GPU-1", Metric::SmActivity);
        let gaps: Vec<u64> = activity.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(activity.len() > 3, "{activity:?}");
        assert!(gaps.iter().all(|gap| *gap >= 100_000_000), "{gaps:?}");
        let power = points(&recording, "GPU-1", Metric::Power).len();
        assert!(power > 3 * activity.len(), "{power} rounds, {} samples", activity.len());
        assert!(recording.errors.is_empty(), "{:?}", recording.errors);
        assert_eq!(errors(&scrape(&registry), "other"), 0);
        let unsupported: Vec<_> = recording.unsupported.iter().map(|(_, metric)| *metric).collect();
        // Asked for one by one where the GPU has GPM.
        assert!(unsupported.contains(&Metric::NvlinkReceiveMean), "{unsupported:?}");
        assert!(!unsupported.contains(&Metric::SmActivity), "{unsupported:?}");
    });
}

#[test]
fn a_gpu_without_gpm_is_asked_once() {
    in_own_process("gpm::a_gpu_without_gpm_is_asked_once", |rig| {
        let older = json!({"version": 1, "devices": [gpu(&json!([{"pid": own_pid()}]))]});
        rig.set(&older);
        let (sampler, registry) = rig.registered();
        recorded(&sampler);
        // Whoever asked again would be told that the GPU is lost.
        let mut trap = older;
        trap["errors"] = json!({"nvmlGpmQueryDeviceSupport": "GPU_IS_LOST", "nvmlGpmSampleGet": "GPU_IS_LOST"});
        rig.set(&trap);
        wait(400);
        let text = scrape(&registry);
        assert!(
            text.contains("flopwatch_nvml_up 1") && !text.contains("sm_activity"),
            "{text}"
        );
        assert_eq!(errors(&text, "gpu_lost"), 0);
    });
}

#[test]
fn a_driver_that_refuses_is_asked_once() {
    in_own_process("gpm::a_driver_that_refuses_is_asked_once", |rig| {
        let mut refusing = json!({"version": 1, "devices": [hopper(&json!({"SM_UTIL": 50}))]});
        refusing["errors"] = json!({"nvmlGpmSampleGet": "NO_PERMISSION"});
        rig.set(&refusing);
        let (sampler, registry) = rig.registered();
        let recording = record(&sampler, 50);
        wait(500);
        let recording = recording.stop();
        let text = scrape(&registry);
        assert_eq!(errors(&text, "no_permission"), 1);
        assert!(
            text.contains("flopwatch_gpu_power_watts{") && !text.contains("sm_activity"),
            "{text}"
        );
        let refused = recording.unsupported.iter().filter(|(_, metric)| metric.is_gpm());
        assert_eq!(refused.count(), 11);
    });
}

#[test]
fn a_gpu_that_is_lost_between_two_samples_gives_no_value_and_begins_anew() {
    in_own_process(
        "gpm::a_gpu_that_is_lost_between_two_samples_gives_no_value_and_begins_anew",
        |rig| {
            let well = json!({"version": 1, "gpm_samples": 2, "devices": [hopper(&json!({"SM_UTIL": 50}))]});
            rig.set(&well);
            let (sampler, registry) = rig.registered();
            let recording = record(&sampler, 50);
            shows(&registry, "flopwatch_gpu_sm_activity_ratio{", "a value");
            let mut ill = well.clone();
            ill["errors"] = json!({"nvmlGpmSampleGet": "GPU_IS_LOST"});
            rig.set(&ill);
            eventually("the end of the series", || {
                let text = scrape(&registry);
                text.contains("flopwatch_nvml_up 0") && !text.contains("sm_activity")
            });
            rig.set(&well);
            shows(&registry, "flopwatch_gpu_sm_activity_ratio{", "a value again");
            let recording = recording.stop();
            assert!(recording.errors[&Reason::GpuLost] >= 1, "{:?}", recording.errors);
        },
    );
}

#[test]
fn a_partition_has_the_counters_of_an_instance_that_is_its_own() {
    in_own_process(
        "gpm::a_partition_has_the_counters_of_an_instance_that_is_its_own",
        |rig| {
            let partition = |uuid: &str, instance: u32, activity: u32| {
                json!({
                    "uuid": uuid, "gpu_instance": instance, "gpm": {"SM_UTIL": activity},
                    "memory_total_bytes": 100, "memory_used_bytes": 1, "processes": [{"pid": own_pid()}],
                })
            };
            let mut whole = hopper(&json!({"SM_UTIL": 80}));
            whole["partitions"] = json!([
                partition("MIG-1", 9, 30),
                partition("MIG-2", 5, 40),
                partition("MIG-3", 5, 50)
            ]);
            rig.set(&json!({"version": 1, "devices": [whole]}));
            let sampler = rig.sampler();
            let recording = record(&sampler, 50);
            wait(600);
            let recording = recording.stop();
            let last = |uuid| {
                points(&recording, uuid, Metric::SmActivity)
                    .last()
                    .map(|(_, value)| *value)
            };
            assert_eq!(last("GPU-1"), Some(0.8));
            assert_eq!(last("MIG-1"), Some(0.3));
            // Two partitions in one instance: what it counts is of neither alone.
            assert_eq!((last("MIG-2"), last("MIG-3")), (None, None));
            let attribution = |uuid: &str| {
                let mut series = recording.series.iter();
                let found = series.find(|series| series.metric == Metric::SmActivity && series.device.uuid == uuid);
                found.map(|series| series.attribution)
            };
            assert_eq!(attribution("GPU-1"), Some(Attribution::Device));
            assert_eq!(attribution("MIG-1"), Some(Attribution::Partition));
        },
    );
}
