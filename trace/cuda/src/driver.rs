//! The GPU through its driver, which is loaded at run time.

#![allow(
    unsafe_code,
    reason = "some calls of the driver have no safe form, and the memory it gives must be vouched for"
)]

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DeviceSlice as _, DriverError, sys};
use rustix::process::{Resource, getrlimit};

use crate::kernels::{self, Kernels};
use crate::memory::{DeviceArray, Element, Memory};
use crate::staging::{self, Staging};
use crate::{CudaError, Inventory};

/// The driver's version that kernels built by CUDA 13.0 need: 580.
pub const LOWEST_DRIVER: u32 = 13_000;

/// Identity of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuIdentity {
    /// Product name.
    pub name: String,
    /// As NVML writes it: `GPU-` and 36 characters.
    pub uuid: String,
    /// 10 times the major plus the minor version.
    pub compute_capability: u32,
    /// Total memory in bytes.
    pub memory_bytes: u64,
}

/// A GPU that is ready to work: context, stream, kernels.
#[derive(Debug)]
pub struct Gpu {
    identity: GpuIdentity,
    driver: u32,
    kernels: Kernels,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    staging: Mutex<Option<Staging>>,
}

impl Gpu {
    /// What the driver supports: 1000 times the major and 10 times the minor version of CUDA.
    /// Starts nothing on the GPU.
    pub fn driver_version() -> Result<u32, CudaError> {
        // SAFETY: tries to load libcuda, whose initialisers may run at any time.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::NoDriver);
        }
        let mut version = 0;
        // SAFETY: writes one number to the address of a local; every driver has this function, and
        // it needs no context.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }
            .result()
            .map_err(driver("tell its version"))?;
        Ok(u32::try_from(version).unwrap_or_default())
    }

    /// Everything that can be known to stand in the way without starting anything on the GPU; gives
    /// the driver's version.
    pub fn check() -> Result<u32, CudaError> {
        let version = Self::driver_version()?;
        if version < LOWEST_DRIVER {
            return Err(CudaError::OldDriver { found: version });
        }
        if let Some(bytes) = getrlimit(Resource::As).current {
            return Err(CudaError::AddressSpace { bytes });
        }
        let path = kernels::find()?;
        let checked = Inventory::read(&path)?.check();
        checked.map_err(|reason| CudaError::BadKernels { path, reason })?;
        Ok(version)
    }

    /// Makes a context on the GPU with this ordinal among those that the process may use, and loads
    /// the kernels.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        let driver_version = Self::check()?;
        let context = CudaContext::new(ordinal).map_err(|error| match error.0 {
            sys::CUresult::CUDA_ERROR_NO_DEVICE | sys::CUresult::CUDA_ERROR_INVALID_DEVICE => CudaError::NoGpu,
            _ => driver("make a context")(error),
        })?;
        let kernels = Kernels::load(&kernels::find()?)?;
        let ask = driver("describe the GPU");
        let (major, minor) = context.compute_capability().map_err(&ask)?;
        let capability = u32::try_from(major * 10 + minor).unwrap_or_default();
        let inventory = Inventory::read(kernels.path())?;
        if !inventory.runs_on(capability) {
            let built: Vec<String> = inventory.architectures.iter().map(ToString::to_string).collect();
            let reason = format!("the GPU is sm_{capability}, they are built for {}", built.join(", "));
            let path = kernels.path().to_owned();
            return Err(CudaError::BadKernels { path, reason });
        }
        let identity = GpuIdentity {
            name: context.name().map_err(&ask)?,
            uuid: uuid(&context.uuid().map_err(&ask)?),
            compute_capability: capability,
            memory_bytes: u64::try_from(context.total_mem().map_err(&ask)?).unwrap_or(u64::MAX),
        };
        keep_freed_memory(&context).map_err(driver("keep its memory"))?;
        // The default stream: the CUDA runtime inside the kernels' library shares it and the
        // primary context.
        let stream = context.default_stream();
        Ok(Self {
            identity,
            driver: driver_version,
            kernels,
            context,
            stream,
            staging: Mutex::new(None),
        })
    }

    /// The page-locked memory, made at the first large copy. None where another thread copies by
    /// it, or this one further up: the threads that help with a copy may take up other work of
    /// ours.
    fn staging(&self, bytes: usize) -> Result<Option<MutexGuard<'_, Option<Staging>>>, CudaError> {
        if bytes < staging::MIN_STAGED_BYTES {
            return Ok(None);
        }
        let Ok(mut held) = self.staging.try_lock() else {
            return Ok(None);
        };
        if held.is_none() {
            let made = Staging::new(&self.context, &self.stream).map_err(driver("lock memory of the host"))?;
            *held = Some(made);
        }
        Ok(Some(held))
    }

    /// Identity of a GPU.
    pub const fn identity(&self) -> &GpuIdentity {
        &self.identity
    }

    /// The driver's version, as [`Gpu::driver_version`] gives it.
    pub const fn driver(&self) -> u32 {
        self.driver
    }

    /// The loaded kernels.
    pub const fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// Free memory in bytes.
    pub fn free_bytes(&self) -> Result<u64, CudaError> {
        let (free, _) = self.context.mem_get_info().map_err(driver("tell the free memory"))?;
        Ok(u64::try_from(free).unwrap_or(u64::MAX))
    }

    /// Makes the GPU this thread's current one, which every other thread than the one that opened
    /// it must do first.
    pub fn use_here(&self) -> Result<(), CudaError> {
        self.context.bind_to_thread().map_err(driver("switch to the GPU"))
    }
}

