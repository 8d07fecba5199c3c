//! The file that says what the devices report.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvml_wrapper_sys::bindings as sys;
use serde::Deserialize;

/// The version of the file that is understood.
const FILE_VERSION: u32 = 1;

/// What NVML reports: all devices.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    version: u32,
    #[serde(default = "default_driver_version")]
    pub(crate) driver_version: String,
    pub(crate) devices: Vec<Device>,
    #[serde(default)]
    pub(crate) errors: BTreeMap<String, String>,
    /// GPM samples that may be allocated at once.
    #[serde(default = "default_gpm_samples")]
    pub(crate) gpm_samples: usize,
}

const fn default_gpm_samples() -> usize {
    256
}

fn default_driver_version() -> String {
    "570.00.00".to_owned()
}

/// What NVML reports of one GPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Device {
    pub(crate) uuid: String,
    #[serde(default = "default_name")]
    pub(crate) name: String,
    pub(crate) memory_total_bytes: Option<Value>,
    pub(crate) memory_used_bytes: Option<Value>,
    pub(crate) utilization_percent: Option<Value>,
    pub(crate) memory_utilization_percent: Option<Value>,
    pub(crate) power_milliwatts: Option<Value>,
    pub(crate) sm_clock_mhz: Option<Value>,
    pub(crate) memory_clock_mhz: Option<Value>,
    pub(crate) temperature_celsius: Option<Value>,
    /// The bits of `nvmlClocksEventReasons`.
    pub(crate) throttle_reasons: Option<Value>,
    pub(crate) pcie_receive_kib_per_second: Option<Value>,
    pub(crate) pcie_transmit_kib_per_second: Option<Value>,
    /// By the name of NVML's metric; absent: the GPU has no GPM.
    pub(crate) gpm: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    pub(crate) processes: Vec<Process>,
    #[serde(default)]
    pub(crate) partitions: Vec<Partition>,
}

fn default_name() -> String {
    "Flopwatch Fake GPU".to_owned()
}

/// A MIG partition of a GPU.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Partition {
    pub(crate) uuid: String,
    #[serde(default = "default_name")]
    pub(crate) name: String,
    pub(crate) memory_total_bytes: Option<Value>,
    pub(crate) memory_used_bytes: Option<Value>,
    /// The GPU instance that it is in; absent: one of its own, with the partition's index as its
    /// number.
    pub(crate) gpu_instance: Option<u32>,
    /// As of a GPU: what its GPU instance counts.
    pub(crate) gpm: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    pub(crate) processes: Vec<Process>,
}

/// A compute process, by `pid` or by `comm`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    pub(crate) pid: Option<u32>,
    pub(crate) comm: Option<String>,
    pub(crate) memory_used_bytes: Option<Value>,
    pub(crate) sm_utilization_percent: Option<Value>,
}

/// A number, or a sine over the wall clock.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Number(f64),
    Sine(Sine),
}

/// `mean + amplitude * sin(2 pi t / period)`, t in seconds since 1970.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sine {
    mean: f64,
    amplitude: f64,
    period_seconds: f64,
}

impl Value {
    /// The value now, in whole units, never negative.
    pub(crate) fn now(&self) -> u64 {
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO)
            .as_secs_f64();
        self.at(seconds)
    }

    fn at(&self, seconds: f64) -> u64 {
        let value = match self {
            Self::Number(number) => *number,
            Self::Sine(sine) => {
                sine.mean + sine.amplitude * (std::f64::consts::TAU * seconds / sine.period_seconds).sin()
            }
        };
        #[expect(
            clippy::as_conversions,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and NaN becomes 0; there is no other conversion from a float"
        )]
        let whole = value.round() as u64;
        whole
    }
}

/// Reads the file; the error is the code that NVML would answer with.
pub(crate) fn read(path: Option<&Path>) -> Result<State, sys::nvmlReturn_t> {
    let path = path.ok_or(sys::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED)?;
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(sys::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED);
        }
        Err(error) => {
            eprintln!("FLOPWATCH_FAKE_NVML {}: {error}", path.display());
            return Err(sys::nvmlReturn_enum_NVML_ERROR_UNKNOWN);
        }
    };
    match serde_json::from_slice::<State>(&text) {
        Ok(state) if state.version == FILE_VERSION => Ok(state),
        Ok(_) => Err(sys::nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH),
        Err(error) => {
            eprintln!("FLOPWATCH_FAKE_NVML {}: {error}", path.display());
            Err(sys::nvmlReturn_enum_NVML_ERROR_UNKNOWN)
        }
    }
}

/// Codes that `errors` may name.
pub(crate) const CODES: [(&str, sys::nvmlReturn_t); 14] = [
    ("UNINITIALIZED", sys::nvmlReturn_enum_NVML_ERROR_UNINITIALIZED),
    ("INVALID_ARGUMENT", sys::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT),
    ("NOT_SUPPORTED", sys::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
    ("NO_PERMISSION", sys::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION),
    ("NOT_FOUND", sys::nvmlReturn_enum_NVML_ERROR_NOT_FOUND),
    ("INSUFFICIENT_SIZE", sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE),
    ("DRIVER_NOT_LOADED", sys::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED),
    ("TIMEOUT", sys::nvmlReturn_enum_NVML_ERROR_TIMEOUT),
    ("FUNCTION_NOT_FOUND", sys::nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND),
    ("GPU_IS_LOST", sys::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST),
    ("RESET_REQUIRED", sys::nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED),
    (
        "LIB_RM_VERSION_MISMATCH",
        sys::nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    ),
    ("NO_DATA", sys::nvmlReturn_enum_NVML_ERROR_NO_DATA),
    ("UNKNOWN", sys::nvmlReturn_enum_NVML_ERROR_UNKNOWN),
];

impl State {
    /// Fails when the file wants `function` to.
    pub(crate) fn let_pass(&self, function: &str) -> Result<(), sys::nvmlReturn_t> {
        let Some(name) = self.errors.get(function) else {
            return Ok(());
        };
        let code = CODES.iter().find(|(known, _)| known == name).map(|(_, code)| *code);
        Err(code.unwrap_or(sys::nvmlReturn_enum_NVML_ERROR_UNKNOWN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_stays_between_its_bounds_and_is_never_negative() {
        let value = Value::Sine(Sine {
            mean: 50.0,
            amplitude: 80.0,
            period_seconds: 4.0,
        });
        assert_eq!([0.0, 1.0, 2.0, 3.0].map(|t| value.at(t)), [50, 130, 50, 0]);
    }

    #[test]
    fn an_absent_file_is_a_driver_that_is_not_loaded() {
        assert_eq!(
            read(None).unwrap_err(),
            sys::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED
        );
        let absent = Path::new("/proc/self/no-such-file");
        assert_eq!(
            read(Some(absent)).unwrap_err(),
            sys::nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED
        );
    }
}
