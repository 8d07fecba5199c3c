//! Reads one GPU or partition through the wrapper.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::struct_wrappers::device::{MemoryInfo, Utilization};
use nvml_wrapper::{Device, Nvml};

use crate::clock::utc_ns;
use crate::error::{Failure, Reason};
use crate::gpm::Source;
use crate::gpu_instance::gpu_instance;
use crate::metric::{Attribution, Metric};
use crate::snapshot::{DeviceIdentity, ProcessReading, TimedReading, UnitReading};

/// Most partitions of one GPU; NVML says 7 today.
const MAX_PARTITIONS: u32 = 64;

/// Why clocks are lowered: by
/// [`nvmlClocksEventReasons`](https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html).
const POWER: ThrottleReasons = ThrottleReasons::SW_POWER_CAP.union(ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN);
const THERMAL: ThrottleReasons = ThrottleReasons::SW_THERMAL_SLOWDOWN.union(ThrottleReasons::HW_THERMAL_SLOWDOWN);
/// The board's own, each of which NVML may tell beside the general one.
const HARDWARE: ThrottleReasons = ThrottleReasons::HW_SLOWDOWN
    .union(ThrottleReasons::HW_THERMAL_SLOWDOWN)
    .union(ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN);

/// A GPU or partition that answers.
pub(crate) struct Handle<'nvml> {
    device: Device<'nvml>,
    pub(crate) identity: DeviceIdentity,
    pub(crate) attribution: Attribution,
    pub(crate) parent: Option<String>,
    /// Whether the GPU has MIG partitions: processes are then read from those alone.
    partitioned: bool,
    /// Of what its GPM samples are taken.
    pub(crate) gpm: Source<'nvml>,
}

/// What NVML lacks, by device: asked once, then left alone.
#[derive(Debug, Default)]
pub(crate) struct Unsupported(BTreeMap<String, BTreeSet<Metric>>);

impl Unsupported {
    pub(crate) fn has(&self, uuid: &str, metric: Metric) -> bool {
        self.0.get(uuid).is_some_and(|metrics| metrics.contains(&metric))
    }

    pub(crate) fn insert(&mut self, uuid: &str, metric: Metric) {
        self.0.entry(uuid.to_owned()).or_default().insert(metric);
    }

    pub(crate) fn of(&self, uuid: &str) -> impl Iterator<Item = Metric> + '_ {
        self.0.get(uuid).into_iter().flatten().copied()
    }
}

/// What the driver said last of the processes' share of the multiprocessors: (UUID, PID) to (ns
/// since 1970, ratio).
#[derive(Debug, Default)]
pub(crate) struct ProcessUtilization {
    last_seen: HashMap<String, u64>,
    latest: BTreeMap<(String, u32), (u64, f64)>,
}

impl ProcessUtilization {
    /// Forgets samples older than `age`: an idle process gets no new ones.
    pub(crate) fn forget_older_than(&mut self, age: Duration) {
        let horizon = utc_ns().saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        self.latest.retain(|_, (at, _)| *at >= horizon);
    }
}

/// How much of a unit is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All.
    Whole,
    /// What changes quickly: neither the temperature nor processes.
    Quick,
}

/// What the driver answered in one reading of a unit, where several metrics are of one answer.
#[derive(Default)]
struct Answers {
    rates: Option<Result<Utilization, Failure>>,
    memory: Option<Result<MemoryInfo, Failure>>,
    throttling: Option<Result<ThrottleReasons, Failure>>,
}

impl Answers {
    fn rates(&mut self, device: &Device<'_>) -> Result<Utilization, Failure> {
        let ask = || Ok(device.utilization_rates()?);
        self.rates.get_or_insert_with(ask).clone()
    }

    fn memory(&mut self, device: &Device<'_>) -> Result<MemoryInfo, Failure> {
        let ask = || Ok(device.memory_info()?);
        self.memory.get_or_insert_with(ask).clone()
    }

    /// 1 where the clocks are lowered for one of these reasons.
    fn throttled(&mut self, device: &Device<'_>, of: ThrottleReasons) -> Result<f64, Failure> {
        let ask = || Ok(device.current_throttle_reasons()?);
        let reasons = (*self.throttling.get_or_insert_with(ask))?;
        Ok(f64::from(u8::from(reasons.intersects(of))))
    }
}

/// All GPUs that answer, each followed by its partitions. A device that fails is counted and left
/// out.
pub(crate) fn handles<'nvml>(
    nvml: &'nvml Nvml,
    count_error: &dyn Fn(Reason),
) -> Result<(u32, Vec<Handle<'nvml>>), Failure> {
    let count = nvml.device_count()?;
    let mut found = Vec::new();
    for index in 0..count {
        match gpu(nvml, index) {
            Ok(handles) => found.extend(handles),
            Err(Failure::Error(reason)) if reason.ends_session() => return Err(Failure::Error(reason)),
            Err(Failure::Error(reason)) => count_error(reason),
            Err(Failure::Unsupported | Failure::NoData) => count_error(Reason::Other),
        }
    }
    Ok((count, found))
}

