//! Samples of GPU Performance Monitoring: what a unit counted at one time.

use std::collections::BTreeMap;
use std::time::Instant;

use nvml_wrapper_sys::bindings as sys;

use crate::library::{Position, Unit};
use crate::state::{Device, Partition};

type Answer<T> = Result<T, sys::nvmlReturn_t>;

const INVALID: sys::nvmlReturn_t = sys::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;

/// Names of the metrics that the state file may have, by NVML's numbers.
const NAMES: [(sys::nvmlGpmMetricId_t, &str); 11] = [
    (sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL, "SM_UTIL"),
    (sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_OCCUPANCY, "SM_OCCUPANCY"),
    (
        sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL,
        "ANY_TENSOR_UTIL",
    ),
    (sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL, "DRAM_BW_UTIL"),
    (sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_FP64_UTIL, "FP64_UTIL"),
    (sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_FP32_UTIL, "FP32_UTIL"),
    (sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_FP16_UTIL, "FP16_UTIL"),
    (
        sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_TX_PER_SEC,
        "PCIE_TX_PER_SEC",
    ),
    (
        sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_RX_PER_SEC,
        "PCIE_RX_PER_SEC",
    ),
    (
        sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
        "NVLINK_TOTAL_RX_PER_SEC",
    ),
    (
        sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
        "NVLINK_TOTAL_TX_PER_SEC",
    ),
];

/// The samples that are allocated, by the number that stands for them.
#[derive(Debug)]
pub(crate) struct Samples {
    next: usize,
    by_number: BTreeMap<usize, Option<Sample>>,
}

/// A sample that was taken.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    place: Position,
    taken: Instant,
    values: BTreeMap<String, u64>,
}

impl Sample {
    /// What the unit at `place` counts now.
    pub(crate) fn of(unit: Unit<'_>, place: Position) -> Answer<Self> {
        let values = unit.gpm().ok_or(sys::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)?;
        Ok(Self {
            place,
            taken: Instant::now(),
            values: values.iter().map(|(name, value)| (name.clone(), value.now())).collect(),
        })
    }

    /// The value of a metric between this sample and a later one of the same unit.
    pub(crate) fn until(&self, later: &Self, metric: u32) -> Answer<f64> {
        if self.place != later.place || later.taken <= self.taken {
            return Err(INVALID);
        }
        let (_, name) = NAMES.iter().find(|(number, _)| *number == metric).ok_or(INVALID)?;
        let value = |sample: &Self| {
            let value = sample.values.get(*name).copied();
            value
                .map(|value| f64::from(u32::try_from(value).unwrap_or(u32::MAX)))
                .ok_or(sys::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)
        };
        Ok(f64::midpoint(value(self)?, value(later)?))
    }
}

impl Samples {
    pub(crate) const fn new() -> Self {
        Self {
            next: 1,
            by_number: BTreeMap::new(),
        }
    }

    /// A new one, unless `most` are there.
    pub(crate) fn allocate(&mut self, most: usize) -> Answer<usize> {
        if self.by_number.len() >= most {
            return Err(sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES);
        }
        let number = self.next;
        self.next += 1;
        self.by_number.insert(number, None);
        Ok(number)
    }

    pub(crate) fn free(&mut self, number: usize) -> Answer<()> {
        self.by_number.remove(&number).map(|_| ()).ok_or(INVALID)
    }

    pub(crate) fn fill(&mut self, number: usize, sample: Sample) -> Answer<()> {
        *self.by_number.get_mut(&number).ok_or(INVALID)? = Some(sample);
        Ok(())
    }

    /// One that was filled.
    pub(crate) fn filled(&self, number: usize) -> Answer<&Sample> {
        self.by_number.get(&number).and_then(Option::as_ref).ok_or(INVALID)
    }
}

impl Partition {
    /// The number of its GPU instance.
    pub(crate) fn instance(&self, place: Position) -> Answer<u32> {
        let own = place.partition.and_then(|index| u32::try_from(index).ok());
        self.gpu_instance.or(own).ok_or(INVALID)
    }
}

impl Device {
    /// The first partition in a GPU instance, which counts for all of it.
    pub(crate) fn partition_in(&self, device: usize, instance: u32) -> Answer<(Position, &Partition)> {
        let places = self.partitions.iter().enumerate().map(|(index, partition)| {
            let place = Position {
                device,
                partition: Some(index),
            };
            (place, partition)
        });
        let mut found = places.filter(|(place, partition)| partition.instance(*place) == Ok(instance));
        found.next().ok_or(INVALID)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_freed_once_and_read_only_when_it_was_filled() {
        let mut samples = Samples::new();
        let number = samples.allocate(1).unwrap();
        assert!(samples.allocate(1).is_err());
        assert_eq!(samples.filled(number), Err(INVALID));
        assert_eq!(samples.free(number), Ok(()));
        assert_eq!(samples.free(number), Err(INVALID));
    }
}
