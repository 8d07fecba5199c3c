//! Who else computes on a GPU.

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;

/// Who computes on the GPUs and how much memory is free, as NVML tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours {
    /// Compute processes other than this one.
    pub foreign: u32,
    /// Bytes that they hold, where the driver tells.
    pub foreign_bytes: u64,
    /// Free bytes on the fullest GPU.
    pub free_bytes: u64,
    /// GPUs that were asked.
    pub gpus: u32,
}

/// Asks NVML about every GPU that this process can see. `Err` says why nothing is known.
pub fn neighbours() -> Result<Neighbours, String> {
    // The name without a version is in the driver's development package alone.
    let nvml = Nvml::builder().lib_path("libnvidia-ml.so.1".as_ref()).init();
    let nvml = nvml.map_err(|error| error.to_string())?;
    let gpus = nvml.device_count().map_err(|error| error.to_string())?;
    let mut found = Neighbours {
        foreign: 0,
        foreign_bytes: 0,
        free_bytes: u64::MAX,
        gpus,
    };
    for at in 0..gpus {
        let device = nvml.device_by_index(at).map_err(|error| error.to_string())?;
        let free = device.memory_info().map_err(|error| error.to_string())?.free;
        found.free_bytes = found.free_bytes.min(free);
        for process in device.running_compute_processes().map_err(|error| error.to_string())? {
            if process.pid == std::process::id() {
                continue;
            }
            found.foreign = found.foreign.saturating_add(1);
            if let UsedGpuMemory::Used(bytes) = process.used_gpu_memory {
                found.foreign_bytes = found.foreign_bytes.saturating_add(bytes);
            }
        }
    }
    Ok(found)
}