fn gpu(nvml: &Nvml, index: u32) -> Result<Vec<Handle<'_>>, Failure> {
    let device = nvml.device_by_index(index)?;
    let uuid = device.uuid()?;
    let mut partitions = Vec::new();
    let mut instances = Vec::new();
    // Absent on GPUs without MIG.
    let slots = device.mig_device_count().unwrap_or(0).min(MAX_PARTITIONS);
    for slot in 0..slots {
        let Ok(partition) = device.mig_device_by_index(slot) else {
            continue;
        };
        let identity = DeviceIdentity {
            index,
            uuid: partition.uuid()?,
            model: partition.name()?,
        };
        instances.push(gpu_instance(&partition));
        partitions.push(Handle {
            device: partition,
            identity,
            attribution: Attribution::Partition,
            parent: Some(uuid.clone()),
            partitioned: false,
            gpm: Source::Nothing,
        });
    }
    for (partition, instance) in partitions.iter_mut().zip(&instances) {
        // The counters of an instance that several partitions share are nobody's alone.
        let own = instance.filter(|own| instances.iter().flatten().filter(|other| *other == own).count() == 1);
        if let Some(id) = own {
            partition.gpm = Source::Instance {
                gpu: nvml.device_by_index(index)?,
                id,
            };
        }
    }
    let identity = DeviceIdentity {
        index,
        uuid,
        model: device.name()?,
    };
    let partitioned = !partitions.is_empty();
    let mut handles = vec![Handle {
        device,
        identity,
        attribution: Attribution::Device,
        parent: None,
        partitioned,
        gpm: Source::Gpu,
    }];
    handles.append(&mut partitions);
    Ok(handles)
}

