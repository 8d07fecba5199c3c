//! The GPU instance that a MIG partition is in, which the wrapper does not ask for.
#![allow(unsafe_code, reason = "a function of NVML that the wrapper has no method for")]

use nvml_wrapper::Device;
use nvml_wrapper::error::nvml_try;

/// NVML's number of the GPU instance of `partition`; none where the driver does not tell.
pub(crate) fn gpu_instance(partition: &Device<'_>) -> Option<u32> {
    let function = partition.nvml().lib().nvmlDeviceGetGpuInstanceId.as_ref().ok()?;
    let mut id = 0;
    // SAFETY: the function is NVML's, of the library that gave the handle and that `partition`
    // keeps open; it writes one `unsigned int`, which `id` is.
    let code = unsafe { function(partition.handle(), &raw mut id) };
    nvml_try(code).is_ok().then_some(id)
}
