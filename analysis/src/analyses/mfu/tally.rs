//! Operations beside the peak rates of devices.

use std::collections::BTreeMap;

use flopwatch_measures::data_sheet::DataSheet;
use flopwatch_model::{Device, approximate, ratio};

/// Peak rates of devices, in operations per second.
pub(super) struct Peaks<'a> {
    pub(super) given: Option<f64>,
    pub(super) devices: &'a [Device],
}

impl Peaks<'_> {
    /// The rate of `device` for a type of number; a rate that the source states without a type
    /// counts for all. Where the source states none, that of the device's data sheet.
    pub(super) fn of(&self, device: u32, element_type: Option<&str>) -> Option<f64> {
        if self.given.is_some() {
            return self.given;
        }
        let device = self.devices.iter().find(|known| known.id == device)?;
        if let Some(sheet) = data_sheet(device) {
            return sheet.peak(element_type);
        }
        let rates = &device.peak_flops;
        let rate = element_type
            .and_then(|name| rates.get(name))
            .or_else(|| rates.get("any"))?;
        (*rate > 0).then(|| approximate(u128::from(*rate)))
    }
}

impl<'a> Peaks<'a> {
    /// The data sheets whose rates are taken, by the names of the devices, each name once.
    pub(super) fn data_sheets(&self) -> BTreeMap<&'a str, &'static DataSheet> {
        let devices = self.devices.iter().filter(|_| self.given.is_none());
        devices
            .filter_map(|device| Some((device.name.as_str(), data_sheet(device)?)))
            .collect()
    }
}

/// The data sheet of a device whose rates the source does not state.
pub(crate) fn data_sheet(device: &Device) -> Option<&'static DataSheet> {
    if device.peak_flops.is_empty() {
        DataSheet::of(&device.name)
    } else {
        None
    }
}

/// Operations and the time in ns that they take at the peak rates; `None` where a rate is missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    pub(super) flops: u64,
    pub(super) ideal_ns: Option<f64>,
}

impl Tally {
    pub(super) const NOTHING: Self = Self {
        flops: 0,
        ideal_ns: Some(0.0),
    };

    pub(super) fn of(flops: u64, peak: Option<f64>) -> Self {
        Self {
            flops,
            ideal_ns: peak.map(|peak| approximate(flops.into()) * 1e9 / peak),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            flops: self.flops.saturating_add(other.flops),
            ideal_ns: self.ideal_ns.zip(other.ideal_ns).map(|(one, other)| one + other),
        }
    }

    /// The share of `device_time_ns` that the operations take at the peak rates.
    pub(super) fn ratio(self, device_time_ns: u64) -> Option<f64> {
        let ideal_ns = self.ideal_ns.filter(|_| device_time_ns > 0 && self.flops > 0)?;
        Some(ideal_ns / approximate(device_time_ns.into()))
    }

    pub(super) fn per_second(self, time_ns: u64) -> Option<f64> {
        ratio(self.flops, time_ns).map(|per_ns| per_ns * 1e9)
    }
}
