//! An NVML library without a GPU.
//!
//! Give a program the path of `libflopwatch_fake_nvml.so` in place of `libnvidia-ml.so.1` and name
//! a file in the environment variable `FLOPWATCH_FAKE_NVML`. The file says what the devices report;
//! it is read again when it changes:
//!
//! ```json
//! {
//!   "version": 1,
//!   "devices": [{
//!     "uuid": "GPU-00000000-0000-0000-0000-000000000001",
//!     "name": "Flopwatch Fake GPU",
//!     "memory_total_bytes": 85899345920,
//!     "memory_used_bytes": 1073741824,
//!     "utilization_percent": {"mean": 50, "amplitude": 40, "period_seconds": 20},
//!     "memory_utilization_percent": 12,
//!     "power_milliwatts": 250000,
//!     "sm_clock_mhz": 1980,
//!     "memory_clock_mhz": 2619,
//!     "temperature_celsius": 55,
//!     "throttle_reasons": 4,
//!     "pcie_receive_kib_per_second": 1000,
//!     "pcie_transmit_kib_per_second": 2000,
//!     "gpm": {"SM_UTIL": 60, "DRAM_BW_UTIL": 30, "PCIE_RX_PER_SEC": 100},
//!     "processes": [{"comm": "train", "memory_used_bytes": 536870912, "sm_utilization_percent": 40}],
//!     "partitions": [{
//!       "uuid": "MIG-1", "memory_total_bytes": 10737418240, "memory_used_bytes": 0, "gpu_instance": 3, "gpm": {"SM_UTIL": 20}
//!     }]
//!   }],
//!   "errors": {"nvmlDeviceGetPowerUsage": "GPU_IS_LOST"}
//! }
//! ```
//!
//! A value is a number, or a sine over the wall clock. A value that is absent is answered with
//! `NOT_SUPPORTED`, as by a device that lacks it. A process is named by its `pid` or by its `comm`:
//! then every process of that name under `/proc` is on the device. `errors` makes a function fail
//! with the code of that name (of `NVML_ERROR_...`).
//!
//! `gpm` has what GPU Performance Monitoring counts, by NVML's names, in percent and MiB per
//! second: what two samples give is the mean of both. A GPU without it supports no GPM; a metric
//! that is not in it is answered with `NOT_SUPPORTED`. `"gpm_samples": 4` beside `devices` bounds
//! the samples that are allocated at once, so that a leak is an error.
//!
//! Without the variable or the file the driver is not loaded (`DRIVER_NOT_LOADED`); another
//! `version` is a library that does not fit the driver (`LIB_RM_VERSION_MISMATCH`); a file that
//! cannot be read as the above is `UNKNOWN`, with the reason on standard error.

mod abi;
mod gpm;
mod library;
mod processes;
mod state;
