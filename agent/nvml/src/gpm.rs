//! GPU Performance Monitoring: samples of counters, and the metrics between two of them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device, Nvml};

use crate::clock::utc_ns;
use crate::device::{Handle, Unsupported};
use crate::error::{Failure, Reason};
use crate::metric::{Metric, Unit};
use crate::snapshot::TimedReading;

/// Shortest time between two samples. NVIDIA asks for more than 100 ms, in which the counters are
/// refreshed; the rest is for rounds that come a little early, so that recordings of 100 ms take
/// every second round and not now one, now the other.
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(110);

/// NVML's throughputs are in MiB per second.
const MIB: f64 = 1_048_576.0;

/// Of what NVML takes the samples of a unit.
#[derive(Debug)]
pub(crate) enum Source<'nvml> {
    /// The GPU.
    Gpu,
    /// A GPU instance that is one partition's alone.
    Instance {
        /// The partition's GPU.
        gpu: Device<'nvml>,
        /// NVML's number of the instance.
        id: u32,
    },
    /// A partition whose GPU instance is shared with others, or not known.
    Nothing,
}

/// The last sample of each unit, by UUID, and what it gave. A sample is freed when the next one is
/// there, and with its unit.
#[derive(Debug, Default)]
pub(crate) struct Gpm<'nvml>(HashMap<String, Last<'nvml>>);

#[derive(Debug)]
struct Last<'nvml> {
    taken: Instant,
    sample: GpmSample<'nvml>,
    reading: Option<TimedReading>,
}

impl<'nvml> Gpm<'nvml> {
    /// The metrics of a unit between its last two samples, after a new sample where one is due.
    /// What the device lacks or the driver refuses is asked for once. Fails only when device or
    /// library are gone.
    pub(crate) fn read(
        &mut self,
        nvml: &'nvml Nvml,
        unit: &Handle<'nvml>,
        unsupported: &mut Unsupported,
        count_error: &dyn Fn(Reason),
    ) -> Result<Option<TimedReading>, Reason> {
        let uuid = &unit.identity.uuid;
        let metrics: Vec<Metric> = Metric::GPM
            .into_iter()
            .filter(|metric| !unsupported.has(uuid, *metric))
            .collect();
        if metrics.is_empty() {
            self.0.remove(uuid);
            return Ok(None);
        }
        if let Some(last) = self.0.get(uuid)
            && last.taken.elapsed() < MIN_SAMPLE_INTERVAL
        {
            return Ok(last.reading.clone());
        }
        let mut settle = |metrics: &[Metric], failure| settle(unit, metrics, failure, unsupported, count_error);
        let last = self.0.remove(uuid);
        let sample = match sample(unit, last.is_none()) {
            Ok(sample) => sample,
            Err(failure) => return settle(&metrics, failure).map(|()| None),
        };
        let (taken, unix_ns) = (Instant::now(), utc_ns());
        let mut reading = None;
        if let Some(last) = last {
            let ids: Vec<GpmMetricId> = metrics.iter().filter_map(|metric| id(*metric)).collect();
            let found = match gpm_metrics_get(nvml, &last.sample, &sample, &ids) {
                Ok(found) => found,
                Err(error) => return settle(&metrics, error.into()).map(|()| None),
            };
            let mut between = TimedReading {
                unix_ns,
                ..TimedReading::default()
            };
            for (metric, result) in metrics.into_iter().zip(found) {
                match result.map(|result| in_base_unit(metric, result.value)) {
                    Ok(value) => between.values.extend(value.map(|value| (metric, value))),
                    Err(error) => settle(&[metric], error.into())?,
                }
            }
            reading = Some(between);
        }
        let last = Last {
            taken,
            sample,
            reading: reading.clone(),
        };
        self.0.insert(uuid.clone(), last);
        Ok(reading)
    }

