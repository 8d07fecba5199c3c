//! Renders the last snapshot for Prometheus.

use std::fmt;
use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec, Opts};

use crate::metric::Metric;
use crate::sampler::Shared;
use crate::snapshot::{Snapshot, UnitSnapshot};

/// Labels of a device's series.
const DEVICE: [&str; 4] = ["gpu", "uuid", "model", "attribution"];

/// Labels of a container's series.
const CONTAINER: [&str; 7] = ["gpu", "uuid", "model", "attribution", "namespace", "pod", "container"];

/// Labels of the mapping from GPU to pod.
const POD: [&str; 5] = ["gpu", "uuid", "namespace", "pod", "container"];

/// The series of the node's GPUs, made anew of the last snapshot for each scrape: a pod's series
/// end with its last process on a GPU, and when sampling stops all of them do.
///
/// | series | labels |
/// |---|---|
/// | `flopwatch_gpu_utilization_ratio`, `flopwatch_gpu_memory_utilization_ratio`, `flopwatch_gpu_memory_used_bytes`, `flopwatch_gpu_memory_total_bytes`, `flopwatch_gpu_power_watts`, `flopwatch_gpu_sm_clock_hertz`, `flopwatch_gpu_memory_clock_hertz`, `flopwatch_gpu_temperature_celsius`, `flopwatch_gpu_power_throttle_ratio`, `flopwatch_gpu_thermal_throttle_ratio`, `flopwatch_gpu_hardware_slowdown_ratio`, `flopwatch_gpu_pcie_receive_bytes_per_second`, `flopwatch_gpu_pcie_transmit_bytes_per_second`, `flopwatch_gpu_unattributed_processes` | `gpu`, `uuid`, `model`, `attribution` (`device` or `partition`) |
/// | `flopwatch_gpu_sm_activity_ratio`, `flopwatch_gpu_sm_occupancy_ratio`, `flopwatch_gpu_tensor_activity_ratio`, `flopwatch_gpu_fp64_activity_ratio`, `flopwatch_gpu_fp32_activity_ratio`, `flopwatch_gpu_fp16_activity_ratio`, `flopwatch_gpu_dram_bandwidth_utilization_ratio`, `flopwatch_gpu_pcie_receive_mean_bytes_per_second`, `flopwatch_gpu_pcie_transmit_mean_bytes_per_second`, `flopwatch_gpu_nvlink_receive_mean_bytes_per_second`, `flopwatch_gpu_nvlink_transmit_mean_bytes_per_second`, where the GPU has GPM | the same |
/// | `flopwatch_gpu_process_memory_used_bytes`, `flopwatch_gpu_process_sm_utilization_ratio` | the same with `attribution="process"`, and `namespace`, `pod`, `container` |
/// | `flopwatch_gpu_pod_info` | `gpu`, `uuid`, `namespace`, `pod`, `container` |
/// | `flopwatch_nvml_up` | |
/// | `flopwatch_nvml_errors_total` | `reason` |
/// | `flopwatch_nvml_reopens_total`, `flopwatch_nvml_dropped_points_total`, `flopwatch_nvml_missed_samples_total` | |
pub struct GpuCollector {
    shared: Arc<Shared>,
    descs: Vec<Desc>,
}

impl fmt::Debug for GpuCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuCollector").finish_non_exhaustive()
    }
}

impl GpuCollector {
    pub(crate) fn new(shared: Arc<Shared>) -> prometheus::Result<Self> {
        let gauges = Gauges::new()?;
        let mut descs: Vec<Desc> = gauges
            .all()
            .into_iter()
            .flat_map(|gauge| gauge.desc())
            .cloned()
            .collect();
        descs.extend(gauges.up.desc().into_iter().cloned());
        descs.extend(shared.counters.descs());
        Ok(Self { shared, descs })
    }
}

impl Collector for GpuCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // The names were accepted when the collector was made.
        let Ok(gauges) = Gauges::new() else { return Vec::new() };
        let snapshot = self.shared.fresh_snapshot();
        if let Some(snapshot) = &snapshot {
            gauges.set(snapshot);
        }
        gauges.up.set(if snapshot.is_some() { 1.0 } else { 0.0 });
        let mut families: Vec<MetricFamily> = gauges.all().into_iter().flat_map(Collector::collect).collect();
        families.extend(gauges.up.collect());
        families.extend(self.shared.counters.collect());
        families
    }
}

/// The gauges of one scrape.
struct Gauges {
    devices: Vec<(Metric, GaugeVec)>,
    unattributed: GaugeVec,
    process_memory: GaugeVec,
    process_utilization: GaugeVec,
    pod_info: GaugeVec,
    up: Gauge,
}

