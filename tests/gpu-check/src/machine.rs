//! Which machine this is.

use flopwatch_cuda::{Gpu, Inventory, kernels};
use serde::Serialize;

/// The machine, as the results name it.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct MachineDescription {
    /// The GPU, where there is one that works.
    pub(crate) gpu: Option<GpuDescription>,
    /// Why there is none.
    pub(crate) no_gpu: Option<String>,
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// Version, sources and architectures of the kernels.
    pub(crate) kernels: String,
}

/// The GPU that was checked.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct GpuDescription {
    /// Product name.
    pub(crate) name: String,
    /// Such as `9.0`.
    pub(crate) compute_capability: String,
    /// Total memory in bytes.
    pub(crate) memory_bytes: u64,
    /// Version of CUDA that the driver supports, such as `13.0`.
    pub(crate) driver_cuda: String,
    /// Compute processes of others while this ran, or why that is not known.
    pub(crate) neighbours: String,
}

/// Describes this machine.
pub(crate) fn describe() -> MachineDescription {
    let neighbours = match flopwatch_cuda::neighbours() {
        Ok(found) => format!(
            "{} foreign compute processes, {} MiB free",
            found.foreign,
            found.free_bytes >> 20
        ),
        Err(reason) => reason,
    };
    let (gpu, no_gpu) = match Gpu::open(0) {
        Ok(gpu) => {
            let identity = gpu.identity();
            let description = GpuDescription {
                name: identity.name.clone(),
                compute_capability: dotted(identity.compute_capability),
                memory_bytes: identity.memory_bytes,
                driver_cuda: dotted(gpu.driver() / 100),
                neighbours,
            };
            (Some(description), None)
        }
        Err(error) => (None, Some(error.to_string())),
    };
    let inventory = kernels::find().and_then(|path| Inventory::read(&path));
    let kernels = inventory.map_or_else(
        |error| error.to_string(),
        |found| {
            let architectures: Vec<String> = found.architectures.iter().map(ToString::to_string).collect();
            let checked = found
                .check()
                .map_or_else(|reason| format!(": {reason}"), |()| String::new());
            format!(
                "{} from sources {} for {}{checked}",
                found.builder,
                found.source,
                architectures.join(", ")
            )
        },
    );
    MachineDescription {
        gpu,
        no_gpu,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernels,
    }
}

fn dotted(version: u32) -> String {
    format!("{}.{}", version / 10, version % 10)
}