/// Leaves freed memory with this process, which needs it again at the next step: by default all of
/// it goes back to the driver whenever the stream is waited for, and getting it again takes longer
/// than a step.
fn keep_freed_memory(context: &CudaContext) -> Result<(), DriverError> {
    if !context.has_async_alloc() {
        return Ok(());
    }
    let mut pool = std::ptr::null_mut();
    let mut most = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: writes one handle to the address of a local.
    unsafe { sys::cuDeviceGetDefaultMemPool(&raw mut pool, context.cu_device()) }.result()?;
    // SAFETY: the pool is the device's own, and this attribute is read as 64 bits.
    unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut most).cast()) }.result()
}

fn uuid(uuid: &sys::CUuuid) -> String {
    let mut text = "GPU-".to_owned();
    for (at, byte) in uuid.bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let [byte] = byte.to_ne_bytes();
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").ok();
    }
    text
}

fn driver(action: &'static str) -> impl Fn(DriverError) -> CudaError {
    move |error| {
        let reason = error.error_string().map(|text| text.to_string_lossy().into_owned());
        let reason = reason.unwrap_or_else(|_| format!("{:?}", error.0));
        CudaError::Driver { action, reason }
    }
}

impl<T> DeviceArray for CudaSlice<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn address(&self) -> u64 {
        // One stream carries all work, so the guard that orders streams has nothing to do.
        let (address, _guard) = self.device_ptr(self.stream());
        address
    }
}

// SAFETY: the arrays are allocations of the driver in this context, of `len` values and with its
// alignment of 256 bytes, or null for no values at all, which no call reads; allocations, copies,
// frees and kernels all go through the one stream.
unsafe impl Memory for Gpu {
    type Array<T: Element> = CudaSlice<T>;

    fn zeroed<T: Element>(&self, count: usize) -> Result<Self::Array<T>, CudaError> {
        // The driver refuses allocations of nothing; the step's own length stays 0 there.
        if count == 0 {
            return self.stream.null().map_err(driver("allocate memory"));
        }
        self.stream.alloc_zeros(count).map_err(driver("allocate memory"))
    }

    fn upload<T: Element>(&self, values: &[T]) -> Result<Self::Array<T>, CudaError> {
        if values.is_empty() {
            return self.zeroed(0);
        }
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let mut held = self.staging(bytes.len())?;
        let Some(staging) = held.as_mut().and_then(|held| held.as_mut()) else {
            return self.stream.clone_htod(values).map_err(driver("copy to the GPU"));
        };
        let array: CudaSlice<T> = self
            .stream
            .alloc_zeros(values.len())
            .map_err(driver("allocate memory"))?;
        // SAFETY: the array has as many bytes, and is freed in the stream's order.
        unsafe { staging.upload(bytes, array.address()) }.map_err(driver("copy to the GPU"))?;
        Ok(array)
    }

    fn download<T: Element>(&self, array: &Self::Array<T>, count: usize) -> Result<Vec<T>, CudaError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let part = array
            .try_slice(..count)
            .ok_or(CudaError::Mismatch("more values than the array has"))?;
        let mut held = self.staging(part.num_bytes())?;
        let Some(staging) = held.as_mut().and_then(|held| held.as_mut()) else {
            let values = self.stream.clone_dtoh(&part).map_err(driver("copy from the GPU"))?;
            self.stream.synchronize().map_err(driver("finish its work"))?;
            return Ok(values);
        };
        let mut values = vec![T::default(); count];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        // SAFETY: the array has at least as many bytes.
        unsafe { staging.download(bytes, array.address()) }.map_err(driver("copy from the GPU"))?;
        Ok(values)
    }

    fn concatenate<T: Element>(&self, arrays: &[&Self::Array<T>]) -> Result<Self::Array<T>, CudaError> {
        let mut whole: CudaSlice<T> = self.zeroed(arrays.iter().map(|array| array.len()).sum())?;
        let mut from = 0;
        for array in arrays.iter().filter(|array| !array.is_empty()) {
            let to = from + array.len();
            let mut part = whole
                .try_slice_mut(from..to)
                .ok_or(CudaError::Mismatch("arrays too long"))?;
            self.stream
                .memcpy_dtod(*array, &mut part)
                .map_err(driver("copy on the GPU"))?;
            from = to;
        }
        Ok(whole)
    }

    fn stream(&self) -> usize {
        self.stream.cu_stream().addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_written_as_nvml_writes_them() {
        let mut bytes = [0; 16];
        bytes[0] = -1;
        bytes[15] = 0x1a;
        let text = uuid(&sys::CUuuid { bytes });
        assert_eq!(text, "GPU-ff000000-0000-0000-0000-00000000001a");
    }
}
