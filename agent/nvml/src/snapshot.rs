//! What was read last, as data.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::metric::{Attribution, Metric};

/// A container, as the cluster names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContainerIdentity {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Name of the container.
    pub container: String,
}

/// A GPU, or a MIG partition of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceIdentity {
    /// NVML's index of the GPU; for a partition, of its parent.
    pub index: u32,
    /// `GPU-...`, or `MIG-...` for a partition.
    pub uuid: String,
    /// Product name.
    pub model: String,
}

/// A GPU or a MIG partition, as it was sampled last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuState {
    /// Which one.
    pub device: DeviceIdentity,
    /// UUID of the GPU that a partition is of; none for a whole GPU.
    pub parent: Option<String>,
    /// Bytes of device memory that nobody has; none where the driver does not tell.
    pub memory_free: Option<u64>,
    /// Compute processes on it, by their PIDs on the host. A GPU with partitions has none: its
    /// partitions have them.
    pub processes: Vec<u32>,
}

/// One reading of a unit: a GPU or a partition.
#[derive(Clone, Debug)]
pub struct UnitReading {
    /// Which one.
    pub device: DeviceIdentity,
    /// Whether the values are of a GPU or of a partition.
    pub attribution: Attribution,
    /// UUID of the GPU that a partition is of.
    pub parent: Option<String>,
    /// When it was read, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// What was read then, each in its metric's unit.
    pub values: BTreeMap<Metric, f64>,
    /// What is measured at times of its own: PCIe throughput and GPM.
    pub timed: Vec<TimedReading>,
    /// Compute processes on it; none on a GPU with partitions.
    pub processes: Vec<ProcessReading>,
}

/// Values with the time at which they were measured: less often than a unit is read.
#[derive(Clone, Debug, Default)]
pub struct TimedReading {
    /// When it was measured, in nanoseconds since 1970; for GPM the end of the time between the two
    /// samples.
    pub unix_ns: u64,
    /// What was measured, each in its metric's unit.
    pub values: BTreeMap<Metric, f64>,
    /// What the device lacks of it.
    pub unsupported: Vec<Metric>,
}

/// A compute process on a unit.
#[derive(Clone, Copy, Debug)]
pub struct ProcessReading {
    /// PID on the host.
    pub pid: u32,
    /// Bytes; `None` where the driver does not tell.
    pub memory_used: Option<f64>,
    /// Ratio and the driver's own time of the sample in nanoseconds since 1970.
    pub sm_utilization: Option<(u64, f64)>,
}

/// What several processes have of one unit together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessTotal {
    /// Bytes; `None` where the driver tells of none.
    pub memory_used: Option<f64>,
    /// Ratio, and the driver's own time of the latest sample in nanoseconds since 1970.
    pub sm_utilization: Option<(u64, f64)>,
}

impl ProcessTotal {
    /// Adds a process. Kernels of different processes take turns, so their shares add up; rounding
    /// may pass 1.
    pub fn add(&mut self, process: &ProcessReading) {
        self.memory_used = sum(self.memory_used, process.memory_used);
        if let Some((at, ratio)) = process.sm_utilization {
            let (latest, total) = self.sm_utilization.unwrap_or_default();
            self.sm_utilization = Some((latest.max(at), (total + ratio).min(1.0)));
        }
    }
}

/// What one container has of one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ContainerShare {
    pub(crate) memory_used: Option<f64>,
    pub(crate) sm_utilization: Option<f64>,
}

/// A unit, with its processes attributed.
#[derive(Clone, Debug)]
pub(crate) struct UnitSnapshot {
    pub(crate) device: DeviceIdentity,
    pub(crate) attribution: Attribution,
    pub(crate) parent: Option<String>,
    pub(crate) values: BTreeMap<Metric, f64>,
    pub(crate) processes: Vec<u32>,
    pub(crate) containers: BTreeMap<ContainerIdentity, ContainerShare>,
    /// Compute processes that belong to no container of a pod.
    pub(crate) unattributed: u32,
}