impl Gauges {
    fn new() -> prometheus::Result<Self> {
        let devices = Metric::QUICK
            .into_iter()
            .chain(Metric::PCIE)
            .chain(Metric::GPM)
            .map(|metric| {
                let name = format!("flopwatch_gpu_{}_{}", metric.as_str(), metric.unit().as_str());
                Ok((metric, GaugeVec::new(Opts::new(name, help(metric)), &DEVICE)?))
            })
            .collect::<prometheus::Result<_>>()?;
        Ok(Self {
            devices,
            unattributed: GaugeVec::new(
                Opts::new(
                    "flopwatch_gpu_unattributed_processes",
                    "Compute processes on the GPU that belong to no pod",
                ),
                &DEVICE,
            )?,
            process_memory: GaugeVec::new(
                Opts::new(
                    "flopwatch_gpu_process_memory_used_bytes",
                    help(Metric::ProcessMemoryUsed),
                ),
                &CONTAINER,
            )?,
            process_utilization: GaugeVec::new(
                Opts::new(
                    "flopwatch_gpu_process_sm_utilization_ratio",
                    help(Metric::ProcessSmUtilization),
                ),
                &CONTAINER,
            )?,
            pod_info: GaugeVec::new(
                Opts::new(
                    "flopwatch_gpu_pod_info",
                    "1 for each container that has a compute process on the GPU",
                ),
                &POD,
            )?,
            up: Gauge::new(
                "flopwatch_nvml_up",
                "1 while NVML answers, 0 while it is lost and being reopened",
            )?,
        })
    }

    fn all(&self) -> Vec<&GaugeVec> {
        let mut all: Vec<_> = self.devices.iter().map(|(_, gauge)| gauge).collect();
        all.extend([
            &self.unattributed,
            &self.process_memory,
            &self.process_utilization,
            &self.pod_info,
        ]);
        all
    }

    fn set(&self, snapshot: &Snapshot) {
        for unit in &snapshot.units {
            self.set_unit(unit);
        }
    }

    fn set_unit(&self, unit: &UnitSnapshot) {
        let index = unit.device.index.to_string();
        let (uuid, model) = (unit.device.uuid.as_str(), unit.device.model.as_str());
        let device = [index.as_str(), uuid, model, unit.attribution.as_str()];
        for (metric, gauge) in &self.devices {
            if let Some(value) = unit.values.get(metric) {
                gauge.with_label_values(&device).set(*value);
            }
        }
        self.unattributed
            .with_label_values(&device)
            .set(f64::from(unit.unattributed));
        for (container, share) in &unit.containers {
            let (namespace, pod, name) = (
                container.namespace.as_str(),
                container.pod.as_str(),
                container.container.as_str(),
            );
            let labels = [index.as_str(), uuid, model, "process", namespace, pod, name];
            if let Some(bytes) = share.memory_used {
                self.process_memory.with_label_values(&labels).set(bytes);
            }
            if let Some(ratio) = share.sm_utilization {
                self.process_utilization.with_label_values(&labels).set(ratio);
            }
            self.pod_info
                .with_label_values(&[index.as_str(), uuid, namespace, pod, name])
                .set(1.0);
        }
    }
}

const fn help(metric: Metric) -> &'static str {
    match metric {
        Metric::Utilization => "Share of the driver's last sampling window in which a kernel ran on the GPU, 0 to 1",
        Metric::MemoryUtilization => {
            "Share of the driver's last sampling window in which GPU memory was accessed, 0 to 1"
        }
        Metric::MemoryUsed => "GPU memory in use",
        Metric::MemoryTotal => "GPU memory in all",
        Metric::Power => "Power that the board draws",
        Metric::SmClock => "Clock of the streaming multiprocessors",
        Metric::MemoryClock => "Clock of the GPU memory",
        Metric::Temperature => "Temperature of the GPU",
        Metric::PowerThrottle => "1 while the GPU's clocks are lowered for power, else 0",
        Metric::ThermalThrottle => "1 while the GPU's clocks are lowered for temperature, else 0",
        Metric::HardwareSlowdown => "1 while the board at least halves the GPU's clocks, else 0",
        Metric::PcieReceive => "Bytes that the GPU receives over PCIe per second, measured over 20 ms",
        Metric::PcieTransmit => "Bytes that the GPU sends over PCIe per second, measured over 20 ms",
        Metric::SmActivity => {
            "Share of the time in which a streaming multiprocessor had work, averaged over all, since the sample before"
        }
        Metric::SmOccupancy => "Warps resident on the streaming multiprocessors as a share of the most, 0 to 1",
        Metric::TensorActivity => "Share of the time in which tensor cores worked, 0 to 1",
        Metric::Fp64Activity => "Share of the time in which the FP64 units worked, tensor cores aside, 0 to 1",
        Metric::Fp32Activity => "Share of the time in which the FP32 units worked, tensor cores aside, 0 to 1",
        Metric::Fp16Activity => "Share of the time in which the FP16 units worked, tensor cores aside, 0 to 1",
        Metric::DramBandwidthUtilization => "Share of the GPU memory's bandwidth that was used, 0 to 1",
        Metric::PcieReceiveMean => "Bytes that the GPU received over PCIe per second, since the sample before",
        Metric::PcieTransmitMean => "Bytes that the GPU sent over PCIe per second, since the sample before",
        Metric::NvlinkReceiveMean => "Bytes that the GPU received over all NVLinks per second, since the sample before",
        Metric::NvlinkTransmitMean => "Bytes that the GPU sent over all NVLinks per second, since the sample before",
        Metric::ProcessMemoryUsed => "GPU memory in use by the container's processes",
        Metric::ProcessSmUtilization => {
            "Share of the driver's last sample in which kernels of the container ran, 0 to 1"
        }
    }
}