    /// Frees the samples of units that are not among `units`.
    pub(crate) fn retain(&mut self, units: &[Handle<'nvml>]) {
        self.0
            .retain(|uuid, _| units.iter().any(|unit| unit.identity.uuid == *uuid));
    }
}

/// A sample of a unit now; the first one only of a GPU that says it has GPM.
fn sample<'nvml>(unit: &Handle<'nvml>, first: bool) -> Result<GpmSample<'nvml>, Failure> {
    let gpu = match &unit.gpm {
        Source::Gpu => unit.device(),
        Source::Instance { gpu, .. } => gpu,
        Source::Nothing => return Err(Failure::Unsupported),
    };
    if first && !gpu.gpm_support()? {
        return Err(Failure::Unsupported);
    }
    Ok(match &unit.gpm {
        Source::Instance { gpu, id } => gpu.gpm_mig_sample(*id)?,
        Source::Gpu | Source::Nothing => gpu.gpm_sample()?,
    })
}

/// Notes what a call for `metrics` came to in the place of values.
fn settle(
    unit: &Handle<'_>,
    metrics: &[Metric],
    failure: Failure,
    unsupported: &mut Unsupported,
    count_error: &dyn Fn(Reason),
) -> Result<(), Reason> {
    let said = match failure {
        Failure::NoData => return Ok(()),
        Failure::Unsupported => "not supported by this GPU or partition",
        Failure::Error(Reason::NoPermission) => {
            count_error(Reason::NoPermission);
            "refused by the driver"
        }
        Failure::Error(reason) => {
            count_error(reason);
            let gone = reason.ends_session() || reason.ends_device();
            return if gone { Err(reason) } else { Ok(()) };
        }
    };
    let identity = &unit.identity;
    tracing::info!(gpu = identity.index, uuid = %identity.uuid, ?metrics, "GPM: {said}");
    for metric in metrics {
        unsupported.insert(&identity.uuid, *metric);
    }
    Ok(())
}

/// The value in the metric's unit; none for what cannot be one. NVML gives percents and MiB per
/// second.
fn in_base_unit(metric: Metric, value: f64) -> Option<f64> {
    if !value.is_finite() || value < 0.0 {
        return None;
    }
    Some(match metric.unit() {
        Unit::Ratio => (value / 100.0).min(1.0),
        _ => value * MIB,
    })
}

/// NVML's name of a metric between samples.
const fn id(metric: Metric) -> Option<GpmMetricId> {
    Some(match metric {
        Metric::SmActivity => GpmMetricId::SmUtil,
        Metric::SmOccupancy => GpmMetricId::SmOccupancy,
        Metric::TensorActivity => GpmMetricId::AnyTensorUtil,
        Metric::Fp64Activity => GpmMetricId::Fp64Util,
        Metric::Fp32Activity => GpmMetricId::Fp32Util,
        Metric::Fp16Activity => GpmMetricId::Fp16Util,
        Metric::DramBandwidthUtilization => GpmMetricId::DramBwUtil,
        Metric::PcieReceiveMean => GpmMetricId::PcieRxPerSec,
        Metric::PcieTransmitMean => GpmMetricId::PcieTxPerSec,
        Metric::NvlinkReceiveMean => GpmMetricId::NvlinkTotalRxPerSec,
        Metric::NvlinkTransmitMean => GpmMetricId::NvlinkTotalTxPerSec,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_become_ratios_and_mebibytes_become_bytes() {
        assert_eq!(in_base_unit(Metric::SmActivity, 37.5), Some(0.375));
        assert_eq!(in_base_unit(Metric::NvlinkReceiveMean, 2.0), Some(2_097_152.0));
        assert_eq!(in_base_unit(Metric::SmActivity, 100.2), Some(1.0));
    }

    #[test]
    fn what_cannot_be_a_measurement_is_left_out() {
        for value in [f64::NAN, f64::INFINITY, -1.0] {
            for metric in Metric::GPM {
                assert_eq!(in_base_unit(metric, value), None, "{metric} {value}");
            }
        }
    }

    #[test]
    fn every_metric_between_samples_has_a_name_of_nvml() {
        let all = Metric::GPM.into_iter().chain(Metric::QUICK).chain(Metric::PCIE);
        for metric in all {
            assert_eq!(id(metric).is_some(), metric.is_gpm(), "{metric}");
        }
    }
}