/// What `/metrics` shows.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) taken: Instant,
    pub(crate) units: Vec<UnitSnapshot>,
}

impl UnitSnapshot {
    /// Adds up the processes of each container.
    pub(crate) fn attribute(reading: &UnitReading, resolve: &dyn Fn(u32) -> Option<ContainerIdentity>) -> Self {
        let mut containers: BTreeMap<ContainerIdentity, ContainerShare> = BTreeMap::new();
        let mut unattributed = 0;
        for process in &reading.processes {
            let Some(container) = resolve(process.pid) else {
                unattributed += 1;
                continue;
            };
            let share = containers.entry(container).or_default();
            share.memory_used = sum(share.memory_used, process.memory_used);
            // Kernels of different processes take turns, so their shares add up; rounding may
            // pass 1.
            share.sm_utilization =
                sum(share.sm_utilization, process.sm_utilization.map(|(_, ratio)| ratio)).map(|ratio| ratio.min(1.0));
        }
        let mut values = reading.values.clone();
        values.extend(
            reading
                .timed
                .iter()
                .flat_map(|timed| &timed.values)
                .map(|(metric, value)| (*metric, *value)),
        );
        Self {
            device: reading.device.clone(),
            attribution: reading.attribution,
            parent: reading.parent.clone(),
            values,
            processes: reading.processes.iter().map(|process| process.pid).collect(),
            containers,
            unattributed,
        }
    }

    /// What is known of the unit itself.
    pub(crate) fn state(&self) -> GpuState {
        let memory = |metric| self.values.get(&metric).copied().map(bytes);
        let (total, used) = (memory(Metric::MemoryTotal), memory(Metric::MemoryUsed));
        GpuState {
            device: self.device.clone(),
            parent: self.parent.clone(),
            memory_free: total.zip(used).map(|(total, used)| total.saturating_sub(used)),
            processes: self.processes.clone(),
        }
    }
}

/// Whole bytes of a value that was read as such.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and NaN becomes 0; there is no other conversion from a float"
)]
const fn bytes(value: f64) -> u64 {
    value as u64
}

/// The sum of what is known; unknown only when nothing is.
fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (known, None) | (None, known) => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, memory_used: Option<f64>, ratio: Option<f64>) -> ProcessReading {
        ProcessReading {
            pid,
            memory_used,
            sm_utilization: ratio.map(|ratio| (1, ratio)),
        }
    }

    #[test]
    fn processes_add_up_to_their_container_and_strangers_are_counted() {
        let device = DeviceIdentity {
            index: 0,
            uuid: "GPU-1".into(),
            model: "G".into(),
        };
        let reading = UnitReading {
            device,
            attribution: Attribution::Device,
            parent: None,
            unix_ns: 1,
            values: BTreeMap::from([(Metric::MemoryTotal, 100.0), (Metric::MemoryUsed, 60.0)]),
            timed: Vec::new(),
            processes: vec![
                process(1, Some(10.0), Some(0.75)),
                process(2, Some(5.0), Some(0.5)),
                process(3, None, None),
                process(4, Some(7.0), None),
            ],
        };
        let name = |pod: &str| ContainerIdentity {
            namespace: "n".into(),
            pod: pod.into(),
            container: "c".into(),
        };
        let snapshot = UnitSnapshot::attribute(&reading, &|pid| match pid {
            1 | 2 => Some(name("a")),
            3 => Some(name("b")),
            _ => None,
        });
        assert_eq!(snapshot.unattributed, 1);
        let state = snapshot.state();
        assert_eq!((state.memory_free, state.processes), (Some(40), vec![1, 2, 3, 4]));
        let share = |pod| snapshot.containers[&name(pod)];
        assert_eq!(
            share("a"),
            ContainerShare {
                memory_used: Some(15.0),
                sm_utilization: Some(1.0)
            }
        );
        assert_eq!(share("b"), ContainerShare::default());
    }
}