impl<'nvml> Handle<'nvml> {
    /// NVML's handle.
    pub(crate) const fn device(&self) -> &Device<'nvml> {
        &self.device
    }

    /// Reads everything that is quick, or of it what changes quickly. Fails only when device or
    /// library are gone.
    pub(crate) fn read(
        &self,
        extent: Extent,
        unsupported: &mut Unsupported,
        utilization: &mut ProcessUtilization,
        count_error: &dyn Fn(Reason),
    ) -> Result<UnitReading, Reason> {
        let unix_ns = utc_ns();
        let mut values = BTreeMap::new();
        let mut answers = Answers::default();
        let due =
            |metric: &Metric| self.may_have(*metric) && (extent == Extent::Whole || *metric != Metric::Temperature);
        for metric in Metric::QUICK.into_iter().filter(due) {
            if let Some(value) = self.attempt(unsupported, metric, count_error, || self.value(metric, &mut answers))? {
                values.insert(metric, value);
            }
        }
        let processes = if self.partitioned || extent == Extent::Quick {
            Vec::new()
        } else {
            self.processes(unsupported, utilization, count_error)?
        };
        Ok(UnitReading {
            device: self.identity.clone(),
            attribution: self.attribution,
            parent: self.parent.clone(),
            unix_ns,
            values,
            timed: Vec::new(),
            processes,
        })
    }

    /// Measures PCIe throughput, which takes 20 ms each way.
    pub(crate) fn read_pcie(
        &self,
        unsupported: &mut Unsupported,
        count_error: &dyn Fn(Reason),
    ) -> Result<TimedReading, Reason> {
        let mut values = BTreeMap::new();
        for metric in Metric::PCIE {
            let value = || self.value(metric, &mut Answers::default());
            if let Some(value) = self.attempt(unsupported, metric, count_error, value)? {
                values.insert(metric, value);
            }
        }
        let lacking = Metric::PCIE
            .into_iter()
            .filter(|metric| unsupported.has(&self.identity.uuid, *metric))
            .collect();
        Ok(TimedReading {
            unix_ns: utc_ns(),
            values,
            unsupported: lacking,
        })
    }

    /// A partition has memory and processes of its own; the rest is its GPU's.
    fn may_have(&self, metric: Metric) -> bool {
        self.attribution == Attribution::Device || matches!(metric, Metric::MemoryUsed | Metric::MemoryTotal)
    }

    fn processes(
        &self,
        unsupported: &mut Unsupported,
        utilization: &mut ProcessUtilization,
        count_error: &dyn Fn(Reason),
    ) -> Result<Vec<ProcessReading>, Reason> {
        let running = self.attempt(unsupported, Metric::ProcessMemoryUsed, count_error, || {
            Ok(self.device.running_compute_processes()?)
        })?;
        let running = running.unwrap_or_default();
        if !running.is_empty() {
            self.update(unsupported, utilization, count_error)?;
        }
        let uuid = &self.identity.uuid;
        Ok(running
            .into_iter()
            .map(|process| ProcessReading {
                pid: process.pid,
                memory_used: match process.used_gpu_memory {
                    UsedGpuMemory::Used(bytes) => Some(to_f64(bytes)),
                    UsedGpuMemory::Unavailable => None,
                },
                sm_utilization: utilization.latest.get(&(uuid.clone(), process.pid)).copied(),
            })
            .collect())
    }

    /// Takes the driver's new samples in.
    fn update(
        &self,
        unsupported: &mut Unsupported,
        utilization: &mut ProcessUtilization,
        count_error: &dyn Fn(Reason),
    ) -> Result<(), Reason> {
        let uuid = &self.identity.uuid;
        let since = utilization.last_seen.get(uuid).copied().unwrap_or(0);
        let samples = self.attempt(unsupported, Metric::ProcessSmUtilization, count_error, || {
            Ok(self.device.process_utilization_stats(since)?)
        })?;
        for sample in samples.unwrap_or_default() {
            // The driver fills what it has no sample for with zeros.
            if sample.timestamp <= since {
                continue;
            }
            let seen = utilization.last_seen.entry(uuid.clone()).or_default();
            *seen = (*seen).max(sample.timestamp);
            let at = sample.timestamp.saturating_mul(1000);
            let latest = utilization.latest.entry((uuid.clone(), sample.pid)).or_default();
            if at >= latest.0 {
                *latest = (at, ratio(sample.sm_util));
            }
        }
        Ok(())
    }

    /// One call: unsupported is remembered, an error is counted, and what ends device or session is
    /// passed on.
    fn attempt<T>(
        &self,
        unsupported: &mut Unsupported,
        metric: Metric,
        count_error: &dyn Fn(Reason),
        call: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<Option<T>, Reason> {
        if unsupported.has(&self.identity.uuid, metric) {
            return Ok(None);
        }
        match call() {
            Ok(value) => Ok(Some(value)),
            Err(Failure::NoData) => Ok(None),
            Err(Failure::Unsupported) => {
                tracing::info!(gpu = self.identity.index, uuid = %self.identity.uuid, %metric, "not supported by this GPU");
                unsupported.insert(&self.identity.uuid, metric);
                Ok(None)
            }
            Err(Failure::Error(reason)) => {
                count_error(reason);
                if reason.ends_session() || reason.ends_device() {
                    Err(reason)
                } else {
                    Ok(None)
                }
            }
        }
    }

    fn value(&self, metric: Metric, answers: &mut Answers) -> Result<f64, Failure> {
        let device = &self.device;
        Ok(match metric {
            Metric::Utilization => ratio(answers.rates(device)?.gpu),
            Metric::MemoryUtilization => ratio(answers.rates(device)?.memory),
            Metric::MemoryUsed => to_f64(answers.memory(device)?.used),
            Metric::MemoryTotal => to_f64(answers.memory(device)?.total),
            Metric::Power => f64::from(device.power_usage()?) / 1e3,
            Metric::SmClock => f64::from(device.clock_info(Clock::SM)?) * 1e6,
            Metric::MemoryClock => f64::from(device.clock_info(Clock::Memory)?) * 1e6,
            Metric::Temperature => f64::from(device.temperature(TemperatureSensor::Gpu)?),
            Metric::PowerThrottle => answers.throttled(device, POWER)?,
            Metric::ThermalThrottle => answers.throttled(device, THERMAL)?,
            Metric::HardwareSlowdown => answers.throttled(device, HARDWARE)?,
            Metric::PcieReceive => f64::from(device.pcie_throughput(PcieUtilCounter::Receive)?) * 1024.0,
            Metric::PcieTransmit => f64::from(device.pcie_throughput(PcieUtilCounter::Send)?) * 1024.0,
            // Of processes, or of two samples: not of a device at one time.
            Metric::ProcessMemoryUsed
            | Metric::ProcessSmUtilization
            | Metric::SmActivity
            | Metric::SmOccupancy
            | Metric::TensorActivity
            | Metric::Fp64Activity
            | Metric::Fp32Activity
            | Metric::Fp16Activity
            | Metric::DramBandwidthUtilization
            | Metric::PcieReceiveMean
            | Metric::PcieTransmitMean
            | Metric::NvlinkReceiveMean
            | Metric::NvlinkTransmitMean => return Err(Failure::NoData),
        })
    }
}

fn ratio(percent: u32) -> f64 {
    f64::from(percent.min(100)) / 100.0
}

/// Exact up to 2^53; memory sizes are far below.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "there is no other conversion to a float"
)]
const fn to_f64(value: u64) -> f64 {
    value as f64
}
